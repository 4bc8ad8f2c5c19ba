"""docs/gitops.md: its manifests render the chart, and hold no field that the adapter writes."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.blocks import Kind, documents, kind
from tests.docs.pages import Page
from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, RIGHTS, helm, one, render
from tests.e2e.chartvalues import EVERYTHING
from tests.e2e.cluster import Object, collection
from tests.e2e.site import IMAGE, Site
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGE = Page(programs.ROOT / "docs" / "gitops.md")
SHOWN = {
    one["kind"]: one
    for block in PAGE.blocks
    if block.language == "yaml" and kind(block) is Kind.LISTED
    for one in documents(block)
}
WRITES = {"create", "patch", "update", "delete"}
REVIEWS = {"subjectaccessreviews"}
"""What can be created and is never kept."""


def as_argo_renders(app: Object) -> list[Object]:
    """`helm template` with the values of an Application, for its namespace and name."""
    values = app["spec"]["source"]["helm"]["valuesObject"]
    namespace = app["spec"]["destination"]["namespace"]
    command = ("template", app["metadata"]["name"], FOLDER, f"--namespace={namespace}")
    done = helm(*command, "--include-crds", "--kube-version=1.37.0", values=values)
    assert done.returncode == 0, done.stderr
    return [row for row in yaml.safe_load_all(done.stdout) if row]


def matched(entry: Object, obj: Object) -> bool:
    group = obj["apiVersion"].rpartition("/")[0]
    name = entry.get("name", obj["metadata"]["name"])
    row = (entry.get("group", group), entry["kind"], name)
    return row == (group, obj["kind"], obj["metadata"]["name"])


def test_argo_cd_renders_the_same_text_each_time_without_hooks() -> None:
    first, again = (as_argo_renders(SHOWN["Application"]) for _ in range(2))
    assert first == again
    assert not [row for row in first if "helm.sh/hook" in row["metadata"].get("annotations", {})]


def test_what_argo_cd_ignores_is_what_the_manifests_leave_to_the_adapter() -> None:
    """Each entry is about objects of the chart, and none of them has the field."""
    objects = as_argo_renders(SHOWN["Application"])
    for entry in SHOWN["Application"]["spec"]["ignoreDifferences"]:
        matching = [obj for obj in objects if matched(entry, obj)]
        assert matching, entry
        for pointer, obj in itertools.product(entry["jsonPointers"], matching):
            *above, last = pointer.strip("/").split("/")
            place = obj
            for name in above:
                place = place[name]
            assert last not in place


def test_no_tool_replaces_or_applies_what_the_adapter_writes() -> None:
    """With RespectIgnoreDifferences, Argo CD applies the live values of such fields."""
    options = SHOWN["Application"]["spec"]["syncPolicy"]["syncOptions"]
    refused = {"Replace", "Force", "RespectIgnoreDifferences"}
    assert not refused & {option.partition("=")[0] for option in options}
    assert "force" not in SHOWN["HelmRelease"]["spec"].get("upgrade", {})


def test_flux_sees_the_cluster_and_installs_with_the_hooks(stage: Stage) -> None:
    release = SHOWN["HelmRelease"]
    where = (f"--namespace={NAMESPACE}", f"--kubeconfig={stage.plane.kubeconfig}")
    command = ("template", release["spec"]["releaseName"], FOLDER, *where, "--dry-run=server")
    done = helm(*command, values=release["spec"]["values"])
    assert done.returncode == 0, done.stderr
    objects = [row for row in yaml.safe_load_all(done.stdout) if row]
    hooks = [row["metadata"].get("annotations", {}).get("helm.sh/hook") for row in objects]
    assert {"pre-delete", "test"} <= set(hooks)
    (entry,) = release["spec"]["driftDetection"]["ignore"]
    assert any(matched(entry["target"], obj) for obj in objects)
    assert release["spec"]["chartRef"]["name"] == SHOWN["OCIRepository"]["metadata"]["name"]


def test_the_page_names_everything_that_the_accounts_may_write() -> None:
    """RBAC is the bound of what is written; reviews of access are not kept."""
    table = PAGE.text.partition("\n## What the adapter writes\n")[2].partition("\n## ")[0].lower()
    rows = [row for row in render(EVERYTHING) if row["kind"] in RIGHTS]
    rows += render(EVERYTHING | {"config": {"nodepool": {"deletion_cost": True}}})
    for row in rows:
        for rule in row.get("rules") or ():
            if WRITES & set(rule["verbs"]):
                for resource in set(rule["resources"]) - REVIEWS:
                    assert resource.rstrip("s") in table, (row["metadata"]["name"], resource)
                    for name in rule.get("resourceNames") or ():
                        known = name.replace(f"{SERVICE}-", "name-")
                        shown = f"`{known}`" in table or f"`{name}`" in table
                        assert shown or resource == "apiservices", name


def kustomized(folder: Path, text: str, values: Object | None = None) -> Any:
    """What kustomize makes of the rendered chart."""
    objects = yaml.safe_dump_all(render(values))
    (folder / "gpu-metrics-adapter.yaml").write_text(objects)
    (folder / "kustomization.yaml").write_text(text)
    return subprocess.run(
        [programs.find(programs.KUBECTL), "kustomize", folder],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


(KEEPING,) = (block.text for block in PAGE.blocks if "# kustomization.yaml" in block.text)
MOVING = "namespace: gpus\nresources: [gpu-metrics-adapter.yaml]\n"


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["default", "everything"])
def test_the_kustomization_of_the_page_moves_nothing(tmp_path: Path, values: Object) -> None:
    other = KEEPING.replace(f"namespace: {NAMESPACE}}}", "namespace: gpus}")
    assert other != KEEPING
    done = kustomized(tmp_path, other, values)
    assert done.returncode == 0, done.stderr
    after = {placed(obj) for obj in yaml.safe_load_all(done.stdout)}
    # kustomize does not know that admission policies have no namespace; the API server removes it.
    assert {row for row in map(placed, render(values)) if row[1]} <= after
    assert len(after) == len(render(values))


def test_a_namespace_in_a_kustomization_breaks_the_installation(tmp_path: Path) -> None:
    done = kustomized(tmp_path, MOVING)
    made = list(yaml.safe_load_all(done.stdout))
    assert one(made, "RoleBinding", f"{SERVICE}:auth-reader")["metadata"]["namespace"] == "gpus"
    arguments = one(made, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert NAMESPACE in arguments["containers"][0]["args"], "it still writes to the old one"
    stopped = kustomized(tmp_path, MOVING, {"nodepool": {"enabled": True}})
    assert stopped.returncode != 0
    assert "namespace transformation produces ID conflict" in stopped.stderr
    assert "namespace transformation" in PAGE.text


def placed(obj: Object) -> tuple[str, str, str]:
    meta = obj["metadata"]
    return obj["kind"], meta.get("namespace", ""), meta["name"]


def test_a_tool_that_applies_the_manifests_finds_no_difference(site: Site) -> None:
    """The diff of Argo CD and Flux: a server-side dry run beside the object that there is."""
    values = {"image": {"repository": IMAGE}}
    where = f"--namespace={NAMESPACE}"
    waiting = ("--create-namespace", "--wait", "--wait-for-jobs")
    site.helm("install", SERVICE, FOLDER, where, *waiting, values=values)
    manifest = site.helm("get", "manifest", SERVICE, where).stdout
    objects = [row for row in yaml.safe_load_all(manifest) if row]
    written = [obj for obj in objects if obj["kind"] in ("Secret", "APIService")]
    assert written
    for obj in objects:
        assert list(differences(site, obj)) == [], placed(obj)
    for obj in written:
        live = site.admin.get(path_of(obj))
        assert live.get("data") or live["spec"]["caBundle"], placed(obj)


def differences(site: Site, obj: Object) -> Iterator[str]:
    query = "fieldManager=argocd-controller&force=true&dryRun=All"
    kind = {"Content-Type": "application/apply-patch+yaml"}
    after = site.admin.request("PATCH", f"{path_of(obj)}?{query}", obj, **kind)
    before = site.admin.get(path_of(obj))
    for state in (before, after):
        for name in ("managedFields", "resourceVersion", "generation"):
            state["metadata"].pop(name, None)
        state.pop("status", None)
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            yield f"{name}: {json.dumps(before.get(name))} -> {json.dumps(after.get(name))}"


def path_of(obj: Object) -> str:
    return f"{collection(obj)}/{obj['metadata']['name']}"
