"""The callback for LangChain: a tracer that writes the trace of each outermost run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ragauge.formats.imports import payload
from ragauge.recorder.step_hits import Retrieval, RetrievalChoice, chosen_hits
from ragauge.recorder.trace_log import LONGEST_ERROR
from ragauge.targets.shared.address import library

if TYPE_CHECKING:
    from ragauge.recorder.record import Recorder


def tracer(recorder: Recorder, retrieval: str) -> Any:
    """A callback that writes to a recorder."""
    return _tracer_class()(recorder, RetrievalChoice(retrieval))


@cache
def _tracer_class() -> Any:
    base = library("langchain_core.tracers.base", "langchain").BaseTracer

    class TraceRecorder(base):  # type: ignore[misc, valid-type]
        """Writes the trace of each outermost run; steps inside it say what was retrieved."""

        def __init__(self, recorder: Recorder, choice: RetrievalChoice) -> None:
            super().__init__()
            self.recorder = recorder
            self.choice = choice
            self.raise_error = recorder.file.strict

        def _persist_run(self, run: Any) -> None:
            """LangChain calls it for runs without a parent; `_end_trace` knows others too."""

        def _end_trace(self, run: Any) -> None:
            parent = run.parent_run_id
            is_outermost = parent is None or str(parent) not in self.run_map
            super()._end_trace(run)
            if is_outermost:
                self._write(run)

        def _write(self, run: Any) -> None:
            try:
                row = trace_row(run, self.choice)
            except Exception as error:
                self.recorder.file.note_failure(error)
                return
            if row is not None:
                self.recorder.file.append(row)

    return TraceRecorder


def trace_row(run: Any, choice: RetrievalChoice) -> dict[str, Any] | None:
    """The trace of an outermost run; None for a model or a tool that was called by itself."""
    if run.run_type not in ("chain", "retriever"):
        return None
    retrievals = list(_retrievals(run))
    question = _plain(run.inputs)
    row: dict[str, Any] = {
        "qid": payload.qid_in((run.extra or {}).get("metadata") or {}),
        "question": payload.question_in(question),
    }
    if row["question"] is None and retrievals:
        row["question"] = retrievals[-1].question
    if retrievals:
        row["hits"] = chosen_hits(retrievals, choice)
    if run.error:
        row["error"] = _error_line(run.error)
    elif run.run_type == "chain":
        outputs = _plain(run.outputs)
        row["answer"] = payload.answer_in(outputs)
        if isinstance(outputs, dict) and isinstance(outputs.get("citations"), list):
            row["citations"] = outputs["citations"]
    row = {name: value for name, value in row.items() if value is not None}
    # Without a question, or without a word of what came of it, nobody could score it.
    if "question" not in row or row.keys() <= {"qid", "question"}:
        return None
    if run.end_time is not None:
        row["latency_ms"] = round((run.end_time - run.start_time).total_seconds() * 1000, 3)
    return row


def _retrievals(run: Any) -> Iterator[Retrieval]:
    """The retrievals of a run and its steps, in time; one inside another is a part of that."""
    if run.run_type == "retriever":
        documents = (run.outputs or {}).get("documents")
        if documents is not None:
            yield Retrieval(payload.question_in(_plain(run.inputs)), documents)
        return
    for step in sorted(run.child_runs, key=lambda child: child.start_time):
        yield from _retrievals(step)


def _error_line(error: str) -> str:
    """The first line of what LangChain says of an exception: its `repr`, then the stack."""
    text = error.partition("Traceback (most recent call last)")[0].strip()
    return (text.splitlines() or ["error"])[0][:LONGEST_ERROR]


def _plain(value: Any) -> Any:
    """What a step was given or gave, as JSON has it: messages and documents are objects."""
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "page_content"):
        return {"page_content": value.page_content}
    if hasattr(value, "content") and hasattr(value, "type"):
        return {"type": value.type.removesuffix("MessageChunk").lower(), "content": value.content}
    if hasattr(value, "to_messages"):  # a prompt
        return _plain(value.to_messages())
    return value
