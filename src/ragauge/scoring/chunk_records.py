"""Records whose evidence stands somewhere in a chunk, and what they are worth at every place.

The same place is taken in both runs, so that what is unknown of it cancels out where it matters to
neither. Metrics are computed by their own formulas: a record is repeated for every outcome, with
the ranks of that outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import fsum, isnan, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Floats, GoldColumns, Ints, Sparse, spread, starts_of
from ragauge.metrics.metric import Selected
from ragauge.scoring.evidence_pieces import is_effective
from ragauge.scoring.places import (
    MOST_RANKS,
    NOT_FOUND,
    OWN_TABLE,
    PLACE_TABLE,
    POSSIBLE_TABLE,
    SIZE_TABLE,
    TOUCH_TABLE,
    ChunkPlaces,
)

MOST_OUTCOMES = 10_000
"""Combinations of a question that are computed one by one; above, the ends of either run are."""

BY_RANKS = frozenset(
    f"retrieval.{name}"
    for name in (
        *("recall", "recall_all", "hit", "mrr", "ndcg", "map", "group_recall"),
        *("negative_above", "bpref"),
    )
)
"""The metrics that are functions of the ranks of the evidence."""

_AT_ONCE = 200_000  # records that are measured at a time

Ranks = tuple[int, ...]
"""The rank of one piece in every record of a question."""


class ChunkRecords:
    """The records of one run, with the chunks of their questions.

    `sure_bytes` is how much text the places of each question have that are no chunks;
    `open_answers` are the questions of which it depends on the place whether an answer is right.
    """

    def __init__(
        self,
        batches: Sequence[Batch],
        chunks: Mapping[int, tuple[ChunkPlaces, ...]],
        sure_bytes: Mapping[int, int] | None = None,
    ) -> None:
        self._batches = batches
        self.chunks = chunks
        self.sure_bytes = sure_bytes or {}
        self.open_answers: frozenset[int] = frozenset()

    @cached_property
    def batch(self) -> Batch:
        """All records as one batch, with the tables of places and sizes."""
        return _joined(self._batches)

    @cached_property
    def records(self) -> dict[int, list[int]]:
        """The records of each question."""
        records: dict[int, list[int]] = {question: [] for question in self.chunks}
        for record, question in enumerate(self.batch.question.tolist()):
            records[question].append(record)
        return records

    @cached_property
    def ranks(self) -> list[list[int]]:
        """The ranks of all pieces of each record, as if every chunk were a place of its own."""
        counts = self.batch.gold.piece_count[self.batch.question].tolist()
        all_ranks = self.batch.ranks.tolist()
        ranks, begin = [], 0
        for number in counts:
            ranks.append(all_ranks[begin : begin + number])
            begin += number
        return ranks

    @cached_property
    def runs(self) -> dict[int, list[tuple[int, int]]]:
        """The runs of places of each record: place and rank, by place."""
        return _entries(self.batch.detail(PLACE_TABLE))

    @cached_property
    def possible(self) -> dict[int, list[tuple[int, int]]]:
        """The ranks at which chunks without places may be found, and whether they surely are."""
        return _entries(self.batch.detail(POSSIBLE_TABLE))

    @cached_property
    def by_place(self) -> dict[int, frozenset[int]]:
        """The questions whose values depend on places, and the numbers of the chunks that do.

        A chunk that nothing but itself touches is found by its id. So is one that other chunks
        touch, if the index is cut as the gold set has it: a hit named a chunk of that document, at
        the very place where gold has it; or of another document, and a list has all that touches.
        An id that lies elsewhere was used again, and then no id proves anything. The very chunk
        under another id is like any other where some chunk depends on places.
        """
        touched: dict[tuple[int, int], float] = {}
        question = self.batch.question
        table = self.batch.detail(TOUCH_TABLE)
        for at, number, value in _rows(table, question):
            touched[at, number] = max(value, touched.get((at, number), 0))
        anchors = {
            (at, chunk.number): chunk for at, chunks in self.chunks.items() for chunk in chunks
        }
        open_chunks = [key for key, chunk in anchors.items() if is_effective(chunk.anchor)]
        if len(open_chunks) < len(anchors) and touched:
            own = [
                (anchors[at, number].anchor.doc, value)
                for at, number, value in _rows(self.batch.detail(OWN_TABLE), question)
                if not is_effective(anchors[at, number].anchor)
            ]
            believed = bool(own) and all(value > 0 for _, value in own)
            docs = {doc for doc, _ in own} if believed else set()
            unproven = {
                key: value
                for key, value in touched.items()
                if not is_effective(anchors[key].anchor)
                and not (believed and value == 1)
                and anchors[key].anchor.doc not in docs
            }
            # Where the index is cut otherwise, the one chunk that it cuts alike proves nothing.
            if any(unproven.values()):
                open_chunks += unproven
        by_place: dict[int, set[int]] = {}
        for at, number in open_chunks:
            by_place.setdefault(at, set()).add(number)
        return {at: frozenset(by_place[at]) for at in sorted(by_place)}

    def is_by_place(self, question: int, chunk: ChunkPlaces) -> bool:
        """Whether a chunk is found by the place of its evidence, not by its id."""
        return chunk.number in self.by_place.get(question, ())

    def piece(self, question: int, chunk: ChunkPlaces) -> int:
        """The place of a chunk among the pieces of its question."""
        return int(self.batch.gold.id_count[question]) + chunk.number

    def sizes(self, k: int) -> tuple[float, float]:
        """The median size of a hit in bytes, and the mean of the bytes in the first k."""
        table = self.batch.detail(SIZE_TABLE)
        near = table.key < k
        if not near.any():
            return 0.0, 0.0
        records = np.unique(table.record)
        mean = float(table.total(self.batch.size, k)[records].mean())
        return float(np.median(table.value[near])), mean

    def piece_sizes(self) -> list[int]:
        """How many bytes each chunk has that gold names, where its place is known."""
        return [
            chunk.places[-1][1] - chunk.places[0][0]
            for question in self.by_place
            for chunk in self.chunks[question]
            if chunk.places
        ]


def _rows(table: Sparse, question: Ints) -> Iterator[tuple[int, int, float]]:
    """The question, the key and the value of each entry."""
    return zip(
        question[table.record].tolist(), table.key.tolist(), table.value.tolist(), strict=True
    )


def _joined(batches: Sequence[Batch]) -> Batch:
    first = batches[0]
    starts = np.cumsum([0, *(batch.size for batch in batches)]).tolist()
    details = {}
    for name in sorted({name for batch in batches for name in batch.details}):
        tables = [
            (start, batch.detail(name)) for start, batch in zip(starts, batches, strict=False)
        ]
        details[name] = Sparse(
            np.concatenate([table.record + start for start, table in tables]),
            np.concatenate([table.key for _, table in tables]),
            np.concatenate([table.value for _, table in tables]),
        )
    columns = {
        name: np.concatenate([getattr(batch, name) for batch in batches])
        for name in (*_BY_RECORD, "ranks")
    }
    return rebuilt(first, details=details, **columns)


_READ = ("negative_rank", "judged_rank")
"""The tables that metrics of ranks read."""

_BY_RECORD = (
    *("question", "facts", "hit_count", "cited_count", "plain_cited_relevant"),
    *("traceless", "with_error"),
)


def rebuilt(batch: Batch, **changes: object) -> Batch:
    """A batch with other columns; nothing that was computed of the old ones is taken along."""
    fields = {name: getattr(batch, name) for name in batch.__struct_fields__}
    return Batch(**{**fields, **changes})


def _entries(table: Sparse) -> dict[int, list[tuple[int, int]]]:
    entries: dict[int, list[tuple[int, int]]] = {}
    for record, key, value in zip(
        table.record.tolist(),
        table.key.tolist(),
        table.value.astype(np.int64).tolist(),
        strict=True,
    ):
        entries.setdefault(record, []).append((key, value))
    return entries


# --- outcomes ---


class PieceOutcomes(NamedTuple):
    """How one chunk may be found: its rank in each record of run a and of run b, place by place.

    Each outcome with the number of its places; 0 where nothing is known of places.
    """

    outcomes: dict[tuple[Ranks, Ranks], float]


def piece_outcomes(
    a: ChunkRecords,
    b: ChunkRecords,
    question: int,
    chunks: tuple[ChunkPlaces, ChunkPlaces],
    weights: Sequence[float] | None = None,
) -> PieceOutcomes:
    """All outcomes of a chunk, which each run has under its own number.

    With `weights` of its places, each outcome has their sum in the place of their number.
    """
    chunk_a, chunk_b = chunks
    if not a.is_by_place(question, chunk_a) and not b.is_by_place(question, chunk_b):
        own = _own_ranks(a, question, chunk_a), _own_ranks(b, question, chunk_b)
        return PieceOutcomes({own: 0})
    if chunk_a.places and len(chunk_a.places) == len(chunk_b.places):
        sides = [
            [_runs_of_chunk(run, question, record, chunk) for record in run.records[question]]
            for run, chunk in ((a, chunk_a), (b, chunk_b))
        ]
        split = len(sides[0])
        outcomes: dict[tuple[Ranks, Ranks], float] = {}
        at = 0
        for number, ranks in _merged_runs([*sides[0], *sides[1]], len(chunk_a.places)):
            key = ranks[:split], ranks[split:]
            weight = number if weights is None else fsum(weights[at : at + number])
            outcomes[key] = outcomes.get(key, 0) + weight
            at += number
        return PieceOutcomes(outcomes)
    # Nothing joins the two runs: any outcome of one may go with any of the other.
    possible_a = _side_outcomes(a, question, chunk_a)
    possible_b = _side_outcomes(b, question, chunk_b)
    return PieceOutcomes(dict.fromkeys(product(possible_a, possible_b), 0))


def _own_ranks(run: ChunkRecords, question: int, chunk: ChunkPlaces) -> Ranks:
    """The ranks at which the records of a question find a chunk by its id."""
    piece = run.piece(question, chunk)
    return tuple(run.ranks[record][piece] for record in run.records[question])


def _side_outcomes(run: ChunkRecords, question: int, chunk: ChunkPlaces) -> list[Ranks]:
    records = run.records[question]
    if chunk.places:
        runs = [_runs_of_chunk(run, question, record, chunk) for record in records]
        return list(dict.fromkeys(ranks for _, ranks in _merged_runs(runs, len(chunk.places))))
    ranks_of = []
    for record in records:
        entries = [
            (key % MOST_RANKS, sure)
            for key, sure in run.possible.get(record, ())
            if key // MOST_RANKS == chunk.number
        ]
        ranks = [rank for rank, _ in entries]
        ranks_of.append(ranks if any(sure for _, sure in entries) else [*ranks, NOT_FOUND])
    if len(records) == 1:
        return [(rank,) for rank in ranks_of[0]]
    # Slots share the place, whatever it is: found best in all of them, or worst in all.
    best, worst = tuple(ranks[0] for ranks in ranks_of), tuple(ranks[-1] for ranks in ranks_of)
    return [best] if best == worst else [best, worst]


def _runs_of_chunk(
    run: ChunkRecords, question: int, record: int, chunk: ChunkPlaces
) -> list[tuple[int, int]]:
    """The ranks of the places of a chunk in one record; by its id where nothing else touches it."""
    first, end = chunk.first, chunk.first + len(chunk.places)
    entries = run.runs.get(record, ())
    runs = [(key - first, rank) for key, rank in entries if first <= key < end]
    return runs or [(0, run.ranks[record][run.piece(question, chunk)])]


def _merged_runs(
    runs: Sequence[Sequence[tuple[int, int]]], places: int
) -> Iterator[tuple[int, Ranks]]:
    """Stretches of places with one rank in every record: how many places, and the ranks."""
    starts = sorted({at for own in runs for at, _ in own})
    at_run = [0] * len(runs)
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else places
        for number, own in enumerate(runs):
            while at_run[number] + 1 < len(own) and own[at_run[number] + 1][0] <= start:
                at_run[number] += 1
        yield end - start, tuple(own[at][1] for own, at in zip(runs, at_run, strict=True))


class QuestionOutcomes(NamedTuple):
    """All that may be true of a question: the ranks of its pieces in every record of both runs.

    a, b     the ranks of all pieces, record by record, one entry an outcome
    wide     there are too many outcomes: the entries are the best and the worst of either run, and
             do not go together
    places   each group of places: how many, and the best rank in either run
    pieces   how many of its pieces are chunks, and of how many of them nothing is known
    """

    question: int
    a: list[list[list[int]]]
    b: list[list[list[int]]]
    wide: bool
    places: list[tuple[int, int, int]]
    unplaced: int


def question_outcomes(a: ChunkRecords, b: ChunkRecords, question: int) -> QuestionOutcomes:
    """Put the outcomes of the chunks of a question together; their places are independent."""
    chunks = list(zip(a.chunks[question], b.chunks[question], strict=True))
    each = [piece_outcomes(a, b, question, pair).outcomes for pair in chunks]
    rows_a = [a.ranks[record] for record in a.records[question]]
    rows_b = [b.ranks[record] for record in b.records[question]]
    pieces_a = [a.piece(question, chunk) for chunk, _ in chunks]
    pieces_b = [b.piece(question, chunk) for _, chunk in chunks]
    places = [
        (int(number), _best(ranks_a), _best(ranks_b))
        for outcomes in each
        for (ranks_a, ranks_b), number in outcomes.items()
        if number
    ]
    wide = prod(map(len, each)) > MOST_OUTCOMES
    combinations: list[tuple[tuple[Ranks, Ranks], ...]]
    if wide:
        combinations = [
            tuple(
                (
                    _end([one for one, _ in outcomes], worst=worst),
                    _end([two for _, two in outcomes], worst=worst),
                )
                for outcomes in each
            )
            for worst in (False, True)
        ]
    else:
        combinations = list(product(*each))
    return QuestionOutcomes(
        question,
        [_with_ranks(rows_a, pieces_a, [one for one, _ in chosen]) for chosen in combinations],
        [_with_ranks(rows_b, pieces_b, [two for _, two in chosen]) for chosen in combinations],
        wide,
        places,
        sum(
            not (chunk.places or chunk.anchor.quote) and _is_unknown(chunk, other)
            for chunk, other in chunks
        ),
    )


def run_outcomes(run: ChunkRecords, question: int) -> list[list[list[int]]]:
    """All that may be true of a question in one run: the ranks of its pieces in every record.

    Where there are too many outcomes, the best and the worst of each record.
    """
    each = _outcomes_of_chunks(run, question)
    if prod(map(len, each)) > MOST_OUTCOMES:
        return list(rank_ends(run, question))
    rows, pieces = _rows_and_pieces(run, question)
    return [_with_ranks(rows, pieces, chosen) for chosen in product(*each)]


def rank_ends(run: ChunkRecords, question: int) -> tuple[list[list[int]], list[list[int]]]:
    """The best and the worst ranks of all pieces of a question, in every record of it."""
    each = _outcomes_of_chunks(run, question)
    rows, pieces = _rows_and_pieces(run, question)
    best, worst = (
        _with_ranks(rows, pieces, [_end(outcomes, worst=worst) for outcomes in each])
        for worst in (False, True)
    )
    return best, worst


def _outcomes_of_chunks(run: ChunkRecords, question: int) -> list[list[Ranks]]:
    """The ranks at which each chunk of a question may be found."""
    return [
        _side_outcomes(run, question, chunk)
        if run.is_by_place(question, chunk)
        else [_own_ranks(run, question, chunk)]
        for chunk in run.chunks[question]
    ]


def _rows_and_pieces(run: ChunkRecords, question: int) -> tuple[list[list[int]], list[int]]:
    """The ranks of all pieces in every record of a question, and which of these are chunks."""
    rows = [run.ranks[record] for record in run.records[question]]
    return rows, [run.piece(question, chunk) for chunk in run.chunks[question]]


def _is_unknown(one: ChunkPlaces, other: ChunkPlaces) -> bool:
    """Whether nothing is known of a chunk in some run, not even its document."""
    return any(chunk.anchor.doc.startswith("\0") for chunk in (one, other))


def _order(rank: int) -> int:
    return MOST_RANKS if rank == NOT_FOUND else rank


def _best(ranks: Ranks) -> int:
    return min(ranks, key=_order, default=NOT_FOUND)


def _end(all_ranks: Sequence[Ranks], *, worst: bool) -> Ranks:
    """The best or the worst rank of every record, whatever place it is at."""
    by_record = zip(*all_ranks, strict=True)
    if worst:
        return tuple(max(ranks, key=_order) for ranks in by_record)
    return tuple(min(ranks, key=_order) for ranks in by_record)


def _with_ranks(
    rows: Sequence[Sequence[int]], pieces: Sequence[int], ranks: Sequence[Ranks]
) -> list[list[int]]:
    """The ranks of all pieces of some records, with those of chunks replaced."""
    changed = [list(row) for row in rows]
    for piece, of_piece in zip(pieces, ranks, strict=True):
        for row, rank in zip(changed, of_piece, strict=True):
            row[piece] = rank
    return changed


# --- values ---


class MetricBand(NamedTuple):
    """The ends of one metric for each question: of either run, and of the difference.

    `low` and `high` are the values of both runs where their difference is least and greatest.
    """

    a: tuple[Floats, Floats]
    b: tuple[Floats, Floats]
    low: tuple[Floats, Floats]
    high: tuple[Floats, Floats]


def metric_bands(
    a: ChunkRecords,
    b: ChunkRecords,
    outcomes: Sequence[QuestionOutcomes],
    selected: Sequence[Selected],
) -> dict[str, MetricBand]:
    """The band of each metric that is a function of ranks, question by question; nan for none."""
    chosen = [metric for metric in selected if metric.metric.id in BY_RANKS]
    values_a = outcome_values(a, [(one.question, one.a) for one in outcomes], chosen)
    values_b = outcome_values(b, [(one.question, one.b) for one in outcomes], chosen)
    counts = np.array([len(one.a) for one in outcomes], np.int64)
    starts = starts_of(counts)
    wide = np.array([one.wide for one in outcomes], np.bool_)
    bands = {}
    for metric in chosen:
        one, other = values_a[metric.id], values_b[metric.id]
        least = [np.minimum.reduceat(values, starts) for values in (one, other)]
        most = [np.maximum.reduceat(values, starts) for values in (one, other)]
        delta = other - one
        low = _pair_at(np.minimum.reduceat(delta, starts), delta, one, other, counts, starts)
        high = _pair_at(np.maximum.reduceat(delta, starts), delta, one, other, counts, starts)
        bands[metric.id] = MetricBand(
            (least[0], most[0]),
            (least[1], most[1]),
            (np.where(wide, most[0], low[0]), np.where(wide, least[1], low[1])),
            (np.where(wide, least[0], high[0]), np.where(wide, most[1], high[1])),
        )
    return bands


def _pair_at(
    end: Floats, delta: Floats, one: Floats, other: Floats, counts: Ints, starts: Ints
) -> tuple[Floats, Floats]:
    """The values of both runs at the first outcome of each question that has a difference."""
    at_end = (delta == np.repeat(end, counts)) | np.isnan(delta)
    place = np.where(at_end, np.arange(len(delta)), len(delta))
    first = np.minimum(np.minimum.reduceat(place, starts), len(delta) - 1)
    return one[first], other[first]


def outcome_values(
    run: ChunkRecords,
    outcomes: Sequence[tuple[int, list[list[list[int]]]]],
    selected: Sequence[Selected],
    reduce: Callable[[Selected, Floats, Sequence[int]], NDArray[Any]] | None = None,
) -> dict[str, NDArray[Any]]:
    """The value of each metric for each outcome, the mean over the records of the question.

    `reduce` makes another number of the values of stretches of records.
    """
    reduce = reduce or (lambda _, values, sizes: means_of(values, sizes))
    values: dict[str, list[NDArray[Any]]] = {metric.id: [] for metric in selected}
    source: list[int] = []
    ranks: list[int] = []
    sizes: list[int] = []

    def measure() -> None:
        batch = repeated(run.batch, np.array(source, np.int64), np.array(ranks, np.int32))
        for metric in selected:
            values[metric.id].append(reduce(metric, metric_values(metric, batch), sizes))
        source.clear()
        ranks.clear()
        sizes.clear()

    for question, each in outcomes:
        records = run.records[question]
        for rows in each:
            source += records
            sizes.append(len(records))
            for row in rows:
                ranks += row
        if len(source) > _AT_ONCE:
            measure()
    if sizes:
        measure()
    return {name: np.concatenate(parts) for name, parts in values.items()}


def repeated(batch: Batch, source: Ints, ranks: Ints, tables: Sequence[str] = _READ) -> Batch:
    """Some records of a batch, as often as they are named, with ranks of their own."""
    columns = {name: getattr(batch, name)[source] for name in _BY_RECORD}
    details = {name: _repeated_table(batch.detail(name), source, batch.size) for name in tables}
    return rebuilt(batch, details=details, ranks=ranks, **columns)


def _repeated_table(table: Sparse, source: Ints, size: int) -> Sparse:
    """The entries of records that are repeated."""
    if not len(table.record):
        return table
    counts = np.bincount(table.record, minlength=size)
    order = np.argsort(table.record, kind="stable")
    entries = order[spread(starts_of(counts)[source], counts[source])]
    record = np.repeat(np.arange(len(source), dtype=np.int64), counts[source])
    return Sparse(record, table.key[entries], table.value[entries])


def metric_values(selected: Selected, batch: Batch) -> Floats:
    """The value of a metric for each record; nan outside its population."""
    metric = selected.metric
    assert metric.value is not None
    inside, _ = metric.over.members(batch)
    return np.where(inside, metric.value(batch, selected.k or 0).astype(np.float64), np.nan)


def means_of(values: Floats, sizes: Sequence[int]) -> Floats:
    """The mean of each stretch of values that are not nan."""
    if all(size == 1 for size in sizes):
        return values
    means, begin = [], 0
    every = values.tolist()
    for size in sizes:
        defined = [value for value in every[begin : begin + size] if not isnan(value)]
        means.append(fsum(defined) / len(defined) if defined else np.nan)
        begin += size
    return np.array(means)


def units_of(gold: GoldColumns, question: int) -> list[list[int]]:
    """The units of a question as places among its pieces: groups, or else the relevant pieces."""
    if not gold.member_count[question]:
        first, count = int(gold.piece_start[question]), int(gold.piece_count[question])
        relevant = gold.piece_relevant[first : first + count].tolist()
        return [[piece] for piece in range(count) if relevant[piece]]
    units: list[list[int]] = [[] for _ in range(int(gold.group_count[question]))]
    start = int(gold.member_start[question])
    for member in range(start, start + int(gold.member_count[question])):
        units[int(gold.member_group[member])].append(int(gold.member_piece[member]))
    return units


def unit_ranks_of(
    units: Sequence[Sequence[int]], rows: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], ...]:
    """The ranks of each unit, from 1, in the records that find it."""
    return tuple(
        tuple(
            sorted(
                min(found) + 1
                for row in rows
                if (found := [row[piece] for piece in pieces if row[piece] != NOT_FOUND])
            )
        )
        for pieces in units
    )
