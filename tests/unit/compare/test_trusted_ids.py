"""Ids of two runs are taken for the same chunks only where nothing speaks against it.

The runs are stored and compared as a user does it: by files of gold, traces and chunks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.compare import compare
from ragauge.corpus import build
from ragauge.errors import RagaugeError
from ragauge.model.comparison import Comparison
from ragauge.store import runs as run_store

Row = dict[str, Any]
GOLD = [{"qid": "Q1", "question": "When?", "relevant": ["A2"]}]
LIST_A = [
    {"id": "A1", "doc": "h.md", "start": 0, "end": 100},
    {"id": "A2", "doc": "h.md", "start": 100, "end": 200},
]
LIST_B = [
    {"id": "B1", "doc": "h.md", "start": 0, "end": 90},
    {"id": "B2", "doc": "h.md", "start": 90, "end": 210},
]


def lines(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def compared(
    folder: Path, gold: Sequence[Row], a: Sequence[Any], b: Sequence[Any], *,
    lists: tuple[Sequence[Row], Sequence[Row]] = ((), ()),
    corpora: tuple[Path | None, Path | None] = (None, None), strict: bool = False,
) -> Comparison:  # fmt: skip
    """Two runs of one question each, stored and compared; `a` and `b` are their hits."""
    file = lines(folder / "gold.jsonl", gold)
    with run_store.opened_store(f"sqlite:///{folder / 'runs.db'}", create=True) as store:
        for name, hits, listed, corpus in zip("ab", (a, b), lists, corpora, strict=True):
            traces = lines(folder / f"{name}.jsonl", [{"qid": "Q1", "topk": list(hits)}])
            chunks = lines(folder / f"list-{name}.jsonl", listed) if listed else None
            run_store.keep_run(
                store, file, traces, run_id=name, profile="all", k=(1, 2), dialect="native",
                chunks=chunks, corpus=corpus, intervals=False,
            )  # fmt: skip
        return compare.compare_runs(store, "a", "b", strict=strict)


def outcome(found: Comparison) -> tuple[str, str | None, object, object]:
    (question,) = found.per_query
    return found.match, question.kind, question.a_hit_rank, question.b_hit_rank


def placed(row: Row, **more: Any) -> Row:
    """A chunk of a list as a hit that tells the same."""
    return {"id": row["id"], "doc": row["doc"], "offsets": [row["start"], row["end"]], **more}


def with_all(rows: Sequence[Row], **more: Any) -> list[Row]:
    return [{**row, **more} for row in rows]


# --- cut anew, and nobody says so ---


def test_an_id_that_only_one_list_has_is_recognised_by_its_place(tmp_path: Path) -> None:
    """B2 holds all 100 bytes of A2: found at rank 1 in both runs."""
    found = compared(tmp_path, GOLD, ["A2", "A1"], ["B2", "B1"], lists=(LIST_A, LIST_B))
    assert outcome(found) == ("fallback_doc_span", "draw", 1, 1)
    assert found.rungs == {"exact": 0, "doc_span": 1, "quote": 0, "doc": 0, "none": 0}


def test_the_other_way_round_it_is_the_same(tmp_path: Path) -> None:
    found = compared(tmp_path, GOLD, ["B2", "B1"], ["A2", "A1"], lists=(LIST_B, LIST_A))
    assert outcome(found) == ("fallback_doc_span", "draw", 1, 1)


def test_a_strict_comparison_refuses_it(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as refused:
        compared(tmp_path, GOLD, ["A2"], ["B2"], lists=(LIST_A, LIST_B), strict=True)
    assert refused.value.code == "chunker-mismatch"


def test_a_real_miss_is_still_a_regression(tmp_path: Path) -> None:
    """B1 has none of the bytes 100 to 200."""
    found = compared(tmp_path, GOLD, ["A2"], ["B1"], lists=(LIST_A, LIST_B))
    assert outcome(found) == ("fallback_doc_span", "regression", 1, None)


def test_lists_that_both_have_the_id_are_exact(tmp_path: Path) -> None:
    """The second index has one chunk more."""
    more = [*LIST_A, {"id": "A3", "doc": "h.md", "start": 200, "end": 300}]
    found = compared(tmp_path, GOLD, ["A2"], ["A3", "A1"], lists=(LIST_A, more))
    assert outcome(found) == ("exact", "regression", 1, None)


def test_an_id_that_no_list_has_is_as_good_as_before(tmp_path: Path) -> None:
    """A run and itself: the list places other chunks than gold names."""
    gold = [{**GOLD[0], "relevant": ["X9"]}]
    found = compared(tmp_path, gold, ["A2"], ["A2"], lists=(LIST_A, LIST_A))
    assert outcome(found)[:2] == ("unproven", "draw")


def test_a_list_of_one_run_says_nothing_of_the_other(tmp_path: Path) -> None:
    """Its hits are bare ids: nothing contradicts them, and nothing else could be compared."""
    found = compared(tmp_path, GOLD, ["A2"], ["X1", "A2"], lists=(LIST_A, ()))
    assert outcome(found) == ("unproven", "loss", 1, 2)


def test_a_list_that_does_not_place_the_hits_is_not_of_their_index(tmp_path: Path) -> None:
    """The second list is of other chunks; the hits are ids of the first, and exact as such."""
    found = compared(tmp_path, GOLD, ["A2"], ["A1", "A2"], lists=(LIST_A, LIST_B))
    assert outcome(found) == ("unproven", "loss", 1, 2)


def test_the_same_recorded_version_is_believed(tmp_path: Path) -> None:
    """The specification lets a version stand for the list."""
    both = with_all(LIST_A, chunker_version="v1"), with_all(LIST_B, chunker_version="v1")
    found = compared(tmp_path, GOLD, ["A2"], ["B2"], lists=both)
    assert outcome(found) == ("unproven", "regression", 1, None)


# --- no list ---


def test_runs_that_share_no_id_are_compared_by_place(tmp_path: Path) -> None:
    told = {"doc_hash": "h1", "text": "text"}
    a, b = ([placed(row, **told) for row in reversed(rows)] for rows in (LIST_A, LIST_B))
    found = compared(tmp_path, GOLD, a, b)
    assert outcome(found) == ("fallback_doc_span", "draw", 1, 1)
    assert "share no chunk id" in found.notes[0]


def test_one_shared_id_is_enough_to_believe_ids(tmp_path: Path) -> None:
    a = [placed(row) for row in reversed(LIST_A)]
    b = [placed(LIST_B[1]), placed(LIST_A[0])]
    assert outcome(compared(tmp_path, GOLD, a, b)) == ("unproven", "regression", 1, None)


def test_ids_are_believed_where_only_the_document_could_be_compared(tmp_path: Path) -> None:
    """A hash on one side only, and no texts: any chunk of the document would hide the miss."""
    a, b = [placed(LIST_A[1], doc_hash="h1")], [placed(LIST_B[0])]
    assert outcome(compared(tmp_path, GOLD, a, b)) == ("unproven", "regression", 1, None)


def test_a_run_without_hits_contradicts_nothing(tmp_path: Path) -> None:
    found = compared(tmp_path, GOLD, [placed(LIST_A[1])], [])
    assert outcome(found) == ("unproven", "regression", 1, None)


def test_the_list_of_one_run_may_have_the_ids_of_the_other(tmp_path: Path) -> None:
    """The hits have nothing in common; the list knows the chunks of both."""
    found = compared(tmp_path, GOLD, ["A2"], [placed(LIST_A[0])], lists=(LIST_A, ()))
    assert outcome(found) == ("unproven", "regression", 1, None)


# --- quotes ---

QUOTE = "Backups run every night at two"  # 30 bytes
PLACED = [{**GOLD[0], "relevant": [{"doc": "a.md", "start": 10, "end": 40, "quote": QUOTE}]}]
OLD = [
    {"id": "A1", "doc": "a.md", "start": 0, "end": 9, "text": "Foreword."},
    {"id": "A2", "doc": "a.md", "start": 10, "end": 40, "text": QUOTE},
]
NEW = [
    {"id": "B1", "doc": "a.md", "start": 0, "end": 20, "text": "A new long Foreword."},
    {"id": "B2", "doc": "a.md", "start": 21, "end": 51, "text": QUOTE},
]
EDITED = (
    with_all(OLD, chunker_version="v1", doc_hash="h1"),
    with_all(NEW, chunker_version="v2", doc_hash="h2"),
)


@pytest.mark.parametrize("gold", [PLACED, GOLD], ids=["place", "id"])
def test_texts_of_a_list_are_quoted(tmp_path: Path, gold: list[Row]) -> None:
    """The new foreword is in the right document, and is not the passage."""
    found = compared(tmp_path, gold, ["A2"], ["B1"], lists=EDITED)
    assert outcome(found) == ("fallback_quote", "regression", 1, None)
    again = compared(_folder(tmp_path), gold, ["A2"], ["B1", "B2"], lists=EDITED)
    assert outcome(again) == ("fallback_quote", "loss", 1, 2)


def test_a_hit_that_the_list_has_no_text_of_is_not_quotable(tmp_path: Path) -> None:
    """One such hit, and the level does not work for the question; a note says what is missing."""
    bare = [{name: value for name, value in row.items() if name != "text"} for row in EDITED[1]]
    found = compared(tmp_path, PLACED, ["A2"], ["B1"], lists=(EDITED[0], bare))
    assert outcome(found) == ("fallback_doc", "undecided", (1, None), (1, None))
    assert found.per_query[0].doc_kind == "doc_draw"
    assert "1 expected piece was compared by document alone" in found.notes[0]


def test_hashes_of_texts_find_a_chunk_that_moved(tmp_path: Path) -> None:
    """No list has texts; the chunk with the hash of the expected one stands elsewhere in b."""
    hashed = [[{**row, "text_hash": f"#{row['text']}"} for row in rows] for rows in EDITED]
    bare = [[{k: v for k, v in row.items() if k != "text"} for row in rows] for rows in hashed]
    found = compared(tmp_path, GOLD, ["A2"], ["B1", "B2"], lists=(bare[0], bare[1]))
    assert outcome(found) == ("fallback_quote", "loss", 1, 2)


def test_the_same_words_twice_stand_for_nothing(tmp_path: Path) -> None:
    """Which of the two would be meant? The document is left, and a note tells of it."""
    twice = [
        *EDITED[1],
        {**EDITED[1][1], "id": "B3", "start": 60, "end": 90},
    ]
    bare = [
        [
            {**{k: v for k, v in row.items() if k != "text"}, "text_hash": f"#{row['text']}"}
            for row in rows
        ]
        for rows in (EDITED[0], twice)
    ]
    found = compared(tmp_path, GOLD, ["A2"], ["B1", "B2"], lists=(bare[0], bare[1]))
    assert outcome(found) == ("fallback_doc", "undecided", 1, (1, None))
    assert "by document alone" in found.notes[0]


def test_blocks_of_two_corpora_are_found_by_their_text(tmp_path: Path) -> None:
    """A paragraph was put in front: Bk002 is another one now, and Bk003 is the old Bk002."""
    parts = ["Alpha speaks of the first.", "Beta speaks of the second.", "Gamma of the third."]
    corpora = []
    for name, told in (("old", parts), ("new", ["News of the day.", *parts])):
        (tmp_path / name).mkdir()
        text = "# G\n\n" + "\n\n".join(told) + "\n"
        (tmp_path / name / "d.md").write_text(text, "utf-8")
        build.build([tmp_path / name], tmp_path / f"corpus-{name}")
        corpora.append(tmp_path / f"corpus-{name}")
    block = "d.md#S.1.p.Bk00{}".format
    gold = [{**GOLD[0], "relevant": [block(2)]}]
    pair = corpora[0], corpora[1]
    found = compared(tmp_path, gold, [block(2)], [block(2), block(3)], corpora=pair)
    assert outcome(found) == ("fallback_quote", "loss", 1, 2)
    lost = compared(_folder(tmp_path), gold, [block(2)], [block(1)], corpora=pair)
    assert outcome(lost) == ("fallback_quote", "regression", 1, None)


def _folder(path: Path) -> Path:
    (path / "again").mkdir()
    return path / "again"


@pytest.mark.parametrize(("tail", "rank"), [("", (1, 2)), ("b" * 30, (1, 2))])
def test_places_of_a_quote_are_counted_in_bytes(
    tmp_path: Path, tail: str, rank: tuple[int, int]
) -> None:
    """20 letters of 3 bytes and 33 of one: places in the first 60 bytes are found first."""
    head = "".join(map(chr, range(0x6771, 0x6785)))
    quote = head + "".join(map(chr, range(97, 123))) + "0123456" + tail
    assert len(quote.encode()) == 93 + len(tail)
    a = [{"id": "A2", "doc": "d", "text": quote, "chunker_version": "v1"}]
    b = [
        {"id": "B1", "doc": "d", "text": "Before: " + head, "chunker_version": "v2"},
        {"id": "B2", "doc": "d", "text": quote[20:], "chunker_version": "v2"},
    ]
    assert outcome(compared(tmp_path, GOLD, a, b))[3] == rank


# --- hard negatives ---

WRONG = [{**GOLD[0], "relevant": ["A1"], "negatives": ["A4"]}]
LONG = [
    {"id": f"A{n + 1}", "doc": "d.md", "start": 100 * n, "end": 100 * n + 100} for n in range(5)
]
SHORT = [{"id": f"B{n + 1}", "doc": "d.md", "start": 50 * n, "end": 50 * n + 50} for n in range(10)]


def values(found: Comparison, metric: str) -> tuple[float | None, float | None]:
    delta = next(each for each in found.deltas if each.metric == metric)
    return delta.a, delta.b


@pytest.mark.parametrize("versions", [("v1", "v2"), (None, None)])
def test_hard_negatives_are_recognised_by_their_place(
    tmp_path: Path, versions: tuple[str | None, str | None]
) -> None:
    """B7 and B8 are the two halves of A4: b retrieves the wrong passage as well."""
    both = [
        with_all(rows, doc_hash="h", **({"chunker_version": version} if version else {}))
        for rows, version in zip((LONG, SHORT), versions, strict=True)
    ]
    found = compared(tmp_path, WRONG, ["A4", "A1"], ["B7", "B8", "B1"], lists=(both[0], both[1]))
    assert found.match == "fallback_doc_span"
    assert values(found, "retrieval.negative@1") == (1.0, 1.0)
    assert values(found, "retrieval.negative@2") == (0.5, 1.0)
    assert values(found, "retrieval.negative_above") == (1.0, 1.0)
    assert values(found, "retrieval.hit@2") == (1.0, 0.0)


def test_hard_negatives_that_nothing_recognises_are_left_out(tmp_path: Path) -> None:
    """The document changed and there are no texts: no number, and a note with a count."""
    both = [
        with_all(rows, doc_hash=name, chunker_version=name)
        for rows, name in ((LONG, "1"), (SHORT, "2"))
    ]
    found = compared(tmp_path, WRONG, ["A4", "A1"], ["B7", "B1"], lists=(both[0], both[1]))
    assert values(found, "retrieval.negative@1") == (None, None)
    assert any("1 hard negative was left out on both sides" in note for note in found.notes)


def test_hard_negatives_of_one_chunking_stay_ids(tmp_path: Path) -> None:
    found = compared(tmp_path, WRONG, ["A4", "A1"], ["A1", "A4"], lists=(LONG, LONG))
    assert found.match == "exact"
    assert values(found, "retrieval.negative_above") == (1.0, 0.0)


def test_a_hard_negative_that_the_gold_places_nowhere_is_known_from_hits(tmp_path: Path) -> None:
    """Without lists the hit itself says where it lies, and what it says."""
    a = [placed(row, text=f"text {row['id']}", chunker_version="v1") for row in (LONG[3], LONG[0])]
    b = [
        placed(row, text=f"text {row['id']}", chunker_version="v2") for row in (SHORT[6], SHORT[0])
    ]
    found = compared(tmp_path, WRONG, a, b)
    assert values(found, "retrieval.negative@1") == (1.0, 1.0)
