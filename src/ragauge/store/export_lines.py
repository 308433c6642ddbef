"""The lines of an exported run: one kind for each thing that a store keeps of it."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
from msgspec import Raw, Struct

from ragauge.errors import RagaugeError
from ragauge.model.evidence import Evidence
from ragauge.model.payloads import UNREADABLE, freeze_evidence, thaw, thaw_evidence, trace_of
from ragauge.model.run import ResultFacts, ResultRow, RunRecord, Scoring, ValueColumn
from ragauge.store.stored_scores import freeze_values, thaw_values

NOT_JSON = (msgspec.DecodeError, UnicodeError, RecursionError)
"""What bytes that are no line may raise."""

_LEVEL = 1  # as payloads are packed everywhere
encode = msgspec.json.Encoder().encode
_NOTHING = Raw()  # left out of a line: fields are compared with their defaults by identity
_decode_values = msgspec.json.Decoder(list[float | None]).decode
_decode_evidence = msgspec.json.Decoder(Evidence).decode


class Line(Struct, frozen=True, tag_field="kind", forbid_unknown_fields=True, omit_defaults=True):
    """A line of the file. What is `packed` could not be read, and is kept byte by byte."""


class RunLine(Line, frozen=True, tag="run", kw_only=True):
    """The first line. `snapshot` is text only where it is not the JSON of an object."""

    schema: Literal["ragauge.run/1"]
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


class EvidenceLine(Line, frozen=True, tag="evidence", kw_only=True):
    """What the run knows of chunks and documents."""

    evidence: Raw = _NOTHING
    packed: str | None = None


class GoldLine(Line, frozen=True, tag="gold"):
    """One gold item."""

    ordinal: int
    query_id: str
    turn: int | None
    item_hash: str
    item: Raw


class ChunksLine(Line, frozen=True, tag="chunks"):
    """A block of the list of chunks."""

    chunks: Raw


class ResultLine(Line, frozen=True, tag="result"):
    """One result: its facts and its trace."""

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


class ScoringLine(Line, frozen=True, tag="scoring", kw_only=True):
    """One scoring; `questions` are the columns of its questions."""

    number: int
    created_at: str
    ragauge_version: str
    aggregate: Raw
    questions: Raw = _NOTHING
    packed: str | None = None


class ValuesLine(Line, frozen=True, tag="values", kw_only=True):
    """The values of one metric of the scoring above; null where a question has none."""

    metric: str
    version: int
    values: list[float | None] | None = None
    packed: str | None = None


class Counts(Struct, frozen=True, kw_only=True):
    """How many lines there are of each kind; `unreadable` ones are kept as bytes."""

    gold: int = 0
    chunks: int = 0
    results: int = 0
    scorings: int = 0
    values: int = 0
    unreadable: int = 0


class EndLine(Line, frozen=True, tag="end", kw_only=True):
    """The last line: `sha256` is over all bytes before it."""

    counts: Counts
    sha256: str


Any = (
    RunLine | EvidenceLine | GoldLine | ChunksLine | ResultLine | ScoringLine | ValuesLine | EndLine
)
decode = msgspec.json.Decoder(Any).decode


def run_line(run: RunRecord) -> RunLine:
    """The line of a complete run."""
    return RunLine(
        schema="ragauge.run/1",
        run_id=run.run_id,
        suite=run.suite,
        profile=run.profile,
        created_at=run.created_at,
        commit_hash=run.commit_hash,
        gold_hash=run.gold_hash,
        gold_key=run.gold_key,
        chunks=run.chunks,
        schema_version=run.schema_version,
        results=run.results,
        snapshot=_as_raw(run.snapshot),
    )


def run_of(line: RunLine, run_id: str | None) -> RunRecord:
    """The run behind its line, under another id if one is given."""
    return RunRecord(
        run_id=run_id or line.run_id,
        suite=line.suite,
        profile=line.profile,
        created_at=line.created_at,
        commit_hash=line.commit_hash,
        gold_hash=line.gold_hash,
        gold_key=line.gold_key,
        chunks=line.chunks,
        schema_version=line.schema_version,
        snapshot=_as_text(line.snapshot),
    )


def evidence_line(run: RunRecord) -> EvidenceLine:
    """The line of what a run knows of chunks and documents."""
    try:
        known = thaw_evidence(run.evidence, run.run_id)
        data = encode(known)
        if _decode_evidence(data) == known:
            return EvidenceLine(evidence=Raw(data))
    except (RagaugeError, *NOT_JSON):
        pass
    return EvidenceLine(packed=_base64(run.evidence))


def evidence_of(line: EvidenceLine) -> bytes:
    """What is stored of the line."""
    if line.packed is not None:
        return _bytes(line.packed)
    return freeze_evidence(_decode_evidence(line.evidence))


def result_line(row: ResultRow) -> ResultLine:
    """The line of a result; a trace that cannot be read stays as it is."""
    trace = _plain(row.payload, trace_of)
    values = None if row.values is None else _decode_values(row.values)
    if trace is None:
        return ResultLine(*row.facts, packed=_base64(row.payload), values=values)
    return ResultLine(*row.facts, trace=trace, values=values)


def result_of(line: ResultLine) -> ResultRow:
    """The result behind its line."""
    facts = ResultFacts._make(getattr(line, name) for name in ResultFacts._fields)
    values = None if line.values is None else encode(line.values).decode()
    return ResultRow(facts, _payload(line.trace, line.packed), values)


def scoring_line(scoring: Scoring) -> ScoringLine:
    """The line of a scoring."""
    questions = _plain(scoring.questions, msgspec.json.decode)
    return ScoringLine(
        number=scoring.number,
        created_at=scoring.created_at,
        ragauge_version=scoring.ragauge_version,
        aggregate=_as_raw(scoring.aggregate),
        questions=_NOTHING if questions is None else questions,
        packed=_base64(scoring.questions) if questions is None else None,
    )


def scoring_of(line: ScoringLine) -> Scoring:
    """The scoring behind its line."""
    return Scoring(
        number=line.number,
        created_at=line.created_at,
        ragauge_version=line.ragauge_version,
        aggregate=_as_text(line.aggregate),
        questions=_payload(line.questions, line.packed),
    )


def values_line(column: ValueColumn) -> ValuesLine:
    """The line of the values of one metric."""
    name, version, payload = column
    try:
        values = thaw_values(payload)
    except (*UNREADABLE, ValueError):
        return ValuesLine(metric=name, version=version, packed=_base64(payload))
    if np.isinf(values).any():  # JSON has no number for it
        return ValuesLine(metric=name, version=version, packed=_base64(payload))
    return ValuesLine(metric=name, version=version, values=values.tolist())


def values_of(line: ValuesLine) -> ValueColumn:
    """The values behind their line."""
    if line.values is None:
        payload = _payload(_NOTHING, line.packed)
    else:
        payload = freeze_values(np.array(line.values, np.float64))
    return ValueColumn(line.metric, line.version, payload)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _bytes(packed: str) -> bytes:
    return b64decode(packed, validate=True)


def packed(data: bytes) -> bytes:
    """JSON packed as it is stored."""
    return zlib.compress(data, _LEVEL)


def _payload(plain: Raw, kept: str | None) -> bytes:
    """The bytes to store: those that were kept as they are, or the JSON packed again."""
    if kept is not None:
        return _bytes(kept)
    data = bytes(plain)
    if not data:
        raise ValueError("there is nothing in it")
    return packed(data)


def _as_raw(text: str) -> Raw:
    """JSON as it is where it is an object on one line; any other text as text."""
    return Raw(text) if _is_object(text) else Raw(encode(text))


def _as_text(raw: Raw) -> str:
    """The text behind `_as_raw`."""
    data = bytes(raw)
    return msgspec.json.decode(data, type=str) if data[:1] == b'"' else data.decode()


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict) and text[:1] == "{" and "\n" not in text
    except NOT_JSON:
        return False


def _plain(payload: bytes, check: Callable[[bytes], object]) -> Raw | None:
    """The JSON in a payload; None if it cannot be read, or would not be one line."""
    try:
        data = thaw(payload)
        check(data)
        data.decode()
    except UNREADABLE:
        return None
    return None if b"\n" in data or b"\r" in data else Raw(data)
