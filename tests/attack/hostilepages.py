"""Pages of hostile pods: ``python -m tests.attack.hostilepages KIND COUNT SECONDS``.

Prints one port for each pod, and ends by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator

SERIES = b"vllm:num_requests_waiting"
GZIP = b"Content-Encoding: gzip\r\n"
_numbers = itertools.count()


def _answer(body: bytes, headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n%b" % (len(body), headers, body)


def _lines(make: Callable[[int], bytes], size: int) -> bytes:
    def lines() -> Iterator[bytes]:
        left = size
        while left > 0:
            line = make(next(_numbers))
            left -= len(line)
            yield line

    return b"".join(lines())


async def blank_runs() -> AsyncIterator[bytes]:
    line = SERIES + b'{a="b"' + b" " * 60_000 + b'"c"} 1\n'
    yield _answer(line)


async def long_names() -> AsyncIterator[bytes]:
    yield _answer(_lines(lambda n: SERIES + b"{" + b"x" * 60_000 + b'%d="1"} 1\n' % n, 900_000))


async def new_names() -> AsyncIterator[bytes]:
    yield _answer(_lines(lambda n: b'n%d{a="b"} 1\n' % n + b"x" * 400 + b"%d 1\n" % n, 900_000))


async def new_labels() -> AsyncIterator[bytes]:
    text = b"y" * 900
    yield _answer(_lines(lambda n: SERIES + b'{model_name="%d%b"} 1\n' % (n, text), 900_000))


async def small_new_labels() -> AsyncIterator[bytes]:
    yield _answer(_lines(lambda n: SERIES + b'{a="%d"} 1\n' % n, 25_000))


async def many_times() -> AsyncIterator[bytes]:
    """One label set, and a time of its own for each row."""
    now = int(time.time() * 1000)
    names = (b"vllm:num_requests_waiting", b"vllm:num_requests_running")
    yield _answer(
        b"".join(
            names[n % 2] + b'{model_name="%d"} 1 %d\n' % (n % 40, now - n * 10) for n in range(4000)
        )
    )


async def bad_numbers() -> AsyncIterator[bytes]:
    yield _answer(_lines(lambda n: SERIES + b'{model_name="%d%b"} x\n' % (n, b"z" * 400), 900_000))


async def big_bad_numbers() -> AsyncIterator[bytes]:
    yield _answer(
        _lines(lambda n: SERIES + b'{model_name="%d%b"} x\n' % (n, b"z" * 400), 15_000_000)
    )


async def big_long_names() -> AsyncIterator[bytes]:
    yield _answer(_lines(lambda n: SERIES + b"{" + b"x" * 60_000 + b'%d="1"} 1\n' % n, 15_000_000))


async def gzip_of_16_megabytes() -> AsyncIterator[bytes]:
    yield _answer(BIG, GZIP)


async def gzip_of_line_feeds() -> AsyncIterator[bytes]:
    yield _answer(FEEDS, GZIP)


async def small_gzip_of_line_feeds() -> AsyncIterator[bytes]:
    yield _answer(SMALL_FEEDS, GZIP)


async def continues() -> AsyncIterator[bytes]:
    piece = b"HTTP/1.1 100 Continue\r\n\r\n" * 400
    while True:
        yield piece


async def second_head() -> AsyncIterator[bytes]:
    """A good answer, and 50 ms later another head that nobody asked for."""
    yield _answer(SERIES + b'{model_name="m"} 1\n')
    await asyncio.sleep(0.05)
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"


async def new_devices() -> AsyncIterator[bytes]:
    """As many devices as a page may have, none of which was on the last one."""
    names = (b"DCGM_FI_DEV_GPU_UTIL", b"DCGM_FI_DEV_FB_USED")
    page = next(_numbers)
    device = b'{gpu="%d",UUID="GPU-%d-%d",namespace="x",pod="p%d",container="c"} 1\n'
    yield _answer(b"".join(name + device % (n, page, n, n) for name in names for n in range(1024)))


async def times_beside_pods() -> AsyncIterator[bytes]:
    """One device with a time of its own for each sample, and a thousand pods that share it."""
    now = int(time.time() * 1000)
    line = b'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-x"%b} 1 %d\n'
    pod = b',namespace="x",pod="p%d",container="c",vgpu="%d"'
    whole = (line % (b"", now - n) for n in range(20_000))
    yield _answer(b"".join((*whole, *(line % (pod % (n, n), now - 1) for n in range(1000)))))


async def many_buckets() -> AsyncIterator[bytes]:
    """As many servers as a page may have, and of each a histogram that grows."""
    hits = next(_numbers) + 1
    name = b"vllm:time_to_first_token_seconds_bucket"
    bounds = (b"0.1", b"0.2", b"0.5", b"1", b"2", b"5", b"+Inf")
    line = name + b'{engine="%d",le="%b",model_name="m"} %d\n'
    yield _answer(
        b"".join(
            line % (server, bound, hits * 20 * (place + 1))
            for server in range(512)
            for place, bound in enumerate(bounds)
        )
    )


async def hostile_bounds() -> AsyncIterator[bytes]:
    """Bounds that are not durations, and more than any server has."""
    name = b"vllm:time_to_first_token_seconds_bucket"
    odd = (b"-Inf", b"NaN", b"-1", b"1e308", b"1e400", b"", b"0x10", b"9" * 5000, b"\xd9\xa1")
    rows = (name + b'{engine="%d",le="%b"} 7\n' % row for row in enumerate(odd))
    many = (name + b'{engine="many",le="%d.5"} 7\n' % n for n in range(3000))
    yield _answer(b"".join((*rows, *many)))


async def silence() -> AsyncIterator[bytes]:
    await asyncio.sleep(3600)
    yield b""


BIG = gzip.compress(b"# " + b"x" * 1000 + b"\n" * ((16 << 20) - 2000))
FEEDS = gzip.compress(b"\n" * ((16 << 20) - 10))
SMALL_FEEDS = gzip.compress(b"\n" * ((1 << 20) - 10))
KINDS = {
    made.__name__.replace("_", "-"): made
    for made in (
        *(blank_runs, long_names, new_names, new_labels, small_new_labels, many_times),
        *(many_buckets, hostile_bounds),
        *(bad_numbers, gzip_of_16_megabytes, gzip_of_line_feeds, small_gzip_of_line_feeds),
        *(
            continues,
            second_head,
            new_devices,
            times_beside_pods,
            silence,
            big_bad_numbers,
            big_long_names,
        ),
    )
}


async def _serve(kind: str, count: int, seconds: float) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                async for piece in KINDS[kind]():
                    writer.write(piece)
                    await writer.drain()
        writer.close()

    servers = [await asyncio.start_server(talk, "127.0.0.1", 0) for _ in range(count)]
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.sleep(seconds)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
