"""Compiles what the commands load, and nothing else, when an image is built.

``python bytecode.py FOLDER``: libraries' bytecode is put beside them; that of the standard
library, which is the base image's, below FOLDER, as if that were the root.

Nobody can write bytecode into a read-only image later, and the base image brings none of the
standard library's. The commands load only a part of the libraries: the Kubernetes client's models
alone would be more bytecode than everything else. The build imports every module of the adapter
once, so it fails if the libraries do not fit together.
"""

from __future__ import annotations

import importlib
import pkgutil
import py_compile
import sys
from importlib.util import cache_from_source
from pathlib import Path

PACKAGES = ("apiservice", "adapter")
ON_DEMAND = (
    "azure.identity",
    "azure.monitor.query.aio",
    "botocore.auth",
    "botocore.session",
    "google.auth.transport.requests",
)
"""What is loaded only where a cloud's own login is used (adapter/pipeline/sources)."""


def modules() -> list[str]:
    """Names of all modules to load."""
    names = [
        module.name
        for package in PACKAGES
        for module in pkgutil.walk_packages(
            importlib.import_module(package).__path__, f"{package}."
        )
    ]
    return [*names, *ON_DEMAND]


def main(base: Path) -> None:
    """Load, then compile what that has loaded."""
    for name in modules():
        importlib.import_module(name)
    for module in list(sys.modules.values()):
        source = getattr(module, "__file__", None)
        if source is None or not source.endswith(".py") or module.__name__ == "__main__":
            continue
        target = cache_from_source(source)
        if not Path(source).is_relative_to(sys.prefix):
            target = str(base / Path(target).relative_to("/"))
        # Never compared with the source again: the times of files do not outlive every builder.
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(source, target, doraise=True, invalidation_mode=unchecked)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
