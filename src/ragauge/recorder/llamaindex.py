"""The callback for LlamaIndex: a handler of spans that writes the trace of each outermost query."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ragauge.formats.imports import payload
from ragauge.recorder.hit_objects import hits_of
from ragauge.recorder.step_hits import Retrieval, RetrievalChoice, chosen_hits
from ragauge.recorder.trace_log import error_text
from ragauge.targets.shared.address import library

if TYPE_CHECKING:
    from ragauge.recorder.record import Recorder

_QUESTIONS = ("str_or_query_bundle", "query_bundle", "query", "message", "user_msg")
"""What the methods of LlamaIndex call what they are asked."""
_RETRIEVE = ("retrieve", "aretrieve")


class QueryTree:
    """What is known of one outermost span, while it is open."""

    def __init__(self, question: str | None, qid: str | None) -> None:
        self.question = question
        self.qid = qid
        self.retrievals: list[Retrieval] = []
        self.start = time.perf_counter()

    def row(self, choice: RetrievalChoice) -> dict[str, Any]:
        """The trace without its answer."""
        question = self.question
        if question is None and self.retrievals:
            question = self.retrievals[-1].question
        row: dict[str, Any] = {} if self.qid is None else {"qid": self.qid}
        if question is not None:
            row["question"] = question
        if self.retrievals:
            row["hits"] = chosen_hits(self.retrievals, choice)
        row["latency_ms"] = round((time.perf_counter() - self.start) * 1000, 3)
        return row


def attached(recorder: Recorder, retrieval: str) -> Any:
    """A handler that writes to a recorder, attached to all of LlamaIndex."""
    handler = _handler_class()()
    handler.begin(recorder, RetrievalChoice(retrieval))
    return handler


def question_text(value: Any) -> str | None:
    """The question in an argument: a text, or an object that holds it."""
    text = getattr(value, "query_str", value)
    return text if isinstance(text, str) and text.strip() else None


def _question(bound_args: Any) -> str | None:
    arguments = bound_args.arguments
    texts = (question_text(arguments[name]) for name in _QUESTIONS if name in arguments)
    return next((text for text in texts if text), None)


def _are_nodes(value: Any) -> bool:
    return isinstance(value, list) and all(hasattr(entry, "node") for entry in value)


def _method(span_id: str) -> str:
    """The name of the method in the id of a span: `Class.method-UUID`."""
    return span_id[:-37].rpartition(".")[2]


@cache
def _handler_class() -> Any:
    base = library(
        "llama_index.core.instrumentation.span_handlers", "llamaindex", package="llama-index-core"
    ).BaseSpanHandler
    dispatcher = library("llama_index.core.instrumentation", "llamaindex").get_dispatcher

    class SpanRecorder(base):  # type: ignore[misc, valid-type]
        """Writes the trace of each outermost span that asks something."""

        def begin(self, recorder: Recorder, choice: RetrievalChoice) -> None:
            """Take spans from now on."""
            private: dict[str, Any] = {
                "recorder": recorder,
                "choice": choice,
                "guard": threading.Lock(),
                "trees": {},
                "parents": {},
            }
            for name, value in private.items():  # pydantic takes no others
                object.__setattr__(self, f"_ragauge_{name}", value)
            dispatcher().add_span_handler(self)

        def stop(self) -> None:
            """Take no more spans."""
            handlers = dispatcher().span_handlers
            dispatcher().span_handlers = [one for one in handlers if one is not self]

        def new_span(self, *_args: Any, **_kwargs: Any) -> None:
            """The base keeps spans; here they are taken as they begin and end."""

        prepare_to_exit_span = prepare_to_drop_span = new_span

        def _outermost(self, id_: str) -> str:
            parents = self._ragauge_parents
            while parents.get(id_) is not None:
                id_ = parents[id_]
            return id_

        def span_enter(self, id_: str, bound_args: Any, **facts: Any) -> None:
            """A method begins."""
            with self._ragauge_guard:
                parent_id = facts.get("parent_id")
                inside = parent_id in self._ragauge_parents
                self._ragauge_parents[id_] = parent_id if inside else None
                if not inside:
                    self._ragauge_trees[id_] = QueryTree(
                        _question(bound_args), payload.qid_in(facts.get("tags") or {})
                    )

        def span_exit(self, id_: str, bound_args: Any, **facts: Any) -> None:
            """A method returns."""
            self._guarded(id_, bound_args, facts.get("result"), None)

        def span_drop(self, id_: str, bound_args: Any, **facts: Any) -> None:
            """A method raises."""
            self._guarded(id_, bound_args, None, facts.get("err"))

        def _guarded(self, id_: str, bound_args: Any, result: Any, error: Any) -> None:
            try:
                self._ended(id_, bound_args, result, error)
            except Exception as failure:  # LlamaIndex would swallow it without a word
                self._ragauge_recorder.file.note_failure(failure)

        def _ended(self, id_: str, bound_args: Any, result: Any, error: Any) -> None:
            with self._ragauge_guard:
                if id_ not in self._ragauge_parents:  # it began before us
                    return
                outermost = self._outermost(id_)
                tree: QueryTree | None = self._ragauge_trees.get(outermost)
                inner_retrieval = self._inside_retrieval(id_)
                del self._ragauge_parents[id_]
                if id_ == outermost:
                    self._ragauge_trees.pop(id_, None)
            if tree is None:
                return
            if _method(id_) in _RETRIEVE and _are_nodes(result) and not inner_retrieval:
                tree.retrievals.append(Retrieval(_question(bound_args), result))
            if id_ == outermost:
                self._write(tree, result, error)

        def _inside_retrieval(self, id_: str) -> bool:
            above = self._ragauge_parents.get(id_)
            while above is not None:
                if _method(above) in _RETRIEVE:
                    return True
                above = self._ragauge_parents.get(above)
            return False

        def _write(self, tree: QueryTree, result: Any, error: Any) -> None:
            row = tree.row(self._ragauge_choice)
            file = self._ragauge_recorder.file
            if "question" not in row:
                return
            if error is not None:
                if isinstance(error, Exception):
                    file.append({**row, "error": error_text(error)})
                return
            nodes = getattr(result, "source_nodes", None)
            if nodes is None and "hits" not in row:
                return  # a model or an embedder that was called by itself
            if _are_nodes(nodes):
                hits = hits_of(nodes)
                if "hits" in row and row["hits"] != hits and hits:
                    row["hits_before_rerank"] = row["hits"]
                row["hits"] = hits or row.get("hits", [])
            stream = getattr(result, "response_gen", None)
            if stream is not None and getattr(result, "response_txt", "") is None:
                result.response_gen = _recorded(stream, row, file, tree.start)
                return
            answer = getattr(result, "response", None)
            if isinstance(answer, str):
                row["answer"] = answer
            file.append(row)

    return SpanRecorder


def _recorded(stream: Any, row: dict[str, Any], file: Any, start: float) -> Iterator[Any]:
    """The pieces of an answer as they come; the trace is written behind the last."""
    pieces: list[str] = []
    try:
        for piece in stream:
            pieces.append(str(piece))
            yield piece
    except Exception as error:
        row["error"] = error_text(error)
        raise
    finally:
        if "error" not in row:
            row["answer"] = "".join(pieces)
        row["latency_ms"] = round((time.perf_counter() - start) * 1000, 3)
        file.append(row)
