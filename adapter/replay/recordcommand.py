"""The command line of ``replay record``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from adapter.client.options import CONTEXT, DURATION, KUBECONFIG, ends


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--for",
    "seconds",
    type=DURATION,
    metavar="TIME",
    help="How long to record [until Ctrl-C, or recording.max_bytes].",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="GMA_CONFIG",
    metavar="FILE",
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
    from adapter.replay.liverecording import run  # noqa: PLC0415

    sys.exit(run(given))
