"""A client's certificate that is outside its dates is named, and a renewed one is used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapter.pipeline.sources.errors import CredentialError
from adapter.pipeline.sources.login.credentials import TlsClient
from tests.apiservice.pki import Authority

NOW = 1_800_000_000.0
MINUTE = 60.0
CA = Authority("store-ca", NOW)


def write(folder: Path, starts: float, ends: float) -> tuple[Path, Path]:
    return CA.issue("client", starts=starts, ends=ends).write(folder, "client")


def test_one_that_ends_in_minutes_is_named_from_then_on_until_it_is_renewed(
    tmp_path: Path,
) -> None:
    now = [NOW]
    files = write(tmp_path, -MINUTE, 5 * MINUTE)
    client = TlsClient(None, *files, clock=lambda: now[0])
    first = client.current()
    now[0] += 5 * MINUTE - 1
    assert client.current() is first
    now[0] += 1
    with pytest.raises(CredentialError) as refused:
        client.current()
    assert str(refused.value) == (
        f"client certificate {files[0]} expired on 2027-01-15 08:05 UTC: renew it"
    )
    write(tmp_path, -MINUTE, 60 * MINUTE)
    os.utime(files[0], (NOW, NOW))
    assert client.current() is not first


def test_one_of_a_clock_that_is_ahead_is_used_once_it_is_valid(tmp_path: Path) -> None:
    now = [NOW]
    client = TlsClient(None, *write(tmp_path, 2 * MINUTE, 60 * MINUTE), clock=lambda: now[0])
    with pytest.raises(CredentialError, match="is not valid before 2027-01-15 08:02 UTC: check"):
        client.current()
    now[0] += 2 * MINUTE
    assert client.current()
