"""Texts that are known: of hits, citations and evidence, by id or by place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragauge.model.chunk import Chunk
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.trace import Citation, Hit, Trace
from ragauge.scoring.known_texts import ChunkPlace, TextFinder, TextsById
from ragauge.spans import Span
from tests.support.corpora import FIRST, NOTE, looked_up

APPLES, BANANAS = "Äpfel are red.", "Bananas are not."  # bytes 9 to 24 and 25 to 41 of the guide


@pytest.fixture
def texts(tmp_path: Path) -> TextFinder:
    chunks = {"c1": Chunk("d", (), text="a chunk"), NOTE: Chunk("sub/notes.txt", (Span(0, 8),))}
    return TextFinder(chunks, looked_up(tmp_path))


def anchor(start: int, end: int, unit: str = "byte", **more: Any) -> Anchor:
    return Anchor(doc="guide.md", spans=(Span(start, end, unit),), **more)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (Span(9, 24), APPLES),
        (Span(9, 23, "char"), APPLES),  # Ä is one character
        (Span(3, 4, "line"), f"{APPLES} {BANANAS}\n"),
        (Span(9, 90), None),  # the guide has 89 bytes
        (Span(9, 90, "char"), None),
        (Span(0, 4, "token"), None),
    ],
)
def test_a_place_has_the_text_of_the_corpus(
    texts: TextFinder, span: Span, text: str | None
) -> None:
    assert texts.at(ChunkPlace(("guide.md",), None, (span,))) == text


def test_a_document_may_have_two_names(texts: TextFinder) -> None:
    hit = Hit("x", doc="other", path="guide.md", spans=(Span(9, 24),))
    assert texts.of_hit(hit) == APPLES
    assert texts.at(ChunkPlace(("other",), None, hit.spans)) is None
    # An id of a known grammar names its document too.
    assert texts.of_hit(Hit("guide.md#S.1.p.Bk009", spans=(Span(9, 24),))) == APPLES


@pytest.mark.parametrize(
    ("cited", "text"),
    [
        (Citation("c1"), "a chunk"),
        (Citation("c1", doc="guide.md", spans=(Span(9, 24),)), "a chunk"),  # its id is a chunk's
        (Citation("mine", doc="guide.md", spans=(Span(25, 41),)), BANANAS),
        (Citation("mine", doc="guide.md"), None),
        (Citation("mine", doc="gone.md", spans=(Span(25, 41),)), None),
    ],
)
def test_a_citation_has_the_text_of_its_chunk_or_of_its_place(
    texts: TextFinder, cited: Citation, text: str | None
) -> None:
    assert texts.of_citation(cited) == text


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (GoldItem(qid="A", relevant=("c1", "gone")), ["a chunk", None]),
        (GoldItem(qid="A", anchors=(anchor(9, 24),)), [APPLES]),
        (GoldItem(qid="A", anchors=(anchor(9, 24, quote="said"),)), ["said"]),
        (GoldItem(qid="A", anchors=(anchor(9, 99, id="c1"),)), ["a chunk"]),
        (GoldItem(qid="A", anchors=(anchor(9, 24, id="c1"),)), [APPLES]),
        (GoldItem(qid="A", grades={"c1": 2, "gone": 0}), ["a chunk"]),
        (GoldItem(qid="A", groups=(("c1", anchor(25, 41)), ("gone",))), ["a chunk", None, BANANAS]),
        # Known places are no evidence of their own, and stand in where there is no other text.
        (GoldItem(qid="A", relevant=("c1",), places=(anchor(9, 24),)), ["a chunk"]),
        (GoldItem(qid="A", relevant=("gone",), places=(anchor(9, 24),)), [APPLES]),
        (GoldItem(qid="A"), []),
    ],
    ids=["ids", "place", "quote", "lost place", "place first", "grades", "groups", "known",
         "stand-in", "none"],
)  # fmt: skip
def test_evidence_has_a_text_however_it_is_named(
    texts: TextFinder, item: GoldItem, found: list[str | None]
) -> None:
    pool = TextsById(texts, [])
    assert sorted(pool.evidence(item), key=str) == sorted(found, key=str)


def test_hits_lend_their_texts(texts: TextFinder) -> None:
    """The first hit of an id that has a text gives it, with its place."""
    hits = (Hit("h", text=" "), Hit("h", text="said", doc="guide.md", spans=(Span(3, 4, "line"),)))
    pool = TextsById(texts, [Trace(qid="A", hits=hits)])
    assert pool.of("h") == "said"
    assert pool.of_hit(hits[0]) == "said"
    assert pool.spot("h") == ChunkPlace(("guide.md",), None, (Span(9, 42),))
    assert pool.spot(FIRST) == ChunkPlace(("guide.md",), "S.1", ())
    assert pool.spot(NOTE) == ChunkPlace(("sub/notes.txt",), "S.0", (Span(0, 8),))
    assert pool.names() == sorted(["h", "c1", NOTE])
