"""What a long-running process needs at its start: the cluster, and the signals that end it."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from typing import Any

from adapter import __version__
from adapter.config.settings import Settings

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""SIGHUP is sent when the terminal is closed."""


class StartError(Exception):
    """The process cannot start; the message names the cause and the fix."""


def stop_signal() -> asyncio.Event:
    """Return an event that a stop signal sets."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in _STOP_SIGNALS:
        if signal.getsignal(sign) is not signal.SIG_IGN:  # nohup ignores SIGHUP
            loop.add_signal_handler(sign, stopping.set)
    return stopping


async def connect_cluster(settings: Settings, stack: AsyncExitStack) -> Any:
    """Return a client of the cluster, closed with the stack; None if pods come from a file.

    Raises:
        StartError: the kubeconfig cannot be used.
    """
    if settings.cluster.pods_file is not None:
        return None
    from apiservice.kube.connection import connect  # noqa: PLC0415 - 35 MB
    from apiservice.kube.failures import ClusterError, NoKubeconfigError  # noqa: PLC0415 - 35 MB

    try:
        client = await connect(
            settings.cluster.kubeconfig,
            settings.cluster.context,
            user_agent=f"gpu-metrics-adapter/{__version__}",
        )
    except NoKubeconfigError as error:
        raise StartError(f"{error}, or name a pods file to run without a cluster") from None
    except ClusterError as error:
        raise StartError(str(error)) from None
    stack.push_async_callback(client.close)
    return client
