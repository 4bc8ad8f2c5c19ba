"""Rows about the demo and the page."""

from __future__ import annotations

from typing import Final

from adapter.demo import world
from adapter.demo.cluster import app, documents, listener, upstream
from adapter.tools.ui import (
    collector,
    data,
    devicechanges,
    explanations,
    history,
    idlelist,
    prometheusrange,
    server,
    stream,
    timeline,
)
from tests.docs.bounds.row import Rows, row

_DEMO = "adapter/demo/test_bounds.py::"
_BOUNDS = "adapter/tools/ui/test_bounds.py::"
_STREAM = "adapter/tools/ui/test_stream.py::"
_TIMELINE = "adapter/tools/ui/test_timeline.py::"
_ROWS = "adapter/tools/ui/test_rows.py::"
_RANGE = "adapter/tools/ui/test_prometheusrange.py::"

DEMO: Final[Rows] = {
    "Connections to the demo": row(
        listener.AT_ONCE, by=_DEMO + "test_a_connection_beyond_those_that_are_answered_is_closed"
    ),
    "Requests that are forwarded": row(
        upstream.AT_ONCE,
        by=_DEMO + "test_requests_for_serve_over_the_bound_wait_for_their_turn",
    ),
    "Answer of `serve`": row(
        *(upstream.MOST_BYTES, upstream.SECONDS),
        by=(
            _DEMO + "test_an_answer_beyond_the_bound_is_cut_and_not_ended",
            _DEMO + "test_an_answer_that_stops_halfway_is_cut_and_not_ended",
        ),
    ),
    "Page of an exporter": row(
        *(app.MOST_BYTES, app._SECONDS),
        by=(
            _DEMO + "test_a_page_beyond_the_bound_is_a_503",
            _DEMO + "test_a_page_that_does_not_come_in_time_is_a_503",
        ),
    ),
    "Body of a review": row(
        documents._BODY,
        by="adapter/demo/test_cluster.py::test_a_review_is_bounded_and_must_be_json",
    ),
    "Changes of pods": row(world._CHANGES, by=_DEMO + "test_the_oldest_changes_are_forgotten"),
}

UI: Final[Rows] = {
    "Connections to the page": row(
        server.CONNECTIONS,
        by=(
            _BOUNDS + "test_a_connection_beyond_those_that_are_answered_is_closed",
            _BOUNDS + "test_a_new_connection_takes_the_place_of_an_idle_one",
        ),
    ),
    "Head of a request to the page": row(
        *(server.LIMITS.max_headers, server.LIMITS.stranger_header_lines),
        by="attack/test_ui.py::test_heads_of_another_account_are_not_kept",
    ),
    "Streams at once": row(
        stream.MOST_STREAMS, by=_STREAM + "test_the_seventeenth_stream_gets_a_sentence"
    ),
    "Time for which a client": row(
        server.LIMITS.write_timeout, by=_STREAM + "test_a_client_that_reads_nothing_is_left"
    ),
    "Versions of a part": row(1, by=_STREAM + "test_a_slow_client_skips_versions"),
    "Explanations at once": row(
        *(explanations.AT_ONCE, explanations.WAITING),
        by=_BOUNDS + "test_four_explanations_run_sixteen_wait_and_a_further_one_is_rejected",
    ),
    "Time for one explanation": row(
        explanations._LONGEST,
        by=_BOUNDS + "test_an_explanation_ends_after_its_time_and_frees_its_place",
    ),
    "Time for one list": row(
        collector.LONGEST,
        by=_BOUNDS + "test_a_list_that_is_not_complete_in_time_fails_alone_and_is_read_again",
    ),
    "Entries of the timeline": row(timeline.MOST, by=_TIMELINE + "test_the_timeline_is_bounded"),
    "Entries about single GPUs": row(
        devicechanges.MOST, by=_TIMELINE + "test_many_single_changes_are_counted"
    ),
    "Points of one HPA": row(
        history.POINTS, by=_ROWS + "test_the_history_of_an_hpa_has_gaps_and_an_end"
    ),
    "HPAs whose points": row(history.MOST_HPAS, by=_ROWS + "test_the_history_is_bounded_in_hpas"),
    "HPAs of one request": row(
        data.MOST_NAMES, by=_BOUNDS + "test_points_of_more_hpas_than_the_bound_are_400"
    ),
    "Pods on idle GPUs": row(idlelist.MOST_PODS, by=_ROWS + "test_idle_pods_are_bounded"),
    "Bytes of a Prometheus": row(
        *(prometheusrange.MOST_BYTES, prometheusrange.LONGEST),
        by=_RANGE + "test_an_answer_beyond_its_bytes_and_its_time_is_left",
    ),
    "Prometheus queries of the page": row(
        *(data._AT_ONCE, data._LONGEST / (24 * 60)),
        by=(
            _RANGE + "test_four_hpas_are_asked_about_at_once_and_a_further_one_waits",
            _RANGE + "test_a_request_without_a_name_or_a_time_is_400",
        ),
    ),
}
