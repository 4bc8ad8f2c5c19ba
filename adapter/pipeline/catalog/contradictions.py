"""The types that describe which fields contradict a 0 of another field.

A false 0 scales a workload in, so each vendor's module lists what its exporters' pages offer
against one: other fields of the device (:class:`Contradiction`), and the device's own value beside
those of its containers (:class:`Whole`). :mod:`adapter.pipeline.devices.plausibility` and
:mod:`adapter.pipeline.devices.remainder` apply the lists.

Clocks do not show work: a process that only holds a context raises them to their maximum. Used
memory does not either: a server that waits for requests has loaded its model.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

WORKING_WATTS: Final = 400.0
"""Watts that an idle device of any model does not draw.

Idle devices draw at most about 200 W: an idle MI300X 182 W (ROCm/device-metrics-exporter#139), an
idle H100 70 W. Codecs and copies do not draw 400 W.
"""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A field that contradicts a 0 of another field of the same device.

    Args:
        zero: the field whose 0 is false. It is doubted only if all its samples over the window
            are 0.
        by: the field that shows the work.
        mean: the mean of ``by`` over the window from which it contradicts, in its unit.
        least: the same, for every sample of the window.
        at_once: the first page suffices, because ``zero`` is a utilization. Otherwise two
            readings of the exporter must agree.
    """

    zero: str
    by: str
    mean: float = inf
    least: float = inf
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """A field of the whole device, which the values of its containers must explain.

    Args:
        part: the field whose 0 is false if too much of ``whole`` remains unexplained.
        whole: the device's own field. It may be the same field, in samples without a pod.
        spare: the remainder that is normal, in the unit of ``part``.
        factor: from the unit of ``whole`` to that of ``part``.
        elsewhere: the sample of the whole may come from another exporter.
    """

    part: str
    whole: str
    spare: float
    factor: float = 1.0
    elsewhere: bool = False
