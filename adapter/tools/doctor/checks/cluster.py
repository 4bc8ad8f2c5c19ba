"""Checks of the cluster: version, aggregation layer, rights, clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from adapter.tools.doctor.facts import Facts
from adapter.tools.doctor.model import CheckSection, Finding, Severity, check
from apiservice.wire import instant

OLDEST: Final = (1, 27)
"""``kubeVersion`` of the chart."""
_SOON: Final = 30 * 86400.0


@check("GMA001", CheckSection.CLUSTER, "Kubernetes is 1.27 or newer")
def old_version(facts: Facts) -> Iterator[Finding]:
    """The chart needs Kubernetes 1.27: an older API server may lack `autoscaling/v2`.

    Upgrade the cluster.
    """
    version = facts.version.read()
    if version < OLDEST:
        yield Finding(
            "cluster",
            f"the API server is Kubernetes {version[0]}.{version[1]}",
            "upgrade the cluster to Kubernetes 1.27 or newer",
            "kubectl version",
        )


@check("GMA002", CheckSection.CLUSTER, "the aggregation layer is on")
def aggregation_off(facts: Facts) -> Iterator[Finding]:
    """The API server forwards requests for metrics only with `--requestheader-client-ca-file` and
    `--proxy-client-cert-file`, as in every managed cluster.

    Start the API server with these flags ("Configure the Aggregation Layer" in the Kubernetes
    documentation).
    """
    data = facts.authentication.read()
    if not data.get("requestheader-client-ca-file"):
        yield Finding(
            "configmap kube-system/extension-apiserver-authentication",
            "has no requestheader-client-ca-file, so no metrics API can be served",
            "start the API server with --requestheader-client-ca-file",
            "kubectl -n kube-system get configmap extension-apiserver-authentication -o yaml",
        )


@check(
    "GMA003",
    CheckSection.CLUSTER,
    "the request-header CA is valid for 30 more days",
)
def front_proxy_ca(facts: Facts) -> Iterator[Finding]:
    """The adapter authenticates the API server with the CA in ConfigMap
    `kube-system/extension-apiserver-authentication`. After it expires, forwarded requests get 401.

    Replace the front-proxy CA ("Manual Rotation of CA Certificates" in the Kubernetes
    documentation; `kubeadm certs renew` renews no CA). The provider of a managed cluster replaces
    it.
    """
    text = facts.authentication.read().get("requestheader-client-ca-file", "")
    if not text:
        return
    from cryptography import x509  # noqa: PLC0415 - it takes longer than all other checks

    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        yield _front_proxy("is not a PEM certificate", Severity.ERROR)
        return
    ends = max(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
    day = datetime.fromtimestamp(ends, UTC).date()
    if ends < facts.now:
        yield _front_proxy(f"expired on {day}", Severity.ERROR)
    elif ends < facts.now + _SOON:
        days = int((ends - facts.now) // 86400)
        left = "in less than a day" if days < 1 else f"in {days} day{'s' if days > 1 else ''}"
        text = f"expires {left}, on {day}: then every HPA loses its metrics"
        yield _front_proxy(text, Severity.WARNING)


def _front_proxy(text: str, severity: Severity) -> Finding:
    return Finding(
        "requestheader-client-ca-file",
        text,
        "replace the front-proxy CA on the control plane, or ask the provider of the cluster",
        "kubeadm certs check-expiration # on a control plane node",
        severity,
    )


@check("GMA009", CheckSection.CLUSTER, "the HPA controller may read the metrics")
def hpa_rights(facts: Facts) -> Iterator[Finding]:
    """The HPA controller reads metrics as ServiceAccount `kube-system/horizontal-pod-autoscaler`,
    as Kubernetes allows by default. Without the right, HPAs report `FailedGetPodsMetric` with
    `forbidden`.

    Run the printed command, or set `hpaReader.create=true` in the chart.
    """
    for review in facts.hpa_rights.read():
        if not review.allowed:
            yield Finding(
                f"user {review.user}",
                f"may not {review.verb} {review.resource}, so HPAs cannot read metrics",
                "grant the right, or install the chart with hpaReader.create=true",
                review.command,
            )


@check("GMA010", CheckSection.CLUSTER, "the adapter's account has the rights that it needs")
def own_rights(facts: Facts) -> Iterator[Finding]:
    """The adapter lists and watches pods, Services and nodes, reads one ConfigMap in `kube-system`,
    and creates TokenReviews and SubjectAccessReviews.

    Apply the chart again, or grant the right that is missing.
    """
    for review in facts.own_rights.read():
        if not review.allowed:
            yield Finding(
                f"user {review.user}",
                f"may not {review.verb} {review.resource}",
                "apply the chart again, or grant the right",
                review.command,
            )


_SKEW: Final = 5.0


@check("GMA011", CheckSection.CLUSTER, "clocks agree", Severity.WARNING)
def skew(facts: Facts) -> Iterator[Finding]:
    """Clocks must agree within seconds. The check compares the API server with this machine and
    with each node's heartbeat.

    Run a time service (chrony, systemd-timesyncd) on the machine.
    """
    clocks = facts.clocks.read()
    if abs(clocks.here) > _SKEW:
        way = "ahead of" if clocks.here > 0 else "behind"
        yield Finding(
            "this machine",
            f"its clock is {abs(clocks.here):.0f} s {way} the API server's",
            "run a time service on the machine whose clock is wrong",
            "date -u; timedatectl status",
        )
    for lease in facts.leases.read() if facts.leases.known else ():
        renewed = instant.read(lease.spec.renew_time)
        if renewed is not None and renewed > clocks.server + _SKEW:
            name = lease.metadata.name
            yield Finding(
                f"node {name}",
                f"its heartbeat is {renewed - clocks.server:.0f} s in the future",
                "run a time service on the node",
                f"kubectl -n kube-node-lease get lease {name} -o yaml",
            )
