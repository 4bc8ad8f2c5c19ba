"""The Kubernetes client, with the current content of its CA and client certificate files.

The library's client reads both once. A cluster's CA is rotated while pods run: kubelet replaces the
file that is mounted into each pod (kubernetes.io, "Manual Rotation of CA Certificates"). A client
that does not read it again loses the API server when that serves a certificate of the new CA.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final
from urllib.request import getproxies_environment

import aiohttp
import structlog
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.rest import RESTClientObject

from apiservice.kube.outages import Outages
from apiservice.runtime.filestamp import Stamp, stamp

log = structlog.get_logger(__name__)

# These classes carry no annotations.
_client: Any = ApiClient
_connections: Any = RESTClientObject


LOOK: Final = 1.0
"""Seconds between two looks at the files: an HPA with an Object metric costs an access review, so
there may be hundreds of requests in a second."""
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

    def __init__(self, configuration: Any) -> None:
        named = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
        self._files = tuple(Path(name) for name in named if name)
        self._seen: Stamp = stamp(self._files)  # before reading: a change while reading counts
        self._looked = -LOOK
        self._read = self._contents()
        configuration.client_session_kwargs = {
            "middlewares": (_stay,),
            "response_class": _Response,
            # Otherwise each request asks a thread for a proxy, and one for a password in ~/.netrc.
            "trust_env": bool(getproxies_environment()),
        }
        super().__init__(configuration)
        self._retired: list[Any] = []
        """Connections made with earlier content; their watches continue."""
        self.origin = ""
        """The server, and the source of its address and credentials."""
        self.context = ""
        """The context of the kubeconfig; empty without one."""
        self.namespace = "default"
        """The namespace of the kubeconfig's context, or of the pod."""
        self.outages = Outages()

    def watch_no_files(self) -> None:
        """Do not check the files any more. The connections keep what they have read."""
        self._files = ()
        self._seen = stamp(self._files)

    async def call_api(self, *arguments: Any, **named: Any) -> Any:
        """See :class:`ApiClient`."""
        self._look()
        return await super().call_api(*arguments, **named)

    async def close(self) -> None:
        """Close every connection."""
        for each in self._retired:
            await each.close()
        await _client.close(self)

    def _contents(self) -> tuple[bytes, ...]:
        return tuple(file.read_bytes() for file in self._files)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK:
            return
        self._looked = now
        seen = stamp(self._files)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            read = self._contents()
            if read == self._read:  # kubelet replaces all files of the folder with each new token
                return
            fresh = _connections(self.configuration)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            log.warning("cluster CA or client certificate rejected", error=str(error))
            return
        self._read = read
        self._retired.append(self.rest_client)
        self.rest_client = fresh
        log.info("cluster CA or client certificate read again", files=list(map(str, self._files)))
