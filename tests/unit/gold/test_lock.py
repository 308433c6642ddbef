"""`gold freeze` and `gold verify`: what was frozen is there again, and every change is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.gold.lock import lock_path, lock_text
from ragauge.gold.lock import make_lock as frozen_set
from ragauge.model.gold import GoldItem
from tests.support.cases import cases
from tests.support.command import GOLD, Folder, Outcome, Row, lines_of

PLACE = {"doc": "a.md", "start": 3, "end": 9, "id": "b1", "section": "S.1", "quote": "so it is"}
FULL: Row = {
    "qid": "F1",
    "question": "Which port does it listen on?",
    "paraphrases": ["Where does it listen?", "Which port is open?"],
    "answerable": True,
    "relevant": ["c1", "c2", PLACE],
    "gold_spans": [{"doc": "a.md", "start": 20, "end": 30}],
    "relevant_docs": ["a.md"],
    "groups": [["c1", "c2"]],
    "grades": {"c1": 2, "c2": 1},
    "anchor_section": "S.1",
    "negatives": ["c9"],
    "decoy_section": "S.2",
    "claims_any": ["port 8080"],
    "must_contain": ["8080"],
    "forbidden": ["8081"],
    "constraints": ["by default"],
    "type": "prose",
    "tags": ["net"],
    "group": "g",
    "difficulty": "hard",
    "lang": "en",
    "reviewer": "kim",
}


def frozen(folder: Folder, *rows: Row) -> Path:
    folder.write("gold.jsonl", rows)
    assert folder.run("gold", "freeze", "gold.jsonl").exit_code == 0
    return folder.path / "gold.lock"


def verified(folder: Folder, *rows: Row, options: tuple[str, ...] = ()) -> Outcome:
    folder.write("gold.jsonl", rows)
    return folder.run("gold", "verify", "gold.jsonl", *options)


def test_a_lock_has_a_line_about_the_set_and_one_for_each_item(folder: Folder) -> None:
    lock = frozen(folder, *reversed(GOLD))
    head, *lines = [json.loads(line) for line in lock.read_text().splitlines()]
    assert head["schema"] == "ragauge.gold-lock/1"
    assert (head["dialect"], head["count"]) == ("ship", 3)
    assert [line["qid"] for line in lines] == ["A1", "A2", "A3"]  # sorted, whatever the file
    assert lines[0]["item"]["claims_any"] == ["rejects null keys"]
    assert len({line["hash"] for line in lines}) == 3


def test_the_hash_is_the_one_that_scores_record(folder: Folder) -> None:
    lock = frozen(folder, *GOLD)
    folder.score(None, "--run-id", "one", "--store")
    printed = folder.run("runs", "show", "one", "--format", "json").out
    assert json.loads(lock.read_text().splitlines()[0])["gold_hash"] in printed


def test_the_same_items_in_any_order_are_the_same_bytes(folder: Folder) -> None:
    one = frozen(folder, *GOLD).read_bytes()
    folder.write("gold.jsonl", list(reversed(GOLD)))
    outcome = folder.run("gold", "freeze", "gold.jsonl", "-o", "other.lock")
    assert outcome.out.startswith("wrote other.lock, 3 items, dialect ship\ngold hash  ")
    assert (folder.path / "other.lock").read_bytes() == one


def test_nothing_changed(folder: Folder) -> None:
    frozen(folder, FULL, *GOLD)
    outcome = verified(folder, *GOLD, FULL)
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert outcome.out == "ok: 0 changed, 0 removed, 0 added, 4 unchanged\n"


# A field, another value for it, and what of the item is different then.
CHANGES: list[tuple[str, Any, list[str]]] = [
    ("question", "Which port?", ["question"]),
    ("question", None, ["question"]),
    ("paraphrases", ["Where does it listen?"], ["paraphrases"]),
    ("answerable", False, ["expect"]),
    ("answerable", None, ["expect"]),
    ("relevant", ["c1", PLACE], ["relevant"]),
    ("relevant", ["c1", "c2", {**PLACE, "end": 10}], ["anchors"]),
    ("relevant", ["c1", "c2", {**PLACE, "quote": "so it was"}], ["anchors"]),
    ("gold_spans", None, ["places"]),
    ("relevant_docs", [], ["relevant_docs"]),
    ("relevant_docs", None, ["relevant_docs"]),
    ("groups", [["c1"], ["c2"]], ["groups"]),
    ("grades", {"c1": 1, "c2": 1}, ["grades"]),
    ("anchor_section", "S.1.1", ["anchor_section"]),
    ("negatives", [], ["negatives"]),
    ("decoy_section", None, ["decoy_section"]),
    ("claims_any", [], ["claims_any"]),
    ("claims_any", None, ["claims_any"]),
    ("must_contain", ["8080", "port"], ["must_contain"]),
    ("forbidden", None, ["forbidden"]),
    ("constraints", ["never"], ["constraints"]),
    ("type", "code", ["type"]),
    ("tags", ["Net"], ["tags"]),
    ("group", None, ["group"]),
    ("difficulty", "easy", ["difficulty"]),
    ("lang", "de", ["lang"]),
]


@cases(("field", "value", "expected"), CHANGES, ids=lambda each: str(each)[:30])
def test_a_change_of_any_field_is_shown_and_fails(
    folder: Folder, field: str, value: Any, expected: list[str]
) -> None:
    frozen(folder, GOLD[0], FULL)
    outcome = verified(folder, GOLD[0], {**FULL, field: value})
    assert outcome.exit_code == 1
    lines = outcome.out.splitlines()
    assert lines[0] == "changed  F1  gold.jsonl:2"
    assert [line.strip() for line in lines if line[:2] == "  " and line[2] != " "] == expected
    assert lines[-1] == "1 changed, 0 removed, 0 added, 1 unchanged"


def test_old_and_new_stand_below_the_field(folder: Folder) -> None:
    frozen(folder, FULL)
    lines = verified(folder, {**FULL, "type": None, "tags": ["Net"]}).out.splitlines()
    assert lines[1:7] == [
        "  type", '    - "prose"', "    + (absent)", "  tags", '    - ["net"]', '    + ["Net"]',
    ]  # fmt: skip


def test_long_texts_are_cut_around_the_difference(folder: Folder) -> None:
    text = "word " * 100
    frozen(folder, {**FULL, "question": f"{text}old{text}"})
    out = verified(folder, {**FULL, "question": f"{text}new{text}"}).out
    assert "word old" in out
    assert "word new" in out
    assert max(map(len, out.splitlines())) <= 90


def test_fields_that_nothing_reads_are_told_and_pass(folder: Folder) -> None:
    frozen(folder, FULL)
    outcome = verified(folder, {**FULL, "reviewer": "lee"})
    assert outcome.exit_code == 0
    assert outcome.out.splitlines() == [
        "remark   F1  gold.jsonl:1",
        "  reviewer (nothing reads it)",
        '    - "kim"',
        '    + "lee"',
        "ok: 0 changed, 0 removed, 0 added, 1 unchanged",
    ]


def test_a_removed_item_fails(folder: Folder) -> None:
    frozen(folder, *GOLD)
    outcome = verified(folder, *GOLD[1:])
    assert outcome.exit_code == 1
    assert outcome.out.splitlines() == ["removed  A1", "0 changed, 1 removed, 0 added, 2 unchanged"]


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--no-new",), 1)])
def test_an_added_item_passes_unless_new_ones_are_refused(
    folder: Folder, options: tuple[str, ...], code: int
) -> None:
    frozen(folder, *GOLD[:2])
    outcome = verified(folder, *GOLD, options=options)
    assert outcome.exit_code == code
    assert "added    A3  gold.jsonl:3" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("ok: ") == (code == 0)


def test_turns_of_an_id_are_items_of_their_own(folder: Folder) -> None:
    turns = [{**GOLD[0], "turn": turn} for turn in (10, 2)]
    lock = frozen(folder, *turns, GOLD[0])
    order = [json.loads(line)["turn"] for line in lock.read_text().splitlines()[1:]]
    assert order == [None, 2, 10]
    outcome = verified(folder, {**turns[0], "question": "Why?"}, turns[1], GOLD[0])
    assert outcome.out.startswith("changed  A1 turn 10  gold.jsonl:1\n")


def test_update_shows_what_changed_and_writes_the_lock(folder: Folder) -> None:
    lock = frozen(folder, *GOLD)
    outcome = verified(folder, {**GOLD[0], "question": "Really?"}, *GOLD[1:], options=("--update",))
    assert outcome.exit_code == 0
    assert '    + "Really?"' in outcome.out
    assert "wrote gold.lock" in outcome.out
    after = lock.read_bytes()
    assert folder.run("gold", "verify", "gold.jsonl", "--update").exit_code == 0
    assert lock.read_bytes() == after
    folder.run("gold", "freeze", "gold.jsonl", "-o", "again.lock")
    assert (folder.path / "again.lock").read_bytes() == after


def test_update_writes_remarks_too(folder: Folder) -> None:
    frozen(folder, FULL)
    changed = {**FULL, "reviewer": "lee"}
    assert verified(folder, changed, options=("--update",)).exit_code == 0
    assert "remark" not in verified(folder, changed).out


def test_the_dialect_of_the_lock_is_read(folder: Folder) -> None:
    """Alone, the second set would be read as `kb`, and to expect documents would be to answer."""
    row = {"qid": "A1", "question": "Why?", "expected_doc_ids": ["a"]}
    folder.write("gold.jsonl", [row])
    folder.run("gold", "freeze", "gold.jsonl", "--dialect", "native")
    assert verified(folder, row).exit_code == 0
    assert folder.run("gold", "freeze", "gold.jsonl", "-o", "kb.lock").exit_code == 0
    assert verified(folder, row, options=("--lock", "kb.lock")).exit_code == 0
    assert (folder.path / "kb.lock").read_text() != (folder.path / "gold.lock").read_text()


def test_freeze_replaces_another_lock_by_force_only(folder: Folder) -> None:
    lock = frozen(folder, *GOLD)
    old = lock.read_bytes()
    assert folder.run("gold", "freeze", "gold.jsonl").out.startswith(
        "unchanged: gold.lock, 3 items"
    )
    folder.write("gold.jsonl", GOLD[:2])
    outcome = folder.run("gold", "freeze", "gold.jsonl")
    assert (outcome.exit_code, outcome.codes) == (2, {"file-exists"})
    assert lock.read_bytes() == old
    assert folder.run("gold", "freeze", "gold.jsonl", "--force").exit_code == 0
    assert lock.read_bytes() != old


@pytest.mark.parametrize("command", ["freeze", "verify"])
def test_an_id_that_stands_twice_is_refused(folder: Folder, command: str) -> None:
    frozen(folder, *GOLD)
    folder.write("gold.jsonl", [*GOLD, GOLD[0]])
    outcome = folder.run("gold", command, "gold.jsonl")
    assert (outcome.exit_code, outcome.codes) == (3, {"duplicate-qid"})
    assert outcome.problems[0].where == "gold.jsonl:4"


@pytest.mark.parametrize("command", ["freeze", "verify", "stats"])
def test_bad_rows_and_empty_sets_are_refused(folder: Folder, command: str) -> None:
    frozen(folder, *GOLD)
    folder.write("gold.jsonl", lines_of(GOLD) + b"17\n")
    outcome = folder.run("gold", command, "gold.jsonl")
    assert (outcome.exit_code, outcome.codes) == (3, {"not-a-row"})
    folder.write("gold.jsonl", b"")
    assert folder.run("gold", command, "gold.jsonl").exit_code == 5


# A line that is right by itself: another item under the same id.
OTHER_LINE = lock_text(frozen_set([GoldItem(qid="A1", question="Why?")], "ship", "gold"))
OTHER_LINE = OTHER_LINE.splitlines(keepends=True)[1]


def damaged(text: str) -> dict[str, str]:
    lines = text.splitlines(keepends=True)
    return {
        "an item was edited": text.replace("rejects null keys", "accepts null keys"),
        "an item was exchanged": text.replace(lines[1], OTHER_LINE),
        "the count was edited": text.replace('"count":3', '"count":2'),
        "an item is gone": "".join(lines[:-1]),
        "an item stands twice": text + lines[-1],
        "the id of a line was edited": text.replace('{"qid":"A1","turn"', '{"qid":"A9","turn"'),
        "a conflict was left": text.replace(lines[2], f"<<<<<<< ours\n{lines[2]}"),
        "a line is empty": text.replace(lines[2], f"\n{lines[2]}"),
        "it is cut off": text[:-40],
        "the head is gone": "".join(lines[1:]),
        "it is empty": "",
        "it is a list": "[]\n",
        "it is something else": '{"schema": "ragauge.scores/1"}\n',
    }


@cases("kind", damaged("\n\n\n"))
def test_a_damaged_lock_is_refused(folder: Folder, kind: str) -> None:
    lock = frozen(folder, *GOLD)
    text = lock.read_text()
    lock.write_text(damaged(text)[kind])
    assert lock.read_text() != text
    outcome = folder.run("gold", "verify", "gold.jsonl", "--update")
    assert (outcome.exit_code, outcome.codes) == (3, {"bad-lock"})
    assert outcome.out == ""
    assert lock.read_text() == damaged(text)[kind]  # and not written over


def test_the_line_that_was_edited_is_named(folder: Folder) -> None:
    lock = frozen(folder, *GOLD)
    lock.write_text(lock.read_text().replace("example.com", "example.org"))
    outcome = folder.run("gold", "verify", "gold.jsonl")
    assert [problem.where for problem in outcome.problems] == ["gold.lock:4"]
    assert "`A3`" in outcome.problems[0].message


def test_a_newer_lock_says_so(folder: Folder) -> None:
    lock = frozen(folder, *GOLD)
    lock.write_text(lock.read_text().replace("gold-lock/1", "gold-lock/2"))
    outcome = folder.run("gold", "verify", "gold.jsonl")
    assert outcome.codes == {"bad-lock"}
    assert "upgrade ragauge" in outcome.problems[0].hint


def test_a_missing_lock_leads_to_freeze(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    outcome = folder.run("gold", "verify", "gold.jsonl")
    assert (outcome.exit_code, outcome.codes) == (2, {"file-not-found"})
    assert "gold freeze" in outcome.problems[0].hint


@cases(
    ("gold", "expected"),
    [
        ("eval/gold.jsonl", "eval/gold.lock"),
        ("gold.jsonl.gz", "gold.lock"),
        ("gold.v2.yaml", "gold.v2.lock"),
        ("gold", "gold.lock"),
    ],
)
def test_a_lock_lies_beside_its_set(gold: str, expected: str) -> None:
    assert lock_path(gold) == Path(expected)


def test_at_most_twenty_of_a_kind_are_shown(folder: Folder) -> None:
    rows = [{**GOLD[0], "qid": f"Q{n:02}"} for n in range(25)]
    frozen(folder, *rows)
    out = verified(folder, *({**row, "question": "?"} for row in rows)).out
    assert out.count("changed  Q") == 20
    assert "changed  ... and 5 more" in out
