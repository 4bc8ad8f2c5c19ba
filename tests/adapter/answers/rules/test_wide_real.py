"""A query for all objects gives each object the value of its own query: on real engines.

Random series are written before, so that every query has the same time. Hypothesis makes
templates, safe and unsafe ones. Every accepted one must agree, and unsafe ones must be refused.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adapter.answers.rules.promql import ObjectKey
from adapter.answers.rules.promqltokens import NotWidenedError
from adapter.answers.rules.rule import MetricRule, RuleObjects
from adapter.answers.rules.rulefile import RuleText, read_rules
from adapter.answers.rules.ruleset import rule_set
from adapter.answers.rules.vector import Vector, decode
from adapter.answers.rules.widening import why_narrow, wide_query, widen
from adapter.answers.rules.widevalues import AmbiguousError, WideAnswer, fold_vector
from adapter.pipeline.sources.errors import SourceError
from apiservice.labels.selector import parse
from apiservice.runtime.steps import at_once
from tests.adapter.pipeline.sources.prometheus.engines import engine
from tests.examples import bounded
from tests.needs import PROMETHEUS, PROMTOOL, VICTORIAMETRICS, needed_by_fixture, needs

FILES = sorted((Path(__file__).parents[3] / "e2e" / "rulefiles").glob("*.yaml"))
KEYS = (
    ObjectKey("pod", "namespace"),
    ObjectKey("service", "namespace"),
    ObjectKey("node", None),
    ObjectKey("namespace", None),
)
SPACES = ("a", "b")
NAMES = {
    "pod": ("p-0", "p-1", "p.2", "px2", "absent"),
    "service": ("web", "api", "absent"),
    "node": ("n-0", "n-1", "absent"),
    "namespace": (*SPACES, "absent"),
}
VALUES = (
    *("4", "5.5", "12", "1.25") * 4,
    "0",
    "1",
    "2.5",
    "-3",
    "1e3",
    "0.0004",
    "NaN",
    "+Inf",
    "1e300",
    "7.77",
    "0.1",
)
COUNTERS, GAUGES = ("c_total", "d_total"), ("g", "h", "single")
EVERYTHING = parse("")


class Store(NamedTuple):
    """An engine, and the time at which everything is asked."""

    url: str
    time: float

    def ask(self, query: str) -> Vector:
        form = urllib.parse.urlencode({"query": query, "time": f"{self.time:.3f}"})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query", form.encode()) as answered:
                body = answered.read()
        except urllib.error.HTTPError as error:
            raise SourceError("query", json.load(error)["error"]) from None
        return at_once(decode(body, 0.0))


def label_sets(chance: random.Random) -> list[Mapping[str, str]]:
    """Random label sets: several series for an object, and objects that lack labels."""
    sets = {}
    for _ in range(60):
        labels = {
            "namespace": chance.choice((*SPACES, *SPACES, "")),
            "pod": chance.choice((*NAMES["pod"][:4], *NAMES["pod"][:4], "")),
            "service": chance.choice(("web", "api", "")),
            "node": chance.choice(("n-0", "n-1", "")),
            "container": chance.choice(("x", "y", "POD", "")),
            "area": chance.choice(("heap", "")),
        }
        sets[tuple(labels.items())] = labels
    return list(sets.values())


def samples(chance: random.Random, now: float, *, counter: bool) -> Iterator[str]:
    """Yield values and times; some series end early, some counters reset."""
    end = chance.choice((0, 0, 0, 0, 100, 240, 299, 301, 360, 700))
    level, constant = 0.0, chance.choice(VALUES)
    for age in range(1200, end, -30):
        level = 0.0 if chance.random() < 0.05 else level + chance.random() * 100
        value = constant if chance.random() < 0.8 else chance.choice(VALUES)
        if chance.random() < 0.95:
            yield f"{level if counter else value} {now - age:.3f}"


def history(now: float) -> str:
    chance = random.Random(20261123)
    lines: list[str] = []
    for name in (*COUNTERS, *GAUGES, "b_bucket"):
        kind = "counter" if name in COUNTERS else "unknown"
        lines.append(f"# TYPE {name.removesuffix('_total')} {kind}")
        rows = []
        sets = label_sets(chance)
        if name == "single":  # one series for a pod
            first = {(series["namespace"], series["pod"]): series for series in reversed(sets)}
            sets = list(first.values())
        for labels in sets:
            for bound in ("0.1", "1", "+Inf") if name == "b_bucket" else ("",):
                text = ",".join(f'{key}="{value}"' for key, value in labels.items() if value)
                text += f',le="{bound}"' if bound else ""
                rows += [
                    (float(sample.split()[1]), f"{name}{{{text.strip(',')}}} {sample}")
                    for sample in samples(chance, now, counter=name not in GAUGES)
                ]
        lines += [line for _, line in sorted(rows)]
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
@needed_by_fixture(PROMETHEUS, PROMTOOL)
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("store")
    now = float(int(time.time()) - 60)
    written = folder / "history.txt"
    written.write_text(history(now))
    command = [PROMTOOL.path(), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run(
        [*command, written, folder / "data"], check=True, capture_output=True, timeout=120
    )
    with engine("prometheus", folder, "{}") as url:
        yield Store(url, now)


@pytest.fixture(scope="module")
@needed_by_fixture(VICTORIAMETRICS)
def victoria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """VictoriaMetrics with the same series."""
    now = float(int(time.time()) - 60)
    rows = (line.rpartition(" ") for line in history(now).splitlines() if line[0] != "#")
    lines = [f"{row} {float(seconds) * 1000:.0f}" for row, _, seconds in rows]
    with engine("victoria-metrics", tmp_path_factory.mktemp("victoria"), "{}") as url:
        address = urllib.parse.urljoin(url, "/api/v1/import/prometheus")
        urllib.request.urlopen(address, "\n".join(lines).encode()).close()
        deadline = time.monotonic() + 120
        store = Store(url, now)
        while not store.ask("count(g) and count(single)").values:  # the last names of the import
            assert time.monotonic() < deadline
            time.sleep(0.2)
        yield store


def rule(template: str) -> MetricRule:
    return MetricRule(RuleText("rules[0]", 1, series_query="up", metrics_query=template))


def narrow(
    store: Store,
    made: MetricRule,
    series: str,
    key: ObjectKey,
    space: str | None,
    names: Sequence[str],
) -> dict[str, int]:
    """What the objects' own query gives them."""
    assert key.label is not None
    objects = RuleObjects(key.label, names, space, key.namespace or "")
    query = made.query(series, objects, EVERYTHING)
    return {
        value.labels[key.label]: value.milli
        for value in store.ask(query).values
        if value.labels.get(key.label) in names
    }


def everything(store: Store, made: MetricRule, series: str, key: ObjectKey) -> WideAnswer | None:
    """The answer for all objects; None if requests send queries of their own instead."""
    query = wide_query(widen(made, series, key), key, EVERYTHING)
    try:
        return at_once(fold_vector(store.ask(query), key, store.time, store.time))
    except (SourceError, AmbiguousError):
        return None


def compare(
    store: Store,
    made: MetricRule,
    series: str,
    key: ObjectKey,
    every: WideAnswer,
    tolerance: float = 0.0,
) -> int:
    """Assert that both give every object the same value; return how many values there are.

    `tolerance` is relative. One above 0 also accepts a difference of a thousandth, the unit.
    """
    assert key.label is not None
    names, count = NAMES[key.label], 0
    for space in (None,) if key.namespace is None else SPACES:
        values = every.spaces.get(space or "", {})
        for some in (*((name,) for name in names), names, names[1:3]):
            expected = narrow(store, made, series, key, space, some)
            wide = {name: values[name] for name in some if name in values}
            assert wide == (
                pytest.approx(expected, rel=tolerance, abs=1) if tolerance else expected
            )
            count += len(expected)
    return count


_MATCHES = st.sampled_from(
    (
        *("<<.LabelMatchers>>",) * 4,
        '<<.LabelMatchers>>,container!="POD"',
        'container=~"x|y", <<.LabelMatchers>>,',
        '<<.LabelMatchers>>,area=""',
        'area="heap"',
        '<<.LabelMatchers>>,pod=~"p.*"',
    )
)
_OFFSETS = st.sampled_from(("", "", "", " offset 2m", " offset -30s"))
_GROUPINGS = st.sampled_from(
    (
        *(" by (<<.GroupBy>>)",) * 6,
        *("", " by ()", " by (<<.GroupBy>>,)", " by (<<.GroupBy>>, namespace)"),
        *(" by (container, <<.GroupBy>>)", " without (container)", " without (pod)"),
        " by (<<range $i, $v := .GroupBySlice>><<if $i>>,<<end>><<$v>><<end>>)",
        *(" by (container)", " without (namespace, container)"),
    )
)
_AGGREGATIONS = st.sampled_from(
    (
        *("sum", "sum", "max", "avg", "min", "count", "group", "stddev", "SUM"),
        *("topk(1, ", "bottomk(1, ", "quantile(0.5, ", 'count_values("pod", '),
    )
)
_BETWEEN = st.sampled_from(
    (
        *(" + ", " - ", " * ", " / ", " % ", " ^ ", " > ", " <= bool ", " == "),
        *(" and ", " or ", " unless ", " * on (pod) ", " / ignoring (container) "),
        " + on (<<.GroupBy>>) group_left () ",
    )
)
_NUMBERS = st.sampled_from(("2", "1e-3", "0x1f", "-1", "Inf", "time()", "scalar(g)", "vector(1)"))


def _gauges() -> st.SearchStrategy[str]:
    names = st.sampled_from(("<<.Series>>", *GAUGES))
    return st.builds("{}{{{}}}{}".format, names, _MATCHES, _OFFSETS)


def _rates() -> st.SearchStrategy[str]:
    functions = st.sampled_from(
        ("rate", "irate", "increase", "max_over_time", "avg_over_time", "absent_over_time")
    )
    spans = st.sampled_from(("[5m]", "[90s]", "[10m]", "[5m:1m]"))
    names = st.sampled_from(COUNTERS)
    return st.builds("{}({}{{{}}}{}{})".format, functions, names, _MATCHES, spans, _OFFSETS)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    functions = st.sampled_from(
        (
            *("abs({})", "ceil({})", "round({}, 0.1)", "clamp_max({}, 5)", "({})", "-{}", "+{}"),
            *("sort({})", "absent({})", "scalar({})", "vector({})", "histogram_quantile(0.9, {})"),
            'label_replace({}, "pod", "p-0", "", "")',
            '<<if eq .GroupBy "pod">>abs({})<<else>>-{}<<end>>',
            "<<with .GroupBy>>ceil({})<<end>>",
        )
    )
    return st.one_of(
        st.builds(lambda outer, text: outer.replace("{}", text), functions, inner),
        st.builds(_aggregated, _AGGREGATIONS, inner, _GROUPINGS, st.booleans()),
        st.builds("{}{}{}".format, inner, _BETWEEN, inner),
        st.builds("{}{}{}".format, inner, _BETWEEN, _NUMBERS),
        st.builds("{}{}{}".format, _NUMBERS, _BETWEEN, inner),
    )


def _aggregated(name: str, inner: str, grouping: str, after: bool) -> str:
    opened = name if name.endswith(" ") else f"{name}("
    if after:
        return f"{opened}{inner}){grouping}"
    return f"{opened.partition('(')[0]}{grouping} ({opened.partition('(')[2]}{inner})"


TEMPLATES = st.recursive(st.one_of(_gauges(), _rates()), _larger, max_leaves=4)


@bounded(120)
@given(template=TEMPLATES, key=st.sampled_from(KEYS), series=st.sampled_from(GAUGES))
def test_each_object_has_the_value_of_its_own_query(
    store: Store, template: str, key: ObjectKey, series: str
) -> None:
    agrees(store, template, key, series)


# VictoriaMetrics adds series up in any order, so that the last digits of a sum differ from query to
# query. These turn such a difference into any number: steps, differences and powers.
UNSTEADY = re.compile(r"[%^<>]|==| - |-[a-z.(]|ceil|round|stddev|topk|bottomk|values")
VICTORIA_TOLERANCE = 1e-9


@settings(bounded(25), derandomize=True)
@given(template=TEMPLATES, key=st.sampled_from(KEYS), series=st.sampled_from(GAUGES))
def test_each_object_has_the_value_of_its_own_query_in_victoriametrics(
    victoria: Store, template: str, key: ObjectKey, series: str
) -> None:
    assume(not UNSTEADY.search(template.replace("<<", "").replace(">>", "")))
    agrees(victoria, template, key, series, VICTORIA_TOLERANCE)


def agrees(
    store: Store, template: str, key: ObjectKey, series: str, tolerance: float = 0.0
) -> None:
    """Compare a template if it is widened, and the engine answers."""
    made = rule(template)
    try:
        widen(made, series, key)
    except NotWidenedError:
        assume(False)
    every = everything(store, made, series, key)
    assume(every is not None)
    assert every is not None
    compare(store, made, series, key, every, tolerance)


SHAPES = (
    "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    'sum by (<<.GroupBy>>) (rate(c_total{<<.LabelMatchers>>,container!="POD"}[5m]))',
    "max_over_time(single{<<.LabelMatchers>>}[10m])",
    (
        '100 * sum(g{<<.LabelMatchers>>}) by (<<.GroupBy>>) / count(h{<<.LabelMatchers>>,area=""}) '
        "by (<<.GroupBy>>)"
    ),
    "histogram_quantile(0.9, sum(rate(b_bucket{<<.LabelMatchers>>}[10m])) by (le, <<.GroupBy>>))",
    "avg(max(g{<<.LabelMatchers>>}) by (<<.GroupBy>>, container)) by (<<.GroupBy>>)",
    "sum(g{<<.LabelMatchers>>}) by (<<.GroupBy>>) or sum(h{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
    '<<if eq .GroupBy "pod">>max<<else>>min<<end>>(g{<<.LabelMatchers>>}) by (<<.GroupBy>>)',
)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("store", marks=needs(PROMETHEUS, PROMTOOL)),
        pytest.param("victoria", marks=needs(VICTORIAMETRICS)),
    ],
)
def test_usual_shapes_are_widened_and_agree(
    name: str, request: pytest.FixtureRequest, subtests: pytest.Subtests
) -> None:
    store: Store = request.getfixturevalue(name)
    tolerance = VICTORIA_TOLERANCE if name == "victoria" else 0.0
    for template in SHAPES:
        with subtests.test(template=template):
            made, key = rule(template), KEYS[0]
            every = everything(store, made, "g", key)
            assert every is not None
            assert compare(store, made, "g", key, every, tolerance) > 5


def _from_files() -> list[MetricRule]:
    by_file = [rule_set(read_rules(path.read_bytes())).custom for path in FILES]
    texts = {made.text.metrics_query: made for rules in by_file for made in rules}
    return [made for made in texts.values() if not why_narrow(made)]


@pytest.mark.parametrize("series", ["c_total", "single"])
def test_the_templates_of_public_files_agree(
    store: Store, series: str, subtests: pytest.Subtests
) -> None:
    for made in _from_files():
        for key in KEYS:
            with subtests.test(query=made.text.metrics_query, key=key):
                every = everything(store, made, series, key)
                if every is not None:
                    compare(store, made, series, key, every)


REFUSED = (
    ("topk(1, g{<<.LabelMatchers>>})", "topk may mix objects"),
    ("sum(g{<<.LabelMatchers>>})", "sum does not keep the label pod"),
    ("sum(g{<<.LabelMatchers>>}) by (<<.GroupBy>>) / sum(h)", "h is not limited to objects"),
    ("g{<<.LabelMatchers>>} / on (pod) h{<<.LabelMatchers>>}", "'on' is not in the part"),
    ("g{<<.LabelMatchers>>} or vector(0)", "vector may mix objects"),
    (
        "g{<<.LabelMatchers>>} / sum(h{<<.LabelMatchers>>}) by (<<.GroupBy>>)",
        "an operator matches elements with and without the namespace",
    ),
    ('g{pod="<<.LabelMatchers>>"}', "a selector is not limited to objects"),
    ('g{<<range $k, $v := .LabelValuesByName>><<$k>>="<<$v>>",<<end>>}', ".LabelValuesByName"),
    ("g{<<if .LabelMatchers>><<.LabelMatchers>><<end>>}", "computes with .LabelMatchers"),
    ("g{<<$.LabelMatchers | print>>}", "computes with .LabelMatchers"),
    ("g{<<with $>><<.LabelMatchers>><<end>>}", "the whole argument"),
    ("sum(g{<<.LabelMatchers>>}) without (namespace)", "removes a label"),
    ("g{<<.LabelMatchers>>} @ 1700000000", "'@ 1700000000' is not in the part"),
    ("g{<<.LabelMatchers>>} # text", "'# text' is not in the part"),
    ("1 + 2", "does not give a vector"),
    ("g{<<.LabelMatchers>>} +", "ends too early"),
    ("(" * 80 + "g{<<.LabelMatchers>>}" + ")" * 80, "too many levels"),
    (
        'count_values("pod", g{<<.LabelMatchers>>})',
        "count_values may mix objects",
    ),
)


@pytest.mark.parametrize(("template", "why"), REFUSED)
def test_what_may_mix_objects_is_refused_with_the_reason(template: str, why: str) -> None:
    with pytest.raises(NotWidenedError) as caught:
        widen(rule(template), "g", KEYS[0])
    assert why in str(caught.value)


def test_labels_that_are_not_two_are_refused() -> None:
    made = rule("g{<<.LabelMatchers>>}")
    for key in (ObjectKey("pod", "pod"), ObjectKey("a-b", None)):
        with pytest.raises(NotWidenedError, match="two names"):
            widen(made, "g", key)
