"""What a recording says of the size of GPUs, in words and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from adapter.figures import age, count, decimal, memory, percent
from adapter.tools.client.access import Json
from adapter.tools.idle.prices import PriceList
from adapter.tools.replay.size import HEADROOM, QUANTILE, GpuSize, SizeAnswer
from adapter.tools.replay.sizereading import BusySignal

_BUSY: Final = {
    BusySignal.SM: "{share} of the SMs",
    BusySignal.ENGINE: "engines active {share} of the time",
    BusySignal.UTILIZATION: "a kernel running {share} of the time",
}


def size_lines(answer: SizeAnswer, prices: PriceList) -> Iterator[str]:
    """Yield at most two lines for each model of GPU; none if the pods hold no GPUs."""
    if answer.problem:
        yield f"size: not known, because {answer.problem}"
    for size in answer.sizes:
        where = f" of {size.use.model}" if len(answer.sizes) > 1 and size.use.model else ""
        yield f"size{where}: {_describe_use(size)}: {_verdict(size, prices)}"
        if size.smaller:
            yield _caveat(size, prices)


def _describe_use(size: GpuSize) -> str:
    """Return what was used, and how many looks show it."""
    use = size.use
    parts = [f"at most {memory(use.used, use.total)} of memory"]
    if size.busy is not None and use.signal is not None:
        busy = _BUSY[use.signal].format(share=percent(size.busy))
        parts.append(f"{busy} (p{100 * QUANTILE:.0f})")
    text = f"{' and '.join(parts)} over {_days(use.seconds)} "
    text += f"({count(use.looks, 'look')} at {count(len(use.pods), 'pod')}"
    return text + (f"; {age(use.missing)} are missing)" if use.missing else ")")


def _days(seconds: float) -> str:
    """Return a time with a decimal of its days, from two days on."""
    return f"{decimal(seconds / 86_400, 1)} days" if seconds >= 2 * 86_400 else age(seconds)


def _verdict(size: GpuSize, prices: PriceList) -> str:
    if size.doubt:
        cache = size.use.cache
        full = f"; its KV cache was at most {percent(cache)} full" if cache is not None else ""
        return f"no recommendation: {size.doubt}{full if size.reserves else ''}"
    fit = size.fit
    if fit is None:
        if size.shares > 1:
            return "no smaller MIG instance is known that would have been enough"
        return "no MIG instance and no share of the GPU would have been enough, so keep it"
    part = Fraction(fit.part).limit_denominator(10)
    price = f"at {part} of the compute; the price is not known"
    if fit.price is not None and size.price is not None:
        source = (
            f"list prices of {prices.dated}" if not prices.own and prices.dated else "your prices"
        )
        price = (
            f"at {part} of the price, by its compute: {_money(fit.price)} instead of "
            f"{_money(size.price)} {prices.currency} an hour ({source})"
        )
    return (
        f"a MIG instance {fit.profile} would have been enough, {price}; a GPU has room for "
        f"{fit.instances} of them"
    )


def _caveat(size: GpuSize, prices: PriceList) -> str:
    """Return what else would have been enough, and what the comparison leaves out."""
    shares = ""
    if size.shares > 1:
        other = "or " if size.fit is not None else ""
        shares = (
            f"{other}{size.shares} such pods would have fitted on one GPU by time-slicing or MPS, "
            "without a memory of their own; "
        )
    if size.other is not None:
        shares += (
            f"by memory alone, {size.other.model} ({size.other.gigabytes} GB) at "
            f"{_money(size.other.price)} {prices.currency} an hour would have been enough: measure "
            "how fast it is; "
        )
    return (
        f"size: {shares}{percent(100 * HEADROOM)} of the memory is left free here, and work that "
        "takes longer on a part of a GPU is not simulated"
    )


def _money(amount: float) -> str:
    return f"{amount:.2f}"


def size_json(answer: SizeAnswer, prices: PriceList) -> Json:
    """Return the same for programs. Memory is in bytes, shares of compute in percent."""
    return {
        "problem": answer.problem,
        "gpus": [_gpu(size, prices) for size in answer.sizes],
    }


def _gpu(size: GpuSize, prices: PriceList) -> Json:
    use, fit = size.use, size.fit
    priced = size.price is not None
    return {
        "model": use.model,
        "looks": use.looks,
        "pods": len(use.pods),
        "seconds": round(use.seconds),
        "missingSeconds": round(use.missing),
        "memoryUsedBytes": use.used,
        "memoryTotalBytes": use.total,
        "computeSignal": use.signal.value if use.signal is not None else None,
        "computeP99Percent": size.busy,
        "kvCacheMaxPercent": use.cache,
        "doubt": size.doubt,
        "migProfile": fit.profile if fit is not None else None,
        "migInstances": fit.instances if fit is not None else None,
        "podsPerGpu": size.shares if not size.doubt else None,
        "otherModel": size.other.model if size.other is not None else None,
        "otherPricePerHour": size.other.price if size.other is not None else None,
        "pricePerHour": size.price,
        "migPricePerHour": fit.price if fit is not None else None,
        "currency": prices.currency if priced else None,
    }
