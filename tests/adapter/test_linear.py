"""Reading costs grow linearly with the text, for every grammar that others write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec
import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapter.config.settings.types import Interval
from adapter.hpa.quantity import parse as parse_quantity
from adapter.pipeline.catalog.labelvalue import label_value
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.podsfile import PodsFileError
from adapter.pipeline.cluster.podsfile import parse as parse_pods
from adapter.pipeline.exposition.line import LineError, label_set, sample_line, sample_name
from adapter.pipeline.exposition.page import parse
from adapter.pipeline.sources.errors import SourceError
from adapter.pipeline.sources.prometheus.labelsets import SeriesMemo
from adapter.pipeline.sources.prometheus.querygroup import QueryGroup
from adapter.pipeline.sources.prometheus.reader import decode
from apiservice.labels.selector import SelectorError
from apiservice.labels.selector import parse as parse_selector
from tests.adapter.growth import grows_linearly
from tests.examples import bounded

PIECES = st.lists(
    st.sampled_from(
        (" ", "\t", '"', "\\", "{", "}", ",", "=", "#", "a", "_", "1", ".", "-", "!", "(", ")",
         'a="b"', 'a="b",', 'a="b"c', "a in (b)", "in", "&", "*", ":", "[", "]", "s",
         "1h", "\n", "é")
    ),
    max_size=3,
).map("".join)  # fmt: skip


def _page(text: str) -> None:
    parse(text.encode(), time=1.0)


def _line(text: str) -> None:
    sample_line(text.encode())


def _name(text: str) -> None:
    sample_name(text.encode())


def _labels(text: str) -> None:
    label_set(text.encode())


def _answer(text: str) -> None:
    decode(text.encode(), SeriesMemo(), QueryGroup("g", ("s",)))


def _metric(text: str) -> None:
    _answer(
        '{"status":"success","data":{"resultType":"matrix","result":[{"metric":'
        + msgspec.json.encode({"a": text}).decode()
        + ',"values":[[1,"2"]]}]}}'
    )


def _pods(text: str) -> None:
    parse_pods(text.encode(), PodDecoder())


_duration = pydantic.TypeAdapter(Interval).validate_python

GRAMMARS: dict[str, Callable[[str], object]] = {
    "page": _page,
    "line": _line,
    "series name": _name,
    "labels": _labels,
    "label value": label_value,
    "selector": parse_selector,
    "duration": _duration,
    "quantity": parse_quantity,
    "PromQL answer": _answer,
    "series of an answer": _metric,
    "pods file": _pods,
}


@pytest.mark.parametrize("grammar", GRAMMARS)
@bounded(13)
@given(start=PIECES, unit=PIECES.filter(bool), end=PIECES)
@example(start='a="b"', unit=" ", end='"c"')
@example(start='x{a="b"', unit=" ", end='"c"} 1\n')
@example(start="", unit="1", end="x")
@example(start="", unit="a,", end="a")
def test_the_cost_of_reading_grows_linearly(grammar: str, start: str, unit: str, end: str) -> None:
    read = GRAMMARS[grammar]

    def work(count: int) -> None:
        with suppress(LineError, SelectorError, SourceError, PodsFileError, ValueError):
            read(start + unit * count + end)

    assert grows_linearly(work)
