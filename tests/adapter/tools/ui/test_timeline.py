"""What happened between two looks, and which events explain it."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.answers.view.gpupods import GPUPODS
from adapter.answers.view.gpus import GPUS
from adapter.tools.overview.verdict import verdict
from adapter.tools.ui.devicechanges import MOST, NodesSeen, device_facts, name_device
from adapter.tools.ui.gpurows import fleet
from adapter.tools.ui.objectchanges import pod_facts
from adapter.tools.ui.panels import PanelState
from adapter.tools.ui.timeline import Timeline
from adapter.tools.ui.trouble import SharedCause, outage, panel_rows, with_trouble
from tests.adapter.tools.overview.hpas import state_of
from tests.adapter.tools.ui.cluster import gpu, hpa, pod, stuck, table_of

NOW = 1_000_000.0
Json = dict[str, Any]


def changes(*looks: list[Json], nodes: NodesSeen | None = None) -> list[str]:
    """The texts after looks at the devices, the newest first."""
    timeline, seen = Timeline(), nodes or NodesSeen()
    for second, rows in enumerate(looks):
        timeline.devices(NOW + second, device_facts(fleet(table_of(GPUS, rows), NOW, {})), seen)
    return [entry.text for entry in timeline.entries()]


def node(name: str, count: int = 8, **cells: Any) -> list[Json]:
    return [gpu(f"{name}.gpu{i}", name, str(i), **cells) for i in range(count)]


def test_the_first_look_changes_nothing() -> None:
    assert changes(node("n1")) == []
    assert changes(node("n1"), node("n1")) == []


def test_an_exporter_that_dies_is_one_entry_and_so_is_its_return() -> None:
    dead = node("n2", Util=None)
    looks = [node("n1") + node("n2"), node("n1") + dead, node("n1") + node("n2")]
    assert changes(*looks) == [
        "exporter of node n2 has values again of 8 GPUs",
        "exporter of node n2 has no values any more of 8 GPUs",
    ]


def test_a_node_that_joins_or_goes_is_one_entry() -> None:
    assert changes(node("n1"), node("n1") + node("n2")) == ["node n2 joined: 8 GPUs"]
    gone = changes(node("n1") + node("n2"), node("n1"), nodes=NodesSeen({"n1"}))
    assert gone == ["node n2 is gone: its 8 GPUs are no longer reported"]


def test_a_node_whose_exporter_fails_is_not_gone() -> None:
    looks = (node("n1") + node("n2"), node("n1"), node("n1") + node("n2"))
    nodes = NodesSeen({"n1", "n2"}, frozenset({"n2"}))
    assert changes(*looks, nodes=nodes) == [
        "exporter of node n2 reports its 8 GPUs again",
        "exporter of node n2 fails: its 8 GPUs are no longer reported",
    ]
    # The list of nodes is older than that of the devices, or cannot be read.
    for unsure in (NodesSeen({"n1", "n2"}), NodesSeen()):
        texts = changes(*looks[:2], nodes=unsure)
        assert texts == ["exporter of node n2 no longer reports its 8 GPUs"]


def test_a_gpu_whose_name_is_an_id_is_named_by_its_node_and_a_short_id() -> None:
    name = "gpu-3f9a1b2c-0000-4000-8000-5d6e7f809a1b"
    lost = [gpu(name, "n1", "", Unhealthy="XID error 79"), gpu("b", "n1")]
    assert changes([gpu(name, "n1", ""), gpu("b", "n1")], lost) == [
        "GPU gpu-3f9a1b2c… on node n1 is not healthy: XID error 79"
    ]
    assert name_device(name, "") == "gpu-3f9a1b2c…"


def test_a_gpu_that_is_lost_or_fails_is_named() -> None:
    assert changes(node("n1"), node("n1", 7)) == ["GPU n1.gpu7 is no longer reported"]
    assert changes(node("n1", 7), node("n1")) == ["GPU n1.gpu7 is reported"]
    broken = [*node("n1", 7), gpu("n1.gpu7", "n1", "7", Unhealthy="XID error 79")]
    assert changes(node("n1"), broken, broken, node("n1")) == [
        "GPU n1.gpu7 is healthy again",
        "GPU n1.gpu7 is not healthy: XID error 79",
    ]
    silent = [*node("n1", 7), gpu("n1.gpu7", "n1", "7", Util=None)]
    assert changes(node("n1"), silent) == ["GPU n1.gpu7 has no utilization any more"]
    only = [gpu("a.gpu0", "a")]
    assert changes(only, [gpu("a.gpu0", "a", Util=None)]) == [
        "GPU a.gpu0 has no utilization any more"
    ]


def test_many_single_changes_are_counted() -> None:
    before = [gpu(f"g{i}", "n1", str(i)) for i in range(100)]
    after = [gpu(f"g{i}", "n1", str(i), Unhealthy="XID error 79") for i in range(100)]
    texts = changes(before, after)
    assert len(texts) == MOST + 1
    assert "80 more GPUs changed" in texts


def pods(*looks: list[Json]) -> list[tuple[str, str, str]]:
    timeline = Timeline()
    for second, rows in enumerate(looks):
        timeline.pods(NOW + second, pod_facts(table_of(GPUPODS, rows)))
    return [(entry.level, entry.text, entry.reason) for entry in timeline.entries()]


def test_pods_that_lose_or_get_their_value_are_named_or_counted() -> None:
    lost = pod("a", Util=None, Why_Not="exporter_down")
    assert pods([pod("a")], [lost], [pod("a")]) == [
        ("good", "pod chat/a got its value", ""),
        ("warning", "pod chat/a lost its value", "exporter_down"),
    ]
    many = [pod(f"p{i}", Util=None, Why_Not="exporter_down") for i in range(8)]
    assert pods([pod(f"p{i}") for i in range(8)], many) == [
        ("warning", "8 pods of node n1 lost their value", "exporter_down")
    ]
    assert pods([pod("a")], [pod("b", Util=None, Why_Not="x")]) == []


def event(reason: str, message: str, at: float = NOW, **about: str) -> Json:
    kind = {"kind": "HorizontalPodAutoscaler", "namespace": "chat", "name": "llm", **about}
    stamp = f"1970-01-12T13:{46 + int(at - NOW) // 60:02}:{40 + int(at - NOW) % 60:02}Z"
    return {
        "metadata": {"uid": f"{reason}-{at}"},
        "type": "Normal" if reason == "SuccessfulRescale" else "Warning",
        "involvedObject": kind,
        "reason": reason,
        "message": message,
        "lastTimestamp": stamp,
    }


def test_an_event_stands_for_the_change_that_it_explains() -> None:
    timeline = Timeline()
    timeline.hpas(NOW, [state_of(hpa())])
    timeline.hpas(NOW + 1, [state_of(hpa(desiredReplicas=5))])
    (seen,) = timeline.entries()
    assert (seen.kind, seen.text) == ("scale", "chat/llm scales 3 → 5")
    assert seen.about is not None
    assert seen.about.name == "llm"
    rescale = event("SuccessfulRescale", "New size: 5; reason: pods metric above target", NOW + 2)
    timeline.events([rescale])
    timeline.events([rescale])
    (explained,) = timeline.entries()
    assert explained.text == "chat/llm scales to 5"
    assert explained.reason == "pods metric above target"
    timeline.events([event("SuccessfulRescale", "New size: 4; reason: x", NOW + 3)])
    assert [entry.text for entry in timeline.entries()] == [
        "chat/llm scales to 4",
        "chat/llm scales to 5",
    ]


def test_an_hpa_that_is_stuck_and_decides_again() -> None:
    timeline = Timeline()
    for second, state in enumerate((hpa(), hpa(conditions=stuck()), hpa())):
        timeline.hpas(NOW + second, [state_of(state)])
    assert [(entry.level, entry.text) for entry in timeline.entries()] == [
        ("good", "chat/llm is healthy"),
        ("bad", "chat/llm is stuck"),
    ]


def test_events_of_other_pods_and_of_other_forms_are_left_out() -> None:
    timeline = Timeline()
    timeline.pods(NOW, pod_facts(table_of(GPUPODS, [pod("llm-0")])))
    waits = "0/3 nodes are available"
    rows: list[Any] = [
        event("FailedScheduling", waits, kind="Pod", name="llm-0"),
        event("FailedScheduling", waits, NOW + 1, kind="Pod", name="web"),
        event("FailedScheduling", "insufficient nvidia.com/gpu", NOW + 2, kind="Pod", name="new"),
        event("TriggeredScaleUp", "pool-1: 2 → 3", NOW + 3, kind="Pod", name="llm-0"),
        event("FailedGetPodsMetric", "no value", NOW + 4),
        event("FailedComputeMetricsReplicas", "no value", NOW + 5),
        {"involvedObject": "x"},
        {"metadata": {"uid": []}, "involvedObject": {"kind": "Pod"}, "reason": 5},
        5,
    ]
    timeline.events(rows)
    assert [entry.text for entry in timeline.entries()] == [
        "chat/llm: FailedGetPodsMetric",
        "a node is ordered for pod chat/llm-0",
        "pod chat/new waits for a node",
        "pod chat/llm-0 waits for a node",
    ]


def test_lists_that_fail_and_come_back() -> None:
    timeline = Timeline()
    states = [
        *("waiting", "ok", "failed", "failed", "ok"),
    ]
    for second, status in enumerate(states):
        state = PanelState("gpus", status, "no answer" if status == "failed" else "")  # type: ignore[arg-type]  # a literal
        timeline.panels(NOW + second, {"gpus": state})
    assert [(entry.level, entry.text, entry.reason) for entry in timeline.entries()] == [
        ("good", "GPUs can be read again", ""),
        ("bad", "GPUs cannot be read", "no answer"),
    ]


def failing(panel: str, why: str) -> PanelState:
    return PanelState(panel, "failed", f"GET /apis/{panel}?limit=500: {why}; server: s; do this")


def test_lists_that_fail_for_one_cause_are_one_entry() -> None:
    timeline = Timeline()
    names = ("gpus", "hpas", "events")
    timeline.panels(NOW, {name: PanelState(name, "ok") for name in names})
    timeline.panels(NOW + 1, {name: failing(name, "refused") for name in names})
    timeline.panels(NOW + 2, {name: PanelState(name, "ok") for name in names})
    assert [(entry.level, entry.text, entry.reason) for entry in timeline.entries()] == [
        ("good", "GPUs, HPAs and events can be read again", ""),
        ("bad", "GPUs, HPAs and events cannot be read", "refused; server: s; do this"),
    ]


def test_one_cause_of_all_lists_is_in_the_verdict_and_not_in_each_panel() -> None:
    panels = [failing("gpus", "refused"), failing("hpas", "refused")]
    assert outage(panels) == SharedCause("refused", "server: s; do this")
    messages = {row["message"] for row in panel_rows(panels)}
    assert messages == {"not available, see above"}
    assert with_trouble(verdict(None, None, None), panels).text == (
        "The cluster cannot be read: refused."
    )


@pytest.mark.parametrize(
    "other",
    [failing("hpas", "500 no leader"), PanelState("hpas", "ok"), PanelState("hpas", "forbidden")],
)
def test_lists_with_different_causes_keep_their_messages(other: PanelState) -> None:
    panels = [failing("gpus", "refused"), other]
    assert outage(panels) is None
    assert [row["message"] for row in panel_rows(panels)] == [panel.message for panel in panels]


def test_the_timeline_is_bounded() -> None:
    timeline = Timeline()
    for step in range(400):
        timeline.panels(NOW + 2 * step, {"gpus": PanelState("gpus", "failed")})
        timeline.panels(NOW + 2 * step + 1, {"gpus": PanelState("gpus", "ok")})
    timeline.events(event(f"Failed{i}", "x", NOW + i) for i in range(10))
    entries = timeline.entries()
    assert len(entries) == 500
    assert entries == sorted(entries, key=lambda entry: -entry.time)
