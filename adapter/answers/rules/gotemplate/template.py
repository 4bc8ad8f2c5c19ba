"""Execute a template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from adapter.answers.rules.gotemplate.errors import (
    TemplateError,
    UnknownFieldError,
    UnsupportedError,
)
from adapter.answers.rules.gotemplate.functions import (
    FUNCTIONS,
    NO_VALUE,
    extent,
    truth,
    write_value,
)
from adapter.answers.rules.gotemplate.nodes import (
    Branch,
    Call,
    Chain,
    Constant,
    Dot,
    Jump,
    Node,
    Operand,
    Output,
    Pipe,
    Text,
    Variable,
)
from adapter.answers.rules.gotemplate.parser import parse
from adapter.answers.rules.guard import raise_unexpected_as

MOST_STEPS: Final = 10_000
"""Steps of one execution: nodes, values, rounds of a loop, and parts of the texts in values."""
MOST_TEXT: Final = 64 << 10
"""Characters that one execution may write, and of one value that a function returns."""
_PART: Final = 64
"""Characters of a value's text that are one step."""


class Arguments(dict[str, object]):
    """The argument of a template: a record with a fixed set of fields."""


class GoTemplate:
    """A parsed template.

    Raises:
        TemplateError: at construction, if it does not parse.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        with raise_unexpected_as(TemplateError):
            self.nodes: Sequence[Node] = parse(text)

    def execute(self, arguments: Arguments) -> str:
        """Return what the template writes.

        Raises:
            TemplateError: the execution fails.
        """
        run = _Execution(arguments)
        with raise_unexpected_as(TemplateError):
            run.visit(self.nodes, arguments)
        return "".join(run.parts)

    def check(self, arguments: Arguments) -> None:
        """Execute the template with an example, to find fields that do not exist.

        Raises:
            UnknownFieldError, UnsupportedError: no execution can succeed.
        """
        try:
            self.execute(arguments)
        except (UnknownFieldError, UnsupportedError):
            raise
        except TemplateError:
            return  # other arguments may succeed


class _Execution:
    def __init__(self, arguments: Arguments) -> None:
        self.parts: list[str] = []
        self._variables: list[tuple[str, object]] = [("$", arguments)]
        self._steps = 0
        self._size = 0

    def visit(self, nodes: Sequence[Node], dot: object) -> str:
        """Execute nodes; return the jump that ended them, or an empty text."""
        for node in nodes:
            self._spend(1)
            match node:
                case Text(text):
                    self._write(text)
                case Output(pipeline):
                    value = self._pipeline(pipeline, dot)
                    if isinstance(value, Arguments):
                        raise UnsupportedError("the whole argument cannot be written")
                    if not pipeline.variables:
                        self._write(write_value(value))
                case Jump(keyword):
                    return keyword
                case Branch():
                    if jump := self._branch(node, dot):
                        return jump
        return ""

    def _spend(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            raise UnsupportedError(f"the template takes more than {MOST_STEPS} steps")

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > MOST_TEXT:
            raise UnsupportedError(f"the template writes more than {MOST_TEXT} characters")
        self.parts.append(text)

    def _branch(self, node: Branch, dot: object) -> str:
        declared = len(self._variables)
        value = self._pipeline(node.pipeline, dot, loops=node.keyword == "range")
        try:
            if node.keyword == "range":
                return self._range(node, value, dot)
            if truth(value):
                return self.visit(node.body, value if node.keyword == "with" else dot)
            return self.visit(node.otherwise, dot)
        finally:
            del self._variables[declared:]

    def _range(self, node: Branch, value: object, dot: object) -> str:
        elements = list(_elements(value))
        if not elements:
            return self.visit(node.otherwise, dot)
        declared = len(self._variables)
        for key, element in elements:
            self._spend(1)
            self._set(node.pipeline, key, element)
            jump = self.visit(node.body, element)
            if node.pipeline.declares:
                del self._variables[declared:]
            if jump == "break":
                break
        return ""

    def _set(self, pipeline: Pipe, key: object, element: object) -> None:
        values = (key, element) if len(pipeline.variables) == 2 else (element,)
        for name, value in zip(pipeline.variables, values, strict=False):
            self._assign(name, value, declares=pipeline.declares)

    def _assign(self, name: str, value: object, *, declares: bool) -> None:
        if declares:
            self._variables.append((name, value))
            return
        for place in range(len(self._variables) - 1, -1, -1):
            if self._variables[place][0] == name:
                self._variables[place] = (name, value)
                return

    def _pipeline(self, pipeline: Pipe, dot: object, *, loops: bool = False) -> object:
        value: object = None
        for place, command in enumerate(pipeline.commands):
            value = self._value(command, dot, (value,) if place else ())
        if not loops:
            for name in pipeline.variables:
                self._assign(name, value, declares=pipeline.declares)
        return value

    def _value(self, command: Operand | Call, dot: object, last: tuple[object, ...]) -> object:
        value = self._evaluate_command(command, dot, last)
        # Before a function takes it: what it makes of its arguments is then bounded too.
        self._spend(1 + extent(value) // _PART)
        return value

    def _evaluate_command(
        self, command: Operand | Call, dot: object, last: tuple[object, ...]
    ) -> object:
        match command:
            case Call():
                return self._call(command, dot, last)
            case Constant(value):
                return value
            case Dot(fields):
                return _follow(dot, fields)
            case Variable(name, fields):
                current = next(value for key, value in reversed(self._variables) if key == name)
                return _follow(current, fields)
            case Chain(pipeline, fields):
                return _follow(self._pipeline(pipeline, dot), fields)

    def _call(self, call: Call, dot: object, last: tuple[object, ...]) -> object:
        values: list[object] = []
        for argument in call.arguments:
            values.append(self._value(argument, dot, ()))
            if call.function in ("and", "or") and truth(values[-1]) == (call.function == "or"):
                return values[-1]
        values += last
        try:
            made = FUNCTIONS[call.function](*values)
        except (TypeError, IndexError):
            raise UnsupportedError(f"wrong number of arguments for {call.function}") from None
        if extent(made) > MOST_TEXT:
            raise UnsupportedError(f"{call.function} makes more than {MOST_TEXT} characters")
        return made


def _elements(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, Mapping):
        return iter(sorted(value.items()))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return enumerate(value)
    if value is NO_VALUE:
        return iter(())
    raise TemplateError("range cannot iterate over the value")


def _follow(value: object, fields: Sequence[str]) -> object:
    for field in fields:
        if isinstance(value, Arguments):
            if field not in value:
                names = ", ".join(f".{name}" for name in value)
                raise UnknownFieldError(f"there is no field .{field[:60]}; the fields are {names}")
            value = value[field]
        elif isinstance(value, Mapping):
            value = value.get(field, NO_VALUE)
        else:
            raise TemplateError(f"the value has no field .{field[:60]}")
    return value
