"""Build the listener for KEDA from the settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adapter.answers.keda.scaledobjects import ScaledObjects, watch
from adapter.answers.keda.scaler import Options, Scaler
from adapter.answers.promises.ratios import PromisedRatios
from adapter.config.settings import Settings
from adapter.pipeline.catalog.names import Names
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.server.serve.build import Loop
from adapter.server.serve.pipeline import PipelineSwitcher
from apiservice.tls.certificates import CertificateFiles

if TYPE_CHECKING:
    from adapter.answers.keda.server import KedaServer


_HOLD: Final = 1.0
"""Seconds for which an answer may be reused although values change: KEDA polls more slowly."""


class Keda(NamedTuple):
    """The listener, and the loops that it needs."""

    server: KedaServer
    loops: Sequence[Loop]


def build_keda(
    settings: Settings,
    catalog: Names,
    pipelines: PipelineSwitcher,
    objects: ObjectLookup,
    client: Any,
    certificate: CertificateFiles,
    ready: Callable[[], bool],
    ratios: PromisedRatios,
) -> Keda | None:
    """Return the listener, not started; None if it is off.

    Args:
        ratios: what all APIs of the process learn together.
        certificate: the HTTPS listener's, used if KEDA's listener has no certificate of its own.

    Raises:
        CertificatePairError: a certificate or CA cannot be used.
    """
    chosen = settings.keda
    if not chosen.enabled:
        return None
    # Imported here: a process without KEDA saves 30 MB.
    from adapter.answers.keda.credentials import Credentials  # noqa: PLC0415
    from adapter.answers.keda.server import KedaServer  # noqa: PLC0415

    targets = ScaledObjects() if chosen.scaled_objects and client is not None else None
    options = Options(
        patience=lambda: pipelines.current.patience,
        stale_after=settings.cluster.stale_after,
        hold=min(chosen.push_interval, _HOLD),
    )
    scaler = Scaler(catalog, pipelines, objects, targets, options, ratios)
    if chosen.cert_file is not None and chosen.key_file is not None:
        certificate = CertificateFiles(chosen.cert_file, chosen.key_file)
    tls = Credentials(certificate, chosen.client_ca_file, time.time()) if chosen.tls else None
    server = KedaServer(
        scaler,
        chosen,
        tls,
        ready,
        settings.server.drain,
        settings.server.grace,
    )
    loops: list[Loop] = [server.run]
    if targets is not None:
        loops.append(watch(client, targets).run)
    return Keda(server, loops)
