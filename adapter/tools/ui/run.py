"""One run of ``ui``: connect, listen, print the address, and serve until a signal."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import time
from typing import Final, NoReturn

import click
import msgspec

from adapter import __version__
from adapter.config.process.logs import silence_logs
from adapter.config.process.output import say
from adapter.pipeline.sources.prometheus.options import PrometheusOptions
from adapter.tools.client.command import FINE, UNSEEN, complain
from adapter.tools.client.errors import ClientError
from adapter.tools.client.store import read_store_options, store_settings
from adapter.tools.idle.prices import PriceList
from adapter.tools.idle.prices import load as load_prices
from adapter.tools.ui.app import application
from adapter.tools.ui.browser import has_display, open_browser
from adapter.tools.ui.collector import PageCollector
from adapter.tools.ui.connection import ClusterConnection
from adapter.tools.ui.data import PageData
from adapter.tools.ui.explanations import Explanations
from adapter.tools.ui.files import page_files
from adapter.tools.ui.history import HpaHistory
from adapter.tools.ui.idlewatch import IdleWatch
from adapter.tools.ui.model import Model
from adapter.tools.ui.options import UiOptions
from adapter.tools.ui.parts import PageParts
from adapter.tools.ui.prometheusrange import range_reader
from adapter.tools.ui.security import Access, Guard
from adapter.tools.ui.server import listen, serve_app, signals
from adapter.tools.ui.stream import Streams

SWITCH: Final = 0.001
"""Seconds for which the thread that makes the parts may keep the interpreter while the event loop
waits for it. Each wait of the loop takes this long, and a request has several."""


@silence_logs()
def run(options: UiOptions) -> NoReturn:
    """Serve the page and exit: 0 after a signal, 2 if it could not start."""
    try:
        prices = load_prices(options.prices)
        past = past_of(options)
        sys.setswitchinterval(SWITCH)
        asyncio.run(serve_page(options, prices, past))
    except ClientError as error:
        complain(error)
        sys.exit(UNSEEN)
    except KeyboardInterrupt:  # before the server takes signals
        sys.exit(FINE)
    sys.exit(FINE)


def past_of(options: UiOptions) -> PrometheusOptions | None:
    """Return how the query API is reached; None without one.

    Raises:
        ClientError: the URL, the configuration or a file of its login cannot be used.
    """
    settings = store_settings(options.prometheus, options.config, "--prometheus")
    return None if settings is None else read_store_options(settings)


async def serve_page(
    options: UiOptions, prices: PriceList, past: PrometheusOptions | None = None
) -> None:
    """Serve until a signal; raises ClientError if the cluster or the port cannot be used."""
    connection = ClusterConnection(options)
    await connection.open()
    try:
        with listen(options.port) as listener:
            await _serve(options, prices, past, connection, listener)
    finally:
        await connection.close()


async def _serve(
    options: UiOptions,
    prices: PriceList,
    past: PrometheusOptions | None,
    connection: ClusterConnection,
    listener: socket.socket,
) -> None:
    access = Access(listener.getsockname()[1])
    parts = PageParts()
    explanations = Explanations(connection, options.client_flags())
    history = HpaHistory()
    idle = IdleWatch(connection, parts, prices, options.team_label, options.idle_after)
    reader = range_reader(past) if past else None
    data = PageData(history, idle, connection, reader)
    # What exists now lives as long as the process: a collection that visits it only costs time.
    gc.freeze()
    app = application(Streams(parts), explanations, page_files(), data)

    def end_streams() -> None:
        parts.close()
        explanations.close()

    collector = PageCollector(
        connection,
        Model(prices, options.idle_after),
        parts,
        options.namespace,
        options.interval,
        history,
        idle,
    )
    about = asyncio.create_task(_about(options, prices, bool(past), connection, parts))
    reading = asyncio.create_task(collector.run())
    try:
        # The page says that Ctrl-C ends it: a signal that follows at once must do so.
        async with serve_app(Guard(app, access), listener):
            with signals(end_streams) as stopped:
                _announce(options, connection, access)
                await stopped.wait()
    finally:
        for task in (about, reading):
            task.cancel()
        await asyncio.gather(about, reading, return_exceptions=True)
        if reader is not None:
            await reader.close()


def _announce(options: UiOptions, connection: ClusterConnection, access: Access) -> None:
    say(f"The page shows {connection.api.origin}.")
    click.echo()
    click.echo(f"  {access.url}\n")
    click.echo("Ctrl-C ends it.")
    sys.stdout.flush()
    if options.browser and has_display():
        open_browser(access.url_once())


async def _about(
    options: UiOptions,
    prices: PriceList,
    past: bool,
    connection: ClusterConnection,
    parts: PageParts,
) -> None:
    """Publish what does not change, and the user's name once the server has said it."""
    api = connection.api
    started, user = time.time(), ""
    while True:
        content = {
            "server": api.server,
            "context": api.context,
            "user": user,
            "version": __version__,
            "namespace": options.namespace,
            "interval": options.interval,
            "started": round(started, 3),
            "prometheus": past,
            "demo": options.demo,
            "currency": prices.currency,
            "pricesOf": options.prices.name if options.prices else f"list prices of {prices.dated}",
        }
        parts.publish("about", msgspec.json.encode(content))
        if user:
            return
        try:
            user = await connection.api.user()
        except ClientError as error:
            if error.status in (403, 404):  # a server before Kubernetes 1.28
                return
        if not user:
            await asyncio.sleep(max(options.interval, 5.0))
