"""One look of ``costs``: prices, the store, the report."""

from __future__ import annotations

from pathlib import Path

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.prometheus.seriesreader import reader_of
from adapter.tools.client.errors import ClientError
from adapter.tools.client.store import read_store_options, store_settings
from adapter.tools.idle.costreport import CostReport
from adapter.tools.idle.hours import read_hours
from adapter.tools.idle.prices import load


async def look(
    store: str, config: Path | None, over: float, by: str, prices: Path | None, namespace: str
) -> CostReport:
    """Return the report; the arguments are the command's options. Raises ClientError."""
    price_list = load(prices)
    settings = store_settings(store, config, "--from-prometheus")
    if settings is None:
        raise ClientError("no Prometheus is named")
    try:
        reader = reader_of(read_store_options(settings))
    except CredentialError as error:
        raise ClientError(str(error)) from None
    try:
        answer = await read_hours(reader, over, matchers=settings.matchers)
    finally:
        await reader.close()
    return CostReport(answer, over, by, price_list, namespace)
