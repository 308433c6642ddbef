"""A close-up of one question of a stored run: its gold items, its traces, and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.model import phrases
from ragauge.model.chunk import Chunk
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import ResultFacts, ResultRow
from ragauge.model.scores import QuestionResult, Scores
from ragauge.model.trace import Hit, Trace
from ragauge.report.terminal.stored_runs import labelled
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.spans import Span
from ragauge.store.snapshot import Snapshot, plan_of
from ragauge.text import plain

_NEAR = 3


class Result(Struct, frozen=True, kw_only=True):
    """One stored result of the question; `expected` are the ranks of hits that were wanted.

    A trace that cannot be read is None. `by_place`: gold names a chunk, and where in it the
    evidence stands decides; then `possible` are the ranks of hits that may be evidence.
    """

    facts: ResultFacts
    trace: Trace | None
    expected: tuple[int, ...] = ()
    possible: tuple[int, ...] = ()
    by_place: bool = False


class Closeup(Struct, frozen=True, kw_only=True):
    """All that is stored of one question; `outcomes` are its labels by turn, where it has any."""

    query_id: str
    items: tuple[GoldItem, ...]
    results: tuple[Result, ...]
    outcomes: Mapping[int | None, QuestionResult] = {}


def close_up(
    query_id: str,
    snapshot: Snapshot,
    items: Sequence[GoldItem],
    chunks: dict[str, Chunk],
    rows: Iterable[ResultRow],
    *,
    scores: Scores | None = None,
) -> Closeup:
    """Find a question in the gold set, among the results of a run, and in its scores."""
    stored = [row for row in rows if row.facts.query_id == query_id]
    gold_items = tuple(item for item in items if item.qid == query_id)
    if not gold_items and not stored:
        raise _unknown(query_id, items)
    recogniser = EvidenceIdentifier(
        plan_of(snapshot.scoring, metrics=()), items, chunks, gold_name=snapshot.inputs.gold_name
    )
    if scores is not None:
        recogniser.follow_places(scores)
    results = []
    for row in stored:
        try:
            trace = trace_of(thaw(row.payload))
        except UNREADABLE:
            results.append(Result(facts=row.facts, trace=None))
            continue
        item = recogniser.find(trace.qid or query_id, trace.question, trace.turn)
        expected, possible = _marked_ranks(recogniser, item, trace.hits)
        results.append(
            Result(
                facts=row.facts,
                trace=trace,
                expected=expected,
                possible=possible,
                by_place=item in recogniser.by_place,
            )
        )
    return Closeup(
        query_id=query_id,
        items=gold_items,
        results=tuple(results),
        outcomes={
            outcome.turn: outcome
            for outcome in (() if scores is None else scores.questions)
            if outcome.qid == query_id
        },
    )


def _marked_ranks(
    recogniser: EvidenceIdentifier, question: int | None, hits: Sequence[Hit]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ranks, from 1, of the hits that are evidence of a question, and of those that may be."""
    if question is None:
        return (), ()
    wanted = recogniser.wanted(question)
    marks = recogniser.hit_marks(wanted, hits, recogniser.places(wanted, hits))
    expected, possible = (
        tuple(rank for rank, mine in enumerate(marks, 1) if mark in mine)
        for mark in ("gold", "possible")
    )
    return expected, possible


def _unknown(query_id: str, items: Sequence[GoldItem]) -> RagaugeError:
    import difflib

    query_ids = dict.fromkeys(item.qid for item in items)
    near = difflib.get_close_matches(query_id, query_ids, _NEAR) or list(query_ids)[:_NEAR]
    listed = ", ".join(f"`{plain(near_id)}`" for near_id in near)
    return RagaugeError.of(
        "usage",
        f"the run has no question `{plain(query_id)}`",
        hint=f"there are {listed}" if near else "its gold set is empty",
    )


def documents(close: Closeup) -> Iterator[dict[str, Any]]:
    """The close-up as plain JSON values: the gold items, then the results."""
    for item in close.items:
        outcome = close.outcomes.get(item.turn)
        outcome_fields = {} if outcome is None else {"label": outcome.label, "cause": outcome.cause}
        yield {"kind": "gold", "item": msgspec.to_builtins(item), **outcome_fields}
    for result in close.results:
        yield {
            "kind": "result",
            **result.facts._asdict(),
            "expected_ranks": list(result.expected),
            **({"possible_ranks": list(result.possible)} if result.by_place else {}),
            "trace": None if result.trace is None else msgspec.to_builtins(result.trace),
        }


def lines(close: Closeup, width: int) -> list[str]:
    """The close-up in words."""
    text_lines: list[str] = []
    for item in close.items:
        text_lines += [*_item_lines(item, width)]
        outcome = close.outcomes.get(item.turn)
        if outcome is not None:
            label_and_cause = ", ".join(filter(None, (outcome.label, outcome.cause)))
            text_lines += labelled("label", [label_and_cause], width)
        text_lines.append("")
    if not close.items:
        text_lines += [*labelled("question", [f"{close.query_id}: not in the gold set"], width), ""]
    for result in close.results:
        text_lines += [*_result_lines(result, width), ""]
    if not close.results:
        text_lines += ["no result is stored for it", ""]
    return text_lines[:-1]


def _item_lines(item: GoldItem, width: int) -> list[str]:
    name = item.qid if item.turn is None else f"{item.qid} turn {item.turn}"
    expect = {"answer": "an answer", "refuse": "a refusal", None: ""}[item.expect]
    facts = {
        "question": [name, *([item.question] if item.question else [])],
        "expects": [expect] if expect else [],
        "evidence": [
            *item.relevant,
            *(_anchor(anchor) for anchor in item.anchors),
            *(f"{name}, grade {grade:g}" for name, grade in item.grades.items()),
            *(f"document {doc}" for doc in item.relevant_docs or ()),
        ],
        "claims": list(item.claims_any or ()),
        "strings": list(item.must_contain),
    }
    return [line for label, texts in facts.items() for line in labelled(label, texts, width)]


def _anchor(anchor: Anchor) -> str:
    parts = [anchor.id, anchor.doc, _spans(anchor.spans)]
    return ", ".join(part for part in parts if part) + (
        f": “{anchor.quote}”" if anchor.quote else ""
    )


def _spans(spans: Sequence[Span]) -> str:
    return ", ".join(f"{span.unit} {span.start}-{span.end}" for span in spans)


def _result_lines(result: Result, width: int) -> list[str]:
    facts, trace = result.facts, result.trace
    slot = {name: getattr(facts, name) for name in ("paraphrase", "seed", "turn")}
    slot_words = [f"{name} {value}" for name, value in slot.items() if value is not None]
    line = "" if trace is None or trace.line is None else f", line {trace.line}"
    rank = "no evidence found" if facts.hit_rank is None else f"first evidence {facts.hit_rank}"
    if result.by_place:
        rank = "gold does not say where in its chunk the evidence stands"
    head = [f"{facts.ordinal + 1}{line}: {facts.outcome}, {rank}"]
    head += [", ".join(slot_words)] if slot_words else []
    lines = labelled("result", head, width)
    if trace is None:
        return [*lines, *labelled("", ["the stored trace cannot be read"], width)]
    lines += labelled("error", [trace.error] if trace.error is not None else [], width)
    hits = [f"{_sign(rank, result)}{rank} {_hit(hit)}" for rank, hit in enumerate(trace.hits, 1)]
    lines += labelled("hits", hits or ["none"], width)
    if result.expected:
        lines += labelled("", ["* expected"], width)
    if result.possible:
        lines += labelled("", ["? expected if the evidence stands there"], width)
    answer = trace.answer
    if answer is not None:
        answer_text = "refused" if answer.refused else answer.said
        lines += labelled("answer", [answer_text if answer_text is not None else "none"], width)
        lines += labelled("cites", [citation.id for citation in answer.listed], width)
    timing = trace.timing
    if timing is not None and timing.total is not None:
        lines += labelled("took", [f"{timing.total:g} ms"], width)
    return lines


def _sign(rank: int, result: Result) -> str:
    if rank in result.expected:
        return "*"
    return "?" if rank in result.possible else " "


def _hit(hit: Hit) -> str:
    parts = [hit.id, hit.doc or "", _spans(hit.spans)]
    score = "" if hit.score is None else f"score {phrases.number(hit.score)}"
    return ", ".join(part for part in [*parts, score] if part)
