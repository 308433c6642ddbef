"""Spans as every reader gives them, and what a vocabulary makes of one."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

NO_ATTRIBUTES: dict[str, Any] = {}
BODY = "the request body"
"""What errors call spans that come from no file."""


class TraceSpan(Struct, gc=False):
    """One span: its place in the tree, its times in nanoseconds, and its attributes.

    `error` is None where the span went well; else what its status says, and never a stack.
    `dropped` attributes were lost before the span was written. `resource` is shared by many spans.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    error: str | None = None
    dropped: int = 0
    resource: dict[str, Any] = NO_ATTRIBUTES


RETRIEVER, RERANKER, MODEL, CHAIN, OTHER = "retriever", "reranker", "model", "chain", "other"
"""What a span did: found documents, put them in another order, wrote text, held others together."""


class SpanFacts(Struct, array_like=True, omit_defaults=True, gc=False):
    """What an assembler needs of a span; the attributes are gone by then.

    `input` and `output` are as the span has them: only those of some spans are ever looked at.
    `candidates` are the hits that a reranker was given. `lost` says what is missing of the hits.
    """

    role: str
    question: str | None = None
    hits: list[dict[str, Any]] | None = None
    candidates: list[dict[str, Any]] | None = None
    input: Any = None
    output: Any = None
    qid: str | None = None
    session: str | None = None
    index: dict[str, str] | None = None
    error: str | None = None
    lost: str | None = None
    notes: list[str] | None = None


def first_line(text: str) -> str:
    """The first line that says something, and nothing of a stack."""
    lines = text.partition("Traceback (most recent call last)")[0].strip().splitlines()
    return lines[0].strip() if lines else ""
