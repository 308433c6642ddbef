"""Dialects: which field names a family of files uses, and how to recognise it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

GOLD_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "q_id", "id", "query_id"),
    "question": ("question", "q", "query"),
    "paraphrases": ("paraphrases",),
    "answerable": ("answerable",),
    "relevant": ("relevant", "gold_ids", "gold_citations", "expected_chunk_ids"),
    "claims": ("gold_claim_substr", "gold_claim", "claims_any"),
    "constraints": ("constraints",),
    "type": ("type",),
    "tags": ("tags",),
    "group": ("group",),
    "difficulty": ("difficulty",),
    "lang": ("lang",),
}
"""Every name under which a gold field is read, whatever the dialect."""

TRACE_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "q_id", "id", "query_id"),
    "question": ("q", "question", "query"),
    "paraphrase": ("paraphrase",),
    "seed": ("seed",),
    "turn": ("turn",),
    "hits": ("topk", "retrieved_ids", "chunks", "items", "retrieved", "hits_top_k", "hits"),
    "answer": ("answer_json", "answer"),
    "text": ("answer_text",),
    "citations": ("citations", "answer_citations", "cited_chunks"),
    "refused": ("refused",),
    "grounded": ("grounded",),
    "constraints_echo": ("constraints_echo",),
    "error": ("error",),
}
"""Every name under which a trace field is read; hits may also stand under `retrieval`."""

GOLD_NAMES = frozenset(name for names in GOLD_SPELLINGS.values() for name in names)
TRACE_NAMES = frozenset(name for names in TRACE_SPELLINGS.values() for name in names)
TRACE_NAMES |= {"retrieval"}
"""All names that something reads."""

HIT_IDS = ("id", "chunk_id", "snippet_id", "block_id")


class Dialect(Struct, frozen=True, kw_only=True):
    """A family of files: the names it owns, the marks it is known by, the profile it implies.

    An own name wins over any other spelling in the row; among own names the first that is there
    and not empty wins.
    """

    name: str
    title: str
    source: str
    profile: str
    gold_marks: frozenset[str]
    trace_marks: frozenset[str]
    own_gold: Mapping[str, tuple[str, ...]]
    own_trace: Mapping[str, tuple[str, ...]]
    strip_citations: bool = False
