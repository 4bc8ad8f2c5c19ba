"""One run of ``replay hpa``: read the HPA and the recording, and print the report."""

from __future__ import annotations

from collections.abc import Mapping
from os.path import realpath
from pathlib import Path
from typing import Any

from adapter.config.process.logs import silence_logs
from adapter.config.settings.recording import RecordingSettings
from adapter.hpa import ControllerOptions, HpaSpec
from adapter.server.recording.events import Recording, RecordingError
from adapter.server.recording.recordingcopy import CopiedRecording
from adapter.server.recording.writer import RecordingFile
from adapter.tools.client.command import FINE, UNSEEN, complain, show
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.hpasource import read_hpa, spec_of
from adapter.tools.replay.inputs import check_inputs, recording_of
from adapter.tools.replay.judgement import judge
from adapter.tools.replay.nodestudy import NodeOptions
from adapter.tools.replay.nodeworld import NodePhysics
from adapter.tools.replay.report import ReplayReport
from adapter.tools.replay.study import StudyOptions, study
from adapter.tools.replay.variants import Tried
from adapter.tools.replay.webpage import webpage

_MOST_BYTES = RecordingSettings().max_bytes


@silence_logs()
def run(given: Mapping[str, Any]) -> int:
    """Replay and print; return the exit status."""
    try:
        _check_page(given)
        report = _report(given)
        if given["html"] is not None:
            write(given["html"], webpage(report))
    except (ClientError, RecordingError) as error:
        complain(ClientError(str(error)))
        return UNSEEN
    show(report, given["output"])
    return FINE


def _check_page(given: Mapping[str, Any]) -> None:
    """Raise ClientError, before the replay, if ``--html`` names what it must not write."""
    path: Path | None = given["html"]
    if path is None:
        return
    others = (given["source"], given["filename"], given["record"])
    if realpath(path) in {realpath(other) for other in others if other is not None}:
        raise ClientError(f"--html would overwrite {path}: name another file")
    if path.is_dir() or not path.parent.is_dir():
        raise ClientError(f"{path} cannot be written: name a file in a folder that exists")


def write(path: Path, text: str) -> None:
    """Write a report; raises ClientError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ClientError(f"{path} cannot be written: {error.strerror}") from None


def _nodes(given: Mapping[str, Any]) -> NodeOptions | None:
    """Return the headroom to try; raises ClientError for nodes without any."""
    sizes = {"boot": "node_boot", "unneeded": "node_unneeded", "slots": "node_pods"}
    stated = {field: given[name] for field, name in sizes.items() if given[name] is not None}
    if given["headroom"] is not None:
        return NodeOptions(given["headroom"], NodePhysics(**stated))
    if stated:
        option = "--" + sizes[next(iter(stated))].replace("_", "-")
        raise ClientError(f"{option} needs --headroom, such as --headroom 20%,forecast")
    return None


def _report(given: Mapping[str, Any]) -> ReplayReport:
    check_inputs(given)
    manifest = read_hpa(given)
    spec = spec_of(manifest)
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
        nodes=_nodes(given),
        controller=ControllerOptions(sync_period=given["sync_period"]),
    )
    hpa_study = study(recording_for(given, spec), spec, options)
    return ReplayReport(
        hpa_study,
        judge(hpa_study, options.allowed),
        options.allowed,
        options.gpu_hour,
        manifest,
    )


def recording_for(given: Mapping[str, Any], spec: HpaSpec) -> Recording:
    """Return what the command line says to read, which ``--record`` copies; raises ClientError."""
    recording = recording_of(given, spec)
    if given["record"] is None:
        return recording
    file = RecordingFile(given["record"], _MOST_BYTES)
    if file.size:
        raise ClientError(f"{file.path} is not empty: name a new file with --record")
    return CopiedRecording(recording, file)
