"""The truth lies within the band: gold by chunks against gold by the very bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import rechunked

SOTU = Path(__file__).resolve().parents[3] / "shared" / "samples" / "chroma_sotu"
PAIRS = [("fixed800", "sentences"), ("fixed400", "recursive800"), ("sentences", "fixed400")]


def check(texts: rechunked.TextSet, a: str, b: str) -> None:
    """Every metric of every question whose evidence one chunk holds."""
    cut_a, cut_b = rechunked.chunked(texts, a), rechunked.chunked(texts, b)
    held = rechunked.held_values(texts, cut_a, rechunked.SearchedChunks(texts, cut_b).searched())
    assert held.values["retrieval.hit"] > 20
    assert held.outside.total() == 0, held.outside
    assert held.means_outside == 0
    if a != "sentences":
        assert held.width["retrieval.hit"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_generated_texts(a: str, b: str) -> None:
    check(rechunked.generated(documents=8, questions=40, seed=5), a, b)


@pytest.mark.slow
@pytest.mark.skipif(not SOTU.exists(), reason="the public set is not there")
@pytest.mark.parametrize(("a", "b"), PAIRS[:2])
def test_a_public_set(a: str, b: str) -> None:
    check(rechunked.read_sotu(SOTU), a, b)
