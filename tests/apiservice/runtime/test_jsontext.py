"""JSON from outside that no reader can keep: each reader has its own error for it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapter.answers.rules import series, vector
from adapter.pipeline.sources.errors import SourceError
from apiservice.delegate.conversion import metric_list, status_message
from apiservice.delegate.failure import DelegateFailure
from apiservice.delegate.listing import read_listing
from apiservice.runtime.steps import at_once

GROUP = "custom.metrics.k8s.io"
DEEP = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
BODIES = {
    "deep objects": DEEP,
    "deep lists": b"[" * 20_000 + b"]" * 20_000,
    "deep below a field": b'{"kind":"List","items":[' + DEEP + b"]}",
    "deep below data": b'{"status":"success","data":{"result":[' + DEEP + b"]}}",
    "no UTF-8": b'{"kind":"\xff"}',
    "cut off": b'{"kind":',
    "empty": b"",
}
READERS: dict[str, tuple[Callable[[bytes], object], type[Exception]]] = {
    "a delegate's values": (
        lambda body: metric_list(body, GROUP, "v1beta1", "v1beta2"),
        DelegateFailure,
    ),
    "a delegate's discovery": (
        lambda body: read_listing(GROUP, {"v1beta1": body}, 0.0, None),
        DelegateFailure,
    ),
    "a delegate's Status": (lambda body: status_message(500, body), DelegateFailure),
    "a store's vector": (lambda body: at_once(vector.decode(body, 0.0)), SourceError),
    "a store's series": (lambda body: at_once(series.decode(body)), SourceError),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("read", "error"), READERS.values(), ids=READERS)
def test_what_cannot_be_read_is_the_readers_own_error(
    read: Callable[[bytes], object], error: type[Exception], body: bytes
) -> None:
    with pytest.raises(error):
        read(body)
