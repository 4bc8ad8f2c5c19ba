"""The label values of the self-metrics: every reason, limit and task, from where each is defined.

Others are counted as ``other``. A test searches the code for reasons that are missing here.
"""

from __future__ import annotations

from typing import Final

from adapter.pipeline.attribution import values
from adapter.pipeline.attribution.reasons import REASONS
from adapter.pipeline.devices import accounting, histograms, identity, reader, tenantlabels
from adapter.pipeline.devices.assignment import Mismatch
from adapter.pipeline.devices.series import Doubt
from adapter.pipeline.devices.validity import Invalid
from adapter.pipeline.exposition import limits, line, lines, page

REJECTS: Final = tuple(
    map(
        str,
        (
            # Lines of a page, and series of an answer.
            line.BAD_NAME,
            line.BAD_LABELS,
            line.BAD_VALUE,
            line.BAD_TIMESTAMP,
            line.BAD_ENCODING,
            line.DUPLICATE_LABEL,
            line.LONG_LABEL,
            line.MANY_LABELS,
            lines.CUT_LINE,
            lines.TOO_LONG,
            page.TOO_MANY,
            limits.OVER_BUDGET,
            "bad_series",
            "unnamed_series",
            "bad_sample",
            "unnamed_sample",
            "unknown_uid",
            # What samples name.
            identity.NO_DEVICE,
            identity.NO_POD,
            identity.NOT_AN_EXPORTER,
            identity.NOT_A_SERVER,
            identity.ANOTHER_POD,
            identity.ANOTHER_SERVER,
            tenantlabels.SEVERAL_PODS,
            tenantlabels.POD_LABEL,
            *Mismatch,
            # Numbers of samples.
            *Invalid,
            *Doubt,
            reader.FUTURE,
            reader.STALE,
            reader.DUPLICATE,
            reader.TOO_MANY,
            reader.TOO_MANY_TIMES,
            histograms.FALLING,
            histograms.NO_LAST,
            histograms.NO_BOUND,
            histograms.TOO_MANY,
            reader.INVALID_ON_MIG,
            accounting.BLIND,
            values.CONFLICT,
        ),
    )
)
"""Why a sample or a value was left out."""

ABSENCES: Final = tuple(REASONS)
"""Why a pod has no value."""

FAILURES: Final = (
    *("connect", "timeout", "tls", "protocol", "truncated", "redirect", "status", "denied"),
    *("speaks_tls", "speaks_http", "no_page"),
    *(
        "unavailable",
        "credential",
        "encoding",
        "too_large",
        "too_costly",
        "not_json",
        "empty",
        "query",
    ),
    *("columns", "result_type", "partial", "internal"),
)
"""Why a scrape or a query failed."""

UNSCRAPABLE: Final = (
    *("bad_scheme", "bad_path", "bad_server_name", "bad_port", "no_port"),
    *("another_exporter_on_node", "no_host_path"),
)
"""Why a pod that opts in, or has an exporter's labels, is not scraped."""

REFUSALS: Final = (
    *("connections", "connections-per-address", "idle-connections", "handshakes"),
    *("handshake-rate", "client-certificate", "resumed-session", "files", "probes"),
    *("slow-reader", "slow-request", "slow-goodbye"),
    *("BadRequest", "MethodNotAllowed", "PayloadTooLarge", "UriTooLong", "HeadersTooLarge"),
)
"""Limits of the listener."""

TASKS: Final = (
    *("cluster", "authentication", "external-owner", "keda", "telemetry", "source", "coverage"),
    *("certificates", "configuration", "keda-certificates", "connections", "event-loop-lag"),
    *("garbage", "snapshot", "rules", "delegates", "recording", "memory", "history"),
    "ahead",
)
"""Background tasks of ``serve``."""

CREDENTIALS: Final = ("certificate", "token", "token-review")
"""The authentication method of an answer 401."""
