"""Warnings of a run: what its counts say that a reader should know before trusting a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragauge.metrics.metric import Tally
from ragauge.model.error_reasons import counted_reasons
from ragauge.model.profile import JoinRules
from ragauge.scoring.gold_table import UnmatchedClaims
from ragauge.text import REFUSAL_TOKEN, some

_MOST_NAMED = 5


class UnreadRefusals(Struct, frozen=True):
    """Refusals that the rule of a run does not see: by text, by flag, and of which questions."""

    reads: int
    says: int
    names: Sequence[str]


def findings(
    tally: Tally,
    rules: JoinRules,
    *,
    missing: Sequence[str],
    stray: str | None,
    embedders: Sequence[str] = (),
    errors: Mapping[str, int] = {},
    unread: UnreadRefusals | None = None,
    unmatched: UnmatchedClaims | None = None,
    joined: Mapping[str, int] = {},
) -> list[str]:
    """Sentences about what is missing, stands twice, belongs to nothing, or went wrong.

    `missing` are the ids without a trace, `stray` the first trace that belongs to no gold item,
    `errors` the reasons of errors with their counts, `unmatched` claims too short to match,
    `joined` how traces met gold items.
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
    if unread is not None and (unread.reads or unread.says):
        sentences.append(_unread_refusals(unread))
    if unmatched is not None:
        are = "claim" if unmatched.count == 1 else "claims"
        more = unmatched.count - len(unmatched.first)
        named = ", ".join(unmatched.first) + (f" and {more} more" if more else "")
        sentences.append(
            f"{unmatched.count} {are} under 5 characters, which never match, as in the source of "
            f"the profile: {named}"
        )
    return sentences


def _unread_refusals(unread: UnreadRefusals) -> str:
    """What the rule `token` hides, and how to have it read."""
    parts = []
    if unread.reads:
        read = (
            "answer reads like a refusal but lacks"
            if unread.reads == 1
            else ("answers read like refusals but lack")
        )
        parts.append(f"{unread.reads} {read} the token `{REFUSAL_TOKEN}`")
    if unread.says:
        carry = "carries" if unread.says == 1 else "carry"
        answers = "" if unread.reads else "answer " if unread.says == 1 else "answers "
        parts.append(f"{unread.says} {answers}{carry} `refused: true`")
    names = [*unread.names[:_MOST_NAMED], *(["…"] if len(unread.names) > _MOST_NAMED else [])]
    return f'{", ".join(parts)}: {", ".join(names)}; set `refusal.rule = "natural"`'


def joined_sentence(joined: Mapping[str, int]) -> str:
    """How traces met gold items: by their ids, or by the texts of their questions."""
    by_id, by_text, ambiguous, unmatched = (
        joined[name] for name in ("by_id", "by_text", "ambiguous", "unmatched")
    )
    sentence = f"traces joined by id: {by_id}, by question text: {by_text}"
    if ambiguous:
        sentence += f", ambiguous: {ambiguous} (gold has the question more than once)"
    return f"{sentence}, unmatched: {unmatched}"
