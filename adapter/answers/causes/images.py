"""Images that cannot be pulled. Registries say why, and each has words of its own."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.answers.causes import fixes
from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import pod_key
from adapter.answers.causes.rows import ContainerRow, pods_of, since_of
from adapter.answers.causes.signs import CREDENTIALS, PLATFORM, sign_of
from adapter.answers.causes.startsigns import PULLS
from adapter.answers.causes.target import Target, shorten

REASONS: Final = frozenset(
    (
        *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"),
        *("ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"),
    )
)
"""Of ``pkg/kubelet/images/types.go``."""
_SECRETS: Final = "FailedToRetrieveImagePullSecret"
"""The kubelet's event that a Secret of ``imagePullSecrets`` does not exist: it looks in the
namespace of the pod alone."""
_ARCH: Final = "kubernetes.io/arch"


def causes(target: Target, rows: Sequence[ContainerRow]) -> Iterator[Cause]:
    """Yield why images are not pulled, one cause for each image.

    Args:
        target: whose pods they are.
        rows: the containers that wait for their image.
    """
    images: dict[str, list[ContainerRow]] = {}
    for row in rows:
        images.setdefault(_image(row), []).append(row)
    for image, waiting in images.items():
        yield _cause(target, image, waiting)


def _cause(target: Target, image: str, rows: Sequence[ContainerRow]) -> Cause:
    row = rows[0]
    message = _message(target, row)
    sign = sign_of(PULLS, message) or sign_of(PULLS, row.waits)
    more = ""
    if sign is PLATFORM:
        more = _architecture(target, row)
    elif sign is CREDENTIALS:
        more = _secrets(target, row)
    since = since_of(rows)
    return target.cause(
        CauseCode.IMAGE_PULL,
        f"image {image} of {target.some(pods_of(rows))} cannot be pulled ({row.waits})"
        f"{target.facts.ago(since)}{f': {shorten(message)}' if message else ''}{more}",
        sign.fix if sign is not None else "see the events of the pod",
        fixes.edit(target.changed)
        if sign is not None and sign.template
        else fixes.describe(pod_key(row.pod)),
        pods_of(rows),
        since,
    )


def _image(row: ContainerRow) -> str:
    images = {
        container.name: container.image
        for container in (*row.pod.spec.init_containers, *row.pod.spec.containers)
    }
    return images.get(row.status.name) or row.status.image


def _message(target: Target, row: ContainerRow) -> str:
    """Return the registry's words: the message while it waits often has the image alone."""
    events = target.facts.events_of(pod_key(row.pod), "Failed", "InspectFailed")
    pulls = [event.message for event in events if "image" in event.message.lower()]
    waiting = row.status.state.waiting
    message = waiting.message if waiting is not None else ""
    return max((message, *pulls[-1:]), key=len)


def _architecture(target: Target, row: ContainerRow) -> str:
    """Return the architecture of the pod's node; empty if it is not known."""
    for node in target.facts.nodes or ():
        if node.name == row.pod.pod.node and (architecture := node.metadata.labels.get(_ARCH)):
            return f"; node {node.name} is {architecture}"
    return ""


def _secrets(target: Target, row: ContainerRow) -> str:
    """Return which Secrets the pod names for registries."""
    lost = target.facts.events_of(pod_key(row.pod), _SECRETS)
    if lost:
        return f"; {shorten(lost[-1].message).rstrip('.')}"
    names = [secret.name for secret in row.pod.spec.image_pull_secrets]
    namespace = target.hpa.namespace
    if not names:
        return "; the pods name no imagePullSecrets"
    return f"; the pods name Secret {', '.join(map(shlex.quote, names))} of namespace {namespace}"
