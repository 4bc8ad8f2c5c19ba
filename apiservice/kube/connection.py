"""Connecting to a cluster, from a pod's service account or a kubeconfig.

A mistake in the configuration becomes a :class:`ClusterError` that names the file and the fix.
Credentials that rotate are read again: files when they change, the cluster's CA among them, and
exec plugins when their credentials expire.

Importing this module costs about 15 MB (aiohttp). A process that may run without a cluster imports
it only when it connects to one.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

from apiservice.kube.clusterclient import ClusterAccess, ClusterClient
from apiservice.kube.credentials import RotatedTokenFile, remove_copies
from apiservice.kube.failures import ClusterError
from apiservice.kube.kubeconfig import kubeconfig_files, load_kubeconfig
from apiservice.kube.library import (
    SERVICE_HOST_ENV_NAME,
    SERVICE_TOKEN_FILENAME,
    ConfigException,
    service_account_loader,
)

SERVICE_ACCOUNT = Path(SERVICE_TOKEN_FILENAME).parent
"""Where a pod's service account is mounted."""


def in_cluster(
    environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> bool:
    """Return whether this process runs in a pod that may talk to its cluster."""
    return bool(environ.get(SERVICE_HOST_ENV_NAME)) and (service_account / "token").exists()


async def connect(
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    user_agent: str = "apiservice",
    headers: Sequence[tuple[str, str]] = (),
) -> ClusterClient:
    """Return a client for the cluster. It has sent nothing yet.

    Args:
        headers: sent with each request; a name may stand several times.

    The kubeconfig is used if one is named. Otherwise a pod uses its service account, and a process
    outside a pod uses the files of ``KUBECONFIG`` or ``~/.kube/config``.

    Raises:
        ClusterError: see the module.
    """
    configuration = ClusterAccess()
    used = ""
    if kubeconfig is None and in_cluster(environ, service_account):
        _load_service_account(configuration, environ, service_account)
        source = "the pod's service account"
        namespace = _pod_namespace(service_account)
    else:
        source = kubeconfig_files(kubeconfig, environ)
        used, namespace = await load_kubeconfig(configuration, source, context)
        source = f"kubeconfig {source}"
    try:
        client = ClusterClient(configuration, headers)
        client.forget(remove_copies())
    except (OSError, ssl.SSLError, ValueError) as error:
        remove_copies()
        raise ClusterError(
            f"{source}: the certificates it names cannot be used: {error}; check "
            f"certificate-authority, client-certificate and client-key"
        ) from error
    client.user_agent = user_agent
    by = f"{source}, context {used}" if used else source
    client.origin = f"{configuration.host} ({by})"
    client.context = used
    client.namespace = namespace
    return client


def _load_service_account(
    configuration: ClusterAccess, environ: Mapping[str, str], service_account: Path
) -> None:
    token = service_account / "token"
    loader = service_account_loader(
        str(token), str(service_account / "ca.crt"), try_refresh_token=False, environ=environ
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ClusterError(
            f"the pod's service account in {service_account} cannot be used: {error}; mount it "
            f"(automountServiceAccountToken) or name a kubeconfig"
        ) from error
    configuration.refresh_api_key_hook = RotatedTokenFile(token)


def _pod_namespace(service_account: Path) -> str:
    try:
        return (service_account / "namespace").read_text().strip() or "default"
    except OSError:
        return "default"
