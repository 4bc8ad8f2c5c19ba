"""The page of ``ui`` over a cluster whose objects a tenant wrote to harm the one who looks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil

from tests.adapter.clientapi import api_server
from tests.adapter.tools.ui.cluster import gpu, hpa, node, pod, serve, stuck, workload
from tests.adapter.tools.ui.page import running

ODD = (
    "</script><img src=x onerror=alert(1)>\x1b[31m\x1b]0;t\x07\u202e"
    "\r\nevent: verdict\r\ndata: {}\r\n\r\n"
)
"""What ends a script, colours a terminal, turns a line and forges an event of the stream."""
LARGE = "m" * 30_000
"""The longest message of a condition is 32,768 characters (metav1 ``types.go``)."""
MANY = 5_000
PEAK = 250 << 20
"""Resident bytes of the process; the messages that it reads are 105 MB, as text."""


def event(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"e{number}", "namespace": "chat", "uid": f"u{number}"},
        "involvedObject": {"kind": "Pod", "namespace": "chat", "name": f"llm-{number}"},
        "reason": ODD,
        "message": f"{number} {ODD} {LARGE}",
        "type": "Warning",
        "lastTimestamp": "2026-03-01T12:00:00Z",
    }


def test_hostile_objects_forge_no_event_and_stay_bounded(tmp_path: Path) -> None:
    """5,000 HPAs, half with a message of 30 kB, odd names, labels and huge events."""
    hpas = [hpa(f"h{n}", conditions=stuck(ODD + LARGE) if n % 2 else []) for n in range(MANY)]
    hpas += [hpa(ODD), {"metadata": {"name": "h"}}, {"metadata": {"name": "x"}, "spec": 1}]
    with api_server(tmp_path) as (server, kubeconfig):
        serve(
            server,
            [gpu("g0", labels={"vendor": ODD, ODD: ODD}), gpu(ODD, Model=ODD, Pods=f"chat/{ODD}")],
            [pod("llm-0"), pod(ODD)],
            [workload("llm"), workload(ODD, Target=ODD * 100)],
            hpas,
            [event(number) for number in range(1_000)],
            [node("n1"), node(ODD)],
        )
        with running(kubeconfig) as page:
            process = psutil.Process(page.process.pid)
            seen: dict[str, Any] = {}
            for sent in page.events():
                assert sent.data != {}, "an object forged an event"
                seen[sent.name] = sent.data
                if {"verdict", "hpas", "timeline"} <= seen.keys():
                    break
            assert page.get("/").status_code == 200
            assert len(str(seen["hpas"])) < MANY * 1_000, "each message is cut"
            assert process.memory_info().rss < PEAK
