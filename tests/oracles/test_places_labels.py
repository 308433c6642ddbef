"""Labels and causes where gold names chunks, against those where it says where evidence stands."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.labels import LABELS
from ragauge.model.scores import QuestionResult, Scores
from ragauge.model.trace import Answer, Citation, Hit, Trace
from ragauge.scoring.score import score
from ragauge.spans import Span
from tests.oracles.places_oracle import places
from tests.support.effort import seeds

QUESTIONS = 12
DOC, OTHER = "d", "e"


def extent(draw: Random, longest: int) -> tuple[int, int]:
    start = draw.randrange(0, 400, 10)
    return start, start + draw.randrange(10, longest, 10)


def gold_items(draw: Random, number: int) -> tuple[GoldItem, GoldItem]:
    """A question that names one or two chunks, and the same with one place in each of them."""
    chunks = [extent(draw, 300) for _ in range(draw.choice((1, 1, 2)))]
    base = GoldItem(
        qid=f"q{number}",
        question=f"what is {number}?",
        expect=draw.choice(("answer", "answer", "answer", None)),
        claims_any=draw.choice((None, ("blue whale",))),
        negatives=draw.choice(((), ("h2",))),
    )

    def named(extents: list[tuple[int, int]], grain: str) -> GoldItem:
        anchors = [
            Anchor(doc=DOC, spans=(Span(*one),), id=f"c{at}", grain=grain)  # type: ignore[arg-type]
            for at, one in enumerate(extents)
        ]
        return GoldItem(
            **{name: getattr(base, name) for name in base.__struct_fields__ if name != "anchors"},
            anchors=tuple(anchors),
        )

    truth = [draw.choice(places(chunk)) for chunk in chunks]
    return named(chunks, "chunk"), named(truth, "evidence")


def trace(draw: Random, number: int) -> Trace:
    """Hits that are cut in another way, and an answer that cites some of them, or parts of them."""
    hits = tuple(
        Hit(f"h{at}", doc=draw.choice((DOC, DOC, OTHER)), spans=(Span(*extent(draw, 150)),))
        for at in range(draw.randrange(0, 8))
    )
    citations = []
    for hit in draw.sample(hits, k=min(len(hits), draw.choice((0, 1, 1, 2)))):
        (span,) = hit.spans
        half = Span(span.start, (span.start + span.end) // 2)
        own = (half,) if draw.random() < 0.3 and half.length else ()
        citations.append(Citation(hit.id, doc=hit.doc, spans=own))
    answer = Answer(
        claim=draw.choice(("a blue whale", "a fish")),
        citations=tuple(one.id for one in citations),
        cited=tuple(citations),
    )
    asked = f"what is {number}?"
    return Trace(
        qid=f"q{number}", question=asked, hits=hits, answer=draw.choice((answer, answer, None))
    )


def scored(items: list[GoldItem], traces: list[Trace], profile: str) -> Scores:
    return score(items, traces, profile=profile, intervals=False)


def is_held(by_chunk: QuestionResult, truth: QuestionResult) -> bool:
    """Whether what is said of a question by its chunks is right, and no better than the truth."""
    if by_chunk.cause == "place-unknown":
        return LABELS.index(by_chunk.label) >= LABELS.index(truth.label)
    if by_chunk.label == "OK":  # it may be open whether its offsets agree: then nothing is said
        return truth.label == "OK" and by_chunk.cause in (truth.cause, None)
    return (by_chunk.label, by_chunk.cause) == (truth.label, truth.cause)


@pytest.mark.parametrize("seed", seeds(24, step=8))
@pytest.mark.parametrize("profile", ["all", "ship", "canary"])
def test_nothing_is_claimed_that_depends_on_the_place(profile: str, seed: int) -> None:
    seen: Counter[bool] = Counter()
    for number in range(seed, seed + 8):
        draw = Random(number)
        both = [gold_items(draw, at) for at in range(QUESTIONS)]
        traces = [trace(draw, at) for at in range(QUESTIONS)]
        chunks, truth = ([pair[side] for pair in both] for side in (0, 1))
        by_chunk = scored(chunks, traces, profile).questions
        by_place = scored(truth, traces, profile).questions
        for one, other in zip(by_chunk, by_place, strict=True):
            assert is_held(one, other), (number, one, other)
            seen[one.cause == "place-unknown"] += 1
    assert min(seen.values()) > 5
