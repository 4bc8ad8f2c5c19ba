"""Rows about delegates, the view API and KEDA's scaler."""

from __future__ import annotations

from typing import Final

from adapter.answers.history import hours, ring
from adapter.answers.keda import desk, failures, scaler, server, trigger, triggers
from adapter.answers.view import devices, gpuworkloads, workloadobject
from adapter.config.settings.keda import KedaSettings
from adapter.pipeline.cluster import hpamanifest, hpas
from adapter.server.serve import pastreader
from apiservice.delegate import credential, delegate, listing, transport
from apiservice.delegate.options import LIST_BYTES, MAX_ROWS, TIMEOUT, DelegateOptions
from apiservice.labels import fields
from apiservice.runtime import steps
from apiservice.view import endpoint
from apiservice.wire import largeanswers
from tests.docs.bounds.row import Rows, default, row, untested

_DELEGATION = "apiservice/delegate/test_delegation.py::"
_CREDENTIAL = "apiservice/delegate/test_credential.py::"
_PAGES = "apiservice/view/test_pages.py::"
_OBJECTS = "apiservice/view/test_objects.py::"
_LARGE = "apiservice/wire/test_large_answers.py::"
_WORKLOADS = "adapter/answers/view/test_gpuworkloads.py::"
_DEVICES = "adapter/answers/view/test_devices.py::"
_MANIFEST = "adapter/pipeline/cluster/test_hpamanifest.py::"
_SERVER = "adapter/answers/keda/test_server.py::"
_TRIGGERS = "adapter/answers/keda/test_triggers.py::"
_TRIGGER = "adapter/answers/keda/test_trigger.py::"
_DESK = "adapter/answers/keda/test_desk.py::"
_RING = "adapter/answers/history/test_ring.py::"
_SCALER = "adapter/answers/keda/test_scaler.py::"
_BAD = _DELEGATION + "test_a_bad_answer_names_the_delegate_and_the_cause"
_BEYOND = _DELEGATION + "test_a_discovery_beyond_its_bounds_is_rejected"
_HANGING = _DELEGATION + "test_a_hanging_delegate_holds_up_nobody_else"
_WRONG = _TRIGGER + "test_wrong_metadata_is_rejected_with_key_and_fix"
_KEDA: Final = KedaSettings()

DELEGATES: Final[Rows] = {
    "Duration of a request to a delegate": row(TIMEOUT, TIMEOUT, by=_BAD),
    "Duration of a connection": row(
        transport._CONNECT,
        by=_DELEGATION + "test_a_delegate_that_never_shakes_hands_is_left",
    ),
    "Requests to one delegate": row(
        *(default(DelegateOptions, "at_once"), default(DelegateOptions, "at_once") // 2),
        by=_HANGING,
    ),
    "Requests that wait": row(
        *(default(DelegateOptions, "waiting"), default(DelegateOptions, "waiting") // 4),
        by=_HANGING,
    ),
    "Size of an answer": row(default(DelegateOptions, "max_bytes"), by=_BAD),
    "Size of a discovery list": row(LIST_BYTES, by=_BEYOND),
    "Rows of a discovery list": row(MAX_ROWS, by=_BEYOND),
    "Length of the name": row(
        listing._LONGEST, by=_DELEGATION + "test_rows_that_do_not_name_a_metric_are_left_out"
    ),
    "Age of the last list": row(
        delegate.KEPT,
        by=(
            _DELEGATION + "test_a_list_ends_by_age",
            _DELEGATION + "test_an_unread_list_is_503_and_not_a_false_404",
        ),
    ),
    "Requests for a token": row(
        credential._PAUSE,
        by=(
            _CREDENTIAL + "test_failures_are_not_repeated_for_each_request",
            _CREDENTIAL + "test_a_refused_token_is_replaced_but_not_in_a_storm",
        ),
    ),
    "Delegations of one request": row(1, by=_DELEGATION + "test_a_loop_ends_with_508"),
}

VIEW: Final[Rows] = {
    "Objects of a list without": row(
        endpoint.MOST_BYTES, by=_PAGES + "test_a_list_beyond_the_bound_is_refused_with_what_to_do"
    ),
    "Objects of one page": row(
        endpoint.PAGE_BYTES, by=_PAGES + "test_a_page_of_large_objects_ends_early"
    ),
    "Large lists": row(
        *(largeanswers.AT_ONCE, largeanswers.AT_ONCE // 2, endpoint._FEW),
        by=(
            _PAGES + "test_a_long_list_waits_for_its_turn_and_a_short_one_does_not",
            _LARGE + "test_a_few_are_prepared_at_once_and_a_client_that_leaves_ends_the_work",
        ),
    ),
    "Work on lists and objects": row(
        *(steps.SLICE, endpoint._STEP),
        by=_PAGES + "test_others_have_turns_while_a_long_list_is_made",
    ),
    "Requirements and characters": row(
        *(fields._MOST, fields._LONGEST),
        by=(
            "apiservice/labels/test_fields.py::test_a_selector_is_bounded",
            _PAGES + "test_a_selector_that_does_not_parse_is_refused",
        ),
    ),
    "Devices, pods and HPAs": row(
        *(devices._STEP, gpuworkloads._STEP, workloadobject._STEP),
        by=(
            _DEVICES + "test_many_devices_are_named_in_steps_and_only_once",
            _WORKLOADS + "test_no_step_of_a_list_names_all_workloads",
            _WORKLOADS + "test_a_large_workload_is_summed_in_steps",
        ),
    ),
    "Bytes of the history": row(
        ring.MOST_BYTES, by=_RING + "test_the_bound_holds_and_the_oldest_hours_end_first"
    ),
    "Bytes of an hour of": row(
        pastreader.MOST_BYTES,
        hours.MOST_BLOCK,
        by=_RING + "test_a_block_of_another_form_is_refused",
    ),
    "Sums over the pods": row(
        gpuworkloads._KEPT_BYTES,
        by=_WORKLOADS + "test_more_workloads_than_sums_are_kept_are_all_shown",
    ),
    "Metrics and conditions of one HPA": row(
        *(hpamanifest._MOST, hpamanifest._MOST, hpamanifest._LONGEST),
        by=(
            _MANIFEST + "test_an_hpa_with_very_many_metrics_keeps_64",
            _MANIFEST + "test_a_long_message_of_a_condition_is_cut",
        ),
    ),
    "HPAs of one workload": row(
        hpas.SHOWN, by=_WORKLOADS + "test_very_many_hpas_on_one_workload_are_counted"
    ),
    "Characters of a metric's name": row(
        hpamanifest._LONGEST_NAME, by=_MANIFEST + "test_a_long_name_of_a_metric_is_cut"
    ),
    "Names that are compared": row(
        2 * endpoint._AROUND,
        by=_OBJECTS + "test_only_names_next_to_an_unknown_one_are_compared_with_it",
    ),
}

KEDA: Final[Rows] = {
    "Connections, including": row(
        _KEDA.max_connections,
        by=_SERVER + "test_connections_beyond_the_limit_are_closed_and_later_ones_find_room",
    ),
    "Duration of the TLS handshake": row(
        server._HANDSHAKE, by=_SERVER + "test_a_connection_that_says_nothing_is_closed"
    ),
    "Time of a connection without a call": row(
        server._IDLE, by=_SERVER + "test_a_connection_without_a_call_is_closed"
    ),
    "Age of a connection": row(
        _KEDA.max_connection_age,
        by=_SERVER + "test_an_old_connection_gets_a_goaway_and_its_streams_end_with_ok",
    ),
    "Calls in progress": row(
        _KEDA.max_calls, by=_SERVER + "test_calls_beyond_the_limit_are_refused"
    ),
    "Bytes that are read": untested(
        server._CHUNK,
        reason="gRPC reads for itself, and nothing outside it shows the size of one read",
    ),
    "Open streams": row(
        by=_SERVER + "test_streams_beyond_their_share_are_refused_and_polls_find_room"
    ),
    "A message |": row(
        server._MESSAGE,
        by=_SERVER + "test_a_message_that_is_far_too_long_is_refused_before_it_is_read",
    ),
    "Headers of a call": row(
        server._HEADERS, by=_SERVER + "test_a_call_with_long_headers_is_rejected"
    ),
    "Name and namespace": row(
        scaler._LONGEST_NAME, by=_SCALER + "test_a_name_that_no_object_has_is_refused"
    ),
    "Metadata of a trigger": row(*(trigger._MOST_BYTES, trigger._MOST_KEYS), by=_WRONG),
    "`podSelector`": row(trigger._MOST_PARTS, by=_WRONG),
    "A message that is not": row(
        by=_SERVER + "test_a_message_that_is_not_protobuf_is_rejected_and_not_logged"
    ),
    "The same for gRPC's health": row(
        by=_SERVER + "test_what_grpc_itself_would_log_is_counted_and_not_printed"
    ),
    "Cached compiled triggers": row(
        triggers.LIMIT,
        by=(
            _TRIGGERS + "test_the_triggers_not_asked_for_longest_are_forgotten_first",
            _TRIGGERS + "test_what_is_remembered_takes_about_its_bound_in_memory",
        ),
    ),
    "Work on calls": row(
        desk._SHARE,
        by=_DESK + "test_others_have_a_turn_between_calls_that_take_their_share",
    ),
    "Log lines about triggers": row(
        failures._LINES, by=_SERVER + "test_made_up_triggers_do_not_fill_the_log"
    ),
    "Triggers that fail": row(
        failures._REMEMBERED,
        by="adapter/answers/keda/test_failures.py::test_the_oldest_failing_trigger_is_forgotten",
    ),
}
