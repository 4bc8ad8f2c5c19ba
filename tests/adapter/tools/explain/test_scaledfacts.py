"""What `explain scaledobject` reads is bounded for any ScaledObject."""

from __future__ import annotations

from typing import Any

from adapter.tools.client.errors import ClientError
from adapter.tools.explain.scaledfacts import services_at


class Api:
    """An API server without Services, which counts what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        raise ClientError(f"GET {path}: not found", 404)


async def test_the_services_of_the_first_triggers_are_read() -> None:
    """A ScaledObject may have thousands of triggers, each with an address of its own."""
    api: Any = Api()
    addresses = [f"scaler-{number}.ns:6000" for number in range(5_000)]
    services = await services_at(api, ["", "https://outside.example.com", *addresses, addresses[0]])
    assert list(services) == addresses[:16]
    assert len(api.asked) == 16
