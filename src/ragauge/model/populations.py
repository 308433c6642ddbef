"""The populations that metrics are means over."""

from __future__ import annotations

import numpy as np

from ragauge.model.metric import Population, Requirement

ALL = Population("all", "every record", ())

SHOWS_MISSING = ALL.also(
    "all",
    "every record; none where only rows of the trace file are scored, as under smoke",
    Requirement("rows-only", lambda b: np.full(b.size, b.shows_missing)),
)

_TRACED = Requirement("missing", lambda b: ~b.missing)
_NO_ERROR = Requirement("errored", lambda b: ~b.errored)
_HAS_ANSWER = Requirement("no-answer", lambda b: b.has_answer)
_LABELLED = Requirement("unlabelled", lambda b: b.answerable | b.unanswerable)
_ANSWERABLE = Requirement("unanswerable", lambda b: b.answerable)
_UNANSWERABLE = Requirement("answerable", lambda b: b.unanswerable)

COUNTED = ALL.also(
    "counted",
    "every record; with --missing exclude only those with a trace and no error",
    Requirement("missing", lambda b: ~b.missing | b.absent_counts),
    Requirement("errored", lambda b: ~b.errored | b.absent_counts),
)
ANSWERABLE_EVIDENCE = COUNTED.also(
    "answerable, with evidence",
    "items to be answered that have evidence; missing and errored traces count as no hits",
    _LABELLED,
    _ANSWERABLE,
    Requirement("no-evidence", lambda b: (b.relevant_count > 0) | b.no_evidence_counts),
)
WITH_ANSWER = ALL.also(
    "with an answer",
    "records whose trace has an answer: a claim, a text, a citations list, or a flag",
    _TRACED,
    _NO_ERROR,
    _HAS_ANSWER,
)
ANSWERED = WITH_ANSWER.also(
    "answered",
    "records with an answer that is not a refusal, and no error",
    Requirement("refused", lambda b: ~b.refused),
)
CITED = WITH_ANSWER.also(
    "cited",
    "records with an answer that cites something",
    Requirement("no-citations", lambda b: b.cited),
)
ANSWERABLE = WITH_ANSWER.also(
    "answerable", "records with an answer, of items to be answered", _LABELLED, _ANSWERABLE
)
UNANSWERABLE = WITH_ANSWER.also(
    "unanswerable", "records with an answer, of items to be refused", _LABELLED, _UNANSWERABLE
)
ANSWERABLE_WITH_CLAIMS = ANSWERABLE.also(
    "answerable, with claims",
    "records with an answer, of items to be answered that name claims",
    Requirement("no-claims", lambda b: b.has_claims),
)
WITH_ECHO = WITH_ANSWER.also(
    "with constraints and echo",
    "records of items with locked constraints whose trace has constraints_echo",
    Requirement("no-constraints", lambda b: b.has_constraints),
    Requirement("no-echo", lambda b: b.has_echo),
)
