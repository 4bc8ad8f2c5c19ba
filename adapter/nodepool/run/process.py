"""Wire ``nodepool``: watches, the loop, leader election and the listener for metrics."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from adapter import __version__
from adapter.config.process.reload import ConfigWatch
from adapter.config.settings import Settings
from adapter.nodepool.learn.historyqueries import store_of
from adapter.nodepool.learn.ledger import Ledger
from adapter.nodepool.model.home import Home
from adapter.nodepool.run.changes import ChangeSignal
from adapter.nodepool.run.controller import NodepoolController
from adapter.nodepool.run.leader import Election
from adapter.nodepool.run.listener import listen
from adapter.nodepool.run.reports import Reports
from adapter.nodepool.run.watches import Watches
from adapter.nodepool.seen.cluster import ClusterTables
from adapter.nodepool.seen.servedapis import ServedApis
from adapter.pipeline.cluster.gpuresources import GpuResources
from apiservice.http.server import ListenError
from apiservice.kube.client import ClusterAnswerError, call
from apiservice.kube.connection import SERVICE_ACCOUNT, connect
from apiservice.kube.failures import ClusterError, describe_failure
from apiservice.kube.outages import Outages
from apiservice.runtime import eventloop
from apiservice.runtime.background import Background

log = structlog.get_logger(__name__)

_CALL = 10.0
"""Timeout of one request in seconds."""
_SYNC = 60.0
"""Seconds for which ``--once`` waits for the collections."""
_FILE_CHECK = 2.0
"""Seconds between checks of the configuration."""


class NodepoolError(Exception):
    """`nodepool` cannot start, or ``--once`` cannot plan. The message has the fix."""


def run(
    settings: Settings, file: Path | None, reload: Callable[[], Settings], *, once: bool
) -> None:
    """Run until SIGTERM or SIGINT. With ``once``, print one plan and return.

    Raises:
        NodepoolError: the cluster or the port cannot be used.
    """
    try:
        eventloop.run(_run_once(settings) if once else _serve(settings, file, reload))
    except BaseExceptionGroup as group:
        # Unwrap the only failure of a group of tasks, so that its message is one line.
        if failure := group.subgroup(NodepoolError):
            raise _first_failure(failure) from None
        raise


def _first_failure(error: BaseException) -> BaseException:
    return _first_failure(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


class _Wiring:
    """The parts of one process around one client."""

    def __init__(
        self,
        settings: Settings,
        client: Any,
        *,
        may_write: Callable[[], bool],
        once: bool = False,
    ) -> None:
        nodepool, resources = settings.nodepool, GpuResources(settings.cluster.gpu_resources)
        self.namespace = nodepool.namespace or _namespace()
        home = Home(self.namespace, frozenset(nodepool.claim_namespaces))
        self.cluster = ClusterTables()
        changes = ChangeSignal()
        self.watches = Watches(
            client,
            self.cluster,
            home,
            jobs_too=nodepool.jobs,
            priority_class=nodepool.placeholder.priority_class,
            resources=resources,
            changes=changes,
            once=once,
        )
        self.group: asyncio.TaskGroup | None = None

        self.controller = NodepoolController(
            nodepool,
            home,
            self.cluster,
            partial(call, client, timeout_seconds=_CALL),
            may_write,
            self.watches.problem,
            self.watch,
            Ledger(resources=resources),
            Reports(None if nodepool.apply else sys.stdout),
            changes=changes,
            listed=self.watches.wait_for_lists,
            outages=client.outages,
            past=partial(store_of, settings) if nodepool.history.prometheus_url else None,
        )

    def watch(self, served: ServedApis) -> None:
        """Watch the served APIs, when the task group exists."""
        if self.group is not None:
            self.watches.start(self.group, served)


async def _run_once(settings: Settings) -> None:
    """Plan once, without writing to the cluster."""
    dry = settings.model_copy(
        update={"nodepool": settings.nodepool.model_copy(update={"apply": False})}
    )
    async with AsyncExitStack() as stack:
        client = await _connect(dry, stack)
        parts = _Wiring(dry, client, may_write=lambda: False, once=True)
        async with asyncio.TaskGroup() as group:
            parts.group = group
            try:
                await _plan_once(parts.controller, parts.watches, client)
            finally:
                parts.watches.stop()


async def _plan_once(controller: NodepoolController, watches: Watches, client: Any) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SYNC
    clock = controller.clock
    try:
        await controller.look(clock())
        # Each reflector has its own event; no event covers all of them.
        while (problem := watches.problem(clock())) and loop.time() < deadline:
            if watches.denied:
                break
            await asyncio.sleep(0.1)
        if problem or await controller.round(clock()) is None:
            raise NodepoolError(
                f"no plan: {problem or controller.state.frozen}; server: {client.origin}"
            )
    except ClusterAnswerError as error:
        raise NodepoolError(f"no plan: {describe_failure(client, error)}") from None


async def _serve(settings: Settings, file: Path | None, reload: Callable[[], Settings]) -> None:
    nodepool = settings.nodepool
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, stopping.set)
    async with AsyncExitStack() as stack:
        client = await _connect(settings, stack)
        election: Election | None = None
        parts = _Wiring(
            settings, client, may_write=lambda: election is not None and election.leading
        )
        controller = parts.controller
        if nodepool.apply:
            identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
            request = partial(call, client, timeout_seconds=nodepool.lease.retry)
            election = Election(
                request,
                nodepool.lease,
                parts.namespace,
                identity,
                controller.lead,
                outages=client.outages,
            )
        else:
            log.info("dry run: nothing is written; set nodepool.apply to write")
        watch = ConfigWatch(file, settings, reload, lambda new: controller.use(new.nodepool))
        background = Background()
        try:
            listener = await listen(
                nodepool.host, nodepool.port, controller, parts.watches, election, background
            )
        except ListenError as error:
            raise NodepoolError(str(error)) from None
        stack.push_async_callback(listener.stop)
        async with asyncio.TaskGroup() as group:
            parts.group = group
            lead = election.run if election else controller.lead
            loops = [
                background.keep("controller", lead, essential=True),
                background.every("configuration", _FILE_CHECK, watch.check),
                background.keep(
                    "discovery", lambda: _look(controller, client.outages), essential=True
                ),
            ]
            tasks = [group.create_task(loop()) for loop in loops]
            await stopping.wait()
            for task in tasks:
                task.cancel()
            if election is not None:
                await election.release()
            parts.watches.stop()


async def _look(controller: NodepoolController, outages: Outages) -> None:
    """Discover and watch before leading, so that a follower can take over quickly."""
    last_error = ""
    while not controller.discovered:
        try:
            await controller.look(controller.clock())
        except ClusterAnswerError as error:
            if str(error) != last_error:
                say = log.warning if outages.begins(_look, error.cause) else log.info
                say("discovery of the served APIs failed", error=str(error))
            last_error = str(error)
            await asyncio.sleep(_FILE_CHECK)
    outages.ends(_look)


async def _connect(settings: Settings, stack: AsyncExitStack) -> Any:
    if settings.cluster.pods_file is not None:
        raise NodepoolError("nodepool needs a cluster: remove cluster.pods_file")
    try:
        client = await connect(
            settings.cluster.kubeconfig,
            settings.cluster.context,
            user_agent=f"gpu-metrics-adapter-nodepool/{__version__}",
        )
    except ClusterError as error:
        raise NodepoolError(str(error)) from None
    stack.push_async_callback(client.close)
    return client


def _namespace() -> str:
    """Return the pod's namespace, or outside a cluster the one that the documentation uses."""
    file = SERVICE_ACCOUNT / "namespace"
    if os.environ.get("KUBERNETES_SERVICE_HOST") and file.is_file():
        return file.read_text().strip()
    return "gpu-metrics"
