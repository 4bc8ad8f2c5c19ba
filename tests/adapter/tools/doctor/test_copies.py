"""``doctor -f`` on folders of several environments, and on the patches of kustomize."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.adapter.tools.doctor.test_manifests import DEPLOYMENT, GOOD, KEDA, doctor

OTHER_HPA = GOOD.replace("name: llm, namespace", "name: other, namespace")
OTHER_KEDA = KEDA.replace("name: llm, namespace", "name: other, namespace")
PATCH = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: chat}
spec: {maxReplicas: 20}
"""


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


DEV_HPA = GOOD.replace("name: llm, namespace", "name: llm-dev, namespace")
RIVALS: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "one object for each environment": ({"prod/a.yaml": GOOD, "staging/a.yaml": GOOD}, []),
    "one ScaledObject for each": ({"prod/a.yaml": KEDA, "staging/a.yaml": KEDA}, []),
    "the outputs of two environments": ({"all.yaml": f"{GOOD}---{GOOD}"}, []),
    "a base and a whole overlay": ({"base/a.yaml": GOOD, "overlays/prod/a.yaml": GOOD}, []),
    "two objects in one environment": (
        {"prod/a.yaml": GOOD, "prod/b.yaml": OTHER_HPA, "staging/a.yaml": GOOD},
        ["prod/a.yaml: hpa other in prod/b.yaml scales Deployment llm too"],
    ),
    "two objects in each environment": (
        dict.fromkeys(("prod/a.yaml", "staging/a.yaml"), f"{GOOD}---{OTHER_HPA}"),
        [
            "prod/a.yaml: hpa other scales Deployment llm too",
            "staging/a.yaml: hpa other scales Deployment llm too",
        ],
    ),
    "an object of the base, and one of an overlay": (
        {"base/a.yaml": GOOD, "prod/b.yaml": OTHER_HPA},
        ["base/a.yaml: hpa other in prod/b.yaml scales Deployment llm too"],
    ),
    "an object of another name for each environment": (
        {
            "dev/h.yaml": DEV_HPA,
            "dev/d.yaml": DEPLOYMENT,
            "prod/h.yaml": GOOD,
            "prod/d.yaml": DEPLOYMENT,
        },
        [],
    ),
    "an HPA in one environment, and a ScaledObject in another": (
        {
            "dev/h.yaml": DEV_HPA,
            "dev/d.yaml": DEPLOYMENT,
            "prod/s.yaml": KEDA,
            "prod/d.yaml": DEPLOYMENT,
        },
        [],
    ),
    "two objects of one of two environments": (
        {
            "dev/h.yaml": DEV_HPA,
            "dev/d.yaml": DEPLOYMENT,
            "prod/h.yaml": f"{GOOD}---{OTHER_HPA}",
            "prod/d.yaml": DEPLOYMENT,
        },
        ["prod/h.yaml: hpa other scales Deployment llm too"],
    ),
    "one for all environments, and one of each": (
        {
            "base/h.yaml": DEV_HPA,
            "dev/d.yaml": DEPLOYMENT,
            "prod/h.yaml": GOOD,
            "prod/d.yaml": DEPLOYMENT,
        },
        ["prod/h.yaml: hpa llm-dev in base/h.yaml scales Deployment llm too"],
    ),
    "an HPA beside a ScaledObject": (
        {"prod/a.yaml": GOOD, "prod/s.yaml": KEDA, "staging/a.yaml": GOOD},
        ["prod/a.yaml: ScaledObject llm in prod/s.yaml scales Deployment llm too"],
    ),
    "two ScaledObjects in one environment": (
        {"prod/s.yaml": f"{KEDA}---{OTHER_KEDA}", "staging/s.yaml": KEDA},
        ["prod/s.yaml: scaledobject other scales Deployment llm too"],
    ),
}


@pytest.mark.parametrize(("files", "findings"), RIVALS.values(), ids=RIVALS)
def test_an_object_is_not_compared_with_its_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], findings: list[str]
) -> None:
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    code, output = doctor("-f", ".", "-q", "--only", "GMA423")
    text = " ".join(output.split())
    assert code == (1 if findings else 0)
    for finding in findings:
        assert f" in {finding}" in text
    assert text.count(" too") == len(findings)


WITHOUT_REPLICAS = DEPLOYMENT.replace("replicas: 2, ", "").replace(
    "containers: []", "containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]"
)
WITH_REPLICAS = WITHOUT_REPLICAS.replace("{template", "{replicas: 2, template")
COPIES: dict[str, tuple[Mapping[str, str], list[str]]] = {
    "each with its HPA": (
        {
            "prod/d.yaml": WITHOUT_REPLICAS,
            "prod/h.yaml": GOOD,
            "staging/d.yaml": WITH_REPLICAS,
            "staging/h.yaml": GOOD,
        },
        ["staging/d.yaml"],
    ),
    "with one HPA": (
        {"base/h.yaml": GOOD, "prod/d.yaml": WITH_REPLICAS, "staging/d.yaml": WITH_REPLICAS},
        ["prod/d.yaml", "staging/d.yaml"],
    ),
    "with the HPA of one": (
        {"base/d.yaml": WITHOUT_REPLICAS, "base/h.yaml": GOOD, "prod/d.yaml": WITH_REPLICAS},
        ["prod/d.yaml"],
    ),
    "one with two HPAs": (
        {"base/d.yaml": WITH_REPLICAS, "prod/h.yaml": GOOD, "staging/h.yaml": GOOD},
        ["base/d.yaml"],
    ),
}


@pytest.mark.parametrize(("files", "wrong"), COPIES.values(), ids=COPIES)
def test_each_copy_of_a_workload_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Mapping[str, str], wrong: list[str]
) -> None:
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    _, output = doctor("-f", ".", "-q", "--only", "GMA451")
    text = " ".join(output.split())
    named = [name for name in files if f"deployment chat/llm in {name}: its manifest" in text]
    assert named == wrong


CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: model, namespace: chat}
spec: {accessModes: [%s]}
"""


def test_a_claim_is_that_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = "volumes: [{name: m, persistentVolumeClaim: {claimName: model}}]"
    workload = WITHOUT_REPLICAS.replace("containers:", f"{volume}, containers:")
    for name, mode in (("prod", "ReadWriteMany"), ("staging", "ReadWriteOnce")):
        write(tmp_path, {f"{name}/all.yaml": f"{GOOD}---{workload}---{CLAIM % mode}"})
    monkeypatch.chdir(tmp_path)
    _, output = doctor("-f", ".", "-q", "--only", "GMA452")
    assert "in staging/all.yaml" in output
    assert "in prod/all.yaml" not in output


PATCHES = {
    "patches": "patches: [{path: patch.yaml}]",
    "with a target": "patches: [{path: ./patch.yaml, target: {kind: HorizontalPodAutoscaler}}]",
    "strategic merge": "patchesStrategicMerge: [patch.yaml]",
    "JSON patch": "patchesJson6902: [{path: patch.yaml, target: {kind: Deployment, name: a}}]",
}


@pytest.mark.parametrize("kustomization", PATCHES.values(), ids=PATCHES)
@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization"])
def test_a_patch_of_kustomize_is_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kustomization: str, name: str
) -> None:
    files = {
        "base/hpa.yaml": GOOD,
        "base/kustomization.yaml": "resources: [hpa.yaml]\n",
        "prod/patch.yaml": PATCH.replace("{maxReplicas: 20}", "{maxReplicas: many}"),
        f"prod/{name}": f"resources: [../base]\n{kustomization}\n",
    }
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert doctor("-f", ".", "-q") == (0, "")
    _, output = doctor("-f", ".")
    assert f"note: prod/patch.yaml: a patch of prod/{name}, and not judged" in " ".join(
        output.split()
    )
    code, output = doctor("-f", "prod/patch.yaml")
    assert (code, "a patch of" in output) == (2, True)


def test_a_patch_may_be_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "apps/llm/hpa.yaml": GOOD,
        "apps/llm/kustomization.yaml": "patches: [{path: ../../patches/hpa.yaml}]\n",
        "patches/hpa.yaml": PATCH,
    }
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    code, output = doctor("-f", ".")
    named = "patches/hpa.yaml: a patch of apps/llm/kustomization.yaml"
    assert (code, named in " ".join(output.split())) == (0, True)


def test_a_patch_is_in_the_folder_of_its_kustomization_or_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inline = "patches: [{patch: '- op: remove\n  path: /a'}, 3]\npatchesStrategicMerge: text\n"
    files = {
        "prod/kustomization.yaml": "patches: [{path: patches/hpa.yaml}]\n",
        "prod/patches/hpa.yaml": PATCH,
        "staging/kustomization.yaml": inline,
        "staging/hpa.yaml": GOOD.replace("maxReplicas: 8", "maxReplicas: many"),
        "broken/kustomization.yaml": "patches: [",
    }
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    code, output = doctor("-f", ".")
    text = " ".join(output.split())
    assert (code, "maxReplicas" in text) == (1, True), "staging/hpa.yaml is not a patch"
    assert "prod/patches/hpa.yaml: a patch of prod/kustomization.yaml" in text
    assert "broken/kustomization.yaml: not YAML" in text
