"""Parse a template into its syntax tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapter.answers.rules.gotemplate.errors import TemplateError, UnsupportedError
from adapter.answers.rules.gotemplate.functions import FUNCTIONS, LATER
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
from adapter.answers.rules.gotemplate.tokens import Piece, TemplateToken, pieces

LONGEST: Final = 64 << 10
"""Characters of a template."""
DEEPEST: Final = 40
"""Nesting of branches and parentheses."""
MOST_VARIABLES: Final = 100
"""Variables that are visible at one place: each use looks through them."""
MOST_DIGITS: Final = 18
"""Of a number; Go's have 64 bits."""
_END: Final = TemplateToken("end", "")
_CONSTANTS: Final = {"true": True, "false": False, "nil": None}
_BRANCHES: Final = ("if", "with", "range")
_TEMPLATES: Final = ("define", "template", "block")


def parse(template: str) -> tuple[Node, ...]:
    """Return the nodes of a template.

    Raises:
        TemplateError: the template does not parse.
        UnsupportedError: it uses what is not supported here, or too much of it.
    """
    if len(template) > LONGEST:
        raise TemplateError(f"has {len(template)} characters; the most are {LONGEST}")
    parser = _Parser(list(pieces(template)))
    nodes, word = parser.nodes(0, in_range=False)
    if word:
        raise TemplateError(f"unexpected {word}")
    return nodes


class _Parser:
    def __init__(self, all_pieces: Sequence[Piece]) -> None:
        self._pieces = all_pieces
        self._next = 0
        self._variables = ["$"]

    def nodes(self, depth: int, *, in_range: bool) -> tuple[tuple[Node, ...], str]:
        """Return the nodes up to ``end``, ``else``, or the end, and which it was.

        ``else if`` is left as the action that comes next.
        """
        if depth > DEEPEST:
            raise UnsupportedError(f"branches are nested more than {DEEPEST} deep")
        made: list[Node] = []
        while self._next < len(self._pieces):
            piece = self._pieces[self._next]
            self._next += 1
            if piece.tokens is None:
                if piece.text:
                    made.append(Text(piece.text))
                continue
            action = _Action(piece.tokens, self._variables, depth)
            word = action.keyword()
            if word in ("end", "else"):
                if word == "end":
                    action.finish()
                    return tuple(made), word
                return tuple(made), self._otherwise(action)
            made.append(self._node(action, word, depth, in_range=in_range))
        return tuple(made), ""

    def _otherwise(self, action: _Action) -> str:
        """Return ``else``, or ``else if`` with the rest of the action as the next piece."""
        if action.at_end:
            return "else"
        if action.keyword(peek=True) != "if":
            raise UnsupportedError("after else, only if is supported")
        self._next -= 1
        self._pieces = [*self._pieces]
        self._pieces[self._next] = Piece("", action.rest())
        return "else if"

    def _node(self, action: _Action, word: str, depth: int, *, in_range: bool) -> Node:
        if word in _TEMPLATES:
            raise UnsupportedError(f"{word} is not supported in a rules file")
        if word in _BRANCHES:
            return self._branch(action, word, depth, in_range=in_range or word == "range")
        if word in ("break", "continue"):
            action.finish()
            if not in_range:
                raise TemplateError(f"{word} outside range")
            return Jump(word)
        return Output(action.pipeline(most=1))

    def _branch(self, action: _Action, word: str, depth: int, *, in_range: bool) -> Node:
        declared = len(self._variables)
        pipeline = action.pipeline(most=2 if word == "range" else 1)
        body, ended = self.nodes(depth + 1, in_range=in_range)
        otherwise: tuple[Node, ...] = ()
        if ended == "else if":
            nested = self._pieces[self._next].tokens or ()
            self._next += 1
            inner = _Action(nested, self._variables, depth)
            inner.keyword()
            if word != "if":
                raise UnsupportedError(f"else if after {word} is not supported")
            if depth >= DEEPEST:
                raise UnsupportedError(f"more than {DEEPEST} times else if")
            otherwise = (self._branch(inner, "if", depth + 1, in_range=in_range),)
            ended = "end"
        elif ended == "else":
            otherwise, ended = self.nodes(depth + 1, in_range=in_range)
        if ended != "end":
            raise TemplateError(f"{word} has no end")
        del self._variables[declared:]
        return Branch(word, pipeline, body, otherwise)


class _Action:
    """The tokens of one action, or of what is in its parentheses."""

    def __init__(self, tokens: Sequence[TemplateToken], variables: list[str], depth: int) -> None:
        self._tokens = tokens
        self._at = 0
        self._variables = variables
        self._depth = depth
        self._skip()

    @property
    def at_end(self) -> bool:
        return self._peek().kind == "end"

    def keyword(self, *, peek: bool = False) -> str:
        """Take the keyword that the action begins with; empty if it begins with none."""
        token = self._peek()
        words = (*_BRANCHES, *_TEMPLATES, "end", "else", "break", "continue")
        if token.kind != "word" or token.text not in words:
            return ""
        if not peek:
            self._take()
            self._skip()
        return token.text

    def rest(self) -> tuple[TemplateToken, ...]:
        return tuple(self._tokens[self._at :])

    def finish(self) -> None:
        if not self.at_end:
            raise TemplateError(f"unexpected {self._peek().text!r} in an action")

    def pipeline(self, most: int, closing: str = "") -> Pipe:
        """Parse a pipeline up to the end of the action, or to ``closing``."""
        variables, declares = self._targets(most)
        commands: list[Operand | Call] = []
        while True:
            self._skip()
            commands.append(self._command(first=not commands))
            token = self._peek()
            if token == TemplateToken("sign", "|"):
                self._take()
                continue
            if (closing and token == TemplateToken("sign", closing)) or (
                not closing and self.at_end
            ):
                break
            raise TemplateError(f"unexpected {token.text!r} in an action")
        if closing:
            self._take()
        if declares:
            self._variables += variables
            if len(self._variables) > MOST_VARIABLES:
                raise UnsupportedError(f"has more than {MOST_VARIABLES} variables")
        return Pipe(tuple(commands), variables, declares)

    def _targets(self, most: int) -> tuple[tuple[str, ...], bool]:
        start, names = self._at, []
        while self._peek().kind == "variable":
            names.append(self._take().text)
            self._skip()
            sign = self._peek()
            if sign == TemplateToken("sign", ",") and len(names) < most:
                self._take()
                self._skip()
                continue
            declares = sign.kind == "declare"
            if not declares and sign != TemplateToken("sign", "="):
                break
            self._take()
            if not declares:
                for name in names:
                    self._check(name)
            return tuple(names), declares
        self._at = start
        return (), False

    def _command(self, *, first: bool) -> Operand | Call:
        token = self._peek()
        if token.kind == "word" and token.text not in _CONSTANTS:
            self._take()
            return Call(_function(token.text), tuple(self._arguments()))
        operand = self._operand()
        more = list(self._arguments())
        if more:
            raise TemplateError("arguments follow something that is not a function")
        if not first:
            raise TemplateError("only a function can follow | in a pipeline")
        if isinstance(operand, Constant) and operand.value is None:
            raise TemplateError("nil is not a command")
        return operand

    def _arguments(self) -> list[Operand | Call]:
        arguments: list[Operand | Call] = []
        while True:
            spaced = self._skip()
            token = self._peek()
            if token.kind in ("end", "declare") or token.text in ("|", ")", ",", "="):
                return arguments
            if not spaced:
                raise TemplateError(f"unexpected {token.text!r} in an action")
            if token.kind == "word" and token.text not in _CONSTANTS:
                self._take()
                arguments.append(Call(_function(token.text), ()))
            else:
                arguments.append(self._operand())

    def _operand(self) -> Operand:  # noqa: PLR0911 - a table of cases
        token = self._take()
        if token.kind == "string":
            return Constant(token.text)
        if token.kind == "number":
            text = token.text.replace("_", "")
            if len(text) > MOST_DIGITS:
                raise UnsupportedError(f"a number has more than {MOST_DIGITS} digits")
            return Constant(float(text) if "." in text else int(text))
        if token.kind == "word":
            return Constant(_CONSTANTS[token.text])
        if token.kind == "dot":
            return Dot()
        if token.kind == "field":
            return Dot((token.text[1:], *self._fields()))
        if token.kind == "variable":
            self._check(token.text)
            return Variable(token.text, self._fields())
        if token == TemplateToken("sign", "("):
            return self._parenthesis()
        raise TemplateError(f"unexpected {token.text or 'end'!r} in an action")

    def _parenthesis(self) -> Chain:
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnsupportedError(f"parentheses are nested more than {DEEPEST} deep")
        self._skip()
        inner = self.pipeline(most=0, closing=")")
        self._depth -= 1
        return Chain(inner, self._fields())

    def _fields(self) -> tuple[str, ...]:
        names = []
        while self._peek().kind == "field":
            names.append(self._take().text[1:])
        return tuple(names)

    def _check(self, name: str) -> None:
        if name not in self._variables:
            raise TemplateError(f"undefined variable {name}")

    def _peek(self) -> TemplateToken:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _take(self) -> TemplateToken:
        token = self._peek()
        self._at += 1
        return token

    def _skip(self) -> bool:
        """Skip white space; return whether there was any."""
        start = self._at
        while self._peek().kind == "space":
            self._at += 1
        return self._at > start


def _function(name: str) -> str:
    if name in LATER:
        raise UnsupportedError(f"the function {name} is not supported in a rules file")
    if name not in FUNCTIONS:
        raise TemplateError(f"function {name} is not defined")
    return name
