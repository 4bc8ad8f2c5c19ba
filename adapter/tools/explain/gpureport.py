"""The explanation of a GPU: its object of the view API as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from adapter.config.process.output import Screen, table
from adapter.figures import count
from adapter.tools.client.access import Api
from adapter.tools.client.errors import VIEW, ClientError
from adapter.tools.client.lastingfixes import put_lasting_fixes
from adapter.tools.client.naming import read_named_in_cluster
from adapter.tools.explain.gpupod import why_of
from adapter.tools.explain.words import milli, to_milli

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GpuReport:
    """Implements :class:`adapter.tools.client.command.ToolReport`."""

    gpu: Json

    @property
    def status(self) -> int:
        """See the port: 1 if the device has no utilization."""
        rows = self.gpu.get("values") or ()
        return 0 if any(row.get("metric") == "gpu_utilization" for row in rows) else 1

    def lines(self, screen: Screen) -> list[str]:
        """See the port."""
        gpu = self.gpu
        verdict = "NOT MEASURED" if self.status else "MEASURED"
        style = screen.style(verdict, "red" if self.status else "green")
        lines = [f"gpu {gpu['metadata']['name']}   {style}"]
        lines += table([(name, text) for name, text in self._about() if text], indent="  ")
        lines += self._values()
        for row in gpu.get("leftOut") or ():
            why = why_of(row)
            if why is None:
                continue
            names = ", ".join(map(str, row.get("metrics") or ()))
            text = f"{screen.mark('bad')} without {names}: {why.text}"
            lines += screen.wrap(text, "  ", "      ")
            if why.hint:
                lines.append(f"      fix: {why.hint}")
        return lines

    def json(self) -> Json:
        """See the port: the object is the explanation."""
        return self.gpu

    def _about(self) -> list[tuple[str, str]]:
        gpu = self.gpu
        sharing = gpu.get("sharing") or {}
        names = ("node", "index", "uuid", "board", "model", "vendor", "migProfile", "idleSince")
        rows = [(name, str(gpu.get(name) or "")) for name in names]
        rows.append(("unhealthy", str(gpu.get("unhealthy") or "")))
        rows.append(("sampleTime", str(gpu.get("sampleTime") or "")))
        rows.append(("exporters", ", ".join(map(str, gpu.get("exporters") or ()))))
        rows.append(("sharing", ", ".join(f"{key} {sharing[key]}" for key in sorted(sharing))))
        return [*rows, ("pods", ", ".join(_holder(row) for row in gpu.get("pods") or ()))]

    def _values(self) -> list[str]:
        rows = []
        for row in self.gpu.get("values") or ():
            amount, unit = to_milli(row.get("value")), str(row.get("unit") or "")
            if amount is None:
                continue
            text = milli(amount, unit)
            text = text if unit in ("bytes", "") else f"{text} {'%' if unit == 'percent' else unit}"
            rows.append((str(row.get("metric")), text))
        return ["  metrics:", *table(rows, indent="    ")] if rows else []


def _holder(row: Mapping[str, Any]) -> str:
    evidence = f" ({row['evidence']})" if row.get("evidence") else ""
    return f"{row.get('namespace')}/{row.get('name')}{evidence}"


async def explain_gpu(api: Api, name: str) -> GpuReport:
    """Read a GPU by the name of its object or by its UUID; raises ClientError."""
    gpu = await _named_gpu(api, name)
    await put_lasting_fixes(api, [gpu])
    return GpuReport(gpu)


async def _named_gpu(api: Api, name: str) -> Json:
    try:
        return await read_named_in_cluster(api, "GPU", f"{VIEW}/gpus", name)
    except ClientError as error:
        if error.status != 404:
            raise
        rows = await api.list(f"{VIEW}/gpus")
        gpus = [row for row in rows if name in (row.get("uuid"), row.get("board"))]
        if len(gpus) == 1:
            return gpus[0]
        if not gpus:
            raise await _silent_node_error(api, name) or error from None
    names = ", ".join(str(row["metadata"]["name"]) for row in gpus[:5])
    raise ClientError(f"{len(gpus)} GPUs have the UUID {name!r}: name one of them, {names}")


async def _silent_node_error(api: Api, name: str) -> ClientError | None:
    """Return that no exporter reports GPUs of the node that a name of a GPU begins with, and why
    its pods have no value; None if there is no such node."""
    node = name.rpartition(".gpu")[0]
    if not node:
        return None
    try:
        gpunode = await api.get(f"{VIEW}/gpunodes/{quote(node, safe='')}")
        silent = int(gpunode.get("silent") or 0)
        pods = await api.list(f"{VIEW}/gpupods", fields=f"node={node}") if silent else []
    except ClientError:
        return None
    if not silent:
        return None
    whys = (str((pod.get("reason") or {}).get("message") or "") for pod in pods)
    why = next(filter(None, whys), "")
    text = f"no exporter reports {count(silent, 'GPU')} of node {node} now, so {name} has no value"
    message = f"{text}: {why}" if why else text
    return ClientError(f"{message}; see: gpu-metrics-adapter explain node {node}", 404)
