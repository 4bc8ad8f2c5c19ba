"""Being let in by a cloud, as its own library does it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from adapter.settings.types import Section, SecureUrl

Audience = Annotated[str, Field(pattern=r"^https://[^\s/]+/?$")]


class AzureIdentitySettings(Section):
    """Who asks Azure. In a pod with workload identity nothing need be set."""

    client_id: str | None = None
    """Client id of a user-assigned identity; None is the pod's (workload identity), else the
    node's own (managed identity)."""
    tenant_id: Annotated[str, Field(pattern=r"^[0-9A-Za-z.-]+$")] | None = None
    """Entra tenant of the workload identity; None is the one that its webhook set. A managed
    identity has its own."""
    authority: SecureUrl | None = None
    """Entra of another cloud, for a workload identity, such as
    ``https://login.microsoftonline.us``; None is ``AZURE_AUTHORITY_HOST``'s, else Azure's own."""


class AzureAuthSettings(AzureIdentitySettings):
    """Azure Monitor's managed Prometheus; needs the extra ``azure``."""

    audience: Audience = "https://prometheus.monitor.azure.com"
    """Whom the token is for; other clouds have their own."""


class GoogleAuthSettings(Section):
    """Google's managed Prometheus, as the application default credentials say; needs the extra
    ``google``. ``url`` is
    ``https://monitoring.googleapis.com/v1/projects/PROJECT/location/global/prometheus``."""

    quota_project: str | None = None
    """Project that the queries are charged to (``x-goog-user-project``); None names none, which a
    person's own credentials may not."""


class AwsAuthSettings(Section):
    """Amazon's managed Prometheus; needs the extra ``aws``. ``url`` is
    ``https://aps-workspaces.REGION.amazonaws.com/workspaces/ID``."""

    region: str = ""
    """Region of the workspace."""
    service: str = "aps"
    """Name of the service that requests are signed for."""
    role_arn: str | None = None
    """Role to take on; None is the pod's or the node's own."""
    external_id: Annotated[str, Field(min_length=2)] | None = None
    """What the role's trust policy asks for, if it does."""


class AuthSettings(Section):
    """How a cloud's managed engine lets the adapter in."""

    kind: Literal["none", "azure", "google", "aws"] = "none"
    """Whose credentials are shown. ``none`` leaves it to the keys above."""
    azure: AzureAuthSettings = AzureAuthSettings()
    google: GoogleAuthSettings = GoogleAuthSettings()
    aws: AwsAuthSettings = AwsAuthSettings()

    @model_validator(mode="after")
    def _region(self) -> AuthSettings:
        if self.kind == "aws" and not self.aws.region:
            raise ValueError("kind aws needs aws.region, such as eu-central-1")
        return self
