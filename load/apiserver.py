"""A stand-in for kube-apiserver that serves the pods and nodes of a large cluster over TLS.

kube-apiserver and etcd need gigabytes for 150,000 pods, so this process makes each object when it
is asked for it. It answers lists in pages (``limit``, ``continue``), watches (events, bookmarks,
``timeoutSeconds``, 410 for a version that it no longer has) and access reviews.
:mod:`load.start` compares what ``serve`` pays for it with what it pays for the real one.

``/control/rate/N`` replaces N pods without a GPU, and updates N GPU pods, every second.
``/control/count`` answers the requests for each path, and the largest number of them in one second.
``/control/forget`` ends every watch, and answers 410 to versions from before: a restart after which
everything has to be listed again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import ssl
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import uvloop
from aiohttp import web

from load.clusterobjects import REPLICAS, encoded, hpa, node, pod, workload
from load.fleet import SERVICE_SIZE
from load.page import GPUS_PER_NODE

_KEPT = 50_000
"""Events that a watch can resume from, as in the API server's watch cache."""
_BOOKMARKS = 10.0
"""Seconds between bookmarks of a watch."""
_VERSIONED = b'"resourceVersion":"1"'

HPAS = "/apis/autoscaling/v2/horizontalpodautoscalers"
SERVICES = "/api/v1/services"
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


_APPS = "/apis/apps/v1"
_EMPTY = (
    f"{_APPS}/statefulsets",
    f"{_APPS}/daemonsets",
    "/api/v1/events",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/resourcequotas",
    "/apis/apiregistration.k8s.io/v1/apiservices",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
)


class _Event(NamedTuple):
    version: int
    line: bytes


class Collection:
    """One collection: its objects by place, and its last events."""

    def __init__(self, kind: str, count: int, make: Callable[[int], bytes]) -> None:
        self.kind = kind
        self.count = count
        self.make = make
        self.version = 1
        self.events: deque[_Event] = deque(maxlen=_KEPT)
        self.oldest = 1
        """The oldest version that a watch may resume from."""
        self.changed = asyncio.Condition()

    def page(self, begin: int, limit: int) -> bytes:
        """One page of the list, from place ``begin`` on."""
        end = min(self.count, begin + limit) if limit else self.count
        more = f',"continue":"{end}","remainingItemCount":{self.count - end}'
        head = '{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d"%s},"items":['
        text = head % (self.kind, self.version, more if end < self.count else "")
        return b"".join((text.encode(), b",".join(map(self.make, range(begin, end))), b"]}"))

    def record_change(self, kind: str, made: bytes) -> None:
        """Record a change. The caller notifies the watches."""
        self.version += 1
        made = made.replace(_VERSIONED, b'"resourceVersion":"%d"' % self.version, 1)
        self.events.append(
            _Event(self.version, b'{"type":"%s","object":%s}\n' % (kind.encode(), made))
        )
        if len(self.events) == _KEPT:
            self.oldest = self.events[0].version

    def bookmark(self) -> bytes:
        """The event that carries the version alone."""
        text = (
            f'{{"type":"BOOKMARK","object":{{"kind":"{self.kind}","apiVersion":"v1",'
            f'"metadata":{{"resourceVersion":"{self.version}"}}}}}}\n'
        )
        return text.encode()


class ApiServer:
    """All collections, what is counted of the requests, and the changes that go on."""

    def __init__(self, pods: int, gpu_pods: int, *, whole: bool = False) -> None:
        self._gpu_pods = gpu_pods
        self._serials: dict[int, int] = {}
        self._chance = random.Random(1)
        self.rate = 0
        self.pods = Collection("Pod", pods, self._pod)
        nodes = Collection("Node", -(-gpu_pods // GPUS_PER_NODE), lambda i: encoded(node(i)))
        self._of = {
            "/api/v1/pods": self.pods,
            "/api/v1/nodes": nodes,
            SERVICES: Collection("Service", 0, lambda _: b""),
            HPAS: Collection("HorizontalPodAutoscaler", 0, lambda _: b""),
            CONFIGMAPS: Collection("ConfigMap", 0, lambda _: b""),
        }
        if whole:
            self._of |= _other_collections(pods, gpu_pods)
        self.counts: Counter[str] = Counter()
        self._seconds: Counter[int] = Counter()

    def _pod(self, index: int) -> bytes:
        return encoded(pod(index, self._gpu_pods, self._serials.get(index, 0)))

    async def change(self) -> None:
        """Replace and update pods at the given rate, until cancelled."""
        web_pods = range(self._gpu_pods, self.pods.count)
        while True:
            await asyncio.sleep(0.1)
            for _ in range(self.rate // 10):
                if web_pods:
                    index = self._chance.choice(web_pods)
                    self.pods.record_change("DELETED", self._pod(index))
                    self._serials[index] = self._serials.get(index, 0) + 1
                    self.pods.record_change("ADDED", self._pod(index))
                self.pods.record_change(
                    "MODIFIED", self._pod(self._chance.randrange(self._gpu_pods))
                )
            async with self.pods.changed:
                self.pods.changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if request.path.startswith("/control/"):
            return await self._control(request.path.split("/")[2:])
        self.counts[f"{request.method} {request.path}"] += 1
        self._seconds[int(time.monotonic())] += 1
        if request.path == REVIEWS:
            review = json.loads(await request.read())
            return web.json_response(review | {"status": {"allowed": True}}, status=201)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "34", "gitVersion": "v1.34.0"})
        collection = self._of.get(request.path)
        if collection is None:
            return web.json_response(_status(404, "NotFound", "not served here"), status=404)
        if request.query.get("watch") == "true":
            self.counts[f"WATCH {request.path}"] += 1
            return await self._watch(request, collection)
        begin, limit = (int(request.query.get(key, 0)) for key in ("continue", "limit"))
        return web.Response(body=collection.page(begin, limit), content_type="application/json")

    async def _watch(self, request: web.Request, collection: Collection) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        version = int(request.query.get("resourceVersion") or 0)
        if version < collection.oldest:
            gone = _status(410, "Expired", f"too old resource version: {version}")
            return web.json_response(gone, status=410)
        response.enable_chunked_encoding()
        await response.prepare(request)
        end = time.monotonic() + float(request.query.get("timeoutSeconds", "300"))
        while time.monotonic() < end and version >= collection.oldest:
            lines = _lines_after(collection, version)
            version = collection.version
            await response.write(b"".join(lines) if lines else collection.bookmark())
            async with collection.changed:
                wait = min(_BOOKMARKS, max(0.0, end - time.monotonic()))
                try:
                    await asyncio.wait_for(collection.changed.wait(), wait)
                except TimeoutError:
                    continue
        return response

    async def _control(self, words: list[str]) -> web.Response:
        match words:
            case ["rate", number]:
                self.rate = int(number)
            case ["forget"]:
                self._seconds.clear()
                for collection in self._of.values():
                    collection.version += 1
                    collection.events.clear()
                    collection.oldest = collection.version
                    async with collection.changed:
                        collection.changed.notify_all()
            case ["count"]:
                pass
            case _:
                return web.Response(status=404)
        busiest = max(self._seconds.values(), default=0)
        return web.json_response({"counts": self.counts, "busiest": busiest})


def _other_collections(pods: int, gpu_pods: int) -> dict[str, Collection]:
    """What ``doctor`` reads besides: workloads, the HPAs of services, and no object of a kind that
    it does not need for them."""
    services = gpu_pods // SERVICE_SIZE
    count = services + (pods - gpu_pods) // REPLICAS

    def make_workload(kind: str) -> Callable[[int], bytes]:
        return lambda index: encoded(workload(kind, index, services, gpu_pods))

    empty = {path: Collection("Any", 0, lambda _: b"") for path in _EMPTY}
    return empty | {
        f"{_APPS}/deployments": Collection("Deployment", count, make_workload("Deployment")),
        f"{_APPS}/replicasets": Collection("ReplicaSet", 2 * count, make_workload("ReplicaSet")),
        HPAS: Collection("HorizontalPodAutoscaler", services, lambda index: encoded(hpa(index))),
    }


def _lines_after(collection: Collection, version: int) -> list[bytes]:
    """The lines of the events after a version, oldest first."""
    lines = []
    for event in reversed(collection.events):
        if event.version <= version:
            break
        lines.append(event.line)
    return lines[::-1]


def _status(code: int, reason: str, message: str) -> dict[str, object]:
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


async def _serve(arguments: argparse.Namespace) -> None:
    server = ApiServer(arguments.pods, arguments.gpu_pods, whole=arguments.whole)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(arguments.cert, arguments.key)
    site = web.TCPSite(runner, "127.0.0.1", arguments.port, ssl_context=context)
    await site.start()
    part = arguments.ready.with_suffix(".part")
    part.write_text(str(runner.addresses[0][1]))
    part.rename(arguments.ready)
    await server.change()


def main() -> None:
    """Serve until ended; the port is written to ``--ready``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, required=True, help="all pods of the cluster")
    parser.add_argument("--gpu-pods", type=int, required=True, help="those that hold a GPU")
    parser.add_argument("--whole", action="store_true", help="with workloads and HPAs")
    parser.add_argument("--cert", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ready", type=Path, required=True, help="file to write the port to")
    uvloop.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
