"""Compile the expressions and templates of rules; a mistake names the key that contains it."""

from __future__ import annotations

from typing import Final

from adapter.answers.rules.gotemplate.errors import TemplateError
from adapter.answers.rules.gotemplate.template import Arguments, GoTemplate
from adapter.answers.rules.pattern import Pattern, PatternError

EXAMPLE_MATCHERS: Final = 'namespace="a",pod="b"'
EXAMPLE: Final = Arguments(
    Series="series",
    LabelMatchers=EXAMPLE_MATCHERS,
    LabelValuesByName={"namespace": "a", "pod": "b"},
    GroupBy="pod",
    GroupBySlice=["pod"],
)
LABEL_EXAMPLE: Final = Arguments(Group="(?P<group>.+?)", Resource="(?P<resource>.+?)")


class RuleError(ValueError):
    """A rule cannot be used; ``key`` is the key with the mistake."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


def pattern_of(key: str, text: str) -> Pattern:
    """Return the expression of a key.

    Raises:
        RuleError: it is not a regular expression.
    """
    try:
        return Pattern(text)
    except PatternError as error:
        raise RuleError(key, f"{key}: {text[:80]!r} is not a regular expression: {error}") from None


def template_of(key: str, text: str, example: Arguments) -> GoTemplate:
    """Return the template of a key.

    Raises:
        RuleError: it does not parse, or fails with ``example``.
    """
    try:
        template = GoTemplate(text)
        template.check(example)
    except TemplateError as error:
        raise RuleError(key, f"{key}: the template {text[:80]!r}: {error}") from None
    return template


def label_pattern_of(template: GoTemplate) -> Pattern:
    """Return the expression that recognizes the labels which a template writes."""
    try:
        text = template.execute(LABEL_EXAMPLE)
    except TemplateError as error:
        raise RuleError("resources", f"resources.template: {error}") from None
    if "(?P<resource>" not in text:
        raise RuleError("resources", "resources.template does not contain <<.Resource>>")
    return pattern_of("resources", f"^{text}$")
