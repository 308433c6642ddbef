"""Judgements and runs of TREC, and the judgements of a BEIR folder: known by their columns."""

from ragauge.model.dialect import Dialect

DIALECT = Dialect(
    name="trec",
    title="qrels (qid iter docid grade) or a BEIR folder, and a run (qid Q0 docid rank score tag)",
    source="trec_eval",
    profile="all",
    gold_marks=frozenset(),
    trace_marks=frozenset(),
    own_gold={},
    own_trace={},
)
