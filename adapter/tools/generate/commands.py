"""The command line of `generate`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import click

from adapter.tools.client.options import NearestChoice, SharedOption, ToolGroup, ends, join_options
from adapter.tools.generate.promiseoptions import promise_options, take_promise

if TYPE_CHECKING:  # importing it takes as long as all of --help
    from adapter.pipeline.catalog.promise import Promise
    from adapter.tools.generate.manifests import Wanted

ADDRESS: Final = "gpu-metrics-adapter.gpu-metrics.svc:6000"
"""KEDA's scaler, if the chart is installed as the README describes."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


class _Name(click.ParamType[str]):
    """The name of a Kubernetes object."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if not _NAME.fullmatch(str(value)):
            text = "a name has lower-case letters, digits, - and ., at most 253"
            self.fail(f"{value!r}: {text}", param, ctx)
        return str(value)


class _Selector(click.ParamType[str]):
    """A label selector."""

    name = "selector"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the selector."""
        # Imported late: --help needs none of it.
        from apiservice.labels.selector import SelectorError, parse  # noqa: PLC0415

        try:
            if parse(str(value)).empty:
                self.fail("is empty: write labels, such as app=llm", param, ctx)
        except SelectorError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        return str(value)


class _Target(click.ParamType[str]):
    """A target for each replica."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the number as text."""
        if not re.fullmatch(r"\d{1,9}(\.\d{1,3})?", str(value)) or not Decimal(str(value)):
            self.fail(f"{value!r}: write a number above 0, such as 24 or 0.5", param, ctx)
        return str(value)


class _Server(NearestChoice):
    """A kind of server with a preset."""

    def __init__(self) -> None:
        self.case_sensitive = True

    @cached_property
    def choices(self) -> Sequence[str]:  # type: ignore[override]  # the base sets an attribute
        """The kinds, in the order of the help text."""
        # Imported late: --help of the program needs none of it.
        from adapter.tools.generate.presets import PRESETS  # noqa: PLC0415

        return tuple(PRESETS)


_COMMON = join_options(
    click.option(
        "--for",
        "server",
        required=True,
        type=_Server(),
        help="What the pods run.",
    ),
    click.option("--workload", required=True, type=_Name(), help="Name of the workload."),
    click.option(
        "-n",
        "--namespace",
        cls=SharedOption,
        type=_Name(),
        help="Namespace [that of kubectl apply].",
    ),
    click.option(
        "--kind",
        default="Deployment",
        show_default=True,
        metavar="KIND",
        help="Kind of the workload; any with a scale subresource.",
    ),
    click.option(
        "--api-version", default="", metavar="GROUP/VERSION", help="API version of an unknown kind."
    ),
    click.option(
        "--min",
        "low",
        type=click.IntRange(0, 10_000),
        default=1,
        show_default=True,
        help="Lowest number of replicas; 0 needs --gateway, and of an HPA Kubernetes 1.37.",
    ),
    click.option(
        "--max",
        "high",
        type=click.IntRange(1, 10_000),
        default=8,
        show_default=True,
        help="Highest number of replicas.",
    ),
    click.option(
        "--target",
        type=_Target(),
        help="Target of each replica, for the metric that follows the load.",
    ),
    promise_options,
)


@click.group(cls=ToolGroup)
def generate() -> None:
    """Print the manifest of an autoscaler for an inference server or GPU workload.

    Comments in the manifest give the reason of each choice. It reads no cluster and writes
    nothing.

    \b
    Scale vLLM with an HPA:
      gpu-metrics-adapter generate hpa --for vllm --workload llm | kubectl apply -f -
    """


@generate.command("hpa")
@_COMMON
@click.option(
    "--gateway",
    type=_Name(),
    help="Service of a gateway, such as an endpoint picker, whose queue counts too.",
)
@ends(two="the manifest cannot be made")
def generate_hpa(**given: Any) -> None:
    """Print an HPA.

    \b
    llm-d: servers behind an endpoint picker:
      gpu-metrics-adapter generate hpa --for vllm --workload llm --gateway llm-epp
    """
    _check_zero(**given)
    # Imported late: --help of the program needs none of it.
    from adapter.tools.generate.manifests import hpa  # noqa: PLC0415

    click.echo(hpa(_parse_wanted(**given)), nl=False)


@generate.command("scaledobject")
@_COMMON
@click.option(
    "--gateway",
    type=_Selector(),
    help="Labels of a gateway's pods, whose queue starts the first replica.",
)
@click.option("--pods", type=_Selector(), help="Labels of the workload's pods [app=NAME].")
@click.option(
    "--scaler-address",
    "address",
    default=ADDRESS,
    show_default=True,
    metavar="HOST:PORT",
    help="The adapter's port for KEDA.",
)
@ends(two="the manifest cannot be made")
def generate_scaledobject(**given: Any) -> None:
    """Print a ScaledObject for KEDA.

    \b
    Scale to zero, and from zero by the queue of a gateway:
      gpu-metrics-adapter generate scaledobject --for vllm --workload llm --min 0 --gateway app=epp
    """
    _check_zero(**given)
    given["pods"] = given["pods"] or f"app={given['workload']}"
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,253}:\d{1,5}", given["address"]):
        raise click.UsageError(f"--scaler-address {given['address']!r}: write HOST:PORT")
    # Imported late: --help of the program needs none of it.
    from adapter.tools.generate.manifests import scaledobject  # noqa: PLC0415

    click.echo(scaledobject(_parse_wanted(**given)), nl=False)


def _check_zero(low: int, gateway: str | None, **_: Any) -> None:
    """Refuse a workload that nothing would start."""
    if not low and not gateway:
        raise click.UsageError(
            "--min 0 needs --gateway: a workload without pods has no value of its own, so nothing "
            "would start it"
        )


def _parse_wanted(server: str, kind: str, api_version: str, **given: Any) -> Wanted:
    # Imported late: --help of the program needs none of it.
    from adapter.tools.generate.manifests import API_VERSIONS, Wanted  # noqa: PLC0415
    from adapter.tools.generate.presets import PRESETS, PROMISED  # noqa: PLC0415

    if given["low"] >= given["high"]:
        raise click.UsageError(
            f"--min {given['low']} and --max {given['high']}: the maximum must be higher, or "
            "nothing scales"
        )
    spellings = {spelling.lower(): spelling for spelling in API_VERSIONS}
    spelt = spellings.get(kind.lower(), kind)
    version = api_version or API_VERSIONS.get(spelt, "")
    if not version:
        near = NearestChoice(tuple(API_VERSIONS)).near(kind)
        guess = f"; did you mean {near}?" if near else ""
        raise click.UsageError(f"--kind {kind!r} needs --api-version, such as apps/v1{guess}")
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,62}", spelt):
        raise click.UsageError(f"--kind {kind!r}: write a kind, such as Deployment")
    if not re.fullmatch(r"([a-z0-9.-]{1,253}/)?v[0-9][a-z0-9]{0,20}", version):
        raise click.UsageError(f"--api-version {version!r}: write GROUP/VERSION, such as apps/v1")
    labels, promise = take_promise(given)
    _check_shown(promise, server)
    if given["target"]:
        first = PROMISED if promise else PRESETS[server].metrics[0]
        _check_target(first.name, given["target"])
    given["promise"] = labels
    options = {name: value for name, value in given.items() if value is not None}
    return Wanted(PRESETS[server], kind=spelt, api_version=version, **options)


def _check_shown(promise: Promise, server: str) -> None:
    """Refuse a promise that the server shows nothing of."""
    # Imported late: --help of the program needs none of it.
    from adapter.pipeline.catalog.promise import LATENCIES  # noqa: PLC0415
    from adapter.pipeline.catalog.serverkinds import shown_latencies  # noqa: PLC0415 - as above
    from adapter.tools.generate.presets import PRESETS  # noqa: PLC0415 - as above

    kind = PRESETS[server].server
    shown = shown_latencies(kind) if kind is not None else frozenset()
    for bound in promise:
        if bound.latency not in shown:
            keys = [f"--{key}" for key, latency in LATENCIES.items() if latency in shown]
            fix = f"use {' or '.join(keys)}" if keys else "leave it out"
            option = bound.key.partition("_")[0]
            raise click.UsageError(f"--{option}: {server} has no histogram of it; {fix}")


def _check_target(name: str, number: str) -> None:
    """Refuse a target that does not fit the metric of the preset that follows the load."""
    # Imported late: --help of the program needs none of it.
    from adapter.pipeline.catalog import built_in  # noqa: PLC0415
    from adapter.pipeline.catalog.metric import Combine  # noqa: PLC0415
    from adapter.pipeline.catalog.targetfit import AVERAGE, AskedTarget, misfits  # noqa: PLC0415

    metric = built_in().metrics[name]
    target = AskedTarget(
        name, metric.unit, metric.load, Combine.MEAN.value, AVERAGE, Decimal(number), metric.high
    )
    for misfit in misfits(target, averaged=True):
        such = f"; {name} is in {metric.unit}, such as {misfit.number}"
        raise click.UsageError(f"--target {number}: {misfit.text}{such}")
