"""The comparison as one HTML file: what changed, and every question with both ranked lists."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.model import phrases
from ragauge.model.comparison import (
    KINDS,
    RUNGS,
    Comparison,
    ComparisonReport,
    ComparisonView,
    Delta,
    QueryComparison,
)
from ragauge.model.metric_names import metric_label
from ragauge.report.ci import entries
from ragauge.report.comparison import sentences
from ragauge.report.html import charts, sections
from ragauge.report.html.details import Gathered
from ragauge.report.html.markup import Child, Markup, element, shortened
from ragauge.report.html.page import Blocks, filled, page
from ragauge.report.html.question_table import Choice, Column, choice_column, index, named_choices
from ragauge.report.html.sections import Head, chip, code, section, table
from ragauge.report.html.size_budget import MOST_ID, capped

_NO_HITS = "There are no hits and no answers to show: what was compared holds none."
_RULE = (
    "★ marks a hit that is expected by its id or shares half of the shorter of the two places; a "
    "rank is where the hits so far cover half of what is expected."
)
_TONES = {"regression": "bad", "loss": "warn", "win": "good", "draw": "quiet"}
_KIND_MEANINGS = {
    "regression": "a hits and b misses",
    "loss": "the rank in b is worse",
    "win": "b hits and a misses, or its rank is better",
    "draw": "no difference",
}
_WORSE = ("regression", "loss")
_RUNG_TONES = {
    "exact": "good", "doc_span": "good", "quote": "warn", "doc": "warn", "none": "bad"
}  # fmt: skip


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    a, b = comparison.run_a, comparison.run_b
    headline = sentences.headline(comparison)
    verdict = comparison.verdict
    names = f"{shortened(a.name)} → {shortened(b.name)}"
    decided = entries.decision(view)
    below: list[Child] = [] if decided is None else [f"{headline}."]
    head = [
        element("h1", names),
        sections.verdict_banner(
            view.status,
            headline if decided is None else decided,
            below,
        ),
        _counts(comparison),
    ]
    before = [
        ("Gates", "gates", None if verdict is None else sections.gates(verdict)),
        ("Metrics", "metrics", _deltas(comparison)),
        ("Charts", "charts", sections.charts_section(_figures(comparison))),
    ]
    behind = [
        ("Causes", "causes", _causes(comparison)),
        ("Runs", "runs", _runs(comparison)),
        ("Notes", "notes", _notes(comparison)),
    ]
    failing = [_is_worse(each) for each in comparison.per_query]
    paper = _paper(comparison.per_query, failing)
    has_details = view.details is not None
    lacking = [] if has_details or not failing else [_NO_HITS]

    def write(blocks: Blocks, notes: Sequence[str]) -> str:
        part = sections.questions(len(failing), paper, [*lacking, *notes])
        return page(names, head, [*before, ("Questions", "questions", part), *behind], blocks)

    details = Gathered(view.details, failing) if view.details is not None and failing else None
    blocks = [("index", _index(comparison, failing, details))] if failing else []
    return filled(write, blocks, details)


def _is_worse(query: QueryComparison) -> bool:
    return query.kind in _WORSE or (query.answer is not None and query.answer.kind in _WORSE)


def _counts(comparison: Comparison) -> Markup:
    """Questions compared, by kind, and what was left out."""
    kinds = comparison.kinds
    left = sum(comparison.left_out.values())
    numbers = [("compared", comparison.counted, "plain")]
    for kind in KINDS:
        count = kinds.get(kind, 0)
        numbers.append((sentences.PLURALS[kind], count, _TONES[kind] if count else "plain"))
    numbers.append(("left out", left, "bad" if left else "plain"))
    return sections.counts(numbers)


def _deltas(comparison: Comparison) -> Markup:
    shown = sentences.shown_deltas(comparison.deltas)
    undefined = sentences.undefined_line(comparison.deltas)
    lines = [
        *sentences.reason_lines(comparison.deltas),
        *([] if undefined is None else [undefined]),
        sentences.rung_line(comparison),
    ]
    if not shown:
        told = element("p", "No metric has a value in either run.", class_="quiet")
        return section("metrics", "Metrics", told, sections.listed(lines))
    reach = _reach(shown)
    heads: list[Head | str] = [
        "metric",
        Head("a", True),
        Head("b", True),
        Head("Δ", True, "b - a"),
        Head(f"Δ from {-reach:.2f} to {reach:.2f}"),
        Head("95 % interval", True),
        Head("p", True),
        Head("p (Holm)", True, "corrected over the gated metrics"),
        Head("n", True),
        Head("detectable", True, "the change that this n would show in four cases of five"),
    ]
    rows = [_delta(each, reach) for each in shown]
    legend = (
        "Δ is b - a over the n questions that have a value in both runs. The dot is Δ, the line "
        "its 95 % interval, and the shaded part around 0 is too small for this n to show. Bold "
        "where interval and p agree on a change."
    )
    return section(
        "metrics",
        "Metrics",
        table("Metrics of both runs", heads, rows, class_="metrics"),
        element("p", legend, class_="quiet"),
        sections.listed(lines),
    )


def _is_share(delta: Delta) -> bool:
    """Whether a metric lies between 0 and 1, as most do, and can be drawn on their scale."""
    return all(side is None or 0 <= side <= 1 for side in (delta.a, delta.b))


def _reach(shown: Sequence[Delta]) -> float:
    """How far the common scale reaches on both sides of 0, in steps of 0.05."""
    ends = [
        abs(end)
        for each in shown
        if each.delta is not None and _is_share(each)
        for end in (each.delta, *(each.interval or ()))
    ]
    steps = -int(-max(ends, default=0.0) // 0.05)
    return min(max(steps, 1) * 0.05, 1.0)


def _delta(delta: Delta, reach: float) -> list[Child]:
    is_certain = sentences.is_beyond_chance(delta)
    told = phrases.signed(delta.delta)
    tone = "bad" if delta.worse else "good" if delta.delta else "plain"
    return [
        element(
            "span",
            sections.metric_name(delta.metric, gated=delta.gated, better=delta.better),
            element("small", f" {sentences.LOST} {delta.reason}"),
        )
        if delta.lost
        else sections.metric_name(delta.metric, gated=delta.gated, better=delta.better),
        phrases.number(delta.a),
        phrases.number(delta.b),
        element("b", told, class_=tone) if is_certain else told,
        _strip(delta, reach, tone if is_certain else "plain"),
        _bounds(delta),
        sentences.chance(delta.p),
        sentences.chance(delta.p_holm),
        f"{delta.n:,}",
        phrases.number(delta.detectable),
    ]


def _bounds(delta: Delta) -> str:
    """The interval of a change with four decimals, as the JSON has it."""
    if delta.interval is None:
        return sentences.bounds(None)
    low, high = (round(end, 4) + 0.0 for end in delta.interval)
    return sentences.bounds((low, high))


def _strip(delta: Delta, reach: float, tone: str) -> Markup | str:
    """Δ with its interval around 0; metrics on another scale, such as milliseconds, have none."""
    if delta.delta is None:
        return ""
    if not _is_share(delta):
        return element("small", "other scale")
    name = shortened(metric_label(delta.metric))
    label = f"{name}: {phrases.signed(delta.delta)}, 95 % interval {_bounds(delta)}"
    return charts.strip(
        label,
        delta.delta,
        delta.interval,
        low=-reach,
        high=reach,
        zero=True,
        detectable=delta.detectable,
        tone=tone,
    )


def _figures(comparison: Comparison) -> list[Markup]:
    made = []
    for title, kinds in (
        ("Retrieval by kind", comparison.kinds),
        ("Answers by kind", comparison.answer_kinds),
    ):
        if any(kinds.values()):
            counted = {sentences.PLURALS[kind]: kinds.get(kind, 0) for kind in KINDS}
            tones = {sentences.PLURALS[kind]: _TONES[kind] for kind in KINDS}
            drawn = sections.tone_bars(title, counted, tones)
            made.append(charts.figure(title, "", drawn))
    rungs = {rung: comparison.rungs[rung] for rung in RUNGS if comparison.rungs.get(rung, 0)}
    if rungs:
        title = "Expected items by rung"
        drawn = sections.tone_bars(title, {str(k): n for k, n in rungs.items()}, _RUNG_TONES)
        made.append(charts.figure(title, "by what they are recognised in both runs", drawn))
    return made


def _causes(comparison: Comparison) -> Markup:
    lines = [sentences.cause_line(each) for each in comparison.causes]
    none = element("p", "No difference between the two configurations is known.", class_="quiet")
    return section("causes", "Why it may differ", sections.listed(lines) or none)


def _runs(comparison: Comparison) -> Markup:
    a, b = comparison.run_a, comparison.run_b
    told = sentences.run_lines(comparison)
    if a.gold_hash or b.gold_hash:
        told.append(("gold hash", a.gold_hash or "", b.gold_hash or ""))
    rows: list[list[Child]] = [
        [head, code(one) if one else "-", code(other) if other else "-"]
        for head, one, other in told
    ]
    for head in ("questions", "missing", "errored"):
        rows.append([head, f"{getattr(a, head):,}", f"{getattr(b, head):,}"])
    lines = [
        sentences.left_out_line(comparison),
        sentences.retrieval_line(comparison),
        sentences.answer_line(comparison),
    ]
    made = table("What was compared", ["", "a", "b"], rows)
    return section("runs", "What was compared", made, sections.listed(lines))


def _notes(comparison: Comparison) -> Markup | None:
    lines = sections.listed(comparison.notes)
    return None if lines is None else section("notes", "Notes", lines)


def _paper(queries: Sequence[QueryComparison], failing: Sequence[bool]) -> Markup | None:
    worse = [each for each, is_worse in zip(queries, failing, strict=True) if is_worse]
    if not worse:
        return None
    rows = [_paper_row(each) for each in worse[: sections.PAPER_ROWS]]
    heads = ["question", "retrieval", "rank a", "rank b", "answer", "label a", "label b", "note"]
    return sections.paper_list("Regressions and losses", heads, rows, len(worse))


def _paper_row(query: QueryComparison) -> list[Child]:
    answer = query.answer
    return [
        shortened(phrases.question_name(query.query_id, query.turn)),
        "" if query.kind is None else chip(query.kind, _TONES[query.kind]),
        sentences.rank(query.a_hit_rank, query.a_reciprocal),
        sentences.rank(query.b_hit_rank, query.b_reciprocal),
        chip(answer.kind, _TONES[answer.kind]) if answer is not None and answer.kind else "",
        "" if answer is None else answer.a_label,
        "" if answer is None else answer.b_label,
        shortened(sentences.note(query)),
    ]


def _index(comparison: Comparison, failing: Sequence[bool], details: Gathered | None) -> str:
    queries = comparison.per_query
    qids = [capped(q.query_id, MOST_ID) for q in queries]
    columns = [Column(name="qid", head="question id", form="id", values=qids)]
    if any(q.turn is not None for q in queries):
        turns = [q.turn for q in queries]
        columns.append(Column(name="turn", head="turn", form="number", values=turns))
    if details is not None:
        columns.append(Column(name="question", head="question", form="text", values=details.texts))
        if any(details.types):
            columns.append(
                choice_column(
                    "type",
                    "type",
                    details.types,
                    named_choices(details.types),
                    wide=True,
                    filtered=True,
                    all_choices="all types",
                )
            )
    kinds = [Choice(kind, _TONES[kind], _KIND_MEANINGS[kind]) for kind in reversed(KINDS)]
    columns.append(
        choice_column(
            "kind",
            "retrieval",
            [q.kind for q in queries],
            kinds,
            filtered=True,
            all_choices="all of retrieval",
        )
    )
    for name, ranks in (
        ("rank a", [sentences.rank(q.a_hit_rank, q.a_reciprocal) for q in queries]),
        ("rank b", [sentences.rank(q.b_hit_rank, q.b_reciprocal) for q in queries]),
    ):
        told = [rank if q.kind else "" for rank, q in zip(ranks, queries, strict=True)]
        columns.append(
            Column(name=name, head=name, form="word", values=told, wide=True, right=True)
        )
    columns += _answer_columns(queries)
    rungs = [", ".join(dict.fromkeys(q.rungs)) for q in queries]
    if any(rungs):
        columns.append(Column(name="rung", head="rung", form="word", values=rungs, wide=True))
    notes = [q.note for q in queries]
    if any(notes):
        columns.append(Column(name="note", head="note", form="word", values=notes, hidden=True))
    sides = (f"a · {comparison.run_a.name}", f"b · {comparison.run_b.name}")
    return index(
        columns,
        failing,
        sides=sides,
        sort="kind",
        detailed=details is not None,
        marks=dict(sections.MARKS),
        note=_NO_HITS,
        rule=_RULE,
    )


def _answer_columns(queries: Sequence[QueryComparison]) -> list[Column]:
    """What came of the answers, where any were compared."""
    answers = [q.answer for q in queries]
    if not any(answers):
        return []
    kinds = [None if answer is None else answer.kind for answer in answers]
    meanings = [Choice(kind, _TONES[kind]) for kind in reversed(KINDS)]
    changes = [
        ""
        if answer is None
        else answer.a_label
        if answer.a_label == answer.b_label
        else f"{answer.a_label} → {answer.b_label}"
        for answer in answers
    ]
    causes = [
        None
        if answer is None or not (answer.a_cause or answer.b_cause)
        else f"{answer.a_cause or '-'} → {answer.b_cause or '-'}"
        for answer in answers
    ]
    found = [
        choice_column(
            "answer", "answer", kinds, meanings, filtered=True, all_choices="all answers"
        ),
        Column(name="labels", head="labels a → b", form="word", values=changes, wide=True),
    ]
    flips = [sentences.flipped(q) or None for q in queries]
    for name, head, values in (("flipped", "flipped", flips), ("causes", "causes", causes)):
        if any(values):
            found.append(Column(name=name, head=head, form="word", values=values, hidden=True))
    return found


REPORT = ComparisonReport(
    name="html",
    title="one page for the browser, with both ranked lists of every question",
    content=_text,
    suffixes=(".html",),
    detailed=True,
)
