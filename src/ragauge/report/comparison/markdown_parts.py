"""The parts of a comparison in Markdown, shared by the reports of one that print it."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.model import phrases
from ragauge.model.comparison import Comparison, ComparisonView, Delta, QueryComparison
from ragauge.report import markdown
from ragauge.report.ci import entries
from ragauge.report.comparison import sentences
from ragauge.report.comparison.sentences import Group
from ragauge.report.markdown import Shown, escaped


def sentence(text: str) -> str:
    """A line as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def paragraph(text: str, shown: Shown = escaped) -> list[str]:
    """A line as a paragraph."""
    return [shown(text), ""]


def opening(view: ComparisonView, marks: str, shown: Shown = escaped) -> list[str]:
    """The heading with what was decided, then the runs and what came of them.

    Where nothing was to be decided, the runs are the heading.
    """
    comparison = view.comparison
    names = " → ".join(shown(run.name) for run in (comparison.run_a, comparison.run_b))
    decided = entries.decision(view)
    head = names if decided is None else shown(decided)
    lead = shown(sentence(sentences.headline(comparison)))
    return [f"{marks} ragauge: {head}", "", *([] if decided is None else [names, ""]), lead, ""]


def gates(comparison: Comparison, shown: Shown = escaped) -> list[str]:
    """The gates on a drop; nothing if there are none."""
    found = comparison.verdict
    return [] if found is None else markdown.gates(found, shown)


def verdict(view: ComparisonView, shown: Shown = escaped) -> list[str]:
    """What was decided, and the gates; nothing if nothing was to be decided."""
    decided = entries.decision(view)
    return [] if decided is None else [f"**{shown(decided)}**", "", *gates(view.comparison, shown)]


def runs(comparison: Comparison, shown: Shown = escaped) -> list[str]:
    """Both runs side by side; what is known of neither is not asked."""
    a, b = comparison.run_a, comparison.run_b
    rows = [
        (head, shown(one) if one else "-", shown(other) if other else "-")
        for head, one, other in sentences.run_lines(comparison)
    ]
    rows += [
        ("questions", str(a.questions), str(b.questions)),
        ("missing", str(a.missing), str(b.missing)),
        ("errored", str(a.errored), str(b.errored)),
    ]
    return markdown.table(["", "a", "b"], rows)


def causes(comparison: Comparison, most: int, shown: Shown = escaped) -> list[str]:
    """What differs between the configurations, at most so many."""
    found = comparison.causes
    if not found:
        return ["No difference between the two configurations is known.", ""]
    lines = [f"- {shown(sentences.cause_line(each))}" for each in found[:most]]
    return [*lines, "", *more(len(found) - len(lines))]


def more(left: int) -> list[str]:
    """How many are not listed; nothing if all are."""
    return [f"... and {left} more.", ""] if left else []


def deltas(comparison: Comparison, shown: Shown = escaped) -> list[str]:
    """The metrics of both runs, how to read them, and what there is to say of them."""
    found = sentences.shown_deltas(comparison.deltas)
    lines = []
    if found:
        lines += [*delta_table(found, ("a", "b"), shown), legend(found), ""]
    else:
        lines += ["No metric has a value in either run.", ""]
    undefined = sentences.undefined_line(comparison.deltas)
    rest = [
        *sentences.reason_lines(comparison.deltas),
        *([] if undefined is None else [undefined]),
        sentences.rung_line(comparison),
    ]
    return [*lines, *(f"- {shown(line)}" for line in rest), ""]


def delta_table(
    found: Sequence[Delta], sides: tuple[str, str], shown: Shown = escaped
) -> list[str]:
    """A table of metrics; the sides are called so."""
    holm = ["p (Holm)"] if any(each.p_holm is not None for each in found) else []
    heads = ["metric", *sides, "Δ", "95 % interval", "p", *holm, "n", "detectable"]
    return markdown.table(heads, [_delta(each, shown, corrected=bool(holm)) for each in found])


def _delta(delta: Delta, shown: Shown, *, corrected: bool) -> tuple[str, ...]:
    """A row; a p-value of its own column where some are corrected, and only those stand there."""
    change = phrases.signed(delta.delta)
    return (
        f"{markdown.metric_name(delta.metric, shown)}{' ↓' if delta.better == 'lower' else ''}"
        f"{' (gated)' if delta.gated else ''}{f' {sentences.LOST}' if delta.lost else ''}",
        phrases.number(delta.a),
        phrases.number(delta.b),
        f"**{change}**" if sentences.is_beyond_chance(delta) else change,
        sentences.bounds(delta.interval),
        sentences.chance(delta.p),
        *([sentences.chance(delta.p_holm)] if corrected else []),
        str(delta.n),
        phrases.number(delta.detectable),
    )


def legend(found: Sequence[Delta], sides: tuple[str, str] = ("a", "b")) -> str:
    """How the table is read; only what is in it."""
    told = [f"Δ is {sides[1]} - {sides[0]} over the n questions that have a value in both runs"]
    if any(map(sentences.is_beyond_chance, found)):
        told.append(
            "bold where interval and p agree on a change, which by chance one in twenty does"
        )
    if any(each.p_holm is not None for each in found):
        told.append("p (Holm) is corrected over the gated metrics")
    if any(each.detectable is not None for each in found):
        told.append("detectable is the change that this n would show in four cases of five")
    if any(each.better == "lower" for each in found):
        told.append("↓ marks metrics of which less is better")
    return f"{'; '.join(told)}."


def group_title(group: Group) -> str:
    """What the questions of a group are, and how many there are."""
    return f"{group.about} {sentences.PLURALS[group.kind]}".capitalize() + f" ({group.total})"


def questions(
    group: Group, shown: Shown = escaped, sides: tuple[str, str] = ("a", "b")
) -> list[str]:
    """A table of the questions of one kind, of retrieval or of answers."""
    if group.about == "retrieval":
        lines = _retrieval(group, shown, sides)
    else:
        heads = ["question", "kind", *(f"label {side}" for side in sides), "flipped"]
        lines = markdown.table(heads, [_answer(each, group.kind, shown) for each in group.queries])
    return [*lines, *more(group.more)]


def _retrieval(group: Group, shown: Shown, sides: tuple[str, str]) -> list[str]:
    return markdown.table(
        ["question", "kind", *(f"rank {side}" for side in sides), "note"],
        [
            (
                shown(phrases.question_name(each.query_id, each.turn)),
                group.kind,
                sentences.rank(each.a_hit_rank, each.a_reciprocal),
                sentences.rank(each.b_hit_rank, each.b_reciprocal),
                shown(sentences.note(each)),
            )
            for each in group.queries
        ],
    )


def _answer(query: QueryComparison, kind: str, shown: Shown) -> tuple[str, ...]:
    assert query.answer is not None
    return (
        shown(phrases.question_name(query.query_id, query.turn)),
        kind,
        shown(sentences.labelled(query.answer.a_label, query.answer.a_cause)),
        shown(sentences.labelled(query.answer.b_label, query.answer.b_cause)),
        shown(sentences.flipped(query)),
    )


def brackets(listed: Sequence[Group]) -> list[str]:
    """What brackets behind ranks mean, where there are any."""
    slots = sentences.slots_line(listed)
    return [] if slots is None else paragraph(sentence(slots))


def notes(comparison: Comparison, shown: Shown = escaped) -> list[str]:
    """What else there is to say of the comparison."""
    return [f"- {shown(note)}" for note in comparison.notes]


def kind_lines(view: ComparisonView) -> list[str]:
    """How many questions of each kind there are."""
    comparison = view.comparison
    return [
        f"- {sentences.retrieval_line(comparison)}",
        f"- {sentences.answer_line(comparison)}",
        "",
    ]
