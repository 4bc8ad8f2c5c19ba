"""What ``ui`` was started with."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from adapter.tools.client.impersonation import Impersonation
from adapter.tools.client.options import identity


@dataclass(frozen=True, slots=True)
class UiOptions:
    """Which cluster to show, and where."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    """Empty: all namespaces."""
    port: int = 0
    """0: any free port."""
    browser: bool = True
    """Open a browser, if the machine has a display."""
    interval: float = 5.0
    """Seconds between two looks at the cluster."""
    prices: Path | None = None
    team_label: str = "team"
    idle_after: float = 600.0
    """Seconds for which a device is idle before it is listed."""
    prometheus: str = ""
    """URL of a query API; empty: that of ``config``."""
    config: Path | None = None
    """A configuration of ``serve``: its ``source.prometheus`` has the login of the query API."""
    demo: bool = False
    """The cluster is the demo's."""
    as_user: str = ""
    as_groups: tuple[str, ...] = ()

    @property
    def identity(self) -> Impersonation:
        """As whom; raises ``click.UsageError``."""
        return identity(self.as_user, self.as_groups)

    def client_flags(self) -> str:
        """Return the flags with which another command reads the same cluster."""
        flags = []
        if self.kubeconfig is not None:
            flags += ["--kubeconfig", str(self.kubeconfig)]
        if self.context:
            flags += ["--context", self.context]
        if self.as_user:
            flags += ["--as", self.as_user]
        flags += [word for group in self.as_groups for word in ("--as-group", group)]
        return shlex.join(flags)
