"""Templates: what Go's text/template writes, as one run of it with these templates showed."""

from __future__ import annotations

import pytest

from adapter.answers.rules.gotemplate.errors import (
    TemplateError,
    UnknownFieldError,
    UnsupportedError,
)
from adapter.answers.rules.gotemplate.parser import DEEPEST, LONGEST
from adapter.answers.rules.gotemplate.template import MOST_TEXT, Arguments, GoTemplate

ARGUMENTS = Arguments(
    Series="s",
    LabelMatchers='a="b",c="d"',
    LabelValuesByName={"namespace": "ns", "pod": "p"},
    GroupBy="pod",
    GroupBySlice=["pod", "x"],
)
WRITTEN = {
    "sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)": 'sum(s{a="b",c="d"}) by (pod)',
    "<<range $k, $v := .LabelValuesByName>><<$k>>=<<$v>> <<end>>": "namespace=ns pod=p ",
    '<<range $k,$v:=.LabelValuesByName>><<if ne $k "namespace">><<$k>>=~"<<$v>>",<<end>><<end>>': (
        'pod=~"p",'
    ),
    "by ( \n <<- range $i, $v := .GroupBySlice >><<if $i>>,<<end>><<$v>><<- end>> )": "by (pod,x )",
    '<<index .LabelValuesByName "service">>|<<.LabelValuesByName.pod>>': "|p",
    "<<.LabelValuesByName.nope>>": "<no value>",
    "<<.GroupBySlice>> <<.LabelValuesByName>>": "[pod x] map[namespace:ns pod:p]",
    '<<printf "%q" .Series | printf "%s-%s" "x">>': 'x-"s"',
    '<<if eq .GroupBy "q">>a<<else if eq .GroupBy "pod">>b<<else>>c<<end>>': "b",
    "a <<- /* c */ ->> b": "ab",
    "<</* c */>>x": "x",
    "<<$x := 1>><<if true>><<$x = 2>><<end>><<$x>>": "2",
    "<<range $i := .GroupBySlice>><<if eq $i `pod`>><<continue>><<end>><<$i>>!<<end>>": "x!",
    "<<range .GroupBySlice>><<break>><<end>>ok": "ok",
    '<<print 1 2 "a" 3>>': "1 2a3",
    "<<len .GroupBySlice>> <<slice .Series 0 1>> <<index .GroupBySlice 1>>": "2 s x",
    "<<with .LabelValuesByName>><<.pod>><<$.Series>><<end>>": "ps",
    "<<.LabelValuesByName.pod | printf `%s|%s` .Series>>": "s|p",
    '<<or "" .Series "x">> <<and "" .Series>> <<not .Series>>': "s  false",
    '<<lt 1 2>> <<ge "b" "a">> <<le 2 2>> <<gt 1 2>> <<-3>>': "true true true false -3",
    "<<$a := .Series>><<$a>>  <<- ` z` ->>  !": "s z!",
    "<<`raw`>><<(.LabelValuesByName).pod>><<1.5>>": "rawp1.5",
}


@pytest.mark.parametrize(("template", "text"), WRITTEN.items())
def test_a_template_writes_what_go_writes(template: str, text: str) -> None:
    assert GoTemplate(template).execute(ARGUMENTS) == text


@pytest.mark.parametrize(
    "template",
    [
        *("<<.Series", "<<end>>", "<<if .Series>>a", "<<if>>a<<end>>", "{<<if .Series}", "<<>>"),
        *("<<join .GroupBySlice `,`>>", "<<$x>>", "<<with $x := .Series>><<end>><<$x>>", "<<nil>>"),
        *("x<<break>>", "<<if .Series>>a<<else>>b<<else>>c<<end>>", "<<.Series .GroupBy>>"),
        *("<<.Series | .GroupBy>>", '<<"\\z">>', "<</* c"),
    ],
)
def test_what_go_does_not_parse_is_an_error(template: str) -> None:
    with pytest.raises(TemplateError):
        GoTemplate(template)


@pytest.mark.parametrize(
    "template",
    [
        *(
            "<<eq 1 `a`>>",
            "<<index .GroupBySlice 5>>",
            "<<.Series.Foo>>",
            "<<range .Series>><<end>>",
        ),
        *("<<index .LabelValuesByName 3>>", "<<len 3>>", "<<slice .Series 5>>"),
    ],
)
def test_what_go_cannot_execute_is_an_error_then(template: str) -> None:
    with pytest.raises(TemplateError):
        GoTemplate(template).execute(ARGUMENTS)
    GoTemplate(template).check(ARGUMENTS)


def test_a_field_that_does_not_exist_is_found_before_any_request() -> None:
    with pytest.raises(UnknownFieldError, match=r"\.Seris.*\.Series"):
        GoTemplate("<<.Seris>>").check(ARGUMENTS)


@pytest.mark.parametrize(
    "template",
    [
        *("<<html .Series>>", "<<template `x`>>", "<<define `x`>><<end>>", "<<$>>", "<<.>>"),
        *("<<printf `%5d` 3>>", "<<printf `%s` 3>>", "<<printf `%d`>>", "<<not>>"),
        "<<if .Series>>" * (DEEPEST + 2) + "<<end>>" * (DEEPEST + 2),
        "<<" + "(" * (DEEPEST + 2) + ".Series" + ")" * (DEEPEST + 2) + ">>",
    ],
)
def test_what_is_not_supported_is_named(template: str) -> None:
    with pytest.raises(UnsupportedError):
        GoTemplate(template).check(ARGUMENTS)


def test_a_template_and_its_output_are_bounded() -> None:
    with pytest.raises(TemplateError, match="characters"):
        GoTemplate("x" * (LONGEST + 1))
    many = Arguments(Many=["x"] * 200)
    nested = "<<range $.Many>>" * 3 + "x" + "<<end>>" * 3
    with pytest.raises(UnsupportedError, match="steps"):
        GoTemplate(nested).execute(many)
    with pytest.raises(UnsupportedError, match="characters"):
        GoTemplate("<<range .Many>><<$.Long>><<end>>").execute(
            Arguments(Many=["x"] * 200, Long="x" * (MOST_TEXT // 100))
        )
