"""Which texts are label keys and values (``apimachinery/pkg/api/validate/content/kube.go``)."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_NAME_LENGTH = 63
_PREFIX_LENGTH = 253

_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)


def check_key(key: str) -> str | None:
    """What is wrong with a label key (``[prefix/]name``); None when it is valid."""
    prefix, slash, name = key.rpartition("/")
    if slash and (fault := _check_prefix(prefix)) is not None:
        return fault
    if not name:
        return "name part must be non-empty"
    if len(name) > _NAME_LENGTH:
        return f"name part must be no more than {_NAME_LENGTH} bytes"
    if _NAME.fullmatch(name) is None:
        return f"name part {_RULE}"
    return None


def _check_prefix(prefix: str) -> str | None:
    if not prefix:
        return "prefix part must be non-empty"
    if len(prefix) > _PREFIX_LENGTH:
        return f"prefix part must be no more than {_PREFIX_LENGTH} bytes"
    if all(_DNS_LABEL.fullmatch(label) for label in prefix.split(".")):
        return None
    return "prefix part must be a lowercase RFC 1123 subdomain such as 'example.com'"


def check_value(value: str) -> str | None:
    """What is wrong with a label value; None when it is valid. Empty is valid."""
    if len(value) > _NAME_LENGTH:
        return f"must be no more than {_NAME_LENGTH} bytes"
    if value and _NAME.fullmatch(value) is None:
        return f"a valid label must be an empty string or {_RULE.removeprefix('must ')}"
    return None
