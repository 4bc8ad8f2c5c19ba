"""What there is without the extra ``demo``, as in the image."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tomllib

from image.bytecode import LEFT_OUT, modules
from tests.image.dockerfile import ROOT
from tests.security.lock import read

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name == "rich":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Without())
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that does not have rich."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + code, *arguments],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )


def test_demo_names_the_extra_in_one_line() -> None:
    done = python("from adapter.__main__ import main; main()", "demo", "--seconds", "10")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "gpu-metrics-adapter: demo needs rich; install it with the extra demo: "
        "pip install 'gpu-metrics-adapter[demo]'\n"
    )


def test_every_other_command_and_the_stand_in_exporter_need_no_rich() -> None:
    done = python(
        "import importlib\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(name, error.name)\n",
        *modules(),
    )
    assert done.stderr == ""
    missing = dict(line.split() for line in done.stdout.splitlines())
    assert missing
    assert set(missing.values()) == set(LEFT_OUT)
    assert all(name.startswith(("adapter.demo.", "adapter.tools.top.")) for name in missing)
    assert "adapter.tools.top.plain" not in missing
    assert "adapter.demo.simulatedgpus" not in missing


def test_the_images_lock_has_nothing_of_the_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra in ("demo", "top"):
        assert [row.partition(">")[0] for row in project["optional-dependencies"][extra]] == [
            "rich"
        ]
    assert "rich" not in read((ROOT / "requirements.lock").read_text())
    assert importlib.util.find_spec("rich") is not None, "the tests have the extra"
