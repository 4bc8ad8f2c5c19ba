"""The start of the live picture: the first look, before the terminal is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapter.config.process.output import say
from adapter.tools.client.access import Api, cluster
from adapter.tools.client.command import UNSEEN, complain
from adapter.tools.client.errors import ClientError
from adapter.tools.client.options import ClientOptions
from adapter.tools.top.facts import LISTS, ClusterLists, ReadScope, look
from adapter.tools.top.live import LiveTop
from adapter.tools.top.order import Sort
from adapter.tools.top.plain import PlainOptions, column_of
from adapter.tools.top.state import TopState
from adapter.tools.top.summaries import tables_of

_INTERRUPTED = 130


def start(options: ClientOptions, plain: PlainOptions, scope_of: Callable[[Api], ReadScope]) -> int:
    """Draw until the user ends it; return the exit status."""
    try:
        return asyncio.run(_run(options, plain, scope_of))
    except ClientError as error:
        complain(error)
        return UNSEEN
    except KeyboardInterrupt:
        return _INTERRUPTED


async def _run(
    options: ClientOptions, plain: PlainOptions, scope_of: Callable[[Api], ReadScope]
) -> int:
    async with cluster(*options.place) as api:
        scope = scope_of(api)
        say(f"reading {api.origin} ...", err=True)
        facts = await look(api, scope, LISTS, ClusterLists())
        if not facts.shows:
            raise next(iter(facts.problems.values()))
        state = TopState(view=plain.view, everywhere=not scope.namespace)
        return await LiveTop(
            api, scope, _with_sort(state, plain, facts), facts, options.interval
        ).run()


def _with_sort(state: TopState, plain: PlainOptions, facts: ClusterLists) -> TopState:
    """Return the state with the sort of the command line.

    Raises:
        ClientError: the view has no such column.
    """
    tables = tables_of(state.view, facts, everywhere=state.everywhere)
    if not tables or not (plain.sort_by or plain.reverse):
        return state
    column = column_of(tables[0], plain.sort_by) if plain.sort_by else tables[0].sort
    return TopState(
        view=state.view,
        everywhere=state.everywhere,
        sorts={state.view: Sort(column, plain.reverse)},
    )
