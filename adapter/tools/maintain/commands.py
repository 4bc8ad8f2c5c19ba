"""The command line of ``maintain``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from adapter.config.process.output import say
from adapter.tools.client.amount import Amount
from adapter.tools.client.options import FILE, NearestChoice, SharedOption, ToolGroup, ends

if TYPE_CHECKING:
    from adapter.tools.maintain.cluster import ObjectStore


class Run(NamedTuple):
    """What the options say that every command has."""

    namespace: str
    service: str
    apiservices: tuple[str, ...]
    wait: float
    kubeconfig: Path | None
    context: str | None
    log_level: Literal["debug", "info", "warning", "error"]
    log_format: Literal["auto", "console", "json"]


def _common(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command; the function gets their values as its first argument."""

    @wraps(function)
    def command(**given: Any) -> None:
        run = Run(*(given.pop(name) for name in Run._fields))
        function(run, **given)

    return reduce(lambda made, option: option(made), reversed(_COMMON), command)


_COMMON = (
    click.option(
        "--namespace",
        cls=SharedOption,
        required=True,
        metavar="NAME",
        help="Namespace of the installation.",
    ),
    click.option(
        "--service", required=True, metavar="NAME", help="Service that the APIServices point to."
    ),
    click.option(
        "--apiservice",
        "apiservices",
        multiple=True,
        metavar="NAME",
        help="APIService of the installation; may be repeated.",
    ),
    click.option(
        "--wait",
        type=Amount(0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Time to wait until the APIServices exist, or are deleted.",
    ),
    click.option(
        "--kubeconfig", cls=SharedOption, type=FILE, help="Kubeconfig, outside a cluster."
    ),
    click.option("--context", cls=SharedOption, metavar="NAME", help="Context of the kubeconfig."),
    click.option(
        "--log-level",
        type=NearestChoice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="Lowest level to log.",
    ),
    click.option(
        "--log-format",
        type=NearestChoice(["auto", "console", "json"]),
        default="auto",
        show_default=True,
        help="Log format; auto: console on a terminal, otherwise JSON.",
    ),
)


_ENDS = ends("it failed and may be tried again", "an object belongs to another program")


@click.group(cls=ToolGroup)
def maintain() -> None:
    """Maintain an installation: the commands of the chart's Jobs."""


@maintain.command()
@_common
@click.option(
    "--secret",
    required=True,
    metavar="NAME",
    help="Secret that the pods mount. It must exist, and may be empty.",
)
@click.option(
    "--ca-secret",
    required=True,
    metavar="NAME",
    help="Secret of the CA. It must exist, and may be empty.",
)
@click.option(
    "--valid-days",
    type=Amount(1, 825),
    default=90.0,
    show_default=True,
    help="Validity of a certificate in days; it is renewed when a third of it is left.",
)
@click.option(
    "--ca-valid-days",
    type=Amount(2, 7300),
    default=365.0,
    show_default=True,
    help="Validity of a CA in days, at least twice --valid-days.",
)
@click.option(
    "--settle",
    type=Amount(0),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Time until every pod and API server uses a written certificate or CA.",
)
@_ENDS
def certificates(
    run: Run, secret: str, ca_secret: str, valid_days: float, ca_valid_days: float, settle: float
) -> None:
    """Create, renew and publish the serving certificate, as far as currently possible.

    A CA of the installation signs the certificate, and the APIServices trust this CA. Three runs
    replace the CA, each at least --settle after the previous one. The first publishes the new CA
    beside the old one, the second signs a certificate with it, and the third removes the old CA.
    No request fails, and the next run continues after a run that was killed. If nothing is due,
    a run writes nothing.

    A run does not change an APIService that points to another Service, nor a Secret that another
    program has filled. It names the object and exits with 2.

    To renew early, annotate either Secret with gpu-metrics-adapter.io/renew=now.
    """
    if ca_valid_days < 2 * valid_days:
        raise click.UsageError(
            f"--ca-valid-days {ca_valid_days:g} must be at least twice --valid-days {valid_days:g}"
        )
    if settle >= valid_days * 86400 / 3:
        raise click.UsageError(
            f"--settle {settle:g} must be below a third of --valid-days {valid_days:g} days: a "
            f"certificate would expire before a new CA may sign the next"
        )
    # Imported late: --help needs none of it.
    from adapter.tools.maintain.rotation import Installation, Rotation  # noqa: PLC0415
    from adapter.tools.maintain.state import RotationPolicy  # noqa: PLC0415

    host = f"{run.service}.{run.namespace}.svc"
    policy = RotationPolicy((host, f"{host}.cluster.local"), valid_days, ca_valid_days, settle)
    target = Installation(run.namespace, run.service, ca_secret, secret, run.apiservices)

    async def job(objects: ObjectStore) -> object:
        return await Rotation(objects, target, policy, run.wait, asyncio.sleep).run()

    _run(job, run)


@maintain.command()
@_common
@_ENDS
def unregister(run: Run) -> None:
    """Delete the APIServices before an uninstallation deletes the pods behind them.

    If one points to another Service, this command deletes nothing and exits with 2, because Helm
    would delete that APIService with the release. It ignores an APIService that does not exist.
    """
    # Imported late: --help needs none of it.
    from adapter.tools.maintain import unregistration  # noqa: PLC0415
    from adapter.tools.maintain.rotation import Installation  # noqa: PLC0415

    target = Installation(run.namespace, run.service, "", "", run.apiservices)

    async def job(objects: ObjectStore) -> object:
        return await unregistration.unregister(objects, target, run.wait, asyncio.sleep)

    _run(job, run)


def _run(job: Callable[[ObjectStore], Awaitable[object]], run: Run) -> None:
    # Imported late: --help needs none of it.
    from adapter.config.process.logs import configure  # noqa: PLC0415
    from adapter.config.settings.log import LogSettings  # noqa: PLC0415
    from adapter.tools.maintain.cluster import MaintainError, RefusalError, reach  # noqa: PLC0415

    async def work() -> None:
        async with AsyncExitStack() as stack:
            await job(await reach(stack, run.kubeconfig, run.context))

    configure(LogSettings(level=run.log_level, format=run.log_format))
    try:
        asyncio.run(work())
    except MaintainError as error:
        say(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(2 if isinstance(error, RefusalError) else 1)
