"""What the chart renders for the node-pool controller: its permissions and settings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e import chart
from tests.e2e.apiservice import NAMESPACE
from tests.e2e.cluster import Object
from tests.e2e.nodepoolstage import ACCOUNT

pytestmark = pytest.mark.e2e


def test_the_account_of_a_dry_run_may_write_nothing() -> None:
    """Every rule of the roles that the chart makes for it is about reading."""
    rows = chart.render({"nodepool": {"enabled": True}}, only=["nodepool/rbac"])
    rules = [rule for row in rows for rule in row.get("rules", ())]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}


@pytest.mark.parametrize(
    ("method", "resource", "verbs"),
    [
        ("placeholder", "capacitybuffers", {"delete"}),
        ("placeholder", "deployments", {"create", "patch", "delete"}),
        ("buffer", "capacitybuffers", {"create", "patch", "delete"}),
        ("buffer", "deployments", set()),
    ],
)
def test_the_account_may_write_what_its_method_needs(
    method: str, resource: str, verbs: set[str]
) -> None:
    nodepool = {"provisioning_method": method}
    values = {"nodepool": {"enabled": True, "apply": True}, "config": {"nodepool": nodepool}}
    rows = chart.render(values, only=["nodepool/rbac"])
    (role,) = [
        row
        for row in rows
        if row["kind"] == "Role" and row["metadata"]["name"].endswith("-headroom")
    ]
    granted = [set(rule["verbs"]) for rule in role["rules"] if resource in rule["resources"]]
    assert set().union(*granted) == verbs


def writing(**nodepool: Any) -> dict[tuple[str, str | None], set[str]]:
    """Where the chart's rules let the account write what; None is the whole cluster."""
    cost = {"config": {"nodepool": {"deletion_cost": True}}}
    values = {"nodepool": {"enabled": True, "apply": True, **nodepool}, **cost}
    rows = chart.render(values, only=["nodepool/rbac"])
    roles = {_id(row): row["rules"] for row in rows if "rules" in row}
    rights: dict[tuple[str, str | None], set[str]] = {}
    for row in rows:
        if not row["kind"].endswith("Binding"):
            continue
        kind, name = row["roleRef"]["kind"], row["roleRef"]["name"]
        where = row["metadata"].get("namespace")
        for rule in roles[kind, name, where if kind == "Role" else None]:
            if not set(rule["verbs"]) <= {"get", "list", "watch"}:
                short = name.removeprefix(ACCOUNT) or "own"
                rights.setdefault((short, where), set()).update(rule["resources"])
    return rights


def _id(row: Object) -> tuple[str, str, str | None]:
    return row["kind"], row["metadata"]["name"], row["metadata"].get("namespace")


def test_write_permissions_exist_in_its_namespace_and_the_configured_ones() -> None:
    headroom = {"jobs", "capacitybuffers", "podtemplates", "deployments", "events"}
    own = {("own", NAMESPACE): {"configmaps", "leases"}}
    assert writing() == own | {
        ("-headroom", NAMESPACE): headroom,
        (":deletion-cost", None): {"pods"},
    }
    assert writing(namespaces=["ml"], claimNamespaces=["dra"]) == own | {
        ("-headroom", NAMESPACE): headroom,
        ("-headroom", "dra"): headroom,
        (":deletion-cost", "ml"): {"pods"},
    }


def test_the_chart_passes_its_namespaces_to_the_controller() -> None:
    nodepool = {"enabled": True, "apply": True, "namespaces": ["ml"], "claimNamespaces": ["dra"]}
    values = {"nodepool": nodepool}
    (deployment,) = chart.render(values, only=["nodepool/deployment"])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    settings = {row["name"]: row["value"] for row in container["env"]}
    assert settings["GMA_NODEPOOL__NAMESPACES"] == '["ml"]'
    assert settings["GMA_NODEPOOL__CLAIM_NAMESPACES"] == '["dra"]'
    assert settings["GMA_NODEPOOL__APPLY"] == "true"


def test_it_is_not_rendered_by_default() -> None:
    assert not [row for row in chart.render() if "nodepool" in json.dumps(row["metadata"])]
