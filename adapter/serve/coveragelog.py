"""Log lines about coverage: that the adapter is ready, and which pods with GPUs have no value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import structlog

from adapter.attribution.reasons import explanation
from adapter.cluster.index import PodIndex
from adapter.cluster.pod import Pod, PodRef
from adapter.serve.coverage import Counted

log = structlog.get_logger(__name__)

_NONE: Final[Counter[str]] = Counter()


class CoverageLog:
    """Writes a line for the first count, and for each change of the pods without a value.

    Pods that have just started are not part of it, so that a normal start logs no warning.

    Args:
        pods: the known pods.
        exporters: returns the number of known exporters.
    """

    def __init__(self, pods: PodIndex, exporters: Callable[[], int]) -> None:
        self._pods = pods
        self._exporters = exporters
        self._announced = False
        self._logged = _NONE

    def note(self, counted: Counted) -> None:
        """Log what changed with this count."""
        if not self._announced:
            self._announced = True
            line = (
                f"ready: {len(self._pods)} pods, {counted.pods} with GPUs, "
                f"{self._exporters()} exporters, {counted.measured} measured"
            )
            log.info(line)
        if counted.lasting == self._logged:
            return
        self._logged = counted.lasting
        if not counted.lasting:
            log.info("every pod with a GPU has a value again", pods=counted.pods)
            return
        pod, absence = counted.example or (None, None)
        more = {}
        if pod is not None and absence is not None:
            why = explanation(absence, pod, self._find)
            more = {"example": f"{_name(pod)}: {why.message}", "hint": why.hint}
        log.warning(
            "pods with GPUs have no value",
            pods=counted.lasting.total(),
            of=counted.pods,
            reasons=dict(counted.lasting.most_common()),
            **more,
        )

    def _find(self, ref: PodRef) -> Pod | None:
        return self._pods.get(*ref)


def _name(pod: Pod) -> str:
    return f"{pod.ref.namespace}/{pod.ref.name}"
