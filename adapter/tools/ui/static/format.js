// Numbers, times and missing values as text.

export const NONE = "–";

/** @param {number|null|undefined} value @returns {string} */
export function number(value) {
  if (value === null || value === undefined) return NONE;
  return value.toLocaleString("en-US", { maximumFractionDigits: Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0 });
}

/** An amount of a metric: memory in units, and a large number in short. @param {number|null|undefined} value @param {string} metric @returns {string} */
export function amount(value, metric) {
  if (value === null || value === undefined) return NONE;
  if (metric.endsWith("_bytes") || metric === "memory") {
    const power = value >= 1 ? Math.min(5, Math.floor(Math.log2(value) / 10)) : 0;
    return `${number(value / 1024 ** power)}${["", "Ki", "Mi", "Gi", "Ti", "Pi"][power]}`;
  }
  return Math.abs(value) >= 100_000 ? value.toLocaleString("en-US", { notation: "compact", maximumFractionDigits: 1 }) : number(value);
}

/** @param {number|null|undefined} amount @param {string} currency @returns {string} */
export function money(amount, currency) {
  if (amount === null || amount === undefined) return NONE;
  const digits = amount >= 1000 ? 0 : 2;
  return `${amount.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${currency}`.trim();
}

/** A span of time in one unit, or two: "12 s", "4 min", "3 h 20 min", "2 d". @param {number} seconds @returns {string} */
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 90) return `${s} s`;
  const min = Math.round(s / 60);
  if (min < 90) return `${min} min`;
  const hours = Math.floor(min / 60);
  if (hours < 48) return hours < 10 && min % 60 ? `${hours} h ${min % 60} min` : `${hours} h`;
  return `${Math.floor(hours / 24)} d`;
}

/** @param {number} time epoch seconds @returns {string} */
export function clock(time) {
  return new Date(time * 1000).toLocaleTimeString("en-GB");
}

/** "1 HPA", "2 HPAs". @param {number} count @param {string} noun @returns {string} */
export function count(count, noun) {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Keep the beginning and the end of a long name. @param {string} text @param {number} length @returns {string} */
export function middle(text, length) {
  const letters = Array.from(text);
  if (letters.length <= length) return text;
  const end = Math.ceil((length - 1) * 0.6);
  return `${letters.slice(0, length - 1 - end).join("")}…${letters.slice(-end).join("")}`;
}

/** Order texts with their numbers as numbers: gpu2 before gpu10. */
export const inOrder = new Intl.Collator("en", { numeric: true }).compare;

/** A text whose plain order is that of `inOrder`: to compare two of them takes a fraction of the time. @param {string} text */
export const orderKey = (text) => text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, "0"));
