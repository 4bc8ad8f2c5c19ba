"""A tenant's latencies: histograms of hundreds of servers on its pages, and who asks for them."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.attack.siege import Siege, tenant_pod
from tests.attack.test_pages import AGE_LIMIT, SECONDS, pages

METRIC = "inference_time_to_first_token_seconds_p90"
PATH = f"/apis/custom.metrics.k8s.io/v1beta2/namespaces/tenant/pods/%2A/{METRIC}"
FORMS = ("metricLabelSelector=q%21%3D{}", "metricLabelSelector=aggregate%3Dmean,q%21%3D{}")
"""Each with a number: no answer is ready."""
ASKERS = 4


@contextmanager
def asking(attacked: Siege) -> Iterator[Counter[int]]:
    """Ask for the tenant's latencies, again and again, while the block runs."""
    statuses, over, numbers = Counter[int](), threading.Event(), itertools.count()

    def ask(form: str) -> None:
        with attacked.serving.client() as client:
            client.timeout = 120
            while not over.is_set():
                answer = client.get(f"{PATH}?{form.format(next(numbers))}")
                statuses[answer.status_code] += 1

    threads = [
        threading.Thread(target=ask, args=(FORMS[n % len(FORMS)],), daemon=True)
        for n in range(ASKERS)
    ]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join(120)


@pytest.mark.parametrize("kind", ["many-buckets", "hostile-bounds"])
def test_latencies_of_a_tenant_take_no_value_of_others_and_do_not_fill_the_memory(
    siege: Callable[..., Siege], kind: str
) -> None:
    with pages(kind, 24) as ports:
        pods = [tenant_pod(f"p{port}", port) for port in ports]
        attacked = siege(*pods, values={"age_limit": AGE_LIMIT, "window": 5})
        with asking(attacked) as statuses:
            attacked.observe(SECONDS)
        attacked.verdict()
    assert statuses.keys() == {200}
