"""Hits as an app has them: documents of LangChain, nodes of LlamaIndex, dicts, ids, texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragauge.formats.library_hits import is_library_hit, known_hit
from ragauge.model.field_spellings import HIT_SPELLINGS
from ragauge.model.target import TargetError, TargetOptions
from ragauge.spans import PLACE_NAMES, Span
from ragauge.targets.shared.address import TargetSettings
from ragauge.targets.shared.foreign_answer import known_answer
from ragauge.targets.shared.foreign_hits import HitMaker, flat

_READ = {name for names in HIT_SPELLINGS.values() for name in names}.union(PLACE_NAMES)
_DOCUMENTS = {*HIT_SPELLINGS["doc"], *HIT_SPELLINGS["path"]}
_MAKER = HitMaker(TargetSettings({}), TargetOptions())


def hits_of(documents: Any) -> list[Any]:
    """The hits that documents are, in their order; what is none of them is written as it is."""
    if documents is None:
        return []
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        documents = [documents]
    rows = [_hit(document) for document in documents]
    hits: list[Any] = known_answer(rows)
    return hits


def _hit(document: Any) -> Any:
    score = None
    if isinstance(document, tuple | list) and len(document) == 2:
        # What `similarity_search_with_score` gives: the document, and its score.
        document, score = document
    if hasattr(document, "page_content"):
        hit = _made(
            document.metadata or {},
            text=document.page_content,
            name=getattr(document, "id", None),
            score=score,
        )
        return {"text": document.page_content} if hit is None else hit
    node = getattr(document, "node", document)
    if hasattr(node, "get_content"):
        return _node_hit(node, getattr(document, "score", score))
    if isinstance(document, Mapping):
        row = {str(name): value for name, value in document.items()}
        row = row if score is None else {"score": score, **row}
        # As JSON, a document of a library has its text and its id elsewhere, too.
        return known_hit(row) if is_library_hit(row) else _read_row(row)
    return document if isinstance(document, str) else str(document)


def _read_row(row: dict[str, Any]) -> dict[str, Any]:
    """A dict as a hit: what it says in names of our own, and its document by any usual name.

    Nothing reads the rest of it, and every run of `score` would say so.
    """
    stated = {name: value for name, value in row.items() if name in _READ and value is not None}
    if not stated.keys().isdisjoint(_DOCUMENTS):
        return stated or row
    made = _made(flat(row)) or {}
    return {**{name: made[name] for name in ("doc", "path") if name in made}, **stated} or row


def _node_hit(node: Any, score: Any) -> Any:
    start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
    span = None if start is None or end is None else Span(start, end, "char")
    # The document's own id is a random one unless it was given; metadata name it better.
    metadata = {"document_id": getattr(node, "ref_doc_id", None), **(node.metadata or {})}
    text = node.get_content()
    hit = _made(metadata, text=text, name=node.node_id, score=score, span=span)
    return {"id": node.node_id, "text": text} if hit is None else hit


def _made(metadata: Mapping[str, Any], **facts: Any) -> dict[str, Any] | None:
    """The hit of a document; None where its metadata cannot be read."""
    if facts.get("score") is not None:
        facts["score"] = float(facts["score"])
    try:
        return _MAKER.hit(metadata, **facts)
    except (TargetError, TypeError, ValueError):
        return None
