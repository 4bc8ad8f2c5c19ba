"""What one manifest contains costs only that manifest: no check fails, and the findings about
other objects stay."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from adapter.tools.doctor.manifests import read_files
from adapter.tools.doctor.model import DoctorCheck
from adapter.tools.doctor.results import Result
from adapter.tools.doctor.runner import run
from tests.adapter.hpa.validity import JUDGED
from tests.adapter.tools.doctor.seen.cases import BAD, GOOD
from tests.adapter.tools.doctor.seen.objects import Manifest, average, hpa, pods, resource
from tests.examples import bounded

STATUS: Final = {
    "currentReplicas": 2,
    "conditions": [{"type": "ScalingActive", "status": "False", "reason": "ScalingDisabled"}],
    "currentMetrics": [
        {"type": "Pods", "pods": {"metric": {"name": "a"}, "current": {"averageValue": "1"}}}
    ],
}
BEHAVIOR: Final = {
    "scaleUp": {"selectPolicy": "Disabled"},
    "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]},
}
HELD: Final = hpa(pods("gpu_utilization", average("70"), app="a"), behavior=BEHAVIOR)
MANIFESTS: Final[list[Manifest]] = [
    HELD | {"status": STATUS},
    *(manifest for case in (GOOD | BAD).values() for manifest in case.manifests),
    *(case.manifest for case in JUDGED.values()),
]
WITNESS: Final = [
    hpa(pods("gpu_utilisation", average("150")), name="witness", target="witness"),
    hpa(resource("gpu"), name="witness-2", target="witness-2", maxReplicas="many"),
]
"""Objects with findings of several checks."""
ODD: Final = st.sampled_from(
    [
        *(None, True, 0, -1, 2.5, 1 << 70, "", "a", "a/b", "80%", "{{ .Values.a }}"),
        *("sum(a) * 1e999999999", "sum(a) / (count(a) * 1e-9999999)", "a * 9e999999"),
        "quantile(0e999999999, a)",
    ]
) | st.sampled_from([[], ["a"], [[]], [None], {}, {"a": "b"}, {"": [1]}, {"name": {}}])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value within another one."""
    rows: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        rows = value.items()
    elif isinstance(value, list):
        rows = enumerate(value)
    for key, part in rows:
        yield (*path, key)
        yield from places(part, (*path, key))


@st.composite
def mutated(draw: st.DrawFn) -> Manifest:
    """A manifest of which one or two values are odd, or missing."""
    manifest = deepcopy(draw(st.sampled_from(MANIFESTS)))
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from(list(places(manifest))))
        parent = manifest
        for key in path:
            parent = parent[key]
        if draw(st.integers(0, 3)):
            parent[last] = deepcopy(draw(ODD))
        else:
            del parent[last]
        if not any(places(manifest)):
            break
    return manifest


def check_files(*manifests: Any) -> list[Result]:
    """What the checks find in some manifests, each in a file of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, manifest in enumerate(manifests):
            (folder / f"{number}.json").write_text(json.dumps(manifest))
        return run(read_files([folder]).facts())


def about_witness(results: list[Result]) -> set[tuple[str, str]]:
    """Id and message of the findings about the witnesses."""
    return {
        (result.check.id, finding.message)
        for result in results
        for finding in result.findings
        if "/witness" in finding.subject
    }


EXPECTED: Final = about_witness(check_files(*WITNESS))


def failed(results: list[Result]) -> list[tuple[DoctorCheck, str]]:
    """The checks that ended with an error of their own."""
    return [(row.check, row.why) for row in results if "the check itself failed" in row.why]


def test_the_witnesses_have_findings() -> None:
    assert {identity for identity, _ in EXPECTED} == {"GMA401", "GMA409", "GMA454"}


@bounded(120)
@given(mutated())
def test_an_odd_manifest_costs_only_itself(manifest: Manifest) -> None:
    results = check_files(*WITNESS, manifest)
    assert failed(results) == []
    assert about_witness(results) == EXPECTED


def test_every_value_of_an_hpa_may_be_odd() -> None:
    """Systematically, for the kind that has most checks."""
    for path in places(MANIFESTS[0]):
        for odd in (3, "a", ["a"], {"a": 1}, [3]):
            manifest: Any = deepcopy(MANIFESTS[0])
            parent = manifest
            for key in path[:-1]:
                parent = parent[key]
            parent[path[-1]] = odd
            results = check_files(*WITNESS, manifest)
            assert failed(results) == [], (path, odd)
            assert about_witness(results) == EXPECTED, (path, odd)
