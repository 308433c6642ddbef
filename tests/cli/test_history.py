"""`ragauge history`: several metrics, slices, filters, the gate's threshold, noise, CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ragauge.store import runs as run_store
from tests.support.command import Folder, Row
from tests.support.postgres import own_schema, server_url

QUESTIONS = 20
KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.xdist_group("postgres"))]
RULES = ("--profile", "all", "--k", "5", "--dialect", "native", "--metrics", "retrieval.*")
RECALL, MRR = "retrieval.recall@5", "retrieval.mrr@5"


def gold() -> list[Row]:
    return [
        {
            "qid": f"Q{number:02}", "question": f"What is {number}?", "answerable": True,
            "relevant": [f"c{number}"], "type": "table" if number % 2 else "prose",
        }
        for number in range(QUESTIONS)
    ]  # fmt: skip


def traces(lost: int) -> list[Row]:
    """The evidence of all questions but the first `lost`."""
    return [
        {"qid": f"Q{number:02}", "hits": [f"c{number}" if number >= lost else "other"]}
        for number in range(QUESTIONS)
    ]


class History:
    """A store in which a run a day is put."""

    def __init__(self, folder: Folder, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.url, self.monkeypatch = folder, url, monkeypatch
        self.day = 0
        folder.write("gold.jsonl", gold())

    def put(self, lost: int, *more: str, branch: str = "main") -> None:
        self.day += 1
        self.monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_767_225_600 + 86_400 * self.day))
        self.monkeypatch.setenv("RAGAUGE_BRANCH", branch)
        self.folder.write("trace.jsonl", traces(lost))
        done = self.folder.run(
            "score", "gold.jsonl", "trace.jsonl", *RULES, "--store", self.url,
            "--run-id", f"day{self.day}", "--commit", "c0ffee", *more,
        )  # fmt: skip
        assert done.exit_code == 0, done.err

    def show(self, *words: str) -> Any:
        return self.folder.run("history", *words, "--store", self.url)

    def document(self, *words: str) -> Any:
        done = self.show(*words, "--format", "json")
        assert done.exit_code == 0, done.err
        return json.loads(done.out)


@pytest.fixture(params=KINDS)
def history(
    request: pytest.FixtureRequest, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> Iterator[History]:
    if request.param == "sqlite":
        yield History(folder, "sqlite:///ragauge.db", monkeypatch)
        return
    with own_schema(server_url(request.config)) as url:
        yield History(folder, url, monkeypatch)


def run_ids(document: Any) -> list[str]:
    return [point["run_id"] for point in document["points"]]


def test_runs_are_chosen_by_tag_branch_and_date(history: History) -> None:
    history.put(0, "--tag", "nightly-1")
    history.put(1, branch="feature/x")
    history.put(2, "--tag", "nightly-2")
    history.put(3, "--tag", "release")
    assert run_ids(history.document(RECALL, "--tag", "nightly-*")) == ["day1", "day3"]
    both = ("--tag", "nightly-2", "--tag", "release")
    assert run_ids(history.document(RECALL, *both)) == ["day3", "day4"]
    assert run_ids(history.document(RECALL, "--branch", "feature/*")) == ["day2"]
    dates = ("--since", "2026-01-03", "--until", "2026-01-04")
    assert run_ids(history.document(RECALL, *dates)) == ["day2", "day3"]
    point = history.document(RECALL)["points"][1]
    assert (point["branch"], point["dirty"], point["author"]) == ("feature/x", None, None)
    none = history.show(RECALL, "--branch", "gone")
    assert (none.exit_code, none.out) == (5, "")
    assert "(branch gone)" in none.err
    assert history.show(RECALL, "--since", "May").exit_code == 2


def test_a_slice_has_its_own_values(history: History) -> None:
    """Of 20 questions the first 4 are lost: 2 of 10 with the type table, 2 of 10 in prose."""
    history.put(0)
    history.put(3)  # 0 and 2 are prose, 1 is a table
    document = history.document(RECALL, "--slice", "type=table")
    assert [(point["value"], point["n"]) for point in document["points"]] == [(1.0, 10), (0.9, 10)]
    assert document["slice"] == "type=table"
    assert document["points"][1]["interval"][1] > 0.9
    assert "retrieval.recall@5, type=table" in history.show(RECALL, "--slice", "type=table").out
    assert history.show(RECALL, "--slice", "type=figure").exit_code == 5
    assert history.show(RECALL, "--slice", "table").exit_code == 2


def test_several_metrics_stand_side_by_side(history: History) -> None:
    history.put(0)
    history.put(5)
    done = history.show(RECALL, MRR)
    rows = [line.split() for line in done.out.splitlines() if line.startswith("2026")]
    assert [row[2:5] for row in rows] == [
        ["day1", "1.0000", "1.0000"], ["day2", "0.7500", "0.7500"],
    ]  # fmt: skip
    documents = history.document(RECALL, MRR)["series"]
    assert [document["metric"] for document in documents] == [RECALL, MRR]
    assert [run_ids(document) for document in documents] == [["day1", "day2"]] * 2


def test_the_threshold_of_the_gate_is_shown(history: History) -> None:
    history.put(0)
    history.put(5)
    history.folder.write(
        "ragauge.toml",
        f'k = [5]\n[gates]\n"{RECALL}" = ">= 0.8"\n"table" = {{ metric = "{RECALL}", '
        'threshold = ">= 0.7", slice = "type=table" }\n',
    )
    done = history.show(RECALL)
    assert "gate: >= 0.8" in done.out
    rows = [line.split() for line in done.out.splitlines() if line.startswith("2026")]
    assert [row[3:5] for row in rows] == [["1.0000", "pass"], ["0.7500", "fail"]]
    document = history.document(RECALL)
    assert [(gate["sign"], gate["threshold"]) for gate in document["gates"]] == [(">=", 0.8)]
    part = history.document(RECALL, "--slice", "type=table")
    assert [gate["threshold"] for gate in part["gates"]] == [0.7]
    assert "! beyond the gate" in history.show(RECALL, MRR).out


def test_csv_has_a_row_for_each_metric_and_run(history: History) -> None:
    history.put(0, "--tag", "=cmd")
    history.put(5)
    done = history.show(RECALL, MRR, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["metric"], row["run_id"], row["value"]) for row in rows] == [
        (RECALL, "day1", "1.0000"), (RECALL, "day2", "0.7500"),
        (MRR, "day1", "1.0000"), (MRR, "day2", "0.7500"),
    ]  # fmt: skip
    assert (rows[0]["branch"], rows[0]["commit_hash"], rows[0]["n"]) == ("main", "c0ffee", "20")
    assert rows[0]["tags"] == "'=cmd"  # no formula
    assert rows[0]["low"] < rows[0]["value"] <= rows[0]["high"]


# --- more than noise? --- (one database: the numbers come from the same rows)


@pytest.fixture
def steady(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> History:
    """Twenty runs whose recall is 0.95 or 1.00, in no order."""
    history = History(folder, "sqlite:///ragauge.db", monkeypatch)
    for day in range(20):
        history.put(7 * day % 5 % 2)
    return history


def test_a_drop_beyond_the_last_twenty_is_said(steady: History) -> None:
    """Worse than all of 20: 1 of 21; as bad as some of them: within the noise."""
    steady.put(1)
    assert "within the noise" in steady.show(RECALL).out
    within = steady.document(RECALL)["tests"]["newest"]
    assert within["p"] > 0.05
    steady.put(3)
    done = steady.show(RECALL)
    assert "newest: worse than all of the last 20 (their worst 0.9500), p = 0.0476" in done.out
    assert "more than noise" in " ".join(done.out.split())
    tests = steady.document(RECALL)["tests"]
    assert tests["newest"] == {
        "n": 20, "rank": 0, "p": 1 / 21, "worst": 0.95, "median": tests["newest"]["median"],
    }  # fmt: skip
    shorter = steady.document(RECALL, "--window", "10")["tests"]["newest"]
    assert (shorter["n"], shorter["p"]) == (10, None)
    limited = steady.document(RECALL, "--limit", "2")  # what is shown does not change the tests
    assert (len(limited["points"]), limited["tests"]) == (2, tests)


def test_a_trend_and_a_change_are_said(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """1.00 down to 0.55 by a question a run; then a step that stays."""
    history = History(folder, "sqlite:///ragauge.db", monkeypatch)
    for lost in range(10):
        history.put(lost)
    out = history.show(RECALL).out
    assert "trend over 10: falls by 0.0500 a run, p < 0.0001" in out
    for _ in range(10):
        history.put(16)
    for _ in range(11):
        history.put(2)
    tests = history.document(RECALL)["tests"]
    assert tests["changed_at"] == "day21"
    assert (tests["change"]["before"], tests["change"]["after"]) == (0.2, 0.9)
    assert "level: from 0.2000 to 0.9000 (medians) with day21" in history.show(RECALL).out


def test_values_behind_a_changed_gold_set_are_no_noise(steady: History) -> None:
    """Another gold set: nothing before it says what is noise, and the words say so."""
    steady.folder.write("gold.jsonl", [{**gold()[0], "question": "Other?"}, *gold()[1:]])
    steady.put(5)
    done = steady.show(RECALL)
    assert "noise: not known yet, 0 of 19 comparable values before the newest" in done.out
    assert steady.document(RECALL)["tests"]["newest"]["p"] is None


def test_stored_facts_of_the_checkout(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Branch and dirty state are stored; the author only where the project asks for it."""
    history = History(folder, "sqlite:///ragauge.db", monkeypatch)
    monkeypatch.setenv("RAGAUGE_AUTHOR", "Ada")
    history.put(0)
    folder.write("ragauge.toml", "store_author = true\n")
    history.put(0)
    with run_store.opened_store(history.url) as store:
        assert [(run.branch, run.author) for run in store.runs()] == [
            ("main", None), ("main", "Ada"),
        ]  # fmt: skip
