"""The Kubernetes client, with the current content of its CA and client certificate files.

The library's client reads both once. A cluster's CA is rotated while pods run: kubelet replaces the
file that is mounted into each pod (kubernetes.io, "Manual Rotation of CA Certificates"). A client
that does not read it again loses the API server when that serves a certificate of the new CA.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.request import getproxies_environment

import aiohttp
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.rest import RESTClientObject

from apiservice.kube.credentials import CredentialPlugin
from apiservice.kube.outages import Outages
from apiservice.runtime.filestamp import Stamp, stamp
from apiservice.runtime.log import LateLog
from apiservice.runtime.names import Resolver
from apiservice.runtime.servertrust import checking_alike

log = LateLog(__name__)

# These classes carry no annotations.
_client: Any = ApiClient
_connections: Any = RESTClientObject


LOOK: Final = 1.0
"""Seconds between two looks at the files: an HPA with an Object metric costs an access review, so
there may be hundreds of requests in a second."""
_ROLES: Final = ("ssl_ca_cert", "cert_file", "key_file")
"""What a file contains: its name in the library's configuration."""
_RETIRED: Final = 4
"""Connections with earlier content that are kept open."""
_LAST: Final = 1.0
"""Seconds in which requests that still wait for their answer may end before the client closes."""
_REDIRECTS: Final = (301, 302, 303, 307, 308)


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


class _Response(aiohttp.ClientResponse):
    """A response whose connection is closed at once if it is closed before its end.

    An orderly end of TLS waits for the server, and the client's ``close`` does not wait for that:
    the connection of a watch would still be open when the event loop closes.
    """

    def close(self) -> None:
        """Close the connection; one with a complete answer has been released and stays open."""
        connection = self.connection
        transport = connection.transport if connection is not None else None
        if transport is not None:
            transport.abort()
        super().close()


class ClusterClient(ApiClient):
    """Checks the files before a request, at most once a second. It interrupts no request.

    Raises:
        OSError, ssl.SSLError, ValueError: at construction, if a file cannot be used.
    """

    def __init__(self, configuration: Any, headers: Sequence[tuple[str, str]] = ()) -> None:
        named = {role: getattr(configuration, role) for role in _ROLES}
        self._files = {role: Path(name) for role, name in named.items() if name}
        self._seen: Stamp = self._stamp()  # before reading: a change while reading counts
        self._looked = -LOOK
        self._read = self._contents()
        configuration.client_session_kwargs = {
            "middlewares": (_stay,),
            "response_class": _Response,
            # Otherwise each request asks a thread for a proxy, and one for a password in ~/.netrc.
            "trust_env": bool(getproxies_environment()),
            "headers": headers,
        }
        super().__init__(configuration)
        _prepare(self.rest_client)
        self._waiting: set[asyncio.Future[None]] = set()
        """One for each request that waits for the head of its answer; done when that has ended."""
        self._retired: list[Any] = []
        """Connections made with earlier content; the watches of the newest ones continue."""
        self.origin = ""
        """The server, and the source of its address and credentials."""
        self.context = ""
        """The context of the kubeconfig; empty without one."""
        self.namespace = "default"
        """The namespace of the kubeconfig's context, or of the pod."""
        self.outages = Outages()

    def forget(self, copies: Collection[str]) -> None:
        """Do not check these files any more; what was read from them is kept."""
        self._files = {role: file for role, file in self._files.items() if str(file) not in copies}
        self._seen = self._stamp()

    async def call_api(self, *arguments: Any, **named: Any) -> Any:
        """See :class:`ApiClient`."""
        plugin = self.configuration.refresh_api_key_hook
        if isinstance(plugin, CredentialPlugin):  # the library runs it for a token only
            await plugin(self.configuration)
        self._look()
        while len(self._retired) > _RETIRED:
            await self._retired.pop(0).close()
        request = asyncio.get_running_loop().create_future()
        self._waiting.add(request)
        try:
            return await super().call_api(*arguments, **named)
        finally:
            self._waiting.discard(request)
            request.set_result(None)

    async def close(self) -> None:
        """Close every connection.

        Of requests side by side the first that fails ends a command, and others may still connect.
        A connection that opens after its client has closed is ended in TLS's orderly way, which an
        event loop that ends as well does not wait for: these requests end first.
        """
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=_LAST)
        for each in self._retired:
            await each.close()
        await _client.close(self)

    def _stamp(self) -> Stamp:
        return stamp(tuple(self._files.values()))

    def _contents(self) -> dict[str, bytes]:
        """Return the content of each file that is there, by its role."""
        return {role: file.read_bytes() for role, file in self._files.items()}

    def _renewed(self) -> dict[str, bytes]:
        """Return the certificate and key that a credential plugin returned last."""
        plugin = self.configuration.refresh_api_key_hook
        pair = plugin.pair if isinstance(plugin, CredentialPlugin) else None
        return dict(zip(("cert_file", "key_file"), pair, strict=True)) if pair else {}

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        seen, renewed = self._stamp(), self._renewed()
        if seen == self._seen and renewed.items() <= self._read.items():
            return
        self._seen = seen
        try:
            read = self._read | self._contents() | renewed
            if read == self._read:  # kubelet replaces all files of the folder with each new token
                return
            fresh = self._connect(read)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            log.warning("cluster CA or client certificate rejected", error=str(error))
            return
        self._read = read
        self._retired.append(self.rest_client)
        self.rest_client = fresh
        log.info("cluster CA or client certificate read again", files=self._named())

    def _named(self) -> list[str]:
        plugin = ["the credential plugin"] if self._renewed() else []
        return [*map(str, self._files.values()), *plugin]

    def _connect(self, contents: Mapping[str, bytes]) -> Any:
        """Return connections with these certificates, which the library reads from files."""
        changed = copy(self.configuration)
        with TemporaryDirectory() as folder:
            for role, content in contents.items():
                file = Path(folder) / role
                file.write_bytes(content)
                setattr(changed, role, str(file))
            fresh = _connections(changed)
        _prepare(fresh)
        return fresh


def _prepare(connections: Any) -> None:
    """Let new connections check certificates and look up names as all others of this project.

    The address of a cluster may be a name inside a pod, too: AKS can set
    ``KUBERNETES_SERVICE_HOST`` to one (Azure/AKS issue 3183). The library's hook is for a subclass;
    to construct one reads the system's CAs a second time.
    """
    checking_alike(connections.ssl_context)
    connections._create_connector = lambda: aiohttp.TCPConnector(
        limit=connections.maxsize, ssl=connections.ssl_context, resolver=Resolver()
    )
