"""Types of single settings: durations, ports, selectors, URLs."""

from __future__ import annotations

from typing import Annotated, Final

import durationpy
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, HttpUrl

from adapter.pipeline.catalog.promqltext import complaint
from apiservice.labels.selector import SelectorError, parse

_LONGEST = 64
"""Characters of a duration."""

ADVANCED: Final = "advanced"
"""Marks a setting, by ``Annotated[T, ADVANCED]``, that few installations change. The settings
page lists it in a table of its own."""


def _duration(value: object) -> object:
    """Return the seconds of a Go-style duration; numbers are returned unchanged."""
    if not isinstance(value, str):
        return value
    if len(value) > _LONGEST:
        raise ValueError(f"has {len(value)} characters; write seconds or e.g. 5s, 1m30s")
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return float(durationpy.from_str(value.strip()).total_seconds())
    except Exception as error:
        raise ValueError(f"{value!r} is not a duration; write seconds or e.g. 5s, 1m30s") from error


def _selector(text: str) -> str:
    try:
        parse(text)
    except SelectorError as error:
        raise ValueError(f"is not a label selector: {error}; write e.g. app=exporter") from None
    return text


def _promql(text: str) -> str:
    wrong = complaint(text)
    if wrong is not None:
        raise ValueError(wrong)
    return text.strip()


def _check_no_login(url: HttpUrl) -> HttpUrl:
    """Reject a URL with a user or password: logs and readiness show URLs."""
    if url.username is not None or url.password is not None:
        raise ValueError("must not contain a user or password; use the settings for credentials")
    return url


def _check_path_prefix(url: HttpUrl) -> HttpUrl:
    if url.query is not None or url.fragment is not None:
        raise ValueError("must end with the path prefix: leave out what follows ? or #")
    return _check_no_login(url)


def _check_https(url: HttpUrl) -> HttpUrl:
    if url.scheme != "https":
        raise ValueError("must begin with https://: the adapter sends a token to it")
    return url


Seconds = Annotated[float, BeforeValidator(_duration), Field(ge=0, allow_inf_nan=False)]
Interval = Annotated[float, BeforeValidator(_duration), Field(gt=0, le=86400, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=0, le=65535)]
Promql = Annotated[str, AfterValidator(_promql)]
LabelSelector = Annotated[str, AfterValidator(_selector)]
PageUrl = Annotated[HttpUrl, AfterValidator(_check_no_login)]
BaseUrl = Annotated[HttpUrl, AfterValidator(_check_path_prefix)]
SecureUrl = Annotated[HttpUrl, AfterValidator(_check_path_prefix), AfterValidator(_check_https)]


class Section(BaseModel):
    """A frozen part of the configuration that rejects unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
