"""The site: each page is reached, and the words that people search for find the heading first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import pytest
import yaml

from docs.site.__main__ import CONFIGURATION, command
from tests.docs.pages import ROOT, Page, pages


class _Loader(yaml.SafeLoader):
    """Reads mkdocs' own tags as plain values."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
SITE: dict[str, Any] = yaml.load(CONFIGURATION.read_text(encoding="utf-8"), _Loader)
MOST = 50
"""Entries of the navigation."""


def entries(rows: list[Any]) -> Iterator[str]:
    for row in rows:
        for entry in row.values() if isinstance(row, dict) else [row]:
            if isinstance(entry, list):
                yield from entries(entry)
            else:
                yield entry


def test_the_navigation_is_short_and_leaves_out_only_what_an_index_lists() -> None:
    shown = list(entries(SITE["nav"]))
    assert len(shown) == len(set(shown)) <= MOST
    apart = [f"{row.strip('/')}*" for row in SITE["not_in_nav"].split()]
    for page in pages():
        if page.name == "CODE_OF_CONDUCT.md":
            continue
        assert page.name in shown or any(fnmatch(page.name, row) for row in apart), page.name


def words(text: str) -> set[str]:
    """The words of a text as the search divides them."""
    separator: str = SITE["plugins"][0]["search"]["separator"]
    return {word for word in re.split(separator, text.lower()) if word}


@pytest.mark.parametrize(
    ("asked", "page", "heading"),
    [
        ("exporter names no pod", "docs/reasons.md", "exporter_names_no_pod"),
        ("ambiguousselector", "docs/troubleshooting.md", "AmbiguousSelector"),
        ("crashloopbackoff", "docs/troubleshooting.md", "A container is in CrashLoopBackOff"),
        ("allocatable", "docs/troubleshooting.md", "GPUs are missing from a node's allocatable"),
        ("label selectors overlap", "docs/troubleshooting.md", "label selectors overlap"),
        ("argo out sync", "docs/troubleshooting.md", "Argo CD or Flux sets the size back"),
        ("kserve", "docs/recipes/kserve.md", "KServe"),
    ],
)
def test_what_people_ask_is_all_in_one_heading(asked: str, page: str, heading: str) -> None:
    """A word in a title counts a thousand times as much as one in a text."""
    headings = [
        (document.name, title)
        for document in pages()
        for title in re.findall(r"^#+ (.+)$", document.prose, re.MULTILINE)
        if words(asked) <= words(title)
    ]
    assert headings
    assert headings[0][0] == page
    assert heading in headings[0][1]
    assert len({name for name, _ in headings}) == 1


def test_a_link_to_a_page_apart_is_on_the_index() -> None:
    index = Page(ROOT / "docs" / "README.md").text
    assert all(f"({row.removeprefix('/docs/')}" in index for row in SITE["not_in_nav"].split())
    assert json.dumps(SITE["nav"]).count("docs/README.md") == 1


def test_a_release_is_the_latest_version_and_a_candidate_is_not() -> None:
    assert command("v1.2.3", serve=False)[-2:] == ["1.2.3", "latest"]
    assert command("1.3.0-rc1", serve=False)[-1] == "1.3.0-rc1"
    assert command("", serve=False)[2:4] == ["mkdocs", "build"]
