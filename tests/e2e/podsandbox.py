"""The network of one pod: a namespace that is connected to the bridge."""

from __future__ import annotations

import itertools
import subprocess
import threading
from pathlib import Path

from tests.e2e.privatenetwork import BRIDGE, GATEWAY, POD_PREFIX, links
from tests.e2e.process import wait_until

_numbers = itertools.count(1)
_lock = threading.Lock()


def next_address() -> str:
    """Return an address that no pod has used."""
    with _lock:
        number = next(_numbers)
    return f"{POD_PREFIX}.{1 + number // 250}.{1 + number % 250}"


class Sandbox:
    """Holds the namespace from construction to ``close``, independent of its containers.

    The thread that creates it must live as long: its end would end the namespace.

    Args:
        host: the pod uses the network of the machine, which has the address already.
    """

    def __init__(self, address: str, *, host: bool = False) -> None:
        self.address = address
        self._holder: subprocess.Popen[bytes] | None = None
        if not host:
            self._holder = self._join()

    def _join(self) -> subprocess.Popen[bytes]:
        """Connect a new namespace; returns the process that holds it."""
        # Like the pause container of a real node.
        holding = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "infinity"]
        holder = subprocess.Popen(holding, stdin=subprocess.DEVNULL)
        pid, address = holder.pid, self.address
        ours = Path("/proc/self/ns/net").readlink()
        wait_until(lambda: _namespace(pid) != ours, f"a network for {address}", 120, 0.005)
        link = "p" + address.removeprefix(f"{POD_PREFIX}.")
        links(
            f"link add {link} type veth peer name eth0 netns {pid}\n"
            f"link set {link} master {BRIDGE} up\n"
        )
        links(
            "link set lo up\n"
            f"address add {address}/16 dev eth0\n"
            "link set eth0 up\n"
            f"route add default via {GATEWAY}\n",
            pid,
        )
        return holder

    @property
    def enter(self) -> list[str]:
        """The prefix of a command that runs in it."""
        if self._holder is None:
            return []
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]

    def close(self) -> None:
        """Release the namespace with its end of the link."""
        if self._holder is not None:
            self._holder.kill()
            self._holder.wait()


def host_address(address: str) -> None:
    """Assign an address of a pod to the machine, for a thread of the tests."""
    links(f"address add {address}/32 dev lo\n")


def _namespace(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()
