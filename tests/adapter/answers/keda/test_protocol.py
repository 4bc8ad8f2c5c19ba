"""The generated modules are what the protocol file says, and the file what KEDA says."""

from __future__ import annotations

from pathlib import Path

import grpc_tools
import pytest
from grpc_tools import protoc

import adapter.answers.keda
from adapter.answers.keda import externalscaler_pb2 as messages

ROOT = Path(adapter.answers.keda.__file__).parents[3]
PROTO = "adapter/answers/keda/externalscaler.proto"


@pytest.mark.parametrize("name", ["externalscaler_pb2.py", "externalscaler_pb2.pyi"])
def test_generated_modules_are_those_of_the_protocol_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    include = Path(grpc_tools.__file__).parent / "_proto"
    arguments = ["-I.", f"-I{include}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    assert protoc.main(["protoc", *arguments, PROTO]) == 0
    made = (tmp_path / PROTO).with_name(name).read_text()
    assert made == (ROOT / PROTO).with_name(name).read_text(), "run `make proto`"


METHODS = {
    "IsActive": ("ScaledObjectRef", "IsActiveResponse", False),
    "StreamIsActive": ("ScaledObjectRef", "IsActiveResponse", True),
    "GetMetricSpec": ("ScaledObjectRef", "GetMetricSpecResponse", False),
    "GetMetrics": ("GetMetricsRequest", "GetMetricsResponse", False),
    "StreamMetricSpec": ("ScaledObjectRef", "GetMetricSpecResponse", True),
}


def test_methods_are_those_of_kedas_protocol() -> None:
    service = messages.DESCRIPTOR.services_by_name["ExternalScaler"]
    assert service.full_name == "externalscaler.ExternalScaler"
    assert {
        method.name: (method.input_type.name, method.output_type.name, method.server_streaming)
        for method in service.methods
    } == METHODS


WIRE = {
    "ScaledObjectRef": (
        messages.ScaledObjectRef(name="n", namespace="s", scalerMetadata={"k": "v"}),
        b"\x0a\x01n\x12\x01s\x1a\x06\x0a\x01k\x12\x01v",
    ),
    "IsActiveResponse": (messages.IsActiveResponse(result=True), b"\x08\x01"),
    "GetMetricSpecResponse": (
        messages.GetMetricSpecResponse(
            metricSpecs=[messages.MetricSpec(metricName="m", targetSize=7, targetSizeFloat=0.5)]
        ),
        b"\x0a\x0e\x0a\x01m\x10\x07\x19\x00\x00\x00\x00\x00\x00\xe0\x3f",
    ),
    "GetMetricsRequest": (
        messages.GetMetricsRequest(
            scaledObjectRef=messages.ScaledObjectRef(name="n"), metricName="m"
        ),
        b"\x0a\x03\x0a\x01n\x12\x01m",
    ),
    "GetMetricsResponse": (
        messages.GetMetricsResponse(
            metricValues=[messages.MetricValue(metricName="m", metricValue=7, metricValueFloat=0.5)]
        ),
        b"\x0a\x0e\x0a\x01m\x10\x07\x19\x00\x00\x00\x00\x00\x00\xe0\x3f",
    ),
}


@pytest.mark.parametrize("name", WIRE)
def test_messages_have_kedas_field_numbers_and_types(name: str) -> None:
    message, expected = WIRE[name]
    assert message.SerializeToString() == expected
