"""The gRPC service: messages in, :class:`~adapter.keda.scaler.Scaler`'s answers out.

Codes are what reaches the user, as KEDA's event KEDAScalerFailed: INVALID_ARGUMENT for what
the manifest's author has to mend, FAILED_PRECONDITION for readings that are missing (so
that KEDA's ``fallback`` applies, and no proxy on the way asks again), UNAVAILABLE where
another replica may know better.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Final, NoReturn, TypeAlias

import grpc
import structlog
from google.protobuf.message import Message

from adapter.keda import externalscaler_pb2 as messages
from adapter.keda.errors import BadTrigger, NoReadings, NotReady, ScalerError
from adapter.keda.number import Number, number
from adapter.keda.pulse import Pulse
from adapter.keda.question import Ref, Told
from adapter.keda.scaler import Scaler, Spec
from adapter.keda.stats import KedaStats

log = structlog.get_logger(__name__)

NAME: Final = "externalscaler.ExternalScaler"

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Send = Callable[[Message], Awaitable[None]]

_CODES: Final = {
    BadTrigger: grpc.StatusCode.INVALID_ARGUMENT,
    NoReadings: grpc.StatusCode.FAILED_PRECONDITION,
    NotReady: grpc.StatusCode.UNAVAILABLE,
}
_REMEMBERED: Final = 16384
_LONGEST: Final = 1000
"""Characters of a status' text: it travels in a header."""


class Service:
    """KEDA's ``ExternalScaler``.

    Args:
        scaler: answers.
        pulse: when streams look again, and end.
        stream_age: seconds after which a stream ends in order; KEDA opens another.
        stats: counted in.
        clock: epoch seconds.
    """

    def __init__(
        self,
        scaler: Scaler,
        pulse: Pulse,
        stream_age: float,
        stats: KedaStats,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._scaler = scaler
        self._pulse = pulse
        self._stream_age = stream_age
        self._stats = stats
        self._clock = clock
        self._failing: set[int] = set()
        """Triggers without an answer, by :func:`_key`."""

    def handler(self) -> grpc.GenericRpcHandler:
        """For the server."""
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

    def _spec(self, request: messages.ScaledObjectRef) -> messages.GetMetricSpecResponse:
        return _spec_response(self._scaler.spec(_ref(request)))

    def _get_metrics(self, request: messages.GetMetricsRequest) -> bytes:
        ref = _ref(request.scaledObjectRef)
        told = self._tell(ref)
        asked = request.metricName or told.metric
        if asked != told.metric:
            if asked.lower() != told.metric:
                raise BadTrigger(
                    f"metric: the trigger's is {told.metric}, and {asked} was asked for"
                )
            return _value(asked, told.number)
        told.message = told.message or _value(asked, told.number)
        return told.message

    def _is_active(self, request: messages.ScaledObjectRef) -> messages.IsActiveResponse:
        return messages.IsActiveResponse(result=self._tell(_ref(request)).active)

    async def _stream_is_active(self, ref: Ref, deadline: float, send: Send) -> None:
        last: bool | None = None
        while True:
            try:
                told = self._scaler.tell(ref, self._clock(), newest=True)
                active: bool | None = told.active
            except (NoReadings, NotReady):
                active = None  # nothing is said as long as nothing is known
            if active is not None and active != last:
                last = active
                await send(messages.IsActiveResponse(result=active))
            if not await self._pulse.next(deadline):
                return

    async def _stream_metric_spec(self, ref: Ref, deadline: float, send: Send) -> None:
        await send(_spec_response(self._scaler.spec(ref)))
        await self._pulse.end(deadline)

    def _tell(self, ref: Ref) -> Told:
        """Ask, and log when a trigger begins or ceases to have no answer."""
        try:
            told = self._scaler.tell(ref, self._clock())
        except ScalerError as error:
            self._note(ref, str(error))
            raise
        if self._failing and (key := _key(ref)) in self._failing:
            self._failing.discard(key)
            log.info("trigger has a value again", **_named(ref))
        return told

    def _note(self, ref: Ref, reason: str) -> None:
        key = _key(ref)
        if key in self._failing:
            return
        log.warning("trigger has no value", **_named(ref), reason=reason[:_LONGEST])
        if len(self._failing) >= _REMEMBERED:
            self._failing.clear()
        self._failing.add(key)

    def _unary(
        self, method: str, message: type[Message], answer: Callable[[Any], Message | bytes]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def call(request: Any, context: Context) -> Message | bytes:
            started = perf_counter()
            try:
                response = answer(request)
            except Exception as error:
                await self._refuse(method, context, error)
            finally:
                self._stats.durations[method].observe(perf_counter() - started)
            self._stats.calls[method, "OK"] += 1
            return response

        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=message.FromString,
            response_serializer=_bytes,
        )

    def _stream(
        self, method: str, produce: Callable[[Ref, float, Send], Awaitable[None]]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def call(request: messages.ScaledObjectRef, context: Context) -> None:
            deadline = asyncio.get_running_loop().time() + self._stream_age
            self._stats.streams[method] += 1
            try:
                await produce(_ref(request), deadline, context.write)
            except asyncio.CancelledError:
                self._stats.calls[method, grpc.StatusCode.CANCELLED.name] += 1
                raise
            except Exception as error:
                await self._refuse(method, context, error)
            finally:
                self._stats.streams[method] -= 1
            self._stats.calls[method, "OK"] += 1

        return grpc.unary_stream_rpc_method_handler(
            call,
            request_deserializer=messages.ScaledObjectRef.FromString,
            response_serializer=_bytes,
        )

    async def _refuse(self, method: str, context: Context, error: Exception) -> NoReturn:
        if isinstance(error, ScalerError):
            code, text = _CODES[type(error)], str(error)
        else:
            log.error("call failed", method=method, exc_info=error)
            code, text = grpc.StatusCode.INTERNAL, f"internal error: {type(error).__name__}"
        self._stats.calls[method, code.name] += 1
        await context.abort(code, text[:_LONGEST])


def _bytes(message: Message | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


def _key(ref: Ref) -> int:
    """Of one trigger; its texts may be long, and are not kept."""
    return hash((ref.namespace, ref.name, frozenset(ref.metadata.items())))


def _named(ref: Ref) -> dict[str, str]:
    """For the log."""
    names = {"namespace": ref.namespace, "name": ref.name, "metric": ref.metadata.get("metric", "")}
    return {key: text[:_LONGEST] for key, text in names.items()}


def _value(metric: str, value: Number) -> bytes:
    response = messages.GetMetricsResponse()
    told = response.metricValues.add()  # a third of the time that nested constructors take
    told.metricName, told.metricValue, told.metricValueFloat = metric, value.whole, value.exact
    return response.SerializeToString()


def _ref(request: messages.ScaledObjectRef) -> Ref:
    return Ref(request.namespace, request.name, request.scalerMetadata)


def _spec_response(spec: Spec) -> messages.GetMetricSpecResponse:
    target = number(spec.target)
    return messages.GetMetricSpecResponse(
        metricSpecs=[
            messages.MetricSpec(
                metricName=spec.metric, targetSize=target.whole, targetSizeFloat=target.exact
            )
        ]
    )
