"""Files are read as kubectl reads them, and each object that cannot be read is named."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
import yaml

from adapter.tools.doctor.manifests import read_files
from tests.adapter.tools.doctor.test_manifests import DEPLOYMENT, GOOD, doctor


def test_scalars_are_those_of_kubectl(tmp_path: Path) -> None:
    annotations = "annotations: {a: 12:30:00, b: 1:30, c: 2026-01-31, d: 1.2.3, e: =}"
    (tmp_path / "a.yaml").write_text(DEPLOYMENT.replace("name: llm,", f"name: llm, {annotations},"))
    data = "{1.5: a, 1e3: b, 08: c, y: d}"
    kept = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {data}\n"
    (tmp_path / "b.yaml").write_text(kept)
    code, output = doctor("-f", tmp_path)
    assert (code, "read 2 objects" in " ".join(output.split())) == (0, True)
    (configmap,) = read_files([tmp_path / "b.yaml"]).configmaps
    assert set(configmap.data) == {"1.5", "1000", "8", "true"}


def test_objects_of_json_one_after_another_are_read(tmp_path: Path) -> None:
    rows = [yaml.safe_load(text) for text in (GOOD, DEPLOYMENT)]
    for indent, space in ((2, "\n"), (None, "\n"), (None, "")):
        (tmp_path / "a.json").write_text(space.join(json.dumps(row, indent=indent) for row in rows))
        code, output = doctor("-f", tmp_path / "a.json")
        assert (code, "read 2 objects" in " ".join(output.split())) == (0, True)


def test_a_pipe_is_read_as_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(GOOD,))
    writer.start()
    code, output = doctor("-f", pipe)
    writer.join()
    assert (code, "read 1 object" in " ".join(output.split())) == (0, True)


def test_each_object_that_could_not_be_read_is_named(tmp_path: Path) -> None:
    wrong = [DEPLOYMENT.replace("2", "'2'").replace("llm", f"d{place}") for place in range(5)]
    (tmp_path / "a.yaml").write_text("---".join(wrong))
    code, output = doctor("-f", tmp_path)
    (line,) = output.splitlines()
    assert code == 2
    for place in range(3):
        assert f"Deployment d{place}: spec.replicas is a string" in line
    assert line.endswith("; and 2 more")
    assert "name files with" not in line, "the file has manifests"


TEMPLATES = {
    "a name": ("name: llm,", "name: '${NAME}',", "metadata.name is '${NAME}'"),
    "a number": ("maxReplicas: 8", "maxReplicas: '{{ .most }}'", "maxReplicas is '{{ .most }}'"),
    "a quantity": ('"70"', '"${TARGET}"', "averageValue is '${TARGET}'"),
    "a target": ("apps/v1", '"${API}"', "apiVersion is '${API}'"),
}


@pytest.mark.parametrize(("old", "new", "words"), TEMPLATES.values(), ids=TEMPLATES)
def test_a_template_is_to_be_rendered(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace(old, new))
    _, output = doctor("-f", tmp_path, "-q", "--only", "GMA409")
    assert f"{words}: render the template, and check its output" in " ".join(output.split())


@pytest.mark.parametrize("number", ["9" * 4000, "9" * 300, "1.0e+300", "'" + "x" * 4000 + "'"])
def test_a_long_value_is_shortened(tmp_path: Path, number: str) -> None:
    (tmp_path / "a.yaml").write_text(GOOD.replace("maxReplicas: 8", f"maxReplicas: {number}"))
    code, output = doctor("-f", tmp_path, "-q", "--only", "GMA409")
    assert code == 1
    assert "give a whole number from 1 to" in " ".join(output.split())
    assert len(output) < 600
