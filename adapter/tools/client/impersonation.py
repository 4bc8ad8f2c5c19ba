"""As whom a cluster is asked."""

from __future__ import annotations

from typing import Final, NamedTuple


class Impersonation(NamedTuple):
    """Whom the API server is asked to take the caller for."""

    user: str = ""
    """Empty: nobody else."""
    groups: tuple[str, ...] = ()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of each request (kubernetes.io, "User impersonation")."""
        user = [("Impersonate-User", self.user)] if self.user else []
        return user + [("Impersonate-Group", group) for group in self.groups]


NOBODY: Final = Impersonation()
