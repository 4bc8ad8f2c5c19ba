"""Selectors of a client who may read one namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import httpx

from tests.attack.siege import Siege

PODS = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/%2A/DCGM_FI_DEV_GPU_UTIL"
REQUESTS = 4300
ROOM = 60 << 20
"""Bytes that the process may grow by, bounds of all caches together."""


def _repeated(seed: int) -> str:
    """Return a selector of 1,000 characters that are 490 requirements."""
    return f"{','.join(['a'] * 490)},b{seed:x}"


def _many(seed: int) -> str:
    return ",".join(f"k{seed:x}-{number}" for number in range(60))


def _values(seed: int) -> str:
    return f"k notin ({','.join(f'{seed:x}.{number}' for number in range(150))})"


def _queries() -> Iterator[str]:
    for seed in range(REQUESTS):
        name = ("labelSelector", "metricLabelSelector")[seed % 2]
        text = (_repeated, _many, _values)[seed % 3](seed)
        yield f"{PODS}?{name}={quote(text)}"


def test_endless_different_selectors_do_not_fill_memory(
    siege: Callable[..., Siege],
) -> None:
    attacked = siege()
    statuses: set[int] = set()
    with attacked.serving.client() as client:
        client.get(PODS)
        before = attacked.process.memory_info().rss
        for query in _queries():
            statuses.add(_status(client, query))

    assert statuses == {200}
    attacked.verdict()
    assert attacked.process.memory_info().rss - before < ROOM


def _status(client: httpx.Client, query: str) -> int:
    return client.get(query).status_code
