"""Gold that was pinned to an older text: it is refused or followed, and never scored unseen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command import Folder, Row

FIRST = "Alpha is written here, and it is a whole sentence.\n"
SECOND = "Beta stands below it, and it is a sentence as well.\n"
OLD = f"# G\n\n## One\n\n{FIRST}\n## Two\n\n{SECOND}"
NEW = f"# G\n\n## Zero\n\nSomething new came first, and took its number.\n{OLD[4:]}"
ONE, TWO = "g.md#S.1.1.p.Bk001", "g.md#S.1.2.p.Bk001"


@pytest.fixture
def edited(folder: Folder) -> Folder:
    """A corpus, its next version with a section before all others, the map, and pinned gold."""
    for name, text in (("old", OLD), ("new", NEW)):
        folder.write(f"{name}-docs/g.md", text)
        folder.run("corpus", "build", f"{name}-docs", "-o", name)
    folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl")
    gold: Row = {
        "qid": "A", "question": "?", "answerable": True, "relevant": [ONE],
        "anchor_section": "g.md#S.1.1", "negatives": [TWO],
    }  # fmt: skip
    folder.write("gold.jsonl", [gold])
    folder.run("gold", "pin", "gold.jsonl", "--corpus", "old", "-o", "pinned.jsonl")
    return folder


def row(folder: Folder, name: str) -> Any:
    return json.loads((folder.path / name).read_text("utf-8"))


def test_gold_of_another_version_is_not_scored(edited: Folder) -> None:
    edited.write("trace.jsonl", [{"qid": "A", "topk": [ONE]}])
    arguments = ("score", "pinned.jsonl", "trace.jsonl", "--profile", "all", "--corpus")
    assert edited.run(*arguments, "old").exit_code == 0
    outcome = edited.run(*arguments, "new")
    assert (outcome.exit_code, "quote-moved" in outcome.err, "pinned.jsonl:1" in outcome.err) == (
        3, True, True,
    )  # fmt: skip


def test_a_place_that_is_followed_gets_the_id_of_the_block_there(edited: Folder) -> None:
    """Its old id is the inserted paragraph now, and a hit on that would count."""
    edited.run("gold", "pin", "pinned.jsonl", "--corpus", "new", "--repin", "-o", "again.jsonl")
    (entry,) = row(edited, "again.jsonl")["relevant"]
    assert entry["id"] == TWO
    assert NEW.encode()[entry["start"] : entry["end"]].decode() == FIRST.strip()


def test_a_place_inside_a_block_has_no_id_any_more(edited: Folder) -> None:
    pinned = row(edited, "pinned.jsonl")
    entry = pinned["relevant"][0]
    start = OLD.encode().index(b"written here")
    entry |= {"start": start, "end": start + 12, "quote": "written here"}
    edited.write("part.jsonl", [pinned])
    edited.run("gold", "pin", "part.jsonl", "--corpus", "new", "--repin", "-o", "again.jsonl")
    (moved,) = row(edited, "again.jsonl")["relevant"]
    assert ("id" in moved, moved["quote"]) == (False, "written here")


def test_an_id_of_a_block_that_lies_elsewhere_is_refused(edited: Folder) -> None:
    pinned = row(edited, "pinned.jsonl")
    pinned["relevant"][0]["id"] = TWO
    edited.write("wrong.jsonl", [pinned])
    outcome = edited.run("validate", "wrong.jsonl", "--corpus", "old")
    assert (outcome.exit_code, "unresolved" in outcome.err) == (3, True)
    pinned["relevant"][0]["id"] = "chunk-of-long-ago"
    edited.write("other.jsonl", [pinned])
    assert edited.run("validate", "other.jsonl", "--corpus", "old").exit_code == 0


def test_an_item_is_migrated_once_and_as_a_whole(edited: Folder) -> None:
    edited.run("gold", "migrate", "pinned.jsonl", "--map", "map.jsonl", "-o", "one.jsonl")
    once = row(edited, "one.jsonl")
    assert once["anchor_section"] == "g.md#S.1.2"
    assert [negative["id"] for negative in once["negatives"]] == ["g.md#S.1.3.p.Bk001"]
    outcome = edited.run("gold", "migrate", "one.jsonl", "--map", "map.jsonl", "-o", "two.jsonl")
    assert row(edited, "two.jsonl") == once
    assert "already moved" in outcome.out


def test_grades_of_pinned_evidence_count_once(edited: Folder) -> None:
    """By hand: 1 / (3 + 1 / log2 3) = 0.2754, with ids and with places alike."""
    gold = {"qid": "A", "question": "?", "relevant": [ONE, TWO], "grades": {ONE: 1, TWO: 3}}
    edited.write("graded.jsonl", [gold])
    edited.run("gold", "pin", "graded.jsonl", "--corpus", "old", "-o", "placed.jsonl")
    edited.write("trace.jsonl", [{"qid": "A", "topk": [ONE, "elsewhere"]}])
    for name in ("graded.jsonl", "placed.jsonl"):
        outcome = edited.run(
            "score", name, "trace.jsonl", "--profile", "all", "--corpus", "old", "--k", "2",
            "--metrics", "retrieval.ndcg", "--format", "json",
        )  # fmt: skip
        value = json.loads(outcome.out)["metrics"]["retrieval.ndcg@2"]["value"]
        assert value == pytest.approx(0.2754, abs=5e-5), name
