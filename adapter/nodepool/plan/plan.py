"""The plan: the headroom of each shape, after limits, budget and room of its pool. Pure.

Each order is a total, decided in each round from the current state. Limits can only lower it below
the demand: the maximum pods of a workload, the limit of the shape, the GPUs and the budget of its
pool, a back-off, and the size of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import add

from adapter.nodepool.learn.forecast import ForecastRequest
from adapter.nodepool.model.capacity import Capacity, Headroom, Pool
from adapter.nodepool.model.demand import Demand
from adapter.nodepool.model.reason import Reason, count_gpus, count_pods
from adapter.nodepool.model.shape import Shape, gpus, key
from adapter.nodepool.plan.limits import Limits
from adapter.nodepool.plan.order import Order, Plan, Tie
from adapter.nodepool.plan.packing import NOWHERE, Lot, Placement, PoolRoom, largest_first, pack
from adapter.nodepool.plan.poolchoice import PoolChoice, choose, is_backed_off, notes
from adapter.nodepool.plan.request import NOTHING, HeadroomRequest, ask


@dataclass(slots=True)
class _OrderDraft:
    """One order while limits are applied to it."""

    namespace: str
    key: str
    shape: Shape
    members: tuple[Demand, ...]
    held: Headroom | None
    choice: PoolChoice
    size: int = 0
    """GPUs of one pod; an order of an unknown size is cut to nothing."""
    replicas: int = 0
    asked: HeadroomRequest = NOTHING
    kept: int = 0
    """The order as far as free nodes exist for it."""
    twice: bool = False
    """Whether the autoscaler may order its nodes twice.

    The Cluster Autoscaler starts a round as soon as a pod is unschedulable (``loop/trigger.go`` of
    1.36), and adds headroom to the pending pods. If the pods that headroom was ordered for are
    pending before it is lowered, it orders their nodes again. So a CapacityBuffer is for the nodes
    that are missing, and is tied to its nodes as soon as all exist or boot: no new node admits its
    pods then, and pods that take its nodes need no second order. Placeholders for pods that an HPA
    is about to create are removed before.
    """
    buffers: bool = True
    """Whether it becomes a CapacityBuffer, and not placeholders."""
    prompt: int = 0
    """Fewest pending pods without a node with which it is one pod at least; 0 if never."""
    reasons: list[Reason] = field(default_factory=list)
    given: int = 0
    """Pods that got GPUs and room of the pool."""
    placed: Placement = NOWHERE
    added: int = 0
    """Pods of ``replicas`` that are only kept because nodes for them exist."""

    @property
    def was(self) -> int:
        return self.held.replicas if self.held is not None else 0

    @property
    def pool(self) -> str:
        return self.choice.pool.name if self.choice.pool is not None else ""

    def cut(self, most: int, code: str, text: str) -> None:
        """Lower the order. Keep the reason only if it changed the order."""
        self.kept = min(self.kept, most)
        self.prompt = self.prompt if most > 0 else 0
        if self.replicas > most:
            self.replicas = most
            self.reasons.append(Reason(code, text))

    def give(self, put: Placement) -> None:
        """Count one more pod, and its placement."""
        self.given += 1
        self.placed = Placement(*map(add, self.placed, put))

    def order(self, now: float) -> Order:
        placed = self.placed
        request = self.asked
        awaited = min(request.awaited, self.replicas)
        handed = awaited if self.twice and not self.buffers else 0
        if handed:
            text = f"{count_pods(handed)} will be created soon: room is left for them"
            self.reasons.append(Reason("coming", text))
        # If a cut leaves at most what is needed, none of the order is merely kept.
        needed = request.needed >= self.replicas - self.added > 0
        return Order(
            namespace=self.namespace,
            shape=self.shape,
            pool=self.pool,
            replicas=self.replicas - handed,
            was=self.was,
            pods=sum(member.real for member in self.members),
            reckoned=request.expected - awaited + handed,
            needed_at=now if needed else request.kept_since,
            workloads=tuple(member.workload for member in self.members),
            reasons=tuple(self.reasons),
            nudge=request.consumed and self.replicas > 0,
            ready=None if self.shape.claims else placed.ready,
            nodes=None if self.shape.claims or placed.left else placed.nodes,
            tie=self._tie(now),
            about=tuple(member.name for member in self.members),
        )

    def _tie(self, now: float) -> Tie | None:
        """Return the nodes that admit the pods of a buffer."""
        placed, pool = self.placed, self.choice.pool
        if not self.twice or not self.buffers or self.shape.claims or not self.replicas:
            return None
        nodes = tuple(sorted(set(placed.on)))
        if not placed.nodes and not placed.left:
            return Tie(True, nodes, self.replicas)
        # While no node can be added, the buffer keeps the nodes that exist.
        refused = pool is not None and is_backed_off(pool, now)
        return Tie(False, nodes, self.replicas - placed.ready) if nodes and not refused else None


def plan(demand: Sequence[Demand], capacity: Capacity, limits: Limits, now: float) -> Plan:
    """Decide every order from the current state. The same input gives the same plan.

    Args:
        demand: the workloads, in any order.
        now: epoch seconds.
    """
    drafts = _drafts(demand, capacity, now)
    for draft in drafts:
        _ask(draft, limits, now)
    by_pool: dict[str, list[_OrderDraft]] = {}
    for draft in drafts:
        by_pool.setdefault(draft.pool, []).append(draft)
    for name, theirs in by_pool.items():
        _share(theirs, name, capacity, limits)
    return Plan(tuple(draft.order(now) for draft in drafts), notes(capacity.pools, now))


def _drafts(demand: Sequence[Demand], capacity: Capacity, now: float) -> list[_OrderDraft]:
    """Return a draft per namespace and shape that has demand or existing headroom."""
    members: dict[tuple[str, str], list[Demand]] = {}
    shapes: dict[tuple[str, str], Shape] = {}
    for member in sorted(demand, key=lambda member: member.workload):
        place = (member.workload.namespace, key(member.shape))
        members.setdefault(place, []).append(member)
        shapes.setdefault(place, member.shape)
    held_headroom: dict[tuple[str, str], Headroom] = {}
    for row in sorted(capacity.headroom, key=lambda row: (row.replicas, row.needed_at, row.pods)):
        place = (row.namespace, key(row.shape))
        held_headroom[place] = row
        shapes.setdefault(place, row.shape)
    drafts = []
    for place in sorted(shapes):
        theirs = tuple(members.get(place, ()))
        choice = choose(shapes[place], theirs, capacity.pools, now)
        drafts.append(_OrderDraft(*place, shapes[place], theirs, held_headroom.get(place), choice))
    return drafts


def _ask(draft: _OrderDraft, limits: Limits, now: float) -> None:
    """Set the request of a shape, and apply the limits that concern only this shape."""
    pool = draft.choice.pool
    boot_seconds = pool.boot_seconds if pool is not None else None
    lead = limits.boot_seconds if boot_seconds is None else boot_seconds
    size = gpus(draft.shape)
    draft.size = draft.size if size is None else size
    quantile = limits.quantile_for(draft.pool, draft.size)
    wish = ForecastRequest(lead, quantile, limits.share)
    draft.asked = ask(draft.members, draft.held, wish, limits, now)
    draft.replicas, draft.kept = draft.asked.replicas, draft.asked.kept
    draft.twice, draft.buffers = pool is not None and pool.waits, limits.buffers
    draft.prompt = draft.asked.prompt if draft.twice and limits.buffers else 0
    draft.reasons.extend(draft.asked.reasons)
    if not draft.members:
        draft.reasons[:] = [Reason("gone", "no workload has pods of this shape any more")]
        return
    if not limits.enabled:
        draft.cut(0, "stopped", "the kill switch is on")
    if size is None:
        draft.cut(0, "claims", "the number of devices of its ResourceClaimTemplates is unknown")
    if draft.shape.claims and draft.namespace not in limits.claim_namespaces:
        draft.cut(
            0,
            "claim_namespace",
            f"headroom with ResourceClaims must be in namespace {draft.namespace}, which "
            f"nodepool.claim_namespaces does not list",
        )
    if size == 0:
        draft.cut(0, "no_gpu", "its pods hold no GPU")
    if draft.choice.refusal is not None:
        draft.cut(0, *draft.choice.refusal)
    if pool is not None and is_backed_off(pool, now):
        draft.cut(draft.was, "backoff", f"the autoscaler has backed off pool {pool.name}")
    draft.cut(limits.max_pods, "max_pods", f"limits.max_pods allows {count_pods(limits.max_pods)}")


def _share(drafts: Sequence[_OrderDraft], name: str, capacity: Capacity, limits: Limits) -> None:
    """Distribute a pool's GPUs and room, one pod per shape in turn, so that no shape starves.

    A refused pod takes nothing: the other shapes can use its share in the same round. Planning
    again with the resulting orders gives the same orders.
    """
    keeping = sorted(
        (draft for draft in drafts if draft.kept or draft.prompt),
        key=lambda draft: largest_first(draft.shape),
    )
    if not keeping:
        return
    pool, spent = capacity.pools[name], capacity.gpu_hours_spent.get(name, 0.0)
    left = min(limits.max_gpus_per_pool, limits.gpus_within_budget(name, spent))
    space = PoolRoom(pool, (node for node in capacity.nodes if node.pool == name))
    # Pending pods come before headroom.
    pending = [Lot(draft.shape, member.pending) for draft in drafts for member in draft.members]
    without = {name: put.left for name, put in pack(pending, space, grow=False).items()}
    shapes = {draft.key: draft.shape for draft in drafts}
    pack([Lot(shapes[name], left) for name, left in without.items()], space)
    for draft in keeping:
        waiting = sum(member.pending for member in draft.members)
        _hasten(draft, min(waiting, without[draft.key]))
    asking = [draft for draft in keeping if draft.replicas]
    while asking:
        served = []
        for draft in asking:
            if draft.size > left:
                draft.cut(draft.given, *_unpaid_reason(limits, name, spent))
                continue
            put = space.put(draft.shape, 1)
            # The size of a pool that never had a node is unknown.
            if put.left and pool.example is not None:
                draft.cut(draft.given, *_full_reason(pool))
                continue
            left -= draft.size
            draft.give(put)
            if draft.given < draft.replicas:
                served.append(draft)
        asking = served
    _keep([draft for draft in keeping if draft.kept > draft.replicas], left, space)


def _hasten(draft: _OrderDraft, pending: int) -> None:
    """Order one pod of headroom if that gives enough pending pods a node sooner.

    The Cluster Autoscaler lets a pending GPU pod wait for 30 s before it orders a node, but orders
    at once for all if headroom does not fit either.

    Args:
        pending: pods of the shape without a node that is ready or boots.
    """
    if draft.replicas or not 0 < draft.prompt <= pending:
        return
    draft.replicas = 1
    draft.kept = max(draft.kept, 1)
    text = f"{count_pods(pending)} without a node: with headroom, the autoscaler orders at once"
    draft.reasons.append(Reason("prompt", text))


def _keep(drafts: Sequence[_OrderDraft], left: float, space: PoolRoom) -> None:
    """Raise orders by what free nodes that exist can take, one pod per shape in turn.

    Args:
        left: GPUs that the limits of the pool allow.
    """
    keeping = list(drafts)
    while keeping:
        served = []
        for draft in keeping:
            put = space.put(draft.shape, 1, grow=False) if draft.size <= left else NOWHERE
            if not put.ready + put.later:
                continue
            left -= draft.size
            draft.give(put)
            draft.added += 1
            draft.replicas += 1
            if draft.replicas < draft.kept:
                served.append(draft)
        keeping = served
    for draft in drafts:
        if draft.added:
            text = f"free nodes are kept for {count_pods(draft.added)} more"
            draft.reasons.append(Reason("free", text))


def _unpaid_reason(limits: Limits, name: str, spent: float) -> Reason:
    """Return what limits the GPUs of headroom in a pool: its limit, or the tighter budget."""
    paid = limits.gpus_within_budget(name, spent)
    if paid >= limits.max_gpus_per_pool:
        most = limits.max_gpus_per_pool
        return Reason("max_gpus", f"limits.max_gpus_per_pool allows {count_gpus(most)} of headroom")
    if limits.cost_per_day is not None and limits.price(name) is None:
        return Reason("no_price", "a budget in money needs the pool's price of a GPU-hour")
    return Reason(
        "budget", f"the budget pays for {count_gpus(paid)}: {spent:.1f} GPU-hours are used"
    )


def _full_reason(pool: Pool) -> Reason:
    within = "" if pool.high is None else f" within its maximum of {pool.high} nodes"
    return Reason("pool_full", f"pool {pool.name} has no room for more{within}")
