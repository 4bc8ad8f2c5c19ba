"""What the demo writes is what ``serve`` reads."""

from __future__ import annotations

import json
from pathlib import Path

from adapter.demo import story
from adapter.demo.manifests import pods, write
from adapter.demo.wallclock import WallClock
from adapter.demo.world import World
from adapter.pipeline.cluster.manifest import PodDecoder
from adapter.pipeline.cluster.pod import Pod, PodRef
from adapter.pipeline.cluster.podsfile import parse
from adapter.pipeline.sources.scrape.discovery import DISCOVERY_RULES, select_exporters
from adapter.pipeline.sources.scrape.target import ScrapeTarget


def read(world: World, ports: dict[str, int]) -> dict[str, Pod]:
    text = json.dumps({"items": pods(world, story.NAMESPACE, ports, WallClock(15))}).encode()
    return {pod.ref.name: pod for pod in parse(text, PodDecoder()).pods}


def test_a_replicas_manifest_says_where_it_is_what_it_holds_and_whose_it_is(world: World) -> None:
    pod = world.fleet.of("embed")[0]
    seen = read(world, {})[pod.name]
    assert seen.ref == PodRef("inference", pod.name)
    assert (seen.node, seen.phase, seen.ready, seen.deleting) == ("mig-1", "Running", True, False)
    assert seen.gpus == {"nvidia.com/mig-1g.10gb": 1}
    assert seen.labels["app"] == "embed"
    assert seen.owner is not None
    assert (seen.owner.kind, seen.owner.name) == ("ReplicaSet", "embed-6d5f8c7b9")


def test_stages_are_phases_and_conditions(world: World) -> None:
    world.scale("chat", 10)
    world.advance(world.now + 1)
    world.scale("chat", 9)
    world.fleet.delete(world.fleet.of("chat")[0], world.now)
    chat = [pod for pod in read(world, {}).values() if pod.labels.get("app") == "chat"]
    stages = [(pod.phase, pod.ready, pod.deleting, bool(pod.node)) for pod in chat]
    assert stages.count(("Running", False, True, True)) == 1, "terminating"
    assert stages.count(("Running", True, False, True)) == 1, "serving"
    assert stages.count(("Running", False, False, True)) == 2, "loading"
    assert stages.count(("Pending", False, False, False)) == 5, "without a GPU"


def test_the_built_in_rules_find_each_nodes_exporter(world: World) -> None:
    seen = read(world, {"h100-1": 4001, "mig-1": 4003})
    chosen = select_exporters(seen.values(), DISCOVERY_RULES)
    exporters = [chosen.get(pod.ref) for pod in seen.values()]
    targets = [target for target in exporters if isinstance(target, ScrapeTarget)]
    assert [(target.url, target.node) for target in targets] == [
        ("http://127.0.0.1:4001/metrics", "h100-1"),
        ("http://127.0.0.1:4003/metrics", "mig-1"),
    ]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    write(path, [{"kind": "Pod"}])
    with path.open() as before:
        write(path, [])
        assert json.load(before)["items"] == [{"kind": "Pod"}]
    assert json.loads(path.read_text())["items"] == []
    assert list(tmp_path.iterdir()) == [path]


def test_pods_of_one_name_in_two_namespaces_are_two_pods(world: World) -> None:
    first, second = (
        pods(world, namespace, {}, WallClock(15))[0]["metadata"] for namespace in ("a", "b")
    )
    assert first["name"] == second["name"]
    assert first["uid"] != second["uid"]
