"""Ids in gold that stand for other text than when the set was frozen are never just followed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragauge.corpus.lookup import open_corpus
from ragauge.gold.editor.form import GoldEditor
from ragauge.gold.lock import lock_beside
from tests.support.command import Folder, Outcome, Row
from tests.support.corpus_versions import corpus_of

SECTIONS = [
    ("Install", "Install the package with pip before you do anything else."),
    ("Port", "It listens on port 8080 unless the settings name another one."),
    ("Backups", "Backups run every night at two and are kept for thirty days."),
    ("Keys", "A key is valid for one year and has to be renewed by its owner."),
    ("Logs", "Logs are written to the archive of the company, day by day."),
]
INSERTED = ("Upgrade", "Stop the server before you upgrade it, and start it again afterwards.")


def guide(sections: list[tuple[str, str]]) -> str:
    return "# Guide\n\n" + "\n".join(f"## {title}\n\n{text}\n" for title, text in sections)


OLD = guide(SECTIONS)
NEW = guide([*SECTIONS[:1], INSERTED, *SECTIONS[1:]])
# All but the first section have the number of their successor now.
MOVED = 4


def block(number: int) -> str:
    return f"g.md#S.1.{number}.p.Bk001"


def item(number: int, **fields: object) -> Row:
    asked = f"What is said about {SECTIONS[number - 1][0].lower()}?"
    return {"qid": f"q{number}", "question": asked, "answerable": True,
            "relevant": [block(number)], **fields}  # fmt: skip


GOLD = [item(number) for number in range(1, 6)]


@pytest.fixture
def edited(folder: Folder) -> Folder:
    """A set that was frozen with `old`, and `new`, where a section was inserted."""
    corpus_of({"g.md": OLD}, folder.path / "old")
    corpus_of({"g.md": NEW}, folder.path / "new")
    folder.write("gold.jsonl", GOLD)
    done = folder.run("gold", "freeze", "gold.jsonl", "--corpus", "old")
    assert done.exit_code == 0, done.err
    assert "texts      5 ids with a fingerprint\n" in done.out
    return folder


def findings(folder: Folder, corpus: str, rule: str, *options: str) -> list[Row]:
    run = ("gold", "lint", "gold.jsonl", "--corpus", corpus, "--format", "json", *options)
    listed = json.loads(folder.run(*run).out)["findings"]
    return [finding for finding in listed if finding["rule"] == rule]


def pinned(folder: Folder, corpus: str, *options: str) -> Outcome:
    run = ("gold", "pin", "gold.jsonl", "--corpus", corpus, "-o", "pinned.jsonl", *options)
    return folder.run(*run)


def test_lint_names_every_id_that_means_other_text(edited: Folder) -> None:
    for rule in ("text-changed", "not-pinned"):
        assert findings(edited, "old", rule) == []
    changed = findings(edited, "new", "text-changed")
    assert [finding["qid"] for finding in changed] == ["q2", "q3", "q4", "q5"]
    assert changed[0]["message"] == (
        f"`{block(2)}` stands for other text than when the set was frozen: "
        "`Stop the server before you upgrade it, and start it again...`"
    )
    assert edited.run("gold", "lint", "gold.jsonl", "--corpus", "new").exit_code == 3
    # Without the corpus nothing is compared.
    assert "text-changed" not in edited.run("gold", "lint", "gold.jsonl").out


def test_lint_says_which_ids_nothing_is_known_of(edited: Folder) -> None:
    (edited.path / "gold.lock").rename(edited.path / "kept.lock")
    (finding,) = findings(edited, "new", "not-pinned")
    assert (finding["severity"], finding["times"], finding["line"]) == ("warning", 5, 1)
    assert "the text of 5 ids in the evidence of 5 items is noted nowhere" in finding["message"]
    assert len(findings(edited, "new", "text-changed", "--lock", "kept.lock")) == MOVED
    # A set that was frozen without its corpus knows nothing either.
    assert edited.run("gold", "freeze", "gold.jsonl").exit_code == 0
    assert len(findings(edited, "new", "not-pinned")) == 1
    # Evidence with a place has its quote.
    assert pinned(edited, "old").exit_code == 0
    (edited.path / "pinned.jsonl").rename(edited.path / "gold.jsonl")
    assert findings(edited, "old", "not-pinned") == []


def test_pin_refuses_text_that_changed_since_the_freeze(edited: Folder) -> None:
    done = pinned(edited, "new")
    assert (done.exit_code, done.codes) == (3, {"text-changed"})
    assert [problem.about for problem in done.problems] == [
        f"qid q{number}, dialect native" for number in (2, 3, 4, 5)
    ]
    assert not (edited.path / "pinned.jsonl").exists()
    done = pinned(edited, "new", "--on-unresolved", "keep")
    assert done.exit_code == 0, done.err
    written = [json.loads(line) for line in Path("pinned.jsonl").read_text().splitlines()]
    assert written[0]["relevant"][0]["quote"] == SECTIONS[0][1]
    assert written[1:] == GOLD[1:]
    done = pinned(edited, "old")
    assert done.exit_code == 0, done.err
    assert "unchecked" not in done.out


def test_pin_counts_ids_that_the_lock_does_not_know(edited: Folder) -> None:
    more = {**item(1), "qid": "fresh"}
    edited.write("gold.jsonl", [GOLD[0], more])
    assert "unchecked  1 ids whose text the lock does not have\n" in pinned(edited, "old").out


def test_groups_grades_negatives_and_sections_are_compared(folder: Folder) -> None:
    """Of each kind the first stays, and the second is behind the insertion."""
    corpus_of({"g.md": OLD}, folder.path / "old")
    corpus_of({"g.md": NEW}, folder.path / "new")
    rows: list[Row] = [
        {"qid": "groups", "groups": [[block(1), block(2)]]},
        {"qid": "grades", "grades": {block(1): 1, block(3): 0}},
        {"qid": "negatives", "relevant": [block(1)], "negatives": [block(4)]},
        {"qid": "section", "relevant": [block(1)], "anchor_section": "S.1.2"},
        {"qid": "decoy", "relevant": [block(1)], "decoy_section": "g.md#S.1.5"},
        {"qid": "above", "relevant": [block(1)], "anchor_section": "S.1.1"},
    ]
    folder.write("gold.jsonl", [{"question": "?", **row} for row in rows])
    assert folder.run("gold", "freeze", "gold.jsonl", "--corpus", "old").exit_code == 0
    changed = findings(folder, "new", "text-changed")
    assert [(finding["qid"], finding["message"].split("`")[1]) for finding in changed] == [
        ("groups", block(2)), ("grades", block(3)), ("negatives", block(4)), ("section", "S.1.2"),
        ("decoy", "g.md#S.1.5"),
    ]  # fmt: skip


def test_chunks_of_a_list_are_compared(folder: Folder) -> None:
    """The same list of offsets on an edited text."""
    corpus_of({"g.md": OLD}, folder.path / "old")
    corpus_of({"g.md": NEW}, folder.path / "new")
    places = [OLD.index(text) for _, text in SECTIONS[:2]]
    ends = [start + len(text) for start, (_, text) in zip(places, SECTIONS[:2], strict=True)]
    folder.write(
        "chunks.jsonl",
        [
            {"id": f"c{number}", "doc": "g.md", "start": start, "end": end}
            for number, (start, end) in enumerate(zip(places, ends, strict=True))
        ],
    )
    gold = [{"qid": name, "question": "?", "relevant": [name]} for name in ("c0", "c1")]
    folder.write("gold.jsonl", gold)
    chunks = ("--chunks", "chunks.jsonl")
    done = folder.run("gold", "freeze", "gold.jsonl", "--corpus", "old", *chunks)
    assert "texts      2 ids with a fingerprint\n" in done.out
    (finding,) = findings(folder, "new", "text-changed", *chunks)
    assert finding["qid"] == "c1"


def test_verify_fails_for_other_text_and_notes_it_where_asked(edited: Folder) -> None:
    assert edited.run("gold", "verify", "gold.jsonl").exit_code == 0
    assert edited.run("gold", "verify", "gold.jsonl", "--corpus", "old").exit_code == 0
    done = edited.run("gold", "verify", "gold.jsonl", "--corpus", "new")
    assert done.exit_code == 1
    assert done.out.splitlines()[:2] == [
        "text     q2  gold.jsonl:2",
        f"  {block(2)} stands for other text now: `Stop the server before you upgrade it, and "
        "start it again...`",
    ]
    assert done.out.endswith("0 changed, 0 removed, 0 added, 5 unchanged, 4 of other text\n")
    done = edited.run("gold", "verify", "gold.jsonl", "--corpus", "new", "--update")
    assert (done.exit_code, done.out.count("wrote gold.lock")) == (0, 1)
    assert edited.run("gold", "verify", "gold.jsonl", "--corpus", "new").exit_code == 0


def test_fingerprints_stay_where_a_set_is_frozen_again_without_its_corpus(edited: Folder) -> None:
    before = (edited.path / "gold.lock").read_bytes()
    done = edited.run("gold", "freeze", "gold.jsonl")
    assert done.out.startswith("unchanged: gold.lock")
    edited.write("gold.jsonl", [{**GOLD[0], "relevant": [block(1), block(2)]}, *GOLD[1:]])
    assert edited.run("gold", "verify", "gold.jsonl", "--update").exit_code == 0
    assert (edited.path / "gold.lock").read_bytes() != before
    lock = lock_beside("gold.jsonl")
    assert lock is not None
    # The second id of the first item was never looked up.
    assert sorted(lock.texts_of(("q1", None), None)) == [block(1)]
    assert len(findings(edited, "new", "text-changed")) == MOVED


def test_fingerprints_are_added_to_a_lock_and_never_replaced_unseen(edited: Folder) -> None:
    (edited.path / "gold.lock").unlink()
    run = ("gold", "freeze", "gold.jsonl")
    assert edited.run(*run).exit_code == 0
    done = edited.run("gold", "verify", "gold.jsonl", "--corpus", "old")
    assert (done.exit_code, "no fingerprints to compare" in done.out) == (0, True)
    assert edited.run(*run, "--corpus", "old").exit_code == 0
    frozen = (edited.path / "gold.lock").read_bytes()
    done = edited.run(*run, "--corpus", "new")
    assert (done.exit_code, done.codes) == (2, {"file-exists"})
    assert (edited.path / "gold.lock").read_bytes() == frozen


def test_a_fingerprint_that_was_edited_is_refused(edited: Folder) -> None:
    lock = edited.path / "gold.lock"
    text = lock.read_text()
    old = json.loads(text.splitlines()[1])["texts"][block(1)]
    lock.write_text(text.replace(old, "0" * len(old)))
    done = edited.run("gold", "lint", "gold.jsonl", "--corpus", "new")
    assert (done.exit_code, done.codes) == (3, {"bad-lock"})


def test_white_space_and_case_are_no_other_text(edited: Folder) -> None:
    corpus_of({"g.md": OLD.replace(" before you", "\nBefore you")}, edited.path / "laid-out")
    assert findings(edited, "laid-out", "text-changed") == []


def test_migrated_items_are_not_held_against_the_old_fingerprints(edited: Folder) -> None:
    """`S.1.3` is frozen as the text on backups, and is now the one on the port."""
    edited.write("gold.jsonl", [item(1), {**item(2), "relevant": [block(2), block(3)]}])
    assert edited.run("gold", "freeze", "gold.jsonl", "--corpus", "old", "--force").exit_code == 0
    assert edited.run("corpus", "diff", "old", "new", "-o", "map.jsonl").exit_code == 0
    done = edited.run("gold", "migrate", "gold.jsonl", "--map", "map.jsonl", "-o", "moved.jsonl")
    assert done.exit_code == 0, done.err
    (edited.path / "moved.jsonl").rename(edited.path / "gold.jsonl")
    second = json.loads((edited.path / "gold.jsonl").read_text().splitlines()[1])
    assert second["relevant"] == [block(3), block(4)]
    assert findings(edited, "new", "text-changed") == []
    assert [finding["qid"] for finding in findings(edited, "new", "not-pinned")] == ["q2"]
    done = edited.run("gold", "verify", "gold.jsonl", "--corpus", "new", "--update")
    assert "migrated_to (nothing reads it)" in done.out
    assert findings(edited, "new", "not-pinned") == []
    assert pinned(edited, "new").exit_code == 0
    quotes = [
        [entry["quote"] for entry in json.loads(line)["relevant"]]
        for line in (edited.path / "pinned.jsonl").read_text().splitlines()
    ]
    assert quotes == [[SECTIONS[0][1]], [SECTIONS[1][1], SECTIONS[2][1]]]


def test_negatives_are_not_sought_near_other_text(edited: Folder) -> None:
    run = ("gold", "negatives", "gold.jsonl", "--corpus")
    assert edited.run(*run, "old").exit_code == 0
    done = edited.run(*run, "new")
    assert (done.exit_code, done.codes) == (3, {"text-changed"})


@pytest.mark.usefixtures("edited")
def test_the_form_shows_that_the_text_is_another() -> None:
    lookup = open_corpus("new")
    editor = GoldEditor("gold.jsonl", lookup, lock=lock_beside("gold.jsonl"))
    first, second = (shown.evidence[0] for shown in editor.file().items[:2])
    assert (first.problem, len(first.spots)) == (None, 1)
    assert second.problem is not None
    assert second.problem.startswith(f"`{block(2)}` stands for other text")
