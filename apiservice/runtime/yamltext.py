"""Reading of YAML and JSON that somebody else wrote: bounded, and every failure is one line.

Times stay the texts that they are, as in the Kubernetes API. An alias is a reference to a value
that stands elsewhere: nested ones describe a document of any size in a few lines, so what all
aliases stand for is counted before anything is made of it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

MOST_VALUES: Final = 1_000_000
"""Values of one document, with all that its aliases stand for."""
DEEPEST: Final = 200
"""Collections within each other: the schemas of Kubernetes stay below 50."""
_QUOTED: Final = re.compile(r"'(?!<)[^']{3,}'")
"""A part of the text in an error; the parser's own terms are in angle brackets."""
_MERGE: Final = "tag:yaml.org,2002:merge"
_LONGEST: Final = 200
"""Letters of a message."""


class YamlError(ValueError):
    """A text cannot be used; the message is one line, and names the line of the text if known."""


def documents(text: bytes | str, *, unique: bool = False) -> list[Any]:
    """Return the documents of a text in YAML or JSON.

    Args:
        text: UTF-8, if it is bytes.
        unique: refuse a mapping that has a key twice, instead of taking the last.

    Raises:
        YamlError: it is neither YAML nor JSON, or describes too much.
    """
    if not unique and text.lstrip()[:1] in (b"{", b"[", "{", "["):
        # Otherwise it is several JSON documents, or YAML in flow style.
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return [msgspec.json.decode(text)]
    try:
        return list(_documents(text.decode() if isinstance(text, bytes) else text, unique))
    except YamlError:
        raise
    # What Python's types raise for a text such as `!!int ''` is any exception.
    except Exception as error:
        raise YamlError(_one_line(error)) from None


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
        raise YamlError(_one_line(error)) from None


def document(text: bytes | str, *, unique: bool = False) -> Any:
    """Return the only document of a text, or None if it is empty.

    Raises:
        YamlError: it is neither YAML nor JSON, describes too much, or has several documents.
    """
    every = documents(text, unique=unique)
    if len(every) > 1:
        raise YamlError(f"it has {len(every)} documents: write one")
    return every[0] if every else None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the base
    """Leaves times the texts that they are."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_str)


def _documents(text: str, unique: bool) -> Iterator[Any]:
    for loader, node in _compose_documents(text, unique):
        yield loader.construct_document(node)


def _nodes(text: str) -> Iterator[yaml.Node]:
    for loader, node in _compose_documents(text, unique=False):
        _write_out_merges(loader, node, set())
        yield node


def _compose_documents(text: str, unique: bool) -> Iterator[tuple[Any, yaml.Node]]:
    """Yield each document as a node, and the loader that constructs values from it."""
    _check_depth(text)
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            _Extent(unique).of(node)
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
    own_pairs = [pair for pair in written if pair[0].tag != _MERGE]
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
    for event in yaml.parse(text, _Loader):
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
        unique: refuse a mapping that has a key twice.
    """

    def __init__(self, unique: bool) -> None:
        self._unique = unique
        self._sizes: dict[int, int] = {}

    def of(self, node: yaml.Node) -> int:
        """Return the values of a node; raises YamlError."""
        counted = self._sizes.get(id(node))
        if counted == 0:
            raise YamlError(f"line {_line(node)}: a value contains itself: write it out")
        if counted is not None:
            return counted
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
                if self._unique:
                    _once(key, first)
                yield key
                yield value


def _once(key: yaml.Node, first: dict[str, int]) -> None:
    """Note the line of a key; raises YamlError if the mapping has it already."""
    if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
        return
    if key.value in first:
        raise YamlError(
            f"{key.value[:60]} stands twice, on lines {first[key.value]} and {_line(key)}: "
            "merge the two"
        )
    first[key.value] = _line(key)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1 if node.start_mark else 1


def _one_line(error: Exception) -> str:
    """Return what is wrong and where, without the text that it is in: it may be a password."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        return where + _QUOTED.sub("'…'", " ".join(error.problem.split()))[:_LONGEST]
    if isinstance(error, IndexError | TypeError | KeyError | AttributeError):
        return "a tag such as !!int does not fit its value"
    if "int_max_str_digits" in str(error):
        return "a number has thousands of digits"
    message = " ".join(str(error).split())
    if not isinstance(error, UnicodeError):
        message = _QUOTED.sub("'…'", message)
    return message[:_LONGEST] or type(error).__name__
