"""The front proxy's CA, names and headers, from the ConfigMap that kube-apiserver publishes.

kube-apiserver writes ``kube-system/extension-apiserver-authentication``. The keys are those that
``k8s.io/apiserver/pkg/server/options/authentication_dynamic_request_header.go`` reads. CAs and
names in it rotate, so it is watched. A key that does not parse keeps its last good value: a
half-written CA must not lock every client out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import structlog

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.auth.requestheader import HeaderNames
from apiservice.auth.trust import TrustError
from apiservice.kube.reflector import EventType

log = structlog.get_logger(__name__)

NAMESPACE = "kube-system"
NAME = "extension-apiserver-authentication"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
FIELD_SELECTOR = f"metadata.name={NAME}"

_CLIENT_CA = "client-ca-file"
_PROXY_CA = "requestheader-client-ca-file"
_LISTS = {
    "requestheader-allowed-names": "allowed_names",
    "requestheader-username-headers": "users",
    "requestheader-uid-headers": "uids",
    "requestheader-group-headers": "groups",
    "requestheader-extra-headers-prefix": "extra_prefixes",
}
_HINT = (
    "start kube-apiserver with --requestheader-client-ca-file and "
    "--requestheader-username-headers, or name the CA in a file"
)


class AuthConfigMap(msgspec.Struct, frozen=True):
    """The ConfigMap, reduced to its data."""

    data: dict[str, str] = {}


decode = msgspec.json.Decoder(AuthConfigMap).decode


class ConfigMapTrust:
    """Feeds a :class:`ClientAuth` from the watched ConfigMap; a ``Collection`` of one.

    What is also given as a file comes from the file: ``proxy`` and ``clients`` name the parts
    that this ConfigMap decides.
    """

    def __init__(self, into: ClientAuth, *, proxy: bool = True, clients: bool = True) -> None:
        self._into = into
        self._proxy = proxy
        self._clients = clients
        self._lists: dict[str, tuple[str, ...]] = {}
        self._problems: tuple[str, ...] = (f"{NAMESPACE}/{NAME} has not been read",)

    @property
    def problem(self) -> str:
        """What is wrong with the ConfigMap as last read. Empty if nothing is wrong."""
        return "; ".join(self._problems)

    def replace(self, items: Sequence[AuthConfigMap]) -> None:
        """Take a list: one ConfigMap, or none if kube-apiserver does not publish it."""
        if not items:
            self._report([f"ConfigMap {NAMESPACE}/{NAME} does not exist: {_HINT}"])
            return
        self._take(items[0].data)

    def apply(self, event: EventType, item: AuthConfigMap) -> None:
        """Take a change. kube-apiserver writes a deleted ConfigMap again, so trust is kept."""
        if event is EventType.DELETED:
            self._report(
                [f"ConfigMap {NAMESPACE}/{NAME} was deleted; its last content stays in use"]
            )
            return
        self._take(item.data)

    def _take(self, data: Mapping[str, str]) -> None:
        problems: list[str] = []
        for key in _LISTS:
            try:
                self._lists[key] = string_list(data.get(key, ""))
            except ValueError as error:
                problems.append(f"{key}: {error}")
        if self._proxy:
            problems += self._take_proxy(data.get(_PROXY_CA, ""))
        if self._clients and (ca := data.get(_CLIENT_CA, "")):
            try:
                if self._into.set_clients(ca.encode()):
                    log.info("client CA read", source=f"{NAMESPACE}/{NAME}")
            except TrustError as error:
                problems.append(f"{_CLIENT_CA}: {error}")
        self._report(problems)

    def _take_proxy(self, ca: str) -> list[str]:
        if not ca:
            return [f"{_PROXY_CA} is missing: {_HINT}"]
        lists = {field: self._lists.get(key, ()) for key, field in _LISTS.items()}
        allowed = lists.pop("allowed_names")
        if "requestheader-allowed-names" not in self._lists:
            return [
                "requestheader-allowed-names has never been readable; no front proxy is trusted"
            ]
        settings = ProxySettings(ca.encode(), allowed, HeaderNames(**lists))
        try:
            changed = self._into.set_proxy(settings)
        except TrustError as error:
            if self._into.proxy is not None:
                # The new names apply with the last good CA.
                self._into.set_proxy(replace(settings, ca=self._into.proxy[0].ca))
            return [f"{_PROXY_CA}: {error}"]
        if changed:
            log.info("request-header settings read", allowed_names=list(allowed))
        return []

    def _report(self, problems: Sequence[str]) -> None:
        current = tuple(problems)
        if current == self._problems:
            return
        self._problems = current
        if current:
            log.warning(
                "authentication ConfigMap has problems",
                configmap=f"{NAMESPACE}/{NAME}",
                problems=list(current),
            )


def string_list(text: str) -> tuple[str, ...]:
    """Decode a JSON array of strings; an absent key is an empty list, as in Go.

    Raises:
        ValueError: the text is something else; the message says what.
    """
    if not text:
        return ()
    try:
        return tuple(msgspec.json.decode(text, type=list[str] | None) or ())
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a JSON array of strings: {error}") from error
