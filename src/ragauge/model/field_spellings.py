"""Field spellings: every name under which a field of gold, a trace, a hit or an answer is read."""

from __future__ import annotations

from collections.abc import Mapping

from ragauge.files.fields import ID_NAMES
from ragauge.model import greek_names

GOLD_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "q_id", "id", "query_id"),
    "question": ("question", "q", "query"),
    "paraphrases": ("paraphrases",),
    "answerable": ("answerable", "expect"),
    "relevant": ("relevant", "gold_ids", "gold_citations", "expected_chunk_ids"),
    "relevant_docs": ("relevant_docs", "expected_doc_ids", "expected_doc"),
    "places": ("gold_spans",),
    "groups": ("groups",),
    "grades": ("grades",),
    "anchor_section": ("anchor_section", "target_section", "section_id"),
    "negatives": ("negatives",),
    "decoy_section": ("decoy_section",),
    "claims": ("gold_claim_substr", "gold_claim", "claims_any"),
    # Not `references`: many call their sources so.
    "references": (
        "reference_answers",
        "reference_answer",
        "reference",
        "ground_truth",
        "ground_truths",
        "expected_output",
        "expected_answer",
        "answers",
    ),
    "must_contain": ("must_contain",),
    "forbidden": ("forbidden",),
    "constraints": ("constraints",),
    "turn": ("turn",),
    "unit": ("unit",),
    "type": ("type",),
    "tags": ("tags",),
    "group": ("group",),
    "difficulty": ("difficulty",),
    "lang": ("lang",),
}
"""Every name under which a gold field is read, whatever the dialect. `answer` is none of them: in
files that hold questions, answers and references in one row it is what the system said."""

TRACE_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "q_id", "id", "query_id"),
    "question": ("q", "question", "query"),
    "paraphrase": ("paraphrase",),
    "seed": ("seed",),
    "turn": ("turn",),
    "hits": ("topk", "retrieved_ids", "chunks", "items", "retrieved", "hits_top_k", "hits"),
    "answer": ("answer_json", "answer"),
    "claim": ("claim",),
    "text": ("answer_text",),
    "citations": ("citations", "answer_citations", "cited_chunks"),
    "refused": ("refused",),
    "grounded": ("grounded",),
    "constraints_echo": ("constraints_echo",),
    "error": ("error",),
    "delta_s": greek_names.DELTA_S,
    "lambda_state": greek_names.LAMBDA,
    "perf": ("perf",),
    "total_ms": ("latency_ms", "elapsed_ms"),
    "tokens": ("tokens", "total_tokens", "usage", "token_usage"),
    "cost": ("cost", "total_cost", "cost_usd"),
    "unknown_ids": ("unknown_ids",),
    "oversampled": ("oversampled",),
}
"""Every name under which a trace field is read; hits may also stand under `retrieval`.

Both ways to read a row take their names from here: the exact path looks them up, and the structs
of the fast path are made from them. A spelling that is added here is read everywhere.
"""

INDEX_NAMES = (
    "index_hash", "embed_model", "metric", "analyzer", "chunker_version", "policy_hash", "build",
    "rev",
)  # fmt: skip
"""What identifies the index that a trace came from."""

IMPORTED = "imported_from"
"""The field that says which other tool's format a row was made of; it stands first."""

FIRST_HITS = "hits_before_rerank"
"""The list of hits that a reranker was given, where a trace has both lists; `hits` is the last."""

LAST_HITS = "hits_after_rerank"
"""Where the list of the reranker went in a row whose first list is scored."""

IMPORT_NAMES = (IMPORTED, "imported_qid", FIRST_HITS, LAST_HITS, "session", "trace_id", "span_id")
"""What an import notes beside the fields that are read, and the lists of other stages."""

GOLD_NAMES = frozenset(name for names in GOLD_SPELLINGS.values() for name in names)
TRACE_NAMES = frozenset(name for names in TRACE_SPELLINGS.values() for name in names)
TRACE_NAMES |= {"retrieval", *INDEX_NAMES}
"""All names that something reads."""

HIT_IDS = ID_NAMES
_DOC_NAMES, _DOC_PATHS = ("doc", "doc_id"), ("doc_path",)
HIT_DOCS = _DOC_NAMES + _DOC_PATHS
"""Names of the document in evidence, lists of chunks and hits; `path` means one in hits only."""

HIT_SECTIONS = ("section", "section_id")
HIT_HASHES = ("doc_hash", "document_hash"), ("text_hash", "content_hash", "chunk_hash")
"""Names of the hash of a document's content, and of a chunk's."""

HIT_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "id": HIT_IDS,
    "doc": _DOC_NAMES,
    "path": (*_DOC_PATHS, "path"),
    "section": HIT_SECTIONS,
    "score": ("score",),
    "rank": ("rank",),
    "type": ("type",),
    "text": ("text",),
    "snippet": ("snippet",),
    "citation": ("citation",),
    "chunker_version": ("chunker_version",),
    "doc_hash": HIT_HASHES[0],
    "text_hash": HIT_HASHES[1],
    "policy_hash": ("policy_hash",),
    "delta_s": TRACE_SPELLINGS["delta_s"],
}
"""Every name under which a field of a hit is read; those of its place are in `spans`."""

ANSWER_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "claim": ("claim",),
    "text": ("text", "answer"),
    "citations": ("citations",),
    "refused": ("refused",),
    "grounded": ("grounded",),
    "constraints_echo": ("constraints_echo",),
    "delta_s": TRACE_SPELLINGS["delta_s"],
    "lambda_state": TRACE_SPELLINGS["lambda_state"],
}
"""Every name under which a field of an answer that is an object is read."""

PERF_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "retrieve": ("t_retrieve_ms",),
    "reason": ("t_reason_ms",),
}
"""The names of the times in `perf`."""

USAGE_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "total": ("total_tokens", "total", "totalTokens", "totalTokenCount"),
    "input": ("prompt_tokens", "input_tokens", "prompt", "input", "promptTokenCount"),
    "output": (
        "completion_tokens", "output_tokens", "completion", "output", "candidatesTokenCount",
    ),
}  # fmt: skip
"""The names in an object of tokens or costs, as the APIs of models give it."""
