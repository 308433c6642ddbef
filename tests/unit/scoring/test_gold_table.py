"""The gold table: from a file item by item, or from items in memory, it is the same."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.formats.load import load_gold
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.scoring import gold_table as module
from ragauge.scoring.gold_table import GoldTable, gold_table
from ragauge.scoring.inputs import GoldInput
from ragauge.scoring.score import opened_inputs, score

Row = dict[str, Any]

ITEMS: list[Row] = [
    {"qid": f"q{number}", "question": f"What is {number}?", "relevant": [f"doc{number % 3}#1", "b"],
     "gold_claim_substr": ["an answer", "another answer"],
     "constraints": [" short "], "tags": ["x", "x", "y"],
     "type": "fact" if number % 2 else "list", "lang": "en"}
    for number in (3, 1, 20, 2, 11)
]  # fmt: skip
ITEMS += [
    {"qid": "é", "grades": {"a": 2, "b": 0, "c": 0.5}, "paraphrases": ["One?", "Two?"]},
    {"qid": "z", "relevant": [{"doc": "guide.md", "start": 3, "end": 9}], "must_contain": ["ß"]},
    {"qid": "none", "answerable": False},
]


def written(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def gold_input(tmp_path: Path) -> Callable[[list[Row]], GoldInput]:
    """What reads rows straight into a table, under the profile `all`."""
    trace = written(tmp_path / "trace.jsonl", [{"qid": "q1", "retrieved_ids": []}])

    def read(rows: list[Row], profile: str = "all") -> GoldInput:
        gold = written(tmp_path / "gold.jsonl", rows)
        with opened_inputs(gold, trace, profile=profile) as inputs:
            return GoldInput(
                gold, inputs.gold_source, inputs.trace_source, inputs.choice,
                table_options=Options(),
            )  # fmt: skip

    return read


def contents(table: GoldTable) -> dict[str, Any]:
    """All that a table says, as plain values."""
    keys = table.keys
    return {
        **{name: getattr(table, name) for name in ("read", "by_turn", "paraphrases", "beside")},
        "columns": {
            name: getattr(table.columns, name).tolist() for name in table.columns.__struct_fields__
        },
        "qids": list(table.qids),
        "turns": list(table.turns),
        "lines": list(table.lines),
        "identity": table.identity.tolist(),
        "slices": {
            dimension: {name: part.tolist() for name, part in parts.items()}
            for dimension, parts in table.slices.items()
        },
        "keys": [list(keys.evidence), list(keys.needle), keys.more, keys.constraints, keys.counted],
        "details": keys.details,
    }


@pytest.mark.parametrize("at_once", [1, 3, 1024])
def test_a_file_and_its_items_give_one_table(
    gold_input: Callable[..., GoldInput],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    streamed = gold_input(ITEMS)
    assert streamed.loaded.items == []
    items = load_gold(tmp_path / "gold.jsonl").items
    expected = gold_table(items, registry.profile("all"), Options(), name="gold")
    found = contents(streamed.table(Options(), "gold", {}))
    assert found == contents(expected)
    # Sorted by id, not by the order of the file: é comes behind z.
    assert [found["qids"][place] for place in found["identity"]] == [
        "none", "q1", "q11", "q2", "q20", "q3", "z", "é",
    ]  # fmt: skip
    assert found["slices"]["type"] == {"fact": [1, 4, 0], "list": [3, 2]}
    assert found["slices"]["tag"]["x"] == [1, 4, 3, 2, 0]
    assert found["keys"][2] == dict.fromkeys(range(5), ("another answer",))


@pytest.mark.parametrize("long", ["", "x" * 70], ids=["short", "long"])
def test_the_last_of_several_items_counts_also_from_a_file(
    gold_input: Callable[..., GoldInput], long: str
) -> None:
    qids = [qid + long for qid in "abacabd"]
    rows: list[Row] = [
        {"qid": qid, "gold_citations": [str(place)]} for place, qid in enumerate(qids)
    ]
    streamed = gold_input(rows, "ship")
    assert streamed.loaded.items == []
    table = streamed.table(Options(), "gold", {})
    # In the place of the first, as in memory: a from line 5, b from line 6.
    assert (table.read, list(table.qids)) == (7, [qid + long for qid in "abcd"])
    assert list(table.lines) == [5, 6, 4, 7]
    assert list(table.keys.evidence) == [("4",), ("5",), ("3",), ("6",)]
    items = [GoldItem(qid=row["qid"], relevant=tuple(row["gold_citations"])) for row in rows]
    in_memory = gold_table(items, registry.profile("ship"), Options(), name="gold")
    assert list(in_memory.keys.evidence) == list(table.keys.evidence)


def test_two_items_with_one_id_are_still_an_error(gold_input: Callable[..., GoldInput]) -> None:
    rows = [{"qid": "a"}, {"qid": "b"}, {"qid": "a"}, {"qid": "b"}]
    with pytest.raises(RagaugeError) as caught:
        gold_input(rows).table(Options(), "gold", {})
    assert [problem.code for problem in caught.value.problems] == ["duplicate-qid"] * 2


def test_turns_of_one_id_are_items_of_their_own(gold_input: Callable[..., GoldInput]) -> None:
    rows = [{"qid": "b", "turn": 2}, {"qid": "b", "turn": 1}, {"qid": "a"}]
    table = gold_input(rows).table(Options(), "gold", {})
    assert table.by_turn == {"b": {2: 0, 1: 1}}
    assert table.identity.tolist() == [2, 1, 0]
    assert table.cluster is not None
    assert table.cluster.tolist() == [1, 1, 0]
    assert [table.keys.by_qid.last(qid) for qid in "ab"] == [2, None]


IDS = st.text(st.characters(exclude_categories=()), min_size=1, max_size=4) | st.text(
    min_size=60, max_size=70
)


@given(st.lists(IDS, unique=True, min_size=1))
def test_items_are_ordered_as_their_ids_are(qids: list[str]) -> None:
    items = [GoldItem(qid=qid) for qid in qids]
    table = gold_table(items, registry.profile("all"), Options(), name="gold")
    assert [qids[place] for place in table.identity] == sorted(qids)


def bytes_per_question(folder: Path, profile: str, count: int) -> float:
    """The highest memory of scoring a gold set and as many traces, for each question."""
    rows: list[Row] = [
        {"qid": f"Q{number:06}", "question": f"Is it true that node {number} signs?",
         "answerable": True, "gold_claim_substr": [f"node {number} signs late events"],
         "gold_citations": [f"p{number % 97}#{number % 10}"]}
        for number in range(count)
    ]  # fmt: skip
    traces: list[Row] = [
        {"qid": row["qid"], "retrieved_ids": ["p1#1", f"p{number % 97}#{number % 10}"],
         "answer_json": {"claim": "node 7 signs late events", "citations": ["p1#1"]}}
        for number, row in enumerate(rows)
    ]  # fmt: skip
    gold, trace = written(folder / "g.jsonl", rows), written(folder / "t.jsonl", traces)
    del rows, traces
    score(gold, trace, profile=profile, workers=1, intervals=False)  # imports, and caches
    tracemalloc.start()
    try:
        score(gold, trace, profile=profile, workers=1, intervals=False)
        return tracemalloc.get_traced_memory()[1] / count
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_grows_by_few_bytes_with_each_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sizes, so that what does not grow cancels out; it was 1,300 bytes a question."""
    monkeypatch.setattr("ragauge.scoring.packed_texts.CACHED", 0)
    few, many = 2_000, 8_000
    small, large = (bytes_per_question(tmp_path, "ship", count) for count in (few, many))
    growth = (large * many - small * few) / (many - few)
    assert 0 < growth < 700
