"""`ragauge compare --map`: two runs over two versions of a corpus, followed by its map."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command import Folder
from tests.support.corpora import made

Row = dict[str, Any]

#   0 heading to 7, 9 prose to 31, 33 prose to 63; 64 in all
OLD = "# Guide\n\nKeys must not be empty.\n\nThe limit is forty requests.\n"
INTRODUCTION = "An introduction that is new."
NEW = OLD.replace("Keys", f"{INTRODUCTION}\n\nKeys")
KEYS, LIMIT = "Keys must not be empty.", "The limit is forty requests."


def span(text: str, part: str) -> dict[str, Any]:
    start = text.encode().index(part.encode())
    return {"doc": "guide.md", "start": start, "end": start + len(part.encode())}


def traces(text: str, *order: str) -> list[Row]:
    """Each question gets these parts as hits, each in a chunk of the text of its own."""
    hits = [{"id": f"{len(text)}-{n}", **span(text, part)} for n, part in enumerate(order)]
    return [{"qid": qid, "hits": hits} for qid in ("keys", "limit")]


@pytest.fixture
def versions(folder: Folder) -> Folder:
    """Both corpora, their map, and gold of the old one; run `a` found all, `b` the limit only."""
    made(folder.path, {"guide.md": OLD}, "old")
    made(folder.path, {"guide.md": NEW}, "new")
    assert folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl").exit_code == 0
    folder.write("gold.jsonl", [
        {"qid": qid, "question": f"{qid}?", "relevant": [span(OLD, part)]}
        for qid, part in (("keys", KEYS), ("limit", LIMIT))
    ])  # fmt: skip
    folder.write("a.jsonl", traces(OLD, KEYS, LIMIT))
    folder.write("b.jsonl", traces(NEW, INTRODUCTION, LIMIT))
    return folder


def compared(folder: Folder, *arguments: str) -> dict[str, Any]:
    outcome = folder.run("compare", *arguments, "--format", "json")
    assert outcome.exit_code == 0, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def ranks(found: dict[str, Any]) -> dict[str, tuple[int | None, int | None]]:
    return {
        each["query_id"]: (each["a_hit_rank"], each["b_hit_rank"]) for each in found["per_query"]
    }


def test_places_are_followed_into_the_new_corpus(versions: Folder) -> None:
    files = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    found = compared(versions, *files, "--map", "map.jsonl")
    # keys: rank 1 before, nowhere now; limit: rank 2 on both sides
    assert ranks(found) == {"keys": (1, None), "limit": (2, 2)}
    assert {each["query_id"]: each["kind"] for each in found["per_query"]} == {
        "keys": "regression", "limit": "draw",
    }  # fmt: skip
    assert found["deltas"]["rungs"]["doc_span"] == 2
    assert "expected pieces followed into the new corpus: 2" in found["notes"]
    # Without the map the old bytes are other words in the new text: limit seems lost, too.
    assert ranks(compared(versions, *files))["limit"] != (2, 2)


def migrate(folder: Folder) -> None:
    done = folder.run("gold", "migrate", "gold.jsonl", "--map", "map.jsonl", "-o", "new.jsonl")
    assert done.exit_code == 0, done.err


def test_gold_that_moved_with_the_corpus_is_still_the_same(versions: Folder) -> None:
    migrated = versions.run(
        "gold", "migrate", "gold.jsonl", "--map", "map.jsonl", "-o", "new.jsonl"
    )
    assert migrated.exit_code == 0, migrated.err
    for name, gold in (("a", "gold.jsonl"), ("b", "new.jsonl")):
        outcome = versions.run("score", gold, f"{name}.jsonl", "--run-id", name, "--store")
        assert outcome.exit_code == 0, outcome.err
    refused = versions.run("compare", "a", "b")
    assert "nothing-in-common" in refused.err
    found = compared(versions, "a", "b", "--map", "map.jsonl")
    assert ranks(found) == {"keys": (1, None), "limit": (2, 2)}
    assert found["left_out"] == {}
    assert "questions whose gold moved with the corpus: 2" in found["notes"]


def test_gold_that_was_changed_besides_is_left_out(versions: Folder) -> None:
    migrate(versions)
    rows = [json.loads(line) for line in (versions.path / "new.jsonl").read_text().splitlines()]
    rows[0]["question"] = "What of keys?"
    versions.write("new.jsonl", rows)
    for name, gold in (("a", "gold.jsonl"), ("b", "new.jsonl")):
        versions.run("score", gold, f"{name}.jsonl", "--run-id", name, "--store")
    found = compared(versions, "a", "b", "--map", "map.jsonl")
    assert ranks(found) == {"limit": (2, 2)}
    assert found["left_out"] == {"gold-changed": 1}


def test_a_map_that_says_nothing_says_so(versions: Folder) -> None:
    same = ("a.jsonl", "a.jsonl", "--gold", "gold.jsonl", "--map")
    made(versions.path, {"other.md": "Other words.\n"}, "c")
    made(versions.path, {"other.md": "Other words, now.\n"}, "d")
    assert versions.run("corpus", "diff", "c", "d", "-o", "else.jsonl").exit_code == 0
    found = compared(versions, *same, "else.jsonl")
    assert found["notes"] == ["the map says nothing of what these runs expect"]
    assert ranks(found) == {"keys": (1, 1), "limit": (2, 2)}


def test_a_map_of_other_versions_is_not_followed(versions: Folder) -> None:
    """Where runs know the hashes of their documents, those of the map must be the same."""
    old, new = (json.loads((versions.path / name / "documents.jsonl").read_text())["hash"]
                for name in ("old", "new"))  # fmt: skip
    files = ("c.jsonl", "d.jsonl", "--gold", "gold.jsonl", "--map", "map.jsonl")
    for before, after, followed in ((old, new, True), (new, new, False), (old, old, False)):
        for name, text, known in (("c", OLD, before), ("d", NEW, after)):
            rows = traces(text, KEYS, LIMIT)
            hits = [{**hit, "doc_hash": known} for hit in rows[0]["hits"]]
            versions.write(f"{name}.jsonl", [{**row, "hits": hits} for row in rows])
        notes = compared(versions, *files)["notes"]
        assert ("expected pieces followed into the new corpus: 2" in notes) == followed, notes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"relevant_docs": ["guide.md"]}, {"relevant_docs": ["other.md"]}),
        ({"relevant": ["x", "y"], "groups": [["x"], ["y"]]},
         {"relevant": ["x", "y"], "groups": [["x", "y"]]}),
        ({"grades": {"x": 3, "y": 1}}, {"grades": {"x": 1, "y": 1}}),
        ({"relevant": ["x"], "negatives": ["n"]}, {"relevant": ["x"]}),
        ({"relevant": ["x"], "anchor_section": "S.1"},
         {"relevant": ["x"], "anchor_section": "S.9"}),
        ({"relevant": [span(OLD, KEYS)]}, {"relevant": [span(NEW, LIMIT)]}),
    ],
    ids=["documents", "groups", "grades", "negatives", "section", "place"],
)  # fmt: skip
def test_evidence_that_the_map_does_not_explain_was_changed(
    versions: Folder, before: Row, after: Row
) -> None:
    """Otherwise a comparison would hide what somebody wrote into the gold set."""
    for name, evidence in (("one", before), ("two", after)):
        versions.write(f"{name}.jsonl", [{"qid": "keys", "question": "keys?", **evidence}])
        versions.run(
            "score", f"{name}.jsonl", "a.jsonl", "--run-id", name, "--store", "--profile", "all"
        )
    refused = versions.run("compare", "one", "two", "--map", "map.jsonl")
    assert refused.exit_code == 4
    assert "nothing-in-common" in refused.err


def test_a_name_that_another_document_has_now_is_no_trouble(folder: Folder) -> None:
    """The guide was renamed, and something else stands at its old name."""
    made(folder.path, {"guide.md": OLD}, "old")
    made(folder.path, {"book.md": OLD, "guide.md": "# Other\n\nNothing of it is here.\n"}, "new")
    assert folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl").exit_code == 0
    folder.write("gold.jsonl", [{"qid": "keys", "question": "?", "relevant": [span(OLD, KEYS)]}])
    one, other = span(OLD, KEYS), {**span(OLD, KEYS), "doc": "book.md"}
    wrong = {"id": "w", "doc": "guide.md", "start": 0, "end": 7, "doc_hash": "of the new guide"}
    folder.write("a.jsonl", [{"qid": "keys", "hits": [{"id": "1", **one}]}])
    folder.write("b.jsonl", [{"qid": "keys", "hits": [wrong, {"id": "2", **other}]}])
    found = compared(folder, "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--map", "map.jsonl")
    assert ranks(found) == {"keys": (1, 2)}
    assert found["deltas"]["rungs"]["doc_span"] == 1


def test_ids_of_blocks_and_names_of_documents_are_followed(folder: Folder) -> None:
    """Hits that have no places: a section was put in, and a document has another name."""
    old = {
        "guide.md": "# Guide\n\n## Keys\n\nKeys must not be empty.\n",
        "price.md": "# Price\n\nTen.\n",
    }
    new = {"guide.md": old["guide.md"].replace("## Keys", "## New\n\nNew words.\n\n## Keys"),
           "cost.md": old["price.md"]}  # fmt: skip
    made(folder.path, old, "old")
    made(folder.path, new, "new")
    assert folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl").exit_code == 0
    before, after = "guide.md#S.1.1.p.Bk001", "guide.md#S.1.2.p.Bk001"
    folder.write("gold.jsonl", [
        {"qid": "keys", "question": "keys?", "relevant": [before]},
        {"qid": "price", "question": "price?", "relevant_docs": ["price.md"]},
    ])  # fmt: skip
    for name, block, doc in (("a", before, "price.md"), ("b", after, "cost.md"),
                             ("c", before, "price.md")):  # fmt: skip
        hits = [[{"id": "other", "doc": "x.md"}, {"id": block, "doc": "guide.md"}],
                [{"id": "p", "doc": doc}]]  # fmt: skip
        rows = [
            {"qid": qid, "hits": each} for qid, each in zip(("keys", "price"), hits, strict=True)
        ]
        folder.write(f"{name}.jsonl", rows)
    files = ("--gold", "gold.jsonl", "--map", "map.jsonl")
    found = compared(folder, "a.jsonl", "b.jsonl", *files)
    assert {each["kind"] for each in found["per_query"]} == {"draw"}
    assert ranks(found)["keys"] == (2, 2)
    # The old id is another block in the new corpus, and the old name no document of it.
    lost = compared(folder, "a.jsonl", "c.jsonl", *files)
    assert {each["query_id"]: each["kind"] for each in lost["per_query"]} == {
        "keys": "regression", "price": "regression",
    }  # fmt: skip


def test_files_of_scores_have_no_places_to_follow(versions: Folder) -> None:
    for name in ("a", "b"):
        versions.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
    refused = versions.run("compare", "a.json", "b.json", "--map", "map.jsonl")
    assert refused.exit_code == 2
    assert "--map" in refused.err
