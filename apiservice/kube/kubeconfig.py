"""Kubeconfig files: found, checked and loaded. A mistake in one names the file and the fix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubernetes.aio.config import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigLoader, KubeConfigMerger

from apiservice.kube.credentials import keep_fresh
from apiservice.kube.failures import ClusterError, NoKubeconfigError
from apiservice.runtime.yamltext import YamlError, document

# These classes carry no annotations.
_kubeconfig_loader: Any = KubeConfigLoader
_kubeconfig_merger: Any = KubeConfigMerger


def kubeconfig_files(kubeconfig: Path | None, environ: Mapping[str, str]) -> str:
    """Return the kubeconfig files, as ``KUBECONFIG`` lists them.

    Raises:
        ClusterError: none of them exists.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ClusterError(f"kubeconfig {kubeconfig} does not exist; name one that does")
        return str(kubeconfig)
    listed = environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    if not any(Path(path).expanduser().is_file() for path in listed.split(os.pathsep) if path):
        raise NoKubeconfigError(
            f"not running in a pod, and no kubeconfig found at {listed}; set KUBECONFIG or name a "
            f"kubeconfig"
        )
    return listed


async def load_kubeconfig(configuration: Any, source: str, context: str | None) -> tuple[str, str]:
    """Load a kubeconfig. Return the name of the context that is used, and its namespace."""
    _check_kubeconfigs(source)
    try:
        merged = _kubeconfig_merger(source).config
        loader = _kubeconfig_loader(merged, active_context=context, config_base_path=None)
        await loader.load_and_set(configuration)
    except ConfigException as error:
        named = f"context {context!r} of " if context else ""
        raise ClusterError(
            f"{named}kubeconfig {source}: {error}; see `kubectl config get-contexts`"
        ) from error
    except OSError as error:
        raise ClusterError(f"kubeconfig {source}: {error}") from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise ClusterError(f"kubeconfig {source} cannot be used: {error}") from error
    keep_fresh(configuration, loader, source)
    active = loader.current_context
    return str(active["name"]), str(active["context"].get("namespace") or "default")


def _check_kubeconfigs(source: str) -> None:
    for path in source.split(os.pathsep):
        if path and (file := Path(path).expanduser()).is_file():
            _check_kubeconfig(file)


def _check_kubeconfig(file: Path) -> None:
    """Raise ClusterError if a file's content does not have a kubeconfig's shape."""
    try:
        content = document(file.read_bytes())
    except OSError as error:
        raise ClusterError(f"kubeconfig {file}: {error}") from error
    except YamlError as error:
        raise ClusterError(f"kubeconfig {file} is not YAML: {error}; name another file") from error
    lists = ("clusters", "contexts", "users")
    if not isinstance(content, dict) or not any(name in content for name in lists):
        raise ClusterError(
            f"{file} is not a kubeconfig: it has no clusters, contexts or users; name a file "
            f"such as ~/.kube/config"
        )
    for name in lists:
        if not isinstance(content.get(name) or [], list):
            raise ClusterError(f"kubeconfig {file}: {name} must be a list")
