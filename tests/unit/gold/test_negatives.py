"""`gold negatives`: near blocks and like words, never the evidence or what repeats it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ragauge.gold.negatives import FARTHEST, _by_score, suggest_negatives
from tests.support.command import Folder, Row
from tests.support.umlaut_corpus import BLOCK, CODE, HOST, PORT, make_corpus

NOTE = "notes.txt#S.0.p.Bk001"
TWIN = "notes.txt#S.0.p.Bk002"


def suggested(folder: Folder, item: Row, **options: Any) -> list[tuple[str, str, int | None]]:
    make_corpus(folder)
    folder.write("gold.jsonl", [{"qid": "A", **item}])
    suggestions = suggest_negatives("gold.jsonl", "corpus", **options)
    return [
        (negative.id, negative.reason, negative.distance)
        for negative in suggestions.items[0].negatives
    ]


def test_lists_by_section_and_by_words_are_taken_in_turn(folder: Folder) -> None:
    """Evidence in S.1.2: by section S.1 is 1 away, S.1.1 is 2.

    By words: the prose of S.1.1 has `port` and `is`, its code has `port` alone. The notes are
    another document, and stay out though they have both words.
    """
    item = {"question": "Which port is open?", "relevant": [HOST]}
    assert suggested(folder, item) == [
        (BLOCK, "section", 1),
        (PORT, "words", 2),
        (CODE, "section", 2),
    ]


def test_what_repeats_the_evidence_is_no_negative(folder: Folder) -> None:
    """The second block of the notes is word for word the evidence."""
    item = {"question": "Which port is kept?", "relevant": [PORT]}
    negatives = suggested(folder, item, count=20, anywhere=True)
    assert NOTE in {name for name, _, _ in negatives}
    assert TWIN not in {name for name, _, _ in negatives}
    assert PORT not in {name for name, _, _ in negatives}
    assert negatives[0] == (CODE, "section", 0)


def test_what_is_a_negative_already_is_not_suggested_again(folder: Folder) -> None:
    """`words` would take the code first: it is the shortest block that has the word."""
    item = {"question": "port", "relevant": [HOST], "negatives": [CODE]}
    assert suggested(folder, item, count=3) == [(BLOCK, "section", 1), (PORT, "words", 2)]


def test_of_sections_that_are_as_far_the_one_with_more_like_words_comes_first(
    folder: Folder,
) -> None:
    text = "# A\n\nalpha beta gamma\n\n## B\n\none two three\n\n## C\n\nalpha one four\n"
    make_corpus(folder, a_md=text)
    folder.write(
        "gold.jsonl", [{"qid": "A", "question": "alpha", "relevant": ["a.md#S.1.p.Bk001"]}]
    )
    negatives = suggest_negatives("gold.jsonl", "corpus", count=1).items[0].negatives
    assert [negative.id for negative in negatives] == ["a.md#S.1.2.p.Bk001"]  # S.1.1 is as near


def test_candidates_are_in_order_however_many_there_are() -> None:
    """More than the best ones that are ordered first; scores fall, ties stand as in the text."""
    scores = np.array([float(number % 7) for number in range(500)])
    order = list(_by_score(np.arange(500), scores, 3))
    expected = sorted((at for at in range(500) if scores[at]), key=lambda at: (-scores[at], at))
    assert order == expected


def test_what_is_suggested_is_near_enough_for_the_linter(folder: Folder) -> None:
    """S.1.1 to S.1.1.1.1.1 are 1 to 4 away from S.1, and S.2.1 and S.2.1.1 are 3 and 4.

    What is below them is farther. S.2 is 2 away, but repeats the evidence.
    """
    assert FARTHEST == 4
    titles = "\n\n".join(f"{'#' * (depth + 1)} T\n\nport word {depth}" for depth in range(5))
    make_corpus(folder, a_md=f"{titles}\n\n{titles}\n")
    folder.write("gold.jsonl", [{"qid": "A", "question": "port", "relevant": ["a.md#S.1.p.Bk001"]}])
    suggestions = suggest_negatives("gold.jsonl", "corpus", count=20).items[0].negatives
    assert sorted(negative.distance or 0 for negative in suggestions) == [1, 2, 3, 3, 4, 4]
    assert [negative.id for negative in suggestions if negative.distance == 4] == [
        "a.md#S.1.1.1.1.1.p.Bk001", "a.md#S.2.1.1.p.Bk001",
    ]  # fmt: skip


def test_blocks_that_touch_the_evidence_are_left_out(folder: Folder) -> None:
    """The place covers the end of one block and the beginning of the next."""
    place = {"doc": "guide.md", "start": 75, "end": 90}
    negatives = suggested(folder, {"question": "port", "relevant": [place]}, count=20)
    assert {name for name, _, _ in negatives} == {BLOCK, HOST}


def test_anywhere_opens_the_words_to_all_documents(folder: Folder) -> None:
    item = {"question": "settings kept for a day", "relevant": [HOST]}
    negatives = suggested(folder, item, anywhere=True, count=2)
    assert negatives == [(BLOCK, "section", 1), (NOTE, "words", None)]


def test_without_a_question_the_words_of_the_evidence_are_sought(folder: Folder) -> None:
    negatives = suggested(folder, {"relevant": [HOST], "draft": True, "question": ""}, count=2)
    assert negatives == [(BLOCK, "section", 1), (PORT, "words", 2)]


def test_negatives_are_filled_up_and_a_second_time_changes_nothing(folder: Folder) -> None:
    make_corpus(folder)
    gold: list[Row] = [
        {"qid": "A", "question": "port", "relevant": [HOST], "negatives": [PORT], "x": [1.0]},
        {"qid": "B", "question": "port", "relevant": []},
    ]
    folder.write("gold.jsonl", gold)
    run = ("gold", "negatives", "gold.jsonl", "--corpus", "corpus", "-n", "3", "-o", "gold.jsonl")
    done = folder.run(*run)
    assert done.exit_code == 0, done.err
    assert done.out.splitlines() == [
        "A  (line 1)",
        f"  {BLOCK}    section  distance 1  score 0.0000",
        f"  {CODE}  words    distance 2  score {_score(done.out):.4f}",
        "wrote gold.jsonl",
        "2 negatives for 1 items; 1 items have no evidence to be near to",
    ]
    text = (folder.path / "gold.jsonl").read_bytes()
    rows = [json.loads(line) for line in text.splitlines()]
    first, *placed = rows[0].pop("negatives")
    assert (first, [entry["id"] for entry in placed]) == (PORT, [BLOCK, CODE])
    assert rows == [{name: gold[0][name] for name in gold[0] if name != "negatives"}, gold[1]]
    text_of = (folder.path / "docs/guide.md").read_bytes()
    for entry in placed:  # a place for any other chunking, as `gold pin` writes it
        assert text_of[entry["start"] : entry["end"]].decode() == entry["quote"]
    assert folder.run(*run).out.startswith("wrote gold.jsonl\n0 negatives for 0 items")
    assert (folder.path / "gold.jsonl").read_bytes() == text


def _score(out: str) -> float:
    return float(out.splitlines()[2].rpartition(" ")[2])


def test_json_has_the_numbers_and_nothing_is_written(folder: Folder) -> None:
    make_corpus(folder)
    before = folder.write("gold.jsonl", [{"qid": "A", "relevant": [HOST]}]).read_bytes()
    done = folder.run(
        "gold", "negatives", "gold.jsonl", "--corpus", "corpus", "-n", "9", "--format", "json"
    )
    document = json.loads(done.out)
    first = document["items"][0]["negatives"][0]
    assert first == {
        "id": BLOCK, "reason": "section", "distance": 1, "score": first["score"],
        "doc": "guide.md", "section": "S.1", "start": 11, "end": 35,
    }  # fmt: skip
    assert (document["unplaced"], document["short"]) == (
        0,
        1,
    )  # nine were asked for, there are fewer
    assert "1 items got fewer than asked for" in done.err
    assert (folder.path / "gold.jsonl").read_bytes() == before


def test_evidence_that_is_not_in_the_corpus_is_told(folder: Folder) -> None:
    make_corpus(folder)
    folder.write("gold.jsonl", [{"qid": "A", "relevant": [HOST]}, {"qid": "B", "relevant": ["x"]}])
    done = folder.run("gold", "negatives", "gold.jsonl", "--corpus", "corpus", "-o", "new.jsonl")
    assert (done.exit_code, done.problems[0].where) == (3, "gold.jsonl:2")
    assert done.problems[0].code == "unresolved"
    assert not (folder.path / "new.jsonl").exists()


def chunked(folder: Folder, size: int) -> list[Row]:
    """The documents of the corpus in pieces of so many bytes, as hits of an index of its own."""
    chunks = []
    for doc in ("guide.md", "notes.txt"):
        text = (folder.path / "docs" / doc).read_bytes()
        chunks += [
            {"id": f"{doc}/{start}", "doc": doc, "offsets": [start, min(start + size, len(text))]}
            for start in range(0, len(text), size)
        ]
    return chunks


def test_negatives_are_found_in_any_chunking(folder: Folder) -> None:
    """What `gold negatives` writes counts by its place; by ids alone nothing would be found.

    The share of all hits that share half of the shorter with a negative, counted here by bytes.
    """
    make_corpus(folder)
    folder.write("gold.jsonl", [{"qid": "A", "question": "port", "relevant": [HOST]}])
    folder.run("gold", "negatives", "gold.jsonl", "--corpus", "corpus", "-o", "gold.jsonl")
    row = json.loads((folder.path / "gold.jsonl").read_text("utf-8"))
    hits = chunked(folder, 16)
    folder.write("trace.jsonl", [{"qid": "A", "topk": hits}])
    wrong = 0
    for hit in hits:
        start, end = hit["offsets"]
        for negative in row["negatives"]:
            common = min(end, negative["end"]) - max(start, negative["start"])
            shorter = min(end - start, negative["end"] - negative["start"])
            if negative["doc"] == hit["doc"] and 2 * common >= shorter:
                wrong += 1
                break
    assert wrong >= 3
    metric = f"retrieval.negative@{len(hits)}"

    def measured(*options: str) -> Row:
        outcome = folder.run(
            "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--metrics",
            f"{metric},retrieval.negative_above", "--format", "json", *options,
        )  # fmt: skip
        assert outcome.exit_code == 0, outcome.err
        return json.loads(outcome.out)["metrics"]  # type: ignore[no-any-return]

    assert measured()[metric]["unrounded"][0] == wrong / len(hits)
    assert measured("--corpus", "corpus")[metric]["unrounded"][0] == wrong / len(hits)
    # The same by ids alone, where the corpus says where they lie ...
    ids = {**row, "negatives": [negative["id"] for negative in row["negatives"]]}
    folder.write("gold.jsonl", [ids])
    assert measured("--corpus", "corpus")[metric]["unrounded"][0] == wrong / len(hits)
    # ... and by quotes, which are looked up there.
    quoted = [{"doc": n["doc"], "quote": n["quote"]} for n in row["negatives"]]
    folder.write("gold.jsonl", [{**row, "negatives": quoted}])
    assert measured("--corpus", "corpus")[metric]["unrounded"][0] == wrong / len(hits)


def test_pinned_gold_has_pinned_negatives(folder: Folder) -> None:
    make_corpus(folder)
    gold = {"qid": "A", "question": "port", "relevant": [HOST], "negatives": [PORT, "gone#1"]}
    folder.write("gold.jsonl", [gold])
    done = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "pinned.jsonl")
    assert done.exit_code == 0, done.err
    placed, unknown = json.loads((folder.path / "pinned.jsonl").read_text("utf-8"))["negatives"]
    assert (placed["id"], placed["doc"]) == (PORT, "guide.md")
    assert unknown == "gone#1"


def test_lint_finds_a_negative_that_is_evidence_by_its_place(folder: Folder) -> None:
    make_corpus(folder)
    folder.write("gold.jsonl", [{"qid": "A", "question": "port", "relevant": [HOST]}])
    folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "gold.jsonl")
    row = json.loads((folder.path / "gold.jsonl").read_text("utf-8"))
    place = {name: row["relevant"][0][name] for name in ("doc", "start", "end")}
    folder.write("gold.jsonl", [{**row, "negatives": [place]}])
    outcome = folder.run("gold", "lint", "gold.jsonl", "--corpus", "corpus")
    assert "relevant-negative" in outcome.out + outcome.err
