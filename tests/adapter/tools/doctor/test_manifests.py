"""``doctor -f``: manifests in files, without a cluster; bad input is one line each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from adapter.tools.doctor import manifestfiles
from tests.adapter.commandline import invoke

HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 8
  metrics:
  - type: Pods
    pods: {metric: {name: %s}, target: {type: AverageValue, averageValue: "70"}}
"""
GOOD = HPA % "gpu_utilization"
NOTES = ("not a Kubernetes object", "not a manifest: not YAML")
"""What is said of files that are not manifests."""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: chat, labels: {app: llm}}
spec: {replicas: 2, template: {spec: {containers: []}}}
"""
BAD = HPA % "gpu_utilisation"


def doctor(*arguments: str | Path) -> tuple[object, str]:
    ended = invoke("doctor", *map(str, arguments))
    assert "Traceback" not in ended.output
    return ended.code, ended.output


def test_good_manifests_end_with_0_and_bad_ones_with_1(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text(BAD)
    code, output = doctor("-f", good)
    assert code == 0
    assert "0 errors, 0 warnings" in output
    code, output = doctor("-f", tmp_path)
    assert code == 1
    assert f"hpa chat/llm in {bad}: asks for 'gpu_utilisation'" in " ".join(output.split())
    assert "did you mean gpu_utilization?" in " ".join(output.split())
    assert "kubectl" not in output, "a file is fixed by an edit"


@pytest.mark.parametrize(
    "change",
    [("maxReplicas: 8", "behavior: {}"), ("maxReplicas: 8", "maxReplicas: many")],
    ids=["none", "text"],
)
def test_a_maximum_that_is_missing_is_not_taken_as_1(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace(*change))
    code, output = doctor("-f", tmp_path)
    assert code == 1
    assert "GMA409" in output
    assert "maxReplicas" in output
    assert "it never scales" not in output


def test_a_minimum_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        GOOD.replace("maxReplicas: 8", "maxReplicas: 8\n  minReplicas: some")
    )
    code, output = doctor("-f", tmp_path)
    assert code == 1
    assert "spec.minReplicas" in output


def test_json_has_every_finding_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(yaml.safe_load(BAD)))
    code, output = doctor("-f", tmp_path / "a.json", "-o", "json")
    report = json.loads(output)
    assert code == report["status"] == 1
    (row,) = [check for check in report["checks"] if check["status"] == "error"]
    assert row["id"] == "GMA401"
    assert row["docs"] == "docs/checks.md#gma401"
    assert str(tmp_path / "a.json") in row["findings"][0]["object"]


def test_a_list_and_objects_of_other_kinds(tmp_path: Path) -> None:
    rows = [yaml.safe_load(GOOD), {"apiVersion": "example.org/v1", "kind": "Widget"}]
    whole = {"apiVersion": "v1", "kind": "List", "items": rows}
    (tmp_path / "list.yaml").write_text(yaml.safe_dump(whole))
    code, output = doctor("-f", tmp_path / "list.yaml")
    assert code == 0
    assert "read 1 object from" in output
    assert "left out 1 of other kinds" in " ".join(output.split())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("apiVersion: [", "not YAML"),
        ("apiVersion: v1\x00\x01", "not YAML"),
        ("a: [", "not a manifest: not YAML"),
        ("- 1\n", "not a Kubernetes object"),
        (
            "kind: HorizontalPodAutoscaler\nspec: {}\n",
            "apiVersion is missing: write autoscaling/v2",
        ),
        (
            "kind: Deployment\nmetadata: {generateName: a-}\n",
            "apiVersion is missing: write apps/v1",
        ),
        ("apiVersion: v1\nkind: ConfigMap\n", "without a name: metadata.name is missing"),
        (
            GOOD.replace("autoscaling/v2", "autoscaling/v2beta2"),
            "apiVersion autoscaling/v2beta2 was removed in Kubernetes 1.26: use autoscaling/v2",
        ),
        (
            "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: a}\n",
            "apiVersion extensions/v1beta1 is not checked: use apps/v1",
        ),
        (
            DEPLOYMENT.replace("replicas: 2", "replicas: '2'"),
            "spec.replicas is a string, and must be a whole number: write it without quotes",
        ),
        (
            DEPLOYMENT.replace("app: llm", "app: llm, version: 1.5"),
            "metadata.labels.version is a number, and must be a string: write it in quotes",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {user.name: 4711}\n",
            "data[user.name] is a whole number, and must be a string: write it in quotes",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: [1]\n",
            "metadata is a list, and must be a mapping",
        ),
        (GOOD.replace("kind: HorizontalPodAutoscaler", "kin: x"), "an object has no kind"),
        ("apiVersion: v1\nkind: List\nitems: {a: b}\n", "List: items is not a list"),
        ("apiVersion: {{- range .Values.x }}\n", "check the output of helm template"),
        (
            DEPLOYMENT.replace("replicas: 2", "replicas: ${REPLICAS}"),
            "if it is a template, check the output of helm template or envsubst",
        ),
        (
            DEPLOYMENT.replace("replicas: 2", 'replicas: "${REPLICAS}"'),
            "and must be a whole number: render the template, and check its output",
        ),
        (
            DEPLOYMENT.replace("name: llm,", f"name: {'a' * 4000},"),
            "metadata.name has 4000 letters: use at most 253",
        ),
        (DEPLOYMENT.replace("replicas: 2", "replicas: .inf"), "JSON has no such number"),
        (DEPLOYMENT.replace("app: llm", "app: 08"), "labels.app is a whole number, and must be a"),
        (DEPLOYMENT.replace("app: llm", "app: 1234e56"), "labels.app is a number, and must be a"),
        (DEPLOYMENT.replace("app: llm", "app: y"), "labels.app is true or false, and must be a"),
        ("apiVersion: v1\na:\n\tb: c\n", "line 3: a tab stands where YAML takes spaces only"),
        ("apiVersion: &a [*a]\n", "line 1: a value contains itself"),
        ("kind: Widget\nspec: {}\n", "no manifest of a kind that a check looks at"),
        ("", "no manifest of a kind that a check looks at"),
    ],
)
def test_bad_input_is_one_line_that_names_the_file(
    tmp_path: Path, content: str, words: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(content)
    code, output = doctor("-f", file)
    assert code == 2
    (line,) = output.splitlines()
    assert line.startswith("gpu-metrics-adapter: nothing to check: ")
    assert str(file) in line
    assert words in line
    assert len(line) < 800
    assert "4711" not in line, "a value may be a password"
    # Beside a good file, which is checked, it is a note only if nothing in it is a manifest.
    (tmp_path / "good.yaml").write_text(GOOD)
    code, output = doctor("-f", tmp_path)
    text = " ".join(output.split())
    assert "read 1 object" in text
    if "no manifest" in words:
        assert code == 0
    elif words in NOTES:
        assert (code, f"note: {file}" in text) == (0, True)
    else:
        assert code == 2
        assert "could not read" in text
        assert f" {file}: " in text
        assert ", 1 could not be read" in text
        code, output = doctor("-f", tmp_path, "-q")
        assert (code, f"{file}: " in " ".join(output.split())) == (2, True)
        code, output = doctor("-f", tmp_path, "-o", "json")
        report = json.loads(output)
        assert (code, report["status"], report["summary"]["unread"]) == (2, 2, 1)
        assert words in report["unread"][0]
        (tmp_path / "good.yaml").write_text(BAD)
        assert doctor("-f", tmp_path)[0] == 1, "an error counts more"


def test_missing_files_and_empty_folders_are_one_line(tmp_path: Path) -> None:
    code, output = doctor("-f", tmp_path / "none.yaml")
    assert (code, len(output.splitlines())) == (2, 1)
    assert "no such file or folder" in output
    code, output = doctor("-f", tmp_path)
    assert (code, len(output.splitlines())) == (2, 1)
    assert "no .yaml" in output


def test_a_large_file_and_many_files_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifestfiles, "MOST_BYTES", 1000)
    monkeypatch.setattr(manifestfiles, "MOST_FILES", 2)
    (tmp_path / "a.yaml").write_text("#" * 2000)
    for name in ("b", "c", "d"):
        (tmp_path / f"{name}.yaml").write_text(GOOD.replace("llm", name))
    code, output = doctor("-f", tmp_path)
    text = " ".join(output.split())
    assert code == 2
    assert f"{tmp_path / 'a.yaml'}: larger than 1000 bytes, left out" in text
    assert "only the first 2 of 4 files were read" in text


def test_a_reason_is_explained_too() -> None:
    code, output = doctor("--explain", "server_unscrapable")
    assert code == 0
    assert "cannot scrape it" in " ".join(output.split())
    assert "annotations" in output
    code, output = doctor("--explain", "server_unscrapeable")
    assert (code, "did you mean server_unscrapable" in output) == (2, True)


def test_explain_and_list() -> None:
    code, output = doctor("--explain", "gma401")
    assert code == 0
    assert "docs/checks.md#gma401" in output
    code, output = doctor("--explain", "GMA999")
    assert (code, len(output.splitlines())) == (2, 1)
    code, output = doctor("--list")
    assert code == 0
    assert output.startswith("GMA001")


GROUPS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: llm, namespace: chat}
spec: {replicas: 2, leaderWorkerTemplate: {size: %s, workerTemplate: {spec: {containers: []}}}}
---
"""


@pytest.mark.parametrize(("size", "findings"), [(1, 0), (4, 1)])
def test_a_group_of_one_pod_is_its_leader(tmp_path: Path, size: int, findings: int) -> None:
    of_groups = GOOD.replace("apps/v1", "leaderworkerset.x-k8s.io/v1").replace(
        "kind: Deployment", "kind: LeaderWorkerSet"
    )
    (tmp_path / "a.yaml").write_text(GROUPS % size + of_groups)
    code, output = doctor("-f", tmp_path)
    assert code == findings
    fix = 'set spec.metrics[0].pods.metric.selector to {"matchLabels": {"aggregate": "mean"}}'
    assert (fix in " ".join(output.split())) is bool(findings)


OTHER_FILES = {
    "values.yaml": "image: {tag: 1.5}\nreplicas: '2'\n",
    "Chart.yaml": "apiVersion: v2\nname: llm\nversion: 1.0\n",
    "kustomization.yaml": "resources: [hpa.yaml]\n",
    "whole-kustomization.yaml": (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nmetadata: {name: a}\nresources: []\n"
    ),
    "widget.yaml": "apiVersion: example.org/v1\nkind: Deployment\nmetadata: {name: 3}\n",
    "chart-values.yaml": "kind: Deployment\nreplicaCount: 2\nmetadata: {labels: {a: b}}\n",
    "gitlab.yml": ".a: {script: !reference [.b, script]}\nc: !vault secret\n",
    "mkdocs.yml": "slugify: !!python/name:pymdownx.slugs.uslugify\n",
    "devcontainer.json": '{\n  // a comment\n  "image": "x"\n}\n',
    "template.yaml": "a: {{ .Values.x }}\n",
    "limits.yaml": "most: .inf\n",
    "empty.yaml": "---\n# nothing\n---\nnull\n",
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_file_that_is_not_a_manifest_leaves_the_result_as_it_is(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "hpa.yaml").write_text(GOOD)
    (tmp_path / name).write_text(OTHER_FILES[name])
    assert doctor("-f", tmp_path, "-q") == (0, "")


def test_an_object_is_read_as_kubectl_sends_it(tmp_path: Path) -> None:
    # Its JSON has texts as keys, and 2 for 2.0. A list of the API server leaves out the kinds.
    deployment = DEPLOYMENT.replace("replicas: 2", "replicas: 2.0").replace("app: llm", "1: llm")
    (tmp_path / "a.yaml").write_text(deployment)
    hpas = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscalerList"}
    row = yaml.safe_load(GOOD)
    del row["kind"], row["apiVersion"]
    (tmp_path / "b.json").write_text(json.dumps({**hpas, "items": [row]}))
    code, output = doctor("-f", tmp_path)
    assert (code, "read 2 objects" in " ".join(output.split())) == (0, True)


V1 = """
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: cpu, namespace: chat%s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 8
  targetCPUUtilizationPercentage: 70
"""


def test_an_hpa_of_autoscaling_v1_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(V1 % "")
    assert doctor("-f", tmp_path, "-q")[0] == 0
    (tmp_path / "b.yaml").write_text(GOOD)
    code, output = doctor("-f", tmp_path, "-q", "--only", "GMA423")
    assert (code, "hpa llm" in output) == (1, True)
    (tmp_path / "a.yaml").write_text(
        V1 % ", annotations: {autoscaling.alpha.kubernetes.io/metrics: '[]'}"
    )
    code, output = doctor("-f", tmp_path, "-q")
    assert (code, "is not checked: use autoscaling/v2" in " ".join(output.split())) == (2, True)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("metrics: []", "spec.metrics does not exist in autoscaling/v1: write autoscaling/v2"),
        ("behavior: {}", "spec.behavior does not exist in autoscaling/v1"),
        (
            'targetCPUUtilizationPercentage: "70"',
            "spec.targetCPUUtilizationPercentage is '70': give a whole number",
        ),
    ],
)
def test_a_field_that_autoscaling_v1_does_not_have_is_not_dropped(
    tmp_path: Path, field: str, words: str
) -> None:
    """The API server drops metrics, and scales on 80 % of the CPU."""
    content = (V1 % "").replace("targetCPUUtilizationPercentage: 70", field)
    (tmp_path / "a.yaml").write_text(content)
    code, output = doctor("-f", tmp_path, "-q")
    assert (code, words in " ".join(output.split())) == (2, True)


KEDA = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: llm, namespace: chat}
spec:
  scaleTargetRef: {name: llm}
  minReplicaCount: 1
  maxReplicaCount: 8
  triggers:
  - type: external
    metadata:
      scalerAddress: gpu-metrics-adapter.gpu-metrics.svc:6000
      metric: gpu_utilization
      target: "70"
"""
REFUSED = {
    ('target: "70"', "target: 70"): (
        "spec.triggers[0].metadata.target is a whole number, and must be a string",
        "write it in quotes",
    ),
    ("maxReplicaCount: 8", 'maxReplicaCount: "8"'): (
        "spec.maxReplicaCount is a string, and must be a whole number",
        "write it without quotes",
    ),
    ("{name: llm}\n", "{kind: Deployment}\n"): (
        "spec.scaleTargetRef.name is missing",
        "add spec.scaleTargetRef.name",
    ),
    ("- type: external", "- metricType: Utilization\n    type: external"): (
        "spec.triggers[0].metricType is Utilization, which KEDA refuses",
        "set spec.triggers[0].metricType to AverageValue for a sum",
    ),
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change[1].strip())
def test_a_field_that_keda_or_its_crd_refuses_is_a_fault(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(KEDA)
    assert doctor("-f", file, "-q") == (0, "")
    file.write_text(KEDA.replace(*change))
    code, output = doctor("-f", file, "-q")
    text = " ".join(output.split())
    message, fix = REFUSED[change]
    assert (code, "GMA426" in text) == (1, True)
    assert f"{message}" in text
    assert f"fix: {fix}" in text


def test_every_field_with_a_wrong_type_is_named_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    wrong = "target: 70\n      activation: 5\n      enableTLS: false"
    file.write_text(KEDA.replace('target: "70"', wrong))
    _, output = doctor("-f", file, "-o", "json", "--only", "GMA426")
    (row,) = json.loads(output)["checks"]
    fields = [finding["message"].split()[0] for finding in row["findings"]]
    keys = ("target", "activation", "enableTLS")
    assert fields == [f"spec.triggers[0].metadata.{key}" for key in keys]


SERVER = "{spec: {containers: [{name: vllm, image: 'vllm/vllm-openai:v0.9.0'}]}}"
SCALED_KINDS = {
    "Deployment": ("apps/v1", f"{{replicas: 3, template: {SERVER}}}"),
    "Rollout": ("argoproj.io/v1alpha1", f"{{replicas: 3, template: {SERVER}}}"),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io/v1",
        f"{{replicas: 3, leaderWorkerTemplate: {{size: 1, workerTemplate: {SERVER}}}}}",
    ),
}


def scaled(kind: str, spec: str = "") -> str:
    """An object of a kind with an HPA."""
    version, usual_spec = SCALED_KINDS[kind]
    hpa = GOOD.replace("apps/v1", version).replace("kind: Deployment", f"kind: {kind}")
    head = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: llm, namespace: chat}}\n"
    return f"{head}spec: {spec or usual_spec}\n---{hpa}"


@pytest.mark.parametrize("kind", SCALED_KINDS)
def test_each_kind_with_a_pod_template_is_judged(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(scaled(kind))
    _, output = doctor("-f", file, "-q")
    text = " ".join(output.split())
    assert f"{kind.lower()} chat/llm in {file}: its manifest sets replicas 3" in text
    assert "container vllm (vLLM) has no readiness probe" in text
    assert "its pods request no GPU" not in text
    # Without replicas and with a probe, nothing is left.
    probed = (
        SCALED_KINDS[kind][1]
        .replace("replicas: 3, ", "")
        .replace(
            "{name: vllm,",
            "{name: vllm, readinessProbe: {}, resources: {limits: {nvidia.com/gpu: 1}},",
        )
    )
    file.write_text(scaled(kind, probed))
    assert doctor("-f", file, "-q") == (0, "")


def test_the_leader_of_a_group_serves_and_its_workers_may_have_the_gpus(tmp_path: Path) -> None:
    worker = SERVER.replace("{name: vllm,", "{name: w, resources: {limits: {nvidia.com/gpu: 8}},")
    leader = "{spec: {containers: [{name: proxy, image: 'example.org/proxy'}]}}"
    group = f"{{size: 1, leaderTemplate: {leader}, workerTemplate: {worker}}}"
    file = tmp_path / "a.yaml"
    file.write_text(scaled("LeaderWorkerSet", f"{{leaderWorkerTemplate: {group}}}"))
    assert doctor("-f", file, "-q") == (0, "")


def test_a_rollout_may_have_the_template_of_a_deployment(tmp_path: Path) -> None:
    reference = "{workloadRef: {apiVersion: apps/v1, kind: Deployment, name: server}}"
    file = tmp_path / "a.yaml"
    file.write_text(scaled("Rollout", reference))
    assert doctor("-f", file, "-q") == (0, ""), "its pods are not known"
    deployment = DEPLOYMENT.replace("name: llm", "name: server").replace(
        "{spec: {containers: []}}", SERVER
    )
    (tmp_path / "b.yaml").write_text(deployment)
    _, output = doctor("-f", tmp_path, "-q", "--only", "GMA453")
    assert f"rollout chat/llm in {file}: container vllm" in " ".join(output.split())
