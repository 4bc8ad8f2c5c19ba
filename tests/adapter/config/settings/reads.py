"""Which settings the code reads: attributes of expressions whose type is a class of settings.

Types follow from annotations of parameters, fields and results, and from assignments of what has
such a type. A name alone would not do: every second class has an ``interval``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

import adapter.config.settings

ROOT: Final = Path(adapter.config.settings.__file__).parents[3]
_VALIDATORS: Final = ("model_validator", "field_validator", "field_serializer")

Read = tuple[str, str]
"""Class and field."""
Kind = type[BaseModel]


def classes() -> dict[str, Kind]:
    """Every class of settings by its name."""
    kinds: dict[str, Kind] = {}
    names = [module.name for module in pkgutil.iter_modules(adapter.config.settings.__path__)]
    for module in map(importlib.import_module, ["adapter.config.settings", *_below(names)]):
        for value in vars(module).values():
            model = isinstance(value, type) and issubclass(value, BaseModel)
            if model and value.__module__.startswith("adapter.config.settings"):
                kinds[value.__name__] = value
    return kinds


def _below(names: list[str]) -> list[str]:
    return [f"adapter.config.settings.{name}" for name in names]


def fields(kinds: Mapping[str, Kind]) -> Iterator[Read]:
    """Yield each field with the class that declares it."""
    for name, kind in kinds.items():
        yield from ((name, key) for key in kind.model_fields if key in kind.__annotations__)


def reads() -> set[Read]:
    """Return the fields that the code of ``adapter`` reads, other than to validate them."""
    finder = Finder(classes())
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "adapter").rglob("*.py"))]
    modules = [ast.parse(text) for text in texts if "ettings" in text]
    for _ in range(2):  # a type found in one module gives types in others
        for module in modules:
            finder.learn(module)
    for module in modules:
        finder.read(module)
    return finder.found


@dataclass
class Finder:
    """Finds them in parsed modules, given the classes by name."""

    kinds: Mapping[str, Kind]
    results: dict[str, Kind] = field(default_factory=dict)
    """Function or property -> the settings that it returns."""
    found: set[Read] = field(default_factory=set)
    attributes: dict[str, dict[str, Kind]] = field(default_factory=dict)
    """Class -> attribute -> its type."""

    def learn(self, module: ast.Module) -> None:
        """Note the types that the functions and classes of a module state."""
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                kind = self._named(node.returns)
                if kind is not None:
                    self.results[node.name] = kind
            elif isinstance(node, ast.ClassDef):
                self._learn_class(node)

    def _learn_class(self, node: ast.ClassDef) -> None:
        known = self.attributes.setdefault(node.name, {})
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                self._note(known, part.target.id, self._named(part.annotation))
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                self._note(known, part.name, self._named(part.returns))
                scope = self._scope(part, node.name)
                for inner in ast.walk(part):
                    if isinstance(inner, ast.Assign):
                        for target, value in _pairs(inner):
                            if _is_own(target):
                                kind = self._kind(value, scope)
                                self._note(known, typing.cast("Any", target).attr, kind)

    def _note(self, known: dict[str, Any], name: str, kind: Any) -> None:
        if kind is not None:
            known[name] = kind

    def read(self, module: ast.Module) -> None:
        """Note what the functions of a module read."""
        self._functions(module, "")

    def _functions(self, node: ast.AST, owner: str) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.ClassDef):
                self._functions(part, part.name)
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                if not _validates(part):
                    scope = self._scope(part, owner)
                    for inner in ast.walk(part):
                        if isinstance(inner, ast.Attribute):
                            self._kind(inner, scope, note=True)
                        elif isinstance(inner, ast.keyword) and inner.arg is None:
                            self._note_spread(inner.value, scope)
            else:
                self._functions(part, owner)

    def _note_spread(self, node: ast.AST, scope: Mapping[str, Any]) -> None:
        """Note all fields of ``f(**settings.part.model_dump())``: each is an argument of f."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            kind = self._kind(node.func.value, scope)
            if node.func.attr == "model_dump" and kind is not None and not isinstance(kind, str):
                self.found.update((kind.__name__, name) for name in kind.model_fields)

    def _scope(self, function: Any, owner: str) -> dict[str, Any]:
        """Return the types of a function's names."""
        scope: dict[str, Any] = {}
        if owner in self.kinds:
            scope["self"] = self.kinds[owner]
        elif owner:
            scope["self"] = owner
        nodes = list(ast.walk(function))
        for node in nodes:
            if isinstance(node, ast.arg) and node.annotation is not None:
                self._note(scope, node.arg, self._named(node.annotation))
        bindings = [pair for node in nodes for pair in _bindings(node)]
        for _ in range(2):  # the walk is not in the order of the text
            for name, value in bindings:
                self._note(scope, name, self._kind(value, scope))
        return scope

    def _kind(self, node: ast.AST, scope: Mapping[str, Any], *, note: bool = False) -> Any:
        """Return the class of settings that an expression is, or whose collection it is."""
        match node:
            case ast.Name():
                return scope.get(node.id) or self.kinds.get(node.id)
            case ast.Attribute():
                return self._attribute(self._kind(node.value, scope), node.attr, note=note)
            case ast.Call():
                return self._called(node, scope)
            case ast.IfExp() | ast.BoolOp():
                parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
                kinds = [self._kind(part, scope) for part in parts]
                return next((kind for kind in kinds if kind is not None), None)
            case ast.Await() | ast.Starred() | ast.Subscript():
                return self._kind(node.value, scope)
        return None

    def _attribute(self, base: Any, name: str, *, note: bool) -> Any:
        if isinstance(base, str):
            return self.attributes.get(base, {}).get(name)
        return None if base is None else self._member(base, name, note=note)

    def _member(self, base: Kind, name: str, *, note: bool) -> Any:
        declared = base.model_fields.get(name)
        if declared is None:
            attribute = getattr(base, name, None)
            hints = typing.get_type_hints(attribute.fget) if isinstance(attribute, property) else {}
            return self._within(hints.get("return"))
        if note:
            owner = next(kind for kind in base.__mro__ if name in inspect.get_annotations(kind))
            self.found.add((owner.__name__, name))
        return self._within(declared.annotation)

    def _called(self, node: ast.Call, scope: Mapping[str, Any]) -> Any:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr in ("items", "values", "model_copy", "get", "model_validate"):
                return self._kind(function.value, scope)
            return self.results.get(function.attr)
        if isinstance(function, ast.Name):
            if function.id in ("enumerate", "sorted", "tuple", "list", "replace", "reversed"):
                return self._kind(node.args[0], scope) if node.args else None
            return self.kinds.get(function.id) or self.results.get(function.id)
        return None

    def _named(self, annotation: ast.AST | None) -> Any:
        """Return the class of settings, or of another attribute's owner, that is annotated."""
        if annotation is None:
            return None
        for node in ast.walk(annotation):
            if isinstance(node, ast.Name):
                if node.id in self.kinds:
                    return self.kinds[node.id]
                if self.attributes.get(node.id):
                    return node.id
        return None

    def _within(self, annotation: Any) -> Any:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
        kinds = map(self._within, typing.get_args(annotation))
        return next((kind for kind in kinds if kind is not None), None)


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a statement or expression gives a value, and the value."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    match node:
        case ast.Assign():
            pairs += _pairs(node)
        case ast.NamedExpr():
            pairs.append((node.target, node.value))
        case ast.For() | ast.comprehension():
            several = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            pairs += [(target, node.iter) for target in several]
    yield from ((target.id, value) for target, value in pairs if isinstance(target, ast.Name))


def _pairs(node: ast.Assign) -> Iterator[tuple[ast.AST, ast.AST]]:
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=False)
        else:
            yield target, node.value


def _is_own(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _validates(function: Any) -> bool:
    return any(
        word in ast.unparse(decorator)
        for decorator in function.decorator_list
        for word in _VALIDATORS
    )
