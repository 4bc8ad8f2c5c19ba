"""Keep the metrics of the rules current: read the file, the cluster's resources, and the series.

A part that fails keeps its last good state: an invalid file keeps the rules in use, an API server
that does not answer keeps the resources, and a series query that fails keeps its series.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from adapter.answers.rules.apidiscovery import Ask, read_kinds
from adapter.answers.rules.custom import RuleMetrics
from adapter.answers.rules.external import RuleExternalMetrics
from adapter.answers.rules.kinds import BUILT_IN, KindTable
from adapter.answers.rules.objects import ObjectNames
from adapter.answers.rules.registry import EMPTY, Registry, build
from adapter.answers.rules.resourcemetrics import NodeMetrics, PodMetrics, resource_group
from adapter.answers.rules.resourcerule import ResourceRule, UsageQuery
from adapter.answers.rules.rule import MetricRule
from adapter.answers.rules.rulefile import MAX_BYTES, RulesFileError
from adapter.answers.rules.ruleset import RuleSet, rules_of
from adapter.answers.rules.series import SeriesShape, Shapes
from adapter.answers.rules.store import RuleStore
from adapter.answers.rules.usage import Ask as UsageAsk
from adapter.answers.rules.usage import Served, UsageReader
from adapter.answers.rules.wideanswers import WideAnswers, WideOptions
from adapter.answers.rules.widening import why_narrow
from adapter.pipeline.cluster.lookup import ObjectLookup
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions
from apiservice.runtime.filestamp import Changes
from apiservice.runtime.steps import run_in_slices

log = structlog.get_logger(__name__)

_LOOK: Final = 2.0
"""Seconds between two looks at the file."""
_SHOWN: Final = 20
"""Problems that the log names after one reading of the file."""


def read_file(options: RuleOptions) -> RuleSet:
    """Return the rules of the file.

    Raises:
        RulesFileError: the file cannot be read or is not a rules file.
    """
    try:
        with options.file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RulesFileError(f"cannot be read ({error.strerror}); correct rules.file") from None
    return rules_of(data, resource_metrics=options.resource_metrics)


def _read(options: RuleOptions) -> tuple[RuleSet, Sequence[str]]:
    """Return the rules of the file, and those that are asked for each request."""
    rules = read_file(options)
    return rules, _narrow_rules(rules, options)


def _narrow_rules(rules: RuleSet, options: RuleOptions) -> Sequence[str]:
    if not options.widen:
        return ()
    return [f"{rule.name}: {why}" for rule in rules.custom if (why := why_narrow(rule))]


def _of_nodes(
    rule: ResourceRule, kinds: KindTable, _: str, names: Sequence[str]
) -> UsageQuery | None:
    return rule.nodes(kinds, names)


class RuleService:
    """The rules, and what serves their metrics.

    Args:
        options: of the rules.
        rules: as read at the start.
        store: the store with the series.
        objects: the watched objects.
        ask: requests a path of the API server; None without a cluster.
    """

    def __init__(
        self,
        options: RuleOptions,
        rules: RuleSet,
        store: RuleStore,
        objects: ObjectLookup,
        ask: Ask | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options = options
        self._ask = ask
        self._clock = clock
        self._changes = Changes([options.file])
        self._changes.take(at_once=True)
        self._kinds = KindTable(BUILT_IN)
        self._shapes: dict[str, Shapes] = {}
        self._logged: dict[str, str] = {}
        """What was logged about a part that fails."""
        self._versions = 0
        self.store = store
        self.rules = rules
        self.registry: Registry = EMPTY
        self.file_problem = ""
        """Why the current file is not in use; empty if it is."""
        self.last_discovery = 0.0
        """Epoch seconds of the last discovery of which every query succeeded."""
        self.discovery_failures = 0
        """Series queries, and requests for the API server's resources, that failed."""
        self.settled = False
        """Whether a discovery has ended, with or without success."""
        names = ObjectNames(objects, ask)
        wide = WideOptions(options.widen, options.interval, store.oldest)
        self.wide = WideAnswers(lambda: self.store, wide, clock)
        self.custom = RuleMetrics(
            lambda: self.registry, lambda: self.store, names, self._version, self.wide
        )
        self.external = RuleExternalMetrics(
            lambda: self.registry, lambda: self.store, self._version
        )
        pods = self._usage(ResourceRule.pods, pods=True)
        nodes = self._usage(_of_nodes, pods=False)
        self.resource_group = (
            resource_group(PodMetrics(pods, objects.pod_index), NodeMetrics(nodes, objects.nodes))
            if options.resource_metrics
            else None
        )
        """The resources that ``resourceRules`` give; None if they are not served."""
        self.shared: dict[str, Callable[[], int]] = {}
        """API -> returns how many of its metrics a rule and the catalogue both have."""
        self._log_problems(_narrow_rules(rules, options))

    def _usage(self, ask: UsageAsk, *, pods: bool) -> UsageReader:
        return UsageReader(
            lambda: Served(self.rules.resource, self._kinds), lambda: self.store, ask, pods=pods
        )

    def _version(self) -> int:
        return self._versions

    @property
    def series_left_out(self) -> int:
        """Series of the last discovery that were left out."""
        return sum(shapes.left_out for shapes in self._shapes.values())

    async def run(self) -> None:
        """Discover, and keep answers current, until cancelled; then close the connections."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.wide.run())
                group.create_task(self._discover_repeatedly())
        finally:
            await self.store.close()

    async def _discover_repeatedly(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await self.discover()
            while loop.time() - began < self._options.relist_interval:
                await asyncio.sleep(min(_LOOK, self._options.relist_interval))
                if await self.reload():
                    break

    async def reload(self) -> bool:
        """Read the file if it has changed; return whether its rules are now in use."""
        if not self._changes.take():
            return False
        try:
            rules, narrow = await asyncio.to_thread(_read, self._options)
        except RulesFileError as error:
            self.file_problem = str(error)
            log.error(
                "rules file rejected; the previous rules stay active",
                file=str(self._options.file),
                error=str(error),
            )
            return False
        self.file_problem = ""
        self.rules = rules
        log.info("rules read again", custom=len(rules.custom), external=len(rules.external))
        self._log_problems(narrow)
        return True

    async def discover(self) -> None:
        """Read the cluster's resources and the series, and replace the metrics."""
        rules = self.rules
        failures = self.discovery_failures
        await self._read_kinds()
        selectors = dict.fromkeys(rule.selector for rule in (*rules.custom, *rules.external))
        start = self._clock() - self._options.max_age
        async with asyncio.TaskGroup() as group:
            for selector in selectors:
                group.create_task(self._read_series(selector, start))
        self._shapes = {
            selector: self._shapes[selector] for selector in selectors if selector in self._shapes
        }
        registry = await run_in_slices(
            build(self._with_series(rules.custom), self._with_series(rules.external), self._kinds)
        )
        self._note(registry)
        self.settled = True
        if failures == self.discovery_failures:
            self.last_discovery = self._clock()

    def _with_series(
        self, rules: Sequence[MetricRule]
    ) -> list[tuple[MetricRule, Sequence[SeriesShape]]]:
        return [(rule, self._shapes.get(rule.selector, Shapes()).found) for rule in rules]

    def _note(self, registry: Registry) -> None:
        if registry != self.registry:
            if registry.resources == self.registry.resources:
                registry = registry._replace(resources=self.registry.resources)
            self.registry = registry
            self._versions += 1
            log.info(
                "metrics of rules discovered",
                custom=len(registry.custom),
                external=len(registry.external),
            )
        if registry.left_out:
            self._complain("metrics", f"{registry.left_out} metrics are above the limit")
        for rule, why in registry.failed:
            self._complain(rule.name, f"{rule.name}: {why}; this rule is left out")
        for rule, label, wanted in registry.unknown:
            text = f"{rule.name}: the cluster has no resource {wanted} for the label {label}"
            self._complain(f"{rule.name}.{label}", text)

    async def _read_kinds(self) -> None:
        if self._ask is None:
            return
        try:
            kinds = await read_kinds(self._ask)
        except Exception as error:  # the client raises many kinds: the last resources stay in use
            self.discovery_failures += 1
            self._complain("resources", f"the API server's resources cannot be read: {error}")
            return
        self._logged.pop("resources", None)
        if kinds.failed:
            self._complain("groups", f"no answer about {', '.join(kinds.failed[:10])}")
        self._kinds = kinds.table

    async def _read_series(self, selector: str, start: float) -> None:
        try:
            shapes = await self.store.shapes(selector, start)
        except SourceError as error:
            self.discovery_failures += 1
            self._complain(f"series {selector}", f"seriesQuery {selector[:200]}: {error}")
            return
        self._logged.pop(f"series {selector}", None)
        self._shapes[selector] = shapes

    def _complain(self, key: str, text: str) -> None:
        """Log a failure once, until it changes."""
        if self._logged.get(key) != text:
            self._logged[key] = text
            log.warning("discovery of rules is incomplete", problem=text[:400])

    def _log_problems(self, narrow: Sequence[str]) -> None:
        if self._options.widen:
            log.info(
                "queries of custom rules",
                for_all_objects=len(self.rules.custom) - len(narrow),
                for_each_request=narrow[:_SHOWN],
            )
        for problem in self.rules.problems[:_SHOWN]:
            level = log.error if problem.broken else log.warning
            level(
                "rule left out" if problem.broken else "rules file",
                file=str(self._options.file),
                line=problem.line,
                rule=problem.rule,
                problem=problem.text,
            )
        if len(self.rules.problems) > _SHOWN:
            hidden = len(self.rules.problems) - _SHOWN
            log.error(
                "more problems of the rules file", count=hidden, hint="serve --check lists all"
            )
