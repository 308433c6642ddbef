"""The answer of a target becomes the trace of its slot; a failure becomes a trace with an error."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from ragauge.files.fields import FieldError, Row
from ragauge.files.redaction import SecretValues, redacted
from ragauge.formats.rerank_stages import at_first_stage, has_both_stages
from ragauge.formats.traces import RowReader
from ragauge.model.field_spellings import TRACE_NAMES, TRACE_SPELLINGS
from ragauge.model.target import TargetError
from ragauge.model.trace import Timing, Trace
from ragauge.run.slots import QuestionSlot
from ragauge.targets.shared.foreign_answer import known_answer
from ragauge.text import plain

LONGEST_REASON = 500
_QUESTION_FIELDS = ("qid", "question", "paraphrase", "seed", "turn")
_ANSWER_NAMES = TRACE_NAMES.difference(*(TRACE_SPELLINGS[field] for field in _QUESTION_FIELDS))
"""The fields that say what a system did, and not what it was asked."""


class FirstStageReader(RowReader):
    """Reads the hits before a reranker where an answer has both lists; `swapped` counts those."""

    swapped = 0

    def trace(self, row: Row, line: int | None = None) -> Trace:
        """Make a trace of a row, with its first list for its hits."""
        self.swapped += has_both_stages(row)
        return super().trace(at_first_stage(row), line)


def answer_trace(
    reader: RowReader,
    slot: QuestionSlot,
    answered: Any,
    elapsed: float | None,
    secrets: SecretValues,
) -> Trace:
    """The trace of a slot: a row of any dialect, a list of hits, or a trace as it is.

    The slot says what was asked, whatever the row says; a row for another question is an error.
    `elapsed` are the milliseconds that were measured, where the target gives none of its own.
    What is in `secrets` is taken out: a system may repeat what it was sent.
    """
    if isinstance(answered, Trace):
        trace = _without_secrets(answered, secrets)
    else:
        trace = _read(reader, answered, secrets)
    question = slot.question
    if trace.qid is not None and trace.qid != question.qid:
        raise TargetError(f"the answer is for `{trace.qid}`, and `{question.qid}` was asked")
    timing = trace.timing
    if elapsed is not None and (timing is None or timing.total is None):
        timing = replace(timing or Timing(), total=elapsed)
    return replace(trace, **_of_slot(slot), timing=timing)


def _of_slot(slot: QuestionSlot) -> dict[str, Any]:
    """What a trace says of the question that was asked."""
    question = slot.question
    return {
        "qid": question.qid,
        "question": question.text,
        "paraphrase": question.paraphrase,
        "seed": question.seed,
        "turn": question.turn,
        "line": slot.number + 1,
    }


def _without_secrets(trace: Trace, secrets: SecretValues) -> Trace:
    if not secrets:
        return trace
    plainer = msgspec.to_builtins(trace)
    safe = secrets.hide_in_answer(plainer, msgspec.json.encode(plainer))
    return trace if safe is plainer else msgspec.convert(safe, Trace)


def _read(reader: RowReader, answered: Any, secrets: SecretValues) -> Trace:
    try:
        _refuse_unstorable(answered)
        encoded = _encode(answered)
        row = msgspec.json.decode(encoded)  # as a trace file would hold it
        row = known_answer(secrets.hide_in_answer(row, encoded))
        if isinstance(row, list):
            row = {"hits": [_hit(entry) for entry in row]}
        if not isinstance(row, Mapping):
            kind = "nothing" if answered is None else type(answered).__name__
            raise TargetError(f"an answer is an object or a list of hits, got {kind}")
        if _ANSWER_NAMES.isdisjoint(row):
            names = ", ".join(list(row)[:5]) or "nothing"
            raise TargetError(f"the answer has no hits and no answer in it, but {names}")
        return reader.trace(row)
    except FieldError as error:
        raise TargetError(f"the answer cannot be read: {error.message} ({error.code})") from error
    except (msgspec.MsgspecError, RecursionError, TypeError, ValueError, OverflowError) as error:
        raise TargetError(f"the answer cannot be read: {error}") from error


def _plainer(value: Any) -> Any:
    """A number of numpy as a number, an array as a list, a model as an object."""
    for name in ("tolist", "model_dump"):
        make = getattr(value, name, None)
        if callable(make):
            return make()
    raise TypeError(f"a {type(value).__name__} has no place in an answer")


_encode = msgspec.json.Encoder(enc_hook=_plainer).encode


def _refuse_unstorable(answered: Any) -> None:
    """Raise for what would be stored as something else: a set has no order, bytes are no text."""
    todo = [answered]
    seen: set[int] = set()  # an answer may contain itself
    while todo:
        value = todo.pop()
        if isinstance(value, set | frozenset | bytes | bytearray):
            raise TypeError(f"a {type(value).__name__} has no place in an answer")
        if isinstance(value, float) and not isfinite(value):
            raise ValueError(f"{value} is no number")
        if isinstance(value, dict | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            todo += value.values() if isinstance(value, dict) else value


def _hit(value: Any) -> Any:
    """An entry of a list of hits; a pair is an id with its score."""
    if isinstance(value, list) and len(value) == 2:
        return {"id": value[0], "score": value[1]}
    return value


def error_trace(slot: QuestionSlot, reason: str, elapsed: float | None) -> Trace:
    """The trace of a slot that could not be answered."""
    words = plain(str(redacted(reason))) or "it failed without a word"
    if len(words) > LONGEST_REASON:
        words = f"{words[: LONGEST_REASON - 3]}..."
    timing = None if elapsed is None else Timing(total=elapsed)
    return Trace(**_of_slot(slot), error=words, timing=timing)
