"""Data sets of LangSmith and Langfuse are gold: questions, answers, evidence in metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragauge.formats.load import load_gold
from tests.support.command import Folder

EXAMPLES: list[dict[str, Any]] = [
    {
        "id": "e1",
        "dataset_id": "d",
        "created_at": "2026-11-16T10:00:00Z",
        "inputs": {"question": "How hot?"},
        "outputs": {"answer": "80 degrees"},
        "metadata": {"relevant": ["a", "b"], "type": "fact"},
    },
    {
        "id": "e2",
        "dataset_id": "d",
        "inputs": {"input": "Who won?"},
        "outputs": {"output": "not in context"},
    },
    {
        "id": "e3",
        "dataset_id": "d",
        "inputs": {"input": "Why?"},
        "outputs": None,
        "metadata": {"qid": "Q3"},
    },
]
ITEMS: dict[str, Any] = {
    "data": [
        {
            "id": "i1",
            "datasetId": "d",
            "datasetName": "tea",
            "status": "ACTIVE",
            "input": {"query": "How hot?"},
            "expectedOutput": "80 degrees",
            "metadata": {"gold_ids": ["a"]},
        },
        {"id": "i2", "datasetId": "d", "status": "ARCHIVED", "input": "old", "expectedOutput": "x"},
    ],
    "meta": {"page": 1},
}


def test_examples_of_langsmith_are_gold(folder: Folder) -> None:
    folder.write("examples.json", json.dumps(EXAMPLES))
    done = folder.run("gold", "import", "examples.json", "-o", "gold.jsonl")
    assert done.exit_code == 0
    assert "read as LangSmith examples" in done.out
    rows = [json.loads(line) for line in (folder.path / "gold.jsonl").read_text().splitlines()]
    assert rows == [
        {
            "imported_from": "langsmith-examples",
            "qid": "e1",
            "question": "How hot?",
            "answerable": True,
            "reference_answers": ["80 degrees"],
            "claims_any": ["80 degrees"],
            "relevant": ["a", "b"],
            "type": "fact",
        },
        {
            "imported_from": "langsmith-examples",
            "qid": "e2",
            "question": "Who won?",
            "answerable": False,
        },
        {"imported_from": "langsmith-examples", "qid": "Q3", "question": "Why?"},
    ]


def test_items_of_langfuse_are_gold_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    path.write_text(json.dumps(ITEMS), encoding="utf-8")
    gold = load_gold(path)
    (item,) = gold.items
    assert (item.qid, item.question, item.expect) == ("i1", "How hot?", "answer")
    assert gold.notes == (
        "read as Langfuse dataset items",
        "1 item whose expected output is a claim too (weak: an answer has to contain it word "
        "for word)",
        "1 item of the archive (passed over)",
    )


def test_gold_given_as_traces_is_named_with_the_command_to_use(folder: Folder) -> None:
    folder.write("examples.json", json.dumps(EXAMPLES))
    done = folder.run("score", "examples.json", "examples.json")
    assert done.exit_code == 2
    assert "holds LangSmith examples, and no traces" in done.err
    assert "ragauge gold import" in done.problems[0].hint
