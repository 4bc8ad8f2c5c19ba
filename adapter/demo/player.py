"""The player of the story: advances the simulation with real time and triggers what is due."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path

from adapter.demo import manifests, story
from adapter.demo.autoscaler import PERIOD, DemoAutoscaler, Sync
from adapter.demo.captions import CAPTIONS
from adapter.demo.client import MetricsClient
from adapter.demo.cluster.snapshot import objects
from adapter.demo.fleet import Stage
from adapter.demo.screen import DemoScreen
from adapter.demo.server import AGE_LIMIT
from adapter.demo.state import DemoCluster, DemoState, OutagePlayed

_TICK = 0.1
"""Real seconds between two checks of what is due."""
_STATUS_PERIOD = 2.0
"""Real seconds between two writes of the HPAs' status. ``serve`` reads a file that has not changed
between two looks, half a second apart: a file that changes more often is never read."""


class Player:
    """The loop over the simulation, the pods file and the HPAs."""

    def __init__(self, state: DemoState, client: MetricsClient, pods_file: Path) -> None:
        self.state = state
        self.client = client
        self._pods_file = pods_file
        self._published: tuple[object, ...] = ()
        self._written = 0.0
        self._due = PERIOD
        self._captions = list(CAPTIONS)

    async def play(
        self, seconds: float, ended: asyncio.Task[None], stop: asyncio.Event, screen: DemoScreen
    ) -> None:
        """Continue for so many real seconds, or until ``stop`` is set.

        Raises:
            DemoError: ``ended``, the wait for the end of ``serve``, has finished.
        """
        stopped = asyncio.create_task(stop.wait())
        start = time.monotonic()
        self.state.times.origin = time.time()
        try:
            while not stopped.done() and (elapsed := time.monotonic() - start) < seconds:
                await self._turn(elapsed * self.state.speed)
                screen.show()
                left = seconds - (time.monotonic() - start)
                await asyncio.wait(
                    {ended, stopped},
                    timeout=max(0.0, min(_TICK, left)),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if ended.done():
                    ended.result()
        finally:
            stopped.cancel()

    async def publish(self) -> None:
        """Update the exporters and the pods file from the simulation."""
        clusters, exporters = self.state.everything, self.state.exporters
        nodes = {
            node.name
            for cluster in clusters
            for node in cluster.world.fleet.nodes
            if node.ready(cluster.world.now)
        }
        servers = {
            manifests.server_name(cluster.namespace, pod.name)
            for cluster in clusters
            if cluster.server_pages
            for pod in cluster.world.fleet.pods.values()
            if pod.stage is Stage.READY
        }
        changed = await exporters.match(nodes) | await self.state.servers.match(servers)
        versions = (
            self.state.times.origin,
            *(cluster.world.fleet.version for cluster in clusters),
        )
        due = time.monotonic() - self._written >= _STATUS_PERIOD
        if not changed and versions == self._published and not due:
            return
        self._published, self._written = versions, time.monotonic()
        manifests.write(self._pods_file, objects(self.state))

    async def _turn(self, now: float) -> None:
        world = self.state.world
        for cluster in self.state.played:
            cluster.world.advance(now)
            if cluster.reader:
                cluster.reader.scrape()
        self._break_exporters()
        self._caption()
        await self.publish()
        if world.now >= self._due:
            # A machine too slow for a sync skips it, as the controller's queue does.
            self._due = (math.floor(world.now / PERIOD) + 1) * PERIOD
            for cluster in self.state.played:
                for scaler in cluster.autoscalers:
                    await self._sync(cluster, scaler)
                if cluster.nodepool:
                    cluster.nodepool.round(cluster.world, cluster.autoscalers)
            await self.publish()
        self._collect_events()

    def _collect_events(self) -> None:
        """Collect the events; of the compared clusters, only what differs from the shown one."""
        self.state.events.extend(self.state.world.take_events())
        self.state.events.extend(self.state.research.world.take_events())
        for event in self.state.reactive.world.take_events():
            if event.about.startswith("node "):
                self.state.events.append(event._replace(about=f"without nodepool: {event.about}"))
        for signal, cluster in self.state.signals.items():
            for event in cluster.world.take_events():
                if event.about.startswith("HPA "):
                    self.state.events.append(event._replace(about=f"on {signal}: {event.about}"))

    async def _sync(self, cluster: DemoCluster, scaler: DemoAutoscaler) -> None:
        before, world = scaler.latest, cluster.world
        sync = await scaler.sync(world, cluster.reader or self.client)
        decision = sync.decision
        name = f"HPA {scaler.service}"
        if decision.rescale:
            world.report(name, f"{decision.current} -> {decision.desired}: {sync.why}")
        elif sync.active != (before is None or before.active):
            text = f"has values again; {sync.why}" if sync.active else _explain_hold(sync)
            world.report(name, text, caption=not sync.active and _differs(sync))

    def _caption(self) -> None:
        """Show the sentences that are due, once."""
        world = self.state.world
        while self._captions and world.now >= self._captions[0].at:
            caption = self._captions.pop(0)
            world.report(caption.about, caption.say(self.state), caption=True)

    def _break_exporters(self) -> None:
        world, exporters = self.state.world, self.state.exporters
        for outage in story.OUTAGES:
            name = f"exporter {outage.node}"
            if outage.covers(world.now) and outage.node not in exporters.dead:
                exporters.dead.add(outage.node)
                self.state.outages.append(OutagePlayed(outage.node, world.now))
                text = (
                    f"dead; its last values are served for {AGE_LIMIT:g} s, then they are missing"
                )
                world.report(name, text, caption=True)
            elif not outage.covers(world.now) and outage.node in exporters.dead:
                exporters.dead.remove(outage.node)
                self.state.outages[-1].end = world.now
                world.report(name, "answers again")


def _explain_hold(sync: Sync) -> str:
    """Return why an HPA without a value does nothing, and what it would do with a made-up 0."""
    if not _differs(sync):
        return sync.why
    change = f"{sync.decision.current} -> {sync.lowest}"
    return f"{sync.why}. Missing means hold; a made-up 0 would scale in {change}"


def _differs(sync: Sync) -> bool:
    """Return whether a made-up 0 would change the number of replicas."""
    return sync.lowest != sync.decision.current
