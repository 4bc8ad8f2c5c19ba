"""The part ``hpas``: each HPA, and the cause that it shares with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapter.tools.overview.groups import by_cause
from adapter.tools.overview.hpas import HpaSummary

Json = dict[str, Any]


def hpa_rows(states: Sequence[HpaSummary]) -> list[Json]:
    """Return the rows of the page, with ``group``: the cause of several HPAs in words.

    ``group`` is null for an HPA that does well, and for one whose cause few others share. The
    page puts the rows with one ``group`` together, as far as its filters let them through.
    """
    rows = [state.json() | {"group": None} for state in states]
    troubled = [place for place, state in enumerate(states) if state.level != "good"]
    for group in by_cause([states[place].cause for place in troubled]):
        if group.shown:
            for place in group.rows:
                rows[troubled[place]]["group"] = group.text
    return rows
