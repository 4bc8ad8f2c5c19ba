"""Serving certificates over real sockets, replaced while clients are connected."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509

from apiservice.auth.clientauth import ClientAuth
from apiservice.tls.certificates import CertificateFiles, CertificatePairError
from apiservice.tls.context import ServingTLS
from apiservice.tls.selfsigned import SelfSigned
from tests.apiservice.loops import Run
from tests.apiservice.pki import HOUR, client_context
from tests.apiservice.rawhttp import connected, serving
from tests.apiservice.tls.serving import (
    CA,
    NOW,
    served_serial,
    whoami,
)


def test_a_certificate_is_replaced_under_a_connected_client(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        async with serving(whoami(trust), tls.listening_context) as server:
            async with connected(server, client_context(CA.pem)) as old:
                await old.ask()
                renewed = CA.server("localhost", ends=2 * HOUR)
                renewed.write(files.certificate.parent, "tls")
                tls.check(NOW)
                async with connected(server, client_context(CA.pem)) as new:
                    await new.ask()
                    assert served_serial(new) == renewed.certificate.serial_number
                assert served_serial(old) != renewed.certificate.serial_number
                assert (await old.ask())[0] == 200
            assert tls.validity.ends == int(NOW + 2 * HOUR)

    run(body)


def test_a_bad_new_pair_keeps_the_old_and_is_reported(
    run: Run, trust: ClientAuth, files: CertificateFiles
) -> None:
    async def body() -> None:
        tls = ServingTLS(files, trust, NOW)
        good = files.certificate.read_bytes()
        async with serving(whoami(trust), tls.listening_context) as server:
            for bad in (b"", CA.server("localhost").pem, CA.server("localhost", ends=-1).pem):
                files.certificate.write_bytes(bad)
                tls.check(NOW)
                assert str(files.certificate) in tls.problem
                async with connected(server, client_context(CA.pem)) as wire:
                    assert (await wire.ask())[0] == 200
            files.certificate.write_bytes(good)
            tls.check(NOW)
            assert tls.problem == ""

    run(body)


def test_a_pair_swapped_by_symlink_is_noticed(run: Run, trust: ClientAuth, tmp_path: Path) -> None:
    """kubelet's way with mounted Secrets: ``..data`` is renamed to a new folder."""

    async def body() -> None:
        for name in ("v1", "v2"):
            CA.server("localhost").write(tmp_path / name, "tls")
        (tmp_path / "..data").symlink_to("v1")
        files = CertificateFiles(tmp_path / "..data" / "tls.crt", tmp_path / "..data" / "tls.key")
        tls = ServingTLS(files, trust, NOW)
        async with serving(whoami(trust), tls.listening_context) as server:
            (tmp_path / "..new").symlink_to("v2")
            os.replace(tmp_path / "..new", tmp_path / "..data")  # noqa: PTH105 - the link itself
            tls.check(NOW)
            async with connected(server, client_context(CA.pem)) as wire:
                await wire.ask()
                expected = x509.load_pem_x509_certificate((tmp_path / "v2/tls.crt").read_bytes())
                assert served_serial(wire) == expected.serial_number

    run(body)


def test_a_self_signed_certificate_serves_and_is_renewed_in_time(
    run: Run, trust: ClientAuth, tmp_path: Path
) -> None:
    async def body() -> None:
        source = SelfSigned(tmp_path, ("localhost", "127.0.0.1"))
        day = 86400
        tls = ServingTLS(source, trust, NOW - 300 * day)
        client = ssl.create_default_context(cafile=source.ca)
        async with serving(whoami(trust), tls.listening_context) as server:
            async with connected(server, client) as wire:
                await wire.ask()
                first = served_serial(wire)
            tls.check(NOW)
            assert tls.validity.ends == int(NOW) + 365 * day
            async with connected(server, client) as wire:
                await wire.ask()
                assert served_serial(wire) != first

    run(body)


def test_a_bad_pair_at_the_start_is_an_error(trust: ClientAuth, tmp_path: Path) -> None:
    with pytest.raises(CertificatePairError, match=r"tls\.crt"):
        ServingTLS(CertificateFiles(tmp_path / "tls.crt", tmp_path / "tls.key"), trust, NOW)
