"""Metrics of connections, authentication and authorization."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.server.serve.lifetimes import AFTERWARDS, Lifetimes
from adapter.server.serve.reasons import CREDENTIALS, REFUSALS
from adapter.server.serve.security import Reviews, Security
from apiservice.auth.authorization import Authorization
from apiservice.auth.tokens import ReviewedTokens
from apiservice.http.options import ServingStats
from apiservice.http.server import Server
from apiservice.runtime.bytecache import Remembering
from apiservice.runtime.shares import REFUSALS as NO_PLACE
from apiservice.selfmetrics.families import counter, gauge, histogram

_REVIEWS: Final = ("access", "token")

CONNECTIONS: Final = gauge(
    "gma_connections", "Open connections, including TLS handshakes in progress."
)
HANDSHAKES: Final = gauge("gma_handshakes", "TLS handshakes in progress.")
STRANGERS: Final = gauge(
    "gma_connections_unauthenticated", "Open connections without a front proxy's certificate."
)
FAILED: Final = counter(
    "gma_handshakes_failed_total",
    "TLS handshakes that failed or timed out, and connections that closed before their handshake.",
)
OPENED: Final = counter("gma_connections_opened_total", "Connections whose handshake succeeded.")
REQUESTS: Final = gauge("gma_http_requests_in_flight", "Requests being answered.")
REFUSED: Final = counter(
    "gma_connections_refused_total",
    "Connections and requests that a limit refused or ended.",
    "limit",
    known=REFUSALS,
)
UNAUTHORIZED: Final = counter(
    "gma_unauthorized_total",
    "Requests that got 401, by the method of authentication that failed.",
    "method",
    known=CREDENTIALS,
)
EXPIRY: Final = gauge(
    "gma_certificate_expiry_timestamp_seconds",
    "Expiry of the certificates in use, in epoch seconds: those that this process serves with, "
    "that of the connected API server (front-proxy), and the CAs that clients are checked by.",
    "certificate",
    known=tuple(AFTERWARDS),
)
FILES: Final = gauge(
    "gma_security_file_ok",
    "0 while the newest content of a certificate or CA file is rejected. The last good content "
    "stays in use.",
    "file",
)
REVIEWS: Final = counter(
    "gma_reviews_total",
    "TokenReviews and SubjectAccessReviews sent to the API server.",
    *("kind", "outcome"),
    known=("yes", "no", "error"),
)
REVIEW_DURATIONS: Final = histogram(
    "gma_review_duration_seconds", "Duration of these reviews, including retries.", "kind"
)
UNREVIEWED: Final = counter(
    "gma_reviews_refused_total",
    "Requests that got 429 instead of a review: anonymous clients, or one address with many "
    "unknown tokens, caused too many reviews (rate), too many of the namespace waited (full), or "
    "no place became free in time (timeout).",
    *("kind", "reason"),
    known=("rate", *NO_PLACE),
)
REVIEWS_WAITING: Final = gauge(
    "gma_access_reviews_waiting", "Requests whose access review waits for its place."
)
LOOKUPS: Final = counter(
    "gma_auth_cache_lookups_total",
    "Lookups of a front proxy's user, of a user's rights or of a token in the caches.",
    *("cache", "result"),
    known=("hit", "miss"),
)
REMEMBERED: Final = gauge(
    "gma_auth_cache_entries",
    "Entries in the caches of users, rights and tokens.",
    "cache",
)
REMEMBERED_BYTES: Final = gauge(
    "gma_auth_cache_bytes", "Estimated memory of these caches.", "cache"
)
FAMILIES: Final = (
    *(CONNECTIONS, HANDSHAKES, STRANGERS, OPENED, FAILED, REQUESTS, REFUSED),
    *(UNAUTHORIZED, EXPIRY, FILES, REVIEWS, REVIEW_DURATIONS, UNREVIEWED, REVIEWS_WAITING),
    *(LOOKUPS, REMEMBERED, REMEMBERED_BYTES),
)


def access_families(
    server: Server, probes: ServingStats | None, security: Security, lifetimes: Lifetimes
) -> Iterator[Metric]:
    """Yield the metrics of the listeners, of authentication and of authorization."""
    yield CONNECTIONS.one(server.connections)
    yield HANDSHAKES.one(server.handshakes)
    yield STRANGERS.one(server.strangers)
    yield OPENED.one(server.stats.opened)
    yield FAILED.one(server.stats.failed)
    yield REQUESTS.one(server.requests)
    of_probes = {"probes": probes.refused.total()} if probes else {}
    yield REFUSED.by({**server.stats.refused, **of_probes})
    yield UNAUTHORIZED.by(security.authentication.refused)
    yield EXPIRY.rows(((name,), dates.ends) for name, dates in lifetimes.soonest().items())
    yield FILES.rows(((name,), not problem()) for name, problem in security.problems.items())
    if security.reviews is not None:
        yield from review_families(security.reviews)
    limited: dict[str, Authorization | ReviewedTokens] = {"access": security.authorization}
    if security.tokens is not None:
        limited["token"] = security.tokens
    unreviewed = {
        (kind, reason): count
        for kind, cache in limited.items()
        for reason, count in cache.refused.items()
    }
    yield UNREVIEWED.pairs(unreviewed, limited)
    yield REVIEWS_WAITING.one(security.authorization.places.waiting)
    caches: dict[str, Remembering] = {**limited, "user": security.authentication}
    lookups = {(name, "hit"): cache.hits for name, cache in caches.items()} | {
        (name, "miss"): cache.misses for name, cache in caches.items()
    }
    yield LOOKUPS.pairs(lookups, caches)
    yield REMEMBERED.rows(((name,), cache.remembered) for name, cache in caches.items())
    yield REMEMBERED_BYTES.rows(((name,), cache.remembered_bytes) for name, cache in caches.items())


def review_families(reviews: Reviews) -> Iterator[Metric]:
    """Yield the metrics of the reviews by the API server."""
    yield REVIEWS.pairs(reviews.asked, _REVIEWS)
    yield REVIEW_DURATIONS.durations(((kind,), took) for kind, took in reviews.durations.items())
