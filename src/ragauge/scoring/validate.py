"""`ragauge validate`: files are read to the end, and their problems are listed, not raised."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec import Struct

from ragauge import registry
from ragauge.corpus.chunk_list import read_chunks
from ragauge.corpus.known_places import opened_placer
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.corpus.resolve import Resolver, ResolveReport
from ragauge.errors import MAX_REPORTED, Problem, RagaugeError
from ragauge.files.open import PathLike, opened
from ragauge.files.ranges import Source
from ragauge.formats.detect import FormatChoice, choose
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.formats.load import name_of, open_sources, read_traces
from ragauge.formats.loaded_rows import LoadedRows
from ragauge.formats.unread_fields import FieldUse, unread_notes
from ragauge.gold.findings import gold_findings
from ragauge.gold.locate import locator
from ragauge.metrics.metric import Selected
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.profile import Profile
from ragauge.model.verdict import VerdictBlock
from ragauge.scoring.engines.choose import file_engine
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.inputs import GoldInput, open_traces
from ragauge.scoring.score import fields_of
from ragauge.scoring.scoring_run import FilesTogether, ScoringPlan, ScoringRun, job_of
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.validate_corpus import resolve_gold, resolve_traces


class FileCheck(Struct, frozen=True, kw_only=True):
    """What is in one file, and what is wrong with it; a list of chunks has no dialect."""

    name: str
    kind: str
    rows: int
    dialect: str | None
    notes: tuple[str, ...]
    problems: tuple[Problem, ...]
    problem_count: int


class Checks(Struct, frozen=True, kw_only=True):
    """The checks of the files, and how they fit together.

    `fields` are those of the files; `blocks` say why scores of them would mean nothing.
    """

    files: tuple[FileCheck, ...]
    findings: tuple[str, ...] = ()
    fields: tuple[FieldUse, ...] = ()
    blocks: tuple[VerdictBlock, ...] = ()


def validate(
    gold: PathLike | None,
    trace: PathLike | None,
    *,
    profile: str | None = None,
    dialect: str = "auto",
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    fields: FieldMaps = NO_FIELDS,
    ignore_fields: Sequence[str] = (),
) -> Checks:
    """Read gold and traces to the end and say what is wrong; problems are not raised.

    With a corpus, all ids and places must be in it, or in the list of the index's chunks. Of
    `ignore_fields` nothing is said, though nothing reads them.
    """
    with ExitStack() as stack:
        gold_source, trace_source = open_sources(stack, gold, trace, fields=fields, dialect=dialect)
        choice = choose(dialect, profile, gold=gold_source, trace=trace_source)
        checks: list[FileCheck] = []
        findings = [choice.note] if choice.note else []
        uses = (
            fields_of(gold, gold_source, "gold", ignore_fields),
            fields_of(trace, trace_source, "trace", ignore_fields),
        )
        together: FilesTogether | None = None
        resolver = None if corpus is None else Resolver(Lookup(read_corpus(corpus)), None)
        if resolver is not None and chunks is not None:
            check, resolver = _with_chunks(stack.enter_context(opened(chunks)), resolver)
            checks.append(check)
        # Characters are looked up as they are, so that a problem quotes what is written.
        locate = None if resolver is None else locator(resolver.lookup, convert=False)
        loaded_gold = GoldInput(gold or (), gold_source, None, choice, locate=locate)
        items: list[GoldItem] = loaded_gold.loaded.items
        table, clashes = _table(loaded_gold, named := name_of(gold, gold_source, "<gold>"))
        if gold_source is not None:
            loaded = _with(loaded_gold.loaded, clashes)
            if resolver is not None:
                report = resolve_gold(gold_source, items, resolver)
                loaded = _with(loaded, report)
                findings.append(f"{gold_source.name} in the corpus: {report.summary()}")
            notes = loaded_gold.loaded.notes
            checks.append(_check(gold_source, "gold item", len(items), choice, loaded, notes))
        if trace_source is not None and table is None:
            read = read_traces(trace_source, choice)  # line by line: there is nothing to join with
            checks.append(_check(trace_source, "trace", len(read.items), choice, read, read.notes))
        elif trace_source is not None and table is not None:
            plan_ = ScoringPlan(
                profile=choice.profile,
                dialect=choice.dialect,
                own=choice.own,
                sole=choice.sole,
                k=choice.profile.k,
                selected=_quick_metrics(choice.profile),
                intervals=False,
                slices=False,
                check_keys=True,
                looked_up=resolver is not None,
            )
            run = ScoringRun(plan_, table, gold_name=named, trace_name=trace_source.name)
            ranged = trace_source.layout != "run"
            engine = file_engine(stack, trace_source, None) if ranged else None
            run.note_fields(*uses)
            run.read(open_traces(trace, trace_source, choice, engine))
            loaded = run.problems_found()
            if resolver is not None:
                reducer = RangeReducer(job_of(plan_, table, trace_source))
                resolver.placer = opened_placer(stack, resolver.lookup, resolver.chunks or {})
                report = resolve_traces(trace_source, reducer, resolver)
                loaded = _with(loaded, report)
                findings.append(f"{trace_source.name} in the corpus: {report.summary()}")
            notes = run.row_notes()
            checks.append(_check(trace_source, "trace", run.traces, choice, loaded, notes))
            if items:
                together = run.together()
        used = tuple(use for use in uses if use is not None)
        findings += unread_notes(used) if together is None else together.findings
        findings += gold_findings(items)
        return Checks(
            files=tuple(checks),
            findings=tuple(findings),
            fields=used,
            blocks=() if together is None else together.blocks,
        )


def _with_chunks(source: Source, resolver: Resolver) -> tuple[FileCheck, Resolver]:
    """The check of a list of chunks, and what looks ids up in it too."""
    listed = read_chunks(source, check=resolver.chunk)
    check = FileCheck(
        name=source.name,
        kind="chunk",
        rows=len(listed.chunks),
        dialect=None,
        notes=source.notes,
        problems=tuple(listed.problems),
        problem_count=listed.problem_count,
    )
    return check, Resolver(resolver.lookup, listed.chunks)


def _quick_metrics(profile: Profile) -> list[Selected]:
    """The metrics of a profile that need no second look at rows: whether any of them measures."""
    return [
        chosen
        for chosen in registry.select(profile.metrics, profile.k)
        if not (chosen.metric.reads_other_rows or chosen.metric.reads_bytes)
        and chosen.metric.of_question is None
    ]


def _table(gold: GoldInput, name: str) -> tuple[GoldTable | None, LoadedRows]:
    """The table of a gold set, or what keeps its items from being one."""
    try:
        return gold.table(Options(), name, {}), LoadedRows([], [], 0)
    except RagaugeError as error:
        return None, LoadedRows([], list(error.problems), error.total)


def _with(loaded: LoadedRows, report: ResolveReport | LoadedRows) -> LoadedRows:
    """What was wrong with the lines of a file, and what they name that is not there."""
    problems = [*loaded.problems, *report.problems]
    problems.sort(key=lambda problem: (problem.place.line or 0) if problem.place is not None else 0)
    count = loaded.problem_count + report.problem_count
    return LoadedRows(loaded.items, problems[:MAX_REPORTED], count)


def _check(
    source: Source,
    kind: str,
    rows: int,
    choice: FormatChoice,
    loaded: LoadedRows,
    notes: Sequence[str],
) -> FileCheck:
    return FileCheck(
        name=source.name,
        kind=kind,
        rows=rows,
        dialect=choice.dialect.name,
        notes=(*source.notes, *notes),
        problems=tuple(loaded.problems),
        problem_count=loaded.problem_count,
    )
