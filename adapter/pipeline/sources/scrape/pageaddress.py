"""The address of a pod's page: from the settings, and from the pod's labels and annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from adapter.pipeline.cluster.optin import PREFIX
from adapter.pipeline.cluster.pod import Pod
from adapter.pipeline.sources.scrape.pageaccess import PageAccess
from adapter.pipeline.sources.scrape.target import page_url

_PATH: Final = re.compile(r"/[!-~]{0,1023}")
_PORT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?")
_SERVER_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_ADDRESS: Final = frozenset(("scheme", "port", "path", "server-name", "insecure-skip-verify"))


class Unscrapable(NamedTuple):
    """Why a pod that should be scraped cannot be."""

    reason: str
    """One word, a label value of the counter."""
    message: str
    """The problem, and the fix."""


class PageAddress(NamedTuple):
    """Where a pod's page is, and how it is reached."""

    url: str
    access: PageAccess


def names_address(words: Mapping[str, str]) -> bool:
    """Return whether a pod's words change the address of its page, or the trust in it."""
    return not _ADDRESS.isdisjoint(words)


def page_address(
    pod: Pod,
    words: Mapping[str, str],
    *,
    scheme: str,
    port: int | Unscrapable,
    path: str,
    access: PageAccess,
) -> PageAddress | Unscrapable:
    """Return the address of a pod's page.

    Args:
        pod: the pod.
        words: what the pod says in its labels and annotations, without their prefix.
        scheme: for a pod that says none.
        port: for a pod that says none.
        path: for a pod that says none.
        access: for a pod that says nothing about its certificate.
    """
    scheme = words.get("scheme", scheme).lower()
    path = words.get("path", path)
    name = words.get("server-name", access.server_name)
    if scheme not in ("http", "https"):
        return Unscrapable("bad_scheme", f"scheme {scheme[:20]!r}: write http or https")
    if not _PATH.fullmatch(path):
        return Unscrapable("bad_path", f"path {path[:60]!r}: write one that begins with /")
    if name and not _SERVER_NAME.fullmatch(name):
        return Unscrapable("bad_server_name", f"server-name {name[:60]!r}: write a host name")
    if words.get("port"):
        port = _parse_port(pod, words["port"])
    if isinstance(port, Unscrapable):
        return port
    skips = words.get("insecure-skip-verify", "").lower() == "true"
    access = access._replace(
        server_name=name, insecure_skip_verify=access.insecure_skip_verify or skips
    )
    return PageAddress(page_url(scheme, pod.ip, port, path), access)


def no_port(pod: Pod) -> Unscrapable:
    """Return why the port of a pod's page is not known."""
    count = len(pod.ports) or "no"
    return Unscrapable(
        "no_port", f"{count} container ports: say which one in the annotation {PREFIX}port"
    )


def _parse_port(pod: Pod, text: str) -> int | Unscrapable:
    if text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= 65535:
        return int(text)
    if _PORT_NAME.fullmatch(text) and not text.isdigit():
        number = next((port.port for port in pod.ports if port.name == text), None)
        if number is not None:
            return number
    wrong = f"port {text[:20]!r}: write 1-65535 or the name of a container port"
    return Unscrapable("bad_port", wrong)
