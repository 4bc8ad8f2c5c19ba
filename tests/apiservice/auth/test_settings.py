"""Whose certificates are believed: the watched ConfigMap, and files instead of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from apiservice.auth.authconfigmap import AuthConfigMap, ConfigMapTrust, decode
from apiservice.auth.authfiles import FileTrust, TrustFileError
from apiservice.auth.clientauth import ClientAuth
from apiservice.auth.requestheader import HeaderNames
from apiservice.kube.reflector import EventType
from tests.apiservice.pki import Authority

NOW = 1_800_000_000.0
ONE = Authority("one", NOW).pem
TWO = Authority("two", NOW).pem
CLIENTS = Authority("clients", NOW).pem


def published(**changed: str | None) -> AuthConfigMap:
    """The ConfigMap as kube-apiserver 1.36 writes it, with changes; None removes a key."""
    data: dict[str, str | None] = {
        "client-ca-file": CLIENTS.decode(),
        "requestheader-allowed-names": '["front-proxy-client"]',
        "requestheader-client-ca-file": ONE.decode(),
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    data |= {key.replace("_", "-"): value for key, value in changed.items()}
    raw = {"metadata": {"name": "x"}, "data": {k: v for k, v in data.items() if v is not None}}
    return decode(json.dumps(raw))


def test_the_published_configmap_is_believed() -> None:
    trust = ClientAuth()
    ConfigMapTrust(trust).replace([published()])

    assert trust.proxy is not None
    settings = trust.proxy[0]
    assert settings.allowed_names == ("front-proxy-client",)
    assert settings.headers == HeaderNames(
        ("X-Remote-User",), ("X-Remote-Uid",), ("X-Remote-Group",), ("X-Remote-Extra-",)
    )
    assert trust.bundle == ONE + b"\n" + CLIENTS


def test_a_rotated_ca_is_trusted_at_once_and_the_old_one_no_longer() -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)
    source.replace([published()])
    before = trust.generation

    source.apply(EventType.MODIFIED, published(requestheader_client_ca_file=TWO.decode()))

    assert trust.generation > before
    assert ONE not in trust.bundle
    assert TWO in trust.bundle


def test_an_unchanged_configmap_changes_nothing() -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)
    source.replace([published()])
    before = trust.generation

    source.apply(EventType.MODIFIED, published())

    assert trust.generation == before


MALFORMED = {
    "requestheader-allowed-names": "not json",
    "requestheader-username-headers": '{"a":1}',
    "requestheader-group-headers": "[1]",
    "requestheader-client-ca-file": "-----BEGIN CERTIFICATE-----\ncut",
    "client-ca-file": "nonsense",
}


@pytest.mark.parametrize(("key", "text"), MALFORMED.items(), ids=MALFORMED.keys())
def test_a_malformed_key_keeps_its_last_good_value_and_is_reported(key: str, text: str) -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)
    source.replace([published()])
    before = (trust.proxy[0] if trust.proxy else None, trust.bundle)

    source.apply(EventType.MODIFIED, published(**{key.replace("-", "_"): text}))

    assert (trust.proxy[0] if trust.proxy else None, trust.bundle) == before
    assert key in source.problem
    source.apply(EventType.MODIFIED, published())
    assert source.problem == ""


def test_other_keys_are_taken_beside_a_malformed_ca() -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)
    source.replace([published()])

    source.apply(
        EventType.MODIFIED,
        published(requestheader_client_ca_file="cut", requestheader_allowed_names='["b"]'),
    )

    assert trust.proxy is not None
    assert trust.proxy[0].allowed_names == ("b",)
    assert trust.proxy[0].ca == ONE


def test_allowed_names_that_never_parsed_trust_no_proxy() -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)

    source.replace([published(requestheader_allowed_names="[")])

    assert trust.proxy is None
    assert "requestheader-allowed-names" in source.problem


def test_an_absent_list_is_empty_as_in_go() -> None:
    trust = ClientAuth()

    ConfigMapTrust(trust).replace(
        [published(requestheader_uid_headers=None, requestheader_allowed_names=None)]
    )

    assert trust.proxy is not None
    assert trust.proxy[0].headers.uids == ()
    assert trust.proxy[0].allowed_names == ()


def test_a_cluster_without_aggregation_is_reported_with_the_fix() -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)
    source.replace([published(requestheader_client_ca_file=None)])

    assert trust.proxy is None
    assert "--requestheader-client-ca-file" in source.problem
    assert trust.clients is not None


def test_a_missing_or_deleted_configmap_keeps_what_is_known() -> None:
    trust = ClientAuth()
    source = ConfigMapTrust(trust)
    assert "has not been read" in source.problem
    source.replace([published()])

    source.apply(EventType.DELETED, published())
    assert trust.proxy is not None
    assert "deleted" in source.problem
    source.replace([])
    assert trust.proxy is not None
    assert "does not exist" in source.problem


def test_files_win_over_the_configmap_key_by_key(tmp_path: Path) -> None:
    own = tmp_path / "proxy.pem"
    own.write_bytes(TWO)
    trust = ClientAuth()
    FileTrust(trust, proxy_ca_file=own, allowed_names=("mine",))

    ConfigMapTrust(trust, proxy=False).replace([published()])

    assert trust.bundle == TWO + b"\n" + CLIENTS
    assert trust.proxy is not None
    assert trust.proxy[0].allowed_names == ("mine",)


def test_a_changed_ca_file_is_read_and_a_bad_one_keeps_the_good(tmp_path: Path) -> None:
    file = tmp_path / "clients.pem"
    file.write_bytes(ONE)
    trust = ClientAuth()
    files = FileTrust(trust, client_ca_file=file)

    file.write_bytes(b"half a certif")
    files.check()
    assert trust.bundle == ONE
    assert str(file) in files.problem

    file.write_bytes(TWO)
    files.check()
    assert trust.bundle == TWO
    assert files.problem == ""

    file.unlink()
    files.check()
    assert trust.bundle == TWO
    assert "No such file" in files.problem


def test_a_ca_swapped_by_symlink_is_noticed(tmp_path: Path) -> None:
    """kubelet's way with mounted ConfigMaps: a renamed link to a new folder."""
    for name, pem in (("v1", ONE), ("v2", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ca.pem").write_bytes(pem)
    (tmp_path / "data").symlink_to("v1")
    trust = ClientAuth()
    files = FileTrust(trust, client_ca_file=tmp_path / "data" / "ca.pem")

    (tmp_path / "new").symlink_to("v2")
    os.replace(tmp_path / "new", tmp_path / "data")  # noqa: PTH105 - replaces the link itself
    files.check()

    assert trust.bundle == TWO


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file"), (b"", "PEM"), (b"\x00\xff", "PEM")]
)
def test_a_bad_ca_file_at_the_start_is_an_error_that_names_it(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(TrustFileError, match=why) as caught:
        FileTrust(ClientAuth(), proxy_ca_file=file)

    assert str(file) in str(caught.value)
