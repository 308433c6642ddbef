"""Which results belong to which trace: saved scores, joined with the ids in the traces' rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files.ranges import Source, rows_of
from ragauge.formats.imports.json_file import nanoseconds
from ragauge.model.field_spellings import TRACE_SPELLINGS
from ragauge.model.scores import QuestionResult, Scores
from ragauge.model.scores_document import rounded
from ragauge.report.annotations.annotation import AnnotatedTrace, Annotation

LABEL = "ragauge.label"
"""The annotation that says what became of a question: its label, and the cause."""

_UNMEASURED = ("MISSING",)
_QIDS = (*TRACE_SPELLINGS["qid"], "imported_qid")
_SLOT = ("paraphrase", "seed", "turn")


class TraceRow(Struct, frozen=True, kw_only=True):
    """What a row of traces says of itself: its line, its question, and its ids in a service."""

    line: int
    qid: str | None
    slot: tuple[object, ...]
    trace_id: str | None
    span_id: str | None
    start: int | None
    end: int | None


class AnnotatedTraces(Struct, frozen=True, kw_only=True):
    """The traces that have results, and how many have none or no id to send them to."""

    traces: tuple[AnnotatedTrace, ...]
    without_id: int = 0
    shared: int = 0


def trace_rows(source: Source) -> Iterator[TraceRow]:
    """The ids in the rows of a trace file; rows that cannot be read have none."""
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for line, data, _, _ in rows_of(source):
        try:
            row = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        qid = next((row[name] for name in _QIDS if row.get(name) is not None), None)
        start = nanoseconds(row.get("ts")) or None
        spent = next((row[name] for name in TRACE_SPELLINGS["total_ms"] if name in row), None)
        known = start is not None and isinstance(spent, int | float) and math.isfinite(spent)
        yield TraceRow(
            line=line,
            qid=None if qid is None else str(qid),
            slot=tuple(row.get(name) for name in _SLOT),
            trace_id=_text(row.get("trace_id")),
            span_id=_text(row.get("span_id")),
            start=start,
            end=start + int(spent * 1e6) if known else start,  # type: ignore[operator]
        )


def annotated_traces(
    scores: Scores, rows: Iterable[TraceRow], metrics: Sequence[str] = ()
) -> AnnotatedTraces:
    """The results of saved scores by trace; `metrics` may be patterns as `retrieval.*`.

    A question with several traces has one value, the mean; each of its traces is annotated with it.
    """
    if scores.per_question is None:
        raise RagaugeError.of(
            "bad-scores",
            f"the scores of {scores.trace_name} have no values of questions",
            hint="save them with `ragauge score ... --full -o scores.json`",
        )
    names = _chosen(scores, metrics)
    rows = list(rows)
    by_line = {row.line: row for row in rows}
    by_qid: dict[str, dict[tuple[object, ...], TraceRow]] = {}
    for row in rows:  # of two traces of a slot the last one was scored
        if row.qid is not None:
            by_qid.setdefault(row.qid, {})[row.slot] = row
    # Where nothing was answered, that a question has no answer says nothing of it.
    silent = not scores.tally.answered and not scores.tally.refused
    known = frozenset(scores.per_question.qids)
    traces: list[AnnotatedTrace] = []
    without_id = shared = 0
    for place, question in enumerate(scores.questions):
        scored_rows = _rows_of_question(question, by_line, by_qid, known)
        shared += len(scored_rows) > 1
        annotations = (*_values(scores, place, names), *([] if silent else [_label(question)]))
        for row in scored_rows:
            if row.trace_id is None:
                without_id += 1
                continue
            traces.append(
                AnnotatedTrace(
                    trace_id=row.trace_id,
                    qid=question.qid,
                    annotations=annotations,
                    span_id=row.span_id,
                    start=row.start,
                    end=row.end,
                    slots=len(scored_rows),
                )
            )
    return AnnotatedTraces(traces=tuple(traces), without_id=without_id, shared=shared)


def _chosen(scores: Scores, metrics: Sequence[str]) -> list[str]:
    assert scores.per_question is not None
    there = scores.per_question.metrics
    if not metrics:
        return list(there)
    chosen = [name for name in there if any(fnmatchcase(name, wanted) for wanted in metrics)]
    for wanted in metrics:
        if not any(fnmatchcase(name, wanted) for name in there):
            raise RagaugeError.of(
                "unknown-metric",
                f"`{wanted}` has no values of questions in {scores.trace_name}'s scores",
                hint=f"there are {', '.join(there)}",
            )
    return chosen


def _rows_of_question(
    question: QuestionResult,
    by_line: Mapping[int, TraceRow],
    by_qid: Mapping[str, Mapping[tuple[object, ...], TraceRow]],
    known: frozenset[str],
) -> list[TraceRow]:
    """The rows that a question was scored by."""
    if question.trace is None or question.label in _UNMEASURED:
        return []
    several = sum(question.labels.values()) > 1
    if several and question.qid in by_qid:
        return list(by_qid[question.qid].values())
    line = question.trace.rpartition(":")[2]
    row = by_line.get(int(line)) if line.isdecimal() else None
    # An id that is no question's is one of the export, whose traces were joined by their text.
    if row is None or (row.qid in known and row.qid != question.qid):
        raise RagaugeError.of(
            "bad-scores",
            f"the scores say that `{question.qid}` is at {question.trace}, and it is not there",
            hint="give the trace file that was scored with --traces, or score it again",
        )
    return [row]


def _values(scores: Scores, place: int, names: Sequence[str]) -> Iterator[Annotation]:
    assert scores.per_question is not None
    for name in names:
        value = float(scores.per_question.of(name)[place])
        if not math.isnan(value):  # else the metric says nothing of this question
            yield Annotation(name=name, score=rounded(value))


def _label(question: QuestionResult) -> Annotation:
    return Annotation(name=LABEL, label=question.label, explanation=question.cause)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
