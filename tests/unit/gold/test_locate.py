"""Gold that counts characters or only quotes: the header of a file, and a corpus to find it in."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.support.command import Folder, Outcome, Row
from tests.support.corpora import FIRST, LAST, made

# "Bananas are not." is at the characters 24 to 40 of the guide: Ä has two bytes, so it is at the
# bytes 25 to 41.
BANANAS = "Bananas are not."
IN_CHARACTERS: Row = {"doc": "guide.md", "start": 24, "end": 40}
IN_BYTES: Row = {"doc": "guide.md", "start": 25, "end": 41}
ITEM: Row = {"qid": "q", "question": "Which?", "answerable": True}
HEADED = """\
# What people ask.
unit: char  # as the editor counts
items:
  - {qid: q, question: "Which?", answerable: true, relevant: [{doc: guide.md, start: 24, end: 40}]}
  - {qid: r, question: "What else?", answerable: false}
"""


@pytest.fixture
def corpus(folder: Folder) -> Folder:
    """A folder with the small corpus."""
    made(folder.path)
    return folder


def rows_in(folder: Folder, name: str) -> list[Row]:
    text = (folder.path / name).read_text()
    rows: list[Row] = yaml.safe_load(text)["items"]
    return rows


# --- the header ---


def test_pinning_converts_what_the_header_says_and_mends_the_header(corpus: Folder) -> None:
    corpus.write("gold.yaml", HEADED)
    done = corpus.run("gold", "pin", "gold.yaml", "--corpus", "corpus", "-o", "out.yaml")
    assert done.exit_code == 0, done.err
    text = (corpus.path / "out.yaml").read_text()
    assert text.startswith("# What people ask.\nunit: byte  # as the editor counts\nitems:\n")
    (entry,) = rows_in(corpus, "out.yaml")[0]["relevant"]
    assert {name: entry[name] for name in (*IN_BYTES, "quote")} == {**IN_BYTES, "quote": BANANAS}
    assert all("unit" not in row for row in rows_in(corpus, "out.yaml"))
    again = corpus.run("gold", "pin", "out.yaml", "--corpus", "corpus", "-o", "again.yaml")
    assert again.exit_code == 0, again.err
    assert (corpus.path / "again.yaml").read_text() == text


def test_an_item_says_bytes_where_the_others_still_count_characters(corpus: Folder) -> None:
    gone = "  - {qid: s, question: 'Gone?', relevant: [{doc: gone.md, start: 1, end: 2}]}\n"
    corpus.write("gold.yaml", HEADED + gone)
    done = corpus.run(
        "gold",
        "pin",
        "gold.yaml",
        "--corpus",
        "corpus",
        "-o",
        "out.yaml",
        "--on-unresolved",
        "keep",
    )
    assert done.exit_code == 0, done.err
    text = (corpus.path / "out.yaml").read_text()
    assert yaml.safe_load(text)["unit"] == "char"
    first, _, last = rows_in(corpus, "out.yaml")
    assert first["unit"] == "byte"
    assert first["relevant"][0]["start"] == 25
    assert last == {"qid": "s", "question": "Gone?",
                    "relevant": [{"doc": "gone.md", "start": 1, "end": 2}]}  # fmt: skip


def test_negatives_are_added_below_the_header_as_it_is(corpus: Folder) -> None:
    corpus.write("gold.yaml", HEADED)
    done = corpus.run("gold", "negatives", "gold.yaml", "--corpus", "corpus", "-o", "out.yaml")
    assert done.exit_code == 0, done.err
    assert yaml.safe_load((corpus.path / "out.yaml").read_text())["unit"] == "char"
    first = rows_in(corpus, "out.yaml")[0]
    assert first["relevant"] == [IN_CHARACTERS]
    assert "unit" not in first
    assert first["negatives"]


def test_lines_made_of_a_file_with_a_header_say_the_unit_themselves(corpus: Folder) -> None:
    corpus.write("gold.yaml", HEADED)
    done = corpus.run("gold", "negatives", "gold.yaml", "--corpus", "corpus", "-o", "out.jsonl")
    assert done.exit_code == 0, done.err
    first = json.loads((corpus.path / "out.jsonl").read_text().splitlines()[0])
    assert (first["unit"], first["relevant"]) == ("char", [IN_CHARACTERS])


@pytest.mark.parametrize("unit", ["char", "byte"])
def test_every_reader_takes_the_unit_of_the_header(corpus: Folder, unit: str) -> None:
    """The item that says its unit itself is the same item: its lock holds for the other file."""
    corpus.write("gold.yaml", HEADED.replace("char", unit))
    own = HEADED.replace("unit: char  # as the editor counts\n", "").replace(
        "qid: q,", f"qid: q, unit: {unit},"
    )
    corpus.write("own.yaml", own)
    assert corpus.run("gold", "freeze", "own.yaml", "-o", "own.lock").exit_code == 0
    done = corpus.run("gold", "verify", "gold.yaml", "--lock", "own.lock")
    assert done.exit_code == 0, done.out + done.err
    quoted = HEADED.replace("char", unit).replace("end: 40", f"end: 40, quote: {BANANAS}")
    corpus.write("quoted.yaml", quoted)
    for command in (["validate"], ["gold", "lint"]):
        outcome = corpus.run(*command, "quoted.yaml", "--corpus", "corpus")
        wrong = "quote-moved" in outcome.out + outcome.err
        assert wrong == (unit == "byte"), outcome.out + outcome.err


def test_offsets_in_characters_are_not_followed_as_bytes(corpus: Folder) -> None:
    from tests.support.corpora import GUIDE

    made(corpus.path, {"guide.md": GUIDE.replace("# Guide", "# The guide")}, "new")
    assert corpus.run("corpus", "diff", "corpus", "new", "-o", "map.jsonl").exit_code == 0
    corpus.write("gold.yaml", HEADED)
    done = corpus.run("gold", "migrate", "gold.yaml", "--map", "map.jsonl", "-o", "out.yaml")
    assert (done.exit_code, done.codes) == (3, {"unmapped"})
    assert "offsets in chars" in done.err


def test_a_unit_below_the_items_is_refused(corpus: Folder) -> None:
    body, unit = HEADED.replace("unit: char  # as the editor counts\n", ""), "unit: char\n"
    corpus.write("gold.yaml", body + unit)
    done = corpus.run("validate", "gold.yaml")
    assert (done.exit_code, done.codes) == (3, {"bad-yaml"})
    assert done.problems[0].where == "gold.yaml:5"
    assert "above `items`" in done.problems[0].hint


def test_a_unit_of_the_header_that_is_none_is_told_of_its_items(corpus: Folder) -> None:
    corpus.write("gold.yaml", HEADED.replace("unit: char", "unit: inch"))
    done = corpus.run("validate", "gold.yaml")
    assert (done.exit_code, done.codes) == (3, {"bad-field"})


# --- with a corpus ---


def scored(folder: Folder, relevant: list[Any], *options: str, **fields: Any) -> Outcome:
    """Score one question whose first hit is the first block of the guide, by its id."""
    folder.write("gold.jsonl", [{**ITEM, "relevant": relevant, **fields}])
    folder.write("trace.jsonl", [{"qid": "q", "topk": [LAST, FIRST]}])
    return folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--k", "1,2", "--metrics",
        "retrieval.recall", "--format", "json", *options,
    )  # fmt: skip


def recalls(done: Outcome) -> list[float]:
    assert done.exit_code == 0, done.err
    return [metric["value"] for metric in json.loads(done.out)["metrics"].values()]


EVIDENCE: dict[str, list[Any]] = {
    "pinned": [{**IN_BYTES, "quote": BANANAS}],
    "a quote": [{"doc": "guide.md", "quote": BANANAS}],
    "an occurrence": [{"doc": "guide.md", "quote": "Äpfel are red.", "occurrence": 1}],
    "characters": [{**IN_CHARACTERS, "unit": "char"}],
}


@pytest.mark.parametrize("form", EVIDENCE)
def test_evidence_is_found_in_the_corpus_in_every_form(corpus: Folder, form: str) -> None:
    # The block 9 to 41 is the second hit, and holds all of the evidence.
    assert recalls(scored(corpus, EVIDENCE[form], "--corpus", "corpus")) == [0.0, 1.0]
    for command in (["validate", "gold.jsonl"], ["gold", "lint", "gold.jsonl"]):
        done = corpus.run(*command, "--corpus", "corpus")
        assert done.exit_code == 0, done.out + done.err
    assert corpus.run("gold", "stats", "gold.jsonl", "--corpus", "corpus").exit_code == 0


def test_the_second_occurrence_is_another_place(corpus: Folder) -> None:
    entry = {"doc": "guide.md", "quote": "Äpfel are red.", "occurrence": 2}
    assert recalls(scored(corpus, [entry], "--corpus", "corpus")) == [1.0, 1.0]


def test_the_document_of_a_quote_may_be_that_of_the_item(corpus: Folder) -> None:
    done = scored(corpus, [{"quote": BANANAS}], "--corpus", "corpus", relevant_docs=["guide.md"])
    assert recalls(done) == [0.0, 1.0]


def test_characters_of_the_item_stand_beside_ids_of_blocks(corpus: Folder) -> None:
    """Blocks have bytes: an item with both would mix units if nothing was converted."""
    done = scored(corpus, [IN_CHARACTERS, LAST], "--corpus", "corpus", unit="char")
    assert recalls(done) == [0.5, 1.0]


def test_characters_of_a_list_of_chunks_become_bytes_too(corpus: Folder) -> None:
    chunk = {"id": FIRST, **IN_CHARACTERS, "start": 9, "unit": "char"}
    corpus.write("chunks.jsonl", [chunk])
    done = scored(corpus, EVIDENCE["characters"], "--corpus", "corpus", "--chunks", "chunks.jsonl")
    assert recalls(done) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"doc": "guide.md", "quote": "Cherries"}, "quote-not-found"),
        ({"doc": "guide.md", "quote": "Äpfel are red."}, "quote-ambiguous"),
        ({"doc": "guide.md", "quote": "Äpfel are red.", "occurrence": 3}, "quote-not-found"),
        ({"doc": "gone.md", "quote": BANANAS}, "unresolved"),
    ],
)
def test_what_cannot_be_found_is_the_error_of_pinning(
    corpus: Folder, entry: Row, code: str
) -> None:
    done = scored(corpus, [entry], "--corpus", "corpus")
    assert (done.exit_code, done.codes) == (3, {code})
    assert done.problems[0].where == "gold.jsonl:1"
    assert corpus.run("validate", "gold.jsonl", "--corpus", "corpus").codes == {code}
    assert corpus.run("gold", "lint", "gold.jsonl", "--corpus", "corpus").exit_code != 0
    pinned = corpus.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "out.jsonl")
    assert pinned.codes == {code}


def test_without_a_corpus_a_quote_is_still_no_place(corpus: Folder) -> None:
    done = scored(corpus, EVIDENCE["a quote"])
    assert (done.exit_code, done.codes) == (3, {"quote-unpinned"})


def test_units_are_not_mixed_with_a_corpus_either(corpus: Folder) -> None:
    mixed = [{**IN_CHARACTERS, "unit": "char"}, IN_BYTES]
    done = scored(corpus, mixed, "--corpus", "corpus")
    assert (done.exit_code, done.codes) == (3, {"mixed-units"})
