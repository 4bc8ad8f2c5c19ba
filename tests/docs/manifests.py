"""The manifests of the documents, parts of manifests laid over whole ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.docs.blocks import Kind, documents, kind
from tests.docs.pages import EXAMPLES, ROOT, Block, blocks

Object = dict[str, Any]

_BASES = """
apiVersion: v1
kind: Pod
metadata: {name: inference-0, namespace: default}
spec: {containers: [{name: server, image: example/server}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference, namespace: default}
spec:
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}}
    spec: {containers: [{name: server, image: example/server}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: inference, namespace: default}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: inference}
  maxReplicas: 4
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: inference, namespace: default}
spec:
  scaleTargetRef: {name: inference}
  triggers: [{type: cpu, metadata: {value: "50"}}]
"""


def manifests() -> list[tuple[str, Object]]:
    """(place, object) of every manifest in a document or in docs/examples."""
    return [*_shown(), *_examples()]


def whole(block: Block) -> list[Object]:
    """The objects of a block, whole.

    Raises:
        ValueError: it is part of a kind that there is no base for.
    """
    contents = documents(block)
    if kind(block) is Kind.MANIFEST:
        return contents
    name, *path = block.comment.removeprefix("in: ").split(".")
    formulas: dict[str, Object] = {
        one["kind"]: one for one in yaml.load_all(_BASES, yaml.CSafeLoader)
    }
    if name not in formulas or len(contents) != 1:
        raise ValueError(f"{block.place}: one document, in a Pod, Deployment, HPA or ScaledObject")
    part: Any = contents[0]
    for key in reversed(path):
        part = {key: part}
    return [_laid(formulas[name], part)]


def _shown() -> Iterator[tuple[str, Object]]:
    for block in blocks("yaml"):
        if kind(block) in (Kind.MANIFEST, Kind.PART):
            for obj in whole(block):
                yield block.place, obj


def _examples() -> Iterator[tuple[str, Object]]:
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for obj in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader):
            yield str(path.relative_to(ROOT)), obj


def _laid(under: Mapping[str, Any], over: Mapping[str, Any]) -> Object:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            merged[key] = _laid(below, value)
        else:
            merged[key] = value
    return merged
