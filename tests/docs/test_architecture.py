"""docs/architecture.md and its picture name modules, ports and pages that exist."""

from __future__ import annotations

import importlib.util
import pkgutil
import re
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest
from click import Group

from adapter.__main__ import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
PICTURE = ET.parse(DOCS / "architecture.svg").getroot()
WINGS = [
    f"adapter.{module.name}"
    for module in pkgutil.iter_modules(import_module("adapter").__path__)
    if module.ispkg
]
SVG = "{http://www.w3.org/2000/svg}"
TEXTS = ["".join(text.itertext()) for text in PICTURE.iter(f"{SVG}text")]
NAMED = sorted(set(re.findall(r"`((?:adapter|apiservice)(?:\.\w+)*)`", PAGE)))
DRAWN = [
    text
    for line in PICTURE.iter(f"{SVG}text")
    if line.get("class", "").startswith("mono")
    for text in "".join(line.itertext()).split(" · ")
]


def exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def full_names(name: str) -> list[str]:
    """Return the modules that a name of the picture may mean: with a dot, of any wing."""
    if not name.startswith("."):
        return [name]
    return [f"{wing}{name}" for wing in ("adapter", *WINGS)]


@pytest.mark.parametrize("module", NAMED)
def test_a_module_that_is_named_exists(module: str) -> None:
    assert exists(module)


@pytest.mark.parametrize("name", DRAWN)
def test_a_module_that_is_drawn_exists(name: str) -> None:
    """A name that begins with a dot is of the package that its box is of."""
    assert any(map(exists, full_names(name)))


def test_the_hops_of_the_picture_are_those_of_the_page() -> None:
    """A hop's modules in the picture stand in the table's row of the same number."""
    rows = dict(re.findall(r"^\| (\d) \| .*? \| (.*) \|$", PAGE, re.MULTILINE))
    drawn = {text[0]: TEXTS[i + 1] for i, text in enumerate(TEXTS) if re.match(r"\d  ", text)}
    assert list(rows) == list(drawn)
    for number, modules in drawn.items():
        for name in modules.split(" · "):
            assert any(f"`{full}`" in rows[number] for full in full_names(name))


def test_every_port_is_a_protocol_where_the_page_says() -> None:
    lines = PAGE.partition("| Port |")[2].partition("\n\n")[0].splitlines()[2:]
    assert lines
    for line in lines:
        _, ports, where, _, _ = line.split("|")
        names, modules = (re.findall(r"`([\w.]+)`", cell) for cell in (ports, where))
        homes = modules * len(names) if len(modules) == 1 else modules
        for name, module in zip(names, homes, strict=True):
            assert getattr(getattr(import_module(module), name), "_is_protocol", False), name


def test_every_form_of_a_value_is_a_class_of_its_module() -> None:
    lines = PAGE.partition("| Form |")[2].partition("\n\n")[0].splitlines()[2:]
    assert lines
    for line in lines:
        name, module = re.findall(r"`([\w.]+)`", line)
        assert isinstance(getattr(import_module(module), name), type), name


def test_every_process_is_a_command() -> None:
    table = PAGE.partition("| Process |")[2].partition("\n\n")[0]
    assert isinstance(main, Group)
    named = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert named
    assert set(named) <= set(main.commands)


def test_the_picture_shows_itself_in_light_and_dark() -> None:
    style = next(PICTURE.iter(f"{SVG}style")).text or ""
    light, _, dark = style.partition("@media (prefers-color-scheme: dark)")
    for name in ("ground", "process", "hop", "plan", "other", "text"):
        assert name in light
        assert name in dark
