"""Many bad lines at once: the first twenty are shown, all are counted, and some are skipped."""

from __future__ import annotations

import json

import pytest

from ragauge.codes import CODES
from ragauge.errors import MAX_REPORTED
from tests.support.command import GOLD, TRACES, Folder, line_of, lines_of
from tests.support.refusals import array_of, assert_refused, small_ranges

FIRST, SECOND, THIRD = (line_of(row) for row in TRACES)
MALFORMED = b'{"qid": }'


def many_problems() -> tuple[bytes, list[str]]:
    """A file of 300 lines, 75 of them bad in different ways; and the places of the bad ones."""
    bad = [MALFORMED, b'{"qid": "A1", "seed": 1.5}', b"17", b'{"qid": "A1", "note": "\xff"}']
    lines = [bad[(i // 4) % 4] if i % 4 == 3 else line_of(TRACES[i % 3]) for i in range(300)]
    return b"\n".join(lines) + b"\n", [f"trace.jsonl:{i + 1}" for i in range(3, 300, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 100, 1000, 7000, 10**6])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_first_twenty_problems_are_shown_and_all_are_counted(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int, workers: str
) -> None:
    """By line, the same whatever the ranges and the number of workers."""
    small_ranges(monkeypatch, size)
    data, places = many_problems()
    outcome = folder.score(data, "--workers", workers)
    assert [problem.where for problem in outcome.problems] == places[:MAX_REPORTED]
    codes = ["bad-json", "bad-field", "not-a-row", "bad-encoding"]
    assert [problem.code for problem in outcome.problems] == codes * 5
    assert all(problem.hint for problem in outcome.problems)
    assert outcome.err.endswith(f"\n... and {len(places) - MAX_REPORTED} more problems\n")
    assert (outcome.exit_code, outcome.out) == (3, "")


def test_twenty_problems_are_shown_without_a_rest(folder: Folder) -> None:
    """Nothing is said of more when there are no more."""
    outcome = folder.score(b"\n".join([MALFORMED] * MAX_REPORTED))
    assert len(outcome.problems) == MAX_REPORTED
    assert "more problems" not in outcome.err


@pytest.mark.parametrize("size", [1, 200, 10**6])
def test_problems_of_the_gold_file_are_cut_to_twenty_too(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The gold file stops the run before any trace is read."""
    small_ranges(monkeypatch, size)
    outcome = folder.score(MALFORMED, gold=lines_of(GOLD) + (MALFORMED + b"\n\n") * 33)
    assert [problem.where for problem in outcome.problems] == [
        f"gold.jsonl:{4 + 2 * i}" for i in range(MAX_REPORTED)
    ]
    assert outcome.err.endswith("\n... and 13 more problems\n")
    assert (outcome.exit_code, outcome.out) == (3, "")


def test_duplicate_ids_are_cut_to_twenty_too(folder: Folder) -> None:
    """They are found later than other problems, and reported alike."""
    gold = [{"qid": f"A{i}", "question": f"{i}?"} for i in range(30)] * 2
    outcome = folder.score(None, "--profile", "all", gold=gold)
    assert [problem.where for problem in outcome.problems] == [
        f"gold.jsonl:{31 + i}" for i in range(MAX_REPORTED)
    ]
    assert outcome.err.endswith("\n... and 10 more problems\n")


def test_validate_shows_items_that_clash_beside_all_other_problems(folder: Folder) -> None:
    folder.write("gold.jsonl", [*GOLD, GOLD[0], {"qid": "A9", "question": 3}])
    folder.write("trace.jsonl", [{"qid": "A1", "retrieved_ids": "p1#2"}])
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl", "--profile", "all")
    assert outcome.exit_code == 3
    told = [line for line in outcome.err.splitlines() if line.startswith(("error", "  -->"))]
    assert [line.split("]")[0] for line in told[::2]] == [
        "error[duplicate-qid", "error[bad-field", "error[bad-field",
    ]  # fmt: skip
    assert [line.split()[1] for line in told[1::2]] == [
        "gold.jsonl:4", "gold.jsonl:5", "trace.jsonl:1",
    ]  # fmt: skip


def test_validate_shows_the_problems_of_both_files(folder: Folder) -> None:
    """Up to twenty a file, with what is left counted, and exit code 3."""
    data, places = many_problems()
    folder.write("trace.jsonl", data)
    folder.write("gold.jsonl", lines_of(GOLD) + MALFORMED)
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl")
    assert outcome.exit_code == 3
    found = [problem.where for problem in outcome.problems]
    assert found == ["gold.jsonl:4", *places[:MAX_REPORTED]]
    assert f"... and {len(places) - MAX_REPORTED} more problems in trace.jsonl" in outcome.err


@pytest.mark.parametrize("size", [1, 10**6])
def test_skipped_lines_are_counted_listed_and_gated(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A run that skipped lines is not evaluable, although every gate passes."""
    small_ranges(monkeypatch, size)
    data = b"\n".join([FIRST, MALFORMED, SECOND, b'{"qid": "A1", "seed": []}', THIRD])
    options = ("--on-bad-line=skip", "--full", "--format", "json")
    outcome = folder.score(data, *options, gold=lines_of(GOLD) + b"17\n")
    assert outcome.exit_code == CODES["skipped-lines"].exit == 4
    document = json.loads(outcome.out)
    assert document["skipped"] == 3
    assert (document["counts"]["gold_skipped"], document["counts"]["trace_skipped"]) == (1, 2)
    places = [each.split(" ")[0] for each in document["skipped_lines"]]
    assert places == ["gold.jsonl:4", "trace.jsonl:2", "trace.jsonl:4"]
    assert [block["code"] for block in document["verdict"]["blocks"]] == ["skipped-lines"]
    assert {gate["status"] for gate in document["verdict"]["gates"]} == {"pass"}
    assert document["precision"] == 1.0  # what could be read is scored
    for place in places:
        assert f"skipped: {place}" in outcome.err


def test_skipped_lines_may_be_allowed(folder: Folder) -> None:
    """Then the gates decide, and the lines are still listed."""
    data = b"\n".join([FIRST, MALFORMED, SECOND, THIRD])
    outcome = folder.score(data, "--on-bad-line=skip", "--allow-skipped")
    assert outcome.exit_code == 0
    assert "1 bad line skipped" in outcome.err
    assert "skipped: trace.jsonl:2" in outcome.err


def test_all_skipped_lines_are_counted_when_not_all_are_listed(folder: Folder) -> None:
    """The first twenty are listed."""
    data, places = many_problems()
    options = ("--on-bad-line=skip", "--allow-skipped", "--full", "--format", "json")
    outcome = folder.score(data, *options)
    document = json.loads(outcome.out)
    assert document["skipped"] == len(places)
    listed = [each.split(" ")[0] for each in document["skipped_lines"]]
    assert listed[:MAX_REPORTED] == places[:MAX_REPORTED]
    assert f"{len(places)} bad lines skipped" in outcome.err


def test_an_array_that_is_not_json_cannot_be_skipped_in_part(folder: Folder) -> None:
    """Where one element ends and the next begins is unknown then."""
    outcome = folder.score(array_of(FIRST, MALFORMED, SECOND), "--on-bad-line=skip")
    assert_refused(outcome, "bad-json", "trace.jsonl:3")
