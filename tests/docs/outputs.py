"""The outputs of the user's tools that documents show, made by the tools themselves.

A block below ``<!-- output: NAME -->`` holds the output of that name. A ``console`` block begins
with the command; the rest is the output. ``python -m tests.docs.outputs`` writes the blocks, and
tests/docs/test_outputs.py compares them. The names are:

==================  ============================================================================
``doctor ID``       the lines that ``doctor`` prints about a check, with the check's first fault of
                    tests/adapter/tools/doctor/faults; ``doctor ID/FAULT`` names another fault
others              a text of tests/adapter/tools/explain/texts, or one of :data:`OTHERS`
==================  ============================================================================
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Final, NamedTuple
from unittest import mock

import yaml

from adapter.config.process.output import Screen
from adapter.tools.doctor.report import DoctorReport
from adapter.tools.doctor.runner import run
from adapter.tools.explain import hpafacts, nodereport, podreport
from adapter.tools.top.frame import Painter, Scene
from adapter.tools.top.state import TopState
from tests.adapter.clientapi import api_server
from tests.adapter.commandline import invoke
from tests.adapter.tools.doctor.clean import clean
from tests.adapter.tools.doctor.faults.every import FAULTS
from tests.adapter.tools.explain.cluster import NO_PODS_NAMED, NOW, World
from tests.adapter.tools.idle.test_costs import COSTS
from tests.adapter.tools.idle.test_idle_command import TABLE
from tests.adapter.tools.replay.day import Day, SizedDay, manifest, waves, write
from tests.adapter.tools.replay.servedday import SYNC, ServedDay
from tests.adapter.tools.top import cluster as topcluster
from tests.docs.pages import ROOT, pages
from tests.docs.tables import gpupods, gpus, gpuworkloads

TEXTS: Final = ROOT / "tests" / "adapter" / "tools" / "explain" / "texts"
_BLOCK: Final = re.compile(
    r"<!-- output: (?P<name>[^\n]+) -->\n\n?```(?P<language>text|console)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_COMMAND: Final = re.compile(r"\$ (?:[^\n]*\\\n)*[^\n]*\n")
_CHECK: Final = re.compile(r"\S (GMA\d+) ")


class Shown(NamedTuple):
    """An output in a page."""

    page: str
    name: str
    text: str


def shown() -> list[Shown]:
    """Return every output that a page shows."""
    return [
        Shown(page.name, match["name"], _without_command(match))
        for page in pages()
        for match in _BLOCK.finditer(page.text)
    ]


def marked(text: str) -> int:
    """Return how many marks a page has, with or without a block."""
    return text.count("<!-- output: ")


def output(name: str) -> str:
    """Return an output.

    Raises:
        KeyError: no output has this name.
    """
    tool, _, what = name.partition(" ")
    if tool == "doctor":
        return doctor(what)
    text = TEXTS / f"{name}.txt"
    return text.read_text(encoding="utf-8") if text.exists() else OTHERS[name]()


def doctor(what: str) -> str:
    """Return the lines about one check that finds a fault."""
    identity, _, fault = what.partition("/")
    changes = {change.__name__: change for change in FAULTS[identity]}
    facts = clean()
    (changes[fault] if fault else FAULTS[identity][0])(facts)
    lines = DoctorReport(run(facts, (identity,)), "server").lines(Screen())
    return "".join(f"{line}\n" for line in _of_check(identity, lines))


def _of_check(identity: str, lines: list[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        check = _CHECK.match(line)
        inside = check[1] == identity if check else inside and bool(line)
        if inside:
            yield line


def _explain(world: World, *arguments: str) -> str:
    clock = SimpleNamespace(time=lambda: NOW)
    modules = (hpafacts, nodereport, podreport)
    with tempfile.TemporaryDirectory() as folder, api_server(Path(folder)) as (server, file):
        world.serve(server)
        patches = [mock.patch.object(module, "time", clock) for module in modules]
        for patch in patches:
            patch.start()
        try:
            return invoke("explain", *arguments, "--kubeconfig", str(file)).output
        finally:
            for patch in patches:
                patch.stop()


def unmeasured_pod() -> str:
    """Return the explanation of a pod whose exporter names no pod."""
    world = World().pod("llm-x2k", node="n3", why=NO_PODS_NAMED)
    return _explain(world, "pod", "llm-x2k")


def measured_pod() -> str:
    """Return the explanation of a pod with a value."""
    return _explain(World().pod("llm-7f9", "92"), "pod", "llm-7f9")


def replay() -> str:
    """Return the replay of a day whose load goes up and down every four hours."""
    given = ("--target", "45,60", "--limit", "66", "--allow", "1h", "--gpu-hour", "2.50")
    return _without_manifest(_replay(*given))


def replay_headroom() -> str:
    """Return the nodes of the same day with headroom; its HPA syncs each minute."""
    hpa = manifest("30")
    day = Day(waves, syncs=1440, period=60.0, hpa=hpa)
    return _section(_replay("--headroom", "20%,2,forecast,forecast:0.95", day=day), "Nodes, with")


def _section(report: str, title: str) -> str:
    """Return a section of a replay's report, up to its recommendation."""
    rest = report[report.index(title) :].splitlines()
    end = next((at for at, line in enumerate(rest) if line.startswith(("#", "no recomm"))), None)
    return "\n".join(rest[:end]).rstrip() + "\n"


def replay_recommend() -> str:
    """Return the recommendation for the HPAs of the same day, whose pods use little of a GPU."""
    day = SizedDay(waves, hpa=manifest("30"))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as prices:
        prices.write("prices: {H100: 2.8}\n")
        prices.flush()
        given = ("-n", "ml", "--allow", "30m", "--prices", prices.name)
        return _without_manifest(_replay(*given, command=("recommend",), day=day))


def replay_promise() -> str:
    """Return the recommendation of a promise, for servers that take ten requests at once."""
    given = ("--ttft", "1s", "--itl", "50ms")
    return _without_manifest(_replay_of(ServedDay(), SYNC, "recommend", "ml/llm", *given))


def _without_manifest(report: str) -> str:
    """Return a replay's report up to the manifest that it ends with."""
    return report[: report.index("\n# apply this manifest")]


def _replay(
    *arguments: str, command: tuple[str, ...] = ("hpa", "ml/llm"), day: Day | None = None
) -> str:
    recorded = day or Day(waves, hpa=manifest("30"))
    return _replay_of(recorded, recorded.period, *command, *arguments)


def _replay_of(day: Day | ServedDay, period: float, *arguments: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "cluster.gma", day)
        (folder / "hpa.yaml").write_text(yaml.safe_dump(day.hpa))
        files = ("--from", f"{folder}/cluster.gma", "-f", f"{folder}/hpa.yaml")
        return invoke("replay", *arguments, *files, "--sync-period", f"{period:g}s").output


def top_picture() -> str:
    """Return the live picture of the GPUs."""
    scene = Scene(topcluster.facts(), "chat", "https://10.0.0.1:6443")
    lines = Painter(Screen()).paint(TopState(view="gpus"), scene, 100, 12).lines
    return "".join(f"{''.join(part for part, _ in line).rstrip()}\n" for line in lines)


OTHERS: Final[dict[str, Callable[[], str]]] = {
    "pod without a value": unmeasured_pod,
    "pod with a value": measured_pod,
    "get gpus": gpus,
    "get gpupods": gpupods,
    "get gpuworkloads": gpuworkloads,
    "idle": TABLE.lstrip,
    "costs": COSTS.lstrip,
    "replay": replay,
    "replay headroom": replay_headroom,
    "replay recommend": replay_recommend,
    "replay promise": replay_promise,
    "top picture": top_picture,
}


def _without_command(match: re.Match[str]) -> str:
    text = match["text"]
    return _COMMAND.sub("", text, count=1) if match["language"] == "console" else text


def _written(match: re.Match[str]) -> str:
    old, new = _without_command(match), output(match["name"])
    return match[0].removesuffix(f"{old}```") + f"{new}```"


def main() -> None:
    """Write the outputs into the pages."""
    for page in pages():
        text = _BLOCK.sub(_written, page.text)
        if text != page.text:
            page.path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
