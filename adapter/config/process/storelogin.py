"""How a store is reached, from the settings: address, login, trust and limits."""

from __future__ import annotations

from typing import Final

from adapter.config.settings.cloud import AzureIdentitySettings
from adapter.config.settings.prometheus import PrometheusSettings
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.aws import AwsLogin
from adapter.pipeline.sources.login.azure import AzureIdentity, azure_tokens
from adapter.pipeline.sources.login.google import google_tokens
from adapter.pipeline.sources.login.port import Anonymous, Basic, Bearer, BearerFile, Login
from adapter.pipeline.sources.prometheus.options import PrometheusOptions

TENANT_HEADERS: Final = ("X-Scope-OrgID", "THANOS-TENANT")
"""Headers that name a tenant to Mimir and to Thanos; each ignores the other's."""


def store_options(prometheus: PrometheusSettings) -> PrometheusOptions:
    """Return how the store of the settings is reached, without what a source asks it.

    Raises:
        CredentialError: see :func:`prometheus_login`.
    """
    tenant = prometheus.tenant
    return PrometheusOptions(
        url=str(prometheus.url),
        timeout=prometheus.timeout,
        method=prometheus.method,
        params=prometheus.params,
        login=prometheus_login(prometheus),
        ca_file=prometheus.ca_file,
        cert_file=prometheus.cert_file,
        key_file=prometheus.key_file,
        headers=(dict.fromkeys(TENANT_HEADERS, tenant) if tenant else {}) | prometheus.headers,
        max_bytes=prometheus.max_bytes,
    )


def prometheus_login(prometheus: PrometheusSettings) -> Login:
    """Return the login for the query API.

    Raises:
        CredentialError: a required extra is not installed, an identity is invalid, or a
            file cannot be read; the text begins with the key.
    """
    if prometheus.auth.kind != "none":
        try:
            return _cloud(prometheus)
        except CredentialError as error:
            raise CredentialError(f"auth.kind {prometheus.auth.kind}: {error}") from error
    if prometheus.bearer_token_file:
        return BearerFile(prometheus.bearer_token_file)
    if prometheus.username is None:
        return Anonymous()
    password = prometheus.password.get_secret_value() if prometheus.password else ""
    return Basic(prometheus.username, password, prometheus.password_file)


def _cloud(prometheus: PrometheusSettings) -> Login:
    auth = prometheus.auth
    match auth.kind:
        case "azure":
            return Bearer(azure_tokens(azure_identity(auth.azure), auth.azure.audience))
        case "google":
            project = auth.google.quota_project
            return Bearer(google_tokens(), {"x-goog-user-project": project} if project else {})
    aws = auth.aws
    return AwsLogin(aws.region, aws.role_arn, aws.external_id)


def azure_identity(settings: AzureIdentitySettings) -> AzureIdentity:
    """Return the Azure identity from the settings."""
    authority = str(settings.authority).rstrip("/") if settings.authority else None
    return AzureIdentity(settings.client_id, settings.tenant_id, authority)
