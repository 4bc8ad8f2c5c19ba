"""Sign each request with AWS Signature Version 4 for the service ``aps``, with AWS's library.

Credentials come from the usual places of AWS programs: environment variables, a web identity
(IAM roles for service accounts), EKS pod identity, or the node's instance profile. They may be
exchanged for those of a role. The library renews them before they expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.port import Login, Outgoing, import_library
from adapter.pipeline.sources.login.tokens import redact_error
from apiservice.runtime.flight import SingleFlight

_SESSION: Final = "gpu-metrics-adapter"
_PATIENCE: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "read_timeout": 10,
    "retries": {"total_max_attempts": 2},
}
"""Timeouts and tries; the library's defaults are a minute for each of five tries."""
_SERVICE: Final = "aps"
"""Requests are signed for this service."""


class AwsLogin(Login):
    """Signs requests. The library renews credentials itself, only when they are about to expire.

    Args:
        role_arn: the role to assume; None uses the pod's or the node's own role.
        external_id: of the role's trust policy, if it requires one.

    Raises:
        CredentialError: at construction, if the extra ``aws`` is not installed.
    """

    def __init__(
        self, region: str, role_arn: str | None = None, external_id: str | None = None
    ) -> None:
        self._region = region
        self._role_arn = role_arn
        self._external_id = external_id
        self._auth = import_library("botocore.auth", "aws")
        self._request = import_library("botocore.awsrequest", "aws").AWSRequest
        self._session = import_library("botocore.session", "aws").get_session()
        config = import_library("botocore.config", "aws").Config(**_PATIENCE)
        self._session.set_default_client_config(config)
        if not self._session.get_config_variable("region"):
            self._session.set_config_variable("region", region)
        self._credentials: Any = None
        self._flights: SingleFlight[str, Any] = SingleFlight()

    async def headers(self, request: Outgoing) -> Mapping[str, str]:
        """Return the headers of the request's signature."""
        # The library fetches new credentials within this call, and blocks. All callers wait for one
        # thread. A query that times out leaves the thread running for the next query.
        frozen = await self._flights.ask("", lambda: asyncio.to_thread(self._freeze_credentials))
        signed = self._request(request.method, request.url, dict(request.headers), request.body)
        self._auth.SigV4Auth(frozen, _SERVICE, self._region).add_auth(signed)
        names = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token")
        return {name: signed.headers[name] for name in names if name in signed.headers}

    def _freeze_credentials(self) -> Any:
        try:
            if self._credentials is None:
                self._credentials = self._find_credentials()
            return self._credentials.get_frozen_credentials()
        except CredentialError:
            raise
        except Exception as error:  # botocore's errors, and its transport's
            raise CredentialError(f"AWS credentials: {redact_error(error)}") from None

    def _find_credentials(self) -> Any:
        credentials = self._session.get_credentials()
        if credentials is None:
            raise CredentialError(
                "AWS credentials: none found in the environment, a web identity, the pod "
                "or the node; annotate the service account with a role"
            )
        return self._assume_role(self._role_arn) if self._role_arn else credentials

    def _assume_role(self, role: str) -> Any:
        sts = self._session.create_client("sts")  # in the pod's own region
        extra = {"ExternalId": self._external_id} if self._external_id else {}
        credentials = import_library("botocore.credentials", "aws")

        def refresh() -> dict[str, Any]:
            keys = sts.assume_role(RoleArn=role, RoleSessionName=_SESSION, **extra)["Credentials"]
            return {
                "access_key": keys["AccessKeyId"],
                "secret_key": keys["SecretAccessKey"],
                "token": keys["SessionToken"],
                "expiry_time": keys["Expiration"].isoformat(),
            }

        return credentials.RefreshableCredentials.create_from_metadata(
            refresh(), refresh, "sts-assume-role"
        )
