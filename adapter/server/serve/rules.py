"""Build the service of prometheus-adapter's rules from the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import structlog

from adapter.answers.rules.apidiscovery import Ask
from adapter.answers.rules.guard import raise_unexpected_as
from adapter.answers.rules.hiding import find_hidden_metrics
from adapter.answers.rules.rulefile import RulesFileError
from adapter.answers.rules.ruleset import RuleSet
from adapter.answers.rules.service import RuleService, read_file
from adapter.answers.rules.store import RuleStore, StoreOptions
from adapter.answers.rules.widening import why_narrow
from adapter.config.process.config import ConfigError
from adapter.config.settings import Settings
from adapter.pipeline.catalog import built_in
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions
from adapter.server.serve.build import prometheus_options, telemetry_options

log = structlog.get_logger(__name__)

_SHOWN: Final = 20
"""Rules with names of the catalogue that the log names."""
_MAX_BYTES: Final = 32 << 20
"""Bytes of an answer of the API server."""


def rule_options(settings: Settings) -> RuleOptions | None:
    """Return the options of the rules; None without a file."""
    rules = settings.rules
    if rules.file is None:
        return None
    return RuleOptions(
        file=rules.file,
        relist_interval=rules.relist_interval,
        max_age=rules.max_age,
        cache=rules.cache,
        max_bytes=rules.max_bytes,
        widen=rules.widen,
        interval=rules.interval,
        resource_metrics=rules.resource_metrics,
    )


def load_rules(settings: Settings) -> RuleSet | None:
    """Return the rules of the file; None without a file.

    Raises:
        ConfigError: the file cannot be used at all.
    """
    options = rule_options(settings)
    if options is None:
        return None
    try:
        return read_file(options)
    except RulesFileError as error:
        raise ConfigError([f"{options.file}: {error}"]) from None


def rule_problems(settings: Settings) -> tuple[Sequence[str], bool]:
    """Return what is wrong with the rules file, and whether a rule is left out.

    Raises:
        ConfigError: the file cannot be used at all.
    """
    rules = load_rules(settings)
    if rules is None:
        return (), False
    lines = [f"{settings.rules.file}: {problem}" for problem in rules.problems]
    if rules.external and not settings.external.enabled:
        lines.append(f"{settings.rules.file}: {_NOT_SERVED}")
    lines += [f"{settings.rules.file}: {text}" for text in _describe_clashes(settings, rules)]
    return lines, any(problem.broken for problem in rules.problems)


def _describe_clashes(settings: Settings, rules: RuleSet) -> list[str]:
    """Return which rules have names of the catalogue, and who answers then."""
    catalog = built_in()
    metrics = {*catalog.metrics, *(metric.name for metric in settings.metrics)}
    answers = "this rule answers" if settings.rules.prefer == "rules" else "the catalogue answers"
    try:
        with raise_unexpected_as(ConfigError, lambda text: ConfigError([text])):
            clashes = list(find_hidden_metrics(rules, metrics, catalog.series))
    except ConfigError as error:
        return [f"which metrics of the catalogue the rules have too is not known: {error}"]
    return [
        f"{clash.rule.name}: the catalogue has {clash.names} too; {answers} (rules.prefer)"
        for clash in clashes
    ]


def rule_queries(settings: Settings) -> Sequence[str]:
    """Return for each custom rule whether it is asked once for all objects, and why not.

    Raises:
        ConfigError: the file cannot be used at all.
    """
    rules = load_rules(settings)
    if rules is None:
        return ()
    off = "" if settings.rules.widen else "rules.widen is false"
    return [f"{rule.name}: {_describe_queries(off or why_narrow(rule))}" for rule in rules.custom]


def _describe_queries(why: str) -> str:
    return f"one query for each request ({why})" if why else "one query for all objects"


_NOT_SERVED: Final = (
    "externalRules are not served: set external.enabled to true, unless KEDA or another server "
    "provides external metrics"
)


def build_rules(settings: Settings, objects: ObjectLookup, client: Any) -> RuleService | None:
    """Return the service; None without a rules file.

    Raises:
        ConfigError: the file cannot be used at all, or a credential of the store cannot be used.
    """
    options, rules = rule_options(settings), load_rules(settings)
    if options is None or rules is None:
        return None
    if rules.external and not settings.external.enabled:
        log.warning("rules file", file=str(options.file), problem=_NOT_SERVED)
    for text in _describe_clashes(settings, rules)[:_SHOWN]:
        log.warning("rules file", file=str(options.file), problem=text)
    oldest = telemetry_options(settings).oldest
    try:
        prometheus = replace(prometheus_options(settings), max_bytes=options.max_bytes)
        store = RuleStore(prometheus, StoreOptions(options.cache, oldest))
    except CredentialError as error:
        raise ConfigError([f"source.prometheus: {error}"]) from None
    return RuleService(options, rules, store, objects, _asker(client))


def _asker(client: Any) -> Ask | None:
    if client is None:
        return None
    from apiservice.kube.client import call  # noqa: PLC0415 - 35 MB

    async def ask(path: str, accept: str) -> bytes:
        return await call(client, "GET", path, accept=accept, most=_MAX_BYTES)

    return ask
