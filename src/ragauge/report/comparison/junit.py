"""JUnit XML of a comparison: one test for each gate on a drop, regression and loss."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.comparison import ComparisonReport, ComparisonView, Delta, QueryComparison
from ragauge.model.verdict import Verdict
from ragauge.report.ci import entries
from ragauge.report.ci.junit_xml import Case, Suite, junit
from ragauge.report.comparison import sentences
from ragauge.report.comparison.sentences import QuestionGroup
from ragauge.text import plain

_GATES = "ragauge.compare.gates"


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    verdict = comparison.verdict
    gates = Suite(
        name="gates",
        cases=(
            *(() if verdict is None else entries.gate_cases(verdict, _GATES)),
            *entries.fail_on_cases(view, _GATES),
        ),
        properties=_properties(view),
    )
    questions = Suite(
        name="questions",
        cases=(
            *_damaged(verdict),
            *(
                _case(group, query)
                for group in sentences.worse_groups(view)
                for query in group.queries
            ),
        ),
        properties=(("compared", str(comparison.counted)),),
    )
    return junit([gates, questions])


def _damaged(verdict: Verdict | None) -> list[Case]:
    """A test for each question that made a gate fail, the worst first."""
    return [
        Case(
            group=f"ragauge.compare.gate.{plain(phrases.gate_name(result))}",
            name=phrases.question_name(question.query_id, question.turn),
            outcome="failure",
            kind="made-gate-fail",
            message=phrases.damage_line(result, question),
            body="\n".join(f"lost: {plain(name)}" for name in question.lost),
        )
        for result in phrases.failed_drops(verdict)
        for question in result.damage
    ]


def _properties(view: ComparisonView) -> tuple[tuple[str, str], ...]:
    comparison = view.comparison
    return (
        ("run_a", plain(comparison.run_a.name)),
        ("run_b", plain(comparison.run_b.name)),
        ("verdict", view.status or "none"),
        ("exit_code", str(int(view.exit_code))),
        ("headline", sentences.headline(comparison)),
        ("chunker_version_match", comparison.recognised or "not known"),
        *(
            (plain(delta.metric), _delta_value(delta))
            for delta in sentences.shown_deltas(comparison.deltas)
        ),
        *((f"slice {name}", line) for name, line in sentences.slice_lines(comparison)),
        *(("by document", line) for line in sentences.document_lines(comparison)),
    )


def _delta_value(delta: Delta) -> str:
    change = sentences.delta_line(delta).partition(": ")[2]
    return f"{change}; {plain(delta.reason)}" if delta.lost and delta.reason else change


def _case(group: QuestionGroup, query: QueryComparison) -> Case:
    change = sentences.what_happened(query, group.about)
    body = [f"{group.about} {group.kind}: {change}"]
    if query.rungs:
        body.append(f"recognised by: {', '.join(query.rungs)}")
    if query.note:
        body.append(f"note: {sentences.note(query)}")
    return Case(
        group=f"ragauge.compare.{group.about}",
        name=phrases.question_name(query.query_id, query.turn),
        outcome="failure",
        kind=group.kind,
        message=f"{group.kind}: {change}",
        body="\n".join(body),
    )


REPORT = ComparisonReport(
    name="junit",
    title="JUnit XML: a test for each gate, regression and loss",
    syntax="xml",
    content=_text,
    suffixes=(".xml",),
)
