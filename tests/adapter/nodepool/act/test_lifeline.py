"""The lifeline: a Job that ends if its deadline is not extended."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.nodepool.act.lifeline import LifelineError, Lifelines, manifest
from adapter.nodepool.act.probe import job_seconds
from adapter.nodepool.act.serverside import WriteError, WriteFailure, Writer
from adapter.nodepool.model import names
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import T0

PATH = "/apis/batch/v1/namespaces/team/jobs/gpu-headroom-lifeline"


def lifelines(api: FakeApi, seconds: float = 900) -> Lifelines:
    return Lifelines(Writer(api, lambda: True), seconds, "pause")


def deadlines(api: FakeApi) -> list[int]:
    return [body["spec"]["activeDeadlineSeconds"] for _, _, body in api.sent]


def test_the_job_has_no_pods_and_is_deleted_when_it_ends() -> None:
    spec = manifest("team", 900, "pause")["spec"]
    assert (spec["parallelism"], spec["ttlSecondsAfterFinished"]) == (0, 0)
    assert spec["activeDeadlineSeconds"] == 900


async def test_a_new_deadline_counts_from_the_start_of_the_job() -> None:
    api = FakeApi()
    lifeline = await lifelines(api).keep("team", T0)
    assert lifeline.ends == T0 + 900
    assert lifeline.reference()["uid"] == f"uid of {PATH}"


async def test_the_deadline_is_extended_after_a_third_of_its_time() -> None:
    api = FakeApi()
    rows = lifelines(api)
    for now in (T0, T0 + 100, T0 + 299, T0 + 300, T0 + 301):
        await rows.keep("team", now)
    assert deadlines(api) == [900, 1200]


async def test_an_existing_deadline_is_never_shortened_on_extension() -> None:
    """A deadline counts from the start: 900 s would immediately end a Job that is an hour old."""
    api = FakeApi()
    await lifelines(api).keep("team", T0)
    await lifelines(api).keep("team", T0 + 3600)
    assert deadlines(api) == [900, 4500]


async def test_a_deadline_of_a_longer_setting_is_shortened_to_the_current_setting() -> None:
    """The setting changed from 900 to 60: headroom may outlive the controller by 60 s."""
    api = FakeApi()
    await lifelines(api).keep("team", T0)
    lifeline = await lifelines(api, seconds=60).keep("team", T0 + 10)
    assert lifeline.ends == T0 + 70
    assert deadlines(api) == [900, 70]


async def test_a_deadline_that_another_writer_extended_is_shortened() -> None:
    api = FakeApi()
    endless = manifest("team", 2_000_000_000, "pause")
    endless["metadata"]["uid"] = "theirs"
    api.objects[PATH] = endless | {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    assert (await lifelines(api).keep("team", T0 + 10)).ends == T0 + 910


async def test_a_deadline_of_a_replica_whose_clock_differs_is_kept() -> None:
    api = FakeApi()
    await lifelines(api).keep("team", T0)
    await lifelines(api).keep("team", T0 - 5)
    assert deadlines(api) == [900]


@pytest.mark.parametrize("seconds", [20, 60, 900, 7200])
async def test_the_probe_outlives_each_lifeline_whenever_the_controller_dies(seconds: int) -> None:
    """Karpenter needs up to 40 s with a buffer to see that the others are gone."""
    api = FakeApi()
    writer = Writer(api, lambda: True)
    headroom = Lifelines(writer, seconds, "pause")
    probe = Lifelines(writer, job_seconds(seconds), "pause", names.PROBE)
    for now in range(0, 10 * seconds, 5):
        if now % 15 == 0:
            end = (await probe.keep("team", T0 + now)).ends
        assert end >= (await headroom.keep("team", T0 + now)).ends + 60


async def test_a_deleted_job_is_created_again() -> None:
    api = FakeApi()
    rows = lifelines(api)
    await rows.keep("team", T0)
    api.objects.clear()
    api.starts_jobs = "2026-01-01T00:00:10Z"
    assert (await rows.keep("team", T0 + 10, sure=True)).ends == T0 + 910


async def test_checking_for_the_job_writes_nothing() -> None:
    api = FakeApi()
    rows = lifelines(api)
    await rows.keep("team", T0)
    await rows.keep("team", T0 + 10, sure=True)
    assert deadlines(api) == [900]


ENDED: dict[str, Any] = {
    "startTime": "2026-01-01T00:00:00Z",
    "conditions": [{"type": "Failed", "status": "True"}],
}
BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "ended": ({}, ENDED, r"has ended \(Failed\)"),
    "suspended by a queue": (
        {"spec": {"suspend": True}},
        {"startTime": "2026-01-01T00:00:00Z"},
        "is suspended and would never end",
    ),
    "being deleted": (
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"startTime": "2026-01-01T00:00:00Z"},
        "is being deleted",
    ),
}


@pytest.mark.parametrize(("fields", "status", "words"), BROKEN.values(), ids=BROKEN)
async def test_a_job_that_does_not_run_is_not_a_lifeline(
    fields: dict[str, Any], status: dict[str, Any], words: str
) -> None:
    api = FakeApi()
    job = manifest("team", 900, "pause")
    for section, values in fields.items():
        job[section] |= values
    api.objects[PATH] = job | {"status": status}
    with pytest.raises(LifelineError, match=words):
        await lifelines(api).keep("team", T0)
    assert api.sent == []


async def test_without_a_job_controller_there_is_no_lifeline() -> None:
    api = FakeApi()
    api.starts_jobs = None
    with pytest.raises(LifelineError, match="check that the Job controller runs"):
        await lifelines(api).keep("team", T0)


async def test_a_failed_write_is_reported() -> None:
    api = FakeApi()
    api.fail("PATCH", "jobs", 403, "forbidden")
    with pytest.raises(WriteError) as raised:
        await lifelines(api).keep("team", T0)
    assert raised.value.failure is WriteFailure.FORBIDDEN
