"""Which fields other projects' kinds have, for the documents that show such objects.

Each file in the folder ``fieldpaths`` lists the paths of one kind, from its
CustomResourceDefinition; the first line says which. ``[]`` is an item of a list, ``*`` stands
for what the user names.

To write one: ``python -m tests.docs.fieldpaths CRD.yaml "SOURCE VERSION" NAME.txt [PREFIX ...]``.
Of a large kind, prefixes select the part that documents show.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_FOLDER: Final = Path(__file__).with_name("fieldpaths")
_ALWAYS: Final = ("apiVersion", "kind", "metadata.*")


@functools.cache
def listed() -> dict[tuple[str, str], frozenset[str]]:
    """(apiVersion, kind) -> the paths of its fields."""
    kinds = {}
    for file in sorted(_FOLDER.glob("*.txt")):
        head, *paths = file.read_text(encoding="utf-8").splitlines()
        version, kind = head.removeprefix("# ").partition(",")[0].split()
        kinds[version, kind] = frozenset((*_ALWAYS, *paths))
    return kinds


def unknown(obj: Mapping[str, Any]) -> list[str]:
    """Return the paths of an object that its kind has not."""
    known = listed()[obj["apiVersion"], obj["kind"]]
    return [path for path in _used(obj, "") if not _has(known, path)]


def _has(known: frozenset[str], path: str) -> bool:
    names = path.split(".")
    above = (".".join(names[:length]) for length in range(1, len(names)))
    return path in known or any(f"{prefix}.*" in known for prefix in above)


def _used(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _used(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _used(inner, f"{path}[]")
    else:
        yield path


def _paths(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    fields = schema.get("properties", {})
    for name, field in fields.items():
        yield from _paths(field, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from _paths(schema["items"], f"{path}[]")
    elif schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema:
        yield f"{path}.*"
    elif not fields:
        yield path


def main() -> None:
    """Write the list of one kind."""
    definition, source, name, *prefixes = sys.argv[1:]
    spec = yaml.load(Path(definition).read_text(encoding="utf-8"), yaml.CSafeLoader)["spec"]
    served = next(row for row in spec["versions"] if row["storage"])
    schema = served["schema"]["openAPIV3Schema"]["properties"]["spec"]
    head = f"# {spec['group']}/{served['name']} {spec['names']['kind']}, {source}"
    wanted = tuple(prefixes) or ("spec",)
    rows = sorted({row for row in _paths(schema, "spec") if row.startswith(wanted)})
    (_FOLDER / name).write_text("".join(f"{row}\n" for row in (head, *rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
