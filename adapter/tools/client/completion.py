"""Names of a cluster for the completion of a shell.

A shell waits for them while the user types: a cluster that does not answer soon gives none, and
nothing is written to the terminal.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from adapter.tools.client.access import cluster
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.client.impersonation import Impersonation
from apiservice.kube.failures import ClusterError
from apiservice.kube.kubeconfig import context_names, kubeconfig_files

_PATIENCE: Final = 3.0
"""Seconds for an answer."""
_MOST: Final = 1000
"""Names of one completion."""
_NAME: Final = re.compile(r"[\w.:@%+=/-]{1,253}", re.ASCII)
"""A name that is one word in every shell."""


def contexts(ctx: click.Context, incomplete: str) -> list[str]:
    """Return the contexts of the kubeconfig that begin so."""
    try:
        names = context_names(kubeconfig_files(_kubeconfig(ctx), os.environ))
    except ClusterError:
        return []
    return _matching_names(names, incomplete)


def objects(
    ctx: click.Context, incomplete: str, prefix: str, plural: str, *, namespaced: bool
) -> list[str]:
    """Return the names of objects that begin so.

    Args:
        ctx: of the command, whose options name the cluster and the namespace.
        incomplete: what has been typed.
        prefix: path of the API: ``/apis/autoscaling/v2``.
        plural: as in the path.
        namespaced: the objects of one namespace.
    """
    try:
        names = asyncio.run(_list_names(ctx, prefix, plural, namespaced=namespaced))
    except (ClientError, TimeoutError, click.ClickException):
        return []
    return _matching_names(names, incomplete)


async def _list_names(
    ctx: click.Context, prefix: str, plural: str, *, namespaced: bool
) -> list[str]:
    identity = Impersonation(
        _find_option(ctx, "as_user") or "", tuple(_find_option(ctx, "as_groups") or ())
    )
    place = (
        _kubeconfig(ctx),
        _find_option(ctx, "context"),
        _find_option(ctx, "namespace") or "",
        identity,
    )
    async with asyncio.timeout(_PATIENCE), cluster(*place) as api:
        within = f"/namespaces/{quote(api.namespace, safe='')}" if namespaced else ""
        with odd_answers():
            return [row.name for row in (await api.table(f"{prefix}{within}/{plural}")).rows]


def _kubeconfig(ctx: click.Context) -> Path | None:
    path = _find_option(ctx, "kubeconfig")
    return Path(path).expanduser() if path else None


def _find_option(ctx: click.Context, name: str) -> Any:
    """Return an option of the command, or of the words before it."""
    context: click.Context | None = ctx
    while context is not None:
        if value := context.params.get(name):
            return value
        context = context.parent
    return None


def _matching_names(names: list[str], incomplete: str) -> list[str]:
    matching = {name for name in names if name.startswith(incomplete) and _NAME.fullmatch(name)}
    return sorted(matching)[:_MOST]
