"""Tenants' requests through the real kube-apiserver, while another namespace is read."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import pytest

from tests.attack.frontdoor import CONTROLLER, READER, TENANT, FrontDoor
from tests.attack.siege import Siege
from tests.attack.test_queues import API as RULED
from tests.attack.test_queues import ASKED, RULE_CLIENTS, Store, answers, crowd, rules, waiting
from tests.e2e.cluster import Cluster, RefusedError
from tests.e2e.process import wait_until
from tests.needs import ETCD, KUBE_APISERVER, needed_by_fixture

API = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/%2A/DCGM_FI_DEV_GPU_UTIL"
OTHERS, OURS = 1_000, 600
READERS = 40
"""Connections at once. Priority and Fairness itself gives one flow fewer seats."""
ROUNDS = 60
RATIO = 4
ALLOWED = {"allow_users": [CONTROLLER, READER]}


@pytest.fixture(scope="module")
@needed_by_fixture(KUBE_APISERVER, ETCD)
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontDoor]:
    made = FrontDoor(tmp_path_factory.mktemp("door"))
    try:
        made.open()
        yield made
    finally:
        made.close()


def gpu_pods(namespace: str, count: int) -> list[dict[str, Any]]:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{n}", "namespace": namespace, "uid": f"{namespace}-{n}"},
            "spec": {"nodeName": "n1", "containers": [container]},
        }
        for n in range(count)
    ]


def page(**sizes: int) -> bytes:
    lines = [
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{namespace}{n}",UUID="GPU-{namespace}-{n}",container="c",'
        f'namespace="{namespace}",pod="p{n}"}} 50\n'
        for namespace, count in sizes.items()
        for n in range(count)
    ]
    return "".join(lines).encode()


def read(client: Cluster) -> int:
    """The pods of the other namespace that have a value; 0 before the door knows the process."""
    try:
        return len(client.get(API.format("others"))["items"])
    except RefusedError:
        return 0


def times(client: Cluster, statuses: Counter[int]) -> list[float]:
    """Read the other namespace as HPAs with different selectors do, so that no answer is ready;
    returns the seconds of each answer."""
    found = []
    for number in range(ROUNDS):
        started = time.monotonic()
        selector = quote(f"app!={statuses.total()}-{number}")
        answer = client.client.get(f"{API.format('others')}?labelSelector={selector}")
        found.append(time.monotonic() - started)
        statuses[answer.status_code] += 1
        assert answer.status_code != 200 or len(answer.json()["items"]) == OTHERS
        time.sleep(0.05)
    return found


def read_slowly(door: FrontDoor, number: int, over: threading.Event, seen: Counter[str]) -> None:
    """Ask for large answers again and again, each of which repeats a huge selector, and read a
    kilobyte at a time."""
    values = ",".join(f"{number:x}-{n}-{'x' * 16}" for n in range(500))
    path = f"{API.format(TENANT)}?metricLabelSelector={quote(f'k notin ({values})')}"
    while not over.is_set():
        with suppress(OSError), door.request(path) as line:
            first = line.recv(1024)
            seen[first[9:12].decode("latin-1")] += 1
            while first and not over.wait(0.2):
                first = line.recv(1024)


def test_slow_readers_of_one_namespace_do_not_slow_the_hpa_of_another(
    siege: Callable[..., Siege], door: FrontDoor, tmp_path: Path
) -> None:
    """It took 0.2 s alone, and 29 to 58 s beside them, when places were held while sending."""
    attacked = siege(
        *gpu_pods("others", OTHERS),
        *gpu_pods(TENANT, OURS),
        front_proxies=door.plane.front_proxy.pem,
        authorization=ALLOWED,
    )
    attacked.lab.exporter.page += page(others=OTHERS, tenant=OURS)
    door.serves(attacked)
    client, statuses, seen = door.controller(), Counter[int](), Counter[str]()
    wait_until(lambda: read(client) == OTHERS, "every pod has a value")
    alone = times(client, statuses)
    over = threading.Event()
    threads = [
        threading.Thread(target=read_slowly, args=(door, number, over, seen), daemon=True)
        for number in range(READERS)
    ]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + 60
        while seen.total() < READERS:
            assert time.monotonic() < deadline, f"the attack never began: {seen}"
            time.sleep(0.1)
        beside = times(client, statuses)
    finally:
        over.set()
        for thread in threads:
            thread.join(30)
        client.close()
    figures = (median(alone), median(beside), max(alone), max(beside))
    print(*(f"{1000 * seconds:.0f} ms" for seconds in figures), dict(seen))
    assert seen["200"], "no answer of the tenant was large"
    assert statuses == {200: 2 * ROUNDS}
    assert median(beside) < RATIO * median(alone)
    # One answer may be slow on a loaded machine. Without shares it took hundreds of times as long.
    assert max(beside) < RATIO * max(*alone, RATIO * median(alone))
    attacked.verdict()


def test_rule_queries_of_a_tenant_do_not_refuse_those_of_the_hpa_controller(
    siege: Callable[..., Siege], door: FrontDoor, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(rules())
    store = Store()
    try:
        attacked = siege(
            *gpu_pods(TENANT, 1),
            front_proxies=door.plane.front_proxy.pem,
            authorization=ALLOWED,
            rules={"file": str(tmp_path / "rules.yaml")},
            source={"prometheus": {"url": store.url}},
        )
        door.serves(attacked)
        calm = RULED.format("ns", "calm_metric")
        tenants = [door.tenant() for _ in range(2)]
        turns = itertools.cycle(tenants)
        controller = door.controller()
        wait_until(lambda: controller.client.get(calm).status_code == 200, "the metric is served")
        loud = [RULED.format(TENANT, "loud_metric")] * RULE_CLIENTS
        with crowd(lambda: nullcontext(next(turns).client), loud) as statuses:
            waiting(attacked, "gma_rule_queries_waiting")
            paths = [f"{calm}?metricLabelSelector=q%3D{number}" for number in range(ASKED)]
            beside = answers(controller.client, [calm, *paths])
        for cluster in (*tenants, controller):
            cluster.close()
        attacked.verdict()
    finally:
        store.close()
    assert beside == {(calm, 200): ASKED + 1}
    assert statuses[200] > 0, "the tenant has its share"
