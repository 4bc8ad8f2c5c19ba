"""Parts that several kinds of objects have: values, and the reasons for missing ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from adapter.answers.view.schema import array, boolean, integer, number, struct, text, time
from adapter.pipeline.attribution.reading import Absence, Reading
from adapter.pipeline.attribution.reasons import explanation
from adapter.pipeline.catalog.metric import Metric
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.devices.series import DeviceSeries
from adapter.pipeline.store.snapshot import Snapshot
from apiservice.wire import instant
from apiservice.wire.quantity import format_milli, to_milli

Json = dict[str, Any]

METRIC: Final = text("Name of the metric, as an HPA names it, such as gpu_utilization.")
QUANTITY: Final = text("The value as a Kubernetes quantity, as an HPA reads it: 87500m is 87.5.")
NUMBER: Final = number("The same value as a number, rounded to three decimals.")
UNIT: Final = text("Unit of the value, such as percent, bytes, W or requests.")
TIME: Final = time("When the value was measured. For several devices, the oldest of their times.")
WINDOW: Final = integer("Seconds of the window of the mean or rate. Absent for a newest value.")
IDLE: Final = time(
    "Since when every sample shows an idle device. Absent if one shows work, or if none can."
)
REASONS: Final = {
    "reason": text("Stable code of the reason, as self-metrics and documentation use it."),
    "message": text("The reason in words, with what it is about."),
    "hint": text("The fix: a command to paste, or what to change."),
    "docs": text("Page of the project's documentation about this reason."),
}

WHOLE_REASON: Final = REASONS | {
    "then": text("A command for the case that the hint shows no cause."),
    "changes": text(
        "The object that the hint changes, as KIND/NAMESPACE/NAME. What manages the object decides "
        "where the change lasts. Absent if the hint changes none."
    ),
}
"""Why a pod has no value. Only reasons of the whole pod have a second command, or an object to
change."""


def round_number(value: float) -> float:
    """Return a number to three decimals; a whole one without any."""
    return int(value) if value == int(value) else round(value, 3)


def amount(value: float, metric: Metric) -> Json:
    """Return a value as quantity and as number, with its unit.

    Raises:
        ValueError: a quantity cannot express the value.
    """
    milli = to_milli(value)
    return {
        "value": format_milli(milli),
        "number": round_number(milli / 1000),
        "unit": metric.unit.value,
    }


def is_expressible(value: float) -> bool:
    """Return whether a quantity can express the value."""
    try:
        to_milli(value)
    except ValueError:
        return False
    return True


def value_fields(metric: Metric, reading: Reading) -> Json:
    """Return the fields of a value.

    Raises:
        ValueError: a quantity cannot express the value.
    """
    fields: Json = {"metric": metric.name, **amount(reading.value, metric)}
    fields["time"] = instant.write(reading.time)
    if reading.window is not None:
        fields["windowSeconds"] = reading.window
    if reading.devices:
        fields["series"] = sorted({part.formula for part in reading.devices})
    if reading.partial:
        fields["partial"] = True
    if reading.note:
        fields["precision"] = reading.note
    return fields


SERIES: Final = array(
    "The exporter's series, or sum of series, that the value was computed from.",
    text("Name of a series on the exporter's page."),
)
PARTIAL: Final = boolean("True if some of the devices have no valid value. At least half have one.")
PRECISION: Final = text(
    "Of a latency: the bounds of the histogram's bucket between which the value lies, or the last "
    "bound that it exceeds, and how many requests or tokens were counted in which time. Of "
    "inference_slo_ratio: load, capacity, evidence, and what decided the value."
)
VALUE: Final = {
    "metric": METRIC,
    "value": QUANTITY,
    "number": NUMBER,
    "unit": UNIT,
    "time": TIME,
    "windowSeconds": WINDOW,
    "series": SERIES,
    "partial": PARTIAL,
}


def why(absence: Absence, snapshot: Snapshot, pod: Pod | None = None) -> Json:
    """Return the reason of an absence, in words, with the fix.

    Args:
        absence: the absence.
        snapshot: knows the exporters' pods.
        pod: the pod that has no value; None for a device.
    """
    fields = explanation(absence, pod, snapshot.cluster.pod)._asdict()
    fields["reason"] = str(fields["reason"])
    return {name: text for name, text in fields.items() if text}


class Reasons:
    """Reasons for missing values, each once, with the metrics that it concerns.

    Args:
        snapshot: knows the exporters' pods.
        pod: the pod that has no value; None for a device.
    """

    def __init__(self, snapshot: Snapshot, pod: Pod | None = None) -> None:
        self._snapshot = snapshot
        self._pod = pod
        self._found: dict[str, tuple[Absence, list[str]]] = {}

    def add(self, absence: Absence, metric: Metric) -> None:
        """Note that a metric has no value."""
        _, names = self._found.setdefault(absence.reason, (absence, []))
        if metric.name not in names:
            names.append(metric.name)

    def list_reasons(self, of: DeviceSeries | None = None) -> list[Json]:
        """Return the reasons in the order in which they were noted.

        Args:
            of: the device that has no value; its exporter is where to look.
        """
        return [
            {
                **why(_absence_of_device(absence, of, self._snapshot), self._snapshot, self._pod),
                "metrics": names,
            }
            for absence, names in self._found.values()
        ]


def _absence_of_device(absence: Absence, of: DeviceSeries | None, snapshot: Snapshot) -> Absence:
    """Return an absence of a device without the device in its detail, with the exporter's pod."""
    if of is None:
        return absence
    state = snapshot.states.get(of.origin)
    return replace(absence, detail="", exporter=state.pod if state is not None else None)


MISSING: Final = struct(
    "A reason for missing values, and the metrics that it concerns. They are not 0.",
    **REASONS,
    metrics=array("The metrics.", METRIC),
)
ABSENT: Final = struct(
    "A reason for missing values of a pod, and the metrics that it concerns. They are not 0.",
    **WHOLE_REASON,
    metrics=array("The metrics.", METRIC),
)
