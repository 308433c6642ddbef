"""The target `langchain:module:object`: a retriever or any other Runnable of LangChain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.shared.address import library, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, HitMaker, failure
from ragauge.targets.shared.import_object import object_or_made

DOCUMENTS = ("documents", "source_documents", "context")
ANSWERS = ("answer", "result", "output", "output_text")
"""Where a chain that answers with an object has its documents and its answer."""


class LangChainTarget:
    """Invokes a Runnable. What it gives may be documents, an answer, or an object with both."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        place, settings = split_address(address, options, (*FIELD_NAMES, "input"))
        runnable = library("langchain_core.runnables", "langchain").Runnable
        self.runnable = object_or_made(
            place,
            "langchain",
            lambda value: isinstance(value, runnable),
            "retriever or Runnable of LangChain",
            "`invoke`",
        )
        self.input = settings.text("input")
        self.hits = HitMaker(settings, options)
        self.k = options.k
        self.facts = {"object": place, "k": self.k, **settings.given}

    @property
    def about(self) -> Mapping[str, Any]:
        """Which object is asked, and its class."""
        return {**self.facts, "class": type(self.runnable).__name__}

    def ask(self, question: TargetQuestion) -> Mapping[str, Any]:
        """Invoke it with the question, or with an object that holds it."""
        chain_input: Any = question.text
        if self.input is not None:
            chain_input = {self.input: question.text}
        try:
            output = self.runnable.invoke(chain_input)
        except (Exception, SystemExit) as error:
            raise failure(error) from error
        return self._row(output)

    def _row(self, output: Any) -> Mapping[str, Any]:
        if isinstance(output, list):
            return {"hits": self._hits(output)}
        text = output if isinstance(output, str) else getattr(output, "content", None)
        if isinstance(text, str):
            return {"answer": text}
        if not isinstance(output, Mapping):
            raise TargetError(f"documents or an answer were expected, got {type(output).__name__}")
        documents = next(
            (output[name] for name in DOCUMENTS if _are_documents(output.get(name))), None
        )
        answer = next((output[name] for name in ANSWERS if output.get(name) is not None), None)
        if documents is None and answer is None:
            return output  # a trace row of its own
        row: dict[str, Any] = {} if documents is None else {"hits": self._hits(documents)}
        if answer is not None:
            row["answer"] = getattr(answer, "content", answer)
        if isinstance(output.get("citations"), list):
            row["citations"] = output["citations"]
        return row

    def _hits(self, documents: list[Any]) -> list[dict[str, Any]]:
        if not _are_documents(documents):
            kinds = sorted({type(document).__name__ for document in documents})
            raise TargetError(f"a list of documents was expected, got {', '.join(kinds)}")
        return [
            self.hits.hit(document.metadata or {}, text=document.page_content, name=document.id)
            for document in documents[: self.k]
        ]

    def close(self) -> None:
        """The object is the user's own."""


def _are_documents(value: Any) -> bool:
    return isinstance(value, list) and all(hasattr(document, "page_content") for document in value)


TARGET = TargetKind(
    name="langchain",
    title="a retriever or Runnable of LangChain: langchain:module:object",
    schemes=("langchain",),
    open=LangChainTarget,
)
