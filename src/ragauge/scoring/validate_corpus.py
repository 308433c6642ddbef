"""Every gold item and trace of a file looked up in a corpus, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragauge.concurrency import paused_collector
from ragauge.corpus.resolve import Resolver, ResolveReport
from ragauge.errors import MAX_REPORTED, Place
from ragauge.files.fields import FieldError, Row
from ragauge.files.ranges import Source, rows_of
from ragauge.formats.detect import TREC
from ragauge.formats.json_rows import decode_row
from ragauge.model.field_spellings import HIT_DOCS, HIT_HASHES
from ragauge.model.gold import GoldItem
from ragauge.scoring.tasks.reduce import RangeReducer

_RUN_FIELDS = 6


def resolve_gold(source: Source, items: Sequence[GoldItem], resolver: Resolver) -> ResolveReport:
    """Look up all that gold items name."""
    report = ResolveReport(problems=[])
    for item in items:
        place = Place(source.name, item.line, item.qid)
        for error in resolver.item(item, report):
            report.note(error, place)
    if source.layout in TREC:
        return report
    # Hashes are no part of an item, so they are read from the rows themselves.
    hashed = ResolveReport(problems=[])
    for line, row in _hashed_rows(source):
        for error in _wrong_hashes(resolver, row):
            hashed.note(error, Place(source.name, line))
    report.problem_count += hashed.problem_count
    both = [*report.problems, *hashed.problems]
    both.sort(key=lambda problem: (problem.place.line or 0) if problem.place is not None else 0)
    report.problems = both[:MAX_REPORTED]
    return report


def _hashed_rows(source: Source) -> Iterator[tuple[int, Row]]:
    """The rows that may hold the hash of a document; bad ones are reported elsewhere."""
    for line, data, cut, overlong in rows_of(source):
        if not any(name.encode() in data for name in HIT_HASHES[0]):
            continue
        try:
            yield line, decode_row(data, cut=cut, overlong=overlong)
        except FieldError:
            continue


def _hashes_in(value: Any, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Each document with a hash of it that stands in a row, and the path to it."""
    if isinstance(value, Mapping):
        docs = [value[name] for name in HIT_DOCS if isinstance(value.get(name), str)]
        hashes = [value[name] for name in HIT_HASHES[0] if isinstance(value.get(name), str)]
        if docs and hashes:
            yield path, docs[0], hashes[0]
        for name, part in value.items():
            yield from _hashes_in(part, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _hashes_in(part, f"{path}[{place}]")


def _wrong_hashes(resolver: Resolver, row: Row) -> Iterator[FieldError]:
    """The hashes in a gold row that are not those of the corpus."""
    for path, doc, digest in _hashes_in(row):
        if doc not in resolver.lookup.documents:
            continue  # the place itself is reported
        try:
            resolver.check_hash(doc, digest)
        except FieldError as error:
            yield FieldError(error.code, f"`{path}`: {error.message}", error.hint)


def resolve_traces(source: Source, reducer: RangeReducer, resolver: Resolver) -> ResolveReport:
    """Look up all that traces name, row by row; bad lines are reported elsewhere."""
    report = ResolveReport(problems=[])
    with paused_collector():
        if source.layout == "run":
            _run_lines(source, resolver, report)
        else:
            _rows(source, reducer, resolver, report)
    return report


def _rows(source: Source, reducer: RangeReducer, resolver: Resolver, report: ResolveReport) -> None:
    known_ids, dialect = resolver.known, reducer.reader.dialect.name
    for line, data, _, overlong in rows_of(source):
        if overlong:
            continue
        ids = _ids_of(data, reducer)
        if ids is not None and _all_known(*ids, known_ids, report):
            continue
        trace = reducer.read(data)
        if trace is None:
            continue
        place = Place(source.name, line, trace.qid, dialect)
        for error in resolver.trace(trace, report):
            report.note(error, place)


def _ids_of(data: bytes, reducer: RangeReducer) -> tuple[Sequence[str], Sequence[str]] | None:
    """The ids of hits and citations of a row that names nothing but ids; None for any other."""
    fast = reducer.try_decode(data)
    # Hits that are objects may say more of a document than the fast path reads.
    if fast is None or fast.hit_kind != "ids":
        return None
    usual = reducer.usual(fast)
    return None if usual is None else (usual.hits, usual.citations or ())


def _all_known(
    hits: Sequence[str], cited: Sequence[str], known_ids: frozenset[str], report: ResolveReport
) -> bool:
    """Count the ids of a row; False if it has a problem to be reported."""
    if not (known_ids.issuperset(hits) and known_ids.issuperset(cited)):
        if not report.is_full:
            return False
        report.problem_count += sum(name not in known_ids for name in hits)
        report.problem_count += sum(name not in known_ids and name not in hits for name in cited)
    report.ids += len(hits) + len(cited)
    return True


def _run_lines(source: Source, resolver: Resolver, report: ResolveReport) -> None:
    """The lines of a TREC run: question, Q0, what was retrieved, rank, score and tag."""
    with open(source.path, "rb") as file:
        file.seek(source.start)
        for line, data in enumerate(file, 1):
            fields = data.split()
            if len(fields) != _RUN_FIELDS:
                continue
            name = fields[2].decode(errors="replace")
            for error in resolver.names((name,), report):
                qid = fields[0].decode(errors="replace")
                report.note(error, Place(source.name, line, qid, "trec"))
