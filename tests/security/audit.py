"""Asks the advisory service about what is shipped: ``make audit``.

``pip-audit`` calls a distribution that it could not ask about "skipped" and ends with 0; here
that is said in so many words. Ends with 1 where an advisory applies or only some could be
asked about, and with 0 where none could: a machine without a way to the service still has
the review of the lock (``test_lock.py``).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[2] / "requirements.lock"
_UNREACHED = ("ConnectionError", "HTTPError", "Timeout", "Could not connect", "not redirecting")
"""What pip-audit, or the library that it asks with, says where the service does not answer."""


def verdict(report: dict[str, Any]) -> tuple[int, str]:
    """The exit status, and what to say of a report in pip-audit's JSON."""
    rows = report["dependencies"]
    hit = [
        f"{row['name']} {row['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version yet'}"
        for row in rows
        for found in row.get("vulns", ())
    ]
    skipped = [row["name"] for row in rows if "skip_reason" in row]
    if hit:
        return 1, "\n".join(hit)
    if rows and len(skipped) == len(rows):
        return 0, (
            f"NO ADVISORY WAS LOOKED AT: the service could not be asked about any of {len(rows)} "
            "distributions. The lock's own review has run; run this where the service is reached."
        )
    if skipped:
        return 1, f"not asked about: {', '.join(skipped)}"
    return 0, f"no advisory about {len(rows)} distributions"


def main() -> int:
    """Run pip-audit on the runtime lock."""
    command = ("pip_audit", "--requirement", str(LOCK), "--disable-pip", "--require-hashes")
    done = subprocess.run(
        [sys.executable, "-m", *command, "--format=json", "--progress-spinner=off"],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"NO ADVISORY WAS LOOKED AT: pip-audit said {done.stderr.strip()[-300:]}")
        return 0 if any(words in done.stderr for words in _UNREACHED) else 1
    status, text = verdict(report)
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
