"""What a client outside the cluster learns where it cannot read a page."""

from __future__ import annotations

import asyncio

import pytest

from adapter.tools.client.errors import ClientError
from adapter.tools.doctor.facts import UnreadError
from adapter.tools.doctor.fetch import Fetched, Place
from adapter.tools.doctor.scrapes import self_pages
from tests.adapter.tools.doctor.clean import clean


class Closed:
    """The API server's proxy, for a client without the right."""

    async def fetch(self, place: Place, most: int) -> Fetched:
        raise ClientError(f"GET {place.proxy}: 403", 403)


def test_the_hint_runs_doctor_in_the_cluster_and_shows_its_output() -> None:
    facts = clean()
    release = facts.release.read()
    assert release is not None
    with pytest.raises(UnreadError) as raised:
        asyncio.run(self_pages(None, Closed(), facts, release))
    assert raised.value.command == (
        "helm -n gpu-metrics test gma; kubectl -n gpu-metrics logs job/gpu-metrics-adapter-doctor"
    )
