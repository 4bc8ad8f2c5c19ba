"""One GET of an OpenAPI document, in both dialects."""

from __future__ import annotations

from typing import Any, NamedTuple

from apiservice.documents.openapi_schemas import Json

Query = tuple[str, str, str]
"""A query parameter: name, type, description."""


class Operation(NamedTuple):
    """What a path answers to GET."""

    path: str
    """A template: ``/apis/…/{name}``."""
    answer: str
    """The definition of the answer."""
    entry: Json
    """What both dialects say alike."""
    queries: tuple[Query, ...]

    def swagger(self) -> Json:
        """Return the path item of Swagger 2.0."""
        schema = {"$ref": f"#/definitions/{self.answer}"}
        operation = self.entry | {
            "produces": ["application/json"],
            "schemes": ["https"],
            "responses": {
                "200": {"description": "OK", "schema": schema},
                "401": {"description": "Unauthorized"},
            },
        }
        parameters = [
            {**place, "type": kind, "uniqueItems": True} for place, kind in self._parameters()
        ]
        return {"get": operation, "parameters": parameters}

    def openapi3(self) -> Json:
        """Return the path item of OpenAPI 3.0."""
        schema = {"$ref": f"#/components/schemas/{self.answer}"}
        content = {"application/json": {"schema": schema}}
        operation = self.entry | {
            "responses": {
                "200": {"description": "OK", "content": content},
                "401": {"description": "Unauthorized"},
            }
        }
        parameters = [
            {**place, "schema": {"type": kind, "uniqueItems": True}}
            for place, kind in self._parameters()
        ]
        return {"get": operation, "parameters": parameters}

    def _parameters(self) -> list[tuple[dict[str, Any], str]]:
        """Return every parameter: (name, place and description; type)."""
        variables = [part[1:-1] for part in self.path.split("/") if part.startswith("{")]
        parameters: list[tuple[dict[str, Any], str]] = [
            ({"name": name, "in": "path", "required": True, "description": f"the {name}"}, "string")
            for name in variables
        ]
        for name, kind, words in self.queries:
            parameters.append(({"name": name, "in": "query", "description": words}, kind))
        return parameters
