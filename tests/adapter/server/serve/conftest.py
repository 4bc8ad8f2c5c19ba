"""A lab for `serve`, and a running one that tests share."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.adapter.serving import PAGE, POD, Exporter, Lab, Serving, eventually, values


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    exporter = Exporter()
    yield Lab(tmp_path, exporter)
    exporter.close()


@dataclass
class Running:
    """A `serve` that tests share, a client of it, and its lab."""

    lab: Lab
    serving: Serving
    client: httpx.Client
    _first: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._first = copy.deepcopy(self.lab.config)

    def reset(self) -> None:
        """Reset the exporter and the pods."""
        self.lab.exporter.page = PAGE.format(value=80).encode()
        self.lab.exporter.status = 200
        (self.lab.folder / "pods.yaml").write_text(yaml.safe_dump(POD))
        eventually(lambda: values(self.client) == ["80"])

    def configure(self, **sections: Any) -> int:
        """Write the first configuration with these changes; return the position in the log."""
        since = len(self.serving.log)
        config = copy.deepcopy(self._first)
        for name, content in sections.items():
            known = config.get(name)
            config[name] = known | content if isinstance(known, dict) else content
        self.lab.config = config
        self.lab.write()
        return since


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Started once for a module, with the module's ``SETTINGS`` added to the lab's."""
    exporter = Exporter()
    lab = Lab(tmp_path_factory.mktemp("shared"), exporter)
    for section, content in getattr(request.module, "SETTINGS", {}).items():
        lab.config[section] = lab.config.get(section, {}) | content
    with lab.serving() as serving, serving.client() as client:
        yield Running(lab, serving, client)
    exporter.close()


@pytest.fixture
def running(shared: Running) -> Running:
    """The shared `serve`, which serves 80 for the only pod."""
    shared.reset()
    return shared
