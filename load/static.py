"""The yardstick: the adapter's own server and TLS before an application that only sends bytes."""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path
from typing import Any

import uvloop

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.http.options import ServingOptions
from apiservice.http.server import Server
from apiservice.tls.certificates import CertificateFiles
from apiservice.tls.context import ServingTLS
from load.pki import FRONT_PROXY


class Bytes:
    """Sends the same bytes for every request."""

    def __init__(self, body: bytes) -> None:
        self._start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ],
        }
        self._body = {"type": "http.response.body", "body": body}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await send(self._start)
        await send(self._body)


async def _serve(arguments: argparse.Namespace) -> None:
    trust = ClientAuth()
    trust.set_proxy(ProxySettings(ca=arguments.ca.read_bytes(), allowed_names=(FRONT_PROXY,)))
    tls = ServingTLS(CertificateFiles(arguments.cert, arguments.key), trust, time.time())
    options = ServingOptions(host="127.0.0.1", port=arguments.port)
    server = Server(Bytes(arguments.body.read_bytes()), options, tls.listening_context)
    await server.start()
    await asyncio.Event().wait()


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    for name in ("body", "cert", "key", "ca"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
