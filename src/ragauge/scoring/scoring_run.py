"""One run of scoring: a gold table and partials in, scores out.

Partials come from the last range to the first, so the first record of a slot is the last trace of
it, which is the one that counts (decision 0004). Sums are whole numbers: no order of ranges, no
size of batches and no number of workers can change a bit of them (decision 0005).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from ragauge import registry
from ragauge.errors import MAX_REPORTED, Place, Problem
from ragauge.files.ranges import Range, Source
from ragauge.formats.loaded_rows import LoadedRows, closed_name_notes, duplicate_key_notes
from ragauge.formats.trec.lines import BadLine
from ragauge.formats.trec.qrels import Qrels, run_rows
from ragauge.formats.trec.ranks import match
from ragauge.formats.unread_fields import FieldUse, unread_notes
from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools, Ints
from ragauge.metrics.metric import Selected, Tally
from ragauge.model import phrases
from ragauge.model.comparison import RANKS
from ragauge.model.dialect import Dialect
from ragauge.model.error_reasons import reason_code, sorted_reasons
from ragauge.model.labels import LABELS
from ragauge.model.options import Options
from ragauge.model.placement import Placing, placing
from ragauge.model.profile import Profile
from ragauge.model.scores import PLACE_UNKNOWN, MetricResult, Scores
from ragauge.model.verdict import VerdictBlock
from ragauge.scoring import input_checks, trec
from ragauge.scoring.chunk_ends import RunEnds, run_ends
from ragauge.scoring.chunk_labels import chunk_labels
from ragauge.scoring.chunk_records import ChunkRecords
from ragauge.scoring.evidence_pieces import gold_bytes, is_somewhere
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.join import Records, absent_records, batch_of, records_of
from ragauge.scoring.places import chunk_places
from ragauge.scoring.results import (
    RunResults,
    at,
    question_results,
    row_results,
    state_counts,
    sums_at_ends,
)
from ragauge.scoring.row_index import NO_LABELS, RecordLabels
from ragauge.scoring.second_pass import RereadRows, SecondPass, TraceRows
from ragauge.scoring.slot_ledger import Ledger
from ragauge.scoring.sums import Totals
from ragauge.scoring.tasks.asked_questions import QuestionTally
from ragauge.scoring.tasks.job import Job, NamedHits, Partial
from ragauge.scoring.tasks.row_notes import NotedRows
from ragauge.scoring.trace_columns import refusal_rule
from ragauge.scoring.warnings import UnreadRefusals, findings

BATCH_RECORDS = 32_768
"""Records that are measured together, at least: a batch ends with a range. A numpy call costs the
same for few records, so batches are not small; all columns of one are in memory, so they have an
end. The result is the same for any number."""

_IN_MEMORY = Range(0, 0, 0, 0)
"""The one range of what is in memory: lines are counted from the start already."""


class ScoringPlan(Struct, frozen=True, kw_only=True):
    """What is to be measured, and by which rules.

    `asked_k`: somebody asked for these cut-offs. `looked_up`: ids and places are looked up in a
    corpus apart from this. `places` is the path of an index of places. `judge_places`: what depends
    on where in a chunk the evidence stands has no single value; a comparison judges it later, of
    both runs at once.
    """

    profile: Profile
    dialect: Dialect
    own: bool
    k: tuple[int, ...]
    selected: list[Selected]
    options: Options = Options()
    absent_counts: bool = True
    intervals: bool = True
    count_repeats: bool = True
    slices: bool = True
    note_rows: bool = False
    check_keys: bool = False
    sole: bool = False
    places: str | None = None
    asked_k: bool = False
    looked_up: bool = False
    judge_places: bool = True
    batch_records: int = BATCH_RECORDS


class InputFacts(Struct, frozen=True, kw_only=True):
    """What is known of the files of a run when they are gone: names, notes, bad lines, fields."""

    gold_name: str
    trace_name: str
    notes: tuple[str, ...] = ()
    gold_problems: tuple[Problem, ...] = ()
    gold_problem_count: int = 0
    trace_problems: tuple[Problem, ...] = ()
    trace_problem_count: int = 0
    gold_fields: FieldUse | None = None
    trace_fields: FieldUse | None = None

    @property
    def field_notes(self) -> list[str]:
        """What is to be said of fields that nothing reads."""
        uses = (self.gold_fields, self.trace_fields)
        return unread_notes(use for use in uses if use is not None)


class TraceInput(TraceRows, Protocol):
    """The traces of a run, wherever they are. They are read for a job and know no run.

    `notes` are sentences on the file; `problems` are rows that could not be read at all.
    """

    @property
    def source(self) -> Source:
        """The file, or something in its place that has a name."""
        ...

    @property
    def stored(self) -> bool:
        """Whether rows are traces as they are stored, each with the line that it came from."""
        ...

    @property
    def ranges(self) -> Sequence[Range]:
        """The ranges in file order; what is in memory is one range."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What a reader should know of the file."""
        ...

    @property
    def problems(self) -> LoadedRows:
        """What was wrong with rows that never reach a partial, their lines counted from 1."""
        ...

    def partials(self, job: Job) -> Iterable[Partial]:
        """The partials of all ranges, from the last range to the first."""
        ...


def job_of(plan: ScoringPlan, table: GoldTable, source: Source, *, stored: bool = False) -> Job:
    """What a worker needs to read the rows of a trace file."""
    return Job(
        source=source,
        dialect=plan.dialect,
        own=plan.own,
        rules=plan.profile.join,
        keys=table.keys,
        paraphrases=table.paraphrases,
        by_turn=table.by_turn,
        count_repeats=plan.count_repeats,
        note_open=SecondPass.needs_open_citations(table, plan.selected, plan.profile.join),
        bytes_too=any(chosen.metric.reads_bytes for chosen in plan.selected),
        chunks=table.chunks,
        options=plan.options,
        stored=stored,
        measured=table.measured if table.beside else None,
        note_rows=plan.note_rows,
        check_keys=plan.check_keys,
        sole=plan.sole,
        places=plan.places,
    )


class _PlacedBatch(NamedTuple):
    """Records, with the slot of each and its position in the trace file."""

    batch: Batch
    slot: Ints
    position: Ints


class FilesTogether(NamedTuple):
    """What gold and traces say of each other, and why scores of them would mean nothing."""

    findings: tuple[str, ...]
    blocks: tuple[VerdictBlock, ...]


class ScoringRun:
    """Takes in traces as partials, batch by batch, and gives the scores at the end."""

    def __init__(
        self, plan: ScoringPlan, table: GoldTable, *, gold_name: str, trace_name: str
    ) -> None:
        self.plan = plan
        self.rules = plan.profile.join
        self.refusal = refusal_rule(self.rules, plan.options)
        self.joined = table
        self.table = table.only_measured()
        self.gold = table.columns
        self.gold_name = gold_name
        self.trace_name = trace_name
        self.ledger = Ledger(len(table.qids))
        self.totals = Totals(
            self.table.columns,
            plan.selected,
            registry.metrics()[plan.profile.correct],
            keep_rows=self.rules.keep == "every",
            keep_labels=plan.note_rows,
            slot_codes=self.ledger.codes if _for_comparison(plan) else None,
        )
        self.second_pass = SecondPass(
            table, self.ledger, plan.selected, self.rules, absent_counts=plan.absent_counts
        )
        self.reading: Job | None = None
        self.reader: RereadRows | None = None
        self.waiting: list[Partial] = []
        self.waiting_records = 0
        self.traces = self.unknown = self.beside = self.scored = 0
        self.by_text = self.ambiguous = 0
        self.disordered = self.repeated = 0
        self.unknown_first: list[tuple[int, int, str]] = []
        self.newlines: dict[int, int] = {}
        self.noted: list[tuple[int, NotedRows]] = []
        self.ranges: Sequence[Range] = ()
        self.problems: list[tuple[int, int, Problem]] = []
        self.problem_count = 0
        self.gold_problems: list[Problem] = []
        self.gold_problem_count = 0
        self.embedders: set[str] = set()
        self.reasons: dict[int, str] = {}
        self.warnings: list[str] = []
        self.duplicate_keys: list[tuple[int, int, str]] = []
        self.duplicate_key_count = 0
        self.closed: dict[str, tuple[int, int, int]] = {}
        self.crlf = False
        self.placements: Counter[str] = Counter()
        self.prefixes: set[str] = set()
        self.gold_fields: FieldUse | None = None
        self.trace_fields: FieldUse | None = None
        self.asked: list[tuple[int, QuestionTally]] = []
        self.trec_run: tuple[Qrels, Source] | None = None
        # The records of questions whose evidence stands somewhere in a chunk: what they are worth,
        # and how they are labelled, depends on where, and is computed once all are in.
        self.chunk_records: list[_PlacedBatch] = []
        self.somewhere = _somewhere(table)

    def job(self, source: Source) -> Job:
        """What a worker needs to read the rows of a trace file."""
        return job_of(self.plan, self.joined, source)

    def note_gold(self, loaded: LoadedRows, source: Source | None) -> None:
        """Take note of gold rows that could not be read, and of oddities of the file."""
        self.gold_problems, self.gold_problem_count = loaded.problems, loaded.problem_count
        if source is not None:
            notes = (*source.notes, *loaded.notes)
            self.warnings += [f"{source.name}: {note}" for note in notes]

    def note_fields(self, gold: FieldUse | None, traces: FieldUse | None) -> None:
        """Take note of the fields of the files, read or not."""
        self.gold_fields, self.trace_fields = gold, traces

    def inputs(self) -> InputFacts:
        """What is known of the files, before the run is closed."""
        return InputFacts(
            gold_name=self.gold_name,
            trace_name=self.trace_name,
            notes=tuple(self._notes()),
            gold_problems=tuple(self.gold_problems),
            gold_problem_count=self.gold_problem_count,
            trace_problems=tuple(self._located()),
            trace_problem_count=self.problem_count,
            gold_fields=self.gold_fields,
            trace_fields=self.trace_fields,
        )

    def take_inputs(self, inputs: InputFacts) -> None:
        """Take over what was known of the files when the run was stored."""
        self.warnings = list(inputs.notes)
        self.gold_fields, self.trace_fields = inputs.gold_fields, inputs.trace_fields
        self.gold_problems = list(inputs.gold_problems)
        self.gold_problem_count = inputs.gold_problem_count
        self.problem_count = inputs.trace_problem_count
        self.problems = [
            (0, (problem.place.line or 0) if problem.place is not None else 0, problem)
            for problem in inputs.trace_problems
        ]

    def read(self, traces: TraceInput) -> None:
        """Read all traces; they may be read again until the run is finished."""
        self.reading = job_of(self.plan, self.joined, traces.source, stored=traces.stored)
        self.ranges = traces.ranges or [_IN_MEMORY]
        self.reader = RereadRows(self.reading, traces)
        self._note_problems(traces.problems, traces.notes)
        self.add_partials(traces.partials(self.reading))

    def read_trec(self, qrels: Qrels, source: Source) -> None:
        """Read a TREC run over judgements, straight into records."""
        self.trec_run = qrels, source
        matched = match(qrels, source)
        self.ranges = [_IN_MEMORY]
        self.traces = int(np.count_nonzero(matched.seen)) + matched.unknown_count
        self.unknown = matched.unknown_count
        self.unknown_first = [(0, trace.line, trace.qid) for trace in matched.unknown]
        self.disordered, self.repeated = matched.disordered, matched.repeated
        problems = [problem.at(source.name) for problem in matched.problems]
        notes = [f"{source.name}: {note}" for note in source.notes]
        self._note_problems(LoadedRows([], problems, matched.problem_count), notes)
        if qrels.duplicates:
            self.warnings.append(f"{qrels.duplicates} judgements stand twice; the last counts")
        self.add_records(trec.records_of_run(qrels, matched, self.plan.options))

    def _note_problems(self, loaded: LoadedRows, notes: Iterable[str]) -> None:
        """Take note of lines that could not be read, their lines counted from the file's start."""
        self.problem_count += loaded.problem_count
        self.problems += [
            (0, (problem.place.line or 0) if problem.place is not None else 0, problem)
            for problem in loaded.problems
        ]
        self.warnings += [note for note in notes if note not in self.warnings]

    def add_partials(self, partials: Iterable[Partial]) -> None:
        """Add partials, which come from the last range to the first.

        Lines are counted inside a range: how many lines are before it is known only at the end.
        """
        for partial in partials:
            index = partial.range_index
            self.traces += partial.traces
            self.unknown += partial.unknown
            self.beside += partial.beside
            self.by_text += partial.by_text
            self.ambiguous += partial.ambiguous
            self.newlines[index] = partial.newlines
            self.crlf = self.crlf or partial.crlf
            self.embedders.update(partial.embedders)
            self.reasons |= {reason_code(reason): reason for reason in partial.columns.reasons}
            self.asked.append((index, partial.asked))
            if partial.noted is not None:
                self.noted.append((index, partial.noted))
            self.unknown_first += [(index, line, name) for line, name in partial.unknown_first]
            self.unknown_first = sorted(self.unknown_first)[:MAX_REPORTED]
            self.duplicate_key_count += partial.duplicate_key_count
            rows = [(index, line, message) for line, message in partial.duplicate_keys]
            self.duplicate_keys = sorted(self.duplicate_keys + rows)[:MAX_REPORTED]
            for name, (count, line) in partial.closed.items():
                # Ranges come from the last to the first, so the newest has the earlier line.
                self.closed[name] = self.closed.get(name, (0,))[0] + count, index, line
            self.placements.update(partial.placements)
            self.prefixes.update(partial.prefixes)
            self.problem_count += partial.problem_count
            misplaced = [(index, row.line, row.problem) for row in partial.problems]
            self.problems = sorted(self.problems + misplaced, key=_place)[:MAX_REPORTED]
            self.waiting.append(partial)
            self.waiting_records += len(partial.columns.numbers["question"]) // 4
            if self.waiting_records >= self.plan.batch_records:
                self._flush()
        self._flush()

    def _flush(self) -> None:
        if self.waiting_records:
            self.add_records(
                records_of(self.waiting, self.gold, self.ledger, self.rules, refusal=self.refusal)
            )
        self.waiting, self.waiting_records = [], 0

    def add_records(self, records: Records) -> None:
        """Add records; those that depend on other rows wait until all are in."""
        self.scored += int(np.count_nonzero(records.question < self.joined.measured))
        self._total(self.second_pass.add(records))

    def _total(self, records: Records) -> None:
        if self.somewhere is not None:
            chosen = self.somewhere[records.question]
            if chosen.any():
                self.chunk_records.append(self._batch(records.take(chosen, self.gold)))
                records = records.take(~chosen, self.gold)
                if not len(records.question):
                    return
        self.totals.add(*self._batch(records))

    def _batch(self, records: Records) -> _PlacedBatch:
        batch = batch_of(self.gold, self.rules, records, absent_counts=self.plan.absent_counts)
        return _PlacedBatch(batch, records.slot, records.position)

    def _total_chunks(self) -> ChunkRecords | None:
        """Add the records of questions whose evidence stands somewhere in a chunk, if any."""
        run = self._chunk_records()
        if run is None:
            return None
        labelled, run.open_answers = chunk_labels(
            run, self.totals.correct, least=self.plan.options.least_evidence
        )
        begin = 0
        for held in self.chunk_records:
            end = begin + held.batch.size
            self.totals.add(*held, labelled.between(begin, end))
            begin = end
        return run

    def stop_on_problems(self) -> None:
        """Raise what was wrong with the traces, if anything was."""
        self.problems_found().stop_on_problems()

    def problems_found(self) -> LoadedRows:
        """What was wrong with the traces, with its lines."""
        return LoadedRows([], self._located(), self.problem_count)

    def together(self) -> FilesTogether:
        """What gold and traces say of each other, once all traces are in."""
        scores = self.finish()
        tally = msgspec.structs.replace(scores.tally, gold_skipped=0, trace_skipped=0)
        first = self.first_lines()
        cautions = self._cautions(scores.metrics, self._asked(), first)
        blocks = scores.blocks
        if scores.unmeasured is not None and scores.unmeasured not in blocks:
            blocks = (*blocks, scores.unmeasured)
        return FilesTogether((*cautions, *self._findings(tally, first)), blocks)

    def _located(self) -> list[Problem]:
        first = self.first_lines()
        located = []
        for index, line, problem in self.problems:
            place = problem.place or Place(self.trace_name)
            place = msgspec.structs.replace(place, line=first[index] + line)
            located.append(msgspec.structs.replace(problem, place=place))
        return located

    def first_lines(self) -> dict[int, int]:
        """The first line of every range, now that the lines of all ranges are counted."""
        first: dict[int, int] = {}
        line = 1
        for part in self.ranges:
            first[part.index] = line if part.first_line is None else part.first_line
            line += self.newlines.get(part.index, 0)
        return first

    def noted_rows(self) -> list[tuple[int, NotedRows]]:
        """The notes on all rows, from the last range to the first, each with its first line."""
        first = self.first_lines()
        return [(first[index], noted) for index, noted in self.noted]

    def record_labels(self) -> RecordLabels:
        """The label of each record, once the run is finished."""
        if not self.totals.record_labels:
            return NO_LABELS
        lines = self.first_lines()
        first = np.array([lines[index] for index in range(len(lines))], np.int64)
        columns = zip(*self.totals.record_labels, strict=True)
        question, position, label = map(np.concatenate, columns)
        return RecordLabels(question, first[position >> 32] + (position & 0xFFFFFFFF), label)

    def finish(self) -> Scores:
        """Close the run: resolve what waits, add what is missing, and aggregate."""
        for records in self.second_pass.resolve(self.reader):
            self._total(records)
        seen = self.totals.seen.copy()
        for held in self.chunk_records:
            seen[held.batch.question] = True
        if not seen.all() and self.rules.keep != "every":
            self._total(absent_records(np.flatnonzero(~seen), self.gold))
        chunk_records = self._total_chunks()
        tally = self._tally(seen)
        compared, note = self.second_pass.compare(self.reader)
        compared = {name: values[: len(seen)] for name, values in compared.items()}
        if note is not None:
            self.warnings.append(note)
        questions = self.totals.questions(compared, by_slot=self.rules.keep == "slot")
        measured, excluded = self.totals.measured(
            questions, by_row=self.rules.unit == "row", cluster=self.table.cluster
        )
        first = self.first_lines()
        placed = placing(self.placements, self.prefixes)
        ends = None
        if chunk_records is not None and self.plan.judge_places:
            least = self.plan.options.least_evidence
            ends = run_ends(chunk_records, self.totals.selected, least=least)
            chunk_records = None
        results = RunResults(
            self.plan.selected,
            [measured] if ends is None else sums_at_ends(measured, questions, ends),
            excluded=excluded,
            tally=tally,
            defaults=self.plan.profile.empty,
            intervals=self.plan.intervals,
            extremes=self.totals.extremes,
            ends=ends,
        )
        metrics = results.metrics()
        asked = self._asked()
        blocks = tuple(self._blocks(metrics, placed, asked, first))
        if any(block.code in input_checks.NOTHING_FOUND for block in blocks):
            self.totals.searched = False  # what cannot be found is not missing
        return Scores(
            profile=self.plan.profile.name,
            dialect=self.plan.dialect.name,
            k=self.plan.k,
            gold_name=self.gold_name,
            trace_name=self.trace_name,
            tally=tally,
            metrics=input_checks.with_source_note(metrics, self.table, self.rules),
            refusal_rules=dict(sorted(self.totals.refusals.items())),
            questions=question_results(
                self.totals, self.table, gold=self.gold_name, trace=self.trace_name, first=first
            ),
            rows=row_results(self.totals, self.table),
            warnings=(
                *self._cautions(metrics, asked, first),
                *(() if ends is None else _place_notes(metrics, ends)),
                *self._notes(),
                *(placed.sentences() if placed is not None else ()),
                *self._findings(tally, first),
            ),
            blocks=blocks,
            skipped=tuple(
                f"{problem.place}: {problem.message}"
                for problem in [*self.gold_problems, *self._located()]
            ),
            options=self.plan.options,
            slices=results.slices(
                self.table.slices if self.plan.slices else {}, min_n=self.plan.options.min_n
            ),
            confusion=dict(self.totals.confusion),
            states=state_counts(questions, ends),
            embedders=tuple(sorted(self.embedders)),
            cites=self.totals.cited > 0,
            errors=self._errors(),
            joined=self._joined(),
            per_question=results.per_question(
                self.table, self.totals.units, slices=self.plan.slices
            ),
            placing=placed,
            chunk_records=chunk_records,
        )

    def _chunk_records(self) -> ChunkRecords | None:
        """The records of questions whose evidence stands somewhere in a chunk, if there are any."""
        if self.somewhere is None:
            return None
        if not self.chunk_records:
            return None
        least = self.plan.options.least_evidence
        chunks, sure_bytes = {}, {}
        for number in np.flatnonzero(self.somewhere).tolist():
            details = self.joined.keys.details[number]
            chunks[number] = chunk_places(details, least=least)
            sure_bytes[number] = gold_bytes(
                [place for place in details.places if not is_somewhere(place)]
            )
        return ChunkRecords([held.batch for held in self.chunk_records], chunks, sure_bytes)

    def _asked(self) -> QuestionTally:
        """How the questions of all traces compare; the lines of the first are those in ranges."""
        tallies = [tally for _, tally in self.asked]
        return QuestionTally(
            compared=sum(tally.compared for tally in tallies),
            foreign=sum(tally.foreign for tally in tallies),
            reworded=sum(tally.reworded for tally in tallies),
        )

    def _first_foreign(self, first: dict[int, int]) -> str:
        lines = [
            (first.get(index, 0) + line, item)
            for index, tally in self.asked
            for line, item in tally.first
        ]
        line, item = min(lines)
        return f"{self.joined.name(item)} at {at(self.trace_name, line)}"

    def _cautions(
        self, metrics: Mapping[str, MetricResult], asked: QuestionTally, first: dict[int, int]
    ) -> list[str]:
        """What makes numbers mean less than they seem to; it is said before them."""
        uses = (self.gold_fields, self.trace_fields)
        return [
            *unread_notes(use for use in uses if use is not None),
            *self._mapping_hint(),
            *input_checks.gold_cautions(self.table.labels, self.totals, metrics, self.rules),
            *input_checks.question_cautions(asked, lambda: self._first_foreign(first)),
            *(input_checks.cutoff_caution(self.plan.k, self.totals) if self.plan.asked_k else ()),
            # Under the rules of a source a trace without an answer counts as one.
            *(
                ()
                if self.plan.profile.follows_source
                else input_checks.uncited_caution(self.totals, metrics)
            ),
            *input_checks.unretrieved_caution(self.totals, metrics),
            *input_checks.citation_names_caution(metrics),
            *input_checks.cited_in_text_caution(self.totals),
        ]

    def _mapping_hint(self) -> list[str]:
        """How to say which field is which, where no trace met a gold item and fields are unread."""
        if self.scored or self.trace_fields is None or not self.trace_fields.unread:
            return []
        return [
            "no trace belongs to a gold item, and fields of the traces are not read: `ragauge init "
            "GOLD TRACES` looks at both files and writes down which field is which"
        ]

    def _blocks(
        self,
        metrics: Mapping[str, MetricResult],
        placed: Placing | None,
        asked: QuestionTally,
        first: dict[int, int],
    ) -> Iterator[VerdictBlock]:
        """What makes numbers mean nothing."""
        if not self.scored:
            return  # that no trace met a gold item says it all
        unmeasured = input_checks.unmeasured_block(
            metrics,
            self.totals,
            self.table.labels,
            self.trace_fields,
            follows_source=self.plan.profile.follows_source,
        )
        if unmeasured is not None:
            yield unmeasured
            return
        if not self.plan.looked_up:
            chosen = {name: one for name, one in metrics.items() if name not in RANKS}
            named = (self._names_in_gold, self._named_hits)
            block = input_checks.unplaced_block(placed, chosen, self.gold_name, self.trace_name)
            if block is None and input_checks.depends_on_evidence(metrics):
                block = input_checks.unmatched_block(self.joined.keys, self.totals, *named)
            if block is None:
                block = input_checks.other_names_block(
                    self.joined.keys, self.totals, chosen, *named
                )
            if block is not None:
                yield block
        if input_checks.is_foreign(asked):
            yield input_checks.foreign_block(asked, lambda: self._first_foreign(first))

    def _named_hits(self, names: frozenset[str]) -> NamedHits:
        if self.reader is not None:
            return self.reader.named_hits(names)
        rows = () if self.trec_run is None else run_rows(self.trec_run[1])
        docs = [row.docid for row in rows if not isinstance(row, BadLine)]
        return NamedHits(
            matched=not names.isdisjoint(docs),
            documented=bool(docs),
            example=f"`{docs[0]}`" if docs else None,
        )

    def _names_in_gold(self) -> frozenset[str]:
        if self.trec_run is None:
            return input_checks.names_in(self.joined.keys)
        return frozenset(name.decode() for name in self.trec_run[0].docs.all())

    def _errors(self) -> dict[str, int]:
        """How many scored records failed for which reason."""
        return sorted_reasons({self.reasons[code]: n for code, n in self.totals.reasons.items()})

    def _joined(self) -> dict[str, int]:
        """How traces met gold items, where it was not by their ids alone."""
        if not self.by_text and not self.ambiguous:
            return {}
        return {
            "by_id": self.traces - self.by_text - self.unknown,
            "by_text": self.by_text,
            "ambiguous": self.ambiguous,
            "unmatched": self.unknown - self.ambiguous,
        }

    def _tally(self, seen: Bools) -> Tally:
        totals = self.totals
        traces = self.traces - self.beside
        matched = traces - self.unknown
        return Tally(
            gold=len(self.table.qids),
            gold_duplicates=self.table.read - len(self.table.qids),
            gold_skipped=self.gold_problem_count,
            traces=traces,
            trace_skipped=self.problem_count,
            unknown=self.unknown,
            duplicates=matched - self.scored if self.rules.keep != "every" else _again(totals),
            missing=int(np.count_nonzero(~seen)),
            missing_slots=self._missing_slots(seen),
            errored=totals.errored,
            repeated_ids=totals.repeated + self.repeated,
            disordered=totals.disordered + self.disordered,
            scored=self.scored,
            answered=totals.answered,
            refused=totals.refused,
            answerable=totals.answerable,
            unanswerable=totals.unanswerable,
        )

    def _missing_slots(self, seen: Bools) -> int:
        if self.rules.keep != "slot":
            return 0
        counts = np.zeros(len(self.joined.qids), np.int32)
        for question, texts in self.joined.paraphrases.items():
            counts[question] = len(texts)
        asked = np.concatenate([seen, np.zeros(self.joined.beside, np.bool_)])
        return self.ledger.missing_slots(asked, counts)

    def _notes(self) -> list[str]:
        crlf = f"{self.trace_name}: CRLF line ends"
        keys = [f"{self.trace_name}: {note}" for note in self.row_notes()]
        return [*self.warnings, *([crlf] if self.crlf and crlf not in self.warnings else []), *keys]

    def duplicate_key_notes(self) -> list[str]:
        """What is to be said of traces with a key twice in one object."""
        first = self.first_lines()
        places = [(first[index] + line, message) for index, line, message in self.duplicate_keys]
        return duplicate_key_notes(self.duplicate_key_count, places)

    def row_notes(self) -> list[str]:
        """What is to be said of the rows of the trace file."""
        return [*self.duplicate_key_notes(), *self._closed_notes()]

    def _closed_notes(self) -> list[str]:
        """What is to be said of names that the profile does not read."""
        first = self.first_lines()
        return closed_name_notes(
            {
                name: (count, first[index] + line)
                for name, (count, index, line) in self.closed.items()
            }
        )

    def _findings(self, tally: Tally, first: dict[int, int]) -> list[str]:
        counts = self.totals.labels
        gone = (counts[LABELS.index("MISSING")] > 0) | (counts.sum(axis=0) == 0)
        missing = [
            self.table.name(question) for question in self.table.identity.tolist() if gone[question]
        ]
        stray = None
        if self.unknown_first:
            index, line, name = self.unknown_first[0]
            stray = f"{name} at {at(self.trace_name, first.get(index, 0) + line)}"
        return findings(
            tally,
            self.rules,
            missing=missing,
            stray=stray,
            embedders=sorted(self.embedders),
            errors=self._errors(),
            unread=self._unread_refusals(),
            unmatched=self.joined.unmatched_claims,
            joined=self._joined(),
        )

    def _unread_refusals(self) -> UnreadRefusals:
        """What reads or is marked as a refusal, and is none by the rule of the run."""
        totals, table = self.totals, self.table
        questions = table.identity[totals.unread_refusals[table.identity]].tolist()
        return UnreadRefusals(
            totals.reads_refused, totals.says_refused, [table.name(one) for one in questions]
        )


def _for_comparison(plan: ScoringPlan) -> bool:
    """Whether the run is to be compared question by question."""
    return any(chosen.id in RANKS for chosen in plan.selected)


def _somewhere(table: GoldTable) -> Bools | None:
    """Which questions have evidence that stands somewhere in a chunk; None if none has."""
    questions = [
        number
        for number, details in table.keys.details.items()
        if details.somewhere and number < table.measured
    ]
    if not questions:
        return None
    chosen = np.zeros(len(table.qids), np.bool_)
    chosen[questions] = True
    return chosen


def _place_notes(metrics: Mapping[str, MetricResult], ends: RunEnds) -> list[str]:
    """What is to be said where numbers depend on the place of the evidence."""
    if not any(result.reason == PLACE_UNKNOWN for result in metrics.values()):
        return []
    is_open = np.zeros(len(ends.questions), np.bool_)
    for low, high in ends.sums.values():
        is_open |= low != high
    named = phrases.count(int(np.count_nonzero(is_open)), "question")
    return [
        f"gold names chunks, and hits are cut otherwise: {named} may be found or not, by where in "
        "the chunk the evidence stands; values are shown from the least to the greatest "
        "(`ragauge gold pin --narrow` says where it stands)"
    ]


def _again(totals: Totals) -> int:
    """How many rows are on a question that an earlier row was on too."""
    counts = totals.labels.sum(axis=0)
    return int((counts[counts > 0] - 1).sum())


def _place(entry: tuple[int, int, Problem]) -> tuple[int, int]:
    return entry[0], entry[1]
