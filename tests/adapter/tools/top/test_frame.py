"""The picture at any size: what fits, what is cut, and what cannot move the cursor."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from rich.cells import cell_len

from adapter.config.process.output import Screen
from adapter.tools.client.errors import ClientError
from adapter.tools.top.facts import ClusterLists, ListName
from adapter.tools.top.frame import HELP, Painter, Scene
from adapter.tools.top.layout import fit, natural_widths, place
from adapter.tools.top.lines import Line
from adapter.tools.top.order import Sort
from adapter.tools.top.state import Mode, TopState
from adapter.tools.top.summaries import tables_of
from adapter.tools.top.tables import TopTable, ViewName
from tests.adapter.tools.top.cluster import facts, gpu, node, pod, workload

VIEWS: tuple[ViewName, ...] = ("overview", "gpus", "pods", "workloads", "hpas", "nodes")
HOSTILE = "evil\x1b[2J\x1b]0;title\x07\r\nnext\u202egnp[bold red]"


def text(line: Line) -> str:
    return "".join(part for part, _ in line)


def picture(
    state: TopState,
    width: int = 100,
    height: int = 30,
    found: ClusterLists | None = None,
    screen: Screen | None = None,
    **scene: Any,
) -> list[str]:
    painter = Painter(screen or Screen())
    shown = replace(Scene(found or facts(), "chat", "https://lab"), **scene)
    return [text(line).rstrip() for line in painter.paint(state, shown, width, height).lines]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", [(200, 60), (80, 24), (40, 10), (20, 5), (10, 3), (3, 2), (1, 1)])
def test_a_picture_has_exactly_the_size_of_the_terminal(
    view: ViewName, size: tuple[int, int]
) -> None:
    width, height = size
    for mode in Mode:
        for lists in (facts(), ClusterLists(), facts([], [], [], [])):
            painter, state = Painter(Screen()), TopState(view=view, mode=mode, filter="l")
            lines = painter.paint(state, Scene(lists, text=["x" * 99]), width, height).lines
            assert len(lines) == height
            assert max(cell_len(text(line)) for line in lines) <= width


def test_gpus_on_a_terminal_of_80_columns() -> None:
    assert picture(TopState(view="gpus"), 80, 12) == [
        "03:04:05 UTC  all namespaces  every 5 s  https://lab",
        "1 of 3 HPAs is stuck, 1 HPA is overloaded, 1 pod has no value, 1 pod waits for …",
        "0 overview  1 gpus 5  2 pods 5  3 workloads 2  4 hpas 3  5 nodes  6 pools",
        "  NAME      NODE   GPU   MODEL   UTIL▼           MEM          PODS",
        "> n1.gpu0   n1     0     H100    ███████░ 92%    71.9/80Gi    chat/llm-7f9",
        "  n1.gpu1   n1     1     H100    ███████░ 88%    68.8/80Gi    chat/llm-a11",
        "  n2.gpu9   n2     9     H100    █░░░░░░░ 0.4%   512/81920Mi  -",
        "  n2.gpu0   n2     0     H100    ░░░░░░░░ 0%     32/80Gi      chat/embed-0 +1",
        "  n2.gpu10  n2     10    H100             -      -            -",
        "",
        "",
        "1 of 5   0-5 views  s r sort  / filter  enter explain  ? help  q quit",
    ]


def test_nodes_whose_gpus_have_no_row_are_named_above_the_rows() -> None:
    silent = [node(f"n{number}", gpus=8, silent=8) for number in range(5, 10)]
    lists = facts(gpus=[gpu("n1.gpu0", "92%", "chat/llm")], nodes=silent)
    shown = picture(TopState(view="gpus"), 80, 16, lists)
    assert shown[3:6] == [
        "! 8 GPUs of node n5 are not listed: no exporter reports them. See: gpu-metrics-…",
        "! 8 GPUs of node n6 are not listed: no exporter reports them. See: gpu-metrics-…",
        "! and 3 more nodes: press 5",
    ]
    assert shown[7].startswith("> n1.gpu0")
    assert "not listed" not in "".join(picture(TopState(view="gpus"), 80, 10, lists))


def test_a_terminal_without_unicode_gets_ascii() -> None:
    lines = picture(TopState(view="gpus"), 80, 12, screen=Screen(unicode=False))
    assert all(line.isascii() for line in lines)
    assert lines[3].split()[:3] == ["NAME", "NODE", "GPU"]
    assert "UTILv" in lines[3]
    assert "#######. 92%" in lines[4]
    assert lines[1].endswith("~")
    help_lines = picture(
        TopState(mode=Mode.TEXT), screen=Screen(unicode=False), text=HELP.splitlines()
    )
    assert all(line.isascii() for line in help_lines)


@pytest.mark.parametrize("view", VIEWS)
def test_a_name_of_a_tenant_cannot_move_the_cursor(view: ViewName) -> None:
    rows = [pod(HOSTILE, "5%", HOSTILE, node=HOSTILE), pod("b", None, why_not=HOSTILE)]
    lists = facts([gpu("n1.gpu0", "5%", HOSTILE)], rows, [workload(HOSTILE, hpa=HOSTILE)])
    broken = replace(lists, problems={"hpas": ClientError(HOSTILE)})
    lines = picture(TopState(view=view, filter=""), 200, 40, broken, origin=HOSTILE)
    assert any("evil" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_an_explanation_with_control_characters_is_plain_text() -> None:
    lines = picture(TopState(mode=Mode.TEXT), height=15, text=[HOSTILE, "x" * 250])
    assert lines[3] == "evil [2J ]0;title next gnp[bold red]"
    assert [len(line) for line in lines[4:7]] == [100, 100, 50]
    assert all(line.isprintable() for line in lines)


def test_wide_characters_keep_the_columns_aligned() -> None:
    rows = [pod("推理服务", "5%"), pod("b", "4%")]
    lines = picture(TopState(view="pods", everywhere=False), 100, 12, facts(pods=rows))
    ends = {cell_len(line.partition("█")[0]) for line in lines if "█" in line}
    assert len(ends) == 1


def test_colour_is_for_what_needs_attention() -> None:
    painter = Painter(Screen())
    lines = painter.paint(TopState(view="hpas"), Scene(facts()), 220, 20).lines
    styles = {text([span]).strip(): span[1] for line in lines for span in line}
    assert styles["overloaded at 8, held by maxReplicas 8: gpu_utilization 92 of 60"] == "warning"
    assert styles["keeps 3: gpu_utilization 54 of 60"] == ""
    gpus = painter.paint(TopState(view="gpus"), Scene(facts()), 220, 20).lines
    assert {style for line in gpus[4:] for _, style in line} == {
        "",
        "dim",
        "reverse",
        "warning",
        "bar",
    }


def test_a_list_that_could_not_be_read_is_one_line_and_the_rest_goes_on() -> None:
    problems: dict[ListName, ClientError] = {}
    problems |= {"hpas": ClientError("jane may not list horizontalpodautoscalers; " + "x" * 200)}
    lines = picture(TopState(view="gpus"), 80, 12, replace(facts(), problems=problems))
    (line,) = [line for line in lines if line.startswith("! ")]
    assert line.startswith("! jane may not list horizontalpodautoscalers")
    assert len(line) == 80
    assert any("n1.gpu0" in line for line in lines)


def test_a_list_that_was_never_read_leads_to_the_reason() -> None:
    denied = ClusterLists(problems={"hpas": ClientError("denied")}, at=1.0)
    assert "Not read: press e" in picture(TopState(view="hpas"), found=denied)
    assert "Reading ..." in picture(TopState(view="hpas"), found=ClusterLists())
    many = {name: ClientError(f"failure {number}") for number, name in enumerate(facts().tables)}
    lines = picture(TopState(view="hpas"), found=ClusterLists(problems=many))
    assert "! and 3 more: press e" in lines


def test_rows_scroll_as_little_as_possible() -> None:
    lists = facts(pods=[pod(f"p{number:02}", f"{90 - number}%") for number in range(50)])
    painter, state = Painter(Screen()), TopState(view="pods")

    def first(cursor: int) -> str:
        lines = painter.paint(replace(state, cursor=cursor), Scene(lists), 80, 15).lines
        body = [text(line) for line in lines[4:-1]]
        assert sum(line.startswith("> ") for line in body) == 1
        return body[0][2:].split()[1]

    assert [first(cursor) for cursor in (0, 9, 10, 11, 5, 1, 49)] == [
        "p00",
        "p00",
        "p01",
        "p02",
        "p02",
        "p01",
        "p40",
    ]


def test_the_selected_row_of_the_overview_is_visible_on_a_small_terminal() -> None:
    painter = Painter(Screen())
    for cursor in range(9):
        lines = painter.paint(TopState(cursor=cursor), Scene(facts()), 40, 10).lines
        assert sum(text(line).startswith("> ") for line in lines) == 1


def test_the_explanation_belongs_to_the_row_under_the_cursor() -> None:
    painter, state = Painter(Screen()), TopState(view="pods")
    shown = painter.paint(state, Scene(facts()), 80, 24).shown
    for index, key in enumerate(shown.rows):
        assert painter.about(index) == key
    assert painter.about(99) is None


def test_a_sort_by_a_column_that_is_gone_is_the_usual_one() -> None:
    state = TopState(view="pods", everywhere=False, sorts={"pods": Sort("NAMESPACE")})
    assert Painter(Screen()).paint(state, Scene(facts()), 80, 24).shown.sort == Sort("UTIL")


def test_the_order_is_computed_once_for_the_same_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(view: ViewName, found: ClusterLists, *, everywhere: bool) -> list[TopTable]:
        calls.append(view)
        return tables_of(view, found, everywhere=everywhere)

    monkeypatch.setattr("adapter.tools.top.frame.tables_of", counted)
    painter, scene = Painter(Screen()), Scene(facts())
    for cursor in range(5):
        painter.paint(TopState(view="pods", cursor=cursor), scene, 80, 24)
    painter.paint(TopState(view="pods", filter="x"), scene, 80, 24)
    assert len(calls) == 1
    painter.paint(TopState(view="pods"), Scene(facts()), 80, 24)
    painter.paint(TopState(view="pods", sorts={"pods": Sort("MEM")}), scene, 80, 24)
    assert len(calls) == 3


def test_columns_leave_a_narrow_terminal_by_rank() -> None:
    (table,) = tables_of("gpus", facts(), everywhere=True)
    natural = natural_widths(table, table.rows)
    layouts = []
    for width in (300, 100, 70, 50, 20):
        placed = place(table, natural, width)
        layouts.append([table.columns[cell.at].name for cell in placed])
        assert (
            sum(cell.width + (cell.bar + 1 if cell.bar else 0) + 2 for cell in placed) - 2 <= width
        )
    assert all(set(after) <= set(before) for before, after in pairwise(layouts))
    assert layouts[-1] == ["NAME", "UTIL"]


def test_long_names_are_cut_and_get_what_room_there_is() -> None:
    long = facts(pods=[pod("p" * 253, "5%", "n" * 63)])
    for width in (40, 80, 160):
        lines = picture(TopState(view="pods"), width, 12, long)
        (line,) = [line for line in lines if line.startswith("> ")]
        assert "…" in line
        assert "5%" in line


@pytest.mark.parametrize(
    ("width", "found"), [(6, "abc   "), (3, "abc"), (2, "a…"), (1, "…"), (0, "")]
)
def test_a_text_fits_exactly(width: int, found: str) -> None:
    assert fit("abc", width, "…") == found
