"""Images of servers in the documents are not older than the pages that test the catalogue."""

from __future__ import annotations

import re

import pytest

from adapter.pipeline.catalog.serverkinds import kind_of_image
from tests.docs.pages import EXAMPLES, ROOT, pages

SERVERS = ROOT / "tests" / "adapter" / "pages" / "own" / "servers"
_IMAGE = re.compile(r"image: ([\w./-]+:v?(\d+(?:\.\d+)*)[\w.-]*)")


def newest(title: str) -> tuple[int, ...]:
    """The newest release of a server that the table of a page names; empty without one."""
    pattern = re.compile(rf"^shape: {re.escape(title)} (\d+(?:\.\d+)*)", re.MULTILINE)
    tables = "".join(path.read_text(encoding="utf-8") for path in sorted(SERVERS.glob("*.yaml")))
    return max(map(numbers, pattern.findall(tables)), default=())


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def shown() -> list[tuple[str, str, str]]:
    """(file, image, version) of each image with a tag."""
    texts = {page.name: page.text for page in pages()}
    texts |= {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.yaml")}
    return [(name, *image) for name, text in texts.items() for image in _IMAGE.findall(text)]


SHOWN = [row for row in shown() if kind_of_image(row[1])]


@pytest.mark.parametrize(("file", "image", "version"), SHOWN)
def test_a_server_is_as_new_as_the_page_of_it(file: str, image: str, version: str) -> None:
    kind = kind_of_image(image)
    assert kind
    assert numbers(version) >= newest(kind.title), f"{file} shows {image}"


def test_the_releases_of_pages_are_found() -> None:
    assert len(SHOWN) >= 2
    assert newest("vLLM") >= (0, 12)
    assert newest("text-embeddings-inference") >= (1, 8)
    assert newest("no server") == ()
