"""A client of the Kubernetes API, from a pod's service account or a kubeconfig.

A mistake in the configuration becomes a :class:`ClusterError` that names the file and the fix.
Credentials that rotate are read again: files when they change, the cluster's CA among them, and
exec plugins when their credentials expire.

Importing this module costs about 35 MB (aiohttp and the ``kubernetes`` package). A process that may
run without a cluster imports it only when it connects to one.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import msgspec
import yaml
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.incluster_config import (
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    InClusterConfigLoader,
)
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from apiservice.kube.clusterclient import ClusterClient
from apiservice.kube.failures import TOO_LONG, transport_failure
from apiservice.runtime.filestamp import Stamp, stamp

# These classes carry no annotations.
_service_account_loader: Any = InClusterConfigLoader
_kubeconfig_loader: Any = KubeConfigLoader
_kubeconfig_merger: Any = KubeConfigMerger

SERVICE_ACCOUNT = Path(SERVICE_TOKEN_FILENAME).parent
"""Where a pod's service account is mounted."""
_JSON: Final = "application/json"
_REFRESH = 60.0
"""Seconds between runs of a credential plugin that names no expiry."""


class ClusterError(Exception):
    """The cluster cannot be reached; the message names the file and the fix."""


class NoKubeconfigError(ClusterError):
    """This process does not run in a pod, and there is no kubeconfig."""


class ClusterAnswerError(Exception):
    """The API server did not answer, or answered with a status other than 2xx."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 0 without a response."""
        self.reason = reason
        """``reason`` of the API server's Status, such as ``NotFound``; empty without one."""

    @property
    def cause(self) -> str:
        """What went wrong, without the method and path of the request."""
        return str(self).partition(": ")[2]


def in_cluster(
    environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> bool:
    """Return whether this process runs in a pod that may talk to its cluster."""
    return bool(environ.get(SERVICE_HOST_ENV_NAME)) and (service_account / "token").exists()


async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    user_agent: str = "apiservice",
) -> ApiClient:
    """Return a client for the cluster. It has sent nothing yet.

    The kubeconfig is used if one is named. Otherwise a pod uses its service account, and a process
    outside a pod uses the files of ``KUBECONFIG`` or ``~/.kube/config``.

    Raises:
        ClusterError: see the module.
    """
    configuration: Any = Configuration()
    used = ""
    if kubeconfig is None and in_cluster(environ, service_account):
        _load_service_account(configuration, environ, service_account)
        source = "the pod's service account"
        namespace = _pod_namespace(service_account)
    else:
        source = _paths(kubeconfig, environ)
        used, namespace = await _load_kubeconfig(configuration, source, context)
        source = f"kubeconfig {source}"
    try:
        client = ClusterClient(configuration)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ClusterError(
            f"{source}: the certificates it names cannot be used: {error}; check "
            f"certificate-authority, client-certificate and client-key"
        ) from error
    client.user_agent = user_agent
    by = f"{source}, context {used}" if used else source
    client.origin = f"{configuration.host} ({by})"
    client.context = used
    client.namespace = namespace
    return client


async def call(
    client: ApiClient,
    method: str,
    path: str,
    body: Any = None,
    timeout_seconds: float = 10.0,
    content_type: str = "application/json",
    *,
    accept: str = "application/json",
    most: int | None = None,
) -> bytes:
    """Send one request to the API server and return the response's bytes.

    Args:
        content_type: type of the body, such as ``application/apply-patch+yaml``.
        accept: what the answer may be.
        most: bytes of the answer that are read; None for any number.

    Raises:
        ClusterAnswerError: see there; also if the answer is longer than ``most``.
    """
    response, answer = await _exchange(
        client, method, path, body, timeout_seconds, content_type, accept=accept, most=most
    )
    if not 200 <= response.status <= 299:
        said = _status(answer)
        raise ClusterAnswerError(
            f"{method} {path}: {response.status} {said.message}", response.status, said.reason
        )
    return answer


class BoundedAnswer(NamedTuple):
    """A response with any status, up to a number of bytes."""

    status: int
    body: bytes
    complete: bool
    """The body was not longer than the limit."""


async def read_bounded(
    client: ApiClient, path: str, most: int, timeout_seconds: float = 10.0
) -> BoundedAnswer:
    """GET a path behind the API server, such as a pod's page through its proxy.

    Raises:
        ClusterAnswerError: there was no response.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            response = await _request(client, "GET", path, None, timeout_seconds, _JSON, "*/*")
            body = await _read(response.response, most)
            return BoundedAnswer(response.status, body[:most], complete=len(body) <= most)
    except aiohttp.ClientResponseError as error:
        return BoundedAnswer(error.status, b"", complete=True)
    except (aiohttp.ClientError, OSError, ConfigException, ValueError) as error:
        raise ClusterAnswerError(f"GET {path}: {transport_failure(error)}") from error


async def server_time(client: ApiClient, timeout_seconds: float = 10.0) -> float:
    """Return the API server's clock in epoch seconds: the ``Date`` of any response.

    Raises:
        ClusterAnswerError: the server did not answer, or sent no such header.
    """
    path = "/version"
    response, _ = await _exchange(client, "GET", path, None, timeout_seconds, "application/json")
    try:
        return parsedate_to_datetime(response.headers["Date"]).timestamp()
    except (KeyError, ValueError) as error:
        raise ClusterAnswerError(f"GET {path}: the response has no usable Date") from error


async def _exchange(
    client: ApiClient,
    method: str,
    path: str,
    body: Any,
    timeout_seconds: float,
    content_type: str,
    *,
    accept: str = _JSON,
    most: int | None = None,
) -> tuple[Any, bytes]:
    """Return the response with any status, and its body. Raise ClusterAnswerError without one."""
    try:
        # The client's own limit does not apply on a connection with unsolicited bytes.
        async with asyncio.timeout(timeout_seconds):
            response = await _request(
                client, method, path, body, timeout_seconds, content_type, accept
            )
            if most is None:
                return response, await response.read()
            answer = await _read(response.response, most)
    except (aiohttp.ClientError, OSError, ConfigException, ValueError) as error:
        raise ClusterAnswerError(f"{method} {path}: {transport_failure(error)}") from error
    if len(answer) > (most or 0):
        raise ClusterAnswerError(f"{method} {path}: {TOO_LONG} {most} bytes")
    return response, answer


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Return the body; if it is longer than ``most``, its first bytes, and more than ``most``."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(1 << 16):
        body += chunk
        if len(body) > most:
            response.close()
            break
    return bytes(body)


async def _request(
    client: ApiClient,
    method: str,
    path: str,
    body: Any,
    timeout_seconds: float,
    content_type: str,
    accept: str = _JSON,
) -> Any:
    """Send a request and return the response, of which only the head was read."""
    headers: dict[str, str] = {"Accept": accept, "Content-Type": content_type}
    arguments = await client.param_serialize(
        method, path, header_params=headers, body=body, auth_settings=["BearerToken"]
    )
    verb, url, header_params, content, _ = arguments
    limits = aiohttp.ClientTimeout(total=timeout_seconds)
    return await client.call_api(verb, url, header_params, content, _request_timeout=limits)


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""


def _status(answer: bytes) -> _Status:
    try:
        return msgspec.json.decode(answer, type=_Status)
    except msgspec.MsgspecError:
        return _Status(" ".join(answer[:200].decode("utf-8", "replace").split()))


def _load_service_account(
    configuration: Any, environ: Mapping[str, str], service_account: Path
) -> None:
    token = service_account / "token"
    loader = _service_account_loader(
        str(token), str(service_account / "ca.crt"), try_refresh_token=False, environ=environ
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ClusterError(
            f"the pod's service account in {service_account} cannot be used: {error}; mount it "
            f"(automountServiceAccountToken) or name a kubeconfig"
        ) from error
    configuration.refresh_api_key_hook = _TokenFile(token)


def _paths(kubeconfig: Path | None, environ: Mapping[str, str]) -> str:
    """Return the kubeconfig files, as ``KUBECONFIG`` lists them.

    Raises:
        ClusterError: none of them exists.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ClusterError(f"kubeconfig {kubeconfig} does not exist; name one that does")
        return str(kubeconfig)
    listed = environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not any(Path(path).expanduser().is_file() for path in listed.split(os.pathsep) if path):
        raise NoKubeconfigError(
            f"not running in a pod, and no kubeconfig found at {listed}; set KUBECONFIG or name a "
            f"kubeconfig"
        )
    return listed


async def _load_kubeconfig(configuration: Any, source: str, context: str | None) -> tuple[str, str]:
    """Load a kubeconfig. Return the name of the context that is used, and its namespace."""
    _check_kubeconfigs(source)
    try:
        merged = _kubeconfig_merger(source).config
        loader = _kubeconfig_loader(merged, active_context=context, config_base_path=None)
        await loader.load_and_set(configuration)
    except ConfigException as error:
        named = f"context {context!r} of " if context else ""
        raise ClusterError(
            f"{named}kubeconfig {source}: {error}; see `kubectl config get-contexts`"
        ) from error
    except OSError as error:
        raise ClusterError(f"kubeconfig {source}: {error}") from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ClusterError(f"kubeconfig {source} cannot be used: {error}") from error
    _keep_fresh(configuration, loader, source)
    active = loader.current_context
    return str(active["name"]), str(active["context"].get("namespace") or "default")


def _pod_namespace(service_account: Path) -> str:
    try:
        return (service_account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"


def _check_kubeconfigs(source: str) -> None:
    for path in source.split(os.pathsep):
        if path and (file := Path(path).expanduser()).is_file():
            _check_kubeconfig(file)


def _check_kubeconfig(file: Path) -> None:
    """Raise ClusterError if a file's content does not have a kubeconfig's shape."""
    try:
        content = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise ClusterError(f"kubeconfig {file}: {error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        why = " ".join(str(error).split())
        raise ClusterError(f"kubeconfig {file} is not YAML: {why}; name another file") from error
    lists = ("clusters", "contexts", "users")
    if not isinstance(content, dict) or not any(name in content for name in lists):
        raise ClusterError(
            f"{file} is not a kubeconfig: it has no clusters, contexts or users; name a file "
            f"such as ~/.kube/config"
        )
    for name in lists:
        if not isinstance(content.get(name) or [], list):
            raise ClusterError(f"kubeconfig {file}: {name} must be a list")


def _keep_fresh(configuration: Any, loader: Any, source: str) -> None:
    user = getattr(loader, "_user", None)
    if user is None:
        return
    if "exec" in user:
        if not hasattr(loader, "token") and not hasattr(loader, "cert_file"):
            command = user["exec"].safe_get("command")
            raise ClusterError(
                f"kubeconfig {source}: the credential plugin {command!r} returned no credentials; "
                f"run it by hand to see why"
            )
        configuration.refresh_api_key_hook = _ExecPlugin(loader)
    elif "tokenFile" in user and "token" not in user:
        base = Path(str(user.path)).parent if user.path else Path()
        configuration.refresh_api_key_hook = _TokenFile(base / user["tokenFile"])


class _TokenFile:
    """Reads a token file again when it was replaced. Kubelet replaces projected tokens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: Stamp | None = None

    def __call__(self, configuration: Any) -> None:
        """Runs before each request. An empty file leaves the last token in use."""
        seen = stamp((self._path,))
        if seen == self._seen:
            return
        token = self._path.read_text().strip()
        if token:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
            self._seen = seen


class _ExecPlugin:
    """Runs a credential plugin again when its credentials have expired."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._asked_at = time.monotonic()

    async def __call__(self, configuration: Any) -> None:
        """Runs before each request."""
        now = time.monotonic()
        if now - self._asked_at < _REFRESH:
            return
        self._asked_at = now
        await self._loader.load_from_exec_plugin()
        if hasattr(self._loader, "token"):
            configuration.api_key["BearerToken"] = self._loader.token
