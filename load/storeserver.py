"""A stand-in for a store: it answers range selectors about the fleet as Prometheus writes them.

A real store with 40,000 series for each metric needs more CPU than one machine has beside what is
measured. This server has no index and no storage: it writes the text of the answer, with the values
of ``load/page.py`` and a sample every 15 s, and compresses it.
"""

from __future__ import annotations

import argparse
import re
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from urllib.parse import parse_qs

from load.fleet import NAMESPACE, Slot, slots
from load.page import FIELDS, GPUS_PER_NODE, drawn_value

SCRAPES = 15
"""Seconds between two samples."""
_TOGETHER = 1_000
"""Series that are written together."""
_HEAD = b'{"status":"success","data":{"resultType":"matrix","result":['


def answer(pod_slots: list[Slot], query: str, now: float) -> Iterator[bytes]:
    """Yield the parts of the answer to ``{__name__=~"A|B"}[Nms]``."""
    match = re.fullmatch(r'\{__name__=~"([^"]*)"[^}]*\}\[(\d+)ms\]', query)
    if match is None:
        raise ValueError(f"not a range selector: {query[:100]}")
    names = set(match[1].split("|"))
    samples = max(1, int(match[2]) // 1000 // SCRAPES)
    before = _HEAD
    for number, field in enumerate(FIELDS):
        remaining = iter(pod_slots if field.name in names else ())
        while some := list(islice(remaining, _TOGETHER)):
            yield before + b",".join(_series(slot, number, samples, now) for slot in some)
            before = b","
    yield (before if before == _HEAD else b"") + b"]}}"


def _series(slot: Slot, number: int, samples: int, now: float) -> bytes:
    gpu = slot.device.number % GPUS_PER_NODE
    phase = slot.device.number // GPUS_PER_NODE % (SCRAPES * 1000) / 1000
    last = int((now - phase) // SCRAPES)
    values = b",".join(
        b'[%.3f,"%s"]' % (tick * SCRAPES + phase, drawn_value(number, slot.device, tick * SCRAPES))
        for tick in range(last - samples + 1, last + 1)
    )
    labels = (
        f'"Hostname":"{slot.node}","UUID":"{slot.device.uuid}",'
        f'"__name__":"{FIELDS[number].name}","container":"main","device":"nvidia{gpu}",'
        f'"gpu":"{gpu}","instance":"{slot.node}","job":"dcgm-exporter",'
        f'"modelName":"NVIDIA H100","namespace":"{NAMESPACE}","pod":"{slot.name}"'
    )
    return b'{"metric":{%s},"values":[%s]}' % (labels.encode(), values)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: list[Slot]

    def do_POST(self) -> None:
        """Answer a query."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        packed = zlib.compressobj(1, wbits=31)
        for part in answer(self.held, form["query"][0], time.time()):
            self._send(packed.compress(part))
        self._send(packed.flush())
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Log nothing."""


def main() -> None:
    """Serve until ended; the port is written to ``--ready``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--ready", type=Path, required=True, help="file to write the port to")
    arguments = parser.parse_args()
    _Handler.held = list(slots(arguments.pods))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    part = arguments.ready.with_suffix(".part")
    part.write_text(str(server.server_address[1]))
    part.rename(arguments.ready)
    server.serve_forever()


if __name__ == "__main__":
    main()
