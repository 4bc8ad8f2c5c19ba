"""Environment variables that start with ``GMA_``: those that name no setting are reported.

Kubernetes adds variables for every Service of a namespace to its pods ("service links"). A Service
named ``gma-server`` gives ``GMA_SERVER_PORT=tcp://10.0.0.7:443``, and a user who forgets an
underscore writes ``GMA_SERVER_PORT=8443``. Only the value distinguishes the two, see
https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_origin

from pydantic import BaseModel

from adapter.config.settings.removedkeys import REMOVED
from apiservice.runtime.nearest import nearest

PREFIX: Final = "GMA_"
CONFIG: Final = "GMA_CONFIG"
"""Names the settings file; it is not a setting itself."""

_URL = r"(tcp|udp|sctp)://\S+:\d+"
_LINKS: Final = tuple(
    (re.compile(name), re.compile(value))
    for name, value in (
        (r".*_SERVICE_HOST", r"[0-9a-fA-F.:]+"),
        (r".*_SERVICE_PORT(_[A-Z0-9_]+)?", r"\d+"),
        (r".*_PORT", _URL),
        (r".*_PORT_\d+_(TCP|UDP|SCTP)", _URL),
        (r".*_PORT_\d+_(TCP|UDP|SCTP)_PROTO", r"tcp|udp|sctp"),
        (r".*_PORT_\d+_(TCP|UDP|SCTP)_PORT", r"\d+"),
        (r".*_PORT_\d+_(TCP|UDP|SCTP)_ADDR", r"[0-9a-fA-F.:]+"),
    )
)


def unknown_variables(environ: Mapping[str, str], model: type[BaseModel]) -> Iterator[str]:
    """Describe every ``GMA_*`` variable that does not name a setting of ``model``.

    Args:
        environ: the environment.
        model: the settings; a section is a nested model.
    """
    variables = dict(_variables(model))
    removed = {PREFIX + key.replace(".", "__").upper() for key in REMOVED}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name == CONFIG or _is_known(name, variables):
            continue
        if name in removed:
            yield f"{name}: is no longer a setting; unset the variable, its value is fixed"
        elif not _service_link(name, environ):
            yield f"{name}: no such variable; {_suggestion(name, variables)}"


def _variables(model: type[BaseModel], prefix: str = PREFIX) -> Iterator[tuple[str, Any]]:
    for key, field in model.model_fields.items():
        name = prefix + key.upper()
        annotation = field.annotation
        yield name, annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _variables(annotation, f"{name}__")


def _is_known(name: str, variables: Mapping[str, Any]) -> bool:
    if name in variables:
        return True
    # One entry of a mapping, as in GMA_SOURCE__PROMETHEUS__PARAMS__dedup.
    setting, separator, entry = name.rpartition("__")
    return bool(separator and entry) and get_origin(variables.get(setting)) is dict


def _service_link(name: str, environ: Mapping[str, str]) -> bool:
    value = environ[name]
    return any(link.fullmatch(name) and form.fullmatch(value) for link, form in _LINKS)


def _suggestion(name: str, variables: Mapping[str, Any]) -> str:
    def merge_underscores(text: str) -> str:
        return re.sub("_+", "_", text)

    alike = [
        variable for variable in variables if merge_underscores(variable) == merge_underscores(name)
    ]
    close = alike or nearest(name, variables, 1)
    if close:
        return f"did you mean {close[0]}?"
    return "docs/settings.md lists the variables; two underscores join sections and keys"
