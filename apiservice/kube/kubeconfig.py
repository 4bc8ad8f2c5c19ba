"""Kubeconfig files: found, checked and loaded. A mistake in one names the file and the fix."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from apiservice.kube.credentials import keep_fresh
from apiservice.kube.failures import ClusterError, NoKubeconfigError
from apiservice.kube.library import (
    ConfigException,
    kubeconfig_loader,
    kubeconfig_merger,
    kubeconfig_node,
)
from apiservice.runtime.nearest import nearest
from apiservice.runtime.yamltext import YamlError, document

_LISTS = ("clusters", "contexts", "users")


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
    """Load a kubeconfig. Return the name of the context that is used, and its namespace.

    Raises:
        ClusterError: it cannot be used.
    """
    try:
        merged = _Merger(source).config
        if not context and not merged.safe_get("current-context"):
            raise ClusterError(
                f"kubeconfig {source} has no current-context; name a context, or set one with "
                f"`kubectl config use-context`"
            )
        if context and context not in (names := _names(merged["contexts"])):
            near = nearest(context, names)
            hint = f"did you mean {' or '.join(near)}? S" if near else "s"
            raise ClusterError(
                f"context {context!r} is not in kubeconfig {source}; "
                f"{hint}ee `kubectl config get-contexts`"
            )
        loader = kubeconfig_loader(merged, active_context=context or None, config_base_path=None)
        await loader.load_and_set(configuration)
        keep_fresh(configuration, loader, source)
    except ConfigException as error:
        raise ClusterError(
            f"kubeconfig {source}: {error}; see `kubectl config get-contexts`"
        ) from error
    except OSError as error:
        raise ClusterError(f"kubeconfig {source}: {error}") from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ClusterError(f"kubeconfig {source} cannot be used: {error}") from error
    active = loader.current_context
    return str(active["name"]), str(active["context"].get("namespace") or "default")


def context_names(source: str) -> list[str]:
    """Return the names of the contexts of kubeconfig files; raises ClusterError."""
    merged = _Merger(source).config
    return [] if merged is None else _names(merged["contexts"])


def _names(rows: Any) -> list[str]:
    return [str(row["name"]) for row in rows.value]


class _Exec(msgspec.Struct):
    command: str
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None


class _User(msgspec.Struct, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster | None = None


class _Context(msgspec.Struct):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context | None = None


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    """The fields that are read, with the types of kubernetes' clientcmd/api/v1."""

    clusters: list[_NamedCluster] | None = None
    contexts: list[_NamedContext] | None = None
    users: list[_NamedUser] | None = None
    current_context: str | None = None


class _Merger(kubeconfig_merger):  # type: ignore[misc]  # the base carries no annotations
    """The library's, with files that :func:`_read_kubeconfig` has read."""

    config_merged: Any

    def load_config(self, path: str) -> None:
        """Merge one file into the configuration."""
        content = _read_kubeconfig(Path(path))
        if self.config_merged is None:
            self.config_merged = kubeconfig_node(
                path, {**content, **{name: [] for name in _LISTS}}, path
            )
        for name in _LISTS:
            self._merge(name, content.get(name) or [], path)
        if content.get("current-context") and not self.config_merged.safe_get("current-context"):
            self.config_merged.value["current-context"] = content["current-context"]


def _read_kubeconfig(file: Path) -> dict[str, Any]:
    """Return a file's content; raises ClusterError if it does not have a kubeconfig's shape."""
    try:
        content = document(file.read_bytes())
        if isinstance(content, dict) and any(name in content for name in _LISTS):
            msgspec.convert(content, _Kubeconfig)
            return content
    except OSError as error:
        raise ClusterError(f"kubeconfig {file}: {error}") from error
    except YamlError as error:
        raise ClusterError(f"kubeconfig {file} is not YAML: {error}; name another file") from error
    except msgspec.ValidationError as error:
        wrong = str(error).replace(" - at `$.", " at `").replace(" | null", "")
        raise ClusterError(
            f"kubeconfig {file}: {wrong}; correct it, or name another file"
        ) from None
    raise ClusterError(
        f"{file} is not a kubeconfig: it has no clusters, contexts or users; name a file "
        f"such as ~/.kube/config"
    )
