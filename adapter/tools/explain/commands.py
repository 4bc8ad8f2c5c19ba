"""The command line of ``explain``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from adapter.tools.client.errors import VIEW
from adapter.tools.client.options import (
    ACCESS,
    NAMESPACE,
    ClientOptions,
    ToolGroup,
    client_options,
    complete,
    ends,
    join_options,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "hpa": ("hpas", "horizontalpodautoscaler", "horizontalpodautoscalers"),
    "pod": ("po", "pods", "gpupod", "gpupods"),
    "node": ("no", "nodes"),
    "gpu": ("gpus",),
    "workload": ("workloads", "gpuworkload", "gpuworkloads"),
    "scaledobject": ("so", "scaledobjects"),
}
"""The commands, and the other words that kubectl takes for their types."""
_TYPES: Final = {word: name for name, more in _COMMANDS.items() for word in (name, *more)}
_EXAMPLES: Final = (
    "hpa/NAME, pod/NAME, node/NAME, gpu/NAME, scaledobject/NAME or a workload such as "
    "deployment/NAME"
)


class ExplainGroup(ToolGroup):
    """Takes ``TYPE/NAME`` and ``TYPE NAME``, as kubectl does."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that explains the type."""
        kind, slash, name = args[0].partition("/")
        command = _TYPES.get(kind.lower().partition(".")[0])
        if kind.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        if slash and not (kind and name):
            ctx.fail(f"{args[0]!r}: write {_EXAMPLES}")
        if command is not None:
            return super().resolve_command(ctx, [command, *([name] if slash else []), *args[1:]])
        if slash:
            return super().resolve_command(ctx, ["workload", *args])
        if len(args) > 1 and not args[1].startswith("-"):
            return super().resolve_command(ctx, ["workload", f"{kind}/{args[1]}", *args[2:]])
        return ctx.fail(f"{kind!r} names no object: write {_EXAMPLES}")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the types, and after a slash the names of a type."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only a shell asks

        kind, slash, name = incomplete.partition("/")
        command = self.commands.get(_TYPES.get(kind.lower().partition(".")[0], ""))
        if not slash or command is None:
            return super().shell_complete(ctx, incomplete)
        (argument,) = (param for param in command.params if isinstance(param, click.Argument))
        completions = argument.shell_complete(ctx, name)
        return [CompletionItem(f"{kind}/{completion.value}") for completion in completions]


@click.group(cls=ExplainGroup)
@join_options(ACCESS, NAMESPACE)
def explain(**_: object) -> None:
    """Explain why a pod has its value or none, and why an HPA decides so.

    Name the object as kubectl does: TYPE/NAME or TYPE NAME. It reads the cluster with your rights,
    through the API server, and writes nothing. docs/explain.md describes the output,
    docs/rights.md the rights.

    \b
    Examples:
      gpu-metrics-adapter explain hpa/llm
      gpu-metrics-adapter explain -n chat deployment/llm
      gpu-metrics-adapter explain gpu/n1.gpu0
    """


_BLOCKS: Final = "something blocks"


@explain.command()
@click.argument(
    "name",
    shell_complete=complete("/apis/autoscaling/v2", "horizontalpodautoscalers", namespaced=True),
)
@client_options
@ends(_BLOCKS)
def hpa(name: str, **given: Any) -> None:
    """Explain what the HPA NAME decides now: for each metric and pod the value, the rule that
    decides, the arithmetic, what blocks, and the fix.

    It replays the algorithm of the HPA controller on the current values, for metrics of every
    type.

    \b
    Examples:
      gpu-metrics-adapter explain hpa llm -n chat
      gpu-metrics-adapter explain hpa/llm -n chat --watch
    """

    _run("hpa", name, given)


@explain.command()
@click.argument("name", shell_complete=complete("/api/v1", "pods", namespaced=True))
@client_options
@ends("the pod, or a metric that an HPA reads, has no value")
def pod(name: str, **given: Any) -> None:
    """Explain the value of each metric of the pod NAME: devices, sharing, evidence and age, and
    for a value that is missing the reason and the fix.
    """

    _run("pod", name, given)


@explain.command()
@click.argument("name", shell_complete=complete("/api/v1", "nodes"))
@client_options
@ends("a pod has no value, or no exporter reports the node's GPUs")
def node(name: str, **given: Any) -> None:
    """Explain the node NAME: its GPUs, the pods that have them, and why pods have no value."""

    _run("node", name, given)


@explain.command()
@click.argument("name", metavar="ID", shell_complete=complete(VIEW, "gpus"))
@client_options
@ends("the GPU has no utilization")
def gpu(name: str, **given: Any) -> None:
    """Explain the GPU ID: its node, model and sharing, its values and the pods that hold it.

    ID is the name that `kubectl get gpus` shows, or the UUID of the device.
    """

    _run("gpu", name, given)


@explain.command()
@click.argument(
    "name", metavar="KIND/NAME", shell_complete=complete(VIEW, "gpuworkloads", namespaced=True)
)
@client_options
@ends(_BLOCKS)
def workload(name: str, **given: Any) -> None:
    """Explain a workload: the HPAs that scale it, and its pods without a value.

    KIND/NAME is such as deployment/llm. NAME alone is enough if only one workload has it.
    """

    _run("workload", name, given)


@explain.command()
@click.argument(
    "name",
    shell_complete=complete("/apis/keda.sh/v1alpha1", "scaledobjects", namespaced=True),
)
@client_options
@ends(_BLOCKS)
def scaledobject(name: str, **given: Any) -> None:
    """Explain the ScaledObject NAME of KEDA: why it has made no HPA, or why its triggers give no
    value, and what its HPA decides now.
    """

    _run("scaledobject", name, given)


def _run(kind: str, name: str, given: dict[str, Any]) -> None:
    # Imported late: --help needs none of it.
    from adapter.tools.client.command import run  # noqa: PLC0415
    from adapter.tools.explain.objects import EXPLAINERS  # noqa: PLC0415

    run(ClientOptions(**given), lambda api: EXPLAINERS[kind](api, name))
