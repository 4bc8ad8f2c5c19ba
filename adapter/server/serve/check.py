"""Check settings as ``serve`` would use them, without a network: ``serve --check``."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from adapter.config.process.config import ConfigError
from adapter.config.settings import Settings
from adapter.pipeline.catalog import built_in
from adapter.pipeline.cluster.index import PodIndex
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.cluster.nodes import Nodes
from adapter.pipeline.cluster.podsfile import PodsFileError
from adapter.pipeline.cluster.services import Services
from adapter.server.serve.build import cluster_loops
from adapter.server.serve.delegates import DelegateError, delegate_tls, delegation_problems
from adapter.server.serve.pipeline import PipelineSwitcher
from apiservice.auth.authfiles import FileTrust, TrustFileError
from apiservice.auth.clientauth import ClientAuth
from apiservice.tls.certificates import CertificateFiles, CertificatePairError, read_pair


def start_problems(settings: Settings) -> Iterator[str]:
    """Yield why ``serve`` would not start with these settings, one line for each reason.

    It reads every file that the settings name, and writes none. It does not ask the API server,
    and not the store.
    """
    objects = ObjectLookup(PodIndex(), Services(), Nodes(), None)
    try:
        PipelineSwitcher(built_in(), objects).use(settings)
    except ConfigError as error:
        yield from error.problems
    yield from _certificate(settings.server.cert_file, settings.server.key_file)
    chosen = settings.authentication
    for proxy, clients in (
        (chosen.requestheader_ca_file, None),
        (None, chosen.client_ca_file),
    ):
        try:
            FileTrust(ClientAuth(), proxy_ca_file=proxy, client_ca_file=clients)
        except TrustFileError as error:
            yield str(error)
    keda = settings.keda
    if keda.enabled:
        yield from _certificate(keda.cert_file, keda.key_file)
        if keda.client_ca_file is not None:
            yield from _client_ca(keda.client_ca_file)
    yield from delegation_problems(settings)
    if settings.recording.file is not None:
        yield from _recording_problems(settings.recording.file)
    for index, delegate in enumerate(settings.delegation.delegates):
        try:
            delegate_tls(delegate, f"delegation.delegates.{index}")
        except DelegateError as error:
            yield str(error)
    yield from asyncio.run(_cluster(settings, objects))


def _certificate(certificate: Path | None, key: Path | None) -> Iterator[str]:
    if certificate is not None and key is not None:
        try:
            read_pair(CertificateFiles(certificate, key), time.time())
        except CertificatePairError as error:
            yield str(error)


def _recording_problems(file: Path) -> Iterator[str]:
    """Yield why a recording could not be appended to a file, without writing it."""
    place = file if file.exists() else file.parent
    if not place.exists():
        yield f"{file}: there is no folder {place}; create it, or name another file with --record"
    elif file.is_dir() or not os.access(place, os.W_OK):
        yield f"{file}: cannot be written; name another file with --record"


def _client_ca(file: Path) -> Iterator[str]:
    from adapter.answers.keda.credentials import read_client_ca  # noqa: PLC0415 - gRPC needs 30 MB

    try:
        read_client_ca(file)
    except CertificatePairError as error:
        yield str(error)


async def _cluster(settings: Settings, objects: ObjectLookup) -> list[str]:
    chosen = settings.cluster
    if chosen.pods_file is not None:
        try:
            await cluster_loops(chosen, None, objects)
        except PodsFileError as error:
            return [str(error)]
    elif chosen.kubeconfig is not None or chosen.context is not None:
        from apiservice.kube.connection import connect  # noqa: PLC0415 - 35 MB
        from apiservice.kube.failures import ClusterError  # noqa: PLC0415 - 35 MB

        try:
            client = await connect(chosen.kubeconfig, chosen.context)
        except ClusterError as error:
            return [str(error)]
        with suppress(Exception):
            await client.close()
    return []
