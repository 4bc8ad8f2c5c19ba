"""The Kubernetes client, with the current content of its CA and client certificate files.

A cluster's CA is rotated while pods run: kubelet replaces the file that is mounted into each pod
(kubernetes.io, "Manual Rotation of CA Certificates"). A client that does not read it again loses
the API server when that serves a certificate of the new CA.

The client of the ``kubernetes`` package is not used: it reads the files once, and importing it
takes 60 ms of CPU, most of it for pydantic.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self
from urllib.parse import quote, urlencode
from urllib.request import getproxies_environment

import aiohttp
import msgspec

from apiservice.kube.credentials import CredentialPlugin
from apiservice.kube.outages import Outages
from apiservice.runtime.connector import Connector
from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.runtime.log import LateLog
from apiservice.runtime.servertrust import client_context

log = LateLog(__name__)

LOOK: Final = 1.0
"""Seconds between two looks at the files: an HPA with an Object metric costs an access review, so
there may be hundreds of requests in a second."""
_ROLES: Final = ("ssl_ca_cert", "cert_file", "key_file")
"""What a file contains: its name in :class:`ClusterAccess`."""
_RETIRED: Final = 4
"""Connections with earlier content that are kept open."""
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_CONNECTIONS: Final = 100
"""Requests in progress, at most."""
_BUFFER: Final = 1 << 21
"""Bytes of an answer that are read ahead: an event of a watch may be larger than 64 KiB."""
_JSON: Final = "application/json"


@dataclass(slots=True)
class ClusterAccess:
    """The address of an API server and the credentials, as the library's loaders set them."""

    host: str = "http://localhost"
    """URL of the server."""
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    """The name that the certificate must have; that of the URL by default."""
    proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict)
    """``BearerToken`` -> the value of the header ``Authorization``."""
    refresh_api_key_hook: Callable[[Any], Awaitable[None] | None] | None = None
    """Renews the credentials; runs before each request."""


async def _stay(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raise ClientResponseError for a redirect.

    The API server sends none, but a pod behind its proxy may. A client that follows one sends its
    credentials along with a request that the pod chose.
    """
    response = await handler(request)
    if response.status in _REDIRECTS:
        response.close()
        raise aiohttp.ClientResponseError(
            response.request_info,
            (),
            status=response.status,
            message="a redirect, which is not followed",
        )
    return response


class ClusterClient:
    """Sends requests to the API server.

    Checks the files before a request, at most once a second. It interrupts no request.

    Args:
        configuration: the server and the credentials.
        headers: sent with each request; a name may stand several times.

    Raises:
        OSError, ssl.SSLError, ValueError: at construction, if a file cannot be used.
    """

    def __init__(
        self, configuration: ClusterAccess, headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.configuration = configuration
        self._headers = headers
        names = {role: getattr(configuration, role) for role in _ROLES}
        self._files = {role: Path(name) for role, name in names.items() if name}
        self._seen: Stamp = self._stamp()  # before reading: a change while reading counts
        self._looked = -LOOK
        self._read = self._contents()
        self.connections = _Connections(configuration, headers)
        self._closed = False
        self._retired: list[_Connections] = []
        """Connections made with earlier content; the watches of the newest ones continue."""
        self.user_agent = "apiservice"
        self.origin = ""
        """The server, and the source of its address and credentials."""
        self.context = ""
        """The context of the kubeconfig; empty without one."""
        self.namespace = "default"
        """The namespace of the kubeconfig's context, or of the pod."""
        self.outages = Outages()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def forget(self, copies: Collection[str]) -> None:
        """Do not check these files any more; what was read from them is kept."""
        self._files = {role: file for role, file in self._files.items() if str(file) not in copies}
        self._seen = self._stamp()

    async def request(
        self,
        method: str,
        path: str,
        limits: aiohttp.ClientTimeout,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
        accept: str = _JSON,
        content_type: str = _JSON,
    ) -> aiohttp.ClientResponse:
        """Send a request and return the response, of which only the head was read.

        Args:
            body: an object that is sent as JSON, which is YAML too; None for no body.

        Raises:
            aiohttp.ClientError, OSError, ValueError: there was no response.
        """
        if self._closed:  # of requests side by side, another one failed and ended the command
            raise aiohttp.ClientConnectionError("the client is closed")
        access = self.configuration
        if access.refresh_api_key_hook is not None:
            renewed = access.refresh_api_key_hook(access)
            if renewed is not None:
                await renewed
        self._look()
        while len(self._retired) > _RETIRED:
            await self._retired.pop(0).close()
        headers = {"Accept": accept, "Content-Type": content_type, "User-Agent": self.user_agent}
        if token := access.api_key.get("BearerToken"):
            headers["Authorization"] = token
        more = f"?{urlencode(query, quote_via=quote)}" if query else ""
        return await self.connections.session().request(
            method,
            f"{access.host}{path}{more}",
            headers=headers,
            data=None if body is None else msgspec.json.encode(body),
            timeout=limits,
            proxy=access.proxy,
            server_hostname=access.tls_server_name,
        )

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        for connections in (*self._retired, self.connections):
            await connections.close()

    def _stamp(self) -> Stamp:
        return stamp(tuple(self._files.values()))

    def _contents(self) -> dict[str, bytes]:
        """Return the content of each file that is there, by its role."""
        return {role: file.read_bytes() for role, file in self._files.items()}

    def _renewed_pair(self) -> dict[str, bytes]:
        """Return the certificate and key that a credential plugin returned last."""
        plugin = self.configuration.refresh_api_key_hook
        pair = plugin.pair if isinstance(plugin, CredentialPlugin) else None
        return dict(zip(("cert_file", "key_file"), pair, strict=True)) if pair else {}

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        file_stamp, renewed = self._stamp(), self._renewed_pair()
        if file_stamp == self._seen and renewed.items() <= self._read.items():
            return
        self._seen = file_stamp
        try:
            read = self._read | self._contents() | renewed
            if read == self._read:  # kubelet replaces all files of the folder with each new token
                return
            fresh = self._connect(read)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            log.warning("cluster CA or client certificate rejected", error=str(error))
            return
        self._read = read
        self._retired.append(self.connections)
        self.connections = fresh
        log.info("cluster CA or client certificate read again", files=self._file_names())

    def _file_names(self) -> list[str]:
        plugin = ["the credential plugin"] if self._renewed_pair() else []
        return [*map(str, self._files.values()), *plugin]

    def _connect(self, contents: Mapping[str, bytes]) -> _Connections:
        """Return connections with these certificates, which Python reads from files."""
        with TemporaryDirectory() as folder:
            files = {role: Path(folder) / role for role in contents}
            for role, content in contents.items():
                files[role].write_bytes(content)
            paths: dict[str, Any] = {role: str(file) for role, file in files.items()}
            return _Connections(replace(self.configuration, **paths), self._headers)


class _Connections:
    """Connections with one content of the files. They are made when they are first used."""

    def __init__(self, access: ClusterAccess, headers: Sequence[tuple[str, str]]) -> None:
        self._tls = _tls(access) if access.host.startswith("https") else None
        self._headers = headers
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """Return the connections.

        The address of a cluster may be a name inside a pod, too: AKS can set
        ``KUBERNETES_SERVICE_HOST`` to one (Azure/AKS issue 3183).
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=_CONNECTIONS, ssl=self._tls or True),
                middlewares=(_stay,),
                # Otherwise each request asks a thread for a proxy, and one for a password in
                # ~/.netrc.
                trust_env=bool(getproxies_environment()),
                headers=self._headers,
                read_bufsize=_BUFFER,
            )
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _tls(access: ClusterAccess) -> ssl.SSLContext:
    context = client_context(access.ssl_ca_cert)
    if access.cert_file:
        context.load_cert_chain(access.cert_file, access.key_file)
    if not access.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
