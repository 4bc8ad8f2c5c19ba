"""What is said of a ScaledObject that has made no HPA."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from adapter.answers.judgement.states import ScalingState
from adapter.answers.keda.manifest import TRANSFER, read_scaledobject
from adapter.answers.keda.unmade import MadeHpa, UnmadeHpa, unmade_hpas

NOW = 1_767_323_045.0
Json = dict[str, Any]


def _scaled(
    ready: str = "",
    *,
    created: float = 3600,
    message: str = "",
    hpa: str = "",
    notes: Mapping[str, str] | None = None,
) -> Json:
    born = datetime.fromtimestamp(NOW - created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    rows = [
        {"type": "Ready", "status": ready, "reason": "ScaledObjectCheckFailed", "message": message}
    ]
    return {
        "metadata": {
            "namespace": "ml",
            "name": "llm",
            "creationTimestamp": born,
            "annotations": notes or {},
        },
        "spec": {"scaleTargetRef": {"name": "llm"}},
        "status": {"conditions": rows if ready else [], "hpaName": hpa},
    }


def _found(manifest: Json, *hpas: MadeHpa) -> list[UnmadeHpa]:
    return list(unmade_hpas([read_scaledobject(manifest)], hpas, NOW))


@pytest.mark.parametrize(
    ("manifest", "state", "words"),
    [
        (
            _scaled("True", notes={"autoscaling.keda.sh/paused": "true"}),
            "paused",
            "paused by an annotation",
        ),
        (
            _scaled("True", notes={"autoscaling.keda.sh/paused-replicas": "0"}),
            "paused",
            "keeps its",
        ),
        (_scaled("False", message="there is\n no target"), "stuck", "there is no target"),
        (_scaled(), "stale", "has not looked at it for 60m"),
        (_scaled("Unknown"), "stuck", "its HPA keda-hpa-llm does not exist"),
        (_scaled(created=200), "stale", "has not looked at it for 3m20s"),
        (_scaled(created=30), "waiting", "waiting for KEDA"),
        (_scaled("True", created=30), "waiting", "waiting for KEDA"),
        (_scaled("True", hpa="keda-hpa-llm"), "stuck", "its HPA keda-hpa-llm does not exist"),
    ],
)
def test_the_cause_is_named(manifest: Json, state: str, words: str) -> None:
    (unmade,) = _found(manifest, MadeHpa("other", "keda-hpa-llm", "llm"))
    assert unmade.judgement.state == ScalingState(state)
    assert words in unmade.judgement.text
    assert bool(unmade.advice) == (state != "waiting")


def test_that_it_has_no_hpa_comes_before_that_nothing_would_wake_it() -> None:
    manifest = _scaled("True")
    query = 'avg(DCGM_FI_DEV_GPU_UTIL{pod=~"llm-.*"})'
    manifest["spec"]["triggers"] = [{"type": "prometheus", "metadata": {"query": query}}]
    (unmade,) = _found(manifest)
    assert "its HPA keda-hpa-llm does not exist" in unmade.judgement.text


def test_one_with_an_hpa_is_not_listed() -> None:
    assert not _found(_scaled("False"), MadeHpa("ml", "any", "llm"))
    assert not _found(_scaled("True", hpa="mine"), MadeHpa("ml", "mine", ""))
    manifest = _scaled("False", notes={TRANSFER: "true"})
    manifest["spec"]["advanced"] = {"horizontalPodAutoscalerConfig": {"name": "old"}}
    assert not _found(manifest, MadeHpa("ml", "old", ""))
    assert _found(manifest, MadeHpa("ml", "other", ""))
