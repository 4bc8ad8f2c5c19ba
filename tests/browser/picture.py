"""Take the picture of the README: the page of ``demo --ui``, while an exporter is down.

python -m tests.browser.picture
"""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.browser.page import start

ROOT: Final = Path(__file__).parents[2]
PICTURE: Final = ROOT / "docs" / "ui.png"
_SECONDS: Final = 120
_MOST: Final = 150.0
"""Seconds to wait for what the picture shows."""
_READY: Final = """
const text = document.body.innerText;
return /[2-9] of [0-9]+ HPAs are stuck, .*[1-9] pods have no value.* GPUs are idle/.test(text);
"""
"""An HPA is stuck because an exporter is down, and idle GPUs have their price."""


def main() -> None:
    """Start the demo, and write the picture once the page shows what it should."""
    command = [sys.executable, "-m", "adapter", "demo", "--ui", "--no-browser", "--plain"]
    demo = subprocess.Popen(
        [*command, "--seconds", str(_SECONDS)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    browser = start()
    try:
        assert demo.stdout is not None
        matches = (re.search(r"http://\S+", line) for line in demo.stdout if "page" in line)
        address = next(match for match in matches if match)[0]
        browser.get(address)
        size = {"width": 1280, "height": 1180, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        deadline = time.monotonic() + _MOST
        while not browser.execute_script(_READY):
            if time.monotonic() > deadline:
                sys.exit("the page never showed an exporter that is down beside an idle GPU")
            time.sleep(0.5)
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        PICTURE.write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.quit()
        demo.terminate()
        demo.communicate(timeout=60)


if __name__ == "__main__":
    main()
