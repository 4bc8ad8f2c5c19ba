"""``replay hpa --headroom``: what pods would have waited for nodes, and what the nodes cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.hpa import ControllerOptions, HpaSpec, Observation, from_manifest
from adapter.tools.client.errors import ClientError
from adapter.tools.replay.demand import RecordedDemand
from adapter.tools.replay.nodereport import node_basis
from adapter.tools.replay.nodestudy import NodeOptions, NodeRun, NodeStudy, study_nodes
from adapter.tools.replay.nodeworld import NodePhysics
from adapter.tools.replay.options import FORECAST, MOST, NONE, PODS, SHARE, TriedHeadroom
from adapter.tools.replay.simulation import SimulatedWorld, simulate
from adapter.tools.replay.study import StudyOptions, study
from adapter.tools.replay.syncs import RecordedSync
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import START, Day, manifest, waves, write
from tests.examples import bounded

PERIOD = 15.0
SPEC = from_manifest(manifest("60"))
CONTROLLER = ControllerOptions(sync_period=PERIOD)
WORLD = SimulatedWorld(0.0, 100_000, CONTROLLER)
TRIED = tuple(TriedHeadroom(PODS, float(pods)) for pods in (1, 2, 4, 8))
NOTHING = TriedHeadroom(NONE)


def work(loads: list[int], spacing: float = PERIOD) -> list[RecordedDemand]:
    """Loads in percent of one GPU, one a sync."""
    return [
        RecordedDemand(START + spacing * sync, 1000 * load, 1, saturated=False, first=not sync)
        for sync, load in enumerate(loads)
    ]


DAY = work([round(waves(PERIOD * at)) for at in range(4 * 240)])


SYNCS = [RecordedSync(START, Observation(2, (), ()), ())]
"""The beginning has two pods, and so two nodes."""


def tried(
    *headroom: TriedHeadroom,
    demands: list[RecordedDemand] = DAY,
    physics: NodePhysics = NodePhysics(),  # noqa: B008 - immutable
    spec: HpaSpec = SPEC,
    gpus: float = 1.0,
    syncs: list[RecordedSync] = SYNCS,
) -> NodeStudy:
    return study_nodes(spec, demands, syncs, NodeOptions(headroom, physics), WORLD, gpus)


def test_without_headroom_each_rise_waits_for_a_node() -> None:
    (run,) = tried(NOTHING).runs
    assert run.waits.pods > 5
    assert 300 <= run.waits.longest <= 300 + 30 + 2 * PERIOD
    assert run.waits.seconds > 300 * 5


def test_more_headroom_waits_less_and_costs_more() -> None:
    runs = tried(NOTHING, *TRIED).runs
    waits = [run.waits.seconds for run in runs]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == 0
    bills = [run.gpu_seconds for run in runs]
    assert bills == sorted(bills)


def test_the_forecast_waits_less_than_no_headroom() -> None:
    none, planned, surer = tried(
        NOTHING, TriedHeadroom(FORECAST), TriedHeadroom(FORECAST, 0.98)
    ).runs
    assert planned.waits.seconds < none.waits.seconds / 2
    assert surer.waits.seconds <= planned.waits.seconds
    assert none.gpu_seconds < planned.gpu_seconds < 2 * none.gpu_seconds


def test_a_share_is_one_of_the_pods() -> None:
    none, share = tried(NOTHING, TriedHeadroom(SHARE, 50.0)).runs
    assert share.highest >= none.highest * 1.4
    assert share.waits.seconds < none.waits.seconds


def test_with_room_for_all_the_replicas_are_those_of_the_replay() -> None:
    (run,) = tried(TriedHeadroom(PODS, 100.0)).runs
    moments = list(simulate(SPEC, DAY, WORLD, 2))
    assert run.waits.pods == 0
    most = max(moment.replicas for moment in moments)
    assert run.highest == most + 100


def test_pods_share_nodes() -> None:
    (alone,) = tried(NOTHING).runs
    (shared,) = tried(NOTHING, physics=NodePhysics(slots=4)).runs
    assert shared.highest == -(-alone.highest // 4)
    assert shared.waits.seconds < alone.waits.seconds
    assert shared.gpu_seconds > alone.gpu_seconds, "a node of four GPUs is not always full"


def test_gpu_hours_count_all_gpus_of_a_pod() -> None:
    (one,), (eight,) = tried(NOTHING).runs, tried(NOTHING, gpus=8.0).runs
    assert eight.gpu_seconds == 8 * one.gpu_seconds
    assert eight.waits == one.waits


def test_a_longer_boot_time_waits_longer() -> None:
    (short,), (long,) = (
        tried(NOTHING, physics=NodePhysics(boot=boot)).runs for boot in (60.0, 600.0)
    )
    assert short.waits.longest < long.waits.longest


def test_a_gap_of_the_recording_counts_no_time() -> None:
    before, after = work([60] * 40), work([60] * 40)
    later = [demand._replace(time=demand.time + 86400) for demand in after]
    (run,) = tried(NOTHING, demands=before + later, physics=NodePhysics(unneeded=1e9)).runs
    assert run.gpu_seconds == run.highest * PERIOD * 2 * 39


def test_headroom_is_ordered_at_the_first_sync() -> None:
    (run,) = tried(TriedHeadroom(PODS, 2.0), demands=work([120] * 40)).runs
    assert (run.lowest, run.highest) == (4, 4)
    assert run.gpu_seconds == 4 * 39 * PERIOD


def test_a_pod_waits_for_no_longer_than_the_recording_shows() -> None:
    """The demand rises four syncs before a gap, and nobody knows when its pods got nodes."""
    before, after = work([120] * 40 + [240] * 4), work([240] * 40)
    later = [demand._replace(time=demand.time + 86400) for demand in after]
    (run,) = tried(NOTHING, demands=before + later).runs
    assert run.waits.longest == 3 * PERIOD
    assert run.waits.seconds == 3 * PERIOD * run.waits.pods
    assert run.waits.pods == 2


def test_unknown_demand_orders_nothing() -> None:
    unknown = [demand._replace(total=None) for demand in DAY]
    (run,) = tried(NOTHING, demands=unknown).runs
    assert (run.waits.pods, run.lowest, run.highest) == (0, 2, 2)
    node_study = tried(TriedHeadroom(FORECAST), demands=unknown)
    assert (node_study.runs[0].lowest, node_study.runs[0].highest) == (2, 2)
    assert node_study.unknown == PERIOD * (len(DAY) - 1)
    assert any("forecast orders nothing" in line for line in node_basis(node_study))
    assert not any("unknown" in line for line in node_basis(tried(TriedHeadroom(FORECAST))))


@bounded(25)
@given(st.lists(st.integers(0, 1500), min_size=2, max_size=60), st.sampled_from([1, 2, 8]))
def test_no_run_has_negative_figures(loads: list[int], slots: int) -> None:
    choices = (NOTHING, TriedHeadroom(SHARE, 20.0), TriedHeadroom(FORECAST))
    runs: list[NodeRun] = list(
        tried(*choices, demands=work(loads, 60.0), physics=NodePhysics(slots=slots)).runs
    )
    for run in runs:
        assert 0 <= run.lowest <= run.highest
        assert 0 <= run.waits.longest <= run.waits.seconds + 60 * run.waits.pods
        assert run.gpu_seconds >= 0


def test_pods_without_gpus_have_no_nodes() -> None:
    with pytest.raises(ClientError, match="--headroom needs pods that request GPUs as"):
        tried(NOTHING, gpus=0.0)


def test_what_pods_of_the_recording_waited_is_counted() -> None:
    hpa_study = study(
        Day(waves, syncs=300, period=60.0, boot=150.0),
        from_manifest(manifest()),
        StudyOptions(nodes=NodeOptions((NOTHING,)), controller=ControllerOptions(sync_period=60.0)),
    )
    assert hpa_study.nodes is not None
    recorded = hpa_study.nodes.recorded
    assert recorded is not None
    assert recorded.pods > 5
    assert 100 <= recorded.longest <= 200


def test_a_recording_whose_pods_have_no_node_says_nothing_of_waiting() -> None:
    assert tried(NOTHING).recorded is None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    write(folder / "day.gma", Day(waves, syncs=120))
    (folder / "hpa.yaml").write_text(yaml.safe_dump(manifest()))
    return folder


def replay(folder: Path, *arguments: str) -> Ended:
    files = ("--from", f"{folder}/day.gma", "-f", f"{folder}/hpa.yaml", "--sync-period", "240s")
    return invoke("replay", "hpa", "ml/llm", *files, *arguments)


def test_the_report_has_a_table_of_nodes(folder: Path) -> None:
    ended = replay(folder, "--headroom", "20%,2,forecast,forecast:0.95", "--gpu-hour", "2")
    assert ended.code == 0
    table = ended.output.split("Nodes, with the present settings")[1]
    names = [line.split()[0] for line in table.splitlines() if line][:7]
    assert names == ["HEADROOM", "recorded", "none", "20%", "2", "forecast", "forecast:0.95"]
    assert "each takes 1 pod of 1 GPU and nothing else, boots in 5m" in table
    assert "begins without a history" in " ".join(table.split())


def test_json_has_the_nodes(folder: Path) -> None:
    ended = replay(folder, "--headroom", "1", "--node-boot", "2m", "--node-pods", "4", "-o", "json")
    nodes = json.loads(ended.output)["nodePool"]
    assert (nodes["nodeBootSeconds"], nodes["podsPerNode"]) == (120, 4)
    assert [row["headroom"] for row in nodes["headroom"]] == ["none", "1"]
    assert nodes["headroom"][1]["waitedPodSeconds"] <= nodes["headroom"][0]["waitedPodSeconds"]
    assert "cost" not in nodes["headroom"][0]


def test_without_the_option_there_are_no_nodes(folder: Path) -> None:
    assert "nodePool" not in json.loads(replay(folder, "-o", "json").output)


def test_the_page_plots_the_nodes(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert replay(folder, "--headroom", "20%,forecast", "--html", str(page)).code == 0
    text = page.read_text()
    assert "<h2>Nodes, with the present settings</h2>" in text
    assert "minutes that pods waited" in text
    assert ">forecast</text>" in text


WRONG = {
    "a word": (("--headroom", "much"), "'much': write none, a share such as 20%"),
    "a negative share": (("--headroom", "-5%"), "'-5%': write none"),
    "a share of nothing": (("--headroom", "0%"), "a share is above 0"),
    "no pods": (("--headroom", "0"), "give 1 to 10000 pods, or none"),
    "too many pods": (("--headroom", "10001"), "give 1 to 10000 pods, or none"),
    "a certain forecast": (("--headroom", "forecast:1"), "a probability is between 0 and 1"),
    "a number of many digits": (("--headroom", "9" * 5000), "write none, a share"),
    "nothing": (("--headroom", ""), "'': write none"),
    "too many": (
        ("--headroom", ",".join(map(str, range(1, MOST + 1)))),
        f"{MOST + 1} values are too many: give at most {MOST}",
    ),
    "nodes without headroom": (("--node-boot", "5m"), "--node-boot needs --headroom, such as"),
    "no boot time": (("--headroom", "1", "--node-boot", "0s"), "--node-boot"),
    "a boot time of days": (("--headroom", "1", "--node-boot", "3d"), "--node-boot"),
    "no pods on a node": (("--headroom", "1", "--node-pods", "0"), "--node-pods"),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_named(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    ended = replay(folder, *arguments)
    assert ended.code == 2
    assert said in " ".join(ended.output.split())


def test_shares_and_pods_are_named_as_they_were_written() -> None:
    texts = [
        TriedHeadroom(SHARE, 12.5).text,
        TriedHeadroom(PODS, 3.0).text,
        TriedHeadroom(FORECAST, 0.9).text,
    ]
    assert texts == ["12.5%", "3", "forecast:0.9"]
