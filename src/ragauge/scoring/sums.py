"""Sums per question: batches in any order and of any size give the same bits.

A float sum depends on the order of its terms, and workers change the order. So every value becomes
a whole number of a small unit first, and whole numbers are added (decision 0005).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools, Floats, GoldColumns, Ints
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Metric, Population, Selected
from ragauge.metrics.populations import possible_members
from ragauge.metrics.questions import Questions
from ragauge.model.labels import CAUSES, LABELS, SEARCH_CAUSES
from ragauge.model.trace import SlotKey
from ragauge.scoring.labels import DEPTH, LabelColumns, labels_of
from ragauge.scoring.refusals import VERSION
from ragauge.scoring.summary import QuestionSums, RecordValues, Sums, joined_values
from ragauge.scoring.unit_ranks import UnitCollector
from ragauge.stats import exact_sums

RULES = {"token": Fact.BY_TOKEN, "refused flag": Fact.BY_FLAG, "grounded flag": Fact.BY_GROUNDED,
         "pattern": Fact.BY_PATTERN, f"natural v{VERSION}": Fact.BY_NATURAL}  # fmt: skip
"""Which rule decided that an answer is a refusal."""

_COUNTERS = ("slots", "hitting", "silent", "refused", "spoken", "found", "empty", "oversampled")
_FEW_CELLS = 4  # cells for each that is named: below that a count over all is quicker
_NO_RECORD = 99
"""Above every code of λ, so that a minimum over records ignores it."""

Membership = tuple[Population, str]
"""A population, and the metric that excludes more than it does; empty for none."""


def count_into(counts: NDArray[np.integer[Any]], cells: NDArray[np.integer[Any]]) -> None:
    """Add 1 to every cell that is named, as often as it is named.

    With many questions a batch names few of the cells: then those alone are touched, for a count
    over all of them would take as long, and as much memory, as the gold set is large.
    """
    flat = counts.reshape(-1)
    if flat.size <= _FEW_CELLS * len(cells):
        flat += np.bincount(cells, minlength=flat.size)
    else:
        np.add.at(flat, cells, 1)


class Totals:
    """Running sums per question: whole numbers, so neither order nor batch size can matter."""

    def __init__(
        self,
        gold: GoldColumns,
        selected: Sequence[Selected],
        correct: Metric,
        *,
        keep_rows: bool,
        keep_labels: bool = False,
        slot_codes: Mapping[SlotKey, int] | None = None,
    ) -> None:
        questions = len(gold.answerable)
        self.gold = gold
        self.selected = [chosen for chosen in selected if chosen.metric.share is None]
        self.of_records = [
            (i, chosen)
            for i, chosen in enumerate(self.selected)
            if chosen.metric.of_question is None
        ]
        self.correct = correct
        # A question never has so many records that 32 bits do not count them.
        self.sums: dict[int, Sums] = {
            i: np.zeros(questions, np.int32 if chosen.metric.binary else np.int64)
            for i, chosen in self.of_records
        }
        self.bottoms = {
            i: np.zeros(questions, np.int64)
            for i, chosen in self.of_records
            if chosen.metric.ratio is not None
        }
        self.values: dict[int, list[RecordValues]] = {
            i: [] for i, chosen in self.of_records if chosen.metric.of_records
        }
        keys = dict.fromkeys(_membership(chosen) for _, chosen in self.of_records)
        self.sizes = {key: np.zeros(questions, np.int32) for key in keys}
        self.excluded: dict[Membership, Counter[str]] = {key: Counter() for key in keys}
        self.labels = np.zeros((len(LABELS), questions), np.int32)
        self.causes = np.zeros((len(CAUSES), questions), np.int32)
        self.searched = False
        # The worst label's rank and the earliest position with it, in one number to maximise.
        self.worst = np.full(questions, -1, np.int64)
        self.refusals: Counter[str] = Counter()
        self.reasons: Counter[int] = Counter()  # of errors, by their codes
        self.confusion: Counter[str] = Counter()
        self.answered = self.refused = self.answerable = self.unanswerable = 0
        # Refusals that the rule of the run does not see: by a flag, by text, of which questions.
        self.says_refused = self.reads_refused = 0
        self.unread_refusals = np.zeros(questions, np.bool_)
        self.errored = self.repeated = self.disordered = self.cited = 0
        # Answers whose citations stand in their text alone, and how many those are.
        self.citing_in_text = self.citations_in_text = 0
        self.spoken = self.most_hits = 0
        self.matches = self.hits_match = False
        # Questions of which a trace names something: a hit, or a citation.
        self.naming = np.zeros(questions, np.bool_)
        self.retrieving = np.zeros(questions, np.bool_)
        self.counters: dict[str, Sums] = {name: np.zeros(questions, np.int32) for name in _COUNTERS}
        self.least_recorded = np.full(questions, _NO_RECORD, np.int8)
        self.most_recorded = np.full(questions, -1, np.int8)
        self.failed = FailedRecords(questions)
        self.keep_rows = keep_rows
        self.rows: list[tuple[Ints, Batch, LabelColumns]] = []
        self.keep_labels = keep_labels
        self.record_labels: list[tuple[Ints, Ints, NDArray[np.uint8]]] = []
        self.units = None if slot_codes is None else UnitCollector(gold, slot_codes)

    def add(
        self, batch: Batch, slot: Ints, position: Ints, labelled: LabelColumns | None = None
    ) -> None:
        """Add the records of a batch; labels are given where the records alone do not decide."""
        if labelled is None:
            labelled = labels_of(batch, self.correct)
        self._measure(batch)
        self._label(batch, position, labelled)
        self._count(batch)
        if self.units is not None:
            self.units.add(batch, slot, position, labelled.labels)
        if self.keep_rows:
            self.rows.append((position, batch, labelled))
        if self.keep_labels:
            self.record_labels.append((batch.question, position, labelled.labels))

    def _measure(self, batch: Batch) -> None:
        members: dict[Population, tuple[Bools, dict[str, int]]] = {}
        counted: set[Membership] = set()
        for i, chosen in self.of_records:
            metric, key = chosen.metric, _membership(chosen)
            if metric.over not in members:
                members[metric.over] = metric.over.members(batch)
            inside, excluded = members[metric.over]
            self.failed.count_possible(metric.over, batch)
            if not inside.any():
                if key not in counted:
                    counted.add(key)
                    self.excluded[key].update(excluded)
                continue
            values, bottoms = _values(chosen, batch)
            if metric.undefined is not None:
                defined = ~np.isnan(np.asarray(values, np.float64))
                lost = int(np.count_nonzero(inside & ~defined))
                inside = inside & defined
                excluded = {**excluded, metric.undefined: lost} if lost else excluded
            if key not in counted:
                counted.add(key)
                self.excluded[key].update(excluded)
                count_into(self.sizes[key], batch.question[inside])
            if metric.binary:
                count_into(self.sums[i], batch.question[inside & np.asarray(values, np.bool_)])
            else:
                self._sum(self.sums[i], batch, inside, values, metric.unit)
                if i in self.values:
                    of_records = np.asarray(values, np.float64)[inside]
                    self.values[i].append(RecordValues(batch.question[inside], of_records))
                if bottoms is not None:
                    self._sum(self.bottoms[i], batch, inside, bottoms, metric.unit)
            inside = inside & batch.with_error
            if inside.any():
                self.failed.add(i, chosen, batch, inside, (values, bottoms))

    @staticmethod
    def _sum(sums: Ints, batch: Batch, inside: Bools, values: object, unit: int) -> None:
        units = exact_sums.to_units(np.asarray(values, np.float64)[inside], unit)
        np.add.at(sums, batch.question[inside], units)

    def _label(self, batch: Batch, position: Ints, labelled: LabelColumns) -> None:
        questions = len(self.worst)
        labels, causes, _ = labelled
        cells = labels.astype(np.int64) * questions + batch.question
        count_into(self.labels, cells)
        # Positions are below 2**56; the earliest of the worst wins.
        score = (labels.astype(np.int64) << 56) | ((1 << 56) - 1 - position)
        np.maximum.at(self.worst, batch.question, score)
        with_cause = np.flatnonzero(causes)
        cells = (causes[with_cause].astype(np.int64) - 1) * questions + batch.question[with_cause]
        count_into(self.causes, cells)
        self.searched = self.searched or bool(batch.hit_count.any())

    def cause_counts(self) -> NDArray[np.int32]:
        """How many records of each question have which cause, as (causes, questions).

        Where no trace of the run has a hit, nothing was recorded that could be missing; nor can
        be what hits could not be recognised as.
        """
        if self.searched:
            return self.causes
        about_hits = np.array([cause in SEARCH_CAUSES for cause in CAUSES], np.bool_)
        return np.where(about_hits[:, None], np.int32(0), self.causes)

    def _count(self, batch: Batch) -> None:
        answered, refused = batch.answered, batch.refused
        self.answered += int(np.count_nonzero(answered))
        self.refused += int(np.count_nonzero(refused))
        self.answerable += int(np.count_nonzero(batch.answerable))
        self.unanswerable += int(np.count_nonzero(batch.unanswerable))
        self.errored += int(np.count_nonzero(batch.with_error))
        self.reasons.update(map(int, batch.detail("error").value.tolist()))
        self.repeated += int(np.count_nonzero(batch.has(Fact.REPEATED)))
        self.disordered += int(np.count_nonzero(batch.has(Fact.DISORDERED)))
        self.cited += int(np.count_nonzero(batch.cited))
        in_text = batch.has(Fact.CITES_IN_TEXT)
        self.citing_in_text += int(np.count_nonzero(in_text))
        self.citations_in_text += int(batch.cited_count[in_text].sum())
        says_refused = batch.has(Fact.SAYS_REFUSED) & ~refused
        reads_refused = batch.has(Fact.BY_NATURAL) & ~refused
        self.says_refused += int(np.count_nonzero(says_refused))
        self.reads_refused += int(np.count_nonzero(reads_refused))
        self.unread_refusals[batch.question[says_refused | reads_refused]] = True
        for name, fact in RULES.items():
            decided = int(np.count_nonzero(refused & batch.has(fact)))
            if decided:
                self.refusals[name] += decided
        spoken = batch.has_answer & ~batch.errored
        self.spoken += int(np.count_nonzero(spoken & ~batch.traceless))
        self.most_hits = max(self.most_hits, int(batch.hit_count.max(initial=0)))
        self.naming[batch.question[(batch.hit_count > 0) | batch.cited]] = True
        self.retrieving[batch.question[batch.hit_count > 0]] = True
        self.hits_match = self.hits_match or _hits_match(batch)
        self.matches = self.matches or self.hits_match or _citations_match(batch)
        for name, holds in {
            "refused, to be refused": refused & batch.unanswerable,
            "refused, answerable": refused & batch.answerable,
            "answered, to be refused": answered & batch.unanswerable,
            "answered, answerable": answered & batch.answerable,
        }.items():
            self.confusion[name] += int(np.count_nonzero(spoken & holds))
        near = batch.first_relevant < DEPTH
        present = ~batch.traceless & (batch.absent_counts | ~batch.errored)
        for name, holds in {
            "slots": present,
            "hitting": answered & batch.hit,
            "silent": refused | ~batch.cited,
            "refused": refused,
            "spoken": spoken,
            "found": near,
            "empty": batch.hit_count == 0,
            "oversampled": batch.has(Fact.OVERSAMPLED),
        }.items():
            count_into(self.counters[name], batch.question[holds & present])
        states = batch.detail("lambda")
        of = batch.question[states.record]
        np.minimum.at(self.least_recorded, of, states.value.astype(np.int8))
        np.maximum.at(self.most_recorded, of, states.value.astype(np.int8))

    @property
    def seen(self) -> Bools:
        """Which questions have a record."""
        return self.worst >= 0

    def worst_labels(self) -> tuple[list[str], Ints]:
        """The worst label of each question and the position of the record that has it."""
        seen = self.seen
        places = np.where(seen, (1 << 56) - 1 - (self.worst & ((1 << 56) - 1)), 0)
        codes = np.where(seen, self.worst >> 56, LABELS.index("MISSING"))
        return [LABELS[code] for code in codes.tolist()], places

    def questions(self, compared: dict[str, Floats], *, by_slot: bool) -> Questions:
        """What came of each question over its slots; `compared` holds what comparing them gave.

        Where slots are not told apart, no question has any.
        """
        counters = self.counters
        index_only = not counters["spoken"].any()
        least, most = self.least_recorded, self.most_recorded
        recorded = np.where(most < 0, -1, np.where(least == most, most, 2)).astype(np.int8)
        nothing = np.full(len(self.worst), np.nan)
        return Questions(
            gold=self.gold,
            slots=counters["slots"] * by_slot,
            traced=counters["slots"] > 0,
            hitting=counters["found" if index_only else "hitting"],
            silent=counters["empty" if index_only else "silent"],
            refused=counters["refused"],
            spoken=counters["spoken"],
            oversampled=counters["oversampled"],
            recorded=recorded,
            index_only=index_only,
            compared=compared.get("compared", np.ones(len(self.worst))) > 0,
            **{name: compared.get(name, nothing) for name in COMPARED},
        )

    def extremes(self, measured: QuestionSums) -> tuple[QuestionSums, ...]:
        """The sums as if all traces with an error were at their worst, and at their best.

        None where no trace has an error.
        """
        if not self.failed.any:
            return ()
        return self.failed.at_end(measured, best=False), self.failed.at_end(measured, best=True)

    def measured(
        self, questions: Questions, *, by_row: bool, cluster: Ints | None
    ) -> tuple[QuestionSums, list[dict[str, int]]]:
        """The sums of each question, and for each metric what was excluded."""
        sums: list[Sums] = []
        records: list[Sums] = []
        members: dict[int, Bools] = {}
        excluded: list[dict[str, int]] = []
        for i, chosen in enumerate(self.selected):
            metric = chosen.metric
            if metric.of_question is not None:
                members[i], reasons = metric.over.members(questions)
                sums.append(np.asarray(metric.of_question(questions), np.float64))
                records.append(questions.slots)
            else:
                key = _membership(chosen)
                reasons = self.excluded[key]
                sums.append(self.sums[i])
                records.append(self.sizes[key])
            excluded.append(dict(sorted(reasons.items())))
        question_sums = QuestionSums(
            selected=tuple(self.selected),
            sums=tuple(sums),
            units=tuple(
                1 if chosen.metric.binary else chosen.metric.unit for chosen in self.selected
            ),
            bottoms=self.bottoms,
            records=tuple(records),
            members=members,
            by_row=by_row,
            cluster=cluster,
            values={i: joined_values(parts) for i, parts in self.values.items()},
        )
        return question_sums, excluded


class FailedRecords:
    """What records with an error add to sums, and of which populations they might have been.

    A gate may not be met or missed by them: it is judged with all of them at the worst value of its
    metric and with all at the best. Nothing is kept of a run without errors.
    """

    def __init__(self, questions: int) -> None:
        self.questions = questions
        self.records = np.zeros(questions, np.int32)
        self.possible: dict[Population, Ints] = {}
        self.sums: dict[int, Ints] = {}
        self.bottoms: dict[int, Ints] = {}
        self.sizes: dict[int, Ints] = {}
        self.counted: tuple[Batch | None, set[Population]] = None, set()

    @property
    def any(self) -> bool:
        """Whether any record has an error."""
        return bool(self.possible)

    def count_possible(self, population: Population, batch: Batch) -> None:
        """Count the records with an error of a batch, once a population."""
        wrong = batch.with_error
        if not wrong.any():
            return
        if self.counted[0] is not batch:
            self.counted = batch, set()
            count_into(self.records, batch.question[wrong])
        if population in self.counted[1]:
            return
        self.counted[1].add(population)
        counts = self.possible.setdefault(population, np.zeros(self.questions, np.int64))
        count_into(counts, batch.question[wrong & possible_members(population, batch)])

    def add(
        self,
        place: int,
        chosen: Selected,
        batch: Batch,
        inside: Bools,
        values: tuple[object, object | None],
    ) -> None:
        """Add what records with an error that are inside a population count as."""
        unit = 1 if chosen.metric.binary else chosen.metric.unit
        questions = batch.question[inside]
        for sums, column in ((self.sums, values[0]), (self.bottoms, values[1])):
            if column is not None:
                units = exact_sums.to_units(np.asarray(column, np.float64)[inside], unit)
                total = sums.setdefault(place, np.zeros(self.questions, np.int64))
                np.add.at(total, questions, units)
        sizes = self.sizes.setdefault(place, np.zeros(self.questions, np.int64))
        count_into(sizes, questions)

    def at_end(self, measured: QuestionSums, *, best: bool) -> QuestionSums:
        """The sums with every record that has an error at one end of each metric's range."""
        sums, records, bottoms = list(measured.sums), list(measured.records), {}
        values = dict(measured.values)
        for place, chosen in enumerate(measured.selected):
            metric = chosen.metric
            if place in measured.bottoms:
                bottoms[place] = measured.bottoms[place]
            if counts_itself(metric) or (metric.ratio is not None and not metric.f1):
                continue
            end = metric.extremes[best]
            if metric.of_question is not None:
                sums[place] = np.where(self.records > 0, end, sums[place])
                continue
            possible = self.possible[metric.over]
            unit = measured.units[place]
            top = end
            if metric.f1:  # twice a true positive of two, or none of one
                top, bottom = (2, 2) if best else (0, 1)
                failed = self.bottoms.get(place, 0)
                bottoms[place] = measured.bottoms[place] - failed + possible * (bottom * unit)
            sums[place] = sums[place] - self.sums.get(place, 0) + possible * round(top * unit)
            records[place] = records[place] - self.sizes.get(place, 0) + possible
            if place in values:  # their populations have no record with an error
                failed = np.repeat(np.arange(self.questions), possible)
                added = RecordValues(failed, np.full(len(failed), float(end)))
                values[place] = joined_values([values[place], added])
        return replace(
            measured, sums=tuple(sums), records=tuple(records), bottoms=bottoms, values=values
        )


def counts_itself(metric: Metric) -> bool:
    """Whether a metric is on what a run has and lacks, errors included: there is no other end."""
    return metric.id.startswith("run.") or metric.sums


def _hits_match(batch: Batch) -> bool:
    """Whether anything that a gold item names was retrieved by any record."""
    tables = ("doc_rank", "section_rank", "negative_rank", "relevant_rank")
    return bool((batch.ranks >= 0).any()) or any(len(batch.detail(name).record) for name in tables)


def _citations_match(batch: Batch) -> bool:
    """Whether anything that a gold item names was cited by any record."""
    cites = batch.has(Fact.CITES_SECTION | Fact.ACCURATE)
    return bool(batch.cited_relevant.any()) or bool(cites.any())


COMPARED = ("citation_jaccard", "claim_distance", "rank_tau")
"""What comparing the slots of a question gives."""


def _membership(chosen: Selected) -> Membership:
    return chosen.metric.over, chosen.id if chosen.metric.undefined is not None else ""


def _values(chosen: Selected, batch: Batch) -> tuple[object, object | None]:
    if chosen.metric.ratio is not None:
        return chosen.metric.ratio(batch, chosen.k or 0)
    assert chosen.metric.value is not None
    return chosen.metric.value(batch, chosen.k or 0), None


def why_empty(excluded: dict[str, int]) -> str:
    """The reason that excluded most."""
    if not excluded:
        return "no-records"
    return min(excluded, key=lambda reason: (-excluded[reason], reason))
