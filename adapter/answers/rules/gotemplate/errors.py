"""The errors of a template."""

from __future__ import annotations


class TemplateError(ValueError):
    """The template cannot be used or executed; the text says what is wrong."""


class UnknownFieldError(TemplateError):
    """The template reads a field that its argument does not have, so no execution can succeed."""


class UnsupportedError(TemplateError):
    """The template uses a part of Go's text/template that is not supported here."""
