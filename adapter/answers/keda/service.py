"""The gRPC service: decodes messages, asks the scaler, and encodes its answers.

Users see the status codes in KEDA's event KEDAScalerFailed. INVALID_ARGUMENT: the author of the
manifest must fix something. FAILED_PRECONDITION: readings are missing, so that KEDA's ``fallback``
applies and no proxy retries. UNAVAILABLE: another replica may have the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final, NoReturn, TypeAlias, TypeVar

import grpc
import structlog
from google.protobuf.message import DecodeError, Message

from adapter.answers.keda import externalscaler_pb2 as messages
from adapter.answers.keda.demand import Number, number
from adapter.answers.keda.desk import Desk
from adapter.answers.keda.errors import (
    BadTrigger,
    NoReadings,
    NotReady,
    ScalerError,
    TooManyStreams,
)
from adapter.answers.keda.failures import Failures
from adapter.answers.keda.pulse import Pulse
from adapter.answers.keda.scaler import Scaler, Spec
from adapter.answers.keda.selfmetrics import KedaStats
from adapter.answers.keda.trigger import Ref
from adapter.answers.keda.triggers import TriggerAnswer
from apiservice.runtime.steps import Steps

log = structlog.get_logger(__name__)

NAME: Final = "externalscaler.ExternalScaler"

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
M = TypeVar("M", bound=Message)
Send = Callable[[Message], Awaitable[None]]

_CODES: Final = {
    BadTrigger: grpc.StatusCode.INVALID_ARGUMENT,
    NoReadings: grpc.StatusCode.FAILED_PRECONDITION,
    NotReady: grpc.StatusCode.UNAVAILABLE,
    TooManyStreams: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_LONGEST: Final = 1000
"""Characters of a status' text: it is sent in a header."""


class ScalerService:
    """KEDA's ``ExternalScaler``.

    Args:
        scaler: answers the calls.
        pulse: wakes streams to check again and to end.
        stream_age: seconds after which a stream ends normally; KEDA opens another.
        max_streams: the number of streams that may be open at once.
        stats: counts calls.
        clock: epoch seconds.
    """

    def __init__(
        self,
        scaler: Scaler,
        pulse: Pulse,
        stream_age: float,
        max_streams: int,
        stats: KedaStats,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._scaler = scaler
        self._pulse = pulse
        self._stream_age = stream_age
        self._max_streams = max_streams
        self._desk = Desk()
        self._stats = stats
        self._clock = clock
        self._failures = Failures()

    def handler(self) -> grpc.GenericRpcHandler:
        """Return the handler for the server."""
        return grpc.method_handlers_generic_handler(
            NAME,
            {
                "GetMetricSpec": self._unary("GetMetricSpec", messages.ScaledObjectRef, self._spec),
                "GetMetrics": self._unary(
                    "GetMetrics", messages.GetMetricsRequest, self._get_metrics
                ),
                "IsActive": self._unary("IsActive", messages.ScaledObjectRef, self._is_active),
                "StreamIsActive": self._stream("StreamIsActive", self._stream_is_active),
                "StreamMetricSpec": self._stream("StreamMetricSpec", self._stream_metric_spec),
            },
        )

    def _spec(self, request: messages.ScaledObjectRef) -> Steps[messages.GetMetricSpecResponse]:
        return (yield from self._specify(_ref(request)))

    def _specify(self, ref: Ref) -> Steps[messages.GetMetricSpecResponse]:
        yield from ()
        return _spec_response(self._scaler.spec(ref))

    def _get_metrics(self, request: messages.GetMetricsRequest) -> Steps[bytes]:
        ref = _ref(request.scaledObjectRef)
        answer = yield from self._answer(ref)
        name = request.metricName or answer.metric
        if name.lower() != answer.metric:
            raise BadTrigger(f"metric: the trigger's is {answer.metric}, and {name} was asked for")
        return _value(name, answer.number)

    def _is_active(self, request: messages.ScaledObjectRef) -> Steps[messages.IsActiveResponse]:
        answer = yield from self._answer(_ref(request))
        return messages.IsActiveResponse(result=answer.active)

    async def _stream_is_active(self, ref: Ref, deadline: float, send: Send) -> None:
        last: bool | None = None
        while True:
            active = await self._desk.answer(self._activity(ref), ref.namespace)
            if active is not None and active != last:
                last = active
                await send(messages.IsActiveResponse(result=active))
            if not await self._pulse.next(deadline):
                return

    async def _stream_metric_spec(self, ref: Ref, deadline: float, send: Send) -> None:
        await send(await self._desk.answer(self._specify(ref), ref.namespace))
        await self._pulse.end(deadline)

    def _activity(self, ref: Ref) -> Steps[bool | None]:
        """Return whether the trigger is active; None, which is not sent, if that is not known."""
        try:
            answer = yield from self._scaler.answer_trigger(ref, self._clock(), newest=True)
        except (NoReadings, NotReady):
            return None
        return answer.active

    def _answer(self, ref: Ref) -> Steps[TriggerAnswer]:
        """Get the answer, and log when a trigger starts or stops having none."""
        now = self._clock()
        try:
            answer = yield from self._scaler.answer_trigger(ref, now)
        except ScalerError as error:
            self._failures.begin(ref, str(error), now)
            raise
        self._failures.end(ref)
        return answer

    def _unary(
        self, method: str, message: type[M], answer: Callable[[M], Steps[Message | bytes]]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def call(request: bytes, context: Context) -> Message | bytes:
            started = perf_counter()
            try:
                parsed = _parse_message(message, request)
                response = await self._desk.answer(answer(parsed), _namespace(parsed))
            except Exception as error:
                await self._refuse(method, context, error)
            finally:
                self._stats.durations[method].observe(perf_counter() - started)
            self._stats.calls[method, "OK"] += 1
            return response

        # Without a deserializer: this service rejects what is not a message, and gRPC logs nothing.
        return grpc.unary_unary_rpc_method_handler(call, response_serializer=_bytes)

    def _stream(
        self, method: str, produce: Callable[[Ref, float, Send], Awaitable[None]]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def call(request: bytes, context: Context) -> None:
            deadline = asyncio.get_running_loop().time() + self._stream_age
            self._stats.streams[method] += 1
            try:
                if self._stats.streams.total() > self._max_streams:
                    raise TooManyStreams(
                        f"{self._max_streams} streams are open, which is the limit"
                    )
                ref = _ref(_parse_message(messages.ScaledObjectRef, request))
                del request  # a stream lasts long and does not need the bytes
                await produce(ref, deadline, context.write)
            except asyncio.CancelledError:
                self._stats.calls[method, grpc.StatusCode.CANCELLED.name] += 1
                raise
            except Exception as error:
                await self._refuse(method, context, error)
            finally:
                self._stats.streams[method] -= 1
            self._stats.calls[method, "OK"] += 1

        return grpc.unary_stream_rpc_method_handler(call, response_serializer=_bytes)

    async def _refuse(self, method: str, context: Context, error: Exception) -> NoReturn:
        if isinstance(error, ScalerError):
            code, text = _CODES[type(error)], str(error)
        else:
            log.error("call failed", method=method, exc_info=error)
            code, text = grpc.StatusCode.INTERNAL, f"internal error: {type(error).__name__}"
        self._stats.calls[method, code.name] += 1
        await context.abort(code, text[:_LONGEST])


def _parse_message(kind: type[M], request: bytes) -> M:
    try:
        return kind.FromString(request)
    except DecodeError:
        raise BadTrigger(
            f"the call contains no {kind.DESCRIPTOR.name}: {len(request)} bytes that are not of "
            f"externalscaler.proto"
        ) from None


def _namespace(message: Message) -> str:
    """Return whose call it is."""
    ref = message.scaledObjectRef if isinstance(message, messages.GetMetricsRequest) else message
    return str(ref.namespace) if isinstance(ref, messages.ScaledObjectRef) else ""


def _bytes(message: Message | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


def _value(metric: str, value: Number) -> bytes:
    response = messages.GetMetricsResponse()
    answer = response.metricValues.add()  # takes a third of the time of nested constructors
    answer.metricName, answer.metricValue, answer.metricValueFloat = (
        metric,
        value.whole,
        value.exact,
    )
    return response.SerializeToString()


def _ref(request: messages.ScaledObjectRef) -> Ref:
    # A map of the message would keep the whole message, with fields that are not used.
    return Ref(request.namespace, request.name, dict(request.scalerMetadata))


def _spec_response(spec: Spec) -> messages.GetMetricSpecResponse:
    target = number(spec.target)
    return messages.GetMetricSpecResponse(
        metricSpecs=[
            messages.MetricSpec(
                metricName=spec.metric, targetSize=target.whole, targetSizeFloat=target.exact
            )
        ]
    )
