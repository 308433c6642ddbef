"""The Markdown report of a comparison: what changed, why it may have, and in which questions."""

from __future__ import annotations

from ragauge import contrasting, markdown, wording
from ragauge.contrasting import Group
from ragauge.model.comparison import (
    Comparison,
    ComparisonReport,
    ComparisonView,
    Delta,
    QueryComparison,
)

_ROWS = 50


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    runs = comparison.run_a, comparison.run_b
    lines = [
        f"# ragauge: {' → '.join(markdown.escaped(run.name) for run in runs)}",
        "",
        *_paragraph(_sentence(contrasting.headline(comparison))),
        *_verdict(comparison),
        "## What was compared",
        "",
        *_runs(comparison),
        *_paragraph(_sentence(contrasting.left_out_line(comparison))),
        "## Why it may differ",
        "",
        *_causes(view),
        "## Metrics",
        "",
        *_deltas(comparison),
        "## Questions",
        "",
        f"- {contrasting.retrieval_line(comparison)}",
        f"- {contrasting.answer_line(comparison)}",
        "",
        *_questions(view),
        *_notes(comparison),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _paragraph(text: str) -> list[str]:
    return [markdown.escaped(text), ""]


def _verdict(comparison: Comparison) -> list[str]:
    verdict = comparison.verdict
    if verdict is None:
        return []
    return [f"**{markdown.escaped(wording.headline(verdict))}**", "", *markdown.gates(verdict)]


def _runs(comparison: Comparison) -> list[str]:
    """Both runs side by side; what is known of neither is not asked."""
    a, b = comparison.run_a, comparison.run_b
    told = [
        ("run", a.name, b.name),
        ("created", a.created_at, b.created_at),
        ("commit", a.commit_hash, b.commit_hash),
        ("suite", a.suite, b.suite),
        ("profile", a.profile, b.profile),
        ("gold", a.gold_name, b.gold_name),
        ("trace", a.trace_name, b.trace_name),
        ("chunker", ", ".join(a.chunker_versions), ", ".join(b.chunker_versions)),
    ]
    rows = [
        (head, markdown.escaped(one) if one else "-", markdown.escaped(other) if other else "-")
        for head, one, other in told
        if one or other
    ]
    rows += [
        ("questions", str(a.questions), str(b.questions)),
        ("missing", str(a.missing), str(b.missing)),
        ("errored", str(a.errored), str(b.errored)),
    ]
    return markdown.table(["", "a", "b"], rows)


def _causes(view: ComparisonView) -> list[str]:
    causes = view.comparison.causes
    if not causes:
        return ["No difference between the two configurations is known.", ""]
    shown = causes if view.full else causes[:_ROWS]
    lines = [f"- {markdown.escaped(contrasting.cause_line(each))}" for each in shown]
    return [*lines, "", *_more(len(causes) - len(shown))]


def _more(more: int) -> list[str]:
    return [f"... and {more} more.", ""] if more else []


def _deltas(comparison: Comparison) -> list[str]:
    shown = contrasting.shown_deltas(comparison.deltas)
    lines = []
    if shown:
        heads = ["metric", "a", "b", "Δ", "95 % interval", "p (Holm)", "n", "detectable"]
        lines += markdown.table(heads, [_delta(each) for each in shown])
        lines += [_legend(shown), ""]
    else:
        lines += ["No metric has a value in either run.", ""]
    undefined = contrasting.undefined_line(comparison.deltas)
    rest = [
        *contrasting.reason_lines(comparison.deltas),
        *([] if undefined is None else [undefined]),
        contrasting.rung_line(comparison),
    ]
    return [*lines, *(f"- {markdown.escaped(line)}" for line in rest), ""]


def _delta(delta: Delta) -> tuple[str, ...]:
    change = wording.signed(delta.delta)
    p = contrasting.chance(delta.p)
    return (
        f"{markdown.code(delta.metric)}{' ↓' if delta.better == 'lower' else ''}"
        f"{' (gated)' if delta.gated else ''}",
        wording.number(delta.a),
        wording.number(delta.b),
        f"**{change}**" if contrasting.is_beyond_chance(delta) else change,
        contrasting.bounds(delta.interval),
        p if delta.p_holm is None else f"{p} ({contrasting.chance(delta.p_holm)})",
        str(delta.n),
        wording.number(delta.detectable),
    )


def _legend(shown: list[Delta]) -> str:
    """How the table is read; only what is in it."""
    told = ["Δ is b - a over the n questions that have a value in both runs"]
    if any(map(contrasting.is_beyond_chance, shown)):
        told.append(
            "bold where interval and p agree on a change, which by chance one in twenty does"
        )
    if any(each.p_holm is not None for each in shown):
        told.append("p in brackets is corrected over the gated metrics")
    if any(each.detectable is not None for each in shown):
        told.append("detectable is the change that this n would show in four cases of five")
    if any(each.better == "lower" for each in shown):
        told.append("↓ marks metrics of which less is better")
    return f"{'; '.join(told)}."


def _questions(view: ComparisonView) -> list[str]:
    """A table for each kind, regressions first, of retrieval and of answers."""
    lines: list[str] = []
    found = contrasting.groups(view, _ROWS)
    for group in found:
        title = f"{group.about} {contrasting.PLURALS[group.kind]}".capitalize()
        lines += [f"### {title} ({group.total})", ""]
        lines += _retrieval(group) if group.about == "retrieval" else _answers(group)
        lines += _more(group.more)
    slots = contrasting.slots_line(found)
    return lines if slots is None else [*lines, *_paragraph(_sentence(slots))]


def _retrieval(group: Group) -> list[str]:
    return markdown.table(
        ["question", "kind", "rank a", "rank b", "note"],
        [
            (
                markdown.escaped(wording.question_name(each.query_id, each.turn)), group.kind,
                contrasting.rank(each.a_hit_rank, each.a_reciprocal),
                contrasting.rank(each.b_hit_rank, each.b_reciprocal),
                markdown.escaped(contrasting.note(each)),
            )
            for each in group.queries
        ],
    )  # fmt: skip


def _answers(group: Group) -> list[str]:
    return markdown.table(
        ["question", "kind", "label a", "label b", "flipped"],
        [_answer(each, group.kind) for each in group.queries],
    )


def _answer(query: QueryComparison, kind: str) -> tuple[str, ...]:
    assert query.answer is not None
    return (
        markdown.escaped(wording.question_name(query.query_id, query.turn)),
        kind,
        markdown.escaped(contrasting.labelled(query.answer.a_label, query.answer.a_cause)),
        markdown.escaped(contrasting.labelled(query.answer.b_label, query.answer.b_cause)),
        markdown.escaped(contrasting.flipped(query)),
    )


def _notes(comparison: Comparison) -> list[str]:
    if not comparison.notes:
        return []
    return ["## Notes", "", *(f"- {markdown.escaped(note)}" for note in comparison.notes)]


REPORT = ComparisonReport(
    name="md",
    title="Markdown for people and pull requests",
    content=_text,
    suffixes=(".md",),
)
