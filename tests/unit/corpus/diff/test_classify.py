"""The migration map: every way in which a block, a section or a document changes, and its name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragauge.corpus.diff.map_file import read_map, write_map
from ragauge.errors import RagaugeError
from ragauge.model.migration import MigrationMap
from tests.support.cases import cases
from tests.support.corpus_versions import brief, corpus_of, mapped, rows_of

DOCS = Path(__file__).resolve().parents[4] / "docs"
GUIDE = """\
# Guide

Read this first, because it tells where things are and how they are called in the rest.

## Setup

Install the package with pip. It needs Python 3.11 and a compiler. Then run the check once.

The file holds the settings. It is read once when the server starts, and never again.

## Use

Start the server with one command. It listens on the port that the settings name.

Stop it with an interrupt; open requests are finished first and nothing is lost.
"""
OTHER = "# Other\n\nA page of another kind, about things that have no place in the guide at all.\n"


def blocks(migration: MigrationMap) -> dict[str, tuple[str, tuple[str, ...], float]]:
    return {name: brief(row) for name, row in rows_of(migration, "block").items()}


def changed(new: str, tmp_path: Path, old: str = GUIDE) -> MigrationMap:
    return mapped({"g.md": old}, {"g.md": new}, tmp_path)


def replaced(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


def test_a_corpus_is_the_same_as_itself(tmp_path: Path) -> None:
    migration = mapped({"g.md": GUIDE, "o.md": OTHER}, {"g.md": GUIDE, "o.md": OTHER}, tmp_path)
    assert all((row.kind, row.confidence) == ("same", 1.0) for row in migration.rows)
    assert all(row.new[0].id == row.old.id and row.new[0].runs is None for row in migration.rows)
    assert migration.header.counts == {
        "document": {"same": 2}, "section": {"same": 4}, "block": {"same": 6},
    }  # fmt: skip
    figures = migration.header.figures
    assert (figures.coverage, figures.duplicate_ids, figures.drift) == (1.0, 0, 0.0)
    assert all(target.met for target in migration.header.targets)


def test_a_changed_word_is_an_edit_and_what_is_behind_it_shifts(tmp_path: Path) -> None:
    """The second block has 75 bytes without blanks; `compiler` has 8: 67 / 75 = 0.8933."""
    migration = changed(replaced(GUIDE, "a compiler", "a linker"), tmp_path)
    listed = blocks(migration)
    assert listed["g.md#S.1.1.p.Bk001"] == ("edit", ("g.md#S.1.1.p.Bk001",), 0.8933)
    assert listed["g.md#S.1.p.Bk001"] == ("same", ("g.md#S.1.p.Bk001",), 1.0)
    for name in ("g.md#S.1.1.p.Bk002", "g.md#S.1.2.p.Bk001", "g.md#S.1.2.p.Bk002"):
        assert listed[name] == ("shift", (name,), 1.0)
    row = rows_of(migration, "block")["g.md#S.1.1.p.Bk002"]
    assert row.new[0].span == (row.old.span[0] - 2, row.old.span[1] - 2)  # 8 letters became 6


def test_a_text_that_grew_has_kept_everything(tmp_path: Path) -> None:
    """The confidence is of the old text: what came in is not held against it."""
    migration = changed(replaced(GUIDE, "check once.", "check once. Wait for it to end."), tmp_path)
    assert blocks(migration)["g.md#S.1.1.p.Bk001"] == ("edit", ("g.md#S.1.1.p.Bk001",), 1.0)


def test_a_text_under_another_number_is_a_shift_while_it_is_almost_the_same(tmp_path: Path) -> None:
    new = replaced(
        GUIDE, "## Setup\n", "## Setup\n\nA paragraph that was put in before all others.\n"
    )
    new = replaced(new, "a compiler", "a linker")
    listed = blocks(changed(new, tmp_path))
    assert listed["g.md#S.1.1.p.Bk001"] == ("shift", ("g.md#S.1.1.p.Bk002",), 0.8933)
    assert listed["g.md#S.1.1.p.Bk002"] == ("shift", ("g.md#S.1.1.p.Bk003",), 1.0)


def test_below_the_sure_share_a_row_is_for_review_and_below_the_least_unmapped(
    tmp_path: Path,
) -> None:
    """Ten words of five letters each, all different: 7 kept of 10 is 0.70, 5 kept is 0.50."""
    words = [
        "alpha",
        "bravo",
        "delta",
        "india",
        "kilos",
        "limas",
        "oscar",
        "romeo",
        "tango",
        "xrays",
    ]
    others = ["aaaaa", "bbbbb", "ddddd", "iiiii", "kkkkk"]

    def text(sentences: int) -> str:
        return f"# T\n\n{' '.join(words[:sentences] + others[: 10 - sentences])}\n"

    for sentences, expected in (
        (10, "same"),
        (9, "edit"),
        (7, "edit"),
        (6, "edit"),
        (5, "unmapped"),
    ):
        migration = changed(text(sentences), tmp_path / str(sentences), old=text(10))
        row = rows_of(migration, "block")["g.md#S.1.p.Bk001"]
        assert row.kind == expected
        assert row.confidence == (sentences / 10 if sentences > 5 else 0.0)
        assert row.for_review == (sentences < 9)
    assert row.note == "0.50 of it is in g.md#S.1.p.Bk001"
    assert migration.header.figures.coverage == 0.0


def test_an_inserted_subtitle_splits_a_block(tmp_path: Path) -> None:
    new = replaced(GUIDE, " It needs Python", "\n\n### Needs\n\nIt needs Python")
    migration = changed(new, tmp_path)
    listed = blocks(migration)
    assert listed["g.md#S.1.1.p.Bk001"] == (
        "split", ("g.md#S.1.1.p.Bk001", "g.md#S.1.1.1.p.Bk001"), 1.0,
    )  # fmt: skip
    assert listed["g.md#S.1.1.p.Bk002"] == ("shift", ("g.md#S.1.1.1.p.Bk002",), 1.0)
    section = rows_of(migration, "section")["g.md#S.1.1"]
    assert brief(section) == ("edit", ("g.md#S.1.1",), 1.0)


def test_a_removed_line_break_merges_two_blocks(tmp_path: Path) -> None:
    migration = changed(replaced(GUIDE, "once.\n\nThe file", "once.\nThe file"), tmp_path)
    rows = rows_of(migration, "block")
    for name, other in (("Bk001", "Bk002"), ("Bk002", "Bk001")):
        row = rows[f"g.md#S.1.1.p.{name}"]
        assert brief(row) == ("merge", ("g.md#S.1.1.p.Bk001",), 1.0)
        assert row.note == f"together with g.md#S.1.1.p.{other}"


def test_a_section_put_in_before_others_redirects_them(tmp_path: Path) -> None:
    new = replaced(
        GUIDE, "## Setup", "## News\n\nNothing is as it was before, but for the rest.\n\n## Setup"
    )
    migration = changed(new, tmp_path)
    sections = rows_of(migration, "section")
    assert brief(sections["g.md#S.1.1"]) == ("shift", ("g.md#S.1.2",), 1.0)
    assert brief(sections["g.md#S.1.2"]) == ("shift", ("g.md#S.1.3",), 1.0)
    assert blocks(migration)["g.md#S.1.2.p.Bk001"] == ("shift", ("g.md#S.1.3.p.Bk001",), 1.0)
    assert migration.header.figures.coverage == 1.0


def test_a_section_in_another_order_is_moved(tmp_path: Path) -> None:
    head, setup, use = re.split("(?=^## )", GUIDE, flags=re.MULTILINE)
    migration = changed(f"{head}{use}\n{setup}", tmp_path)
    kinds = {name: row.kind for name, row in rows_of(migration, "section").items()}
    assert sorted((kinds["g.md#S.1.1"], kinds["g.md#S.1.2"])) == ["move", "shift"]
    listed = blocks(migration)
    assert listed["g.md#S.1.1.p.Bk001"][1] == ("g.md#S.1.2.p.Bk001",)
    assert listed["g.md#S.1.2.p.Bk001"][1] == ("g.md#S.1.1.p.Bk001",)
    assert {confidence for _, _, confidence in listed.values()} == {1.0}


def test_a_section_in_another_document_is_moved(tmp_path: Path) -> None:
    use = GUIDE.index("## Use")
    migration = mapped(
        {"g.md": GUIDE, "o.md": OTHER},
        {"g.md": GUIDE[:use], "o.md": f"{OTHER}\n{GUIDE[use:]}"},
        tmp_path,
    )
    assert brief(rows_of(migration, "section")["g.md#S.1.2"]) == ("move", ("o.md#S.1.1",), 1.0)
    listed = blocks(migration)
    assert listed["g.md#S.1.2.p.Bk002"] == ("move", ("o.md#S.1.1.p.Bk002",), 1.0)
    assert brief(rows_of(migration, "document")["g.md"])[:2] == ("split", ("g.md", "o.md"))


def test_a_renamed_document_is_found_by_its_content(tmp_path: Path) -> None:
    migration = mapped({"g.md": GUIDE, "o.md": OTHER}, {"new/h.md": GUIDE, "o.md": OTHER}, tmp_path)
    assert brief(rows_of(migration, "document")["g.md"]) == ("move", ("new/h.md",), 1.0)
    for name, row in rows_of(migration, "block").items():
        kind = "same" if name.startswith("o.md") else "move"
        assert brief(row) == (kind, (name.replace("g.md", "new/h.md"),), 1.0)


def test_a_document_that_was_renamed_and_edited_all_over_is_found(tmp_path: Path) -> None:
    """No block is the same; rare phrases lead to the right ones."""
    new = GUIDE.replace(" it ", " that ").replace("It ", "This ").replace("server", "service")
    new = new.replace("one command", "a command").replace("first", "at first")
    migration = mapped({"g.md": GUIDE, "o.md": OTHER}, {"h.md": new, "o.md": OTHER}, tmp_path)
    assert brief(rows_of(migration, "document")["g.md"])[:2] == ("move", ("h.md",))
    for name, row in rows_of(migration, "block").items():
        assert [place.id for place in row.new] == [name.replace("g.md", "h.md")]


def test_copies_that_became_one_are_merged(tmp_path: Path) -> None:
    text = "The same paragraph stands on two pages, word by word, from beginning to end.\n"
    migration = mapped(
        {"a.md": f"# A\n\n{text}", "b.md": f"# B\n\n{text}"}, {"a.md": f"# A\n\n{text}"}, tmp_path
    )
    listed = blocks(migration)
    assert listed["a.md#S.1.p.Bk001"] == ("merge", ("a.md#S.1.p.Bk001",), 1.0)
    assert listed["b.md#S.1.p.Bk001"] == ("merge", ("a.md#S.1.p.Bk001",), 1.0)


def test_short_texts_that_stand_often_keep_their_place(tmp_path: Path) -> None:
    """`Example:` stands three times; the one whose neighbour is gone is not sent elsewhere."""
    old = "# T\n\n" + "".join(
        f"## {name}\n\nExample:\n\nThe {name} is a thing of its own, unlike all the others.\n\n"
        for name in ("first", "second", "third")
    )
    start, end = old.index("## second"), old.index("## third")
    listed = blocks(changed(old[:start] + old[end:], tmp_path, old=old))
    assert listed["g.md#S.1.1.p.Bk001"] == ("same", ("g.md#S.1.1.p.Bk001",), 1.0)
    assert listed["g.md#S.1.3.p.Bk001"] == ("shift", ("g.md#S.1.2.p.Bk001",), 1.0)
    assert listed["g.md#S.1.2.p.Bk001"][0] == "unmapped"
    assert listed["g.md#S.1.2.p.Bk002"][0] == "unmapped"


def test_a_repaired_hyphen_and_other_line_breaks_are_shifts_only(tmp_path: Path) -> None:
    old = "# T\n\nAll the infor-\nmation that there is, and some more\nthat there is not.\n"
    new = "# T\n\nAll the information that there is,\nand some more that there is not.\n"
    row = rows_of(changed(new, tmp_path, old=old), "block")["g.md#S.1.p.Bk001"]
    assert brief(row) == ("shift", ("g.md#S.1.p.Bk001",), 1.0)
    wrapped = old.replace("more\nthat", "more that").replace("there is,", "there\nis,")
    row = rows_of(changed(wrapped, tmp_path / "2", old=old), "block")["g.md#S.1.p.Bk001"]
    assert brief(row) == ("shift", ("g.md#S.1.p.Bk001",), 1.0)


def test_an_id_that_stands_twice_is_counted(tmp_path: Path) -> None:
    from msgspec.structs import replace

    from ragauge.corpus.diff.classify import migration_map

    one = corpus_of({"g.md": GUIDE}, tmp_path / "one")
    double = replace(one, blocks=(*one.blocks[:-1], replace(one.blocks[-1], id=one.blocks[0].id)))
    migration = migration_map(one, double)
    assert migration.header.figures.duplicate_ids == 1
    assert [target.met for target in migration.header.targets] == [True, False, True]


def test_what_kept_its_name_is_not_for_review(tmp_path: Path) -> None:
    """A fifth of the guide is gone; it is still the one under that heading, in that file."""
    cut = GUIDE.index("The file holds"), GUIDE.index("## Use")
    migration = changed(GUIDE[: cut[0]] + GUIDE[cut[1] :], tmp_path)
    section = rows_of(migration, "section")["g.md#S.1"]
    assert section.named
    assert 0.60 <= section.confidence < 0.85
    assert not section.for_review
    assert rows_of(migration, "document")["g.md"].named
    looked_at = [row.old.id for row in migration.rows if row.for_review]
    assert looked_at == ["g.md#S.1.1", "g.md#S.1.1.p.Bk002"]  # of S.1.1 less than 0.60 is left
    renamed = changed(GUIDE.replace("## Setup", "## Installation"), tmp_path / "2")
    assert not rows_of(renamed, "section")["g.md#S.1.1"].named


def test_empty_documents_are_rows_too(tmp_path: Path) -> None:
    migration = mapped(
        {"a.md": "", "b.md": "", "g.md": GUIDE}, {"b.md": "", "g.md": GUIDE}, tmp_path
    )
    documents = rows_of(migration, "document")
    assert brief(documents["b.md"]) == ("same", ("b.md",), 1.0)
    assert brief(documents["a.md"]) == ("unmapped", (), 0.0)


# --- a real document: the page of all metrics, which a generator wrote for readers ---


def page() -> str:
    return (DOCS / "reference" / "metrics.md").read_text("utf-8")


def long_blocks(text: str, tmp_path: Path) -> list[tuple[str, str]]:
    """Ids and texts of blocks of prose with at least 500 bytes and three sentences."""
    corpus = corpus_of({"m.md": text}, tmp_path / "plain")
    data = text.encode()
    pairs = [(block.id, data[slice(*block.span)].decode()) for block in corpus.blocks
             if block.type == "prose" and block.span[1] - block.span[0] >= 500]  # fmt: skip
    long_pairs = [pair for pair in pairs if pair[1].count(". ") >= 3 and text.count(pair[1]) == 1]
    assert long_pairs, "the page has no long paragraph any more: choose another one"
    return long_pairs


def test_a_sentence_changed_on_a_real_page(tmp_path: Path) -> None:
    """A word of 20 letters or fewer in 500 bytes or more: at least 0.95 is kept."""
    text = page()
    name, block = long_blocks(text, tmp_path)[0]
    words = re.findall(r"(?<= )[a-z]{4,20}(?= )", block)
    word = next(candidate for candidate in words if block.count(candidate) == 1)
    migration = mapped(
        {"m.md": text}, {"m.md": text.replace(block, block.replace(word, "zebra"))}, tmp_path
    )
    row = rows_of(migration, "block")[name]
    assert row.kind == "edit"
    assert 0.95 <= row.confidence < 1
    kinds = migration.header.counts["block"]
    assert kinds.keys() <= {"same", "shift", "edit"}
    assert kinds["edit"] == 1
    assert all(target.met for target in migration.header.targets)


def test_a_subtitle_and_a_lost_break_on_a_real_page(tmp_path: Path) -> None:
    text = page()
    name, block = long_blocks(text, tmp_path)[0]
    cut = block.index(". ", len(block) // 3) + 1
    split = text.replace(block, f"{block[:cut]}\n\n##### In between\n\n{block[cut + 1 :]}")
    row = rows_of(mapped({"m.md": text}, {"m.md": split}, tmp_path / "1"), "block")[name]
    assert (row.kind, len(row.new)) == ("split", 2)
    assert row.confidence >= 0.99
    back = mapped(
        {"m.md": split}, {"m.md": split.replace("\n\n##### In between\n\n", "\n")}, tmp_path / "2"
    )
    merged = [row for row in back.rows if row.kind == "merge" and row.of == "block"]
    assert len(merged) == 2
    assert {place.id for row in merged for place in row.new} == {name}


def test_sections_put_in_moved_and_renamed_on_a_real_page(tmp_path: Path) -> None:
    text = page()
    parts = re.split("(?=^## )", text, flags=re.MULTILINE)
    assert len(parts) >= 4
    more = "## Not there before\n\nThis section was not on the page until it was put in here.\n\n"
    put_in = mapped({"m.md": text}, {"m.md": "".join([parts[0], more, *parts[1:]])}, tmp_path / "1")
    rows = [row for row in put_in.rows if row.of == "block"]
    assert {row.kind for row in rows} <= {"same", "shift"}
    assert put_in.header.figures.coverage == 1.0
    assert brief(rows_of(put_in, "section")["m.md#S.1.1"])[:2] == ("shift", ("m.md#S.1.2",))
    order = [parts[0], *parts[2:], f"\n{parts[1]}"]
    moved = mapped({"m.md": text}, {"m.md": "".join(order)}, tmp_path / "2")
    assert brief(rows_of(moved, "section")["m.md#S.1.1"])[0] == "move"
    assert moved.header.figures.coverage == 1.0
    renamed = mapped({"m.md": text}, {"values/all.md": text}, tmp_path / "3")
    assert {row.kind for row in renamed.rows} == {"move"}
    assert {row.confidence for row in renamed.rows} == {1.0}


# --- the file ---


def test_a_map_is_read_as_it_was_written(tmp_path: Path) -> None:
    migration = changed(replaced(GUIDE, "a compiler", "a linker"), tmp_path)
    write_map(tmp_path / "map.jsonl", migration)
    assert read_map(tmp_path / "map.jsonl") == migration
    header = (tmp_path / "map.jsonl").read_bytes().partition(b"\n")[0]
    assert header.startswith(b'{"schema":"ragauge.migration/1","old":{"revision":"')


@cases(
    ("edit", "said", "line"),
    [
        (lambda _: [], "it is empty", None),
        (lambda lines: lines[:-1], "its header counts", None),
        (lambda lines: lines[1:], "missing required field", 1),
        (lambda lines: [lines[0].replace(b"migration/1", b"migration/9"), *lines[1:]], "schema", 1),
        (lambda lines: [lines[0], b'{"of":"block"}', *lines[2:]], "missing required field", 2),
        (lambda lines: [lines[0], b"{", *lines[2:]], "truncated", 2),
        (lambda lines: [*lines[:2], lines[2].replace(b'"confidence":1.0', b'"confidence":7')],
         "from 0 to 1", 3),
        (lambda lines: [*lines[:2], lines[2].replace(b'"shift"', b'"unmapped"')],
         "a row of the kind unmapped has 1 new places", 3),
    ],
)  # fmt: skip
def test_a_map_that_cannot_be_used_is_refused(
    tmp_path: Path, edit: Callable[[list[bytes]], list[bytes]], said: str, line: int | None
) -> None:
    migration = changed(f"\n{GUIDE}", tmp_path)
    path = tmp_path / "map.jsonl"
    write_map(path, migration)
    lines = path.read_bytes().split(b"\n")[:-1]
    path.write_bytes(b"".join(map_line + b"\n" for map_line in edit(lines)))
    with pytest.raises(RagaugeError) as caught:
        read_map(path)
    assert said in str(caught.value)
    assert caught.value.problems[0].place is not None
    assert caught.value.problems[0].place.line == line
    assert caught.value.exit_code == 3


@pytest.mark.slow
def test_neither_the_hash_seed_nor_the_run_shows(tmp_path: Path) -> None:
    """The same corpora give the same bytes in other processes."""
    new = GUIDE.replace("server", "service").replace("a compiler", "a linker")
    corpus_of({"g.md": GUIDE, "o.md": OTHER}, tmp_path / "old")
    corpus_of({"h.md": new, "o.md": f"{OTHER}\n{GUIDE[-90:]}"}, tmp_path / "new")
    written = []
    for seed in ("0", "1", "77"):
        out = tmp_path / f"{seed}.jsonl"
        command = [sys.executable, "-m", "ragauge", "corpus", "diff", "old", "new", "-o", str(out)]
        subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )  # fmt: skip
        written.append(out.read_bytes())
    assert len(set(written)) == 1
    assert len(written[0].splitlines()) > 8
