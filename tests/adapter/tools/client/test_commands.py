"""What all commands share: options, formats, exit codes, and names that cannot harm a terminal."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
import yaml

from adapter.__main__ import main
from apiservice.kube.client import call
from tests.adapter.clientapi import ApiServer, forbidden, status_of
from tests.adapter.commandline import invoke
from tests.adapter.everytool import TOOLS, busy_cluster

Json = dict[str, Any]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tuple[ApiServer, Path]]:
    with busy_cluster(tmp_path) as server_and_file:
        yield server_and_file


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> dict[str, click.Command]:
    """Every command that does something, by its words."""
    if not isinstance(command, click.Group):
        return {" ".join(path): command}
    commands: dict[str, click.Command] = {}
    for name, subcommand in command.commands.items():
        commands |= leaves(subcommand, (*path, name))
    return commands


COMMANDS = leaves(main)


def option(command: click.Command, name: str) -> click.Option | None:
    return next(
        (one for one in command.params if isinstance(one, click.Option) and name in one.opts), None
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_says_what_the_exit_codes_mean(name: str) -> None:
    code, output = invoke(*name.split(), "--help")
    assert code == 0
    (sentence,) = re.findall(r"Exit codes: 0[^.]*\.", " ".join(output.split()))
    assert re.fullmatch(
        r"Exit codes: 0(, 1 if .+)?, 2 (if .+, or )?for a wrong option or word\.", sentence
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_format_for_programs_is_json_and_yaml(name: str) -> None:
    output = option(COMMANDS[name], "--output")
    if output is not None:
        assert isinstance(output.type, click.Choice)
        assert {"text", "json", "yaml"} <= set(output.type.choices)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_means_the_same_in_every_command(name: str) -> None:
    """A context is never a namespace, and all can stand before the command."""
    shared = {str(param.name): param for param in main.params if isinstance(param, click.Option)}
    for param in COMMANDS[name].params:
        if param.name in shared:
            assert set(shared[param.name].opts) >= set(param.opts) or name.startswith("maintain")
            assert type(param) is type(shared[param.name]), param.name


@pytest.mark.parametrize("name", TOOLS)
def test_yaml_is_the_same_as_json(name: str, lab: tuple[ApiServer, Path]) -> None:
    command = ("--kubeconfig", str(lab[1]), *TOOLS[name])
    code, text = invoke(*command, "-o", "json")
    ended = invoke(*command, "-o", "yaml")
    documents = json.loads(text), yaml.safe_load(ended.output)
    assert ended.code == code
    for document in documents:
        for moving in ("time", "now", "events", "notes"):
            document.pop(moving, None)
    ages = re.compile(r'\\b\\d+(\\.\\d+)?m?s\\b|"(idleSeconds|costSoFar)": [\\d.]+')
    one, other = (ages.sub("", json.dumps(content, sort_keys=True)) for content in documents)
    assert one == other


@pytest.mark.parametrize("name", TOOLS)
def test_options_stand_before_or_after_the_command(name: str, lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    options: tuple[str, ...] = ("--kubeconfig", str(file), "--context", "lab", "--as", "jane")
    options += ("--as-group", "a", "--as-group", "b c")
    requests = []
    for command in ((*options, *TOOLS[name]), (*TOOLS[name], *options)):
        server.asked.clear()
        assert invoke(*command).code in (0, 1)
        requests.append(sorted(server.asked))
    assert requests[0] == requests[1]
    assert {headers["Impersonate-User"] for headers in server.headers} == {"jane"}
    groups = {tuple(headers.get_all("Impersonate-Group") or ()) for headers in server.headers}
    assert groups == {("a", "b c")}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--context", "x", "version"), "--context means nothing to `version`: remove it"),
        (("replay", "record", "f", "--as", "x"), "No such option"),
        (("--as", "x", "replay", "record", "f"), "--as means nothing to `record`"),
        (("--as-group", "x", "migrate", "prometheus-adapter"), "--as-group needs --as"),
        (("--as-group", "x", "idle"), "--as-group needs --as"),
        (("--as", "a\r\nX-Remote-User: b", "idle"), "write a name in visible ASCII characters"),
    ],
)
def test_an_option_that_would_not_be_read_is_refused(arguments: tuple[str, ...], text: str) -> None:
    ended = invoke(*arguments)
    assert (ended.code, text in ended.output) == (2, True), ended.output


TROUBLES: dict[str, tuple[tuple[int, Any] | None, tuple[str, ...], str]] = {
    "no kubeconfig": (None, ("--kubeconfig", "/nowhere"), "kubeconfig /nowhere does not exist"),
    "a wrong context": (None, ("--context", "prod"), "context 'prod' is not in kubeconfig"),
    "an expired login": ((401, status_of(401, "Unauthorized")), (), "log in again"),
    "a missing right": (forbidden("bob", "list", "x", "y", ""), (), "bob may not list x.y"),
    "a broken server": ((500, status_of(500, "etcd is gone")), (), "etcd is gone"),
    "a login page": ((200, b"<html>Log in</html>"), (), "and not a proxy or login page"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_cannot_look_says_why_in_one_line(
    name: str, trouble: str, lab: tuple[ApiServer, Path]
) -> None:
    lab[0].always, options, text = TROUBLES[trouble]
    ended = invoke("--kubeconfig", str(lab[1]), *TOOLS[name], *options)
    lines = ended.output.splitlines()
    assert ended.code == 2
    assert text in lines[0]
    assert all(line.startswith("gpu-metrics-adapter: ") for line in lines)
    assert len(lines) == len(set(lines)) <= 4


@pytest.mark.parametrize("name", TOOLS)
def test_an_api_server_that_is_down_is_one_line(name: str, lab: tuple[ApiServer, Path]) -> None:
    server, file = lab
    file.write_text(file.read_text().replace(server.url, "http://127.0.0.1:1"))
    ended = invoke("--kubeconfig", str(file), *TOOLS[name])
    (line,) = set(re.sub(r"GET \S+", "GET", ended.output).splitlines())
    assert ended.code == 2
    assert "Connection refused" in line
    assert "check that the API server runs at this address" in line


SEEN = "[35m"


class Hostile:
    """Adds controls to texts of the answers on their way from the server."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    async def __call__(self, *arguments: Any, **named: Any) -> bytes:
        answer: bytes = await call(*arguments, **named)
        return json.dumps(self._changed(msgspec.json.decode(answer))).encode()

    def _changed(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._changed(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self._changed(part) for part in value]
        if isinstance(value, str) and key != "kind" and self._chance.random() < 0.2:
            return f"{value}\x1b[35m\x9b35m\x1b]0;t\x07\u202e\u2066\u200b\u2028\r\n"
        return value


@pytest.mark.parametrize("name", [*TOOLS, "idle csv"])
def test_no_name_of_a_cluster_reaches_the_terminal_as_it_is(
    name: str, lab: tuple[ApiServer, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = 0
    words = TOOLS.get(name, ("idle", "-o", "csv"))
    formats = ("text",) if "csv" in name else ("text", "json", "yaml")
    for seed in range(60):
        if seed >= 6 and printed:
            break  # a list with few texts shows one of them after more tries
        chance = random.Random(f"{name}{seed}")
        monkeypatch.setattr("adapter.tools.client.access.call", Hostile(chance))
        for output in formats:
            more = () if "csv" in name else ("-o", output)
            ended = invoke("--kubeconfig", str(lab[1]), *words, *more, terminal=True)
            text = re.sub("\x1b\\[(?:0|1|2|31|32|33)m", "", ended.output)
            wrong = {one for one in text if unicodedata.category(one) in _CONTROLS} - {"\n", "\r"}
            assert not wrong, (seed, output, text)
            assert "\r" not in text.replace("\r\n", "")  # RFC 4180 ends lines so
            printed += SEEN in text
    assert printed, "no text of the cluster was printed"


_CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")
