"""Fetch the engines of the tests: Prometheus and VictoriaMetrics, where the PATH lacks them.

    python -m tests.engines

They are Debian's packages, unpacked below ``.cache``: no root, and nothing is installed. It always
ends with status 0: without an engine, the tests that need it are skipped, and the summary says so.
"""

from __future__ import annotations

import sys
from typing import Final

from tests import debian
from tests.needs import PROMETHEUS, PROMTOOL, VICTORIAMETRICS

PACKAGES: Final = {
    "prometheus": (PROMETHEUS, PROMTOOL),
    "victoria-metrics": (VICTORIAMETRICS,),
}
"""Debian's package -> its programs."""


def main() -> int:
    """Fetch what is missing, and say on one line what cannot be fetched."""
    for package, programs in PACKAGES.items():
        if all(program.look() for program in programs):
            continue
        print(f"fetching Debian's package {package} to .cache (once)", file=sys.stderr, flush=True)
        try:
            debian.unpack(package, [program.name for program in programs])
        except debian.NoPackageError as error:
            print(f"not fetched: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
