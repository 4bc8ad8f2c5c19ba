"""Rows about pages, scrapes, stored samples and devices."""

from __future__ import annotations

from typing import Final

from adapter.config.settings.accounting import AccountingSettings
from adapter.pipeline.catalog import labelvalue
from adapter.pipeline.devices import (
    accounting,
    firstpages,
    idlepower,
    options,
    pagecheck,
    pageshape,
    quickchecks,
    reader,
    rejects,
)
from adapter.pipeline.exposition import line, page, pagelayout, podlabels
from adapter.pipeline.exposition.limits import EXPORTER, SERVER
from adapter.pipeline.sources.prometheus import storedpages
from adapter.pipeline.sources.scrape import (
    client,
    connection,
    largepages,
    refusal,
    selection,
    source,
)
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.pipeline.store import serverbudget, store
from adapter.server.serve import build, garbage
from apiservice.runtime import names, steps
from tests.docs.bounds.row import Rows, most, row

_PAGE = "adapter/pipeline/exposition/test_page.py::"
_LIMITS = "adapter/pipeline/exposition/test_limits.py::"
_NAMES = "apiservice/runtime/test_names.py::"
_HOSTILE = "adapter/pipeline/sources/scrape/test_hostile_pages.py::"
_LARGE = "adapter/pipeline/sources/scrape/test_largepages.py::"
_ACCESS = "adapter/pipeline/sources/scrape/test_access.py::"
_SOURCE = "adapter/pipeline/sources/scrape/test_source.py::"
_SCRAPE_LIMITS = "adapter/pipeline/sources/scrape/test_scrapelimits.py::"
_SELECTION = "adapter/pipeline/sources/scrape/test_selection.py::"
_GARBAGE = "adapter/server/serve/test_garbage.py::"
_CUT = "adapter/pipeline/devices/test_cutlabels.py::"
_LAYOUTS = "adapter/pipeline/exposition/test_pagelayout.py::"
_RING = "adapter/pipeline/devices/test_ring_verdicts.py::"
_STORED = "adapter/pipeline/sources/prometheus/test_storedpages.py::"
_STEPS = "adapter/pipeline/store/test_intake_steps.py::"
_TURNS = "apiservice/runtime/test_turns.py::"
_TIMES = "adapter/pipeline/devices/test_many_times.py::"
_IDLE = "adapter/pipeline/devices/test_idlepower.py::"
_STORE = "adapter/pipeline/store/test_store.py::"
_BUDGET = "adapter/pipeline/store/test_serverbudget.py::"
_LEDGER = "adapter/server/serve/test_gpuledger.py::"
_SCRAPE: Final = ScrapeOptions()
_SERIES: Final = options.TelemetryOptions()
_ENDLESS = _HOSTILE + "test_an_endless_response_is_abandoned_with_little_memory"

PAGES: Final[Rows] = {
    "Lines of a page": row(
        *(EXPORTER.lines, SERVER.lines),
        by=(
            _LIMITS + "test_a_page_of_more_lines_than_it_may_have_is_abandoned_as_a_whole",
            _HOSTILE + "test_a_gzip_of_line_feeds_is_abandoned_and_counted",
        ),
    ),
    "Cost of a page": row(
        *(EXPORTER.work, SERVER.work),
        by=(
            _LIMITS + "test_a_page_that_needs_too_many_closer_looks_is_abandoned_as_a_whole",
            _LIMITS + "test_a_pods_own_page_may_cost_less_than_an_exporters",
        ),
    ),
    "Samples of the catalogue": row(
        *(EXPORTER.samples, SERVER.samples), by=_PAGE + "test_rows_are_bounded"
    ),
    "Memory for the label sets of a page": row(
        *(EXPORTER.held, SERVER.held),
        by=_LIMITS + "test_rows_whose_labels_have_no_room_are_left_out_and_counted",
    ),
    "Memory for the label sets of all pages": row(
        *(_SCRAPE.label_bytes, _SCRAPE.server_label_bytes),
        by=(
            _HOSTILE + "test_the_label_sets_of_all_pods_share_one_budget",
            _SCRAPE_LIMITS + "test_pages_of_one_namespace_leave_memory_for_those_of_another",
        ),
    ),
    "Size of a page": row(
        *(_SCRAPE.max_bytes, _SCRAPE.server_max_bytes),
        by=_HOSTILE + "test_a_pod_page_has_a_smaller_limit_than_an_exporter_page",
    ),
    "Bytes and lines of a server page of which": row(
        *(largepages.MOST_BYTES, largepages.MOST_LINES),
        by=(
            _LARGE + "test_the_known_series_of_a_large_server_page_are_read",
            _LARGE + "test_the_reason_of_a_page_beyond_a_bound_names_the_setting",
        ),
    ),
    "Time in which lines of all such pages": row(
        100 * largepages.SHARE, by=_LARGE + "test_dropping_lines_takes_a_share_of_the_time"
    ),
    "Size of an answer on the wire": row(5, 4, client._HEAD, by=_ENDLESS),
    "Head of an answer": row(connection._MAX_HEAD, by=_ENDLESS),
    "Informational answers": row(
        connection._MAX_INFORMATIONAL,
        by=(_ENDLESS, _HOSTILE + "test_a_few_informational_responses_are_skipped"),
    ),
    "Unrequested bytes": row(by=_HOSTILE + "test_unsolicited_bytes_only_end_the_connection"),
    "Scrapes on one connection": row(
        1,
        by=(
            _HOSTILE + "test_each_pod_page_uses_its_own_connection",
            _SOURCE + "test_scrapes_repeat_on_one_connection",
        ),
    ),
    "Memory for pages that are being read": row(
        *(source._PAGE_BYTES, source._SERVER_PAGE_BYTES),
        by=_SCRAPE_LIMITS + "test_beyond_the_bytes_pages_are_read_one_after_another",
    ),
    "Scrapes in progress": row(
        *(_SCRAPE.concurrency, _SCRAPE.concurrency),
        _SCRAPE.concurrency // source._NAMESPACE_SHARE,
        by=(
            _SOURCE + "test_no_more_scrapes_run_at_once_than_allowed",
            _HOSTILE
            + "test_silent_pods_of_one_namespace_leave_places_for_others_and_for_exporters",
        ),
    ),
    "Duration of a scrape": row(_SCRAPE.timeout, by=_SOURCE + "test_a_slow_exporter_times_out"),
    "Pages that are parsed": row(
        *(1, 1, EXPORTER.large, SERVER.large, 1, 1),
        by=_SCRAPE_LIMITS + "test_one_large_and_one_small_page_are_parsed_at_the_same_time",
    ),
    "Work on pages, and on samples of Prometheus": row(
        *(steps.SLICE, reader.SAMPLES, reader.DEVICES, accounting.FRAMES),
        by=(
            _STEPS + "test_every_step_has_a_bounded_number_of_samples_and_devices",
            _TURNS + "test_all_tasks_together_take_one_slice_of_each_iteration",
        ),
    ),
    "Visits of Python's garbage collector": row(
        *(garbage._GROWN, garbage._FRUITLESS, garbage._GROWN_START),
        *(100 / garbage._SHARE, garbage._YOUNG),
        by=(
            _GARBAGE + "test_at_the_start_memory_has_to_grow_by_768_mebibytes",
            _GARBAGE + "test_later_a_half_is_enough_and_never_less_than_64_mebibytes",
            _GARBAGE
            + "test_a_full_collection_that_finds_nothing_doubles_the_growth_that_starts_the_next",
            _GARBAGE + "test_a_full_collection_takes_a_tenth_of_the_time_at_most",
        ),
    ),
    "Exporters that are scraped on one node": row(
        by=(
            _SELECTION + "test_one_pod_of_a_rule_without_a_namespace_is_scraped",
            _SELECTION + "test_all_pods_of_a_rule_with_a_namespace_are_scraped",
            _SELECTION
            + "test_an_exporter_that_is_left_out_is_logged_once_with_both_pods_and_a_hint",
        )
    ),
    "Time that pods without evidence": row(
        selection.LINGER,
        by=_SELECTION + "test_a_pod_with_only_labels_is_not_scraped_while_the_exporter_restarts",
    ),
    "Layouts of pages": row(
        *(most(pagelayout.share_equal), EXPORTER.large),
        by=(
            _LAYOUTS + "test_few_layouts_are_shared",
            _LAYOUTS + "test_a_layout_is_not_kept_for_server_pages",
            _LAYOUTS + "test_a_layout_is_not_kept_for_large_pages",
        ),
    ),
    "Parsed addresses": row(
        most(client._address),
        *(
            most(pageshape.page_numbers),
            most(pageshape.columns_of),
        ),
        by=(
            "adapter/pipeline/sources/scrape/test_target.py::test_the_oldest_address_is_parsed_again",
            _RING + "test_few_shapes_checks_and_bounds_are_kept",
        ),
    ),
    "Times of an exporter's series": row(
        storedpages._MOST_TIMES,
        by=_STORED + "test_a_round_of_many_new_scrapes_is_not_a_page",
    ),
    "Numbers in the rows": row(
        firstpages._SPARSE,
        by="adapter/pipeline/devices/test_ring.py::"
        "test_pages_whose_devices_have_other_times_make_no_rows",
    ),
    "Checks of pages": row(
        most(pagecheck.page_check),
        most(quickchecks.working_bounds),
        most(quickchecks.resting_bounds),
        by=_RING + "test_few_shapes_checks_and_bounds_are_kept",
    ),
    "Pages that are read in one piece": row(
        client._SHORT, by=_HOSTILE + "test_a_page_of_any_length_is_read"
    ),
    "Idle connections that are closed": row(
        client._DROPPED, by=_HOSTILE + "test_idle_connections_are_closed_a_few_at_a_time"
    ),
    "Samples without a readable number": row(
        *(page._UNREAD, page._UNREAD_TEXT),
        by=_PAGE + "test_few_samples_without_a_number_are_kept",
    ),
    "Look-ups of host names at once": row(
        *(names._QUICK, names._SLOW, names._PATIENCE),
        by=_NAMES + "test_names_that_hang_delay_no_other_name",
    ),
    "Wait for the look-up of a host name": row(
        *(names._WAIT, client._LOOK_UP, names._KEPT),
        by=(
            _NAMES + "test_a_caller_waits_for_a_bounded_time_and_the_answer_is_for_the_next_one",
            _NAMES + "test_a_late_answer_is_used_for_half_a_minute",
        ),
    ),
    "TLS handshake with a server that hung up": row(
        client._HANDSHAKE, by=_ACCESS + "test_a_server_that_hangs_up_does_not_speak_tls"
    ),
    "Answer with an error status": row(
        refusal.READ, by=_ACCESS + "test_little_is_read_of_an_answer_that_is_not_the_page"
    ),
    "Length of a line": row(page._MAX_LINE, by=_PAGE + "test_a_bad_line_costs_one_line"),
    "Labels of a line": row(
        *(line.MAX_LABELS, line.MAX_WRITTEN),
        by=(
            _LIMITS + "test_a_label_beyond_a_bound_is_left_out_of_its_line",
            _LIMITS + "test_a_line_of_far_too_many_labels_is_left_out",
            _CUT + "test_a_label_between_too_many_costs_the_sample_if_it_is_read",
        ),
    ),
    "Length of a label's name": row(
        *(line.MAX_NAME, line.MAX_TEXT),
        by=(
            _LIMITS + "test_a_label_beyond_a_bound_is_left_out_of_its_line",
            _CUT + "test_a_label_that_is_read_and_too_long_costs_the_sample",
        ),
    ),
}

STORED: Final[Rows] = {
    "Accounts of GPU-seconds": row(
        AccountingSettings().accounts,
        by=_LEDGER + "test_the_accounts_with_most_gpus_have_series_and_the_rest_is_one",
    ),
    "Devices and containers of one exporter": row(
        *(options.NODE_SERIES, build.STORED_SERIES),
        by=_STORE + "test_an_exporter_that_invents_devices_is_bounded",
    ),
    "Times that one page of a pod gives": row(
        *(options.PAGE_TIMES, options.MAX_SAMPLES),
        by=(
            _TIMES + "test_the_oldest_times_beyond_the_bound_are_left_out_and_counted",
            _TIMES + "test_a_pod_page_keeps_few_times",
        ),
    ),
    "Time that the last samples of a silent exporter": row(
        store._RETENTION,
        by=(
            _STORE + "test_a_silent_exporter_is_dropped_eventually",
            _STORE + "test_samples_of_a_dropped_exporter_are_kept_until_the_age_limit",
        ),
    ),
    "Models and devices whose idle power": row(
        *(idlepower._MAX_MODELS, idlepower._MAX_DEVICES),
        by=(
            _IDLE + "test_models_beyond_the_limit_are_not_learned",
            _IDLE + "test_devices_beyond_the_limit_of_a_model_use_the_idle_power_of_the_others",
        ),
    ),
    "Rejected samples that are remembered": row(
        rejects._MAX_RECENT,
        by=_STORE + "test_the_details_of_rejects_are_bounded_and_the_counts_are_not",
    ),
    "`exported_` prefixes": row(
        podlabels._DEPTH - 1,
        by="adapter/pipeline/exposition/test_podlabels.py::test_label_names_are_decoded_to_a_bounded_depth",
    ),
    "Memory for the samples of server pages": row(
        *(_SERIES.server_bytes, _SERIES.server_bytes // serverbudget._SHARE),
        by=(
            _BUDGET + "test_a_page_above_the_limit_of_a_pod_keeps_the_previous_page",
            _BUDGET + "test_all_pods_share_one_budget_and_release_it",
            _BUDGET + "test_a_namespace_that_fills_the_budget_yields_to_another",
        ),
    ),
    "Server parts and GPUs": row(
        _SERIES.server_series, by=_BUDGET + "test_the_parts_of_one_server_are_bounded"
    ),
    "Cached label values": row(
        *(most(labelvalue._remembered), labelvalue._REMEMBERED),
        by="adapter/pipeline/catalog/test_labelvalue.py::test_only_short_texts_are_cached",
    ),
}
