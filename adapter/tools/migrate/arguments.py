"""The arguments of prometheus-adapter as settings of this adapter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from adapter.tools.explain.words import seconds

_SECRET: Final = "VALUE"  # noqa: S105 - a placeholder
_HEADER: Final = re.compile(r"([A-Za-z0-9-]{1,100})[:=](.*)", re.DOTALL)


class Taken(NamedTuple):
    """What becomes of one argument."""

    argument: str
    effect: str
    """The setting, or why none is needed."""
    settings: Mapping[str, Any] = {}
    """Keys of ``source.prometheus`` and ``rules``."""
    todo: bool = False
    """Whether the user must do something for it."""


def parse(words: Sequence[str]) -> dict[str, str]:
    """Return the flags of a command line: name -> value, or ``true``."""
    flags: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("-") else "true"
        flags[name] = value
    return flags


def translate_flags(flags: Mapping[str, str]) -> list[Taken]:
    """Return what becomes of each flag that matters here."""
    rows = []
    for name, value in flags.items():
        take = _KNOWN.get(name)
        if take is not None:
            rows.append(take(f"--{name}", value))
        elif name.startswith("prometheus-"):
            rows.append(Taken(f"--{name}", "not known to this command", todo=True))
    return rows


def settings_of(rows: Iterable[Taken]) -> dict[str, Any]:
    """Return the settings of all arguments."""
    settings: dict[str, Any] = {}
    for row in rows:
        for key, value in row.settings.items():
            section = settings
            *path, last = key.split(".")
            for part in path:
                section = section.setdefault(part, {})
            section[last] = value
    return settings


def _url(name: str, value: str) -> Taken:
    try:
        parts = urlsplit(value)
        secret = parts.username is not None or parts.query
    except ValueError:
        return Taken(name, "not a URL: set source.prometheus.url", todo=True)
    if secret:
        effect = "source.prometheus.url without its user and query, which may be secret: set "
        effect += "username and password_file, or params"
        bare = (
            f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"
        )
        return Taken(name, effect, {"source.prometheus.url": bare}, todo=True)
    return Taken(name, "source.prometheus.url", {"source.prometheus.url": value.rstrip("/")})


def _duration(key: str) -> Callable[[str, str], Taken]:
    def read(name: str, value: str) -> Taken:
        if not seconds(value):
            return Taken(name, f"{value[:40]!r} is not a duration: set {key}", todo=True)
        return Taken(name, key, {key: value})

    return read


def _file(key: str) -> Callable[[str, str], Taken]:
    def read(name: str, value: str) -> Taken:
        return Taken(name, f"{key}: mount the same file into the pods", {key: value}, todo=True)

    return read


def _method(name: str, value: str) -> Taken:
    if value.upper() not in ("GET", "POST"):
        return Taken(name, "not GET or POST: source.prometheus.method has its default", todo=True)
    return Taken(name, "source.prometheus.method", {"source.prometheus.method": value.upper()})


def _header(name: str, value: str) -> Taken:
    match = _HEADER.fullmatch(value)
    if match is None:
        return Taken(name, "not a header: set source.prometheus.headers", todo=True)
    effect = f"source.prometheus.headers: write the value of {match[1]}, which may be secret"
    return Taken(name, effect, {"source.prometheus.headers": {match[1]: _SECRET}}, todo=True)


def _by_hand(effect: str) -> Callable[[str, str], Taken]:
    return lambda name, _: Taken(name, effect, todo=True)


def _in_cluster(name: str, value: str) -> Taken:
    if value != "true":
        return Taken(name, "off, as here")
    token = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path
    return Taken(
        name,
        "source.prometheus.bearer_token_file: the account of this adapter needs the rights at "
        "Prometheus that prometheus-adapter's account has",
        {"source.prometheus.bearer_token_file": token},
        todo=True,
    )


def _of_rules(name: str, _: str) -> Taken:
    return Taken(name, "rules.file")


_KNOWN: Final[Mapping[str, Callable[[str, str], Taken]]] = {
    "config": _of_rules,
    "prometheus-url": _url,
    "metrics-relist-interval": _duration("rules.relist_interval"),
    "metrics-max-age": _duration("rules.max_age"),
    "prometheus-verb": _method,
    "prometheus-header": _header,
    "prometheus-token-file": _file("source.prometheus.bearer_token_file"),
    "prometheus-ca-file": _file("source.prometheus.ca_file"),
    "prometheus-client-tls-cert-file": _file("source.prometheus.cert_file"),
    "prometheus-client-tls-key-file": _file("source.prometheus.key_file"),
    "prometheus-auth-incluster": _in_cluster,
    "prometheus-auth-config": _by_hand(
        "a kubeconfig: set source.prometheus.bearer_token_file, or cert_file and key_file"
    ),
    "disable-http2": lambda name, _: Taken(name, "not needed: this adapter serves HTTP/1.1"),
}
