"""The labels by which a query selects devices and pods, and what is wrong with a selector.

A selector with a key that nothing has, or a value that it never has, selects nothing, and says
nothing. The keys of exporters are such: ``modelName`` and ``UUID`` of dcgm-exporter, which rules of
prometheus-adapter offer, are ``model`` and ``device`` here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from adapter.pipeline.attribution.reading import Attribution
from adapter.pipeline.catalog.labelvalue import label_value
from adapter.pipeline.catalog.promise import SLO_RATIO, PromiseError, is_bound, promise_in
from adapter.pipeline.catalog.targetfit import AGGREGATE
from apiservice.labels.manifest import selector_text
from apiservice.labels.requirement import Requirement, check_value
from apiservice.labels.selector import Selector, SelectorError, parse

DEVICE_LABELS: Final = frozenset(
    {"device", "model", "mig_profile", "sharing", "attribution", "container"}
)
"""Labels of a device's part in a reading
(:meth:`adapter.pipeline.attribution.candidate.Candidate.labels`). They select devices within a
pod."""
POD_LABELS: Final = frozenset({"pod", "node", "workload", "workload_kind"})
"""Labels that identify the pod of a series. Every other label is the pod's own."""
OWN_LABELS: Final = DEVICE_LABELS | POD_LABELS | {AGGREGATE}
"""Reserved labels: a pod's own label with such a name cannot be selected and is not shown."""
_VALUES: Final[Mapping[str, Collection[str]]] = {
    "sharing": ("exclusive", "shared"),
    "attribution": tuple(Attribution),
}
_RENAMED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("UUID", "uuid", "gpu_uuid", "GPU_UUID", "deviceuuid"), "device"),
    **dict.fromkeys(("modelName", "model_name", "gpu_model", "card_model"), "model"),
    **dict.fromkeys(("GPU_I_PROFILE", "mig", "profile"), "mig_profile"),
    **dict.fromkeys(("Hostname", "hostname", "host", "instance", "exported_node"), "node"),
    **dict.fromkeys(("exported_pod", "pod_name", "podname"), "pod"),
    **dict.fromkeys(("exported_container", "container_name", "ctrname"), "container"),
    **dict.fromkeys(("exported_namespace", "namespace", "podnamespace"), ""),
    **dict.fromkeys(("gpu", "GPU_I_ID", "gpu_id", "minor_number", "pci_bus_id"), ""),
    **dict.fromkeys(("job", "service", "endpoint", "DCGM_FI_DRIVER_VERSION", "err_code"), ""),
}
"""Label of an exporter or a scrape -> the label here; empty if there is none."""


def selects_value(key: str, metric: str) -> bool:
    """Return whether a label of a metric's selector is about the value and not about pods: it
    selects devices within a pod, or is a part of a promise."""
    return is_bound(key) if metric == SLO_RATIO else key in DEVICE_LABELS


def parse_selector(selector: Mapping[str, Any] | None) -> Selector | None:
    """Return a LabelSelector of a manifest; None if it is not valid."""
    try:
        return parse(selector_text(selector))
    except SelectorError:
        return None


def selector_error(selector: Mapping[str, Any] | None) -> str:
    """Return why a LabelSelector of a manifest is not valid, with the path within it; empty if it
    is. The adapter's own label is named if an exporter's stands for it."""
    try:
        parse(selector_text(selector))
    except SelectorError as error:
        return f"{error}{_guess(selector or {})}"
    return ""


def _guess(selector: Mapping[str, Any]) -> str:
    """Return which label of a device has a value that no label can have, as exporters write it."""
    labels = selector.get("matchLabels")
    for key, value in labels.items() if isinstance(labels, Mapping) else ():
        here = _RENAMED.get(key, key)
        if here in DEVICE_LABELS and isinstance(value, str) and check_value(value) is not None:
            return f"; the adapter has {here}: {label_value(value)}"
    return ""


def selector_faults(selector: Selector, metric: str, kind: str) -> Iterator[str]:
    """Yield what is wrong with a metric's selector, as the rest of a sentence about it: it selects
    nothing, or states no promise that can be meant.

    Args:
        selector: valid.
        metric: its name.
        kind: type of the metric, as for :func:`_fault`.
    """
    if metric != SLO_RATIO:
        for requirement in selector.requirements:
            if why := _fault(requirement, kind):
                yield f"selects nothing: {why}"
        return
    requirements = [row for row in selector.requirements if row.key != AGGREGATE]
    if kind == "External":
        requirements = [row for row in requirements if is_bound(row.key)]
    try:
        promise_in(requirements)
    except PromiseError as error:
        yield f"states no promise: {error}"


def _fault(requirement: Requirement, kind: str) -> str:
    """Return why a requirement never selects a series; empty if it may.

    Args:
        requirement: of the selector.
        kind: type of the metric. The selector of an ``External`` metric also selects pods, by their
            own labels and by :data:`POD_LABELS`; others select devices only. That of a ``Pods``
            metric may ask for the value of each pod's group, with ``aggregate``.
    """
    key, op, values = requirement
    if op not in ("=", "==", "in", "exists") or (key == AGGREGATE and kind == "Pods"):
        return ""
    of_pods = kind == "External"
    if key not in (OWN_LABELS if of_pods else DEVICE_LABELS):
        return _no_such_key(key, of_pods=of_pods)
    known_values = _VALUES.get(key)
    if known_values is None or op == "exists" or any(value in known_values for value in values):
        return ""
    return f"{key} is never {' or '.join(values)}; it is {' or '.join(known_values)}"


def _no_such_key(key: str, *, of_pods: bool) -> str:
    here = _RENAMED.get(key)
    if of_pods and here is None:
        return ""  # a label of pods
    keys = ", ".join(sorted(DEVICE_LABELS | POD_LABELS if of_pods else DEVICE_LABELS))
    guess = (
        f"; {key} of exporters is {here} here"
        if here and (of_pods or here in DEVICE_LABELS)
        else ""
    )
    return f"no series has the label {key}{guess}; the labels are {keys}"
