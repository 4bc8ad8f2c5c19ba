"""Wire and run ``serve``: one event loop, one store, one HTTPS listener.

The process is ready once the pods have been listed, and the source has read something or the age
limit has passed. After that, failures of exporters or of Prometheus do not affect readiness: they
make values absent. An APIService without endpoints would block the deletion of every
namespace in the cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from adapter import __version__
from adapter.config.process.reload import ConfigWatch
from adapter.config.settings import Settings
from adapter.config.settings.server import ServerSettings
from adapter.pipeline.catalog import built_in
from adapter.pipeline.cluster.hpas import Hpas
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.podsfile import PodsFileError
from adapter.pipeline.cluster.services import Services
from adapter.server.recording.events import RecordingError
from adapter.server.recording.recorder import Recorder
from adapter.server.recording.writer import RecordingFile
from adapter.server.serve import garbage
from adapter.server.serve.apiserviceowner import external_owner
from adapter.server.serve.build import Loop, cluster_loops
from adapter.server.serve.coverage import Coverage, CoverageLog
from adapter.server.serve.delegates import DelegateError, build_delegation
from adapter.server.serve.gpuledger import GpuLedger
from adapter.server.serve.keda import build_keda
from adapter.server.serve.lifetimes import certificate_lifetimes
from adapter.server.serve.pipeline import RELEASE, PipelineSwitcher
from adapter.server.serve.providers import build_providers, build_view, view_groups
from adapter.server.serve.security import build_security
from adapter.server.serve.selfmetrics import MetricSources, register
from adapter.server.serve.start import StartError, connect_cluster, stop_signal
from apiservice.app import create_app
from apiservice.auth.authfiles import TrustFileError
from apiservice.documents.health import Check, HealthRegistry
from apiservice.documents.probes import LIMITS, probe_server
from apiservice.http.options import ServingOptions
from apiservice.http.server import ListenError, Server
from apiservice.runtime import eventloop
from apiservice.runtime.background import Background, Kept
from apiservice.selfmetrics.looplag import LoopLag
from apiservice.tls.certificates import CertificatePairError

_BYTES_PER_LINE = 32
"""Bytes of a request head per header line that it may have.

The line of a group is longer. The default head may have 2,048 lines.
"""
_DRAINING = "the server is draining"
_FILE_CHECK = 2.0
"""Seconds between checks of certificates, CAs and the configuration file."""


def run(settings: Settings, file: Path | None, reload: Callable[[], Settings]) -> None:
    """Serve until SIGTERM, SIGINT or SIGHUP.

    Args:
        settings: as loaded.
        file: the configuration file to watch, or None.
        reload: loads the settings again; raises ConfigError.

    Raises:
        StartError: a certificate, a file, the cluster or the port cannot be used.
        ConfigError: the settings are valid but cannot be used together.
    """
    eventloop.run(_serve(settings, file, reload))


async def _serve(settings: Settings, file: Path | None, reload: Callable[[], Settings]) -> None:
    stopping = stop_signal()
    async with AsyncExitStack() as stack:
        client = await connect_cluster(settings, stack)
        objects = ObjectLookup(
            PodIndex(), Services(), Nodes(), Hpas() if settings.view.enabled else None
        )
        background = Background()
        try:
            recorder = _recorder(settings, objects)
            pipelines = PipelineSwitcher(built_in(), objects, background, recorder)
            feeds = await cluster_loops(settings.cluster, client, objects)
            security = build_security(settings, client, time.time())
            pipelines.use(settings)
            delegation = build_delegation(settings, client, stack)
        except (
            CertificatePairError,
            DelegateError,
            PodsFileError,
            RecordingError,
            TrustFileError,
        ) as error:
            raise StartError(str(error)) from None
        providers = build_providers(settings, pipelines, objects, client)
        view = build_view(settings, pipelines, objects, client, providers.ratios)
        owner = external_owner(settings.external, client)
        registry = CollectorRegistry()
        health = _health(
            settings,
            objects,
            pipelines,
            background,
            (*security.checks, *providers.checks),
            stopping,
        )
        app = create_app(
            custom=providers.custom,
            external=providers.external,
            authenticator=security.authentication,
            authorizer=security.authorization,
            health=health,
            registry=registry,
            release=__version__,
            views=view_groups(view, providers.rules),
            delegation=delegation,
        )
        server = Server(
            app,
            serving_options(settings),
            security.tls.listening_context,
            proven=security.authentication.is_proxy,
            background=background,
        )
        probes = _probes(settings.server, health, background)
        try:
            keda = build_keda(
                settings,
                pipelines,
                pipelines,
                objects,
                client,
                security.tls.files,
                lambda: health.report("readyz", verbose=False).code == 200,
                providers.ratios,
            )
        except CertificatePairError as error:
            raise StartError(str(error)) from None
        lifetimes = certificate_lifetimes(security, server, keda.server if keda else None)
        watch = ConfigWatch(file, settings, reload, pipelines.use)
        coverage = Coverage(
            pipelines,
            objects.pod_index,
            lambda: pipelines.current.store.attributions(),  # noqa: PLW0108 - the store changes
            patience=lambda: pipelines.current.patience,
            ready=lambda: health.report("readyz", verbose=False).code == 200,
            report=CoverageLog(objects.pod_index, lambda: pipelines.snapshot.exporters).note,
            ledger=GpuLedger(settings.accounting),
        )
        lag = LoopLag()
        register(
            registry,
            MetricSources(
                pipelines,
                providers.gpu,
                objects,
                server,
                security,
                lifetimes,
                watch,
                coverage,
                lag,
                owner,
                keda.server.stats if keda else None,
                background,
                probes.stats if probes else None,
                providers.rules,
                delegation,
                recorder,
                providers.ratios,
                providers.memory,
                view.history if view else None,
                providers.ahead,
            ),
        )
        try:
            if keda is not None:
                await keda.server.start()
                stack.push_async_callback(keda.server.stop)
            await server.start()
            if probes is not None:
                await probes.start()
                stack.push_async_callback(probes.stop)
        except ListenError as error:
            raise StartError(str(error)) from None
        collector = garbage.take_over(
            lambda: server.asked + (sum(keda.server.stats.calls.values()) if keda else 0)
        )
        keep, every = background.keep, background.every
        loops = [
            *(keep("cluster", loop, essential=True) for loop in feeds),
            *(keep("authentication", loop, essential=True) for loop in security.loops),
            *([keep("external-owner", owner.run)] if owner else []),
            *(keep("delegates", loop) for loop in (delegation.readers if delegation else ())),
            *(keep("keda", loop) for loop in (keda.loops if keda else ())),
            keep("telemetry", pipelines.run, essential=True),
            *(keep(name, loop) for name, loop in providers.loops),
            keep("coverage", coverage.run),
            keep("event-loop-lag", lag.run),
            *([keep("recording", recorder.run)] if recorder else ()),
            *(keep("history", loop) for loop in (view.loops if view else ())),
            every("garbage", garbage.SECONDS, collector.look),
            every("snapshot", RELEASE, pipelines.release),
            every("certificates", _FILE_CHECK, lambda: security.check_files(time.time())),
            every("certificates", _FILE_CHECK, lambda: lifetimes.look(time.time())),
            every("configuration", _FILE_CHECK, watch.check),
        ]
        drains: list[Loop] = [server.drain]
        if keda is not None:
            listener = keda.server
            loops.append(
                every("keda-certificates", _FILE_CHECK, lambda: listener.check_files(time.time()))
            )
            drains.append(listener.drain)
        await _until(stopping, loops, drains)


def _recorder(settings: Settings, objects: ObjectLookup) -> Recorder | None:
    """Return the recorder, if the settings name a file; raises RecordingError."""
    recording = settings.recording
    if recording.file is None:
        return None
    return Recorder(RecordingFile(recording.file, recording.max_bytes), objects)


async def _until(stopping: asyncio.Event, loops: Iterable[Kept], drains: Iterable[Loop]) -> None:
    """Run the loops until a stop signal, then drain."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(loop()) for loop in loops]
        await stopping.wait()
        await asyncio.gather(*(_run(drain) for drain in drains))
        for task in tasks:
            task.cancel()


async def _run(loop: Loop) -> None:
    await loop()


def _health(
    settings: Settings,
    objects: ObjectLookup,
    pipelines: PipelineSwitcher,
    background: Background,
    checks: Iterable[Check],
    stopping: asyncio.Event,
) -> HealthRegistry:
    started = time.time()

    def pods() -> str | None:
        index = objects.pod_index
        if not index.synced:
            return index.last_error or "the pods have not been listed yet"
        age = index.age(time.time())
        if age > settings.cluster.stale_after:
            return f"no message about the pods for {age:.0f} s: {index.last_error}"
        return None

    return HealthRegistry(
        ready=[
            Check("shutdown", lambda: _DRAINING if stopping.is_set() else None, expected=True),
            Check("pods", pods),
            Check("source", lambda: pipelines.problem(time.time(), started)),
            Check("background", background.problem),
            *checks,
        ]
    )


def _probes(
    settings: ServerSettings, health: HealthRegistry, background: Background
) -> Server | None:
    """Return the listener for the kubelet's probes, if it is enabled."""
    if settings.probe_port is None:
        return None
    options = replace(LIMITS, host=settings.host, port=settings.probe_port)
    return probe_server(health, options, background=background)


def serving_options(settings: Settings) -> ServingOptions:
    """Return the options of the HTTPS listener from the settings."""
    server = settings.server
    return ServingOptions(
        host=server.host,
        port=server.port,
        max_headers=server.max_header_bytes,
        max_header_lines=server.max_header_bytes // _BYTES_PER_LINE,
        max_connections=server.max_connections,
        reserved_connections=server.reserved_connections,
        max_connections_per_address=server.max_connections_per_address,
        max_handshakes=server.max_handshakes,
        handshakes_per_second=server.handshakes_per_second,
        drain_seconds=server.drain,
        shutdown_seconds=server.grace,
    )
