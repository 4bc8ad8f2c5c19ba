"""Every reason that something is counted under, gathered from where each is given.

What is not here is counted as ``other``: a test reads the code for reasons that are missing.
"""

from __future__ import annotations

from typing import Final

from adapter import (
    accounting,
    attribution,
    credibility,
    drafts,
    exposition,
    identity,
    pagelimits,
    pagelines,
    requestedshare,
    sampleline,
    tenantlabels,
)
from adapter.claim import Refusal
from adapter.provider import TOO_LARGE
from adapter.split import NO_WEIGHT, NOT_EXACT
from adapter.validity import Invalid
from adapter.verdict import Doubt

REJECTS: Final = tuple(
    map(
        str,
        (
            # Of lines of a page and rows of an answer.
            sampleline.BAD_NAME,
            sampleline.BAD_LABELS,
            sampleline.BAD_VALUE,
            sampleline.BAD_TIMESTAMP,
            sampleline.BAD_ENCODING,
            sampleline.DUPLICATE_LABEL,
            sampleline.LONG_LABEL,
            sampleline.MANY_LABELS,
            pagelines.CUT_LINE,
            pagelines.TOO_LONG,
            exposition.TOO_MANY,
            pagelimits.OVER_BUDGET,
            "bad_series",
            "unnamed_series",
            "bad_row",
            "unnamed_row",
            "unknown_uid",
            # Of what they name.
            identity.NO_DEVICE,
            identity.NO_POD,
            identity.NOT_AN_EXPORTER,
            identity.NOT_A_SERVER,
            identity.ANOTHER_POD,
            tenantlabels.SEVERAL_PODS,
            tenantlabels.POD_LABEL,
            *Refusal,
            # Of their numbers.
            *Invalid,
            *Doubt,
            drafts.FUTURE,
            drafts.STALE,
            drafts.DUPLICATE,
            drafts.TOO_MANY,
            drafts.INVALID_ON_MIG,
            accounting.BLIND,
            attribution.CONFLICT,
        ),
    )
)
"""Why a row or a value was left out."""

ABSENCES: Final = tuple(
    map(
        str,
        (
            attribution.UNKNOWN_METRIC,
            attribution.NO_ROWS,
            attribution.NO_VALUE,
            attribution.STALE,
            attribution.CONFLICT,
            attribution.TOO_FEW,
            attribution.NOT_SELECTED,
            attribution.PREDECESSOR,
            attribution.UNPLACED,
            credibility.WAITS,
            credibility.TOO_MANY,
            credibility.CLUSTERS,
            credibility.BOARD,
            requestedshare.NO_REQUEST,
            requestedshare.SHARE_UNKNOWN,
            NOT_EXACT,
            NO_WEIGHT,
            TOO_LARGE,
            *Refusal,
            *Doubt,
        ),
    )
)
"""Why a pod has no value."""

FAILURES: Final = (
    *("connect", "timeout", "tls", "protocol", "truncated", "redirect", "status", "denied"),
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
"""Why an exporter or a store gave nothing."""

UNSCRAPABLE: Final = ("bad_scheme", "bad_path", "bad_port", "no_port")
"""Why a pod that asks to be scraped cannot be."""

REFUSALS: Final = (
    *("connections", "connections-per-address", "idle-connections", "handshakes"),
    *("handshake-rate", "resumed-session", "files", "probes"),
    *("slow-reader", "slow-request", "slow-goodbye"),
    *("BadRequest", "MethodNotAllowed", "PayloadTooLarge", "UriTooLong", "HeadersTooLarge"),
)
"""Limits of the listener."""

TASKS: Final = (
    *("cluster", "authentication", "external-owner", "keda", "telemetry", "source", "coverage"),
    *("certificates", "configuration", "keda-certificates", "connections", "event-loop-lag"),
)
"""Background tasks of `serve`."""

CREDENTIALS: Final = ("certificate", "token", "token-review")
"""What an answer 401 was given for."""
