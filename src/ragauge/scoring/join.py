"""The join of gold and traces: gold items as columns, and the trace of each slot that counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools, Column, GoldColumns, Ints, Sparse, spread, starts_of
from ragauge.metrics.facts import Fact
from ragauge.model.gold import GoldItem
from ragauge.model.profile import JoinRules
from ragauge.scoring.evidence_pieces import EvidencePieces, GoldDetails, gold_bytes
from ragauge.scoring.slot_ledger import Ledger
from ragauge.scoring.tasks.job import Partial
from ragauge.scoring.trace_columns import FLAGS, NUMBERS, Columns

Facts = NDArray[np.int32]


def gold_columns(
    items: Sequence[GoldItem],
    pieces: Sequence[EvidencePieces],
    gold_details: Mapping[int, GoldDetails],
    rules: JoinRules,
) -> GoldColumns:
    """Give the gold items as columns, unlabelled ones as the rules have them."""
    answer = np.array(
        [_answers(item, mine, rules) for item, mine in zip(items, pieces, strict=True)], np.bool_
    )
    refuse = np.array([item.expect == "refuse" for item in items], np.bool_)
    unlabelled = ~answer & ~refuse
    unanswerable, creditable, refusable = refuse, answer, refuse
    if rules.unlabelled == "creditable":
        unanswerable, creditable = refuse | unlabelled, answer | unlabelled
    elif rules.unlabelled == "unanswerable":
        unanswerable = refusable = refuse | unlabelled
    details = [gold_details.get(question, _NOTHING) for question in range(len(items))]
    known = list(zip(items, details, strict=True))
    members = [
        (group, piece)
        for mine in pieces
        for group, places in enumerate(mine.groups)
        for piece in places
    ]
    return GoldColumns(
        answerable=answer,
        unanswerable=unanswerable,
        creditable=creditable,
        refusable=refusable,
        relevant_count=_column(sum(mine.relevant) for mine in pieces),
        piece_count=_column(len(mine.relevant) for mine in pieces),
        id_count=_column(len(mine.ids) for mine in pieces),
        piece_relevant=np.array([one for mine in pieces for one in mine.relevant], np.bool_),
        piece_gain=np.array([one for mine in pieces for one in mine.gains], np.float64),
        has_claims=np.array(
            [bool(item.claims_any) or rules.no_claims == "counted" for item in items], np.bool_
        ),
        has_constraints=np.array([bool(item.constraints) for item in items], np.bool_),
        # An empty list of claim substrings is contained in any claim; an absent one in none.
        vacuous=np.array(
            [item.claims_any == () and item.claim_rule == "substring" for item in items], np.bool_
        ),
        group_count=_column(len(mine.groups) for mine in pieces),
        member_count=_column(sum(map(len, mine.groups)) for mine in pieces),
        member_group=_column(group for group, _ in members),
        member_piece=_column(piece for _, piece in members),
        doc_count=_column(len(more.docs) for more in details),
        has_section=np.array([more.section is not None for more in details], np.bool_),
        has_negatives=np.array(
            [bool(more.negatives or more.wrong) or more.decoy is not None for more in details],
            np.bool_,
        ),
        has_strings=np.array(
            [bool(more.must_contain or more.forbidden) for more in details], np.bool_
        ),
        has_references=np.array([bool(item.references) for item in items], np.bool_),
        has_judgements=np.array(
            [bool(item.grades or more.negatives or more.wrong) for item, more in known], np.bool_
        ),
        nonrelevant_count=_column(more.nonrelevant_count for more in details),
        span_bytes=np.array([gold_bytes(more.places) for more in details], np.int64),
    )


_NOTHING = GoldDetails()


def _column(values: Iterable[int]) -> Column:
    return np.array(list(values), np.int32)


def _answers(item: GoldItem, pieces: EvidencePieces, rules: JoinRules) -> bool:
    """Whether an answer is expected: said so, or taken from the evidence where rules have it so."""
    if item.expect is not None or rules.unlabelled != "by-evidence":
        return item.expect == "answer"
    return any(pieces.relevant) or item.anchor_section is not None


class Records(Struct, frozen=True, kw_only=True):
    """Scored records as numpy columns; `position` is where each stands in the trace file.

    `open` holds what those cite that have a citation outside their hits.
    """

    question: Ints
    slot: Ints
    position: Ints
    facts: Column
    hits: Column
    cited: Column
    cited_relevant: Column
    ranks: Column
    details: dict[str, Sparse]
    open: dict[int, tuple[str, ...]] = {}

    def take(self, chosen: Bools, gold: GoldColumns) -> Records:
        """Only the chosen records."""
        if chosen.all():
            return self
        return Records(
            question=self.question[chosen],
            slot=self.slot[chosen],
            position=self.position[chosen],
            facts=self.facts[chosen],
            hits=self.hits[chosen],
            cited=self.cited[chosen],
            cited_relevant=self.cited_relevant[chosen],
            ranks=self.ranks[np.repeat(chosen, gold.piece_count[self.question])],
            details={name: table.take(chosen) for name, table in self.details.items()},
            open=_renumbered(self.open, chosen),
        )


def _renumbered(
    entries: Mapping[int, tuple[str, ...]], chosen: Bools
) -> dict[int, tuple[str, ...]]:
    """The entries of the chosen records, numbered anew."""
    if not entries:
        return {}
    number = (np.cumsum(chosen, dtype=np.int64) - 1).tolist()
    return {number[record]: ids for record, ids in entries.items() if chosen[record]}


def records_of(
    partials: Sequence[Partial],
    gold: GoldColumns,
    ledger: Ledger,
    rules: JoinRules,
    *,
    refusal: str,
) -> Records:
    """The scored records of some partials; `refusal` is the rule by which answers are refusals.

    Many partials are joined at a time, because a numpy call costs the same for few records.
    """
    columns = [partial.columns for partial in partials]
    numbers = {
        name: np.frombuffer(b"".join(part.numbers[name] for part in columns), np.int32)
        for name in NUMBERS
    }
    question = numbers["question"]
    slot = (
        _run_slots(partials, ledger) if rules.keep == "slot" else np.zeros(len(question), np.int64)
    )
    if rules.keep == "every":
        keep = np.ones(len(question), np.bool_)
    else:
        if rules.keep == "last":
            ledger.code((None, None, None))
        keep = ledger.claim(question, slot)
    sizes = [len(part.numbers["line"]) // 4 for part in columns]
    ranges = np.repeat(np.array([part.range_index for part in partials], np.int64), sizes)
    details = _details(columns, sizes)
    ids = np.frombuffer(b"".join(part.ranks for part in columns), np.int32)
    everything = Records(
        question=question.astype(np.int64),
        slot=slot,
        # The range above, the line below: positions sort as rows do, before lines are absolute.
        position=(ranges << 32) + numbers["line"],
        facts=_facts(columns, numbers, refusal),
        hits=numbers["hits"],
        cited=numbers["cited"],
        cited_relevant=numbers["cited_relevant"],
        ranks=_ranks(ids, question, gold, details.pop("anchor_rank", None)),
        details=details,
        open={
            first + record: cited_ids
            for part, first in zip(columns, np.cumsum([0, *sizes]).tolist(), strict=False)
            for record, cited_ids in part.open.items()
        },
    )
    return everything.take(keep, gold)


def absent_records(questions: Ints, gold: GoldColumns) -> Records:
    """Records of gold items that have no trace."""
    none = np.zeros(len(questions), np.int32)
    return Records(
        question=questions,
        slot=none.astype(np.int64),
        position=none.astype(np.int64),
        facts=np.full(len(questions), int(Fact.MISSING | Fact.IN_CONTEXT), np.int32),
        hits=none,
        cited=none,
        cited_relevant=none,
        ranks=np.full(int(gold.piece_count[questions].sum()), -1, np.int32),
        details={},
    )


def _details(columns: Sequence[Columns], sizes: Sequence[int]) -> dict[str, Sparse]:
    """The sparse tables of all columns, their records numbered through."""
    names = sorted({name for part in columns for name in part.details})
    first = [0, *np.cumsum(sizes).tolist()]
    tables = {}
    for name in names:
        parts = [(i, part.details[name]) for i, part in enumerate(columns) if name in part.details]
        tables[name] = Sparse(
            np.concatenate(
                [
                    np.frombuffer(table[0], np.int32).astype(np.int64) + first[i]
                    for i, table in parts
                ]
            ),
            np.concatenate(
                [np.frombuffer(table[1], np.int32).astype(np.int64) for _, table in parts]
            ),
            np.concatenate([np.frombuffer(table[2], np.float64) for _, table in parts]),
        )
    return tables


def _ranks(ids: Column, question: Column, gold: GoldColumns, placed: Sparse | None) -> Column:
    """The ranks of all pieces: those known by id, and behind them those with a place."""
    id_count, piece_count = gold.id_count[question], gold.piece_count[question]
    total = int(piece_count.sum())
    if total == len(ids):
        return ids
    ranks = np.full(total, -1, np.int32)
    start = starts_of(piece_count)
    ranks[spread(start, id_count)] = ids
    if placed is not None:
        where = start[placed.record] + id_count[placed.record] + placed.key
        ranks[where] = placed.value.astype(np.int32)
    return ranks


def _run_slots(partials: Sequence[Partial], ledger: Ledger) -> NDArray[np.int64]:
    """The slots of the records, numbered for the whole run."""
    parts = []
    for partial in partials:
        codes = np.array([ledger.code(key) for key in partial.slots], np.int64)
        parts.append(codes[np.frombuffer(partial.columns.numbers["slot"], np.int32)])
    return np.concatenate(parts)


def _facts(
    columns: Sequence[Columns], numbers: Mapping[str, NDArray[np.int32]], refusal: str
) -> Facts:
    """The facts of each record: what was declared, and what reduction found."""
    flags = {
        name: np.frombuffer(b"".join(part.flags[name] for part in columns), np.bool_)
        for name in FLAGS
    }
    declared = numbers["facts"]
    cited = numbers["cited"] > 0
    spoken = ~flags["silent"]
    listed = ~flags["unlisted"]
    odd = (declared & int(Fact.ODD_CITATIONS)) != 0
    by_place = (declared & int(Fact.CITES_DECIDED)) != 0
    placed = (declared & int(Fact.CONTEXT_DECIDED)) != 0
    holding = {
        Fact.ANSWER: spoken | listed,
        Fact.LISTED: listed,
        Fact.CITED: cited,
        Fact.CITED_RELEVANT: (numbers["cited_relevant"] > 0) & ~by_place,
        Fact.CONTAINED: flags["contained"],
        Fact.IN_CONTEXT: (flags["in_context"] | ~cited) & ~odd & ~placed,
        **_refusals(flags, spoken, declared, refusal),
    }
    if len(flags["repeated"]):
        holding[Fact.REPEATED] = flags["repeated"]
    facts = declared.copy()
    for fact, holds in holding.items():
        facts |= holds.astype(np.int32) * np.int32(fact)
    return facts


def _refusals(
    flags: Mapping[str, Bools], spoken: Bools, declared: Facts, rule: str
) -> dict[Fact, Bools]:
    """What the texts decide, in the order of the rules; a flag that is read decided before."""
    if rule == "grounded":
        return {}
    decided = (declared & int(Fact.BY_FLAG | Fact.BY_GROUNDED)) != 0
    token = flags["token"]
    natural = spoken & flags["natural"] & ~token
    if rule == "token":
        # What a flag speaks of is reported by the flag. It also makes an answer of a record.
        return {
            Fact.BY_TOKEN | Fact.REFUSED: spoken & token,
            Fact.BY_NATURAL: natural & ((declared & int(Fact.ANSWER)) == 0),
        }
    pattern = spoken & flags["pattern"] & ~token
    return {
        Fact.BY_TOKEN | Fact.REFUSED: spoken & token & ~decided,
        Fact.BY_PATTERN | Fact.REFUSED: pattern & ~decided,
        Fact.BY_NATURAL | Fact.REFUSED: natural & ~pattern & ~decided,
    }


def batch_of(
    gold: GoldColumns, rules: JoinRules, records: Records, *, absent_counts: bool
) -> Batch:
    """Make a batch of records.

    Under a profile that follows its source every record is an answer, be it an empty one. Under
    any other an errored trace has neither hits nor an answer, whatever was written before the
    error. An answer to an item that names no strings lacks none.
    """
    facts, hits, cited, ranks = records.facts, records.hits, records.cited, records.ranks
    details: Mapping[str, Sparse] = records.details
    unnamed = ~gold.has_strings[records.question]
    facts = facts | unnamed.astype(np.int32) * np.int32(Fact.STRINGS_OK)
    traceless = (facts & int(Fact.MISSING)) != 0
    with_error = (facts & int(Fact.ERRORED)) != 0
    if rules.absent == "empty-answer":
        facts = (facts & ~int(Fact.ERRORED | Fact.MISSING)) | int(Fact.ANSWER)
    elif with_error.any():
        # Of a trace with an error nothing else counts, but for the rule that it was kept by.
        failed = int(Fact.ERRORED) | (facts & int(Fact.OVERSAMPLED))
        facts = np.where(with_error, failed, facts).astype(np.int32)
        hits, cited = np.where(with_error, 0, hits), np.where(with_error, 0, cited)
        ranks = np.where(np.repeat(with_error, gold.piece_count[records.question]), -1, ranks)
    return Batch(
        gold=gold,
        question=records.question,
        facts=facts,
        hit_count=hits,
        cited_count=cited,
        plain_cited_relevant=records.cited_relevant,
        ranks=ranks,
        details=details,
        traceless=traceless,
        with_error=with_error,
        absent_counts=absent_counts,
        no_evidence_counts=rules.no_evidence == "recalled",
        nothing_satisfies=rules.nothing_to_check == "satisfied",
        errored_is_empty=rules.errored_hits == "empty" and absent_counts,
        shows_missing=rules.keep != "every",
    )
