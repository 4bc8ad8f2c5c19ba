"""Models, prompts and requests of the yardstick, each calibrated on published figures.

- ``70b-h100x2``: Llama 3.3 70B FP8 on two H100, from the tables "Performance" of NVIDIA's NIM LLM
  benchmarking guide (NIM 1.8.0): 5,000 prompt and 500 answer tokens give a time per token of 18.58,
  21.83, 38.75, 59.73 and 92.9 ms for 1, 5, 25, 50 and 100 clients, a time to first token of 407 ms
  alone and of 8 s for 100: the KV cache holds about 88 such requests.
- ``8b-a100``: Llama 3.1 8B BF16 on one A100 of 40 GB, from John Musgrave's vLLM sweep (vLLM 0.23,
  1,024 prompt and 128 answer tokens): 75 tokens/s for one client, 6.6 times as many for 8.
- ``8b-h100``: Llama 3.1 8B FP8 on one H100, from the same tables of NIM 1.8.0: 4.63, 5.19, 7.57,
  9.81 and 16.14 ms per token for 1, 25, 100, 150 and 250 clients, first token after 10 ms.
- ``70b-oci`` (held out): Llama 3.3 70B on OCI's Large Generic unit, from Oracle's benchmark page
  (about 480 prompt and 300 answer tokens): 58.6, 50.9, 44.3, 35.7 and 25.6 tokens/s for each of 1,
  16, 32, 64 and 128 clients. Its number of GPUs is not published; two are assumed.
- ``7b-4090`` (held out): Mistral 7B on one RTX 4090 (Mushfiq Rahman's vLLM sweep, 256 prompt and
  128 answer tokens): 210, 644 and 1,190 tokens/s for 4, 16 and 48 clients.

The load that keeps the promise does not enter any policy but the oracle's.
"""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Final

from load.promisepool import Limits, Play
from load.promiseserver import Model, Request

PROMISE: Final = {"ttft_p90": "1s", "itl_p90": "50ms"}
"""The same for all."""
LIMITS: Final = Limits(1.0, 0.05)
LARGE: Final = Model("70b-h100x2", 2, 0.0185, 0.00001, 5.7e-9, 81e-6, 484_000)
SMALL: Final = Model("8b-a100", 1, 0.0133, 0.00003, 1.0e-7, 54e-6, 150_000)
QUICK: Final = Model("8b-h100", 1, 0.0046, 0.000015, 4.0e-8, 18e-6, 900_000)
OTHER: Final = Model("70b-oci", 2, 0.017, 0.00008, 1.0e-8, 81e-6, 300_000)
HOME: Final = Model("7b-4090", 1, 0.018, 0.00015, 1.0e-7, 150e-6, 60_000)
_SEED: Final = 11
HOUR: Final = 3600

Shape = Callable[[float], float]
"""Second -> share of the highest rate."""


def bursts(at: float) -> float:
    """Three bursts of five minutes to three times the rate, on a slow wave."""
    wave = 0.30 + 0.08 * math.sin(2 * math.pi * at / 2400)
    for begin in (780.0, 1740.0, 2700.0):
        rise = min(1.0, max(0.0, (at - begin) / 60))
        fall = min(1.0, max(0.0, (begin + 360 - at) / 60))
        wave += 0.6 * min(rise, fall)
    return wave


def climb(at: float) -> float:
    """Return a rise over half an hour, a plateau, and an end within a minute."""
    if at < 600:
        return 0.2
    if at < 2400:
        return 0.2 + 0.8 * (at - 600) / 1800
    return 1.0 if at < 3000 else max(0.25, 1.0 - (at - 3000) / 60)


def saw(at: float) -> float:
    """Return a load that doubles at once every quarter of an hour, then falls (held out)."""
    return 0.9 - 0.5 * (at % 900) / 900


def draw_requests(
    shape: Shape, most: float, lengths: Sequence[tuple[int, int]], seed: int = _SEED
) -> list[Request]:
    """Return an hour of random arrivals at this rate, with lengths of recorded requests."""
    draw = random.Random(seed)
    requests: list[Request] = []
    moment = 0.0
    while True:
        moment += draw.expovariate(most)
        if moment >= HOUR:
            return requests
        if draw.random() < shape(moment):
            requests.append(Request(moment, *draw.choice(lengths)))


def lognormal(prompt: int, answer: int, wide: float, seed: int = _SEED) -> list[tuple[int, int]]:
    """Return lengths around two medians."""
    draw = random.Random(seed)
    return [
        (
            max(16, min(16_000, round(prompt * math.exp(draw.gauss(0, wide))))),
            max(4, min(1_500, round(answer * math.exp(draw.gauss(0, wide))))),
        )
        for _ in range(2000)
    ]


def read_requests(path: Path, times: float, seed: int = _SEED) -> list[Request]:
    """Return a recorded hour, with so many times its requests.

    Each comes once more, or more often, within ten seconds of its time.
    """
    draw = random.Random(seed)
    requests: list[Request] = []
    begin = None
    with gzip.open(path, "rt", newline="") as stream:
        for row in csv.DictReader(stream):
            time = datetime.fromisoformat(row["TIMESTAMP"][:26]).timestamp()
            begin = time if begin is None else begin
            prompt, answer = int(row["ContextTokens"]), max(1, int(row["GeneratedTokens"]))
            count = int(times) + (draw.random() < times % 1)
            requests += [
                Request(max(0.0, time - begin + draw.uniform(0, 10)), max(1, prompt), answer)
                for _ in range(count)
            ]
    return sorted(requests)


def seconds_of(model: Model, batch: float, request: Request) -> float:
    """Return the seconds that a request takes of a server with so many requests."""
    context = request.prompt + request.answer / 2
    per_token = model.step / batch + model.per_request + context * model.per_cached
    return request.prompt * model.per_prompt + request.answer * per_token


def _batch(model: Model, requests: Sequence[Request]) -> float:
    """Return the requests that run at once when a token takes as long as promised."""
    prompt, answer = fmean(r.prompt for r in requests), fmean(r.answer for r in requests)
    added = prompt * model.per_prompt / answer + model.per_request
    added += (prompt + answer / 2) * model.per_cached
    fits = model.cache / (prompt + answer)
    return max(1.0, min(fits, 256.0, (LIMITS.each - model.step) / added))


def make_play(
    name: str, model: Model, requests: Sequence[Request], start: float, *, held_out: bool = False
) -> Play:
    """Return a play; it begins with the replicas that its first five minutes need."""
    batch = _batch(model, requests)
    needed = (
        sum(seconds_of(model, batch, request) for request in requests if request.at < 300) / 300
    )
    begin = max(1, math.ceil(needed / 0.6))
    return Play(name, model, requests, start, begin, batch, held_out)


def plays(traces: Path | None, *, quick: bool = False) -> list[Play]:
    """Return what is played: with recorded requests if they are there, else without."""
    chat, agent = lognormal(800, 180, 0.9), lognormal(4500, 250, 0.7)
    code = lognormal(1800, 24, 0.8)
    all_plays = [
        make_play("bursts, chat, 70b", LARGE, draw_requests(bursts, 24, chat), 120),
        make_play("bursts, code, 8b", SMALL, draw_requests(bursts, 30, code), 60),
        make_play("climb, agent, 8b-h100", QUICK, draw_requests(climb, 30, agent), 180),
        make_play("saw, chat, 70b-oci", OTHER, draw_requests(saw, 24, chat, 5), 120, held_out=True),
        make_play(
            "climb, code, 7b-4090", HOME, draw_requests(climb, 16, code, 5), 300, held_out=True
        ),
    ]
    if quick:
        return all_plays[1:2]
    if traces is not None:
        conversations = traces / "azure_llm_2023_conv.csv.gz"
        all_plays += [
            make_play("azure conv, 70b", LARGE, read_requests(conversations, 3), 120),
            make_play(
                "azure code, 8b", SMALL, read_requests(traces / "azure_llm_2023_code.csv.gz", 5), 60
            ),
            make_play(
                "azure conv, 7b-4090", HOME, read_requests(conversations, 1), 180, held_out=True
            ),
        ]
    return all_plays
