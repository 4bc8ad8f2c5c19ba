"""TLS of the listener that KEDA asks: whom it trusts, and how files change under it."""

from __future__ import annotations

import time
from pathlib import Path

import grpc
import pytest
import trustme

from adapter.answers.keda.credentials import Credentials
from apiservice.tls.certificates import CertificateFiles, CertificatePairError
from tests.adapter.answers.keda.client import Client, connected, listening
from tests.adapter.answers.keda.cluster import Cluster
from tests.apiservice.pki import on_another_curve


class Files:
    """A serving pair and a CA of clients, on disk."""

    def __init__(self, folder: Path) -> None:
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"
        self.client_ca = folder / "clients.crt"

    @property
    def pair(self) -> CertificateFiles:
        return CertificateFiles(self.certificate, self.key)

    def serve(self, authority: trustme.CA) -> None:
        """A new pair of this CA, written as kubelet and people do: the key first."""
        leaf = authority.issue_cert("localhost", key_type=trustme.KeyType.ECDSA)
        leaf.private_key_pem.write_to_path(str(self.key))
        self.certificate.write_bytes(b"".join(pem.bytes() for pem in leaf.cert_chain_pems))

    def spoil(self, path: Path) -> None:
        """Write the certificate or key as one that the library cannot read."""
        path.write_bytes(on_another_curve(path.read_bytes()))

    def trust(self, *authorities: trustme.CA) -> None:
        self.client_ca.write_bytes(b"".join(ca.cert_pem.bytes() for ca in authorities))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def client_of(authority: trustme.CA, own: trustme.CA | None = None) -> grpc.ChannelCredentials:
    """Trusts ``authority``, and shows a certificate of ``own``."""
    if own is None:
        return grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    leaf = own.issue_cert(common_name="keda-operator")
    return grpc.ssl_channel_credentials(
        authority.cert_pem.bytes(),
        leaf.private_key_pem.bytes(),
        b"".join(pem.bytes() for pem in leaf.cert_chain_pems),
    )


async def code(client: Client) -> grpc.StatusCode:
    try:
        await client.spec()
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_only_clients_of_the_trusted_ca_are_served(files: Files) -> None:
    ours, other = trustme.CA(), trustme.CA()
    files.serve(ours)
    credentials = Credentials(files.pair, None, time.time())
    async with listening(Cluster(), credentials=credentials) as server:
        async with connected(server, client_of(ours)) as client:
            assert await code(client) is grpc.StatusCode.OK
        async with connected(server, client_of(other)) as client:
            assert await code(client) is grpc.StatusCode.UNAVAILABLE
        async with connected(server) as client:
            assert await code(client) is grpc.StatusCode.UNAVAILABLE


async def test_a_new_certificate_serves_new_connections_and_leaves_old_ones(files: Files) -> None:
    before, after = trustme.CA(), trustme.CA()
    files.serve(before)
    credentials = Credentials(files.pair, None, time.time())
    async with (
        listening(Cluster(), credentials=credentials) as server,
        connected(server, client_of(before)) as old,
    ):
        assert await code(old) is grpc.StatusCode.OK
        files.serve(after)
        credentials.check(time.time())
        async with connected(server, client_of(after)) as new:
            assert await code(new) is grpc.StatusCode.OK
        async with connected(server, client_of(before)) as late:
            assert await code(late) is grpc.StatusCode.UNAVAILABLE
        assert await code(old) is grpc.StatusCode.OK


async def test_a_pair_that_does_not_fit_leaves_the_last_one_and_is_reported(files: Files) -> None:
    ours = trustme.CA()
    files.serve(ours)
    credentials = Credentials(files.pair, None, time.time())
    async with listening(Cluster(), credentials=credentials) as server:
        trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(str(files.key))
        credentials.check(time.time())
        assert "do not belong together" in credentials.problem
        assert server.stats.problem() == credentials.problem
        async with connected(server, client_of(ours)) as client:
            assert await code(client) is grpc.StatusCode.OK
        files.serve(ours)
        server.check_files(time.time())
        assert credentials.problem == ""
        async with connected(server, client_of(ours)) as client:
            assert await code(client) is grpc.StatusCode.OK


@pytest.mark.parametrize("which", ["key", "certificate"])
async def test_a_file_that_the_library_cannot_read_leaves_the_last_pair(
    files: Files, which: str
) -> None:
    ours = trustme.CA()
    files.serve(ours)
    credentials = Credentials(files.pair, None, time.time())
    files.spoil(getattr(files, which))
    async with listening(Cluster(), credentials=credentials) as server:
        server.check_files(time.time())
        assert str(getattr(files, which)) in credentials.problem
        async with connected(server, client_of(ours)) as client:
            assert await code(client) is grpc.StatusCode.OK


async def test_with_a_client_ca_only_its_clients_are_served(files: Files) -> None:
    ours, keda, other = trustme.CA(), trustme.CA(), trustme.CA()
    files.serve(ours)
    files.trust(keda)
    credentials = Credentials(files.pair, files.client_ca, time.time())
    async with listening(Cluster(), credentials=credentials) as server:
        for own, expected in (
            (keda, grpc.StatusCode.OK),
            (other, grpc.StatusCode.UNAVAILABLE),
            (None, grpc.StatusCode.UNAVAILABLE),
        ):
            async with connected(server, client_of(ours, own)) as client:
                assert await code(client) is expected


async def test_a_client_ca_is_added_and_taken_away_while_serving(files: Files) -> None:
    ours, first, second = trustme.CA(), trustme.CA(), trustme.CA()
    files.serve(ours)
    files.trust(first)
    credentials = Credentials(files.pair, files.client_ca, time.time())
    async with listening(Cluster(), credentials=credentials) as server:
        files.trust(second)
        credentials.check(time.time())
        async with connected(server, client_of(ours, second)) as client:
            assert await code(client) is grpc.StatusCode.OK
        async with connected(server, client_of(ours, first)) as client:
            assert await code(client) is grpc.StatusCode.UNAVAILABLE


def test_files_that_cannot_be_used_are_named_at_the_start(files: Files) -> None:
    with pytest.raises(CertificatePairError, match=r"tls\.crt: No such file or directory"):
        Credentials(files.pair, None, time.time())
    files.serve(trustme.CA())
    with pytest.raises(CertificatePairError, match=r"clients\.crt: No such file.*name a file"):
        Credentials(files.pair, files.client_ca, time.time())
    files.client_ca.write_text("none")
    with pytest.raises(CertificatePairError, match=r"clients\.crt contains no PEM certificate"):
        Credentials(files.pair, files.client_ca, time.time())
