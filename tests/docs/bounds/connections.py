"""Rows about connections, requests, identities and selectors."""

from __future__ import annotations

from typing import Final

from adapter.cluster import lookup, namespacepods, sharedvalues
from adapter.serve import run
from adapter.store import answercache
from apiservice.auth import allowance, authentication, authorization, tokens
from apiservice.documents import probes
from apiservice.http import exchange, handshakes, protocol
from apiservice.http.options import ServingOptions
from apiservice.labels import selector
from apiservice.runtime import steps
from apiservice.wire import accept, answers, instant, largeanswers, metricroutes, metricvalues
from tests.docs.bounds.row import Rows, default, most, row

_CONNECTIONS = "apiservice/http/test_connections.py::"
_LIMITS = "apiservice/http/test_limits.py::"
_LIFE = "apiservice/http/test_life.py::"
_TLS = "apiservice/tls/test_handshakes.py::"
_PROBES = "apiservice/documents/test_probes.py::"
_ALLOWANCE = "apiservice/auth/test_allowance.py::"
_CHAIN = "apiservice/auth/test_chain.py::"
_REVIEWS = "apiservice/auth/test_reviews.py::"
_SELECTOR = "apiservice/labels/test_selector.py::"
_LARGE = "apiservice/wire/test_large_answers.py::"
_ROUTES = "apiservice/wire/test_routecache.py::"
_STORE = "adapter/store/test_store.py::"
_PROVIDER = "adapter/api/test_provider.py::"
_SLOTS = "apiservice/http/test_slots.py::"
_INDEX = "adapter/cluster/test_index.py::"
_TURNS = "apiservice/runtime/test_turns.py::"
_COVERAGE = "adapter/serve/test_coverage.py::"
_STEPS = "apiservice/runtime/test_steps.py::"
_API: Final = ServingOptions()
_PROBE: Final = probes.LIMITS
_REFUSED = _LIMITS + "test_refused_with_a_status_and_the_connection_ends"
_STRANGER = _LIMITS + "test_a_stranger_may_send_and_queue_less_than_a_front_proxy"

CONNECTIONS: Final[Rows] = {
    "Connections to the API port": row(
        _API.max_connections,
        by=(
            _CONNECTIONS + "test_at_the_cap_the_one_that_is_idle_for_longest_goes",
            _CONNECTIONS + "test_a_stranger_that_is_being_answered_is_not_closed_for_another",
            _SLOTS + "test_an_address_with_one_connection_keeps_it_when_others_have_many",
        ),
    ),
    "Of these, reserved": row(
        _API.reserved_connections,
        by=_CONNECTIONS + "test_front_proxies_keep_their_places_against_any_number_of_strangers",
    ),
    "Strangers' connections of one address": row(
        _API.max_connections_per_address,
        by=_CONNECTIONS + "test_one_address_closes_only_its_own_connections",
    ),
    "TLS handshakes in progress": row(
        _API.max_handshakes, by=_CONNECTIONS + "test_handshakes_are_counted_and_bounded"
    ),
    "Duration of a handshake": row(
        _API.handshake_timeout, by=_TLS + "test_a_client_that_never_shakes_hands_is_cut_off"
    ),
    "Handshakes per second of all strangers": row(
        *(_API.handshakes_per_second, handshakes._BURST),
        by=(
            _CONNECTIONS + "test_many_addresses_together_have_a_rate_and_proxies_their_own",
            _CONNECTIONS
            + "test_a_few_addresses_that_use_up_the_rate_leave_one_for_an_address_that_is_new",
        ),
    ),
    "Handshakes per second of one address": row(
        by=(
            _CONNECTIONS + "test_a_rate_recovers_with_time",
            _CONNECTIONS + "test_one_address_may_not_shake_hands_as_often_as_it_likes",
        )
    ),
    "Addresses whose rate is remembered": row(
        *(handshakes._ADDRESSES, handshakes._PROXIES),
        by=_CONNECTIONS + "test_the_address_that_is_silent_for_longest_is_forgotten",
    ),
    "TLS sessions": row(
        by=(
            _TLS + "test_http_1_1_is_chosen_where_http_2_is_offered_and_sessions_are_not_resumed",
            _TLS + "test_a_connection_that_resumed_a_session_all_the_same_is_ended",
        )
    ),
    "Open files": row(
        by=_CONNECTIONS + "test_without_files_one_is_turned_away_and_idle_ones_make_room"
    ),
    "Connections of the probe listener": row(
        _PROBE.max_connections - probes._CONNECTING,
        _PROBE.max_connections_per_address,
        *(_PROBE.header_timeout, _PROBE.write_timeout, _PROBE.max_headers),
        by=(
            _PROBES + "test_it_answers_as_the_api_does_and_closes",
            _PROBES + "test_a_head_without_end_and_a_client_without_haste_are_cut_off",
            _PROBES + "test_the_probe_of_another_address_is_answered_when_the_listener_is_full",
            _PROBES + "test_silent_connections_of_the_kubelets_own_address_keep_no_probe_out",
            _PROBES + "test_clients_that_never_take_their_answers_keep_no_probe_out",
        ),
    ),
    "Time for the head": row(
        _API.header_timeout,
        by=(
            _LIMITS + "test_a_head_that_dribbles_in_is_cut_off",
            _LIMITS + "test_a_dribble_does_not_extend_the_time_for_the_head",
        ),
    ),
    "Idle time": row(
        _API.keep_alive, by=_LIMITS + "test_an_idle_connection_is_closed_in_good_order"
    ),
    "Time without reading": row(
        _API.write_timeout,
        by=_LIMITS + "test_a_slow_reader_is_cut_off_while_others_are_served",
    ),
    "Time that a connection may take to close": row(
        protocol._CLOSING_GRACE,
        by=_LIMITS + "test_a_client_that_does_not_let_its_connection_close_is_cut_off",
    ),
    "Requests that wait on a connection": row(
        *(_API.stranger_pipelined, _API.max_pipelined),
        by=(_LIMITS + "test_too_many_pipelined_requests_end_the_connection", _STRANGER),
    ),
    "Requests after the listener closed": row(
        protocol.LAST_REQUEST,
        by=(
            _LIFE + "test_a_connection_that_has_not_asked_yet_is_answered_when_the_server_stops",
            _LIFE + "test_a_connection_that_asks_nothing_ends_soon_when_the_server_stops",
        ),
    ),
}

REQUESTS: Final[Rows] = {
    "Head of a request": row(_API.max_headers, by=_REFUSED),
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
    "Large answers": row(
        *(largeanswers.AT_ONCE, metricroutes._SLICES * steps.SLICE, answers.LARGE),
        by=(
            _LARGE + "test_a_few_are_prepared_at_once_and_a_client_that_leaves_ends_the_work",
            _LARGE + "test_work_that_takes_too_many_slices_is_given_up",
        ),
    ),
    "Time in which a client must read": row(
        largeanswers._SECONDS, by=_LARGE + "test_a_client_that_does_not_read_frees_its_place"
    ),
    "Work on a large answer after": row(
        by=_LARGE + "test_a_few_are_prepared_at_once_and_a_client_that_leaves_ends_the_work"
    ),
    "Cached pods of selections": row(
        namespacepods._MEMO_BYTES,
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
        by="adapter/cluster/test_sharedvalues.py::test_a_full_table_is_emptied",
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
