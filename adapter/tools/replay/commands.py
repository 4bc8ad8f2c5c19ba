"""The command line of ``replay``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from adapter.tools.client.amount import MOST, Amount
from adapter.tools.client.options import (
    ACCESS,
    CONTEXT,
    DURATION,
    FILE,
    KUBECONFIG,
    NAMESPACE,
    OUTPUT,
    Duration,
    ToolGroup,
    ends,
)
from adapter.tools.generate.promiseoptions import promise_options
from adapter.tools.idle.options import PRICES
from adapter.tools.replay.options import LONGEST, FailureType, HeadroomType, Numbers, input_options

_MOST_REPLICAS: Final = 2**31 - 1
"""Of an HPA in the API."""
_FILENAME: Final = click.option(
    "-f", "--filename", type=FILE, help="Manifest with the HPA [read from the cluster]."
)
_BOOT: Final = click.option(
    "--boot",
    type=DURATION,
    help="Time from the decision until a new pod has a value [the recorded median].",
)
_ALLOW: Final = click.option(
    "--allow",
    type=DURATION,
    default="10m",
    show_default=True,
    help="Time a day that may be over the limit.",
)
_SYNC_PERIOD: Final = click.option(
    "--sync-period",
    type=Duration(1, 3600),
    default="15s",
    show_default=True,
    help="--horizontal-pod-autoscaler-sync-period of the controller.",
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--for",
    "seconds",
    type=DURATION,
    help="How long to record [until Ctrl-C, or recording.max_bytes].",
)
@click.option(
    "--config",
    type=FILE,
    envvar="GMA_CONFIG",
    help="Configuration of `serve`: the source, the settings of values, and recording.max_bytes.",
)
@click.option(
    "--pods-file",
    metavar="FILE",
    help="Read pods and HPAs from a file of manifests, without a cluster.",
)
@KUBECONFIG
@CONTEXT
@ends("it failed", "it could not start")
def record(**given: Any) -> None:
    """Record the cluster into FILE, for `replay hpa --from FILE`, without `serve`.

    It watches pods, nodes and HPAs and reads the exporters, or the store that --config names, as
    `serve` does. It appends to FILE every five seconds. If it is killed, start it again: it goes
    on in the same file. It writes nothing to the cluster.

    \b
    Examples:
      gpu-metrics-adapter replay record day.gma --for 1d
      gpu-metrics-adapter replay record day.gma --config config.yaml --context production
    """
    # Imported late: --help needs none of it.
    from adapter.tools.replay.liverecording import run  # noqa: PLC0415

    sys.exit(run(given))


_tried: Final = partial(click.option, default=(), metavar="LIST")
"""An option that takes a list of values of a setting to try."""


@click.group(cls=ToolGroup)
def replay() -> None:
    """Replay a recording: what an HPA would have done with other settings.

    `replay record` or `serve --record` makes the recording; a Prometheus or saved pages do as well.
    docs/replay.md describes the model and its limits.
    """


replay.add_command(record)


@replay.command()
@click.argument("name")
@input_options
@click.option(
    "--record", type=FILE, help="Also write what is read to FILE, a recording to replay again."
)
@_FILENAME
@click.option("--metric", default="", metavar="NAME", help="Metric of the HPA to replay.")
@_tried(
    "--target",
    type=Numbers(whole=False, least=0.001, most=MOST),
    help="Targets to try, such as 50,60,70.",
)
@_tried(
    "--stabilization",
    type=Numbers(whole=True, least=0, most=3600),
    help="Stabilization windows for scaling down to try, in seconds.",
)
@_tried(
    "--min",
    "low",
    type=Numbers(whole=True, least=1, most=_MOST_REPLICAS),
    help="minReplicas to try.",
)
@_tried(
    "--max",
    "high",
    type=Numbers(whole=True, least=1, most=_MOST_REPLICAS),
    help="maxReplicas to try.",
)
@_BOOT
@click.option(
    "--limit",
    type=Amount(least=0.001),
    metavar="VALUE",
    help="Load of a pod that is too much [the HPA's target and its tolerance].",
)
@_ALLOW
@click.option(
    "--gpu-hour",
    type=Amount(least=0),
    metavar="PRICE",
    help="Price of a GPU-hour.",
)
@click.option(
    "--fail",
    type=FailureType(),
    metavar="KIND:TIME[@START]",
    help="Failure to try, such as exporter:10m, server:5m or adapter:1h@2026-09-21T14:00Z. "
    "Without START, it begins when the demand rises most.",
)
@click.option(
    "--headroom",
    type=HeadroomType(),
    metavar="LIST",
    help="Headroom of GPU nodes to try, with the present settings, such as 20%,2,forecast: a "
    "share of the pods, pods, or the plan of nodepool.",
)
@click.option(
    "--node-boot",
    type=Duration(1, LONGEST),
    help="Time from the order of a node until its GPUs are usable [5m].",
)
@click.option(
    "--node-unneeded",
    type=Duration(1, LONGEST),
    help="Time after which an unneeded node is removed [10m].",
)
@click.option(
    "--node-pods",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Pods of the HPA that fit on a node [1].",
)
@_SYNC_PERIOD
@click.option(
    "--html", type=FILE, help="Also write the report with plots to FILE, as one HTML page."
)
@ACCESS
@NAMESPACE
@OUTPUT
@ends(two="it could not replay")
def hpa(**given: Any) -> None:
    """Replay the HPA NAME, or NAMESPACE/NAME, with other settings, and compare what they cost.

    The replay computes the values that `serve` would have served, and decides as the HPA
    controller does. It first repeats the present settings, to show how well that agrees with what
    the controller did. It writes nothing.

    \b
    Examples:
      gpu-metrics-adapter replay hpa chat/llm --from day.gma --target 50,60,70
      gpu-metrics-adapter replay hpa llm -n chat --from day.gma -f hpa.yaml --min 1,2 -o json
      gpu-metrics-adapter replay hpa chat/llm --from day.gma --target 50,60 --html report.html
      gpu-metrics-adapter replay hpa chat/llm --from day.gma --headroom 20%,forecast --node-boot 4m
    """
    # Imported late: --help needs none of it.
    from adapter.tools.replay.run import run  # noqa: PLC0415

    sys.exit(run(given))


@replay.command()
@click.argument("name", default="")
@input_options
@_FILENAME
@_BOOT
@click.option(
    "--limit",
    type=Amount(least=0.001),
    metavar="VALUE",
    help="Load of a pod that is too much [90 % of the highest value, or the highest recorded].",
)
@_ALLOW
@promise_options
@PRICES
@_SYNC_PERIOD
@ACCESS
@NAMESPACE
@OUTPUT
@ends(two="it could not replay")
def recommend(**given: Any) -> None:
    """Recommend settings for the HPA NAME, or NAMESPACE/NAME, or for all HPAs of a namespace.

    It states the latencies that the recorded replicas kept. With a promise (--ttft, --itl, --e2e),
    it learns what a pod can take, and replays the HPA on it. Otherwise each HPA is replayed with
    other targets, windows and bounds; for utilization of servers that show their queue, the answer
    is the number of requests that run. Last, it says which MIG instance or share of a GPU would
    have been enough for the pods. Nothing is applied.

    \b
    Examples:
      gpu-metrics-adapter replay recommend chat/llm --from week.gma
      gpu-metrics-adapter replay recommend chat/llm --from week.gma --ttft 1s --itl 50ms
      gpu-metrics-adapter replay recommend -n chat --from-prometheus https://prometheus:9090
    """
    # Imported late: --help needs none of it.
    from adapter.tools.replay.recommendreport import run  # noqa: PLC0415

    sys.exit(run(given))
