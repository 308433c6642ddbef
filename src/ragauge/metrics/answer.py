"""Answers: is what was said right, contained, and in the agreed form."""

from __future__ import annotations

from ragauge.metrics import populations
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Example, Metric, answer_row

_GOLD = {
    "qid": "A1",
    "question": "Does X support null keys?",
    "answerable": True,
    "gold_claim_substr": ["rejects null keys"],
    "gold_citations": ["p1#2"],
}

METRICS = (
    Metric(
        id="answer.precision",
        version=3,
        title="Answers with a cited piece of evidence",
        formula="1 if the item is answerable and C ∩ G ≠ ∅, else 0",
        over=populations.ANSWERED,
        better="higher",
        source="WFGY example 08 (answer precision)",
        value=lambda b, k: b.answerable & b.hit,
        elsewhere="ragas and deepeval ask a model whether the answer is right; here a citation "
        "of known evidence decides. An answer to an unanswerable question is wrong whatever it "
        "says.",
        example=Example(
            _GOLD,
            answer_row("No.", ["p1#2", "p7#7"], retrieved_ids=["p1#1"]),
            1.0,
            "answered, answerable, C ∩ G = {p1#2}: 1, although p1#2 was not retrieved "
            "and the claim is not contained.",
        ),
    ),
    Metric(
        id="answer.grounded_precision",
        version=3,
        title="Answers that are right and cited from what was retrieved",
        formula="1 if the item is answerable, the claim is contained, and the citations hit in "
        "scope (C ⊆ hits and C ∩ G ≠ ∅, or both empty), else 0",
        over=populations.ANSWERED,
        better="higher",
        source="WFGY eval page (Precision, answered)",
        value=lambda b, k: b.creditable & b.contained & b.hit_in_scope,
        elsewhere="The claim is contained if any gold substring appears in it, ignoring case; one "
        "of fewer than 5 characters must stand there as a word of its own, and under ship and "
        "smoke never counts. An empty list of substrings is contained, an absent one is not.",
        example=Example(
            _GOLD,
            answer_row("X rejects null keys.", ["p1#2"], retrieved_ids=["p1#1", "p1#2"]),
            1.0,
            "contains `rejects null keys`, C = {p1#2} is among the hits and in G: 1.",
        ),
    ),
    Metric(
        id="answer.claim_containment",
        version=2,
        title="Answers that contain a claim of the gold item",
        formula="1 if answered and a gold claim appears in what was said, else 0",
        over=populations.ANSWERABLE_WITH_CLAIMS,
        better="higher",
        source="WFGY example 08 (claim containment)",
        value=lambda b, k: b.answered & b.contained,
        elsewhere="`gold_claim` is cut into phrases of at least 5 letters, digits, hyphens and "
        "blanks, any of which is enough; `gold_claim_substr` is taken whole.",
        example=Example(
            {
                "qid": "A1",
                "question": "What is X?",
                "answerable": True,
                "gold_claim": "X is a constrained mapping (see 4.2).",
            },
            {
                "qid": "A1",
                "question": "What is X?",
                "answer": "In short, x is a constrained mapping - nothing more.",
            },
            1.0,
            "the phrase `x is a constrained mapping` of the gold claim appears: 1.",
        ),
    ),
    Metric(
        id="answer.compliance",
        version=3,
        title="Answers in the agreed form",
        formula="1 if there is a citations list (be it empty) or a refusal, else 0",
        over=populations.WITH_ANSWER,
        better="higher",
        source="WFGY example 08 (schema compliance)",
        value=lambda b, k: b.listed | b.refused,
        example=Example(
            _GOLD,
            {"qid": "A1", "answer": "X rejects null keys, I believe."},
            0.0,
            "no citations list, no `citations: [...]` in the text, no refusal: 0.",
        ),
    ),
    Metric(
        id="answer.constraints_echoed",
        title="Answers that repeat every locked constraint",
        formula="1 if each constraint equals an element of constraints_echo after strip, else 0",
        over=populations.WITH_ECHO,
        better="higher",
        source="WFGY eval page (constraints)",
        value=lambda b, k: b.echoed,
        example=Example(
            {**_GOLD, "constraints": ["X rejects null keys.", "Keys are strings."]},
            {
                "qid": "A1",
                "answer_json": {
                    "claim": "X rejects null keys.",
                    "citations": ["p1#2"],
                    "constraints_echo": ["X rejects null keys. "],
                },
            },
            0.0,
            "one of two constraints is echoed; `Keys are strings.` is not: 0.",
        ),
    ),
    Metric(
        id="answer.coverage",
        title="Answers that cite the evidence or its section",
        formula="1 if a citation is in G or lies inside the anchor section, else 0",
        over=populations.ANSWERABLE,
        better="higher",
        version=3,
        source="WFGY chunking eval page (Coverage)",
        value=lambda b, k: b.hit | b.has(Fact.CITES_SECTION),
        elsewhere="A refusal that cites nothing counts 0. The page's pseudocode looks at the first "
        "citation only; its text, and this metric, at any.",
        example=Example(
            {
                "qid": "A1",
                "question": "What is SCU?",
                "answerable": True,
                "relevant": ["S.4.2.p.Bk011a"],
                "anchor_section": "S.4.2",
            },
            {
                "qid": "A1",
                "topk": ["S.4.2.p.Bk012"],
                "answer_citations": [{"id": "S.4.2.p.Bk012", "offsets": [204000, 204200]}],
            },
            1.0,
            "S.4.2.p.Bk012 is no evidence, but lies in S.4.2: 1.",
        ),
    ),
    Metric(
        id="answer.groundedness",
        title="Answers with all the strings they must have, and none they must not",
        formula="1 if every must_contain string and no forbidden string is in what was said, "
        "else 0 (after NFC; case counts unless --ignore-case)",
        over=populations.CHECKED_STRINGS,
        better="higher",
        version=2,
        source="kb evaluation (groundedness)",
        value=lambda b, k: b.has(Fact.STRINGS_OK),
        elsewhere="Elsewhere groundedness or faithfulness is a model's judgement of whether the "
        "context supports the answer; this looks for known strings. Under kb an item that "
        "names none is satisfied, as in the source; answer.groundedness_labelled leaves it out.",
        example=Example(
            {**_GOLD, "must_contain": ["null keys"], "forbidden": ["accepts"]},
            answer_row("X rejects null keys.", ["p1#2"]),
            1.0,
            "`null keys` is there, `accepts` is not: 1.",
        ),
    ),
    Metric(
        id="answer.groundedness_labelled",
        title="Answers with all the strings they must have, of items that name any",
        formula="1 if every must_contain string and no forbidden string is in what was said, "
        "else 0 (after NFC; case counts unless --ignore-case)",
        over=populations.WITH_STRINGS,
        better="higher",
        source="own, after the kb evaluation",
        value=lambda b, k: b.has(Fact.STRINGS_OK),
        elsewhere="Under kb answer.groundedness counts items that name no strings as satisfied.",
        example=Example(
            {**_GOLD, "must_contain": ["null keys"], "forbidden": ["rejects"]},
            answer_row("X rejects null keys.", ["p1#2"]),
            0.0,
            "`rejects` is forbidden, and there: 0.",
        ),
    ),
    Metric(
        id="answer.exact_match",
        title="Answers that are a reference answer, word for word",
        formula="1 if the words of the answer are those of a reference answer, in their order, "
        "without case, punctuation and the articles a, an, the, else 0",
        over=populations.ANSWERED_WITH_REFERENCE,
        better="higher",
        source="SQuAD (exact match)",
        value=lambda b, k: b.listed_in("exact_match"),
        elsewhere="Of several reference answers the nearest counts. `citations: [a, b]` in the "
        "text is no part of the answer. A long answer hardly ever matches: see answer.token_f1.",
        example=Example(
            {**_GOLD, "reference": "The null keys"},
            answer_row("Null keys.", ["p1#2"]),
            1.0,
            "`null keys` is left of both: 1.",
        ),
    ),
    Metric(
        id="answer.token_f1",
        binary=False,
        title="Words that an answer shares with a reference answer: F1",
        formula="2 · common words / (words of the answer + words of the reference answer), each "
        "word as often as both have it, normalised as for answer.exact_match",
        over=populations.ANSWERED_WITH_REFERENCE,
        better="higher",
        source="SQuAD (F1)",
        value=lambda b, k: b.single("token_f1"),
        elsewhere="Of several reference answers the nearest counts. Where either has no word left, "
        "it is 1 if both have none, else 0, as in SQuAD 2.0.",
        example=Example(
            {**_GOLD, "reference": "No, X rejects null keys."},
            answer_row("X rejects null values.", ["p1#2"]),
            2 * 3 / (4 + 5),
            "`x`, `rejects` and `null` of 4 and of 5 words: 2 · 3 / 9.",
        ),
    ),
    Metric(
        id="answer.rouge_l",
        binary=False,
        title="Words in order that an answer shares with a reference answer: ROUGE-L",
        formula="2 · LCS / (words of the answer + words of the reference answer), where LCS is the "
        "length of their longest common subsequence and words are runs of a-z and 0-9",
        over=populations.ANSWERED_WITH_REFERENCE,
        better="higher",
        source="rouge-score (rougeL, F), without stemming",
        value=lambda b, k: b.single("rouge_l"),
        elsewhere="Of several reference answers the nearest counts. rouge-score's rougeLsum cuts "
        "texts into lines first. Letters beyond a-z are no words there, nor here.",
        example=Example(
            {**_GOLD, "reference": "Null keys are rejected by X"},
            answer_row("X: null keys are not rejected", ["p1#2"]),
            2 * 4 / (6 + 6),
            "`null keys are rejected` is common, in order: 2 · 4 / (6 + 6).",
        ),
    ),
)
