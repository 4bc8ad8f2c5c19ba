"""The section of docs/metrics.md about zeros that other fields contradict."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from adapter.pipeline.catalog import Catalog
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.metric import Unit
from adapter.pipeline.catalog.vendors import CONTRADICTIONS, WHOLES
from docs.paragraphs import wrapped


def section(catalog: Catalog) -> Iterator[str]:
    """Yield the lines of the section, from the catalogue's comparisons."""
    yield from ("## Zeros that are not served", "")
    yield from wrapped(
        """
        A false 0 scales a workload in. So a 0 over the window is absent if another field of the
        device shows work ([a 0 on a busy GPU](sharing.md#a-0-on-a-busy-gpu)). The limit applies to
        the mean over the window, or to *each* sample in it.
        """
    )
    yield from _contradictions(catalog)
    yield ""
    yield from wrapped(
        """
        The values of a device's containers explain the device's own value. They may miss a fifth
        of it, and at least the amount below. If more remains, a 0 of a container is absent.
        """
    )
    yield from _wholes(catalog)
    yield ""
    yield from wrapped(
        """
        A device in use never has a 0 of the fields below. Exporters write it if the device or its
        driver does not support the field. The metric's next formula is used, or the value is absent
        ([zero_of_unsupported_field](reasons.md#zero_of_unsupported_field)).
        """
    )
    fields = (f"`{_shown(field)}`" for field in catalog.fields.values() if field.positive)
    yield from wrapped(", ".join(fields) + ".")


def _shown(field: Field) -> str:
    """Return a field as a page shows it."""
    return (field.series or field.name) + field.condition


def _contradictions(catalog: Catalog) -> Iterator[str]:
    """One row for all fields whose zeros are compared with the same fields and limit."""
    beside: dict[tuple[str, str], list[str]] = {}
    for entry in CONTRADICTIONS:
        zero, by = catalog.fields[entry.zero], catalog.fields[entry.by]
        limit = min(entry.mean, entry.least)
        ratio = by.unit is Unit.RATIO
        unit = "%" if ratio or by.unit is Unit.PERCENT else by.unit
        amount = f"{100 * limit if ratio else limit:g} {unit}"
        how = "" if entry.mean < inf else ", each"
        beside.setdefault((_shown(zero), f"{amount}{how}"), []).append(f"`{_shown(by)}`")
    alike: dict[tuple[str, str], list[str]] = {}
    for (shown, text), names in beside.items():
        alike.setdefault((", ".join(names), text), []).append(f"`{shown}`")
    yield "| A 0 of | is absent beside | from |"
    yield "|---|---|---|"
    for (names_beside, text), zeros in alike.items():
        yield f"| {', '.join(zeros)} | {names_beside} | {text} |"


def _wholes(catalog: Catalog) -> Iterator[str]:
    """One row for all fields that explain the same field and may miss the same amount."""
    alike: dict[tuple[str, str], list[str]] = {}
    for entry in WHOLES:
        part, whole = catalog.fields[entry.part], catalog.fields[entry.whole]
        spare = f"{entry.spare:g} %" if part.unit is Unit.PERCENT else "1 GiB"
        where = ", of another exporter" if entry.elsewhere else ""
        alike.setdefault((f"`{_shown(whole)}`{where}", spare), []).append(f"`{_shown(part)}`")
    yield "| Container | Device | Amount |"
    yield "|---|---|---|"
    for (device, spare), parts in alike.items():
        yield f"| {', '.join(parts)} | {device} | {spare} |"
