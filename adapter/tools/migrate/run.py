"""One run of ``migrate prometheus-adapter``: read, compare, print, and end with a status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from adapter.pipeline.catalog import built_in
from adapter.tools.client.access import Api, cluster
from adapter.tools.client.command import BLOCKED, FINE, UNSEEN, complain, show
from adapter.tools.client.errors import ClientError, odd_answers
from adapter.tools.doctor.fetch import direct_fetcher
from adapter.tools.migrate.arguments import Taken
from adapter.tools.migrate.compare import VERSIONS, Comparer
from adapter.tools.migrate.comparison import Comparison
from adapter.tools.migrate.configfile import Configuration, read_configuration
from adapter.tools.migrate.hpametrics import HpaUse, by_metric, lost_keys, read_uses
from adapter.tools.migrate.options import MigrateOptions
from adapter.tools.migrate.peer import PeerAdapter, find_peer
from adapter.tools.migrate.podsettings import translate_pods
from adapter.tools.migrate.report import MigrationReport
from adapter.tools.migrate.rulereport import RuleReport, report_rules
from adapter.tools.migrate.servers import (
    Addressed,
    Aggregated,
    MetricsServer,
    token_of_controller,
    trust,
)
from adapter.tools.migrate.steps import steps
from adapter.tools.migrate.values import (
    current_apiservices,
    helm_values,
    manifests_text,
    moved_apiservices,
    values_text,
    without_url,
)

_RESOURCE: Final = "metrics.k8s.io"
_CUSTOM: Final = "custom.metrics.k8s.io"


def run(options: MigrateOptions) -> NoReturn:
    """Run the command, and exit with its status."""
    try:
        with odd_answers(str(options.file or "")):
            status = (
                _run_on_file(options, options.file)
                if options.file
                else asyncio.run(_run_on_cluster(options))
            )
    except ClientError as error:
        complain(error)
        sys.exit(UNSEEN)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(status)


def _run_on_file(options: MigrateOptions, file: Path) -> int:
    configuration = read_configuration(file)
    rules = report_rules(configuration)
    arguments = translate_pods(configuration.pods) if configuration.pods else []
    values = helm_values(rules, arguments, resource=rules.resource)
    if options.output in ("rules", "values"):
        return _print_alone(options, configuration, rules, values_text(values, arguments))
    notes = [*configuration.notes, *without_url(arguments)]
    report = MigrationReport(
        configuration.origin,
        rules,
        values,
        steps(options, None, resource=rules.resource),
        notes,
        arguments=arguments,
    )
    return _print(report, options)


async def _run_on_cluster(options: MigrateOptions) -> int:
    async with cluster(options.kubeconfig, options.context, identity=options.identity) as api:
        peer = await find_peer(api, options.namespace)
        if options.output.startswith("apiservices"):
            return _print_manifests(peer, options)
        rules = report_rules(peer.configuration)
        arguments = translate_pods(peer.pods)
        values = helm_values(rules, arguments, resource=peer.serves(_RESOURCE))
        if options.output in ("rules", "values"):
            text = values_text(values, arguments)
            return _print_alone(options, peer.configuration, rules, text)
        read = await read_uses(api)
        uses = [use for use in read.uses if peer.serves(use.group) or not peer.own]
        compared = await _compare(api, options, peer, uses) if options.compare else None
        report = MigrationReport(
            f"prometheus-adapter {peer.namespace}/{peer.name}, {peer.configuration.origin}",
            rules,
            values,
            steps(options, peer),
            _notes(peer, arguments, resource=rules.resource),
            arguments,
            [
                (seen_api.name, seen_api.owner or "the API server", _effect(seen_api.name, peer))
                for seen_api in peer.apis
            ],
            by_metric(uses),
            read.unreadable,
            compared,
            lost_keys(uses, built_in().metrics),
        )
        return _print(report, options)


async def _compare(
    api: Api, options: MigrateOptions, peer: PeerAdapter, uses: Sequence[HpaUse]
) -> Comparison:
    context, _ = trust(options.ca or Path())
    token = await token_of_controller(api)
    async with direct_fetcher() as fetcher:
        host = f"{options.target_name}.{options.target_namespace}.svc"
        ours = Addressed(fetcher, options.ours or "", context, host, token)
        theirs: MetricsServer = Aggregated(api)
        # Behind the API server, a version may belong to another server, such as ours.
        versions = peer.versions(_CUSTOM) or VERSIONS
        if options.theirs is not None:
            theirs = Addressed(fetcher, options.theirs, context, "", token)
            versions = VERSIONS
        return await Comparer(api, theirs, ours, versions, options.tolerance).compare(uses)


def _print(report: MigrationReport, options: MigrateOptions) -> int:
    show(report, options.output)
    return report.status


def _print_alone(
    options: MigrateOptions, configuration: Configuration, rules: RuleReport, values: str
) -> int:
    """Print the rules or the values alone; what they lack goes to standard error."""
    for text in configuration.notes if options.output == "rules" else ():
        complain(ClientError(text))
    for row in rules.broken:
        complain(ClientError(f"{row.name}: {row.problem}"))
    text = configuration.content.decode("utf-8", "replace") if options.output == "rules" else values
    click.echo(text, nl=not text.endswith("\n"))
    return BLOCKED if rules.broken else FINE


def _print_manifests(peer: PeerAdapter, options: MigrateOptions) -> int:
    if not peer.own:
        raise ClientError(
            f"prometheus-adapter {peer.namespace}/{peer.name} has no APIService: nothing to move"
        )
    if options.ca is None or options.output == "apiservices-before":
        rows = current_apiservices(peer)
    else:
        _, pem = trust(options.ca)
        rows = moved_apiservices(peer, options.target_namespace, options.target_name, pem)
    click.echo(manifests_text(rows), nl=False)
    return FINE


def _effect(name: str, peer: PeerAdapter) -> str:
    if any(api.name == name for api in peer.own):
        return "moves"
    return "belongs to another server, and stays there"


def _notes(peer: PeerAdapter, arguments: Sequence[Taken], *, resource: bool) -> list[str]:
    notes = [
        f"Deployment {other} is another prometheus-adapter: see it with -n" for other in peer.others
    ]
    notes += peer.configuration.notes
    notes += without_url(arguments)
    if not peer.own:
        notes.append("no APIService points to prometheus-adapter: nothing has to be moved")
    if resource and not peer.serves(_RESOURCE):
        owner = next((api.owner for api in peer.apis if api.group == _RESOURCE), "")
        notes.append(
            f"resourceRules stay unused, because {owner} serves metrics.k8s.io: leave "
            "resourceMetrics.enabled out of the values, or uninstall that server before you set it"
            if owner
            else "resourceRules stay unused, because the cluster has no APIService of "
            "metrics.k8s.io: to serve it, set resourceMetrics.enabled in the values"
        )
    return notes
