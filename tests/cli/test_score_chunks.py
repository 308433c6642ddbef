"""Lists of chunks: --chunks says where ids lie that traces and gold only name."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from ragauge.scoring import score
from tests.support.cases import cases
from tests.support.command import Content, Folder, Outcome, Row, lines_of

# Four chunks of 100 bytes of one document.
CHUNKS: list[Row] = [
    {"id": f"c{n}", "doc": "d.md", "start": 100 * n, "end": 100 * (n + 1)} for n in range(4)
]
METRICS = (
    "retrieval.recall@5,retrieval.precision@5,retrieval.span_recall@5,retrieval.anchor_hit@5,"
    "citation.accuracy,citation.resolved,citation.in_context,citation.hit_rate_answerable"
)


def scored(
    folder: Folder, item: Row, row: Row, *options: str, chunks: Content | None = CHUNKS
) -> Outcome:
    """Score one question, with a list of chunks unless it is None."""
    if chunks is not None:
        folder.write("chunks.jsonl", chunks)
        options = ("--chunks", "chunks.jsonl", *options)
    return folder.score(
        [{"qid": "q", **row}], "--profile", "all", "--metrics", METRICS, "--format", "json",
        *options, gold=[{"qid": "q", "question": "?", "answerable": True, **item}],
    )  # fmt: skip


def values(outcome: Outcome) -> dict[str, Any]:
    return {
        name: result["value"] for name, result in json.loads(outcome.out)["metrics"].items()
    }  # fmt: skip


PLACE: Row = {"relevant": [{"doc": "d.md", "start": 150, "end": 250}]}


def cites(*ids: str, hits: tuple[str, ...] = ()) -> Row:
    return {
        "retrieved_ids": list(hits), "answer_json": {"claim": "x", "citations": list(ids)}
    }  # fmt: skip


def test_hits_get_their_places(folder: Folder) -> None:
    """c1 covers half of 150 to 250, which is enough; c0 nothing."""
    with_list = values(scored(folder, PLACE, {"retrieved_ids": ["c0", "c1"]}))
    assert with_list["retrieval.recall@5"] == 1.0
    assert with_list["retrieval.precision@5"] == 0.5
    assert with_list["retrieval.span_recall@5"] == 0.5
    without = scored(folder, PLACE, {"retrieved_ids": ["c0", "c1"]}, chunks=None)
    assert (without.exit_code, without.codes) == (4, {"nothing-placed"})


def test_places_of_the_trace_go_before_those_of_the_list(folder: Folder) -> None:
    """The hit says 0 to 10 itself."""
    row = {"topk": [{"id": "c1", "doc": "d.md", "offsets": [0, 10]}]}
    assert values(scored(folder, PLACE, row))["retrieval.span_recall@5"] == 0.0


def test_evidence_ids_get_their_places(folder: Folder) -> None:
    """Gold says c1; another chunker's hit covers 60 of its 100 bytes.

    Its last places, 140-180 and 160-200, are covered; its first two, 100-140 and 120-160, to 0 and
    to half. So the evidence may be missed: no number, but its ends.
    """
    row = {"topk": [{"id": "new7", "doc": "d.md", "offsets": [140, 260]}]}
    outcome = scored(folder, {"relevant": ["c1"]}, row)
    found = json.loads(outcome.out)["metrics"]
    for metric in ("retrieval.recall@5", "retrieval.span_recall@5", "retrieval.precision@5"):
        assert (found[metric]["value"], found[metric]["interval"]) == (None, None)
        assert (found[metric]["band"], found[metric]["reason"]) == ([0, 1], "place-unknown")
    without = values(scored(folder, {"relevant": ["c1"]}, row, chunks=None))
    assert (without["retrieval.recall@5"], without["retrieval.span_recall@5"]) == (0.0, None)


def test_an_evidence_id_is_still_found_by_its_id(folder: Folder) -> None:
    """At the rank of the id where no place is known of the hit."""
    found = values(scored(folder, {"relevant": ["c1"]}, {"retrieved_ids": ["x", "c1"]}))
    assert found["retrieval.recall@5"] == 1.0


def test_citations_get_their_places(folder: Folder) -> None:
    """c1 lies at 100 to 200, as the evidence does; c3 is far away."""
    item: Row = {"relevant": [{"doc": "d.md", "start": 100, "end": 200}]}
    near = values(scored(folder, item, cites("c1")))
    assert (near["citation.accuracy"], near["citation.hit_rate_answerable"]) == (1.0, 1.0)
    far = values(scored(folder, item, cites("c3")))
    assert (far["citation.accuracy"], far["citation.hit_rate_answerable"]) == (0.0, 0.0)
    without = values(scored(folder, item, cites("c1"), chunks=None))
    assert (without["citation.accuracy"], without["citation.hit_rate_answerable"]) == (0.0, 0.0)


def test_the_list_may_name_sections(folder: Folder) -> None:
    """A hit of the list lies in the section that the list says."""
    chunks = [{**CHUNKS[1], "section": "S.4.2"}]
    item = {"anchor_section": "S.4"}
    found = values(scored(folder, item, {"retrieved_ids": ["c1"]}, chunks=chunks))
    assert found["retrieval.anchor_hit@5"] == 1.0
    bare = values(scored(folder, item, {"retrieved_ids": ["c1"]}))
    assert bare["retrieval.anchor_hit@5"] == 0.0


def test_ids_that_the_list_lacks_stay_ids(folder: Folder) -> None:
    """Both in gold and in the trace: matched by their names, without a place."""
    found = values(scored(folder, {"relevant": ["other"]}, {"retrieved_ids": ["other"]}))
    assert (found["retrieval.recall@5"], found["retrieval.span_recall@5"]) == (1.0, None)


def test_spans_may_be_several(folder: Folder) -> None:
    """The union counts: 20 + 30 of the 100 bytes from 150 to 250."""
    chunks = [{"id": "c", "doc": "d.md", "source_spans": [[150, 170], [200, 230]]}]
    found = values(scored(folder, PLACE, {"retrieved_ids": ["c"]}, chunks=chunks))
    assert (found["retrieval.span_recall@5"], found["retrieval.recall@5"]) == (0.5, 1.0)


@pytest.mark.parametrize(
    "chunk",
    [
        {"chunk_id": "c", "doc_id": "d.md", "start": 150, "end": 250},
        {"id": "c", "doc_path": "d.md", "span": [150, 250]},
        {"id": "c", "doc": "d.md", "offsets": {"start": 150, "end": 250, "unit": "byte"}},
    ],
)
def test_other_spellings_are_read(folder: Folder, chunk: Row) -> None:
    """As in traces."""
    found = values(scored(folder, PLACE, {"retrieved_ids": ["c"]}, chunks=[chunk]))
    assert found["retrieval.span_recall@5"] == 1.0


def test_an_integer_id_is_its_digits(folder: Folder) -> None:
    """As everywhere."""
    chunks = [{"id": 7, "doc": "d.md", "start": 150, "end": 250}]
    found = values(scored(folder, PLACE, {"retrieved_ids": ["7"]}, chunks=chunks))
    assert found["retrieval.span_recall@5"] == 1.0


# --- citation.resolved ---


@cases(
    ("row", "value"),
    [
        (cites("c1"), 1.0),  # in the list, though not retrieved
        (cites("c1", "c3"), 1.0),
        (cites("c1", "made-up"), 0.0),
        (cites("x", hits=("x", "c0")), 0.0),  # retrieved, but not in the list
        (cites(), 0.0),
    ],
)
def test_citations_are_resolved_against_the_list(folder: Folder, row: Row, value: float) -> None:
    """Every one must be a chunk of the list; an answer without citations is 0."""
    assert values(scored(folder, PLACE, row))["citation.resolved"] == value


def test_without_a_list_the_hits_resolve(folder: Folder) -> None:
    """And retrieval is no help where there is a list."""
    row = cites("x", hits=("x",))
    only = ("--metrics", "citation.resolved")
    assert values(scored(folder, PLACE, row, *only, chunks=None))["citation.resolved"] == 1.0
    assert values(scored(folder, PLACE, row, *only))["citation.resolved"] == 0.0


def test_the_list_does_not_change_what_was_retrieved(folder: Folder) -> None:
    """citation.in_context still asks for the hits."""
    found = values(scored(folder, PLACE, cites("c1", hits=("c2",))))
    assert (found["citation.resolved"], found["citation.in_context"]) == (1.0, 0.0)


def test_a_citation_by_place_is_resolved_against_the_list(folder: Folder) -> None:
    """120 to 160 of d.md is in c1."""
    row = {"answer_json": {"claim": "x", "citations": [{"doc": "d.md", "start": 120, "end": 160}]}}
    assert values(scored(folder, PLACE, row))["citation.resolved"] == 1.0


# --- bad lists ---


def test_a_chunk_that_stands_twice_at_one_place_is_one(folder: Folder) -> None:
    """Equal lines are no contradiction."""
    outcome = scored(folder, PLACE, {"retrieved_ids": ["c1"]}, chunks=[*CHUNKS, CHUNKS[1]])
    assert outcome.exit_code == 0
    assert values(outcome)["retrieval.recall@5"] == 1.0


def test_a_chunk_at_two_places_is_refused(folder: Folder) -> None:
    """With the line of the second."""
    twice = [*CHUNKS, {**CHUNKS[1], "end": 201}]
    outcome = scored(folder, PLACE, {}, chunks=twice)
    assert (outcome.exit_code, outcome.codes) == (3, {"duplicate-qid"})
    assert outcome.problems[0].where == "chunks.jsonl:5"
    assert "`c1`" in outcome.problems[0].message


@cases(
    ("chunk", "code"),
    [
        ({"doc": "d.md", "start": 0, "end": 9}, "missing-field"),
        ({"id": "c", "start": 0, "end": 9}, "bad-field"),
        ({"id": "c", "doc": "d.md"}, "bad-field"),
        ({"id": "c", "doc": "d.md", "start": 0}, "bad-field"),
        ({"id": "c", "doc": "d.md", "start": 9, "end": 0}, "bad-field"),
        ({"id": "c", "doc": "d.md", "start": -1, "end": 9}, "bad-field"),
        ({"id": "c", "doc": "d.md", "start": "0", "end": 9}, "bad-field"),
        ({"id": "c", "doc": "d.md", "start": 0, "end": 9, "unit": "mile"}, "bad-field"),
        ({"id": ["c"], "doc": "d.md", "start": 0, "end": 9}, "bad-field"),
    ],
)
def test_a_chunk_must_say_where_it_lies(folder: Folder, chunk: Row, code: str) -> None:
    """Exit code 3, with file and line."""
    outcome = scored(folder, PLACE, {}, chunks=[CHUNKS[0], chunk])
    assert (outcome.exit_code, outcome.codes) == (3, {code})
    assert outcome.problems[0].where == "chunks.jsonl:2"
    assert outcome.problems[0].hint


def test_all_bad_lines_are_named(folder: Folder) -> None:
    """Up to twenty at once."""
    bad: list[Row] = [{"id": f"c{n}", "doc": "d.md"} for n in range(25)]
    outcome = scored(folder, PLACE, {}, chunks=bad)
    assert len(outcome.problems) == 20
    assert "... and 5 more problems" in outcome.err


def test_a_line_that_is_no_json_is_refused(folder: Folder) -> None:
    """And a list that is not there."""
    outcome = scored(folder, PLACE, {}, chunks=lines_of(CHUNKS[:1]) + b'{"id": \n')
    assert outcome.exit_code == 3
    assert outcome.problems[0].where == "chunks.jsonl:2"
    missing = folder.run("score", "gold.jsonl", "trace.jsonl", "--chunks", "nowhere.jsonl")
    assert missing.codes == {"file-not-found"}


# --- units ---


def test_characters_are_compared_with_characters(folder: Folder) -> None:
    """Gold and list both say so: 50 of 100 are covered."""
    chunks = [{"id": "c", "doc": "d.md", "start": 100, "end": 200, "unit": "char"}]
    item = {**PLACE, "unit": "char"}
    found = values(scored(folder, item, {"retrieved_ids": ["c"]}, chunks=chunks))
    assert found["retrieval.span_recall@5"] == 0.5
    named = [{"id": "c", "doc": "d.md", "start_char": 100, "end_char": 200}]
    found = values(scored(folder, item, {"retrieved_ids": ["c"]}, chunks=named))
    assert found["retrieval.span_recall@5"] == 0.5


@pytest.mark.parametrize(
    ("item", "hits"),
    [
        # The hit's place is in characters, the gold's in bytes.
        (PLACE, ["c"]),
        # The item's two pieces of evidence are in different units.
        ({"relevant": ["c", *PLACE["relevant"]]}, ["x"]),
    ],
)
def test_units_are_not_mixed(folder: Folder, item: Row, hits: list[str]) -> None:
    """Bytes and characters look alike: exit code 3."""
    chunks = [{"id": "c", "doc": "d.md", "start": 100, "end": 200, "unit": "char"}]
    outcome = scored(folder, item, {"retrieved_ids": hits}, chunks=chunks)
    assert (outcome.exit_code, outcome.codes) == (3, {"mixed-units"})


def test_spans_of_one_chunk_have_one_unit(folder: Folder) -> None:
    """A union of bytes and characters means nothing."""
    spans = [{"start": 0, "end": 9}, {"start": 9, "end": 20, "unit": "char"}]
    outcome = scored(folder, PLACE, {}, chunks=[{"id": "c", "doc": "d", "source_spans": spans}])
    assert (outcome.exit_code, outcome.codes) == (3, {"mixed-units"})


# --- where the list is named ---


def test_the_list_may_stand_in_the_configuration(folder: Folder) -> None:
    """Relative to the file; --chunks wins."""
    folder.write("project/list.jsonl", CHUNKS)
    folder.write("project/ragauge.toml", 'chunks = "list.jsonl"\n')
    row = {"retrieved_ids": ["c1"]}
    config = ("--config", "project/ragauge.toml")
    found = values(scored(folder, PLACE, row, *config, chunks=None))
    assert found["retrieval.recall@5"] == 1.0
    other = [{**CHUNKS[1], "start": 900, "end": 950}]
    found = values(scored(folder, PLACE, row, *config, chunks=other))
    assert found["retrieval.recall@5"] == 0.0


def test_the_list_may_be_packed(folder: Folder) -> None:
    """As gold and traces may."""
    folder.write("chunks.jsonl.gz", gzip.compress(lines_of(CHUNKS), mtime=0))
    outcome = scored(
        folder, PLACE, {"retrieved_ids": ["c1"]}, "--chunks", "chunks.jsonl.gz", chunks=None
    )
    assert values(outcome)["retrieval.recall@5"] == 1.0


def test_text_of_an_unknown_document_was_retrieved_all_the_same(folder: Folder) -> None:
    """Half of what came back is gold: leaving the rest out would make the precision 1."""
    places = [{"doc": doc, "start": 0, "end": 50} for doc in ("a.md", "b.md")]
    gold = [{"qid": "q", "question": "?", "relevant": places}]
    hits = [{"id": "x", "doc": "a.md", "offsets": [0, 50]}, {"id": "y", "offsets": [0, 50]}]
    paths = folder.write("g.jsonl", gold), folder.write("t.jsonl", [{"qid": "q", "topk": hits}])
    found = score.score(*paths, profile="all", k=5).metrics
    assert found["retrieval.span_precision@5"].value == 0.5
    assert found["retrieval.span_recall@5"].value == 0.5
