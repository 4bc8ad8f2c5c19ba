"""Decide which labels of a sample name a pod: the workload's, or that of the scrape target.

Exporters, scrape jobs and collectors spell a pod's name in a dozen ways
(:mod:`adapter.pipeline.exposition.podspellings`), and a Prometheus scrape puts ``exported_``
before a label of the page if the target has a label of that name. A name counts only with a
namespace that goes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

from adapter.pipeline.exposition.podspellings import (
    EXPORTED,
    MANY_PODS,
    POD,
    SPELLINGS,
    LabelWriter,
    PodSpelling,
)

_DEPTH: Final = 8
"""How many ``exported_`` prefixes are looked for.

The name part of a pod's label has at most 63 characters, so more cannot come from a pod.
"""
_RARE: Final = frozenset(
    prefix + label
    for spelling in SPELLINGS
    if spelling is not POD
    for label in (spelling.pod, *spelling.namespaces)
    for prefix in ("", EXPORTED)
)
"""Labels that few label sets have: without them, only ``pod`` can name a pod."""


class NamedPod(NamedTuple):
    """A pod that labels name."""

    namespace: str
    name: str
    container: str = ""
    """Empty if the labels name none."""
    uid: str = ""
    """Empty if the labels state none."""
    writer: LabelWriter = LabelWriter.ANYBODY
    """Who can have written the labels. Those that a scrape has renamed are the exporter's."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


def workload(
    labels: Mapping[str, str], *, direct: bool
) -> tuple[NamedPod | None, tuple[NamedPod, ...]]:
    """Return the pod that has the device of an exporter's sample, and others that may have it.

    The labels alone do not decide it if a scrape has added labels about its target that look like
    the exporter's, or has renamed only one of two labels. Then the first of the others counts that
    exists and holds a GPU, unless the first pod does.

    Args:
        direct: the adapter fetched the page from the exporter, so no scrape renamed a label.
    """
    if not direct:
        renamed = next(_renamed_pods(labels), None)
        if renamed is not None:
            return renamed, ()
    for spelling in _spellings(labels):
        if spelling.writer is LabelWriter.EXPORTER and spelling.pod in labels:
            namespace = next((n for n in spelling.namespaces if n in labels), None)
            if namespace is not None:
                if not labels[spelling.pod] or not labels[namespace]:
                    return None, ()  # the exporter writes both labels, and leaves them empty
                return _read_pod(labels, spelling, labels[namespace]), ()
    if direct:
        pod = _complete_pod(labels, POD) or _pod_beside_namespace(labels)
        return pod, () if pod is not None else tuple(_target_pods(labels))
    namespace = _first(labels, (EXPORTED + "namespace", "namespace"))
    pod = _read_pod(labels, POD, namespace) if namespace and labels.get(POD.pod) else None
    return pod, (*_pods_of_namespace(labels, namespace), *_target_pods(labels))


def hides_pods(labels: Mapping[str, str]) -> bool:
    """Return whether the exporter says that several pods have the device, and names none."""
    return any(labels.get(spelling.pod) == MANY_PODS for spelling in _spellings(labels))


def target(labels: Mapping[str, str], named_pod: NamedPod | None) -> NamedPod | None:
    """Return the exporter's own pod, if ``pod`` and ``namespace`` name it beside a workload.

    Args:
        named_pod: the workload of the sample.
    """
    if named_pod is None or named_pod.writer is not LabelWriter.EXPORTER:
        return None
    scraped = _complete_pod(labels, POD)
    return None if scraped is None or scraped.key == named_pod.key else scraped


def shows_workload(labels: Mapping[str, str]) -> bool:
    """Return whether an exporter has written a label that it writes beside an assigned pod only."""
    first, _ = workload(labels, direct=False)
    if first is not None and first.writer is LabelWriter.EXPORTER:
        return True
    return any(map(labels.get, ("pod_uid", "vgpu", "dra_claim_name")))


def is_renamed(labels: Mapping[str, str]) -> bool:
    """Return whether a scrape has renamed the label with which the page names a pod."""
    return any(labels.get(EXPORTED + spelling.pod) for spelling in _spellings(labels))


def possible_pods(
    labels: Mapping[str, str], *, direct: bool, mixed: bool = True
) -> frozenset[tuple[str, str]]:
    """Return the namespace and name of every pod that labels could name, in any spelling.

    A Prometheus scrape prefixes ``exported_`` to a label's name until the name is unique.

    Args:
        direct: the adapter fetched the page from the exporter, so no scrape renamed a label.
        mixed: also combine labels of which one may have been renamed without the other. A scrape
            that adds only one of the two labels produces such samples.
    """
    keys: set[tuple[str, str]] = set()
    for spelling in _spellings(labels):
        pods = _prefixed_values(labels, spelling.pod, direct=direct)
        if not pods:
            continue
        beside = ("namespace",) if mixed or not labels.get("pod") else ()
        for label in dict.fromkeys((*spelling.namespaces, *beside)):
            keys.update(
                (namespace, pod)
                for i, pod in pods.items()
                for j, namespace in _prefixed_values(labels, label, direct=direct).items()
                if mixed or (i > 0) is (j > 0)
            )
    return frozenset(keys)


def server(labels: Mapping[str, str]) -> NamedPod | None:
    """Return the pod of a server that a Prometheus scraped; None if the labels name none.

    ``pod`` names it, or another label of a target, or Google's ``instance="<pod>:<port>"``. Labels
    of the page's own are used only if these are absent, as in the answer to a user's own query.
    Ask :func:`names_another` first.
    """
    spelt = (_complete_pod(labels, spelling) for spelling in (POD, *reversed(_spellings(labels))))
    return (
        next((pod for pod in spelt if pod is not None), None)
        or _pod_beside_namespace(labels)
        or _google_pod(labels)
        or next(_renamed_pods(labels), None)
    )


def names_another(labels: Mapping[str, str], serving: tuple[str, str] | None = None) -> bool:
    """Return whether a server's sample names a second pod beside the one that was scraped.

    A router or collector that passes on the series of others writes such samples. A pod that
    forges samples about another pod writes them too. The labels do not distinguish the two.

    Args:
        serving: namespace and name of the pod that the adapter fetched the page from. None if a
            Prometheus fetched it.
    """
    if serving is not None:
        pods = (_complete_pod(labels, spelling) for spelling in _spellings(labels))
        named_pods = (*pods, _pod_beside_namespace(labels))
        return any(pod is not None and pod.key != serving for pod in named_pods)
    names = {labels[s.pod] for s in _spellings(labels) if labels.get(s.pod)}
    google = None if names else _google_pod(labels)
    if google is not None:
        names.add(google.name)
    for spelling in _spellings(labels) if names else ():
        if renamed := labels.get(EXPORTED + spelling.pod):
            names.add(renamed)
    return len(names) > 1 or len(_namespaces(labels)) > 1


def allow(labels: Mapping[str, str], pod: tuple[str, str]) -> bool:
    """Return whether no label names another pod or namespace than this one.

    Args:
        pod: namespace and name of the pod at the address of a server.
    """
    namespace, name = pod
    names = {labels[s.pod] for s in _spellings(labels) if labels.get(s.pod)}
    beside = {labels["namespace"]} if labels.get("namespace") else set()
    return names <= {name} and _namespaces(labels) | beside <= {namespace}


def address(labels: Mapping[str, str]) -> str:
    """Return the IP address of the scrape target in ``instance``; empty if it is none."""
    instance = labels.get("instance", "")
    host = instance.rpartition(":")[0].strip("[]") or instance
    return host if _is_address(host) else ""


def _namespaces(labels: Mapping[str, str]) -> set[str]:
    """Return the namespaces in the labels of scrapes, and in those beside the name of a pod."""
    return {
        labels[label]
        for spelling in _spellings(labels)
        if spelling.writer is LabelWriter.SCRAPE or labels.get(spelling.pod)
        for label in spelling.namespaces
        if labels.get(label)
    }


def _renamed_pods(labels: Mapping[str, str]) -> Iterator[NamedPod]:
    """Yield the pods in labels that a scrape has renamed, because its target has such labels."""
    for spelling in (POD, *_spellings(labels)):
        name = labels.get(EXPORTED + spelling.pod)
        if not name or spelling.writer is LabelWriter.SCRAPE:
            continue
        possible = (*spelling.namespaces, "namespace")
        namespace = _first(labels, (EXPORTED + label for label in possible))
        namespace = namespace or _first(labels, possible)
        container = _first(labels, (EXPORTED + label for label in spelling.containers))
        container = container or _first(labels, spelling.containers)
        if namespace:
            uid = labels.get(spelling.uid, "")
            yield NamedPod(namespace, name, container, uid, LabelWriter.EXPORTER)


def _pods_of_namespace(labels: Mapping[str, str], namespace: str) -> Iterator[NamedPod]:
    """Yield the pods that other labels than ``pod`` may name beside ``namespace``."""
    for spelling in _spellings(labels) if namespace else ():
        if spelling is not POD and labels.get(spelling.pod):
            yield _read_pod(labels, spelling, namespace)._replace(writer=LabelWriter.ANYBODY)


def _target_pods(labels: Mapping[str, str]) -> Iterator[NamedPod]:
    """Yield the pods in labels that usually describe the scrape target."""
    for spelling in _spellings(labels):
        if spelling.writer is LabelWriter.SCRAPE and labels.get(spelling.pod):
            for label in spelling.namespaces:
                if labels.get(label):
                    yield _read_pod(labels, spelling, labels[label])


def _pod_beside_namespace(labels: Mapping[str, str]) -> NamedPod | None:
    """Return the pod whose namespace is in ``namespace``, where no ``pod`` goes with it."""
    namespace = labels.get("namespace")
    if not namespace or labels.get("pod"):
        return None
    for spelling in _spellings(labels):
        if labels.get(spelling.pod) and not _first(labels, spelling.namespaces):
            return _read_pod(labels, spelling, namespace)._replace(writer=LabelWriter.ANYBODY)
    return None


def _complete_pod(labels: Mapping[str, str], spelling: PodSpelling) -> NamedPod | None:
    """Return the pod in the labels of one spelling; None if one of the two labels is missing."""
    if not labels.get(spelling.pod):
        return None
    namespace = _first(labels, spelling.namespaces)
    return _read_pod(labels, spelling, namespace) if namespace else None


def _read_pod(labels: Mapping[str, str], spelling: PodSpelling, namespace: str) -> NamedPod:
    containers = spelling.containers
    if spelling is POD and labels.get(EXPORTED + "container"):
        containers = (EXPORTED + "container",)
    return NamedPod(
        namespace,
        labels[spelling.pod],
        _first(labels, containers),
        labels.get(spelling.uid, ""),
        spelling.writer,
    )


def _google_pod(labels: Mapping[str, str]) -> NamedPod | None:
    """Return the pod in Google managed Prometheus' ``instance="<pod>:<port>"``."""
    instance, namespace = labels.get("instance", ""), labels.get("namespace")
    name, colon, _ = instance.rpartition(":")
    if not colon or not namespace or "[" in name or labels.get("pod") or _is_address(name):
        return None
    return NamedPod(namespace, name, labels.get("container", ""), labels.get("pod_uid", ""))


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _prefixed_values(labels: Mapping[str, str], name: str, *, direct: bool) -> dict[int, str]:
    """Return the number of ``exported_`` prefixes -> the label's value."""
    depth = 1 if direct else _DEPTH if name in (POD.pod, *POD.namespaces) else 2
    values = ((times, labels.get(EXPORTED * times + name)) for times in range(depth))
    return {times: value for times, value in values if value}


def _spellings(labels: Mapping[str, str]) -> Sequence[PodSpelling]:
    """Return the spellings that a label set may have."""
    return (POD,) if _RARE.isdisjoint(labels) else SPELLINGS
