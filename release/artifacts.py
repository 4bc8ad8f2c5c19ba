"""The files of a release."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from adapter import __version__
from release.source import Source
from release.version import ROOT, ReleaseError
from tests.e2e import imagebuild, programs

NAME: Final = "gpu-metrics-adapter"
_CHART: Final = ROOT / "charts" / NAME
_SBOM: Final = f"opt/{NAME}/sbom.cdx.json"
_INPUTS: Final = ("requirements.lock", "requirements-image.lock", "Dockerfile")
_SUMS: Final = "SHA256SUMS"
_PROVENANCE: Final = "provenance.intoto.json"


def empty(folder: Path) -> None:
    """Make an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def python_packages(folder: Path, source: Source) -> None:
    """Write the wheel and the source archive; the same commit gives the same bytes."""
    _run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        {"SOURCE_DATE_EPOCH": str(source.time)},
    )


def chart(folder: Path, repository: str, image_repository: str) -> None:
    """Package the chart, with the given addresses of the repository and of the image."""
    try:
        helm = programs.find(programs.HELM)
    except programs.ProgramMissingError as error:
        raise ReleaseError(str(error)) from None
    with tempfile.TemporaryDirectory() as staged:
        copy = Path(staged) / NAME
        shutil.copytree(_CHART, copy)
        if repository:
            with (copy / "Chart.yaml").open("a", encoding="utf-8") as file:
                file.write(f"home: {repository}\nsources: [{repository}]\n")
                file.write(f"icon: {repository}/raw/v{__version__}/docs/icon.svg\n")
        if image_repository:
            _replace(copy / "values.yaml", rf"^(  repository:) {NAME}$", image_repository)
            _replace(copy / "Chart.yaml", rf"^(      image:) {NAME}(?=:)", image_repository)
        _run([str(helm), "lint", "--strict", str(copy)])
        _run([str(helm), "package", str(copy), "--destination", str(folder)])


def _replace(path: Path, pattern: str, text: str) -> None:
    """Replace what follows the pattern's first group on the one line that matches."""
    before = path.read_text(encoding="utf-8")
    after, count = re.subn(pattern, rf"\1 {text}", before, flags=re.MULTILINE)
    if count != 1:
        raise ReleaseError(f"{path.name} of the chart has {count} lines like {pattern}")
    path.write_text(after, encoding="utf-8")


def image_by_docker(folder: Path, source: Source) -> None:
    """Write the image for amd64 and arm64 as an OCI archive, and its bill of materials."""
    if shutil.which("docker") is None:
        raise ReleaseError("docker is not on the PATH: install it, or pass --image stand-in")
    build = [
        *("docker", "buildx", "build", "--build-arg", f"SOURCE_DATE_EPOCH={source.time}"),
        *("--label", f"org.opencontainers.image.revision={source.commit}"),
    ]
    archive = folder / f"{NAME}-{__version__}.oci.tar"
    both = ("--platform", "linux/amd64,linux/arm64", "--output", f"type=oci,dest={archive}")
    _run([*build, *both, str(ROOT)])
    with tempfile.TemporaryDirectory() as tree:
        one = ("--platform", "linux/amd64", "--output", f"type=local,dest={tree}")
        _run([*build, *one, str(ROOT)])
        shutil.copyfile(Path(tree) / _SBOM, _sbom(folder))


def image_on_stand_in(folder: Path) -> None:
    """Run every step of the Dockerfile on a stand-in for its base, for the bill of materials.

    The result is a test of the build and not an image to publish, so no archive is written.
    """
    try:
        built = imagebuild.build()
    except (imagebuild.NoImageError, imagebuild.BuildError) as error:
        raise ReleaseError(f"the image cannot be built: {error}; pass --image none") from None
    shutil.copyfile(built.tree / _SBOM, _sbom(folder))
    print("  image: built on a stand-in for its base, and not written")


def _sbom(folder: Path) -> Path:
    return folder / f"{NAME}-{__version__}.sbom.cdx.json"


def provenance(folder: Path, source: Source, repository: str) -> None:
    """Write an in-toto statement: what was built, from which commit and inputs.

    Its predicate is SLSA's provenance v1. It is not signed. The workflow has the platform sign
    one of its own.
    """
    statement: dict[str, Any] = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.name, "digest": {"sha256": _digest(path)}}
            for path in sorted(folder.iterdir())
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "python -m release",
                "externalParameters": {"version": __version__},
                "resolvedDependencies": [
                    {"uri": repository or NAME, "digest": {"gitCommit": source.commit}},
                    *(
                        {"uri": name, "digest": {"sha256": _digest(ROOT / name)}}
                        for name in _INPUTS
                    ),
                ],
            },
            "runDetails": {
                "builder": {"id": os.environ.get("GITHUB_WORKFLOW_REF", "local")},
                "metadata": {"invocationId": os.environ.get("GITHUB_RUN_ID", "local")},
            },
        },
    }
    text = json.dumps(statement, indent=2) + "\n"
    (folder / _PROVENANCE).write_text(text, encoding="utf-8")


def checksums(folder: Path) -> None:
    """Write the SHA-256 of every file, as ``sha256sum --check`` reads it."""
    lines = [f"{_digest(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / _SUMS).write_text("".join(lines), encoding="utf-8")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()[-2000:]
        raise ReleaseError(f"{Path(command[0]).name} {command[1]} failed:\n{output}")
