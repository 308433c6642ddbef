"""Labels: the words for what came of a record, from best to worst."""

from __future__ import annotations

MEANINGS: dict[str, str] = {
    "OK": "answered rightly: the profile's precision counts it",
    "REFUSAL_OK": "refused, and the gold item says that it should be",
    "UNLABELLED": "the gold item does not say whether there is an answer",
    "NO_ANSWER": "the trace has hits but no answer of any kind",
    "OVER_REFUSAL": "refused, although there is an answer",
    "CLAIM_MISSING": "cites the evidence in scope, but no gold claim is in what was said",
    "OUT_OF_SCOPE": "cites the evidence, and also something that was not retrieved",
    "ANS_NO_HIT": "answered without citing any of the evidence",
    "HALLUCINATION": "answered, although there is no answer",
    "ERRORED": "the trace carries an error",
    "MISSING": "no trace",
}
"""The labels from best to worst; a question with several slots shows its worst."""

LABELS = tuple(MEANINGS)
GOOD = ("OK", "REFUSAL_OK")
