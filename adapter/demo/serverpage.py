"""The page of a simulated inference server, with the series of vLLM that count its requests.

Names and HELP texts follow vLLM's ``vllm/v1/metrics/loggers.py``.
"""

from __future__ import annotations

from typing import Final

from adapter.demo.world import World

_MODEL: Final = "simulated"


def render(world: World, pod: str) -> bytes:
    """Render the page of a replica, as UTF-8.

    Raises:
        KeyError: the pod is gone.
    """
    running, waiting = world.services[world.fleet.pods[pod].service].held_requests(pod)
    lines: list[str] = []
    for name, about, value in (
        ("vllm:num_requests_running", "Number of requests in model execution batches.", running),
        ("vllm:num_requests_waiting", "Number of requests waiting to be processed.", waiting),
    ):
        lines += [
            f"# HELP {name} {about}",
            f"# TYPE {name} gauge",
            f'{name}{{engine="0",model_name="{_MODEL}"}} {value}',
        ]
    return ("\n".join(lines) + "\n").encode()
