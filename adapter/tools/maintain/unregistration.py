"""Deletion of an installation's APIServices before an uninstall deletes the pods behind them.

An APIService without its pods makes discovery incomplete, and then no namespace of the cluster can
be deleted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from adapter.tools.maintain.cluster import ConflictError, MaintainError, ObjectStore, RefusalError
from adapter.tools.maintain.objects import Object, owner, registration_path
from adapter.tools.maintain.rotation import Installation

log = structlog.get_logger(__name__)

_CONFLICTS = 50
_LOOK = 0.5
"""Seconds between checks whether it is deleted."""


async def unregister(
    objects: ObjectStore,
    target: Installation,
    wait: float,
    pause: Callable[[float], Awaitable[None]],
) -> int:
    """Delete the APIServices, all of which point to the Service. Return how many existed.

    Raises:
        RefusalError: one belongs to somebody else, and nothing was deleted.
        MaintainError: one could not be deleted, or a finalizer held it for longer than ``wait``.
    """
    ours = f"{target.namespace}/{target.service}"
    foreign = []
    for name in target.registrations:
        obj = await objects.read(registration_path(name))
        if obj is not None and owner(obj) != ours:
            foreign.append(_describe_foreign(name, obj))
    if foreign:
        raise RefusalError("; ".join(foreign))
    return sum(
        [
            await _delete_registration(objects, name, ours, wait, pause)
            for name in target.registrations
        ]
    )


async def _delete_registration(
    objects: ObjectStore,
    name: str,
    ours: str,
    wait: float,
    pause: Callable[[float], Awaitable[None]],
) -> bool:
    path, waited, conflicts, deleting = registration_path(name), 0.0, 0, False
    while (obj := await objects.read(path)) is not None:
        if owner(obj) != ours:
            raise RefusalError(_describe_foreign(name, obj))
        if deleting and waited >= wait:
            holders = ", ".join(obj["metadata"].get("finalizers") or ()) or "the API server"
            raise MaintainError(
                f"APIService {name} still exists after {wait:g} s, held by {holders}: see "
                f"`kubectl get apiservice {name} --output yaml`"
            )
        try:
            await objects.delete(path, str(obj["metadata"]["resourceVersion"]))
        except ConflictError as error:
            conflicts += 1
            if conflicts > _CONFLICTS:
                raise MaintainError(f"{error}; another client keeps writing it") from None
            await pause(0.1)
            continue
        if deleting:
            await pause(_LOOK)
            waited += _LOOK
        deleting = True
    if deleting:
        log.info("APIService deleted", apiservice=name, service=ours)
    return deleting


def _describe_foreign(name: str, obj: Object) -> str:
    return (
        f"APIService {name} belongs to {owner(obj) or 'the API server itself'} now, and Helm would "
        f"delete it with the release. To uninstall without it: `kubectl annotate apiservice {name} "
        f"helm.sh/resource-policy=keep`; `helm rollback` to the release's last revision, because "
        f"the uninstall has started; `helm upgrade` with externalMetrics.enabled=false or "
        f"apiServices.create=false, whichever disables it; then uninstall again"
    )
