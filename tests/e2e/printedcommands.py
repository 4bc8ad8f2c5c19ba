"""Commands that the tools print, as a user pastes them into a shell, without their effect.

Reading commands run as they are. Writing ones run with ``--dry-run=server``: the API server checks
the object as it would be, and the admission as well. The editor of ``edit`` changes nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.e2e import programs

_DRY: Final = """
kubectl() {
  local verb= word= skip=
  for word in "$@"; do
    if [ -n "$skip" ]; then skip=; continue; fi
    case "$word" in -n|-f|-l|-p) skip=1 ;; -*) ;; *) verb=$word; break ;; esac
  done
  case "$verb" in
    get|describe|events|top|auth|explain|api-resources|version|wait|exec|edit)
      command kubectl "$@" ;;
    apply)
      case " $* " in
        *" edit-last-applied "*) command kubectl "$@" ;;  # an editor too
        *) command kubectl "$@" --dry-run=server ;;
      esac ;;
    # A kubelet has to answer, and not every one of a stage does.
    logs) command kubectl "$@" --ignore-errors=true || true ;;
    rollout) command kubectl "${@:1:2}" get "${@: -1}" ;;
    # Any other verb writes. One that cannot be tried fails here.
    *) command kubectl "$@" --dry-run=server ;;
  esac
}
kubeadm() { :; }  # on a node of the control plane
helm() {
  case " $* " in
    *" upgrade "*) command helm "$@" --dry-run=server ;;
    *" test "*) command helm "${@/test/status}" ;;
    *) command helm "$@" ;;
  esac
}
"""
_OURS: Final = 'gpu-metrics-adapter() { "$PYTHON" -m adapter "$@" || [ $? -eq 1 ]; }\n'
"""Exit status 1 says that something was found."""


def run_printed(
    kubeconfig: Path, command: str, *, dry: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command with the real kubectl and helm.

    Args:
        kubeconfig: of the stage.
        command: as it was printed.
        dry: without its effect.
    """
    folders = {str(Path(programs.find(name)).parent) for name in (programs.KUBECTL, programs.HELM)}
    environ = {
        "PATH": ":".join([*folders, os.environ["PATH"]]),
        "KUBECONFIG": str(kubeconfig),
        "HOME": "/nonexistent",
        # Of `kubectl edit`: it changes nothing.
        "KUBE_EDITOR": "true",
        "PYTHON": sys.executable,
        "HELM_CACHE_HOME": str(kubeconfig.parent / "helm"),
    }
    return subprocess.run(
        ["bash", "-c", f"{_DRY if dry else ''}{_OURS}set -o pipefail\n{command}"],
        cwd=programs.ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
