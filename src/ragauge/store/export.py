"""Export a stored run as one file of JSON Lines, and import it into a store again.

There is one kind of line for each thing that a store holds of a run. What can be read is written
as plain JSON; what cannot goes through byte by byte, so that an export loses nothing. A text that
many hits share is written with the first of them, and others say so: gzip looks back 32 KiB only,
and the chunks of an index come again and again.
"""

from __future__ import annotations

import gzip
import os
import zlib
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct
from msgspec.structs import replace

from ragauge.errors import Place, RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.files.open import opened
from ragauge.model.evidence import Evidence
from ragauge.model.payloads import (
    UNREADABLE,
    freeze_evidence,
    readable,
    thaw,
    thaw_chunks,
    thaw_evidence,
    thaw_gold,
    trace_json,
    trace_of,
)
from ragauge.model.run import (
    GoldRow,
    ResultFacts,
    ResultRow,
    RunRecord,
    Scoring,
    Store,
    ValueColumn,
)
from ragauge.model.trace import Trace
from ragauge.store.packed_slices import UNREADABLE_SLICES, join_slices, split_slices
from ragauge.store.runs import refuse_run_id
from ragauge.store.stored_scores import deserialise_values, serialise_values

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

MOST_BYTES = 256 * 1024 * 1024
"""The longest line that is read."""

_NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What bytes that are no line may raise."""

_LEVEL = 1  # as payloads are compressed everywhere: equal runs, equal bytes
_encode = msgspec.json.Encoder().encode
_NOTHING = Raw()  # left out of a line: fields are compared with their defaults by identity
_decode_values = msgspec.json.Decoder(list[float | None]).decode
_decode_evidence = msgspec.json.Decoder(Evidence).decode


class ExportLine(
    Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True, omit_defaults=True
):
    """A line of the file. What is `packed` could not be read, and stays as it is, byte by byte."""


class RunLine(ExportLine, frozen=True, tag="run", kw_only=True):
    """The first line. `snapshot` is text only where it is not the JSON of an object."""

    schema: Literal["ragauge.run/1", "ragauge.run/2"]
    run_id: str
    suite: str
    profile: str
    created_at: str
    commit_hash: str | None
    gold_hash: str
    gold_key: str
    chunks: str | None
    schema_version: int
    results: int
    snapshot: Raw
    branch: str | None = None
    author: str | None = None
    dirty: bool | None = None


class EvidenceLine(ExportLine, frozen=True, tag="evidence", kw_only=True):
    """What the run knows of chunks and documents."""

    evidence: Raw = _NOTHING
    packed: str | None = None


class GoldLine(ExportLine, frozen=True, tag="gold"):
    """One gold item."""

    ordinal: int
    query_id: str
    turn: int | None
    item_hash: str
    item: Raw


class ChunksLine(ExportLine, frozen=True, tag="chunks"):
    """A block of the list of chunks."""

    chunks: Raw


class ResultLine(ExportLine, frozen=True, tag="result"):
    """One result: its facts and its trace.

    `same_texts` names hits whose text is not repeated: the place of each, from 0, and the number of
    the text among those that came before, as `SharedTexts` counts them.
    """

    ordinal: int
    query_id: str
    paraphrase: int | None
    seed: str | None
    turn: int | None
    hit_rank: int | None
    carries: int
    outcome: str
    delta_s: float | None
    latency_ms: float | None
    trace: Raw = _NOTHING
    packed: str | None = None
    values: list[float | None] | None = None
    same_texts: list[tuple[int, int]] = []


class ScoringLine(ExportLine, frozen=True, tag="scoring", kw_only=True):
    """One scoring; `questions` are the columns of its questions.

    Slices stand in the aggregate, as in a scores document; `packed_slices` could not be read.
    """

    number: int
    created_at: str
    ragauge_version: str
    aggregate: Raw
    questions: Raw = _NOTHING
    packed: str | None = None
    packed_slices: str | None = None


class ValuesLine(ExportLine, frozen=True, tag="values", kw_only=True):
    """The values of one metric of the scoring above; null where a question has none."""

    metric: str
    version: int
    values: list[float | None] | None = None
    packed: str | None = None


class ExportCounts(Struct, frozen=True, kw_only=True):
    """How many lines there are of each kind; `unreadable` ones are kept as bytes."""

    gold: int = 0
    chunks: int = 0
    results: int = 0
    scorings: int = 0
    values: int = 0
    unreadable: int = 0


class EndLine(ExportLine, frozen=True, tag="end", kw_only=True):
    """The last line: `sha256` is over all bytes before it."""

    counts: ExportCounts
    sha256: str


AnyLine = (
    RunLine | EvidenceLine | GoldLine | ChunksLine | ResultLine | ScoringLine | ValuesLine | EndLine
)
_decode = msgspec.json.Decoder(AnyLine).decode


class SharedTexts:
    """The longer texts of hits by the order in which they first came, up to 64 Mi characters.

    Who writes a file and who reads it count alike, so a number is enough.
    """

    SHORTEST = 64
    MOST = 64 * 1024 * 1024
    ALWAYS_UNFOLDED = 64 * 1024 * 1024
    MOST_TIMES = 100

    def __init__(self, size: int | None = None) -> None:
        self.numbers: dict[str, int] = {}
        self.texts: list[str] = []
        self.characters = 0
        self.unfolded = 0
        self.limit = None if size is None else self.ALWAYS_UNFOLDED + self.MOST_TIMES * size

    def _add(self, text: str) -> None:
        room = self.characters + len(text) <= self.MOST
        if len(text) >= self.SHORTEST and room and text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
            self.characters += len(text)

    def fold(self, trace: Trace) -> tuple[Trace, list[tuple[int, int]]]:
        """The trace without the texts that came before, and which these are."""
        same = []
        hits = list(trace.hits)
        for place, hit in enumerate(hits):
            if hit.text is None:
                continue
            number = self.numbers.get(hit.text)
            if number is None:
                self._add(hit.text)
            else:
                same.append((place, number))
                hits[place] = replace(hit, text=None)
        return (replace(trace, hits=tuple(hits)) if same else trace), same

    def unfold(self, trace: Trace, same: list[tuple[int, int]]) -> Trace:
        """The trace with its texts; a file of a few bytes may not become one of gigabytes."""
        numbers = dict(same)
        hits = list(trace.hits)
        if len(numbers) != len(same) or any(not 0 <= place < len(hits) for place in numbers):
            raise ValueError("it names hits that are not there")
        for place, hit in enumerate(hits):
            number = numbers.get(place)
            if number is None:
                if hit.text is not None:
                    self._add(hit.text)
                continue
            if hit.text is not None or not 0 <= number < len(self.texts):
                raise ValueError("it names a text that did not come before")
            text = self.texts[number]
            self.unfolded += len(text)
            if self.limit is not None and self.unfolded > self.limit:
                raise ValueError(f"its texts are more than {self.MOST_TIMES} times the file")
            hits[place] = replace(hit, text=text)
        return replace(trace, hits=tuple(hits))


_BATCH = 2048
_COUNTED: dict[type[ExportLine], str] = {
    GoldLine: "gold", ChunksLine: "chunks", ResultLine: "results", ScoringLine: "scorings",
    ValuesLine: "values",
}  # fmt: skip
_OF_RUN = (
    "suite", "profile", "created_at", "commit_hash", "gold_hash", "gold_key", "chunks",
    "schema_version", "branch", "author", "dirty",
)  # fmt: skip
"""What a run and its line have in common, beside its id and its snapshot."""
_OF_SCORING = ("number", "created_at", "ragauge_version")
_L = TypeVar("_L", bound=ExportLine)


def parse_run_line(data: bytes) -> RunLine | None:
    """The first line of an exported run; None if it is none that can be read here."""
    with suppress(*_NOT_JSON):
        line = _decode(data)
        if isinstance(line, RunLine) and readable(line.schema_version):
            return line
    return None


def export_run(store: Store, run: RunRecord, stream: SupportsWrite[bytes]) -> ExportCounts:
    """Write a complete run to a stream, line by line; the same run gives the same bytes."""
    digest = sha256()
    counts: Counter[str] = Counter()
    for line in _lines_of(store, run):
        data = _encode(line) + b"\n"
        stream.write(data)
        digest.update(data)
        if kind := _COUNTED.get(type(line)):
            counts[kind] += 1
        unreadable = (getattr(line, name, None) for name in ("packed", "packed_slices"))
        counts["unreadable"] += any(payload is not None for payload in unreadable)
    total = ExportCounts(**counts)
    stream.write(_encode(EndLine(counts=total, sha256=digest.hexdigest())) + b"\n")
    return total


def _lines_of(store: Store, run: RunRecord) -> Iterator[ExportLine]:
    yield _run_line(run)
    yield _evidence_line(run)
    for gold in store.gold(run.gold_key):
        thaw_gold([gold], run.run_id)  # without its gold set a run is of no use
        yield GoldLine(*gold[:4], Raw(thaw(gold.payload)))
    if run.chunks is not None:
        for block in store.chunks(run.chunks):
            thaw_chunks([block], run.run_id)
            yield ChunksLine(Raw(thaw(block)))
    texts = SharedTexts()
    for row in store.results(run.run_id, values=True):
        yield _result_line(row, texts)
    for scoring in store.scorings(run.run_id):
        yield _scoring_line(scoring)
        yield from map(_values_line, store.values(run.run_id, scoring.number))


@contextmanager
def gzip_if_named_so(name: str) -> Iterator[SupportsWrite[bytes]]:
    """A file to write to, packed if its name ends with `.gz`; it is whole or not there at all."""
    with atomic_file(name) as file:
        if name.endswith(".gz"):
            # Neither the name nor the time goes into the file: equal runs, equal bytes.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as gzipped:
                yield gzipped
        else:
            yield file


class Imported(Struct, frozen=True, kw_only=True):
    """What an import brought."""

    run_id: str
    counts: ExportCounts


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
    hint = "export the run again from its store; nothing was imported"
    return RagaugeError.of("bad-export", why, place=Place(name, line), hint=hint)


def _checked(path: str, name: str) -> ExportCounts:
    """Read a file to its end without decoding it; raise unless it is as it was written."""
    digest = sha256()
    last = b""
    with open(path, "rb") as file:
        for line in iter(lambda: file.readline(MOST_BYTES), b""):
            digest.update(last)
            last = line
    try:
        end = _decode(last)
    except _NOT_JSON:
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
        self.next: ExportLine | None = None
        self.advance()

    def advance(self) -> None:
        """Read the next line."""
        data = self.file.readline(MOST_BYTES)
        self.number += 1
        try:
            self.next = _decode(data) if data else None
        except _NOT_JSON as error:
            raise self.bad(f"it is not a line of an exported run: {error}") from error

    def bad(self, why: str) -> RagaugeError:
        """The error for the line that was read last."""
        return _bad(self.name, why, line=self.number)

    def check_number(self, number: int, wanted: int) -> None:
        """Raise if a line does not have the number of its place."""
        if number != wanted:
            raise self.bad(f"a line has the number {number}, it should be {wanted}")

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Say of whatever cannot be read that it stands here."""
        try:
            yield
        except (*_NOT_JSON, ValueError) as error:
            raise self.bad(f"it cannot be read: {error}") from error
        except RagaugeError as error:
            if error.code != "bad-store":
                raise
            raise self.bad(error.problems[0].message) from error

    def one(self, kind: type[_L]) -> _L:
        """The next line, which must be of a kind."""
        line = self.next
        if not isinstance(line, kind):
            raise self.bad(f"there must be a line of the kind `{kind.__struct_config__.tag}`")
        self.advance()
        return line

    def all(self, kind: type[_L]) -> Iterator[_L]:
        """The lines of a kind that come next."""
        while isinstance(self.next, kind):
            yield self.one(kind)


def _imported(store: Store, lines: _Lines, counts: ExportCounts, run_id: str | None) -> Imported:
    head = lines.one(RunLine)
    if not readable(head.schema_version):
        raise _bad(lines.name, "it was exported by a newer ragauge: upgrade to read it")
    with lines.blamed():
        run = _run_of(head, run_id)
    try:
        refuse_run_id(run.run_id)
    except RagaugeError as error:
        if run_id is not None:
            raise
        hint = "give it another with --run-id NEW; nothing was imported"
        message = error.problems[0].message
        raise RagaugeError.of(
            "bad-export", message, place=Place(lines.name, 1), hint=hint
        ) from error
    with lines.blamed():
        evidence = _evidence_of(lines.one(EvidenceLine))
    gold = _gold_rows(run, lines)
    chunks = _chunk_blocks(run, run.chunks, lines, gold) if run.chunks is not None else iter(())
    store.begin(run, gold=gold, chunks=chunks)
    try:
        for _ in chain(gold, chunks):  # what is there already is not read by the store
            pass
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


def _gold_rows(run: RunRecord, lines: _Lines) -> Iterator[GoldRow]:
    """The rows of the gold set; its key must be its own, as other runs may share it."""
    digest = sha256()
    for place, line in enumerate(lines.all(GoldLine)):
        lines.check_number(line.ordinal, place)
        data = bytes(line.item)
        digest.update(data + b"\n")
        row = GoldRow(line.ordinal, line.query_id, line.turn, line.item_hash, _compressed(data))
        with lines.blamed():
            thaw_gold([row], run.run_id)
        yield row
    if digest.hexdigest() != run.gold_key:
        raise lines.bad("the gold items are not those that the run names")


def _chunk_blocks(
    run: RunRecord, name: str, lines: _Lines, gold: Iterator[GoldRow]
) -> Iterator[bytes]:
    """The blocks of the list of chunks, which stand behind the gold set; parts of one sorted list.

    Its name must be its own, likewise.
    """
    for _ in gold:
        pass
    digest = sha256(b"[")
    for place, line in enumerate(lines.all(ChunksLine)):
        data = bytes(line.chunks)
        digest.update((b"," if place else b"") + data[1:-1])
        with lines.blamed():
            thaw_chunks([_compressed(data)], run.run_id)
        yield _compressed(data)
    digest.update(b"]")
    if digest.hexdigest()[: len(name)] != name:
        raise lines.bad("the list of chunks is not the one that the run names")


def _add_results(store: Store, run: RunRecord, lines: _Lines) -> int:
    count = 0
    texts = SharedTexts(os.fstat(lines.file.fileno()).st_size)
    all_lines = lines.all(ResultLine)
    while batch := list(islice(all_lines, _BATCH)):
        for place, line in enumerate(batch, count):
            lines.check_number(line.ordinal, place)
        with lines.blamed():
            rows = [_result_of(line, texts) for line in batch]
        store.add_results(run.run_id, rows)
        count += len(rows)
    return count


def _add_scorings(store: Store, run: RunRecord, lines: _Lines) -> tuple[Scoring, list[ValueColumn]]:
    """Add all scorings but the last, with which the run will be complete."""
    last: tuple[Scoring, list[ValueColumn]] | None = None
    for place, line in enumerate(lines.all(ScoringLine), 1):
        lines.check_number(line.number, place)
        if last is not None:
            store.add_scoring(run.run_id, *last)
        with lines.blamed():
            last = _scoring_of(line), [_values_of(values) for values in lines.all(ValuesLine)]
    if last is None:
        raise lines.bad("there is no scoring")
    return last


# --- lines of what is stored, and back ---


def _run_line(run: RunRecord) -> RunLine:
    """The line of a complete run."""
    fields = {name: getattr(run, name) for name in ("run_id", *_OF_RUN, "results")}
    return RunLine(schema="ragauge.run/2", snapshot=_as_raw(run.snapshot), **fields)


def _run_of(line: RunLine, run_id: str | None) -> RunRecord:
    """The run behind its line, under another id if one is given."""
    fields = {name: getattr(line, name) for name in _OF_RUN}
    return RunRecord(run_id=run_id or line.run_id, snapshot=_as_text(line.snapshot), **fields)


def _evidence_line(run: RunRecord) -> EvidenceLine:
    """The line of what a run knows of chunks and documents."""
    with suppress(RagaugeError, *_NOT_JSON):
        evidence = thaw_evidence(run.evidence, run.run_id)
        data = _encode(evidence)
        if _decode_evidence(data) == evidence:
            return EvidenceLine(evidence=Raw(data))
    return EvidenceLine(packed=_base64(run.evidence))


def _evidence_of(line: EvidenceLine) -> bytes:
    """What is stored of the line."""
    if line.packed is not None:
        return b64decode(line.packed, validate=True)
    return freeze_evidence(_decode_evidence(line.evidence))


def _result_line(row: ResultRow, texts: SharedTexts) -> ResultLine:
    """The line of a result; a trace that cannot be read stays as it is."""
    trace, packed = _plain_or_packed(row.payload, trace_of)
    values = None if row.values is None else _decode_values(row.values)
    same: list[tuple[int, int]] = []
    if packed is None:
        whole = trace_of(trace)
        # Only what can be put together again byte by byte; both sides count the texts of the rest.
        if trace_json(whole) == bytes(trace):
            folded, same = texts.fold(whole)
            trace = Raw(trace_json(folded)) if same else trace
        else:
            texts.unfold(whole, [])
    return ResultLine(*row.facts, trace, packed, values, same)


def _result_of(line: ResultLine, texts: SharedTexts) -> ResultRow:
    """The result behind its line."""
    facts = ResultFacts._make(getattr(line, name) for name in ResultFacts._fields)
    values = None if line.values is None else _encode(line.values).decode()
    trace = line.trace
    if line.packed is None and bytes(trace):
        whole = texts.unfold(trace_of(trace), line.same_texts)
        trace = Raw(trace_json(whole)) if line.same_texts else trace
    return ResultRow(facts, _payload(trace, line.packed), values)


def _scoring_line(scoring: Scoring) -> ScoringLine:
    """The line of a scoring."""
    questions, packed = _plain_or_packed(scoring.questions, msgspec.json.decode)
    aggregate, packed_slices = scoring.aggregate, None
    try:
        aggregate = join_slices(aggregate, scoring.slices)
    except UNREADABLE_SLICES:
        packed_slices = _base64(scoring.slices)
    fields = {name: getattr(scoring, name) for name in _OF_SCORING}
    return ScoringLine(
        aggregate=_as_raw(aggregate),
        questions=questions,
        packed=packed,
        packed_slices=packed_slices,
        **fields,
    )


def _scoring_of(line: ScoringLine) -> Scoring:
    """The scoring behind its line."""
    aggregate, slices = split_slices(_as_text(line.aggregate))
    if line.packed_slices is not None:
        slices = b64decode(line.packed_slices, validate=True)
    fields = {name: getattr(line, name) for name in _OF_SCORING}
    questions = _payload(line.questions, line.packed)
    return Scoring(aggregate=aggregate, questions=questions, slices=slices, **fields)


def _values_line(column: ValueColumn) -> ValuesLine:
    """The line of the values of one metric."""
    name, version, payload = column
    with suppress(*UNREADABLE, ValueError):
        values = deserialise_values(payload)
        if not np.isinf(values).any():  # JSON has no number for it
            return ValuesLine(metric=name, version=version, values=values.tolist())
    return ValuesLine(metric=name, version=version, packed=_base64(payload))


def _values_of(line: ValuesLine) -> ValueColumn:
    """The values behind their line."""
    if line.values is None:
        payload = _payload(_NOTHING, line.packed)
    else:
        payload = serialise_values(np.array(line.values, np.float64))
    return ValueColumn(line.metric, line.version, payload)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _compressed(data: bytes) -> bytes:
    """JSON as it is stored."""
    return zlib.compress(data, _LEVEL)


def _payload(plain: Raw, unreadable: str | None) -> bytes:
    """The bytes to store: those that could not be read as they were, or the JSON compressed."""
    if unreadable is not None:
        return b64decode(unreadable, validate=True)
    data = bytes(plain)
    if not data:
        raise ValueError("there is nothing in it")
    return _compressed(data)


def _as_raw(text: str) -> Raw:
    """JSON as it is where it is an object on one line; any other text as text."""
    with suppress(*_NOT_JSON):
        if isinstance(msgspec.json.decode(text), dict) and text[:1] == "{" and "\n" not in text:
            return Raw(text)
    return Raw(_encode(text))


def _as_text(raw: Raw) -> str:
    """The text behind `_as_raw`."""
    data = bytes(raw)
    return msgspec.json.decode(data, type=str) if data[:1] == b'"' else data.decode()


def _plain_or_packed(payload: bytes, check: Callable[[bytes], object]) -> tuple[Raw, str | None]:
    """The JSON in a payload; its bytes if it cannot be read, or would not be one line."""
    with suppress(*UNREADABLE):
        data = thaw(payload)
        check(data)
        data.decode()
        if b"\n" not in data and b"\r" not in data:
            return Raw(data), None
    return _NOTHING, _base64(payload)
