"""Loading whole files into the model: gold sets and trace sets, of JSON rows or of TREC's lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.duplicate_keys import duplicate_keys
from ragauge.files.fields import FieldError, Row, shown
from ragauge.files.open import PathLike, inspect, opened, unpacked
from ragauge.files.ranges import Source, rows_of
from ragauge.formats.detect import TREC, FormatChoice, choose, sniff
from ragauge.formats.fast_rows import FastGoldDecoder
from ragauge.formats.field_map import NO_FIELDS, FieldMaps, Side, as_field_maps
from ragauge.formats.gold import Locate
from ragauge.formats.imports.convert import converted_source
from ragauge.formats.json_rows import decode_row, duplicate_key_error
from ragauge.formats.loaded_rows import LoadedRows
from ragauge.formats.renamed_rows import NAMED_BY_QUESTION, renamed_source
from ragauge.formats.rows_in_memory import Rows, file_of_rows, rereadable
from ragauge.formats.traces import RowReader
from ragauge.formats.trec.beir import is_beir, qrels_file
from ragauge.formats.trec.lines import BadLine, BadLines
from ragauge.formats.trec.qrels import TrecRow, qrels_rows, run_rows
from ragauge.formats.wrapped_rows import unwrapped_columns, unwrapped_rows
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.trace import Hit, Trace, TraceSet

Value = TypeVar("Value")


def _load(
    source: Source,
    reader: RowReader,
    make: Callable[[Row, int], GoldItem | Trace],
    fast: Callable[[bytes, int], GoldItem | None] | None = None,
    *,
    refuse_duplicate_keys: bool = False,
    take: Callable[[Any], None] | None = None,
) -> LoadedRows:
    items: list[Any] = []
    take = items.append if take is None else take
    problems: list[Problem] = []
    duplicates: list[Problem] = []
    count = duplicate_count = 0
    for line, data, cut, overlong in rows_of(source):
        if fast is not None and (item := fast(data, line)) is not None:
            take(item)
            continue
        row: Row | None = None
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            duplicate = duplicate_key_error(data)
            if duplicate is not None and refuse_duplicate_keys:
                raise duplicate
            made = make(row, line)
        except FieldError as failure:
            count += 1
            if len(problems) < MAX_REPORTED:
                problems.append(reader.problem(failure, row, Place(source.name, line)))
            continue
        take(made)
        if duplicate is not None:
            duplicate_count += 1
            if len(duplicates) < MAX_REPORTED:
                duplicates.append(reader.problem(duplicate, row, Place(source.name, line)))
    return LoadedRows(items, problems, count, tuple(duplicates), duplicate_count)


def open_source(
    stack: ExitStack,
    given: object,
    side: Side = "gold",
    *,
    fields: FieldMaps = NO_FIELDS,
    questions: Callable[[], Mapping[str, str]] | None = None,
) -> Source | None:
    """The source behind a path or of rows in memory; None for values of our own.

    A BEIR folder is its judgements. A file of another tool is read as rows of our own; its traces
    are joined with the `questions` of the gold set, which go from ids to texts and are looked up
    only then. The rows of a table, and rows with field names of the user's own, have our names and
    types.
    """
    file = file_of_rows(stack, given, side)
    if file is None:
        if not isinstance(given, str | os.PathLike):
            return None
        if os.path.isdir(given) and is_beir(given):
            return stack.enter_context(opened(qrels_file(given)))
        file = stack.enter_context(unpacked(given))
    own = fields.gold if side == "gold" else fields.traces
    unwrapped = unwrapped_columns(stack, file)
    file = file if unwrapped is None else unwrapped.file
    # Whoever says where their fields are knows the file better than its shape tells.
    if not own.entries:
        converted = converted_source(stack, file, side, questions=questions)
        if converted is not None:
            return renamed_source(stack, converted, own) if own.stage == "first" else converted
    unwrapped = unwrapped or unwrapped_rows(stack, file, side, roots=own.roots)
    if unwrapped is None:
        return renamed_source(stack, inspect(file), own)
    source = inspect(unwrapped.file)
    return renamed_source(stack, replace(source, notes=(*source.notes, unwrapped.note)), own)


def open_sources(
    stack: ExitStack, gold: object, traces: object, *, fields: FieldMaps, dialect: str
) -> tuple[Source | None, Source | None]:
    """The sources of gold and traces that belong together."""
    gold_source = open_source(stack, gold, fields=fields)
    if gold_source is not None and any(NAMED_BY_QUESTION in note for note in gold_source.notes):
        fields = replace(fields, traces=replace(fields.traces, by_question=True))
    trace_source = open_source(
        stack,
        traces,
        "traces",
        fields=fields,
        questions=lambda: gold_questions(gold, gold_source, dialect),
    )
    return _as_trec(gold_source, trace_source), trace_source


def gold_questions(given: object, source: Source | None, dialect: str) -> dict[str, str]:
    """The text of each question of a gold set by its id; rows that cannot be read have none."""
    if source is not None and source.layout in TREC:
        return {}
    if source is None and not isinstance(given, GoldSet | list | tuple):
        return {}  # an iterator can be read once, and not for this
    loaded = read_gold(given, source, choose(dialect, None, gold=source))
    return {item.qid: item.question for item in loaded.items if item.question is not None}


def _as_trec(gold: Source | None, trace: Source | None) -> Source | None:
    """The gold source, as judgements where the traces are a TREC run and it is no JSON."""
    if gold is None or trace is None or trace.layout != "run" or gold.layout != "lines":
        return gold
    return gold if sniff(gold) else replace(gold, layout="qrels")


def name_of(given: object, source: Source | None, fallback: str) -> str:
    """How an input is called in reports."""
    if source is not None:
        return source.name
    return given.name if isinstance(given, GoldSet | TraceSet) else fallback


def read_gold(
    given: object,
    source: Source | None,
    choice: FormatChoice,
    *,
    locate: Locate | None = None,
    take: Callable[[GoldItem], None] | None = None,
) -> LoadedRows:
    """The gold items of any input; `locate` finds what is quoted in a corpus.

    `take` is given the items of a file of rows one by one, and then none are in the result.
    """
    if source is None:
        items = given.items if isinstance(given, GoldSet) else given
        return LoadedRows(list(values_of(items, GoldItem, "gold")), [], 0)
    if source.layout == "qrels":
        folder = isinstance(given, str | os.PathLike) and os.path.isdir(given)
        return _qrels_items(source, queries(given) if folder else {})  # type: ignore[arg-type]
    reader = RowReader(choice.dialect, own=choice.own, sole=choice.sole, locate=locate)
    refuse = choice.profile.join.duplicate_gold == "error"
    fast = FastGoldDecoder(reader.closed_gold).item
    closed: dict[str, tuple[int, int]] = {}
    kept: list[GoldItem] = []
    keep = kept.append if take is None else take

    def counted(item: GoldItem) -> None:
        """Count the names that are not read: how many items have them, and the first line."""
        for name in sorted(reader.closed_gold.intersection(item.extra)):
            if item.extra[name] is not None:
                count, first = closed.get(name, (0, item.line or 0))
                closed[name] = count + 1, first
        keep(item)

    taken = counted if reader.closed_gold else keep
    loaded = _load(source, reader, reader.gold, fast, refuse_duplicate_keys=refuse, take=taken)
    return replace(loaded, items=kept, closed=closed)


def values_of(given: object, kind: type[Value], name: str) -> tuple[Value, ...]:
    """What was given in memory, if it is values of that kind; a set of them is taken apart before.

    Dicts, frames and the like are an error here, and not where a field of them is missed.
    """
    values = tuple(given) if isinstance(given, Iterable) else (given,)
    others = [value for value in values if not isinstance(value, kind)]
    if not others and isinstance(given, Iterable):
        return values
    what = type(given).__name__
    if isinstance(given, Iterable) and values:
        what = f"{what} of {type(others[0]).__name__}"
    raise RagaugeError.of(
        "usage",
        f"{name} must be a path, or {kind.__name__} values, got: {what}",
        hint="give a path, a list of dicts, or a frame of pandas or polars",
    )


def read_traces(source: Source, choice: FormatChoice) -> LoadedRows:
    """The traces of a file, in memory."""
    if source.layout == "run":
        return _run_traces(source)
    reader = RowReader(choice.dialect, own=choice.own, sole=choice.sole)
    return _load(source, reader, reader.trace)


def _not_readable(name: str, given: object) -> RagaugeError:
    return RagaugeError.of(
        "usage",
        f"{name} must be a path or rows, got: {type(given).__name__}",
        hint="give a path, a list of dicts, or a frame of pandas or polars",
    )


def load_gold(
    path: PathLike | Rows,
    *,
    dialect: str = "auto",
    fields: FieldMaps | Mapping[str, Any] | None = None,
) -> GoldSet:
    """Read a gold set from a file or from rows in memory.

    Any bad row is an error that names all bad rows (up to 20).

    `fields` says where your rows have our fields: `{"gold": {"relevant": "evidence[].id"}}`.
    """
    path = rereadable(path)
    with ExitStack() as stack:
        source = open_source(stack, path, fields=as_field_maps(fields))
        if source is None:
            raise _not_readable("the gold set", path)
        choice = choose(dialect, None, gold=source)
        loaded = read_gold(path, source, choice)
        loaded.stop_on_problems()
        items, dialect_name = tuple(loaded.items), choice.dialect.name
        notes = (*source.notes, *loaded.notes)
        return GoldSet(items=items, name=source.name, dialect=dialect_name, notes=notes)


def load_traces(
    path: PathLike | Rows,
    *,
    dialect: str = "auto",
    fields: FieldMaps | Mapping[str, Any] | None = None,
) -> TraceSet:
    """Read traces into memory, from a file or from rows that are there.

    To score a large file, give `score` its path instead.

    `fields` says where your rows have our fields: `{"answer": "response"}`.
    """
    path = rereadable(path)
    with ExitStack() as stack:
        source = open_source(stack, path, "traces", fields=as_field_maps(fields))
        if source is None:
            raise _not_readable("the traces", path)
        choice = choose(dialect, None, trace=source)
        loaded = read_traces(source, choice)
        loaded.stop_on_problems()
        traces, dialect_name = tuple(loaded.items), choice.dialect.name
        notes = (*source.notes, *loaded.notes)
        return TraceSet(traces=traces, name=source.name, dialect=dialect_name, notes=notes)


def _qrels_items(source: Source, questions: Mapping[str, str]) -> LoadedRows:
    """Judgements as gold items with grades; of two for one document the last counts."""

    def item(qid: str, rows: list[TrecRow]) -> GoldItem:
        grades = {row.docid: float(row.number) for row in rows}
        return GoldItem(qid=qid, question=questions.get(qid), grades=grades, line=rows[0].line)

    return _by_query(source, qrels_rows(source), item)


def _run_traces(source: Source) -> LoadedRows:
    """A run as traces: by score in single precision, ties by document id, both descending."""

    def place(row: TrecRow) -> tuple[float, bytes]:
        return float(np.float32(row.number)), row.docid.encode()

    def trace(qid: str, rows: list[TrecRow]) -> Trace:
        ordered = sorted(rows, key=place, reverse=True)
        hits = tuple(Hit(row.docid, score=row.number) for row in ordered)
        disordered = [row.docid for row in ordered] != [row.docid for row in rows]
        return Trace(qid=qid, hits=hits, disordered=disordered, line=rows[0].line)

    return _by_query(source, run_rows(source), trace)


def _by_query(
    source: Source,
    rows: Iterator[TrecRow | BadLine],
    make: Callable[[str, list[TrecRow]], GoldItem | Trace],
) -> LoadedRows:
    queries: dict[str, list[TrecRow]] = {}
    trouble = BadLines()
    for row in rows:
        if isinstance(row, BadLine):
            trouble.add(row)
        else:
            queries.setdefault(row.qid, []).append(row)
    problems = [bad.at(source.name) for bad in trouble.first]
    return LoadedRows([make(qid, lines) for qid, lines in queries.items()], problems, trouble.total)


class _Query(Struct):
    """The fields of a question that are read; BEIR's `metadata` and others are passed over."""

    id: str = msgspec.field(name="_id")
    text: str


def queries(path: PathLike) -> dict[str, str]:
    """The text of each question by its id; empty where there is no `queries.jsonl`."""
    file = Path(path) / "queries.jsonl"
    if not file.exists():
        return {}
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    count = 0
    decode = msgspec.json.Decoder(_Query).decode
    with opened(file) as source:
        for line, data, cut, overlong in rows_of(source):
            try:
                query = decode(data)
                if data.count(b":") == 2 or not duplicate_keys(data):
                    texts[query.id] = query.text
                    continue
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # read again below, by what knows how to say what is wrong
            try:
                row = decode_row(data, cut=cut, overlong=overlong)
                if (duplicate := duplicate_key_error(data)) is not None:
                    raise duplicate
                texts[_query_text(row, "_id")] = _query_text(row, "text")
            except FieldError as failure:
                count += 1
                if len(problems) < MAX_REPORTED:
                    place = Place(source.name, line)
                    problems.append(Problem(failure.code, failure.message, failure.hint, place))
    if count:
        raise RagaugeError(problems, total=count)
    return texts


def _query_text(row: Row, name: str) -> str:
    if name not in row:
        hint = "a line of queries.jsonl has `_id` and `text`"
        raise FieldError("missing-field", f"`{name}` is missing", hint)
    value = row[name]
    if isinstance(value, str):
        return value
    if name == "_id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    hint = "write it in double quotes"
    raise FieldError("bad-field", f"`{name}` must be text, got {shown(value)}", hint)
