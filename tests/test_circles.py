"""No modules import each other in a circle, at run time or for types."""

from __future__ import annotations

from collections.abc import Iterator

import grimp


def circles(graph: grimp.ImportGraph) -> Iterator[tuple[str, ...]]:
    """Yield each group of modules in which every one imports every other, directly or not."""
    below = {
        module: graph.find_upstream_modules(module) | {module}
        for module in graph.modules
        if graph.find_modules_directly_imported_by(module)
    }
    seen: set[str] = set()
    for module in sorted(below):
        group = {other for other in below[module] if module in below.get(other, ())}
        if len(group) > 1 and not seen & group:
            yield tuple(sorted(group))
            seen |= group


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert set(circles(grimp.build_graph("adapter", "apiservice"))) == set()


def test_a_circle_is_found() -> None:
    graph = grimp.ImportGraph()
    for importer, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        graph.add_import(importer=importer, imported=imported)
    assert list(circles(graph)) == [("a", "b", "c")]
