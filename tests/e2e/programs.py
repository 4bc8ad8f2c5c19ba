"""The programs that end-to-end tests and benchmarks use: found, or built once.

They are searched in ``$KUBEBUILDER_ASSETS``, in PATH, and in this repository's ``.cache/bin``.
Missing programs are built into the latter with ``go build``, from a module with only go.mod and
go.sum, and built again when the go.mod names another version. Programs that a distribution packages
are never built. A program of ``$KUBEBUILDER_ASSETS`` may have another version: CONTRIBUTING.md says
how such versions are tried.
"""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import debian
from tests.e2e import toolchain

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "bin"
KUBERNETES_VERSION = "1.37.2"
HELM_VERSION = "3.19.0"


class ProgramMissingError(Exception):
    """A program is missing and cannot be built; the text explains how to get it."""


@dataclass(frozen=True, slots=True)
class Built:
    """A program that ``go build`` makes."""

    name: str
    package: str
    module: Path
    """Folder of the go.mod, relative to the repository."""
    ldflags: str = ""
    version: tuple[str, ...] = ()
    """Arguments that print the version."""
    release: str = ""
    """Prefix of the version of an acceptable copy."""
    tags: str = ""
    """Build tags."""


@dataclass(frozen=True, slots=True)
class Packaged:
    """A program of the distribution."""

    name: str
    package: str
    alone: bool = False
    """It runs from where its package is unpacked, so it needs no installation."""


def _kubernetes(name: str, *version: str) -> Built:
    prefix = "-X k8s.io/component-base/version"
    major, minor, _ = KUBERNETES_VERSION.split(".")
    return Built(
        name,
        f"k8s.io/kubernetes/cmd/{name}",
        Path("tests/e2e/programs/kubernetes"),
        # Without these, /version does not parse and clients reject the server.
        f"{prefix}.gitVersion=v{KUBERNETES_VERSION} "
        f"{prefix}.gitMajor={major} {prefix}.gitMinor={minor}",
        version or ("--version",),
        f"v{major}.{minor}.",
    )


def _helm() -> Built:
    # The cluster version of `helm template` and `helm lint`; the default is 1.20.
    major, minor, _ = KUBERNETES_VERSION.split(".")
    assumed = " ".join(
        f"-X helm.sh/helm/v3/pkg/{package}.k8sVersionMajor={major} "
        f"-X helm.sh/helm/v3/pkg/{package}.k8sVersionMinor={minor}"
        for package in ("chartutil", "lint/rules")
    )
    return Built(
        "helm",
        "helm.sh/helm/v3/cmd/helm",
        Path("tests/e2e/programs/helm"),
        f"-X helm.sh/helm/v3/internal/version.version=v{HELM_VERSION} {assumed}",
        ("version", "--short"),
        "v3.",
    )


def _keda(name: str) -> Built:
    package = f"github.com/kedacore/keda/v2/cmd/{name}"
    return Built(f"keda-{name}", package, Path("tests/e2e/programs/keda"))


KUBE_APISERVER = _kubernetes("kube-apiserver")
KUBE_CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBE_SCHEDULER = _kubernetes("kube-scheduler")
KUBECTL = _kubernetes("kubectl", "version", "--client")
HELM = _helm()
KEDA_OPERATOR = _keda("operator")
KEDA_METRICS_SERVER = _keda("adapter")
PROMETHEUS_ADAPTER = Built(
    "prometheus-adapter",
    "sigs.k8s.io/prometheus-adapter/cmd/adapter",
    Path("load/programs/prometheus-adapter"),
)
KARPENTER = Built(
    # Karpenter's kwok provider and kwok itself are both called kwok by `go install`.
    "karpenter-kwok",
    "sigs.k8s.io/karpenter/kwok",
    Path("tests/e2e/programs/karpenter"),
)
KWOK = Built("kwok", "sigs.k8s.io/kwok/cmd/kwok", Path("tests/e2e/programs/kwok"))
THANOS = Built(
    "thanos",
    "github.com/thanos-io/thanos/cmd/thanos",
    Path("tests/e2e/programs/thanos"),
    tags="slicelabels",  # its memory layout of labels; without the tag, sidecars crash
)
ETCD = Packaged("etcd", "etcd-server", alone=True)
BUBBLEWRAP = Packaged("bwrap", "bubblewrap")
BUILDAH = Packaged("buildah", "buildah")
FAKETIME = Packaged("faketime", "faketime")
IP = Packaged("ip", "iproute2")
MMDEBSTRAP = Packaged("mmdebstrap", "mmdebstrap")
PROMETHEUS = Packaged("prometheus", "prometheus", alone=True)
VICTORIAMETRICS = Packaged("victoria-metrics", "victoria-metrics", alone=True)
PROMTOOL = Packaged("promtool", "prometheus", alone=True)


@functools.cache
def find(program: Built | Packaged) -> Path:
    """Return the path of a working program.

    Raises:
        ProgramMissingError: it is missing and cannot be built or installed.
    """
    for folder in (os.environ.get("KUBEBUILDER_ASSETS"), None):
        path = shutil.which(program.name, path=folder) if folder != "" else None
        if path and _fits(program, path):
            return Path(path)
    if isinstance(program, Packaged):
        return _unpack(program) if program.alone else _install(program)
    return _build(program)


def _fits(program: Built | Packaged, path: str) -> bool:
    if isinstance(program, Packaged) or not program.version:
        return True
    try:
        printed = subprocess.run(
            [path, *program.version], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return printed.returncode == 0 and program.release in printed.stdout


def _build(program: Built) -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / program.name
    with (CACHE / f".{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists() and _fits(program, str(target)) and _is_pinned(program, target):
            return target
        try:
            go = toolchain.go(program.module)
        except toolchain.NoGoError as error:
            raise ProgramMissingError(
                f"{program.name} is not in PATH and cannot be built: {error}; or point "
                f"KUBEBUILDER_ASSETS at a folder with {program.name} {program.release or 'v'}x"
            ) from None
        print(f"building {program.name} (minutes, once)", file=sys.stderr, flush=True)
        # Built under another name and renamed, so that an aborted build leaves no program.
        partial = target.with_suffix(".partial")
        command = [go, "build", "-o", str(partial)]
        if program.ldflags:
            command += ["-ldflags", program.ldflags]
        if program.tags:
            command += ["-tags", program.tags]
        done = subprocess.run(
            [*command, program.package],
            cwd=ROOT / program.module,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ProgramMissingError(f"go build {program.package} failed:\n{done.stderr[-4000:]}")
        partial.rename(target)
    return target


def _is_pinned(program: Built, target: Path) -> bool:
    """Return whether a program that was built here has the version of its go.mod, as far as known.

    Without this, a machine that keeps its programs would test the old version after an upgrade.
    """
    built = toolchain.built_from(target)
    if built is None:
        return True
    rows = (ROOT / program.module / "go.mod").read_text().splitlines()
    return built in {tuple(row.removeprefix("require").split()[:2]) for row in rows}


def _unpack(program: Packaged) -> Path:
    try:
        return debian.unpack(program.package, [program.name]) / program.name
    except debian.NoPackageError as error:
        raise ProgramMissingError(f"{error}; or install {program.name} on the PATH") from None


def _install(program: Packaged) -> Path:
    hint = f"apt-get install {program.package}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ProgramMissingError(
            f"{program.name} is not in PATH: run `{hint}` (or its equivalent) as root"
        )
    print(f"installing {program.package}", file=sys.stderr, flush=True)
    install = ["install", "--yes", "--no-install-recommends", program.package]
    done = _apt(*install)
    if done.returncode != 0:  # a fresh machine has no package lists
        _apt("update")
        done = _apt(*install)
    path = shutil.which(program.name)
    if path is None:
        raise ProgramMissingError(f"`{hint}` brought no {program.name}:\n{done.stderr[-2000:]}")
    return Path(path)


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "-o", "Acquire::Retries=3", "-o", "DPkg::Lock::Timeout=300", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )


END_TO_END = (
    ETCD,
    FAKETIME,
    BUBBLEWRAP,
    IP,
    KUBE_APISERVER,
    KUBE_CONTROLLER_MANAGER,
    KUBECTL,
    PROMETHEUS,
    PROMTOOL,
    HELM,
    KEDA_OPERATOR,
    KEDA_METRICS_SERVER,
    KUBE_SCHEDULER,
    KARPENTER,
    KWOK,
    PROMETHEUS_ADAPTER,
)
"""The programs of these tests and of the benchmarks."""
STORES = (THANOS,)
"""Programs of tests that are skipped without them: building takes 5 minutes of CPU time."""


def main() -> int:
    """Install every program, and print the progress; with the argument ``stores``, those."""
    try:
        for program in STORES if sys.argv[1:] == ["stores"] else END_TO_END:
            print(f"{program.name}: {find(program)}", file=sys.stderr, flush=True)
    except ProgramMissingError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
