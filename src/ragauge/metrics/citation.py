"""Citations: do they point at the evidence, and at what was retrieved."""

from __future__ import annotations

import numpy as np

from ragauge.metrics import populations
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Example, Metric, answer_row

_DOMAIN = {"qid": "A1", "question": "What domain?", "answerable": True, "gold_citations": ["pB#1"]}
_SPANS = {
    "qid": "A1",
    "question": "What is SCU?",
    "relevant": [{"id": "S.4.2.p.Bk011a", "doc": "guide.md", "start": 1000, "end": 1200}],
    "anchor_section": "S.4.2",
}

METRICS = (
    Metric(
        id="citation.hit_rate",
        version=3,
        title="Answers whose citations hit, in scope",
        formula="1 if the item is not to be refused, C ⊆ hits, and C ∩ G ≠ ∅ (or both are "
        "empty), else 0",
        over=populations.ANSWERED,
        better="higher",
        source="WFGY eval page (CHR)",
        value=lambda b, k: b.hit_in_scope,
        elsewhere="WFGY example 08 means by CHR a hit among the answerable questions, whether or "
        "not the cited id was retrieved: that is citation.hit_rate_answerable.",
        example=Example(
            _DOMAIN,
            answer_row("example.com", ["pB#1"], retrieved_ids=["p1#2"]),
            0.0,
            "C = {pB#1} is in G, but it was not retrieved: out of scope, 0.",
        ),
    ),
    Metric(
        id="citation.hit_rate_answerable",
        version=3,
        title="Answerable questions answered with a hit",
        formula="1 if answered and C ∩ G ≠ ∅, else 0",
        over=populations.ANSWERABLE,
        better="higher",
        source="WFGY example 08 (CHR)",
        value=lambda b, k: b.answered & b.hit,
        elsewhere="Refusing an answerable question counts 0 here and is left out of "
        "citation.hit_rate.",
        example=Example(
            {"qid": "q1", "q": "What is X?", "answerable": True, "gold_ids": ["p1#1"]},
            {
                "q": "What is X?",
                "chunks": [{"id": "p3#1"}],
                "answer": "A mapping. Citations: [p3#1 p1#1]",
            },
            1.0,
            "the text cites p3#1 and p1#1; C ∩ G = {p1#1}: 1.",
        ),
    ),
    Metric(
        id="citation.in_context",
        version=2,
        title="Citations taken only from what was retrieved",
        formula="1 if C ⊆ hits, else 0",
        over=populations.CITED,
        better="higher",
        source="WFGY eval page (scoped grounding)",
        value=lambda b, k: b.in_context,
        example=Example(
            _DOMAIN,
            answer_row("example.com", ["pB#1", "p8#3"], retrieved_ids=["p1#2", "pB#1"]),
            0.0,
            "p8#3 is cited and was not retrieved: 0.",
        ),
    ),
    Metric(
        id="citation.accuracy",
        version=3,
        title="Answers that cite the right bytes",
        formula="1 if a citation and a gold span of the same document agree: the sections are "
        "equal where both are known, and the cited span lies inside the gold span widened by 30 "
        "bytes each side and overlaps it, else 0; of several `source_spans` the union counts",
        over=populations.CITED_SPAN_LABELLED,
        better="higher",
        source="WFGY chunking eval page (Citation accuracy)",
        value=lambda b, k: b.has(Fact.ACCURATE),
        elsewhere="The source says `within a 30-byte window` and no more. --citation-mode "
        "endpoints asks that both ends are no further apart than the window, overlap that the "
        "spans touch after widening; the report records the mode.",
        example=Example(
            _SPANS,
            {
                "qid": "A1",
                "answer_citations": [
                    {"id": "S.4.2.p.Bk011a", "doc": "guide.md", "offsets": [980, 1150]}
                ],
            },
            1.0,
            "980–1150 lies inside 970–1230 and overlaps 1000–1200: 1.",
        ),
    ),
    Metric(
        id="citation.precision",
        binary=False,
        title="Share of the citations that are evidence",
        formula="|C ∩ G| / |C|, C without repeats: ids, or cited places where evidence has places",
        over=populations.CITED_LABELLED,
        better="higher",
        version=3,
        source="own",
        value=lambda b, k: b.cited_relevant / np.maximum(1, b.different_citations),
        example=Example(
            {"qid": "A1", "question": "What domain?", "relevant": ["pB#1", "pB#2"]},
            answer_row("example.com", ["pB#1", "p8#3", "pB#1"]),
            0.5,
            "C = {pB#1, p8#3}, of which pB#1 is evidence: 1 / 2.",
        ),
    ),
    Metric(
        id="citation.recall",
        version=3,
        binary=False,
        title="Share of the evidence that is cited",
        formula="|C ∩ G| / |G|",
        over=populations.ANSWERED_LABELLED,
        better="higher",
        source="own",
        value=lambda b, k: b.cited_pieces / np.maximum(1, b.relevant_count),
        example=Example(
            {"qid": "A1", "question": "What domain?", "relevant": ["pB#1", "pB#2", "pB#3"]},
            answer_row("example.com", ["pB#1", "p8#3"]),
            1 / 3,
            "of three pieces of evidence pB#1 is cited: 1 / 3.",
        ),
    ),
    Metric(
        id="citation.coverage",
        version=2,
        reads_other_rows=True,
        title="Answers without a citation that does not exist",
        formula="1 if every citation is a known chunk (of the list of chunks, or without one among "
        "the hits of any trace of the run), else 0; under kb 1 without citations",
        over=populations.GROUNDED_CITED,
        better="higher",
        source="kb evaluation (citation_coverage)",
        value=lambda b, k: ~b.cited | b.has(Fact.RESOLVED),
        elsewhere="citation.resolved counts an answer without citations as 0; answer.coverage is "
        "whether the evidence is cited.",
        example=Example(
            {"qid": "A1", "question": "What domain?", "relevant": ["pB#1"]},
            answer_row("example.com", ["p1#2"], topk=["p1#2"]),
            1.0,
            "p1#2 was retrieved, so every citation exists: 1.",
        ),
    ),
    Metric(
        id="citation.resolved",
        version=3,
        reads_other_rows=True,
        title="Answers whose citations all exist",
        formula="1 if there are citations and every one is a known chunk (of the list of chunks, "
        "or without one among the hits of any trace of the run), else 0",
        over=populations.GROUNDED,
        better="higher",
        source="own, after the kb evaluation",
        value=lambda b, k: b.cited & b.has(Fact.RESOLVED),
        elsewhere="citation.in_context asks for the hits of the same trace. A citation that is "
        "only a place in a document is looked for by that place.",
        example=Example(
            {"qid": "A1", "question": "What domain?", "relevant": ["pB#1"]},
            answer_row("example.com", ["p1#2", "made-up"], topk=["p1#2"]),
            0.0,
            "no trace of the run has retrieved `made-up`: 0.",
        ),
    ),
    Metric(
        id="citation.anchor_distance",
        binary=False,
        range=(0.0, 1_000_000.0),
        unit=720_720,
        title="How far the citations are from the section that holds the answer",
        formula="mean over the citations with a section of the edges between it and the anchor "
        "section, through their lowest common ancestor in the title tree",
        over=populations.CITED_ANCHORED,
        better="lower",
        version=3,
        source="WFGY chunking eval page (Anchor proximity)",
        value=lambda b, k: b.single("distance"),
        elsewhere="0 is the section itself, 1 its parent or child, 2 a sibling. A citation in "
        "another document than the anchor's has no distance.",
        example=Example(
            _SPANS,
            {"qid": "A1", "answer_citations": ["S.4.2.p.Bk012", "S.4.10.p.Bk001"]},
            1.0,
            "0 edges to S.4.2, 2 to its sibling S.4.10: (0 + 2) / 2.",
        ),
    ),
)
