"""prometheus-adapter's own configuration: its answers and ours, request by request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial

import pytest

from tests.e2e.process import wait_until
from tests.e2e.rulecomparison import (
    CUSTOM,
    EXTERNAL,
    RESOURCE,
    built_in,
    custom_paths,
    differences,
    discovered,
    explanation,
    external_paths,
    resource_paths,
    summary,
)
from tests.e2e.rulestage import RULE_FILES, Both, RuleStage, rules_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def rule_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuleStage]:
    with RuleStage(tmp_path_factory.mktemp("rules")) as stage:
        yield stage


NAMES = sorted(path.stem for path in RULE_FILES.glob("*.yaml"))
_AHEAD = 3
"""Pairs of adapters that start while the answers of another pair are compared."""


@pytest.fixture(scope="module")
def pairs(rule_stage: RuleStage, request: pytest.FixtureRequest) -> Iterator[Pairs]:
    specs = (getattr(item, "callspec", None) for item in request.session.items)
    names = {spec.params["both"] for spec in specs if spec and "both" in spec.params}
    with Pairs(rule_stage, sorted(names)) as made:
        yield made


class Pairs:
    """Starts the two adapters of each file before their turn. Use as a context manager."""

    def __init__(self, stage: RuleStage, names: Sequence[str]) -> None:
        self._stage = stage
        self._waiting = list(names)
        self._pool = ThreadPoolExecutor(_AHEAD)
        self._started: dict[str, Future[tuple[Both, ExitStack]]] = {}

    def __enter__(self) -> Pairs:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()
        for started in self._started.values():
            if started.exception() is None:
                started.result()[1].close()

    def get(self, name: str) -> tuple[Both, ExitStack]:
        """Return the adapters of a file, and what stops them."""
        self._waiting.remove(name)
        for file in (name, *self._waiting[:_AHEAD]):
            if file not in self._started:
                self._started[file] = self._pool.submit(self._start, file)
        return self._started.pop(name).result()

    def _start(self, name: str) -> tuple[Both, ExitStack]:
        path = RULE_FILES / f"{name}.yaml"
        with ExitStack() as stack:
            running = stack.enter_context(self._stage.both(name, path))
            groups = {"rules": CUSTOM, "externalRules": EXTERNAL, "resourceRules": RESOURCE}
            for group in (groups[key] for key in rules_of(path)):
                wait_until(partial(discovered, running.theirs, group), f"theirs lists {group}")
            return running, stack.pop_all()


@pytest.fixture(params=NAMES)
def both(pairs: Pairs, request: pytest.FixtureRequest) -> Iterator[Both]:
    running, stack = pairs.get(request.param)
    with stack:
        yield running


def test_every_answer_is_equal_or_the_difference_is_documented(both: Both) -> None:
    """The discovery lists of all groups, then every request for every metric in them."""
    paths = [
        *custom_paths(_same_rows(both, CUSTOM)),
        *external_paths(_same_rows(both, EXTERNAL)),
    ]
    if _same_rows(both, RESOURCE):
        paths += resource_paths()
        for resource in ("pods", "nodes"):
            assert both.ours.get(f"{RESOURCE}/{resource}").json()["items"], resource
    differing = differences(both, paths)
    unexplained = [difference for difference in differing if not explanation(difference)]
    assert not unexplained, f"{len(unexplained)} of {len(paths)}: {unexplained[:5]}"
    print(f"{len(paths)} requests, {len(differing)} differ: {dict(summary(differing))}")
    assert len(differing) < len(paths) / 2


def _same_rows(both: Both, group: str) -> dict[str, bool]:
    """Wait until ours lists what theirs lists; what it lists beyond that is the catalogue's."""
    theirs = discovered(both.theirs, group)
    wait_until(
        lambda: theirs.items() <= discovered(both.ours, group).items(), f"the rows of {group}"
    )
    more = discovered(both.ours, group).keys() - theirs.keys()
    assert {row.rpartition("/")[2] for row in more} <= built_in()
    return theirs
