"""Applying orders: lifelines first, no repeated writes, no forced writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapter.config.settings.nodepool import NodepoolSettings
from adapter.nodepool.act.events import Events, event
from adapter.nodepool.act.lifeline import Lifeline, Lifelines
from adapter.nodepool.act.methods import capacitybuffer, placeholder
from adapter.nodepool.act.methods.choice import MethodChoice
from adapter.nodepool.act.orders import OrderOutcome, Orders
from adapter.nodepool.act.serverside import Writer
from adapter.nodepool.model.capacity import ProvisioningMethod
from adapter.nodepool.model.names import headroom_key, headroom_name
from adapter.nodepool.model.shape import key
from adapter.nodepool.plan.order import Order
from adapter.nodepool.seen.headroom import HeadroomObject
from adapter.nodepool.seen.servedapis import ServedApis
from tests.adapter.nodepool.fakeapi import FakeApi
from tests.adapter.nodepool.manifests import HOME, T0, found, priority_class
from tests.adapter.nodepool.orders import LIFELINE, SHAPE, order

NAME = headroom_name(headroom_key("team", key(SHAPE)))
ROOT = "namespaces/gpu-metrics"
JOB = f"/apis/batch/v1/{ROOT}/jobs/gpu-headroom-lifeline"
BUFFER = f"/apis/autoscaling.x-k8s.io/v1beta1/{ROOT}/capacitybuffers/{NAME}"
TEMPLATE = f"/api/v1/{ROOT}/podtemplates/{NAME}"
DEPLOYMENT = f"/apis/apps/v1/{ROOT}/deployments/{NAME}"
BY_BUFFER = MethodChoice(ProvisioningMethod.BUFFER, "accepted")
BY_PLACEHOLDER = MethodChoice(ProvisioningMethod.PLACEHOLDER, "not served")
SERVED = ServedApis(buffers="v1beta1")


class World:
    """An API server, and the orders applied there."""

    def __init__(self, **settings: Any) -> None:
        self.api = FakeApi()
        self.writer = Writer(self.api, lambda: True)
        own = NodepoolSettings(apply=True, **settings)
        self.orders = Orders(self.writer, Lifelines(self.writer, 900, "pause"), HOME, own)

    async def act(
        self,
        *rows: Order,
        there: tuple[HeadroomObject, ...] = (),
        choice: MethodChoice = BY_BUFFER,
        now: float = T0,
        served: ServedApis = SERVED,
    ) -> list[OrderOutcome]:
        classes = {"gpu-metrics-adapter-headroom": priority_class()}
        return await self.orders.carry_out(rows, there, choice, served, classes, now)


def buffer(replicas: int = 2) -> HeadroomObject:
    owner = Lifeline("gpu-metrics", f"uid of {JOB}", T0 + 900)
    _, obj = capacitybuffer.manifests(order(replicas), "v1beta1", owner, "pause", None)
    return found(ProvisioningMethod.BUFFER, obj)


def placeholders(replicas: int = 2) -> HeadroomObject:
    return found(
        ProvisioningMethod.PLACEHOLDER,
        placeholder.manifest(order(replicas), LIFELINE, "pause", "low"),
    )


async def test_a_buffer_is_written_after_its_lifeline_and_its_template() -> None:
    world = World()
    (outcome,) = await world.act(order())
    assert world.api.paths("PATCH") == [JOB, TEMPLATE, BUFFER]
    assert outcome.failure == ""
    owner = world.api.objects[BUFFER]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == world.api.objects[JOB]["metadata"]["uid"]


async def test_without_a_lifeline_there_is_no_headroom() -> None:
    world = World()
    world.api.starts_jobs = None
    (outcome,) = await world.act(order())
    assert outcome.failure == "lifeline"
    assert world.api.paths("PATCH") == [JOB]


async def test_headroom_without_a_running_lifeline_is_deleted() -> None:
    """For example, a queue has suspended it: the headroom would outlive a dead controller."""
    world = World()
    await world.act(order())
    world.api.objects[JOB]["spec"]["suspend"] = True
    (outcome,) = await world.act(order(was=2), there=(buffer(),), now=T0 + 400)
    assert outcome.failure == "lifeline"
    assert "is suspended" in outcome.text
    assert BUFFER not in world.api.objects


async def test_an_unchanged_object_is_not_written() -> None:
    world = World()
    (outcome,) = await world.act(order(was=2), there=(buffer(),))
    assert not outcome.failure
    assert world.api.paths("PATCH") == [JOB]


async def test_two_namespaces_with_one_shape_have_separate_headroom() -> None:
    """Both in the controller's own namespace, under one lifeline, each with its own selector."""
    world = World()
    rows = [order(), order(3, namespace="other")]
    await world.act(*rows, choice=BY_PLACEHOLDER)
    made = [obj for path, obj in world.api.objects.items() if "/deployments/" in path]
    assert world.api.paths("PATCH").count(JOB) == 1
    assert all(
        path.startswith(("/apis/batch", f"/apis/apps/v1/{ROOT}/")) for path in world.api.objects
    )
    first, second = (obj["spec"]["selector"]["matchLabels"] for obj in made)
    assert first != second
    current = tuple(found(ProvisioningMethod.PLACEHOLDER, obj) for obj in made)
    assert {(row.serves, row.replicas) for row in current} == {("team", 2), ("other", 3)}
    await world.act(
        order(0, 2), order(3, 3, namespace="other"), there=current, choice=BY_PLACEHOLDER
    )
    assert world.api.paths("DELETE") == [DEPLOYMENT]


async def test_headroom_with_claims_is_in_the_namespace_of_its_claim_templates() -> None:
    """DRA reads a claim template from the namespace of the pod."""
    world = World()
    shape = replace(SHAPE, claims=("one-gpu",), claim_devices=1)
    (outcome,) = await world.act(order(shape=shape, namespace="dra"), choice=BY_PLACEHOLDER)
    assert outcome.failure == ""
    assert outcome.place[0] == "dra"
    assert {path.split("/")[5] for path in world.api.objects} == {"dra"}
    (event_of,) = [event(outcome, ProvisioningMethod.PLACEHOLDER, T0)["metadata"]["namespace"]]
    assert event_of == "dra"


async def test_a_nudge_changes_the_object_but_not_the_order() -> None:
    world = World()
    await world.act(order(was=2, nudge=True), there=(buffer(),), now=T0 + 5)
    stored = world.api.objects[BUFFER]
    assert stored["spec"]["replicas"] == 2
    assert stored["metadata"]["annotations"]["gpu-metrics-adapter.io/nudged-at"] == (
        "2026-01-01T00:00:05Z"
    )


async def test_headroom_that_is_not_needed_is_deleted() -> None:
    world = World()
    await world.act(order(0, 2), there=(buffer(2),))
    assert [path for _, path, _ in world.api.sent] == [BUFFER, TEMPLATE]


@pytest.mark.parametrize("stop", ["no method", "suspended lifeline", "foreign field"])
async def test_nothing_prevents_the_deletion_of_headroom(stop: str) -> None:
    world = World()
    await world.act(order())
    if stop == "suspended lifeline":
        world.api.objects[JOB]["spec"]["suspend"] = True
    if stop == "foreign field":
        world.api.fail("PATCH", "capacitybuffers", 409, 'conflict with "kubectl"')
    choice = MethodChoice(None, "waiting") if stop == "no method" else BY_BUFFER
    (outcome,) = await world.act(order(0, 2), there=(buffer(),), choice=choice, now=T0 + 800)
    assert (outcome.failure, outcome.text) == ("", "4 pods are needed now")
    assert BUFFER not in world.api.objects


async def test_an_order_of_0_without_headroom_writes_no_object() -> None:
    world = World()
    assert await world.act(order(0)) == []
    assert world.api.sent == []


async def test_when_the_method_changes_the_old_object_is_deleted_last() -> None:
    world = World()
    world.api.objects[DEPLOYMENT] = {"metadata": {}}
    await world.act(order(was=2), there=(placeholders(),))
    sent = [(method, path) for method, path, _ in world.api.sent]
    assert sent.index(("PATCH", BUFFER)) < sent.index(("DELETE", DEPLOYMENT))


async def test_nothing_is_ordered_while_the_method_is_unknown() -> None:
    world = World()
    (outcome,) = await world.act(order(), choice=MethodChoice(None, "waiting"))
    assert (outcome.failure, outcome.text) == ("method", "waiting")
    assert world.api.paths("PATCH") == [JOB]


async def test_placeholders_need_a_suitable_priority_class() -> None:
    world = World()
    (outcome,) = await world.orders.carry_out([order()], (), BY_PLACEHOLDER, SERVED, {}, T0)
    assert outcome.failure == "priority"
    assert "does not exist: create it" in outcome.text
    assert DEPLOYMENT not in world.api.objects


async def test_a_refused_write_is_retried_after_a_change_or_a_pause() -> None:
    world = World()
    world.api.fail("PATCH", "capacitybuffers", 422, "denied by a webhook")
    for seconds, replicas, tries in ((0, 2, 1), (15, 2, 1), (30, 3, 2), (45, 3, 2), (400, 3, 3)):
        (outcome,) = await world.act(order(replicas), now=T0 + seconds)
        assert outcome.failure == "refused"
        assert world.writer.failed["CapacityBuffer", "refused"] == tries


async def test_an_unavailable_api_server_is_tried_again_in_the_next_round() -> None:
    world = World()
    world.api.fail("PATCH", "capacitybuffers", 0, "connection refused")
    for _ in range(2):
        (outcome,) = await world.act(order())
        assert outcome.failure == "unreachable"
    assert world.writer.failed["CapacityBuffer", "unreachable"] == 2


async def test_a_refused_order_keeps_its_lifeline() -> None:
    """Existing headroom must not end because a change was refused."""
    world = World()
    world.api.fail("PATCH", "capacitybuffers", 409, 'conflict with "kubectl"')
    await world.act(order(3), there=(buffer(2),))
    await world.act(order(3), there=(buffer(2),), now=T0 + 299)
    await world.act(order(3), there=(buffer(2),), now=T0 + 300)
    deadlines = [
        body["spec"]["activeDeadlineSeconds"] for _, path, body in world.api.sent if path == JOB
    ]
    assert deadlines == [900, 1200]


async def test_headroom_that_cannot_be_deleted_ends_with_its_lifeline() -> None:
    world = World()
    world.api.fail("DELETE", "capacitybuffers", 403, "forbidden")
    for seconds in (0, 15, 600):
        (outcome,) = await world.act(order(0, 2), there=(buffer(),), now=T0 + seconds)
        assert outcome.failure == "forbidden"
    assert JOB not in world.api.paths("PATCH")


async def test_a_failed_order_does_not_affect_the_others() -> None:
    world = World()
    world.api.fail("PATCH", f"capacitybuffers/{NAME}", 403, "forbidden")
    outcomes = await world.act(order(), order(namespace="other"))
    assert [row.failure for row in outcomes] == ["forbidden", ""]


async def test_events_are_written_on_change_only() -> None:
    world = World()
    events = Events(world.writer)
    (first,) = await world.act(order())
    refused = OrderOutcome(
        order(3, 2), "gpu-metrics", first.uid, failure="conflict", text="kubectl"
    )
    for outcome in (first, first, refused, refused):
        await events.announce([outcome], ProvisioningMethod.BUFFER, T0)
    bodies = [body for method, _, body in world.api.sent if method == "POST"]
    assert [(row["type"], row["reason"]) for row in bodies] == [
        ("Normal", "HeadroomOrdered"),
        ("Warning", "HeadroomRefused"),
    ]


def test_an_event_is_about_the_object_and_says_why() -> None:
    made = order()
    outcome = OrderOutcome(made, "gpu-metrics", "uid-1", failure="", text=made.why)
    row = event(outcome, ProvisioningMethod.PLACEHOLDER, T0)
    assert row["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "namespace": "gpu-metrics",
        "name": NAME,
        "uid": "uid-1",
    }
    assert row["message"] == (
        "from 0 to 2 pods in pool gput4 for Deployment/inference of namespace team: "
        "4 pods are needed now"
    )


async def test_an_unexpected_error_affects_only_its_order() -> None:
    world = World()
    world.api.failures.insert(0, ("PATCH", f"capacitybuffers/{NAME}", ZeroDivisionError("bug")))
    broken, good = await world.act(order(), order(namespace="other"))
    assert (broken.failure, broken.text) == ("error", "ZeroDivisionError: bug")
    assert good.failure == ""
