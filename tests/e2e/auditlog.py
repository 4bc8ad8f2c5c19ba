"""Requests of accounts to the API server, from its audit log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from tests.e2e.cluster import Object


class Right(NamedTuple):
    """A verb on a resource. A non-resource path has no group."""

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
    """Return the requests of a user so far, in order.

    A patch that created its object needs the create permission too, and counts as both.
    """
    return [row for event in _events(log, user) for row in _asked(event)]


def granted(roles: Iterable[Object]) -> set[Right]:
    """Return the permissions of Roles and ClusterRoles."""
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
            # The last line may be incomplete.
            if line.endswith("\n") and (row := json.loads(line))["user"]["username"] == user:
                yield row


def _asked(row: Object) -> Iterator[Asked]:
    """Return nothing for a non-resource path: discovery is open to every account."""
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
