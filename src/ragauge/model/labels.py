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
ABSENT = ("ERRORED", "MISSING")
"""Labels of what has no result."""

CAUSES: dict[str, str] = {
    "retrieval-miss": "no evidence is among the hits",
    "near-miss-section": "no evidence is among the hits, but something beside it: one of the first "
    "five hits lies in the anchor section, or the citations lie at most two edges from it",
    "negative-preferred": "the evidence is not cited, and a hard negative is among the first five "
    "hits and above it",
    "ranked-too-low": "the evidence is among the hits, but not among the first five",
    "retrieved-not-cited": "the evidence is among the first five hits, and the answer cites none "
    "of it, or refuses",
    "cited-wrong-offsets": "the right block or section is cited, with offsets that agree with no "
    "evidence",
    "out-of-scope-citation": "something is cited that was not retrieved",
    "claim-missing": "cites the evidence in scope, and does not say what it should",
    "place-unknown": "gold names a chunk, and hits are cut otherwise: where in the chunk the "
    "evidence stands decides whether it was found, or cited; the label is the worst that is "
    "possible, and `ragauge gold pin --narrow` says where the evidence stands",
}
"""What a label comes from, in the order in which an answer is made: the first step that failed.
The last one is none: what is to blame, and whether anything is, cannot be told."""

SEARCH_CAUSES = ("retrieval-miss", "near-miss-section", "negative-preferred", "ranked-too-low",
                 "retrieved-not-cited", "out-of-scope-citation")  # fmt: skip
"""Causes that are about hits: a run that records none cannot show them."""
