"""``replay hpa --from FOLDER``: pages and objects that a shell loop saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.pipeline.cluster.hpas import ShownHpa
from adapter.pipeline.cluster.pod import Pod
from adapter.server.recording.events import Event, HpaSeen, PageRead, PodSeen
from tests.adapter.commandline import Ended, invoke
from tests.adapter.tools.replay.day import Day, manifest, waves, write

DAY = Day(waves, syncs=240, period=15.0, hpa=manifest("30"))
CONFIG = {"values": {"window": 5, "collect_interval": 10}}
INTERVAL = 15


def pod_manifest(pod: Pod) -> dict[str, Any]:
    assert pod.owner is not None
    owner = {"apiVersion": pod.owner.api_version, "kind": pod.owner.kind, "name": pod.owner.name}
    ready = {"type": "Ready", "status": str(pod.ready)}
    return {
        "kind": "Pod",
        "metadata": {
            "name": pod.ref.name,
            "namespace": pod.ref.namespace,
            "uid": pod.uid,
            "labels": dict(pod.labels),
            "creationTimestamp": instant(pod.born),
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "nodeName": pod.node,
            "containers": [{"name": "server", "resources": {"limits": dict(pod.gpus)}}],
        },
        "status": {"phase": pod.phase, "conditions": [ready]},
    }


def hpa_manifest(hpa: ShownHpa) -> dict[str, Any]:
    current = {"averageValue": hpa.metrics[0].current}
    metric = {"metric": {"name": hpa.metrics[0].name}, "current": current}
    status = {
        "currentReplicas": hpa.current,
        "desiredReplicas": hpa.desired,
        "currentMetrics": [{"type": "Pods", "pods": metric}],
    }
    return {**DAY.hpa, "kind": "HorizontalPodAutoscaler", "status": status}


def instant(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def saved(
    folder: Path, events: Iterable[Event], lost: Callable[[float], bool] = lambda time: False
) -> None:
    """Save the state at every moment, as the commands in the documentation do.

    Args:
        folder: to write the folders of the moments into.
        events: of the cluster.
        lost: whether the page of a moment could not be read.
    """
    pods: dict[str, Pod] = {}
    hpa: ShownHpa | None = None
    pages: dict[str, PageRead] = {}
    next_at = 0.0
    for event in events:
        next_at = next_at or event.time + INTERVAL - 1
        while event.time > next_at:
            _save(folder / instant(next_at), pods, hpa, {} if lost(next_at) else pages)
            next_at += INTERVAL
        match event:
            case PodSeen():
                pods[event.pod.uid] = event.pod
                if event.gone:
                    del pods[event.pod.uid]
                    pages.pop("/".join(event.pod.ref), None)
            case PageRead():
                pages["/".join(event.result.pod or ("n",))] = event
            case HpaSeen():
                hpa = event.hpa


def _save(
    at: Path, pods: dict[str, Pod], hpa: ShownHpa | None, pages: Mapping[str, PageRead]
) -> None:
    at.mkdir(parents=True)
    items = [pod_manifest(pod) for pod in pods.values()]
    items += [hpa_manifest(hpa)] if hpa is not None else []
    (at / "objects.json").write_text(json.dumps({"kind": "List", "items": items}))
    for name, page in pages.items():
        lines = []
        for sample in page.result.samples:
            labels = ",".join(f'{key}="{value}"' for key, value in sample.labels.items())
            lines.append(f"{sample.name}{{{labels}}} {sample.value!r}\n")
        file = at / f"{name}.prom"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The saved pages, and a recording of the same cluster."""
    folder = tmp_path_factory.mktemp("saved")
    saved(folder / "pages", DAY.events())
    write(folder / "day.gma", DAY)
    (folder / "hpa.yaml").write_text(yaml.safe_dump(DAY.hpa))
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    return folder


def replay(folder: Path, source: Path, *arguments: str) -> Ended:
    hpa = ("-f", str(folder / "hpa.yaml"))
    return invoke("replay", "hpa", "ml/llm", "--from", str(source), *hpa, *arguments)


def test_saved_pages_give_the_table_of_a_recording(folder: Path) -> None:
    tried = ("--target", "45", "-o", "json")
    config = ("--config", str(folder / "config.yaml"))
    done = replay(folder, folder / "pages", *config, *tried)
    assert done.code == 0, done.output
    mine, whole = (
        json.loads(done.output),
        json.loads(replay(folder, folder / "day.gma", *tried).output),
    )
    agreement = mine["agreement"]
    assert agreement["equal"] == agreement["compared"] == agreement["equalValues"] > 20
    for one, other in zip(mine["variants"], whole["variants"], strict=True):
        assert one["gpuHours"] == pytest.approx(other["gpuHours"], rel=0.05)
        assert one["highestReplicas"] == other["highestReplicas"]
    assert mine["defects"] == []


def test_files_that_cannot_be_read_are_named_with_their_time(folder: Path, tmp_path: Path) -> None:
    saved(tmp_path / "pages", DAY.events())
    moments = sorted((tmp_path / "pages").iterdir())
    (moments[40] / "objects.json").write_text('{"kind": "List", "items": [')
    (moments[41] / "objects.json").unlink()
    config = ("--config", str(folder / "config.yaml"))
    done = replay(folder, tmp_path / "pages", *config, "-o", "json")
    assert done.code == 0, done.output
    defects = json.loads(done.output)["defects"]
    damaged = [row for row in defects if row["reason"] == "damaged"]
    assert [row["end"][:19] + "Z" for row in damaged] == [path.name for path in moments[40:42]]
    assert "neither YAML nor JSON" in damaged[0]["about"]
    assert damaged[1]["about"].endswith("objects.json: No such file or directory")


@pytest.mark.parametrize("content", ["", "<html>502 Bad Gateway</html>\n"])
def test_a_page_that_is_not_one_is_named_with_its_time(
    folder: Path, tmp_path: Path, content: str
) -> None:
    saved(tmp_path / "pages", DAY.events())
    page = sorted((tmp_path / "pages").iterdir())[40] / "n.prom"
    page.write_text(content)
    done = replay(folder, tmp_path / "pages", "-o", "json")
    (defect,) = (row for row in json.loads(done.output)["defects"] if row["reason"] == "damaged")
    assert defect["about"] == f"{page}: it has no sample of a known series"
    assert defect["start"] == defect["end"] == page.parent.name.replace("Z", ".000+00:00")


def test_a_folder_without_a_page_is_one_line(folder: Path, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    saved(pages, Day(waves, syncs=5, period=15.0, hpa=DAY.hpa).events())
    written = sorted(pages.glob("*/n.prom"))
    for page in written:
        page.write_text("<html>")
    done = replay(folder, pages)
    first = f"{written[0]}: it has no sample of a known series"
    fix = (
        "write one as NODE.prom for each node, or that of an inference server as NAMESPACE/POD.prom"
    )
    message = f"{pages}: no folder has the page of an exporter; {first}: {fix}"
    assert (done.code, done.output) == (2, f"gpu-metrics-adapter: {message}\n")
    for page in written:
        page.unlink()
    assert replay(folder, pages).output.endswith(f"the page of an exporter: {fix}\n")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "has 0 folders of moments, and a replay needs 2 to"),
        (("a", "b"), "a is not a time: name each folder by its time in UTC"),
        (
            ("2026-09-21T14:00:00Z", "2026-09-21T14:00:15Z"),
            "no folder has an objects.json that can be read; write it with `kubectl get",
        ),
    ],
)
def test_a_folder_of_another_kind_is_one_line(
    folder: Path, tmp_path: Path, names: tuple[str, ...], said: str
) -> None:
    for name in names:
        (tmp_path / name).mkdir()
    done = replay(folder, tmp_path)
    assert done.code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


def test_options_of_a_store_are_rejected(folder: Path) -> None:
    done = replay(folder, folder / "pages", "--since", "1d")
    assert "--since is about a store: use it with --from-prometheus" in done.output
