"""`gold stats`: what is in a gold set, counted by hand."""

from __future__ import annotations

import json
from typing import Any

from ragauge.stats.sample_size import Size
from tests.support.cases import cases
from tests.support.command import Folder, Row

PLACE = {"doc": "a.md", "start": 0, "end": 4, "quote": "Text"}
ROWS: list[Row] = [
    {"qid": "1", "question": "Why is it so?", "answerable": True, "relevant": ["a.md#S.1.p.Bk001"],
     "tags": ["x", "y"], "difficulty": "hard", "lang": "en", "paraphrases": ["How come?", "Why?"]},
    {"qid": "2", "question": "Who?", "answerable": True, "relevant": ["a.md#S.1.c.Bk002", PLACE],
     "tags": ["x"], "negatives": ["n1", "n2", "n3"]},
    {"qid": "3", "question": "What for?", "answerable": False},
    {"qid": "4", "question": "When?", "relevant": [PLACE], "groups": [[PLACE]],
     "grades": {"g1": 2, "g0": 0}},
]  # fmt: skip


def stats(folder: Folder, *options: str, rows: list[Row] = ROWS) -> Any:
    folder.write("gold.jsonl", rows)
    outcome = folder.run("gold", "stats", "gold.jsonl", "--dialect", "native", "--format", "json",
                         *options)  # fmt: skip
    assert outcome.exit_code == 0
    return json.loads(outcome.out)


def test_items_are_counted_by_what_they_are(folder: Folder) -> None:
    counts = stats(folder)["counts"]
    assert counts["expect"] == {"answer": 2, "refuse": 1, "unlabelled": 1}
    assert counts["type"] == {"code": 1, "prose": 1}
    assert counts["tag"] == {"x": 2, "y": 1}
    assert counts["difficulty"] == {"hard": 1}
    assert counts["language"] == {"en": 1}


def test_evidence_is_counted_for_each_item(folder: Folder) -> None:
    document = stats(folder)
    spreads = document["spreads"]
    # ids: 1, 1, 0, 1 (g1; a grade of 0 is no evidence)
    assert spreads["evidence ids"] == {
        "items": 3, "total": 3, "least": 0, "median": 1, "most": 1,
    }  # fmt: skip
    assert (spreads["places"]["total"], spreads["quotes"]["total"]) == (3, 3)  # 0, 1, 0, 2
    assert spreads["negatives"] == {"items": 1, "total": 3, "least": 0, "median": 0, "most": 3}
    assert (spreads["paraphrases"]["items"], spreads["paraphrases"]["most"]) == (1, 2)
    assert spreads["words of a question"]["total"] == 4 + 1 + 2 + 1
    assert spreads["characters of a question"]["median"] == 7  # 4, 5, 9, 13
    assert document["grades"] == {"0": 1, "2": 1}


def test_an_item_is_pinned_if_all_its_evidence_has_places(folder: Folder) -> None:
    pinned = {"qid": "5", "question": "Where?", "relevant": [PLACE]}
    placed = {"qid": "6", "question": "Whose?", "relevant": ["c1"], "gold_spans": [PLACE]}
    evidence = stats(folder, rows=[*ROWS, pinned, placed])["evidence"]
    # items 1, 2, 4, 5 and 6 have evidence; 1, 2 and 4 have ids without a place
    assert (evidence["items"], evidence["pinned"], evidence["share_pinned"]) == (5, 2, 0.4)


def test_what_n_can_show_is_what_gates_say(folder: Folder) -> None:
    sizes = stats(folder)["sizes"]
    # 2 of 4 is 0.15 to 0.85; four runs of five at 0.0545 lie below 0.15
    assert sizes["all"] == {"n": 4, "half_width": 0.35, "detectable": 0.4455}
    assert (sizes["to be answered"]["n"], sizes["to be refused"]["n"]) == (2, 1)
    none = stats(folder, rows=ROWS[3:])["sizes"]["to be refused"]
    assert none == {"n": 0, "half_width": None, "detectable": None}


@cases("change", [0.02, 0.05, 0.1, 0.5])
def test_the_questions_that_a_change_takes_are_the_fewest(change: float) -> None:
    n = Size.needed(change)
    assert (Size(n).detectable or 1) <= change
    assert (Size(n - 1).detectable or 1) > change


def test_what_of_a_corpus_is_reached(folder: Folder) -> None:
    folder.write("docs/a.md", "# A\n\nText.\n\n```\ncode\n```\n\n## B\n\nMore.\n")
    folder.write("docs/b.md", "# B\n\nElse.\n")
    folder.run("corpus", "build", "docs", "-o", "corpus")
    place = {"doc": "a.md", "start": 5, "end": 10, "quote": "Text."}
    document = stats(folder, "--corpus", "corpus", rows=[{"qid": "1", "relevant": [place]}])
    coverage = document["coverage"]
    assert (coverage["sections_reached"], coverage["sections"]) == (1, 3)
    assert (coverage["documents_reached"], coverage["documents"]) == (1, 2)
    assert document["counts"]["type"] == {"prose": 1}  # told by the corpus


def test_the_table_fits_the_screen_and_has_no_more_than_some_tags(folder: Folder) -> None:
    rows = [{**ROWS[0], "qid": str(n), "tags": [f"a-long-tag-of-number-{n:02}"]} for n in range(40)]
    folder.write("gold.jsonl", rows)
    out = folder.run("gold", "stats", "gold.jsonl").out
    assert max(map(len, out.splitlines())) <= 80
    assert "and 32 more" in out
    assert out.splitlines()[0] == "gold.jsonl: 40 gold items, dialect canary"


def test_conversations_are_counted(folder: Folder) -> None:
    rows = [{"qid": "c", "turn": turn, "question": "And?"} for turn in (1, 2)]
    document = stats(folder, rows=[*rows, ROWS[0]])
    assert (document["items"], document["turns"], document["conversations"]) == (3, 2, 1)
