"""Exporting: a stored run as one file of JSON Lines, and a run in a store again from it."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import islice
from typing import IO, Protocol, TypeVar

from msgspec import Raw, Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.atomic_write import written
from ragauge.files.open import opened
from ragauge.model.payloads import readable, thaw, thaw_chunks, thaw_gold
from ragauge.model.run import GoldRow, RunRecord, Scoring, Store, ValueColumn
from ragauge.store.export_lines import (
    NOT_JSON,
    ChunksLine,
    Counts,
    EndLine,
    EvidenceLine,
    GoldLine,
    Line,
    ResultLine,
    RunLine,
    ScoringLine,
    ValuesLine,
    decode,
    encode,
    evidence_line,
    evidence_of,
    packed,
    result_line,
    result_of,
    run_line,
    run_of,
    scoring_line,
    scoring_of,
    values_line,
    values_of,
)

MOST_BYTES = 256 * 1024 * 1024
"""The longest line that is read."""

_BATCH = 2048
_COUNTED: dict[type[Line], str] = {
    GoldLine: "gold", ChunksLine: "chunks", ResultLine: "results", ScoringLine: "scorings",
    ValuesLine: "values",
}  # fmt: skip
_L = TypeVar("_L", bound=Line)


class Writable(Protocol):
    """Something that takes bytes."""

    def write(self, data: bytes, /) -> int:
        """Take bytes."""
        ...


def export_run(store: Store, run: RunRecord, stream: Writable) -> Counts:
    """Write a complete run to a stream, line by line; the same run gives the same bytes."""
    digest = sha256()
    counts = dict.fromkeys(Counts.__struct_fields__, 0)
    for line in _lines_of(store, run):
        data = encode(line) + b"\n"
        stream.write(data)
        digest.update(data)
        kind = _COUNTED.get(type(line))
        if kind is not None:
            counts[kind] += 1
        counts["unreadable"] += getattr(line, "packed", None) is not None
    made = Counts(**counts)
    stream.write(encode(EndLine(counts=made, sha256=digest.hexdigest())) + b"\n")
    return made


def _lines_of(store: Store, run: RunRecord) -> Iterator[Line]:
    yield run_line(run)
    yield evidence_line(run)
    for gold in store.gold(run.gold_key):
        thaw_gold([gold], run.run_id)  # without its gold set a run is of no use
        yield GoldLine(*gold[:4], Raw(thaw(gold.payload)))
    if run.chunks is not None:
        for block in store.chunks(run.chunks):
            thaw_chunks([block], run.run_id)
            yield ChunksLine(Raw(thaw(block)))
    yield from map(result_line, store.results(run.run_id, values=True))
    for scoring in store.scorings(run.run_id):
        yield scoring_line(scoring)
        yield from map(values_line, store.values(run.run_id, scoring.number))


@contextmanager
def packed_if_named_so(name: str) -> Iterator[Writable]:
    """A file to write to, packed if its name ends with `.gz`; it is whole or not there at all."""
    with written(name) as file:
        if name.endswith(".gz"):
            # Neither the name nor the time goes into the file: equal runs, equal bytes.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                yield packed
        else:
            yield file


class Imported(Struct, frozen=True, kw_only=True):
    """What an import brought."""

    run_id: str
    counts: Counts


def import_run(store: Store, name: str, *, run_id: str | None = None) -> Imported:
    """Bring an exported run into a store; a file that is not whole changes nothing there.

    The file is read twice: first to see that it is whole. If the second reading fails, what was
    imported is deleted again.
    """
    try:
        with opened(name) as source:
            counts = _checked(source.path, source.name)
            with open(source.path, "rb") as file:
                return _imported(store, _Lines(file, source.name), counts, run_id)
    except RagaugeError as error:
        if error.code in ("bad-gzip", "bad-zstd", "bad-encoding"):
            raise _bad(name, error.problems[0].message) from error
        raise


def _bad(name: str, why: str, *, line: int | None = None) -> RagaugeError:
    return RagaugeError.of(
        "bad-export",
        why,
        place=Place(name, line),
        hint="export the run again from its store; nothing was imported",
    )


def _checked(path: str, name: str) -> Counts:
    """Read a file to its end without decoding it; raise unless it is as it was written."""
    digest = sha256()
    last = b""
    with open(path, "rb") as file:
        for line in iter(lambda: file.readline(MOST_BYTES), b""):
            digest.update(last)
            last = line
    try:
        end = decode(last)
    except NOT_JSON:
        end = None
    if not isinstance(end, EndLine) or not last.endswith(b"\n"):
        raise _bad(name, "the file has no end: it was cut off, or is no exported run")
    if end.sha256 != digest.hexdigest():
        raise _bad(name, "the file was changed after it was exported")
    return end.counts


class _Lines:
    """The lines of a file, decoded one after the other; the next one can be looked at."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file = file
        self.name = name
        self.number = 0
        self.next: Line | None = None
        self.advance()

    def advance(self) -> None:
        """Read the next line."""
        data = self.file.readline(MOST_BYTES)
        self.number += 1
        try:
            self.next = decode(data) if data else None
        except NOT_JSON as error:
            raise self.bad(f"it is not a line of an exported run: {error}") from error

    def bad(self, why: str) -> RagaugeError:
        """The error for the line that was read last."""
        return _bad(self.name, why, line=self.number)

    def numbered(self, found: int, wanted: int) -> None:
        """Raise if a line does not have the number of its place."""
        if found != wanted:
            raise self.bad(f"a line has the number {found}, it should be {wanted}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Say of whatever cannot be read that it stands here."""
        try:
            yield
        except (*NOT_JSON, ValueError) as error:
            raise self.bad(f"it cannot be read: {error}") from error
        except RagaugeError as error:
            if error.code != "bad-store":
                raise
            raise self.bad(error.problems[0].message) from error

    def one(self, kind: type[_L]) -> _L:
        """The next line, which must be of a kind."""
        found = self.next
        if not isinstance(found, kind):
            raise self.bad(f"there must be a line of the kind `{kind.__struct_config__.tag}`")
        self.advance()
        return found

    def all(self, kind: type[_L]) -> Iterator[_L]:
        """The lines of a kind that come next."""
        while isinstance(self.next, kind):
            yield self.one(kind)

    def batches(self, kind: type[_L], most: int) -> Iterator[list[_L]]:
        """The same, some at a time."""
        found = self.all(kind)
        while batch := list(islice(found, most)):
            yield batch


def _imported(store: Store, lines: _Lines, counts: Counts, run_id: str | None) -> Imported:
    head = lines.one(RunLine)
    if not readable(head.schema_version):
        raise _bad(lines.name, "it was exported by a newer ragauge: upgrade to read it")
    run = run_of(head, run_id)
    with lines.blamed():
        evidence = evidence_of(lines.one(EvidenceLine))
    store.begin(run)
    try:
        _add_gold(store, run, lines)
        if run.chunks is not None:
            _add_chunks(store, run, run.chunks, lines)
        if _add_results(store, run, lines) != head.results:
            raise lines.bad(f"the run has {head.results} results, and the file has not")
        scoring, values = _add_scorings(store, run, lines)
        lines.one(EndLine)
        if lines.next is not None:
            raise lines.bad("there are lines behind the end")
        # The last step, in one transaction: up to here the run is incomplete.
        store.finish(
            run.run_id, results=head.results, evidence=evidence, scoring=scoring, values=values
        )
    except Exception:
        with suppress(RagaugeError):  # what went wrong first is what must be said
            store.delete(run.run_id)
        raise
    return Imported(run_id=run.run_id, counts=counts)


def _add_gold(store: Store, run: RunRecord, lines: _Lines) -> None:
    """Add the gold set; its key must be its own, as other runs may share it."""
    digest = sha256()

    def rows() -> Iterator[GoldRow]:
        for place, each in enumerate(lines.all(GoldLine)):
            lines.numbered(each.ordinal, place)
            data = bytes(each.item)
            digest.update(data + b"\n")
            row = GoldRow(each.ordinal, each.query_id, each.turn, each.item_hash, packed(data))
            with lines.blamed():
                thaw_gold([row], run.run_id)
            yield row
        if digest.hexdigest() != run.gold_key:
            raise lines.bad("the gold items are not those that the run names")

    given = rows()
    store.add_gold(run.gold_key, given)
    for _ in given:  # a set that is there already is not read by the store
        pass


def _add_chunks(store: Store, run: RunRecord, name: str, lines: _Lines) -> None:
    """Add the list of chunks, likewise; its blocks are parts of one sorted list."""
    digest = sha256(b"[")

    def blocks() -> Iterator[bytes]:
        for place, each in enumerate(lines.all(ChunksLine)):
            data = bytes(each.chunks)
            digest.update((b"," if place else b"") + data[1:-1])
            with lines.blamed():
                thaw_chunks([packed(data)], run.run_id)
            yield packed(data)
        digest.update(b"]")
        if digest.hexdigest()[: len(name)] != name:
            raise lines.bad("the list of chunks is not the one that the run names")

    given = blocks()
    store.add_chunks(name, given)
    for _ in given:
        pass


def _add_results(store: Store, run: RunRecord, lines: _Lines) -> int:
    count = 0
    for batch in lines.batches(ResultLine, _BATCH):
        for place, each in enumerate(batch, count):
            lines.numbered(each.ordinal, place)
        with lines.blamed():
            rows = [result_of(each) for each in batch]
        store.add_results(run.run_id, rows)
        count += len(rows)
    return count


def _add_scorings(store: Store, run: RunRecord, lines: _Lines) -> tuple[Scoring, list[ValueColumn]]:
    """Add all scorings but the last, with which the run will be complete."""
    last: tuple[Scoring, list[ValueColumn]] | None = None
    for place, each in enumerate(lines.all(ScoringLine), 1):
        lines.numbered(each.number, place)
        if last is not None:
            store.add_scoring(run.run_id, *last)
        with lines.blamed():
            last = scoring_of(each), [values_of(found) for found in lines.all(ValuesLine)]
    if last is None:
        raise lines.bad("there is no scoring")
    return last
