"""The least and the greatest value of metrics, where evidence stands somewhere in a chunk.

Metrics of ranks are asked at every place (`chunk_records`). Others also depend on how long the
evidence is: three sentences that were found are three relevant hits if the evidence is as long, and
one or two if it is short. So these are asked for every stretch of the chunk, from the shortest
evidence up to the whole of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge import registry
from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools, Floats, Ints, Sparse
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Selected
from ragauge.metrics.questions import Questions
from ragauge.model.unit_ranks import UnitFindings
from ragauge.scoring.chunk_records import (
    BY_RANKS,
    ChunkRecords,
    means_of,
    metric_values,
    outcome_values,
    rank_ends,
    rebuilt,
    repeated,
    run_outcomes,
    unit_ranks_of,
    units_of,
)
from ragauge.scoring.evidence_places import RankedPlace
from ragauge.scoring.labels import DEPTH
from ragauge.scoring.places import (
    ACCURATE_TABLE,
    CITED_COVER_TABLES,
    COVER_TABLES,
    HITS_TABLE,
    MOST_RANKS,
    POSSIBLE_CITED_TABLE,
    ChunkPlaces,
    chunk_covers,
    possible_ranks,
    touching,
)
from ragauge.spans import Merged, merged, of_unit, overlap
from ragauge.stats import exact_sums

BY_HITS = frozenset(
    f"retrieval.{name}" for name in ("precision", "precision_at_cutoff", "r_precision")
)
"""The metrics that count the hits that are evidence."""

BY_SPANS = frozenset(f"retrieval.{name}" for name in ("span_recall", "span_precision", "span_iou"))
"""The metrics of how much text came back."""

BY_CITATIONS = frozenset(
    (
        *("citation.hit_rate", "citation.hit_rate_answerable", "citation.accuracy"),
        *("citation.precision", "citation.recall", "answer.coverage"),
        *("answer.grounded_precision", "answer.precision"),
    )
)
"""The metrics of what answers cite."""

BY_SLOTS = frozenset(
    f"stability.{name}"
    for name in ("convergent", "flip_rate", "lambda_divergent", "lambda_chaotic")
)
"""The metrics of questions that only rise, or only fall, with the slots that find evidence."""

WITHOUT_BAND = frozenset(("retrieval.judged", "retrieval.unjudged", "stability.lambda_recursive"))
"""Metrics that depend on the place, and whose ends are not known."""

BY_PLACE = BY_HITS | BY_SPANS | BY_CITATIONS | WITHOUT_BAND
"""Metrics that depend on the place by more than its rank."""

_MOST_PLACES = 40
"""A chunk with more places has stretches only between those that are near the end of a hit."""


# --- stretches of one chunk ---


class _Covers(NamedTuple):
    """What hits, or citations, cover of one chunk in one record, by their ranks."""

    ranks: list[int]
    spans: list[Merged]
    sizes: list[int]


def stretches_of(chunk: ChunkPlaces, borders: Sequence[int], least: int) -> tuple[Ints, Ints]:
    """Where evidence may begin and end in a chunk: stretches of at least the shortest evidence.

    What text is covered, and what share of a stretch, is least and greatest for a stretch with its
    ends at borders of hits, or of the shortest length with one end there: in between, moving an end
    moves the value in one direction. Places are added for metrics that count hits; of a long chunk
    only those near a border, as elsewhere they are all alike.
    """
    lows: list[int] = []
    highs: list[int] = []
    extents: Sequence[tuple[int, int]] = [(0, 0)]  # nothing of it where only its document is known
    if chunk.text is not None:
        extents = [(chunk.places[0][0], chunk.places[-1][1])]
    elif chunk.anchor.spans:
        extents = of_unit(chunk.anchor.spans, chunk.anchor.spans[0].unit)
    for start, end in extents:
        places = [place for place in chunk.places if start <= place[0] and place[1] <= end]
        if len(places) > _MOST_PLACES:
            places = [
                place
                for place in places
                if place in (places[0], places[-1])
                or any(place[0] - least <= border <= place[1] + least for border in borders)
            ]
        begins = {start, *(low for low, _ in places)}
        begins |= {at for border in borders for at in (border, border - least)}
        stops = {end, *(high for _, high in places)}
        stops |= {at for border in borders for at in (border, border + least)}
        fewest = min(least, end - start)
        for low in sorted(begins):
            for high in sorted(stops):
                if start <= low and high <= end and high - low >= fewest:
                    lows.append(low)
                    highs.append(high)
    return np.array(lows, np.int64), np.array(highs, np.int64)


def _overlaps(spans: Merged, lows: Ints, highs: Ints) -> Ints:
    shared = np.zeros(len(lows), np.int64)
    for start, end in spans:
        shared += np.maximum(0, np.minimum(highs, end) - np.maximum(lows, start))
    return shared


class _RelevantHits(NamedTuple):
    """How many of the first hits are evidence of a chunk, at least and at most, by their number.

    And which are so wherever the evidence stands, and which if it stands at the right place.
    """

    low: Ints
    high: Ints
    surely: Bools
    possibly: Bools


class _Stretches:
    """The stretches of one chunk in one record, and what covers them."""

    def __init__(self, chunk: ChunkPlaces, covers: _Covers, least: int) -> None:
        borders = sorted({end for spans in covers.spans for span in spans for end in span})
        self.covers = covers
        self.lows, self.highs = stretches_of(chunk, borders, least)
        self.lengths = self.highs - self.lows
        self.shared = [_overlaps(spans, self.lows, self.highs) for spans in covers.spans]

    def relevant(self) -> NDArray[np.bool_]:
        """Whether each cover shares half of the shorter with each stretch."""
        rows = [
            (shared > 0) & (2 * shared >= np.minimum(of_hit, self.lengths))
            for shared, of_hit in zip(self.shared, self.covers.sizes, strict=True)
        ]
        return np.array(rows, np.bool_).reshape(len(rows), len(self.lows))

    def counts(self, hits: int) -> _RelevantHits:
        """How many of the first hits are relevant, and which."""
        relevant = self.relevant()
        sums = np.cumsum(relevant, axis=0)
        low, high = np.zeros((2, hits), np.int64)
        surely, possibly = np.zeros((2, hits), np.bool_)
        for rank, row, mine in zip(self.covers.ranks, sums, relevant, strict=True):
            if rank < hits:
                low[rank:], high[rank:] = row.min(), row.max()
                surely[rank], possibly[rank] = mine.all(), mine.any()
        return _RelevantHits(low, high, surely, possibly)

    def covered(self, hits: int) -> tuple[Ints, Ints, Ints]:
        """How much of each stretch the first hits cover together, by rank; the least and most."""
        union: Merged = []
        rows = np.zeros((hits, len(self.lows)), np.int64)
        for rank, spans in zip(self.covers.ranks, self.covers.spans, strict=True):
            if rank < hits:
                union = merged([*union, *spans])
                rows[rank:] = _overlaps(union, self.lows, self.highs)
        return rows, rows.min(axis=1), rows.max(axis=1)


class HitRelevance(NamedTuple):
    """Whether a hit, or a citation, is evidence of a chunk: wherever it stands, and somewhere."""

    rank: int
    surely: bool
    possibly: bool


def hits_in_chunk(
    chunk: ChunkPlaces, ranked: Sequence[RankedPlace], first: Mapping[str, int], *, least: int
) -> list[HitRelevance]:
    """The hits that may be evidence of a chunk; `first` has the first rank of each id."""
    if not chunk.places:
        ranks = possible_ranks(chunk, ranked, first)
        return [HitRelevance(rank, is_sure, True) for rank, is_sure in ranks]
    covers = [
        cover
        for cover in touching(chunk, chunk_covers(chunk, ranked, first))
        if first.get(cover.id, cover.rank) == cover.rank
    ]
    columns = _Covers(
        [cover.rank for cover in covers],
        [cover.spans for cover in covers],
        [cover.size for cover in covers],
    )
    relevant = _Stretches(chunk, columns, least).relevant()
    return [
        HitRelevance(rank, bool(row.all()), bool(row.any()))
        for rank, row in zip(columns.ranks, relevant, strict=True)
    ]


# --- records ---


class RecordEnds(NamedTuple):
    """The least and the greatest value of a metric for each record; nan where it has none."""

    low: Floats
    high: Floats


def record_ends(
    run: ChunkRecords, questions: Sequence[int], selected: Sequence[Selected], *, least: int
) -> tuple[Ints, dict[str, RecordEnds]]:
    """The records of questions, and the ends of each metric that depends on more than ranks."""
    records = np.array([record for at in questions for record in run.records[at]], np.int64)
    chosen = [one for one in selected if one.metric.id in BY_HITS | BY_SPANS | BY_CITATIONS]
    if not chosen or not len(records):
        return records, {}
    looked = OpenRecords(run, records, least)
    ends = {}
    batches: dict[str, tuple[Batch, Batch]] = {}
    for one in chosen:
        name = one.metric.id
        if name in BY_SPANS:
            plain = metric_values(one, looked.batch)
            tables = looked.spans[name.partition("span_")[2]]
            low, high = (_stepped(table, plain, one.k or 0) for table in tables)
        else:
            family = "hits" if name in BY_HITS else "citations"
            if family not in batches:
                batches[family] = looked.hits() if family == "hits" else looked.citations()
            low, high = (metric_values(one, batch) for batch in batches[family])
        ends[one.id] = RecordEnds(low, high)
    return records, ends


def _stepped(table: Mapping[int, Floats], plain: Floats, k: int) -> Floats:
    """The values at a cut-off, of records with a row; the others have none to replace."""
    values = plain.copy()
    for record, row in table.items():
        if len(row) and not np.isnan(plain[record]):
            values[record] = row[min(k, len(row)) - 1]
    return values


class OpenRecords:
    """The records of questions that depend on places, and what their stretches leave open."""

    def __init__(self, run: ChunkRecords, records: Ints, least: int) -> None:
        ranks = [rank for record in records.tolist() for rank in run.ranks[record]]
        details = tuple(run.batch.details)
        self.batch = repeated(run.batch, records, np.array(ranks, np.int32), details)
        self.run = run
        self.least = least
        self.question = self.batch.question.tolist()

    def _covers(self, tables: tuple[str, str, str]) -> dict[tuple[int, int], _Covers]:
        """What covers each chunk of each record, by record and the number of the chunk."""
        by_chunk: dict[tuple[int, int], dict[int, tuple[list[int], list[int], list[int]]]] = {}
        for at, name in enumerate(tables):
            table = self.batch.detail(name)
            rows = zip(table.record.tolist(), table.key.tolist(), table.value.tolist(), strict=True)
            for record, key, value in rows:
                of_chunk = by_chunk.setdefault((record, key // MOST_RANKS), {})
                of_chunk.setdefault(key % MOST_RANKS, ([], [], []))[at].append(int(value))
        covers = {}
        for chunk, by_rank in by_chunk.items():
            ranks = sorted(by_rank)
            spans = [list(zip(*by_rank[rank][:2], strict=True)) for rank in ranks]
            covers[chunk] = _Covers(ranks, spans, [by_rank[rank][2][0] for rank in ranks])
        return covers

    def _stretches(
        self, tables: tuple[str, str, str], records: Sequence[int]
    ) -> dict[int, list[tuple[ChunkPlaces, _Stretches]]]:
        covers = self._covers(tables)
        nothing = _Covers([], [], [])
        return {
            record: [
                (chunk, _Stretches(chunk, covers.get((record, chunk.number), nothing), self.least))
                for chunk in self.run.chunks[self.question[record]]
            ]
            for record in records
        }

    @property
    def _touched(self) -> list[int]:
        return sorted(set(self.batch.detail(HITS_TABLE).record.tolist()))

    @cached_property
    def _hit_stretches(self) -> dict[int, list[tuple[ChunkPlaces, _Stretches]]]:
        return self._stretches(COVER_TABLES, self._touched)

    def hits(self) -> tuple[Batch, Batch]:
        """The records with the fewest relevant hits within every rank, and with the most."""
        sure = _by_record(self.batch.detail("sure_rank"))
        ends: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
        for record, stretches in self._hit_stretches.items():
            hits = int(self.batch.hit_count[record])
            sure_hits = np.zeros(hits, np.bool_)
            sure_hits[[rank for rank, _ in sure.get(record, ()) if rank < hits]] = True
            counted = self._counted(record)
            low: Ints = np.zeros(hits, np.int64)
            most: Ints = np.cumsum(sure_hits)
            possible = sure_hits.copy()
            for chunk, of_chunk in stretches:
                if chunk.number not in counted:
                    continue
                of_hits = of_chunk.counts(hits)
                low = np.maximum(low, of_hits.low)
                most = most + of_hits.high
                sure_hits |= of_hits.surely
                possible |= of_hits.possibly
            low = np.maximum(low, np.cumsum(sure_hits))
            high = np.minimum(most, np.cumsum(possible))
            for entries, sums in zip(ends, (low, high), strict=True):
                entries += [
                    (record, rank)
                    for rank, more in enumerate(np.diff(sums, prepend=0).tolist())
                    for _ in range(more)
                ]
        table = self.batch.detail("relevant_rank")
        rest = ~np.isin(table.record, np.array(self._touched, np.int64))
        low_batch, high_batch = (
            rebuilt(
                self.batch,
                details={
                    **self.batch.details,
                    "relevant_rank": Sparse(
                        np.concatenate([table.record[rest], _column(entries, 0)]),
                        np.concatenate([table.key[rest], _column(entries, 1)]),
                        np.ones(int(rest.sum()) + len(entries)),
                    ),
                },
            )
            for entries in ends
        )
        return low_batch, high_batch

    def _counted(self, record: int) -> set[int]:
        """The chunks of a record's question that are evidence, and not only graded or grouped."""
        gold, question = self.batch.gold, self.question[record]
        first = int(gold.piece_start[question] + gold.id_count[question])
        return {
            chunk.number
            for chunk in self.run.chunks[question]
            if gold.piece_relevant[first + chunk.number]
        }

    @cached_property
    def spans(self) -> dict[str, tuple[dict[int, Floats], dict[int, Floats]]]:
        """Recall, precision and IoU of text by rank, of each touched record: least and most."""
        names = ("recall", "precision", "iou")
        ends: dict[str, tuple[dict[int, Floats], dict[int, Floats]]] = {
            name: ({}, {}) for name in names
        }
        unions, sure = (
            _by_record(self.batch.detail(name)) for name in ("span_union", "sure_covered")
        )
        for record, stretches in self._hit_stretches.items():
            hits = int(self.batch.hit_count[record])
            union = _cumulated(unions.get(record, ()), hits)
            sure_covered = _cumulated(sure.get(record, ()), hits)
            of_record = self._span_ends(record, stretches, union, sure_covered)
            for name, pair in of_record.items():
                for table, row in zip(ends[name], pair, strict=True):
                    table[record] = row
        return ends

    def _span_ends(
        self,
        record: int,
        stretches: Sequence[tuple[ChunkPlaces, _Stretches]],
        union: Floats,
        sure_covered: Floats,
    ) -> dict[str, tuple[Floats, Floats]]:
        question = self.question[record]
        counted = self._counted(record)
        parts = [one for chunk, one in stretches if chunk.text is None and chunk.number in counted]
        chunks = [chunk for chunk, _ in stretches if chunk.text is None and chunk.number in counted]
        sure_bytes = self.run.sure_bytes.get(question, 0)
        hits = len(union)
        if not parts:
            recall = sure_covered / max(1, sure_bytes)
            iou = sure_covered / np.maximum(1, sure_bytes + union - sure_covered)
            return {
                "recall": (recall, recall),
                "precision": _shares(sure_covered, sure_covered, union),
                "iou": (iou, iou),
            }
        if len(parts) == 1 and not sure_bytes:
            (part,) = parts
            rows, least_of, most_of = part.covered(hits)
            recall = rows / np.maximum(part.lengths, 1)  # a chunk without a stretch is not found
            iou = rows / np.maximum(1, part.lengths + union[:, None] - rows)
            return {
                "recall": (recall.min(axis=1), recall.max(axis=1)),
                "precision": _shares(least_of, most_of, union),
                "iou": (iou.min(axis=1), iou.max(axis=1)),
            }
        # Of several places at once the ends are not all reached together: they are the outer ones.
        lows: list[Ints | Floats] = [sure_covered]
        highs: list[Ints | Floats] = [sure_covered]
        recalls = [(sure_covered / sure_bytes,) * 2] if sure_bytes else []
        shortest, longest = [sure_bytes], [sure_bytes]
        for part in parts:
            rows, least_of, most_of = part.covered(hits)
            recall = rows / np.maximum(part.lengths, 1)  # a chunk without a stretch is not found
            recalls.append((recall.min(axis=1), recall.max(axis=1)))
            lows.append(least_of)
            highs.append(most_of)
            shortest.append(int(part.lengths.min()))
            longest.append(int(part.lengths.max()))
        apart = not sure_bytes and _are_apart(chunks)
        low = np.sum(lows, axis=0) if apart else np.max(lows, axis=0)
        high = np.minimum(np.sum(highs, axis=0), union)
        most_bytes, fewest = sum(longest), sum(shortest) if apart else max(shortest)
        return {
            "recall": (
                np.min([one for one, _ in recalls], axis=0),
                np.max([other for _, other in recalls], axis=0),
            )
            if apart
            else (np.zeros(hits), np.minimum(1.0, high / max(1, fewest))),
            "precision": _shares(low, high, union),
            "iou": (
                low / np.maximum(1, most_bytes + union - low),
                np.minimum(1.0, high / np.maximum(1, fewest + union - high)),
            ),
        }

    def citations(self) -> tuple[Batch, Batch]:
        """The records with the fewest citations of evidence, and with the most."""
        sure_pieces = _by_record(self.batch.detail("sure_cited_piece"))
        sure_cited = _by_record(self.batch.detail("sure_cited"))
        sure_accurate = _by_record(self.batch.detail("sure_accurate"))
        accurate = _by_record(self.batch.detail(ACCURATE_TABLE))
        unplaced = _by_record(self.batch.detail(POSSIBLE_CITED_TABLE))
        touched = sorted(sure_pieces)
        stretches = self._stretches(CITED_COVER_TABLES, touched)
        counts = {record: int(self.batch.different_citations[record]) for record in touched}
        relevant: tuple[list[int], list[int]] = [], []
        pieces: tuple[list[int], list[int]] = [], []
        agreeing: tuple[list[bool], list[bool]] = [], []
        for record in touched:
            number = counts[record]
            sure = np.zeros(number, np.bool_)
            sure[[at for at, _ in sure_cited.get(record, ()) if at < number]] = True
            low, possible = 0, sure.copy()
            low_pieces = high_pieces = int(sure_pieces[record][0][1])
            counted = self._counted(record)
            for chunk, of_chunk in stretches[record]:
                if chunk.number not in counted or not number:
                    continue
                if chunk.places:
                    of_citations = of_chunk.counts(number)
                else:
                    entries = unplaced.get(record, ())
                    of_citations = _unplaced_citations(entries, chunk, number)
                fewest = int(of_citations.low[-1])
                low = max(low, fewest)
                sure |= of_citations.surely
                possible |= of_citations.possibly
                low_pieces += bool(fewest)
                high_pieces += bool(of_citations.possibly.any())
            relevant[0].append(max(low, int(sure.sum())))
            relevant[1].append(int(possible.sum()))
            pieces[0].append(low_pieces)
            pieces[1].append(high_pieces)
            codes = [value for key, value in accurate.get(record, ()) if key in counted]
            agreeing[0].append(record in sure_accurate or 1 in codes)
            agreeing[1].append(record in sure_accurate or bool(codes))
        at = np.array(touched, np.int64)
        low_batch, high_batch = (
            self._cited_batch(at, relevant[end], pieces[end], agreeing[end]) for end in (0, 1)
        )
        return low_batch, high_batch

    def _cited_batch(
        self, at: Ints, relevant: list[int], pieces: list[int], agreeing: list[bool]
    ) -> Batch:
        facts = self.batch.facts.copy()
        for fact, holds in (
            (Fact.CITED_RELEVANT, np.array(relevant) > 0),
            (Fact.ACCURATE, agreeing),
        ):
            cleared = facts[at] & ~np.array(int(fact), facts.dtype)
            facts[at] = np.where(np.array(holds, np.bool_), cleared | int(fact), cleared)
        details = dict(self.batch.details)
        for name, values in (("cited_relevant", relevant), ("cited_pieces", pieces)):
            table = self.batch.detail(name)
            rest = ~np.isin(table.record, at)
            details[name] = Sparse(
                np.concatenate([table.record[rest], at]),
                np.concatenate([table.key[rest], np.zeros(len(at), np.int64)]),
                np.concatenate([table.value[rest], np.array(values, np.float64)]),
            )
        return rebuilt(self.batch, facts=facts, details=details)


def _unplaced_citations(
    entries: Sequence[tuple[int, float]], chunk: ChunkPlaces, citations: int
) -> _RelevantHits:
    """The citations that are of a chunk without places, or may be."""
    surely, possibly = np.zeros((2, citations), np.bool_)
    for key, is_sure in entries:
        number = key % MOST_RANKS
        if key // MOST_RANKS == chunk.number and number < citations:
            surely[number], possibly[number] = bool(is_sure), True
    return _RelevantHits(np.cumsum(surely), np.cumsum(possibly), surely, possibly)


def _are_apart(chunks: Sequence[ChunkPlaces]) -> bool:
    """Whether no two chunks of a question share a byte; not where one has no place."""
    if not all(chunk.anchor.spans for chunk in chunks):
        return False
    extents = [
        (chunk.anchor.doc, of_unit(chunk.anchor.spans, chunk.anchor.spans[0].unit))
        for chunk in chunks
    ]
    return not any(
        doc == other_doc and overlap(extent, other)
        for at, (doc, extent) in enumerate(extents)
        for other_doc, other in extents[:at]
    )


def _shares(low: Ints | Floats, high: Ints | Floats, union: Floats) -> tuple[Floats, Floats]:
    nothing = np.full(len(union), np.nan)
    low_share, high_share = (
        np.divide(part, union, out=nothing.copy(), where=union > 0) for part in (low, high)
    )
    return low_share, high_share


def _cumulated(entries: Sequence[tuple[int, float]], hits: int) -> Floats:
    grown = np.zeros(hits)
    for rank, more in entries:
        if rank < hits:
            grown[rank] += more
    return np.cumsum(grown)


def _by_record(table: Sparse) -> dict[int, list[tuple[int, float]]]:
    entries: dict[int, list[tuple[int, float]]] = {}
    rows = zip(table.record.tolist(), table.key.tolist(), table.value.tolist(), strict=True)
    for record, key, value in rows:
        entries.setdefault(record, []).append((key, value))
    return entries


def _column(entries: Sequence[tuple[int, int]], place: int) -> Ints:
    return np.array([entry[place] for entry in entries], np.int64)


def question_ends(
    run: ChunkRecords, questions: Sequence[int], selected: Sequence[Selected], *, least: int
) -> dict[str, tuple[Floats, Floats]]:
    """The ends of each metric that depends on more than ranks: of each question, over its slots."""
    _, ends = record_ends(run, questions, selected, least=least)
    sizes = [len(run.records[question]) for question in questions]
    return {
        name: (means_of(of_records.low, sizes), means_of(of_records.high, sizes))
        for name, of_records in ends.items()
    }


# --- one run ---


class MetricEnds(NamedTuple):
    """The sums of a metric over the records of open questions, in its unit: least and greatest."""

    low: Ints
    high: Ints


class RunEnds(Struct, frozen=True, kw_only=True):
    """What a run is worth at the ends of what its places leave open.

    questions  the questions whose values depend on places
    sums       of each metric, by its id
    hitting    the least and the greatest number of slots that cite evidence; `found` that find it
    unknown    metrics of which nothing can be said
    units      the ranks of all that a question expects, at best and at worst
    """

    questions: Ints
    sums: dict[str, MetricEnds]
    hitting: tuple[Ints, Ints]
    found: tuple[Ints, Ints]
    unknown: frozenset[str]
    units: dict[int, tuple[UnitFindings, UnitFindings]]


def is_unplaced(run: ChunkRecords, questions: Sequence[int]) -> bool:
    """Whether a chunk has no places at all, so that nothing but its ranks is bounded."""
    return any(not chunk.places for question in questions for chunk in run.chunks[question])


def run_ends(run: ChunkRecords, selected: Sequence[Selected], *, least: int) -> RunEnds | None:
    """The ends of one run; None where nothing depends on the place of the evidence."""
    questions = list(run.by_place)
    if not questions:
        return None
    outcomes = [(question, run_outcomes(run, question)) for question in questions]
    starts = np.cumsum([0, *(len(each) for _, each in outcomes[:-1])]).astype(np.int64)
    by_ranks = [one for one in selected if one.metric.id in BY_RANKS]
    near = Selected(registry.metrics()["retrieval.hit"], DEPTH)
    asked = by_ranks if near in by_ranks else [*by_ranks, near]
    values = outcome_values(run, outcomes, asked, reduce=_unit_sums)
    sums = {
        one.id: MetricEnds(
            np.minimum.reduceat(values[one.id], starts), np.maximum.reduceat(values[one.id], starts)
        )
        for one in by_ranks
    }
    found = values[near.id]
    records, ends = record_ends(run, questions, selected, least=least)
    sizes = np.array([len(run.records[question]) for question in questions], np.int64)
    first = np.cumsum([0, *sizes[:-1].tolist()]).astype(np.int64)
    for one in selected:
        if one.id in ends:
            low, high = (_unit_sums(one, column, sizes) for column in ends[one.id])
            sums[one.id] = MetricEnds(low, high)
    low_hits, high_hits = _hitting(run, records, least)
    return RunEnds(
        questions=np.array(questions, np.int64),
        sums=sums,
        hitting=(np.add.reduceat(low_hits, first), np.add.reduceat(high_hits, first)),
        found=(np.minimum.reduceat(found, starts), np.maximum.reduceat(found, starts)),
        unknown=WITHOUT_BAND,
        units={question: _unit_ends(run, question) for question in questions},
    )


def _hitting(run: ChunkRecords, records: Ints, least: int) -> tuple[Ints, Ints]:
    """Whether each record is answered and cites evidence: surely, and possibly."""
    low, high = OpenRecords(run, records, least).citations()
    ends = []
    for batch in (low, high):
        present = ~batch.traceless & (batch.absent_counts | ~batch.errored)
        ends.append((batch.answered & batch.hit & present).astype(np.int64))
    return ends[0], ends[1]


def _unit_sums(selected: Selected, values: Floats, sizes: Sequence[int] | Ints) -> Ints:
    """The sum of each stretch of values in the unit of the metric; nan counts nothing."""
    metric = selected.metric
    units = exact_sums.to_units(np.nan_to_num(values), 1 if metric.binary else metric.unit)
    starts = np.cumsum([0, *list(sizes)[:-1]]).astype(np.int64)
    sums: Ints = np.add.reduceat(units, starts)
    return sums


def _unit_ends(run: ChunkRecords, question: int) -> tuple[UnitFindings, UnitFindings]:
    """The best and the worst ranks of each unit of a question, slot by slot."""
    units = units_of(run.batch.gold, question)
    slots = len(run.records[question])
    best, worst = (
        UnitFindings(slots, unit_ranks_of(units, rows)) for rows in rank_ends(run, question)
    )
    return best, worst


def questions_at(questions: Questions, ends: RunEnds, *, high: bool) -> Questions:
    """What came of questions over their slots, with as many that find evidence as there may be."""
    hitting = questions.hitting.copy()
    chosen = ends.found if questions.index_only else ends.hitting
    hitting[ends.questions] = chosen[high]
    return replace(questions, hitting=hitting)
