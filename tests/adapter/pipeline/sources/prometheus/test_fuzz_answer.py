"""Modified answers of the query API are refused or read, and never break the promise."""

from __future__ import annotations

import json
from functools import lru_cache
from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.exposition.samples import Sample, ScrapeResult
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.answer import QueryAnswer
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from tests.adapter.fuzzing import bent
from tests.adapter.promise import broken, pods_named
from tests.adapter.world import CATALOG, OWN_PAGES, World, captured_folder
from tests.examples import bounded
from tests.needs import CAPTURED_PAGES

NOW = 1_772_440_000.0
"""The time of the own answers."""
GROUP = QueryGroup("all", tuple(sorted(CATALOG.series)))

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
TIMES = (
    st.sampled_from((NOW, NOW - 30, NOW - 1e6, NOW + 600, 0, -1, 1e300, "x", None)) | st.floats()
)
VALUES = st.sampled_from(
    ("87", "0.5", "NaN", "+Inf", "-1", "808334905", "9223372036854775794", "1_0", "", 3, None)
)
LABELS = st.fixed_dictionaries(
    {"__name__": st.sampled_from(("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "x"))},
    optional={
        "UUID": st.sampled_from(("GPU-0", "GPU-1", "")),
        "GPU_I_ID": st.sampled_from(("7", "")),
        "exported_pod": st.sampled_from(("p", "q", "")),
        "exported_namespace": st.just("ml"),
        "pod": st.sampled_from(("p", "dcgm-exporter-x")),
        "namespace": st.sampled_from(("ml", "gpu-operator")),
        "instance": st.sampled_from(("10.0.0.1:9400", "10.0.0.2:9400", "")),
    },
)
SERIES = st.fixed_dictionaries(
    {"metric": LABELS | JSON},
    optional={
        "values": st.lists(st.tuples(TIMES, VALUES), max_size=4) | JSON,
        "value": st.tuples(TIMES, VALUES) | JSON,
    },
)
ANSWERS = st.builds(
    lambda kind, series, more: (
        {"status": "success", "data": {"resultType": kind, "result": series}} | more
    ),
    st.sampled_from(("matrix", "vector", "scalar")),
    st.lists(SERIES, max_size=5) | JSON,
    st.dictionaries(st.sampled_from(("warnings", "infos", "status", "data", "isPartial")), JSON),
)


@lru_cache(maxsize=1)
def seeds() -> list[bytes]:
    own = [path.read_bytes() for path in sorted((OWN_PAGES / "prometheus").glob("*.json"))]
    return own + ([] if CAPTURED_PAGES.missing() else _captured())


def _captured() -> list[bytes]:
    """Captured answers, as if they were of 36 seconds before NOW: older samples are left out."""
    paths = sorted(captured_folder().glob("20_promapi_*.json"))
    return [path.read_bytes().replace(b"17715294", b"17724399") for path in paths]


def read(body: bytes, memo: SeriesMemo) -> QueryAnswer:
    """The answer; empty after a SourceError. Other errors fail the test."""
    try:
        return decode(body, memo, GROUP)
    except SourceError:
        return QueryAnswer()


def kept(*bodies: bytes) -> list[str]:
    """The violations of the promise after these answers."""
    memo = SeriesMemo()
    answers = []
    for body in bodies:
        answers.append(read(body, memo))
        memo.turn()
    rows = [row for answer in answers for part in answer.samples.values() for row in part]
    assert all(plain(row) for row in rows)
    world = World(*pods_named(rows))
    for number, answer in enumerate(answers):
        for origin, part in answer.samples.items():
            world.store.ingest(ScrapeResult(origin, None, part, NOW + number, answer.rejects))
    return broken(world, CATALOG, NOW + len(answers))


def plain(row: Sample) -> bool:
    labels = row.labels.items()
    return (
        bool(row.name)
        and isfinite(row.time)
        and all(isinstance(t, str) for pair in labels for t in pair)
    )


@bounded(6)
@given(st.data())
def test_fuzz_no_modified_answer_breaks_the_promise(data: st.DataObject) -> None:
    first = data.draw(bent(seeds()))
    assert kept(first, data.draw(bent([first]))) == []


@bounded(30)
@given(st.lists(ANSWERS, min_size=1, max_size=3))
def test_fuzz_no_generated_answer_breaks_the_promise(answers: list[object]) -> None:
    assert kept(*(json.dumps(answer).encode() for answer in answers)) == []


@bounded(100)
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_fuzz_no_bytes_break_the_decoder(body: bytes) -> None:
    """A refusal is a SourceError; a decoded answer has only plain values."""
    answer = read(body, SeriesMemo())
    assert all(plain(row) for rows in answer.samples.values() for row in rows)
