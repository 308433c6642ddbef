"""Retrieval: did the evidence come back, how far up, and what came with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ragauge.metrics import populations
from ragauge.metrics.batch import NEVER, Batch
from ragauge.metrics.columns import Floats, Ints
from ragauge.metrics.metric import Example, Metric

_GOLD = {"qid": "A1", "question": "Which keys are refused?", "relevant": ["p1#2", "p4#1"]}
_TRACE = {"qid": "A1", "topk": ["p1#2", "p9#9", "p4#1", "p7#3"]}
_example = partial(Example, _GOLD, _TRACE)
_SECTION = {"qid": "A1", "question": "What is SCU?", "relevant": ["S.4.2.p.Bk011a"]}
_BY_DOCUMENT = {
    "qid": "A1",
    "question": "Which keys are refused?",
    "expected_doc_ids": ["guide.md", "api.md"],
}
_MANY = 1e12
_share_at_k = partial(Metric, at_k=True, binary=False, better="higher")


def _ranked(
    topk: list[Any], value: float, arithmetic: str, *, gold: dict[str, Any] = _GOLD
) -> Example:
    return Example(gold, {"qid": "A1", "topk": topk}, value, arithmetic)


def _per_evidence(top: Floats, batch: Batch) -> Floats:
    return top / np.maximum(1, batch.relevant_count)


def _retrieved(batch: Batch, k: int) -> Floats:
    """|R_k|, at least 1 so that it can divide."""
    return np.maximum(1, np.minimum(k, batch.hit_count)).astype(np.float64)


def _reciprocal(first: Ints, k: int) -> Floats:
    """1 / rank, where 0 is the first; 0 from k on."""
    return np.where(first < k, 1.0 / (np.minimum(first, NEVER - 1) + 1.0), 0.0)


def _gain(batch: Batch, k: int) -> Floats:
    ideal = batch.ideal_gain(k)
    nothing = np.full(batch.size, np.nan)
    ratio: Floats = np.divide(batch.gain(k), ideal, out=nothing, where=ideal > 0)
    return np.minimum(1.0, ratio)


METRICS = (
    _share_at_k(
        id="retrieval.precision",
        version=2,
        title="Share of the first k hits that are evidence",
        formula="|G ∩ R_k| / |R_k|, where |R_k| is the number of hits up to k",
        over=populations.LABELLED_WITH_HITS,
        source="WFGY chunking eval page (Precision@k)",
        value=lambda b, k: b.relevant_hits_in_top(k) / _retrieved(b, k),
        elsewhere="trec_eval and ranx divide by k, also when fewer hits came back: that is "
        "retrieval.precision_at_cutoff. ragas's context precision asks a model and weighs by "
        "rank. Evidence with a place: a hit counts that shares half of the shorter of the two.",
        example=_ranked(
            ["p1#2", "p9#9", "p4#1"], 2 / 3, "of 3 hits (fewer than k = 5) 2 are evidence: 2 / 3."
        ),
    ),
    _share_at_k(
        id="retrieval.precision_at_cutoff",
        version=2,
        title="Evidence among the first k hits, over k",
        formula="|G ∩ R_k| / k",
        over=populations.LABELLED,
        source="trec_eval (P_k)",
        value=lambda b, k: b.relevant_hits_in_top(k) / k,
        elsewhere="As in trec_eval, ir_measures and ranx. retrieval.precision divides by the "
        "number of hits that came back.",
        example=_ranked(
            ["p1#2", "p9#9", "p4#1"], 0.4, "2 of the evidence among 3 hits, over k = 5: 2 / 5."
        ),
    ),
    _share_at_k(
        id="retrieval.recall",
        version=2,
        title="Share of the evidence in the top k",
        formula="|G ∩ R_k| / |G|",
        over=populations.LABELLED,
        source="WFGY chunking eval page (Recall@k)",
        value=lambda b, k: _per_evidence(b.relevant_in_top(k).astype(np.float64), b),
        elsewhere="The recall of trec_eval and ranx. Others mean by recall@k whether any evidence "
        "came back (retrieval.hit) or whether all of it did (retrieval.recall_all).",
        example=_ranked(["p1#2", "p9#9", "p3#1"], 0.5, "of G = {p1#2, p4#1} one came back: 1 / 2."),
    ),
    Metric(
        id="retrieval.recall_all",
        version=2,
        at_k=True,
        title="All evidence in the top k",
        formula="1 if G ⊆ R_k, else 0",
        over=populations.ANSWERABLE_EVIDENCE,
        better="higher",
        source="WFGY eval page (Recall@k)",
        value=lambda b, k: b.relevant_in_top(k) == b.relevant_count,
        elsewhere="Most tools mean by recall@k the share of the evidence that came back "
        "(trec_eval, ranx, ragas), or whether any of it did (hit rate). This is "
        "all-or-nothing: an upper bound on what can be answered from the top k.",
        example=Example(
            {
                "qid": "A1",
                "question": "Which keys are refused?",
                "answerable": True,
                "gold_citations": ["p1#2", "p4#1"],
            },
            {"qid": "A1", "retrieved_ids": ["p1#2", "p9#9", "p4#1"]},
            1.0,
            "G = {p1#2, p4#1}; both are among the first 5 hits (ranks 1 and 3): 1. "
            "At k = 2 the second is missing, and the value is 0.",
        ),
    ),
    Metric(
        id="retrieval.hit",
        version=2,
        at_k=True,
        title="Any evidence in the top k",
        formula="1 if G ∩ R_k ≠ ∅, else 0",
        over=populations.LABELLED,
        better="higher",
        source="kb evaluation (hit@k)",
        value=lambda b, k: b.first_relevant < k,
        elsewhere="Called hit rate, success@k (trec_eval) and, in many RAG write-ups, recall@k.",
        example=_example(1.0, "p1#2 is at rank 1, within k = 5: 1."),
    ),
    _share_at_k(
        id="retrieval.mrr",
        version=2,
        title="Reciprocal rank of the first evidence",
        formula="1 / rank of the first relevant hit, 0 beyond k",
        over=populations.LABELLED,
        source="kb evaluation (MRR, cut at 10)",
        value=lambda b, k: _reciprocal(b.first_relevant, k),
        elsewhere="trec_eval's recip_rank has no cut-off; here k is part of the name, and "
        "retrieval.mrr@10 is the usual one.",
        example=_ranked(
            ["p9#9", "p3#1", "p4#1", "p1#2"],
            1 / 3,
            "the first evidence, p4#1, is at rank 3: 1 / 3.",
        ),
    ),
    _share_at_k(
        id="retrieval.ndcg",
        version=2,
        title="Discounted gain of the first k hits, over that of the best list",
        formula="Σ gain / log2(rank + 1) over the first k, divided by the same of the ideal order; "
        "the gain is the grade, or 1 without grades",
        over=populations.LABELLED,
        undefined="no-gain",
        source="trec_eval (ndcg_cut_k)",
        value=_gain,
        elsewhere="trec_eval takes the grade itself as the gain; others take 2^grade - 1, which "
        "gives other numbers for grades above 1.",
        example=_ranked(
            ["p4#1", "p1#2"],
            (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3)),
            "gains 1 at rank 1 and 3 at rank 2: (1 + 3/1.585) / (3 + 1/1.585) = 2.8928 / 3.6309.",
            gold={
                "qid": "A1",
                "question": "Which keys are refused?",
                "grades": {"p1#2": 3, "p4#1": 1},
            },
        ),
    ),
    _share_at_k(
        id="retrieval.map",
        version=2,
        title="Average precision of the first k hits",
        formula="Σ precision at the rank of each relevant hit up to k, divided by |G|",
        over=populations.LABELLED,
        source="trec_eval (map_cut_k)",
        value=lambda b, k: np.minimum(1.0, _per_evidence(b.precision_sum(k), b)),
        elsewhere="As in trec_eval the divisor is |G|; some tools divide by min(k, |G|), which is "
        "higher for small k.",
        example=_example(
            (1 + 2 / 3) / 2, "precision 1/1 at rank 1 and 2/3 at rank 3: (1 + 0.6667) / 2."
        ),
    ),
    Metric(
        id="retrieval.r_precision",
        version=2,
        binary=False,
        title="Precision at as many hits as there is evidence",
        formula="|G ∩ R_|G|| / |G|",
        over=populations.LABELLED,
        better="higher",
        source="trec_eval (Rprec)",
        value=lambda b, k: _per_evidence(b.relevant_hits_in_own_top.astype(np.float64), b),
        example=_example(0.5, "|G| = 2, and one of the first 2 hits is evidence: 1 / 2."),
    ),
    _share_at_k(
        id="retrieval.recall_doc",
        title="Share of the expected documents in the top k",
        formula="expected documents among those of the first k hits / expected documents",
        over=populations.DOC_LABELLED,
        source="kb evaluation (recall@k_doc)",
        value=lambda b, k: b.docs_in_top(k) / np.maximum(1, b.doc_count),
        elsewhere="k counts hits, not documents: many hits of one document use up k.",
        example=_ranked(
            [{"id": "c1", "doc": "guide.md"}, {"id": "c2", "doc": "guide.md"}],
            0.5,
            "guide.md came back, api.md did not: 1 / 2.",
            gold=_BY_DOCUMENT,
        ),
    ),
    Metric(
        id="retrieval.hit_doc",
        at_k=True,
        title="Any expected document in the top k",
        formula="1 if one of the first k hits is of an expected document, else 0",
        over=populations.DOC_LABELLED,
        better="higher",
        source="own",
        value=lambda b, k: b.first_doc < k,
        elsewhere="A document is larger than its evidence: finding it does not show that the "
        "evidence was found. retrieval.hit asks for the evidence itself.",
        example=_ranked(
            [{"id": "c1", "doc": "faq.md"}, {"id": "c2", "doc": "api.md"}],
            1.0,
            "api.md is expected, and of the second hit: 1.",
            gold=_BY_DOCUMENT,
        ),
    ),
    _share_at_k(
        id="retrieval.mrr_doc",
        title="Reciprocal rank of the first hit of an expected document",
        formula="1 / rank of the first hit whose document is expected, 0 beyond k",
        over=populations.DOC_LABELLED,
        source="own",
        value=lambda b, k: _reciprocal(b.first_doc, k),
        elsewhere="For items that name documents and no evidence, which have no retrieval.mrr. The "
        "rank is that of a hit: further hits of a wrong document push the right one down.",
        example=_ranked(
            [
                {"id": "c1", "doc": "faq.md"},
                {"id": "c2", "doc": "faq.md"},
                {"id": "c3", "doc": "api.md"},
            ],
            1 / 3,
            "the first hit of guide.md or api.md is the third: 1 / 3.",
            gold=_BY_DOCUMENT,
        ),
    ),
    _share_at_k(
        id="retrieval.group_recall",
        version=2,
        title="Share of the groups of evidence with a member in the top k",
        formula="groups of which any member is found by rank k / groups",
        over=populations.GROUPED,
        source="own",
        value=lambda b, k: b.groups_in_top(k) / np.maximum(1, b.group_count),
        elsewhere="For questions that need several facts, each of which stands in several places: "
        "recall would ask for every place.",
        example=_ranked(
            ["p1#2", "p9#9"],
            0.5,
            "p1#2 satisfies the first group, nothing the second: 1 / 2.",
            gold={"qid": "A1", "question": "Who and when?", "groups": [["p1#1", "p1#2"], ["p5#1"]]},
        ),
    ),
    Metric(
        id="retrieval.anchor_hit",
        at_k=True,
        title="A hit from the section that holds the answer",
        formula="1 if one of the first k hits lies in the anchor section or below it, else 0; a "
        "hit without a section takes that of its bytes in the corpus",
        over=populations.ANCHORED,
        better="higher",
        version=2,
        source="WFGY chunking eval page (anchor hit)",
        value=lambda b, k: b.section_in_top(k),
        example=_ranked(
            ["S.4.1.p.Bk010", "S.4.2.p.Bk012"],
            1.0,
            "S.4.2.p.Bk012 is not evidence, but lies in S.4.2: 1.",
            gold={**_SECTION, "anchor_section": "S.4.2"},
        ),
    ),
    Metric(
        id="retrieval.negative",
        at_k=True,
        binary=False,
        title="Share of the first k hits that are hard negatives",
        formula="|N ∩ R_k| / |R_k|",
        over=populations.WITH_NEGATIVES_AND_HITS,
        better="lower",
        version=2,
        source="own",
        value=lambda b, k: b.detail("negative_rank").count(b.size, k) / _retrieved(b, k),
        example=_ranked(
            ["S.4.2.p.Bk011a", "S.4.1.p.Bk010"],
            0.5,
            "one of 2 hits is a negative: 1 / 2.",
            gold={**_SECTION, "negatives": ["S.4.1.p.Bk010", "S.4.3.p.Bk014"]},
        ),
    ),
    Metric(
        id="retrieval.negative_above",
        title="A hard negative ranks above the first evidence",
        formula="1 if a negative has a better rank than the first relevant hit (not retrieved is "
        "the worst rank), else 0",
        over=populations.WITH_NEGATIVES,
        better="lower",
        version=3,
        source="own",
        value=lambda b, k: b.first_negative < b.first_relevant,
        example=_ranked(
            ["S.4.1.p.Bk010", "S.4.2.p.Bk011a"],
            1.0,
            "the negative is at rank 1, the evidence at rank 2: 1.",
            gold={**_SECTION, "negatives": ["S.4.1.p.Bk010"]},
        ),
    ),
    Metric(
        id="retrieval.bpref",
        version=2,
        binary=False,
        title="Evidence ranked above what is judged not relevant",
        formula="1/|G| · Σ over the evidence found of 1 - min(n, |G|) / min(|N|, |G|), where N is "
        "judged not relevant and n of it ranks above",
        over=populations.JUDGED,
        better="higher",
        source="trec_eval (bpref)",
        value=lambda b, k: _per_evidence(b.preferred, b),
        elsewhere="Hits that nobody judged do not count, where nDCG and MAP take them for not "
        "relevant. N are grades from 0 up to the relevance level, and hard negatives.",
        example=_ranked(
            ["x1", "p9#9", "p1#2", "p8#8", "p4#1"],
            (0.5 + 0.0) / 2,
            "above p1#2 one of 2 judged, above p4#1 both, x1 is not judged: "
            "(1 - 1/2 + 1 - 2/2) / 2.",
            gold={
                "qid": "A1",
                "question": "Which keys are refused?",
                "grades": {"p1#2": 1, "p4#1": 1, "p9#9": 0, "p8#8": 0},
            },
        ),
    ),
    _share_at_k(
        id="retrieval.judged",
        version=2,
        title="Share of the first k hits that are judged",
        formula="hits among the first k that are evidence, graded or a hard negative / |R_k|",
        over=populations.JUDGED_WITH_HITS,
        source="ir_measures (Judged@k)",
        value=lambda b, k: b.judged_in_top(k) / _retrieved(b, k),
        elsewhere="Not a quality: where it is low, retrieval.ndcg and retrieval.precision mostly "
        "measure who was judged. The divisor is the number of hits up to k.",
        example=_ranked(
            ["p1#2", "x1", "p9#9", "x2"],
            0.5,
            "p1#2 is relevant, p9#9 judged not to be, x1 and x2 are not judged: 2 / 4.",
            gold={
                "qid": "A1",
                "question": "Which keys are refused?",
                "grades": {"p1#2": 1, "p4#1": 1, "p9#9": 0},
            },
        ),
    ),
    Metric(
        id="retrieval.unjudged",
        version=2,
        at_k=True,
        binary=False,
        sums=True,
        range=(0.0, _MANY),
        unit=1,
        title="Hits that nobody judged",
        formula="hits among the first k that are neither evidence nor graded nor a hard negative, "
        "added up",
        over=populations.JUDGED_WITH_HITS,
        better="lower",
        source="own",
        value=lambda b, k: np.minimum(k, b.hit_count) - b.judged_in_top(k),
        example=_ranked(
            ["p1#2", "x1", "p9#9", "x2"],
            2.0,
            "x1 and x2 are not judged: 2.",
            gold={
                "qid": "A1",
                "question": "Which keys are refused?",
                "grades": {"p1#2": 1, "p4#1": 1, "p9#9": 0},
            },
        ),
    ),
    Metric(
        id="retrieval.empty",
        title="Traces without hits",
        formula="1 if there are no hits, else 0",
        over=populations.SEARCHED,
        better="lower",
        source="kb evaluation (empty_result_rate)",
        value=lambda b, k: b.hit_count == 0,
        elsewhere="Traces that are missing or carry an error are counted under run.*, not here. "
        "Only the profile kb takes an error for no hits, as its source does.",
        example=_ranked([], 1.0, "the list of hits is empty: 1."),
    ),
)
