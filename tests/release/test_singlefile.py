"""The command as one file: it runs with a Python that has none of its libraries."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from adapter import __version__
from release import artifacts, krew, singlefile, unpack
from release.source import Source
from release.version import ROOT, ReleaseError
from tests.adapter.everytool import busy_cluster

HERE = Path(sysconfig.get_path("purelib"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("dist")
    artifacts.python_packages(folder, Source(ROOT, "0" * 40, 1_700_000_000, changed=False))
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the archive of this platform, with the libraries of this environment."""
    folder: Path = tmp_path_factory.mktemp("archive")
    singlefile.archive(folder / "file.tar.gz", singlefile.single_file(wheel, [HERE]))
    with tarfile.open(folder / "file.tar.gz") as file:
        file.extractall(folder)
    return folder


def run(
    program: Path, *arguments: str, cache: Path, environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run it as a user does whose Python has no libraries at all."""
    kept = {key: value for key, value in os.environ.items() if key in ("LANG", "TZ")}
    interpreter = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    return subprocess.run(
        [str(interpreter), "-s", "-S", str(program), *arguments],
        env={**kept, "HOME": str(cache), "XDG_CACHE_HOME": str(cache), **(environ or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_reads_a_cluster_and_unpacks_once(unpacked: Path, tmp_path: Path) -> None:
    program, cache = unpacked / singlefile.NAME, tmp_path / "cache"
    assert os.access(program, os.X_OK)
    done = run(program, "version", cache=cache)
    assert done.returncode == 0, done.stderr
    assert f"version {__version__}" in done.stdout
    (build,) = (cache / singlefile.NAME).iterdir()
    unpacked_file = build / "adapter" / "__main__.py"
    before = unpacked_file.stat().st_mtime_ns
    explain = ("explain", "hpa", "llm", "-n", "chat")
    with busy_cluster(tmp_path) as (_, kubeconfig):
        explained = run(program, *explain, "--kubeconfig", str(kubeconfig), cache=cache)
    assert explained.returncode == 1, explained.stderr
    assert "3 replicas, 1..8   KEEPS 3" in explained.stdout
    assert [path.name for path in (cache / singlefile.NAME).iterdir()] == [build.name]
    assert unpacked_file.stat().st_mtime_ns == before
    assert not list(build.rglob("botocore"))


PLUGIN = """#!/bin/sh
printf '%s' "${PYTHONPATH-unset}" > "$0.seen"
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",' \
  '"status": {"token": "t"}}'
"""


@pytest.mark.parametrize("own", ["/of/the/user", ""])
def test_a_credential_plugin_gets_the_users_own_python_path(
    own: str, unpacked: Path, tmp_path: Path
) -> None:
    plugin = tmp_path / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    call = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}
    with busy_cluster(tmp_path) as (_, kubeconfig):
        content = yaml.safe_load(kubeconfig.read_text())
        content["users"][0]["user"] = {"exec": {**call, "interactiveMode": "Never"}}
        kubeconfig.write_text(yaml.safe_dump(content))
        done = run(
            unpacked / singlefile.NAME,
            *("explain", "hpa", "llm", "-n", "chat", "--kubeconfig", str(kubeconfig)),
            cache=tmp_path / "cache",
            environ={"PYTHONPATH": own} if own else {},
        )
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "plugin.seen").read_text() == (own or "unset")


def test_it_starts_itself_for_the_demo(unpacked: Path, tmp_path: Path) -> None:
    demo = ("demo", "--seconds", "3", "--plain")
    done = run(unpacked / singlefile.NAME, *demo, cache=tmp_path / "cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_cache_that_cannot_be_written_is_one_line(unpacked: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = run(unpacked / singlefile.NAME, "version", cache=file)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "set XDG_CACHE_HOME to another folder" in line


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_cache_that_others_may_write_is_one_line(
    mode: int, unpacked: Path, tmp_path: Path
) -> None:
    folder = tmp_path / singlefile.NAME
    assert run(unpacked / singlefile.NAME, "version", cache=tmp_path).returncode == 0
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(mode)
    done = run(unpacked / singlefile.NAME, "version", cache=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert f"others may write to {folder}" in line
    assert line.endswith(": remove it")
    shutil.rmtree(folder)
    assert run(unpacked / singlefile.NAME, "version", cache=tmp_path).returncode == 0


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_cache_of_another_user_is_one_line(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + (kind == "folder"))
    owner = os.lstat(tmp_path)

    def lstat(_: Path) -> os.stat_result:
        return os.stat_result((*owner[:4], user + (kind == "link"), *owner[5:]))

    monkeypatch.setattr(Path, "lstat", lstat)
    with pytest.raises(SystemExit) as ended:
        unpack.make_private(tmp_path)
    assert f"{tmp_path} belongs to another user: set XDG_CACHE_HOME" in str(ended.value)


def test_another_python_is_named(unpacked: Path, tmp_path: Path) -> None:
    program = tmp_path / "other"
    with (
        zipfile.ZipFile(unpacked / singlefile.NAME) as old,
        zipfile.ZipFile(program, "w") as new,
    ):
        for name in ("__main__.py", "site/adapter/__init__.py"):
            new.writestr(name, old.read(name))
    done = run(program, "version", cache=tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "this file has no libraries for" in line


def test_the_same_commit_gives_the_same_bytes(wheel: Path, unpacked: Path) -> None:
    again = singlefile.single_file(wheel, [HERE])
    assert again == (unpacked / singlefile.NAME).read_bytes()


def test_a_library_that_is_missing_ends_the_release(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="is not in"):
        singlefile.single_file(wheel, [tmp_path])


def test_krew_finds_an_archive_and_its_checksum_for_each_platform(tmp_path: Path) -> None:
    written = []
    for platform in singlefile.PLATFORMS:
        path = tmp_path / f"{'-'.join(platform)}.tar.gz"
        singlefile.archive(path, "-".join(platform).encode())
        written.append((platform, path))
    manifest = yaml.safe_load(krew.manifest("https://example.com/project", written))
    assert manifest["metadata"]["name"] == "gpu"
    assert manifest["spec"]["version"] == f"v{__version__}"
    for (platform, path), entry in zip(written, manifest["spec"]["platforms"], strict=True):
        assert entry["selector"]["matchLabels"] == dict(zip(("os", "arch"), platform, strict=True))
        place = f"https://example.com/project/releases/download/v{__version__}/{path.name}"
        assert entry["uri"] == place
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        with tarfile.open(path) as file:
            assert entry["bin"] in file.getnames()
    assert len(manifest["spec"]["shortDescription"]) <= 50
