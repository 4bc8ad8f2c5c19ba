"""What the name of a metric says that it measures: the quantity, the unit and the statistic.

People name the same quantity in many words: a queue's depth, length or size is the requests that
wait. The words are those of HPAs and ScaledObjects in public repositories.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.pipeline.catalog.metric import Scope, Unit
from apiservice.runtime.nearest import nearest

_LONGEST: Final = 120
"""Characters of a name that are read; no name in public repositories has more."""
_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PERCENTILE: Final = re.compile(r"p[0-9]{2}")
_LIKENESS: Final = 0.8
"""The least likeness of a misspelt word: ``gpu`` is not ``cpu``, nor ``tpu``."""
_SHORTEST: Final = 3


def _keys(words: str, *more: str) -> frozenset[str]:
    """Return words that are written with blanks between them."""
    return frozenset(word for text in (words, *more) for word in text.split())


_DEVICE: Final = _keys("gpu gpus dcgm nvidia amd accelerator card cuda nvml")
_SERVER: Final = _keys(
    "inference infer llm vllm tgi sglang triton trtllm tensorrt lmdeploy llamacpp ollama nim"
)
_SHARE: Final = _keys("percent percentage pct perc ratio fraction")
_USED_SHARE: Final = _keys("util utils utilization utilisation utilized busy duty")
_SAME: Final = {
    "use": _USED_SHARE | _keys("use used using usage cycle"),
    "memory": _keys("memory mem fb vram framebuffer hbm"),
    "waiting": _keys(
        "waiting wait waits queue queues queued queuing queueing pending backlog awaiting"
    ),
    "length": _keys("length depth size len"),
    "active": _keys("active activity running inflight processing concurrent concurrency ongoing"),
    "request": _keys("request requests req reqs seq seqs sequences queries query"),
    "time": _keys("time latency latencies duration delay seconds second secs sec milliseconds ms"),
    "rate": _keys("rate throughput"),
    "token": _keys("token tokens"),
    "output": _keys("output generation generated decode"),
    "prompt": _keys("prompt prompts input"),
    "temperature": _keys("temperature temp celsius"),
    "power": _keys("power watts watt draw wattage"),
    "gateway": _keys("gateway pool epp"),
    "count": _keys("count number num"),
}
"""Word of a quantity -> the words that people write for it."""
_EXPANDED: Final = {
    "ttft": ("time", "first", "token"),
    "tpot": ("time", "output", "token"),
    "itl": ("time", "output", "token"),
    "rps": ("request", "rate"),
    "qps": ("request", "rate"),
    "tps": ("token", "rate"),
    "kvcache": ("kv", "cache"),
}
_STATISTICS: Final = dict.fromkeys(_keys("avg average mean"), "mean") | dict.fromkeys(
    _keys("max maximum peak highest"), "max"
)
_EMPTY: Final = _keys(
    "fi dev prof metric metrics value current per to of in the by pod pods replica replicas",
    "container deployment model server service",
)
"""Words that say nothing of the quantity."""
_SECOND: Final = ("s", "sec", "second")
_SHARES: Final = frozenset({Unit.PERCENT, Unit.RATIO})
_AMOUNTS: Final = frozenset({Unit.BYTES, Unit.MEBIBYTES})
_OTHER: Final = frozenset({Unit.NUMBER})
"""A unit that no metric of the catalogue has."""
_UNITS: Final = {
    **dict.fromkeys(_SHARE | _USED_SHARE, _SHARES),
    **dict.fromkeys(_keys("bytes byte"), frozenset({Unit.BYTES})),
    **dict.fromkeys(_keys("mb mib"), frozenset({Unit.MEBIBYTES})),
    **dict.fromkeys(_keys("gb gib kb kib us microseconds"), _OTHER),
    **dict.fromkeys(_keys("seconds second secs sec s"), frozenset({Unit.SECONDS})),
    **dict.fromkeys(_keys("milliseconds ms"), frozenset({Unit.MILLISECONDS})),
}
"""Word -> the units that it allows."""
_QUANTITIES: Final = {word: quantity for quantity, words in _SAME.items() for word in words}
_SCOPES: Final = dict.fromkeys(_DEVICE, Scope.DEVICE) | dict.fromkeys(_SERVER, Scope.SERVER)
_KNOWN: Final = frozenset((*_QUANTITIES, *_SCOPES, *_UNITS, *_EXPANDED, *_STATISTICS, *_EMPTY))


class Quantity(NamedTuple):
    """What a name says that it measures."""

    scope: Scope | None
    """Devices or inference servers; None if the name says neither."""
    words: frozenset[str]
    """Words of the quantity: ``memory`` and ``use``."""
    statistic: str
    """``p95``, ``max``, or the ``mean`` of latencies; empty without one. An HPA takes the mean of
    other values anyway."""
    units: frozenset[Unit]
    """Units that the name allows; empty if it states none."""

    def is_same(self, other: Quantity) -> bool:
        """Return whether both measure the same, in a unit that both allow."""
        common = not self.units or not other.units or bool(self.units & other.units)
        return common and self[:3] == other[:3] and self.scope is not None and bool(self.words)


@lru_cache(1024)
def quantity_of(name: str, known_words: frozenset[str] = frozenset()) -> Quantity:
    """Return what a name says that it measures.

    Args:
        name: of a metric.
        known_words: words of names that exist, which are not misspelt.
    """
    parts = correct_words(name, known_words)
    words: set[str] = set()
    units: frozenset[Unit] = frozenset()
    statistic = ""
    for part in parts:
        units = _UNITS.get(part, units)
        if _PERCENTILE.fullmatch(part) or part in _STATISTICS:
            statistic = _STATISTICS.get(part, part)
        elif part not in _EMPTY and part not in _SCOPES:
            words |= set(_EXPANDED.get(part, (_QUANTITIES.get(part, part),)))
    if any(pair == ("per", second) for pair in pairwise(parts) for second in _SECOND):
        words, units = words - {"time"} | {"rate"}, frozenset()
    if not _SHARE.isdisjoint(parts):
        units = _SHARES  # of ``memory_used_percent``, and of ``utilization_percent``
        words |= {"use"} if words & {"memory", "cache"} else set()
    elif "used" in parts and "memory" in words:
        units = units or _AMOUNTS
    if statistic == "mean" and "time" not in words:
        statistic = ""
    scopes = {_SCOPES[part] for part in parts if part in _SCOPES}
    scope = Scope.SERVER if Scope.SERVER in scopes else next(iter(scopes), None)
    return Quantity(scope, _without_implied(words), statistic, units)


def correct_words(name: str, known_words: frozenset[str]) -> list[str]:
    """Return the words of a name, with known words for those that are misspelt."""
    return [_correct_word(part, known_words) for part in _parts_of(name)]


def words_of(names: Collection[str]) -> frozenset[str]:
    """Return the words of which names consist."""
    return frozenset(part for name in names for part in _parts_of(name))


def _without_implied(words: set[str]) -> frozenset[str]:
    """Return the words without units, and without those that the others imply."""
    implied = set(_UNITS)
    if words & {"waiting", "active"}:
        implied |= {"length", "count"} | (set() if "time" in words else {"request"})
    if "cache" in words:
        implied |= {"kv"}
    if "power" in words:
        implied |= {"use"}
    if "use" in words:
        implied |= {"rate"}  # ``utilization_rate``
    if words - implied == {"time"}:
        words = words | {"request"}
    return frozenset(words - implied)


def _parts_of(name: str) -> list[str]:
    """Return the words of a name in lower case: ``gpuUtil`` and ``GPU_UTIL`` have the same."""
    pieces = re.split(r"[^A-Za-z0-9]+", name[:_LONGEST])
    return [
        part.lower()
        for piece in pieces
        for part in ([piece] if _PERCENTILE.fullmatch(piece.lower()) else _PART.findall(piece))
    ]


def _correct_word(word: str, known_words: frozenset[str]) -> str:
    """Return the known word that a misspelt one resembles; the word itself if there is none."""
    every = known_words | _KNOWN
    if word in every or len(word) < _SHORTEST or word.isdigit():
        return word
    return next(iter(nearest(word, sorted(every), 1, cutoff=_LIKENESS)), word)
