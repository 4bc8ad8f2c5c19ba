"""One run of ``replay hpa``: read the HPA and the recording, and print the report."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from adapter.client.access import Json, cluster
from adapter.client.command import FINE, UNSEEN, complain, print_json
from adapter.client.errors import ClientError, odd_answers
from adapter.client.naming import named
from adapter.client.output import screen_of
from adapter.explain.hpafacts import HPAS
from adapter.hpa import ControllerOptions, HpaSpec, ManifestError, from_manifest
from adapter.recording.copied import CopiedRecording
from adapter.recording.events import Recording, RecordingError
from adapter.recording.writer import RecordingFile
from adapter.replay.inputs import recording_of
from adapter.replay.judgement import judge
from adapter.replay.report import ReplayReport
from adapter.replay.study import StudyOptions, study
from adapter.replay.variants import Tried
from adapter.replay.webpage import webpage
from adapter.settings.recording import RecordingSettings

_KIND = "HorizontalPodAutoscaler"
_MOST_BYTES = RecordingSettings().max_bytes


def run(given: Mapping[str, Any]) -> int:
    """Replay and print; return the exit status."""
    try:
        report = _report(given)
        if given["html"] is not None:
            _write(given["html"], webpage(report))
    except (ClientError, RecordingError) as error:
        complain(ClientError(str(error)))
        return UNSEEN
    if given["output"] == "json":
        print_json(report.json())
        return FINE
    screen = screen_of()
    click.echo("\n".join(screen.line(line) for line in report.lines(screen)))
    return FINE


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ClientError(f"{path} cannot be written: {error.strerror}") from None


def _report(given: Mapping[str, Any]) -> ReplayReport:
    namespace, _, name = given["name"].rpartition("/")
    if namespace and given["namespace"] not in ("", namespace):
        raise ClientError(
            f"{given['name']} and -n {given['namespace']} name two namespaces: remove one"
        )
    namespace = namespace or given["namespace"]
    if given["filename"] is not None:
        manifest = _from_file(given["filename"], namespace, name)
    else:
        manifest = asyncio.run(_from_cluster(given, namespace, name))
    spec = _spec(manifest)
    options = StudyOptions(
        tried=Tried(
            tuple(round(target * 1000) for target in given["target"]),
            given["stabilization"],
            tuple(map(int, given["low"])),
            tuple(map(int, given["high"])),
        ),
        metric=given["metric"],
        boot=given["boot"],
        limit=given["limit"],
        allowed=given["allow"],
        gpu_hour=given["gpu_hour"],
        failure=given["fail"],
        controller=ControllerOptions(sync_period=given["sync_period"]),
    )
    found = study(_recording(given, spec), spec, options)
    return ReplayReport(
        found,
        judge(found, options.allowed),
        options.allowed,
        options.gpu_hour,
        manifest,
    )


def _recording(given: Mapping[str, Any], spec: HpaSpec) -> Recording:
    found = recording_of(given, spec)
    if given["record"] is None:
        return found
    file = RecordingFile(given["record"], _MOST_BYTES)
    if file.size:
        raise ClientError(f"{file.path} is not empty: name a new file with --record")
    return CopiedRecording(found, file)


async def _from_cluster(given: Mapping[str, Any], namespace: str, name: str) -> Json:
    async with cluster(given["kubeconfig"], given["context"], namespace) as api:
        with odd_answers():
            found = await named(api, "HPA", HPAS, "horizontalpodautoscalers", name)
    return {"apiVersion": "autoscaling/v2", "kind": _KIND, **found}


def _from_file(path: Path, namespace: str, name: str) -> Json:
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())[:200]
        raise ClientError(f"{path} cannot be read as YAML: {said}") from None
    hpas = [row for row in documents if isinstance(row, dict) and row.get("kind") == _KIND]
    for row in hpas:
        meta = row.get("metadata")
        if not isinstance(meta, dict) or meta.get("name") != name:
            continue
        of = str(meta.get("namespace") or namespace or "default")
        if namespace in ("", of):
            return {**row, "metadata": {**meta, "namespace": of}}
    where = f"{namespace}/{name}" if namespace else name
    raise ClientError(f"{path} has no {_KIND} {where}: it has {len(hpas)} of other names")


def _spec(manifest: Json) -> HpaSpec:
    try:
        return from_manifest(manifest)
    except ManifestError as error:
        raise ClientError(f"the HPA's manifest cannot be used: {error}") from None
