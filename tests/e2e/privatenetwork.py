"""Runs a command in a network namespace of its own, with a bridge that pods can hang on.

``python -m tests.e2e.privatenetwork -- COMMAND``: as root, or as anybody where user namespaces
are allowed. Pods then have addresses that are not loopback, which API servers insist on, and
nothing of it is seen by the machine or outlives the command. Where no such namespace can be
made, that is said with the fix, and the command runs without one.
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
"""The machine's own address on the bridge, which pods see as their router."""
POD_PREFIX = "10.244"
"""Pods have the addresses below 10.244.0.0/16, as kubeadm's usual networks give them."""
SERVICE_SUBNET = "10.96.0.0/16"
API_ADDRESS = "10.96.0.1"
"""The first address of the Services, which is that of the API server in every cluster."""
_MAC = "02:00:0a:f4:00:01"
# A bridge without one of its own takes that of some port, and another when the port goes: what
# pods answer would for seconds go to nobody.
_ENDING = ("--pid", "--fork", "--kill-child", "--mount-proc")
"""Whatever the command has started ends with it, however it ends."""
_REASON = "GMA_E2E_NO_NETWORK"
_INSIDE = "--inside"
_LINKS = f"""\
link set lo up
link add {BRIDGE} address {_MAC} type bridge
address add {GATEWAY}/16 dev {BRIDGE}
link set {BRIDGE} up
address add {API_ADDRESS}/32 dev lo
"""


def missing() -> str:
    """Return why there is no network of our own here, or an empty string."""
    try:
        socket.if_nametoindex(BRIDGE)
    except OSError:
        return os.environ.get(_REASON) or (
            "needs a network of its own: run it by `make e2e`, or by "
            "`python -m tests.e2e.privatenetwork -- python -m pytest …`"
        )
    return ""


def links(lines: str, holder: int | None = None) -> None:
    """Run lines of ``ip -batch``, in the network namespace of a process if one is given.

    Raises:
        subprocess.CalledProcessError: ``ip`` refused one of them.
    """
    enter = ["nsenter", f"--net=/proc/{holder}/ns/net"] if holder else []
    command = [*enter, str(programs.find(programs.IP)), "-batch", "-"]
    subprocess.run(command, input=lines, text=True, capture_output=True, check=True)


def main(arguments: list[str]) -> int:
    """Run what stands after ``--``; returns its exit status."""
    if _INSIDE in arguments:
        links(_LINKS)
        return _replace(arguments[arguments.index("--") + 1 :])
    command = arguments[arguments.index("--") + 1 :]
    if shutil.which("unshare") is None:
        return _alone(command, "unshare is not in PATH")
    root = os.geteuid() == 0
    enter = ["unshare", *([] if root else ["--user", "--map-root-user"]), "--net"]
    said: list[str] = []
    for more in (_ENDING, ()):
        inside = [*enter, *more, sys.executable, "-m", "tests.e2e.privatenetwork", _INSIDE, "--"]
        # Tried first with a command that does nothing: what fails then is the network.
        tried = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
        if tried.returncode == 0:
            return _replace([*inside, *command])
        said = tried.stderr.strip().splitlines()
    return _alone(command, said[-1] if said else "no reason given")


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
