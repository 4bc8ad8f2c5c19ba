"""AWS Neuron: neuron-monitor, whose pages name no pod.

The labels of ``neuroncore_utilization_ratio`` are the instance, the NeuronCore and the tag of a
runtime, which is a process id of the node (``neuron-monitor-prometheus.py`` of aws-neuronx-tools).
Nothing on the page shows a pod, so there are no fields. Amazon CloudWatch's agent joins the cores
with pods itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NAMES_NO_POD_OF: Final[Mapping[str, str]] = {"aws": "neuron-monitor"}
"""Vendor of resources -> its exporter, if that never names a pod."""
