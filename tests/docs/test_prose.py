"""The lint for prose finds the project's unwanted words, and only in prose."""

from __future__ import annotations

import pytest

from docs import prose

BAD = {
    "mend": ("The log has the mend.", "mend"),
    "told": ("An HPA is told the mean.", "told"),
    "tells": ("The label tells the pod.", "tells"),
    "whoever": ("Whoever asks gets 401.", "Whoever"),
    "is no": ("A draining pod is no replica.", "is no"),
    "is no, over two lines": ("A draining pod is\nno replica.", "is no"),
    "are no": ("Zeros are no values.", "are no"),
    "shall": ("It shall hold.", "shall"),
    "away": ("While the store is away, values age.", "is away"),
    "at the most": ("At the most 5 s.", "At the most"),
    "unless set": ("The limit is 65 s unless set.", "unless set"),
    "of yours": ("A metric of yours is an entry.", "of yours"),
    "a contraction": ("It doesn't scale.", "doesn't"),
}
GOOD = (
    "There is no value.",
    "If there\nare no pods, the HPA holds.",
    "The pod is no longer ready.",
    "Amend the rule, and recommend it.",
    "The key is `mend`, and ``is no`` is code.",
    "The log is told nothing: prose: ignore",
    "The HPA's selector",
    "Take the file away from the folder.",
)


@pytest.mark.parametrize(("text", "word"), BAD.values(), ids=BAD.keys())
def test_an_unwanted_word_is_found_with_its_line_and_a_hint(text: str, word: str) -> None:
    (finding,) = prose.findings("page.md", f"A first line.\n{text}\n")
    assert (finding.path, finding.line, finding.word) == ("page.md", 2, word)
    assert finding.hint


@pytest.mark.parametrize("text", GOOD)
def test_good_prose_passes(text: str) -> None:
    assert prose.findings("page.md", text) == []


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def mend(told):\n    return told.shall\n", []),
        ('"""Mend it."""\n', [1]),
        ("x = 1  # whoever reads\n", [1]),
        ('x = ("it is "\n     "no value")\n', [1]),
        ("# it is\n# no value\n", [1]),
        ("def test_a_log_that_is_told():\n    pass\n", [1]),
        ('x = ["is", "no"]\n', []),
        ('x = f"{told} and {mend()} pods"\n', []),
        ('x = f"a\\n{b} told"\n', [1]),
        ('"""One.\n\n``told``\nshall.\n"""\n', [4]),
    ],
)
def test_of_python_only_comments_and_strings_count(source: str, lines: list[int]) -> None:
    assert [finding.line for finding in prose.findings("module.py", source)] == lines


def test_a_finding_names_the_place_the_word_and_what_to_write() -> None:
    (finding,) = prose.findings("page.md", "Values anew.\n")
    assert str(finding) == "page.md:1: anew: again"


def test_pages_charts_and_sources_are_checked() -> None:
    assert {"README.md", "docs/keda.md", "charts/generate/dashboard/hpas.py"} <= set(
        prose.checked()
    )
    assert any(path.endswith("_helpers.tpl") for path in prose.checked())
