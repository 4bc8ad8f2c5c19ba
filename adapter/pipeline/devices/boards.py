"""Give each partition of a board the values that its exporter writes for the first one only.

AMD's exporter reads power and temperature from the board's first partition. The samples of the
others are 0, or missing (:attr:`adapter.pipeline.catalog.field.Mig.FIRST`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from adapter.pipeline.catalog.field import Mig
from adapter.pipeline.devices.builder import SeriesBuilder
from adapter.pipeline.devices.history import Frame
from apiservice.runtime.steps import StepBudget, Steps

_FRAMES: Final = 64
"""Frames that one step reads."""
_Moment = tuple[str, float]
"""A board, and epoch seconds."""


def lend_board_values(builders: Iterable[SeriesBuilder]) -> Steps[bool]:
    """Set the board's values of each time on all of its partitions; each 0 counts as missing.

    The work is proportional to the number of samples.

    Args:
        builders: the builders of one scrape result; changed in place.

    Returns:
        Whether the page has such fields, so that a sample alone does not give its device's value.
    """
    partitions = [
        (device.board, builder)
        for builder in builders
        if builder.mig and (device := builder.identity.device) is not None
    ]
    step = StepBudget(_FRAMES)
    shown: defaultdict[_Moment, Frame] = defaultdict(dict)
    for board, builder in partitions:
        _note_values(board, builder, shown)
        if step.spent(len(builder.frames)):
            yield
    if not shown:
        return False
    for board, builder in partitions:
        for time, frame in builder.frames.items():
            for spelling, value in shown.get((board, time), {}).items():
                frame[spelling] = frame.get(spelling) or value
        if step.spent(len(builder.frames)):
            yield
    return True


def _note_values(board: str, builder: SeriesBuilder, shown: defaultdict[_Moment, Frame]) -> None:
    """Add a partition's samples of its board's values; the largest counts."""
    for time, frame in builder.frames.items():
        for spelling, value in frame.items():
            if spelling.field.mig is Mig.FIRST:
                of_board = shown[board, time]
                of_board[spelling] = max(value, of_board.get(spelling, value))
