"""The files of the kb evaluation: a golden set with expected documents, and query results."""

from ragauge.model.dialect import Dialect

DIALECT = Dialect(
    name="kb",
    title="golden set (YAML or JSON) with expected_doc_ids, query results with hits_top_k",
    source="kb evaluation",
    profile="kb",
    gold_marks=frozenset({"expected_doc_ids", "expected_chunk_ids", "must_contain", "forbidden"}),
    trace_marks=frozenset({"hits_top_k", "elapsed_ms", "query_id"}),
    own_gold={
        "qid": ("id",),
        "question": ("query",),
        "relevant": ("expected_chunk_ids",),
        "relevant_docs": ("expected_doc_ids",),
    },
    own_trace={
        "qid": ("query_id",),
        "question": ("query",),
        "hits": ("hits_top_k",),
        "answer": ("answer",),
    },
    expects_by_docs=True,
)
