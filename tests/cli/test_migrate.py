"""`corpus diff`, `corpus redirect`, `gold migrate` and `traces migrate`, as they are called."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragauge.corpus.manifest import read_corpus
from ragauge.files import ranges
from ragauge.formats.load import load_gold
from ragauge.gold.migrate.files import migrate_file
from tests.support.command import Folder, Outcome, Row
from tests.support.corpus_versions import corpus_of

# S.1.p.Bk001 stays; in S.1.1 the first block is split, the second and the third become one, and
# the fourth is gone; S.1.2 becomes S.1.3; o.md becomes p.md.
OLD = """\
# Guide

Read this first, because it tells where things are and how they are called.

## Setup

Install the package with pip. It needs Python 3.11 and a compiler for the rest.

The file holds the settings. It is read when the server starts.

Each setting has a name and a value. The names are those of the manual.

Nobody knows what this paragraph was for, and so it was taken out one day.

## Use

Start the server with one command. It listens on the port that the settings name.
"""
NEW = """\
# Guide

Read this first, because it tells where things are and how they are called.

## Setup

Install the package with pip.

### Needs

It needs Python 3.11 and a compiler for the rest.

## Settings

The file holds the settings. It is read when the server starts.
Each setting has a name and a value. The names are those of the manual.

## Use

Start the server with one command. It listens to the port that the settings name.
"""
OTHER = "# Other\n\nA page of another kind, about things that have no place in the guide.\n"
FIRST, SPLIT, ONE, TWO, GONE, LAST = (
    "g.md#S.1.p.Bk001", "g.md#S.1.1.p.Bk001", "g.md#S.1.1.p.Bk002", "g.md#S.1.1.p.Bk003",
    "g.md#S.1.1.p.Bk004", "g.md#S.1.2.p.Bk001",
)  # fmt: skip
PARTS = ["g.md#S.1.1.p.Bk001", "g.md#S.1.1.1.p.Bk001"]
BOTH, LAST_NOW = "g.md#S.1.2.p.Bk001", "g.md#S.1.3.p.Bk001"
MOVED, MOVED_NOW = "o.md#S.1.p.Bk001", "p.md#S.1.p.Bk001"


@pytest.fixture
def moved(folder: Folder) -> Folder:
    """A folder with both versions and the map between them."""
    corpus_of({"g.md": OLD, "o.md": OTHER}, folder.path / "old")
    corpus_of({"g.md": NEW, "p.md": OTHER}, folder.path / "new")
    assert folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl").exit_code == 0
    return folder


def run(folder: Folder, what: str, rows: list[Row], *options: str) -> Outcome:
    folder.write("in.jsonl", rows)
    return folder.run(
        what, "migrate", "in.jsonl", "--map", "map.jsonl", "-o", "out.jsonl", *options
    )


def out(folder: Folder) -> list[Row]:
    return [json.loads(line) for line in (folder.path / "out.jsonl").read_text().splitlines()]


def revision(folder: Folder, name: str = "new") -> str:
    return read_corpus(folder.path / name).manifest.revision


def gold(folder: Folder, row: Row, *options: str) -> Row:
    """A gold row as it is in the new corpus."""
    done = run(folder, "gold", [{"qid": "q", **row}], *options)
    assert done.exit_code == 0, done.err
    (written,) = out(folder)
    assert written.pop("qid") == "q"
    stamp = written.pop("migrated_to", None)
    assert stamp == (None if written == row else revision(folder))
    return written


def trace(folder: Folder, row: Row, *options: str) -> Row:
    """A trace as it is in the new corpus."""
    done = run(folder, "traces", [row], *options)
    assert done.exit_code == 0, done.err
    (written,) = out(folder)
    return written


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def span(text: str, part: str) -> dict[str, int]:
    assert text.count(part) == 1
    return {"start": text.index(part), "end": text.index(part) + len(part)}


# --- corpus diff ---


def test_the_figures_are_printed(moved: Folder) -> None:
    done = moved.run("corpus", "diff", "old", "new")
    revisions = [read_corpus(name).manifest.revision for name in ("old", "new")]
    assert done.exit_code == 0
    assert done.out.splitlines() == [
        f"from revision {revisions[0]} to {revisions[1]}",
        "documents      2  (edit 1, move 1)",
        "sections       4  (shift 1, edit 1, split 1, move 1)",
        "blocks         7  (same 1, shift 1, split 1, merge 2, move 1, unmapped 1)",
        "coverage       0.8571  target >= 0.995: missed",  # 6 of 7
        "duplicate ids  0  target 0: met",
        # `on` is 2 of 67 bytes without blanks in a block of 81: 81 x 2/67 of 438 bytes with a place
        "drift          0.0055  target <= 0.005: missed",
        "to look at     1",
        "  0.0000 unmapped g.md#S.1.1.p.Bk004 -> nowhere",
    ]


def test_a_missed_target_fails_where_that_was_asked_for(moved: Folder) -> None:
    assert moved.run("corpus", "diff", "old", "new", "--fail-on-targets").exit_code == 1
    assert moved.run("corpus", "diff", "old", "old", "--fail-on-targets").exit_code == 0


def test_the_map_can_be_printed_as_json(moved: Folder) -> None:
    done = moved.run("corpus", "diff", "old", "new", "--format", "json", "--review", "look.jsonl")
    document = json.loads(done.out)
    assert document["schema"] == "ragauge.migration/1"
    assert document["counts"]["block"]["merge"] == 2
    assert document["figures"]["review"] == 1
    lines = (moved.path / "look.jsonl").read_text().splitlines()
    assert document["review"] == [json.loads(line) for line in lines]
    last = document["review"][-1]
    assert (last["kind"], last["old"]["id"]) == ("unmapped", GONE)


def test_only_the_first_rows_to_look_at_are_shown(folder: Folder) -> None:
    text = "".join(f"Paragraph number {n} of those that will be gone.\n\n" for n in range(30))
    corpus_of({"a.md": text}, folder.path / "old")
    corpus_of({"a.md": "Nothing is here.\n"}, folder.path / "new")
    done = folder.run("corpus", "diff", "old", "new", "--review", "look.jsonl")
    assert "to look at     32" in done.out  # 30 blocks, their section and their document
    assert done.out.count(" unmapped ") == 20
    assert done.out.endswith("  ... and 12 more; --review FILE has them all\n")
    assert (folder.path / "look.jsonl").read_text().count("\n") == 32


def test_a_corpus_without_blocks_has_nothing_to_map(folder: Folder) -> None:
    corpus_of({"a.md": ""}, folder.path / "old")
    corpus_of({"a.md": OTHER}, folder.path / "new")
    done = folder.run("corpus", "diff", "old", "new")
    assert (done.exit_code, done.codes) == (5, {"nothing-measured"})


# --- corpus redirect ---


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (SPLIT, [f"{SPLIT}  split, confidence 1.0000",
                 f"-> {PARTS[0]}  g.md bytes 96 to 125", f"-> {PARTS[1]}  g.md bytes 138 to 187"]),
        ("g.md#S.1.2", ["g.md#S.1.2  shift, confidence 0.9722",
                        "-> g.md#S.1.3  g.md bytes 339 to 429"]),
        ("o.md", ["o.md  move, confidence 1.0000", "-> p.md  p.md bytes 0 to 79"]),
        ("g.md:96-125", ["g.md:96-125  same text, confidence 1.0000",
                         f"-> {PARTS[0]}  g.md bytes 96 to 125"]),
    ],
)  # fmt: skip
def test_a_redirect_is_told(moved: Folder, name: str, said: list[str]) -> None:
    done = moved.run("corpus", "redirect", "map.jsonl", name)
    assert done.exit_code == 0, done.err
    assert done.out.splitlines() == said


def test_a_redirect_is_told_as_json(moved: Folder) -> None:
    done = moved.run("corpus", "redirect", "map.jsonl", ONE, "--format", "json")
    row = json.loads(done.out)
    assert (row["kind"], row["new"][0]["id"], row["confidence"]) == ("merge", BOTH, 1.0)
    place = span(OLD, "listens on the port")
    words = ("--span", "g.md", str(place["start"]), str(place["end"]))
    row = json.loads(moved.run("corpus", "redirect", "map.jsonl", *words, "--format", "json").out)
    assert row["kind"] == "changed text"
    (only,) = row["new"]
    assert NEW[slice(*only["span"])] == "listens to the port"
    assert only["block"] == LAST_NOW


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([GONE], 3, f"the block `{GONE}` has no place in the new corpus"),
        (["g.md#S.9.p.Bk001"], 3, "no row of the map speaks of `g.md#S.9.p.Bk001`"),
        (["x.md:1-9"], 3, "no row of the map speaks of the document `x.md`"),
        (["g.md:90-90"], 2, "START must be before END"),
        ([], 2, "one only"),
        ([ONE, "--span", "g.md", "1", "2"], 2, "one only"),
    ],
)
def test_what_has_no_place_is_an_error(
    moved: Folder, arguments: list[str], code: int, message: str
) -> None:
    done = moved.run("corpus", "redirect", "map.jsonl", *arguments)
    assert (done.exit_code, done.out) == (code, "")
    assert message in done.err
    assert done.codes == {"unmapped" if code == 3 else "usage"}


# --- gold migrate ---


@pytest.mark.parametrize("name", ["relevant", "gold_ids", "gold_citations", "expected_chunk_ids"])
def test_ids_are_redirected_under_any_name(moved: Folder, name: str) -> None:
    """Split into all parts, two that became one once, and foreign ids as they are."""
    row = {name: [FIRST, SPLIT, ONE, TWO, MOVED, "p1#2", 7]}
    assert gold(moved, row) == {name: [FIRST, *PARTS, BOTH, MOVED_NOW, "p1#2", 7]}


def test_what_was_done_is_told(moved: Folder) -> None:
    done = run(moved, "gold", [{"qid": "q", "relevant": [FIRST, SPLIT, ONE, TWO, MOVED, "p1#2"]},
                               {"qid": "r", "relevant": [FIRST]}])  # fmt: skip
    assert done.out.splitlines() == [
        "wrote out.jsonl",
        "rows                     2, changed 1",
        "ids followed             6  (same 2, split 1, merge 2, move 1)",
        "ids of no old block      1",
    ]
    assert done.err == ""


def test_groups_grades_and_negatives_are_redirected(moved: Folder) -> None:
    """Any part of a split block will do in a group; of two grades the higher one counts."""
    row = gold(
        moved,
        {"groups": [[SPLIT, "p1#2"], [LAST]], "grades": {SPLIT: 2, ONE: 1, TWO: 3},
         "negatives": [MOVED, ONE]},
    )  # fmt: skip
    assert row == {
        "groups": [[*PARTS, "p1#2"], [LAST_NOW]],
        "grades": {PARTS[0]: 2, PARTS[1]: 2, BOTH: 3},
        "negatives": [MOVED_NOW, BOTH],
    }


def test_documents_and_sections_are_redirected(moved: Folder) -> None:
    """`S.1.2` is a section of g.md, which the evidence speaks of; o.md has no such section."""
    assert gold(moved, {"expected_doc_ids": ["o.md", "g.md", "x.md"]}) == {
        "expected_doc_ids": ["p.md", "g.md", "x.md"]
    }
    assert gold(moved, {"expected_doc": "o.md"}) == {"expected_doc": "p.md"}
    assert gold(moved, {"anchor_section": "g.md#S.1.2"}) == {"anchor_section": "g.md#S.1.3"}
    assert gold(moved, {"anchor_section": "o.md#S.1"}) == {"anchor_section": "p.md#S.1"}
    assert gold(moved, {"relevant": [LAST], "target_section": "1.2"}) == {
        "relevant": [LAST_NOW], "target_section": "1.3",
    }  # fmt: skip
    # Of S.1.1 74 of 295 bytes are gone, which leaves 0.75; but it has its heading.
    assert gold(moved, {"anchor_section": "g.md#S.1.1"}) == {"anchor_section": "g.md#S.1.1"}
    assert gold(moved, {"anchor_section": "policies/keys"}) == {"anchor_section": "policies/keys"}


def test_a_place_gets_its_new_bytes(moved: Folder) -> None:
    quote = "It needs Python 3.11"
    hashes = {name: read_corpus(name).documents[0].hash for name in ("old", "new")}
    place: Row = {
        "doc": "g.md", **span(OLD, quote), "quote": quote, "doc_hash": hashes["old"],
        "id": SPLIT, "section": "S.1.1", "my": ["own", 1.50],
    }  # fmt: skip
    assert gold(moved, {"relevant": [place]}) == {
        "relevant": [{
            "doc": "g.md", **span(NEW, quote), "quote": quote, "doc_hash": hashes["new"],
            "id": PARTS[1], "section": "S.1.1.1", "my": ["own", 1.5],
        }]
    }  # fmt: skip


def test_a_place_that_was_pinned_to_the_new_text_stays(moved: Folder) -> None:
    quote = "It needs Python 3.11"
    new = read_corpus("new").documents[0].hash
    row = {"gold_spans": [{"doc": "g.md", **span(NEW, quote), "doc_hash": new}]}
    assert gold(moved, row) == row


@pytest.mark.parametrize("form", ["start", "span", "offsets", "inside", "source_spans", "bytes"])
def test_offsets_keep_their_form(moved: Folder, form: str) -> None:
    def written(text: str) -> Row:
        start, end = span(text, "Start the server").values()
        forms: dict[str, Row] = {
            "start": {"start": start, "end": end},
            "span": {"span": [start, end]},
            "offsets": {"offsets": [start, end]},
            "inside": {"span": {"start": start, "end": end, "unit": "byte"}},
            "source_spans": {"source_spans": [{"start": start, "end": end}]},
            "bytes": {"start_byte": start, "end_byte": end},
        }
        return {"doc": "g.md", **forms[form]}

    assert gold(moved, {"relevant": [written(OLD)]}) == {"relevant": [written(NEW)]}


def test_a_place_that_was_torn_apart_has_several_spans(moved: Folder) -> None:
    row = gold(moved, {"relevant": [{"doc": "g.md", **span(OLD, "with pip. It needs Python")}]})
    parts = [list(span(NEW, part).values()) for part in ("with pip.", "It needs Python")]
    assert row == {"relevant": [{"doc": "g.md", "source_spans": parts}]}
    quoted = {"doc": "g.md", **span(OLD, "with pip. It needs"), "quote": "with pip. It needs"}
    (entry,) = gold(moved, {"relevant": [quoted]}, "--corpus", "new")["relevant"]
    assert entry["quote_hash"] == digest("with pip.It needs")
    assert "quote" not in entry


def test_a_quote_whose_text_changed_is_put_aside_or_cut_anew(moved: Folder) -> None:
    quote = "It listens on the port that the settings name."
    place = {"doc": "g.md", **span(OLD, quote), "quote": quote}
    now = "It listens to the port that the settings name."
    (entry,) = gold(moved, {"relevant": [place]})["relevant"]
    assert entry == {"doc": "g.md", **span(NEW, now), "quote_prev": quote}
    (entry,) = gold(moved, {"relevant": [place]}, "--corpus", "new")["relevant"]
    assert entry == {"doc": "g.md", **span(NEW, now), "quote": now}
    hashed = {"doc": "g.md", **span(OLD, quote), "quote_hash": digest(quote)}
    (entry,) = gold(moved, {"relevant": [hashed]}, "--corpus", "new")["relevant"]
    assert entry == {"doc": "g.md", **span(NEW, now), "quote_hash": digest(now)}
    done = run(moved, "gold", [{"qid": "q", "relevant": [place]}], "--corpus", "old")
    assert (done.exit_code, done.codes) == (3, {"unmapped"})


UNMAPPED: list[tuple[Row, str]] = [
    ({"relevant": [GONE]}, f"`relevant[0]`: `{GONE}` has no place in the new corpus"),
    ({"groups": [[FIRST], [FIRST, GONE]]}, "`groups[1][1]`"),
    ({"grades": {GONE: 1}}, f"`grades.{GONE}`"),
    ({"relevant": [{"id": GONE}]}, "`relevant[0].id`"),
    ({"relevant": [{"doc": "g.md", **span(OLD, "was taken out one day")}]}, "0.00 of the text"),
    ({"relevant": ["g.md#S.7.p.Bk001"]}, "no block of the old corpus has the id"),
    ({"relevant": [f"{SPLIT}a"]}, "is a part of a block that did not stay as it was"),
    ({"anchor_section": "g.md#S.9"}, "the old corpus has no section `g.md#S.9`"),
    ({"relevant": [{"doc": "g.md", "start": 3, "end": 9, "unit": "char"}]}, "write bytes"),
    ({"relevant": [{"doc": "g.md", "start": 96, "end": 99, "doc_hash": "0" * 64}]}, "`doc_hash`"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "message"), UNMAPPED, ids=lambda each: str(each)[:40])
def test_what_has_no_new_place_stops_everything(moved: Folder, row: Row, message: str) -> None:
    done = run(moved, "gold", [{"qid": "a", "relevant": [FIRST]}, {"qid": "b", **row}])
    assert (done.exit_code, done.out) == (3, "")
    (problem,) = done.problems
    assert (problem.code, problem.where, problem.about) == ("unmapped", "in.jsonl:2", "qid b")
    assert message in problem.message
    assert not (moved.path / "out.jsonl").exists()
    assert sorted(path.name for path in moved.path.iterdir()) == [
        "in.jsonl", "map.jsonl", "new", "old",
    ]  # fmt: skip


@pytest.mark.parametrize(("row", "message"), UNMAPPED, ids=lambda each: str(each)[:40])
def test_what_has_no_new_place_is_kept_where_that_was_asked_for(
    moved: Folder, row: Row, message: str
) -> None:
    done = run(moved, "gold", [{"qid": "b", **row}], "--on-unmapped", "keep")
    assert done.exit_code == 0
    assert out(moved) == [{"qid": "b", **row}]
    assert "unmapped, kept           1" in done.out
    assert done.err.startswith("unmapped: in.jsonl:1  (qid b): ")
    assert message in done.err


def test_what_has_no_new_place_is_dropped_where_that_was_asked_for(moved: Folder) -> None:
    row = {"qid": "a", "relevant": [GONE, LAST], "grades": {GONE: 1, LAST: 2}, "negatives": [GONE]}
    done = run(moved, "gold", [row], "--on-unmapped", "drop")
    assert done.exit_code == 0, done.err
    assert out(moved) == [
        {"qid": "a", "relevant": [LAST_NOW], "grades": {LAST_NOW: 2}, "negatives": [],
         "migrated_to": revision(moved)},
    ]  # fmt: skip
    assert "unmapped, dropped        3" in done.out


# --- drafts ---

# Each dialect as its source writes it, all of its evidence in a paragraph that was taken out. An
# empty list would be read as a refusal (kb), or as "right without a citation" (ship).
LOST: dict[str, Row] = {
    "native": {"qid": "q", "question": "?", "answerable": True, "relevant": [GONE]},
    "ship": {"qid": "q", "question": "?", "answerable": True, "gold_citations": [GONE],
             "gold_claim_substr": ["paragraph"]},
    "smoke": {"qid": "q", "q": "?", "gold_ids": [GONE], "gold_claim": "taken out"},
    "canary": {"qid": "q", "paraphrases": ["?", "??", "???"], "relevant": [GONE],
               "anchor_section": "g.md#S.1"},
    "kb": {"id": "q", "query": "?", "expected_chunk_ids": [GONE]},
}  # fmt: skip


@pytest.mark.parametrize("name", ["out.jsonl", "out.json", "out.yaml"])
@pytest.mark.parametrize("dialect", LOST)
def test_an_item_without_evidence_is_a_draft_and_never_an_empty_list(
    moved: Folder, dialect: str, name: str
) -> None:
    row = LOST[dialect]
    (field,) = row.keys() & {"relevant", "gold_citations", "gold_ids", "expected_chunk_ids"}
    moved.write("in.jsonl", [row])
    done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", name,
                     "--on-unmapped", "drop")  # fmt: skip
    assert done.exit_code == 4
    assert "items now drafts         1, to be looked at by a person\n" in done.out
    assert f"draft: in.jsonl:1  (qid q): no evidence is left in `{field}`\n" in done.err
    text = (moved.path / name).read_text()
    written = yaml.safe_load(text)
    [written] = written if isinstance(written, list) else [written]
    assert written == {**row, field: None, f"{field}_prev": [GONE], "draft": True,
                       "migrated_to": revision(moved)}  # fmt: skip
    validated = moved.run("validate", name)
    assert (validated.exit_code, validated.codes) == (3, {"draft-item"})
    assert f"dialect {dialect}" in validated.out  # the name of the field is still there
    # Whoever removes the mark and nothing else has an item without evidence, and no refusal.
    del written["draft"]
    moved.write("confirmed.jsonl", [written])
    before = load_gold(moved.write("before.jsonl", [row])).items[0]
    after = load_gold(moved.path / "confirmed.jsonl").items[0]
    assert (after.expect, after.relevant) == (before.expect, ())


@pytest.mark.parametrize("form", [["o.md"], "o.md"])
def test_a_document_that_is_gone_makes_no_refusal(folder: Folder, form: Any) -> None:
    """`expected_doc_ids: []` means that the question is to be refused."""
    corpus_of({"g.md": OLD, "o.md": OTHER}, folder.path / "old")
    corpus_of({"g.md": OLD}, folder.path / "new")
    folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl")
    row = {"id": "q", "query": "Which page?", "expected_doc_ids": form}
    done = run(folder, "gold", [row, {**row, "id": "r", "expected_doc_ids": []}],
               "--on-unmapped", "drop")  # fmt: skip
    assert done.exit_code == 4
    assert out(folder) == [
        {**row, "expected_doc_ids": None, "expected_doc_ids_prev": form, "draft": True,
         "migrated_to": revision(folder)},
        {**row, "id": "r", "expected_doc_ids": []},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "left"),
    [
        # One of two groups is gone: what is left would be a smaller demand.
        ({"groups": [[GONE], [FIRST]]}, {"groups": [[FIRST]], "groups_prev": [[GONE], [FIRST]]}),
        ({"grades": {GONE: 1}}, {"grades": None, "grades_prev": {GONE: 1}}),
        # What is left is judged not relevant.
        ({"grades": {GONE: 1, FIRST: 0}},
         {"grades": {FIRST: 0}, "grades_prev": {GONE: 1, FIRST: 0}}),
        ({"anchor_section": "g.md#S.9"},
         {"anchor_section": None, "anchor_section_prev": "g.md#S.9"}),
    ],
)  # fmt: skip
def test_other_evidence_that_is_gone_makes_a_draft(moved: Folder, row: Row, left: Row) -> None:
    done = run(moved, "gold", [{"qid": "q", **row}], "--on-unmapped", "drop")
    assert done.exit_code == 4
    assert out(moved) == [{"qid": "q", **left, "draft": True, "migrated_to": revision(moved)}]


def test_a_kept_id_that_is_of_other_text_now_makes_a_draft(moved: Folder) -> None:
    """Of what is kept, `S.1.2.p.Bk001` is the id of another block in the new corpus."""
    rows: list[Row] = [{"qid": "a", "relevant": [LAST]}, {"qid": "b", "relevant": [GONE]}]
    done = run(moved, "gold", rows, "--on-unmapped", "keep", "--min-confidence", "0.98")
    assert done.exit_code == 4
    assert out(moved) == [
        {"qid": "a", "relevant": [LAST], "draft": True, "migrated_to": revision(moved)}, rows[1],
    ]  # fmt: skip
    assert f"`{LAST}` has no new place, and is the id of other text now" in done.err


# --- the same map again ---


def test_a_map_is_not_applied_twice(moved: Folder) -> None:
    """The third block became the second one, which is the id of what became two."""
    rows: list[Row] = [
        {"qid": "a", "relevant": [LAST], "negatives": [TWO]},
        {"qid": "b", "grades": {TWO: 1}},
        {"qid": "c", "relevant": [FIRST]},
    ]
    assert run(moved, "gold", rows).exit_code == 0
    once = out(moved)
    assert [row.get("migrated_to") for row in once] == [revision(moved), revision(moved), None]
    done = run(moved, "gold", once)
    assert (done.exit_code, out(moved)) == (0, once)
    assert "already moved            2\n" in done.out


def test_a_map_from_another_revision_is_refused(moved: Folder) -> None:
    stamped = {"qid": "a", "relevant": [FIRST], "migrated_to": "f" * 32}
    done = run(moved, "gold", [stamped])
    assert (done.exit_code, done.codes) == (3, {"already-migrated"})
    assert f"from {revision(moved, 'old')} to {revision(moved)}" in done.problems[0].message
    assert not (moved.path / "out.jsonl").exists()
    stamped["migrated_to"] = revision(moved, "old")
    assert run(moved, "gold", [stamped]).exit_code == 0


def test_items_without_a_stamp_among_moved_ones_are_not_guessed_at(moved: Folder) -> None:
    """A question that was written after the migration names blocks of the new corpus."""
    done_before: Row = {"qid": "a", "relevant": [LAST_NOW], "migrated_to": revision(moved)}
    same: Row = {"qid": "b", "relevant": [FIRST]}
    fresh: Row = {"qid": "c", "relevant": [BOTH]}
    done = run(moved, "gold", [done_before, same, fresh])
    assert (done.exit_code, done.codes) == (3, {"already-migrated"})
    assert done.problems[0].about == "qid c"
    assert not (moved.path / "out.jsonl").exists()
    assert run(moved, "gold", [done_before, same]).exit_code == 0
    # A place with the hash of the old text says itself which corpus it is of.
    digest = read_corpus(moved.path / "old").documents[0].hash
    text = "It listens on the port"
    dated = {"qid": "d", "relevant": [{"doc": "g.md", **span(OLD, text), "doc_hash": digest}]}
    assert run(moved, "gold", [done_before, dated], "--min-confidence", "0.8").exit_code == 0


def test_many_problems_are_counted_and_some_are_listed(moved: Folder) -> None:
    done = run(moved, "gold", [{"qid": f"q{n}", "relevant": [GONE]} for n in range(25)])
    assert len(done.problems) == 20
    assert done.err.endswith("... and 5 more problems\n")


def test_less_confidence_is_taken_where_that_was_asked_for(moved: Folder) -> None:
    """`on` became `to`: of 67 bytes without blanks 65 are kept, which is 0.9701."""
    done = run(moved, "gold", [{"qid": "q", "relevant": [LAST]}], "--min-confidence", "0.98")
    assert done.exit_code == 3
    assert f"went to `{LAST_NOW}` with a confidence of 0.97, which is below 0.98" in done.err
    assert gold(moved, {"relevant": [LAST]}, "--min-confidence", "0.97") == {"relevant": [LAST_NOW]}


def test_a_part_of_a_block_that_stayed_goes_along(moved: Folder) -> None:
    assert gold(moved, {"relevant": [f"{MOVED}b"]}) == {"relevant": [f"{MOVED_NOW}b"]}


def test_a_section_that_is_in_several_documents_must_be_named(folder: Folder) -> None:
    more = "# New\n\nThis was put in before the other sections of the document.\n\n"
    corpus_of({"g.md": OLD, "o.md": OTHER}, folder.path / "old")
    corpus_of({"g.md": f"{more}{OLD}", "o.md": OTHER}, folder.path / "new")
    folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl")
    done = run(folder, "gold", [{"qid": "q", "anchor_section": "S.1"}])
    assert "`S.1` is in several documents" in done.err
    assert gold(folder, {"anchor_section": "S.1", "relevant_docs": ["g.md"]}) == {
        "anchor_section": "S.2", "relevant_docs": ["g.md"],
    }  # fmt: skip


def test_a_negative_that_became_evidence_is_told(moved: Folder) -> None:
    done = run(moved, "gold", [{"qid": "q", "relevant": [ONE], "negatives": [TWO]}])
    assert "negatives now relevant   1" in done.out


def test_rows_that_nothing_moves_stay_as_they_were_written(moved: Folder) -> None:
    """Blanks, numbers and the order of names; of a changed row all fields that did not change."""
    lines = (
        f'{{ "qid":"a" , "relevant": ["{FIRST}"], "w": 1.500, "big": 1e400 }}\r\n\n'
        f'{{"z": 1.10, "qid": "b", "relevant": ["{LAST}"], "a": {{"k" : 10000000000000000000000}}}}'
    )
    moved.write("in.jsonl", lines)
    done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", "out.jsonl")
    assert done.exit_code == 0, done.err
    assert (moved.path / "out.jsonl").read_text() == (
        f'{{ "qid":"a" , "relevant": ["{FIRST}"], "w": 1.500, "big": 1e400 }}\n'
        f'{{"z":1.10,"qid":"b","relevant":["{LAST_NOW}"],"a":{{"k" : 10000000000000000000000}},'
        f'"migrated_to":"{revision(moved)}"}}\n'
    )


def test_an_array_over_several_lines_becomes_lines(moved: Folder) -> None:
    moved.write(
        "in.json", json.dumps([{"qid": "a", "x": [1]}, {"qid": "b", "relevant": [LAST]}], indent=1)
    )
    moved.run("gold", "migrate", "in.json", "--map", "map.jsonl", "-o", "out.jsonl")
    assert (moved.path / "out.jsonl").read_text() == (
        f'{{"qid":"a","x":[1]}}\n'
        f'{{"qid":"b","relevant":["{LAST_NOW}"],"migrated_to":"{revision(moved)}"}}\n'
    )


@pytest.mark.parametrize(
    ("content", "code", "exit_code"),
    [
        (b"", "nothing-measured", 5),
        (b'{"qid": }\n', "bad-json", 3),
        (b'{"qid": "a", "relevant": "x"}\n', "bad-field", 3),
        (b'{"qid": "a", "groups": [3]}\n', "bad-field", 3),
        (b"q1 0 d1 1\nq1 0 d2 0\n", "usage", 2),
    ],
)
@pytest.mark.parametrize("policy", ["stop", "keep", "drop"])
def test_bad_rows_are_never_passed_over(
    moved: Folder, content: bytes, code: str, exit_code: int, policy: str
) -> None:
    moved.write("in.jsonl", content)
    done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", "out.jsonl",
                     "--on-unmapped", policy)  # fmt: skip
    assert (done.exit_code, done.codes) == (exit_code, {code})
    assert not (moved.path / "out.jsonl").exists()


# --- traces migrate ---


def test_hits_and_citations_are_redirected(moved: Folder) -> None:
    """A hit stays an id; a redirected citation keeps its old id."""
    row = trace(
        moved,
        {"qid": "q", "retrieved_ids": [LAST, FIRST, "p1#2"], "x": 1,
         "answer_json": {"claim": "so", "citations": [LAST, FIRST]}},
    )  # fmt: skip
    assert row == {
        "qid": "q", "retrieved_ids": [LAST_NOW, FIRST, "p1#2"], "x": 1,
        "answer_json": {
            "claim": "so", "citations": [{"id": LAST_NOW, "id_prev": LAST}, FIRST],
        },
    }  # fmt: skip


def test_hits_that_are_objects_keep_their_old_id(moved: Folder) -> None:
    old = read_corpus("old").blocks[5]
    new = next(block for block in read_corpus("new").blocks if block.id == LAST_NOW)
    row = trace(
        moved,
        {"topk": [{"score": 0.5, "chunk_id": LAST, "doc": "g.md", "section_id": "S.1.2",
                   "start": old.span[0], "end": old.span[1], "text": "as retrieved"}]},
    )  # fmt: skip
    assert row == {
        "topk": [{"score": 0.5, "chunk_id": LAST_NOW, "id_prev": LAST, "doc": "g.md",
                  "section_id": "S.1.3", "start": new.span[0], "end": new.span[1],
                  "text": "as retrieved"}]
    }  # fmt: skip


def test_a_hit_on_a_split_block_is_one_on_each_part(moved: Folder) -> None:
    """What is listed beside the hits is repeated; hits that became one stay two."""
    row = trace(moved, {"retrieval": {"hits": [SPLIT, ONE, TWO]}, "ΔS_list": [0.1, 0.2, 0.3]})
    assert row == {
        "retrieval": {"hits": [*PARTS, BOTH, BOTH]}, "ΔS_list": [0.1, 0.1, 0.2, 0.3],
    }  # fmt: skip


def test_citations_that_became_one_stand_once(moved: Folder) -> None:
    row = trace(moved, {"citations": [ONE, TWO, SPLIT]})
    assert [citation["id"] for citation in row["citations"]] == [BOTH, *PARTS]


def test_ids_in_the_text_of_an_answer_are_redirected(moved: Folder) -> None:
    row = trace(moved, {"answer": f"So it is. Citations: [{LAST}, p1#2]"})
    assert row == {
        "answer": f"So it is. Citations: [{LAST_NOW}, p1#2]",
        "redirects": [{"id": LAST_NOW, "id_prev": LAST}],
    }
    listed = {"answer": f"citations: [{LAST}]", "citations": []}
    assert trace(moved, listed) == listed  # a list counts, even when it is empty


def test_a_citation_by_place_gets_its_new_bytes(moved: Folder) -> None:
    words = "Start the server with one command."
    row = trace(moved, {"citations": [{"citation": {"doc": "g.md", **span(OLD, words)}}]})
    assert row == {"citations": [{"citation": {"doc": "g.md", **span(NEW, words)}}]}


def test_unmapped_traces_stop_are_kept_or_dropped(moved: Folder) -> None:
    row: Row = {"qid": "q", "topk": [GONE, LAST], "answer_json": {"citations": [GONE]}}
    done = run(moved, "traces", [row])
    assert (done.exit_code, len(done.problems)) == (3, 2)
    assert [problem.where for problem in done.problems] == ["in.jsonl:1"] * 2
    assert trace(moved, row, "--on-unmapped", "keep") == {**row, "topk": [GONE, LAST_NOW]}
    assert trace(moved, row, "--on-unmapped", "drop") == {
        "qid": "q", "topk": [LAST_NOW], "answer_json": {"citations": []},
    }  # fmt: skip


def test_moved_files_can_be_scored(moved: Folder) -> None:
    """The same answer with the same evidence has the same recall in both versions."""
    items = [{"qid": "q", "question": "How?", "relevant": [LAST, MOVED]}]
    rows = [
        {
            "qid": "q",
            "topk": [MOVED, FIRST, LAST],
            "answer_json": {"claim": "So.", "citations": [LAST]},
        }
    ]
    names = ("retrieval.recall@1", "retrieval.recall@3", "citation.precision")
    values = []
    for version in ("old", "new"):
        if version == "new":
            for what, listed in (("gold", items), ("traces", rows)):
                assert run(moved, what, listed).exit_code == 0
                listed[:] = out(moved)
        done = moved.score(rows, "--profile", "all", "--format", "json", gold=items)
        metrics: dict[str, Any] = json.loads(done.out)["metrics"]
        values.append({name: metrics[name]["value"] for name in names})
    assert LAST_NOW in items[0]["relevant"]
    assert values[0] == values[1] == {
        "retrieval.recall@1": 0.5, "retrieval.recall@3": 1.0, "citation.precision": 1.0,
    }  # fmt: skip


def test_memory_does_not_grow_with_the_traces(
    moved: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6,000 rows of some 300 bytes are 1.8 MB; no more of them is held than of 1,000."""
    assert ranges.plan.__kwdefaults__ is not None
    monkeypatch.setitem(ranges.plan.__kwdefaults__, "range_bytes", 64 * 1024)
    row = {"qid": "q", "retrieved_ids": [LAST, FIRST, "p1#2"] * 3, "citations": [LAST]}
    peaks = []
    for count in (1_000, 6_000):
        path = moved.write("in.jsonl", [row] * count)
        tracemalloc.start()
        done = migrate_file("traces", path, "map.jsonl", "out.jsonl")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert done.rows == done.changed == count
    assert Path("out.jsonl").read_bytes().count(b"\n") == 6_000
    assert peaks[1] < peaks[0] + 300_000


# --- what is never replaced ---


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_a_device_or_a_folder_is_not_replaced(moved: Folder) -> None:
    """A new file is renamed into its place, and must not take that of /dev/stdout."""
    moved.write("in.jsonl", [{"qid": "q", "relevant": [FIRST]}])
    pipe = moved.path / "pipe"
    os.mkfifo(pipe)
    (moved.path / "folder").mkdir()
    for name in ("pipe", "folder"):
        done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", name)
        assert (done.exit_code, done.codes) == (2, {"file-unreadable"})
        assert "is no ordinary file" in done.err
        for option in ("-o", "--review"):
            assert moved.run("corpus", "diff", "old", "new", option, name).exit_code == 2
    assert pipe.is_fifo()
    assert list((moved.path / "folder").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")
def test_a_link_stays_and_what_it_leads_to_is_written(moved: Folder) -> None:
    moved.write("real.jsonl", b"old")
    (moved.path / "link.jsonl").symlink_to("real.jsonl")
    moved.write("in.jsonl", [{"qid": "q", "relevant": [LAST]}])
    done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", "link.jsonl")
    assert done.exit_code == 0, done.err
    assert (moved.path / "link.jsonl").is_symlink()
    assert LAST_NOW in (moved.path / "real.jsonl").read_text()
