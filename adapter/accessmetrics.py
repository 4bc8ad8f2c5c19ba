"""What ``/metrics`` says about connections, and about who may connect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import Metric

from adapter.reasons import CREDENTIALS, REFUSALS
from adapter.security import Reviews, Security
from apiservice.authentication import Authentication
from apiservice.authorization import Authorization
from apiservice.families import counter, gauge, histogram
from apiservice.server import Server
from apiservice.tokens import Tokens

_REVIEWS: Final = ("access", "token")

CONNECTIONS: Final = gauge(
    "gma_connections", "Connections open, TLS handshakes in progress included."
)
HANDSHAKES: Final = gauge("gma_handshakes", "TLS handshakes in progress.")
STRANGERS: Final = gauge(
    "gma_connections_strangers", "Connections open without a front proxy's certificate."
)
FAILED: Final = counter(
    "gma_handshakes_failed_total",
    "TLS handshakes that failed or took too long, and connections closed before theirs.",
)
OPENED: Final = counter("gma_connections_opened_total", "Connections whose handshake succeeded.")
REQUESTS: Final = gauge("gma_http_requests_in_flight", "Requests being answered.")
REFUSED: Final = counter(
    "gma_connections_refused_total",
    "Connections and requests cut off, by the limit that did it.",
    "limit",
    known=REFUSALS,
)
UNAUTHORIZED: Final = counter(
    "gma_unauthorized_total",
    "Requests answered 401, by what they were refused for.",
    "method",
    known=CREDENTIALS,
)
EXPIRY: Final = gauge(
    "gma_serving_certificate_expiry_timestamp_seconds",
    "When the serving certificate expires, in epoch seconds.",
)
FILES: Final = gauge(
    "gma_security_file_ok",
    "0 while the newest content of a certificate or CA is refused; the last good one serves.",
    "file",
)
REVIEWS: Final = counter(
    "gma_reviews_total",
    "TokenReviews and SubjectAccessReviews that the cluster was asked for.",
    *("kind", "outcome"),
    known=("yes", "no", "error"),
)
REVIEW_DURATIONS: Final = histogram(
    "gma_review_duration_seconds", "What those took, repetitions included.", "kind"
)
UNREVIEWED: Final = counter(
    "gma_reviews_refused_total",
    "Requests answered 429 instead of a review: anonymous clients, or one address with many "
    "unknown tokens, caused too many.",
    "kind",
)
LOOKUPS: Final = counter(
    "gma_auth_cache_lookups_total",
    "Questions about a stated user, a user's rights or a token, by whether the answer was "
    "remembered.",
    *("cache", "result"),
    known=("hit", "miss"),
)
REMEMBERED: Final = gauge(
    "gma_auth_cache_entries",
    "Answers about stated users, rights or tokens that are remembered.",
    "cache",
)
REMEMBERED_BYTES: Final = gauge(
    "gma_auth_cache_bytes", "Memory that these answers take, estimated.", "cache"
)
FAMILIES: Final = (
    *(CONNECTIONS, HANDSHAKES, STRANGERS, OPENED, FAILED, REQUESTS, REFUSED),
    *(UNAUTHORIZED, EXPIRY, FILES, REVIEWS, REVIEW_DURATIONS, UNREVIEWED),
    *(LOOKUPS, REMEMBERED, REMEMBERED_BYTES),
)


def access_families(server: Server, security: Security) -> Iterator[Metric]:
    """Of the listener and of those that judge its clients."""
    yield CONNECTIONS.one(server.connections)
    yield HANDSHAKES.one(server.handshakes)
    yield STRANGERS.one(server.strangers)
    yield OPENED.one(server.stats.opened)
    yield FAILED.one(server.stats.failed)
    yield REQUESTS.one(server.requests)
    yield REFUSED.by(server.stats.refused)
    yield UNAUTHORIZED.by(security.authentication.refused)
    yield EXPIRY.one(security.tls.expires)
    yield FILES.rows(((name,), not problem()) for name, problem in security.problems.items())
    if security.reviews is not None:
        yield from review_families(security.reviews)
    limited: dict[str, Authorization | Tokens] = {"access": security.authorization}
    if security.tokens is not None:
        limited["token"] = security.tokens
    yield UNREVIEWED.by({kind: cache.refused for kind, cache in limited.items()})
    caches: dict[str, Authentication | Authorization | Tokens] = {
        **limited,
        "user": security.authentication,
    }
    lookups = {(name, "hit"): cache.hits for name, cache in caches.items()} | {
        (name, "miss"): cache.misses for name, cache in caches.items()
    }
    yield LOOKUPS.pairs(lookups, caches)
    yield REMEMBERED.rows(((name,), cache.remembered) for name, cache in caches.items())
    yield REMEMBERED_BYTES.rows(((name,), cache.remembered_bytes) for name, cache in caches.items())


def review_families(reviews: Reviews) -> Iterator[Metric]:
    """Of what the cluster is asked."""
    yield REVIEWS.pairs(reviews.asked, _REVIEWS)
    yield REVIEW_DURATIONS.durations(((kind,), took) for kind, took in reviews.durations.items())
