"""Which connection makes room for a new one."""

from __future__ import annotations

from dataclasses import dataclass, field

from apiservice.http.options import ServingOptions, ServingStats
from apiservice.http.slots import Slots


@dataclass(eq=False)
class Client:
    address: str
    proxy: bool = False
    evicted: bool = field(default=False, init=False)

    def evict(self) -> None:
        self.evicted = True


def test_an_address_with_one_connection_keeps_it_when_others_have_many() -> None:
    options = ServingOptions(max_connections=6, max_handshakes=1, reserved_connections=0)
    slots = Slots(options, ServingStats())
    quiet = Client("10.0.0.1")
    crowd = [Client(f"10.0.1.{n % 2}") for n in range(20)]
    assert all(slots.take(client) for client in (quiet, *crowd))
    assert not quiet.evicted
    assert [client.evicted for client in crowd] == [True] * 16 + [False] * 4


def test_a_connection_that_is_being_answered_makes_room_only_where_the_options_say_so() -> None:
    for allowed in (False, True):
        options = ServingOptions(
            max_connections=2, max_handshakes=1, reserved_connections=0, evict_busy=allowed
        )
        slots = Slots(options, ServingStats())
        first, second = Client("10.0.0.1"), Client("10.0.0.2")
        assert slots.take(first)
        slots.busy(first)
        assert slots.take(second) is allowed
        assert first.evicted is allowed
