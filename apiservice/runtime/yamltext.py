"""Reading of YAML and JSON that somebody else wrote: bounded, and every failure is one line.

Values are those of kubectl: see :mod:`apiservice.runtime.yamltypes`. An alias is a reference to a
value that stands elsewhere: nested ones describe a document of any size in a few lines, so what all
aliases stand for is counted before anything is made of it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import msgspec
import yaml

from apiservice.runtime.yamltypes import MERGE, TAGS, Loader, NodeDumper

MOST_VALUES: Final = 1_000_000
"""Values of one document, with all that its aliases stand for."""
DEEPEST: Final = 200
"""Collections within each other: the schemas of Kubernetes stay below 50."""
_QUOTED: Final = re.compile(r"('(?:[^\w\s']{1,2}|<[^']*>)')|'.*'")
"""The parser's own terms in an error, such as ``','`` and ``'<stream end>'``; or a part of the
text, which may have quotes in it."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LONGEST: Final = 200
"""Letters of a message."""


class YamlError(ValueError):
    """A text cannot be used; the message is one line, and names the line of the text if known."""


def documents(text: bytes | str, *, strict: bool = False) -> list[Any]:
    """Return the documents of a text in YAML, or the values of one in JSON.

    Args:
        text: UTF-8, if it is bytes.
        strict: refuse a mapping that has a key twice, instead of taking the last, and a tag that is
            not one of YAML, instead of leaving it out.

    Raises:
        YamlError: it is neither YAML nor JSON, or describes too much.
    """
    if not strict and text.lstrip()[:1] in (b"{", b"[", "{", "["):
        # Otherwise it is several JSON values, or YAML in flow style.
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return [msgspec.json.decode(text)]
    try:
        text = text.decode() if isinstance(text, bytes) else text
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            if not strict and (values := _split_json(text)):
                return [msgspec.json.decode(value) for value in values]
        return list(_documents(text, strict))
    except YamlError:
        raise
    # What a parser of any text may raise is any exception.
    except Exception as error:
        raise YamlError(_one_line(error, text)) from None


def nodes(text: bytes | str) -> list[yaml.Node]:
    """Return the documents of a text as nodes, which know their lines.

    Merge keys (``<<``) are written out: a mapping's own keys count, then the earlier source. One
    that names no mapping stays as it is.

    Raises:
        YamlError: as for :func:`documents`.
    """
    try:
        return list(_nodes(text.decode() if isinstance(text, bytes) else text))
    except YamlError:
        raise
    except Exception as error:
        raise YamlError(_one_line(error, text)) from None


def value_of(node: yaml.Node) -> Any:
    """Return what a node of :func:`nodes` stands for, as :func:`documents` does.

    Raises:
        YamlError: a key is a collection, or a value does not have the form of its tag.
    """
    loader = Loader("")
    try:
        return loader.construct_document(node)
    # As in documents().
    except Exception as error:
        raise YamlError(_one_line(error)) from None
    finally:
        loader.dispose()


def serialize(node: yaml.Node) -> str:
    """Return the YAML text of a node of :func:`nodes`."""
    return str(yaml.serialize(node, Dumper=NodeDumper, width=10_000))


def document(text: bytes | str, *, strict: bool = False) -> Any:
    """Return the only document of a text, or None if it is empty.

    Raises:
        YamlError: it is neither YAML nor JSON, describes too much, or has several documents.
    """
    every = documents(text, strict=strict)
    if len(every) > 1:
        raise YamlError(f"it has {len(every)} documents: write one")
    return every[0] if every else None


def _split_json(text: str) -> list[str]:
    """Return the values of a text that is several JSON values, as ``jq`` writes them; empty if it
    is anything else."""
    reader = json.JSONDecoder(parse_int=str)
    starts, place = [0], _after_space(text, 0)
    while place < len(text):
        if text[place] not in "{[":
            return []
        try:
            _, end = reader.raw_decode(text, place)
        except (ValueError, RecursionError):
            return []
        place = _after_space(text, end)
        starts.append(place)
    return [text[start:end] for start, end in pairwise(starts)] if len(starts) > 2 else []


def _after_space(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _documents(text: str, strict: bool) -> Iterator[Any]:
    for loader, node in _compose_documents(text, strict):
        yield loader.construct_document(node)


def _nodes(text: str) -> Iterator[yaml.Node]:
    # Each value stays on its line.
    values = [value.rstrip(" \t\r").removesuffix("\n") for value in _split_json(text)]
    text = "\n--- ".join(values) if values else text
    for loader, node in _compose_documents(text, strict=False):
        _write_out_merges(loader, node, set())
        yield node


def _compose_documents(text: str, strict: bool) -> Iterator[tuple[Any, yaml.Node]]:
    """Yield each document as a node, and the loader that constructs values from it."""
    _check_depth(text)
    loader = Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            _Extent(strict).of(node)
            yield loader, node
    finally:
        loader.dispose()


def _write_out_merges(loader: Any, node: yaml.Node, done: set[int]) -> None:
    """Replace the merge keys of a node and of all its parts."""
    if id(node) in done or not isinstance(node, yaml.CollectionNode):
        return
    done.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            _write_out_merges(loader, part, done)
        return
    # A source before the mapping that it is merged into.
    for pair in node.value:
        for part in pair:
            _write_out_merges(loader, part, done)
    written = list(node.value)
    own_pairs = [pair for pair in written if pair[0].tag != MERGE]
    if len(own_pairs) == len(written):
        return
    try:
        loader.flatten_mapping(node)
    except yaml.YAMLError:
        node.value = written
        return
    merged = {str(key.value): (key, value) for key, value in node.value[: -len(own_pairs) or None]}
    for key, _ in own_pairs:
        merged.pop(str(key.value), None)
    node.value = [*merged.values(), *own_pairs]


def _check_depth(text: str) -> None:
    """Raise YamlError for deep nesting: libyaml's composer would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                line = event.start_mark.line + 1 if event.start_mark else 1
                raise YamlError(f"line {line}: values are nested more than {DEEPEST} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Extent:
    """Counts what a document stands for.

    Args:
        strict: refuse a mapping that has a key twice, and a tag that is not one of YAML.
    """

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._sizes: dict[int, int] = {}

    def of(self, node: yaml.Node) -> int:
        """Return the values of a node; raises YamlError."""
        counted = self._sizes.get(id(node))
        if counted == 0:
            raise YamlError(f"line {_line(node)}: a value contains itself: write it out")
        if counted is not None:
            return counted
        if self._strict and node.tag not in TAGS:
            # Without the tag: a password may begin with an exclamation mark.
            fix = "write the value in quotes, or remove the tag"
            raise YamlError(f"line {_line(node)}: a value begins with an unknown tag: {fix}")
        self._sizes[id(node)] = 0  # until its parts are counted
        size = 1 + sum(self.of(part) for part in self._parts(node))
        if size > MOST_VALUES:
            raise YamlError(
                f"line {_line(node)}: aliases stand for more than {MOST_VALUES} values: "
                "write them out"
            )
        self._sizes[id(node)] = size
        return size

    def _parts(self, node: yaml.Node) -> Iterator[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                if self._strict:
                    _once(key, first)
                yield key
                yield value


def _once(key: yaml.Node, first: dict[str, int]) -> None:
    """Note the line of a key; raises YamlError if the mapping has it already."""
    if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
        return
    if key.value in first:
        raise YamlError(
            f"{key.value[:60]} stands twice, on lines {first[key.value]} and {_line(key)}: "
            "merge the two"
        )
    first[key.value] = _line(key)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark else 1


def _one_line(error: Exception, text: bytes | str = "") -> str:
    """Return what is wrong and where, without the text that it is in: it may be a password.

    Args:
        text: that was parsed; empty if it is not known.
    """
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        if mark and (why := _describe_character(text, mark, error.problem)):
            return where + why
        return where + _hide_quoted(error.problem)[:_LONGEST]
    message = str(error) if isinstance(error, UnicodeError) else _hide_quoted(str(error))
    return message[:_LONGEST] or type(error).__name__


def _hide_quoted(message: str) -> str:
    return _QUOTED.sub(lambda match: match[1] or "'…'", " ".join(message.split()))


def _describe_character(text: bytes | str, mark: yaml.Mark, problem: str) -> str:
    """Return which character is wrong at a mark, which libyaml does not name; empty if it is not
    about a character."""
    lines = (text.decode(errors="replace") if isinstance(text, bytes) else text).splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ""
    character = line[mark.column : mark.column + 1]
    token = "cannot start any token" in problem
    if character == "\t" and (token or "tab" in problem):
        return "a tab stands where YAML takes spaces only: indent with spaces"
    if token and character:
        return f"a value begins with {character}: write it in quotes"
    return ""
