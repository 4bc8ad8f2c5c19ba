"""Checks of prometheus-adapter's rules, and of other metrics servers behind the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.config.settings.delegation import DelegateSettings
from adapter.pipeline.cluster.changes import ChangedObject, edit
from adapter.pipeline.cluster.fixes import make_lasting
from adapter.tools.doctor.checks.apiservices import EXTERNAL, TWO_WAYS, is_delegate, is_ours
from adapter.tools.doctor.checks.ours import require_release
from adapter.tools.doctor.checks.selfmetrics import metrics_log, replica_pages
from adapter.tools.doctor.facts import Facts, SelfPage
from adapter.tools.doctor.model import (
    CheckSection,
    Finding,
    FindingEffect,
    NotApplicableError,
    Severity,
    check,
)

RESOURCE: Final = "metrics.k8s.io"
_LIST_AGE: Final = 120.0
"""Seconds: four reads of a delegate's discovery."""
_SHARE: Final = 0.05
_FEW: Final = 10


@check("GMA014", CheckSection.CLUSTER, "the adapter has the other metrics APIs that it serves")
def taken_other_apis(facts: Facts) -> Iterator[Finding]:
    """The adapter serves `external.metrics.k8s.io` or `metrics.k8s.io`, and the APIService belongs
    to KEDA, metrics-server or another adapter. HPAs then get no values from this adapter.

    For external metrics see GMA005. `metrics.k8s.io` has one server only.
    """
    release = require_release(facts)
    served = {EXTERNAL: facts.settings.external.enabled}
    served[RESOURCE] = facts.settings.rules.resource_metrics
    if not any(served.values()):
        raise NotApplicableError("the adapter serves neither external nor resource metrics")
    for apiservice in facts.apiservices.read():
        service = apiservice.spec.service
        if service is None or not served.get(apiservice.spec.group) or is_ours(facts, apiservice):
            continue
        whole = f"{service.namespace}/{service.name}"
        delegated, fix = is_delegate(facts, apiservice), TWO_WAYS
        if apiservice.spec.group == RESOURCE:
            fix = "remove that program, or set resourceMetrics.enabled=false"
        elif delegated:
            fix = "it is a delegate: point the APIService to the adapter (docs/delegation.md)"
        yield Finding(
            f"apiservice {apiservice.metadata.name}",
            f"belongs to Service {whole}, so HPAs do not ask {release.workload.key}",
            fix,
            f"kubectl get apiservice {apiservice.metadata.name} -o yaml",
            Severity.WARNING if delegated else Severity.ERROR,
        )


@check("GMA721", CheckSection.OURS, "every rule of the rules file can be used")
def broken_rules(facts: Facts) -> Iterator[Finding]:
    """A rule has a mistake. The adapter leaves it out and serves the others. If the whole file
    cannot be used, the rules before it stay active, and new pods do not start.

    Correct the line that the message names.
    """
    require_release(facts)
    if facts.settings.rules.file is None:
        raise NotApplicableError("the settings name no rules file")
    rules = facts.rules.value
    if rules is None:
        yield from _counted_rejections(facts)
        return
    of = ChangedObject("ConfigMap", rules.place.namespace, rules.place.configmap, rules.manager)
    words = "correct the rules file"
    for problem in (rules.rejected, *rules.broken):
        if problem:
            yield Finding(rules.place.subject, problem, words, make_lasting(of, edit(of, words)))


def _counted_rejections(facts: Facts) -> Iterator[Finding]:
    """Yield what the adapter counts about a file that was not read here."""
    if not facts.self_pages.known:
        facts.rules.read()
    for page in replica_pages(facts):
        broken = page.sum("gma_rules_broken") or 0
        rejected = page.sum("gma_rules_file_ok") == 0
        if broken or rejected:
            yield Finding(
                f"pod {page.pod}",
                "rejects the rules file" if rejected else f"leaves out {broken:.0f} rules",
                "see line and reason in the adapter's log: rule left out, rules file rejected",
                metrics_log(facts, page),
            )
            return


@check("GMA722", CheckSection.OURS, "the store answers the queries of rules")
def failing_queries(facts: Facts) -> Iterator[Finding]:
    """The store of `source.prometheus` does not answer about the series of rules, or rejects their
    queries. HPAs on metrics of rules get no values after the age limit.

    See the cause in the adapter's log, and ask the store with the query of the rule.
    """
    settings = facts.settings.rules
    for page in _with_rules(facts):
        last = page.sum("gma_rule_discovery_last_success_timestamp_seconds")
        failed = page.sum("gma_rule_discovery_failures_total")
        late = 3 * settings.relist_interval + 30
        if failed and (last is None or facts.now - last > late):
            since = "never" if last is None else f"{facts.now - last:.0f} s ago"
            text = f"last read the series of all rules {since}"
            log = "discovery of rules is incomplete"
        elif (share := _failing_share(page)) is not None:
            text, log = share, "GET with the query of a rule failed"
        else:
            continue
        yield Finding(
            f"pod {page.pod}",
            text,
            f"check source.prometheus.url, and see the cause in the adapter's log: {log}",
            metrics_log(facts, page),
        )
        return


def _failing_share(page: SelfPage) -> str | None:
    reasons = page.by_label("gma_rule_query_failures_total", "reason")
    failed, queries = sum(reasons.values()), page.sum("gma_rule_queries_total") or 0
    if failed < _FEW or failed < _SHARE * queries:
        return None
    reason = max(reasons, key=lambda name: reasons[name])
    return f"got no answer to {failed:.0f} of {queries:.0f} queries of rules, most by {reason}"


@check(
    "GMA723",
    CheckSection.OURS,
    "a rule and the catalogue have no metric of one name",
    effect=FindingEffect.FAULT,
)
def shared_names(facts: Facts) -> Iterator[Finding]:
    """A rule makes a metric that the catalogue has too. `rules.prefer` decides which one serves it:
    the rule by default.

    Rename the metric in the rule (`name.as`), or set `rules.prefer` on purpose.
    """
    winner = facts.settings.rules.prefer
    for page in _with_rules(facts):
        number = page.sum("gma_rule_metrics_shared") or 0
        if number:
            yield Finding(
                f"pod {page.pod}",
                f"{number:.0f} metrics of rules are in the catalogue too; {winner} serves them "
                "(rules.prefer)",
                "rename them in the rules (name.as); the log names them: metrics of rules and of "
                "the catalogue have the same name",
                metrics_log(facts, page),
                Severity.WARNING,
            )
            return


def _with_rules(facts: Facts) -> list[SelfPage]:
    require_release(facts)
    if facts.settings.rules.file is None:
        raise NotApplicableError("the settings name no rules file")
    return replica_pages(facts)


def _by_name(facts: Facts) -> dict[str, DelegateSettings]:
    require_release(facts)
    by_name = {delegate.name: delegate for delegate in facts.settings.delegation.delegates}
    if not by_name:
        raise NotApplicableError("the settings name no delegate")
    return by_name


@check("GMA715", CheckSection.OURS, "the delegates list their metrics", Severity.WARNING)
def delegates(facts: Facts) -> Iterator[Finding]:
    """The adapter cannot read the discovery of a delegate. HPAs on its metrics keep their replica
    counts.

    The message names the cause: no answer, a certificate that is not trusted, a refused account, or
    no metrics server (`docs/delegation.md`).
    """
    chosen = _by_name(facts)
    for page in replica_pages(facts):
        problems = page.by_labels("gma_delegate_discovery_problem", "delegate", "outcome")
        ages = page.by_label("gma_delegate_discovery_age_seconds", "delegate")
        for name, outcome in sorted(problems):
            age = ages.get(name)
            if name in chosen and (age is None or age > _LIST_AGE):
                since = "never" if age is None else f"{age:.0f} s ago"
                why, fix, command = _cause(chosen[name], outcome, facts, page)
                text = f"{why}; its list was last read {since}, and HPAs on it get no values"
                yield Finding(f"delegate {name}", text, fix, command)
        if problems:
            return


def _cause(
    delegate: DelegateSettings, outcome: str, facts: Facts, page: SelfPage
) -> tuple[str, str, str]:
    """Return the cause, the fix and its command."""
    service = delegate.service
    where = f"kubectl -n {service.namespace}"
    look = f"{where} get service,endpointslices {service.name}"
    match outcome:
        case "timeout" | "unreachable" | "overloaded":
            fix = "make its pods ready, and admit the adapter in network policies"
            return "it does not answer", fix, f"{where} get service,endpointslices,pods"
        case "untrusted":
            fix = "set ca or ca_file of this delegate to the CA that signed its certificate"
            ask = "kubectl get apiservices -o yaml | grep -B 9 -A 9"
            return "its certificate is not trusted", fix, f"{ask} 'name: {service.name}'"
        case "refused" | "no_token":
            log = metrics_log(facts, page)
            return "it does not get a token that it accepts", "see GMA724", log
        case "redirect" | "invalid" | "too_large" | "error":
            fix = "correct service of this delegate: it must lead to a metrics server"
            return f"its answer is not a list of metrics ({outcome})", fix, look
    return outcome, "see the adapter's log", metrics_log(facts, page)


@check("GMA724", CheckSection.OURS, "the adapter may ask its delegates")
def delegate_rights(facts: Facts) -> Iterator[Finding]:
    """The account for delegates cannot read their metrics, or the adapter cannot request its
    tokens. HPAs on these metrics keep their replica counts.

    Apply the chart again, or grant the right that is missing.
    """
    _by_name(facts)
    reviews = facts.delegate_rights.read()
    if not reviews:
        raise NotApplicableError("the account of the delegates is that of a token file")
    for review in reviews:
        if not review.allowed:
            yield Finding(
                f"user {review.user}",
                f"may not {review.verb} {review.resource}",
                "apply the chart again, or grant the right",
                review.command,
            )
