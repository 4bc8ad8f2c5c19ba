"""The real ``serve``, configured for the demo."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adapter.demo.certificates import CLIENT_NAME, FrontProxy
from adapter.demo.child import Child, DemoError

HOST = "127.0.0.1"
WINDOW = 30.0
"""Seconds of ``values.window``, of ``values.collect_interval`` and, below, of
``source.scrape.interval``: the defaults, in simulated time."""
COLLECT = 30.0
SCRAPE = 5.0
AGE_LIMIT = 2 * COLLECT + SCRAPE


def choose_port(wanted: int) -> int:
    """Return ``wanted``, or a free port for 0.

    Raises:
        DemoError: the port is in use or not allowed.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError as error:
            raise DemoError(
                f"port {wanted} of {HOST} cannot be used ({error.strerror}): "
                "give another with --port, or leave it out for a free one"
            ) from None
        port: int = probe.getsockname()[1]
        return port


def configuration(
    *,
    folder: Path,
    pods_file: Path,
    proxy: FrontProxy,
    port: int,
    speed: float,
    users: tuple[str, ...],
) -> dict[str, Any]:
    """Return settings for ``serve``: no cluster, and every interval divided by ``speed``.

    The intervals are real seconds to ``serve``, which runs in real time.
    """
    return {
        "server": {
            "host": HOST,
            "port": port,
            "cert_dir": str(folder / "serving"),
            "cert_names": ["localhost", HOST],
            "drain": 0,
            "grace": 2,
        },
        "authentication": {
            "configmap": False,
            "requestheader_ca_file": str(proxy.ca),
            "requestheader_allowed_names": [CLIENT_NAME],
            "token_review": False,
        },
        "authorization": {"subject_access_review": False, "allow_users": list(users)},
        "cluster": {"pods_file": str(pods_file), "services": False},
        "source": {
            "kind": "scrape",
            "scrape": {
                "interval": SCRAPE / speed,
                "timeout": max(0.2, 3 / speed),
                "max_backoff": max(0.2, 2 * SCRAPE / speed),
            },
        },
        "keda": {"enabled": False},
        "values": {"window": WINDOW / speed, "collect_interval": COLLECT / speed},
        "log": {"level": "info", "format": "console"},
    }


def serve(folder: Path, settings: Mapping[str, Any], command: Sequence[str]) -> Child:
    """Return ``serve`` with these settings; it is not started."""
    config = folder / "serve.yaml"
    # JSON is YAML, so one serializer suffices.
    config.write_text(json.dumps(settings, indent=2), encoding="utf-8")
    return Child(folder, command, ("serve", "--config", str(config)))
