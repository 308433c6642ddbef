"""Places of a chunk: the worked examples of the rule, and properties against a plain count."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ragauge.scoring.places import NOT_FOUND, places_of, ranks_of_places, runs_of, shared_text
from ragauge.spans import merged


def outcomes(
    piece: tuple[int, int], a: list[tuple[int, int, int]], b: list[tuple[int, int, int]]
) -> Counter[tuple[int, int]]:
    """How many places have which ranks, from 1, 0 for never; hits are (rank, start, end)."""
    places = places_of([piece])
    sides = [
        ranks_of_places(places, [(rank - 1, [(start, end)]) for rank, start, end in hits])
        for hits in (a, b)
    ]
    return Counter((one + 1, other + 1) for one, other in zip(*sides, strict=True))


def test_larger_chunks() -> None:
    """[400, 800) has places at 400, 420, … 740 (below 760), and at 760: 19."""
    assert outcomes((400, 800), [(2, 400, 800)], [(1, 0, 800)]) == {(2, 1): 19}


def test_sentences() -> None:
    """Two sentences of a chunk of 800: 6 places in the first, 5 in the second, 28 in none."""
    found = outcomes((0, 800), [(1, 0, 800)], [(1, 120, 230), (4, 500, 590)])
    assert found == {(1, 1): 6, (1, 4): 5, (1, 0): 28}


def test_half_found_proves_nothing() -> None:
    """The second half holds 20 of 39 places: [380, 420) is covered by half."""
    assert outcomes((0, 800), [(3, 0, 800)], [(2, 400, 800)]) == {(3, 2): 20, (3, 0): 19}


def test_sure_loss() -> None:
    """15 bytes at the end are less than half of any place."""
    assert outcomes((0, 800), [(1, 0, 800)], [(1, 785, 900)]) == {(1, 0): 39}


def test_third_chunking() -> None:
    """At [400, 440) only b covers half; behind it neither does."""
    found = outcomes((0, 800), [(1, 0, 400)], [(1, 0, 420)])
    assert found == {(1, 1): 20, (0, 0): 18, (0, 1): 1}


def test_overlapping_neighbours() -> None:
    """Two neighbours of the piece cover all of it, one half each."""
    found = outcomes((2400, 3200), [(1, 2000, 2800), (2, 2800, 3600)], [(1, 2400, 3200)])
    assert found == {(1, 1): 20, (2, 1): 19}


def test_short_pieces_are_one_place() -> None:
    """40 bytes are one place, 41 are two."""
    assert places_of([(10, 50)]) == [(10, 50)]
    assert places_of([(10, 51)]) == [(10, 50), (11, 51)]
    assert places_of([(0, 80)]) == [(0, 40), (20, 60), (40, 80)]


def test_blank_places_are_left_out() -> None:
    """60 blanks hold no evidence; without the text they may."""
    text = "a" * 40 + " " * 60 + "b" * 20
    assert places_of([(100, 220)], text=text) == [(100, 140), (120, 160), (180, 220)]
    assert len(places_of([(100, 220)])) == 5
    assert len(places_of([(100, 220)], text="another length")) == 5


def test_runs() -> None:
    """Neighbours of one rank are one run."""
    assert runs_of([2, 2, -1, -1, 0]) == [(0, 2), (2, -1), (4, 0)]


def test_shared_text() -> None:
    """A hit inside, a hit around, and hits that overlap an end."""
    piece = "The quick brown fox jumps over the lazy dog and sleeps."
    assert shared_text(piece, f"Before. {piece} After.") == [(0, 55)]
    assert shared_text(piece, "brown fox jumps over the") == [(10, 34)]
    assert shared_text(piece, "Before. The quick brown fox jumps") == [(0, 25)]
    assert shared_text(piece, "the lazy dog and sleeps. After.") == [(31, 55)]
    assert shared_text(piece, "the lazy dog") == []  # 12 bytes are shared by chance
    again = "Same words here again. "
    assert shared_text(again * 2, again.strip()) == [(0, 22), (23, 45)]


@given(
    st.integers(0, 50),
    st.integers(1, 400),
    st.lists(st.tuples(st.integers(0, 400), st.integers(1, 300)), max_size=8),
    st.booleans(),
)
def test_ranks_are_those_of_a_plain_count(
    start: int, length: int, hits: list[tuple[int, int]], single: bool
) -> None:
    """The rank of each place is the first at which half of its bytes are covered."""
    places = places_of([(start, start + length)])
    covers = [(rank, merged([(low, low + size)])) for rank, (low, size) in enumerate(hits)]
    expected = []
    for low, high in places:
        seen: set[int] = set()
        rank_found = NOT_FOUND
        for rank, spans in covers:
            if single:
                seen = set()
            for one, other in spans:
                seen.update(range(max(one, low), min(other, high)))
            if 2 * len(seen) >= high - low:
                rank_found = rank
                break
        expected.append(rank_found)
    assert ranks_of_places(places, covers, single=single) == expected
