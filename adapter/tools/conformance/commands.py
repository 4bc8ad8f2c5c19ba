"""The command line of ``conformance``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from adapter.tools.client.options import (
    ACCESS,
    NAMESPACE,
    Duration,
    complete,
    ends,
    interval_option,
    join_options,
    output_option,
)

if TYPE_CHECKING:
    from adapter.tools.client.access import Api
    from adapter.tools.conformance.evidence import ConformanceEvidence, HpaLook


@click.command()
@click.argument(
    "hpa",
    metavar="HPA",
    shell_complete=complete("/apis/autoscaling/v2", "horizontalpodautoscalers", namespaced=True),
)
@join_options(ACCESS, NAMESPACE)
@click.option(
    "--over",
    type=Duration(0.0, 86400.0),
    default="30m",
    show_default=True,
    help="Watch for at most so long.",
)
@interval_option("Time between two looks.")
@output_option(text="Output format; text is Markdown.")
@ends("a step is not proven")
def conformance(hpa: str, over: float, interval: float, **given: Any) -> None:
    """Watch an HPA scale pods with accelerators, and print the evidence for AI conformance.

    The requirement is pod_autoscaling of CNCF's Kubernetes AI conformance. The command looks until
    the HPA has scaled out and in again on a custom metric, prints what it saw as Markdown with the
    lines of PRODUCT.yaml, and says whether the cluster is simulated. It writes nothing to the
    cluster: docs/conformance.md says how to change the load.

    \b
    Examples:
      gpu-metrics-adapter conformance llm -n chat > pod_autoscaling.md
      gpu-metrics-adapter conformance conformance -n conformance --over 1h -o json
    """

    async def look(api: Api) -> ConformanceEvidence:
        # Imported late: --help needs none of it.
        from adapter.tools.conformance.watching import watch  # noqa: PLC0415

        return await watch(api, hpa, over, interval, progress=_Progress())

    # Imported late: --help needs none of it.
    from adapter.tools.client.command import run  # noqa: PLC0415
    from adapter.tools.client.options import ClientOptions  # noqa: PLC0415

    run(ClientOptions(**given), look)


class _Progress:
    """Writes a line to standard error when something has changed."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, look: HpaLook) -> None:
        """Tell the user what a look saw."""
        from adapter.config.process.output import say  # noqa: PLC0415 - --help needs none of it

        values = ", ".join(
            f"{metric.name} {metric.current or '-'} of {metric.target}"
            for metric in look.hpa.metrics
        )
        text = f"{look.hpa.current} replicas, {look.hpa.desired} wanted, {look.running} running"
        if text != self._last:
            self._last = text
            say(f"{text}; {values}", err=True)
