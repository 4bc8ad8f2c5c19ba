"""Build the image from its Dockerfile, with all steps, on a substitute for its base.

``python -m tests.e2e.imagebuild`` builds it on a machine that can fetch packages, once for the same
sources. Tests use the result. Buildah runs the steps in a chroot: it needs root, but no engine.
"""

from __future__ import annotations

import ast
import configparser
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.e2e import imagebase, programs
from tests.image.dockerfile import ROOT, TEXT, sources

CACHE = ROOT / ".cache" / "image"
_NAME = "localhost/gpu-metrics-adapter:test"
_PIP = "/etc/xdg/pip"
"""The system-wide configuration of pip."""
_NETWORK = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout")
"""Settings of pip for access to the package index."""
_AUTHORITIES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
_APART = ("unshare", "--mount", "--propagation", "private")
_EXPORT = """\
container=$("$@" from --pull-never "$IMAGE")
cp -a "$("$@" mount "$container")/." "$TREE"
"$@" rm "$container" >/dev/null
"""


class NoImageError(Exception):
    """The image cannot be built on this machine; the text has the reason."""


class BuildError(Exception):
    """A step of the Dockerfile failed; the text is the end of the builder's output."""


class Image(NamedTuple):
    """A built image, unpacked."""

    tree: Path
    """Its root file system, with owners and modes."""
    config: dict[str, Any]
    """Docker's: User, Env, Entrypoint, Cmd, ExposedPorts, Healthcheck, Labels, StopSignal."""
    seconds: float
    """Seconds of the build, without the base."""


def _key() -> str:
    digest = hashlib.sha256()
    for path in (Path("Dockerfile"), Path("tests/e2e/imagebase.py"), *sources()):
        content = (ROOT / path).read_bytes()
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def built() -> Image:
    """Return the image of the current sources.

    Raises:
        NoImageError: it has not been built.
    """
    return _read(CACHE / _key())


def _read(folder: Path) -> Image:
    if not folder.exists():
        reason = _obstacle() or "run `make e2e`, or `python -m tests.e2e.imagebuild`"
        raise NoImageError(f"no image of the sources as they are now: {reason}")
    output = json.loads((folder / "image.json").read_text())
    return Image(folder / "tree", output["config"], output["seconds"])


def build() -> Image:
    """Return the image of the current sources; build it if necessary.

    Raises:
        NoImageError: it cannot be built here.
        BuildError: a step failed.
    """
    if reason := _obstacle():
        raise NoImageError(reason)
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = CACHE / _key()
        if not folder.exists():
            _build(folder)
    return _read(folder)


def _obstacle() -> str:
    if os.geteuid() != 0:
        return "the image is built as root only: its files have other owners"
    if shutil.which("apt-get") is None:
        return "the stand-in for the base image is made of Debian's packages: needs apt-get"
    return ""


def _build(folder: Path) -> None:
    try:
        buildah = [str(programs.find(programs.BUILDAH)), *_storage()]
        base = imagebase.of(TEXT)
        context = imagebase.context(base, CACHE)
    except (programs.ProgramMissingError, imagebase.NoBaseError) as error:
        raise NoImageError(str(error)) from None
    made = f"localhost/stand-in:{context.name}"
    chroot = ("build", "--isolation", "chroot", "--format", "docker")
    if not _run([*buildah, "images", "--quiet", "--filter", f"reference={made}"]).strip():
        print(f"making a stand-in for {base.name}", file=sys.stderr, flush=True)
        try:
            _run([*buildah, *chroot, "--tag", base.name, "--tag", made, str(context)])
        except BuildError as error:  # not a step of the Dockerfile
            raise NoImageError(f"buildah cannot run a step in a chroot here:\n{error}") from None
    print("building the image (a minute or two)", file=sys.stderr, flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as settings:
        _pip_settings(Path(settings))
        mount = ("--volume", f"{settings}:{_PIP}:ro")
        _run([*buildah, *chroot, "--pull-never", *mount, "--tag", _NAME, str(ROOT)])
    seconds = time.monotonic() - started
    for old in CACHE.glob("[0-9a-f]" * 16 + "*"):
        shutil.rmtree(old)
    partial = folder.with_suffix(".partial")
    (partial / "tree").mkdir(parents=True)
    _run(
        ["sh", "-ec", _EXPORT, "sh", *buildah],
        {"IMAGE": _NAME, "TREE": str(partial / "tree")},
    )
    output = json.loads(_run([*buildah, "inspect", "--type", "image", _NAME]))
    report = {"config": output["Docker"]["config"], "seconds": seconds}
    (partial / "image.json").write_text(json.dumps(report))
    partial.rename(folder)
    _run([*buildah, "rmi", "--force", _NAME])


def _storage() -> list[str]:
    """Options of buildah: images are in the cache; overlay if the kernel supports it."""
    place = ["--root", str(CACHE / "storage"), "--runroot", str(CACHE / "storage-run")]
    # The namespace ends with its mounts, so that the cache can be removed at any time.
    for driver in ("overlay", "vfs"):
        options = ["--storage-driver", driver, *place]
        tried = [*_APART, str(programs.find(programs.BUILDAH)), *options, "info"]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return options
    raise NoImageError("buildah can store nothing here: `buildah info` says why")


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [*_APART, *command],
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def _pip_settings(folder: Path) -> None:
    """Give pip in the build the package index of this machine. No layer contains it."""
    output = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    # Lines such as global.timeout='60'; those of :env: take precedence.
    lines = sorted(output.stdout.splitlines(), key=lambda line: line.startswith(":env:"))
    settings = dict(line.partition("=")[::2] for line in lines)
    options = {key.rpartition(".")[2]: ast.literal_eval(value) for key, value in settings.items()}
    kept = configparser.RawConfigParser()
    kept["global"] = {key: options[key] for key in _NETWORK if key in options}
    authorities = [options.get("cert"), *map(os.environ.get, _AUTHORITIES)]
    authority = next((path for path in authorities if path), None)
    if authority is not None:
        shutil.copyfile(authority, folder / "ca.crt")
        kept["global"]["cert"] = f"{_PIP}/ca.crt"
    with (folder / "pip.conf").open("w") as file:
        kept.write(file)


def main() -> int:
    """Build, and print the result."""
    try:
        image = build()
    except NoImageError as error:
        print(f"\n*** No image is built: {error}\n*** Its tests are skipped.\n", file=sys.stderr)
        return 0
    except BuildError as error:
        print(f"the image cannot be built:\n{error}", file=sys.stderr)
        return 1
    print(f"image: {image.tree}, built in {image.seconds:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
