"""The reasons of absences in words: what each means, the fix, and a command to paste.

One table for the API's messages, the view API, ``explain``, the log and the page
``docs/reasons.md``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from adapter.pipeline.attribution.reading import Absence
from adapter.pipeline.cluster.changes import ChangedObject, ObjectChange, annotate, set_env
from adapter.pipeline.cluster.fixes import Fix, make_lasting
from adapter.pipeline.cluster.lookup import workload_kind
from adapter.pipeline.cluster.managers import manager_of
from adapter.pipeline.cluster.optin import PREFIX
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.cluster.workload import workloads

DOCTOR: Final = "gpu-metrics-adapter doctor"
PAGE: Final = "docs/reasons.md"
_POD: Final = "kubectl -n {namespace} describe pod {pod}"
_ON_NODE: Final = "kubectl get pods -A -o wide --field-selector spec.nodeName={node}"
_LOGS: Final = "kubectl -n {exporter_namespace} logs {exporter} --tail=20"
_TEMPLATED: Final = ("DaemonSet", "Deployment", "StatefulSet")
"""Kinds whose pod template is at ``spec.template``."""
_OF_LEADERS: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of pods whose StatefulSet is overwritten by what is above it."""
_RESTART: Final = "kubectl -n {exporter_namespace} delete pod {exporter}"


def doctor(*checks: str) -> str:
    """Return the command that runs doctor, with the checks that have the cause and its fix.

    Args:
        checks: ids. The fixes of their findings do not lead back to ``explain``.
    """
    return f"{DOCTOR} # {', '.join(checks)}"


class ReasonChange(NamedTuple):
    """A change of an object that a reason calls for."""

    of: Callable[[Pod | None, Pod | None], ChangedObject | None]
    """Returns the object for the pod without a value and the exporter's pod; None if it is not
    known."""
    make: Callable[[ChangedObject], ObjectChange]
    example: ChangedObject
    """An object for the documentation."""


class AbsenceCause(NamedTuple):
    """What a reason means, and what to do."""

    cause: str
    """One sentence."""
    fix: str
    """One or two sentences; no placeholders."""
    command: str = ""
    """A shell command with placeholders: ``namespace``, ``pod``, ``node``, ``exporter`` (a pod),
    ``exporter_namespace``, ``exporter_owner`` (``daemonset/NAME``). Empty if the fix is not one."""
    then: str = ""
    """A command for the case that the first one shows no cause."""
    change: ReasonChange | None = None
    """The fix, if it changes an object; how depends on what manages the object."""


class Explanation(NamedTuple):
    """An absence in words."""

    reason: str
    message: str
    """What is known about this case, in one line."""
    hint: str
    """A command to paste, or the fix if no command can be named."""
    docs: str
    """Page and heading about the reason."""
    then: str = ""
    """A command for the case that the first one shows no cause; empty without one."""
    changes: str = ""
    """``KIND/NAMESPACE/NAME`` of the object that the fix changes; empty if it changes none. The
    reader of the explanation may look what manages it: :func:`lasting_fix`."""


_POD_MAPPING: Final = "DCGM_EXPORTER_KUBERNETES"
_EXPORTER: Final = ChangedObject("DaemonSet", "EXPORTER-NAMESPACE", "DCGM-EXPORTER")
_WORKLOAD: Final = ChangedObject("Deployment", "NAMESPACE", "WORKLOAD")
_VIRTUAL_GPUS: Final = "KUBERNETES_VIRTUAL_GPUS"
"""With it, dcgm-exporter has a sample for each pod that shares a device (its ``--help``)."""
_POD_UID: Final = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"


def _workload(pod: Pod | None, exporter: Pod | None) -> ChangedObject | None:
    """Return the workload whose pod template a patch can change."""
    above = workloads(pod) if pod is not None else ()
    if pod is None or not above or _OF_LEADERS in pod.labels:
        return None
    _, kind = workload_kind(above[-1].resource, pod)
    namespace, labels = pod.ref.namespace, pod.labels
    # The labels of a pod are those of its template, with which some operators name themselves.
    manager = manager_of({"labels": labels, "namespace": namespace})
    of = ChangedObject(kind, namespace, above[-1].name, manager)
    return of if kind in _TEMPLATED else None


def _dcgm_exporter(pod: Pod | None, exporter: Pod | None) -> ChangedObject | None:
    """Return the workload of a dcgm-exporter: other exporters do not read its variables."""
    if exporter is None or not any(
        "dcgm" in text for text in (exporter.ref.name, *exporter.labels.values())
    ):
        return None
    return _workload(exporter, None)


REASONS: Final[Mapping[str, AbsenceCause]] = {
    # No sample names the pod.
    "no_exporter_on_node": AbsenceCause(
        "No exporter reports devices of the node.",
        "Run the exporter's DaemonSet on the node: check its node selector and tolerations. "
        "With Prometheus as the source, check that the target is "
        "up and its series show their node.",
        doctor("GMA101"),
    ),
    "exporter_down": AbsenceCause(
        "The exporter of the node does not answer, or its samples are too old.",
        "Repair the exporter, or the network to it. If its log shows no cause, delete its pod.",
        _LOGS,
        _RESTART,
    ),
    "exporter_refuses": AbsenceCause(
        "The exporter of the node answers, but not with its page.",
        "The message says what the exporter answers, and which setting changes it: scheme, "
        "path, tls_config, authorization or basic_auth of a rule in source.scrape.exporters "
        "(docs/sources.md).",
        doctor("GMA104", "GMA105"),
    ),
    "exporter_without_devices": AbsenceCause(
        "The exporter of the node answers, but its page has no device that the adapter can "
        "identify.",
        "Check that the exporter sees the driver. Each sample needs a UUID or an index.",
        _LOGS,
    ),
    "exporter_names_no_pod": AbsenceCause(
        "The exporter of the node answers, but names no pod for any device.",
        "Turn on the exporter's pod mapping, and mount the kubelet's pod-resources directory. With "
        "Prometheus as the source, check first that the scrape job keeps the exporter's labels: "
        "pod and namespace, or exported_pod and exported_namespace.",
        change=ReasonChange(
            _dcgm_exporter, partial(set_env, name=_POD_MAPPING, value="true"), _EXPORTER
        ),
    ),
    "pods_of_device_not_named": AbsenceCause(
        "Several pods have a device, and the exporter names none of them.",
        "Give each pod a device of its own, or use a metric of the inference server.",
    ),
    "device_named_for_other_pod": AbsenceCause(
        "The exporter names other pods for all devices of the node.",
        "If pods share the devices, enable a sharing policy (docs/sharing.md). Otherwise the "
        "exporter's pod mapping is outdated: restart the exporter.",
        _RESTART,
    ),
    "pod_not_named": AbsenceCause(
        "The exporter names other pods, but not this one.",
        "Wait for two reads of the exporter if the pod is new. Otherwise restart the exporter.",
        _RESTART,
    ),
    "claim_not_named": AbsenceCause(
        "The pod requests no GPU resource, and no sample names it. It has a resource claim, of "
        "a GPU or of a network card.",
        "For a GPU, let the exporter name pods by claims: dcgm-exporter 4.4.0 or newer with "
        "KUBERNETES_ENABLE_DRA=true.",
        "kubectl -n {namespace} get resourceclaims",
    ),
    "reservation_pod_not_named": AbsenceCause(
        "The pod has a fraction of a GPU by KAI-Scheduler or Run:ai, and no sample names the pod "
        "that reserves the GPU of its group, or several pods with a GPU have the group's label.",
        "Check that the reservation pod of the group runs on the node, that no other pod has "
        "its label, and that the exporter names it.",
        "kubectl get pods -A -l runai-gpu-group --field-selector spec.nodeName={node}",
    ),
    "passed_to_virtual_machine": AbsenceCause(
        "The pod runs a virtual machine, and its GPU is passed through: no exporter of the node "
        "can read it.",
        "Run an exporter inside the virtual machine, and serve its series with a rule or an entry "
        "of `metrics` (docs/sources.md).",
    ),
    "vendor_names_no_pod": AbsenceCause(
        "The vendor's exporter names no pod for any device.",
        "Use a metric of the inference server, such as inference_requests_waiting.",
    ),
    "samples_rejected": AbsenceCause(
        "Samples name the pod, and none of them names a device that the adapter can identify.",
        "Each sample needs a UUID or an index, in a label of at most 1,024 characters. "
        "docs/troubleshooting.md explains the reason that the message names.",
        _LOGS,
    ),
    "server_not_scraped": AbsenceCause(
        "The pod does not opt in to have its server page scraped.",
        'Opt in with the annotation gpu-metrics-adapter.io/scrape: "true" in the pod template of '
        "the workload (docs/inference.md).",
        change=ReasonChange(
            _workload, partial(annotate, notes={f"{PREFIX}scrape": "true"}), _WORKLOAD
        ),
    ),
    "server_not_in_store": AbsenceCause(
        "The store has no sample of an inference server that names the pod.",
        "Have the job that scrapes the server write the labels pod and namespace, as a "
        "PodMonitor does (docs/sources.md).",
    ),
    "server_unscrapable": AbsenceCause(
        "The pod opts in to have its server page scraped, and the adapter cannot scrape it.",
        "Correct the annotations gpu-metrics-adapter.io/port, /path and /scheme. Two pods with "
        "one address, or a pod without an address, cannot be scraped either.",
        doctor("GMA502", "GMA505"),
    ),
    "server_down": AbsenceCause(
        "The pod's server page does not answer.",
        "Check the server, and the annotations gpu-metrics-adapter.io/port and /path.",
        "kubectl -n {namespace} logs {pod} --tail=20",
    ),
    "server_refuses": AbsenceCause(
        "The pod's server answers, but not with its page.",
        "The message says what the server answers. Correct the annotations "
        "gpu-metrics-adapter.io/port, /path and /scheme. The "
        "adapter sends no credentials to a server page (docs/inference.md).",
        doctor("GMA503"),
    ),
    "server_page_unknown": AbsenceCause(
        "The pod's server page answers, and has no series that the adapter reads.",
        "Turn the metrics of the server on, or correct the annotations gpu-metrics-adapter.io/port "
        "and /path. For a server that docs/inference.md does not list, add an entry of `metrics` "
        "with the name of its series.",
        doctor("GMA504"),
    ),
    "server_page_of_others": AbsenceCause(
        "The samples of the pod's page are about other pods or servers, as on a router's page.",
        "Nothing to do for this pod. Opt in with the pods of the servers, whose own pages count.",
    ),
    # The pod's devices are known, and the metric is missing.
    "metric_not_exported": AbsenceCause(
        "The exporter writes no sample of the fields that the metric needs.",
        "Add the field to the exporter's list (docs/metrics.md names the fields of each metric).",
        "kubectl -n {exporter_namespace} describe {exporter_owner}",
    ),
    "metric_of_whole_devices": AbsenceCause(
        "The exporter has no such value of MIG instances and partitions.",
        "Use another metric, such as gpu_utilization.",
    ),
    "no_value": AbsenceCause(
        "The pages have samples of the pod's device, but the values of this metric were left out, "
        "or a rate needs a second sample.",
        "The message says why samples were left out; docs/troubleshooting.md "
        "explains each reason. After an XID error of the device, drain the node.",
        _LOGS,
    ),
    "too_many_label_sets": AbsenceCause(
        "The server's page has more samples or sets of labels than are read "
        "(docs/limits.md), and the sum of some is not its value.",
        "Let clients choose fewer values of labels, such as flows, or scale on the queue.",
    ),
    "queue_not_shown": AbsenceCause(
        "The server hands every request to its engine at once, so its page cannot show a queue.",
        "Turn on the engine's own metrics: for Triton with vLLM, REPORT_CUSTOM_METRICS in the "
        "model's configuration, from release 24.11 on. Otherwise, scale on gpu_utilization "
        "(docs/inference.md).",
    ),
    "reading_begins": AbsenceCause(
        "Nobody asked for the metric before, so the adapter reads its series from now on.",
        "Wait for the second page: an increase needs two.",
    ),
    "no_requests": AbsenceCause(
        "The server had no request in the window, so there is no latency.",
        "Nothing to do: an HPA keeps its replicas meanwhile, or scales out by another metric.",
    ),
    "too_few_requests": AbsenceCause(
        "The server had fewer requests in the window than a latency needs.",
        "Ask for the latency of all pods with an Object or External metric, or lower "
        "values.min_requests.",
    ),
    "no_common_buckets": AbsenceCause(
        "The histograms have no bound that all servers have, so no quantile is known.",
        "Give the servers the same classic buckets, or scale on the mean.",
    ),
    "no_sum_of_latencies": AbsenceCause(
        "A server's page has no usable sum of its latencies, so no mean is known.",
        "Scale on a quantile.",
    ),
    "promise_learning": AbsenceCause(
        "The adapter does not know yet which load of this workload keeps the promise, and the "
        "measured latency does not break it.",
        "Wait: it takes 100 requests, and three minutes at most after the first question or a "
        "restart of the adapter. Until then the HPA keeps its size. Then a cautious rule decides.",
    ),
    "promise_not_measured": AbsenceCause(
        "The page of the server does not show what the promise is about.",
        "Promise a latency that docs/inference.md lists for this server: ttft (time to first "
        "token), itl (time between tokens) or e2e (the whole request). Otherwise, scale on "
        "inference_requests_running and inference_requests_waiting.",
    ),
    "stale": AbsenceCause(
        "The newest value is older than the age limit.",
        "Check the exporter. Set values.collect_interval to the exporter's real interval.",
        _LOGS,
    ),
    "too_few_devices": AbsenceCause(
        "Less than half of the pod's devices have a value; or some have none, and the others "
        "are at 0.",
        "Check the exporter of the pod's node.",
        _LOGS,
    ),
    "not_selected": AbsenceCause(
        "The metric selector matches none of the pod's devices.",
        "Correct metric.selector of the HPA, or metricSelector of the trigger.",
    ),
    "expectation_unknown": AbsenceCause(
        "Nothing is known yet of the next minutes of the load, which a metric with the suffix "
        "`_expected` is about.",
        "The learning begins with the first question, and gives "
        "a value after three minutes (docs/ahead.md).",
    ),
    "group_incomplete": AbsenceCause(
        "The query asks for the value of the pod's group (`aggregate`), and a pod of the group has "
        "no value or does not exist.",
        "`explain pod` says why the pod that the message names has no value.",
        "kubectl -n {namespace} get gpupods",
    ),
    "unknown_metric": AbsenceCause(
        "The metric does not exist; a change of the configuration removed it.",
        "Name a metric that the API lists, or add an entry of `metrics`.",
        "kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2",
    ),
    # The pod.
    "pod_not_running": AbsenceCause("The pod is not running.", "Wait until the pod runs.", _POD),
    "pod_not_ready": AbsenceCause(
        "The pod is not Ready, so it does not serve requests yet.",
        "Wait until it is Ready, or set values.include_unready.",
        _POD,
    ),
    "device_unhealthy": AbsenceCause(
        "The kubelet reports a device of the pod unhealthy, and values.include_unhealthy is off.",
        "Delete the pod, so that it gets another device, and repair the node. After an XID error, "
        "NVIDIA's device plugin keeps the device unhealthy until it is restarted.",
        _POD,
    ),
    "finished_pod": AbsenceCause("The pod has finished.", "Nothing to do."),
    "no_gpu_in_spec": AbsenceCause(
        "The spec of the pod requests no GPU resource that the adapter knows.",
        "Request a GPU in the pod's limits, or add the resource's name to cluster.gpu_resources.",
        _POD,
    ),
    # Samples that name the pod and are not believed.
    "predecessors_sample": AbsenceCause(
        "The samples are older than the pod, or belong to an earlier pod of the same name.",
        "Wait for the next read of the exporter.",
    ),
    "unknown_pod": AbsenceCause(
        "The samples name a pod that does not exist, or a pod of another cluster.",
        'Set source.prometheus.matchers, such as cluster="a".',
    ),
    "pod_uid_mismatch": AbsenceCause(
        "The samples belong to an earlier pod of the same name.",
        "Wait for the next read of the exporter.",
    ),
    "wrong_node": AbsenceCause(
        "The samples that name the pod come from an exporter of another node.",
        "Check for two clusters in one store, and for host names that repeat.",
        _ON_NODE,
    ),
    "self_attribution": AbsenceCause(
        "Prometheus added the exporter's own pod to the samples of idle devices.",
        "Nothing to do for the exporter's pod. If a workload's pod has this reason, the scrape job "
        "overwrites the labels with which the exporter names it: set honorLabels, or drop the "
        "target's labels pod and namespace in the job.",
    ),
    "sample_without_node": AbsenceCause(
        "Nothing shows the node of the exporter, and an exporter on the pod's node reports the "
        "same field.",
        "Keep the label `instance`, `pod` or `Hostname` in Prometheus.",
    ),
    "more_devices_than_asked": AbsenceCause(
        "Samples name the pod for more devices than its spec requests, and no UID shows which are "
        "its own.",
        "Start dcgm-exporter with --kubernetes-enable-pod-uid, and restart the exporter that "
        "writes the outdated samples.",
        change=ReasonChange(
            _dcgm_exporter, partial(set_env, name=_POD_UID, value="true"), _EXPORTER
        ),
    ),
    "several_clusters": AbsenceCause(
        "One store has samples of several clusters for pods of this name.",
        'Set source.prometheus.matchers, such as cluster="a".',
    ),
    "board_of_mig_instances": AbsenceCause(
        "Only a sample of a MIG board names the pod, and pods hold instances of the board.",
        "Check the exporter's version, and its pod mapping for MIG.",
        _LOGS,
    ),
    "conflict": AbsenceCause(
        "Another exporter assigns the device to another pod, and its sample is newer.",
        "Run one exporter per node.",
        _ON_NODE,
    ),
    # Shared devices.
    "shared_device_unknown": AbsenceCause(
        "The node has several shared devices, and no sample ever named the pod for one of them.",
        "Let the exporter name every pod: dcgm-exporter 4.8.2 or newer with "
        "KUBERNETES_VIRTUAL_GPUS=true (docs/sharing.md). Or run one shared device per node.",
        "kubectl describe node {node}",
        change=ReasonChange(
            _dcgm_exporter, partial(set_env, name=_VIRTUAL_GPUS, value="true"), _EXPORTER
        ),
    ),
    "not_exact": AbsenceCause(
        "The sharing policy is `exact`, and the value is not measured per process.",
        "Choose another sharing.policy (docs/sharing.md).",
    ),
    "no_memory_weight": AbsenceCause(
        "The sharing policy is `memory`, and the memory of one of the sharing pods is not known.",
        "Choose another sharing.policy (docs/sharing.md).",
    ),
    "nothing_requested": AbsenceCause(
        "gpu_utilization_of_request has a value for pods only.", "Request the metric for pods."
    ),
    "requested_share_unknown": AbsenceCause(
        "The spec does not show which share of the device the pod requests, or the value includes "
        "the work of other pods.",
        "Use gpu_utilization, or another sharing.policy.",
    ),
    # Values that other fields contradict.
    "util_zero_while_active": AbsenceCause(
        "The utilization is 0 while other fields of the device show work: the field is broken.",
        "Restart the exporter or its host engine. To serve the value, set values.cross_checks to "
        "false.",
        _RESTART,
    ),
    "util_high_at_idle_power": AbsenceCause(
        "GPU_UTIL is high while all other fields show an idle device: the field is broken.",
        "Restart the exporter or its host engine. To serve the value, set values.cross_checks to "
        "false.",
        _RESTART,
    ),
    "profiling_stuck_at_zero": AbsenceCause(
        "The profiling counters are 0 while the device is busy.",
        "Restart the exporter. Another profiler on the node may hold the counters.",
        _RESTART,
    ),
    "zero_on_busy_device": AbsenceCause(
        "The exporter writes 0 for the pod, and nobody accounts for the work of the device: the "
        "exporter does not see the pod's processes.",
        "dcgm-exporter needs `hostPID: true`. HAMi watches containers with a limit of cores and "
        "GPU_CORE_UTILIZATION_POLICY=force only. To serve the value, set values.cross_checks to "
        "false.",
    ),
    "zero_of_unsupported_field": AbsenceCause(
        "The exporter writes 0 for a field that the device or its driver does not support.",
        "Use another metric, or remove the field from the exporter's list.",
    ),
    "too_large": AbsenceCause(
        "The API cannot express the number.", "Set `scale` of the entry of `metrics`."
    ),
}


_EXAMPLE: Final = "for example of "


def for_example(absence: Absence, pod: Pod) -> Absence:
    """Return the absence of one pod as it stands for several whose details differ."""
    if not absence.detail or absence.detail.startswith(_EXAMPLE):
        return absence
    return replace(absence, detail=f"{_EXAMPLE}{pod.ref.name}: {absence.detail}")


def message_for_example(reason: str, message: str, pod: str) -> str:
    """As :func:`for_example`, of the message of an :class:`Explanation`.

    Args:
        reason: the code.
        message: that of the pod.
        pod: its name.
    """
    cause = REASONS[reason].cause.removesuffix(".") if reason in REASONS else ""
    detail = message.removeprefix(f"{cause}: ")
    return message if detail == message else f"{cause}: {_EXAMPLE}{pod}: {detail}"


def explanation(
    absence: Absence, pod: Pod | None, find: Callable[[PodRef], Pod | None]
) -> Explanation:
    """Describe an absence.

    Args:
        absence: the absence.
        pod: the pod that has no value; None for a node.
        find: returns a known pod by name.
    """
    meaning = REASONS.get(absence.reason)
    docs = f"{PAGE}#{absence.reason}"
    if meaning is None:
        return Explanation(absence.reason, absence.detail or absence.reason, "", docs)
    message = meaning.cause.removesuffix(".")
    if absence.detail:
        message = f"{message}: {absence.detail}"
    exporter = absence.exporter and find(absence.exporter)
    if meaning.change is not None and (of := meaning.change.of(pod, exporter)) is not None:
        hint = _where(of, meaning.change.make(of), pod)
        changes = f"{of.kind}/{of.namespace}/{of.name}"
        return Explanation(absence.reason, message, hint, docs, changes=changes)
    names = _names(pod, exporter, absence.exporter)
    hint = _fill_command(meaning.command, names)
    # Nothing would create a pod without an owner again.
    again = meaning.then != _RESTART or "exporter_owner" in names
    then = _fill_command(meaning.then, names) if hint and again else ""
    return Explanation(absence.reason, message, hint or meaning.fix, docs, then)


def _where(of: ChangedObject, change: ObjectChange, pod: Pod | None) -> str:
    """Return a change in words, with what prints the command.

    Only the pods are known here, and most do not show what manages their workload.
    """
    if of.manager is not None:
        return make_lasting(of, change).line
    see = ""
    if pod is not None:
        name, namespace = map(shlex.quote, (pod.ref.name, pod.ref.namespace))
        see = f"; `gpu-metrics-adapter explain pod {name} -n {namespace}` says where it lasts"
    return f"{change.words} in {of.words} in namespace {of.namespace}{see}"


def changed_object(changes: str) -> ChangedObject:
    """Return the object of ``Explanation.changes``."""
    kind, namespace, name = [*changes.split("/", 2), "", ""][:3]
    return ChangedObject(kind, namespace, name)


def lasting_fix(reason: str, of: ChangedObject) -> Fix | None:
    """Return the fix of a reason that changes an object; None for another reason.

    Args:
        of: the object that ``Explanation.changes`` names, with what manages it.
    """
    meaning = REASONS.get(reason)
    return make_lasting(of, meaning.change.make(of)) if meaning and meaning.change else None


def _fill_command(command: str, names: Mapping[str, str]) -> str:
    """Return a command with its names; empty if one is not known."""
    try:
        return command.format_map(names)
    except KeyError:
        return ""


def _names(pod: Pod | None, exporter: Pod | None, ref: PodRef | None) -> Mapping[str, str]:
    """Return placeholder -> name, quoted for a shell, for those that are known."""
    names = {}
    if pod is not None:
        names = {"namespace": pod.ref.namespace, "pod": pod.ref.name}
        if pod.node:
            names["node"] = pod.node
    if ref is not None:
        names |= {"exporter_namespace": ref.namespace, "exporter": ref.name}
    if exporter is not None and exporter.owner is not None:
        names["exporter_owner"] = f"{exporter.owner.kind.lower()}/{exporter.owner.name}"
    return {key: shlex.quote(name) for key, name in names.items()}
