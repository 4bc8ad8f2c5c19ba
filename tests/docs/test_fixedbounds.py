"""The bounds of pages and samples in docs/limits.md that no setting changes are those of the code.

Each row also names the test that exceeds its bound.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from adapter.devices import assignment, idlepower, options, reader, rejects
from adapter.exposition import line, page
from adapter.exposition.limits import EXPORTER, SERVER
from adapter.serve import build
from adapter.sources.scrape import connection, selection, source
from adapter.store import store
from tests.docs.test_limits import PAGE, written

TESTS: Final = Path(__file__).parents[1] / "adapter"
EXPOSITION, HOSTILE = "exposition/test_limits.py", "sources/scrape/test_hostile_pages.py"
DEVICES, STORE = "devices/test_many_times.py", "store/test_store.py"
_OPTIONS: Final = options.TelemetryOptions()

ROWS: Final[dict[str, tuple[tuple[float, ...], str, str]]] = {
    "Lines of a page, including empty lines": (
        (EXPORTER.lines, SERVER.lines),
        EXPOSITION,
        "test_a_page_of_more_lines_than_it_may_have_is_abandoned_as_a_whole",
    ),
    "Cost of a page": (
        (EXPORTER.work, SERVER.work),
        EXPOSITION,
        "test_a_page_that_needs_too_many_closer_looks_is_abandoned_as_a_whole",
    ),
    "Samples of the catalogue on a page": (
        (EXPORTER.samples, SERVER.samples),
        "exposition/test_page.py",
        "test_rows_are_bounded",
    ),
    "Memory for the label sets of a page": (
        (EXPORTER.held, SERVER.held),
        EXPOSITION,
        "test_rows_whose_labels_have_no_room_are_left_out_and_counted",
    ),
    "Head of an answer": (
        (connection._MAX_HEAD,),
        HOSTILE,
        "test_an_endless_response_is_abandoned_with_little_memory",
    ),
    "Informational answers": (
        (connection._MAX_INFORMATIONAL,),
        HOSTILE,
        "test_an_endless_response_is_abandoned_with_little_memory",
    ),
    "Memory for pages that are being read": (
        (source._PAGE_BYTES, source._SERVER_PAGE_BYTES),
        "sources/scrape/test_scrapelimits.py",
        "test_beyond_the_bytes_pages_are_read_one_after_another",
    ),
    "Work on pages, and on samples of Prometheus": (
        (reader.SAMPLES, reader.DEVICES),
        "store/test_intake_steps.py",
        "test_every_step_has_a_bounded_number_of_samples_and_devices",
    ),
    "Time that pods without evidence are left out": (
        (selection.LINGER,),
        "sources/scrape/test_selection.py",
        "test_a_pod_with_only_labels_is_not_scraped_while_the_exporter_restarts",
    ),
    "Length of a line": (
        (page._MAX_LINE,),
        "exposition/test_page.py",
        "test_a_bad_line_costs_one_line",
    ),
    "Labels of a line": ((line.MAX_LABELS,), EXPOSITION, "test_lengths_of_labels_are_bounded"),
    "Length of a label's name and value": (
        (line.MAX_NAME, line.MAX_TEXT),
        EXPOSITION,
        "test_lengths_of_labels_are_bounded",
    ),
    "Devices and containers of one exporter": (
        (options.NODE_SERIES, build.STORED_SERIES),
        STORE,
        "test_an_exporter_that_invents_devices_is_bounded",
    ),
    "Times that one page of a pod gives": (
        (options.PAGE_TIMES, options.MAX_SAMPLES),
        DEVICES,
        "test_the_oldest_times_beyond_the_bound_are_left_out_and_counted",
    ),
    "Time that the last samples of a silent exporter": (
        (store._RETENTION,),
        STORE,
        "test_a_silent_exporter_is_dropped_eventually",
    ),
    "Models and devices whose idle power": (
        (idlepower._MAX_MODELS, idlepower._MAX_DEVICES),
        "devices/test_idlepower.py",
        "test_models_beyond_the_limit_are_not_learned",
    ),
    "Rejected samples that are remembered": (
        (rejects._MAX_RECENT,),
        STORE,
        "test_the_details_of_rejects_are_bounded_and_the_counts_are_not",
    ),
    "`exported_` prefixes": (
        (assignment._DEPTH - 1,),
        "devices/test_assignment.py",
        "test_label_names_are_decoded_to_a_bounded_depth",
    ),
    "Server parts and GPUs on one server page": (
        (_OPTIONS.server_series,),
        "store/test_serverbudget.py",
        "test_the_parts_of_one_server_are_bounded",
    ),
}
"""Start of the first cell: the bounds, in the order of the page, and the test."""


def _cells(start: str) -> list[str]:
    found = [row.split("|") for row in PAGE.splitlines() if row.startswith(f"| {start}")]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("start", ROWS)
def test_a_fixed_bound_is_that_of_the_code(start: str) -> None:
    bound = _cells(start)[2]
    numbers = iter(re.findall(r"[\d.,]*\d(?: (?:s|min|KiB|MiB)\b)?", bound))
    for value in ROWS[start][0]:
        assert any(number in written(value) for number in numbers), (bound, value)


@pytest.mark.parametrize("start", ROWS)
def test_the_test_of_a_bound_exists(start: str) -> None:
    _, path, name = ROWS[start]
    names = {
        node.name
        for node in ast.parse((TESTS / path).read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert name in names
