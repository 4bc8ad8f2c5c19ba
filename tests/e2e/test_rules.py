"""prometheus-adapter's own configuration: its answers and ours, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.process import wait_until
from tests.e2e.rulecomparison import (
    CUSTOM,
    EXTERNAL,
    built_in,
    custom_paths,
    differences,
    discovered,
    explanation,
    external_paths,
    summary,
)
from tests.e2e.rulestage import RULE_FILES, Both, RuleStage, rules_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def rule_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuleStage]:
    with RuleStage(tmp_path_factory.mktemp("rules")) as stage:
        yield stage


@pytest.fixture(params=sorted(path.stem for path in RULE_FILES.glob("*.yaml")))
def both(rule_stage: RuleStage, request: pytest.FixtureRequest) -> Iterator[Both]:
    path = RULE_FILES / f"{request.param}.yaml"
    with rule_stage.both(request.param, path) as running:
        rules = rules_of(path)
        for key, group in (("rules", CUSTOM), ("externalRules", EXTERNAL)):
            if key in rules:
                wait_until(partial(discovered, running.theirs, group), f"theirs lists {group}")
        yield running


def test_every_answer_is_equal_or_the_difference_is_documented(both: Both) -> None:
    """The discovery lists of both groups, then every request for every metric in them."""
    paths = [
        *custom_paths(_same_rows(both, CUSTOM)),
        *external_paths(_same_rows(both, EXTERNAL)),
    ]
    found = differences(both, paths)
    unexplained = [each for each in found if not explanation(each)]
    assert not unexplained, f"{len(unexplained)} of {len(paths)}: {unexplained[:5]}"
    print(f"{len(paths)} requests, {len(found)} differ: {dict(summary(found))}")
    assert len(found) < len(paths) / 2


def _same_rows(both: Both, group: str) -> dict[str, bool]:
    """Wait until ours lists what theirs lists; what it lists beyond that is the catalogue's."""
    theirs = discovered(both.theirs, group)
    wait_until(
        lambda: theirs.items() <= discovered(both.ours, group).items(), f"the rows of {group}"
    )
    more = discovered(both.ours, group).keys() - theirs.keys()
    assert {row.rpartition("/")[2] for row in more} <= built_in()
    return theirs
