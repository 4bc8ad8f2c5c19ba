"""Facts about a node's devices from its labels: vendor, model, sharing, counts.

Sources: NVIDIA's GPU feature discovery (k8s-device-plugin ``internal/lm/resource.go``: product
names with ``-`` for spaces, then ``-MIG-PROFILE``, then ``-SHARED`` if a shared resource was not
renamed; ``replicas`` is 0 or 1 if nothing is shared), AMD's node labeller, Intel's NFD rules, GKE,
EKS and Karpenter, AKS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

NVIDIA: Final = "nvidia"
AMD: Final = "amd"
INTEL: Final = "intel"

POOL_LABELS: Final = (
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
)
"""Labels that name a node's pool: Karpenter, AKS (new and old), GKE, EKS."""

_PRODUCT: Final = "nvidia.com/gpu.product"
_SHARED: Final = "-SHARED"
_MODELS: Final = (
    (_PRODUCT, NVIDIA),
    ("amd.com/gpu.product-name", AMD),
    ("beta.amd.com/gpu.product-name", AMD),
    ("gpu.intel.com/product", INTEL),
    ("cloud.google.com/gke-accelerator", ""),
    ("karpenter.k8s.aws/instance-gpu-name", ""),
    ("k8s.amazonaws.com/accelerator", ""),
)
"""Label -> vendor, if the label alone identifies it; the most specific label first."""
_MAKERS: Final = (
    ("karpenter.k8s.aws/instance-gpu-manufacturer", ""),
    ("kubernetes.azure.com/accelerator", ""),
    ("accelerator", ""),
    ("nvidia.com/gpu.present", NVIDIA),
)
"""Labels that name the vendor. AKS gives it in place of a model."""
_STRATEGIES: Final = (
    "nvidia.com/gpu.sharing-strategy",
    "cloud.google.com/gke-gpu-sharing-strategy",
)
_CLIENTS: Final = "cloud.google.com/gke-max-shared-clients-per-gpu"


class NodeFacts(NamedTuple):
    """What the labels say; empty or None if they do not."""

    vendor: str = ""
    """``nvidia``, ``amd``, ``intel``."""
    model: str = ""
    """The label's text without its parts about sharing and MIG."""
    strategy: str = ""
    """``time-slicing``, ``mps``; GKE writes ``time-sharing``. Empty for ``none`` too."""
    suffix: bool = False
    """The product's name ends in ``-SHARED``."""
    mig_strategy: str = ""
    """``single`` or ``mixed``."""
    mig_profile: str = ""
    """The profile of all instances of the node, which its product's name ends in with the strategy
    ``single``."""
    memory: int | None = None
    """MiB of one device."""
    replicas: Mapping[str, int] = {}
    """Resource -> pods that may share one device of it, if more than one may."""
    counts: Mapping[str, int] = {}
    """Resource -> devices, not their replicas."""
    capacity: Mapping[str, int] = {}
    """GPU resource -> devices or their replicas, from the node's status."""

    @property
    def shared(self) -> bool:
        """Whether a device of the node is offered to several pods."""
        return bool(self.strategy or self.suffix or self.replicas)

    @property
    def devices(self) -> int | None:
        """The devices of the node, of all its resources; None if nothing states their number."""
        stated = self.counts or self.capacity
        return sum(stated.values()) if stated else None


def facts(labels: Mapping[str, str], capacity: Mapping[str, int] | None = None) -> NodeFacts:
    """Return the facts in these labels of a node, and its capacity of GPUs."""
    model, vendor = _model(labels)
    counts = _numbers(labels, ".count")
    replicas = {name: n for name, n in _numbers(labels, ".replicas").items() if n > 1}
    clients = _number(labels.get(_CLIENTS, ""))
    if clients is not None and clients > 1:
        replicas.setdefault("nvidia.com/gpu", clients)
    strategy = next((labels[key] for key in _STRATEGIES if labels.get(key, "none") != "none"), "")
    return NodeFacts(
        vendor=vendor or _vendor(labels),
        model=model.removesuffix(_SHARED).partition("-MIG-")[0],
        strategy=strategy,
        suffix=model.endswith(_SHARED),
        mig_strategy=labels.get("nvidia.com/mig.strategy", "").replace("none", ""),
        mig_profile=model.removesuffix(_SHARED).partition("-MIG-")[2],
        memory=_number(labels.get("nvidia.com/gpu.memory", "")),
        replicas=replicas,
        counts=counts,
        capacity=capacity or {},
    )


SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
_CAPACITIES: Final = (
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "kubernetes.azure.com/scalesetpriority",
    "cloud.google.com/gke-provisioning",
)
"""Labels that say how a node is paid for: Karpenter and EKS of every node, AKS of spot nodes (and
``regular``), GKE of newer nodes (``standard``)."""
_YES: Final = ("cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible")
_PAID: Final = {
    "spot": SPOT,
    "preemptible": SPOT,
    "on-demand": ON_DEMAND,
    "regular": ON_DEMAND,
    "standard": ON_DEMAND,
}


def capacity_type(labels: Mapping[str, str]) -> str:
    """Return how a node is paid for: ``spot``, ``on-demand``, or another word of its labels such as
    ``reserved``; empty if they do not say it."""
    if any(labels.get(key) == "true" for key in _YES):
        return SPOT
    word = next((labels[key] for key in _CAPACITIES if labels.get(key)), "")
    word = word.lower().replace("_", "-")
    return _PAID.get(word, word)


def pool(labels: Mapping[str, str]) -> str | None:
    """Return the node pool that labels name."""
    return next((labels[key] for key in POOL_LABELS if labels.get(key)), None)


def has_gpus(labels: Mapping[str, str]) -> bool:
    """Return whether a label says that a node has GPUs."""
    return bool(facts(labels).vendor) or labels.get("nvidia.com/gpu.present") == "true"


def _model(labels: Mapping[str, str]) -> tuple[str, str]:
    for key, vendor in _MODELS:
        if labels.get(key):
            return labels[key], vendor
    return "", ""


def _vendor(labels: Mapping[str, str]) -> str:
    for key, vendor in _MAKERS:
        product = labels.get(key, "").lower()
        if product:
            return vendor or next((v for v in (NVIDIA, AMD, INTEL) if v in product), "")
    keys = ("cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator")
    return NVIDIA if any(labels.get(key, "").startswith("nvidia") for key in keys) else ""


def _numbers(labels: Mapping[str, str], suffix: str) -> dict[str, int]:
    """Resource -> number from the labels ``nvidia.com/gpuSUFFIX`` and ``nvidia.com/mig-…``."""
    numbers = {}
    for key, text in labels.items():
        resource = key.removesuffix(suffix)
        if resource == key or not resource.startswith(("nvidia.com/gpu", "nvidia.com/mig-")):
            continue
        number = _number(text)
        if number is not None:
            numbers[resource] = number
    return numbers


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
