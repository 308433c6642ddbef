"""The populations that metrics are over."""

from __future__ import annotations

import numpy as np

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Population, Requirement

ALL = Population("all", "every record", ())

SHOWS_MISSING = ALL.also(
    "all",
    "every record; none where only rows of the trace file are scored, as under smoke",
    Requirement("rows-only", lambda b: np.full(b.size, b.shows_missing)),
)

_TRACED = Requirement("missing", lambda b: ~b.missing)
_NO_ERROR = Requirement("errored", lambda b: ~b.errored)
_NO_ERROR_OR_EMPTY = Requirement("errored", lambda b: ~b.errored | b.errored_is_empty)
_HAS_ANSWER = Requirement("no-answer", lambda b: b.has_answer)
_LABELLED = Requirement("unlabelled", lambda b: b.answerable | b.unanswerable)
_ANSWERABLE = Requirement("unanswerable", lambda b: b.answerable)
_UNANSWERABLE = Requirement("answerable", lambda b: b.unanswerable)
_EVIDENCE = Requirement("no-evidence", lambda b: b.relevant_count > 0)
_HITS = Requirement("no-hits", lambda b: b.hit_count > 0)
_NEGATIVES = Requirement("no-negatives", lambda b: b.has_negatives)
_CITED = Requirement("no-citations", lambda b: b.cited)
_NOT_REFUSED = Requirement("refused", lambda b: ~b.refused)
_SPANS = Requirement("no-spans", lambda b: b.span_bytes > 0)
_JUDGED = Requirement("no-judgements", lambda b: b.has_judgements)
_SECTION = Requirement("no-anchor", lambda b: b.has_section)

TRACED = ALL.also("traced", "every record that has a trace without an error", _TRACED, _NO_ERROR)

SEARCHED = ALL.also(
    "searched",
    "every record that has a trace without an error; under kb also those with an error, which "
    "count as no hits",
    _TRACED,
    _NO_ERROR_OR_EMPTY,
)
COUNTED = ALL.also(
    "counted",
    "every record; with --missing exclude only those with a trace and no error",
    Requirement("missing", lambda b: ~b.missing | b.absent_counts),
    Requirement("errored", lambda b: ~b.errored | b.absent_counts),
)
LABELLED = COUNTED.also(
    "labelled", "items with evidence; missing and errored traces count as no hits", _EVIDENCE
)
LABELLED_WITH_HITS = LABELLED.also(
    "labelled, with hits", "items with evidence whose trace has at least one hit", _HITS
)
WITH_NEGATIVES = LABELLED.also(
    "labelled, with negatives",
    "items with evidence and hard negatives; missing and errored traces count as no hits",
    _NEGATIVES,
)
WITH_NEGATIVES_AND_HITS = WITH_NEGATIVES.also(
    "labelled, with negatives and hits",
    "items with evidence and hard negatives whose trace has at least one hit",
    _HITS,
)
JUDGED = LABELLED.also(
    "labelled, judged",
    "items with evidence and grades or hard negatives; missing and errored traces count as no hits",
    _JUDGED,
)
JUDGED_WITH_HITS = JUDGED.also(
    "labelled, judged, with hits",
    "items with evidence and grades or hard negatives whose trace has at least one hit",
    _HITS,
)
DOC_LABELLED = COUNTED.also(
    "doc-labelled",
    "items that name documents; missing and errored traces count as no hits",
    Requirement("no-docs", lambda b: b.doc_count > 0),
)
GROUPED = COUNTED.also(
    "grouped",
    "items with groups of evidence; missing and errored traces count as no hits",
    Requirement("no-groups", lambda b: b.group_count > 0),
)
ANCHORED = COUNTED.also(
    "anchored",
    "items that name the section of the answer; missing and errored traces count as no hits",
    _SECTION,
)
SPAN_LABELLED = COUNTED.also(
    "span-labelled",
    "items whose evidence has a place in a text; missing and errored traces count as no hits",
    _SPANS,
)
ANSWERABLE_EVIDENCE = COUNTED.also(
    "answerable, with evidence",
    "items to be answered that have evidence; missing and errored traces count as no hits",
    _LABELLED,
    _ANSWERABLE,
    Requirement("no-evidence", lambda b: (b.relevant_count > 0) | b.no_evidence_counts),
)
WITH_ANSWER = TRACED.also(
    "with an answer",
    "records whose trace has an answer: a claim, a text, a citations list, or a flag",
    _HAS_ANSWER,
)
ANSWERED = WITH_ANSWER.also(
    "answered", "records with an answer that is not a refusal, and no error", _NOT_REFUSED
)
ANSWERED_LABELLED = ANSWERED.also(
    "answered and labelled", "answers, of items with evidence", _EVIDENCE
)
GROUNDED = WITH_ANSWER.also(
    "grounded answers",
    "answers that the trace calls grounded or, where it does not say, that are no refusals",
    Requirement("not-grounded", lambda b: b.grounded),
)
GROUNDED_CITED = GROUNDED.also(
    "grounded answers, cited",
    "grounded answers that cite something; under kb also those that cite nothing",
    Requirement("no-citations", lambda b: b.cited | b.nothing_satisfies),
)
CITED = WITH_ANSWER.also("cited", "records with an answer that cites something", _CITED)
CITED_LABELLED = CITED.also(
    "cited and labelled", "answers that cite something, of items with evidence", _EVIDENCE
)
CITED_ANCHORED = CITED.also(
    "anchored, cited",
    "answers that cite something with a section in the anchor's document, of items that name the "
    "section of the answer",
    _SECTION,
    Requirement("other-document", lambda b: ~b.listed_in("other_document")),
    Requirement("no-section", lambda b: b.listed_in("distance")),
)
CITED_SPAN_LABELLED = ANSWERED.also(
    "answered, cited, span-labelled",
    "answers that cite something, of items whose evidence has a place in a text",
    _CITED,
    _SPANS,
)
CITED_WITH_DELTA_S = CITED.also(
    "cited, with ΔS",
    "answers that cite something whose distance to the question is recorded",
    Requirement("no-delta-s", lambda b: b.listed_in("delta_s_cited")),
)
ANSWERABLE = WITH_ANSWER.also(
    "answerable", "records with an answer, of items to be answered", _LABELLED, _ANSWERABLE
)
UNANSWERABLE = WITH_ANSWER.also(
    "unanswerable", "records with an answer, of items to be refused", _LABELLED, _UNANSWERABLE
)
EXPECT_LABELLED = WITH_ANSWER.also(
    "expect-labelled", "records with an answer, of items that say whether there is one", _LABELLED
)
ANSWERABLE_WITH_CLAIMS = ANSWERABLE.also(
    "answerable, with claims",
    "records with an answer, of items to be answered that name claims",
    Requirement("no-claims", lambda b: b.has_claims),
)
CHECKED_STRINGS = WITH_ANSWER.also(
    "with strings",
    "records with an answer (refusals too), of items that name strings; under kb of all items",
    Requirement("no-strings", lambda b: b.has_strings | b.nothing_satisfies),
)
WITH_STRINGS = WITH_ANSWER.also(
    "with strings",
    "records with an answer (refusals too), of items that name strings",
    Requirement("no-strings", lambda b: b.has_strings),
)
ANSWERED_WITH_REFERENCE = ANSWERED.also(
    "answered, with a reference answer",
    "answers, of items that have a reference answer",
    Requirement("no-reference", lambda b: b.has_references),
)
WITH_TOKENS = ALL.also(
    "with tokens",
    "records whose trace says how many tokens it took, with an error or without",
    _TRACED,
    Requirement("no-tokens", lambda b: b.listed_in("tokens")),
)
WITH_COST = ALL.also(
    "with cost",
    "records whose trace says what it cost, with an error or without",
    _TRACED,
    Requirement("no-cost", lambda b: b.listed_in("cost")),
)
WITH_ECHO = WITH_ANSWER.also(
    "with constraints and echo",
    "records of items with locked constraints whose trace has constraints_echo",
    Requirement("no-constraints", lambda b: b.has_constraints),
    Requirement("no-echo", lambda b: b.has_echo),
)


def timed(name: str) -> Population:
    """Traces that record a time."""
    return TRACED.also(
        f"timed ({name})",
        "traces without an error that record this time",
        Requirement("no-time", lambda b: b.listed_in(f"{name}_ms")),
    )


MANY_SLOTS = Population(
    "questions with slots",
    "questions with at least two slots",
    (Requirement("missing", lambda q: q.traced), Requirement("one-slot", lambda q: q.slots > 1)),
)
WITH_LAMBDA = MANY_SLOTS.also(
    "questions with λ",
    "questions with at least two slots that have evidence or are to be refused",
    Requirement("no-evidence", lambda q: q.has_outcome),
    Requirement("no-answer", lambda q: q.could_refuse),
)
WITH_RECORDED_LAMBDA = WITH_LAMBDA.also(
    "questions with both λ",
    "questions with a computed λ whose traces record one too",
    Requirement("not-recorded", lambda q: q.recorded >= 0),
)
_COMPARED = Requirement("not-compared", lambda q: q.compared)

SLOTS_CITING = MANY_SLOTS.also(
    "questions with citations",
    "questions with at least two slots of which one cites something",
    _COMPARED,
    Requirement("no-citations", lambda q: ~np.isnan(q.citation_jaccard)),
)
SLOTS_SPOKEN = MANY_SLOTS.also(
    "questions with answers",
    "questions with at least two slots of which one has an answer",
    Requirement("no-answer", lambda q: q.spoken > 0),
)
SLOTS_ANSWERED = MANY_SLOTS.also(
    "questions answered twice",
    "questions with at least two slots that are answered",
    _COMPARED,
    Requirement("not-answered-twice", lambda q: ~np.isnan(q.claim_distance)),
)
SLOTS_RANKED = MANY_SLOTS.also(
    "questions ranked twice",
    "questions with at least two slots whose first ten hits share two ids",
    _COMPARED,
    Requirement("no-common-hits", lambda q: ~np.isnan(q.rank_tau)),
)


_OF_GOLD = frozenset(
    {
        "unlabelled", "unanswerable", "answerable", "no-evidence", "no-negatives", "no-spans",
        "no-judgements", "no-anchor", "no-docs", "no-groups", "no-claims", "no-strings",
        "no-reference", "no-constraints", "oversampled",
    }
)  # fmt: skip
"""The reasons for which a gold item, or a trace that was kept by a rule of its own, is outside a
population, whatever came of it."""
_SAMPLED = Requirement("oversampled", lambda b: ~b.has(Fact.OVERSAMPLED))
_SHARE = "not those that were kept by a rule of their own, as errors and gold questions are"


def sampled(population: Population) -> Population:
    """The part of a population that says something of all traffic: kept by the rate of all."""
    requires = (_SAMPLED, *population.requires)
    return Population(f"{population.name}, sampled", f"{population.meaning}; {_SHARE}", requires)


LIVE_ALL = sampled(ALL)
LIVE_TRACED = sampled(TRACED)
LIVE_SEARCHED = sampled(SEARCHED)
LIVE_WITH_ANSWER = sampled(WITH_ANSWER)
LIVE_ANSWERED = sampled(ANSWERED)
LIVE_CITED = sampled(CITED)
LIVE_TIMED = sampled(timed("total"))
LIVE_KNOWN = LIVE_SEARCHED.also(
    "with hits, held against the corpus",
    f"traces without an error that have hits and say which the corpus does not have; {_SHARE}",
    _HITS,
    Requirement("no-manifest", lambda b: b.listed_in("unknown_hits")),
)
_SAMPLED_QUESTION = Requirement("oversampled", lambda q: q.oversampled == 0)
LIVE_REPEATED = MANY_SLOTS.also(
    "questions asked again",
    "questions with at least two traces, none of them kept by a rule of its own",
    _SAMPLED_QUESTION,
    _COMPARED,
)
LIVE_RANKED = SLOTS_RANKED.also(
    "questions ranked twice, sampled",
    "questions with at least two traces whose first ten hits share two ids, none of them kept by a "
    "rule of its own",
    _SAMPLED_QUESTION,
)


def possible_members(population: Population, batch: Batch) -> Bools:
    """The records that would be in a population if their traces were as it asks for."""
    possible = np.ones(batch.size, np.bool_)
    for requirement in population.requires:
        if requirement.reason in _OF_GOLD:
            possible &= requirement.holds(batch)
    return possible


def excludes_errors(population: Population, *, errored_is_empty: bool) -> bool:
    """Whether traces with an error are outside a population, and not members that found nothing."""
    # Who requires hits excludes them too: a trace with an error has none.
    excluding = (_NO_ERROR, _HITS) if errored_is_empty else (_NO_ERROR, _HITS, _NO_ERROR_OR_EMPTY)
    return any(requirement in population.requires for requirement in excluding)
