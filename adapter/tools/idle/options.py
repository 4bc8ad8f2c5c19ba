"""The click options of the commands that price idle GPUs."""

from __future__ import annotations

import click

from adapter.tools.client.options import FILE

PRICES = click.option("--prices", type=FILE, help="YAML with your prices per hour [list prices].")
TEAM_LABEL = click.option(
    "--team-label",
    default="team",
    show_default=True,
    metavar="KEY",
    help="Label of pods that names their team; without it, the namespace does.",
)
