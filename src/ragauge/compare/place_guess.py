"""Guessed places: where in a chunk the words of the question let its evidence be.

A sentence weighs as the square of the sum of the idf of the question's words that it has, and
shares that among its places. Retrievers that match words return what such a guess calls evidence,
so that it favours them: against one that does not, it was off by up to .47. So it is a column
beside the others, and no gate, kind, p-value or headline knows of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
from msgspec.structs import replace

from ragauge.compare.places import PlacedRuns, PlaceFindings, scores_at
from ragauge.corpus.bm25 import words_of
from ragauge.gold.narrow import Sentence, sentences_of
from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import Selected
from ragauge.model.gold import GoldItem
from ragauge.model.phrases import count
from ragauge.model.scores import Scores
from ragauge.quotes import byte_length
from ragauge.scoring.chunk_records import (
    BY_RANKS,
    QuestionOutcomes,
    outcome_values,
    piece_outcomes,
)
from ragauge.scoring.places import ChunkPlaces


def with_guess(
    placed: PlacedRuns,
    scored: tuple[Scores, Scores],
    items: Sequence[GoldItem],
    selected: Sequence[Selected],
) -> PlacedRuns:
    """Both runs with their scores where the words of the questions let the evidence be.

    `scored` are the runs before they were placed, `items` those of run a. Questions with a chunk
    whose text is not known are left out of the guess.
    """
    findings, values = placed.places, scored[0].per_question
    assert findings is not None and values is not None
    by_key = {(item.qid, item.turn): item for item in items}
    sentences = _Sentences(findings)
    keys = ((values.qids[one.question], values.turns[one.question]) for one in findings.outcomes)
    weights = [
        _outcome_weights(findings, outcomes, by_key[key], sentences)
        for outcomes, key in zip(findings.outcomes, keys, strict=True)
    ]
    without = sum(one is None for one in weights)
    notes = placed.notes
    if without:
        notes += (
            f"{count(without, 'question')} of {len(weights)} whose evidence stands somewhere in a "
            "chunk are left out of the guess: there is no text to guess from, or too many outcomes",
        )
    if without == len(weights):
        return placed._replace(notes=notes)
    by_ranks = [one for one in selected if one.metric.id in BY_RANKS]
    sides = []
    for run, side, own, scores in (
        (findings.a, "a", placed.a, scored[0]),
        (findings.b, "b", placed.b, scored[1]),
    ):
        outcomes_of = [(one.question, getattr(one, side)) for one in findings.outcomes]
        of_outcomes = outcome_values(run, outcomes_of, by_ranks)
        guess = {
            metric: _expected(column, outcomes_of, weights)
            for metric, column in of_outcomes.items()
        }
        assert own.ends is not None
        ends = replace(own.ends, guess=scores_at(scores, findings, guess))
        sides.append(replace(own, ends=ends))
    return placed._replace(a=sides[0], b=sides[1], notes=notes)


def _expected(
    values: Floats,
    outcomes: Sequence[tuple[int, list[list[list[int]]]]],
    weights: Sequence[Sequence[float] | None],
) -> Floats:
    """The mean of the values of each question's outcomes, by their weights; nan without any."""
    means, begin = [], 0
    every = values.tolist()
    for (_, of_question), weighing in zip(outcomes, weights, strict=True):
        end = begin + len(of_question)
        if weighing is None:
            means.append(math.nan)
        else:
            weighed = zip(weighing, every[begin:end], strict=True)
            means.append(math.fsum(weight * value for weight, value in weighed))
        begin = end
    return np.array(means)


class _Sentences:
    """The sentences of all chunks whose evidence may stand anywhere, and how rare words are."""

    def __init__(self, findings: PlaceFindings) -> None:
        self.by_chunk: dict[tuple[int, int], list[Sentence]] = {}
        for question in findings.questions:
            for chunk in findings.a.chunks[question]:
                known = _text(chunk)
                if known is not None:
                    self.by_chunk[question, chunk.number] = sentences_of(*known)
        texts = {one.text for sentences in self.by_chunk.values() for one in sentences}
        self.words = {text: frozenset(words_of(text)) for text in texts}
        counts = Counter(word for words in self.words.values() for word in words)
        self.idf = {
            word: math.log(1 + (len(texts) - number + 0.5) / (number + 0.5))
            for word, number in counts.items()
        }

    def weights(
        self, question: int, chunk: ChunkPlaces, asked: frozenset[str]
    ) -> list[float] | None:
        """The weight of each place of a chunk, 1 together; None where its text is not known."""
        sentences = self.by_chunk.get((question, chunk.number))
        if sentences is None:
            return None
        return place_weights(
            chunk.places, sentences, [self._weight(one, asked) for one in sentences]
        )

    def _weight(self, sentence: Sentence, asked: frozenset[str]) -> float:
        """How much a sentence has to do with a question."""
        idf = (self.idf[word] for word in self.words[sentence.text] & asked)
        return math.fsum(idf) ** 2


def _text(chunk: ChunkPlaces) -> tuple[str, int] | None:
    """The text that the places of a chunk are bytes of, and where it begins; None if unknown."""
    if not chunk.places:
        return None
    if chunk.text is not None:
        return chunk.text, 0
    spans, quote = chunk.anchor.spans, chunk.anchor.quote
    if quote is None or len(spans) != 1 or spans[0].length != byte_length(quote):
        return None
    return quote, spans[0].start


def place_weights(
    places: Sequence[tuple[int, int]], sentences: Sequence[Sentence], weights: Sequence[float]
) -> list[float]:
    """The weights of places: those of their sentences, each shared among its places.

    A place belongs to the sentence that has most of it. Where no sentence weighs anything, or none
    has a place, all places weigh the same.
    """
    owners = []
    for start, end in places:
        shared = [min(end, one.end) - max(start, one.start) for one in sentences]
        most = max(shared, default=0)
        owners.append(shared.index(most) if most > 0 else None)
    counts = Counter(owners)
    total = math.fsum(weights[owner] for owner in counts if owner is not None)
    if total <= 0:
        return [1 / len(places)] * len(places)
    return [0.0 if owner is None else weights[owner] / (counts[owner] * total) for owner in owners]


def _outcome_weights(
    findings: PlaceFindings, outcomes: QuestionOutcomes, item: GoldItem, sentences: _Sentences
) -> list[float] | None:
    """The weight of each outcome of a question; None where a text is missing, or too many are."""
    if outcomes.wide:
        return None
    question = outcomes.question
    asked = frozenset(words_of(item.question or ""))
    each = []
    for pair in zip(findings.a.chunks[question], findings.b.chunks[question], strict=True):
        weights = sentences.weights(question, pair[0], asked)
        of_piece = piece_outcomes(findings.a, findings.b, question, pair, weights).outcomes
        if len(of_piece) == 1:
            each.append([1.0])
        elif weights is None or len(weights) != len(pair[1].places):
            return None
        else:
            each.append(list(of_piece.values()))
    return [math.prod(chosen) for chosen in product(*each)]
