"""ScaledObjects, as the API server lists them."""

from __future__ import annotations

import asyncio
import contextlib

from adapter.answers.keda.scaledobjects import PATH, ScaledObject, ScaledObjects, watch
from adapter.pipeline.cluster.workload import DEPLOYMENTS, Workload
from apiservice.kube.clusterclient import ClusterAccess, ClusterClient

LIST = (
    b'{"kind":"ScaledObjectList","metadata":{"resourceVersion":"7"},"items":['
    b'{"metadata":{"name":"so","namespace":"ml"},"spec":{"scaleTargetRef":{"name":"inf"}}},'
    b'{"metadata":{"name":"broken","namespace":"ml"},"spec":{}}]}'
)


async def test_targets_are_watched_and_one_broken_object_costs_itself() -> None:
    paths: list[bytes] = []
    watching = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not watching.is_set():
            head = await reader.readuntil(b"\r\n\r\n")
            paths.append(head.split()[1])
            if b"watch=" in paths[-1]:
                watching.set()
                break
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(LIST), LIST)
            )
            await writer.drain()
        writer.close()

    table = ScaledObjects()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with ClusterClient(ClusterAccess(host=f"http://127.0.0.1:{port}")) as client:
        task = asyncio.create_task(watch(client, table).run())
        await asyncio.wait_for(watching.wait(), 10)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    server.close()
    assert paths[0].split(b"?")[0].decode() == PATH
    assert table.get("ml", "so") == ScaledObject("ml", "so", Workload(DEPLOYMENTS, "inf"))
    assert (len(table), table.problem) == (1, "")
