"""What the idle GPUs cost, from the table of all GPUs."""

from __future__ import annotations

from adapter.answers.view.gpuclass import IDLE
from adapter.pipeline.cluster.nodelabels import INSTANCE_TYPE
from adapter.tools.client.tables import ObjectTable
from adapter.tools.idle.prices import PriceList
from adapter.tools.overview.columns import Columns
from adapter.tools.overview.verdict import IdlePrice

_HOUR = 3600.0


def idle_price(table: ObjectTable, prices: PriceList, idle_after: float = IDLE) -> IdlePrice:
    """Return the price of the devices that pods hold and that are idle.

    Args:
        table: ``gpus``.
        prices: prices by model.
        idle_after: seconds.
    """
    by = Columns(table)
    per_hour = so_far = 0.0
    priced = without = 0
    idle, holders, models = by.numbers("Idle-Seconds"), by.texts("Pods"), by.texts("Model")
    for row, holder, ago, model in zip(by.rows, holders, idle, models, strict=True):
        if holder is None or ago is None or ago < idle_after:
            continue
        price = prices.of(
            model or "",
            *(row.labels.get(key, "") for key in ("mig-profile", INSTANCE_TYPE, "capacity-type")),
        )
        if price is None:
            without += 1
            continue
        priced += 1
        per_hour += price
        so_far += price * ago / _HOUR
    if not priced:
        return IdlePrice(None, None, without)
    return IdlePrice(round(per_hour, 4), round(so_far, 4), without)
