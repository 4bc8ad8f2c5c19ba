"""An API server as far as ``maintain`` asks for one: objects, versions, conflicts, a clock."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Generator
from typing import Any

from adapter.tools.maintain.cluster import ConflictError, MaintainError
from adapter.tools.maintain.objects import Object, registration_path, secret_path
from adapter.tools.maintain.rotation import Installation, Rotation
from adapter.tools.maintain.state import RotationPolicy

CUSTOM = ("v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io")
TARGET = Installation("gpu-metrics", "adapter", "adapter-ca", "adapter-certificate", CUSTOM)
AUTHORITY = secret_path("gpu-metrics", "adapter-ca")
CERTIFICATE = secret_path("gpu-metrics", "adapter-certificate")
HOST = "adapter.gpu-metrics.svc"
POLICY = RotationPolicy((HOST, f"{HOST}.cluster.local"), days=90, ca_days=365, settle=1800)
NOW = 1_800_000_000.0
DAY = 86400.0


class _Turn:
    def __await__(self) -> Generator[None, None, None]:
        yield


class FakeCluster:
    """Objects by path. Each request lets somebody else have a turn first."""

    def __init__(self, now: float = NOW) -> None:
        self.time = now
        self.objects: dict[str, Object] = {}
        self.writes: list[str] = []
        self.refuse: dict[str, str] = {}
        """Path -> the error that a request for it gets."""
        self.before_patch: Callable[[str], None] = lambda _: None
        self.changed: Callable[[str], None] = lambda _: None
        self._version = 0

    def put(self, path: str, obj: Object) -> None:
        """Have an object, as somebody else than us would write it."""
        self._version += 1
        copied = copy.deepcopy(obj)
        copied["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = copied
        self.changed(path)

    def install(self) -> None:
        """Have what the chart makes: empty Secrets, and APIServices without a caBundle."""
        for path in (AUTHORITY, CERTIFICATE):
            meta = {"namespace": "gpu-metrics", "name": path.rpartition("/")[2]}
            self.put(path, {"kind": "Secret", "metadata": meta})
        for name in CUSTOM:
            self.register(name, "gpu-metrics", "adapter")

    def register(self, name: str, namespace: str, service: str) -> None:
        """Have an APIService of a Service."""
        spec = {"service": {"namespace": namespace, "name": service}}
        self.put(registration_path(name), {"metadata": {"name": name}, "spec": spec})

    def annotate(self, path: str, key: str, text: str) -> None:
        """Set an annotation."""
        obj = copy.deepcopy(self.objects[path])
        obj["metadata"].setdefault("annotations", {})[key] = text
        self.put(path, obj)

    def data(self, path: str, key: str) -> bytes:
        """A Secret's value; empty where it has none."""
        return base64.b64decode((self.objects[path].get("data") or {}).get(key, ""))

    def fill(self, path: str, **data: bytes | None) -> None:
        """Set keys of a Secret by hand; ``_`` stands for a dot, None takes the key away."""
        obj = copy.deepcopy(self.objects[path])
        values = obj.setdefault("data", {})
        for key, value in data.items():
            values.pop(key.replace("_", "."), None)
            if value is not None:
                values[key.replace("_", ".")] = base64.b64encode(value).decode()
        self.put(path, obj)

    def bundle(self, name: str) -> bytes:
        """An APIService's caBundle."""
        text = self.objects[registration_path(name)]["spec"].get("caBundle", "")
        return base64.b64decode(text)

    def now(self) -> float:
        return self.time

    async def read(self, path: str) -> dict[str, Any] | None:
        await _Turn()
        self._check(path)
        return copy.deepcopy(self.objects.get(path))

    async def patch(self, path: str, body: dict[str, Any]) -> None:
        self.before_patch(path)
        await _Turn()
        self._check(path)
        obj = copy.deepcopy(self.objects[path])
        if body["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise ConflictError(f"{path}: the object has been modified")
        self.writes.append(path)
        self.put(path, _merged(obj, body))

    async def delete(self, path: str, version: str) -> None:
        await _Turn()
        self._check(path)
        obj = self.objects.get(path)
        if obj is None:
            return
        if version != obj["metadata"]["resourceVersion"]:
            raise ConflictError(f"{path}: the object has been modified")
        self.writes.append(path)
        if not obj["metadata"].get("finalizers"):
            del self.objects[path]

    async def pause(self, seconds: float) -> None:
        self.time += seconds
        await _Turn()

    def rotation(self, wait: float = 0.0, target: Installation = TARGET) -> Rotation:
        """A run that has not begun."""
        return Rotation(self, target, POLICY, wait, self.pause)

    def run(self, wait: float = 0.0, target: Installation = TARGET) -> int:
        """Run to the end, alone; returns the number of writes. Raises MaintainError."""
        coroutine = self.rotation(wait, target).run()
        while True:
            try:
                coroutine.send(None)
            except StopIteration as end:
                return int(end.value)

    def _check(self, path: str) -> None:
        if path in self.refuse:
            raise MaintainError(self.refuse[path])


def _merged(obj: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    base = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            base.pop(key, None)
        else:
            base[key] = _merged(base.get(key), value)
    return base
