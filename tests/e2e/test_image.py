"""The image that its Dockerfile really builds: what it is, what is in it, how it runs."""

from __future__ import annotations

import json
import re
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from packaging.requirements import Requirement

from adapter import __version__
from tests.e2e import imagebuild
from tests.e2e.imagebuild import Image, NoImageError
from tests.e2e.imagecontainer import Container, run
from tests.e2e.process import free_port, wait_until
from tests.image.dockerfile import ROOT, sources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

HOME = "opt/gpu-metrics-adapter"


@pytest.fixture(scope="module")
def image() -> Image:
    try:
        return imagebuild.built()
    except NoImageError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def bill(image: Image) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((image.tree / HOME / "sbom.cdx.json").read_text())
    return content


def every_file(image: Image) -> Iterator[tuple[Path, int]]:
    """Each regular file of the image with its mode."""
    for path in image.tree.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            yield path, mode


def modules(image: Image) -> Path:
    (packages,) = (image.tree / HOME / "lib").glob("python3.*/site-packages")
    return packages


def distributions(image: Image) -> dict[str, str]:
    """Name, as in a requirement, to version of what is installed."""
    names = (folder.name for folder in modules(image).glob("*.dist-info"))
    pairs = (name.removesuffix(".dist-info").rpartition("-") for name in names)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, _, version in pairs}


def locked(python: str) -> dict[str, str]:
    """Name to version of what the lock asks for on Linux with this Python."""
    environment = {"python_full_version": python, "sys_platform": "linux", "os_name": "posix"}
    rows = re.findall(
        r"^[a-z0-9-]+==[^\\\n]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    wanted = [Requirement(row) for row in rows]
    return {
        row.name: str(row.specifier).removeprefix("==")
        for row in wanted
        if row.marker is None or row.marker.evaluate(environment)
    }


def test_it_is_configured_as_engines_and_the_chart_expect(image: Image) -> None:
    config = image.config
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["gpu-metrics-adapter"]
    assert config["Cmd"] == ["serve"]
    assert config["StopSignal"] == "SIGTERM"
    assert set(config["ExposedPorts"]) == {"6443/tcp", "6000/tcp", "8080/tcp", "8081/tcp"}
    assert config["Labels"]["org.opencontainers.image.version"] == __version__


def test_exactly_the_locked_distributions_are_installed(image: Image) -> None:
    python = run(image, "python", "-c", "import platform; print(platform.python_version())")
    wanted = locked(python.strip())
    assert distributions(image) == {**wanted, "gpu-metrics-adapter": __version__}


def test_the_bill_of_materials_lists_exactly_the_installed_distributions_with_licences(
    image: Image, bill: dict[str, Any]
) -> None:
    listed = {
        re.sub(r"[-_.]+", "-", row["name"]).lower(): row["version"] for row in bill["components"]
    }
    assert listed == distributions(image)
    assert [row["name"] for row in bill["components"] if not row.get("licenses")] == []
    assert {row["purl"].partition("@")[0].partition("/")[0] for row in bill["components"]} == {
        "pkg:pypi"
    }
    assert (bill["bomFormat"], "serialNumber" in bill) == ("CycloneDX", False)


def test_the_image_has_no_installers_and_no_setuid_programs(image: Image) -> None:
    privileged = [path for path, mode in every_file(image) if mode & (stat.S_ISUID | stat.S_ISGID)]
    assert privileged == []
    installers = run(
        image,
        "python",
        "-c",
        "import importlib.util as util\n"
        "print([n for n in ('pip', 'ensurepip', 'setuptools') if util.find_spec(n)])",
    )
    assert installers == "[]\n"
    assert [path.name for path in (image.tree / "usr/local/bin").glob("pip*")] == []
    assert not (image.tree / "tools").exists()


def test_no_file_of_the_image_is_writable_by_its_user(image: Image) -> None:
    everybody = [path for path, mode in every_file(image) if mode & stat.S_IWOTH]
    assert everybody == []
    owners = {path.lstat().st_uid for path in (image.tree / HOME).rglob("*")}
    assert owners == {0}


def test_the_user_is_numeric_and_unused_by_others(image: Image) -> None:
    assert run(image, "id").split() == [
        "uid=65532(nonroot)",
        "gid=65532(nonroot)",
        "groups=65532(nonroot)",
    ]


def test_the_image_contains_no_trace_of_the_package_index(image: Image) -> None:
    settings = [path for path, _ in every_file(image) if path.name in {"pip.conf", "ca.crt"}]
    assert settings == []
    assert [row for row in image.config["Env"] if row.startswith("PIP_")] == []
    assert list(modules(image).glob("*.dist-info/direct_url.json")) == []


def test_loaded_modules_have_bytecode_that_does_not_depend_on_file_times(
    image: Image,
) -> None:
    """Bit 0 of the flags: hash-based; bit 1, unset: not compared with the source (PEP 552)."""
    loaded = run(
        image,
        "python",
        "-c",
        "import sys; from importlib.util import cache_from_source\n"
        "import adapter.server.serve.run, adapter.answers.keda.server\n"
        "import adapter.nodepool.run.process\n"
        "import adapter.tools.maintain.commands, adapter.__main__\n"
        "files = [getattr(module, '__file__', None) for module in list(sys.modules.values())]\n"
        "for file in sorted(file for file in files if file and file.endswith('.py')):\n"
        "    print(cache_from_source(file))\n",
    ).split()
    assert len(loaded) > 500
    flags = {
        path: (image.tree / path.lstrip("/")).read_bytes()[4:8]
        for path in loaded
        if (image.tree / path.lstrip("/")).exists()
    }
    assert sorted(set(loaded) - set(flags)) == []
    assert set(flags.values()) == {b"\x01\0\0\0"}


def test_installed_files_are_those_of_the_wheel_with_one_timestamp(image: Image) -> None:
    times = {
        path.lstat().st_mtime
        for path in (image.tree / HOME).rglob("*")
        if "__pycache__" not in path.parts and not path.is_dir()
    }
    assert times == {1577836800.0}
    packaged = {
        path
        for path in sources()
        if path.parts[0] in {"adapter", "apiservice"} and path.suffix in {".py", ".typed"}
    }
    for path in packaged:
        assert (modules(image) / path).read_bytes() == (ROOT / path).read_bytes()


def test_the_size_of_the_image_is_as_documented(
    image: Image, capsys: pytest.CaptureFixture[str]
) -> None:
    """Printed, and bounded, so that a dependency that doubles it does not go unseen."""
    rows = [(path.relative_to(image.tree), path.lstat().st_size) for path, _ in every_file(image)]
    total = sum(size for _, size in rows) / 2**20
    own = sum(size for path, size in rows if path.is_relative_to(HOME)) / 2**20
    bytecode = sum(size for path, size in rows if path.suffix == ".pyc") / 2**20
    with capsys.disabled():
        print(
            f"\nimage: {total:.0f} MiB, of it {own:.0f} MiB ours and our libraries', "
            f"{bytecode:.0f} MiB bytecode; built in {image.seconds:.0f} s"
        )
    assert own < 300


@pytest.mark.parametrize(
    "command",
    [("serve", "--check"), ("nodepool", "--help"), ("maintain", "--help"), ("demo", "--help")],
    ids=" ".join,
)
def test_every_command_runs_with_a_read_only_root(image: Image, command: tuple[str, ...]) -> None:
    assert run(image, *image.config["Entrypoint"], *command)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


def alive(container: Container, port: int) -> bool:
    """Whether it answers with the certificate that it made."""
    container.check()
    certificate = container.tmp / "gpu-metrics-adapter/certs/ca.crt"
    if not certificate.is_file():
        return False
    context = ssl.create_default_context(cadata=certificate.read_text())
    base = f"https://localhost:{port}"
    with httpx.Client(verify=context, base_url=base, trust_env=False, timeout=60) as client:
        try:
            return client.get("/livez").text == "ok"
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def serving(
    image: Image, port: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Container]:
    """A live `serve`, which knows its settings from a file and a flag."""
    folder = tmp_path_factory.mktemp("container")
    settings = {"cluster": {"pods_file": "/mnt/pods.yaml"}, "keda": {"enabled": False}}
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))
    (folder / "pods.yaml").write_text("[]")
    arguments = ["serve", "--config", "/mnt/config.yaml", "--port", str(port)]
    with Container(image, arguments, folder) as container:
        wait_until(lambda: alive(container, port), "/livez answers", 300, 1)
        yield container
        assert container.stop() == 0, container.log.read_text()


def test_serve_answers_as_the_images_user_without_any_capability(
    serving: Container, port: int
) -> None:
    assert alive(serving, port)
    status = Path(f"/proc/{serving.pid}/status").read_text()
    assert re.search(r"^Uid:\t65532\t65532\t65532\t65532$", status, re.MULTILINE)
    assert re.search(r"^CapBnd:\t0+$", status, re.MULTILINE)


def test_serve_writes_nothing_but_its_certificate(serving: Container) -> None:
    """/tmp is the only place where it can."""
    written = [path for path in serving.tmp.rglob("*") if path.is_file()]
    folder = serving.tmp / "gpu-metrics-adapter/certs"
    assert sorted(written) == [folder / n for n in ("ca.crt", "ca.key", "tls.crt", "tls.key")]
