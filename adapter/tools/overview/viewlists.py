"""Lists of the view API with the numbers beside the texts, as ``top`` and the page read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from adapter.tools.client.access import Api
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.tables import ObjectTable

ViewList = Literal["gpus", "gpunodes", "gpupods", "gpuworkloads", "gpupools"]
_EXPECTED: Final[Mapping[ViewList, tuple[str, ...]]] = {
    "gpus": (
        *("Name", "Node", "Model", "Util", "Pods", "Idle-Since"),
        *("Util-Percent", "Mem-Bytes", "Mem-Total-Bytes", "Idle-Seconds", "Blocked"),
    ),
    "gpupools": ("Name", "GPUs", "Busy", "Idle", "Free", "Largest"),
    "gpunodes": ("Name", "GPUs", "Silent", "Blocked"),
    "gpupods": ("Name", "Util", "Node", "Why-Not", "Util-Percent"),
    "gpuworkloads": ("Name", "Util", "HPA", "Util-Percent"),
}
"""Columns that are read by name."""


async def read_view_list(
    api: Api, name: ViewList, within: str = "", *, labels: str = ""
) -> ObjectTable:
    """Return a list with all of its columns.

    Args:
        api: the cluster.
        name: the resource.
        within: ``/namespaces/NAME``; empty for the whole cluster.
        labels: a label selector.

    Raises:
        ClientError: it cannot be read, or the server is of a release without one of the columns.
    """
    table = await api.table(f"{VIEW}{within}/{name}", labels=labels, numbers=True)
    columns = set(table.columns)
    if lost := [column for column in _EXPECTED[name] if column not in columns]:
        raise ClientError(
            f"{name} has no column {', '.join(lost)}: the adapter in the cluster and this command "
            f"are of different releases; install the same release of both; server: {api.origin}"
        )
    return table
