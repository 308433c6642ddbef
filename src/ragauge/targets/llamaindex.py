"""The target `llamaindex:module:object`: a retriever or query engine of LlamaIndex."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragauge.model.target import TargetKind, TargetOptions, TargetQuestion
from ragauge.spans import Span
from ragauge.targets.shared.address import library, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, HitMaker, failure
from ragauge.targets.shared.import_object import object_or_made


class LlamaIndexTarget:
    """Asks a retriever for nodes, or an engine for an answer with its nodes."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        place, settings = split_address(address, options, FIELD_NAMES)
        library("llama_index.core", "llamaindex", package="llama-index-core")
        what = "retriever or query engine of LlamaIndex"
        self.asked = object_or_made(place, "llamaindex", _is_asked, what, "`retrieve` or `query`")
        # An engine may have both; its answer is what is wanted of it.
        self.is_engine = callable(getattr(self.asked, "query", None))
        self.hits = HitMaker(settings, options)
        self.k = options.k
        self.facts = {"object": place, "k": self.k, **settings.given}

    @property
    def about(self) -> Mapping[str, Any]:
        """Which object is asked, and its class."""
        return {**self.facts, "class": type(self.asked).__name__}

    def ask(self, question: TargetQuestion) -> Mapping[str, Any]:
        """Retrieve nodes, or query."""
        try:
            if not self.is_engine:
                return {"hits": self._hits(self.asked.retrieve(question.text))}
            response = self.asked.query(question.text)
            answer, nodes = str(response), getattr(response, "source_nodes", None)
        except (Exception, SystemExit) as error:
            raise failure(error) from error
        return {"hits": self._hits(nodes or []), "answer": answer}

    def _hits(self, nodes: list[Any]) -> list[dict[str, Any]]:
        return [self._hit(node) for node in nodes[: self.k]]

    def _hit(self, scored: Any) -> dict[str, Any]:
        node = scored.node
        metadata = node.metadata or {}
        start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        span = None if start is None or end is None else Span(start, end, "char")
        # The document's own id is a random one unless it was given; metadata name it better.
        return self.hits.hit(
            {"document_id": node.ref_doc_id, **metadata},
            text=node.get_content(),
            name=node.node_id,
            score=scored.score,
            span=span,
        )

    def close(self) -> None:
        """The object is the user's own."""


def _is_asked(value: Any) -> bool:
    return not isinstance(value, type) and any(
        callable(getattr(value, name, None)) for name in ("retrieve", "query")
    )


TARGET = TargetKind(
    name="llamaindex",
    title="a retriever or query engine of LlamaIndex: llamaindex:module:object",
    schemes=("llamaindex",),
    open=LlamaIndexTarget,
)
