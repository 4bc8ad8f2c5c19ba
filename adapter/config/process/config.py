"""Loading of the configuration: flags override the environment, the file and the defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from adapter.config.process.configfile import ConfigFileError, read
from adapter.config.process.environment import PREFIX, unknown_variables
from adapter.config.settings import Settings
from adapter.config.settings.removedkeys import REMOVED
from apiservice.runtime.nearest import nearest

_SECRET = frozenset({"password", "headers", "params"})
_PLAINER = {"tuple_type": "must be a list"}
"""Error type of pydantic -> message in YAML's terms."""
_SHOWN: Final = 200
"""Characters of a rejected value that a message repeats."""
_FLAG: Final = "flag"
_ENVIRONMENT: Final = "environment"
_QUOTED: Final = re.compile("'([^']*)'")


class ConfigError(Exception):
    """The configuration cannot be used. ``problems`` has one line per mistake: origin, key, fix."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


# The settings' shape for the environment reader; never instantiated.
_Environment: type[BaseSettings] = cast(
    "type[BaseSettings]", create_model("_Environment", __base__=(BaseSettings, Settings))
)


def load(
    file: Path | None = None,
    flags: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Load the settings from all sources.

    Args:
        file: YAML file, or None.
        flags: dotted key -> value, from the command line; None values are absent.
        environ: the environment; the process' own by default.

    Raises:
        ConfigError: it names every unknown key and every rejected value.
    """
    environ = os.environ if environ is None else environ
    try:
        from_file = read(file) if file else {}
    except ConfigFileError as error:
        raise ConfigError([f"{file}: {error}"]) from None
    return _settings(from_file, str(file), environ, _nest(flags or {}))


def settings_of(content: Mapping[str, Any], origin: str, environ: Mapping[str, str]) -> Settings:
    """Return the settings that the content of a file and an environment give, without flags.

    Args:
        content: of the YAML file.
        origin: what messages call the file.
        environ: the variables.

    Raises:
        ConfigError: it names every unknown key and every rejected value.
    """
    return _settings(content, origin, environ, {})


def _settings(
    from_file: Mapping[str, Any],
    file: str,
    environ: Mapping[str, str],
    from_flags: Mapping[str, Any],
) -> Settings:
    problems = [f"{file}: {_describe_unknown(path)}" for path in _unknown_keys(Settings, from_file)]
    problems += [
        f"{file}: {key}: is empty; remove the key, or write {{}} for the defaults"
        for key, section in from_file.items()
        if section is None and key in Settings.model_fields
    ]
    problems += [f"environment: {problem}" for problem in unknown_variables(environ, Settings)]
    if problems:
        raise ConfigError(problems)
    from_environ = _environment(environ)
    merged = _merge(_merge(from_file, from_environ), from_flags)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        origins = ((from_flags, _FLAG), (from_environ, _ENVIRONMENT), (from_file, file))
        raise ConfigError(list(_explain(error, origins, environ))) from None


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read each variable on its own, so that an error names the variable."""
    merged: dict[str, Any] = {}
    for name, value in sorted(environ.items()):
        if not name.startswith(PREFIX):
            continue
        source = EnvSettingsSource(_Environment, env_prefix=PREFIX, env_nested_delimiter="__")
        source.env_vars = {name.lower(): value}
        try:
            merged = _merge(merged, source())
        except SettingsError:
            hint = 'lists and mappings are written as JSON, e.g. ["a", "b"]'
            raise ConfigError([f"environment: {name}: cannot be parsed; {hint}"]) from None
    return merged


def _nest(flags: Mapping[str, object]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in flags.items():
        if value is None:
            continue
        *sections, leaf = key.split(".")
        place = nested
        for section in sections:
            place = place.setdefault(section, {})
        place[leaf] = value
    return nested


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two configurations; ``over`` takes precedence. A ``None`` section counts as empty."""
    merged = {key: ({} if value is None else value) for key, value in under.items()}
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _merge(below, value) if both else value  # type: ignore[arg-type]  # `both` says so
    return merged


def _sections(model: type[BaseModel], key: str) -> type[BaseModel] | None:
    annotation: Any = model.model_fields[key].annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def _unknown_keys(
    model: type[BaseModel], content: Mapping[Any, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for key, value in content.items():
        here = (*path, str(key))
        if key not in model.model_fields:
            yield here
        elif (section := _sections(model, key)) and isinstance(value, Mapping):
            yield from _unknown_keys(section, value, here)


def _names(path: tuple[str, ...]) -> list[str]:
    """The keys of the deepest section that ``path`` reaches."""
    model: type[BaseModel] = Settings
    for key in path:
        section = _sections(model, key) if key in model.model_fields else None
        if section is None:
            return []
        model = section
    return list(model.model_fields)


def _describe_unknown(path: tuple[str, ...]) -> str:
    key = ".".join(path)
    if key in REMOVED:
        return f"{key}: is no longer a setting; remove the key, its value is fixed"
    keys = _names(path[:-1])
    close = nearest(path[-1], keys, 1)
    hint = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(keys)}"
    return f"{key}: no such key; {hint}"


def _explain(
    error: ValidationError,
    origins: tuple[tuple[Mapping[str, Any], str], ...],
    environ: Mapping[str, str],
) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        path = problem["loc"]
        message = _PLAINER.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        message += _did_you_mean(problem)
        if not path:  # a rule about several sections
            yield f"settings: {message}"
            continue
        origin = next((name for content, name in origins if _holds(content, path)), "settings")
        value = problem["input"]
        secret = (
            _SECRET.intersection(map(str, path))
            or isinstance(value, Mapping | BaseModel)
            or (isinstance(value, str) and "@" in value)  # user:password@host
        )
        text = repr(value)
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        shown = "" if secret else f" (got {text})"
        yield f"{_value_name(path, origin, origins[0][0], environ)}: {message}{shown}"


def _value_name(
    path: tuple[int | str, ...],
    origin: str,
    given: Mapping[str, Any],
    environ: Mapping[str, str],
) -> str:
    """Return what a user calls the value at ``path``, as it was given."""
    if origin == _FLAG:
        return _flags(path, given)
    key = ".".join(map(str, path))
    return f"{origin}: {_variable(path, environ) if origin == _ENVIRONMENT else key}"


def _variable(path: tuple[int | str, ...], environ: Mapping[str, str]) -> str:
    """Return the variable that gave the value at ``path``, and the place inside of its value.

    A rule about a section names every variable of the section.
    """
    wanted = [str(part).lower() for part in path]
    names = []
    for name in sorted(environ):
        parts = name.removeprefix(PREFIX).lower().split("__") if name.startswith(PREFIX) else []
        if parts and parts == wanted[: len(parts)]:
            inside = ".".join(map(str, path[len(parts) :]))
            return f"{name}: {inside}" if inside else name
        if parts[: len(wanted)] == wanted:
            names.append(name)
    return ", ".join(names) or ".".join(map(str, path))


def _did_you_mean(problem: ErrorDetails) -> str:
    """Return the nearest of the values that a choice has, as the end of a message."""
    if problem["type"] not in ("literal_error", "enum"):
        return ""
    choices = _QUOTED.findall(str(problem["ctx"]["expected"]))
    close = nearest(str(problem["input"]), choices, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _flags(path: tuple[int | str, ...], given: Mapping[str, Any]) -> str:
    """Return the flags that gave the value at ``path``, or the values below it."""
    below = ".".join(map(str, path))
    names = [
        f"--{flag.replace('_', '-')}"
        for flag, key in _PATHS.items()
        if f"{key}.".startswith(f"{below}.") and _holds(given, tuple(key.split(".")))
    ]
    return ", ".join(names) or below


def _holds(content: Any, path: tuple[int | str, ...]) -> bool:
    """Whether the value at ``path`` was given by ``content``."""
    for key in path:
        try:
            content = content[key]
        except (KeyError, IndexError, TypeError):
            return not isinstance(content, Mapping)
    return True


_PATHS: Final = {
    "host": "server.host",
    "port": "server.port",
    "kubeconfig": "cluster.kubeconfig",
    "context": "cluster.context",
    "pods_file": "cluster.pods_file",
    "source": "source.kind",
    "prometheus_url": "source.prometheus.url",
    "apply": "nodepool.apply",
    "prometheus_adapter_config": "rules.file",
    "record": "recording.file",
    "log_level": "log.level",
    "log_format": "log.format",
}
_OTHERS: Final = frozenset({"config", "check", "once"})
"""Flags that are not settings."""


def flag_values(given: Mapping[str, object]) -> dict[str, object]:
    """Return path of a setting -> value of its flag; None for a flag that was not given.

    Args:
        given: a command's parameters, by click's names.
    """
    return {_PATHS[flag]: value for flag, value in given.items() if flag not in _OTHERS}
