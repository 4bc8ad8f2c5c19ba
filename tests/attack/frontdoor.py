"""The real kube-apiserver in front of a besieged ``serve``, as tenants reach it."""

from __future__ import annotations

import contextlib
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.attack.siege import Siege
from tests.e2e.apiservice import (
    CUSTOM,
    NAMESPACE,
    SERVICE,
    ensure_namespace,
    register_group,
    unregister_group,
    wait_available,
)
from tests.e2e.cluster import Cluster
from tests.e2e.controlplane import ControlPlane

TENANT = "tenant"
READER = f"system:serviceaccount:{TENANT}:reader"
CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
RESOURCE = (("metrics.k8s.io", "v1beta1", 100),)
Groups = tuple[tuple[str, str, int], ...]
_GROUP = "rbac.authorization.k8s.io"


class FrontDoor:
    """kube-apiserver, and a tenant's ServiceAccount that may read metrics of its own namespace.

    Who may ask for what is decided by kube-apiserver's own RBAC, and its Priority and Fairness is
    on: the tenant's requests are one flow.
    """

    def __init__(self, folder: Path) -> None:
        self.plane = ControlPlane(folder, ())
        self.token = ""

    def open(self) -> None:
        """Start it, and create the tenant."""
        self.plane.etcd.start()
        self.plane.start_apiserver()
        admin = self.plane.admin
        for name in (NAMESPACE, TENANT):
            ensure_namespace(admin, name)
        meta = {"name": "reader", "namespace": TENANT}
        admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        groups = [CUSTOM[0][0], RESOURCE[0][0]]
        rule = {"apiGroups": groups, "resources": ["*"], "verbs": ["get", "list"]}
        kind = {"apiVersion": f"{_GROUP}/v1", "metadata": meta}
        admin.create({**kind, "kind": "Role", "rules": [rule]})
        account = {"kind": "ServiceAccount", **meta}
        role = {"apiGroup": _GROUP, "kind": "Role", "name": "reader"}
        admin.create({**kind, "kind": "RoleBinding", "roleRef": role, "subjects": [account]})
        self.token = admin.token(TENANT, "reader")
        meta = {"name": SERVICE, "namespace": NAMESPACE}
        spec = {"type": "ExternalName", "externalName": "localhost"}
        admin.create({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})

    def serves(self, siege: Siege, groups: Groups = CUSTOM) -> None:
        """Register the process, instead of an earlier one."""
        ca = siege.lab.folder / "certs" / "ca.crt"
        unregister_group(self.plane.admin, groups)
        register_group(self.plane.admin, siege.port, ca.read_bytes(), groups)
        wait_available(self.plane.admin, groups)

    def close(self) -> None:
        """End both processes."""
        self.plane.admin.close()
        for process in (self.plane.apiserver, self.plane.etcd):
            process.stop(signal.SIGKILL)

    def controller(self) -> Cluster:
        """Return a client with the name and the groups of the HPA controller."""
        groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
        return self.plane.client(CONTROLLER, *groups, "system:authenticated")

    def tenant(self) -> Cluster:
        """Return a client with the tenant's token."""
        return Cluster(self.plane.url, str(self.plane.ca.cert), token=self.token)

    @contextmanager
    def request(self, path: str) -> Iterator[ssl.SSLSocket]:
        """Send a request of the tenant on a connection with a small window."""
        place = urlsplit(self.plane.url)
        context = ssl.create_default_context(cafile=self.plane.ca.cert)
        with contextlib.closing(socket.socket()) as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.settimeout(60)
            line.connect((place.hostname, place.port))
            with context.wrap_socket(line, server_hostname=place.hostname) as wrapped:
                head = f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n"
                wrapped.sendall(f"{head}Authorization: Bearer {self.token}\r\n\r\n".encode())
                yield wrapped
