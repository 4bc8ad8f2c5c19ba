"""The cluster that the page shows, with credentials that are read again after they expired."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from adapter.tools.client.access import TIMEOUT, Api, open_cluster
from adapter.tools.client.errors import ClientError
from adapter.tools.ui.options import UiOptions

_AGAIN: Final = 10.0
"""Seconds between two times that the kubeconfig is read."""


class ClusterConnection:
    """One cluster; ``open`` before use."""

    def __init__(self, options: UiOptions) -> None:
        self._options = options
        self._api: Api | None = None
        self._opened = 0.0
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def api(self) -> Api:
        """The current access."""
        assert self._api is not None  # noqa: S101 - opened before anything asks
        return self._api

    async def open(self) -> None:
        """Read the kubeconfig; raises ClientError."""
        options = self._options
        self._opened = time.monotonic()
        self._api = await open_cluster(
            options.kubeconfig, options.context, options.namespace, options.identity
        )

    async def renew(self, rejected: Api) -> None:
        """Read the kubeconfig again, after the server rejected the credentials of an access.

        A login may have replaced them. A kubeconfig that cannot be used now changes nothing.
        """
        if rejected is not self._api or time.monotonic() - self._opened < _AGAIN:
            return
        try:
            await self.open()
        except ClientError:
            return  # the panels show the answer of the server
        task = asyncio.create_task(_close_later(rejected))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all connections."""
        for task in tuple(self._closing):
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if self._api is not None:
            await self._api.close()


async def _close_later(api: Api) -> None:
    """Requests in progress end first."""
    try:
        await asyncio.sleep(TIMEOUT)
    finally:
        await api.close()
