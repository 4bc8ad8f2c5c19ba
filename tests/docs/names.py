"""Names that documents write in backticks and that have to exist."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

import yaml
from pydantic import BaseModel

from adapter.config.process.environment import PREFIX
from adapter.config.settings import Settings
from adapter.pipeline.catalog import Catalog
from tests.docs.pages import ROOT, Page

VALUES = ROOT / "charts" / "gpu-metrics-adapter" / "values.yaml"
_DOTTED = re.compile(r"[a-zA-Z_]\w*(?:\.[a-zA-Z_]\w*)+")
_METRIC = re.compile(r"(?:gpu|inference)_[a-z_]+|DCGM_FI_\w+", re.ASCII)
_FOREIGN_GROUPS = (".k8s.io", ".sh", ".io", ".com", ".svc", ".yaml", ".md", ".py", ".json", ".crt")
_OTHERS_TOO = frozenset({"image", "resources"})
"""Sections of values.yaml that half of all configuration files have."""
# A histogram's own, and the counters that Prometheus' client makes of it.
_SUFFIX = re.compile(r"_(?:bucket|sum|count|created)$")


def unknown(page: Page) -> list[str]:
    """Names of the page that nothing has."""
    return [code for code in page.codes if not _known(code, page)]


def _known(code: str, page: Page) -> bool:
    name = code.partition("{")[0].partition(":")[0].partition("=")[0].strip()
    if name.startswith(PREFIX) and not name.endswith("_"):
        return name in _variables()
    if name.startswith("gma_"):
        return _SUFFIX.sub("", name) in _self_metrics()
    if _METRIC.fullmatch(name) and "*" not in code:
        return name in _metrics() | _own(page) | _keys() | _LABELS
    if _DOTTED.fullmatch(name) and not name.endswith(_FOREIGN_GROUPS):
        first = name.partition(".")[0]
        return first not in _sections() or name in _keys()
    return True


_LABELS: Final = frozenset({"gpu_uuid"})
"""Labels of exporters and servers that are named as metrics are."""


def own_metrics(page: Page) -> list[Mapping[str, Any]]:
    """Rows of `metrics` in the settings and values that a page shows."""
    rows: list[Mapping[str, Any]] = []
    for block in page.blocks:
        if block.language == "yaml" and block.text.startswith(("# config.yaml", "# values.yaml")):
            content = yaml.safe_load(block.text) or {}
            rows += content.get("metrics") or (content.get("config") or {}).get("metrics") or ()
    return rows


def _own(page: Page) -> set[str]:
    """Names and series of rows that the page itself shows."""
    rows = own_metrics(page)
    return {str(row[key]) for row in rows for key in ("name", "series") if key in row}


@functools.cache
def _metrics() -> frozenset[str]:
    catalog = Catalog()
    written = {name for field in catalog.fields.values() for name, _, _ in field.names}
    return frozenset({*catalog.metrics, *written})


@functools.cache
def _self_metrics() -> frozenset[str]:
    sources = (path for top in ("adapter", "apiservice") for path in (ROOT / top).rglob("*.py"))
    return frozenset(
        name
        for path in sources
        for name in re.findall(r"\bgma_\w+", path.read_text(encoding="utf-8"))
    )


@functools.cache
def _variables() -> frozenset[str]:
    plain = (key for key in _settings(Settings, ()) if not key.startswith("metrics."))
    return frozenset({"GMA_CONFIG", *(PREFIX + "__".join(key.split(".")).upper() for key in plain)})


@functools.cache
def _keys() -> frozenset[str]:
    """Dotted keys of settings and values, and every end of them that begins with a section."""
    values = yaml.safe_load(VALUES.read_text(encoding="utf-8"))
    whole = [*_settings(Settings, ()), *_given(values, ())]
    whole += [f"config.{key}" for key in _settings(Settings, ())]
    return frozenset(
        ".".join(parts[at:])
        for parts in (key.split(".") for key in whole)
        for at in range(len(parts))
    )


@functools.cache
def _sections() -> frozenset[str]:
    return frozenset(part for key in _keys() for part in key.split(".")[:-1]) - _OTHERS_TOO


def _settings(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        here = (*path, name)
        yield ".".join(here)
        for inner in _models(field.annotation):
            yield from _settings(inner, here)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, types.GenericAlias) or get_args(annotation):
        for argument in get_args(annotation):
            yield from _models(argument)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


def _given(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    for name, value in values.items():
        here = (*path, str(name))
        yield ".".join(here)
        if isinstance(value, Mapping):
            yield from _given(value, here)
