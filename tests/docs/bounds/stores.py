"""Rows about stores, rules, and Kubernetes objects and files."""

from __future__ import annotations

from typing import Final

from adapter.answers.rules import (
    apidiscovery,
    filenodes,
    objects,
    pattern,
    promql,
    registry,
    rulefile,
    series,
    store,
    vector,
    wideanswers,
)
from adapter.answers.rules.gotemplate import parser, template
from adapter.config.process import configfile, logs
from adapter.pipeline.cluster import keptbytes
from adapter.pipeline.sources import body
from adapter.pipeline.sources.prometheus import reader, seriesreader, storedpages
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions
from adapter.server.serve import rules as serving
from apiservice.kube import listwatch, pages
from apiservice.kube.listwatch import ListWatchOptions
from apiservice.kube.reflector import ReflectorOptions
from apiservice.runtime import shares
from tests.docs.bounds.row import Rows, default, row

_SOURCE = "adapter/pipeline/sources/prometheus/test_source.py::"
_ANSWER = "adapter/pipeline/sources/prometheus/test_answer.py::"
_GUARD = "adapter/answers/rules/test_guard.py::"
_FILE = "adapter/answers/rules/test_rulefile.py::"
_RULE = "adapter/answers/rules/test_rule.py::"
_TEMPLATE = "adapter/answers/rules/test_gotemplate.py::"
_REGISTRY = "adapter/answers/rules/test_registry.py::"
_STORE = "adapter/answers/rules/test_store.py::"
_WIDE = "adapter/answers/rules/test_wideanswers.py::"
_WIDENED = "adapter/answers/rules/test_wide_real.py::"
_SERIES_READER = "adapter/pipeline/sources/prometheus/test_seriesreader.py::"
_SERVICE = "adapter/answers/rules/test_service.py::"
_REFLECTOR = "apiservice/kube/test_reflector.py::"
_KEPT = "adapter/pipeline/cluster/test_keptbytes.py::"
_HOSTILE = "apiservice/kube/test_hostile_server.py::"
_FAILURES = "apiservice/kube/test_reflector_failures.py::"
_SHARED = _STORE + "test_answers_in_progress_share_a_bound_of_bytes"
_SERIES = _REGISTRY + "test_malformed_and_surplus_series_are_left_out_and_counted"
_ENTRIES = _FILE + "test_rules_entries_and_problems_are_bounded"
_LIST: Final = ListWatchOptions()
_TIMEOUT = default(PrometheusOptions, "timeout")

STORES: Final[Rows] = {
    "Size of an answer": row(
        default(PrometheusOptions, "max_bytes"),
        by=_SOURCE + "test_one_failed_group_does_not_lose_the_others",
    ),
    "Text of an answer": row(
        body._CHUNK, by=_ANSWER + "test_only_the_text_that_is_not_read_yet_is_held"
    ),
    "Series of the answer before": row(
        reader._AHEAD,
        by="adapter/pipeline/sources/prometheus/test_knownanswers.py::"
        "test_the_places_of_series_after_many_missing_ones_are_looked_up",
    ),
    "Samples of an exporter": row(
        storedpages.MOST_SAMPLES,
        by="adapter/pipeline/sources/prometheus/test_storedpages.py::"
        "test_the_samples_of_a_page_with_a_layout_are_bounded",
    ),
    "Duration of a query": row(_TIMEOUT, by=_SOURCE + "test_a_hanging_server_times_out"),
    "Tries of a query": row(
        default(PrometheusOptions, "retries") + 1,
        by=_SOURCE + "test_a_query_that_fails_is_tried_three_times_in_a_round",
    ),
    "An answer that a tool": row(
        *(seriesreader.MOST_BYTES, seriesreader.MOST_PARTS, seriesreader.MOST_OBJECTS),
        by=(
            _SERIES_READER + "test_a_bad_answer_is_one_line",
            _SERIES_READER + "test_an_answer_of_too_many_parts_is_not_decoded",
        ),
    ),
}

RULES: Final[Rows] = {
    "Rules file": row(
        rulefile.MAX_BYTES, by=_FILE + "test_a_file_that_is_not_a_rules_file_is_rejected"
    ),
    "Texts of a list of rules": row(
        rulefile.MAX_BYTES, by=_GUARD + "test_aliases_do_not_multiply_a_rule"
    ),
    "Rules of `rules`": row(rulefile.MAX_RULES, by=_ENTRIES),
    "Filters, or overrides": row(filenodes.MAX_ENTRIES, by=_ENTRIES),
    "Reported problems": row(rulefile.MAX_PROBLEMS, by=_ENTRIES),
    "A regular expression": row(
        *(pattern.LONGEST, pattern._library()[1].max_mem),
        by=(
            _RULE + "test_an_expression_that_go_does_not_know_is_rejected",
            _RULE + "test_an_expression_that_needs_much_memory_is_rejected",
            _RULE + "test_an_expression_takes_linear_time",
        ),
    ),
    "A series query, or a template": row(
        *(parser.LONGEST, parser.DEEPEST, parser.MOST_VARIABLES, parser.MOST_DIGITS),
        by=(
            _RULE + "test_a_series_query_is_bounded",
            _GUARD + "test_variables_are_bounded",
            _GUARD + "test_a_hostile_query_costs_its_rule_alone",
            _TEMPLATE + "test_a_template_and_its_output_are_bounded",
            _TEMPLATE + "test_what_is_not_supported_is_named",
        ),
    ),
    "Execution of a template": row(
        *(template.MOST_STEPS, template._PART, template.MOST_TEXT),
        by=(
            _TEMPLATE + "test_a_template_and_its_output_are_bounded",
            _GUARD + "test_what_a_function_returns_is_bounded",
            _GUARD + "test_calls_and_the_texts_that_they_read_are_steps",
        ),
    ),
    "Series of one series query": row(series.MAX_SERIES, by=_SERIES),
    "Distinct series": row(*(series.MAX_SHAPES, series.MAX_NAME), by=_SERIES),
    "Size of an answer": row(
        default(RuleOptions, "max_bytes"),
        by=_STORE + "test_an_answer_beyond_the_bound_is_refused",
    ),
    "Size of the other answers": row(by=_SHARED),
    "Labels and values": row(
        vector.MAX_PARTS, by=_STORE + "test_an_answer_with_very_many_parts_is_refused"
    ),
    "Duration of a query": row(
        _TIMEOUT,
        by=(
            _STORE + "test_a_query_that_takes_too_long_ends",
            _STORE + "test_a_list_of_series_may_take_three_times_as_long",
            _STORE + "test_while_the_store_fails_the_last_answer_serves_up_to_the_age_limit",
        ),
    ),
    "Queries in progress": row(
        *(store.PARALLEL, store.KEPT, (store.PARALLEL - store.KEPT) // 2),
        by=_STORE + "test_a_namespace_has_half_of_the_places_and_shared_queries_have_their_own",
    ),
    "Queries of one namespace that wait": row(
        *(default(shares.Shares, "waiting"), default(shares.Shares, "all_waiting"), _TIMEOUT),
        by=_STORE + "test_queries_of_a_namespace_that_wait_are_bounded",
    ),
    "Values of an answer": row(
        vector.MAX_VALUES,
        by=_STORE + "test_what_the_api_cannot_express_is_left_out_and_counted",
    ),
    "Memory for answers that are kept": row(
        store.CACHE_BYTES, by=_STORE + "test_answers_that_are_kept_are_bounded_in_bytes"
    ),
    "Objects in the answer": row(
        vector.MAX_VALUES,
        wideanswers.RETRY,
        by=(
            _WIDE + "test_an_answer_with_too_many_objects_is_given_up",
            _WIDE + "test_a_query_that_was_given_up_is_tried_again_later",
        ),
    ),
    "Memory for answers to queries": row(
        wideanswers.KEPT_BYTES, by=_WIDE + "test_answers_beyond_the_memory_are_given_up"
    ),
    "Queries for all objects": row(
        wideanswers.MAX_QUERIES, by=_WIDE + "test_queries_beyond_the_bound_are_asked_narrowly"
    ),
    "Metric selectors": row(
        wideanswers.MAX_SELECTORS,
        by=_WIDE + "test_selectors_beyond_the_bound_are_asked_narrowly",
    ),
    "Cached forms": row(wideanswers._PLANS, by=_WIDE + "test_few_plans_are_kept"),
    "Levels of a query": row(
        promql._MAX_DEPTH,
        by=_WIDENED + "test_what_may_mix_objects_is_refused_with_the_reason",
    ),
    "Pods of one namespace": row(
        objects.MAX_OBJECTS,
        by="adapter/answers/rules/test_resourcemetrics.py::test_many_pods_are_several_queries",
    ),
    "Metrics of the rules": row(registry.MAX_METRICS, by=_REGISTRY + "test_metrics_are_bounded"),
    "Resources of the API server": row(
        *(apidiscovery.MAX_RESOURCES, apidiscovery.MAX_GROUP_VERSIONS, serving._MAX_BYTES),
        by=(
            _REGISTRY + "test_the_resources_of_the_cluster_are_bounded",
            _REGISTRY + "test_the_group_versions_of_an_older_cluster_are_bounded",
            "apiservice/kube/test_client.py::test_an_answer_is_bounded",
        ),
    ),
    "Objects of one answer": row(
        objects.MAX_OBJECTS, by=_SERVICE + "test_a_list_that_fails_or_is_too_long_is_an_error"
    ),
    "Memory for lists of objects": row(
        *(objects.CACHE_BYTES, objects.FRESH),
        by="adapter/answers/rules/test_objects.py::test_lists_are_kept_within_their_memory",
    ),
    "Log lines about queries": row(
        store._LOG_EVERY, by=_STORE + "test_a_failure_is_logged_once_in_30_seconds"
    ),
}

OBJECTS: Final[Rows] = {
    "A page of a list": row(
        *(_LIST.page_size, _LIST.max_page_bytes, _LIST.request_timeout),
        by=(
            _FAILURES + "test_a_page_of_a_list_is_bounded",
            _FAILURES + "test_a_page_that_does_not_end_is_given_up",
        ),
    ),
    "Objects and pages of a list": row(
        *(pages._MOST_OBJECTS, pages._MOST_PAGES),
        by=_HOSTILE + "test_ever_new_objects_end_at_a_number",
    ),
    "What is kept of one pod, HPA or Service": row(
        keptbytes.MOST,
        by=_KEPT + "test_an_object_of_which_too_much_would_be_kept_is_left_out",
    ),
    "A watch event": row(
        _LIST.max_event_bytes,
        by=(
            _FAILURES + "test_a_stream_without_line_ends_is_bounded",
            _HOSTILE + "test_a_watch_without_an_event_is_bounded",
        ),
    ),
    "Silence on a watch": row(
        _LIST.watch_seconds + _LIST.grace,
        by=_FAILURES + "test_a_silent_connection_is_given_up_and_resumed",
    ),
    "Pause between tries": row(
        default(ReflectorOptions, "backoff_max"),
        by=_FAILURES + "test_the_pause_between_tries_is_bounded",
    ),
    "Work on the event loop": row(
        listwatch._SLICE, by=_REFLECTOR + "test_a_flood_of_events_leaves_turns_to_others"
    ),
    "Log lines that wait": row(
        logs._WAITING,
        by="adapter/config/process/test_loglines.py"
        "::test_a_reader_that_stopped_is_not_waited_for_and_gets_the_count_of_missed_lines",
    ),
    "Settings file": row(
        configfile._MAX_BYTES,
        by=(
            "adapter/config/process/test_config.py::test_an_error_names_the_origin_the_key_and_the_fix",
            "adapter/config/process/test_reload.py::test_a_bad_file_is_a_problem_until_it_is_fixed",
        ),
    ),
}
