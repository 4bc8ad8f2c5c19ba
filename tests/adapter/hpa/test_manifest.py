"""Which HPAs are valid: one room says it, to ``replay`` and to ``doctor`` alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.hpa import ManifestError, TargetKind, from_manifest
from tests.adapter.commandline import invoke
from tests.adapter.hpa.validity import JUDGED, Judged, judged


@pytest.mark.parametrize("case", JUDGED.values(), ids=JUDGED)
def test_the_api_servers_rules(case: Judged) -> None:
    message = ""
    try:
        from_manifest(case.manifest)
    except ManifestError as error:
        message = str(error)
    assert case.words in message
    assert bool(case.words) == bool(message)


def test_an_hpa_without_metrics_has_the_default_of_the_api_server() -> None:
    (metric,) = from_manifest(judged(metrics=None).manifest).metrics
    assert (metric.name, *metric.target) == ("cpu", TargetKind.UTILIZATION, 80_000)


def test_doctor_says_the_same_of_the_file(tmp_path: Path) -> None:
    """Beside each other: none hides what is wrong with another one."""
    for number, case in enumerate(JUDGED.values()):
        meta = {**case.manifest["metadata"], "namespace": f"of-{number}"}
        (tmp_path / f"{number}.json").write_text(json.dumps({**case.manifest, "metadata": meta}))
    report = json.loads(invoke("doctor", "-f", str(tmp_path), "-o", "json").output)
    texts = [
        f"{row['object']}: {row['message']}"
        for check in report["checks"]
        if check["id"] == "GMA409"
        for row in check["findings"]
    ]
    texts += report["unread"]
    for number, case in enumerate(JUDGED.values()):
        own = [text for text in texts if f"of-{number}/" in text or f"/{number}.json: " in text]
        assert bool(own) == bool(case.words), (case, own)
