"""The event loop's lag is seen."""

from __future__ import annotations

import asyncio
import time

from apiservice.selfmetrics.looplag import LoopLag


async def _counted(lag: LoopLag, more: int) -> None:
    wanted = lag.seconds.count + more
    async with asyncio.timeout(60):
        while lag.seconds.count < wanted:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.005)


async def test_a_callback_that_holds_the_loop_is_counted_with_its_length() -> None:
    lag = LoopLag(every=0.01)
    task = asyncio.create_task(lag.run())
    await _counted(lag, 2)

    time.sleep(0.3)  # noqa: ASYNC251 - the mistake that is to be seen
    await _counted(lag, 1)
    task.cancel()

    slow = sum(
        count
        for bound, count in zip(lag.seconds.bounds, lag.seconds.buckets, strict=False)
        if bound > 0.25
    )
    assert slow >= 1
    assert lag.seconds.seconds >= 0.25
