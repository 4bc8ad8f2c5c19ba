"""Credentials that rotate: token files, and credential plugins of a kubeconfig."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from apiservice.kube.failures import ClusterError
from apiservice.kube.library import kubeconfigs
from apiservice.runtime.filestamp import Stamp, stamp

_REFRESH: Final = 60.0
"""Seconds between runs of a credential plugin that names no expiry."""


def keep_fresh(configuration: Any, loader: Any, source: str) -> None:
    """Have a client read the credentials of a loaded kubeconfig again when they change.

    Raises:
        ClusterError: the credential plugin returned no credentials.
    """
    user = getattr(loader, "_user", None)
    if user is None:
        return
    if "exec" in user:
        if not hasattr(loader, "token") and not hasattr(loader, "cert_file"):
            command = user["exec"].safe_get("command")
            raise ClusterError(
                f"kubeconfig {source}: the credential plugin {command!r} returned no credentials; "
                f"run it by hand to see why"
            )
        configuration.refresh_api_key_hook = CredentialPlugin(loader)
    elif "tokenFile" in user and "token" not in user:
        base = Path(str(user.path)).parent if user.path else Path()
        configuration.refresh_api_key_hook = RotatedTokenFile(base / user["tokenFile"])


class RotatedTokenFile:
    """Reads a token file again when it was replaced. Kubelet replaces projected tokens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: Stamp | None = None

    def __call__(self, configuration: Any) -> None:
        """Runs before each request. An empty file leaves the last token in use."""
        file_stamp = stamp((self._path,))
        if file_stamp == self._seen:
            return
        token = self._path.read_text().strip()
        if token:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
            self._seen = file_stamp


class CredentialPlugin:
    """Runs a credential plugin again when its credentials have expired."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._asked_at = time.monotonic()
        self.pair: tuple[bytes, bytes] | None = None
        """The renewed client certificate and its key; None before the first renewal."""

    async def __call__(self, configuration: Any) -> None:
        """Runs before each request."""
        now = time.monotonic()
        if now - self._asked_at < _REFRESH:
            return
        self._asked_at = now
        await self._loader.load_from_exec_plugin()
        if hasattr(self._loader, "token"):
            configuration.api_key["BearerToken"] = self._loader.token
        if hasattr(self._loader, "cert_file"):
            # The library has written them to files, which nothing else reads.
            files = (Path(self._loader.cert_file), Path(self._loader.key_file))
            try:
                self.pair = (files[0].read_bytes(), files[1].read_bytes())
            finally:
                remove_copies()


def remove_copies() -> frozenset[str]:
    """Remove the files into which the library wrote certificates and keys of kubeconfigs.

    They are in the folder for temporary files, and a process that a signal ends would leave them
    there. A client that has read them does not need them.

    Returns:
        the names of the files.
    """
    copies = frozenset(kubeconfigs._temp_files.values())
    kubeconfigs._cleanup_temp_files()
    return copies
