"""etcd, kube-apiserver and kube-controller-manager as plain processes on loopback."""

from __future__ import annotations

import base64
import contextlib
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
import yaml

from tests.e2e import programs
from tests.e2e.apiservice import NAMESPACE
from tests.e2e.certificates import Authority, KeyPair, write_key, write_public
from tests.e2e.cluster import Cluster, RefusedError
from tests.e2e.process import FailedError, Process, free_port

SERVICE_SUBNET = "10.0.0.0/24"
AUDITED = f"system:serviceaccounts:{NAMESPACE}"
"""The group of all accounts of the chart's namespace. Their requests are in the audit log."""
WORKLOADS = (
    "clusterrole-aggregation-controller",
    "deployment-controller",
    "replicaset-controller",
    "horizontal-pod-autoscaler-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "serviceaccount-controller",
)
SITE = (
    *WORKLOADS,
    "cronjob-controller",
    "daemonset-controller",
    "disruption-controller",
    "endpointslice-controller",
    "job-controller",
    "root-ca-certificate-publisher-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
)
"""The controllers that an installation needs where pods run."""
# The aggregator connects to pods directly, because nothing implements Service addresses.
_ROUTED = ("--enable-aggregator-routing=true",)
# Pods of the tests name no account, and nothing would mount its token.
_ALONE = ("--disable-admission-plugins=ServiceAccount",)


class Listener(NamedTuple):
    """The address of a kube-apiserver, and its access to pods."""

    address: str
    port: int
    services: str
    """Addresses of Services."""
    pods: bool = False
    """Pods run, at addresses that it reaches."""


class ControlPlane:
    """A whole control plane without nodes. Use as a context manager.

    Args:
        folder: where certificates, etcd's data and the logs go.
        controllers: which controllers kube-controller-manager runs.
        manager: further flags of kube-controller-manager.
        gates: feature gates of both Kubernetes programs, such as ``HPAScaleToZero=true``.
        listener: where kube-apiserver listens.
        aggregation: whether kube-apiserver has the flags of the aggregation layer.
    """

    def __init__(
        self,
        folder: Path,
        controllers: Sequence[str] = WORKLOADS,
        manager: Sequence[str] = (),
        gates: str = "",
        listener: Listener | None = None,
        aggregation: bool = True,
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        listener = listener or Listener("127.0.0.1", free_port(), SERVICE_SUBNET)
        self.port = listener.port
        self.url = f"https://{listener.address}:{self.port}"
        self.ca = Authority(folder, "cluster-ca")
        self.front_proxy = Authority(folder, "front-proxy-ca")
        self.proxy_client = self.front_proxy.issue("front-proxy-client")
        self.admin_pair = self.user("admin", "system:masters")
        self._account_key = folder / "service-account.key"
        key = write_key(self._account_key)
        self._account_public = folder / "service-account.pub"
        write_public(self._account_public, key)
        self.audit = folder / "audit.log"
        gate = [f"--feature-gates={gates}"] if gates else []
        self.etcd, etcd_url = self._etcd()
        layer = self._aggregation() if aggregation else []
        self.apiserver = self._apiserver(etcd_url, listener, [*layer, *gate])
        self.manager = self._manager(controllers, [*manager, *gate])
        self.admin = Cluster(self.url, str(self.ca.cert), pair=self.admin_pair)
        self.kubeconfig = self.write_kubeconfig("admin", pair=self.admin_pair)

    def __enter__(self) -> ControlPlane:
        try:
            self.etcd.start()
            self.start_apiserver()
            self.manager.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop every process, in reverse order."""
        self.admin.close()
        for process in (self.manager, self.apiserver):
            process.stop(signal.SIGKILL)
        self.etcd.stop(signal.SIGKILL)

    def start_apiserver(self) -> None:
        """Start or restart the API server and wait until it is ready."""
        self.apiserver.start()
        self.apiserver.wait_ready(self._ready)

    def restart_apiserver(self) -> None:
        """Kill the API server and start it on the same port. A graceful shutdown would wait
        for every watch, more than a minute."""
        self.apiserver.stop(signal.SIGKILL)
        self.start_apiserver()

    def user(self, name: str, *groups: str) -> KeyPair:
        """Issue a client certificate of the cluster's CA."""
        return self.ca.issue(name, groups=groups)

    def client(self, name: str, *groups: str) -> Cluster:
        """Return a client that acts as this user."""
        return Cluster(self.url, str(self.ca.cert), pair=self.user(name, *groups))

    def write_kubeconfig(
        self, name: str, *, pair: KeyPair | None = None, token: str | None = None
    ) -> Path:
        """Write a kubeconfig with a certificate or a token; return its path."""
        user: dict[str, str] = {}
        if pair is not None:
            user = {
                "client-certificate-data": _encoded(pair.cert),
                "client-key-data": _encoded(pair.key),
            }
        if token is not None:
            user = {"token": token}
        server = {"server": self.url, "certificate-authority-data": _encoded(self.ca.cert)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": "e2e", "cluster": server}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "e2e", "user": name}}],
        }
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(content))
        path.chmod(0o600)
        return path

    def tails(self) -> str:
        """Return the ends of all logs."""
        parts = (self.etcd, self.apiserver, self.manager)
        return "\n".join(f"--- {part.log.stem}\n{part.tail()}" for part in parts)

    def _ready(self) -> bool:
        with contextlib.suppress(httpx.TransportError, RefusedError):
            return bool(self.admin.get("/readyz") == "ok")
        return False

    def _etcd(self) -> tuple[Process, str]:
        client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        process = Process(
            [
                programs.find(programs.ETCD),
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
                "--unsafe-no-fsync",
                # As with kubeadm: idle watches get bookmarks.
                "--experimental-watch-progress-notify-interval=5s",
                "--log-level=warn",
            ],
            self.folder / "etcd.log",
        )
        return process, client

    def _apiserver(self, etcd: str, listener: Listener, extra: Sequence[str]) -> Process:
        serving = self.ca.issue(
            "kube-apiserver",
            server=True,
            dns=("kubernetes.default.svc", "kubernetes.default"),
            address=listener.address,
        )
        return Process(
            [
                programs.find(programs.KUBE_APISERVER),
                f"--etcd-servers={etcd}",
                f"--bind-address={listener.address}",
                f"--secure-port={listener.port}",
                # Loopback is rejected as an endpoint; this one is unused.
                "--advertise-address=192.0.2.1",
                "--endpoint-reconciler-type=none",
                f"--service-cluster-ip-range={listener.services}",
                f"--tls-cert-file={serving.cert}",
                f"--tls-private-key-file={serving.key}",
                f"--client-ca-file={self.ca.cert}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={self._account_public}",
                f"--service-account-signing-key-file={self._account_key}",
                "--authorization-mode=RBAC",
                f"--audit-policy-file={self._audit_policy()}",
                f"--audit-log-path={self.audit}",
                *(_ROUTED if listener.pods else _ALONE),
                *extra,
            ],
            self.folder / "kube-apiserver.log",
        )

    def _aggregation(self) -> list[str]:
        return [
            f"--requestheader-client-ca-file={self.front_proxy.cert}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self.proxy_client.cert}",
            f"--proxy-client-key-file={self.proxy_client.key}",
        ]

    def _audit_policy(self) -> Path:
        rules = [{"level": "Metadata", "userGroups": [AUDITED]}, {"level": "None"}]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
        path = self.folder / "audit-policy.yaml"
        path.write_text(yaml.safe_dump(policy | {"omitStages": ["RequestReceived"]}))
        return path

    def _manager(self, controllers: Sequence[str], extra: Sequence[str]) -> Process:
        name = "system:kube-controller-manager"
        config = self.write_kubeconfig("kube-controller-manager", pair=self.user(name))
        return Process(
            [
                programs.find(programs.KUBE_CONTROLLER_MANAGER),
                f"--kubeconfig={config}",
                "--bind-address=127.0.0.1",
                f"--secure-port={free_port()}",
                f"--controllers={','.join(controllers)}",
                # Each controller has its own account: the HPA has only its built-in role.
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={self._account_key}",
                f"--root-ca-file={self.ca.cert}",
                "--leader-elect=false",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                *extra,
            ],
            self.folder / "kube-controller-manager.log",
        )


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


__all__ = ["SERVICE_SUBNET", "WORKLOADS", "ControlPlane", "FailedError"]
