"""Green builds that must not be, with runs in files: what can be done to a run, its gold or a gate.

The baseline finds everything; the head finds nothing for every second question. However it is
dressed up, the build is not green.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.cli.test_green_builds import (
    edited,
    failing,
    gold_rows,
    lost,
    missing,
    number_of,
    trace_rows,
)
from tests.support.cases import cases
from tests.support.command import Folder, Row, lines_of

HIT = "retrieval.hit@5"
BAD = tuple(range(0, 60, 2))
GATES = f'[gates]\n"{HIT}" = {{ max_drop = 0.02 }}\n'
COMPARE = ("compare", "good.jsonl.gz", "head.jsonl.gz", "--gates", "gates.toml")
GATE = ("gate", "head.jsonl.gz", "--baseline", "good.jsonl.gz", "--gates", "gates.toml")
Rows = list[Row]


class Attempt(NamedTuple):
    """The gold and the traces of the head, how it is scored, what is judged, and the exit code."""

    name: str
    code: int
    gold: Callable[[Row], Row | None] | None = None
    traces: Callable[[Rows], Rows] = list
    scored: tuple[str, ...] = ("--profile", "all")
    command: tuple[str, ...] = COMPARE
    gates: str = GATES
    phrase: str = ""


def of_bad(**fields: object) -> Callable[[Row], Row]:
    return lambda row: {**row, **fields} if number_of(row) in BAD else row


def reworded(row: Row) -> Row:
    name = "question" if "question" in row else "q"
    return {**row, name: f"{row[name]} Please."} if number_of(row) in BAD else row


def sliced(part: str) -> str:
    return f'[gates]\n"{HIT}" = {{ max_drop = 0.02, slice = "{part}" }}\n'


FAIL_ON = ("compare", "good.jsonl.gz", "head.jsonl.gz", "--fail-on")
ATTEMPTS = [
    Attempt("nothing is hidden", 1),
    Attempt("judged by gate", 1, command=GATE),
    Attempt("under the id of the baseline", 1, scored=("--profile", "all", "--run-id", "good")),
    Attempt("under the id of the baseline, by gate", 1, command=GATE,
            scored=("--profile", "all", "--run-id", "good")),
    Attempt("gold without the bad questions", 4, gold=lambda row: of_bad(gone=1)(row)
            if number_of(row) not in BAD else None, phrase="90 %"),
    Attempt("bad questions worded otherwise", 4, gold=reworded,
            traces=lambda rows: [reworded(row) for row in rows], phrase="90 %"),
    Attempt("gold that names what is found", 4, phrase="90 %",
            gold=lambda row: of_bad(gold_citations=["doc0#2"] * bool(row["gold_citations"]))(row)),
    Attempt("gold without evidence for the bad", 4, gold=of_bad(gold_citations=[]), phrase="90 %"),
    Attempt("bad questions taken out of the slice", 4, gold=of_bad(tags=["other"]),
            gates=sliced("tag=usual"), phrase="90 %"),
    Attempt("the same by gate", 4, gold=of_bad(tags=["other"]), gates=sliced("tag=usual"),
            command=GATE, phrase="90 %"),
    Attempt("an empty slice", 4, gates=sliced("type=none"), phrase="no question of type=none"),
    Attempt("a slice that is misspelt", 4, gates=sliced("tag=usuall"), phrase="no question of"),
    Attempt("a slice without a part", 4, gates=sliced("tag="), phrase="no question of"),
    Attempt("a slice of one question", 4, gates=sliced("tag=rare"), phrase="below min_n"),
    Attempt("another cut-off", 1, scored=("--profile", "all", "--k", "10")),
    Attempt("another profile", 1, scored=("--profile", "ship")),
    Attempt("a gate on a cut-off that was not scored", 4,
            gates=GATES.replace("@5", "@50"), phrase="not made of values of questions"),
    Attempt("bad questions missing", 4, traces=lambda rows: edited(rows, missing(*BAD))),
    Attempt("bad questions missing, by kinds", 1, traces=lambda rows: edited(rows, missing(*BAD)),
            command=(*FAIL_ON, "regression")),
    Attempt("bad questions errored", 4, traces=lambda rows: edited(rows, failing(*BAD))),
    Attempt("one seed of two is good", 1, traces=lambda rows:
            [{**row, "seed": 1} for row in rows] + [{**row, "seed": 2} for row in trace_rows()]),
    Attempt("more is allowed than there are questions", 4, command=(*FAIL_ON, "regression:1000"),
            phrase="can never fail"),
    Attempt("as many are allowed as there are questions", 4, command=(*FAIL_ON, "regression:60"),
            phrase="can never fail"),
    Attempt("a loose limit beside a strict one", 1,
            command=(*FAIL_ON, "regression:59", "--fail-on", "regression:1%")),
    Attempt("a strict limit before a loose one", 1,
            command=(*FAIL_ON, "regression:1%", "--fail-on", "regression:59")),
    Attempt("the run is its own repeat", 1,
            command=(*FAIL_ON, "regression", "--repeat-of-a", "head.jsonl.gz")),
    Attempt("the baseline is the run", 4, phrase="the run itself",
            command=(*GATE[:3], "head.jsonl.gz", "--gates", "gates.toml")),
    Attempt("the baseline is the run, beside another", 4, phrase="the run itself",
            command=(*GATE, "--baseline", "head.jsonl.gz")),
    Attempt("a threshold twice, the loose one last", 2, phrase="a second one on",
            command=("gate", "head.jsonl.gz", "--gates", f"{HIT}>=0.9,{HIT}>=0.1")),
    Attempt("a limit that is no number", 2, gates=GATES.replace("0.02", "nan")),
    Attempt("a table of gates that is misspelt", 2, gates=GATES.replace("[gates]", "[gate]")),
    Attempt("no gates in the file", 2, gates="[gates]\n"),
]  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The run file of the baseline."""
    from ragauge.cli import main

    path = tmp_path_factory.mktemp("good")
    (path / "gold.jsonl").write_bytes(lines_of(gold_rows()))
    (path / "trace.jsonl").write_bytes(lines_of(trace_rows()))
    files = str(path / "gold.jsonl"), str(path / "trace.jsonl")
    saved = path / "good.jsonl.gz"
    options = ("--profile", "all", "--save-run", str(saved), "--run-id", "good")
    assert main.run(["score", *files, *options]) == 0
    return saved.read_bytes()


def test_there_are_thirty_attempts() -> None:
    assert len({attempt.name for attempt in ATTEMPTS}) == len(ATTEMPTS) >= 30


@cases("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_no_green_build(attempt: Attempt, folder: Folder, good: bytes) -> None:
    bad = edited(trace_rows(), lost(*BAD))
    folder.write("gold.jsonl", edited(gold_rows(), attempt.gold))
    folder.write("trace.jsonl", attempt.traces(bad))
    folder.write("good.jsonl.gz", good)
    scored = attempt.scored if "--run-id" in attempt.scored else (*attempt.scored, "--run-id", "h")
    folder.run("score", "gold.jsonl", "trace.jsonl", *scored, "--save-run", "head.jsonl.gz")
    folder.write("gates.toml", attempt.gates)
    outcome = folder.run(*attempt.command)
    text = " ".join(f"{outcome.out}\n{outcome.err}".split())
    assert outcome.exit_code == attempt.code, text[-1500:]
    assert attempt.phrase in text, text[-1500:]


@cases("damage", ["cut", "lines", "results", "joined"])
def test_a_damaged_run_file_is_no_run(damage: str, folder: Folder, good: bytes) -> None:
    """Cut in its bytes or lines, without some results, or with another run behind it."""
    rows = gzip.decompress(good).splitlines(keepends=True)
    results = [row for row in rows if b'"kind":"result"' in row]
    content = {
        "cut": good[: len(good) // 2],
        "lines": b"".join(rows[:-3]),
        "results": b"".join(row for row in rows if row not in results[:30]),
        "joined": b"".join(rows * 2),
    }[damage]
    name = "head.jsonl.gz" if damage == "cut" else "head.jsonl"
    folder.write("good.jsonl.gz", good)
    folder.write(name, content)
    folder.write("gates.toml", GATES)
    assert folder.run("compare", "good.jsonl.gz", name, "--gates", "gates.toml").exit_code == 3
    assert folder.run("gate", name, "--gates", f"{HIT}>=0.9").exit_code == 3


def test_a_run_that_was_kept_before_it_is_judged(folder: Folder, good: bytes) -> None:
    """The newest kept run is the run itself: nothing can have dropped since."""
    folder.write("good.jsonl.gz", good)
    folder.write("gates.toml", GATES)
    assert folder.run("runs", "keep", "good.jsonl.gz", "--in", "kept").exit_code == 0
    for name in ("latest:kept", "pinned:kept"):
        outcome = folder.run("gate", "good.jsonl.gz", "--gates", "gates.toml", "--baseline", name)
        assert outcome.exit_code == 4, name
        assert "the run itself" in outcome.err
