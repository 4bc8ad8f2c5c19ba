"""GPU-seconds: used, idle and unknown, by account, and monotone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.config.settings.accounting import AccountingSettings
from adapter.pipeline.cluster.pod import Owner, Pod
from adapter.server.serve.coverage import Coverage
from adapter.server.serve.gpuledger import LONGEST, REST, Account, GpuLedger
from tests.adapter.server.serve.test_coverage import Known
from tests.adapter.world import World, make_pod, row
from tests.examples import bounded

UTIL = "DCGM_FI_DEV_GPU_UTIL"
MINUTE = 60.0
NODE = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "node.kubernetes.io/instance-type": "p5.48xlarge",
    "karpenter.sh/capacity-type": "spot",
}
LLM = Owner("apps/v1", "ReplicaSet", "llm-abc")
HASH = {"pod-template-hash": "abc"}


class Days:
    """A world whose GPU-seconds are counted once a minute."""

    def __init__(
        self, *pods: Pod, nodes: Mapping[str, Mapping[str, str]] | None = None, **settings: object
    ):
        self.world = World(*pods, nodes=nodes or {"n": NODE})
        self.now = 1000.0
        self.settings = AccountingSettings.model_validate(settings)
        self.restart()

    def restart(self) -> None:
        """The process starts."""
        self.ledger = GpuLedger(self.settings, lambda: self.now)
        world = self.world
        self.coverage = Coverage(
            Known(world),
            world.index,
            world.store.attributions,
            lambda: self.now,
            ledger=self.ledger,
        )

    async def minute(
        self, page: Callable[[], str] | str = "", minutes: int = 1, step: float = MINUTE
    ) -> None:
        """Minutes pass, each with a page at its end, if there is one, and a count."""
        for _ in range(minutes):
            self.now += step
            if page:
                self.world.scrape(page if isinstance(page, str) else page(), self.now, node="n")
            await self.coverage.count()

    def seconds(self, *labels: str) -> dict[str, float]:
        """State -> seconds of all accounts with these values among their labels."""
        by_state: dict[str, float] = {}
        for names, number in self.ledger.rows():
            if set(labels) <= set(names):
                by_state[names[-1]] = by_state.get(names[-1], 0.0) + number
        return {state: round(number, 6) for state, number in by_state.items()}


def llm(name: str = "llm-abc-1", **changes: object) -> Pod:
    fields: dict[str, object] = {"node": "n", "owner": LLM, "labels": HASH | {"team": "search"}}
    return make_pod(name, **fields | changes)  # type: ignore[arg-type] # of the caller


async def test_a_workload_has_its_seconds_with_its_gpus_and_how_they_are_paid_for() -> None:
    days = Days(llm())
    await days.minute(row(UTIL, 80, "llm-abc-1"), minutes=11)
    account = Account(
        "ml", "Deployment/llm", "", "search", "NVIDIA-H100-80GB-HBM3", "p5.48xlarge", "spot"
    )
    rows = {names: round(number, 6) for names, number in days.ledger.rows()}
    assert rows == {
        (*account, "used"): 480.0,
        (*account, "idle"): 120.0,
        (*account, "unknown"): 0.0,
        **{(*REST, state): 0.0 for state in ("used", "idle", "unknown")},
    }


async def test_the_first_seconds_are_shown_after_a_0_so_that_an_increase_has_them() -> None:
    days = Days(llm())
    await days.minute(row(UTIL, 100, "llm-abc-1"))
    await days.minute(row(UTIL, 100, "llm-abc-1"))
    days.world.put(make_pod("late", node="n", born=days.now + 10))
    both = row(UTIL, 100, "llm-abc-1") + row(UTIL, 50, "late", uuid="GPU-1")
    await days.minute(both)
    assert days.seconds("Pod/late") == {"used": 0.0, "idle": 0.0, "unknown": 0.0}
    await days.minute(both)
    # 50 s of its first minute, and the next one.
    assert days.seconds("Pod/late") == {"used": 55.0, "idle": 55.0, "unknown": 0.0}


async def test_a_missing_page_is_neither_used_nor_idle() -> None:
    days = Days(llm())
    await days.minute(row(UTIL, 100, "llm-abc-1"), minutes=3)
    before = days.seconds("Deployment/llm")
    await days.minute(minutes=1, step=2 * MINUTE)  # the value is past its age limit
    await days.minute(minutes=3)
    after = days.seconds("Deployment/llm")
    assert after == before | {"unknown": before["unknown"] + 5 * MINUTE}
    await days.minute(row(UTIL, 0, "llm-abc-1"))
    assert days.seconds("Deployment/llm") == after | {"idle": after["idle"] + MINUTE}


async def test_time_without_counts_is_not_added() -> None:
    days = Days(llm())
    page = row(UTIL, 100, "llm-abc-1")
    await days.minute(page, minutes=2)
    before = days.seconds()["used"]
    await days.minute(page, step=3600.0)
    assert days.seconds()["used"] == before + LONGEST * MINUTE
    await days.minute(page, step=-7200.0)  # the clock is set back
    assert days.seconds()["used"] == before + LONGEST * MINUTE


async def test_a_restart_begins_at_0() -> None:
    days = Days(llm())
    page = row(UTIL, 100, "llm-abc-1")
    await days.minute(page, minutes=5)
    days.restart()
    await days.minute(page)
    assert days.seconds()["used"] == 0.0
    await days.minute(page)
    assert days.seconds()["used"] == MINUTE


async def test_a_pod_that_starts_or_ends_holds_its_gpu() -> None:
    days = Days(
        llm(phase="Pending", ready=False),
        make_pod("ends", node="n", deleting=True),
        make_pod("waits"),
        make_pod("over", node="n", phase="Succeeded"),
        make_pod("room", node="n", placeholder=True),
        make_pod("plain", node="n", gpus={}),
    )
    await days.minute(minutes=3)
    assert days.seconds("Deployment/llm")["unknown"] == 2 * MINUTE
    assert days.seconds("Pod/ends")["unknown"] == 2 * MINUTE
    assert days.seconds() == {"used": 0.0, "idle": 0.0, "unknown": 4 * MINUTE}


async def test_a_pod_of_unknown_size_is_said_and_not_guessed() -> None:
    days = Days(llm(gpus={"gpu.intel.com/i915": 1}))
    await days.minute(minutes=3)
    assert days.seconds() == {"used": 0.0, "idle": 0.0, "unknown": 0.0}
    assert days.ledger.unsized == 1


@pytest.mark.parametrize(
    ("by", "accounts"),
    [
        ("workload", {("Deployment/llm", ""), ("Pod/solo", "")}),
        (
            "pod",
            {
                ("Deployment/llm", "llm-abc-1"),
                ("Deployment/llm", "llm-abc-2"),
                ("Pod/solo", "solo"),
            },
        ),
        ("namespace", {("", "")}),
        ("off", set()),
    ],
)
async def test_by_what_to_count_is_a_setting(by: str, accounts: set[tuple[str, str]]) -> None:
    pods = (
        llm(),
        llm("llm-abc-2", uid="u2"),
        make_pod("solo", node="n", labels={"team": "search"}),
    )
    days = Days(*pods, by=by)
    await days.minute(minutes=2)
    rest = {tuple(REST[1:3])} if by != "off" else set()
    assert {names[1:3] for names, _ in days.ledger.rows()} == accounts | rest


async def test_the_accounts_with_most_gpus_have_series_and_the_rest_is_one() -> None:
    sizes = {"small": 1, "large": 8, "middle": 4}
    pods = [
        make_pod(name, node="n", uid=name, gpus={"nvidia.com/gpu": n}) for name, n in sizes.items()
    ]
    days = Days(*pods, accounts=2)
    await days.minute(minutes=3)
    shown = {names[1] for names, _ in days.ledger.rows()}
    assert shown == {"Pod/large", "Pod/middle", "other"}
    assert days.seconds("other")["unknown"] == 2 * MINUTE
    days.world.put(make_pod("huge", node="n", uid="huge", gpus={"nvidia.com/gpu": 16}))
    days.world.put(make_pod("little", node="n", uid="little", gpus={"nvidia.com/gpu": 5}))
    await days.minute(minutes=2)
    # 16 is more than twice 4, and 5 is not.
    assert {names[1] for names, _ in days.ledger.rows()} == {"Pod/large", "Pod/huge", "other"}
    assert days.seconds("Pod/large")["unknown"] == 8 * 4 * MINUTE
    # Four minutes of the small one, and two each of the middle and the little one.
    assert days.seconds("other")["unknown"] == (4 * 1 + 2 * 4 + 2 * 5) * MINUTE


async def test_an_account_without_pods_is_dropped_after_an_hour() -> None:
    days = Days(llm(), make_pod("solo", node="n", uid="solo"))
    await days.minute(minutes=3)
    days.world.remove("solo")
    await days.minute(minutes=59)
    kept = days.seconds("Pod/solo")["unknown"]
    assert kept == 2 * MINUTE
    await days.minute(minutes=2)
    assert days.seconds("Pod/solo") == {}


async def test_the_seconds_that_a_dropped_account_has_not_shown_yet_go_to_the_rest() -> None:
    days = Days(make_pod("brief", node="n", uid="brief"), accounts=1)
    await days.minute(minutes=2)
    days.world.put(make_pod("large", node="n", uid="large", gpus={"nvidia.com/gpu": 8}))
    await days.minute()
    days.world.put(make_pod("huge", node="n", uid="huge", gpus={"nvidia.com/gpu": 64}))
    days.world.remove("brief")
    # The large one is dropped before its first minute is shown.
    await days.minute()
    assert {names[1] for names, _ in days.ledger.rows()} == {"Pod/huge", "other"}
    # Two minutes of the large one, and that of the small one in which it was dropped.
    assert days.seconds("other")["unknown"] == (2 * 8 + 1) * MINUTE
    await days.minute()
    assert days.seconds("Pod/huge")["unknown"] == 2 * 64 * MINUTE


async def test_of_accounts_without_pods_those_that_held_gpus_last_keep_their_series() -> None:
    names = ("a", "b", "c")
    days = Days(*(make_pod(name, node="n", uid=name) for name in names), accounts=3)
    await days.minute(minutes=2)
    for name in names:
        days.world.remove(name)
        await days.minute()
    for name in ("d", "e"):
        days.world.put(make_pod(name, node="n", uid=name))
        await days.minute(minutes=2)
    assert {labels[1] for labels, _ in days.ledger.rows()} == {"Pod/c", "Pod/d", "Pod/e", "other"}


STEPS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 5)),
        st.one_of(st.none(), st.integers(0, 100)),
        st.sampled_from([1.0, 60.0, 61.0, 500.0, -30.0]),
    ),
    max_size=25,
)


async def test_a_series_never_falls_and_no_second_is_counted_twice() -> None:
    @given(STEPS)
    @bounded(30)
    def any_days(steps: list[tuple[set[int], int | None, float]]) -> None:
        now = 1000.0
        settings = AccountingSettings(accounts=3)
        ledger = GpuLedger(settings, lambda: now)
        world = World(nodes={"n": NODE})
        seen: dict[tuple[str, ...], float] = {}
        held = 0.0
        for alive, util, step in steps:
            before = now
            now += step
            pods = [
                make_pod(f"p{n}", node="n", uid=str(n), gpus={"nvidia.com/gpu": n + 1})
                for n in alive
            ]
            world.index.replace(pods)
            if util is not None:
                page = "".join(row(UTIL, util, f"p{n}", uuid=f"GPU-{n}") for n in alive)
                world.scrape(page, now, node="n")
            ledger.begin(60.0)
            for pod in pods:
                answer = world.read(pod.name, "gpu_utilization", now)
                ledger.add(pod, answer, world.store.snapshot)
            ledger.end()
            if before > 1000.0 or seen:
                held += sum(n + 1 for n in alive) * min(max(step, 0.0), LONGEST * 60)
            rows = dict(ledger.rows())
            assert all(number >= seen.get(names, 0.0) for names, number in rows.items())
            seen = rows
            assert len(rows) <= 3 * (settings.accounts + 1)
            assert all(number >= 0 and math.isfinite(number) for number in rows.values())
            assert sum(rows.values()) <= held + 1e-6

    any_days()
