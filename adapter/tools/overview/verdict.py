"""The state of the whole cluster in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from adapter.answers.judgement.counts import HpaCounts
from adapter.answers.judgement.states import Level
from adapter.figures import count
from adapter.tools.client.tables import Cell
from adapter.tools.overview.gpuclasses import GpuCounts
from adapter.tools.overview.hpas import HpaSummary

Json = dict[str, Any]
VerdictLevel = Literal["good", "warning", "bad", "empty", "waiting"]


class PodCounts(NamedTuple):
    """GPU pods; ``unmeasured`` are those on a node."""

    total: int
    measured: int
    unmeasured: int
    waiting: int
    """Without a node."""


class IdlePrice(NamedTuple):
    """What idle GPUs cost; see ``adapter.tools.idle``."""

    per_hour: float | None
    so_far: float | None
    without_price: int

    def json(self) -> Json:
        """The part of the page."""
        return {
            "pricePerHour": self.per_hour,
            "costSoFar": self.so_far,
            "withoutPrice": self.without_price,
        }


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """The sentence, and the numbers behind it. What could not be read is None."""

    level: VerdictLevel
    text: str
    hpas: HpaCounts | None = None
    pods: PodCounts | None = None
    gpus: GpuCounts | None = None
    price: IdlePrice | None = None

    def json(self) -> Json:
        """The part of the page."""
        h, p, g, i = self.hpas, self.pods, self.gpus, self.price
        return {
            "level": self.level,
            "text": self.text,
            "hpas": None if h is None else h.json(),
            "pods": None if p is None else p._asdict(),
            "gpus": None if g is None else g._asdict() | {"total": g.total},
            "idle": None if i is None else i.json(),
        }


def count_hpas(hpas: Sequence[HpaSummary]) -> HpaCounts:
    """Count HPAs, and ScaledObjects without one, by state."""
    alike = all(hpa.kind == "HPA" for hpa in hpas)
    return HpaCounts((hpa.state for hpa in hpas), "HPA" if alike else "autoscaler")


def count_pods(rows: Iterable[Mapping[str, Cell]]) -> PodCounts:
    """Count the rows of ``gpupods``, cells by column."""
    pairs = [(row["Why-Not"], row["Node"]) for row in rows]
    return pod_counts([why for why, _ in pairs], [node for _, node in pairs])


def pod_counts(why_not: Sequence[Cell], nodes: Sequence[Cell]) -> PodCounts:
    """Count the rows of ``gpupods`` by the cells of two columns."""
    total, measured = len(why_not), why_not.count(None)
    pairs = zip(why_not, nodes, strict=True)
    waiting = sum(why is not None and node is None for why, node in pairs)
    return PodCounts(total, measured, total - measured - waiting, waiting)


def verdict(
    hpas: Sequence[HpaSummary] | None,
    pods: PodCounts | None,
    gpus: GpuCounts | None,
    price: IdlePrice | None = None,
    *,
    silent: int = 0,
) -> ClusterVerdict:
    """Return the verdict; None stands for what could not be read.

    Args:
        hpas: what they do.
        pods: GPU pods.
        gpus: those that exporters report. The counts of the verdict have the silent ones too.
        price: of idle GPUs.
        silent: GPUs of nodes that no exporter reports: nobody knows whether they work.
    """
    counts = None if hpas is None else count_hpas(hpas)
    if counts is None and pods is None and gpus is None and not silent:
        return ClusterVerdict("waiting", "Nothing has been read yet.", price=price)
    if not (silent or any(tally.total for tally in (counts, pods, gpus) if tally is not None)):
        return ClusterVerdict(
            "empty", _describe_absence(counts, pods, gpus), counts, pods, gpus, price
        )
    bad, warnings, notes = _hpas(counts, "bad"), _hpas(counts, "warning"), _hpas(counts, "off")
    if pods is not None:
        warnings += _some(pods.unmeasured, 0, "pod", "has no value", "have no value")
        warnings += _some(pods.waiting, 0, "pod", "waits for a node", "wait for a node")
    if gpus is not None:
        warnings += _some(gpus.unmeasured, 0, "GPU", "is not measured", "are not measured")
        warnings += _some(gpus.blocked, 0, "free GPU", _CLOSED, _CLOSED)
        notes += _some(gpus.idle, 0, "GPU", "is idle", "are idle")
        notes += _some(gpus.unheld, 0, "GPU", "runs without a pod", "run without a pod")
        gpus = gpus._replace(unmeasured=gpus.unmeasured + silent)
    warnings += _some(silent, 0, "GPU", _UNREPORTED.format("is"), _UNREPORTED.format("are"))
    level: VerdictLevel = "bad" if bad else "warning" if warnings else "good"
    parts = bad + warnings + ([] if bad or warnings else _describe_fine(counts, pods)) + notes
    text = ", ".join(parts) or f"{count(gpus.total if gpus else 0, 'GPU')} measured"
    return ClusterVerdict(level, f"{text[0].upper()}{text[1:]}.", counts, pods, gpus, price)


_UNREPORTED: Final = "{} reported by no exporter"
_CLOSED: Final = "where no pod can start"


def _hpas(counts: HpaCounts | None, level: Level) -> list[str]:
    """Return how many HPAs are in each state of a level; the worst state says of how many."""
    parts: list[str] = []
    for row, amount in counts.rows() if counts is not None else ():
        if row.level == level and counts is not None:
            of = counts.total if level == "bad" and not parts else 0
            parts += _some(amount, of, counts.noun, row.one, row.more)
    return parts


def _some(amount: int, of: int, noun: str, one: str, more: str) -> list[str]:
    if not amount:
        return []
    if of > 1:
        return [f"{amount} of {of} {noun}s {one if amount == 1 else more}"]
    return [f"{amount} {noun} {one}" if amount == 1 else f"{amount} {noun}s {more}"]


def _describe_fine(hpas: HpaCounts | None, pods: PodCounts | None) -> list[str]:
    parts = []
    if hpas is not None and (works := sum(n for row, n in hpas.rows() if row.level == "good")):
        noun = hpas.noun
        every = f"the {noun} works" if works == 1 else f"all {works} {noun}s work"
        parts.append(every if works == hpas.total else f"{works} of {hpas.total} {noun}s work")
    if pods is not None and pods.total:
        one = "the GPU pod has a value"
        parts.append(one if pods.total == 1 else f"all {pods.total} GPU pods have a value")
    return parts


def _describe_absence(
    hpas: HpaCounts | None, pods: PodCounts | None, gpus: GpuCounts | None
) -> str:
    """Return what is not there; what could not be read is not mentioned."""
    names = [(gpus, "GPU"), (pods, "GPU pod"), (hpas, "HPA")]
    return f"There is no {' and no '.join(name for tally, name in names if tally is not None)}."
