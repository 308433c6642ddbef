"""`ragauge compare`: changes slice by slice, and drops that are gated on one."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from tests.support.command import Folder

LANGUAGES = {"de": range(10), "en": range(10, 30), "fr": range(30, 33)}
GOLD = [
    {"qid": f"Q{i:02}", "question": f"question {i}?", "relevant": [f"d{i}#1"], "lang": lang}
    for lang, numbers in LANGUAGES.items()
    for i in numbers
]


def rows(lost: set[int]) -> list[dict[str, Any]]:
    return [{"qid": f"Q{i:02}", "topk": ["x" if i in lost else f"d{i}#1"]} for i in range(33)]


@pytest.fixture
def runs(folder: Folder) -> Folder:
    """Four of ten German questions are lost, two English ones gained."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", rows({28, 29}))
    folder.write("b.jsonl", rows({0, 1, 2, 3}))
    return folder


def named(folder: Folder, how: str) -> tuple[str, ...]:
    """Both runs as trace files, as files of scores, or stored."""
    if how == "traces":
        return ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all")
    for name in "ab":
        where = (
            ("--store", "--run-id", name) if how == "stored" else ("--full", "-o", f"{name}.json")
        )
        arguments = ("score", "gold.jsonl", f"{name}.jsonl", "--profile", "all", *where)
        assert folder.run(*arguments, "--allow-no-baseline").exit_code == 0
    return ("a", "b") if how == "stored" else ("a.json", "b.json")


@pytest.mark.parametrize("how", ["traces", "scores", "stored"])
def test_each_slice_has_its_own_change(runs: Folder, how: str) -> None:
    """German 10/10 → 6/10, English 18/20 → 20/20; three French questions are too few."""
    outcome = runs.run("compare", *named(runs, how), "--format", "json")
    languages = json.loads(outcome.out)["slices"]["language"]
    assert {name: part["n"] for name, part in languages.items()} == {"de": 10, "en": 20, "fr": 3}
    german, english = (languages[name]["deltas"]["retrieval.hit@1"] for name in ("de", "en"))
    assert (german["a"], german["b"], german["delta"], german["n"]) == (1.0, 0.6, -0.4, 10)
    # c = -4/12, s = 1.959964·√((4 + 2)/12 - 1/9)/√12
    assert german["interval"] == [-0.6862, 0.0195]
    assert (english["a"], english["b"], english["delta"]) == (0.9, 1.0, 0.1)
    assert languages["fr"]["deltas"] == {}


@pytest.mark.parametrize("name", ["table", "md", "comment", "summary", "html"])
def test_slices_are_in_every_report(runs: Folder, name: str) -> None:
    runs.write("ragauge.toml", '[gates]\n"retrieval.hit@1" = { max_drop = 0.5 }\n')
    text = runs.run("compare", *named(runs, "traces"), "--format", name).out.replace("\\", "")
    assert "-0.4000 (-0.6862 to +0.0195)" in text
    assert "+0.1000" in text
    assert "not adjusted for their number" in text


def test_slices_are_in_files_for_machines(runs: Folder) -> None:
    """JUnit has all of them, GitHub those that are surely worse, CSV that of each question."""
    runs.write("ragauge.toml", '[gates]\n"retrieval.hit@1" = { max_drop = 0.5 }\n')
    names = named(runs, "traces")
    junit = runs.run("compare", *names, "--format", "junit").out
    assert 'name="slice language=de" value="retrieval.hit@1 -0.4000 (-0.6862 to +0.0195)' in junit
    assert 'name="slice language=en"' in junit
    assert " slice::" not in runs.run("compare", *names, "--format", "github").out
    runs.write("b.jsonl", rows({0, 1, 2, 3, 4, 5, 6}))  # 10/10 → 3/10: beyond its own interval
    github = runs.run("compare", *names, "--format", "github").out
    (notice,) = [line for line in github.splitlines() if " slice::" in line]
    assert notice.startswith(
        "::notice title=ragauge%3A slice::language=de: retrieval.hit@1 -0.7000"
    )
    assert notice.endswith("not adjusted")
    table = csv.DictReader(runs.run("compare", *names, "--format", "csv").out.splitlines())
    parts = [row["slices"].split("; ") for row in table]
    assert sum("language=de" in own for own in parts) == 10
    assert sum("language=fr" in own for own in parts) == 3


@pytest.mark.parametrize("how", ["traces", "scores", "stored"])
@pytest.mark.parametrize(
    ("part", "code", "value"), [("lang=de", 1, 0.4), ("lang=en", 0, -0.1), ("lang=fr", 0, 0.0)]
)
def test_a_drop_on_a_slice(runs: Folder, how: str, part: str, code: int, value: float) -> None:
    """Over all questions hit@1 fell by 2 of 33: the slice decides."""
    runs.write(
        "ragauge.toml",
        f'[gates]\n"retrieval.hit@1" = {{ max_drop = 0.1, slice = "{part}", min_n = 3 }}\n',
    )
    outcome = runs.run("compare", *named(runs, how), "--format", "json")
    (gate,) = json.loads(outcome.out)["verdict"]["gates"]
    assert (outcome.exit_code, gate["value"]) == (code, value)
    assert [one["query_id"] for one in gate["damage"]] == (
        ["Q00", "Q01", "Q02", "Q03"] if code else []
    )


def test_saved_scores_without_slices_are_not_evaluable(runs: Folder) -> None:
    """Files of older versions do not say which question is in which slice."""
    names = named(runs, "scores")
    for name in names:
        document = json.loads((runs.path / name).read_text("utf-8"))
        for question in document["questions"]:
            del question["slices"]
        (runs.path / name).write_text(json.dumps(document), "utf-8")
    runs.write(
        "ragauge.toml", '[gates]\n"retrieval.hit@1" = { max_drop = 0.1, slice = "lang=de" }\n'
    )
    outcome = runs.run("compare", *names)
    assert outcome.exit_code == 4
    assert "which questions are in a slice" in " ".join(outcome.out.split())
