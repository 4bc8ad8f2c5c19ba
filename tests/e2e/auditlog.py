"""What accounts have asked of the API server, by its own audit log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from tests.e2e.cluster import Object


class Right(NamedTuple):
    """A verb on a resource; a path that is no resource has no group."""

    verb: str
    group: str
    resource: str


class Asked(NamedTuple):
    """One request."""

    right: Right
    name: str
    """Of the object; empty for a collection."""
    allowed: bool
    code: int
    """The answer's status."""


def asked(log: Path, user: str) -> list[Asked]:
    """Return what a user has asked so far, in order.

    A patch that made its object needs the right to create it too, and stands here as both.
    """
    return [row for event in _events(log, user) for row in _asked(event)]


def granted(roles: Iterable[Object]) -> set[Right]:
    """Return what Roles and ClusterRoles allow."""
    return {
        Right(verb, group, resource)
        for role in roles
        for rule in role.get("rules") or ()
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", ())
        for resource in rule.get("resources", ())
    }


def _events(log: Path, user: str) -> Iterator[Object]:
    with log.open() as lines:
        for line in lines:
            # The last may be half written.
            if line.endswith("\n") and (row := json.loads(line))["user"]["username"] == user:
                yield row


def _asked(row: Object) -> Iterator[Asked]:
    """Nothing for a path that is no resource: discovery is everybody's."""
    where = row.get("objectRef")
    if where is None or "resource" not in where:
        return
    resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
    allowed = row["annotations"].get("authorization.k8s.io/decision") == "allow"
    code = row["responseStatus"]["code"]
    made = row["verb"] == "patch" and code == HTTPStatus.CREATED
    for verb in (row["verb"], "create") if made else (row["verb"],):
        right = Right(verb, where.get("apiGroup", ""), resource)
        yield Asked(right, where.get("name", ""), allowed, code)
