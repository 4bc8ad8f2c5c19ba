"""Start the demo's API server, and end it with the demo."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from adapter.demo.certificates import FrontProxy
from adapter.demo.cluster.app import ClusterApi
from adapter.demo.cluster.listener import Listener
from adapter.demo.cluster.upstream import Upstream
from adapter.demo.state import DemoState


async def start_cluster(
    state: DemoState,
    base: str,
    proxy: FrontProxy,
    ca: Path,
    stack: contextlib.AsyncExitStack,
) -> None:
    """Listen, and write the kubeconfig that ``state`` names.

    Args:
        state: the simulation.
        base: address of ``serve``.
        proxy: proves to ``serve`` who forwards.
        ca: of the certificate of ``serve``; it may appear later.
        stack: ends what is started.
    """
    upstream = Upstream(base, proxy, ca)
    stack.push_async_callback(upstream.close)
    listener = Listener(state.kubeconfig, state.shown.namespace, time.time())
    await listener.start(ClusterApi(state, upstream, proxy, listener.token))
    stack.push_async_callback(listener.stop)
