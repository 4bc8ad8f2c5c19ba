"""The real ``serve`` under attack, and an observer that watches it from outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from tests.adapter.serving import PAGE, POD, Exporter, Lab, Serving

RSS_LIMIT = 300 << 20
"""Bytes of resident memory: the chart's limit is 512 MiB."""
PROBE_SECONDS = 15.0
"""A kubelet with the chart's probes restarts a process that is silent for longer."""
VALUE = "80"
QUESTION = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/p0/DCGM_FI_DEV_GPU_UTIL"


@dataclass
class Observed:
    """What the observer saw since the process was ready."""

    values: set[str | None] = field(default_factory=set)
    """Values of the victim's metric; None stands for an answer without a value."""
    answers: list[float] = field(default_factory=list)
    """Seconds that each answer about the victim took."""
    probes: list[float] = field(default_factory=list)
    """Seconds that each liveness probe took."""
    failures: list[str] = field(default_factory=list)
    """Questions and probes without an answer."""
    peak: int = 0
    """Largest resident memory seen, in bytes."""

    def row(self, name: str) -> str:
        """Return one line of the table that the suite prints."""
        return (
            f"{name:<52} rss {self.peak / 2**20:6.0f} MB   answers p99 "
            f"{_p99(self.answers) * 1000:7.1f} ms   probes p99 {_p99(self.probes) * 1000:7.1f} ms"
        )


def _p99(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)] if seconds else 0.0


class Siege:
    """A running ``serve``, its victim, and the observer."""

    def __init__(self, lab: Lab, serving: Serving) -> None:
        self.lab = lab
        self.serving = serving
        self.port: int = serving.wait_for("listening")["port"]
        self.process = psutil.Process(serving.process.pid)
        self.seen = Observed()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=method, daemon=True)
            for method in (self._ask, self._probe, self._weigh)
        ]

    def begin(self) -> None:
        """Wait until the victim has its value, then start to observe."""
        deadline = time.monotonic() + 120
        with self.serving.client() as client:
            while client.get("/readyz").status_code != 200 or _value(client) != VALUE:
                assert time.monotonic() < deadline, "the victim never had a value"
                time.sleep(0.2)
        for thread in self._threads:
            thread.start()

    def observe(self, seconds: float) -> None:
        """Let the observer look for ``seconds`` more; ends early if ``serve`` ends."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.serving.process.poll() is None:
            time.sleep(0.1)

    def end(self) -> Observed:
        """Stop to observe, and return what was seen."""
        self._stop.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(60)
        return self.seen

    def verdict(self, *, may_be_absent: bool = False, most: int = RSS_LIMIT) -> Observed:
        """Assert that the attack had no effect.

        Args:
            may_be_absent: the attack takes the victim's value away by design, such as by
                cutting off its exporter. Another value is never allowed.
            most: bytes of resident memory.
        """
        # A short attack on a busy machine may be over before the first of either.
        deadline = time.monotonic() + 30
        while not (self.seen.answers and self.seen.probes) and time.monotonic() < deadline:
            time.sleep(0.1)
        seen = self.end()
        allowed = {VALUE, None} if may_be_absent else {VALUE}
        assert self.serving.process.poll() is None, "serve ended"
        assert seen.answers, "the observer got no answer at all"
        assert seen.probes, "no probe was answered"
        assert seen.failures == []
        assert seen.values <= allowed
        assert seen.peak < most
        return seen

    def _ask(self) -> None:
        with self.serving.client() as client:
            client.timeout = httpx.Timeout(PROBE_SECONDS)
            while not self._stop.wait(0.1):
                started = time.monotonic()
                try:
                    self.seen.values.add(_value(client))
                except httpx.HTTPError as error:
                    self.seen.failures.append(f"question: {error!r}")
                else:
                    self.seen.answers.append(time.monotonic() - started)

    def _probe(self) -> None:
        # A kubelet opens a connection for each probe.
        port = self.serving.wait_for("listening for probes")["port"]
        while not self._stop.wait(0.25):
            started = time.monotonic()
            try:
                with httpx.Client(timeout=PROBE_SECONDS, trust_env=False) as client:
                    status = client.get(f"http://127.0.0.1:{port}/livez").status_code
            except httpx.HTTPError as error:
                self.seen.failures.append(f"probe: {error!r}")
                continue
            if status == 200:
                self.seen.probes.append(time.monotonic() - started)
            else:
                self.seen.failures.append(f"probe: status {status}")

    def _weigh(self) -> None:
        while not self._stop.wait(0.05):
            self.seen.peak = max(self.seen.peak, self.process.memory_info().rss)


def _value(client: httpx.Client) -> str | None:
    answer = client.get(QUESTION)
    if answer.status_code in (404, 503):
        return None
    items: list[dict[str, Any]] = answer.raise_for_status().json()["items"]
    return str(items[0]["value"]) if items else None


def tenant_pod(name: str, port: int, namespace: str = "tenant") -> dict[str, Any]:
    """Return a ready pod that opts in to be scraped at ``port`` of this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "labels": {"app": name},
            "annotations": {
                "gpu-metrics-adapter.io/scrape": "true",
                "gpu-metrics-adapter.io/port": str(port),
            },
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def exporter_pod(name: str, port: int, node: str, namespace: str = "tenant") -> dict[str, Any]:
    """Return a tenant's pod with an exporter's label, scraped at ``port`` of this machine."""
    pod = tenant_pod(name, port, namespace)
    pod["metadata"] |= {"labels": {"app": "nvidia-dcgm-exporter"}, "annotations": {}}
    ports = [{"name": "metrics", "containerPort": port}]
    pod["spec"] = {"nodeName": node, "containers": [{"name": "c", "ports": ports}]}
    return pod


@contextmanager
def besieged(
    folder: Path,
    *pods: dict[str, Any],
    front_proxies: bytes = b"",
    pages: Mapping[str, bytes] | None = None,
    **config: Any,
) -> Iterator[Siege]:
    """Start ``serve`` with default limits beside the tenants' ``pods``.

    Args:
        folder: for certificates, pods, configuration.
        pods: manifests of the tenants' pods; those with the opt-in annotations are scraped.
        front_proxies: PEM of CAs whose front proxies are trusted beside the observer's.
        pages: of the exporters of further nodes, by the name of the node.
        config: sections that are merged into the configuration, one level deep.
    """
    with ExitStack() as stack:
        exporter = stack.enter_context(closing(Exporter()))
        exporter.page = PAGE.format(value=VALUE).encode()
        lab = Lab(folder, exporter)
        for node, page in (pages or {}).items():
            further = stack.enter_context(closing(Exporter()))
            further.page = page
            lab.config["source"]["scrape"]["targets"].append({"url": further.url, "node": node})
        (folder / "pods.yaml").write_text(yaml.safe_dump_all([POD, *pods]))
        with (folder / "proxy-ca.crt").open("ab") as authorities:
            authorities.write(front_proxies)
        lab.config["source"]["scrape"]["inference"] = {"enabled": True}
        for section, values in config.items():
            lab.config.setdefault(section, {}).update(values)
        with lab.serving() as serving:
            siege = Siege(lab, serving)
            siege.begin()
            try:
                yield siege
            finally:
                siege.end()
