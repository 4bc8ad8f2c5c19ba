"""One HPA's target among the facts: the workloads below it, its pods, and words about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapter.answers.causes.cause import Cause, CauseCode
from adapter.answers.causes.facts import ClusterFacts, ScalerFacts
from adapter.figures import count
from adapter.pipeline.cluster.changes import ChangedObject, ObjectChange
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.pipeline.cluster.managers import Manager
from adapter.pipeline.cluster.podobjects import SeenPod
from adapter.pipeline.cluster.workloadobjects import SeenWorkload
from apiservice.labels.selector import Selector

_LONGEST: Final = 300


@dataclass(frozen=True)
class Target:
    """What an HPA scales, as the rules look at it."""

    facts: ClusterFacts
    hpa: ScalerFacts
    workload: SeenWorkload | None
    """None if the target's object was not read."""
    inner: Sequence[SeenWorkload]
    """The workloads that it owns: ReplicaSets, StatefulSets of a LeaderWorkerSet."""
    pods: Sequence[SeenPod]
    """Its unfinished pods, through any chain of owners."""
    failed: Sequence[SeenPod] = ()
    """Its pods that have failed and still exist."""
    manager: Manager | None = None
    """What writes the target again, if its object was not read."""

    @property
    def subject(self) -> str:
        """``Deployment chat/llm``."""
        return str(self.hpa.of)

    @property
    def changed(self) -> ChangedObject:
        """The target as an object to change."""
        key, workload = self.hpa.of, self.workload
        manager = workload.metadata.manager if workload is not None else self.manager
        group = self.hpa.api_version.rpartition("/")[0]
        return ChangedObject(key.kind, key.namespace, key.name, manager, group=group)

    def cause(
        self,
        code: CauseCode,
        text: str,
        fix: str,
        command: str | ObjectChange = "",
        pods: Sequence[SeenPod] = (),
        since: float | None = None,
        subject: str = "",
    ) -> Cause:
        """Return a cause about the target, or about another subject.

        Args:
            command: that shows more or changes another object; or a change of the target, which is
                made where it lasts.
        """
        names = tuple(sorted(pod.pod.ref.name for pod in pods))
        if isinstance(command, ObjectChange):
            if self.hpa.kind == "StatefulSet" and names:
                fix += f", then delete {names[0]}: a StatefulSet does not replace a pod that is "
                fix += "not ready"
            lasts = make_lasting(self.changed, command._replace(words=fix))
            fix, command = lasts.advice(fix), lasts.command
        return Cause(code, subject or self.subject, text, fix, command, names, since)

    def some(self, pods: Sequence[SeenPod]) -> str:
        """Return ``2 pods (llm-a, llm-b)``."""
        names = sorted(pod.pod.ref.name for pod in pods)
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return f"{count(len(names), 'pod')} ({shown})"


def shorten(text: str) -> str:
    """Return a message of another program as one line of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def target_of(facts: ClusterFacts, hpa: ScalerFacts, selector: Selector | None = None) -> Target:
    """Return the target of an HPA.

    Args:
        selector: of its pods. They count as the target's if no chain of owners leads to it: a kind
            between them was not read.
    """
    inner, pods = facts.below(hpa.of)
    if not pods and selector is not None:
        pods = [
            pod
            for pod in facts.select_pods(hpa.namespace, selector)
            if (top := facts.top(pod)) is None or facts.workload(top) is None
        ]
    failed = facts.failed_pods(hpa.of, inner)
    return Target(facts, hpa, facts.workload(hpa.of), inner, pods, failed)
