"""Secrets and APIServices: read into the rotation's records, and their patches.

Every write is a JSON merge patch with the ``resourceVersion`` that was read: the API server rejects
it if another client has written the object since.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from adapter.tools.maintain.cluster import RefusalError
from adapter.tools.maintain.state import AuthoritySecret, CertificateSecret, Registration, Since

Object = dict[str, Any]

PREFIX = "gpu-metrics-adapter.io"
KEPT = f"{PREFIX}/kept-by"
"""Annotation of a Secret whose data this project wrote."""
KEEPER = "maintain"
RENEW = f"{PREFIX}/renew"
"""Annotation with which users request a new certificate or CA, with any text."""
PUBLISHED = f"{PREFIX}/published"
ISSUED = f"{PREFIX}/issued"


def secret_path(namespace: str, name: str) -> str:
    """Return the API path of a Secret."""
    return f"/api/v1/namespaces/{namespace}/secrets/{name}"


def registration_path(name: str) -> str:
    """Return the API path of an APIService."""
    return f"/apis/apiregistration.k8s.io/v1/apiservices/{name}"


def read_authority_secret(obj: Object) -> AuthoritySecret:
    """Read the CA's Secret.

    Raises:
        RefusalError: somebody else wrote its data.
    """
    data = _data(obj)
    return AuthoritySecret(
        _version(obj),
        data.get("ca.crt", b""),
        data.get("ca.key", b""),
        _read_stamp(_annotations(obj).get(PUBLISHED)),
        bool(_annotations(obj).get(RENEW)),
    )


def read_certificate_secret(obj: Object) -> CertificateSecret:
    """Read the certificate's Secret.

    Raises:
        RefusalError: somebody else wrote its data.
    """
    data = _data(obj)
    return CertificateSecret(
        _version(obj),
        data.get("tls.crt", b""),
        data.get("tls.key", b""),
        data.get("ca.crt", b""),
        _read_stamp(_annotations(obj).get(ISSUED)),
        bool(_annotations(obj).get(RENEW)),
    )


def read_registration(obj: Object) -> Registration:
    """Read an APIService."""
    text = obj["spec"].get("caBundle") or ""
    return Registration(str(obj["metadata"]["name"]), _version(obj), _decode(text))


def owner(obj: Object) -> str:
    """Return the ``NAMESPACE/NAME`` of an APIService's Service; empty for a local one."""
    service = obj["spec"].get("service")
    return f"{service['namespace']}/{service['name']}" if service else ""


def secret_patch(
    version: str, data: Mapping[str, bytes], annotations: Mapping[str, str | None]
) -> Object:
    """Return the patch that writes these keys and marks them as this project's."""
    notes = {KEPT: KEEPER, **annotations}
    encoded = {key: _encode(value) for key, value in data.items()}
    body = {"metadata": {"resourceVersion": version, "annotations": notes}}
    return body | ({"data": encoded} if encoded else {})


def registration_patch(version: str, bundle: bytes) -> Object:
    """Return the patch that makes the API server trust a bundle."""
    return {"metadata": {"resourceVersion": version}, "spec": {"caBundle": _encode(bundle)}}


def write_stamp(stamp: Since | None) -> str | None:
    """Format a stamp as an annotation; None removes it."""
    if stamp is None:
        return None
    moment = datetime.fromtimestamp(stamp.at, UTC).isoformat().replace("+00:00", "Z")
    return f"{stamp.fingerprint} {moment}"


def _read_stamp(text: str | None) -> Since | None:
    try:
        fingerprint, moment = (text or "").split()
        return Since(fingerprint, datetime.fromisoformat(moment).timestamp())
    except ValueError:
        return None


def _data(obj: Object) -> dict[str, bytes]:
    meta = obj["metadata"]
    data = {key: _decode(value or "") for key, value in (obj.get("data") or {}).items()}
    if any(data.values()) and _annotations(obj).get(KEPT) != KEEPER:
        raise RefusalError(
            f"Secret {meta['namespace']}/{meta['name']} contains {', '.join(sorted(data))} that "
            f"somebody else wrote, and is not changed: rename it and apply the chart again, or "
            f"serve it by naming it in certificate.existingSecret"
        )
    return data


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def _version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
