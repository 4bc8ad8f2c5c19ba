"""Signs: words of other programs, and what to do about them.

A table has rows, and the first row that a message has decides. A message that no row has gets the
general advice of its caller. :mod:`adapter.answers.causes.startsigns`, ``crashsigns`` and
``placesigns`` have the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple


class Sign(NamedTuple):
    """Words of a program, and what to do about them."""

    words: tuple[str, ...]
    """In lower case; one of them is enough."""
    fix: str
    template: bool = False
    """The pod template is changed, so a command opens it."""


def sign_of(table: Sequence[Sign], message: str) -> Sign | None:
    """Return the first sign of a table that a message has; None without one."""
    lower = message.lower()
    return next((row for row in table if any(word in lower for word in row.words)), None)


PLATFORM: Final = Sign(
    ("no match for platform", "no matching manifest", "no supported platform", "exec format error"),
    "use an image that is built for the architecture of the node, or keep the pods on nodes of the "
    "image's architecture (nodeSelector kubernetes.io/arch)",
    template=True,
)
"""The image is of another architecture (armadaproject/armada pull request 4889)."""
CREDENTIALS: Final = Sign(
    (
        *("unable to retrieve some image pull secrets", "unauthorized", "authentication required"),
        *("no basic auth", "access denied", "denied:", "forbidden", "failed to authorize"),
    ),
    "create a Secret of type kubernetes.io/dockerconfigjson for the registry in the pods' own "
    "namespace (kubectl create secret docker-registry), and name it in imagePullSecrets of the pod "
    "template or of its ServiceAccount",
)
SPACE: Final = Sign(
    ("no space left", "disk quota exceeded"),
    "free disk space on the node, or add nodes with a larger disk",
)
DRIVER_MISMATCH: Final = Sign(
    ("driver/library version mismatch",),
    "reboot the node, or restart its driver pod: the kernel has another version of the driver "
    "loaded than the libraries are of; until then, cordon the node",
)
NO_PROGRAM: Final = Sign(
    (
        *("executable file not found", "no such file or directory", "no command specified"),
        "not found in $path",
    ),
    "correct command and args of the container, or the image: the program does not exist in it",
    template=True,
)
