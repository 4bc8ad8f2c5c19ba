"""Which rows seem to be about the exporter's own pod, because a scrape put its name on them.

A Prometheus scrape adds the target's ``pod``, ``namespace`` and ``container`` to every row.
On a row of a device that has no pod labels of its own, they read like an assignment of the
device to the exporter, both with ``honorLabels: false`` and with ``true``. Such a row is the
device's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from adapter.cluster.pod import Pod, PodRef
from adapter.devices.assignment import Claim, Refusal, refusal
from adapter.devices.builder import Draft
from adapter.devices.rejects import Reject, Rejects
from adapter.devices.series import TrackKey
from adapter.devices.state import Identity

Find = Callable[[PodRef], Pod | None]
"""The pod of that name on hand."""

_ASSIGNED: Final = (
    *("pod_uid", "vgpu", "dra_claim_name"),
    *("pod_name", "podname", "kube_pod"),
)
"""Labels that exporters write beside the pod that a device is assigned to, and no scrape adds."""


def targets(identities: Iterable[Identity]) -> frozenset[PodRef]:
    """The scrape targets' pods, by rows that name them beside a workload."""
    return frozenset(i.target for i in identities if i.target is not None)


def unassigned(
    drafts: Mapping[TrackKey, Draft], known: Collection[PodRef], find: Find
) -> dict[TrackKey, Refusal]:
    """The drafts whose rows name the scrape target's pod -> why they are not about it.

    Args:
        drafts: a batch's.
        known: scrape targets' pods.
        find: the pods on hand.
    """
    found: dict[TrackKey, Refusal] = {}
    unknown: dict[TrackKey, Refusal] = {}
    for key, draft in drafts.items():
        claim, labels = draft.identity.claim, draft.identity.labels
        if claim is None or claim.serves:
            continue
        reason = _why(claim, labels, known, find)
        if reason is Refusal.UNKNOWN_POD:
            unknown[key] = reason
        elif reason is not None:
            found[key] = reason
    if not found and len({key.pod for key in unknown}) == 1:
        # A target that is no pod on hand: its name stands where assigned rows say more.
        assigned = {key.device for key, draft in drafts.items() if _assigned(draft)}
        found = {key: reason for key, reason in unknown.items() if key.device in assigned}
    return found


def _assigned(draft: Draft) -> bool:
    return any(map(draft.identity.labels.get, _ASSIGNED))


def released(
    drafts: Mapping[TrackKey, Draft],
    own: Mapping[TrackKey, Refusal],
    rejects: Rejects,
    time: float,
) -> dict[TrackKey, Draft]:
    """The drafts, with those that name a scrape target put to the devices' own."""
    if not own:
        return dict(drafts)
    kept = {key: draft for key, draft in drafts.items() if key not in own}
    for key, reason in own.items():
        draft = drafts[key]
        detail = f"{key.pod.namespace}/{key.pod.name}" if key.pod else ""
        rejects.add(Reject(reason, "", key.device), time, detail=detail)
        bare = TrackKey(key.device, None, "", "")
        if bare not in kept:
            kept[bare] = Draft(draft.identity._replace(claim=None, target=None, replica=False))
        kept[bare].take(draft)
    return kept


def _why(
    claim: Claim, labels: Mapping[str, str], known: Collection[PodRef], find: Find
) -> Refusal | None:
    if labels.get("exported_pod"):
        return None
    if claim.pod in known:
        return Refusal.SELF_ATTRIBUTION
    if not claim.suspect and ("instance" not in labels or any(map(labels.get, _ASSIGNED))):
        return None
    pod = find(claim.pod)
    if pod is not None and pod.holds_gpu:
        return None
    return refusal(claim._replace(uid=""), pod, None)
