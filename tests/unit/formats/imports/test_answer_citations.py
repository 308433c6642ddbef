"""What an answer cites in its text becomes ids of hits; anything else in brackets does not."""

from __future__ import annotations

from ragauge.formats.hits import hit
from ragauge.formats.imports.answer_citations import cited_in, with_citations
from tests.support.cases import cases

HITS = ["a.md#1", "b.md#2", "c"]


@cases(
    ("answer", "expected"),
    [
        ("It is so. [a.md#1]", ["a.md#1"]),
        ("So [b.md#2], and so [a.md#1, c].", ["b.md#2", "a.md#1", "c"]),
        ("First [1], then [3] and [1].", ["a.md#1", "c"]),
        ("Both [1, 3]; also [2; 3].", ["a.md#1", "c", "b.md#2"]),
        ("As they say[^2].\n\n[^2]: there", ["b.md#2"]),
        ("All of them [1-3], or [2\u20133].", ["a.md#1", "b.md#2", "c"]),
        ("Some [^1, ^3], [1, 2-9].", ["a.md#1", "c", "b.md#2"]),
        ("No [3-1], no [0-0], no [2020-2021].", []),
        (
            "Azure says [doc1][doc3], others [Source: 2] or [sources 1 and 3].",
            ["a.md#1", "c", "b.md#2"],
        ),
        ("A [step 1] and a [version 2] are none.", []),
        ("OpenAI says 【1†source】.", ["a.md#1"]),
        ("OpenAI says 【c†b.md】.", ["c"]),
        ("Out of range [4] and [0].", []),
        ("A [link](https://example.org) and an [aside].", []),
        ("Even [c](https://example.org/c) is a link.", []),
        ("Nothing at all", []),
        ("[" * 5000, []),
    ],
)
def test_brackets_that_name_hits_are_citations(answer: str, expected: list[str]) -> None:
    assert cited_in(answer, list(HITS)) == expected


def test_without_ids_among_the_hits_what_looks_like_one_is_taken() -> None:
    answer = "Hot. [tea.md#1] [sic] [2] [see below] [p1, p2]"
    assert cited_in(answer, [None, None]) == ["tea.md#1", "p1", "p2"]


def test_a_number_means_a_hit_that_has_only_a_text() -> None:
    row = {"answer": "So it is [2].", "hits": [{"text": "one"}, {"text": "two"}]}
    with_citations(row)
    assert row["citations"] == [hit({"text": "two"}, "").id]


def test_a_list_of_citations_is_left_as_it_is() -> None:
    row = {"answer": "x [c]", "citations": [], "hits": [{"id": "c"}]}
    with_citations(row)
    assert row["citations"] == []


def test_citations_written_as_a_list_are_read_where_all_traces_are() -> None:
    row = {"answer": "x\ncitations: [c]", "hits": [{"id": "c"}]}
    with_citations(row)
    assert "citations" not in row
