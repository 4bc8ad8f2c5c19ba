"""The cluster-autoscaler's status ConfigMap, and the pools of its groups."""

from __future__ import annotations

import pytest

from adapter.nodepool.seen.status import NodeGroup, groups_of, parse, pool_name
from tests.adapter.nodepool.manifests import STATUS, T0, autoscaler_status


def test_groups_have_limits_target_and_back_off() -> None:
    gpu, system = autoscaler_status().groups
    assert gpu == NodeGroup(
        name="aks-gput4-12345678-vmss",
        high=6,
        target=2,
        healthy=True,
        backing_off=True,
        backoff="QUOTA_EXCEEDED: Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 2.0",
        since=T0,
    )
    assert not system.backing_off
    assert system.refused_until(T0) is None


def test_the_status_is_as_old_as_its_last_probe() -> None:
    assert autoscaler_status().written == T0 + 7.5


@pytest.mark.parametrize(
    ("now", "until"),
    [(T0 + 10, T0 + 300), (T0 + 290, T0 + 350), (T0 + 900, T0 + 960)],
    ids=["just begun", "near the usual end", "a long one"],
)
def test_a_back_off_lasts_five_minutes_or_as_long_as_the_status_shows_it(
    now: float, until: float
) -> None:
    assert autoscaler_status().groups[0].refused_until(now) == until


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("Cluster-autoscaler status at 2023-01-01 00:00:00 +0000 UTC:\nCluster-wide:", "1.30"),
        ("autoscalerStatus: [", "not the status of a cluster-autoscaler"),
        ("nodeGroups: 3", "not the status of a cluster-autoscaler"),
        ("", "not the status of a cluster-autoscaler"),
    ],
    ids=["plain text", "no YAML", "another document", "empty"],
)
def test_an_invalid_status_is_a_problem_without_groups(document: str, words: str) -> None:
    status = parse(document)
    assert status.groups == ()
    assert words in status.problem


def test_an_initializing_autoscaler_has_no_groups() -> None:
    assert parse("time: x\nautoscalerStatus: Initializing\n") == parse(
        STATUS.partition("nodeGroups")[0].replace("lastProbeTime: ", "other: ")
    )


def group(name: str) -> NodeGroup:
    return NodeGroup(name, 4, 1, healthy=True, backing_off=False, backoff="", since=None)


@pytest.mark.parametrize(
    ("name", "pool", "node", "belongs"),
    [
        ("aks-gput4-12345678-vmss", "gput4", "aks-gput4-12345678-vmss000001", True),
        ("aks-gput4-12345678-vmss", "gput4", None, True),
        ("aks-gput4-12345678-vmss", "gpu", None, False),
        (
            (
                "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/"
                "gke-main-a100-0a1b2c3d-grp"
            ),
            "a100",
            "gke-main-a100-0a1b2c3d-x1y2",
            True,
        ),
        ("gke-main-a100-0a1b2c3d-grp", "a100", None, True),
        ("eks-p4d-0a1b2c3d-1111-2222-3333-0123456789ab", "p4d", None, True),
        ("eks-p4d-0a1b2c3d-1111-2222-3333-0123456789ab", "p4", None, False),
        ("bare-metal", "bare-metal", None, True),
        ("bare-metal", "other", "node-7", False),
    ],
)
def test_groups_are_identified_by_their_names(
    name: str, pool: str, node: str | None, *, belongs: bool
) -> None:
    nodes = [node] if node else []
    assert bool(groups_of(pool, nodes, [group(name)])) is belongs


@pytest.mark.parametrize(
    ("name", "pool"),
    [
        ("aks-gput4-12345678-vmss", "gput4"),
        ("eks-p4d-0a1b2c3d-1111-2222-3333-0123456789ab", "p4d"),
        ("projects/x/gpu", "gpu"),
    ],
)
def test_the_name_of_a_group_without_nodes_gives_its_pool(name: str, pool: str) -> None:
    assert pool_name(name) == pool
