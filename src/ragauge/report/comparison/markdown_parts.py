"""The parts of a comparison in Markdown, shared by the reports of one that print it."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.model import phrases
from ragauge.model.comparison import Comparison, ComparisonView, Delta
from ragauge.report import markdown
from ragauge.report.ci import entries
from ragauge.report.comparison import sentences
from ragauge.report.comparison.sentences import QuestionGroup
from ragauge.report.markdown import Escape, escaped


def sentence(text: str) -> str:
    """A line as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def paragraph(text: str, escape: Escape = escaped) -> list[str]:
    """A line as a paragraph."""
    return [escape(text), ""]


def opening(view: ComparisonView, marks: str, escape: Escape = escaped) -> list[str]:
    """The heading with what was decided, then the runs and the result.

    Where nothing was to be decided, the runs are the heading.
    """
    comparison = view.comparison
    names = " → ".join(escape(run.name) for run in (comparison.run_a, comparison.run_b))
    decision = entries.decision(view)
    head = names if decision is None else escape(decision)
    lead = escape(sentence(sentences.headline(comparison)))
    return [f"{marks} ragauge: {head}", "", *([] if decision is None else [names, ""]), lead, ""]


def gates(comparison: Comparison, escape: Escape = escaped) -> list[str]:
    """The gates on a drop; nothing if there are none."""
    verdict = comparison.verdict
    return [] if verdict is None else markdown.gates(verdict, escape)


def verdict(view: ComparisonView, escape: Escape = escaped) -> list[str]:
    """What was decided, and the gates; nothing if nothing was to be decided."""
    decision = entries.decision(view)
    return (
        [] if decision is None else [f"**{escape(decision)}**", "", *gates(view.comparison, escape)]
    )


def runs(comparison: Comparison, escape: Escape = escaped) -> list[str]:
    """Both runs side by side; what is known of neither is not asked."""
    a, b = comparison.run_a, comparison.run_b
    rows = [
        (head, escape(of_a) if of_a else "-", escape(of_b) if of_b else "-")
        for head, of_a, of_b in sentences.run_lines(comparison)
    ]
    for count in ("questions", "missing", "errored"):
        rows.append((count, str(getattr(a, count)), str(getattr(b, count))))
    return markdown.table(["", "a", "b"], rows)


def causes(comparison: Comparison, most: int, escape: Escape = escaped) -> list[str]:
    """What differs between the configurations, at most so many."""
    causes = comparison.causes
    if not causes:
        return ["No difference between the two configurations is known.", ""]
    lines = [f"- {escape(sentences.cause_line(cause))}" for cause in causes[:most]]
    return [*lines, "", *markdown.more(len(causes) - len(lines))]


def deltas(comparison: Comparison, escape: Escape = escaped) -> list[str]:
    """The metrics of both runs, how to read them, and what there is to say of them."""
    deltas = sentences.shown_deltas(comparison.deltas)
    lines = []
    if deltas:
        lines += [*delta_table(deltas, ("a", "b"), escape), legend(deltas), ""]
    else:
        lines += ["No metric has a value in either run.", ""]
    undefined = sentences.undefined_line(comparison.deltas)
    moved = sentences.moved_line(comparison.deltas)
    rest = [
        *([] if moved is None else [moved]),
        *sentences.reason_lines(comparison.deltas),
        *([] if undefined is None else [undefined]),
        sentences.rung_line(comparison),
        *sentences.place_lines(comparison),
        *sentences.document_lines(comparison),
    ]
    return [*lines, *(f"- {escape(line)}" for line in rest), ""]


def slices(comparison: Comparison, marks: str, most: int, escape: Escape = escaped) -> list[str]:
    """A table for each dimension of slices, with the foremost metrics."""
    metrics = sentences.slice_metrics(comparison)
    lines: list[str] = []
    for dimension, parts in sentences.listed_slices(comparison).items() if metrics else ():
        heads = [escape(dimension), "n", *(f"Δ {markdown.metric_name(m, escape)}" for m in metrics)]
        rows = [
            (escape(name), str(part.n), *sentences.slice_cells(part, metrics))
            for name, part in parts[:most]
        ]
        lines += [*markdown.table(heads, rows), *markdown.more(len(parts) - len(rows))]
    if not lines:
        return []
    return [f"{marks} Slices", "", *lines, sentence(sentences.SLICE_NOTE), ""]


def delta_table(
    deltas: Sequence[Delta], sides: tuple[str, str], escape: Escape = escaped
) -> list[str]:
    """A table of metrics; the sides are called so."""
    holm = ["p (Holm)"] if any(delta.p_holm is not None for delta in deltas) else []
    guess = ["guess"] if sentences.has_guess(deltas) else []
    heads = ["metric", *sides, "Δ", "95 % interval", "p", *holm, *guess, "n", "detectable"]
    rows = [_delta(delta, escape, corrected=bool(holm), guessed=bool(guess)) for delta in deltas]
    return markdown.table(heads, rows)


def _delta(delta: Delta, escape: Escape, *, corrected: bool, guessed: bool) -> tuple[str, ...]:
    """A row; a p-value of its own column where some are corrected, and only those stand there."""
    change = sentences.change(delta)
    return (
        f"{markdown.metric_name(delta.metric, escape)}{' ↓' if delta.better == 'lower' else ''}"
        f"{' (gated)' if delta.gated else ''}{f' {sentences.LOST}' if delta.lost else ''}",
        sentences.side(delta.a, delta.a_band),
        sentences.side(delta.b, delta.b_band),
        f"**{change}**" if delta.is_changed else change,
        sentences.bounds(delta.interval or delta.band_interval),
        sentences.chance(delta.p),
        *([sentences.chance(delta.p_holm)] if corrected else []),
        *([sentences.guess(delta)] if guessed else []),
        str(delta.n),
        phrases.number(delta.detectable),
    )


def legend(deltas: Sequence[Delta], sides: tuple[str, str] = ("a", "b")) -> str:
    """How the table is read; only what is in it."""
    clauses = [f"Δ is {sides[1]} - {sides[0]} over the n questions that have a value in both runs"]
    if any(delta.is_changed for delta in deltas):
        clauses.append("bold where the interval and the corrected p agree on a change")
    if any(delta.p_holm is not None for delta in deltas):
        clauses.append(f"p (Holm) is corrected over {sentences.family(deltas)}")
    if any(delta.detectable is not None for delta in deltas):
        clauses.append("detectable is the change that this n would show in four cases of five")
    if any(delta.better == "lower" for delta in deltas):
        clauses.append("↓ marks metrics of which less is better")
    if any(delta.band is not None for delta in deltas):
        clauses.append("… stands between two ends: gold names chunks, and places are unknown")
    if sentences.has_guess(deltas):
        clauses.append(sentences.GUESS_NOTE)
    return f"{'; '.join(clauses)}."


def group_title(group: QuestionGroup) -> str:
    """What the questions of a group are, and how many there are."""
    return f"{group.about} {sentences.PLURALS[group.kind]}".capitalize() + f" ({group.total})"


def questions(
    group: QuestionGroup, escape: Escape = escaped, sides: tuple[str, str] = ("a", "b")
) -> list[str]:
    """A table of the questions of one kind, of retrieval or of answers."""
    what, last = ("rank", "note") if group.about == "retrieval" else ("label", "flipped")
    rows = []
    for query in group.queries:
        name = phrases.question_name(query.query_id, query.turn)
        cells = (name, *sentences.change_cells(query, group.about))
        question, *changes = map(escape, cells)
        rows.append((question, group.kind, *changes))
    heads = ["question", "kind", *(f"{what} {side}" for side in sides), last]
    return [*markdown.table(heads, rows), *markdown.more(group.more)]


def brackets(listed: Sequence[QuestionGroup]) -> list[str]:
    """What brackets behind ranks mean, where there are any."""
    slots = sentences.slots_line(listed)
    return [] if slots is None else paragraph(sentence(slots))


def notes(comparison: Comparison, escape: Escape = escaped) -> list[str]:
    """What else there is to say of the comparison."""
    return [f"- {escape(note)}" for note in comparison.notes]


def kind_lines(view: ComparisonView) -> list[str]:
    """How many questions of each kind there are."""
    lines = sentences.retrieval_line(view.comparison), sentences.answer_line(view.comparison)
    return [*(f"- {line}" for line in lines), ""]
