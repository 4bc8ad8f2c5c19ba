from __future__ import annotations

from typing import Any

import pytest

from apiservice.labels.manifest import selector_text


@pytest.mark.parametrize(
    ("selector", "query"),
    [
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        (
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["y", "x"]},
                    {"key": "b", "operator": "NotIn", "values": ["z"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"},
                ]
            },
            "a in (x,y),b notin (z),c,!d",
        ),
        (None, ""),
    ],
)
def test_a_selector_becomes_a_query_text(selector: dict[str, Any], query: str) -> None:
    assert selector_text(selector) == query


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="Near"):
        selector_text({"matchExpressions": [{"key": "a", "operator": "Near"}]})
