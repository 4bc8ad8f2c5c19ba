"""Trust in front proxies and clients from CA files, without or instead of a cluster's ConfigMap.

The settings have the names and meaning of kube-apiserver's ``--requestheader-*`` and
``--client-ca-file``. Files are read again when they change. A bad new file keeps the last good
content.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import structlog

from apiservice.auth.clientauth import ClientAuth, ProxySettings
from apiservice.auth.trust import TrustError
from apiservice.runtime.filestamp import Stamp, stamp

log = structlog.get_logger(__name__)


class TrustFileError(Exception):
    """A CA file cannot be used; the message names the setting, the file and the fix."""


class FileTrust:
    """Feeds a :class:`ClientAuth` from files. The cluster's ConfigMap decides what is None.

    Args:
        proxy_ca_file: PEM: ``--requestheader-client-ca-file``.
        allowed_names: used with ``proxy_ca_file``; empty allows every name.
        client_ca_file: PEM: ``--client-ca-file``.

    Raises:
        TrustFileError: a configured file cannot be used at the start.
    """

    def __init__(
        self,
        into: ClientAuth,
        *,
        proxy_ca_file: Path | None = None,
        allowed_names: tuple[str, ...] = (),
        client_ca_file: Path | None = None,
    ) -> None:
        self._into = into
        self._proxy_ca_file, self._client_ca_file = proxy_ca_file, client_ca_file
        self._allowed_names = allowed_names
        self._paths = [path for path in (proxy_ca_file, client_ca_file) if path]
        self._stamp: Stamp = stamp(self._paths)
        self.problem = ""
        """Why the current files are not in use. Empty if they are in use."""
        self._read()

    def check(self) -> None:
        """Read the files again if they changed. Called every few seconds."""
        file_stamp = stamp(self._paths)
        if file_stamp == self._stamp and not self.problem:
            return
        self._stamp = file_stamp
        try:
            self._read()
        except TrustFileError as error:
            if str(error) != self.problem:
                log.warning("CA file rejected; the last good one stays in use", error=str(error))
            self.problem = str(error)
            return
        if self.problem:
            log.info("CA files in use again")
        self.problem = ""

    def _read(self) -> None:
        if self._proxy_ca_file is not None:
            _use(self._proxy_ca_file, "request-header CA", self._set_proxy)
        if self._client_ca_file is not None:
            _use(self._client_ca_file, "client CA", self._into.set_clients)

    def _set_proxy(self, pem: bytes) -> bool:
        return self._into.set_proxy(ProxySettings(pem, self._allowed_names))


def _use(path: Path, what: str, put: Callable[[bytes], bool]) -> None:
    try:
        put(path.read_bytes())
    except OSError as error:
        raise TrustFileError(
            f"{what} file {path}: {error.strerror}; name a readable PEM file"
        ) from error
    except TrustError as error:
        raise TrustFileError(
            f"{what} file {path}: {error}; give it the CA's certificate in PEM"
        ) from error
