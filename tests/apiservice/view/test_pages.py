"""Lists in pages, and by selectors."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace

import httpx
import pytest

from apiservice.labels.fields import FieldSelector
from apiservice.labels.selector import EVERYTHING
from apiservice.runtime.steps import at_once
from apiservice.view import endpoint
from apiservice.view.options import ListOptions
from apiservice.view.resource import Key, ServedResource
from apiservice.view.selection import select
from tests.apiservice.view.conftest import Served
from tests.apiservice.view.things import BOARDS, FakeProvider, Thing

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def names(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


def many(served: Served, count: int = 1000, padding: str = "") -> list[str]:
    """Have so many boards; return their names."""
    listed = [f"b{number:05}" for number in range(count)]
    served.boards.things = {
        Key("", name): Thing(1, {"odd": str(number % 2)}, padding=padding)
        for number, name in enumerate(listed)
    }
    return listed


async def follow(served: Served, query: str) -> list[list[str]]:
    """Return the names on each page of a list."""
    pages: list[list[str]] = []
    token = ""
    while len(pages) < 50:
        answer = await served.get(f"boards?{query}&continue={token}")
        pages.append(names(answer))
        token = answer.json()["metadata"].get("continue", "")
        if not token:
            return pages
    raise AssertionError("the list does not end")


async def test_pages_together_are_the_list(served: Served) -> None:
    listed = many(served)
    pages = await follow(served, "limit=300")
    assert [len(page) for page in pages] == [300, 300, 300, 100]
    assert [name for page in pages for name in page] == listed


async def test_a_page_says_how_many_objects_remain(served: Served) -> None:
    many(served, 10)
    metadata = (await served.get("boards?limit=3")).json()["metadata"]
    assert metadata["remainingItemCount"] == 7
    full = (await served.get("boards?limit=10")).json()["metadata"]
    assert set(full) == {"resourceVersion"}, "the last page has no continue"


async def test_the_rest_of_a_selected_list_is_not_counted(served: Served) -> None:
    many(served, 10)
    metadata = (await served.get("boards?limit=3&labelSelector=odd%3D1")).json()["metadata"]
    assert metadata["continue"]
    assert "remainingItemCount" not in metadata


async def test_pages_of_a_selected_list_leave_nothing_out(served: Served) -> None:
    listed = many(served)
    pages = await follow(served, "limit=150&labelSelector=odd%3D1")
    assert [name for page in pages for name in page] == listed[1::2]


async def test_a_page_begins_after_the_last_object_although_that_is_gone(served: Served) -> None:
    listed = many(served, 10)
    token = (await served.get("boards?limit=3")).json()["metadata"]["continue"]
    del served.boards.things[Key("", listed[2])]
    assert names(await served.get(f"boards?limit=3&continue={token}")) == listed[3:6]


async def test_the_pages_of_a_list_share_its_keys(served: Served) -> None:
    """A page is not made of the whole list again; an object that is new is on no later page."""
    listed = many(served, 10)
    token = (await served.get("boards?limit=4")).json()["metadata"]["continue"]
    taken = served.boards.listed
    served.boards.things[Key("", "b00005-new")] = Thing(1)
    answer = await served.get(f"boards?limit=4&continue={token}")
    assert names(answer) == listed[4:8]
    assert served.boards.listed == taken
    assert "b00005-new" in names(await served.get("boards"))


async def test_the_keys_of_a_list_are_kept_for_a_few_seconds(served: Served) -> None:
    listed = many(served, 10)
    token = (await served.get("boards?limit=4")).json()["metadata"]["continue"]
    served.boards.things[Key("", "b00005-new")] = Thing(1)
    served.world.clock.now += 10
    answer = await served.get(f"boards?limit=4&continue={token}")
    assert names(answer) == [*listed[4:6], "b00005-new", listed[6]]


async def test_the_keys_of_one_namespace_are_not_those_of_another(served: Served) -> None:
    served.lamps.things |= {Key("other", f"x{number}"): Thing() for number in range(3)}
    own = await served.get("namespaces/ns/lamps?limit=1")
    await served.get("namespaces/other/lamps?limit=1")
    token = own.json()["metadata"]["continue"]
    assert names(await served.get(f"namespaces/ns/lamps?continue={token}")) == ["floor"]


async def test_a_page_costs_its_own_objects_and_no_others(served: Served) -> None:
    listed = many(served)
    await served.get("boards?limit=10")
    assert served.boards.prepared == {Key("", name) for name in listed[:10]}


async def test_pages_follow_the_order_of_the_resource() -> None:
    """A list by number: the names do not sort as the list does."""
    listed = [Key("", f"b{number}") for number in (1, 2, 9, 10, 11, 100)]
    by_number = replace(BOARDS, order=lambda key: int(key.name.removeprefix("b")))
    view = ServedResource(by_number, FakeProvider({}))
    keys: list[Key] = []
    for _ in range(3):
        options = ListOptions(EVERYTHING, FieldSelector(()), 2, keys[-1] if keys else None)
        keys += at_once(select(view, listed, options)).keys
    assert keys == listed


async def test_a_table_continues_too(served: Served) -> None:
    many(served, 10)
    answer = (await served.get("boards?limit=4", accept=TABLE)).json()
    assert len(answer["rows"]) == 4
    token = answer["metadata"]["continue"]
    answer = (await served.get(f"boards?continue={token}", accept=TABLE)).json()
    assert [row["cells"][0] for row in answer["rows"]] == [f"b{n:05}" for n in range(4, 10)]


async def test_a_token_of_another_list_is_refused(served: Served) -> None:
    token = (await served.get("namespaces/ns/lamps?limit=1")).json()["metadata"]["continue"]
    assert names(await served.get(f"namespaces/ns/lamps?continue={token}")) == ["floor"]
    for path in ("lamps", "namespaces/other/lamps", "boards"):
        answer = await served.get(f"{path}?continue={token}")
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("continue key is not valid: it belongs to")


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
        base64.urlsafe_b64encode(b'["boards","","b0"]').decode(),
        base64.urlsafe_b64encode(b'["boards","","",1]').decode(),
        base64.urlsafe_b64encode(b'["boards","","","b0","more"]').decode(),
        "%F0%9F%A6%8A",
        "A" * 4000,
    ],
)
async def test_a_malformed_token_is_refused(served: Served, token: str) -> None:
    answer = await served.get(f"boards?continue={token}")
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("continue key is not valid: it does not come from")


async def test_a_token_shows_no_other_namespace(served: Served) -> None:
    forged = base64.urlsafe_b64encode(b'["lamps","ns","a",""]').decode()
    answer = (await served.get(f"namespaces/ns/lamps?continue={forged}")).json()
    assert {item["metadata"]["namespace"] for item in answer["items"]} == {"ns"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("labelSelector=app%3Dwork", ["ns/desk", "other/desk"]),
        ("labelSelector=app+in+(rest),app", ["ns/floor"]),
        ("labelSelector=!app", []),
        ("fieldSelector=color%3Dred", ["ns/desk"]),
        ("fieldSelector=color!%3Dred", ["ns/floor", "other/desk"]),
        ("fieldSelector=metadata.name%3Ddesk", ["ns/desk", "other/desk"]),
        ("fieldSelector=metadata.namespace%3Dother", ["other/desk"]),
        ("fieldSelector=color%3Dwhite,metadata.name%3D%3Ddesk", ["other/desk"]),
        ("fieldSelector=color%3Dwhite&labelSelector=app%3Drest", ["ns/floor"]),
    ],
)
async def test_selectors_restrict_a_list(served: Served, query: str, expected: list[str]) -> None:
    items = (await served.get(f"lamps?{query}")).json()["items"]
    keys = [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items]
    assert keys == expected


async def test_an_unknown_field_is_answered_with_the_known_ones(served: Served) -> None:
    answer = await served.get("lamps?fieldSelector=size%3D1")
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        "field label not supported: size: lamps can be selected by metadata.name, "
        "metadata.namespace, color"
    )


@pytest.mark.parametrize(
    "query", ["fieldSelector=color", "labelSelector=,", "fieldSelector=a%3D%5Cb"]
)
async def test_a_selector_that_does_not_parse_is_refused(served: Served, query: str) -> None:
    answer = await served.get(f"lamps?{query}")
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(f"unable to parse {query.partition('=')[0]}: ")


async def test_a_page_of_large_objects_ends_early(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "PAGE_BYTES", 10_000)
    listed = many(served, 100, "x" * 1000)
    pages = await follow(served, "limit=80")
    assert {len(page) for page in pages[:-1]} < {9, 10}
    assert [name for page in pages for name in page] == listed


async def test_a_list_beyond_the_bound_is_refused_with_what_to_do(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "MOST_BYTES", 1 << 20)
    many(served, 2000, "x" * 1000)
    answer = await served.get("boards")
    assert answer.status_code == 400
    assert "larger than 1 MiB: set limit to receive it in pages" in answer.json()["message"]


async def test_a_long_list_waits_for_its_turn_and_a_short_one_does_not(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = 0

    async def wait(*_: object) -> None:
        nonlocal waiting
        waiting += 1
        await asyncio.Event().wait()

    monkeypatch.setattr("apiservice.wire.largeanswers.LargeAnswers.answer", wait)
    many(served, 65)
    long = asyncio.create_task(served.get("boards"))
    answer = await served.get("boards?limit=64")
    assert len(answer.json()["items"]) == 64
    async with asyncio.timeout(60):
        while not waiting:  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0)
    assert not long.done()
    long.cancel()
    await asyncio.gather(long, return_exceptions=True)


@pytest.mark.parametrize("accept", ["application/json", TABLE])
async def test_others_have_turns_while_a_long_list_is_made(served: Served, accept: str) -> None:
    many(served, 10_000)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    answer = await served.get("boards?labelSelector=odd", accept=accept)
    beside.cancel()
    assert answer.status_code == 200
    assert turns > 10
