"""What a reflector does when connections, answers and objects fail."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from apiservice.kube.clusterclient import ClusterAccess, ClusterClient
from apiservice.kube.reflector import Reflector, ReflectorOptions
from tests.apiservice.kube.reflectorrig import PATH, Recorder, Rig, decode, running, thing


async def test_a_cut_connection_resumes_without_listing(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("ADDED", thing("a", "5"))
    await rig.recorder.next()
    watch.cut()
    assert (await rig.api.watch()).query["resourceVersion"] == "5"


async def test_an_event_cut_in_half_is_not_applied(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    line = msgspec.json.encode({"type": "ADDED", "object": thing("a", "2")})
    watch.raw(line)  # no line feed: the object may go on
    watch.finish()
    again = await rig.api.watch()
    assert again.query["resourceVersion"] == "1"
    assert rig.recorder.calls.empty()


async def test_a_second_failure_in_a_row_lists_again_so_that_deletions_are_noticed(
    rig: Rig,
) -> None:
    await rig.listed([thing("a", "1"), thing("b", "1")], "1")
    (await rig.api.watch()).cut()
    (await rig.api.watch()).cut()
    again = await rig.api.next()
    assert not again.is_watch
    again.page([thing("b", "1")], "9")
    assert await rig.recorder.next() == ("REPLACE", ["b"])
    assert (await rig.api.watch()).query["resourceVersion"] == "9"


async def test_cuts_of_quiet_watches_that_stood_do_not_add_up_to_a_long_pause() -> None:
    # With 0.05 s doubling, ten failures in a row would pause for 25 s or more.
    async with running(ReflectorOptions(backoff_min=0.05, backoff_max=60)) as rig:
        await rig.listed([], "1")
        async with asyncio.timeout(60):
            cuts = 0
            while cuts < 10:
                exchange = await rig.api.exchanges.get()
                if exchange.is_watch:
                    exchange.start()
                    await asyncio.sleep(0.1)
                    exchange.cut()
                    cuts += 1
                else:
                    exchange.page([], "1")
            await rig.api.exchanges.get()
        assert rig.reflector._pauses <= 1


async def test_failures_without_a_watch_that_stood_double_the_pause() -> None:
    async with running(ReflectorOptions(backoff_min=0.05, backoff_max=60)) as rig:
        loop, asked = asyncio.get_running_loop(), []
        for _ in range(5):
            exchange = await rig.api.next()
            asked.append(loop.time())
            exchange.refuse(500, "InternalError", "no")
        assert asked[4] - asked[0] >= 0.5 * (0.05 + 0.1 + 0.2 + 0.4)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"<html>proxy error</html>\n", id="html"),
        pytest.param(b'{"type":"ADDED"}\n', id="no object"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":[]}}\n', id="metadata of another type"),
        pytest.param(b'{"type":"RENAMED","object":{"metadata":{}}}\n', id="unknown event"),
        pytest.param(b"\xff\xfe\n", id="bytes"),
    ],
)
async def test_garbage_in_a_watch_lists_again_because_events_may_be_lost(
    rig: Rig, line: bytes
) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.raw(line)
    again = await rig.api.next()
    assert not again.is_watch
    assert PATH in rig.reflector.last_error


async def test_an_error_event_lists_again_and_is_named(rig: Rig) -> None:
    await rig.listed([], "1")
    watch = await rig.api.watch()
    watch.event("ERROR", {"code": 500, "reason": "InternalError", "message": "etcd is unavailable"})
    assert not (await rig.api.next()).is_watch
    assert "etcd is unavailable" in rig.reflector.last_error


async def test_one_object_that_cannot_be_read_costs_that_object_alone(rig: Rig) -> None:
    bad: dict[str, object] = {"metadata": {"name": 7, "resourceVersion": "2"}}
    await rig.listed([thing("a", "1"), bad], "2")
    watch = await rig.api.watch()
    watch.event("ADDED", bad)
    watch.event("ADDED", thing("b", "3"))
    assert await rig.recorder.next() == ("ADDED", ["b"])
    assert rig.reflector.rejected == 2


@pytest.mark.parametrize("change", ["MODIFIED", "DELETED"])
async def test_an_object_that_can_no_longer_be_read_does_not_stay_as_it_was(
    rig: Rig, change: str
) -> None:
    """Its earlier state is not its state, and an unreadable deletion is a deletion too."""
    await rig.listed([thing("a", "1"), thing("b", "2")], "2")
    watch = await rig.api.watch()
    unreadable = {**thing("a", "3"), "spec": 7}
    watch.event(change, unreadable)
    assert await rig.recorder.next() == ("LOSE", ["a"])
    watch.event("MODIFIED", thing("b", "4"))
    assert await rig.recorder.next() == ("MODIFIED", ["b"])
    assert rig.reflector.rejected == 1


async def test_a_missing_right_is_named_with_its_fix(rig: Rig) -> None:
    (await rig.api.next()).refuse(403, "Forbidden", 'pods is forbidden: User "u" cannot list')
    again = await rig.api.next()
    assert (rig.reflector.denied, rig.reflector.synced) == (True, False)
    assert 'User "u" cannot list' in rig.reflector.last_error
    assert "RBAC" in rig.reflector.last_error
    again.page([], "1")
    assert await rig.recorder.next() == ("REPLACE", [])
    watch = await rig.api.watch()
    watch.event("ADDED", thing("a", "2"))
    assert await rig.recorder.next() == ("ADDED", ["a"])
    assert (rig.reflector.denied, rig.reflector.last_error) == (False, "")


async def test_html_in_place_of_a_list_is_survived(rig: Rig) -> None:
    (await rig.api.next()).answer(b"<html>login</html>")
    again = await rig.api.next()
    assert "not a response of a Kubernetes API server" in rig.reflector.last_error
    again.page([thing("a", "1")], "1")
    assert await rig.recorder.next() == ("REPLACE", ["a"])


async def test_the_pause_between_tries_is_bounded() -> None:
    async with running(ReflectorOptions(backoff_min=0.5, backoff_max=4.0)) as rig:
        for failures, least, most in ((1, 0.25, 0.5), (3, 1.0, 2.0), (10, 2.0, 4.0)):
            rig.reflector._pauses = failures
            assert all(least <= rig.reflector._pause() <= most for _ in range(20))
        await rig.listed([], "1")


async def test_a_silent_connection_is_given_up_and_resumed() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, watch_seconds=0.0, grace=0.5)
    async with running(options) as rig:
        await rig.listed([], "4")
        await rig.api.watch()
        assert (await rig.api.next()).query["resourceVersion"] == "4"
        assert "no answer in time" in rig.reflector.last_error


async def test_a_watch_that_the_server_does_not_end_is_given_up_although_bytes_come() -> None:
    options = ReflectorOptions(
        backoff_min=0.001, backoff_max=0.002, watch_seconds=0.1, grace=0.2, request_timeout=0.2
    )
    async with running(options) as rig:
        await rig.listed([], "4")
        watch = await rig.api.watch()
        while rig.api.exchanges.empty():
            watch.raw(b"\n")
            await asyncio.sleep(0.02)
        assert (await rig.api.next()).query["resourceVersion"] == "4"
        assert "did not end the watch" in rig.reflector.last_error


async def test_an_unsolicited_answer_does_not_hold_up_the_collection() -> None:
    options = ReflectorOptions(
        backoff_min=0.001, backoff_max=0.002, watch_seconds=0.1, grace=0.2, request_timeout=0.2
    )
    async with running(options) as rig:
        exchange = await rig.api.next()
        exchange.page([], "4")
        await exchange.writer.drain()
        exchange.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(3):
            exchange = await rig.api.next()
        exchange.writer.close()
        assert rig.recorder.calls.qsize() >= 1


async def test_a_page_that_does_not_end_is_given_up() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, request_timeout=0.2)
    async with running(options) as rig:
        exchange = await rig.api.next()
        exchange.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while rig.api.exchanges.empty():
            exchange.writer.write(b" ")
            await asyncio.sleep(0.02)
        assert "no answer in time" in rig.reflector.last_error


async def test_a_stream_without_line_ends_is_bounded() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_event_bytes=1000)
    async with running(options) as rig:
        await rig.listed([], "1")
        watch = await rig.api.watch()
        watch.raw(b"x" * 2000)
        assert not (await rig.api.next()).is_watch


async def test_a_page_of_a_list_is_bounded() -> None:
    options = ReflectorOptions(backoff_min=0.001, backoff_max=0.002, max_page_bytes=1000)
    async with running(options) as rig:
        (await rig.api.next()).page([thing("x" * 2000, "1")], "1")
        await rig.listed([thing("a", "2")], "2")
        assert "a page of the list is larger than 1000 bytes" in rig.reflector.last_error


async def test_a_server_that_ends_every_watch_at_once_is_not_hammered_in_vain(rig: Rig) -> None:
    await rig.listed([], "1")
    (await rig.api.watch()).finish()
    (await rig.api.watch()).finish()
    assert not (await rig.api.next()).is_watch
    assert "ends every watch" in rig.reflector.last_error


async def test_an_unreachable_server_is_tried_until_cancelled() -> None:
    recorder = Recorder()
    async with ClusterClient(ClusterAccess(host="http://127.0.0.1:1")) as client:
        options = ReflectorOptions(backoff_min=0.001, backoff_max=0.001)
        reflector = Reflector(client, PATH, decode, recorder, options=options)
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(60):
            while not reflector.last_error:  # noqa: ASYNC110 - there is no event for a failure
                await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert PATH in reflector.last_error
    assert reflector.age(5.0) == float("inf")
