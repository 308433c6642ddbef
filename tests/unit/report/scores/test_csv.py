"""The report csv: one line a question, one column a metric."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from tests.support.command import Folder, Row

from ragauge.metrics.metric import Tally
from ragauge.model.report import View
from ragauge.model.scores import PerQuestion, QuestionList, QuestionResult, Scores
from ragauge.model.verdict import Verdict
from ragauge.registry import profile, report

NASTY = [
    0.0, -0.0, 1.0, 0.00625, 0.03125, 0.00005, 0.00015, 0.00025, 0.12345, 0.99995, 0.999949999,
    0.5, 1 / 3, 2 / 3, 1 / 7, 0.1 + 0.2, 0.00004999999999, 0.00005000000001, 1e-9, 1e-300,
    5e-324, 1.00005, 1.5, 2.0, 12.34565, 123456.78905, 1e15, -0.25,
]  # fmt: skip


def printed(
    qids: list[str],
    values: list[float],
    turns: list[int | None] | None = None,
    *,
    raw_csv: bool = False,
) -> str:
    """The report on made-up values of one metric."""
    tally = Tally(**dict.fromkeys(
        ("gold", "gold_duplicates", "gold_skipped", "traces", "trace_skipped", "unknown",
         "duplicates", "missing", "missing_slots", "errored", "repeated_ids", "scored",
         "answered", "refused", "answerable", "unanswerable"), 0,
    ))  # fmt: skip
    questions = [
        QuestionResult(qid=qid, label="OK", gold="g", trace="t", labels={"OK": 1}) for qid in qids
    ]
    scores = Scores(
        profile="all", dialect="native", k=(5,), gold_name="g", trace_name="t", tally=tally,
        metrics={}, refusal_rules={}, questions=QuestionList.of(questions),
        per_question=PerQuestion(
            metrics=("m",), qids=qids, turns=turns or [None] * len(qids),
            values=np.array([values], np.float64),
        ),
    )  # fmt: skip
    verdict = Verdict(status="pass", exit_code=0, gates=(), blocks=())  # type: ignore[arg-type]
    return report("csv").text(
        View(scores=scores, verdict=verdict, profile=profile("all"), full=False, raw_csv=raw_csv)
    )


def parsed(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_numbers_are_those_of_formatting() -> None:
    """Four decimals as Python writes them, ties and neighbours of ties too; no -0.0000."""
    ids = [f"q{n}" for n in range(len(NASTY))]
    rows = parsed(printed(ids, NASTY))
    for row, value in zip(rows, NASTY, strict=True):
        assert row["m"] == f"{value + 0.0:.4f}", value


@pytest.mark.slow
def test_ten_thousandths_and_their_halves_are_those_of_formatting() -> None:
    """Every step of the last decimal, every middle of two, and the floats beside it."""
    steps = np.arange(0, 20_001) / 20_000
    values = np.concatenate([steps, np.nextafter(steps, 2), np.nextafter(steps, 0)]).tolist()
    rows = parsed(printed([str(n) for n in range(len(values))], values))
    assert [row["m"] for row in rows] == [f"{value:.4f}" for value in values]


def test_no_value_is_an_empty_cell() -> None:
    """Not 0, and not nan."""
    assert printed(["a", "b"], [float("nan"), 0.5]) == "qid,label,m\na,OK,\nb,OK,0.5000\n"


def test_a_metric_that_nobody_has_is_no_column() -> None:
    """The head and the lines go without it."""
    assert printed(["a"], [float("nan")]) == "qid,label\na,OK\n"


IDS = [
    "plain", "a,b", 'say "hi"', '"', "two\nlines", "carriage\rreturn", "both\r\nends", "naïve",
    "질문 1", "😀", " padded ", "\ttab", "semi;colon", "'single'", "", "a\u2028b",
]  # fmt: skip


def test_ids_come_back_as_they_were() -> None:
    """Any reader of CSV gets the same ids: commas, quotes and line ends are quoted."""
    ids = [*IDS, "=1+1"]
    rows = parsed(printed(ids, [0.5] * len(ids), raw_csv=True))
    assert [row["qid"] for row in rows] == ids
    assert {row["m"] for row in rows} == {"0.5000"}


def test_ids_that_a_spreadsheet_runs_become_texts_and_numbers_stay_numbers() -> None:
    rows = parsed(printed([*IDS, "=1+1", "-0.5"], [-0.25] * (len(IDS) + 2)))
    assert [row["qid"] for row in rows] == [
        *(f"'{qid}" if qid == "\ttab" else qid for qid in IDS),
        "'=1+1",
        "-0.5",
    ]
    assert {row["m"] for row in rows} == {"-0.2500"}


def test_only_ids_that_need_quotes_have_them() -> None:
    """And quotes inside are doubled."""
    lines = printed(['say "hi"', "plain"], [1.0, 1.0]).splitlines()
    assert lines[1:] == ['"say ""hi""",OK,1.0000', "plain,OK,1.0000"]


def test_turns_have_a_column_where_there_are_any() -> None:
    """Empty for questions without one; 0 is a turn."""
    text = printed(["a", "a", "b"], [1.0, 0.5, 0.0], [0, 1, None])
    assert text == "qid,turn,label,m\na,0,OK,1.0000\na,1,OK,0.5000\nb,,OK,0.0000\n"
    assert "turn" not in printed(["a"], [1.0])


# --- from files ---

GOLD: list[Row] = [
    {"qid": 'q,"1"', "question": "1?", "relevant": ["a", "b", "c"]},
    {"qid": "q\n2", "question": "2?", "relevant": ["a"]},
    {"qid": "q3", "question": "3?"},
]
TRACES: list[Row] = [
    {"qid": 'q,"1"', "retrieved_ids": ["a"]},
    {"qid": "q\n2", "retrieved_ids": ["x", "a"], "latency_ms": 1234.5},
    {"qid": "q3", "retrieved_ids": []},
]


def table(folder: Folder, *options: str, **files: Any) -> list[dict[str, str]]:
    outcome = folder.score(
        files.get("trace", TRACES), "--profile", "all", "--metrics",
        "retrieval.recall@5,retrieval.mrr@10,retrieval.empty,latency.total_ms", "--format", "csv",
        *options, gold=files.get("gold", GOLD),
    )  # fmt: skip
    assert outcome.exit_code == 0
    return parsed(outcome.out)


def test_each_question_has_its_values(folder: Folder) -> None:
    """1 of 3 found at rank 1; found at rank 2; no evidence, no hits."""
    rows = table(folder)
    head = ["qid", "label", "retrieval.recall@5", "retrieval.mrr@10", "retrieval.empty"]
    assert list(rows[0])[:5] == head
    assert [[row[name] for name in head if name != "label"] for row in rows] == [
        ['q,"1"', "0.3333", "1.0000", "0.0000"],
        ["q\n2", "1.0000", "0.5000", "0.0000"],
        ["q3", "", "", "1.0000"],
    ]


def test_values_beyond_one_are_printed_whole(folder: Folder) -> None:
    """Milliseconds with four decimals, and nothing where no time was taken."""
    rows = table(folder)
    (name,) = [each for each in rows[0] if each.startswith("latency.total_ms")][:1]
    assert [row[name] for row in rows] == ["", "1234.5000", ""]


def test_a_file_has_the_bytes_that_are_printed(folder: Folder) -> None:
    """The suffix says the format; UTF-8 without a mark, lines end with a line feed."""
    gold = [{"qid": "질문", "question": "?", "relevant": ["a"]}]
    trace = [{"qid": "질문", "retrieved_ids": ["a"]}]
    outcome = folder.score(
        trace, "--profile", "all", "--metrics", "retrieval.recall@5", "-o", "out.csv",
        "--format", "csv", gold=gold,
    )  # fmt: skip
    data = (folder.path / "out.csv").read_bytes()
    assert data == outcome.out.encode()
    assert data == "qid,label,retrieval.recall@5\n질문,NO_ANSWER,1.0000\n".encode()


def test_turns_of_files_have_rows_of_their_own(folder: Folder) -> None:
    """One line a turn, in the order of the gold."""
    gold = [{"qid": "t", "turn": n, "question": f"{n}?", "relevant": ["a"]} for n in (2, 1)]
    trace = [{"qid": "t", "turn": n, "retrieved_ids": ["a"][: n - 1]} for n in (1, 2)]
    rows = table(folder, gold=gold, trace=trace)
    assert [(row["qid"], row["turn"], row["retrieval.recall@5"]) for row in rows] == [
        ("t", "2", "1.0000"), ("t", "1", "0.0000"),
    ]  # fmt: skip


def test_the_values_of_slots_are_averaged(folder: Folder) -> None:
    """Found in one of three slots: 1/3."""
    gold = [{"qid": "q", "question": "?", "relevant": ["a"]}]
    trace = [{"qid": "q", "seed": n, "retrieved_ids": ["a"] if n == 1 else []} for n in (1, 2, 3)]
    (row,) = table(folder, gold=gold, trace=trace)
    assert row["retrieval.recall@5"] == "0.3333"
    assert row["retrieval.empty"] == "0.6667"


def test_scores_saved_without_questions_have_no_rows(folder: Folder) -> None:
    """Only the head; nothing is made up."""
    folder.score(None, "-o", "scores.json", "--profile", "all")
    outcome = folder.run("gate", "scores.json", "--gates", "answer.coverage=0", "--format", "csv")
    assert outcome.out == "qid\n"
