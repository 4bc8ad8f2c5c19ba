"""Run a command in a separate network namespace with a bridge for pods.

``python -m tests.e2e.privatenetwork -- COMMAND``: as root, or as any user if user namespaces are
allowed. Pods then have addresses other than loopback, which API servers require. The machine does
not see the network, and it ends with the command. If the namespace cannot be created, a message
names the fix, and the command runs without it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

from tests.e2e import programs

BRIDGE = "pods0"
GATEWAY = "10.244.0.1"
"""The address of the machine on the bridge: the router of the pods."""
POD_PREFIX = "10.244"
"""Pods have addresses in 10.244.0.0/16, as usual with kubeadm."""
SERVICE_SUBNET = "10.96.0.0/16"
API_ADDRESS = "10.96.0.1"
"""The first address of the Services, which is that of the API server in every cluster."""
_MAC = "02:00:0a:f4:00:01"
# A bridge without its own address takes that of a port, and changes it when the port is removed:
# answers of pods would be lost for seconds.
_ENDING = ("--pid", "--fork", "--kill-child", "--mount-proc")
"""All processes of the command end with it."""
_REASON = "GMA_E2E_NO_NETWORK"
_INSIDE = "--inside"
_LINKS = f"""\
link set lo up
link add {BRIDGE} address {_MAC} type bridge
address add {GATEWAY}/16 dev {BRIDGE}
link set {BRIDGE} up
address add {API_ADDRESS}/32 dev lo
"""


def inside() -> bool:
    """Return whether this process has a network of its own."""
    return any(name == BRIDGE for _, name in socket.if_nameindex())


def links(lines: str, holder: int | None = None) -> None:
    """Run lines of ``ip -batch``, in the network namespace of a process if one is given.

    Raises:
        subprocess.CalledProcessError: ``ip`` refused one of them.
    """
    enter = ["nsenter", f"--net=/proc/{holder}/ns/net"] if holder else []
    command = [*enter, str(programs.find(programs.IP)), "-batch", "-"]
    subprocess.run(command, input=lines, text=True, capture_output=True, check=True)


def main(arguments: list[str]) -> int:
    """Run the command after ``--``; return its exit status."""
    if _INSIDE in arguments:
        links(_LINKS)
        return _replace(arguments[arguments.index("--") + 1 :])
    command = arguments[arguments.index("--") + 1 :]
    if shutil.which("unshare") is None:
        return _alone(command, "unshare is not in PATH")
    root = os.geteuid() == 0
    enter = ["unshare", *([] if root else ["--user", "--map-root-user"]), "--net"]
    errors: list[str] = []
    for more in (_ENDING, ()):
        inside = [*enter, *more, sys.executable, "-m", "tests.e2e.privatenetwork", _INSIDE, "--"]
        # First with a command that does nothing: if it fails, the network is the cause.
        tried = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return _replace([*inside, *command])
        errors = tried.stderr.strip().splitlines()
    return _alone(command, errors[-1] if errors else "no reason given")


def _alone(command: list[str], why: str) -> int:
    reason = (
        f"no network of its own could be made here ({why}): "
        "run as root with CAP_SYS_ADMIN, or allow user namespaces "
        "(sysctl kernel.unprivileged_userns_clone=1), and have util-linux and iproute2"
    )
    print(f"\n*** {reason}.\n*** Tests of a whole installation are skipped.\n", file=sys.stderr)
    os.environ[_REASON] = reason
    return _replace(command)


def _replace(command: list[str]) -> int:
    sys.stdout.flush()
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
