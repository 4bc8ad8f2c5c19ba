"""Rows about requests, identities and selectors."""

from __future__ import annotations

from typing import Final

from adapter.pipeline.cluster import lookup, selections, sharedvalues
from adapter.pipeline.store import answercache
from adapter.server.serve import run
from apiservice.auth import allowance, authentication, authorization, tokens
from apiservice.http import exchange
from apiservice.http.options import ServingOptions
from apiservice.labels import selector
from apiservice.runtime import shares, steps
from apiservice.wire import (
    accept,
    answers,
    instant,
    largeanswers,
    metricroutes,
    metricvalues,
    routes,
)
from tests.docs.bounds.row import Rows, default, most, row

_LIMITS = "apiservice/http/test_limits.py::"
_ALLOWANCE = "apiservice/auth/test_allowance.py::"
_CHAIN = "apiservice/auth/test_chain.py::"
_REVIEWS = "apiservice/auth/test_reviews.py::"
_SELECTOR = "apiservice/labels/test_selector.py::"
_LARGE = "apiservice/wire/test_large_answers.py::"
_ROUTES = "apiservice/wire/test_routecache.py::"
_STORE = "adapter/pipeline/store/test_store.py::"
_PROVIDER = "adapter/answers/api/test_provider.py::"
_INDEX = "adapter/pipeline/cluster/test_index.py::"
_TURNS = "apiservice/runtime/test_turns.py::"
_COVERAGE = "adapter/server/serve/test_coverage.py::"
_STEPS = "apiservice/runtime/test_steps.py::"
_API: Final = ServingOptions()
_REFUSED = _LIMITS + "test_refused_with_a_status_and_the_connection_ends"
_STRANGER = _LIMITS + "test_a_stranger_may_send_and_queue_less_than_a_front_proxy"

REQUESTS: Final[Rows] = {
    "Head of a request": row(_API.max_headers, by=_REFUSED),
    "Parameters of a query": row(
        routes._MOST_PARAMETERS,
        by="apiservice/test_app.py"
        "::test_a_query_of_very_many_parameters_is_refused_after_the_right",
    ),
    "URL": row(_API.max_target, by=_REFUSED),
    "Header lines of a request": row(
        *(_API.stranger_header_lines, run._BYTES_PER_LINE, _API.max_header_lines),
        by=(_REFUSED, _STRANGER),
    ),
    "One header line": row(_API.max_header_line, by=_REFUSED),
    "Body of a request": row(
        _API.max_body, by=(_REFUSED, _LIMITS + "test_a_small_body_is_thrown_away")
    ),
    "Cached users": row(
        authentication._REMEMBERED_BYTES,
        by=(
            _CHAIN + "test_remembered_users_are_bounded_in_bytes",
            _CHAIN + "test_a_stated_user_larger_than_the_memory_is_answered_and_not_kept",
        ),
    ),
    "Cached TokenReviews": row(
        default(tokens.ReviewedTokens, "limit"),
        by=_REVIEWS + "test_remembered_tokens_are_bounded_in_bytes",
    ),
    "Cached SubjectAccessReviews": row(
        *(default(authorization.Authorization, "limit"),) * 2,
        authorization._LARGEST_REMEMBERED,
        by=(
            _REVIEWS + "test_remembered_answers_are_bounded_in_bytes",
            _REVIEWS + "test_an_unreasonably_long_question_is_answered_but_not_remembered",
        ),
    ),
    "Unknown bearer tokens": row(
        *(tokens._RATE, tokens._BURST),
        by=_CHAIN + "test_unknown_tokens_of_one_address_are_reviewed_up_to_its_allowance",
    ),
    "Addresses whose unknown": row(
        allowance._SENDERS, by=_ALLOWANCE + "test_the_oldest_sender_is_forgotten"
    ),
    "Access reviews for all anonymous clients": row(
        *(authorization._RATE, authorization._BURST),
        by=_REVIEWS + "test_anonymous_clients_share_an_allowance_of_reviews",
    ),
    "Access reviews at once": row(
        *(authorization._AT_ONCE, authorization._AT_ONCE // 2, authorization._WAITING),
        default(shares.Shares, "seconds"),
        by=_REVIEWS + "test_questions_about_one_namespace_do_not_delay_those_about_another",
    ),
    "Requirements, values and characters": row(
        *(selector._MOST_REQUIREMENTS, selector._MOST_VALUES, selector._LONGEST),
        by=_SELECTOR + "test_a_selector_beyond_its_bounds_is_refused_with_the_bound",
    ),
    "Cached compiled selectors": row(
        selector._CACHE_BYTES,
        by=_SELECTOR + "test_selectors_that_vary_without_end_are_remembered_within_a_bound",
    ),
    "Cached parsed requests": row(
        *(default(metricroutes.RouteCache, "limit"), default(metricroutes.RouteCache, "largest")),
        by=(
            _ROUTES + "test_routes_are_bounded_in_bytes_and_the_oldest_make_room",
            _ROUTES + "test_a_route_with_a_large_selector_or_a_long_line_is_not_kept",
        ),
    ),
    "Parsed `Accept` headers": row(
        *(most(accept._cached), accept._CACHED, most(exchange._head), most(instant.write)),
        by=(
            "apiservice/wire/test_accept.py::test_few_headers_are_kept",
            "apiservice/http/test_exchange.py::test_few_heads_are_kept",
            "apiservice/wire/test_instant.py::test_few_times_are_kept",
        ),
    ),
    "Cached answers of an API group": row(
        default(answers.PreparedAnswers, "limit"),
        by="apiservice/wire/test_answers.py::test_the_oldest_make_room",
    ),
    "Items of one answer": row(
        *(metricvalues.MAX_BYTES, 60_000),
        by=_LARGE + "test_an_answer_beyond_the_bound_is_refused_by_name",
    ),
    "Large answers that are prepared": row(
        *(largeanswers.AT_ONCE, largeanswers.AT_ONCE // 2),
        *(metricroutes._SLICES * steps.SLICE, answers.LARGE),
        by=(
            _LARGE + "test_a_few_are_prepared_at_once_and_a_client_that_leaves_ends_the_work",
            _LARGE + "test_work_that_takes_too_many_slices_is_given_up",
        ),
    ),
    "Large answers of one namespace that wait": row(
        *(default(shares.Shares, "waiting"), largeanswers.WAIT),
        by=_LARGE + "test_a_namespace_with_too_many_waiting_answers_gets_503",
    ),
    "Large answers that are being sent": row(
        largeanswers.SENT_BYTES,
        by=_LARGE + "test_slow_readers_of_one_namespace_displace_only_each_other",
    ),
    "Speed at which a client must read": row(
        *(largeanswers.SLOWEST, largeanswers.PATIENCE),
        by=_LARGE + "test_a_client_that_does_not_read_holds_no_place_and_is_cut_off",
    ),
    "Metric selectors in the items": row(
        metricvalues._SELECTORS,
        by="apiservice/wire/test_metricvalues.py::"
        "test_a_long_metric_selector_is_in_the_first_item_only",
    ),
    "Work on a large answer after": row(
        by=_LARGE + "test_a_few_are_prepared_at_once_and_a_client_that_leaves_ends_the_work"
    ),
    "Cached pods of selections": row(
        selections._MEMO_BYTES,
        by=_INDEX + "test_selections_of_all_namespaces_are_remembered_within_a_bound_in_bytes",
    ),
    "Cached values of an exporter": row(
        *(answercache._ANSWERS_PER_POD, answercache._ANSWERS_PER_EXPORTER),
        by=_STORE + "test_answers_about_a_fleet_behind_one_exporter_are_all_remembered",
    ),
    "Cached values until the next samples": row(
        *(answercache._ANSWERS_PER_POD, answercache._MAX_ANSWERS),
        answercache._LARGEST_SELECTOR,
        by=(
            _PROVIDER + "test_the_cache_is_bounded_if_every_metric_selector_is_different",
            _STORE + "test_answers_with_large_selectors_are_not_remembered",
        ),
    ),
    "Label sets and texts": row(
        sharedvalues._LIMIT,
        by="adapter/pipeline/cluster/test_sharedvalues.py::test_a_full_table_is_emptied",
    ),
    "Objects and pods of a list": row(
        *(lookup._MOST_OBJECTS, lookup._MOST_PODS),
        by=(
            _PROVIDER + "test_a_list_of_too_many_objects_is_refused_with_the_bound",
            _PROVIDER + "test_a_list_over_too_many_pods_is_refused_with_the_bound",
        ),
    ),
    "Work on the event loop": row(
        steps.SLICE,
        by=(
            _TURNS + "test_all_tasks_together_take_one_slice_of_each_iteration",
            _COVERAGE + "test_other_tasks_run_while_a_large_fleet_is_counted",
            _STEPS + "test_metrics_rendered_in_steps_are_those_rendered_at_once",
        ),
    ),
    "A bearer token": row(
        tokens._MAX_TOKEN, by=_REVIEWS + "test_a_huge_token_is_bad_without_asking"
    ),
}
