"""The kinds of inference servers and gateways, and what follows from their declarations.

A new kind is one entry of :mod:`.engines`, :mod:`.triton` or :mod:`.gateways`. Ports and paths are
the defaults of the programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from adapter.pipeline.catalog.engines import ENGINES
from adapter.pipeline.catalog.field import Field
from adapter.pipeline.catalog.gateways import GATEWAYS
from adapter.pipeline.catalog.metric import Formula
from adapter.pipeline.catalog.requestwindow import Latency
from adapter.pipeline.catalog.serverkind import ServerKind
from adapter.pipeline.catalog.triton import TRITON

KINDS: Final[dict[str, ServerKind]] = {**GATEWAYS, **TRITON, **ENGINES}
"""Short name -> kind. The first that fits an image is the image's kind."""
_READ: Final = (*ENGINES.values(), *TRITON.values(), *GATEWAYS.values())
"""The kinds in the order in which their formulas are tried."""
OTHERS: Final = {
    "Ollama": ("ollama_",),
    "TorchServe": ("ts_inference_", "ts_queue_"),
    "TensorFlow Serving": (":tensorflow:",),
    "OpenVINO Model Server": ("ovms_",),
    "BentoML": ("bentoml_",),
    "LiteLLM": ("litellm_",),
    "Envoy": ("envoy_",),
    "a vLLM router": ("vllm:current_qps", "vllm:healthy_pods"),
}
"""Programs whose pages have no queue that is read -> how names of their series begin."""


def fields(kinds: Iterable[ServerKind]) -> tuple[Field, ...]:
    """Return what is read of the pages of some kinds."""
    every = tuple(kinds)
    measured = (measure.field for kind in every for measure in kind.measures)
    return (*(field for kind in every for field in kind.fields), *measured)


def formulas(metric: str) -> tuple[Formula, ...]:
    """Return the ways to compute a neutral metric of servers, in the order in which they apply."""
    return tuple(formula for kind in _READ for formula in kind.formulas.get(metric, ()))


def measured_formulas() -> dict[str, tuple[Formula, ...]]:
    """Return what kinds count about their requests: metric -> ways to compute it."""
    ways: dict[str, tuple[Formula, ...]] = {}
    for kind in _READ:
        for metric, _, formula in kind.measures:
            ways[metric] = (*ways.get(metric, ()), formula)
    return ways


def shown_latencies(kind: ServerKind) -> frozenset[Latency]:
    """Return the latencies that a server of a kind has histograms of, or one of its engines has."""
    kinds = (kind, *(KINDS[engine] for engine in kind.engines))
    names = {measure.metric for server in kinds for measure in server.measures}
    return frozenset(latency for latency in Latency if latency in names)


SERVER_FIELDS: Final = fields((*ENGINES.values(), *TRITON.values()))
GATEWAY_FIELDS: Final = fields(GATEWAYS.values())


def kind_of_image(image: str) -> ServerKind | None:
    """Return the kind of server that an image is; None for other programs.

    Args:
        image: as in a pod's spec, such as ``docker.io/vllm/vllm-openai:v0.10.0``.
    """
    pinned = image.partition("@")[0]
    head, colon, tag = pinned.rpartition(":")
    bare, tag = (head, tag) if colon and "/" not in tag else (pinned, "")
    return next(
        (kind for kind in KINDS.values() if kind.image.search(bare) and kind.tag in tag), None
    )


def kind_of_field(name: str) -> ServerKind | None:
    """Return the kind of server whose page has a field of this name; None if there is none."""
    return next((kind for kind in _READ if any(field.name == name for field in kind.fields)), None)


def looks_like(names: Iterable[str]) -> str:
    """Return which program writes series of these names, in words; empty if it is not known."""
    series_names = tuple(names)
    for title, prefixes in OTHERS.items():
        if any(name.startswith(prefixes) for name in series_names):
            return f"{title}, whose requests the adapter does not read"
    for kind in _READ:
        if kind.names and any(name.startswith(kind.names) for name in series_names):
            return f"{kind.title}, which is supported, but without the series of its requests"
    return ""
