"""What ``serve`` says about the certificates in use: before they end, and after."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from adapter.config.settings import Settings
from adapter.server.serve.lifetimes import AFTERWARDS, Lifetimes, certificate_lifetimes
from adapter.server.serve.reasons import REFUSALS
from adapter.server.serve.security import Security, build_security
from apiservice.auth.clientauth import ProxySettings
from apiservice.runtime.validity import Validity
from tests.apiservice.pki import HOUR, client_context
from tests.apiservice.rawhttp import connected, serving
from tests.apiservice.tls.serving import AS_BOB, NOW, PROXY_CA, handshake_refused, whoami


def secured(folder: Path) -> tuple[Security, bytes]:
    """The security of a process with a certificate of its own, and the CA of that."""
    names = {"cert_dir": str(folder / "certs"), "cert_names": ["localhost"]}
    security = build_security(Settings.model_validate({"server": names}), None, NOW)
    security.trust.set_proxy(ProxySettings(PROXY_CA.pem, ("front-proxy-client",)))
    return security, (folder / "certs" / "ca.crt").read_bytes()


def test_each_certificate_is_logged_with_a_tenth_of_its_life_left_and_at_its_end() -> None:
    served = [Validity(0, 100)]
    lifetimes = Lifetimes({"serving": lambda: served})
    with capture_logs() as lines:
        for now in (0, 89, 91, 95, 99, 100, 150, 151):
            lifetimes.look(now)
        served[:] = [Validity(140, 1000)]
        lifetimes.look(152)
        lifetimes.look(950)
    events = [(line["event"], line["log_level"], line["expires"]) for line in lines]
    assert events == [
        ("certificate expires soon", "warning", "1970-01-01 00:01 UTC"),
        ("certificate has expired", "error", "1970-01-01 00:01 UTC"),
        ("certificate expires soon", "warning", "1970-01-01 00:16 UTC"),
    ]
    assert {line["then"] for line in lines} == {AFTERWARDS["serving"]}


def test_of_several_the_first_to_end_counts_and_none_has_a_number() -> None:
    lifetimes = Lifetimes(
        {"front-proxy": lambda: [Validity(0, 9), Validity(5, 7)], "keda": lambda: ()}
    )
    assert lifetimes.soonest() == {"front-proxy": Validity(5, 7)}


async def test_the_api_servers_own_certificate_is_seen_on_its_connections(
    tmp_path: Path,
) -> None:
    """Its expiry is known to no ConfigMap: kubeadm's is renewed once a year, by hand."""
    security, ca = secured(tmp_path)
    proven, listening = security.authentication.is_proxy, security.tls.listening_context
    shown = client_context(ca, PROXY_CA.issue("front-proxy-client", ends=HOUR), tmp_path / "proxy")
    async with serving(whoami(security.trust), listening, proven=proven) as server:
        lifetimes = certificate_lifetimes(security, server, None)
        assert set(lifetimes.soonest()) == {"serving", "front-proxy-ca"}
        older = client_context(
            ca, PROXY_CA.issue("front-proxy-client", ends=HOUR / 2), tmp_path / "old"
        )
        async with (
            connected(server, older) as idle,
            connected(server, shown) as wire,
            connected(server, client_context(ca)),
        ):
            assert (await idle.ask(AS_BOB))[0] == 200
            assert (await wire.ask(AS_BOB))[0] == 200
            dates = lifetimes.soonest()
            assert dates["front-proxy"].ends == int(NOW + HOUR)
            assert dates["front-proxy-ca"].ends == int(NOW + 24 * HOUR)
            assert dates.keys() <= AFTERWARDS.keys()


async def test_a_client_whose_certificate_has_expired_is_counted_with_the_reason(
    tmp_path: Path,
) -> None:
    security, ca = secured(tmp_path)
    expired = client_context(ca, PROXY_CA.issue("front-proxy-client", ends=-1), tmp_path / "proxy")
    async with serving(whoami(security.trust), security.tls.listening_context) as server:
        with capture_logs() as lines:
            assert await handshake_refused(server.port, expired) is not None
        assert server.stats.refused == {"client-certificate": 1}
    assert "client-certificate" in REFUSALS
    (line,) = (line for line in lines if line["event"] == "connections refused")
    assert line["reason"] == "certificate has expired"


def test_an_expired_certificate_makes_the_process_unready_with_the_date(tmp_path: Path) -> None:
    """A pair that nobody replaces is not a problem of its files."""
    security, _ = secured(tmp_path)
    (check,) = security.checks
    assert check.probe() is None
    security.tls.validity = Validity(0, 60)
    assert check.probe() == "expired on 1970-01-01 00:01 UTC: renew it"
