"""Builds the documentation site: ``python -m docs.site [--repository URL] [--serve]``.

With ``--release``, mike puts it beside the sites of other versions, on the local branch
``gh-pages``, and shows a menu of the versions. Nothing is pushed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "build" / "site-pages"
SITE = ROOT / "build" / "site"
CONFIGURATION = Path(__file__).with_name("mkdocs.yml")
_SOURCES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "docs/**/*.png",
    "docs/**/*.svg",
    "charts/*/README.md",
    "load/README.md",
    "load/*.png",
)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def stage(repository: str = "") -> None:
    """Copy the pages and pictures to ``build/site-pages``, in the folders of the repository.

    The site takes pages of one folder only, and relative links must work in it as they do in the
    repository. A link to a file that is not on the site, such as a source file, leads to
    ``repository``. Without one, only its text remains.
    """
    shutil.rmtree(PAGES, ignore_errors=True)
    sources = {source for pattern in _SOURCES for source in ROOT.glob(pattern)}
    for source in sources:
        copy = PAGES / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            copy.write_text(_linked(source, sources, repository), encoding="utf-8")
        else:
            shutil.copyfile(source, copy)
    shutil.copyfile(Path(__file__).with_name("site.css"), PAGES / "site.css")


def _linked(page: Path, on_site: set[Path], repository: str) -> str:
    def replace(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link[2]))
        if target in on_site or not target.exists():  # the builder reports a missing page
            return link[0]
        if repository:
            return f"[{link[1]}]({repository.rstrip('/')}/blob/main/{target.relative_to(ROOT)})"
        return link[1]

    return _LINK.sub(replace, page.read_text(encoding="utf-8"))


def main() -> int:
    """Stage the pages and build the site; return the exit status of the builder."""
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument(
        "--repository",
        default="",
        metavar="URL",
        help="address of the repository, for links to sources",
    )
    parser.add_argument("--serve", action="store_true", help="serve the site on 127.0.0.1:8000")
    parser.add_argument(
        "--release",
        default="",
        metavar="VERSION",
        help="commit the site of a version to the branch gh-pages, with mike (pip install mike)",
    )
    options = parser.parse_args()
    if options.release and not Path(command(options.release, serve=False)[0]).exists():
        parser.error("--release needs mike: pip install mike")
    stage(options.repository)
    settings = {"DOCS_REPOSITORY": options.repository, "NO_MKDOCS_2_WARNING": "1"}
    if options.release:
        settings["DOCS_VERSIONS"] = "mike"
        # It calls mkdocs by its name.
        settings["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command(options.release, serve=options.serve),
        check=False,
        env={**os.environ, **settings},
    )
    if done.returncode == 0 and options.release:
        print("committed to gh-pages: git push origin gh-pages")
    elif done.returncode == 0 and not options.serve:
        print(f"wrote the site: open {SITE.relative_to(ROOT)}/index.html")
    return done.returncode


def command(release: str, *, serve: bool) -> list[str]:
    """Return the builder's command. A candidate (1.2.0-rc1) is not the latest."""
    chosen = ["--config-file", str(CONFIGURATION)]
    if not release:
        return [sys.executable, "-m", "mkdocs", "serve" if serve else "build", *chosen]
    mike = str(Path(sys.executable).with_name("mike"))
    aliases = [] if "-" in release else ["latest"]
    return [mike, "deploy", *chosen, "--update-aliases", release.removeprefix("v"), *aliases]


if __name__ == "__main__":
    sys.exit(main())
