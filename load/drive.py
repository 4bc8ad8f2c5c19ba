"""Runs a client against servers, and says what each process paid for an answer."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import IO

import msgspec

from load.pki import GROUPS, USER, Pki
from load.plan import Calls, Outcome, Plan
from load.process import PYTHON, ROOT, Observed, Usage, on_cores
from load.report import figure

_STANDS_OUT = 0.2
"""Share of the consumption of a process that must exceed its consumption at rest to count."""
CREDENTIAL = "authentication.kubernetes.io%2fcredential-id"
"""With this header, kube-apiserver names the token of its client."""
ACCEPT = "application/vnd.kubernetes.protobuf, */*"
"""The HPA controller's (wire contract, section 2)."""


class ClientError(RuntimeError):
    """The load client ended without a result; the text says why."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one load."""

    rate: float
    """Answers per second."""
    p50: float
    """Milliseconds."""
    p99: float
    """Milliseconds."""
    cpu: Mapping[str, float]
    """Process name -> CPU milliseconds per answer, consumption at rest taken off."""
    gross: Mapping[str, float]
    """The same with it."""
    busy: Mapping[str, float]
    """Process name -> share of one core while driven, idle consumption included."""
    client: float
    """The client's own share of one core."""
    body: int
    """Bytes of an answer's body."""
    tick: float
    """Milliseconds per answer that the system's CPU accounting cannot tell from nothing."""

    def cost(self, name: str) -> str:
        """``cpu`` as text: an upper bound where it does not stand out from the rest."""
        net, gross = self.cpu[name], max(self.gross[name], self.tick)
        return figure(net) if net >= _STANDS_OUT * gross else f"< {figure(gross)}"


def plan(
    pki: Pki,
    port: int,
    target: str,
    *,
    connections: int = 1,
    seconds: float = 3,
    warm_up: float = 0.5,
    expected: int = 100,
    targets: Sequence[str] = (),
    every: float = 0.0,
) -> Plan:
    """A plan whose requests are those of the HPA controller, through the front proxy.

    Args:
        targets: asked in turn instead of ``target``.
        every: seconds between two requests of a target; 0 is a closed loop.
    """
    headers = [("Accept", ACCEPT), ("User-Agent", "kube-controller-manager/load")]
    headers += [("Accept-Encoding", "gzip"), ("X-Forwarded-For", "127.0.0.1")]
    headers += [("X-Remote-User", USER), *(("X-Remote-Group", group) for group in GROUPS)]
    headers += [(f"X-Remote-Extra-{CREDENTIAL}", "JTI=5c9e7ed9-70d4-4a40-b81b-5dd3ad7a0ba5")]
    return Plan(
        host="127.0.0.1",
        port=port,
        server_name="localhost",
        ca=str(pki.ca),
        cert=str(pki.client_cert),
        key=str(pki.client_key),
        target=target,
        headers=headers,
        connections=connections,
        seconds=seconds,
        warm_up=warm_up,
        expected=expected,
        targets=list(targets),
        every=every,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank: the smallest value that at least ``share`` of all do not exceed.

    Raises:
        ValueError: there are no values.
    """
    if not ordered:
        raise ValueError("no values to take a percentile of")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def idle_shares(children: Sequence[Observed], seconds: float) -> dict[str, float]:
    """Process name -> share of one core that it uses when nobody asks."""
    before = [child.usage() for child in children]
    time.sleep(seconds)
    return {
        child.name: _rate(was, child.usage()) for child, was in zip(children, before, strict=True)
    }


def _rate(before: Usage, after: Usage) -> float:
    return (after.cpu - before.cpu) / (after.at - before.at)


def drive(
    load: Plan | Calls,
    children: Sequence[Observed],
    *,
    resting: Mapping[str, float] | None = None,
    cores: Sequence[int] | None = None,
) -> Measured:
    """Run ``load`` in a process of its own and account for it.

    Args:
        children: the processes that may take part in answering.
        resting: what :func:`idle_shares` said, taken off each process' consumption.
        cores: the client's; None is all.

    Raises:
        ClientError: an answer was not the one expected.
    """
    with _client(load, cores) as client:
        outcome, before, after = _measure(client, load, children)
    return _account(outcome, children, before, after, resting or {})


@contextmanager
def drive_beside(load: Plan | Calls, *, cores: Sequence[int] | None = None) -> Iterator[None]:
    """Run ``load`` while the body runs, for as long as it says itself.

    Raises:
        ClientError: an answer was not the one expected, or it ended before the body did.
    """
    with _client(load, cores) as client:
        _warm_up_client(client, load)
        _pipe(client.stdin).write(b"go\n")
        _pipe(client.stdin).flush()
        yield
        if client.poll() is not None:
            raise ClientError("the load ended before what was measured beside it")
        _decode_outcome(client, _pipe(client.stdout).readline())


@contextmanager
def _client(load: Plan | Calls, cores: Sequence[int] | None) -> Iterator[subprocess.Popen[bytes]]:
    module = "load.client" if isinstance(load, Plan) else "load.scalerclient"
    command = on_cores([PYTHON, "-m", module], cores)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe) as client:
        try:
            yield client
        finally:
            if client.poll() is None:
                client.kill()


def _measure(
    client: subprocess.Popen[bytes], load: Plan | Calls, children: Sequence[Observed]
) -> tuple[Outcome, list[Usage], list[Usage]]:
    _warm_up_client(client, load)
    before = [child.usage() for child in children]
    _pipe(client.stdin).write(b"go\n")
    _pipe(client.stdin).flush()
    answer = _pipe(client.stdout).readline()
    after = [child.usage() for child in children]
    return _decode_outcome(client, answer), before, after


def _warm_up_client(client: subprocess.Popen[bytes], load: Plan | Calls) -> None:
    """Hand the load over, and wait until its connections are warm."""
    _pipe(client.stdin).write(msgspec.json.encode(load) + b"\n")
    _pipe(client.stdin).flush()
    if _pipe(client.stdout).readline() != b"ready\n":
        raise ClientError(_pipe(client.stderr).read().decode(errors="replace")[-2000:])


def _decode_outcome(client: subprocess.Popen[bytes], answer: bytes) -> Outcome:
    if not answer:
        raise ClientError(_pipe(client.stderr).read().decode(errors="replace")[-2000:])
    return msgspec.json.decode(answer, type=Outcome)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ClientError("the client has no pipes")
    return pipe


def _account(
    outcome: Outcome,
    children: Sequence[Observed],
    before: Sequence[Usage],
    after: Sequence[Usage],
    resting: Mapping[str, float],
) -> Measured:
    answers = len(outcome.latencies)
    ordered = sorted(outcome.latencies)
    cpu, gross, busy = {}, {}, {}
    for child, was, now in zip(children, before, after, strict=True):
        used = now.cpu - was.cpu
        at_rest = resting.get(child.name, 0.0) * (now.at - was.at)
        cpu[child.name] = max(0.0, used - at_rest) / answers * 1e3
        gross[child.name] = used / answers * 1e3
        busy[child.name] = used / (now.at - was.at)
    return Measured(
        rate=answers / outcome.elapsed,
        p50=percentile(ordered, 0.50) / 1e3,
        p99=percentile(ordered, 0.99) / 1e3,
        cpu=cpu,
        gross=gross,
        busy=busy,
        client=outcome.cpu / outcome.elapsed,
        body=outcome.body,
        tick=1e3 / os.sysconf("SC_CLK_TCK") / answers,
    )


def middle(runs: Sequence[Measured]) -> Measured:
    """The medians of several runs of the same load, figure by figure."""
    names = runs[0].cpu
    return Measured(
        rate=median(run.rate for run in runs),
        p50=median(run.p50 for run in runs),
        p99=median(run.p99 for run in runs),
        cpu={name: median(run.cpu[name] for run in runs) for name in names},
        gross={name: median(run.gross[name] for run in runs) for name in names},
        busy={name: median(run.busy[name] for run in runs) for name in names},
        client=median(run.client for run in runs),
        body=runs[-1].body,
        tick=max(run.tick for run in runs),
    )


def split_cores() -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """(server's core, client's cores), or (None, None) where there is nothing to part."""
    if sys.platform != "linux":
        return None, None
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        return None, None
    return (available[0],), tuple(available[1:])
