"""`gold pin`: evidence gets its bytes, and whatever cannot be resolved is told and not written."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from ragauge.formats.gold import DRAFT
from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row, lines_of
from tests.support.umlaut_corpus import BLOCK, GUIDE, HOST, PORT, bytes_of, make_corpus

HASH = sha256(GUIDE.encode()).hexdigest()
# '# Gr' 4, 'ö' 2, 'ß' 2, 'e' 1, two line ends 2
START = 11
# D i e _ G r 6, ö 2, ß 2, e _ 2, 🙂 4, _ z 2, ä 2, h l t . 4
LENGTH = 24
PINNED: Row = {
    "id": BLOCK,
    "doc": "guide.md",
    "start": START,
    "end": START + LENGTH,
    "quote": "Die Größe 🙂 zählt.",
    "doc_hash": HASH,
    "section": "S.1",
    "grain": "chunk",
}


def pin(folder: Folder, gold: Any, *options: str, name: str = "gold.jsonl") -> Outcome:
    make_corpus(folder)
    folder.write(name, gold)
    return folder.run("gold", "pin", name, "--corpus", "corpus", "-o", "new.jsonl", *options)


def rows(folder: Folder, name: str = "new.jsonl") -> list[Row]:
    return [json.loads(line) for line in (folder.path / name).read_text("utf-8").splitlines()]


def entry_of(folder: Folder, entry: Any, *options: str, **fields: Any) -> Any:
    done = pin(folder, [{"qid": "A", "question": "?", "relevant": [entry], **fields}], *options)
    assert done.exit_code == 0, done.err
    return rows(folder)[0]["relevant"][0]


@cases("field", ["relevant", "gold_ids", "gold_citations", "expected_chunk_ids"])
def test_an_id_becomes_a_place_under_the_name_that_the_dialect_has(
    folder: Folder, field: str
) -> None:
    qid = "id" if field.startswith("expected") else "qid"
    text = f'{{"{qid}": "A", "zzz": 1, "{field}": ["{BLOCK}"], "aaa": {{"b":[1.50]}}}}\n'
    done = pin(folder, text)
    assert done.exit_code == 0, done.err
    assert done.out.splitlines() == [
        "wrote new.jsonl", "items      1, 1 changed", "pinned     1 entries given a place",
    ]  # fmt: skip
    row = rows(folder)[0]
    assert list(row) == [qid, "zzz", field, "aaa"]
    assert list(row[field][0].items()) == list(PINNED.items())
    # Fields that nothing touched keep their digits and spaces.
    assert '"aaa": {"b":[1.50]}' in (folder.path / "new.jsonl").read_text("utf-8")


def test_groups_and_gold_spans_are_pinned_and_grades_are_counted(folder: Folder) -> None:
    done = pin(
        folder,
        [
            {
                "qid": "A",
                "groups": [[BLOCK, PORT], [HOST]],
                "gold_spans": [{"doc": "guide.md", "start": START, "end": START + 3}],
                "grades": {PORT: 2, HOST: 1},
            }
        ],
    )
    assert done.exit_code == 0, done.err
    assert "graded     2 ids in grades, which have no place" in done.out
    row = rows(folder)[0]
    assert [[entry["id"] for entry in group] for group in row["groups"]] == [[BLOCK, PORT], [HOST]]
    assert row["groups"][0][0] == PINNED
    assert row["gold_spans"][0]["quote"] == "Die"
    assert row["grades"] == {PORT: 2, HOST: 1}


@cases(
    ("entry", "start", "end"),
    [
        # 🙂 is character 19 and byte 23: ö and ß, twice each, take a byte more than characters.
        # 137 = 35 + "\n\n## Port\n\n" 11 + 36 + 2 + code 23 + "\n\n## Host\n\n" 11 + 19.
        ({"doc": "guide.md", "quote": "🙂 zählt"}, 23, 34),
        ({"doc": "guide.md", "start": 19, "end": 20, "unit": "char"}, 23, 27),
        ({"doc": "guide.md", "start_char": 19, "end_char": 20}, 23, 27),
        ({"doc": "guide.md", "line_start": 3, "line_end": 3}, START, START + LENGTH),
        ({"doc": "guide.md", "span": [23, 27]}, 23, 27),
        ({"doc": "guide.md", "quote": "It can be changed.", "occurrence": 2}, 137, 155),
        ({"doc": "guide.md", "quote": "Die  Größe\n🙂"}, START, 27),  # white space may differ
    ],
)
def test_quotes_characters_and_lines_become_bytes(
    folder: Folder, entry: Row, start: int, end: int
) -> None:
    pinned = entry_of(folder, entry)
    span = pinned.get("span") or [pinned["start"], pinned["end"]]
    assert span == [start, end]
    assert pinned["quote"] == GUIDE.encode()[start:end].decode()
    assert pinned["doc_hash"] == HASH
    assert "unit" not in pinned
    assert "start_char" not in pinned
    assert "line_start" not in pinned


def test_a_unit_of_the_whole_item_is_converted_and_leaves(folder: Folder) -> None:
    place = {"doc": "guide.md", "start": 19, "end": 20}
    done = pin(folder, [{"qid": "A", "unit": "char", "relevant": [place, BLOCK]}])
    assert done.exit_code == 0, done.err
    row = rows(folder)[0]
    assert "unit" not in row
    assert [(entry["start"], entry["end"]) for entry in row["relevant"]] == [(23, 27), (11, 35)]


def test_a_quote_without_a_document_is_sought_in_the_only_one_of_the_item(folder: Folder) -> None:
    pinned = entry_of(folder, {"quote": "a day"}, relevant_docs=["notes.txt"])
    assert (pinned["doc"], pinned["start"], pinned["end"]) == ("notes.txt", 26, 31)


@pytest.mark.parametrize(("first", "last"), [(-1, 0), (0, 1), (-2, 2)])
def test_a_place_off_by_a_blank_is_refused_and_followed_where_asked(
    folder: Folder, first: int, last: int
) -> None:
    """Line ends are around the block; its quote is never widened to them."""
    off = {**PINNED, "start": START + first, "end": START + LENGTH + last}
    gold = [{"qid": "A", "relevant": [off]}]
    done = pin(folder, gold)
    assert (done.exit_code, done.codes) == (3, {"quote-moved"})
    assert not (folder.path / "new.jsonl").exists()
    assert pin(folder, gold, "--repin").exit_code == 0
    assert rows(folder)[0]["relevant"] == [PINNED]


def test_long_text_keeps_a_hash_and_no_quote(folder: Folder) -> None:
    text = "word " * 500  # 2,500 characters
    lookup = make_corpus(folder, long_txt=text)
    folder.write("gold.jsonl", [{"qid": "A", "relevant": ["long.txt#S.0.p.Bk001"]}])
    done = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "gold.jsonl")
    assert done.exit_code == 0, done.err
    entry = rows(folder, "gold.jsonl")[0]["relevant"][0]
    assert "quote" not in entry
    assert entry["quote_hash"] == sha256(text.rstrip().encode()).hexdigest()
    assert bytes_of(lookup, entry) == text.rstrip()
    # Another text at that place is noticed without the quote.
    make_corpus(folder, long_txt="Word " * 500)
    done = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "gold.jsonl")
    assert (done.exit_code, done.problems[0].code) == (3, "quote-moved")


def test_chunks_of_a_list_get_their_place(folder: Folder) -> None:
    """The list counts characters, gives two spans for c2, and its own section wins."""
    make_corpus(folder)
    folder.write(
        "chunks.jsonl",
        [
            {"id": "c1", "doc": "guide.md", "start": 19, "end": 20, "unit": "char",
             "section": "intro", "text": "🙂"},
            {"id": "c2", "doc": "guide.md", "source_spans": [[11, 14], [15, 22]]},
        ],
    )  # fmt: skip
    folder.write("gold.jsonl", [{"qid": "A", "relevant": ["c1", {"id": "c2", "why": "x"}, PORT]}])
    done = folder.run(
        "gold", "pin", "gold.jsonl", "--corpus", "corpus", "--chunks", "chunks.jsonl",
        "-o", "new.jsonl",
    )  # fmt: skip
    assert done.exit_code == 0, done.err
    one, two, block = rows(folder)[0]["relevant"]
    assert (one["start"], one["end"], one["quote"], one["section"]) == (23, 27, "🙂", "intro")
    assert two["source_spans"] == [[11, 14], [15, 22]]
    assert two["quote_hash"] == sha256("DieGröße".encode()).hexdigest()
    assert (two["why"], two["doc"]) == ("x", "guide.md")
    assert block["id"] == PORT


@pytest.mark.parametrize(
    ("facts", "code", "said"),
    [
        ({"text": "Die Größe"}, "quote-moved", "the text of the chunk `c1`"),
        ({"doc_hash": "0" * 64}, "unresolved", "another version"),
        ({"doc": "other.md"}, "unresolved", "other.md"),
    ],
)
def test_a_list_of_chunks_must_be_of_this_corpus(
    folder: Folder, facts: Row, code: str, said: str
) -> None:
    make_corpus(folder)
    chunk = {"id": "c1", "doc": "guide.md", "start": 11, "end": 14}
    folder.write("gold.jsonl", [{"qid": "A", "relevant": ["c1"]}])
    run = (
        "gold",
        "pin",
        "gold.jsonl",
        "--corpus",
        "corpus",
        "--chunks",
        "c.jsonl",
        "-o",
        "n.jsonl",
    )
    folder.write("c.jsonl", [{**chunk, "text": "Die", "doc_hash": HASH}])
    assert folder.run(*run).exit_code == 0
    folder.write("c.jsonl", [{**chunk, **facts}])
    done = folder.run(*run)
    assert (done.exit_code, done.problems[0].code) == (3, code)
    assert said in done.problems[0].message


def test_a_kind_that_counts_lines_does_not_meet_plain_offsets(folder: Folder) -> None:
    """Beside `kind: line` a plain start and end would be read as lines again."""
    entry = {"doc": "guide.md", "kind": "line", "start": 3, "end": 3, "page": 1}
    pinned = entry_of(folder, entry)
    assert (pinned["kind"], pinned["page"], pinned["span"]) == ("line", 1, [START, START + LENGTH])
    assert "start" not in pinned
    again = folder.run("gold", "pin", "new.jsonl", "--corpus", "corpus", "-o", "new.jsonl")
    assert "items      1, 0 changed" in again.out


def test_mixed_units_are_refused(folder: Folder) -> None:
    one = {"doc": "guide.md", "start": 0, "end": 1}
    other = {"doc": "guide.md", "start_char": 0, "end_char": 1}
    done = pin(folder, [{"qid": "A", "relevant": [one, other]}])
    assert (done.exit_code, done.problems[0].code) == (3, "mixed-units")


def test_two_spellings_that_agree_are_both_pinned(folder: Folder) -> None:
    quote = {"doc": "guide.md", "quote": "Die"}
    done = pin(
        folder, [{"qid": "A", "relevant": [quote], "gold_ids": [quote]}], "--dialect", "native"
    )
    assert done.exit_code == 0, done.err
    row = rows(folder)[0]
    assert row["relevant"] == row["gold_ids"]
    assert row["relevant"][0]["start"] == START


@cases(
    ("entry", "code", "said"),
    [
        ("guide.md#S.9.p.Bk001", "unresolved", "no block"),
        ({"doc": "guide.me", "quote": "port"}, "unresolved", "guide.me"),
        ({"doc": "guide.md", "start": 0, "end": 9999}, "unresolved", "9999"),
        ({"doc": "guide.md", "start": 24, "end": 27}, "unresolved", "inside a character"),
        ({"doc": "guide.md", "quote": "portal"}, "quote-not-found", "portal"),
        ({"doc": "guide.md", "quote": "It can be changed."}, "quote-ambiguous", "2 times"),
        ({"doc": "guide.md", "start": 0, "end": 3, "quote": "Die"}, "quote-moved", "not the quote"),
        (
            {"doc": "guide.md", "start": 11, "end": 14, "doc_hash": "0" * 64},
            "unresolved",
            "was edited",
        ),
        ({"id": BLOCK, "doc": "notes.txt"}, "unresolved", "notes.txt"),
        ({"quote": "no document"}, "bad-field", "a place in a document"),
        ({"doc": "guide.md", "start": 1, "end": 2, "unit": "page"}, "unresolved", "pages"),
    ],
)
def test_what_cannot_be_resolved_is_told_and_nothing_is_written(
    folder: Folder, entry: Any, code: str, said: str
) -> None:
    done = pin(folder, [{"qid": "A", "relevant": [BLOCK]}, {"qid": "B", "relevant": [entry]}])
    assert done.exit_code == 3
    assert done.out == ""
    assert len(done.problems) == 1
    problem = done.problems[0]
    assert (problem.code, problem.where) == (code, "gold.jsonl:2")
    assert said in problem.message
    assert not (folder.path / "new.jsonl").exists()


def test_twenty_problems_are_listed_and_all_are_counted(folder: Folder) -> None:
    done = pin(folder, [{"qid": f"q{n}", "relevant": ["nowhere"]} for n in range(27)])
    assert len(done.problems) == 20
    assert done.err.endswith("... and 7 more problems\n")


def test_kept_items_are_as_they_were_and_are_counted(folder: Folder) -> None:
    """An item is pinned whole or not at all."""
    gold = [{"qid": "A", "relevant": [BLOCK, "nowhere"]}, {"qid": "B", "relevant": [BLOCK]}]
    done = pin(folder, gold, "--on-unresolved", "keep")
    assert done.exit_code == 0
    assert "unresolved 1 items, left as they were" in done.out
    assert "kept: gold.jsonl:1  (qid A, dialect native): " in done.err
    assert rows(folder) == [gold[0], {"qid": "B", "relevant": [PINNED]}]


def test_keeping_does_not_keep_what_no_reader_takes(folder: Folder) -> None:
    done = pin(folder, [{"qid": "A", "relevant": [BLOCK], "tags": 7}], "--on-unresolved", "keep")
    assert (done.exit_code, done.problems[0].code) == (3, "bad-field")
    assert not (folder.path / "new.jsonl").exists()


def test_a_quote_is_followed_only_when_asked_and_only_when_it_stands_once(folder: Folder) -> None:
    moved = {"doc": "guide.md", "start": 2, "end": 11, "quote": "zählt", "section": "S.9",
             "doc_hash": "1" * 64}  # fmt: skip
    gold = [{"qid": "A", "relevant": [moved]}]
    done = pin(folder, gold)
    assert done.problems[0].code == "quote-moved"
    assert "it stands at 28 to 34" in done.problems[0].hint
    done = pin(folder, gold, "--repin")
    assert "moved      1 entries moved to where the quote stands now" in done.out
    pinned = rows(folder)[0]["relevant"][0]
    assert (pinned["start"], pinned["end"], pinned["section"]) == (28, 34, "S.1")
    assert pinned["doc_hash"] == HASH
    twice = {**moved, "quote": "can be changed"}
    done = pin(folder, [{"qid": "A", "relevant": [twice]}], "--repin")
    assert done.problems[0].code == "quote-ambiguous"


def test_a_quote_that_still_stands_at_its_place_gets_the_new_hash(folder: Folder) -> None:
    old = {**PINNED, "doc_hash": "2" * 64}
    assert entry_of(folder, old) == PINNED


def test_pinning_twice_gives_the_same_bytes(folder: Folder) -> None:
    """Also in place, and with blank lines, CRLF and spacing of the author's own."""
    text = f'{{"qid":"A" , "relevant":["{BLOCK}"]}}\r\n\r\n{{ "qid": "B", "n": 1e400 }}\r\n'
    done = pin(folder, text)
    assert done.exit_code == 0, done.err
    once = (folder.path / "new.jsonl").read_bytes()
    assert once.endswith(b'}\r\n\r\n{ "qid": "B", "n": 1e400 }\r\n')
    done = folder.run("gold", "pin", "new.jsonl", "--corpus", "corpus", "-o", "new.jsonl")
    assert "items      2, 0 changed" in done.out
    assert (folder.path / "new.jsonl").read_bytes() == once


def test_a_json_array_stays_one(folder: Folder) -> None:
    make_corpus(folder)
    gold = [{"qid": "A", "relevant": [BLOCK]}, {"qid": "B", "note": "as it is"}]
    text = json.dumps(gold, indent=1)
    folder.write("qaset.json", text)
    done = folder.run("gold", "pin", "qaset.json", "--corpus", "corpus", "-o", "qaset.json")
    assert done.exit_code == 0, done.err
    new = (folder.path / "qaset.json").read_text("utf-8")
    assert json.loads(new) == [{"qid": "A", "relevant": [PINNED]}, gold[1]]
    assert new.endswith(text[text.index('"B"') :])


YAML = f"""\
# the suite
name: mine   # kept
queries:
  # about size
  - id: A
    query: "Wie groß?"
    expected_chunk_ids: [{BLOCK}]   # checked by Ada
  - {{id: B, query: x}}   # nothing
owner: ada
"""


def test_yaml_keeps_its_comments_and_its_other_keys(folder: Folder) -> None:
    import yaml

    make_corpus(folder)
    folder.write("gold.yaml", YAML)
    done = folder.run("gold", "pin", "gold.yaml", "--corpus", "corpus", "-o", "new.yaml")
    assert done.exit_code == 0, done.err
    new = (folder.path / "new.yaml").read_text("utf-8")
    above = "# the suite\nname: mine   # kept\nqueries:\n  # about size\n  - id: A\n"
    below = "   # checked by Ada\n  - {id: B, query: x}   # nothing\nowner: ada\n"
    for comment in (above, below):
        assert comment in new
    loaded = yaml.safe_load(new)
    assert loaded["queries"][0] == {
        "id": "A", "query": "Wie groß?", "expected_chunk_ids": [PINNED],
    }  # fmt: skip
    again = folder.run("gold", "pin", "new.yaml", "--corpus", "corpus", "-o", "again.yaml")
    assert again.exit_code == 0
    assert (folder.path / "again.yaml").read_text("utf-8") == new


def test_yaml_with_aliases_is_written_anew(folder: Folder) -> None:
    """The second item does not change, and stands for a part of the first one, which does."""
    import yaml

    make_corpus(folder)
    first = f"{{id: A, query: &said What?, expected_chunk_ids: [{BLOCK}]}}"
    folder.write("gold.yaml", f"- {first}\n- {{id: B, query: *said}}\n")
    done = folder.run("gold", "pin", "gold.yaml", "--corpus", "corpus", "-o", "new.yaml")
    assert done.exit_code == 0, done.err
    assert yaml.safe_load((folder.path / "new.yaml").read_text("utf-8")) == [
        {"id": "A", "query": "What?", "expected_chunk_ids": [PINNED]},
        {"id": "B", "query": "What?"},
    ]


def test_text_of_several_lines_does_not_swallow_a_comment(folder: Folder) -> None:
    """The last field would be laid out over lines, and the comment behind it would join it."""
    import yaml

    make_corpus(folder)
    text = f'- id: A\n  expected_chunk_ids: [{BLOCK}]\n  note: "x\\ny"  # mine\n'
    folder.write("gold.yaml", text)
    done = folder.run("gold", "pin", "gold.yaml", "--corpus", "corpus", "-o", "new.yaml")
    assert done.exit_code == 0, done.err
    new = (folder.path / "new.yaml").read_text("utf-8")
    assert yaml.safe_load(new)[0]["note"] == "x\ny"
    assert new.endswith("  # mine\n")


def test_drafts_can_be_pinned_and_stay_drafts(folder: Folder) -> None:
    done = pin(folder, [{"qid": "A", "question": "", "relevant": [BLOCK], DRAFT: True}])
    assert done.exit_code == 0, done.err
    assert rows(folder)[0] == {"qid": "A", "question": "", "relevant": [PINNED], DRAFT: True}


def test_judgements_and_packed_outputs_are_refused(folder: Folder) -> None:
    make_corpus(folder)
    folder.write("qrels.txt", "q1 0 d1 1\n")
    done = folder.run("gold", "pin", "qrels.txt", "--corpus", "corpus", "-o", "new.jsonl")
    assert (done.exit_code, done.problems[0].code) == (2, "usage")
    folder.write("gold.jsonl", [{"qid": "A"}])
    done = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "new.jsonl.gz")
    assert (done.exit_code, done.problems[0].code) == (2, "usage")
    folder.write("gold.jsonl", b"")
    done = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "new.jsonl")
    assert (done.exit_code, done.problems[0].code) == (5, "nothing-measured")


def test_pinned_gold_scores_hits_with_the_same_ids_and_hits_of_any_chunking(folder: Folder) -> None:
    """Ids and spans that are the block's give 1; a chunk over half of it gives 1; others give 0."""
    done = pin(folder, [{"qid": "A", "question": "?", "relevant": [BLOCK]}])
    assert done.exit_code == 0
    traces = {
        "same": {"id": BLOCK, "doc": "guide.md", "start": START, "end": START + LENGTH},
        "half": {"id": "c7", "doc": "guide.md", "start": 0, "end": START + 12},  # 12 of 24
        "less": {"id": "c8", "doc": "guide.md", "start": 0, "end": START + 11},  # 11 of 24
        "id": BLOCK,
    }
    for name, hit in traces.items():
        folder.write("trace.jsonl", lines_of([{"qid": "A", "topk": [hit]}]))
        for gold in ("gold.jsonl", "new.jsonl"):
            outcome = folder.run(
                "score", gold, "trace.jsonl", "--profile", "all", "--format", "json", "--k", "1",
                "--metrics", "retrieval.recall@1",
            )  # fmt: skip
            value = json.loads(outcome.out)["metrics"]["retrieval.recall@1"]["value"]
            by_id = name in ("same", "id")
            expected = by_id if gold == "gold.jsonl" else name != "less"
            assert value == float(expected), (name, gold)
