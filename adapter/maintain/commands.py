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
    from adapter.maintain.cluster import ObjectStore

F = TypeVar("F", bound=Callable[..., Any])


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    def apply(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


_COMMON = _options(
    click.option(
        "--namespace", required=True, metavar="NAME", help="Namespace of the installation."
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
        type=click.FloatRange(0),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="Time to wait until the APIServices exist, or are deleted.",
    ),
    click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Kubeconfig, outside a cluster.",
    ),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
    click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        show_default=True,
        help="Lowest level to log.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(["auto", "console", "json"]),
        default="auto",
        show_default=True,
        help="Log format; auto: console on a terminal, otherwise JSON.",
    ),
)


@click.group()
def maintain() -> None:
    """Maintain an installation: the commands of the chart's Jobs.

    Exit codes: 0 for success, 1 for a failure that may be retried, 2 for invalid usage and if
    an object belongs to another program.
    """


@maintain.command()
@_COMMON
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
    type=click.FloatRange(1, 825),
    default=90.0,
    show_default=True,
    help="Validity of a certificate in days; it is renewed when a third of it is left.",
)
@click.option(
    "--ca-valid-days",
    type=click.FloatRange(2, 7300),
    default=365.0,
    show_default=True,
    help="Validity of a CA in days, at least twice --valid-days.",
)
@click.option(
    "--settle",
    type=click.FloatRange(0),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Time until every pod and API server uses a written certificate or CA.",
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
    from adapter.maintain.rotation import Installation, Rotation  # noqa: PLC0415
    from adapter.maintain.state import RotationPolicy  # noqa: PLC0415

    host = f"{service}.{namespace}.svc"
    policy = RotationPolicy((host, f"{host}.cluster.local"), valid_days, ca_valid_days, settle)
    target = Installation(namespace, service, ca_secret, secret, apiservices)

    async def job(objects: ObjectStore) -> object:
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
    """Delete the APIServices before an uninstallation deletes the pods behind them.

    If one points to another Service, this command deletes nothing and exits with 2, because Helm
    would delete that APIService with the release. It ignores an APIService that does not exist.
    """
    # Imported late: --help needs none of it.
    from adapter.maintain import unregistration  # noqa: PLC0415
    from adapter.maintain.rotation import Installation  # noqa: PLC0415

    target = Installation(namespace, service, "", "", apiservices)

    async def job(objects: ObjectStore) -> object:
        return await unregistration.unregister(objects, target, wait, asyncio.sleep)

    _run(job, kubeconfig, context, log_level, log_format)


def _run(
    job: Callable[[ObjectStore], Awaitable[object]],
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
