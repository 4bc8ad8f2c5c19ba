"""One run of ``doctor``: read facts, run the checks, print, and end with a status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from adapter.attribution.reasons import REASONS
from adapter.client.access import Api, cluster
from adapter.client.command import UNSEEN, complain, print_json
from adapter.client.errors import ClientError, odd_answers
from adapter.client.output import screen_of
from adapter.doctor import bundle, text
from adapter.doctor.collect import Collector
from adapter.doctor.facts import Facts
from adapter.doctor.manifests import read_files
from adapter.doctor.model import registered
from adapter.doctor.runner import DoctorReport, run
from adapter.figures import count
from apiservice.kube.connection import in_cluster
from apiservice.runtime.nearest import nearest


def check(
    files: Sequence[Path],
    kubeconfig: Path | None,
    context: str | None,
    output: str,
    support: Path | None = None,
) -> None:
    """Check manifests, or a cluster if none is named; ``support`` is the file to write."""
    try:
        with odd_answers():
            facts, report = _offline(files) if files else asyncio.run(_live(kubeconfig, context))
        if support is not None:
            bundle.write(support, report, facts)
    except ClientError as error:
        complain(error)
        sys.exit(UNSEEN)
    except KeyboardInterrupt:
        sys.exit(130)
    if output == "json":
        print_json(report.json())
    else:
        screen = screen_of()
        click.echo("\n".join(screen.line(line) for line in report.lines(screen)))
        if support is not None:
            click.echo(f"Wrote {support}. It has names of objects and no secrets: look through it.")
    sys.exit(report.status)


def _offline(files: Sequence[Path]) -> tuple[Facts, DoctorReport]:
    found = read_files(files)
    source = f"read {count(found.count, 'object')} from {', '.join(map(str, files))}"
    if found.foreign:
        source += f", and left out {found.foreign} of other kinds"
    facts = found.facts()
    return facts, DoctorReport(run(facts), source, tuple(found.notes))


async def _live(kubeconfig: Path | None, context: str | None) -> tuple[Facts, DoctorReport]:
    async with cluster(kubeconfig, context) as api:
        return await look(api, inside=kubeconfig is None and in_cluster())


async def look(api: Api, *, inside: bool = False) -> tuple[Facts, DoctorReport]:
    """Read a cluster and run all checks; raises ClientError if it does not answer."""
    collector = Collector(api, inside)
    facts = await collector.facts()
    return facts, DoctorReport(run(facts), f"server {api.origin}", tuple(collector.notes))


def explain(identity: str) -> None:
    """Print the documentation of a check, or of a reason why a pod has no value."""
    checks = {each.id: each for each in registered()}
    found = checks.get(identity.upper())
    if found is None and (cause := REASONS.get(identity.lower())) is not None:
        screen = screen_of()
        parts = [identity.lower(), *screen.wrap(cause.cause), "", *screen.wrap(cause.fix)]
        click.echo("\n".join(screen.line(line) for line in parts))
        return
    if found is None:
        near = nearest(identity.upper(), checks) or nearest(identity.lower(), REASONS)
        hint = f"did you mean {' or '.join(near)}?" if near else "see doctor --list"
        complain(ClientError(f"no check or reason {identity!r}: {hint}"))
        sys.exit(UNSEEN)
    screen = screen_of()
    click.echo("\n".join(screen.line(line) for line in text.explanation(found, screen)))


def list_checks(output: str) -> None:
    """Print id, severity and title of every check."""
    rows = list(registered())
    if output == "json":
        keys = ("id", "section", "severity", "title", "docs")
        found = [{key: str(getattr(each, key)) for key in keys} for each in rows]
        print_json(found)
        return
    for each in rows:
        click.echo(f"{each.id}  {each.severity:7}  {each.section}: {each.title}")
