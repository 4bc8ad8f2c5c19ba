"""Settings: credentials for a cloud, passed to the cloud's own library."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adapter.config.settings.types import ADVANCED, Section, SecureUrl

Audience = Annotated[str, Field(pattern=r"^https://[^\s/]+/?$")]


class AzureIdentitySettings(Section):
    """The identity that queries Azure. A pod with workload identity needs no setting."""

    client_id: str | None = None
    """Client ID of a user-assigned identity. If not set, the pod's workload identity, or else the
    node's managed identity."""
    tenant_id: Annotated[
        Annotated[str, Field(pattern=r"^[0-9A-Za-z.-]+$")] | None,
        ADVANCED,
    ] = None
    """Entra tenant of the workload identity. If not set, the one that the webhook injected."""
    authority: Annotated[SecureUrl | None, ADVANCED] = None
    """Entra address of another Azure cloud, such as ``https://login.microsoftonline.us``. If not
    set, ``AZURE_AUTHORITY_HOST``, or the public cloud."""


class AzureAuthSettings(AzureIdentitySettings):
    """Azure Monitor managed service for Prometheus. Needs the extra ``azure``."""

    audience: Annotated[Audience, ADVANCED] = "https://prometheus.monitor.azure.com"
    """Audience of the token. Other Azure clouds have their own."""


class GoogleAuthSettings(Section):
    """Google Cloud Managed Service for Prometheus, with the application default credentials.
    Needs the extra ``google``. Set ``url`` to
    ``https://monitoring.googleapis.com/v1/projects/PROJECT/location/global/prometheus``."""

    quota_project: Annotated[str | None, ADVANCED] = None
    """Project that is charged for the queries (``x-goog-user-project``). Credentials of a person
    need it."""


class AwsAuthSettings(Section):
    """Amazon Managed Service for Prometheus. Needs the extra ``aws``. Set ``url`` to
    ``https://aps-workspaces.REGION.amazonaws.com/workspaces/ID``."""

    region: str = ""
    """Region of the workspace."""
    role_arn: str | None = None
    """Role to assume. If not set, the role of the pod or of the node."""
    external_id: Annotated[Annotated[str, Field(min_length=2)] | None, ADVANCED] = None
    """External ID, if the role's trust policy requires one."""


class AuthSettings(Section):
    """Credentials for a cloud provider's managed Prometheus."""

    kind: Literal["none", "azure", "google", "aws"] = "none"
    """Provider whose credentials are used. With ``none``, the keys of ``source.prometheus``
    apply."""
    azure: AzureAuthSettings = AzureAuthSettings()
    google: GoogleAuthSettings = GoogleAuthSettings()
    aws: AwsAuthSettings = AwsAuthSettings()

    @model_validator(mode="after")
    def _check_region(self) -> AuthSettings:
        if self.kind == "aws" and not self.aws.region:
            raise ValueError("kind aws needs aws.region, such as eu-central-1")
        return self
