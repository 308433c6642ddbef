"""BM25: the formula by hand, words of any script, and an order that is always the same."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.bm25 import Bm25Index, words_of
from tests.support.cases import cases


@cases(
    ("text", "words"),
    [
        ("The port, the PORT!", ["the", "port", "the", "port"]),
        ("snake_case x2", ["snake_case", "x2"]),
        ("Straße ﬁle", ["strasse", "file"]),
        ("日本語 v2の本", ["日本", "本語", "v2", "の本"]),
        ("字", ["字"]),
        ("🙂 -- !", []),
    ],
)
def test_words_are_folded_and_unspaced_scripts_are_paired(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_the_score_is_the_sum_over_the_words_of_the_query() -> None:
    """Three texts of 3, 1 and 2 words (mean 2); `port` is in two of them, `host` in one."""
    index = Bm25Index(["port port host", "port", "other text"])

    def part(df: int, tf: int, length: int) -> float:
        idf = math.log(1 + (3 - df + 0.5) / (df + 0.5))
        return idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / 2))

    scores = index.scores("Port, host? port nowhere").tolist()
    assert scores == [
        round(part(2, 2, 3) + part(1, 1, 3), 4),
        round(part(2, 1, 1), 4),
        0.0,
    ]


def test_an_index_over_nothing_is_asked_in_vain() -> None:
    assert Bm25Index([]).scores("port").tolist() == []
    assert Bm25Index(["", "!"]).scores("port").tolist() == [0.0, 0.0]


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join), min_size=1), st.data())
def test_the_order_of_texts_does_not_change_their_scores(
    texts: list[str], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(range(len(texts))))
    one = Bm25Index(texts).scores("a b d")
    other = Bm25Index([texts[at] for at in shuffled]).scores("d b a")
    assert [float(one[at]) for at in shuffled] == other.tolist()
