"""One run of scoring: gold items in, partials in, scores out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge import registry
from ragauge.aggregate import Totals
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.findings import findings
from ragauge.join import Ledger, Records, batch_of, gold_columns
from ragauge.loading import Loaded
from ragauge.model.aggregate import MetricResult, QuestionResult, RowResult, Scores
from ragauge.model.dialect import Dialect
from ragauge.model.facts import Fact
from ragauge.model.gold import GoldItem
from ragauge.model.labels import LABELS
from ragauge.model.metric import Selected, Tally
from ragauge.model.profile import Profile
from ragauge.model.trace import Trace
from ragauge.reduce import Reducer, gold_keys
from ragauge.rows import Job, Partial, RangeReducer
from ragauge.source import Range, Source

BATCH_RECORDS = 32_768


class ScoringPlan(Struct, frozen=True, kw_only=True):
    """What is to be measured, and by which rules."""

    profile: Profile
    dialect: Dialect
    own: bool
    k: tuple[int, ...]
    selected: list[Selected]
    absent_counts: bool = True
    patterns: tuple[str, ...] = ()
    intervals: bool = True
    count_repeats: bool = True
    batch_records: int = BATCH_RECORDS


class Run:
    """Takes in gold items and partials, and gives the scores at the end."""

    def __init__(
        self, plan: ScoringPlan, items: Sequence[GoldItem], *, gold_name: str, trace_name: str
    ) -> None:
        self.plan = plan
        self.rules = plan.profile.join
        self.gold_name = gold_name
        self.trace_name = trace_name
        self.read = len(items)
        self.items = unique_items(items, plan.profile, gold_name)
        self.keys = gold_keys(self.items)
        self.gold = gold_columns(self.items, self.rules)
        self.ledger = Ledger(len(self.items))
        self.totals = Totals(
            self.gold,
            plan.selected,
            registry.metrics()[plan.profile.correct],
            keep_rows=self.rules.keep == "every",
        )
        self.waiting: list[Partial] = []
        self.waiting_records = 0
        self.traces = self.unknown = self.scored = 0
        self.unknown_first: list[tuple[int, int, str]] = []
        self.newlines: dict[int, int] = {}
        self.ranges: Sequence[Range] = ()
        self.problems: list[tuple[int, int, Problem]] = []
        self.problem_count = 0
        self.gold_problems: list[Problem] = []
        self.gold_problem_count = 0
        self.warnings: list[str] = []
        self.crlf = False

    def job(self, source: Source) -> Job:
        """What a worker needs to reduce ranges of the trace file."""
        return Job(
            source=source,
            dialect=self.plan.dialect,
            own=self.plan.own,
            rules=self.rules,
            keys=self.keys,
            by_qid={item.qid: code for code, item in enumerate(self.items)},
            by_question=_by_question(self.items, paraphrases=self.rules.by == "either"),
            paraphrases=_paraphrases(self.items) if self.rules.keep == "slot" else {},
            patterns=self.plan.patterns,
            count_repeats=self.plan.count_repeats,
        )

    def note_gold(self, problems: list[Problem], count: int, source: Source | None) -> None:
        """Take note of gold rows that could not be read, and of oddities of the file."""
        self.gold_problems, self.gold_problem_count = problems, count
        if source is not None:
            self.warnings += [f"{source.name}: {note}" for note in source.notes]

    def note_source(self, source: Source, ranges: Sequence[Range]) -> None:
        """Take note of the trace file and its ranges."""
        self.ranges = ranges
        self.warnings += [f"{source.name}: {note}" for note in source.notes]

    def add_traces(self, traces: Sequence[Trace]) -> None:
        """Add traces that are in memory."""
        source = Source(self.trace_name, "", 0, 0, "lines", ())
        self.ranges = [Range(0, 0, 0, 0)]
        self.add_partials([RangeReducer(self.job(source)).reduce_traces(traces)])

    def add_partials(self, partials: Iterable[Partial]) -> None:
        """Add partials, which come from the last range to the first."""
        for partial in partials:
            index = partial.range_index
            self.traces += partial.traces
            self.unknown += partial.unknown
            self.newlines[index] = partial.newlines
            self.crlf = self.crlf or partial.crlf
            self.unknown_first += [(index, line, name) for line, name in partial.unknown_first]
            self.unknown_first = sorted(self.unknown_first)[:MAX_REPORTED]
            self.problem_count += partial.problem_count
            found = [(index, each.line, each.problem) for each in partial.problems]
            self.problems = sorted(self.problems + found, key=_place)[:MAX_REPORTED]
            self.waiting.append(partial)
            self.waiting_records += len(partial.columns.numbers["question"]) // 4
            if self.waiting_records >= self.plan.batch_records:
                self._flush()
        self._flush()

    def _flush(self) -> None:
        if self.waiting_records:
            records = Records(self.waiting, self.gold, self.ledger, self.rules)
            self.scored += len(records.question)
            self._total(records)
        self.waiting, self.waiting_records = [], 0

    def _total(self, records: Records) -> None:
        batch = batch_of(self.gold, self.rules, records, absent_counts=self.plan.absent_counts)
        self.totals.add(batch, records.position)

    def stop_on_problems(self) -> None:
        """Raise what was wrong with the traces, if anything was."""
        self.problems_found().stop_on_problems()

    def problems_found(self) -> Loaded:
        """What was wrong with the traces, with its lines."""
        return Loaded([], self._located(), self.problem_count)

    def together(self) -> list[str]:
        """What gold and traces say of each other, once all traces are in."""
        tally = msgspec.structs.replace(self.finish().tally, gold_skipped=0, trace_skipped=0)
        return self._findings(tally, self._first_lines())

    def _located(self) -> list[Problem]:
        first = self._first_lines()
        located = []
        for index, line, problem in self.problems:
            place = problem.place or Place(self.trace_name)
            place = msgspec.structs.replace(place, line=first[index] + line)
            located.append(msgspec.structs.replace(problem, place=place))
        return located

    def _first_lines(self) -> dict[int, int]:
        """The first line of every range, now that the lines of all ranges are counted."""
        first: dict[int, int] = {}
        line = 1
        for part in self.ranges:
            first[part.index] = line if part.first_line is None else part.first_line
            line += self.newlines.get(part.index, 0)
        return first

    def finish(self) -> Scores:
        """Close the run: add what is missing, and aggregate."""
        seen = self.totals.seen.copy()
        matched = self.traces - self.unknown
        missing = int(np.count_nonzero(~seen))
        missing_slots = self.ledger.missing_slots(seen) if self.rules.keep == "slot" else 0
        if missing and self.rules.keep != "every":
            self._add_missing(np.flatnonzero(~seen))
        totals = self.totals
        tally = Tally(
            gold=len(self.items),
            gold_duplicates=self.read - len(self.items),
            gold_skipped=self.gold_problem_count,
            traces=self.traces,
            trace_skipped=self.problem_count,
            unknown=self.unknown,
            duplicates=matched - self.scored if self.rules.keep != "every" else _again(totals),
            missing=missing,
            missing_slots=missing_slots,
            errored=totals.errored,
            repeated_ids=totals.repeated,
            scored=self.scored,
            answered=totals.answered,
            refused=totals.refused,
            answerable=totals.answerable,
            unanswerable=totals.unanswerable,
        )
        first = self._first_lines()
        return Scores(
            profile=self.plan.profile.name,
            dialect=self.plan.dialect.name,
            k=self.plan.k,
            gold_name=self.gold_name,
            trace_name=self.trace_name,
            tally=tally,
            metrics=self._metrics(tally),
            refusal_rules=dict(sorted(totals.refusals.items())),
            questions=self._questions(first),
            rows=self._rows(),
            warnings=(*self._notes(), *self._findings(tally, first)),
            skipped=tuple(
                f"{each.place}: {each.message}" for each in [*self.gold_problems, *self._located()]
            ),
        )

    def _add_missing(self, gaps: NDArray[np.int64]) -> None:
        reducer = Reducer(self.keys, self.rules)
        for question in gaps.tolist():
            reducer.pending.append((question, None, 0, (), None, None, int(Fact.MISSING)))
        columns, slots = reducer.take()
        partial = Partial(
            range_index=0, columns=columns, slots=slots, newlines=0, crlf=False, traces=0,
            unknown=0, unknown_first=(), problems=(), problem_count=0,
        )  # fmt: skip
        self._total(Records([partial], self.gold, Ledger(len(self.items)), self.rules))

    def _metrics(self, tally: Tally) -> dict[str, MetricResult]:
        order = np.array(sorted(range(len(self.items)), key=self._identity), np.int64)
        results = self.totals.results(
            order, tally, unit=self.rules.unit, intervals=self.plan.intervals
        )
        defaults = {
            each.id: self.plan.profile.empty.get(each.metric.id) for each in self.plan.selected
        }
        return {
            each.id: msgspec.structs.replace(results[each.id], default=defaults[each.id])
            for each in self.plan.selected
        }

    def _identity(self, question: int) -> tuple[str, str]:
        item = self.items[question]
        return item.qid, item.question or ""

    def _questions(self, first: dict[int, int]) -> tuple[QuestionResult, ...]:
        counts = self.totals.labels.T.tolist()
        questions = []
        for code, worst in enumerate(self.totals.worst_labels()):
            item = self.items[code]
            label, position = worst if worst is not None else ("MISSING", 0)
            line = first.get(position >> 32, 0) + (position & 0xFFFFFFFF)
            labels = {LABELS[i]: n for i, n in enumerate(counts[code]) if n}
            questions.append(
                QuestionResult(
                    qid=item.qid,
                    label=label,
                    gold=_at(self.gold_name, item.line),
                    trace=None if label == "MISSING" else _at(self.trace_name, line),
                    labels=labels or {"MISSING": 1},
                )
            )
        return tuple(questions)

    def _notes(self) -> list[str]:
        crlf = f"{self.trace_name}: CRLF line ends"
        return [*self.warnings, *([crlf] if self.crlf and crlf not in self.warnings else [])]

    def _findings(self, tally: Tally, first: dict[int, int]) -> list[str]:
        counts = self.totals.labels
        gone = (counts[LABELS.index("MISSING")] > 0) | (counts.sum(axis=0) == 0)
        missing = [self.items[question].qid for question in np.flatnonzero(gone).tolist()]
        stray = None
        if self.unknown_first:
            index, line, name = self.unknown_first[0]
            stray = f"{name} at {_at(self.trace_name, first.get(index, 0) + line)}"
        return findings(tally, self.rules, missing=missing, stray=stray)

    def _rows(self) -> tuple[RowResult, ...]:
        if not self.totals.keep_rows or not self.totals.rows:
            return ()
        position = np.concatenate([each[0] for each in self.totals.rows])
        # Records came last to first; rows of a JSON array may share a line.
        order = (len(position) - 1 - np.argsort(position[::-1], kind="stable")).tolist()
        batches = [batch for _, batch, _ in self.totals.rows]
        question = np.concatenate([batch.question for batch in batches]).tolist()
        answered = np.concatenate([batch.answered for batch in batches]).tolist()
        hit = np.concatenate([batch.hit for batch in batches]).tolist()
        refused = np.concatenate([batch.refused for batch in batches]).tolist()
        labels = np.concatenate([labels for _, _, labels in self.totals.rows]).tolist()
        return tuple(
            RowResult(
                qid=self.items[question[i]].qid, answered=answered[i], hit=hit[i],
                refused=refused[i], label=LABELS[labels[i]],
            )
            for i in order
        )  # fmt: skip


def _again(totals: Totals) -> int:
    """How many rows are on a question that an earlier row was on too."""
    counts = totals.labels.sum(axis=0)
    return int((counts[counts > 0] - 1).sum())


def unique_items(items: Sequence[GoldItem], profile: Profile, gold_name: str) -> list[GoldItem]:
    """One item an id (or a question): the last where the profile says so, else an error."""
    by_question = profile.join.by == "question"
    unique: dict[str, GoldItem] = {}
    problems: list[Problem] = []
    for item in items:
        key = item.question if by_question else item.qid
        place = Place(gold_name, item.line, item.qid)
        if key is None:
            problems.append(Problem(
                "missing-field", "the item has no question to join traces by",
                'add the question as "q"', place,
            ))  # fmt: skip
            continue
        if key in unique and profile.join.duplicate_gold == "error":
            first = unique[key].line
            problems.append(Problem(
                "duplicate-qid", f"the id `{key}` stands twice, first on line {first}",
                "give every gold item its own id", place,
            ))  # fmt: skip
        unique[key] = item
    if problems:
        raise RagaugeError(problems[:MAX_REPORTED], total=len(problems))
    return list(unique.values())


def _by_question(items: Sequence[GoldItem], *, paraphrases: bool) -> dict[str, int]:
    """The items by their exact question; a question that two items share names neither."""
    codes: dict[str, int] = {}
    shared: set[str] = set()
    for code, item in enumerate(items):
        texts = {item.question, *(item.paraphrases if paraphrases else ())} - {None}
        for text in texts:
            assert text is not None
            if text in codes:
                shared.add(text)
            codes[text] = code
    return {text: code for text, code in codes.items() if text not in shared}


def _paraphrases(items: Sequence[GoldItem]) -> dict[int, dict[str, int]]:
    """The number of each paraphrase by its text, for the items that have any."""
    return {
        code: {text: number for number, text in reversed(list(enumerate(item.paraphrases)))}
        for code, item in enumerate(items)
        if item.paraphrases
    }


def _place(entry: tuple[int, int, Problem]) -> tuple[int, int]:
    return entry[0], entry[1]


def _at(name: str, line: int | None) -> str:
    return name if line is None else f"{name}:{line}"
