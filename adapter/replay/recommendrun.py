"""One run of ``replay recommend``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapter.client.access import Json
from adapter.client.command import FINE, UNSEEN, complain, show
from adapter.client.errors import ClientError
from adapter.hpa import ControllerOptions
from adapter.process.logs import silent
from adapter.recording.events import RecordingError
from adapter.replay.hpasource import read_hpas, spec_of
from adapter.replay.inputs import check_inputs, recording_of
from adapter.replay.recommendation import recommend
from adapter.replay.recommendreport import AdvisedHpa, RecommendReport
from adapter.replay.study import StudyOptions


@silent()
def run(given: Mapping[str, Any]) -> int:
    """Replay the HPAs and print; return the exit status."""
    options = StudyOptions(
        boot=given["boot"],
        limit=given["limit"],
        capable=True,
        allowed=given["allow"],
        controller=ControllerOptions(sync_period=given["sync_period"]),
    )
    try:
        check_inputs(given)
        found = [_recommended(given, manifest, options) for manifest in read_hpas(given)]
        if all(each.found is None for each in found):
            raise ClientError(found[0].problem)
    except (ClientError, RecordingError) as error:
        complain(ClientError(str(error)))
        return UNSEEN
    report = RecommendReport(found, options.allowed)
    show(report, given["output"])
    return FINE


def _recommended(given: Mapping[str, Any], manifest: Json, options: StudyOptions) -> AdvisedHpa:
    """Return the answer for one HPA. One that cannot be replayed does not end the others."""
    try:
        spec = spec_of(manifest)
        return AdvisedHpa(manifest, recommend(recording_of(given, spec), spec, options))
    except ClientError as error:
        return AdvisedHpa(manifest, None, str(error))
