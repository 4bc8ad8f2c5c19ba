"""Builds everything that a tag publishes, into ``dist/``: ``python -m release``.

The wheel, the source archive, the command as one file for each platform, krew's manifest, the
chart, the image, the bill of materials, checksums, an in-toto statement of their provenance, and
the notes. It publishes and signs nothing: the workflow does.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from adapter import __version__
from release import artifacts, krew, singlefile, version
from release.source import Source
from release.version import ROOT, ReleaseError


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--tag", help="the tag that is released, v1.2.3; the commit must have it")
    parser.add_argument("--dry-run", action="store_true", help="accept any commit, and changes")
    parser.add_argument("--set-version", metavar="VERSION", help="write a version to all files")
    parser.add_argument(
        "--repository", default="", metavar="URL", help="address of the repository, for the chart"
    )
    parser.add_argument(
        "--image-repository",
        default="",
        metavar="NAME",
        help="name of the image, for the chart",
    )
    parser.add_argument(
        "--image",
        choices=("docker", "stand-in", "none"),
        default="docker",
        help="how to build the image: with docker buildx, with buildah on a stand-in for its base "
        "(a test: no archive), or not at all",
    )
    parser.add_argument(
        "--single-files",
        choices=("all", "none"),
        default="all",
        help="the command as one file for each platform, with wheels from the package index, or "
        "not at all",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    options = parser.parse_args(arguments)
    try:
        if options.set_version:
            version.write(options.set_version)
            print(f"wrote {options.set_version}; run make docs")
            return 0
        _build(options)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def _build(options: argparse.Namespace) -> None:
    source = Source.of(ROOT)
    if not options.dry_run:
        source.require_tag(options.tag, __version__)
    if wrong := version.disagreements():
        raise ReleaseError(f"{'; '.join(wrong)}: run python -m release --set-version {__version__}")
    notes = version.notes(__version__, released=not options.dry_run)
    output: Path = options.output
    artifacts.empty(output)
    print(f"gpu-metrics-adapter {__version__}, commit {source.commit}{source.dirty}")
    artifacts.python_packages(output, source)
    if options.single_files == "all":
        (wheel,) = output.glob("*.whl")
        written = singlefile.archives(output, wheel)
        if options.repository:
            text = krew.manifest(options.repository, written)
            (output / "gpu.yaml").write_text(text, encoding="utf-8")
    artifacts.chart(output, options.repository, options.image_repository)
    if options.image == "docker":
        artifacts.image_by_docker(output, source)
    elif options.image == "stand-in":
        artifacts.image_on_stand_in(output)
    artifacts.provenance(output, source, options.repository)
    artifacts.checksums(output)
    (output / "NOTES.md").write_text(notes, encoding="utf-8")
    for path in sorted(output.iterdir()):
        print(f"  {path.stat().st_size:>12,}  {path.name}")
    if options.dry_run:
        print("dry run: nothing is published")


if __name__ == "__main__":
    sys.exit(main())
