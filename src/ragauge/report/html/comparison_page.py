"""The comparison as one HTML file: what changed, and every question with both ranked lists."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ragauge.model import phrases
from ragauge.model.comparison import (
    KINDS,
    MATCH_LEVELS,
    WORSE,
    AnswerChange,
    Comparison,
    ComparisonView,
    Delta,
    QueryComparison,
)
from ragauge.model.metric_names import metric_label
from ragauge.report.ci import entries
from ragauge.report.comparison import sentences
from ragauge.report.html import charts
from ragauge.report.html.charts import Bar
from ragauge.report.html.details import PageDetails
from ragauge.report.html.markup import shortened
from ragauge.report.html.page import MOST_PRINTED, Blocks, fill_page, render
from ragauge.report.html.question_table import (
    ColumnChoice,
    QuestionColumn,
    choice_column,
    damage_column,
    first_columns,
    table_block,
    word_column,
)

_NO_HITS = "There are no hits and no answers to show: what was compared holds none."
_RULE = (
    "★ marks a hit that is expected by its id or shares half of the shorter of the two places; a "
    "rank is where the hits so far cover half of what is expected."
)
_TONES = {
    "regression": "bad", "mixed": "warn", "undecided": "warn", "loss": "warn", "win": "good",
    "draw": "quiet",
}  # fmt: skip
_KIND_MEANINGS = {
    "regression": "b finds less of what is expected",
    "mixed": "b finds as much or more, but lost something",
    "undecided": "it depends on where in the chunk that gold names the evidence stands",
    "loss": "b finds the same, further down",
    "win": "b finds more and lost nothing, or finds the same further up",
    "draw": "no difference",
}
_LEVEL_TONES = {
    "exact": "good", "doc_span": "good", "quote": "warn", "doc": "warn", "none": "bad"
}  # fmt: skip


def comparison_page(view: ComparisonView) -> str:
    """The page of a comparison."""
    comparison = view.comparison
    headline = sentences.headline(comparison)
    decision = entries.decision(view)
    queries = comparison.per_query
    damage = phrases.damage_of(comparison.verdict)
    failing = [_is_worse(query) or (query.query_id, query.turn) in damage for query in queries]
    context = {
        "title": f"{shortened(comparison.run_a.name)} → {shortened(comparison.run_b.name)}",
        "status": view.status,
        "headline": headline if decision is None else decision,
        "below": None if decision is None else f"{headline}.",
        "comparison": comparison,
        "counts": _counts(comparison),
        "deltas": sentences.shown_deltas(comparison.deltas),
        "metric_lines": _metric_lines(comparison),
        "slices": sentences.listed_slices(comparison),
        "slice_metrics": sentences.slice_metrics(comparison),
        "cause_lines": [sentences.cause_line(cause) for cause in comparison.causes],
        "figures": _figures(comparison),
        "worse": [query for query, is_worse in zip(queries, failing, strict=True) if is_worse],
        "reach": _reach(sentences.shown_deltas(comparison.deltas)),
        "sentences": sentences,
        "certain_tone": _certain_tone,
        "is_share": _is_share,
        "strip": _strip,
        "rounded_bounds": _rounded_bounds,
        "KIND_TONES": _TONES,
        "MOST_PRINTED": MOST_PRINTED,
    }
    lacking = [_NO_HITS] if view.details is None and failing else []

    def write(blocks: Blocks, notes: Sequence[str]) -> str:
        return render("comparison.html", blocks=blocks, notes=[*lacking, *notes], **context)

    details = PageDetails(view.details, failing) if view.details is not None and failing else None
    blocks = [("index", _table(comparison, failing, details))] if failing else []
    return fill_page(write, blocks, details)


def _is_worse(query: QueryComparison) -> bool:
    answer = None if query.answer is None else query.answer.kind
    return query.is_sure_loss or query.certain_kind in WORSE or answer in WORSE


def _counts(comparison: Comparison) -> list[tuple[str, int, str]]:
    """Questions compared, by kind, and those that were excluded."""
    excluded = sum(comparison.left_out.values())
    counts = [("compared", comparison.counted, "plain")]
    for kind in KINDS:
        count = comparison.kinds.get(kind, 0)
        counts.append((sentences.PLURALS[kind], count, _TONES[kind] if count else "plain"))
    return [*counts, ("left out", excluded, "bad" if excluded else "plain")]


def _metric_lines(comparison: Comparison) -> list[str]:
    undefined = sentences.undefined_line(comparison.deltas)
    moved = sentences.moved_line(comparison.deltas)
    return [
        *([] if moved is None else [moved]),
        *sentences.reason_lines(comparison.deltas),
        *([] if undefined is None else [undefined]),
        sentences.rung_line(comparison),
        *sentences.place_lines(comparison),
        *sentences.document_lines(comparison),
    ]


def _is_share(delta: Delta) -> bool:
    """Whether a metric lies between 0 and 1, as most do, and can be drawn on their scale."""
    return all(side is None or 0 <= side <= 1 for side in (delta.a, delta.b))


def _reach(deltas: Sequence[Delta]) -> float:
    """How far the common scale reaches on both sides of 0, in steps of 0.05."""
    ends = [
        abs(end)
        for delta in deltas
        if delta.delta is not None and _is_share(delta)
        for end in (delta.delta, *(delta.interval or ()))
    ]
    steps = -int(-max(ends, default=0.0) // 0.05)
    return min(max(steps, 1) * 0.05, 1.0)


def _certain_tone(delta: Delta) -> str | None:
    """The tone of a change that chance does not explain; None for all others."""
    if not delta.is_changed:
        return None
    return "bad" if delta.worse else "good"


def _rounded_bounds(delta: Delta) -> str:
    """The interval of a change with four decimals, as the JSON has it."""
    interval = delta.interval or delta.band_interval
    if interval is None:
        return sentences.bounds(None)
    # Adding 0.0 makes 0.0 of -0.0, which would be signed the wrong way.
    low, high = (round(end, 4) + 0.0 for end in interval)
    return sentences.bounds((low, high))


def _strip(delta: Delta, reach: float) -> Markup:
    """Δ with its interval around 0."""
    assert delta.delta is not None
    change = phrases.signed_number(delta.delta)
    return charts.strip(
        f"{shortened(metric_label(delta.metric))}: {change}, "
        f"95 % interval {_rounded_bounds(delta)}",
        delta.delta,
        delta.interval,
        low=-reach,
        high=reach,
        zero=True,
        detectable=delta.detectable,
        tone=_certain_tone(delta) or "plain",
    )


def _figures(comparison: Comparison) -> list[charts.Figure]:
    figures = []
    for title, kinds in (
        ("Retrieval by kind", comparison.kinds),
        ("Answers by kind", comparison.answer_kinds),
    ):
        if any(kinds.values()):
            rows = [
                Bar(sentences.PLURALS[kind], kinds.get(kind, 0), _TONES[kind]) for kind in KINDS
            ]
            figures.append(charts.Figure(title, "", charts.bars(title, rows)))
    rows = [
        Bar(level, comparison.rungs[level], _LEVEL_TONES[level])
        for level in MATCH_LEVELS
        if comparison.rungs.get(level)
    ]
    if rows:
        title = "Expected items by rung"
        note = "by what they are recognised in both runs"
        figures.append(charts.Figure(title, note, charts.bars(title, rows)))
    return figures


def _table(comparison: Comparison, failing: Sequence[bool], details: PageDetails | None) -> str:
    """The table of questions."""
    queries = comparison.per_query
    turns = [query.turn for query in queries]
    columns = first_columns((query.query_id for query in queries), turns, details)
    kinds = [query.certain_kind for query in queries]
    # From the best to the worst: the table is sorted by this column, descending.
    choices = [ColumnChoice(kind, _TONES[kind], _KIND_MEANINGS[kind]) for kind in reversed(KINDS)]
    columns.append(choice_column("kind", kinds, choices, "all of retrieval", head="retrieval"))
    for name, ranks in (
        ("rank a", [sentences.rank(query.a_hit_rank, query.a_reciprocal) for query in queries]),
        ("rank b", [sentences.rank(query.b_hit_rank, query.b_reciprocal) for query in queries]),
    ):
        # A question whose retrieval was not compared has no kind, and its ranks say nothing.
        words = [rank if kind else "" for rank, kind in zip(ranks, kinds, strict=True)]
        columns.append(word_column(name, words, wide=True, right=True))
    damage = phrases.damage_of(comparison.verdict)
    if damage:
        columns.append(damage_column([(query.query_id, query.turn) for query in queries], damage))
    lost = [", ".join(query.lost) or None for query in queries]
    if any(lost):
        columns.append(word_column("lost", lost, wide=True))
    columns += _answer_columns(queries)
    levels = [", ".join(dict.fromkeys(query.rungs)) for query in queries]
    if any(levels):
        columns.append(word_column("rung", levels, wide=True))
    notes = [query.note for query in queries]
    if any(notes):
        columns.append(word_column("note", notes, hidden=True))
    return table_block(
        columns,
        failing,
        sides=(f"a · {comparison.run_a.name}", f"b · {comparison.run_b.name}"),
        sort="kind",
        detailed=details is not None,
        note=_NO_HITS,
        rule=_RULE,
    )


def _answer_columns(queries: Sequence[QueryComparison]) -> list[QuestionColumn]:
    """The results of answers, where any were compared."""
    answers = [query.answer for query in queries]
    if not any(answers):
        return []
    columns = [
        choice_column(
            "answer",
            [None if answer is None else answer.kind for answer in answers],
            [ColumnChoice(kind, _TONES[kind]) for kind in reversed(KINDS)],
            "all answers",
        ),
        word_column("labels", list(map(_label_change, answers)), head="labels a → b", wide=True),
    ]
    flips = [sentences.flipped(query) or None for query in queries]
    for name, words in (("flipped", flips), ("causes", list(map(_cause_change, answers)))):
        if any(words):
            columns.append(word_column(name, words, hidden=True))
    return columns


def _label_change(answer: AnswerChange | None) -> str:
    if answer is None:
        return ""
    if answer.a_label == answer.b_label:
        return answer.a_label
    return f"{answer.a_label} → {answer.b_label}"


def _cause_change(answer: AnswerChange | None) -> str | None:
    if answer is None or not (answer.a_cause or answer.b_cause):
        return None
    return f"{answer.a_cause or '-'} → {answer.b_cause or '-'}"
