"""The values that users know from other charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from charts.generate.schema import OTHER_CHARTS
from tests.e2e import crds
from tests.e2e.apiservice import NAMESPACE, SERVICE
from tests.e2e.chart import FOLDER, RIGHTS, helm, one, pod_of, pods, render
from tests.e2e.chartvalues import ACCOUNTS, CONVENTIONS, EVERYTHING, HOST_NETWORK
from tests.e2e.cluster import Object, RefusedError
from tests.e2e.process import wait_until
from tests.e2e.serverside import apply
from tests.e2e.stage import Stage

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

HERE = CONVENTIONS | {
    "namespaceOverride": "",
    "fullnameOverride": SERVICE,
    "serviceMonitor": {"enabled": False},
}
"""With the Service of the stage's APIServices, and no kind that it lacks."""
OTHERS = {
    "prometheus-adapter": """
        affinity topologySpreadConstraints image logLevel metricsRelistInterval listenPort
        nodeSelector priorityClassName namespaceOverride customAnnotations customLabels prometheus
        replicas podSecurityContext securityContext rbac psp serviceAccount dnsConfig resources
        livenessProbe readinessProbe rules service tls env extraArguments extraVolumes
        extraVolumeMounts tolerations podLabels podAnnotations deploymentAnnotations hostNetwork
        dnsPolicy strategy podDisruptionBudget certManager extraManifests extraContainers
    """,
    "metrics-server": """
        image imagePullSecrets nameOverride fullnameOverride serviceAccount rbac apiService
        commonLabels podLabels podAnnotations podSecurityContext securityContext priorityClassName
        containerPort hostNetwork replicas revisionHistoryLimit updateStrategy podDisruptionBudget
        defaultArgs args livenessProbe readinessProbe service metrics serviceMonitor resources
        extraVolumeMounts extraVolumes nodeSelector tolerations affinity topologySpreadConstraints
        dnsConfig deploymentAnnotations schedulerName
    """,
    "dcgm-exporter": """
        image arguments imagePullSecrets nameOverride fullnameOverride namespaceOverride
        runtimeClassName serviceAccount rollingUpdate podLabels podAnnotations podSecurityContext
        securityContext service resources serviceMonitor nodeSelector tolerations affinity
        extraHostVolumes extraConfigMapVolumes extraVolumeMounts extraEnv tlsServerConfig
    """,
    "a new chart of Helm's": """
        replicaCount image imagePullSecrets nameOverride fullnameOverride serviceAccount
        podAnnotations podLabels podSecurityContext securityContext service resources livenessProbe
        readinessProbe nodeSelector tolerations affinity
    """,
}
"""Chart -> its top-level values, as its values.yaml had them."""


@pytest.mark.parametrize("chart", OTHERS)
def test_each_value_of_another_chart_exists_or_is_answered(chart: str) -> None:
    own = yaml.safe_load((FOLDER / "values.yaml").read_text())
    answered = {path.partition(".")[0] for path in yaml.safe_load(OTHER_CHARTS.read_text())}
    assert set(OTHERS[chart].split()) - own.keys() - answered == set()


def test_a_pasted_value_is_answered_with_the_name_of_this_chart(stage: Stage) -> None:
    """All of them at once, a line for each."""
    pasted = {
        "replicaCount": 3,
        "image": {"pullSecrets": [{"name": "pull"}]},
        "prometheus": {"url": "http://prometheus.monitoring.svc"},
        "rules": {"existing": "prometheus-adapter"},
        "metricsRelistInterval": "1m",
        "podDisruptionBudget": {"enabled": True},
    }
    done = seen(stage, "install", pasted)
    answers = [line for line in done.stderr.splitlines() if "is a value of other charts" in line]
    assert [line.split("1:4): ")[-1] for line in answers] == [
        "image.pullSecrets is a value of other charts: use imagePullSecrets",
        "metricsRelistInterval is a value of other charts: use config.rules.relist_interval",
        (
            "podDisruptionBudget.enabled is a value of other charts: this chart has no such "
            "value; there is always a budget"
        ),
        (
            "prometheus is a value of other charts: use config.source.prometheus.url, with port "
            "and path in it"
        ),
        "replicaCount is a value of other charts: use replicas",
        "rules.existing is a value of other charts: use rules.existingConfigMap.name",
    ]


@pytest.mark.parametrize("path", yaml.safe_load(OTHER_CHARTS.read_text()))
def test_an_answer_names_values_that_exist(path: str) -> None:
    """Each word of an answer that looks like a key of the chart is one."""
    own = yaml.safe_load((FOLDER / "values.yaml").read_text())
    schema = yaml.safe_load((FOLDER / "values.schema.json").read_text())
    for word in yaml.safe_load(OTHER_CHARTS.read_text())[path].replace(",", " ").split():
        key = word.strip(":;()").split(".")
        if key[0] == "config" and key[1:]:
            row = schema["properties"]["config"]
            for name in key[1:]:
                row = row["properties"][name]
                row = (
                    schema["definitions"][row["$ref"].rpartition("/")[2]] if "$ref" in row else row
                )
        elif key[0] in own and key[1:] and key != ["updateStrategy", "rollingUpdate"]:
            place = own
            for name in key:
                place = place[name]


def test_names_labels_and_annotations_are_those_given() -> None:
    objects = render(CONVENTIONS, release="r1", namespace="releases")
    ours = [obj for obj in objects if obj["metadata"]["name"] not in ("settings", "r1-more")]
    for obj in ours:
        meta = obj["metadata"]
        assert meta.get("namespace") in (None, "charted", "kube-system"), meta
        assert meta["labels"]["team"] == ("watch" if obj["kind"] == "ServiceMonitor" else "ml")
        # The chart's own labels stay what they are.
        assert meta["labels"]["app.kubernetes.io/version"] != "mine"
        assert meta["labels"]["app.kubernetes.io/name"].startswith("conventional")
        assert meta["annotations"]["example/owner"] == "ml"
    for pod in pods(ours):
        assert pod["metadata"]["labels"]["team"] == "gpu"
    assert one(objects, "Service", "ours")["metadata"]["annotations"] == {
        "example/owner": "ml",
        "example/topology": "auto",
    }
    assert one(objects, "ConfigMap", "settings")["data"] == {"SERVICE": "ours"}
    assert one(objects, "ConfigMap", "r1-more")
    named = render({"nameOverride": "gma"}, release="r1", only=["service"])
    assert named[0]["metadata"]["name"] == "r1-gma"


def test_each_component_has_its_account_and_its_place() -> None:
    objects = render(CONVENTIONS)
    seen = {}
    for pod in pods(objects):
        spec = pod["spec"]
        name = pod["metadata"]["labels"]["app.kubernetes.io/name"]
        seen[name] = (spec["serviceAccountName"], spec["nodeSelector"]["pool"])
        assert spec["imagePullSecrets"] == [{"name": "pull"}]
        container = spec["containers"][0]
        assert container["image"].startswith("registry.example:5000/team/gma:")
        assert spec["securityContext"]["supplementalGroups"] == [1000650000]
        assert spec["securityContext"]["runAsUser"] == 65532
        assert "fsGroup" not in spec["securityContext"]
        assert container["securityContext"]["privileged"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert seen == {
        "conventional": ("serving", "system"),
        "conventional-nodepool": ("pooling", "cpu"),
        "conventional-maintain": ("renewing", "jobs"),
    }
    accounts = [obj for obj in objects if obj["kind"] == "ServiceAccount"]
    assert {row["metadata"]["name"] for row in accounts} == {"serving", "pooling", "renewing"}
    bound = {row["name"] for obj in objects for row in obj.get("subjects", ())}
    assert bound == {"serving", "pooling", "renewing"}
    policy = yaml.safe_dump_all(
        obj for obj in objects if obj["kind"] == "ValidatingAdmissionPolicy"
    )
    assert "system:serviceaccount:charted:pooling" in policy


def test_the_deployments_are_as_given() -> None:
    objects = render(CONVENTIONS)
    serve, pool = one(objects, "Deployment", "ours"), one(objects, "Deployment", "ours-nodepool")
    assert serve["spec"]["strategy"] == CONVENTIONS["updateStrategy"]
    for obj in (serve, pool):
        assert obj["spec"]["revisionHistoryLimit"] == 0
        (spread,) = obj["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert spread["whenUnsatisfiable"] == "DoNotSchedule"
        assert spread["labelSelector"] == obj["spec"]["selector"]
        container = obj["spec"]["template"]["spec"]["containers"][0]
        assert container["env"][:2] == CONVENTIONS["env"]
        assert container["envFrom"] == CONVENTIONS["envFrom"]
    spec = serve["spec"]["template"]["spec"]
    assert [row["name"] for row in spec["containers"]] == ["serve", "beside"]
    assert [row["name"] for row in spec["initContainers"]] == ["first"]
    assert (spec["dnsPolicy"], spec["dnsConfig"]) == ("Default", CONVENTIONS["dnsConfig"])
    assert CONVENTIONS["extraVolumeMounts"][0] in spec["containers"][0]["volumeMounts"]
    assert CONVENTIONS["extraVolumes"][0] in spec["volumes"]


def test_without_rbac_no_role_and_no_account_is_created() -> None:
    assert RIGHTS & {obj["kind"] for obj in render()}
    features = {name: EVERYTHING[name] for name in ("externalMetrics", "keda")}
    kinds = {obj["kind"] for obj in render(ACCOUNTS | features)}
    assert not (RIGHTS | {"ServiceAccount"}) & kinds


@pytest.mark.parametrize(
    ("values", "ports", "surge"),
    [
        ({}, {"https": 6443, "grpc": 6000, "probes": 8080}, 1),
        (HOST_NETWORK, {"https": 17443, "grpc": 17600, "probes": 17808}, 0),
        (
            {"hostNetwork": {"enabled": True, "port": 9001, "kedaPort": 9002, "probePort": 9003}},
            {"https": 9001, "grpc": 9002, "probes": 9003},
            0,
        ),
        (
            HOST_NETWORK | {"config": {"server": {"port": 7443}}},
            {"https": 7443, "grpc": 17600, "probes": 17808},
            0,
        ),
    ],
    ids=["off", "on", "own ports", "the settings' port"],
)
def test_the_network_of_the_nodes(
    values: Mapping[str, Any], ports: Mapping[str, int], surge: int
) -> None:
    deployment = one(render(values, only=["deployment"]), "Deployment")["spec"]
    spec = deployment["template"]["spec"]
    container_ports = {row["name"]: row["containerPort"] for row in spec["containers"][0]["ports"]}
    assert container_ports == ports
    assert deployment["strategy"]["rollingUpdate"]["maxSurge"] == surge
    assert spec.get("hostNetwork", False) is (surge == 0)
    assert spec.get("dnsPolicy") == (None if surge else "ClusterFirstWithHostNet")


def test_null_removes_a_field_and_openshift_chooses_the_user() -> None:
    pod = pod_of({"podSecurityContext": {"runAsUser": None, "fsGroup": 2000}})
    assert pod["spec"]["securityContext"] == {
        "runAsNonRoot": True,
        "runAsGroup": 65532,
        "fsGroup": 2000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"serviceAccount": {"create": False}}, "name an existing ServiceAccount in serviceAcc"),
        (
            {"rbac": {"create": False}, "hpaReader": {"create": True}},
            "hpaReader.create needs rbac.create",
        ),
        (
            {"commonLabels": {"app.kubernetes.io/instance": "x"}},
            "commonLabels must not set app.kubernetes.io/instance",
        ),
        (
            {"env": [{"name": "GMA_KEDA__ENABLED", "value": "false"}]},
            "env must not set GMA_KEDA__ENABLED, which the chart sets",
        ),
        (
            {"updateStrategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}},
            "updateStrategy.type is Recreate: remove updateStrategy.rollingUpdate",
        ),
        ({"hostNetwork": True}, "at '/hostNetwork': got boolean, want object"),
        ({"hostNetwork": {"port": 443}}, "at '/hostNetwork/port': minimum"),
        ({"namespaceOverride": "A"}, "at '/namespaceOverride'"),
        ({"podSecurityContext": {"runAsUsr": 1}}, "additional properties 'runAsUsr' not allowed"),
        ({"extraArgs": "--log-level=debug"}, "at '/extraArgs': got string, want array"),
        ({"nodepool": {"nodeSelector": {"a": 1}}}, "at '/nodepool/nodeSelector/a'"),
    ],
    ids=str,
)
def test_a_mistake_is_refused_by_name(values: Mapping[str, Any], words: str) -> None:
    done = helm("template", SERVICE, FOLDER, values=values)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"serviceMonitor": {"enabled": True}},
            (
                "this cluster has no kind ServiceMonitor (monitoring.coreos.com/v1): install the "
                "Prometheus operator first, or set serviceMonitor.enabled=false"
            ),
        ),
        ({"alerts": {"enabled": True}}, "has no kind PrometheusRule"),
        (
            {"certificate": {"mode": "certManager"}},
            (
                "has no kind Certificate (cert-manager.io/v1): install cert-manager first, or set "
                "certificate.mode=selfSigned"
            ),
        ),
    ],
    ids=["monitor", "alerts", "certificate"],
)
def test_a_missing_kind_is_named_with_the_value(
    bare: Stage, values: Mapping[str, Any], words: str
) -> None:
    done = seen(bare, "install", values)
    assert done.returncode != 0
    assert words in done.stderr


@pytest.fixture
def bare(stage: Stage) -> Stage:
    """The stage, without the kinds of other projects."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    groups = ("monitoring.coreos.com", "cert-manager.io")
    for row in stage.admin.get(path)["items"]:
        if row["spec"]["group"] in groups:
            stage.admin.delete(f"{path}/{row['metadata']['name']}")
    wait_until(lambda: not known(stage, groups), f"nothing of {groups} is left")
    return stage


def known(stage: Stage, groups: tuple[str, ...]) -> bool:
    rows = stage.admin.get("/apis")["groups"]
    return any(row["name"] in groups for row in rows)


def seen(stage: Stage, command: str, values: Mapping[str, Any]) -> Any:
    """What helm does where it sees the cluster, without a trace."""
    where = [f"--namespace={NAMESPACE}", f"--kubeconfig={stage.plane.kubeconfig}"]
    # The stage's adapter has the APIServices, and Helm did not create them.
    adopt = ["--take-ownership"] if command == "install" else []
    return helm(command, SERVICE, FOLDER, *where, *adopt, "--dry-run=server", values=values)


def test_a_hook_without_an_account_is_refused(stage: Stage) -> None:
    done = seen(stage, "template", {"hooks": {"serviceAccount": {"create": False}}})
    assert "name an existing ServiceAccount in hooks.serviceAccount.name" in done.stderr
    rows = filter(None, yaml.safe_load_all(seen(stage, "template", HERE).stdout))
    hooks = [row for row in rows if "helm.sh/hook" in row["metadata"].get("annotations", {})]
    jobs = {row["metadata"]["labels"]["app.kubernetes.io/component"]: row for row in hooks}
    for component, account in (("unregister", "removing"), ("doctor", "testing")):
        spec = jobs[component]["spec"]["template"]["spec"]
        assert (spec["serviceAccountName"], spec["nodeSelector"]) == (account, {"pool": "hooks"})


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({}, "HorizontalPodAutoscaler"),
        ({"apiServices": {"create": False}}, "ScaledObject"),
        ({"apiServices": {"create": False}, "keda": {"enabled": False}}, ""),
        ({"view": {"enabled": False}, "tests": {"enabled": False}}, "HorizontalPodAutoscaler"),
        (HOST_NETWORK, "HorizontalPodAutoscaler"),
        (HERE, "HorizontalPodAutoscaler"),
    ],
    ids=["default", "keda", "neither", "least", "host", "conventions"],
)
def test_the_notes_end_in_three_commands_and_an_autoscaler_that_fits(
    stage: Stage, values: Mapping[str, Any], kind: str
) -> None:
    crds.install(stage.admin, crds.KEDA)
    done = seen(stage, "install", values)
    assert done.returncode == 0, done.stderr
    text = done.stdout.partition("\nNOTES:\n")[2]
    _, _, end = text.partition("\nNext:\n\n")
    commands, _, rest = end.partition("\n\n")
    assert len(list(told(commands))) == 3, commands
    assert max(map(len, text.splitlines())) < 200
    manifest = rest.partition("  apiVersion: ")[2]
    assert bool(manifest) is bool(kind)
    if kind:
        made: Object = yaml.safe_load("apiVersion: " + manifest.replace("\n  ", "\n"))
        assert made["kind"] == kind
        try:
            apply(stage.admin, made)
        except RefusedError as error:
            raise AssertionError(f"{made}: {error}") from None


def told(commands: str) -> Iterator[str]:
    for line in commands.splitlines():
        assert line.startswith("  "), line
        yield line.split()[0]
