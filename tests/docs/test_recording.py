"""The recording of the README is a picture: small, and without anything but shapes and styles."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from rich.text import Text

from docs.recording import RECORDING, ROWS, Chunk, pictures, svg

SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "title", "style", "rect", "defs", "g", "use", "text"}


def test_the_pictures_of_the_readme_are_small() -> None:
    assert RECORDING.stat().st_size + RECORDING.with_name("ui.png").stat().st_size < 1_000_000


def test_the_recording_has_whole_characters_and_nothing_from_elsewhere() -> None:
    text = RECORDING.read_text(encoding="utf-8")
    assert "\ufffd" not in text
    assert "url(" not in text
    elements = list(ET.fromstring(text).iter())
    assert {element.tag.removeprefix(SVG) for element in elements} == DRAWN
    names = {f"#{element.get('id')}" for element in elements if element.get("id")}
    assert {element.get("href") for element in elements if element.tag == f"{SVG}use"} <= names
    assert not [name for element in elements for name in element.attrib if name.startswith("on")]


def test_it_shows_the_story_and_ends_with_the_outcomes() -> None:
    root = ET.parse(RECORDING).getroot()
    shown = "".join(element.text or "" for element in root.iter(f"{SVG}text"))
    for part in ("scaled on its queue", "exporter dead", "Missing means hold", "three signals"):
        assert part in shown


def test_a_line_of_several_pictures_is_written_once() -> None:
    frame = "\x1b[H" + "\r\n".join(f"\x1b[1;32mline {row}\x1b[0m & <more>" for row in range(ROWS))
    written = f"{frame}{frame}\x1b[?1049lthe end █".encode()
    # The terminal may cut a character in two.
    frames = pictures([Chunk(0.0, written[:-1]), Chunk(0.1, written[-1:])])
    picture = svg(frames)
    assert picture.count("line 7<") == 1
    assert "&amp; &lt;more&gt;" in picture
    assert frames[-1][-1].plain == "the end █"
    assert isinstance(frames[0][0], Text)
    ET.fromstring(picture)
