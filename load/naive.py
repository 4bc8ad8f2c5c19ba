"""The straightforward version to compare with: FastAPI, pydantic models, a dict of values.

The same values and the same TLS as ``serve``, written the way one writes a FastAPI
service: a route, response models, the framework's own serialisation. It has no
authentication beyond TLS and no authorization: it is given every advantage.
"""

from __future__ import annotations

import argparse
import ssl
import time
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from load.fleet import NAMESPACE, Slot, slots
from load.page import UTIL


class ObjectReference(BaseModel):
    """The described object."""

    kind: str
    namespace: str
    name: str
    apiVersion: str  # noqa: N815 - the wire name


class MetricIdentifier(BaseModel):
    """Name and selector of a metric."""

    name: str
    selector: dict[str, str] | None = None


class MetricValue(BaseModel):
    """One item."""

    describedObject: ObjectReference  # noqa: N815 - the wire name
    metric: MetricIdentifier
    timestamp: datetime
    windowSeconds: int | None = None  # noqa: N815 - the wire name
    value: str


class MetricValueList(BaseModel):
    """The answer."""

    kind: str = "MetricValueList"
    apiVersion: str = "custom.metrics.k8s.io/v1beta2"  # noqa: N815 - the wire name
    metadata: dict[str, str] = {}
    items: list[MetricValue]


def create_app(pods: int) -> FastAPI:
    """The service over ``pods`` pods with fixed values."""
    app = FastAPI()
    fixed_values: list[tuple[Slot, float]] = [(slot, 50.0) for slot in slots(pods)]
    measured = time.time()

    @app.get("/apis/custom.metrics.k8s.io/v1beta2/namespaces/{namespace}/pods/{name}/{metric}")
    async def values(
        namespace: str,
        name: str,
        metric: str,
        labelSelector: str = "",  # noqa: N803 - the wire name
    ) -> MetricValueList:
        """The values of every pod that the selector (``key=value``) matches."""
        if metric != UTIL or namespace != NAMESPACE or name != "*":
            raise HTTPException(404)
        key, _, wanted = labelSelector.partition("=")
        items = [
            MetricValue(
                describedObject=ObjectReference(
                    kind="Pod", namespace=namespace, name=slot.name, apiVersion="v1"
                ),
                metric=MetricIdentifier(name=metric),
                timestamp=datetime.fromtimestamp(int(measured), UTC),
                windowSeconds=30,
                value=f"{round(value * 1000)}m",
            )
            for slot, value in fixed_values
            if not labelSelector or (key == "app" and slot.app == wanted)
        ]
        return MetricValueList(items=items)

    return app


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    for name in ("cert", "key", "ca"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    uvicorn.run(
        create_app(arguments.pods),
        host="127.0.0.1",
        port=arguments.port,
        loop="uvloop",
        http="httptools",
        ssl_certfile=str(arguments.cert),
        ssl_keyfile=arguments.key,
        ssl_ca_certs=str(arguments.ca),
        ssl_cert_reqs=ssl.CERT_OPTIONAL,
        access_log=False,
        log_level="warning",
        timeout_keep_alive=130,
    )


if __name__ == "__main__":
    main()
