"""A recording's file: what was written is read again, and damage costs only what it hit."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import tracemalloc
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.pipeline.cluster.nodes import Node
from adapter.pipeline.exposition.samples import ONE_WITH_DECIMALS, Decimals, Sample, ScrapeResult
from adapter.server.recording import blocks, layout
from adapter.server.recording.events import (
    Begun,
    Event,
    HpaSeen,
    Missed,
    NodeSeen,
    PageRead,
    PodSeen,
    RecordingError,
    Stretch,
)
from adapter.server.recording.reader import RecordingReader
from adapter.server.recording.writer import RecordingFile, RecordingWriter
from tests.adapter.tools.replay.day import shown_hpa
from tests.adapter.world import make_pod
from tests.examples import bounded

NUMBERS = st.floats() | st.just(ONE_WITH_DECIMALS)
NAMES = st.sampled_from(
    ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "vllm:num_requests_running")
)
LABELS = st.dictionaries(st.sampled_from(("pod", "gpu", "UUID")), st.text(max_size=4), max_size=3)
TIMES = st.floats(0, 4e9)
SAMPLES = st.lists(st.builds(Sample, NAMES, LABELS, NUMBERS, TIMES), max_size=6)
PAGES = st.builds(
    ScrapeResult,
    st.sampled_from(("http://a/metrics", "http://b/metrics")),
    st.none() | st.sampled_from(("node-a", "")),
    SAMPLES,
    TIMES,
    st.dictionaries(st.sampled_from(("bad_line", "bad_value")), st.integers(1, 9)),
    st.none() | st.just(("ml", "p")),
    st.booleans(),
)


def write(path: Path, *lines: bytes, most: int = 1 << 30) -> None:
    RecordingFile(path, most).append(lines)


def read(path: Path) -> tuple[list[Event], RecordingReader]:
    reader = RecordingReader(path)
    return list(reader.events()), reader


def begun() -> RecordingWriter:
    writer = RecordingWriter()
    writer.begin({"values": {"window": 2.0}}, 1.0)
    return writer


def spelled(result: ScrapeResult) -> list[tuple[object, ...]]:
    """The samples with their values as texts, so that NaN equals NaN."""
    return [
        (
            sample.name,
            dict(sample.labels),
            repr(sample.value),
            isinstance(sample.value, Decimals),
            sample.time,
        )
        for sample in result.samples
    ]


@bounded(60)
@given(pages=st.lists(PAGES, max_size=8))
def test_pages_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, pages: list[ScrapeResult]
) -> None:
    path = tmp_path_factory.mktemp("recording") / "file"
    writer = begun()
    for page in pages:
        writer.page(page)
    write(path, *writer.take())
    events, reader = read(path)
    read_pages = [event.result for event in events if isinstance(event, PageRead)]
    assert reader.losses.lines == {}
    assert reader.losses.damaged == 0
    assert len(read_pages) == len(pages)
    for before, after in zip(pages, read_pages, strict=True):
        assert spelled(before) == spelled(after)
        same = ("origin", "node", "received", "rejects", "pod", "serves")
        assert [getattr(before, key) for key in same] == [getattr(after, key) for key in same]


def test_objects_are_read_as_they_were_written(tmp_path: Path) -> None:
    pod, node, hpa = make_pod("p", labels={"app": "x"}), Node("n", {"a": "b"}), shown_hpa(2, 3)
    writer = begun()
    writer.pod(pod, 2.0)
    writer.node(node, 3.0)
    writer.hpa(hpa, 4.0)
    writer.pod(pod, 5.0, gone=True)
    write(tmp_path / "file", *writer.take())
    assert read(tmp_path / "file")[0] == [
        Begun(1.0, {"values": {"window": 2.0}}),
        PodSeen(2.0, pod),
        NodeSeen(3.0, node),
        HpaSeen(4.0, hpa),
        PodSeen(5.0, pod, gone=True),
    ]


def test_a_page_that_repeats_its_layout_costs_its_values_only() -> None:
    labels = [{"gpu": str(index), "UUID": f"GPU-{index}", "text": "x" * 100} for index in range(8)]
    writer = begun()
    for time in range(2):
        samples = [Sample("DCGM_FI_DEV_GPU_UTIL", label_set, 50.0, time) for label_set in labels]
        writer.page(ScrapeResult("http://a", None, samples, time))
        lines = writer.take()
    assert len(b"".join(lines)) < 200


def file_of_runs(path: Path, runs: int) -> list[bytes]:
    """Append runs of one page each; return the file's content after each."""
    contents = []
    for run in range(runs):
        writer = RecordingWriter()
        writer.begin({}, float(run))
        samples = [Sample("x", {"run": str(run)}, float(run), float(run))]
        writer.page(ScrapeResult("http://a", None, samples, float(run)))
        write(path, *writer.take())
        contents.append(path.read_bytes())
    return contents


def runs_read(path: Path) -> list[float]:
    return [event.time for event in read(path)[0] if isinstance(event, PageRead)]


def test_every_end_that_a_kill_may_leave_costs_the_last_block_only(tmp_path: Path) -> None:
    first, second = file_of_runs(tmp_path / "file", 2)
    for end in range(len(first) + 1, len(second)):
        path = tmp_path / "killed"
        path.write_bytes(second[:end])
        assert runs_read(path) == [0.0]
        # The next recorder appends after what was left.
        file_of_runs(path, 1)
        events, reader = read(path)
        assert [event.time for event in events if isinstance(event, PageRead)] == [0.0, 0.0]
        assert reader.losses.damaged == 1


@pytest.mark.parametrize("bound", ["MOST", "MOST_TEXT"])
def test_a_block_beyond_the_bounds_counts_as_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    path = tmp_path / "file"
    file_of_runs(path, 1)
    writer = begun()
    labels = {"text": Random(3).randbytes(1000).hex()}
    writer.page(ScrapeResult("http://a", None, [Sample("x", labels, 1.0, 7.0)], 7.0))
    write(path, *writer.take())
    file_of_runs(path, 1)
    assert runs_read(path) == [0.0, 7.0, 0.0]
    monkeypatch.setattr(blocks, bound, 1000)
    events, reader = read(path)
    assert [event.time for event in events if isinstance(event, PageRead)] == [0.0, 0.0]
    assert reader.losses.damaged == 1


def test_a_layout_beyond_the_bound_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "ORIGINS", 2)
    writer = begun()

    def written(origin: str) -> int:
        writer.take()
        writer.page(ScrapeResult(origin, None, [Sample("x", {"a": "b"}, 1.0, 1.0)], 1.0))
        return len(writer.take())

    written("z")  # the label sets, which the others share
    first, known = written("a"), written("a")
    assert known < first
    assert (written("b"), written("a")) == (first, known)
    assert (written("c"), written("a")) == (first, known)
    assert written("b") == first, "recorded longest ago"


def test_damage_anywhere_costs_what_it_hits(tmp_path: Path) -> None:
    content = file_of_runs(tmp_path / "file", 5)[-1]
    dice = Random(3)
    for _ in range(200):
        position = dice.randrange(len(content))
        damaged = bytearray(content)
        damaged[position] ^= 1 << dice.randrange(8)
        path = tmp_path / "damaged"
        path.write_bytes(damaged)
        try:
            times = runs_read(path)
        except RecordingError:  # the first block says that it is a recording
            assert position < len(content) / 5
            continue
        assert len(times) >= 4
        assert all(time in range(5) for time in times)


def test_any_gzip_program_reads_a_recording(tmp_path: Path) -> None:
    file_of_runs(tmp_path / "file", 3)
    text = gzip.decompress((tmp_path / "file").read_bytes())
    assert text.count(b'"k":"page"') == 3


def test_a_block_has_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "WRITTEN", 600)
    writer = begun()
    for name in ("p", "q", "r"):
        writer.pod(make_pod(name), 2.0)
    writer.pod(make_pod("too-long", labels={"x": "y" * 600}), 3.0)
    write(tmp_path / "file", *writer.take())
    assert writer.left_out == 1
    events, reader = read(tmp_path / "file")
    assert [event.pod.ref.name for event in events if isinstance(event, PodSeen)] == ["p", "q", "r"]
    assert reader.losses.damaged == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: nothing was recorded"),
        (b"# HELP x\nx 1\n", "is not a recording: give a file that `replay record` or"),
        (blocks.pack(b'{"k":"page"}\n'), "is not a recording"),
        (blocks.pack(b'{"k":"pod"}\n'), "is not a recording"),
        (gzip.compress(b"x", mtime=0), "is not a recording"),
        (
            blocks.pack(b'{"k":"recording","version":9,"time":1,"program":"new 9.0"}\n'),
            "this program reads 1: use the version that wrote it, new 9.0",
        ),
    ],
    ids=["empty", "page", "no-beginning", "pod-without-fields", "gzip", "version"],
)
def test_a_file_of_another_kind_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(RecordingError) as error:
        read(path)
    assert said in str(error.value)
    assert str(path) in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot be read: No such file"):
        read(tmp_path / "none")
    with pytest.raises(RecordingError, match=r"cannot be written: No such file.*another file"):
        RecordingFile(tmp_path / "no-folder" / "file", 1)


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    write(tmp_path / "file", b"x\n")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


def test_lines_that_mean_nothing_are_counted(tmp_path: Path) -> None:
    writer = begun()
    good = b"".join(writer.take())
    lines = [
        b'{"k":"page","layout":7,"time":1,"values":[]}\n',
        b'{"k":"layout","id":1,"origin":"a","names":["x"],"labels":[5]}\n',
        b'{"k":"layout","id":2,"origin":"b","names":[],"labels":[]}\n',
        b'{"k":"page","layout":2,"time":1,"values":[1]}\n',
        b'{"k":"page","layout":2,"time":1,"values":["one"]}\n',
        b"not json\n",
        b'{"k":"pod","time":1}\n',
    ]
    write(tmp_path / "file", good, *lines)
    events, reader = read(tmp_path / "file")
    assert events[1:] == [Missed(1.0, Stretch(1.0, 1.0, "damaged", ""))]
    assert reader.losses.lines == {"undefined_layout": 1, "undefined_labels": 1, "malformed": 4}


def test_numbers_of_label_sets_begin_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapter.server.recording.writer._LABEL_SETS", 3)
    writer = begun()
    pages = []
    for number, origin in itertools.product(range(6), ("a", "b")):
        samples = [Sample("x", {"number": f"{number}{origin}"}, 1.0, 1.0)]
        pages.append(ScrapeResult(origin, None, samples, 1.0))
        writer.page(pages[-1])
    write(tmp_path / "file", *writer.take())
    read_pages = [
        event.result for event in read(tmp_path / "file")[0] if isinstance(event, PageRead)
    ]
    assert list(map(spelled, read_pages)) == list(map(spelled, pages))


def test_a_full_disk_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="No space left") as error:
        RecordingFile(Path("/dev/full"), 1 << 20).append([b"x\n"])
    assert error.value.errno == errno.ENOSPC


def test_text_that_hardly_compresses_makes_a_block_that_can_be_read() -> None:
    text = Random(1).randbytes(blocks.WRITTEN)
    block = blocks.pack(text)
    assert len(block) > blocks.WRITTEN
    assert list(blocks.texts(io.BytesIO(block))) == [text]


LINE = 14 << 20
"""Bytes of a line that a block of a few kilobytes has."""
DEFINED = (
    b'{"k":"labels","id":0,"labels":{"a":"b"}}\n'
    b'{"k":"layout","id":0,"origin":"o","names":["x"],"labels":[0]}\n'
)
BOMBS = {
    "values": b'{"k":"page","layout":0,"time":2,"values":[%b0]}\n' % (b"0," * (LINE // 2)),
    "layout": b'{"k":"layout","id":1,"origin":"p","names":["x"],"labels":[%b0]}\n'
    % (b"0," * (LINE // 2)),
    "settings": b'{"k":"recording","version":1,"time":2,"program":"x","settings":{"a":[%b0]}}\n'
    % (b"[]," * (LINE // 3)),
}


@pytest.mark.parametrize("line", BOMBS.values(), ids=BOMBS)
def test_a_line_of_too_many_parts_takes_no_memory(tmp_path: Path, line: bytes) -> None:
    """Such files of 15 kB took 400 MB; several blocks of 92 kB took 2.3 GB."""
    file = tmp_path / "file"
    write(file, *begun().take(), DEFINED)
    write(file, line)
    write(file, b'{"k":"page","layout":0,"time":3,"values":[7]}\n')
    assert file.stat().st_size < 20_000
    tracemalloc.start()
    try:
        events, reader = read(file)
        assert tracemalloc.get_traced_memory()[1] < 4 * LINE
    finally:
        tracemalloc.stop()
    assert reader.losses.lines == {"too_many_parts": 1}
    assert [type(event) for event in events] == [Begun, Missed, PageRead]


def test_label_sets_beyond_the_bound_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.server.recording.reader.LABEL_BYTES", 2_000)
    writer = begun()
    labels = [{"pod": f"p{number}"} for number in range(9)]
    samples = [Sample("x", label_set, 1.0, 2.0) for label_set in labels]
    for origin, some in (("a", samples[:2]), ("b", samples[2:]), ("c", samples[-2:])):
        writer.page(ScrapeResult(origin, None, some, 2.0))
    write(tmp_path / "file", *writer.take())
    events, reader = read(tmp_path / "file")
    assert reader.losses.lines == {"undefined_labels": 1, "undefined_layout": 1}
    assert [event.result.origin for event in events if isinstance(event, PageRead)] == ["a", "c"]


def test_layouts_of_more_series_than_the_bound_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.server.recording.reader.MOST_SERIES", 5)
    writer = begun()
    sample = Sample("x", {"a": "b"}, 1.0, 2.0)
    for origin in ("a", "b", "c", "a", "c"):
        writer.page(ScrapeResult(origin, None, [sample] * 2, 2.0))
    write(tmp_path / "file", *writer.take())
    events, reader = read(tmp_path / "file")
    assert reader.losses.lines == {"undefined_layout": 1}
    origins = [event.result.origin for event in events if isinstance(event, PageRead)]
    assert origins == ["a", "b", "c", "c"]


def test_more_objects_at_one_time_than_the_bound_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.server.recording.reader.OBJECT_BYTES", 1_500)
    writer = begun()
    pods = [make_pod(f"p{number}", uid=f"u{number}") for number in range(40)]
    for pod in pods:  # one after the other: few exist at one time
        writer.pod(pod, 2.0)
        writer.pod(pod, 3.0, gone=True)
    few = writer.take()
    for pod in pods:
        writer.pod(pod, 4.0)
    write(tmp_path / "few", *few)
    write(tmp_path / "many", *few, *writer.take())
    assert len(read(tmp_path / "few")[0]) == 81
    with pytest.raises(RecordingError, match=r"many has pods, nodes and HPAs of more than 0 MiB"):
        read(tmp_path / "many")
