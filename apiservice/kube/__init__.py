"""A client of the Kubernetes API: requests, lists and watches.

Of the ``kubernetes`` package only modules of its asynchronous half are used: ``kubernetes.aio``.
Python runs the parents of a module first, and ``kubernetes/__init__.py`` imports the synchronous
half with all of its logins (requests, oauthlib, google.auth): 0.2 s and 12 MB. So the parents are
entered here without running them. ``import kubernetes.client`` still works after that.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec
from typing import Final

_PARENTS: Final = ("kubernetes", "kubernetes.aio", "kubernetes.aio.config")


def _enter_parents() -> None:
    for name in _PARENTS:
        if name in sys.modules:  # somebody else uses the whole package
            continue
        spec = find_spec(name)
        if spec is None:  # the import that follows fails, and says so
            return
        sys.modules[name] = module = module_from_spec(spec)
        home, _, child = name.rpartition(".")
        if home:
            setattr(sys.modules[home], child, module)


_enter_parents()
