"""The manifest by which krew installs the command as `kubectl gpu`.

Its form is that of krew's developer guide ("Writing a plugin manifest", v1alpha2): one archive with
its SHA-256 for each system and architecture, and the program in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from adapter import __version__
from release.singlefile import NAME


def manifest(repository: str, archives: Iterable[tuple[tuple[str, str], Path]]) -> str:
    """Return the manifest of a release.

    Args:
        repository: its address; the archives are files of the release there.
        archives: system and architecture, and the archive.
    """
    content: dict[str, Any] = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "gpu"},
        "spec": {
            "version": f"v{__version__}",
            "homepage": repository,
            "shortDescription": "Explain and check the scaling of GPU workloads",
            "description": "Shows GPUs, pods and HPAs with their values and reasons, and what is\n"
            "idle and costs. It reads the cluster with your rights, and writes nothing.\n",
            "caveats": "Needs python3 3.11, 3.12, 3.13 or 3.14 on the PATH.\n",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": system, "arch": architecture}},
                    "uri": f"{repository}/releases/download/v{__version__}/{path.name}",
                    "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                    "bin": NAME,
                }
                for (system, architecture), path in archives
            ],
        },
    }
    return yaml.safe_dump(content, sort_keys=False)
