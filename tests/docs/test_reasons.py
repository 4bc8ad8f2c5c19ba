"""Every reason that the code writes is one that the documents explain."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapter.serve.reasons import ABSENCES, FAILURES, REFUSALS, REJECTS, UNSCRAPABLE
from tests.docs.pages import ROOT


def literals(module: Path, called: str, subscripted: str) -> Iterator[str]:
    """Reasons written in place: the first argument of a call, or a key of a counter."""
    source = module.read_text(encoding="utf-8")
    if called not in source and subscripted not in source:
        return
    for found in ast.walk(ast.parse(source)):
        text: Any = None
        if isinstance(found, ast.Call) and ast.unparse(found.func) == called and found.args:
            text = found.args[0]
        if isinstance(found, ast.Subscript) and ast.unparse(found.value).endswith(subscripted):
            text = found.slice
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            yield text.value


@pytest.mark.parametrize(
    ("folder", "called", "subscripted", "known"),
    [
        ("adapter/sources", "SourceError", ".failures", FAILURES),
        ("adapter", "Absence", ".absent", ABSENCES),
        ("adapter/sources", "Unscrapable", ".unscrapable", UNSCRAPABLE),
        ("adapter", "rejects.count", ".rejects", REJECTS),
        (
            "apiservice",
            "self._cut",
            ".refused",
            (*REFUSALS, "certificate", "token", "token-review"),
        ),
    ],
)
def test_every_reason_in_the_code_is_known(
    folder: str, called: str, subscripted: str, known: tuple[str, ...]
) -> None:
    modules = [path for path in (ROOT / folder).rglob("*.py") if "demo" not in path.parts]
    found = {text for path in modules for text in literals(path, called, subscripted)}
    # KEDA's are the scaler's own and are not counted.
    assert found - {"gone", "no_gpu"} <= set(known)
    assert known
