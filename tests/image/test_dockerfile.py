"""Properties that the Dockerfile must keep. `make e2e` builds it."""

from __future__ import annotations

import re

import pytest

from adapter import __version__
from adapter.config.settings import Settings
from tests.image.dockerfile import ROOT, TEXT, Instruction, allowed, instructions

ALL = instructions()
LAST = [row for row in ALL if row.stage == max(row.stage for row in ALL)]
WHEEL_NEEDS = {"adapter", "apiservice", "pyproject.toml", "README.md", "LICENSE"}
BUILDING = {"image", "requirements.lock", "requirements-image.lock"}


def named(name: str, rows: list[Instruction] = ALL) -> list[str]:
    return [row.rest for row in rows if row.name == name]


def test_the_base_is_named_once_by_a_tag_that_fixes_python_and_debian() -> None:
    (reference,) = (rest for rest in named("ARG") if rest.startswith("PYTHON="))
    assert re.fullmatch(
        r"PYTHON=python:3\.\d+(\.\d+)?-slim-[a-z]+(@sha256:[0-9a-f]{64})?", reference
    )
    assert [rest.split()[0] for rest in named("FROM")] == ["${PYTHON}", "${PYTHON}"]


def test_it_runs_as_a_number() -> None:
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", named("USER", LAST)[-1])
    names = [row.name for row in LAST]
    assert "RUN" not in names[names.index("USER") :]


def test_nothing_is_fetched_but_wheels_whose_hashes_are_locked() -> None:
    assert named("ADD") == []
    fetching = re.compile(r"\b(curl|wget|apt-get|git|npm)\b")
    assert [rest for rest in named("RUN") if fetching.search(rest)] == []
    installs = [
        part
        for rest in named("RUN")
        for part in rest.split("&&")
        if re.search(r"\binstall\b", part)
    ]
    assert len(installs) == 3
    for part in installs:
        locked = "--require-hashes" in part and "--only-binary :all:" in part
        assert locked or "--no-index" in part, part


def test_the_wheel_is_built_by_the_locked_backend() -> None:
    (built,) = (rest for rest in named("RUN") if " wheel " in rest)
    assert "--no-build-isolation" in built
    assert "--no-index" in built
    lock = (ROOT / "requirements-image.lock").read_text()
    assert re.search(r"^hatchling==\S+ \\\n    --hash=sha256:", lock, re.MULTILINE)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-image.lock"])
def test_each_requirement_of_a_lock_has_a_version_and_hashes_and_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    for block in re.split(r"\n(?=\S)", text):
        if block.startswith("#"):
            continue
        assert re.match(r"[a-z0-9-]+==\S+", block), block
        assert "--hash=sha256:" in block, block
    assert "://" not in text


def test_a_tool_has_the_version_that_the_tests_run_with() -> None:
    versions = {
        name: dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / name).read_text(), re.MULTILINE))
        for name in ("requirements-image.lock", "requirements-dev.lock")
    }
    image, dev = versions.values()
    assert {name: dev[name] for name in image if name in dev} == {
        name: image[name] for name in image if name in dev
    }


def test_only_what_is_copied_is_sent_and_only_what_the_wheel_needs_is_copied() -> None:
    copied: set[str] = set()
    for rest in named("COPY"):
        if not rest.startswith("--from"):
            copied |= set(rest.split()[:-1])
    assert copied == WHEEL_NEEDS | BUILDING
    assert set(allowed()) == copied


def test_everything_else_is_kept_from_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert next(line for line in lines if line and not line.startswith("#")) == "*"
    assert lines[-1] == "**/__pycache__"


def test_only_the_environment_and_bytecode_come_from_the_building_stage() -> None:
    assert named("COPY", LAST) == [
        "--from=build /bytecode/ /",
        "--from=build /opt/gpu-metrics-adapter /opt/gpu-metrics-adapter",
    ]


def test_builders_without_buildkit_understand_it() -> None:
    """Those of `az acr build` and `gcloud builds submit --tag`."""
    assert not re.search(r"--mount|--link|--chmod|--checksum|<<", TEXT)


def test_no_layer_keeps_how_packages_were_reached() -> None:
    """An argument of the building stage alone; an image's history holds those of its last."""
    assert [(row.stage, row.rest.partition("=")[0]) for row in ALL if row.name == "ARG"] == [
        (0, "PYTHON"),
        (1, "PIP_INDEX_URL"),
        (1, "SOURCE_DATE_EPOCH"),
    ]
    assert not re.search(r"(?im)^ENV.*(token|password|index_url)", TEXT)


def test_labels_ports_and_signals_are_those_of_the_program() -> None:
    labels = dict(re.findall(r'(\S+)="([^"]*)"', " ".join(named("LABEL", LAST))))
    version = labels.pop("org.opencontainers.image.version")
    assert version == __version__
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0"
    settings = Settings()
    probes = 8080  # the chart's, see config.server.probe_port
    ports = [settings.server.port, settings.keda.port, probes, settings.nodepool.port]
    assert named("EXPOSE", LAST) == [str(port) for port in ports]
    assert named("STOPSIGNAL", LAST) == ["SIGTERM"]
    assert named("ENTRYPOINT", LAST) == ['["gpu-metrics-adapter"]']
