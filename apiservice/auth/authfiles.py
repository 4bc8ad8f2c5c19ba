"""Trust in front proxies and clients from CA files, without or instead of a cluster's ConfigMap.

The settings have the names and meaning of kube-apiserver's ``--requestheader-*`` and
``--client-ca-file``. Files are read again when they change. A bad new file keeps the last good
content.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import structlog

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.auth.requestheader import HeaderNames
from apiservice.auth.trust import TrustError
from apiservice.runtime.filestamp import Stamp, stamp

log = structlog.get_logger(__name__)


class TrustFileError(Exception):
    """A CA file cannot be used; the message names the setting, the file and the fix."""


@dataclass(frozen=True, slots=True)
class RequestHeaderOptions:
    """CA files and allowed names. The cluster's ConfigMap decides what is None."""

    proxy_ca_file: Path | None = None
    """PEM: ``--requestheader-client-ca-file``."""
    allowed_names: tuple[str, ...] = ()
    """Used with ``proxy_ca_file``. Empty allows every name."""
    headers: HeaderNames = field(default_factory=HeaderNames)
    """Used with ``proxy_ca_file``."""
    client_ca_file: Path | None = None
    """PEM: ``--client-ca-file``."""


class FileTrust:
    """Feeds a :class:`ClientAuth` from files.

    Raises:
        TrustFileError: a configured file cannot be used at the start.
    """

    def __init__(self, into: ClientAuth, options: RequestHeaderOptions) -> None:
        self._into = into
        self._options = options
        self._paths = [p for p in (options.proxy_ca_file, options.client_ca_file) if p]
        self._stamp: Stamp = stamp(self._paths)
        self._problem = ""
        self._read()

    @property
    def problem(self) -> str:
        """Why the current files are not in use. Empty if they are in use."""
        return self._problem

    def check(self) -> None:
        """Read the files again if they changed. Called every few seconds."""
        seen = stamp(self._paths)
        if seen == self._stamp and not self._problem:
            return
        self._stamp = seen
        try:
            self._read()
        except TrustFileError as error:
            if str(error) != self._problem:
                log.warning("CA file rejected; the last good one stays in use", error=str(error))
            self._problem = str(error)
            return
        if self._problem:
            log.info("CA files in use again")
        self._problem = ""

    def _read(self) -> None:
        options = self._options
        if options.proxy_ca_file is not None:
            pem = _pem(options.proxy_ca_file, "request-header CA")
            settings = ProxySettings(pem, options.allowed_names, options.headers)
            try:
                self._into.set_proxy(settings)
            except TrustError as error:
                raise _unusable(options.proxy_ca_file, "request-header CA", error) from error
        if options.client_ca_file is not None:
            pem = _pem(options.client_ca_file, "client CA")
            try:
                self._into.set_clients(pem)
            except TrustError as error:
                raise _unusable(options.client_ca_file, "client CA", error) from error


def _pem(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TrustFileError(
            f"{what} file {path}: {error.strerror}; name a readable PEM file"
        ) from error


def _unusable(path: Path, what: str, error: TrustError) -> TrustFileError:
    return TrustFileError(f"{what} file {path}: {error}; give it the CA's certificate in PEM")
