"""What the configuration accepts, and what it says about what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.config.process.config import ConfigError, load
from adapter.config.settings import Settings


def write(folder: Path, text: str) -> Path:
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_nothing_need_be_set() -> None:
    assert load(environ={}) == Settings()


@pytest.mark.parametrize("text", ["# nothing yet\nsource: {}\n", "{}"])
def test_empty_mappings_are_the_defaults(text: str, tmp_path: Path) -> None:
    assert load(write(tmp_path, text), environ={}) == Settings()


def test_flags_beat_environment_beats_file_beats_defaults(tmp_path: Path) -> None:
    file = write(tmp_path, "server: {port: 1, drain: 1s}\nvalues: {window: 1m}\n")
    environ = {"GMA_SERVER__PORT": "2", "GMA_SERVER__DRAIN": "2s"}
    settings = load(file, {"server.port": 3, "server.drain": None}, environ)
    assert (settings.server.port, settings.server.drain) == (3, 2.0)
    assert (settings.values.window, settings.values.collect_interval) == (60.0, 30.0)


def test_lists_and_mappings_in_the_environment_are_json() -> None:
    environ = {
        "GMA_SERVER__CERT_NAMES": '["a.b.svc"]',
        "GMA_SOURCE__PROMETHEUS__HEADERS": '{"X-Scope-OrgID": "gpu"}',
    }
    settings = load(environ=environ)
    assert settings.server.cert_names == ("a.b.svc",)
    assert settings.source.prometheus.headers == {"X-Scope-OrgID": "gpu"}


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5.0), ("5s", 5.0), ("1m30s", 90.0), ("250ms", 0.25), ("2h", 7200.0)]
)
def test_a_duration_is_seconds_or_go_style(text: str, seconds: float) -> None:
    settings = load(environ={"GMA_SOURCE__SCRAPE__INTERVAL": text})
    assert settings.source.scrape.interval == seconds


REFUSED = {
    "selector that is none": (
        "source: {scrape: {exporters: [{name: x, selector: 'a in (', port: 1}]}}",
        "{file}: source.scrape.exporters.0.selector: is not a label selector: ",
    ),
    "password in a URL": (
        "source: {prometheus: {url: 'http://u:secret@h'}}",
        "{file}: source.prometheus.url: must not contain a user or password; use the settings",
    ),
    "query in a base URL": (
        "source: {prometheus: {url: 'http://h/?tenant=a'}}",
        "{file}: source.prometheus.url: must end with the path prefix",
    ),
    "unknown section": ("souce: {}", "{file}: souce: no such key; did you mean source?"),
    "unknown key": (
        "source: {scrape: {intervall: 5s}}",
        "{file}: source.scrape.intervall: no such key; did you mean interval?",
    ),
    "key unlike any": ("server: {zzz: 1}", "{file}: server.zzz: no such key; known keys: host, "),
    "out of range": ("server: {port: 99999}", "{file}: server.port: Input should be less than"),
    "not a duration": (
        "values: {window: soon}",
        "values.window: 'soon' is not a duration; write",
    ),
    "zero interval": ("values: {window: 0}", "values.window: Input should be greater than 0"),
    "a window of more than is kept": (
        "{values: {window: 30m}, source: {scrape: {interval: 1s}}}",
        (
            "values.window: 1800 s need more than 720 samples at one sample in 1 s; set "
            "at most 720, or a longer source.scrape interval"
        ),
    ),
    "endless interval": ("values: {window: .inf}", "values.window: Input should be"),
    "no URL": (
        "source: {scrape: {targets: [{url: nope}]}}",
        "{file}: source.scrape.targets.0.url: Input should be a valid URL",
    ),
    "a page's pod without its namespace": (
        "source: {scrape: {targets: [{url: 'http://a/', pod: llm}]}}",
        "{file}: source.scrape.targets.0.pod: must be namespace/name",
    ),
    "a page's path without its slash": (
        "source: {scrape: {inference: {path: metrics}}}",
        "{file}: source.scrape.inference.path: must begin with / and have no blanks",
    ),
    "an exporter's port that is none": (
        "source: {scrape: {exporters: [{name: x, selector: a, port: 94000}]}}",
        "{file}: source.scrape.exporters.0.port: must be 1-65535, or the name of a container port",
    ),
    "an exporter's port in quotes": (
        "source: {scrape: {exporters: [{name: x, selector: a, port: '9400'}]}}",
        "source.scrape.exporters.0.port: must be a container port's name, such as metrics; a ",
    ),
    "an exporter's path without its slash": (
        "source: {scrape: {exporters: [{name: x, selector: a, port: 1, path: metrics}]}}",
        "{file}: source.scrape.exporters.0.path: must begin with / and have no blanks",
    ),
    "a port name that no container can have": (
        "source: {scrape: {inference: {port_names: [Http_Metrics]}}}",
        "{file}: source.scrape.inference.port_names.0: must be a container port's name",
    ),
    "a pattern of namespaces": (
        "source: {scrape: {inference: {namespaces: ['team-*']}}}",
        "{file}: source.scrape.inference.namespaces.0: must be the name of a namespace",
    ),
    "one where several may be": (
        "source: {scrape: {inference: {port_names: metrics}}}",
        "{file}: source.scrape.inference.port_names: must be a list (got 'metrics')",
    ),
    "a Service without its namespace": (
        "external: {service: gpu}",
        "{file}: external.service: must be NAMESPACE/NAME of a Service, or empty (got 'gpu')",
    ),
    "a certificate for no name": ("server: {cert_names: []}", "{file}: server.cert_names: "),
    "a name that a certificate cannot have": (
        "server: {cert_names: [ä.example]}",
        "{file}: server.cert_names.0: must be a DNS name or an address, an international name",
    ),
    "prometheus without URL": (
        "source: {kind: prometheus}",
        "{file}: source: kind prometheus needs prometheus.url (--prometheus-url), e.g. http://",
    ),
    "half a key pair": ("server: {cert_file: /a}", "server: cert_file and key_file go together"),
    "two credentials": (
        "source: {prometheus: {username: a, bearer_token_file: /b}}",
        "source.prometheus: username and bearer_token_file exclude each other",
    ),
    "a removed key": (
        "server: {keep_alive: 60}",
        "{file}: server.keep_alive: is no longer a setting; remove the key, its value is fixed",
    ),
    "a removed key in a deep section": (
        "source: {prometheus: {auth: {aws: {service: aps}}}}",
        "{file}: source.prometheus.auth.aws.service: is no longer a setting; remove the key",
    ),
    "an empty file": (
        "",
        "{file}: is empty; write at least one section, such as 'source:', or {{}}",
    ),
    "a section that was cut off": (
        "log: {}\nsource:\n",
        "{file}: source: is empty; remove the key, or write {{}} for the defaults",
    ),
    "nothing but a comment": ("# source:\n", "{file}: is empty"),
    "a section twice": (
        "source: {scrape: {discover: false}}\nlog: {}\nsource: {scrape: {interval: 1s}}\n",
        "{file}: is not YAML: source stands twice, on lines 1 and 3: merge the two",
    ),
    "a key twice, deep down": (
        "source:\n  scrape:\n    targets:\n    - url: http://a/\n      url: http://b/\n",
        "{file}: is not YAML: url stands twice, on lines 4 and 5: merge the two",
    ),
    "more than a ConfigMap holds": (
        "# " + "x" * (1 << 20),
        "{file}: is larger than 1048576 bytes; it cannot be a settings file",
    ),
    "no mapping": ("- a", "{file}: must be a mapping of sections"),
    "no YAML": ("a: [", "{file}: is not YAML: line 2: did not find"),
    "no YAML, on its second line": ('log:\n  level: "x', "line 2: found unexpected end of stream"),
    "no date": ("values: 2026-99-99", "{file}: values: Input should be"),
    "too deep": ("[" * 1000, "{file}: is not YAML: line 1: values are nested more than"),
    "a tag without a value": (
        "server: {port: !!int ''}",
        "{file}: is not YAML: line 1: a tag such as",
    ),
    "a number that is a book": (
        "server: {port: " + "9" * 5_000 + "}",
        "{file}: server.port: Unable to parse input string as an integer",
    ),
    "two at once": ("server: {port: x}\nlog: {level: loud}", "log.level: Input should be 'debug'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_names_the_origin_the_key_and_the_fix(name: str, tmp_path: Path) -> None:
    text, expected = REFUSED[name]
    file = write(tmp_path, text)
    with pytest.raises(ConfigError) as refusal:
        load(file, environ={})
    assert expected.format(file=file) in str(refusal.value)


def test_every_mistake_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(write(tmp_path, "server: {port: x}\nlog: {level: loud}"), environ={})
    assert len(refusal.value.problems) == 2


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"/no/such\.yaml: cannot be read .* --config"):
        load(Path("/no/such.yaml"), environ={})


ENVIRONMENT_REFUSED = {
    "GMA_SORCE__KIND": ("x", "GMA_SORCE__KIND: no such variable; did you mean GMA_SOURCE__KIND?"),
    "GMA_SERVER_PORT": (
        "8443",
        "GMA_SERVER_PORT: no such variable; did you mean GMA_SERVER__PORT?",
    ),
    "GMA_SERVR__PORT": (
        "8443",
        "GMA_SERVR__PORT: no such variable; did you mean GMA_SERVER__PORT?",
    ),
    "GMA_KEDA_PORT": ("6001", "GMA_KEDA_PORT: no such variable; did you mean GMA_KEDA__PORT?"),
    "GMA_PORT": ("8443", "GMA_PORT: no such variable; "),
    "GMA_SERVER__KEEP_ALIVE": (
        "60",
        "GMA_SERVER__KEEP_ALIVE: is no longer a setting; unset the variable, its value is fixed",
    ),
    "GMA_ZZZZZZZ": ("1", "docs/settings.md lists the variables"),
    "GMA_SERVER__PORT__X": (
        "1",
        "GMA_SERVER__PORT__X: no such variable; did you mean GMA_SERVER__",
    ),
    "GMA_SOURCE__KIND": (
        "graphite",
        "environment: GMA_SOURCE__KIND: Input should be 'scrape', 'prometheus' or 'azure_logs'",
    ),
    "GMA_METRICS": ('[{"name": "a"}]', "environment: GMA_METRICS: 0: needs either series or query"),
    "GMA_SOURCE__PROMETHEUS__CERT_FILE": (
        "/a",
        "environment: GMA_SOURCE__PROMETHEUS__CERT_FILE: cert_file and key_file go together",
    ),
    "GMA_SERVER__CERT_NAMES": ("a,b", 'written as JSON, e.g. ["a", "b"]'),
}


@pytest.mark.parametrize("name", ENVIRONMENT_REFUSED)
def test_an_error_names_the_variable(name: str) -> None:
    value, expected = ENVIRONMENT_REFUSED[name]
    with pytest.raises(ConfigError) as refusal:
        load(environ={name: value})
    assert str(refusal.value).startswith("environment: ")
    assert expected in str(refusal.value)


@pytest.mark.parametrize("service", ["GMA", "GMA_SERVER", "GMA_KEDA"])
@pytest.mark.parametrize("address", ["10.0.0.1", "fd00::1"])
def test_variables_that_kubernetes_adds_for_a_service_are_passed_over(
    service: str, address: str
) -> None:
    url = f"tcp://{address}:443"
    environ = {
        f"{service}_SERVICE_HOST": address,
        f"{service}_SERVICE_PORT": "443",
        f"{service}_SERVICE_PORT_HTTPS": "443",
        f"{service}_PORT": url,
        f"{service}_PORT_443_TCP": url,
        f"{service}_PORT_443_TCP_PROTO": "tcp",
        f"{service}_PORT_443_TCP_PORT": "443",
        f"{service}_PORT_443_TCP_ADDR": address,
    }
    assert load(environ=environ) == Settings()


def test_a_mappings_entry_can_be_a_variable_of_its_own() -> None:
    settings = load(environ={"GMA_SOURCE__PROMETHEUS__PARAMS__dedup": "true"})
    assert settings.source.prometheus.params == {"dedup": "true"}


def test_a_refused_url_with_a_password_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(write(tmp_path, "source: {prometheus: {url: 'http://u:hush@x y'}}"), environ={})
    assert "hush" not in str(refusal.value)


WITH_A_SECRET = {
    "a password that is a list": (
        "source: {prometheus: {password: [hunter2]}}",
        "source.prometheus.password",
    ),
    "a parameter that is a list": (
        "source: {prometheus: {params: {key: [hunter2]}}}",
        "source.prometheus.params.key",
    ),
    "a quote that is not closed": ('source: {prometheus: {password: "hunter2', "is not YAML"),
    "an alias": ("source: {prometheus: {password: *hunter2}}", "undefined alias"),
    "a tag": ("source: {prometheus: {password: !hunter2 x}}", "an unknown tag"),
}


@pytest.mark.parametrize(("text", "said"), WITH_A_SECRET.values(), ids=WITH_A_SECRET)
def test_a_refused_secret_is_not_repeated(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(write(tmp_path, text), environ={})
    assert said in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_a_value_that_resembles_a_choice_gets_a_suggestion(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("source: {kind: prometeus}\nsharing: {policy: equaal}\n")
    with pytest.raises(ConfigError) as raised:
        load(file, environ={})
    first, second = raised.value.problems
    assert "; did you mean prometheus? (got 'prometeus')" in first
    assert "; did you mean equal? (got 'equaal')" in second
