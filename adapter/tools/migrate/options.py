"""What the options of ``migrate prometheus-adapter`` say, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from adapter.tools.client.impersonation import NOBODY, Impersonation

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


RELEASE: Final = "gpu-metrics/gpu-metrics-adapter"
"""Where the chart's examples install."""


class UsageProblem(ValueError):  # noqa: N818 - it is a problem of the command line
    """The options cannot be used together; the text names the fix."""


@dataclass(frozen=True, slots=True)
class MigrateOptions:
    """See the command's help."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str = ""
    file: Path | None = None
    compare: bool = False
    ours: str | None = None
    theirs: str | None = None
    ca: Path | None = None
    release: str = RELEASE
    tolerance: float = 10.0
    output: str = "text"
    identity: Impersonation = NOBODY

    def __post_init__(self) -> None:
        """Raise UsageProblem if the options do not fit together."""
        self._target()
        if self.compare and self.file is not None:
            raise UsageProblem("--compare asks a cluster: remove --filename")
        if self.compare and self.ours is None:
            raise UsageProblem(
                "--compare needs --ours URL, such as --ours https://localhost:8443 of `kubectl -n "
                f"{self.target_namespace} port-forward service/{self.target_name} 8443:443`: the "
                "API server's proxy for Services does not pass your identity on"
            )
        for name, url in (("--ours", self.ours), ("--theirs", self.theirs)):
            self._check(name, url)
        if self.file is not None and self.output.startswith("apiservices"):
            raise UsageProblem(f"-o {self.output} reads a cluster: remove --filename")
        if self.output == "apiservices" and self.ca is None:
            raise UsageProblem("-o apiservices needs --ca FILE, the CA of gpu-metrics-adapter")

    def _check(self, name: str, url: str | None) -> None:
        if url is None:
            return
        try:
            parts = urlsplit(url)
            good = parts.scheme == "https" and parts.hostname and parts.port != 0
        except ValueError:
            good = False
        if not good or not self.compare:
            raise UsageProblem(
                f"{name} is an address such as https://localhost:8443, for --compare"
            )
        if self.ca is None:
            raise UsageProblem(f"{name} needs --ca FILE, because a token is sent to this address")

    @property
    def target_namespace(self) -> str:
        """The namespace of our release."""
        return self._target()[0]

    @property
    def target_name(self) -> str:
        """The name of our release, and of its Service."""
        return self._target()[1]

    def _target(self) -> tuple[str, str]:
        namespace, _, name = self.release.partition("/")
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            raise UsageProblem(f"--release {self.release!r}: write NAMESPACE/NAME")
        return namespace, name
