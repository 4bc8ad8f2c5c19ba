"""Shapes of public manifests: what `doctor -f` finds, and that the live checks find the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.tools.doctor.manifests import Manifests
from adapter.tools.doctor.model import CheckSection
from adapter.tools.doctor.runner import run
from tests.adapter.clientapi import ApiServer, api_server
from tests.adapter.commandline import invoke
from tests.adapter.tools.doctor.seen.cases import BAD, GOOD, ODD, Seen
from tests.adapter.tools.doctor.seen.objects import Manifest
from tests.adapter.tools.doctor.test_collect import look, small

CASES = GOOD | BAD
OF_A_CLUSTER = "only a cluster can answer this"
"""Why a check does not apply to files."""
VISIBLE = {
    result.check.id
    for result in run(Manifests().facts())
    if result.check.section is CheckSection.HPAS or result.check.id == "GMA203"
    if result.why != OF_A_CLUSTER
}
"""The checks of what a manifest shows."""
PATHS = {
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/horizontalpodautoscalers",
    "ScaledObject": "/apis/keda.sh/v1alpha1/scaledobjects",
    "Deployment": "/apis/apps/v1/deployments",
    "StatefulSet": "/apis/apps/v1/statefulsets",
    "PersistentVolumeClaim": "/api/v1/persistentvolumeclaims",
}


def of_files(folder: Path, manifests: Iterable[object]) -> tuple[int, Mapping[str, Any]]:
    """The report of `doctor -f`."""
    (folder / "all.yaml").write_text(yaml.safe_dump_all(manifests))
    ended = invoke("doctor", "-f", str(folder), "-o", "json")
    assert "Traceback" not in ended.output
    return int(str(ended.code)), json.loads(ended.output) if ended.output.startswith("{") else {}


def applied(manifest: Manifest, namespace: str) -> Manifest:
    """An object as `kubectl apply` leaves it in a namespace of a cluster."""
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(manifest)}
    meta, spec = manifest["metadata"], manifest["spec"]
    if "template" in spec:
        spec = {"replicas": 1} | spec
    annotations = {**meta.get("annotations", {}), **note}
    meta = {**meta, "namespace": namespace, "annotations": annotations}
    return {**manifest, "metadata": meta, "spec": spec}


def test_there_are_enough_shapes() -> None:
    assert len(CASES) >= 80
    assert len(GOOD) >= 40


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_files_have_these_findings_and_no_others(case: Seen, tmp_path: Path) -> None:
    code, report = of_files(tmp_path, case.manifests)
    messages = {
        row["id"]: [finding["message"] for finding in row["findings"]]
        for row in report["checks"]
        if row.get("findings")
    }
    assert set(messages) == case.found, messages
    assert code in ((0, 1) if case.found else (0,))
    assert not report["notes"]


NAMESPACES = {f"case-{number}-": name for number, name in enumerate(CASES)}


@contextmanager
def live_cases(folder: Path) -> Iterator[tuple[ApiServer, Path]]:
    """A cluster with each case in a namespace of its own, and the kubeconfig."""
    rows = [
        applied(row, space) for space, name in NAMESPACES.items() for row in CASES[name].manifests
    ]
    with api_server(folder) as (server, kubeconfig):
        small(server)
        server.answers |= {
            path: [row for row in rows if row["kind"] == kind] for kind, path in PATHS.items()
        }
        for place in ("gpu-metrics/services/gpu-metrics-adapter", "kaito/services/other-scaler"):
            server.answers[f"/api/v1/namespaces/{place}"] = {
                "metadata": {"name": place.rpartition("/")[2]},
                "spec": {"ports": [{"port": 443}, {"port": 6000}, {"port": 10450}]},
            }
        yield server, kubeconfig


def test_the_live_checks_find_what_the_manifests_show(tmp_path: Path) -> None:
    with live_cases(tmp_path) as (_, kubeconfig):
        checks = look(kubeconfig)["checks"]
    ids: dict[str, set[str]] = {name: set() for name in CASES}
    for row in checks:
        for finding in row.get("findings", ()) if row["id"] in VISIBLE else ():
            space = finding["object"].split()[1].partition("/")[0]
            ids[NAMESPACES[space]].add(row["id"])
    assert ids == {name: set(case.found) for name, case in CASES.items()}


def test_every_check_of_manifests_is_in_the_table() -> None:
    # The API server refuses what GMA409 finds; the others have faults of their own.
    others = {"GMA406", "GMA407", "GMA409"}
    assert set().union(*(case.found for case in BAD.values())) | others == VISIBLE


@pytest.mark.parametrize("manifests", ODD.values(), ids=ODD)
def test_odd_manifests_end_without_a_traceback(
    manifests: tuple[object, ...], tmp_path: Path
) -> None:
    code, report = of_files(tmp_path, manifests)
    assert code in (0, 1, 2)
    failed = [row for row in report.get("checks", ()) if row["status"] == "unknown"]
    assert failed == []
