"""Build TLS, authentication and authorization from the settings."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from adapter.config.settings import Settings
from adapter.server.serve.build import Loop
from apiservice.auth import authconfigmap
from apiservice.auth.authconfigmap import ConfigMapTrust
from apiservice.auth.authentication import Authentication
from apiservice.auth.authfiles import FileTrust
from apiservice.auth.authorization import AccessReviewer, Authorization
from apiservice.auth.clientauth import ClientAuth
from apiservice.auth.tokens import ReviewedTokens, TokenReviewer
from apiservice.documents.health import Check
from apiservice.identity import PRIVILEGED_GROUP
from apiservice.selfmetrics.durations import Durations
from apiservice.tls.certificates import CertificateFiles, CertificatePairError, outside_of
from apiservice.tls.context import ServingTLS
from apiservice.tls.selfsigned import SelfSigned


class Reviews(TokenReviewer, AccessReviewer, Protocol):
    """Reviews by the API server, with counters."""

    asked: Counter[tuple[str, str]]
    """Number of reviews by kind and outcome."""
    durations: dict[str, Durations]
    """Durations by kind."""


@dataclass(frozen=True, slots=True)
class Security:
    """The certificates, authentication and authorization of the server."""

    tls: ServingTLS
    files: FileTrust
    authentication: Authentication
    authorization: Authorization
    trust: ClientAuth
    reviews: Reviews | None
    """None without a cluster."""
    tokens: ReviewedTokens | None
    """None if no token is reviewed."""
    loops: Sequence[Loop]
    checks: Sequence[Check]
    """Readiness checks: without these no request can be answered."""
    problems: Mapping[str, Callable[[], str]]
    """Why the newest content of a file is not in use, while the last good one is; or empty."""

    def check_files(self, now: float) -> None:
        """Load certificates and CAs that changed on disk; called every few seconds."""
        self.files.check()
        self.tls.check(now)


def build_security(settings: Settings, client: Any, now: float) -> Security:
    """Build TLS, authentication and authorization; ``client`` is None without a cluster.

    Raises:
        CertificatePairError, TrustFileError: a file cannot be used.
    """
    chosen = settings.authentication
    published_trust = client is not None and chosen.configmap
    trust = ClientAuth(expected=published_trust)
    files = FileTrust(
        trust,
        proxy_ca_file=chosen.requestheader_ca_file,
        allowed_names=chosen.requestheader_allowed_names,
        client_ca_file=chosen.client_ca_file,
    )
    tls = ServingTLS(_certificate(settings), trust, now)
    checks = [
        Check(
            "serving-certificate",
            lambda: outside_of(tls.validity, time.time()),
        )
    ]
    problems = {"serving-certificate": lambda: tls.problem, "ca-files": lambda: files.problem}
    loops: list[Loop] = []
    reviews = _reviews(settings, client)
    if published_trust:
        published = ConfigMapTrust(
            trust,
            proxy=chosen.requestheader_ca_file is None,
            clients=chosen.client_ca_file is None,
        )
        loops.append(_watch_configmap(client, published))
        checks.append(Check("front-proxy", lambda: None if trust.proxy else published.problem))
        problems["authentication-configmap"] = lambda: published.problem
    tokens = None
    if reviews is not None and chosen.token_review:
        tokens = ReviewedTokens(reviews, chosen.cache)
    allowed = settings.authorization
    authorization = Authorization(
        reviews if allowed.subject_access_review else None,
        allow_groups=(PRIVILEGED_GROUP, *allowed.allow_groups),
        allow_users=allowed.allow_users,
        ttl=allowed.cache,
    )
    return Security(
        tls,
        files,
        Authentication(trust, tokens),
        authorization,
        trust,
        reviews,
        tokens,
        loops,
        checks,
        problems,
    )


def _certificate(settings: Settings) -> CertificateFiles | SelfSigned:
    server = settings.server
    if server.cert_file is not None and server.key_file is not None:
        return CertificateFiles(server.cert_file, server.key_file)
    return SelfSigned(server.cert_dir or _state_folder() / "certs", server.cert_names)


def _state_folder() -> Path:
    """Return this user's folder for state: the XDG Base Directory Specification.

    No other user can write there, as they could in ``/tmp``.

    Raises:
        CertificatePairError: the user has no home directory.
    """
    base = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError:
            raise CertificatePairError(
                "a self-signed certificate needs a folder, and this user has no home directory: "
                "set server.cert_dir, or give a certificate and key"
            ) from None
    return base / "gpu-metrics-adapter"


def _reviews(settings: Settings, client: Any) -> Reviews | None:
    if client is None:
        return None
    from apiservice.auth.reviews import KubernetesReviews  # noqa: PLC0415 - 35 MB

    return KubernetesReviews(client, settings.authentication.token_audiences)


def _watch_configmap(client: Any, into: ConfigMapTrust) -> Loop:
    from apiservice.kube.reflector import Reflector  # noqa: PLC0415 - 35 MB

    return Reflector(
        client,
        authconfigmap.PATH,
        authconfigmap.decode,
        into,
        field_selector=authconfigmap.FIELD_SELECTOR,
    ).run
