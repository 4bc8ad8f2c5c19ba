"""A rotation, run by run, against a fake API server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography import x509
from structlog.testing import capture_logs

from adapter.tools.maintain.cluster import MaintainError, RefusalError
from adapter.tools.maintain.objects import ISSUED, KEPT, PUBLISHED, RENEW, registration_path
from adapter.tools.maintain.trust import issuer_of, read_bundle
from apiservice.tls.authority import new_authority, read_authority
from apiservice.tls.certificates import judge_pair
from tests.adapter.tools.maintain.fakecluster import (
    AUTHORITY,
    CERTIFICATE,
    CUSTOM,
    DAY,
    HOST,
    NOW,
    POLICY,
    TARGET,
    FakeCluster,
)

SETTLE = POLICY.settle
EXTERNAL = "v1beta1.external.metrics.k8s.io"


@pytest.fixture
def cluster() -> FakeCluster:
    """An installation that has had its first run, some time ago."""
    made = FakeCluster()
    made.install()
    made.run()
    made.time += 10 * SETTLE
    made.writes.clear()
    return made


def leaf(cluster: FakeCluster) -> x509.Certificate:
    (certificate,) = read_bundle(cluster.data(CERTIFICATE, "tls.crt"))
    return certificate


def authorities(cluster: FakeCluster) -> tuple[x509.Certificate, ...]:
    return read_bundle(cluster.data(AUTHORITY, "ca.crt"))


def served_well(cluster: FakeCluster) -> bool:
    """Every APIService trusts the certificate, and it is good for its Service's name."""
    pair = cluster.data(CERTIFICATE, "tls.crt"), cluster.data(CERTIFICATE, "tls.key")
    judged = judge_pair(*pair, cluster.time, "tls.crt", "tls.key")
    trusted = [issuer_of(leaf(cluster), read_bundle(cluster.bundle(name))) for name in CUSTOM]
    return judged.covers([HOST]) and all(trusted)


def test_the_first_run_fills_what_the_chart_left_empty() -> None:
    cluster = FakeCluster()
    cluster.install()
    with capture_logs() as logs:
        cluster.run()
    assert [row["event"] for row in logs] == [
        "CA created",
        "caBundle written",
        "caBundle written",
        "certificate issued",
    ]
    assert served_well(cluster)
    assert leaf(cluster).not_valid_after_utc.timestamp() == NOW + 90 * DAY
    (authority,) = authorities(cluster)
    assert authority.not_valid_after_utc.timestamp() == NOW + 365 * DAY
    assert cluster.data(CERTIFICATE, "ca.crt") == cluster.data(AUTHORITY, "ca.crt")
    assert cluster.data(CERTIFICATE, "ca.key") == b"", "pods never see the CA's key"


def test_a_run_with_nothing_to_do_writes_nothing_and_says_nothing(cluster: FakeCluster) -> None:
    with capture_logs() as logs:
        assert cluster.run() == 0
    assert logs == []


def test_a_certificate_is_renewed_with_a_third_of_its_life_left(cluster: FakeCluster) -> None:
    first, authority = leaf(cluster), authorities(cluster)
    cluster.time = NOW + 59 * DAY
    assert cluster.run() == 0
    cluster.time = NOW + 61 * DAY
    assert cluster.run() == 1
    assert leaf(cluster) != first
    assert authorities(cluster) == authority
    assert served_well(cluster)


def test_a_ca_is_replaced_in_three_runs(cluster: FakeCluster) -> None:
    (old,), first = authorities(cluster), leaf(cluster)
    cluster.time = NOW + 276 * DAY
    # Renewed meanwhile, by the CA that there was.
    cluster.fill(CERTIFICATE, **pair_of(cluster, 240 * DAY))
    with capture_logs() as logs:
        cluster.run()
    new, kept = authorities(cluster)
    assert kept == old
    assert issuer_of(leaf(cluster), [old]), "nothing is signed by the new one yet"
    assert logs[-1]["reason"] == "the new CA must reach every API server"
    assert {cluster.bundle(name) for name in CUSTOM} == {cluster.data(AUTHORITY, "ca.crt")}
    cluster.time += SETTLE - 1
    assert cluster.run() == 0
    cluster.time += 1
    cluster.run()
    assert issuer_of(leaf(cluster), [new])
    assert authorities(cluster) == (new, old)
    cluster.time += SETTLE - 1
    assert cluster.run() == 0
    cluster.time += 1
    cluster.run()
    assert authorities(cluster) == (new,)
    assert {cluster.bundle(name) for name in CUSTOM} == {cluster.data(CERTIFICATE, "ca.crt")}
    assert served_well(cluster)
    assert leaf(cluster) != first
    assert cluster.run() == 0


def test_a_run_that_is_killed_at_any_request_is_healed_by_the_next() -> None:
    """From nothing, for a new certificate, and in each of the three runs that replace a CA."""
    begun = 0
    for start in (_empty, _old_certificate, _old_ca, _new_ca_trusted, _new_ca_in_use):
        for requests in range(100):
            cluster = start()
            run = cluster.rotation().run()
            try:
                for _ in range(requests):
                    run.send(None)
            except StopIteration:
                break
            run.close()
            begun += 1
            if start is not _empty:
                assert served_well(cluster), "requests succeed between the runs too"
            cluster.run()
            assert served_well(cluster)
            assert cluster.data(CERTIFICATE, "ca.crt") == cluster.data(AUTHORITY, "ca.crt")
            assert {cluster.bundle(name) for name in CUSTOM} == {cluster.data(AUTHORITY, "ca.crt")}
            assert cluster.run() == 0
            for _ in range(3):
                cluster.time += SETTLE + 1
                cluster.run()
            assert served_well(cluster)
            assert len(authorities(cluster)) == 1, "a rotation that has begun ends"
    assert begun > 60


def _empty() -> FakeCluster:
    cluster = FakeCluster()
    cluster.install()
    return cluster


def _settled(days: float) -> FakeCluster:
    cluster = _empty()
    cluster.run()
    cluster.time = NOW + days * DAY
    return cluster


def _old_certificate() -> FakeCluster:
    return _settled(61)


def _old_ca() -> FakeCluster:
    cluster = _settled(240)
    cluster.fill(CERTIFICATE, **pair_of(cluster, 240 * DAY))
    cluster.time = NOW + 276 * DAY
    return cluster


def _new_ca_trusted() -> FakeCluster:
    cluster = _old_ca()
    cluster.run()
    cluster.time += SETTLE + 1
    return cluster


def _new_ca_in_use() -> FakeCluster:
    cluster = _new_ca_trusted()
    cluster.run()
    cluster.time += SETTLE + 1
    return cluster


def pair_of(cluster: FakeCluster, later: float) -> dict[str, bytes | None]:
    authority = read_authority(cluster.data(AUTHORITY, "ca.crt"), cluster.data(AUTHORITY, "ca.key"))
    issued = authority.issue(POLICY.names, NOW + later, POLICY.days)
    return {"tls_crt": issued.certificate, "tls_key": issued.key}


@pytest.mark.parametrize("path", [CERTIFICATE, AUTHORITY])
def test_users_request_a_new_one_with_an_annotation(cluster: FakeCluster, path: str) -> None:
    first, (old,) = leaf(cluster), authorities(cluster)
    cluster.annotate(path, RENEW, "now")
    for _ in range(3):
        cluster.run()
        cluster.time += SETTLE
        assert served_well(cluster)
    assert leaf(cluster) != first
    assert (authorities(cluster) == (old,)) == (path == CERTIFICATE)
    assert RENEW not in cluster.objects[path]["metadata"]["annotations"]
    assert cluster.run() == 0


def test_a_request_for_a_ca_at_every_run_yields_certificates_too(cluster: FakeCluster) -> None:
    first = leaf(cluster)
    for _ in range(8):
        cluster.annotate(AUTHORITY, RENEW, "now")
        cluster.run()
        cluster.time += SETTLE
        assert len(authorities(cluster)) <= 2
        assert served_well(cluster)
    assert leaf(cluster) != first


OTHER = new_authority(NOW, 365)
THEIRS = OTHER.issue(("elsewhere.svc",), NOW, 90)


def lose(**data: bytes | None) -> Callable[[FakeCluster], None]:
    return lambda cluster: cluster.fill(CERTIFICATE, **data)


def expire(cluster: FakeCluster) -> None:
    cluster.time = NOW + 91 * DAY


def forget_the_authority(cluster: FakeCluster) -> None:
    cluster.fill(AUTHORITY, ca_crt=None, ca_key=None)


def wipe(cluster: FakeCluster) -> None:
    """As `helm upgrade --force` does."""
    cluster.install()


def set_the_clock_back_by_a_year(cluster: FakeCluster) -> None:
    cluster.time = NOW - 365 * DAY


SPOILED: dict[str, Callable[[FakeCluster], None]] = {
    "no certificate": lose(tls_crt=None, tls_key=None),
    "no key": lose(tls_key=None),
    "a certificate that is none": lose(tls_crt=b"nonsense"),
    "another certificate's key": lose(tls_key=THEIRS.key),
    "somebody's certificate": lose(tls_crt=THEIRS.certificate, tls_key=THEIRS.key),
    "an expired certificate": expire,
    "no CA": forget_the_authority,
    "a CA without its key": lambda cluster: cluster.fill(AUTHORITY, ca_key=None),
    "a CA that is none": lambda cluster: cluster.fill(AUTHORITY, ca_crt=b"nonsense"),
    "another CA's key": lambda cluster: cluster.fill(AUTHORITY, ca_key=OTHER.key_pem),
    "nothing at all": wipe,
    "a clock that was far ahead": set_the_clock_back_by_a_year,
}


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_the_next_run_repairs_spoiled_objects(
    cluster: FakeCluster, spoil: Callable[[FakeCluster], None]
) -> None:
    spoil(cluster)
    cluster.run()
    assert served_well(cluster)
    for _ in range(3):
        cluster.time += SETTLE
        cluster.run()
        assert served_well(cluster)
    assert len(authorities(cluster)) == 1
    assert cluster.run() == 0


def test_a_lost_ca_is_trusted_until_its_certificate_is_replaced(cluster: FakeCluster) -> None:
    (old,), first = authorities(cluster), leaf(cluster)
    forget_the_authority(cluster)
    cluster.run()
    assert leaf(cluster) == first, "it is served well: nothing is hurried"
    assert authorities(cluster)[1:] == (old,)


def test_a_ca_brought_back_from_a_backup_does_not_displace_the_one_in_use(
    cluster: FakeCluster,
) -> None:
    (old,), first = authorities(cluster), leaf(cluster)
    cluster.fill(AUTHORITY, ca_crt=OTHER.certificate_pem, ca_key=OTHER.key_pem)
    cluster.run()
    assert authorities(cluster) == (OTHER.certificate, old)
    assert leaf(cluster) == first
    assert served_well(cluster)


def test_other_names_make_another_certificate(cluster: FakeCluster) -> None:
    pair = cluster.data(AUTHORITY, "ca.crt"), cluster.data(AUTHORITY, "ca.key")
    signer = read_authority(*pair)
    short = signer.issue((HOST,), cluster.time, 90)
    cluster.fill(CERTIFICATE, tls_crt=short.certificate, tls_key=short.key)
    assert cluster.run() == 1
    judged = judge_pair(
        cluster.data(CERTIFICATE, "tls.crt"),
        cluster.data(CERTIFICATE, "tls.key"),
        cluster.time,
        "",
        "",
    )
    assert judged.covers(POLICY.names)


def test_a_note_from_the_future_is_made_again_and_nothing_is_cut_short(
    cluster: FakeCluster,
) -> None:
    """A clock that was set back: the wait begins again, and lasts no longer than a wait."""
    cluster.annotate(AUTHORITY, RENEW, "now")
    cluster.run()
    (old,) = authorities(cluster)[1:]
    cluster.time -= 3000
    cluster.run()
    cluster.time += SETTLE - 1
    cluster.run()
    assert issuer_of(leaf(cluster), [old])
    cluster.time += 1
    cluster.run()
    assert not issuer_of(leaf(cluster), [old])


def test_an_apiservice_that_comes_later_is_published_to(cluster: FakeCluster) -> None:
    target = TARGET._replace(registrations=(*CUSTOM, EXTERNAL))
    with pytest.raises(MaintainError, match=f"{EXTERNAL} does not exist: apply the chart again"):
        cluster.run(target=target)
    cluster.register(EXTERNAL, "gpu-metrics", "adapter")
    cluster.run(target=target)
    assert cluster.bundle(EXTERNAL) == cluster.bundle(CUSTOM[0])


def test_the_first_run_waits_for_apiservices_that_helm_makes_last() -> None:
    cluster = FakeCluster()
    cluster.install()
    missing = [cluster.objects.pop(registration_path(name)) for name in CUSTOM]

    async def come_late(seconds: float) -> None:
        await FakeCluster.pause(cluster, seconds)
        assert leaf(cluster), "pods need not wait for it"
        if missing:
            obj = missing.pop()
            cluster.put(registration_path(obj["metadata"]["name"]), obj)

    cluster.pause = come_late  # type: ignore[method-assign]  # our own fake
    cluster.run(wait=60)
    assert served_well(cluster)


@pytest.mark.parametrize(
    ("service", "owner"),
    [({"namespace": "keda", "name": "keda-metrics"}, "keda/keda-metrics"), (None, "API server")],
)
def test_a_foreign_apiservice_is_left_alone_and_named(
    cluster: FakeCluster, service: dict[str, str] | None, owner: str
) -> None:
    path = registration_path(CUSTOM[0])
    theirs = {"metadata": {"name": CUSTOM[0]}, "spec": {"service": service, "caBundle": "QQ=="}}
    cluster.put(path, theirs)
    cluster.annotate(AUTHORITY, RENEW, "now")
    for _ in range(3):
        with pytest.raises(RefusalError, match=f"{CUSTOM[0]} .*{owner}.* belongs to somebody"):
            cluster.run()
        cluster.time += SETTLE
    assert path not in cluster.writes
    assert len(authorities(cluster)) == 1, "the rest is kept all the same"


@pytest.mark.parametrize("path", [AUTHORITY, CERTIFICATE])
def test_a_secret_that_somebody_else_filled_is_not_changed(path: str) -> None:
    cluster = FakeCluster()
    cluster.install()
    cluster.fill(path, tls_crt=b"theirs")
    with pytest.raises(RefusalError, match=r"contains tls.crt that somebody else wrote.*rename it"):
        cluster.run()
    assert cluster.writes == []


def test_a_missing_secret_is_named_with_the_fix(cluster: FakeCluster) -> None:
    del cluster.objects[CERTIFICATE]
    with pytest.raises(MaintainError, match="adapter-certificate does not exist: apply the chart"):
        cluster.run()


def test_what_is_refused_ends_the_run(cluster: FakeCluster) -> None:
    cluster.refuse[registration_path(CUSTOM[1])] = "forbidden; apply the chart again"
    with pytest.raises(MaintainError, match="forbidden; apply the chart again"):
        cluster.run()


def test_a_conflicting_write_is_decided_again(cluster: FakeCluster) -> None:
    """The status of an APIService is written by the API server all the time."""
    touched = dict.fromkeys((AUTHORITY, CERTIFICATE, *map(registration_path, CUSTOM)), 0)

    def meddle(path: str) -> None:
        touched[path] += 1
        if touched[path] < 4:
            cluster.annotate(path, "status", str(touched[path]))

    cluster.before_patch = meddle
    cluster.annotate(AUTHORITY, RENEW, "now")
    for _ in range(3):
        cluster.run()
        cluster.time += SETTLE
    assert served_well(cluster)
    assert len(authorities(cluster)) == 1


def test_a_writer_that_never_rests_is_named(cluster: FakeCluster) -> None:
    cluster.annotate(AUTHORITY, RENEW, "now")
    cluster.before_patch = lambda path: cluster.annotate(path, "status", str(cluster.time))
    with pytest.raises(MaintainError, match="another client keeps writing it"):
        cluster.run()


def test_notes_are_for_people_too(cluster: FakeCluster) -> None:
    notes = cluster.objects[AUTHORITY]["metadata"]["annotations"]
    assert notes[KEPT] == "maintain"
    assert notes[PUBLISHED].endswith(" 2027-01-15T08:00:00Z")
    assert cluster.objects[CERTIFICATE]["metadata"]["annotations"][ISSUED].endswith("Z")
