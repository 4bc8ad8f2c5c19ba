"""The command line of ``maintain``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    from adapter.maintain.cluster import Objects

F = TypeVar("F", bound=Callable[..., Any])


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def apply(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


_COMMON = _options(
    click.option("--namespace", required=True, metavar="NAME", help="Of the installation."),
    click.option(
        "--service", required=True, metavar="NAME", help="The Service that APIServices point to."
    ),
    click.option(
        "--apiservice",
        "apiservices",
        multiple=True,
        metavar="NAME",
        help="An APIService of the installation; may be repeated.",
    ),
    click.option(
        "--wait",
        type=click.FloatRange(0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for the APIServices to come, or to go.",
    ),
    click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Kubeconfig, when not running in a cluster.",
    ),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="Least severity logged.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["auto", "console", "json"]),
        default="auto",
        show_default=True,
        help="Form of the log; auto: console on a terminal, else JSON.",
    ),
)


@click.group()
def maintain() -> None:
    """Upkeep of an installation: what the chart's Jobs run.

    Exit codes: 0, 1 for a job that failed and may be tried again, 2 for bad usage and where
    something is somebody else's.
    """


@maintain.command()
@_COMMON
@click.option(
    "--secret",
    required=True,
    metavar="NAME",
    help="Secret that pods mount; it exists, maybe empty.",
)
@click.option(
    "--ca-secret", required=True, metavar="NAME", help="Secret for the CA; it exists, maybe empty."
)
@click.option(
    "--valid-days",
    type=click.FloatRange(1, 825),
    default=90.0,
    show_default=True,
    help="Days that a certificate is valid; it is renewed with a third of them left.",
)
@click.option(
    "--ca-valid-days",
    type=click.FloatRange(2, 7300),
    default=365.0,
    show_default=True,
    help="Days that a CA is valid, at least twice --valid-days.",
)
@click.option(
    "--settle",
    type=click.FloatRange(0),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="How long after a write every pod and API server has taken it up.",
)
def certificates(
    namespace: str,
    service: str,
    apiservices: tuple[str, ...],
    wait: float,
    kubeconfig: Path | None,
    context: str | None,
    log_level: Literal["debug", "info", "warning", "error"],
    log_format: Literal["auto", "console", "json"],
    secret: str,
    ca_secret: str,
    valid_days: float,
    ca_valid_days: float,
    settle: float,
) -> None:
    """Make, renew and publish the serving certificate, as far as that can be done now.

    A CA of the installation's own signs it, and is what the APIServices trust. The CA is replaced
    in three runs, each --settle or more after the one before: the new one is published beside the
    old, then signs a certificate, then the old one is let go. No request fails for it, and a run
    that is killed is taken up by the next. Where all is well, a run writes nothing.

    An APIService that points to another Service is left alone, and so is a Secret that somebody
    else filled: the run says so and exits with 2.

    To renew before the time: annotate either Secret with gpu-metrics-adapter.io/renew=now.
    """
    if ca_valid_days < 2 * valid_days:
        raise click.UsageError(
            f"--ca-valid-days {ca_valid_days:g} must be at least twice --valid-days {valid_days:g}"
        )
    if settle >= valid_days * 86400 / 3:
        raise click.UsageError(
            f"--settle {settle:g} must be below a third of --valid-days {valid_days:g} days: a "
            f"certificate would end before a new CA may sign the next"
        )
    # Imported late: --help needs none of it.
    from adapter.maintain.rotation import Installation, Rotation  # noqa: PLC0415
    from adapter.maintain.state import Policy  # noqa: PLC0415

    host = f"{service}.{namespace}.svc"
    policy = Policy((host, f"{host}.cluster.local"), valid_days, ca_valid_days, settle)
    target = Installation(namespace, service, ca_secret, secret, apiservices)

    async def job(objects: Objects) -> object:
        return await Rotation(objects, target, policy, wait, asyncio.sleep).run()

    _run(job, kubeconfig, context, log_level, log_format)


@maintain.command()
@_COMMON
def unregister(
    namespace: str,
    service: str,
    apiservices: tuple[str, ...],
    wait: float,
    kubeconfig: Path | None,
    context: str | None,
    log_level: Literal["debug", "info", "warning", "error"],
    log_format: Literal["auto", "console", "json"],
) -> None:
    """Delete the APIServices, before an uninstall takes the pods behind them.

    Where one points to another Service by now, nothing is deleted and the exit status is 2: Helm
    would delete it with the release. One that is gone already is fine.
    """
    # Imported late: --help needs none of it.
    from adapter.maintain import unregistration  # noqa: PLC0415
    from adapter.maintain.rotation import Installation  # noqa: PLC0415

    target = Installation(namespace, service, "", "", apiservices)

    async def job(objects: Objects) -> object:
        return await unregistration.unregister(objects, target, wait, asyncio.sleep)

    _run(job, kubeconfig, context, log_level, log_format)


def _run(
    job: Callable[[Objects], Awaitable[object]],
    kubeconfig: Path | None,
    context: str | None,
    log_level: Literal["debug", "info", "warning", "error"],
    log_format: Literal["auto", "console", "json"],
) -> None:
    # Imported late: --help needs none of it.
    from adapter.maintain.cluster import MaintainError, RefusalError, reach  # noqa: PLC0415
    from adapter.process.logs import configure  # noqa: PLC0415
    from adapter.settings.log import LogSettings  # noqa: PLC0415

    async def work() -> None:
        async with AsyncExitStack() as stack:
            await job(await reach(stack, kubeconfig, context))

    configure(LogSettings(level=log_level, format=log_format))
    try:
        asyncio.run(work())
    except MaintainError as error:
        click.echo(f"gpu-metrics-adapter: {error}", err=True)
        sys.exit(2 if isinstance(error, RefusalError) else 1)
