"""Faults of prometheus-adapter's rules, and of other metrics servers behind the adapter."""

from __future__ import annotations

from collections.abc import Callable

from adapter.tools.doctor.facts import Fact, Facts, SelfPage, UnreadError
from tests.adapter.tools.doctor.clean import (
    FROM_STORE,
    NOW,
    RULES,
    apiservice,
    given_rules,
    own_workload,
    review,
    rules_page,
)

Fault = Callable[[Facts], None]
FAULTS: dict[str, list[Fault]] = {}
RESOURCE_METRICS = FROM_STORE.replace("config.yaml}", "config.yaml, resource_metrics: true}")


def fault(identity: str) -> Callable[[Fault], Fault]:
    """Register a fault of a check, in a cluster with rules and a delegate."""

    def register(change: Fault) -> Fault:
        def changed(facts: Facts) -> None:
            facts.release = Fact(own_workload(FROM_STORE))
            change(facts)

        changed.__name__ = change.__name__
        FAULTS.setdefault(identity, []).append(changed)
        return change

    return register


@fault("GMA014")
def external_metrics_of_keda(facts: Facts) -> None:
    facts.apiservices = Fact([apiservice("v1beta1.external.metrics.k8s.io", "keda/keda-metrics")])


@fault("GMA014")
def external_metrics_of_a_delegate(facts: Facts) -> None:
    name = "v1beta1.external.metrics.k8s.io"
    facts.apiservices = Fact([apiservice(name, "monitoring/prometheus-adapter")])


@fault("GMA014")
def resource_metrics_of_metrics_server(facts: Facts) -> None:
    facts.release = Fact(own_workload(RESOURCE_METRICS))
    facts.apiservices = Fact([apiservice("v1beta1.metrics.k8s.io", "kube-system/metrics-server")])


@fault("GMA721")
def a_template_with_an_unknown_field(facts: Facts) -> None:
    given_rules(facts, RULES.replace("<<.Series>>", "<<.Serie>>"))


@fault("GMA721")
def rules_that_are_not_yaml(facts: Facts) -> None:
    given_rules(facts, "rules: [")


@fault("GMA721")
def a_file_that_only_the_adapter_reads(facts: Facts) -> None:
    facts.rules = Fact(unread=UnreadError("bob may not get configmaps in gpu-metrics"))
    facts.self_pages = Fact([rules_page(gma_rules_broken=2)])


@fault("GMA722")
def series_that_were_never_read(facts: Facts) -> None:
    page = rules_page()
    del page.samples["gma_rule_discovery_last_success_timestamp_seconds", ()]  # type: ignore[attr-defined]  # a dict here
    facts.self_pages = Fact([page])


@fault("GMA722")
def series_that_were_read_long_ago(facts: Facts) -> None:
    name = "gma_rule_discovery_last_success_timestamp_seconds"
    facts.self_pages = Fact([rules_page(**{name: NOW.timestamp() - 3600})])


@fault("GMA722")
def queries_that_fail(facts: Facts) -> None:
    key = ("gma_rule_query_failures_total", (("reason", "timeout"),))
    facts.self_pages = Fact([SelfPage("gma-1", {**rules_page().samples, key: 90.0})])


@fault("GMA723")
def a_metric_of_both(facts: Facts) -> None:
    key = ("gma_rule_metrics_shared", (("api", "custom"),))
    facts.self_pages = Fact([SelfPage("gma-1", {**rules_page().samples, key: 2.0})])


@fault("GMA724")
def an_account_without_rights(facts: Facts) -> None:
    user = "system:serviceaccount:gpu-metrics:gma-delegation"
    facts.delegate_rights = Fact([review(user, "*.custom.metrics.k8s.io", allowed=False)])


def failing(outcome: str) -> Fault:
    """A delegate whose discovery fails."""

    def change(facts: Facts) -> None:
        key = ("gma_delegate_discovery_problem", (("delegate", "old"), ("outcome", outcome)))
        facts.self_pages = Fact([SelfPage("gma-1", {**rules_page().samples, key: 1.0})])

    change.__name__ = f"a_delegate_that_is_{outcome}"
    return change


for problem in ("unreachable", "untrusted", "refused", "no_token", "invalid"):
    fault("GMA715")(failing(problem))
