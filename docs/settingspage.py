"""The page of the settings: docs/settings.md, written from their declarations."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from adapter.config.settings import Settings
from adapter.config.settings.types import ADVANCED
from docs.paragraphs import wrapped


def page() -> str:
    """Every key with its default, its variable and its description, section by section."""
    lines = [
        "# Settings",
        "",
        "<!-- written by `make docs` from adapter/config/settings -->",
        "",
        *wrapped(
            """
            Settings come from these sources, in this order of precedence: command-line flags,
            environment variables, the YAML file given with `--config`, the defaults in brackets. A
            key without a default is not set, or empty. Durations are seconds or Go-style text
            (`5s`, `1m30s`). The variable of a key is `GMA_`, the section and the key in capital
            letters, joined by `__`: `source.scrape.timeout` is `GMA_SOURCE__SCRAPE__TIMEOUT`, with
            lists and mappings as JSON.

            A bad key, variable or value is an error that names the key and the fix. At the start,
            the process exits with it. Later, it logs it and keeps the previous configuration. Files
            that settings name are read again when they change.

            Advanced settings are for unusual environments or sizes, and for bounds. Change them
            only if you know why the default does not fit.
            """
        ),
    ]
    lines += _section(Settings, (), {})
    return "\n".join(lines).rstrip() + "\n"


Told = dict[tuple[str, str, str], str]
"""Name, default and text of a key -> the section that has them first."""
_SHORT: Final = 60
"""Characters of a text that is not worth a reference."""


def _section(model: type[BaseModel], path: tuple[str, ...], told: Told) -> Iterator[str]:
    plain = {name: field for name, field in model.model_fields.items() if not _model(field)}
    common = {name: field for name, field in plain.items() if ADVANCED not in field.metadata}
    advanced = {name: field for name, field in plain.items() if ADVANCED in field.metadata}
    if path:
        yield f"## `{'.'.join(path)}`"
        yield ""
        yield _prose(model)
        yield ""
    if common:
        yield from _keys(model, common, ".".join(path), told)
    for rows in (_rows(field) for field in common.values()):
        if rows is not None:
            place = ".".join((*path, _name(model, rows)))
            yield f"Keys of an entry in `{place}`: {_prose(rows)}"
            yield ""
            yield from _keys(rows, rows.model_fields, place, told)
    if advanced:
        yield f"### Advanced: `{'.'.join(path)}`"
        yield ""
        yield from _keys(model, advanced, ".".join(path), told)
    for name, field in model.model_fields.items():
        section = _model(field)
        if section:
            yield from _section(section, (*path, name), told)


def _keys(
    model: type[BaseModel], fields: Mapping[str, FieldInfo], place: str, told: Told
) -> Iterator[str]:
    """One item for each key. Keys that another section has with the same text refer to it."""
    texts = _texts(model)
    same: dict[str, list[str]] = {}
    for name, field in fields.items():
        default = _default(field)
        first = told.setdefault((name, default, texts[name]), place)
        if first != place and len(texts[name]) > _SHORT:
            same.setdefault(first, []).append(f"`{name}`")
            continue
        yield f"- `{name}`{f' ({default})' if default else ''}: {texts[name]}"
    for first, names in same.items():
        yield f"- {', '.join(names)}: as in `{first}`."
    yield ""


def _model(field: FieldInfo) -> type[BaseModel] | None:
    annotation: Any = field.annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _rows(field: FieldInfo) -> type[BaseModel] | None:
    first: Any = next(iter(get_args(field.annotation)), None)
    return first if isinstance(first, type) and issubclass(first, BaseModel) else None


def _name(model: type[BaseModel], rows: type[BaseModel]) -> str:
    return next(name for name, field in model.model_fields.items() if _rows(field) is rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{shown}`" if shown and value != {} else ""


def _prose(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__[: model.__mro__.index(BaseModel)]):
        tree = ast.parse(inspect.getsource(base))
        definition = next(node for node in tree.body if isinstance(node, ast.ClassDef))
        for field, below in pairwise(definition.body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = " ".join(text.split()).replace("``", "`")
    return texts
