"""Query the advisory service about the shipped distributions: ``make audit``.

``pip-audit`` reports a distribution that it could not ask about as "skipped" and exits with 0. This
command exits with 1 if an advisory applies or if only some distributions were checked. It exits
with 0 if none could be checked, because a machine that cannot reach the service still has the
review of the lock (``test_lock.py``); the last line of its output then says ``NOT CHECKED``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parents[2] / "requirements.lock"
_UNREACHED = ("ConnectionError", "HTTPError", "Timeout", "Could not connect", "not redirecting")
"""Texts of pip-audit and its HTTP library if the service does not answer."""


def verdict(report: dict[str, Any]) -> tuple[int, str]:
    """Return the exit status and the message for a JSON report of pip-audit."""
    rows = report["dependencies"]
    hit = [
        f"{row['name']} {row['version']}: {advisory['id']}, fixed in "
        f"{', '.join(advisory['fix_versions']) or 'no version yet'}"
        for row in rows
        for advisory in row.get("vulns", ())
    ]
    skipped = [row["name"] for row in rows if "skip_reason" in row]
    if hit:
        return 1, "\n".join(hit)
    if rows and len(skipped) == len(rows):
        return 0, (
            f"audit: NOT CHECKED: the advisory service did not answer for any of {len(rows)} "
            "distributions; run `make audit` where the service can be reached"
        )
    if skipped:
        return 1, f"audit: not checked: {', '.join(skipped)}"
    return 0, f"audit: no advisory applies to {len(rows)} distributions"


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
        message = " ".join(done.stderr.split())[-300:]
        print(f"audit: NOT CHECKED: pip-audit failed: {message}")
        return 0 if any(words in done.stderr for words in _UNREACHED) else 1
    status, text = verdict(report)
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
