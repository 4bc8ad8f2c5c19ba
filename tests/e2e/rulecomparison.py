"""Ask prometheus-adapter and ours the same, and say how two answers differ."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx

from adapter.pipeline.catalog import Catalog
from tests.e2e.rulestage import OBJECTS, SPACES, Both

CUSTOM = "/apis/custom.metrics.k8s.io/v1beta1"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
RESOURCE = "/apis/metrics.k8s.io/v1beta1"
_ROOT = ("namespaces", "nodes", "persistentvolumes")
_SELECTORS = (
    *("method%3DGET", "method", "!method", "method+in+(GET,POST)", "method+notin+(GET)"),
    *("method+in+(GET)", "method!%3DGET", "queue%3Da", "size%3E3", "a/b%3Dc"),
)
_EXTERNAL_SELECTORS = (
    *("topic%3Dorders", "topic", "!topic", "topic+in+(orders,mails)", "topic+notin+(orders)"),
    *("topic+in+(orders)", "topic!%3Dorders", "size%3E3", "namespace%3Drules-b"),
)
_ATTEMPTS = 10
_PAUSE = 0.33
"""Seconds between attempts: a counter rises with each scrape, and ours may be an interval older."""
_TOLERANCE = 0.03
"""Rates of counters differ a little between two times of a request."""
_SUFFIXES = {
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2.0**10,
    "Mi": 2.0**20,
    "Gi": 2.0**30,
    "Ti": 2.0**40,
}


class Item(NamedTuple):
    """A value of an answer."""

    about: str
    value: float


class Answer(NamedTuple):
    """A status, and the items or the message."""

    code: int
    items: tuple[Item, ...] = ()
    message: str = ""


class Difference(NamedTuple):
    """Two answers that differ."""

    path: str
    theirs: Answer
    ours: Answer


def discovered(client: httpx.Client, group: str) -> dict[str, bool]:
    """Return the rows of a discovery list: name -> whether it is namespaced."""
    answer = client.get(group)
    if answer.status_code != 200:
        return {}
    return {row["name"]: row["namespaced"] for row in answer.json()["resources"]}


def built_in() -> frozenset[str]:
    """Return the names of the catalogue's metrics, which ours lists too."""
    names = Catalog().metrics
    return frozenset((*names, *map(str.lower, names)))


def custom_paths(rows: dict[str, bool]) -> Iterator[str]:
    """Yield the requests for every row of custom metrics that an HPA can make, and more."""
    asked: set[str] = set()
    for row in sorted(rows):
        resource, _, metric = row.partition("/")
        for name in ("%2A", *OBJECTS.get(resource, ("absent",))):
            yield from _about(resource, name, metric)
        if resource in _ROOT:
            continue
        several = f"{CUSTOM}/namespaces/{SPACES[0]}/{resource}/%2A/{metric}"
        yield f"{several}?labelSelector=app%3Dweb"
        yield f"{several}?labelSelector=app%3Dnone"
        for space in ("default", "nowhere"):
            yield f"{CUSTOM}/namespaces/{space}/{resource}/%2A/{metric}"
        if resource not in asked or metric.startswith("http_requests"):
            asked.add(resource)
            for selector in _SELECTORS:
                yield f"{several}?metricLabelSelector={selector}"


def _about(resource: str, name: str, metric: str) -> Iterator[str]:
    if resource == "namespaces":
        yield f"{CUSTOM}/namespaces/{name}/metrics/{metric}"
    elif resource in _ROOT:
        yield f"{CUSTOM}/{resource}/{name}/{metric}"
    else:
        for space in SPACES:
            yield f"{CUSTOM}/namespaces/{space}/{resource}/{name}/{metric}"


def external_paths(rows: dict[str, bool]) -> Iterator[str]:
    """Yield requests for every external metric."""
    for name in sorted(rows):
        for space in (*SPACES, "default"):
            yield f"{EXTERNAL}/namespaces/{space}/{name}"
            yield f"{EXTERNAL}/namespaces/{space}/{name.lower()}"
        for selector in _EXTERNAL_SELECTORS:
            yield f"{EXTERNAL}/namespaces/{SPACES[0]}/{name}?labelSelector={selector}"


def resource_paths() -> Iterator[str]:
    """Yield requests for cpu and memory of pods and nodes."""
    for pods in ("pods", *(f"namespaces/{space}/pods" for space in (*SPACES, "nowhere"))):
        yield f"{RESOURCE}/{pods}"
        for selector in ("app%3Dweb", "app%3Dnone", "app+notin+(web)", "!app"):
            yield f"{RESOURCE}/{pods}?labelSelector={selector}"
    yield f"{RESOURCE}/pods?fieldSelector=metadata.namespace%3D{SPACES[1]}"
    for space in SPACES:
        for name in OBJECTS["pods"]:
            yield f"{RESOURCE}/namespaces/{space}/pods/{name}"
    yield f"{RESOURCE}/nodes"
    yield f"{RESOURCE}/nodes?labelSelector=zone"
    for name in OBJECTS["nodes"]:
        yield f"{RESOURCE}/nodes/{name}"


def differences(both: Both, paths: list[str]) -> list[Difference]:
    """Ask both for every path, and return the answers that differ at every attempt."""

    def compare(path: str) -> Difference | None:
        for _ in range(_ATTEMPTS):
            theirs, ours = _answer(both.theirs, path), _answer(both.ours, path)
            if _equal(theirs, ours):
                return None
            if explanation(Difference(path, theirs, ours)):
                break
            time.sleep(_PAUSE)
        return Difference(path, theirs, ours)

    with ThreadPoolExecutor(6) as pool:
        return [difference for difference in pool.map(compare, dict.fromkeys(paths)) if difference]


def explanation(found: Difference) -> str:
    """Return the row of docs/rules.md that explains a difference; empty if there is none."""
    path, theirs, ours = found
    if theirs.code == 200:
        return _left_out(theirs, ours)
    if theirs.code == 500 and ours.code == 200:
        return "selector" if "is not a valid label selector operator" in theirs.message else ""
    if theirs.code == 500:
        return "errors" if ours.code in (400, 404) or "scalar" in ours.message else ""
    if ours.code == 400:
        return "errors" if "Prometheus" in ours.message else ""
    lower = path.startswith(EXTERNAL) and path.lower() == path
    return "lower case" if lower and ours.code == 200 else ""


def _left_out(theirs: Answer, ours: Answer) -> str:
    """Return whether ours only lacks what theirs invents: 0 or the least number, for NaN."""
    if ours.code == 404:
        return "NaN" if "is left out (" in ours.message else ""
    shown, kept = dict(theirs.items), dict(ours.items)
    same = all(about in shown and _close(shown[about], value) for about, value in kept.items())
    gone = [value for about, value in shown.items() if about not in kept]
    invented = all(value == 0 or value < -9e15 for value in gone)
    return "NaN" if same and invented and ours.code == 200 else ""


def summary(found: list[Difference]) -> Counter[str]:
    """Count the differences by their explanation."""
    return Counter(explanation(difference) for difference in found)


def _answer(client: httpx.Client, path: str) -> Answer:
    answer = client.get(path)
    if answer.status_code != 200:
        try:
            message = str(answer.json().get("message"))
        except ValueError:
            message = answer.text
        return Answer(answer.status_code, (), message)
    body = answer.json()
    if path.startswith(RESOURCE):
        return Answer(200, tuple(sorted(_usages(body))))
    return Answer(200, tuple(sorted(map(_item, body["items"]))))


def _usages(body: dict[str, Any]) -> Iterator[Item]:
    """Yield the quantities of a list, or of one object."""
    for item in body.get("items", [body]):
        meta = item["metadata"]
        known = {key: meta.get(key) for key in ("namespace", "name", "labels")}
        for container in item.get("containers", [item]):
            for resource, quantity in container["usage"].items():
                about = {**known, "container": container.get("name"), "resource": resource}
                about["window"] = item["window"]
                yield Item(json.dumps(about, sort_keys=True), _number(quantity))


def _item(item: dict[str, Any]) -> Item:
    about = dict(item.get("describedObject") or {})
    # prometheus-adapter writes /v1 for objects of the core group.
    about["apiVersion"] = about.get("apiVersion", "").lstrip("/")
    kept = {
        "about": about,
        "metric": item["metricName"],
        "labels": item.get("metricLabels") or {},
        "selector": item.get("selector"),
    }
    return Item(json.dumps(kept, sort_keys=True), _number(item["value"]))


def _number(text: str) -> float:
    for suffix in (text[-2:], text[-1:]):
        if suffix in _SUFFIXES:
            return float(text.removesuffix(suffix)) * _SUFFIXES[suffix]
    return float(text)


def _equal(theirs: Answer, ours: Answer) -> bool:
    if theirs.code != ours.code:
        return False
    if theirs.code != 200:
        return True
    return [item.about for item in theirs.items] == [item.about for item in ours.items] and all(
        _close(mine.value, other.value)
        for mine, other in zip(theirs.items, ours.items, strict=True)
    )


def _close(first: float, second: float) -> bool:
    # prometheus-adapter cuts thousandths off; ours rounds.
    return abs(first - second) <= _TOLERANCE * abs(first) + 0.0011
