"""Warnings of a run: what its counts say that a reader should know before trusting a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragauge.metrics.metric import Tally
from ragauge.model.error_reasons import counted_reasons
from ragauge.model.profile import JoinRules
from ragauge.text import some


def findings(
    tally: Tally,
    rules: JoinRules,
    *,
    missing: Sequence[str],
    stray: str | None,
    embedders: Sequence[str] = (),
    errors: Mapping[str, int] = {},
    joined: Mapping[str, int] = {},
) -> list[str]:
    """Sentences about what is missing, stands twice, belongs to nothing, or went wrong.

    `missing` are the ids without a trace, `stray` the first trace that belongs to no gold item,
    `errors` the reasons of errors with their counts, `joined` how traces met gold items.
    """
    key = "question" if rules.by == "question" else "id"
    again = (
        "on a question that another trace is on too"
        if rules.keep == "every"
        else f"replaced by a later one of the same {'question' if rules.keep == 'last' else 'slot'}"
    )
    skipped = tally.gold_skipped + tally.trace_skipped
    counts = [
        (tally.gold_duplicates, "gold item", f"replaced by a later one with the same {key}"),
        (tally.missing, "gold item", f"without a trace: {some(missing)}"),
        (tally.missing_slots, "slot", "(paraphrase × seed) without a trace"),
        (tally.duplicates, "trace", again),
        (tally.unknown, "trace", f"of no gold item, the first: {stray}"),
        (tally.errored, "trace", f"with an error: {counted_reasons(errors)}"),
        (tally.repeated_ids, "trace", "with an id twice among the hits"),
        (tally.disordered, "trace", "whose ranks or scores disagree with the order that counts"),
        (skipped, "bad line", "skipped"),
    ]
    sentences = [joined_sentence(joined)] if joined else []
    sentences += [f"{n} {noun if n == 1 else noun + 's'} {what}" for n, noun, what in counts if n]
    if len(embedders) > 1:
        sentences.append(f"ΔS of different embedders: {some(embedders)}")
    return sentences


def joined_sentence(joined: Mapping[str, int]) -> str:
    """How traces met gold items: by their ids, or by the texts of their questions."""
    by_id, by_text, ambiguous, unmatched = (
        joined[name] for name in ("by_id", "by_text", "ambiguous", "unmatched")
    )
    sentence = f"traces joined by id: {by_id}, by question text: {by_text}"
    if ambiguous:
        sentence += f", ambiguous: {ambiguous} (gold has the question more than once)"
    return f"{sentence}, unmatched: {unmatched}"
