"""Loading whole files into the model: gold sets, trace sets, and telling which dialect they are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from msgspec.structs import replace

from ragauge.errors import MAX_REPORTED, Place, Problem
from ragauge.files.fields import FieldError, Row
from ragauge.files.open import PathLike, opened
from ragauge.files.ranges import Source, plan, read_rows
from ragauge.formats.detect import FormatChoice, choose, sniff
from ragauge.formats.fast_rows import FastGoldDecoder
from ragauge.formats.gold import Locate
from ragauge.formats.json_rows import decode_row
from ragauge.formats.loaded import LoadedRows
from ragauge.formats.traces import RowReader
from ragauge.formats.trec import items as trec_items
from ragauge.formats.trec.beir import is_beir, qrels_file, queries
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.trace import Trace, TraceSet


def load_gold_rows(source: Source, reader: RowReader) -> LoadedRows:
    """Read every gold item of a file."""
    return _load(source, reader, reader.gold, FastGoldDecoder().item)


def load_trace_rows(source: Source, reader: RowReader) -> LoadedRows:
    """Read every trace of a file."""
    return _load(source, reader, reader.trace)


def _load(
    source: Source,
    reader: RowReader,
    make: Callable[[Row, int], GoldItem | Trace],
    fast: Callable[[bytes, int], GoldItem | None] | None = None,
) -> LoadedRows:
    items: list[Any] = []
    problems: list[Problem] = []
    count = 0
    for line, data, cut, overlong in rows_of(source):
        if fast is not None and (item := fast(data, line)) is not None:
            items.append(item)
            continue
        row: Row | None = None
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            items.append(make(row, line))
        except FieldError as failure:
            count += 1
            if len(problems) < MAX_REPORTED:
                problems.append(reader.problem(failure, row, Place(source.name, line)))
    return LoadedRows(items, problems, count)


def rows_of(source: Source) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Yield line, bytes, whether it ends the file without a newline, and whether it is too long.

    Rows come in file order; blank lines are passed over.
    """
    first = 1
    for part in plan(source):
        rows = read_rows(source, part)
        if part.first_line is not None:
            first = part.first_line
        at_end = part.end >= source.size
        for index, data in enumerate(rows.data):
            overlong = index in rows.overlong
            if overlong or data.strip():
                cut = at_end and not rows.ended and index == len(rows.data) - 1
                yield first + rows.line(index), data, cut, overlong
        first += rows.newlines


def open_source(stack: ExitStack, given: object) -> Source | None:
    """The source behind a path; None for what is in memory. A BEIR folder is its judgements."""
    if not isinstance(given, str | os.PathLike):
        return None
    if os.path.isdir(given) and is_beir(given):
        return stack.enter_context(opened(qrels_file(given)))
    return stack.enter_context(opened(given))


def as_trec(gold: Source | None, trace: Source | None) -> Source | None:
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
    given: object, source: Source | None, choice: FormatChoice, *, locate: Locate | None = None
) -> LoadedRows:
    """The gold items of any input; `locate` finds what is quoted in a corpus."""
    if source is None:
        items = given.items if isinstance(given, GoldSet) else list(given)  # type: ignore[call-overload]
        return LoadedRows(list(items), [], 0)
    if source.layout == "qrels":
        folder = isinstance(given, str | os.PathLike) and os.path.isdir(given)
        return trec_items.gold_items(source, queries(given) if folder else {})  # type: ignore[arg-type]
    return load_gold_rows(source, RowReader(choice.dialect, own=choice.own, locate=locate))


def read_traces(source: Source, choice: FormatChoice) -> LoadedRows:
    """The traces of a file, in memory."""
    if source.layout == "run":
        return trec_items.traces(source)
    return load_trace_rows(source, RowReader(choice.dialect, own=choice.own))


def load_gold(path: PathLike, *, dialect: str = "auto") -> GoldSet:
    """Read a gold set. Any bad row is an error that names all bad rows (up to 20)."""
    with ExitStack() as stack:
        source = open_source(stack, path)
        assert source is not None
        choice = choose(dialect, None, gold=source)
        loaded = read_gold(path, source, choice)
        loaded.stop_on_problems()
        return GoldSet(
            items=tuple(loaded.items),
            name=source.name,
            dialect=choice.dialect.name,
            notes=source.notes,
        )


def load_traces(path: PathLike, *, dialect: str = "auto") -> TraceSet:
    """Read a trace file into memory. To score a large file, give `score` its path instead."""
    with opened(path) as source:
        choice = choose(dialect, None, trace=source)
        loaded = read_traces(source, choice)
        loaded.stop_on_problems()
        return TraceSet(
            traces=tuple(loaded.items),
            name=source.name,
            dialect=choice.dialect.name,
            notes=source.notes,
        )
