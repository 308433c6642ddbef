"""The words of the reference pages that no registry holds: one sentence for each name.

`reference.py` fails if a name has no words here, or if words stand here for a name that is gone.
Words for the fields of files are in `ragauge/schemas/words.py`, because schemas say them too.
"""

from __future__ import annotations

SAME_WORDS = (
    ("P@k", ("retrieval.precision@k", "retrieval.precision_at_cutoff@k"),
     "over the hits that came back, or over k (trec_eval, ranx) also when fewer came back"),
    ("recall@k", ("retrieval.recall@k", "retrieval.hit@k", "retrieval.recall_all@k"),
     "the share of the evidence (trec_eval), whether any came back, or whether all did"),
    ("CHR", ("citation.hit_rate", "citation.hit_rate_answerable"),
     "over the answers and in scope, or over all answerable questions"),
    ("precision", ("answer.precision", "answer.grounded_precision", "retrieval.precision@k"),
     "of answers with a cited hit, of answers that also contain the claim, or of hits"),
    ("groundedness", ("answer.groundedness",),
     "elsewhere a model's judgement; here known strings that must and must not be there"),
    ("coverage", ("answer.coverage", "citation.resolved"),
     "answers that cite the evidence or its section, or answers whose citations all exist"),
    ("nDCG@k", ("retrieval.ndcg@k",),
     "gain is the grade (trec_eval), or 2^grade - 1 in other tools"),
    ("MAP@k", ("retrieval.map@k",), "divided by all evidence (trec_eval), or by at most k of it"),
)  # fmt: skip
"""Words that mean different things in different tools."""

EXIT_CODES = {
    0: "passed: every gate holds or is waived, or there are no gates",
    1: "a gate failed",
    2: "the command line or the configuration cannot be used",
    3: "the input data cannot be read",
    4: "not evaluable: the run cannot be judged, so it does not pass",
    5: "nothing was measured: no trace met a gold item",
    70: "a fault in ragauge itself",
}

JOIN_RULES = {
    "by": {
        "qid": "a trace belongs to the gold item with its id",
        "question": "a trace belongs to the gold item with exactly its question",
        "either": "a trace belongs to the gold item with its id; a trace without an id, to the "
        "one with exactly its question",
    },
    "keep": {
        "last": "of several traces of a question the last is scored",
        "slot": "of several traces of a slot (question, paraphrase, seed, turn) the last is scored",
        "every": "every trace is scored",
    },
    "refusal": {
        "token": "an answer is a refusal if it is `not in context`, whatever the case and the "
        "blanks around it",
        "natural": "a `refused` or `grounded` flag alone decides; else an answer is a refusal by "
        "the token `not in context`, a configured pattern, or if it reads like one",
        "grounded": "an answer is a refusal if it says `grounded: false`, whatever its words",
    },
    "short_claims": {
        "words": "claims of fewer than 5 characters match as whole words",
        "never": "claims of fewer than 5 characters never match",
    },
    "absent": {
        "excluded": "a record without an answer is left out of answer metrics and counted by "
        "reason",
        "empty-answer": "a missing trace, or one without an answer, counts as an empty answer",
    },
    "unlabelled": {
        "unlabelled": "an item without `answerable` is neither answerable nor unanswerable",
        "unanswerable": "an item without `answerable` is unanswerable",
        "creditable": "an item without `answerable` is counted among the unanswerable ones, yet "
        "an answer to it can be right and is never a hallucination",
        "by-evidence": "an item without `answerable` is answerable if it has evidence or an "
        "anchor section, and unlabelled otherwise",
    },
    "no_evidence": {
        "excluded": "an answerable item without evidence is left out of recall",
        "recalled": "an answerable item without evidence counts as recalled",
    },
    "nothing_to_check": {
        "excluded": "an item without strings is left out of `answer.groundedness`, and an answer "
        "without citations out of `citation.coverage`",
        "satisfied": "an item without strings is satisfied in `answer.groundedness`, and an answer "
        "without citations in `citation.coverage`",
    },
    "no_claims": {
        "excluded": "an item that names no claims is left out of claim containment",
        "counted": "an item that names no claims counts as not contained",
    },
    "duplicate_gold": {
        "error": "two gold items with one id are an error",
        "last": "of two gold items with one id (or, joined by question, with one question) the "
        "last is taken",
    },
    "grid": {
        "warned": "a question that lacks a slot (paraphrase and seed) that others have is warned "
        "of",
        "complete": "a question that lacks a slot (paraphrase and seed) that others have makes the "
        "run not evaluable, unless --allow-missing",
    },
    "errored_hits": {
        "excluded": "a trace with an error is left out of `retrieval.empty`, unless errors are not "
        "looked at (`absent = empty-answer`)",
        "empty": "a trace with an error counts as one without hits in `retrieval.empty`; a missing "
        "one is left out",
    },
    "unit": {
        "question": "a mean is over questions; the slots of a question are averaged first",
        "row": "a mean is over scored traces",
    },
}

SHIP_FIELDS = {
    "answered": "records with an answer that is not a refusal",
    "refused": "records with a refusal",
    "answerable": "items with `answerable: true`",
    "unanswerable": "all other items",
    "precision": "`answer.grounded_precision`",
    "chr": "`citation.hit_rate`",
    "under_refusal": "`refusal.under`",
    "over_refusal": "`refusal.over`",
    "recall@k": "`retrieval.recall_all` at the cut-off",
    "k": "the cut-off: one number, not a list",
    "gates.NAME": "the threshold, as it was written",
    "pass": "whether every gate holds or is waived. It says nothing of missing traces: the exit "
    "code and `verdict` do",
}
