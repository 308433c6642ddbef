"""`record`: a running app writes its traces to a file that `ragauge score` reads.

By hand (`write`, `trace`), as a decorator of the function that answers, or as a callback of
LangChain or LlamaIndex.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.files.redaction import SecretValues
from ragauge.recorder.hit_objects import hits_of
from ragauge.recorder.trace_log import TraceLog, error_text
from ragauge.targets.shared.foreign_answer import known_answer

F = TypeVar("F", bound=Callable[..., Any])
_QUESTIONS = ("question", "query", "q", "text", "message", "prompt", "input", "user_input")


def record(
    path: PathLike = "traces.jsonl", *, strict: bool = False, secrets: Sequence[str] = ()
) -> Recorder:
    """Record traces in a file, one line a question; what is there already stays.

    What goes wrong with the file never reaches the app: it is logged once and counted in
    `recorder.failures`. With `strict` it is raised. Texts that look like secrets are redacted, and
    so are the values in `secrets`, wherever they stand.
    """
    if not isinstance(path, str | os.PathLike):
        message = f"traces are recorded in a file, got: {type(path).__name__}"
        raise RagaugeError.of("usage", message, hint='for example ragauge.record("traces.jsonl")')
    if not isinstance(secrets, list | tuple) or not all(isinstance(one, str) for one in secrets):
        message = "secrets are a list of texts"
        raise RagaugeError.of("usage", message, hint='for example secrets=[os.environ["API_KEY"]]')
    return Recorder(TraceLog(path, strict=strict, secrets=SecretValues(secrets)))


class OpenTrace:
    """The trace of one question while it is answered; the app fills in what it knows.

    `hits` may be documents of LangChain, nodes of LlamaIndex, dicts, ids or texts, the best first.
    Other fields of a trace (`citations`, `tokens`, `cost`, `turn` …) go into `fields`.
    """

    def __init__(self, question: str, qid: str | None = None, **fields: Any) -> None:
        self.question = question
        self.qid = qid
        self.hits: Any = None
        self.answer: Any = None
        self.error: str | None = None
        self.fields = fields
        self._start = time.perf_counter()

    def row(self) -> dict[str, Any]:
        """The trace as it is written."""
        row: dict[str, Any] = {
            "qid": self.qid,
            "question": None if self.question is None else str(self.question),
            "hits": None if self.hits is None else hits_of(self.hits),
            "answer": self.answer,
            "error": self.error,
            "latency_ms": round((time.perf_counter() - self._start) * 1000, 3),
            **self.fields,
        }
        return {name: value for name, value in row.items() if value is not None}


class Recorder:
    """Writes traces to one file; from threads and processes alike."""

    def __init__(self, file: TraceLog) -> None:
        self.file = file

    def __repr__(self) -> str:
        return f"<Recorder: {self.file.path}>"

    @property
    def failures(self) -> int:
        """How many traces could not be written."""
        return self.file.failures

    def write(
        self, question: str, answer: Any = None, hits: Any = None, *, qid: str | None = None,
        **fields: Any,
    ) -> bool:  # fmt: skip
        """Write the trace of one question; whether it was written.

        Other fields of a trace go by their names: `citations`, `error`, `latency_ms`, `tokens` …
        """
        trace = OpenTrace(question, qid, **{"latency_ms": None, **fields})
        trace.answer, trace.hits = answer, hits
        return self._end(trace)

    @contextmanager
    def trace(self, question: str, *, qid: str | None = None, **fields: Any) -> Iterator[OpenTrace]:
        """Write the trace of what happens inside; an exception is its error, and goes on."""
        trace = OpenTrace(question, qid, **fields)
        try:
            yield trace
        except Exception as error:
            trace.error = error_text(error)
            self._end(trace)
            raise
        self._end(trace)

    def _end(self, trace: OpenTrace) -> bool:
        try:
            row = trace.row()
        except Exception as error:  # objects of the app may do anything when they are looked at
            self.file.note_failure(error)
            return False
        return self.file.append(row)

    def __call__(self, function: F) -> F:
        """Record every call of a function that answers questions.

        The question is its argument of that name, else its first text. What it returns is the
        answer, (answer, hits), hits, or an object with `answer` and `hits` or whatever services
        call them. Pieces that it yields are put together.
        """
        if not callable(function):
            message = f"a function is decorated, got: {type(function).__name__}"
            hint = "to write one trace, call recorder.write(question, answer, hits)"
            raise RagaugeError.of("usage", message, hint=hint)
        wrapped: Any
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self.trace(_question(function, args, kwargs)) as trace:
                    result = await function(*args, **kwargs)
                    self._take(trace, result)
                return result

        elif inspect.isasyncgenfunction(function):

            @wraps(function)
            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self.trace(_question(function, args, kwargs)) as trace:
                    pieces: list[Any] = []
                    async for piece in function(*args, **kwargs):
                        pieces.append(piece)
                        yield piece
                    self._take(trace, _joined(pieces))

        elif inspect.isgeneratorfunction(function):

            @wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self.trace(_question(function, args, kwargs)) as trace:
                    pieces: list[Any] = []
                    for piece in function(*args, **kwargs):
                        pieces.append(piece)
                        yield piece
                    self._take(trace, _joined(pieces))

        else:

            @wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                with self.trace(_question(function, args, kwargs)) as trace:
                    result = function(*args, **kwargs)
                    self._take(trace, result)
                return result

        return wrapped  # type: ignore[no-any-return]

    def _take(self, trace: OpenTrace, result: Any) -> None:
        """Fill in what a function returned."""
        try:
            _fill(trace, result)
        except Exception as error:
            self.file.note_failure(error)

    def langchain(self, *, retrieval: str = "last") -> Any:
        """A callback for LangChain: `chain.invoke(question, config={"callbacks": [callback]})`.

        Of several retrievals for one question the last counts, the first, or all (`union`).
        `"metadata": {"qid": ...}` in the config names the question of the gold set; without it the
        trace meets its gold item by the text of the question.
        """
        from ragauge.recorder.langchain import tracer

        return tracer(self, retrieval)

    def llamaindex(self, *, retrieval: str = "last") -> Any:
        """Record every query of LlamaIndex in this process from now on; `stop()` ends it.

        Of several retrievals for one question the last counts, the first, or all (`union`). Inside
        `with instrument_tags({"qid": ...})` of LlamaIndex a query has that id.
        """
        from ragauge.recorder.llamaindex import attached

        return attached(self, retrieval)


def _question(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What a function was asked: its argument of that name, else its first text."""
    try:
        arguments = inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # the call itself will say what is wrong
        arguments = dict(kwargs)
    named = (arguments.get(name) for name in _QUESTIONS)
    texts = (value for value in (*named, *args, *kwargs.values()) if isinstance(value, str))
    return next(texts, "")


def _joined(pieces: Sequence[Any]) -> Any:
    """What was yielded, as one: texts are pieces of the answer, the last of others the rest."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    others = [piece for piece in pieces if not isinstance(piece, str)]
    if not others:
        return "".join(texts)
    return ("".join(texts), others[-1]) if texts else others[-1]


def _fill(trace: OpenTrace, result: Any) -> None:
    if isinstance(result, tuple) and len(result) == 2:
        # The answer is the text of the two, in whatever order.
        answer, hits = result[::-1] if isinstance(result[1], str) else result
        trace.answer, trace.hits = _text(answer), hits
    elif isinstance(result, list):
        trace.hits = result
    elif isinstance(result, Mapping):
        row = known_answer({**result, **_listed(result)})
        trace.hits, trace.answer = row.pop("hits", None), _text(row.pop("answer", None))
        trace.fields |= {name: row[name] for name in _PASSED_ON if row.get(name) is not None}
    elif hasattr(result, "source_nodes"):  # LlamaIndex
        trace.answer, trace.hits = str(result), result.source_nodes
    elif hasattr(result, "hits") or hasattr(result, "answer"):
        trace.answer = _text(getattr(result, "answer", None))
        trace.hits = getattr(result, "hits", None)
    else:
        trace.answer = _text(result)


_PASSED_ON = ("qid", "citations", "refused", "turn", "session", "tokens", "cost", "perf", "error")
_LISTS = ("hits", "documents", "source_documents", "context", "contexts", "sources", "nodes")


def _listed(result: Mapping[str, Any]) -> dict[str, Any]:
    """The list of what an app retrieved, as hits: it may hold documents that JSON does not know."""
    for name in _LISTS:
        value = result.get(name)
        if isinstance(value, list | tuple):
            return {"hits": hits_of(value)}
    return {}


def _text(answer: Any) -> Any:
    """The text of an answer: a message of a model has it as `content`."""
    if answer is None or isinstance(answer, str | Mapping):
        return answer
    content = getattr(answer, "content", None)
    return content if isinstance(content, str) else str(answer)
