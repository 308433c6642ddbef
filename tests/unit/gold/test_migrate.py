"""Pinned places whose blocks were merged, split or longer made, and the files that they go to."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml

from ragauge.compare.follow_map import MapFollower
from ragauge.corpus.diff.map_file import read_map
from ragauge.corpus.diff.redirects import Redirects
from ragauge.spans import Span
from tests.support.command import Folder, Row
from tests.support.corpus_versions import corpus_of

FIRST = "The first paragraph speaks at length about invoices, ledgers and the books in March."
SECOND = "Backups run every night at two and are kept for thirty days."
LONGER = "Logs are kept for a year by the archive of the company."
TORN = (
    "Keys are changed every month by two people.",
    "Nobody else has a copy of them at any time.",
)
OLD = f"# G\n\n{FIRST}\n\n{SECOND}\n\n{LONGER}\n\n{' '.join(TORN)}\n"
NEW = f"# G\n\n{FIRST} {SECOND}\n\n{LONGER} It is in a cave.\n\n{TORN[0]}\n\n{TORN[1]}\n"
BLOCK = "a.md#S.1.p.Bk00{}".format


def place(text: str, part: str) -> Row:
    assert text.isascii()
    assert text.count(part) == 1
    return {"doc": "a.md", "start": text.index(part), "end": text.index(part) + len(part)}


@pytest.fixture
def moved(folder: Folder) -> Folder:
    """Both versions of a corpus, and the map from one to the other."""
    corpus_of({"a.md": OLD}, folder.path / "old")
    corpus_of({"a.md": NEW}, folder.path / "new")
    assert folder.run("corpus", "diff", "old", "new", "-o", "map.jsonl").exit_code == 0
    return folder


def migrated(folder: Folder, what: str, row: Row, *options: str) -> Row:
    folder.write("in.jsonl", [row])
    done = folder.run(
        what, "migrate", "in.jsonl", "--map", "map.jsonl", "-o", "out.jsonl", *options
    )
    assert done.exit_code == 0, done.err
    written: Row = json.loads((folder.path / "out.jsonl").read_text())
    return written


# What each old block is now: its parts, each with the new block that holds it.
FOLLOWED = {
    "the first of two that became one": (1, [(1, FIRST)]),
    "the second of two that became one": (2, [(1, SECOND)]),
    "a block that got another sentence": (3, [(2, LONGER)]),
    "a block that became two": (4, [(3, TORN[0]), (4, TORN[1])]),
}


@pytest.mark.parametrize("case", FOLLOWED)
def test_pinned_evidence_stays_at_its_own_text(moved: Folder, case: str) -> None:
    number, parts = FOLLOWED[case]
    moved.write("gold.jsonl", [{"qid": "q", "question": "x?", "relevant": [BLOCK(number)]}])
    assert moved.run("gold", "pin", "gold.jsonl", "--corpus", "old", "-o", "p.jsonl").exit_code == 0
    pinned = json.loads((moved.path / "p.jsonl").read_text())
    entries = migrated(moved, "gold", pinned, "--corpus", "new")["relevant"]
    assert [(entry["id"], entry["quote"]) for entry in entries] == [
        (BLOCK(there), text) for there, text in parts
    ]
    for entry, (_, text) in zip(entries, parts, strict=True):
        assert {name: entry[name] for name in ("doc", "start", "end")} == place(NEW, text)
    checked = moved.run("validate", "out.jsonl", "--corpus", "new")
    assert checked.exit_code == 0, checked.err


def test_the_id_beside_a_place_does_not_change_where_it_goes(moved: Folder) -> None:
    bare = place(OLD, SECOND)
    named = {"id": BLOCK(2), **bare}
    entries = migrated(moved, "gold", {"qid": "q", "relevant": [bare, named]})["relevant"]
    assert entries == [place(NEW, SECOND), {"id": BLOCK(1), **place(NEW, SECOND)}]


def test_an_id_without_a_place_is_the_whole_new_block(moved: Folder) -> None:
    assert migrated(moved, "gold", {"qid": "q", "relevant": [BLOCK(2)]})["relevant"] == [BLOCK(1)]


def test_hits_and_citations_stay_at_their_own_text(moved: Folder) -> None:
    hit = {"id": BLOCK(2), **place(OLD, SECOND)}
    row = {"qid": "q", "topk": [hit], "answer_json": {"claim": "x", "citations": [hit]}}
    written = migrated(moved, "traces", row)
    now = {"id": BLOCK(1), "id_prev": BLOCK(2), **place(NEW, SECOND)}
    assert written["topk"] == [now]
    assert written["answer_json"]["citations"] == [now]


def test_a_whole_block_of_another_text_is_refused(moved: Folder) -> None:
    entry = {"id": BLOCK(2), **place(OLD, SECOND), "doc_hash": "0" * 64}
    moved.write("in.jsonl", [{"qid": "q", "relevant": [entry]}])
    done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", "out.jsonl")
    assert (done.exit_code, done.codes) == (3, {"unmapped"})
    assert not (moved.path / "out.jsonl").exists()


def test_a_comparison_takes_the_part_of_a_merged_block(moved: Folder) -> None:
    redirects = Redirects(read_map(moved.path / "map.jsonl"))
    row = redirects.blocks[BLOCK(2)]
    held = redirects.held(row, row.new[0])
    start, end = place(NEW, SECOND)["start"], place(NEW, SECOND)["end"]
    assert [part.span for part in held.places] == [(start, end)]
    assert (held.exact, held.share) == (True, 1.0)

    alike = Mock()
    alike.same_chunking.return_value = True
    found = MapFollower(redirects).by_id(BLOCK(2), alike)
    assert found is not None
    assert found[1].spans == (Span(start, end),)


# --- files ---

GOLDEN = f"""\
# Questions of the first hour.
owner: me
queries:
  # about money
  - id: k1
    query: "money?"  # as they asked it
    expected_chunk_ids:
      - "{BLOCK(1)}"  # the ledger
  - id: k2
    query: "backups # and more?"
    expected_chunk_ids: ["{BLOCK(2)}"]
"""


def test_yaml_stays_yaml_and_lost_comments_are_told(moved: Folder) -> None:
    moved.write("golden.yaml", GOLDEN)
    done = moved.run("gold", "migrate", "golden.yaml", "--map", "map.jsonl", "-o", "new.yaml")
    assert done.exit_code == 0, done.err
    text = (moved.path / "new.yaml").read_text()
    # The first item names the same id as before, so only the second one changes.
    moved_to = read_map(moved.path / "map.jsonl").header.new.revision
    new = GOLDEN.replace(f'["{BLOCK(2)}"]', f'[{BLOCK(1)}]\n    migrated_to: "{moved_to}"')
    assert text == new
    assert "comments" not in done.out
    assert moved.run("validate", "new.yaml", "--corpus", "new").exit_code == 0
    moved.write("golden.yaml", GOLDEN.replace(BLOCK(1), BLOCK(4)))
    done = moved.run("gold", "migrate", "golden.yaml", "--map", "map.jsonl", "-o", "new.yaml")
    text = (moved.path / "new.yaml").read_text()
    assert "# Questions of the first hour." in text
    assert "# about money" in text
    assert "# as they asked it" in text
    assert "comments" not in done.out
    # A comment inside a value that is written anew has no place any more.
    moved.write("golden.yaml", GOLDEN.replace(BLOCK(1), f'{BLOCK(4)}"  # now\n      - "{BLOCK(2)}'))
    done = moved.run("gold", "migrate", "golden.yaml", "--map", "map.jsonl", "-o", "new.yaml")
    assert "# now" not in (moved.path / "new.yaml").read_text()
    assert "comments not kept        1\n" in done.out
    ids = [query["expected_chunk_ids"] for query in yaml.safe_load(text)["queries"]]
    assert ids == [[BLOCK(3), BLOCK(4)], [BLOCK(1)]]


def test_lines_made_of_yaml_have_no_comments_and_say_so(moved: Folder) -> None:
    moved.write("golden.yaml", GOLDEN)
    done = moved.run("gold", "migrate", "golden.yaml", "--map", "map.jsonl", "-o", "new.jsonl")
    assert "comments not kept        4\n" in done.out
    rows = [json.loads(line) for line in (moved.path / "new.jsonl").read_text().splitlines()]
    assert [row["expected_chunk_ids"] for row in rows] == [[BLOCK(1)], [BLOCK(1)]]


def test_pin_and_negatives_keep_comments_and_tell_of_lost_ones(moved: Folder) -> None:
    text = GOLDEN.replace("# the ledger", f'# the ledger\n      - "{BLOCK(2)}"')
    listed = f"    negatives:\n      # far\n      - {BLOCK(4)}  # near\n"
    moved.write("golden.yaml", f"{text}{listed}")
    done = moved.run("gold", "pin", "golden.yaml", "--corpus", "old", "-o", "new.yaml")
    assert "comments   2 inside changed values, which are not kept\n" in done.out
    assert "# as they asked it" in (moved.path / "new.yaml").read_text()
    done = moved.run("gold", "negatives", "golden.yaml", "--corpus", "old", "-o", "new.yaml")
    assert "1 comments inside changed values are not kept\n" in done.out
    new = (moved.path / "new.yaml").read_text()
    assert all(comment in new for comment in ("# as they asked it", "# the ledger", "# near"))
    assert "# far" not in new


def test_an_array_stays_an_array(moved: Folder) -> None:
    moved.write("in.json", json.dumps([{"qid": "q", "relevant": [BLOCK(2)]}, {"qid": "r"}]))
    done = moved.run("gold", "migrate", "in.json", "--map", "map.jsonl", "-o", "out.json")
    assert done.exit_code == 0, done.err
    rows = json.loads((moved.path / "out.json").read_text())
    moved_to = read_map(moved.path / "map.jsonl").header.new.revision
    assert rows == [{"qid": "q", "relevant": [BLOCK(1)], "migrated_to": moved_to}, {"qid": "r"}]


@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.csv", "out.parquet"])
def test_forms_that_gold_is_not_written_in_are_refused(moved: Folder, name: str) -> None:
    moved.write("in.jsonl", [{"qid": "q", "relevant": [BLOCK(2)]}])
    done = moved.run("gold", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", name)
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert not Path(name).exists()


@pytest.mark.parametrize("name", ["out.yaml", "out.jsonl.zst"])
def test_traces_are_not_written_where_they_could_not_be_read(moved: Folder, name: str) -> None:
    moved.write("in.jsonl", [{"qid": "q", "topk": [BLOCK(2)]}])
    done = moved.run("traces", "migrate", "in.jsonl", "--map", "map.jsonl", "-o", name)
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert not Path(name).exists()


@pytest.mark.parametrize("name", ["in.jsonl", "in.json"])
def test_a_row_without_an_id_is_no_gold_item(moved: Folder, name: str) -> None:
    moved.write(name, '{"unit": "char", "items": []}\n')
    done = moved.run("gold", "migrate", name, "--map", "map.jsonl", "-o", f"out-{name}")
    assert (done.exit_code, done.codes) == (3, {"missing-field"})


def test_what_has_no_new_place_stops_yaml_too(moved: Folder) -> None:
    moved.write("golden.yaml", GOLDEN.replace(BLOCK(2), BLOCK(9)))
    done = moved.run("gold", "migrate", "golden.yaml", "--map", "map.jsonl", "-o", "new.yaml")
    assert (done.exit_code, done.codes) == (3, {"unmapped"})
    assert "golden.yaml:9" in done.err
    assert not (moved.path / "new.yaml").exists()
