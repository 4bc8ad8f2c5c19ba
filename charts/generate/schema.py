"""Writes the parts of values.schema.json that come from elsewhere: the adapter's settings, and the
names of other charts' values.

With the settings, Helm rejects a misspelt one by name before it replaces a pod. The names of other
charts are allowed by the schema, so that a template can answer with the name of this chart. The
rest of the file does not change, except for its line breaks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from adapter.config.settings import Settings

_CHART = Path(__file__).parents[1] / "gpu-metrics-adapter"
FILE = _CHART / "values.schema.json"
OTHER_CHARTS = _CHART / "files" / "othercharts.yaml"
_REFUSED = "A value of other charts; here: "
_WIDTH = 100
_LISTENERS = ("ServerSettings", "KedaSettings", "NodepoolSettings")
_LEFT_OUT = frozenset({"title", "default", "description", "writeOnly"})
# Bounds of a number that may also be written as text (a duration), in pydantic's schema.
_BOUNDS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def page() -> str:
    """The whole file, with the settings of the code."""
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    settings = Settings.model_json_schema()
    models = {name: _plain_schema(row) for name, row in sorted(settings["$defs"].items())}
    for name in _LISTENERS:
        # The pods do not run as root, so they cannot listen on a lower port.
        models[name]["properties"]["port"]["minimum"] = 1024
    description = {"description": "The adapter's settings, written by `make docs`."}
    schema["properties"]["config"] = description | _plain_schema({**settings, "$defs": {}})
    _refuse(schema)
    definitions = {
        name: row for name, row in schema["definitions"].items() if not name[0].isupper()
    }
    schema["definitions"] = definitions | models
    return _text(schema, 0) + "\n"


def _refuse(schema: dict[str, Any]) -> None:
    """Replace the names of other charts' values."""
    _forget(schema["properties"])
    for path, answer in yaml.safe_load(OTHER_CHARTS.read_text(encoding="utf-8")).items():
        *sections, name = path.split(".")
        place = schema
        for section in sections:
            place = place["properties"][section]
        if name in place["properties"]:
            raise ValueError(f"{OTHER_CHARTS}: {path} is a value of this chart")
        place["properties"][name] = {"description": _REFUSED + answer, "deprecated": True}


def _forget(properties: dict[str, Any]) -> None:
    for name, row in list(properties.items()):
        if row.get("description", "").startswith(_REFUSED):
            del properties[name]
        else:
            _forget(row.get("properties", {}))


def _plain_schema(row: Any) -> Any:
    """The same in draft 7, without documentation."""
    if isinstance(row, list):
        return [_plain_schema(part) for part in row]
    if not isinstance(row, dict):
        return row
    if "$ref" in row:
        return {"$ref": row["$ref"].replace("#/$defs/", "#/definitions/")}
    if row.keys() & _BOUNDS.keys():
        bounds = {_BOUNDS.get(key, key): row[key] for key in row if key not in _LEFT_OUT}
        return {"anyOf": [bounds, {"$ref": "#/definitions/durationText"}]}
    made = {}
    for key, value in row.items():
        if key == "properties":
            made[key] = {name: _plain_schema(part) for name, part in value.items()}
        elif key not in _LEFT_OUT and key != "$defs":
            made[key] = _plain_schema(value)
    return made


def _text(value: Any, depth: int, taken: int = 0) -> str:
    """JSON, on one line if it fits. ``taken`` counts the characters before it on the line."""
    line = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or depth * 2 + taken + len(line) < _WIDTH:
        return line
    indent, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, list):
        rows = [_text(part, depth + 1) for part in value]
    else:
        rows = [
            f"{json.dumps(key)}: {_text(part, depth + 1, len(key) + 5)}"
            for key, part in value.items()
        ]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    inner = ",\n".join(indent + row for row in rows)
    return f"{opening}\n{inner}\n{end}{closing}"
