"""The questions that made a gate fail are named first in every output, with what they lost."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.support.cases import cases
from tests.support.command import Folder

EXAMPLE = Path(__file__).parents[2] / "examples" / "canary"
GOLD, LIVE, SHADOW = (str(EXAMPLE / f"{name}.jsonl") for name in ("gold", "live", "shadow"))
WORST = ["TW-03", "TW-06", "TW-05"]
LOST = ["S.1.2.p.Bk004", "S.2.2.p.Bk008", "S.2.1.p.Bk006a"]


def output(folder: Folder, how: str, name: str) -> str:
    """What `score --baseline` or `compare` prints in a format."""
    if how == "score":
        folder.run("score", GOLD, LIVE, "--allow-no-baseline", "--full", "-o", "live.json")
        arguments: tuple[str, ...] = ("score", GOLD, SHADOW, "--baseline", "live.json")
    else:
        arguments = ("compare", LIVE, SHADOW, "--gold", GOLD)
    outcome = folder.run(*arguments, "--format", name)
    assert outcome.exit_code == 1, outcome.err
    return outcome.out


@cases("how", ["score", "compare"])
@cases("name", ["table", "md", "comment", "summary", "github", "junit", "html"])
def test_they_stand_before_all_other_questions(folder: Folder, how: str, name: str) -> None:
    """TW-03 lost half of its evidence, TW-06 a quarter and TW-05 a sixth: 6/11, 3/11 and 2/11."""
    text = output(folder, how, name).replace("\\", "").replace("\u200b", "")
    places = [text.index(qid) for qid in WORST]
    assert places == sorted(places)
    others = [text.find(qid) for qid in ("TW-01", "TW-02", "TW-04", "TW-07")]
    assert all(place < 0 or place > places[-1] for place in others)
    for lost, share in zip(LOST, ("54.5", "27.3", "18.2"), strict=True):
        assert lost in text
        assert share in text


@pytest.mark.parametrize("how", ["score", "compare"])
def test_csv_has_them_first_with_their_shares(folder: Folder, how: str) -> None:
    rows = list(csv.DictReader(io.StringIO(output(folder, how, "csv"))))
    assert [row["qid"] for row in rows[:3]] == WORST
    assert [row["damage_share"] for row in rows[:4]] == ["0.5455", "0.2727", "0.1818", ""]
    assert rows[0]["failed_gate"] == "recall@5 drop"
    assert len(rows) == 10


@pytest.mark.parametrize("how", ["score", "compare"])
def test_json_has_all_of_them(folder: Folder, how: str) -> None:
    verdict = json.loads(output(folder, how, "json"))["verdict"]
    (gate,) = [gate for gate in verdict["gates"] if gate["status"] == "fail"]
    assert [question["query_id"] for question in gate["damage"]] == WORST
    assert [question["lost"] for question in gate["damage"]] == [[lost] for lost in LOST]


def test_twenty_are_listed_and_the_rest_counted(folder: Folder) -> None:
    """Thirty questions lost one of two pieces."""
    folder.write(
        "gold.jsonl",
        [{"qid": f"Q{i:02}", "question": f"number {i}?", "relevant": [f"d{i}#1", f"d{i}#2"]}
         for i in range(30)],
    )  # fmt: skip
    for name, second in (("a", 2), ("b", 9)):
        rows = [{"qid": f"Q{i:02}", "topk": [f"d{i}#1", f"d{i}#{second}"]} for i in range(30)]
        folder.write(f"{name}.jsonl", rows)
    folder.write("ragauge.toml", '[gates]\n"retrieval.recall@5" = { max_drop = 0.0 }\n')
    arguments = ("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all")
    text = folder.run(*arguments).out
    assert "fail (30)" in text
    assert "... and 10 more; --full shows all" in text
    assert "... and 10 more" in folder.run(*arguments, "--format", "md").out
    document = json.loads(folder.run(*arguments, "--format", "json").out)
    assert len(document["verdict"]["gates"][0]["damage"]) == 30
