"""JSON is sent to every client that takes it in its plain shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiservice.wire import accept
from apiservice.wire.accept import accept_header, accepts_json

CASES = {
    "none": ("", True),
    "HPA controller": ("application/vnd.kubernetes.protobuf, */*", True),
    "kubectl get --raw": ("application/json, */*", True),
    "kubectl get": (
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,"
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
        ),
        True,
    ),
    "aggregated discovery": (
        (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
        ),
        False,
    ),
    "table alone": ("application/json;as=Table;v=v1;g=meta.k8s.io", False),
    "protobuf alone": ("application/vnd.kubernetes.protobuf", False),
    "any application": ("application/*", True),
    "other subtype": ("text/html", False),
    "any text": ("text/*", False),
    "case": ("Application/JSON", True),
    "unknown parameter": ("application/json;charset=utf-8", True),
    "quality": ("text/html, application/json;q=0.1", True),
    "quality that does not parse": ("application/json;q=much", True),
    "refused": ("application/json;q=0", False),
    "refused, written out": ("application/json; q=0.000, text/html", False),
    "spaces": (" application/json ; pretty=1 ", True),
    "empty clauses": (",,", True),
    "rubbish": ("rubbish", False),
}


@pytest.mark.parametrize(("accept", "expected"), CASES.values(), ids=CASES)
def test_an_accept_header_is_satisfied_or_not(accept: str, expected: bool) -> None:
    assert accepts_json(accept.encode()) is expected


def test_several_accept_lines_are_one_list() -> None:
    headers = [(b"accept", b"text/html"), (b"host", b"a"), (b"accept", b"application/json")]
    assert accept_header(headers) == b"text/html,application/json"


@given(st.binary(max_size=60))
def test_any_header_is_judged(accept: bytes) -> None:
    assert accepts_json(accept) in (True, False)


def test_few_headers_are_kept() -> None:
    for number in range(1000):
        header = b"application/json;q=0.%d" % (number + 1)
        assert accepts_json(header)
        assert len(accept.accepted_forms(header)) == 1
    assert accept._cached.cache_info().currsize == 256
    assert accept._cached_plain.cache_info().currsize == 256
    before = accept._cached.cache_info()
    accept.accepted_forms(b"application/json," * 40)
    assert accept._cached.cache_info() == before
