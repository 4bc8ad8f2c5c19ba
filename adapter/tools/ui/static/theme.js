// Light, dark, or as the system has it. Loaded before the page is painted.

(() => {
  const known = ["auto", "light", "dark"];
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("theme") ?? "auto";
  } catch {
    // The browser keeps nothing: the system decides.
  }
  document.documentElement.dataset.theme = known.includes(chosen) ? chosen : "auto";
})();
