"""The arguments of prometheus-adapter as settings of this adapter.

What an argument does is in prometheus-adapter's ``cmd/adapter/adapter.go`` (v0.12.0) and, for its
own server, in the options of ``k8s.io/apiserver``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from adapter.pipeline.sources.prometheus.ruleoptions import RuleOptions
from adapter.tools.explain.words import seconds

_SECRET: Final = "VALUE"  # noqa: S105 - a placeholder
_PLAIN_URL: Final = re.compile(r"https?://[^/\s{}$<>][^\s{}$<>]*")
"""A URL without a placeholder of Helm, Flux or a shell."""
_HEADER: Final = re.compile(r"([A-Za-z0-9-]{1,100})[:=](.*)", re.DOTALL)
_REFERENCE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
"""Of an environment variable, as in the arguments of a container."""
OWN_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Folder that every pod has, with the token of its own account and the cluster's CAs."""
_MAX_AGE: Final = RuleOptions(Path()).max_age


class Taken(NamedTuple):
    """What becomes of one argument, or of one field of the pods."""

    argument: str
    effect: str
    """The setting, or why none is needed."""
    settings: Mapping[str, Any] = {}
    """Keys of ``config``, such as ``source.prometheus.url``."""
    todo: bool = False
    """Whether the user must do something for it."""
    values: Mapping[str, Any] = {}
    """Other values of the chart."""
    file: str = ""
    """The file that the setting names; empty if it names none."""


Flags = Sequence[tuple[str, str]]
"""Name and value of each flag, in their order; a name may repeat."""


def parse(words: Sequence[str]) -> Flags:
    """Return the flags of a command line; the value of one without a value is ``true``."""
    flags: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not equals:
            value = rest.pop(0) if rest and not rest[0].startswith("-") else "true"
        flags.append((name, value))
    return flags


def translate_flags(flags: Flags) -> list[Taken]:
    """Return what becomes of each flag: the last of a name counts, except for headers."""
    last = dict(flags)
    ignored = _ignored_flags(last)
    places = {name: place for place, (name, _) in enumerate(flags)}
    rows = [
        _translate(name, value, ignored)
        for place, (name, value) in enumerate(flags)
        if name == _REPEATED or place == places[name]
    ]
    return _with_encryption([*rows, *_max_age(last)])


def _translate(name: str, value: str, ignored: Mapping[str, str]) -> Taken:
    flag = f"--{name}"
    if name in ignored:
        return Taken(flag, ignored[name])
    reference = _REFERENCE.search(value)
    if reference and name != _REPEATED:
        return Taken(flag, f"write the value here, which variable {reference[1]} has", todo=True)
    take = _KNOWN.get(name)
    if take is not None:
        return take(flag, value)
    for names, effect, todo in _OF_SERVER:
        if names.fullmatch(name):
            return Taken(flag, effect, todo=todo)
    return Taken(flag, "not known to this command", todo=True)


def settings_of(rows: Iterable[Taken]) -> dict[str, Any]:
    """Return the settings of all arguments."""
    settings: dict[str, Any] = {}
    for row in rows:
        for key, value in row.settings.items():
            section = settings
            *path, last = key.split(".")
            for part in path:
                section = section.setdefault(part, {})
            both = isinstance(value, dict) and isinstance(section.get(last), dict)
            section[last] = {**section[last], **value} if both else value
    return settings


def _ignored_flags(last: Mapping[str, str]) -> dict[str, str]:
    """Return the flags that prometheus-adapter ignores beside the others, and why."""
    if last.get("prometheus-ca-file"):
        beside = "not needed: prometheus-adapter ignores it beside --prometheus-ca-file"
        return dict.fromkeys(("prometheus-auth-incluster", "prometheus-auth-config"), beside)
    without = "not needed: prometheus-adapter ignores it without --prometheus-ca-file"
    return dict.fromkeys(
        ("prometheus-client-tls-cert-file", "prometheus-client-tls-key-file"), without
    )


def _max_age(last: Mapping[str, str]) -> list[Taken]:
    """Return the age limit that follows from the interval if this adapter's is shorter."""
    interval = last.get("metrics-relist-interval", "")
    if seconds(last.get("metrics-max-age")) or (seconds(interval) or 0) <= _MAX_AGE:
        return []
    effect = "rules.max_age: it is --metrics-relist-interval if it is not set"
    return [Taken("--metrics-max-age", effect, {"rules.max_age": interval})]


def _with_encryption(rows: list[Taken]) -> list[Taken]:
    """Return the rows; that of a URL with http names what a login needs."""
    prometheus = settings_of(rows).get("source", {}).get("prometheus", {})
    names = {name.lower() for name in prometheus.get("headers", {})}
    login = "bearer_token_file" in prometheus or "authorization" in names
    if not login or not prometheus.get("url", "").startswith("http:"):
        return rows
    more = ": a login needs https; set plain_http if something else encrypts the connection"
    return [
        row._replace(effect=row.effect + more, todo=True)
        if "source.prometheus.url" in row.settings
        else row
        for row in rows
    ]


def _url(name: str, value: str) -> Taken:
    try:
        parts = urlsplit(value)
        secret = parts.username is not None or parts.query
        port = f":{parts.port}" if parts.port else ""
        usable = _PLAIN_URL.fullmatch(value) is not None
    except ValueError:
        usable = False
    if not usable:
        return Taken(name, "not a URL: set source.prometheus.url", todo=True)
    if secret:
        effect = "source.prometheus.url without its user and query, which may be secret: set "
        effect += "username and password_file, or params"
        bare = f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
        return Taken(name, effect, {"source.prometheus.url": bare}, todo=True)
    return Taken(name, "source.prometheus.url", {"source.prometheus.url": value.rstrip("/")})


def _duration(key: str) -> Callable[[str, str], Taken]:
    def read(name: str, value: str) -> Taken:
        if (seconds(value) or 0) <= 0:
            return Taken(name, f"{value[:40]!r} is not a duration: set {key}", todo=True)
        return Taken(name, key, {key: value})

    return read


def _file(key: str) -> Callable[[str, str], Taken]:
    def read(name: str, value: str) -> Taken:
        if not value:
            return Taken(name, "not needed: it names no file")
        return Taken(name, key, {key: value}, file=value)

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


def _names(key: str) -> Callable[[str, str], Taken]:
    return lambda name, value: Taken(name, key, {key: [row for row in value.split(",") if row]})


def _by_hand(effect: str) -> Callable[[str, str], Taken]:
    return lambda name, _: Taken(name, effect, todo=True)


def _in_cluster(name: str, value: str) -> Taken:
    """Return the login of client-go's ``rest.InClusterConfig``: the account's token and CAs."""
    if value != "true":
        return Taken(name, "off, as here")
    return Taken(
        name,
        "source.prometheus.bearer_token_file, ca_file",
        {
            "source.prometheus.bearer_token_file": f"{OWN_ACCOUNT}/token",
            "source.prometheus.ca_file": f"{OWN_ACCOUNT}/ca.crt",
        },
        file=f"{OWN_ACCOUNT}/token",
    )


def _of_rules(name: str, _: str) -> Taken:
    return Taken(name, "rules.file")


_REPEATED: Final = "prometheus-header"
CA_FILE: Final = _file("source.prometheus.ca_file")
_KNOWN: Final[Mapping[str, Callable[[str, str], Taken]]] = {
    "config": _of_rules,
    "prometheus-url": _url,
    "metrics-relist-interval": _duration("rules.relist_interval"),
    "metrics-max-age": _duration("rules.max_age"),
    "prometheus-verb": _method,
    "prometheus-header": _header,
    "prometheus-token-file": _file("source.prometheus.bearer_token_file"),
    "prometheus-ca-file": CA_FILE,
    "prometheus-client-tls-cert-file": _file("source.prometheus.cert_file"),
    "prometheus-client-tls-key-file": _file("source.prometheus.key_file"),
    "prometheus-auth-incluster": _in_cluster,
    "prometheus-auth-config": _by_hand(
        "a kubeconfig: set source.prometheus.ca_file and bearer_token_file, or cert_file and "
        "key_file"
    ),
    "client-ca-file": _file("authentication.client_ca_file"),
    "requestheader-client-ca-file": _file("authentication.requestheader_ca_file"),
    "requestheader-allowed-names": _names("authentication.requestheader_allowed_names"),
}
_OF_SERVER: Final[Sequence[tuple[re.Pattern[str], str, bool]]] = [
    (re.compile(names), effect, todo)
    for names, effect, todo in (
        ("secure-port", "not needed: the chart sets the port", False),
        (
            "cert-dir|tls-cert-file|tls-private-key-file",
            "not needed: the chart provides a certificate (certificate.mode)",
            False,
        ),
        (
            "v|vmodule|logtostderr|alsologtostderr|stderrthreshold|log[-_].*|logging-.*",
            "not needed: config.log is the log",
            False,
        ),
        ("disable-http2.*", "not needed: this adapter serves HTTP/1.1", False),
        (
            "(lister|authentication|authorization)-kubeconfig",
            "config.cluster.kubeconfig, unless it is the cluster of the pods",
            True,
        ),
        (
            "tls-cipher-suites|tls-min-version",
            "no counterpart: this adapter serves TLS 1.2 and 1.3 with OpenSSL's ciphers",
            True,
        ),
        ("audit-.*", "no counterpart: this adapter writes no audit log", True),
    )
]
"""Flags of its own server: names, what becomes of them, and whether to do something."""
