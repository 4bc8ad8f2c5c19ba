"""Rows about connections."""

from __future__ import annotations

from typing import Final

from apiservice.documents import probes
from apiservice.http import acceptor, handshakes, protocol
from apiservice.http.options import ServingOptions
from tests.docs.bounds.row import Rows, row

_CONNECTIONS = "apiservice/http/test_connections.py::"
_LIMITS = "apiservice/http/test_limits.py::"
_LIFE = "apiservice/http/test_life.py::"
_TLS = "apiservice/tls/test_handshakes.py::"
_PROBES = "apiservice/documents/test_probes.py::"
_SLOTS = "apiservice/http/test_slots.py::"
_API: Final = ServingOptions()
_PROBE: Final = probes.LIMITS
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
    "Handshakes that start": row(
        acceptor._SHAKES_AT_ONCE,
        by=_CONNECTIONS + "test_handshakes_that_come_at_once_leave_turns_to_others",
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
