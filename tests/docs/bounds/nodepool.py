"""Rows about the node pool controller."""

from __future__ import annotations

from typing import Final

from adapter.config.settings.nodepool import LeaseSettings, NodepoolSettings
from adapter.nodepool.act import lifeline
from adapter.nodepool.learn import ledger, pace, quantiles
from adapter.nodepool.learn import record as records
from adapter.nodepool.model import history
from adapter.nodepool.plan import limits
from adapter.nodepool.run import listener, loop
from apiservice.documents import probes
from tests.docs.bounds.row import Rows, row

_LEDGER = "adapter/nodepool/learn/test_ledger.py::"
_HISTORY = "adapter/nodepool/learn/test_history.py::"
_FORECAST = "adapter/nodepool/learn/test_forecast.py::"
_QUANTILES = "adapter/nodepool/learn/test_quantiles.py::"
_LIFELINE = "adapter/nodepool/act/test_lifeline.py::"
_ORDERS = "adapter/nodepool/act/test_orders.py::"
_CONTROLLER = "adapter/nodepool/run/test_controller.py::"
_PRICES = "adapter/nodepool/plan/test_limits.py::"
_LEADER = "adapter/nodepool/run/test_leader.py::"
_LISTENING = "adapter/nodepool/run/test_listener.py::"
_REFLECTOR = "apiservice/kube/test_reflector_failures.py::"
_LOOP = "adapter/nodepool/run/test_loop.py::"
_SETTINGS: Final = NodepoolSettings()
_LISTENER: Final = listener._LIMITS

NODEPOOL: Final[Rows] = {
    "GPUs of headroom per node pool": row(
        _SETTINGS.limits.max_gpus_per_pool,
        by=_LEDGER + "test_headroom_beyond_the_limit_of_a_pool_is_not_counted",
    ),
    "History of a workload": row(
        *(history.RECENT, history.DAYS, ledger._MOST),
        by=(
            _HISTORY + "test_hours_and_days_are_bounded",
            _LEDGER + "test_the_workloads_not_seen_for_longest_are_dropped",
        ),
    ),
    "Forecast of a workload": row(
        *(history.RECENT / 60, quantiles.fitted_tables().minutes[-1] - 1),
        by=(
            _FORECAST + "test_the_forecast_never_exceeds_the_largest_rise_of_an_hour_and_more",
            _QUANTILES + "test_a_lead_time_beyond_the_table_counts_as_its_longest",
        ),
    ),
    "Checks of past forecasts": row(
        records._MOST_CHECKS,
        by=_QUANTILES + "test_a_longer_history_takes_no_more_checks_than_their_bound",
    ),
    "Probability that follows": row(
        *(limits._LEAST_SURE, limits._SUREST),
        by=_PRICES + "test_extreme_prices_give_a_quantile_within_bounds",
    ),
    "Writes of the Lease": row(
        2 * LeaseSettings().retry,
        by=_LEADER + "test_only_the_holder_writes_the_lease_when_a_renewal_is_due",
    ),
    "Time that headroom outlives": row(
        *(_SETTINGS.lifeline, lifeline._SURPLUS),
        by=(
            _LIFELINE + "test_a_deadline_that_another_writer_extended_is_shortened",
            _LIFELINE + "test_a_deadline_of_a_replica_whose_clock_differs_is_kept",
            _ORDERS + "test_headroom_that_cannot_be_deleted_ends_with_its_lifeline",
        ),
    ),
    "Connections of the controller's": row(
        _LISTENER.max_connections - probes._CONNECTING,
        _LISTENER.max_connections_per_address,
        *(_LISTENER.header_timeout, _LISTENER.max_headers),
        by=_LISTENING + "test_clients_that_hold_connections_do_not_block_others",
    ),
    "Namespaces of headroom": row(
        by=(
            "adapter/nodepool/plan/test_plan_limits.py::test_an_order_of_0_has_a_reason",
            _ORDERS + "test_headroom_with_claims_is_in_the_namespace_of_its_claim_templates",
        )
    ),
    "Objects with the headroom label": row(
        by=(
            _CONTROLLER + "test_a_forged_headroom_object_does_not_change_other_headroom",
            _CONTROLLER + "test_an_ignored_object_is_logged_once_and_counted",
            _CONTROLLER + "test_of_many_ignored_objects_the_log_names_20",
        )
    ),
    "Objects that cannot be decoded": row(
        by=(
            "adapter/nodepool/run/test_bad_objects.py::test_a_bad_object_affects_only_itself",
            _REFLECTOR + "test_one_object_that_cannot_be_read_costs_that_object_alone",
        )
    ),
    "Scope of an unexpected error in an order": row(
        by=(
            _ORDERS + "test_an_unexpected_error_affects_only_its_order",
            _ORDERS + "test_a_refused_write_is_retried_after_a_change_or_a_pause",
        )
    ),
    "Scope of an unexpected error in a round": row(
        by=_CONTROLLER + "test_a_round_that_fails_unexpectedly_is_counted_and_the_next_one_plans"
    ),
    "Duration of a round": row(
        loop._ROUND, by=_LOOP + "test_a_round_that_takes_too_long_is_abandoned"
    ),
    "Rounds that changes": row(
        by="adapter/nodepool/run/test_changes.py::test_slow_rounds_start_less_often"
    ),
    "Remembered scale events": row(
        pace._MOST, by="adapter/nodepool/learn/test_pace.py::test_the_history_is_bounded"
    ),
    "Wait of the first round": row(
        loop._LISTING, by=_LOOP + "test_the_first_round_does_not_wait_for_lists_forever"
    ),
}
