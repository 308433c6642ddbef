"""Citations with places: each place counts, in its document, with the section of the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.model.chunk import Chunk
from ragauge.model.options import Options
from ragauge.model.scores import MetricResult
from ragauge.scoring.section_index import SectionIndex
from ragauge.spans import Span
from tests.conformance.runs import write
from tests.support.cases import cases
from tests.support.corpora import made

Row = dict[str, Any]


def result(
    folder: Path, gold: list[Row], traces: list[Row], metric: str, **options: Any
) -> MetricResult:
    """The result of one metric."""
    scores = score(
        write(folder / "gold.jsonl", gold),
        write(folder / "trace.jsonl", traces),
        profile="all",
        metrics=[metric],
        **options,
    )
    return scores.metrics[metric]


def citing(*citations: Any) -> list[Row]:
    return [{"qid": "q", "hits": ["c1"], "answer": {"claim": "x", "citations": list(citations)}}]


PLACED = [{"qid": "q", "answerable": True, "relevant": [{"doc": "d", "start": 1000, "end": 1200}]}]
WRONG, RIGHT = (
    {"id": "c1", "doc": "d", "offsets": [0, 100]},
    {"id": "c1", "doc": "d", "offsets": [1000, 1200]},
)


@cases("cited", [(WRONG, RIGHT), (RIGHT, WRONG)])
@cases(
    ("metric", "value"),
    [
        ("citation.accuracy", 1.0),
        ("citation.hit_rate_answerable", 1.0),
        ("answer.coverage", 1.0),
        ("citation.recall", 1.0),
        ("citation.precision", 0.5),  # two places are cited, one of them is evidence: 1 / 2
    ],
)
def test_one_chunk_cited_at_two_places_is_two_citations(
    tmp_path: Path, cited: tuple[Row, Row], metric: str, value: float
) -> None:
    assert result(tmp_path, PLACED, citing(*cited), metric).value == value


def test_the_same_place_cited_twice_is_one_citation(tmp_path: Path) -> None:
    # C = {c1 at 0-100, c1 at 1000-1200}, however often each stands there: 1 / 2
    cited = citing(WRONG, RIGHT, WRONG, WRONG)
    assert result(tmp_path, PLACED, cited, "citation.precision").value == 0.5


def test_ids_are_counted_once_where_evidence_is_ids(tmp_path: Path) -> None:
    gold = [{"qid": "q", "relevant": ["c1"]}]
    # C = {c1, c9}: 1 / 2, although c1 is cited at two places
    assert result(tmp_path, gold, citing(WRONG, RIGHT, "c9"), "citation.precision").value == 0.5


UNIONS = [
    # cited source_spans                 within endpoints overlap; gold 1000-1200, window 30
    ([[1000, 1050], [1150, 1200]], (1, 1, 1)),
    ([[1000, 1100], [5000, 5100]], (0, 0, 1)),  # half of the citation is elsewhere
    ([[0, 10], [1000, 1200]], (0, 0, 1)),
    (
        [[975, 990], [1100, 1120]],
        (1, 0, 1),
    ),  # the first lies in the window only: the union overlaps
    ([[975, 990], [1205, 1225]], (0, 1, 1)),  # both lie in the window only
    ([[0, 10], [2000, 2010]], (0, 0, 0)),
]


@cases(("spans", "agrees"), UNIONS)
def test_the_union_of_source_spans_is_what_is_cited(
    tmp_path: Path, spans: list[list[int]], agrees: tuple[int, int, int]
) -> None:
    cited = citing({"id": "c1", "doc": "d", "source_spans": spans})
    values = [
        result(
            tmp_path, PLACED, cited, "citation.accuracy", options=Options(citation_mode=mode)
        ).value
        for mode in ("within", "endpoints", "overlap")
    ]
    assert values == list(agrees)


def test_the_union_of_gold_spans_is_what_must_be_cited(tmp_path: Path) -> None:
    evidence = {"doc": "d", "source_spans": [[1000, 1100], [1150, 1200]]}
    gold = [{"qid": "q", "relevant": [evidence]}]
    # The gap of 50 bytes is closed by the windows of both sides: 970-1230.
    over_the_gap = citing({"id": "c1", "doc": "d", "offsets": [1000, 1200]})
    assert result(tmp_path, gold, over_the_gap, "citation.accuracy").value == 1.0
    beyond = citing({"id": "c1", "doc": "d", "offsets": [1000, 1231]})
    assert result(tmp_path, gold, beyond, "citation.accuracy").value == 0.0


# 0 "# Guide" to 7; Intro 9 to 25; "## Setup" 27 to 35; 37 to 65; "## Use" 67 to 73; 75 to 92
PAGES = {
    "guide.md": "# Guide\n\nAn introduction.\n\n## Setup\n\nInstall it with make install.\n\n"
    "## Use\n\nRun make, or else.\n",
    "other.md": "# Other\n\nNothing here.\n\n## More\n\nNothing here either.\n",
}
ANCHORED = [{"qid": "q", "answerable": True, "anchor_section": "guide.md#S.1.1"}]


@cases(
    ("doc", "span", "value"),
    [
        ("guide.md", [37, 60], 1.0),
        ("guide.md", [27, 66], 1.0),  # with its heading
        ("guide.md", [20, 66], 1.0),  # most of it lies in Setup
        ("guide.md", [9, 40], 0.0),  # most of it lies in the introduction
        ("guide.md", [70, 90], 0.0),
        ("other.md", [30, 45], 0.0),  # section S.1.1 of another document
    ],
)
def test_a_hit_with_a_place_takes_its_section_from_the_corpus(
    tmp_path: Path, doc: str, span: list[int], value: float
) -> None:
    traces = [{"qid": "q", "hits": [{"id": "c1", "doc": doc, "offsets": span}]}]
    corpus = made(tmp_path, PAGES)
    anchored = result(tmp_path, ANCHORED, traces, "retrieval.anchor_hit@5", corpus=corpus)
    assert anchored.value == value


def test_a_citation_with_a_place_takes_its_section_from_the_corpus(tmp_path: Path) -> None:
    cited = citing({"id": "c1", "doc": "guide.md", "offsets": [75, 90]})
    corpus = made(tmp_path, PAGES)
    far = result(tmp_path, ANCHORED, cited, "citation.anchor_distance", corpus=corpus)
    assert far.value == 2.0  # from S.1.2 up to S.1 and down to S.1.1


def test_the_section_that_a_hit_states_is_its_own(tmp_path: Path) -> None:
    hit = {"id": "c1", "doc": "guide.md", "offsets": [75, 90], "section": "S.1.1"}
    traces = [{"qid": "q", "hits": [hit]}]
    corpus = made(tmp_path, PAGES)
    assert result(tmp_path, ANCHORED, traces, "retrieval.anchor_hit@5", corpus=corpus).value == 1.0


def test_of_two_sections_with_as_many_bytes_the_first_counts() -> None:
    chunks = [
        Chunk("d", (Span(0, 10),), "S.1"),
        Chunk("d", (Span(10, 20),), "S.2"),
        Chunk("d", (Span(20, 90),), "S.3"),
    ]
    index = SectionIndex(chunks)
    assert index.section_at(("d",), (Span(5, 15),)) == "S.1"
    assert index.section_at(("d",), (Span(5, 16),)) == "S.2"
    assert index.section_at(("d",), (Span(5, 10), Span(80, 99))) == "S.3"
    assert index.section_at(("d",), (Span(90, 99),)) is None
    assert index.section_at(("e",), (Span(0, 9),)) is None
    assert index.section_at(("d",), (Span(0, 9, "char"),)) is None


def test_a_citation_in_another_document_has_no_distance(tmp_path: Path) -> None:
    gold = [{"qid": "q", "relevant": ["a.md#S.4.2.p.Bk001"], "anchor_section": "a.md#S.4.2"}]
    only = result(tmp_path, gold, citing("b.md#S.4.2.p.Bk001"), "citation.anchor_distance")
    assert (only.value, only.excluded) == (None, {"other-document": 1})
    # 1 edge from a.md#S.4 to its child; the citation of b.md takes no part
    both = citing("b.md#S.4.2.p.Bk001", "a.md#S.4.p.Bk001")
    assert result(tmp_path, gold, both, "citation.anchor_distance").value == 1.0


def test_a_citation_without_a_document_still_has_its_distance(tmp_path: Path) -> None:
    gold = [{"qid": "q", "relevant": ["S.4.2.p.Bk001"], "anchor_section": "S.4.2"}]
    assert result(tmp_path, gold, citing("S.4.3.p.Bk009"), "citation.anchor_distance").value == 2.0


@pytest.mark.parametrize(
    ("decoy", "value"), [("a.md#S.4.3", 1 / 3), ("S.4.3", 2 / 3), ("b.md#S.4.3", 1 / 3)]
)
def test_a_decoy_section_may_name_its_document(tmp_path: Path, decoy: str, value: float) -> None:
    gold = [{"qid": "q", "relevant": ["a.md#S.4.2.p.Bk001"], "decoy_section": decoy}]
    hits = ["a.md#S.4.3.p.Bk001", "b.md#S.4.3.1.p.Bk001", "a.md#S.4.2.p.Bk001"]
    found = result(tmp_path, gold, [{"qid": "q", "hits": hits}], "retrieval.negative@5")
    assert found.value == pytest.approx(value)
