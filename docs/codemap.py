"""The page that leads to the module for a fact: docs/code-map.md, written from the code.

Docstrings give the text, the imports give the arrows, so neither can drift.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[1]
TOPS: Final = ("adapter", "apiservice")
FACTS: Final[Mapping[str, str]] = {
    "which resource is a GPU, and how many devices a request means": "cluster/gpuresources.py",
    "fields, sources and units of a vendor's exporter (one module per vendor)": "catalog/nvidia.py",
    "metrics that have one meaning for all vendors": "catalog/neutral.py",
    "what a new inference server declares": "catalog/engines.py",
    "labels that name a pod": "exposition/podspellings.py",
    "which device a sample is about": "devices/identity.py",
    "whether a number is usable: sentinel, range": "devices/validity.py",
    "whether a field is usable on a MIG instance": "catalog/field.py",
    "a 0 that other fields contradict": "catalog/contradictions.py",
    "a part of a board's numbers that nobody accounts for": "devices/remainder.py",
    "when only the numbers of a page are taken in": "devices/pageshape.py",
    "whether a pod that a sample names may have the device": "attribution/credibility.py",
    "how pods share a device's value": "attribution/sharing.py",
    "the value of a pod, and why it has none": "attribution/values.py",
    "reasons without a value, with their fixes": "attribution/reasons.py",
    "which exporters are scraped": "scrape/selection.py",
    "paths and answers of the metrics APIs": "cluster/metricsapi.py",
    "the age limit of values": "devices/options.py",
    "the HPA controller's decision": "hpa/decision.py",
    "the bytes of an answer": "wire/metricvalues.py",
    "who may ask for what": "auth/authorization.py",
    "settings and their defaults (one module per section)": "settings/source.py",
    "how many nodes are ordered": "plan/plan.py",
    "CapacityBuffers or placeholder pods": "methods/choice.py",
    "the state of an HPA: healthy, held, overloaded, stuck": "judgement/judge.py",
    "flaws of an HPA's manifest": "judgement/flaws.py",
    "why a ScaledObject has made no HPA": "keda/trouble.py",
    "why wanted pods do not exist or do not serve": "causes/target.py",
    "what a latency promise means, and how a wrong one is refused": "catalog/promise.py",
    "the load at which a promise breaks": "promises/capacity.py",
    "how near a pod is to it": "promises/ratio.py",
    "whether a target fits its metric, and which way a metric moves": "catalog/targetfit.py",
    "kinds whose replica is a group of pods, and which an HPA reads": "cluster/podgroups.py",
    "what an exporter's fields say about the health of a device": "catalog/health.py",
    "what manages an object, and where a change of it lasts": "cluster/managers.py",
    "whose turn it is where requests wait": "runtime/shares.py",
}
"""What a reader looks for -> the end of the path of the module that alone decides it."""


def page() -> str:
    """Return the page as Markdown."""
    graph = grimp.build_graph(*TOPS)
    lines = [
        "# Code map",
        "",
        "<!-- written by `make docs` from docstrings and imports -->",
        "",
        "Each package with what it contains. An arrow is an import that does not follow from",
        "others.",
        "[architecture.md](architecture.md) explains how the parts work together.",
        "`make lint` checks the layers; their order is in `pyproject.toml`.",
        "",
        *_facts(),
    ]
    for top in TOPS:
        lines += _drawing(graph, top)
        lines += _packages_of(ROOT / top)
    return "\n".join(lines).rstrip() + "\n"


def _facts() -> Iterator[str]:
    """Yield the list that leads from a fact to the module that alone decides it.

    Raises:
        LookupError: no module, or more than one, ends as the list says.
    """
    yield "## Where a fact is decided"
    yield ""
    for fact, ending in FACTS.items():
        yield f"- {fact}: {_link(_module(ending))}"
    yield ""


def _module(ending: str) -> Path:
    places = [path for top in TOPS for path in (ROOT / top).rglob(ending) if path.is_file()]
    if len(places) != 1:
        raise LookupError(f"{len(places)} modules end with {ending}")
    return places[0]


def _link(file: Path) -> str:
    path = file.relative_to(ROOT)
    return f"[{path.with_suffix('')}](../{path})"


def _drawing(graph: grimp.ImportGraph, top: str) -> Iterator[str]:
    """Packages as boxes, imports as arrows; what follows from other arrows is left out."""
    parts = sorted(graph.find_children(top) - {f"{top}.__main__"})
    imports = {
        part: {
            other
            for other in parts
            if other != part
            and graph.direct_import_exists(importer=part, imported=other, as_packages=True)
        }
        for part in parts
    }
    yield f"## Packages of {top}"
    yield ""
    yield "```mermaid"
    yield "graph TD"
    for part in parts:
        reachable = {far for near in imports[part] for far in _below(near, imports)}
        for other in sorted(imports[part] - reachable):
            yield f"  {_name(part)}-->{_name(other)}"
    yield "```"
    yield ""


def _below(part: str, imports: dict[str, set[str]]) -> set[str]:
    """What a part imports, directly or through others."""
    below: set[str] = set()
    ahead = list(imports[part])
    while ahead:
        near = ahead.pop()
        if near not in below:
            below.add(near)
            ahead += imports[near]
    return below


def _name(module: str) -> str:
    return module.rpartition(".")[2]


def _packages_of(top: Path) -> Iterator[str]:
    """Yield a list for a top, and one for each wing: a package whose parts are all packages."""
    packages = [path for path in sorted(top.iterdir()) if (path / "__init__.py").is_file()]
    wings = [path for path in packages if _is_wing(path)]
    yield from _list(path for path in packages if path not in wings)
    for wing in wings:
        yield f"### {'.'.join(wing.relative_to(ROOT).parts)}"
        yield ""
        yield _summary(wing / "__init__.py")
        yield ""
        yield from _list(path for path in sorted(wing.iterdir()) if path.is_dir())


def _is_wing(package: Path) -> bool:
    modules = [path for path in package.glob("*.py") if path.stem != "__init__"]
    return not modules and any(path.is_dir() for path in package.iterdir())


def _list(packages: Iterable[Path]) -> Iterator[str]:
    for package in packages:
        for file in sorted(package.rglob("__init__.py")):
            folder = file.parent.relative_to(ROOT)
            yield f"- [{folder}](../{folder}): {_summary(file)}"
    yield ""


def _summary(file: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.replace("``", "`").removesuffix("::")
