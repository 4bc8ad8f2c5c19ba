"""Checks of the pods that HPAs want: they exist, run, and serve. The causes are those of `explain`.

One cause of many HPAs is one finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from adapter.answers.causes import Cause, CauseCode, group_causes
from adapter.figures import count
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.hpacauses import of_codes
from adapter.tools.doctor.model import CheckSection, Finding, check


def findings(facts: Facts, *codes: CauseCode) -> Iterator[Finding]:
    """Yield the causes of these kinds as findings; raises UnreadError."""
    for cause, hpas in group_causes((hpa.subject, cause) for hpa, cause in of_codes(facts, *codes)):
        first, *others = hpas
        yield Finding(first, cause.text, cause.fix, cause.command, concerns=tuple(others))


@check("GMA431", CheckSection.HPAS, "quotas leave room for the pods of HPAs")
def quota(facts: Facts) -> Iterator[Finding]:
    """A ResourceQuota of the namespace is used up, or needs requests that the pod template lacks.
    Only the events of the ReplicaSet (`FailedCreate`) say why pods are missing.

    Raise the quota, or lower `maxReplicas` to what it allows.
    """
    yield from findings(facts, CauseCode.QUOTA)
    facts.replicasets.read()
    facts.events.read()


@check("GMA432", CheckSection.HPAS, "admission lets in the pods of HPAs")
def admission(facts: Facts) -> Iterator[Finding]:
    """Pod Security of the namespace, a webhook, a LimitRange or another admission plugin forbids
    pods that an HPA wants, or their ServiceAccount does not exist.

    For Pod Security, the printed command corrects the pod template.
    """
    yield from findings(facts, CauseCode.POD_SECURITY, CauseCode.ADMISSION)
    facts.replicasets.read()
    facts.events.read()


@check("GMA433", CheckSection.HPAS, "the pods of HPAs do not crash")
def crash_loop(facts: Facts) -> Iterator[Finding]:
    """A container ends again and again (`CrashLoopBackOff`). Such a pod has no value, and holds its
    GPU.

    The log of the last run says why it ended. The message of its end is shown if the container has
    `terminationMessagePolicy: FallbackToLogsOnError`.
    """
    yield from findings(facts, CauseCode.CRASH_LOOP)


@check("GMA434", CheckSection.HPAS, "the pods of HPAs have enough memory")
def out_of_memory(facts: Facts) -> Iterator[Finding]:
    """A container reached `limits.memory` and was killed (`OOMKilled`), in the last hour or for as
    long as it is not ready. This is memory of the node: a server that exhausts the memory of a GPU
    ends with an error in its log.

    Raise the limit. The printed command doubles it.
    """
    yield from findings(facts, CauseCode.OUT_OF_MEMORY)


@check("GMA435", CheckSection.HPAS, "the images of HPAs' pods can be pulled")
def image_pull(facts: Facts) -> Iterator[Finding]:
    """The kubelet cannot pull an image (`ErrImagePull`, `ImagePullBackOff`).

    The message of the registry says whether the image does not exist, the registry wants a Secret,
    or the node does not reach it.
    """
    yield from findings(facts, CauseCode.IMAGE_PULL)


@check("GMA436", CheckSection.HPAS, "the containers of HPAs' pods can be started")
def container_config(facts: Facts) -> Iterator[Finding]:
    """The kubelet cannot start a container: a Secret or ConfigMap does not exist
    (`CreateContainerConfigError`), the container runtime fails (`RunContainerError`), such as
    NVIDIA's without a driver, a volume cannot be attached (`FailedAttachVolume`), there is no
    sandbox (`FailedCreatePodSandBox`), or the kubelet rejects each pod
    (`UnexpectedAdmissionError`).

    Create what the message names, or correct the pod template; for a rejection, see the device
    plugin of the node.
    """
    yield from findings(facts, CauseCode.CONTAINER_CONFIG)


@check("GMA437", CheckSection.HPAS, "the pods of HPAs become ready")
def never_ready(facts: Facts) -> Iterator[Finding]:
    """A pod has not been ready for 15 minutes or more: its readiness or startup probe fails, an
    init container does not end, no program meets its readiness gate, or its node does not answer.

    The last message of the probe is shown. See the log of the server, or correct the probe.
    """
    yield from findings(facts, CauseCode.NEVER_READY)


@check("GMA438", CheckSection.HPAS, "the pods of HPAs find a node")
def placement(facts: Facts) -> Iterator[Finding]:
    """A pod has waited for a node for a minute or more: no toleration for the taint of the GPU
    nodes, a cordoned node, a scheduling gate such as Kueue's, or no node with room. The finding
    says who holds the GPUs, which label no node has, why a claim of a volume or of devices is not
    bound, and what a node autoscaler says.

    GMA012 has nodes that do not offer their GPUs.
    """
    codes = (CauseCode.TAINT, CauseCode.UNSCHEDULABLE, CauseCode.SCHEDULING_GATE)
    yield from findings(facts, *codes)
    facts.nodes.read()


@check("GMA439", CheckSection.HPAS, "rollouts of HPAs' targets go on")
def rollout(facts: Facts) -> Iterator[Finding]:
    """A Deployment adds a new pod before it ends an old one (`maxSurge`), and ends no old one
    before the new one is ready (`maxUnavailable` is 0: 25 % of fewer than four pods). Without a
    free GPU, the new pod waits for that of the old one forever. Or the Deployment is paused
    (`spec.paused`), waits `minReadySeconds` after each pod, or has made no progress for
    `progressDeadlineSeconds`.

    Set `maxSurge: 0` and `maxUnavailable: 1`, or the strategy `Recreate`; resume a paused rollout.
    """
    yield from findings(facts, CauseCode.ROLLOUT)


@check("GMA440", CheckSection.HPAS, "the devices of HPAs' pods are healthy")
def devices(facts: Facts) -> Iterator[Finding]:
    """A pod holds a device that its plugin or DRA driver reports unhealthy
    (`allocatedResourcesStatus`), or waits for a device that has a taint of its own (a ResourceSlice
    or a DeviceTaintRule).

    Delete the pod, so that it gets another device, and repair the node.
    """
    yield from findings(facts, CauseCode.DEVICE_UNHEALTHY, CauseCode.DEVICE_TAINT)
    facts.slices.read()


@check("GMA441", CheckSection.HPAS, "selectors of HPAs' targets match no other pods")
def foreign_pods(facts: Facts) -> Iterator[Finding]:
    """The selector of an HPA's target also matches pods of another workload, or of none. The HPA
    controller reads the values of all these pods.

    Give each workload a label of its own, in its selector and in its pods.
    """
    yield from findings(facts, CauseCode.FOREIGN_PODS)


@check("GMA442", CheckSection.HPAS, "nobody else sets the size of HPAs' targets")
def replicas_reset(facts: Facts) -> Iterator[Finding]:
    """Another program sets the size back: Argo CD or Flux with `spec.replicas` in git, an operator,
    or a script. `metadata.managedFields` names it.

    Remove `spec.replicas` from what that program applies.
    """
    yield from findings(facts, CauseCode.REPLICAS_RESET)
    facts.events.read()


@check("GMA443", CheckSection.HPAS, "the HPA controller runs")
def controller(facts: Facts) -> Iterator[Finding]:
    """kube-controller-manager does not renew its lease, an HPA has no status a minute after it was
    created, or a target is outside of `minReplicas` and `maxReplicas` a minute after they were
    changed. Nothing scales.

    See why kube-controller-manager does not run. In a managed cluster, ask the provider.
    """
    yield from findings(facts, CauseCode.CONTROLLER_STOPPED)


@check("GMA444", CheckSection.HPAS, "the other metrics APIs of HPAs are served")
def metrics_apis(facts: Facts) -> Iterator[Finding]:
    """An HPA asks for CPU or memory and nothing serves `metrics.k8s.io`, or for an External metric
    and nothing serves `external.metrics.k8s.io`; or the server does not answer; or another program
    than KEDA serves the External metrics of KEDA's HPAs, or KEDA those of other HPAs.

    Install metrics-server, turn on `externalMetrics.enabled`, or see why the server does not
    answer.
    """
    codes = (CauseCode.METRICS_API_MISSING, CauseCode.METRICS_API_DOWN, CauseCode.METRICS_API_TAKEN)
    rows = of_codes(facts, *codes)
    foreign = [
        (hpa.subject, cause) for hpa, cause in rows if not _is_checked_elsewhere(facts, cause)
    ]
    for cause, hpas in group_causes(foreign):
        more = f" and {count(len(hpas) - 1, 'hpa')} more" if len(hpas) > 1 else ""
        yield Finding(f"{hpas[0]}{more}", cause.text, cause.fix, cause.command)
    facts.apiservices.read()


def _is_checked_elsewhere(facts: Facts, cause: Cause) -> bool:
    """Return whether GMA004 to GMA008 look at an API."""
    subject = cause.subject
    if cause.code is CauseCode.METRICS_API_TAKEN:
        return False
    if "custom.metrics.k8s.io" in subject:
        # GMA004 misses the adapter's registrations only where the adapter is.
        absent = facts.release.known and facts.release.value is None
        return not (absent and cause.code is CauseCode.METRICS_API_MISSING)
    # They look at every APIService of external metrics that exists.
    name = subject.removeprefix("apiservice ")
    registered = {apiservice.metadata.name for apiservice in facts.apiservices.value or ()}
    return "external.metrics.k8s.io" in subject and name in registered
