"""Settings: the counters of GPU-seconds."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from adapter.config.settings.types import Section


class AccountingSettings(Section):
    """The counters of GPU-seconds (``gma_gpu_seconds_total``): see docs/costs.md. A change of this
    section needs a restart."""

    by: Literal["workload", "pod", "namespace", "off"] = "workload"
    """What has series of its own: each ``workload``, ``pod`` or ``namespace``. ``off`` counts
    nothing."""
    team_label: str = "team"
    """Label of pods that is the label ``team`` of the series."""
    accounts: Annotated[int, Field(ge=1, le=10_000)] = 500
    """Accounts with three series each. An account is a workload (pod, namespace) with one team,
    model of GPU, instance type and capacity. Those that hold most GPUs have series of their own,
    the rest is one account ``other``."""
