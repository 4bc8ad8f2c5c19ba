"""The click options of the commands that price idle GPUs."""

from __future__ import annotations

from pathlib import Path

import click

PRICES = click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="YAML with your prices per hour [list prices].",
)
TEAM_LABEL = click.option(
    "--team-label",
    default="team",
    show_default=True,
    metavar="KEY",
    help="Label of pods that names their team; without it, the namespace does.",
)
