"""Every file that a person writes: any change of it is used, or rejected in one line."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.config.process.config import ConfigError, load
from adapter.server.recording import blocks
from adapter.server.recording.events import Event, RecordingError
from adapter.server.recording.reader import RecordingReader
from adapter.server.recording.writer import RecordingWriter
from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.manifests import read_files
from adapter.tools.idle.prices import load as load_prices
from adapter.tools.replay.hpasource import read_hpa, spec_of
from apiservice.kube.clusterclient import ClusterAccess
from apiservice.kube.failures import ClusterError
from apiservice.kube.kubeconfig import context_names, load_kubeconfig
from tests.adapter.fuzzing import bent
from tests.adapter.tools.replay.day import Day, manifest, waves

SETTINGS = b"""
server: {port: 6443}
source:
  kind: prometheus
  prometheus: {url: 'http://prometheus:9090', matchers: 'job="dcgm"', timeout: 10}
values: {window: 30s, age_limit: 2m}
metrics:
- {name: tokens, series: tokens_total, kind: rate, unit: number}
log: {format: json, level: info}
"""
PRICES = b"currency: EUR\nprices: {NVIDIA-H100-80GB-HBM3: 2.5, 'L40S': 1, T4: 0.35}\n"
KUBECONFIG = b"""
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: 'https://lab:6443', insecure-skip-tls-verify: true}}]
users: [{name: jane, user: {token: abc}}]
contexts: [{name: lab, context: {cluster: lab, user: jane, namespace: ml}}]
"""
HPA = yaml.safe_dump(manifest("30")).encode()


def _lines() -> bytes:
    writer = RecordingWriter()
    for _, event in zip(range(12), Day(waves, syncs=3).events(), strict=False):
        writer.event(event)
    return b"".join(writer.take())


def settings(path: Path) -> list[str]:
    try:
        load(path, environ={})
    except ConfigError as error:
        return error.problems
    return []


def prices(path: Path) -> list[str]:
    try:
        load_prices(path)
    except ClientError as error:
        return [str(error)]
    return []


def kubeconfig(path: Path) -> list[str]:
    try:
        context_names(str(path))
        asyncio.run(load_kubeconfig(ClusterAccess(), str(path), None))
    except ClusterError as error:
        return [str(error)]
    return []


def of_doctor(path: Path) -> list[str]:
    try:
        return read_files([path]).notes
    except ClientError as error:
        return [str(error)]


def of_replay(path: Path) -> list[str]:
    try:
        spec_of(read_hpa({"namespace": "", "name": "ml/llm", "filename": path}))
    except ClientError as error:
        return [str(error)]
    return []


def recording(path: Path) -> list[str]:
    """Read a recording whose one block has this text."""
    file = path.with_suffix(".gma")
    file.write_bytes(blocks.pack(path.read_bytes()))
    reader = RecordingReader(file)
    try:
        events: list[Event] = list(reader.events())
    except RecordingError as error:
        return [str(error)]
    assert events or reader.losses.lines
    return []


READERS: dict[str, tuple[bytes, Callable[[Path], list[str]]]] = {
    "settings": (SETTINGS, settings),
    "prices": (PRICES, prices),
    "kubeconfig": (KUBECONFIG, kubeconfig),
    "manifests of doctor": (HPA, of_doctor),
    "manifests of replay": (HPA, of_replay),
    "recording": (_lines(), recording),
}
PUT = (b"\x00", b"\xff", b"'", b"{", b"&", b"-", b"9", b":")
CHANGES = 400
"""Places of a long file that are changed."""


def mutations(seed: bytes) -> Iterator[bytes]:
    """Yield every prefix, and the seed with one byte changed, each change at many places."""
    yield from (seed[:end] for end in range(0, len(seed), max(1, len(seed) // CHANGES)))
    for position in range(0, len(seed), max(1, len(seed) // CHANGES)):
        yield seed[:position] + PUT[position % len(PUT)] + seed[position + 1 :]


def check(path: Path, content: bytes, read: Callable[[Path], list[str]]) -> None:
    path.write_bytes(content)
    # A manifest named "-" is standard input.
    with mock.patch.object(sys, "stdin", io.StringIO()):
        problems = read(path)
    for text in problems:
        assert text, content
        assert "\n" not in text, content
        assert "Traceback" not in text, content
        assert "report it" not in text, content


@pytest.mark.parametrize("name", READERS)
def test_the_file_itself_is_used(tmp_path: Path, name: str) -> None:
    seed, read = READERS[name]
    (tmp_path / "file.yaml").write_bytes(seed)
    assert read(tmp_path / "file.yaml") == []


@pytest.mark.parametrize("name", READERS)
def test_a_prefix_and_a_changed_byte_are_used_or_one_line(tmp_path: Path, name: str) -> None:
    seed, read = READERS[name]
    for content in mutations(seed):
        check(tmp_path / "file.yaml", content, read)


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_a_bent_file_is_used_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    seed, read = READERS[name]
    folder = tmp_path_factory.getbasetemp()
    check(folder / "bent.yaml", data.draw(bent([seed])), read)
