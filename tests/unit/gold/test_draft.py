"""`gold new`: drafts cover documents and types first, and nothing scores before a person wrote."""

from __future__ import annotations

import json
from typing import Any

import yaml

from ragauge.files.yaml_writer import item_text
from ragauge.gold.draft import choose_blocks
from tests.support.command import Folder, Row
from tests.support.umlaut_corpus import CODE, HOST, PORT, bytes_of, make_corpus


def new(folder: Folder, *options: str, out: str = "draft.yaml") -> str:
    done = folder.run("gold", "new", "--corpus", "corpus", "-o", out, *options)
    assert done.exit_code == 0, done.err
    return done.out


def loaded(folder: Folder, name: str = "draft.yaml") -> list[Row]:
    drafts: Any = yaml.safe_load((folder.path / name).read_text("utf-8"))
    return list(drafts)


def test_a_draft_has_evidence_and_no_question(folder: Folder) -> None:
    lookup = make_corpus(folder)
    printed = new(folder, "--section", "guide.md#S.1.2", "--negatives", "2")
    assert printed.splitlines()[:4] == [
        "wrote draft.yaml", "drafts     1  (prose 1)", "documents  1 of 2",
        "sections   1 of 4 that have text",
    ]  # fmt: skip
    text = (folder.path / "draft.yaml").read_text("utf-8")
    assert text.startswith(
        "# guide.md#S.1.2: Größe > Host\n# begins with: The host is local.\n- qid: q-"
    )
    row = loaded(folder)[0]
    entry = row["relevant"][0]
    assert entry["id"] == HOST
    assert bytes_of(lookup, entry) == entry["quote"] == "The host is local. It can be changed."
    plain: Row = {
        "qid": row["qid"], "question": "", "answerable": True, "relevant": [entry],
        "negatives": row["negatives"], "type": "prose", "draft": True,
    }  # fmt: skip
    assert row == plain
    assert len({negative["id"] for negative in row["negatives"]} - {HOST}) == 2
    for negative in row["negatives"]:
        assert bytes_of(lookup, negative) == negative["quote"]
    new(folder, "--section", "guide.md#S.1.2", "--negatives", "2", "--dialect", "canary", "--force")
    section = {"paraphrases": [], "anchor_section": "guide.md#S.1.2"}
    assert loaded(folder) == [{**plain, **section}]


def test_documents_come_first_then_types_then_sections(folder: Folder) -> None:
    """Four blocks of two documents; the guide has one code block, which is no less wanted."""
    lookup = make_corpus(folder)
    sections = {block.id: block.section for block in lookup.corpus.blocks}
    one = choose_blocks(lookup, 2)
    assert {block.doc for block in one} == {"guide.md", "notes.txt"}
    three = choose_blocks(lookup, 3)
    assert {block.type for block in three} == {"prose", "code"}
    every = choose_blocks(lookup, 100)
    assert len({(block.doc, sections[block.id]) for block in every}) == len(every) == 4
    assert [block.id for block in choose_blocks(lookup, 100, per_section=2)] == [
        block.id for block in lookup.corpus.blocks
    ]


def test_a_section_is_meant_with_all_below_it(folder: Folder) -> None:
    lookup = make_corpus(folder)
    blocks = choose_blocks(lookup, 9, sections=["guide.md#S.1.1"], per_section=9)
    assert [block.id for block in blocks] == [PORT, CODE]
    assert len(choose_blocks(lookup, 9, sections=["guide.md#S.1"], per_section=9)) == 4


def test_the_same_corpus_gives_the_same_bytes(folder: Folder) -> None:
    make_corpus(folder)
    new(folder, out="one.yaml")
    new(folder, out="two.yaml")
    assert (folder.path / "one.yaml").read_bytes() == (folder.path / "two.yaml").read_bytes()
    new(folder, out="draft.jsonl")
    lines = (folder.path / "draft.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == loaded(folder, "one.yaml")


def test_a_draft_neither_scores_nor_validates_until_a_person_confirms_it(folder: Folder) -> None:
    make_corpus(folder)
    new(folder, "-n", "1")
    folder.write("trace.jsonl", [{"qid": "A", "topk": []}])
    for command in (["score", "draft.yaml", "trace.jsonl"], ["validate", "draft.yaml"]):
        done = folder.run(*command)
        assert (done.exit_code, done.problems[0].code) == (3, "draft-item")
        assert done.problems[0].where == "draft.yaml:3"
        assert "without a question" in done.problems[0].message
    row = {**loaded(folder)[0], "qid": "A", "question": "What is local?"}
    folder.write("draft.yaml", f"- {item_text(row)}\n")
    done = folder.run("score", "draft.yaml", "trace.jsonl")
    assert "still a draft" in done.problems[0].message
    for confirmed in ({**row, "draft": False}, {k: row[k] for k in row if k != "draft"}):
        folder.write("draft.yaml", f"- {item_text(confirmed)}\n")
        assert folder.run("validate", "draft.yaml").exit_code == 0


def test_files_that_are_there_are_not_replaced(folder: Folder) -> None:
    make_corpus(folder)
    folder.write("draft.yaml", "- qid: mine\n")
    done = folder.run("gold", "new", "--corpus", "corpus", "-o", "draft.yaml")
    assert (done.exit_code, done.problems[0].code) == (2, "file-exists")
    new(folder, "--force")
    assert loaded(folder)[0]["draft"] is True


def test_nothing_to_draft_from_is_told(folder: Folder) -> None:
    make_corpus(folder, a_md="# One\n\nTwo words\n")
    done = folder.run("gold", "new", "--corpus", "corpus", "-o", "draft.yaml")
    assert (done.exit_code, done.problems[0].code) == (5, "nothing-measured")
    done = folder.run("gold", "new", "--corpus", "corpus", "--section", "a.md#S.7", "-o", "d.yaml")
    assert (done.exit_code, done.problems[0].code) == (3, "unresolved")
