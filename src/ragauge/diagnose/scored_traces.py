"""Scored traces: which of some traces count, and for which question, as a run has it.

A turn of a conversation is a question of its own, and the last trace of a slot is the one that is
scored. Where the gold set is known, so is what belongs to none of its questions. Files are read,
and traces joined with gold, as `score` does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.formats.detect import FormatChoice, choose
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.formats.load import (
    load_gold,
    open_sources,
    read_gold,
    read_traces,
)
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import thaw_gold, trace_of
from ragauge.model.profile import JoinRules
from ragauge.model.run import RunRecord, Store
from ragauge.model.trace import Trace
from ragauge.scoring.engines.choose import stored_engine
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.store.runs import begin_loading
from ragauge.store.snapshot import plan_of, read_snapshot

Slot = tuple[int | str | None, int | str | None, int | None]
"""Paraphrase, seed and turn; without a gold set a wording stands for the paraphrase."""


class QuestionKey(NamedTuple):
    """A question by its id, and by its turn where it is one of a conversation."""

    qid: str
    turn: int | None = None

    @property
    def order(self) -> tuple[str, int]:
        """Where it comes among others, whatever order their traces had."""
        return self.qid, -1 if self.turn is None else self.turn


class ScoredTraces(Struct, frozen=True, kw_only=True):
    """The traces that count, question by question, and how many do not.

    `unknown` are the names of those that belong to no gold item, as they came; `left_out` counts
    by reason.
    """

    by_question: dict[QuestionKey, tuple[Trace, ...]]
    left_out: dict[str, int] = {}
    unknown: tuple[str, ...] = ()

    def traces(self) -> Iterator[Trace]:
        """All of them, question by question."""
        for group in self.by_question.values():
            yield from group

    def with_traces(self, others: Iterable[Trace]) -> ScoredTraces:
        """The same with other traces in their places."""
        rest = iter(others)
        by_question = {
            question: tuple(next(rest) for _ in group)
            for question, group in self.by_question.items()
        }
        return replace(self, by_question=by_question)


UNKNOWN = "traces of no gold item"
_USUAL = JoinRules()


def scored_traces(
    traces: Iterable[Trace], rules: JoinRules = _USUAL, *, known: EvidenceIdentifier | None = None
) -> ScoredTraces:
    """Sort traces by question and slot, as `rules` have it.

    `known` knows the questions of the gold set. Without it a question is what the traces call one.
    """
    by_slot: dict[QuestionKey, dict[Slot | int, Trace]] = {}
    unknown: dict[str, None] = {}
    replaced = strays = 0
    for place, trace in enumerate(traces):
        named = _named(trace, rules) if known is None else _known(trace, known)
        if named is None:
            unknown.setdefault(trace.qid or trace.question or "(no id)")
            strays += 1
            continue
        question, slot = named
        slots = by_slot.setdefault(question, {})
        key: Slot | int = slot
        if rules.keep != "slot":
            key = place if rules.keep == "every" else 0
        replaced += key in slots
        slots[key] = trace
    without_error = {
        question: tuple(trace for trace in by_slot[question].values() if trace.error is None)
        for question in sorted(by_slot, key=lambda question: question.order)
    }
    errored = sum(map(len, by_slot.values())) - sum(map(len, without_error.values()))
    of = "question" if rules.keep == "last" else "slot"
    excluded = {
        UNKNOWN: strays,
        f"traces replaced by a later one of the same {of}": replaced,
        "traces with an error": errored,
        "gold items without a trace": 0 if known is None else len(known.items) - len(by_slot),
    }
    return ScoredTraces(
        by_question={question: group for question, group in without_error.items() if group},
        left_out={reason: count for reason, count in excluded.items() if count},
        unknown=tuple(unknown),
    )


def _known(trace: Trace, known: EvidenceIdentifier) -> tuple[QuestionKey, Slot] | None:
    place = known.find(trace.qid, trace.question, trace.turn)
    if place is None:
        return None
    item = known.items[place]
    paraphrase = known.paraphrase(place, trace.paraphrase, trace.question)
    return QuestionKey(item.qid, item.turn), (paraphrase, trace.seed, trace.turn)


def _named(trace: Trace, rules: JoinRules) -> tuple[QuestionKey, Slot]:
    """The question as a trace calls it; a wording of its own is a slot of its own."""
    by_text = rules.by == "question"
    name = trace.question if by_text else trace.qid or trace.question
    turn = trace.turn if rules.keep == "slot" else None
    wording = trace.question if trace.paraphrase is None else trace.paraphrase
    return QuestionKey(name or "", turn), (wording, trace.seed, trace.turn)


class ProbeInput(Struct, frozen=True, kw_only=True):
    """Traces that are scored, and the gold items that they are of; none where no gold is known."""

    scored: ScoredTraces
    items: Sequence[GoldItem] = ()


def probed_file(
    traces: PathLike,
    gold: PathLike | None,
    *,
    profile: str | None = None,
    dialect: str = "auto",
    fields: FieldMaps = NO_FIELDS,
) -> ProbeInput:
    """The traces of a file, with the gold set where one is given."""
    with ExitStack() as stack:
        gold_source, trace_source = open_sources(
            stack, gold, traces, fields=fields, dialect=dialect
        )
        assert trace_source is not None
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source)
        loaded = read_traces(trace_source, choice)
        loaded.stop_on_problems()
        recogniser = None
        if gold_source is not None:
            gold_set = read_gold(gold, gold_source, choice)
            gold_set.stop_on_problems()
            recogniser = _recogniser(choice, gold_set.items, gold_source.name)
        return _probed(loaded.items, choice.profile.join, recogniser, trace_source.name)


def probed_run(store: Store, run: RunRecord, gold: PathLike | None) -> ProbeInput:
    """The traces of a stored run, with its own gold set or with another one."""
    snapshot = read_snapshot(run.snapshot, run.run_id)
    if gold is None:
        items, name = thaw_gold(store.gold(run.gold_key), run.run_id), snapshot.inputs.gold_name
    else:
        gold_set = load_gold(gold)
        items, name = list(gold_set.items), gold_set.name
    with ExitStack() as stack:
        engine = stored_engine(stack, run.results, 1)
        source = begin_loading(stack, store, run, engine)().source
        with open(source.path, "rb") as file:
            traces = [trace_of(line) for line in file]
    recogniser = EvidenceIdentifier(
        plan_of(snapshot.scoring, metrics=()), items, {}, gold_name=name
    )
    return _probed(traces, recogniser.rules, recogniser, run.run_id)


def _recogniser(choice: FormatChoice, items: Sequence[GoldItem], name: str) -> EvidenceIdentifier:
    plan = ScoringPlan(
        profile=choice.profile,
        dialect=choice.dialect,
        own=choice.own,
        sole=choice.sole,
        k=choice.profile.k,
        selected=[],
    )
    return EvidenceIdentifier(plan, items, {}, gold_name=name)


def _probed(
    traces: Sequence[Trace], rules: JoinRules, recogniser: EvidenceIdentifier | None, name: str
) -> ProbeInput:
    if not traces:
        raise RagaugeError.of(
            "nothing-measured",
            f"there is no trace in `{name}`",
            hint="a probe needs traces whose hits have texts or ΔS",
        )
    scored = scored_traces(traces, rules, known=recogniser)
    if scored.left_out.get(UNKNOWN, 0) == len(traces):
        raise RagaugeError.of(
            "nothing-measured",
            f"no trace of `{name}` belongs to a gold item",
            hint="compare one id of each file: a changed prefix is the usual cause",
        )
    return ProbeInput(scored=scored, items=() if recogniser is None else recogniser.items)
