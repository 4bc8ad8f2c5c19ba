"""Rows about the user's tools, recording and replay, and doctor."""

from __future__ import annotations

from typing import Final

from adapter.answers.keda import trouble
from adapter.answers.rules import rulefile
from adapter.config.settings.recording import RecordingSettings
from adapter.pipeline.sources.scrape.options import ScrapeOptions
from adapter.server.recording import blocks, layout, reader, recorder, records, writer
from adapter.tools.client import access
from adapter.tools.client.options import ClientOptions
from adapter.tools.doctor import collect, fetch, manifestfiles, scrapes
from adapter.tools.doctor import store as prometheus
from adapter.tools.explain import hpafacts, hpametric, scaledfacts
from adapter.tools.migrate import compare, configfile, servers
from adapter.tools.replay import (
    defects,
    options,
    simulation,
    storequeries,
    storerecording,
    storespans,
    variants,
)
from adapter.tools.top import state, summaries
from apiservice.kube import client, pages
from tests.docs.bounds.row import Rows, default, row

_ACCESS = "adapter/tools/client/test_access.py::"
_EXPLAIN = "adapter/tools/explain/test_texts.py::"
_SCALED_FACTS = "adapter/tools/explain/test_scaledfacts.py::"
_TROUBLE = "adapter/answers/keda/test_trouble.py::"
_COMPARE = "adapter/tools/migrate/test_compare.py::"
_FILES = "adapter/tools/migrate/test_files.py::"
_TABLES = "adapter/tools/top/test_tables.py::"
_FILTER = "adapter/tools/top/test_state.py::"
_LIVE = "adapter/tools/top/test_live.py::"
_RECORDER = "adapter/server/recording/test_recorder.py::"
_STORE = "adapter/tools/replay/test_store.py::"
_FILE = "adapter/server/recording/test_file.py::"
_NODES: Final = "adapter/tools/replay/test_nodes.py::test_a_wrong_option_is_named"
_STUDY = "adapter/tools/replay/test_study.py::"
_COLLECT = "adapter/tools/doctor/test_collect.py::"
_MANIFESTS = "adapter/tools/doctor/test_manifests.py::"
_FETCH = "adapter/tools/doctor/test_fetch.py::"
_ENDED = _RECORDER + "test_a_failure_ends_the_recording_and_nothing_else"
_SCRAPE: Final = ScrapeOptions()

TOOLS: Final[Rows] = {
    "Time for one request": row(
        access.TIMEOUT, by=_ACCESS + "test_a_server_that_does_not_answer_is_left"
    ),
    "Objects of one list": row(
        pages._MOST_OBJECTS,
        by=(
            _ACCESS + "test_a_list_of_too_many_objects_is_left",
            _ACCESS + "test_a_list_is_read_in_pages_of_500",
        ),
    ),
    "Bytes of one answer |": row(
        client._MOST_ANSWER, by=_ACCESS + "test_an_answer_that_is_too_long_is_left"
    ),
    "Other HPAs of the namespace": row(
        hpafacts._RIVALS, by=_EXPLAIN + "test_some_other_hpas_are_compared"
    ),
    "Pause between two rounds": row(
        default(ClientOptions, "interval"),
        by=_LIVE + "test_a_slow_round_is_followed_by_a_longer_pause",
    ),
    "Rows of one part": row(
        summaries.SHOWN,
        by=_TABLES + "test_each_part_of_the_overview_is_bounded_and_says_how_many_there_are",
    ),
    "Characters of a filter": row(state._LONGEST, by=_FILTER + "test_a_filter_is_bounded"),
    "File of `migrate -f`": row(
        *(configfile.MOST_BYTES, rulefile.MAX_BYTES),
        by=_FILES + "test_a_file_that_cannot_be_used_is_one_line",
    ),
    "Bytes of one answer that": row(
        servers.MOST_BYTES, by=_COMPARE + "test_an_answer_is_bounded_and_must_be_json"
    ),
    "Metrics that `migrate --compare`": row(
        *(compare.MOST_PATHS, compare.SECONDS),
        by=_COMPARE + "test_requests_and_time_are_bounded",
    ),
    "Services of scalers": row(
        *(scaledfacts._SCALERS, trouble._SHOWN),
        by=(
            _SCALED_FACTS + "test_the_services_of_the_first_triggers_are_read",
            _TROUBLE + "test_a_scaledobject_of_megabytes_has_few_causes_in_short_texts",
        ),
    ),
    "Pods of a metric": row(
        *(hpametric._LISTED, hpametric._PROBLEMS),
        by=(
            _EXPLAIN + "test_the_text_of_a_situation",
            _EXPLAIN + "test_pods_without_a_value_beyond_the_bound_are_counted",
        ),
    ),
}

RECORDING: Final[Rows] = {
    "Bytes of a recording": row(RecordingSettings().max_bytes, by=_ENDED),
    "Lines that wait": row(recorder._WAITING, by=_ENDED),
    "Bytes of one event": row(blocks.WRITTEN, by=_FILE + "test_a_block_has_whole_lines"),
    "Time that a killed process loses": row(
        recorder._EVERY,
        by=_FILE + "test_every_end_that_a_kill_may_leave_costs_the_last_block_only",
    ),
    "Exporters whose layout": row(
        layout.ORIGINS, by=_FILE + "test_a_layout_beyond_the_bound_is_written_again"
    ),
    "Label sets with a number": row(
        writer._LABEL_SETS, by=_FILE + "test_numbers_of_label_sets_begin_again"
    ),
    "Bytes of a block": row(
        *(blocks.MOST, blocks.MOST_TEXT),
        by=_FILE + "test_a_block_beyond_the_bounds_counts_as_damaged",
    ),
    "Parts of a line": row(
        records.MOST_PARTS, by=_FILE + "test_a_line_of_too_many_parts_takes_no_memory"
    ),
    "Label sets, and series": row(
        *(reader.LABEL_BYTES, reader.MOST_SERIES),
        by=(
            _FILE + "test_label_sets_beyond_the_bound_are_forgotten",
            _FILE + "test_layouts_of_more_series_than_the_bound_are_forgotten",
        ),
    ),
    "Pods, nodes and HPAs of a recording": row(
        reader.OBJECT_BYTES,
        by=_FILE + "test_more_objects_at_one_time_than_the_bound_are_one_line",
    ),
    "Answer of a store to a replay": row(
        *(storequeries.MOST_BYTES, storespans.MOST_BYTES),
        by=_STORE + "test_answers_that_are_too_large_for_the_shortest_span_are_one_line",
    ),
    "Combinations": row(variants.MOST, by=_STUDY + "test_too_many_combinations_are_refused"),
    "Values of `--headroom`": row(options.MOST, by=_NODES),
    "Pods of a value": row(options.MOST_PODS, by=_NODES),
    "Replicas of an HPA": row(
        simulation.MOST_REPLICAS,
        by="adapter/tools/replay/test_options.py::test_a_wrong_value_is_named",
    ),
    "Boot time of a node": row(options.LONGEST, by=_NODES),
    "Defects": row(
        defects.MOST,
        by=(
            "adapter/tools/replay/test_defects.py"
            "::test_stretches_that_touch_become_one_and_others_are_bounded"
        ),
    ),
    "Time that a replay reads": row(
        storerecording.LONGEST / 86_400,
        by="adapter/tools/replay/test_store.py::test_wrong_options_are_named",
    ),
}

DOCTOR: Final[Rows] = {
    "Objects of one kind": row(
        *(collect.MOST, access._PAGE),
        by=_COLLECT + "test_a_list_ends_at_its_bound_with_a_note",
    ),
    "Time for all lists": row(
        collect.SECONDS, by=_COLLECT + "test_lists_end_when_their_time_is_over"
    ),
    "Time for one request": row(
        *(access.TIMEOUT, fetch.SECONDS),
        by=(
            _ACCESS + "test_a_server_that_does_not_answer_is_left",
            _FETCH + "test_an_address_that_does_not_answer_is_left",
        ),
    ),
    "Pages of exporters": row(
        *(scrapes.MOST_PAGES, scrapes._AT_ONCE),
        by=(
            _COLLECT
            + "test_pages_are_read_up_to_their_bound_and_an_object_that_cannot_be_read_is_noted",
            _FETCH + "test_some_pages_are_read_at_the_same_time",
        ),
    ),
    "Size of a page": row(
        *(_SCRAPE.max_bytes, _SCRAPE.server_max_bytes),
        by=_COLLECT + "test_a_page_beyond_its_size_is_a_finding",
    ),
    "Size of an answer": row(
        prometheus._MOST, by=_FETCH + "test_a_long_answer_of_prometheus_is_not_decoded"
    ),
    "Namespaces whose values": row(
        collect._NAMESPACES, by=_COLLECT + "test_values_are_read_in_some_namespaces"
    ),
    "Files, and size": row(
        *(manifestfiles.MOST_FILES, manifestfiles.MOST_BYTES),
        by=_MANIFESTS + "test_a_large_file_and_many_files_are_bounded",
    ),
}
