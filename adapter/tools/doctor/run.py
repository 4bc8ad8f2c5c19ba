"""One run of ``doctor``: read facts, run the checks, print, and end with a status."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from adapter.config.process.output import say, screen_of
from adapter.figures import age, count
from adapter.pipeline.attribution.reasons import REASONS
from adapter.tools.client.access import Api, cluster
from adapter.tools.client.command import UNSEEN, complain, print_document, show
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.client.naming import check_namespace
from adapter.tools.client.options import ClientOptions
from adapter.tools.doctor import bundle, text
from adapter.tools.doctor.collect import Collector
from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.manifests import read_files
from adapter.tools.doctor.model import CheckSection, Severity, registered_checks
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.runner import run, within
from apiservice.kube.connection import in_cluster
from apiservice.runtime.nearest import nearest

_PAUSE: Final = 5.0
"""Seconds between two looks of ``--wait``."""


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """What a run checks, and how it shows the result."""

    access: ClientOptions
    files: Sequence[Path] = ()
    """Manifests; empty: the cluster."""
    only: Collection[str] = ()
    """Ids of the checks that are run; empty: all."""
    wait: float = 0.0
    """Seconds in which the cluster may become healthy."""
    verbose: bool = False
    quiet: bool = False
    support: Path | None = None
    """The support file to write."""


def check(options: DoctorOptions) -> None:
    """Check manifests, or a cluster if none is named, and exit."""
    try:
        with odd_answers(", ".join(map(str, options.files))):
            facts, report = (
                _check_files(options) if options.files else asyncio.run(_check_cluster(options))
            )
        if options.support is not None:
            bundle.write(options.support, report, facts)
    except ClientError as error:
        complain(error)
        sys.exit(UNSEEN)
    except KeyboardInterrupt:
        sys.exit(130)
    show(report, options.access.output)
    if options.support is not None and options.access.output == "text":
        text = "It has names of objects and no secrets: look through it."
        say(f"Wrote {options.support}. {text}")
    sys.exit(report.status)


def _check_files(options: DoctorOptions) -> tuple[Facts, DoctorReport]:
    manifests = read_files(options.files)
    source = f"read {count(manifests.count, 'object')} from {', '.join(map(str, options.files))}"
    if manifests.foreign:
        source += f", and left out {manifests.foreign} of other kinds"
    facts = manifests.facts()
    return facts, _report(facts, options, source, manifests.notes, manifests.unread)


def _report(
    facts: Facts,
    options: DoctorOptions,
    source: str,
    notes: Sequence[str],
    unread: Sequence[str] = (),
) -> DoctorReport:
    results, notes = run(facts, options.only), list(notes)
    if namespace := options.access.namespace:
        results, others = within(results, namespace)
        source += f", namespace {namespace}"
        if others:
            notes.append(f"{count(others, 'finding')} of other namespaces: leave out -n")
    return DoctorReport(
        results, source, tuple(notes), options.verbose, options.quiet, tuple(unread)
    )


async def _check_cluster(options: DoctorOptions) -> tuple[Facts, DoctorReport]:
    """Look until the cluster is healthy, or the time is over."""
    deadline = time.monotonic() + options.wait
    async with cluster(*options.access.place) as api:
        while True:
            last = time.monotonic() + _PAUSE > deadline
            try:
                look = await _look(api, options)
            except ClientError as error:  # an API server that starts
                if last:
                    raise
                missing = error.brief
            else:
                missing = _describe_missing(look[1])
                if last or not missing:
                    return look
            if not options.quiet:
                left = age(deadline - time.monotonic())
                say(f"waiting {left} more: {missing}", err=True)
            await asyncio.sleep(_PAUSE)


def _describe_missing(report: DoctorReport) -> str:
    """Return what keeps a cluster from being healthy: errors, and what could not be checked."""
    errors = [result.check.id for result in report.results if result.severity is Severity.ERROR]
    unknown = [result.check.id for result in report.results if result.failed]
    parts = [f"errors {', '.join(errors)}"] if errors else []
    return "; ".join(parts + ([f"could not check {', '.join(unknown)}"] if unknown else []))


async def _look(api: Api, options: DoctorOptions) -> tuple[Facts, DoctorReport]:
    access = options.access
    inside = access.kubeconfig is None and in_cluster()
    collector = Collector(api, inside, namespace=access.namespace)
    if access.namespace:
        await check_namespace(api)
    facts = await collector.facts()
    return facts, _report(facts, options, f"server {api.origin}", collector.notes, collector.unread)


def choose_checks(words: Sequence[str]) -> frozenset[str]:
    """Return the ids of the checks that ``--only`` names, by id or section.

    Raises:
        click.UsageError: a word names none.
    """
    checks = list(registered_checks())
    by_word = {row.id.lower(): {row.id} for row in checks}
    written = {row.id.lower(): row.id for row in checks}
    for row in checks:
        for word in (row.section.value.replace(" ", "-"), row.section.value.rpartition(" ")[2]):
            by_word.setdefault(word, set()).add(row.id)
    ids: set[str] = set()
    for word in words:
        if word.lower() not in by_word:
            near = [written.get(name, name) for name in nearest(word.lower(), by_word)]
            sections = ", ".join(section.value.replace(" ", "-") for section in CheckSection)
            hint = f"did you mean {' or '.join(near)}?" if near else f"sections are {sections}"
            raise click.UsageError(f"--only {word}: no check and no section: {hint}")
        ids |= by_word[word.lower()]
    return frozenset(ids)


def explain(identity: str) -> None:
    """Print the documentation of a check, or of a reason why a pod has no value."""
    checks = {row.id: row for row in registered_checks()}
    doctor_check = checks.get(identity.upper())
    if doctor_check is None and (cause := REASONS.get(identity.lower())) is not None:
        screen = screen_of()
        parts = [identity.lower(), *screen.wrap(cause.cause), "", *screen.wrap(cause.fix)]
        click.echo("\n".join(screen.line(line) for line in parts))
        return
    if doctor_check is None:
        near = nearest(identity.upper(), checks) or nearest(identity.lower(), REASONS)
        hint = f"did you mean {' or '.join(near)}?" if near else "see doctor --list"
        complain(ClientError(f"no check or reason {identity!r}: {hint}"))
        sys.exit(UNSEEN)
    screen = screen_of()
    click.echo("\n".join(screen.line(line) for line in text.explanation(doctor_check, screen)))


def list_checks(output: str) -> None:
    """Print id, severity and title of every check."""
    rows = list(registered_checks())
    if output != "text":
        keys = ("id", "section", "severity", "title", "docs")
        document = [{key: str(getattr(row, key)) for key in keys} for row in rows]
        print_document(document, output)
        return
    for row in rows:
        click.echo(f"{row.id}  {row.severity:7}  {row.section}: {row.title}")
