"""Checks of workloads that an HPA or a ScaledObject scales: replicas, volumes, readiness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from adapter.answers.keda.manifest import SeenScaledObject
from adapter.pipeline.catalog.serverkind import ServerKind
from adapter.pipeline.catalog.serverkinds import kind_of_image
from adapter.pipeline.cluster.changes import edit
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.podobjects import Container
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from adapter.tools.doctor.askedmetrics import targets
from adapter.tools.doctor.changedobjects import changed_workload
from adapter.tools.doctor.copies import nearest_copies
from adapter.tools.doctor.facts import Facts, Hpa
from adapter.tools.doctor.hpacauses import asks_gpu
from adapter.tools.doctor.model import CheckSection, Finding, NotApplicableError, Severity, check
from adapter.tools.doctor.scaletargets import copies_of_target

_ONE_NODE: Final = "ReadWriteOnce"
_ONE_POD: Final = "ReadWriteOncePod"


class _Scaled(NamedTuple):
    """A workload of the adapter's concern, and what scales it."""

    workload: SeenWorkload
    scaler: Hpa | SeenScaledObject

    @property
    def by(self) -> str:
        """The scaler in words."""
        kind = "hpa" if isinstance(self.scaler, Hpa) else "scaledobject"
        return f"{kind} {self.scaler.name}"


def _scaled_workloads(facts: Facts) -> Iterator[_Scaled]:
    """Yield the workloads that are scaled, and that hold GPUs, serve models, or scale on a metric
    of the adapter; raises NotApplicableError.
    """
    asking = {target.subject for target in targets(facts)}
    scalers: list[Hpa | SeenScaledObject] = [h for h in facts.hpas.read() if not h.owner]
    scalers += facts.scaledobjects.value or () if facts.scaledobjects.known else ()
    some = False
    for workload, scaler in _pairs(facts, scalers):
        ours = scaler.subject in asking or asks_gpu(workload, facts.gpu_resources)
        if ours or any(_servers(workload)):
            some = True
            yield _Scaled(workload, scaler)
    if not some:
        raise NotApplicableError("no workload with GPUs or of an inference server is scaled")


def _pairs(facts: Facts, scalers: Iterable[Hpa | SeenScaledObject]) -> Iterator[_Scaled]:
    """Yield each scaler with its workload, and each workload with a scaler: either may have copies
    in the files of several environments."""
    by_target: dict[tuple[str, str, str], list[Hpa | SeenScaledObject]] = defaultdict(list)
    for scaler in scalers:
        by_target[scaler.kind, scaler.namespace, scaler.target].append(scaler)
    for scalers_of_target in by_target.values():
        copies = copies_of_target(facts, scalers_of_target[0])
        paired = set()
        for scaler in scalers_of_target:
            for workload in nearest_copies(scaler.origin, copies):
                paired.add(id(workload))
                yield _Scaled(workload, scaler)
        for workload in copies:
            if id(workload) not in paired:
                yield _Scaled(workload, nearest_copies(workload.origin, scalers_of_target)[0])


def _servers(workload: SeenWorkload) -> Iterator[tuple[Container, ServerKind]]:
    for container in workload.spec.template.spec.containers:
        if (kind := kind_of_image(container.image)) is not None:
            yield container, kind


@check(
    "GMA451",
    CheckSection.HPAS,
    "manifests of scaled workloads leave the replicas to the HPA",
    Severity.WARNING,
)
def fixed_replicas(facts: Facts) -> Iterator[Finding]:
    """A manifest sets `spec.replicas` of a workload that an HPA or a ScaledObject scales, so each
    `apply` resets the replicas.

    Remove `spec.replicas`, first from the last applied manifest with `kubectl apply
    edit-last-applied`: `kubectl apply` sets 1 when the key disappears.
    """
    for workload, scaler in _scaled_workloads(facts):
        if workload.sets_replicas:
            kind, name = workload.kind.lower(), workload.metadata.name
            place = f"-n {workload.metadata.namespace}"
            yield Finding(
                workload.subject,
                f"its manifest sets replicas {workload.spec.replicas}, and "
                f"{_Scaled(workload, scaler).by} scales it: applying the manifest undoes that",
                "remove spec.replicas from the manifest",
                "" if workload.origin else f"kubectl {place} apply edit-last-applied {kind}/{name}",
            )


@check(
    "GMA452",
    CheckSection.HPAS,
    "replicas of a scaled workload can share its volumes",
    Severity.WARNING,
)
def one_node_volume(facts: Facts) -> Iterator[Finding]:
    """The pods of a workload that scales out mount one PersistentVolumeClaim that only one node
    (`ReadWriteOnce`) or one pod (`ReadWriteOncePod`) can mount. Further replicas cannot start.

    Use a volume of `ReadOnlyMany` or `ReadWriteMany`, an image volume, or a cache on each node.
    """
    for workload, scaler in _scaled_workloads(facts):
        if scaler.high is not None and scaler.high < 2:
            continue
        for volume in workload.spec.template.spec.volumes:
            if (claim := volume.persistent_volume_claim) is None:
                continue
            key = (workload.metadata.namespace, claim.claim_name)
            modes = _modes(facts, key, workload.origin)
            if not modes or not set(modes) <= {_ONE_NODE, _ONE_POD}:
                continue
            who = "one pod" if _ONE_POD in modes else "one node"
            yield Finding(
                workload.subject,
                f"its pods share the claim {key[1]}, which only {who} can mount, and "
                f"{_Scaled(workload, scaler).by} scales it to {scaler.high}",
                "use a claim that many nodes can mount, or a volume for each pod",
                ""
                if workload.origin
                else f"kubectl -n {workload.metadata.namespace} get pvc {key[1]} -o yaml",
                Severity.ERROR if _ONE_POD in modes else None,
            )


def _modes(facts: Facts, key: tuple[str, str], origin: str) -> list[str]:
    """Return the access modes of a claim that a file names; none if it was not read."""
    copies = [claim for claim in facts.volume_claims.read() if claim.key == key]
    return next((claim.spec.access_modes for claim in nearest_copies(origin, copies)), [])


@check(
    "GMA453",
    CheckSection.HPAS,
    "scaled inference servers have a readiness probe",
    Severity.WARNING,
)
def no_probe(facts: Facts) -> Iterator[Finding]:
    """A container of a scaled inference server has neither a readiness nor a startup probe. A new
    pod counts as ready before its model is loaded.

    Add a readiness probe on the server's health path, such as `/health`, and a startup probe that
    is long enough for the model.
    """
    for workload, scaler in _scaled_workloads(facts):
        for container, kind in _servers(workload):
            if kind.gateway or container.readiness_probe or container.startup_probe:
                continue
            of = changed_workload(workload)
            yield Finding(
                workload.subject,
                f"container {container.name} ({kind.title}) has no readiness probe, and "
                f"{_Scaled(workload, scaler).by} scales it",
                "add readinessProbe and startupProbe to the container",
                "" if workload.origin else make_lasting(of, edit(of, "add the probes")),
            )
