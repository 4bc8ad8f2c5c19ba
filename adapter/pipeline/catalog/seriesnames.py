"""The names that stores, collectors, Ray and KServe make of the name that a page writes.

Some stores write every name in lower case (NVIDIA/dcgm-exporter#577). Manifests for
prometheus-adapter, vendors' guides and older OpenTelemetry collectors write ``_`` for ``:``. Behind
Ray, a server's names begin with ``ray_``, and the colon stays or becomes an underscore. The monitor
of an LLMInferenceService writes ``kserve_`` before those of vLLM (opendatahub-io/kserve#794). An
OpenTelemetry collector, or Prometheus' OTLP receiver, appends the unit, and ``_total`` to counters
(prometheus/otlptranslator, ``metric_namer.go``): the number is then in the unit of the suffix,
regardless of the unit of the name without it. It appends ``_ratio`` to gauges of unit 1, so also to
counts of devices. Servers state no unit for their counts, so these get no suffix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from adapter.pipeline.catalog.field import RAY
from adapter.pipeline.catalog.metric import Kind, Scope, Unit
from adapter.pipeline.catalog.quantities import MIB

_SUFFIXES: Final[Mapping[Unit, Mapping[str, float]]] = {
    Unit.PERCENT: {"percent": 1.0, "ratio": 100.0},
    Unit.RATIO: {"ratio": 1.0, "percent": 0.01},
    Unit.MEBIBYTES: {"mebibytes": 1.0, "bytes": 1 / MIB},
    Unit.BYTES: {"bytes": 1.0, "mebibytes": float(MIB)},
    Unit.BYTES_PER_SECOND: {"bytes_per_second": 1.0},
    Unit.MICROSECONDS_PER_SECOND: {"microseconds": 1.0, "seconds": 1e6},
    Unit.WATTS: {"watts": 1.0},
    Unit.MILLIWATTS: {"milliwatts": 1.0, "watts": 1000.0},
    Unit.CELSIUS: {"celsius": 1.0},
    Unit.MEGAHERTZ: {"MHz": 1.0, "hertz": 1e-6},
    Unit.REQUESTS: {},
    Unit.SECONDS: {},
    Unit.MILLISECONDS: {},
    Unit.TOKENS_PER_SECOND: {},
    Unit.REQUESTS_PER_SECOND: {},
    Unit.NUMBER: {},
    Unit.CODE: {"ratio": 1.0},
    Unit.DEVICES: {"ratio": 1.0},
}
"""Unit of a field -> suffix -> the factor that converts the number to the unit of the field."""
_UNITS: Final = frozenset(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)


def aliases(name: str, scope: Scope) -> list[str]:
    """Return a name and its other forms without a unit, which the API serves too."""
    forms = [name]
    if ":" in name:
        plain = name.replace(":", "_")
        forms.append(plain)
        if scope is Scope.SERVER:
            forms += [RAY + plain, RAY + name]
            forms += ["kserve_" + name] if name.startswith("vllm:") else []
    return list(dict.fromkeys(alias for form in forms for alias in (form, form.lower())))


def with_units(name: str, factor: float, unit: Unit, kind: Kind) -> Iterator[tuple[str, float]]:
    """Yield the names with a unit, and the factor that converts their number to ``unit``.

    A name that ends with a unit gets no other one, and none if its own is not the number's: the
    number of HAMi's ``..._utilization_ratio`` is a percentage.

    Args:
        factor: that of the name without the suffix.
        unit: of the field.
        kind: of the field. A counter's name also ends in ``_total``.
    """
    last = name.rpartition("_")[2]
    own_unit = last.lower() if last.lower() in _UNITS else None
    for suffix, into in _SUFFIXES[unit].items():
        if last == suffix or own_unit not in (None, suffix) or (own_unit and into != factor):
            continue
        yield f"{name}_{suffix}", into
        if kind is Kind.RATE:
            yield f"{name}_{suffix}_total", into
    if kind is Kind.RATE and last != "total":
        yield f"{name}_total", factor
