"""The demo's state, from which the screen, the plain lines and the summary are made."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adapter.demo.autoscaler import DemoAutoscaler
from adapter.demo.certificates import FrontProxy
from adapter.demo.client import USER, SimulatedReader, Tally
from adapter.demo.days import Days
from adapter.demo.exporters import Exporters
from adapter.demo.nodepool import DemoNodepool
from adapter.demo.wallclock import WallClock
from adapter.demo.world import DemoEvent, World


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """One of the simulated clusters: its world and its HPAs."""

    namespace: str
    """The namespace of its services, by which ``serve`` distinguishes the clusters."""
    world: World
    autoscalers: Sequence[DemoAutoscaler]
    nodepool: DemoNodepool | None = None
    """None: its node autoscaler adds nodes only when pods wait."""
    server_pages: bool = False
    """Whether its pods have pages about their requests."""
    reader: SimulatedReader | None = None
    """What its HPAs read; None for ``serve``."""


@dataclass(slots=True)
class OutagePlayed:
    """An exporter's outage. Times are seconds of the simulation."""

    node: str
    start: float
    end: float | None = None
    """None while it lasts."""


@dataclass(slots=True)
class DemoState:
    """The demo's state while it runs."""

    shown: DemoCluster
    """The cluster with nodepool, which the picture shows."""
    reactive: DemoCluster
    """The cluster with the same load without nodepool."""
    queued: DemoCluster
    """The cluster with the same load whose HPA reads the queue, with nodepool."""
    promised: DemoCluster
    """The cluster with the same load whose HPA reads a promise, with nodepool."""
    expected: DemoCluster
    """The cluster with the same load whose HPA reads the queue and what is expected of it, with
    nodepool."""
    research: DemoCluster
    """Another team's services, which are not in the picture."""
    days: Days
    """What nodepool learned before the start."""
    exporters: Exporters
    servers: Exporters
    """The pages of the pods that have one."""
    tally: Tally
    curl: str
    """The command with which to query the API: all options are in a file."""
    speed: float
    """Simulated seconds per real second."""
    length: float
    """Seconds of the simulation that will be shown."""
    seed: int
    times: WallClock
    """The time of day of the simulation."""
    kubeconfig: Path
    """With it, kubectl and the user commands read the demo as a cluster."""
    adapter: str = "gpu-metrics-adapter"
    """The command that runs the adapter in the user's shell."""
    page: str = ""
    """Address of the page; empty without one."""
    events: deque[DemoEvent] = field(default_factory=lambda: deque(maxlen=100))
    outages: list[OutagePlayed] = field(default_factory=list)

    @property
    def world(self) -> World:
        """The cluster in the picture."""
        return self.shown.world

    @property
    def autoscalers(self) -> Sequence[DemoAutoscaler]:
        """Its HPAs."""
        return self.shown.autoscalers

    @property
    def clusters(self) -> Iterable[DemoCluster]:
        """The clusters with nodepool and without, which are compared."""
        return (self.shown, self.reactive)

    @property
    def signals(self) -> Mapping[str, DemoCluster]:
        """What a service is scaled on -> the cluster; the requests are the same."""
        return {
            "a promise": self.promised,
            "its expected queue": self.expected,
            "its queue": self.queued,
            "GPU utilization": self.shown,
        }

    @property
    def everything(self) -> Iterable[DemoCluster]:
        """All that ``serve`` and the API server show as one cluster."""
        return (self.shown, self.reactive, self.queued, self.research)

    @property
    def played(self) -> Iterable[DemoCluster]:
        """All clusters; ``serve`` does not know the last two."""
        return (*self.everything, self.promised, self.expected)


def clock(seconds: float) -> str:
    """Format simulated time as minutes and seconds."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    return f"{minutes:02d}:{rest:02d}"


def usage(state: DemoState, width: int) -> str:
    """Return where the page is, or how to look at the demo from another terminal."""
    if state.page:
        return f"the page: {state.page}"
    begin = f"second terminal: export KUBECONFIG={state.kubeconfig}"
    for command in (f"; {state.adapter} top", "; kubectl get gpus"):
        if len(begin + command) <= width:
            return begin + command
    return begin


def curl_options(url: str, proxy: FrontProxy, ca: Path) -> str:
    """Return a file for ``curl -K`` that requests what kube-apiserver would for the HPA."""
    rows = {"url": url, "cacert": ca, "cert": proxy.certificate, "key": proxy.key}
    lines = [f'{name} = "{value}"' for name, value in rows.items()]
    return "\n".join([*lines, f'header = "X-Remote-User: {USER}"', "silent", "show-error", ""])
