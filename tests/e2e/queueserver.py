"""An inference server that really queues: a process with some slots, and vLLM's page.

``python -m tests.e2e.queueserver ADDRESS PORT SLOTS SECONDS``. A request waits until one of the
slots is free, gets its first byte, and holds the slot for the seconds. Its answer counts as
:data:`TOKENS`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field
from typing import Final

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
TOKENS: Final = 50
PAGE: Final = "/metrics"
_HEAD: Final = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
_LABELS: Final = 'engine="0",model_name="opal-7b"'


@dataclass
class Server:
    """Requests at one address."""

    slots: asyncio.Semaphore
    seconds: float
    """How long a request holds a slot."""
    waiting: int = 0
    running: int = 0
    ended: int = 0
    first_token: list[float] = field(default_factory=list)
    """Seconds until the first byte, of each request so far."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        arrived = time.monotonic()
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        try:
            if path == PAGE:
                writer.write((_HEAD + self.page()).encode())
            else:
                await self._work(arrived, writer)
            await writer.drain()
        except ConnectionError:
            pass  # the client has gone
        finally:
            writer.close()

    async def _work(self, arrived: float, writer: asyncio.StreamWriter) -> None:
        self.waiting += 1
        async with self.slots:
            self.waiting -= 1
            self.running += 1
            self.first_token.append(time.monotonic() - arrived)
            try:
                writer.write((_HEAD + "first").encode())
                await writer.drain()
                await asyncio.sleep(self.seconds)
                self.ended += 1
            finally:
                self.running -= 1

    def page(self) -> str:
        """Return the page of the server now."""
        name = "vllm:time_to_first_token_seconds"
        lines = [
            f"vllm:generation_tokens_total{{{_LABELS}}} {TOKENS * self.ended}",
            f"vllm:num_requests_running{{{_LABELS}}} {self.running}",
            f"vllm:num_requests_waiting{{{_LABELS}}} {self.waiting}",
        ]
        for bound in (*BOUNDS, float("inf")):
            count = sum(seconds <= bound for seconds in self.first_token)
            le = "+Inf" if bound == float("inf") else f"{bound}"
            lines.append(f'{name}_bucket{{{_LABELS},le="{le}"}} {count}')
        lines.append(f"{name}_count{{{_LABELS}}} {len(self.first_token)}")
        lines.append(f"{name}_sum{{{_LABELS}}} {sum(self.first_token)}")
        return "\n".join(lines) + "\n"


async def main(address: str, port: int, slots: int, seconds: float) -> None:
    """Serve until the process is ended."""
    server = Server(asyncio.Semaphore(slots), seconds)
    async with await asyncio.start_server(server.answer, address, port, backlog=512) as listening:
        await listening.serve_forever()


if __name__ == "__main__":
    where, at, room, work = sys.argv[1:]
    asyncio.run(main(where, int(at), int(room), float(work)))
