"""What holds for the map of any two versions: kept text is found, to the byte, and nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ragauge.corpus.diff.classify import migration_map
from ragauge.corpus.diff.map_file import write_map
from ragauge.corpus.diff.redirects import Redirects
from ragauge.corpus.manifest import Corpus
from ragauge.errors import RagaugeError
from ragauge.gold.migrate.evidence import OnUnmapped
from ragauge.gold.migrate.files import MigratedKind, migrate_file
from tests.support.command import lines_of
from tests.support.corpus_versions import corpus_of
from tests.support.effort import examples

WORDS = [
    "apple", "bridge", "castle", "dragon", "engine", "forest", "garden", "harbour", "island",
    "jungle", "kettle", "lantern", "mountain", "needle", "orchard", "pepper", "quarry", "river",
]  # fmt: skip
# A paragraph is long enough to be itself, and its number makes it the only one of its kind.
PARAGRAPH = st.tuples(
    st.integers(0, 400), st.lists(st.sampled_from(WORDS), min_size=7, max_size=30)
)
PART = st.one_of(
    PARAGRAPH.map(lambda made: f"Number {made[0]} {' '.join(made[1])}."),
    st.sampled_from(["## Overview", "## Details", "### More", "Example:", "- a\n- b", "***"]),
)
FILE = st.lists(PART, min_size=1, max_size=12)
FILES = st.dictionaries(st.sampled_from(["a.md", "b.md", "c/d.md"]), FILE, min_size=1)


@st.composite
def edits(draw: st.DrawFn) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Files, and the same after parts came, went, changed or moved, and files were renamed."""
    old = draw(FILES)
    new = {name: list(parts) for name, parts in old.items()}
    for _ in range(draw(st.integers(0, 6))):
        name = draw(st.sampled_from(sorted(new)))
        parts = new[name]
        place = draw(st.integers(0, len(parts)))
        kind = draw(st.sampled_from(["insert", "delete", "change", "move", "rename", "swap"]))
        if kind == "insert":
            parts.insert(place, draw(PART))
        elif kind == "delete" and parts:
            parts.pop(place % len(parts))
        elif kind == "change" and parts:
            word = draw(st.sampled_from(WORDS))
            parts[place % len(parts)] = parts[place % len(parts)].replace(word, "zebra")
        elif kind == "move" and parts:
            part = parts.pop(place % len(parts))
            target = new[draw(st.sampled_from(sorted(new)))]
            target.insert(draw(st.integers(0, len(target))), part)
        elif kind == "rename":
            new[f"renamed-{len(new)}-{name.replace('/', '-')}"] = new.pop(name)
        elif kind == "swap" and len(parts) > 1:
            parts[0], parts[-1] = parts[-1], parts[0]
    return old, new


def built(files: dict[str, list[str]], folder: Path) -> Corpus:
    return corpus_of(
        {name: "".join(f"{part}\n\n" for part in parts) for name, parts in files.items()}, folder
    )


def texts(corpus: Corpus) -> dict[str, bytes]:
    return {document.doc: corpus.text(document) for document in corpus.documents}


def by_text(corpus: Corpus, known: dict[str, bytes]) -> dict[bytes, list[str]]:
    ids_by_text: dict[bytes, list[str]] = {}
    for block in corpus.blocks:
        ids_by_text.setdefault(known[block.doc][slice(*block.span)], []).append(block.id)
    return ids_by_text


@given(edits(), st.sets(st.integers(0, 11), max_size=4))
@examples(30)
def test_a_block_holds_its_own_text_of_another_and_no_more(
    versions: tuple[dict[str, list[str]], dict[str, list[str]]], joins: set[int]
) -> None:
    old_files, new_files = versions
    for parts in new_files.values():  # paragraphs become one with the next
        for at in sorted(joins, reverse=True):
            pair = parts[at : at + 2]
            if len(pair) == 2 and all(part.startswith("Number") for part in pair):
                parts[at : at + 2] = [" ".join(pair)]
    with TemporaryDirectory() as folder:
        old, new = built(old_files, Path(folder, "old")), built(new_files, Path(folder, "new"))
        before, after = texts(old), texts(new)
        redirects = Redirects(migration_map(old, new))
    for row in redirects.blocks.values():
        mine = before[row.old.doc][slice(*row.old.span)]
        for place in row.new:
            held = redirects.held(row, place)
            assert held.places
            for part in held.places:
                assert place.span[0] <= part.span[0] < part.span[1] <= place.span[1]
                assert (part.doc, part.block) == (place.doc, place.id)
            if held.exact:
                (only,) = held.places
                assert after[only.doc][slice(*only.span)] == mine
        if len(row.new) == 1 and after[row.new[0].doc][slice(*row.new[0].span)].count(mine) == 1:
            assert redirects.held(row, row.new[0]).exact


@given(edits())
@examples(50)
def test_every_block_that_survives_is_mapped_to_itself(
    versions: tuple[dict[str, list[str]], dict[str, list[str]]],
) -> None:
    with TemporaryDirectory() as folder:
        old, new = built(versions[0], Path(folder, "old")), built(versions[1], Path(folder, "new"))
        before, after = texts(old), texts(new)
        migration = migration_map(old, new)
    rows = {row.old.id: row for row in migration.rows if row.of == "block"}
    assert list(rows) == [block.id for block in old.blocks]
    there = by_text(new, after)
    for text, names in by_text(old, before).items():
        if len(names) == len(there.get(text, [])) == 1 and text.startswith(b"Number"):
            row = rows[names[0]]
            assert [place.id for place in row.new] == there[text]
            assert row.confidence == 1.0
    for row in migration.rows:
        assert (row.kind == "unmapped") == (not row.new)
        assert 0 <= row.confidence <= 1
    counts = Counter(row.of for row in migration.rows)
    assert counts == {
        key: count
        for key, count in (
            ("document", len(old.documents)), ("section", len(old.sections)),
            ("block", len(old.blocks)),
        )
        if count
    }  # fmt: skip


@given(edits())
@examples(50)
def test_kept_bytes_are_the_same_bytes(
    versions: tuple[dict[str, list[str]], dict[str, list[str]]],
) -> None:
    with TemporaryDirectory() as folder:
        old, new = built(versions[0], Path(folder, "old")), built(versions[1], Path(folder, "new"))
        before, after = texts(old), texts(new)
        migration = migration_map(old, new)
    redirects = Redirects(migration)
    for row in migration.rows:
        if row.of != "block":
            continue
        start, end = row.old.span
        for place in row.new:
            whole = ((start, place.span[0], end - start),)
            for run in whole if place.runs is None else place.runs:
                if len(run) == 3:
                    mine = before[row.old.doc][run[0] : run[0] + run[2]]
                    assert mine == after[place.doc][run[1] : run[1] + run[2]]
                    assert place.span[0] <= run[1] <= run[1] + run[2] <= place.span[1]
        for low, high in ((start, end), (start + 3, start + 12), (end - 9, end)):
            moved = redirects.span(row.old.doc, max(low, start), min(high, end))
            assert moved is not None
            if moved.exact:
                (only,) = moved.places
                mine = before[row.old.doc][max(low, start) : min(high, end)]
                assert mine == after[only.doc][slice(*only.span)]


@given(edits(), st.data())
@examples(50)
def test_what_crosses_headings_is_the_same_text_only_where_its_bytes_are(
    versions: tuple[dict[str, list[str]], dict[str, list[str]]], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        old, new = built(versions[0], Path(folder, "old")), built(versions[1], Path(folder, "new"))
        before, after = texts(old), texts(new)
        migration = migration_map(old, new)
    redirects = Redirects(migration)
    for row in migration.rows:
        if row.of != "document":
            continue
        text = before[row.old.doc]
        for place in row.new:
            for start, there, size in place.runs or ():
                assert text[start : start + size] == after[place.doc][there : there + size]
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        moved = redirects.span(row.old.doc, start, end)
        assert moved is not None
        if moved.exact:
            (only,) = moved.places
            assert text[start:end] == after[only.doc][slice(*only.span)]


@given(FILES)
@example({"a.md": ["***"]})  # a section without any text
@examples(50)
def test_moving_to_the_same_corpus_changes_nothing(files: dict[str, list[str]]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        corpus = built(files, root / "corpus")
        migration = migration_map(corpus, corpus)
        assert {(row.kind, row.confidence) for row in migration.rows} <= {("same", 1.0)}
        write_map(root / "map.jsonl", migration)
        names = [block.id for block in corpus.blocks]
        gold = [
            {"qid": block.id, "relevant": [block.id, {"doc": block.doc, "start": block.span[0],
             "end": block.span[1], "quote": "as it was"}], "grades": {block.id: 1.50},
             "groups": [names], "anchor_section": f"{block.doc}#{block.section}", "rest": [1e3]}
            for block in corpus.blocks
        ]  # fmt: skip
        traces = [
            {"qid": "q", "topk": [{"id": name, "score": 0.10} for name in names],
             "answer_json": {"citations": names}}
        ]  # fmt: skip
        kinds: tuple[tuple[MigratedKind, list[Any]], ...] = (("gold", gold), ("traces", traces))
        for what, rows in kinds:
            if rows:
                (root / "in.jsonl").write_bytes(lines_of(rows))
                migrate_file(what, root / "in.jsonl", root / "map.jsonl", root / "out.jsonl")
                assert (root / "out.jsonl").read_bytes() == lines_of(rows)


# Rows with the right names and anything in them, near to what belongs there.
NAME = st.sampled_from(
    ["a.md", "a.md#S.1", "a.md#S.0.p.Bk001", "a.md#S.0.p.Bk002a", "S.1", "1", "x", "", "b.md"]
)
SCALAR = st.one_of(NAME, st.none(), st.booleans(), st.integers(-5, 99), st.floats(0, 2))
INSIDE = st.sampled_from(
    ["id", "chunk_id", "doc", "path", "section", "start", "end", "span", "source_spans", "unit",
     "doc_hash", "quote", "text", "citation", "kind", "page"]
)  # fmt: skip
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(INSIDE | NAME, inner, max_size=4),
    max_leaves=8,
)
FIELD = st.sampled_from(
    ["qid", "relevant", "groups", "grades", "negatives", "relevant_docs", "expected_doc",
     "anchor_section", "gold_spans", "unit", "topk", "retrieval", "answer", "answer_json",
     "citations", "answer_text", "ΔS_list", "other"]
)  # fmt: skip
ROW = st.dictionaries(FIELD, VALUE, max_size=5)


@given(st.lists(ROW, min_size=1, max_size=3), st.sampled_from(["stop", "keep", "drop"]))
@examples(75)
def test_whatever_is_in_a_row_is_moved_or_refused(rows: list[Any], policy: OnUnmapped) -> None:
    """No row is lost, and nothing but an error that a user can fix is raised."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        text = "One paragraph, long enough to be known again.\n\nAnother one, also long enough.\n"
        old = corpus_of({"a.md": text}, root / "old")
        new = corpus_of({"a.md": f"Before it.\n\n{text}".replace("Another", "Some")}, root / "new")
        write_map(root / "map.jsonl", migration_map(old, new))
        (root / "in.jsonl").write_bytes(lines_of(rows))
        kinds: tuple[MigratedKind, ...] = ("gold", "traces")
        for what in kinds:
            out = root / f"{what}.jsonl"
            try:
                migrate_file(what, root / "in.jsonl", root / "map.jsonl", out, on_unmapped=policy)
            except RagaugeError:
                assert not out.exists()
                continue
            assert out.read_bytes().count(b"\n") == len(rows)
