"""The oracles agree with the source documents' own scorers, and with numbers worked out by hand."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.cases import Case, Row, ship_case, smoke_case
from tests.oracles.ship_oracle import score_ship
from tests.oracles.smoke_oracle import score_smoke, smoke_numbers
from tests.support.cases import cases

SEEDS = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROUNDS = 500

Generator = Callable[[random.Random], Case]


def drawn(generator: Generator, *, rounds: int = ROUNDS) -> list[Case]:
    rng = random.Random("oracles")
    return [generator(rng) for _ in range(rounds)]


def reference_main(telling_name: str, folder: Path) -> Callable[..., None]:
    """The `main` of the source's scorer: the Python block that defines `telling_name`."""
    if not SEEDS.is_dir():
        pytest.skip(f"no source documents at ../{SEEDS.parent.name}/{SEEDS.name}")
    for document in sorted(SEEDS.glob("*.txt")):
        for block in PYTHON_BLOCK.findall(document.read_text(encoding="utf-8")):
            # One source is a page capture with a bar between its lines: that is no Python.
            if f"def {telling_name}(" in block and "\n|\n" not in block:
                script = folder / "reference.py"
                script.write_text(block, encoding="utf-8")
                main: Callable[..., None] = runpy.run_path(str(script))["main"]
                return main
    pytest.fail(f"none of the source documents has a Python scorer with {telling_name}")


def printed_by(main: Callable[..., None], *arguments: str) -> str:
    """What the reference prints; no case may crash it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            main(*arguments)
        except (Exception, SystemExit) as crash:
            raise AssertionError(f"the reference does not accept this case: {crash!r}") from crash
    return printed.getvalue()


def write_lines(path: Path, rows: list[Row]) -> str:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def test_ship_oracle_prints_what_the_source_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, so key order and rounding count too."""
    main = reference_main("citation_hit", tmp_path)
    for case in drawn(ship_case):
        gold = write_lines(tmp_path / "gold.jsonl", case.gold_rows)
        trace = write_lines(tmp_path / "trace.jsonl", case.trace_rows)
        options = ["--gold", gold, "--trace", trace, "--k", str(case.k), "--gates", case.gates]
        monkeypatch.setattr(sys, "argv", ["reference", *options])
        scored = score_ship(case.gold_rows, case.trace_rows, k=case.k, gates=case.gates)
        assert json.dumps(scored, indent=2) + "\n" == printed_by(main), case


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the source leaves its gold file open
def test_smoke_oracle_prints_what_the_source_prints(tmp_path: Path) -> None:
    """The whole report; the source defines `main` and never calls it, so the test does."""
    main = reference_main("phrase_containment", tmp_path)
    gold = tmp_path / "qaset.json"
    for case in drawn(smoke_case):
        gold.write_text(json.dumps(case.gold_rows, ensure_ascii=False), encoding="utf-8")
        trace = write_lines(tmp_path / "trace.jsonl", case.trace_rows)
        report = score_smoke(case.gold_rows, case.trace_rows)
        assert report == printed_by(main, str(gold), trace), case


@pytest.mark.parametrize("generator", [ship_case, smoke_case])
def test_cases_are_json_in_bounds_and_repeatable(generator: Generator) -> None:
    """The same seed draws the same cases; none is larger than promised."""
    cases = drawn(generator, rounds=200)
    assert cases == drawn(generator, rounds=200)
    for case in cases:
        assert len(case.gold_rows) <= 12
        assert len(case.trace_rows) <= 25
        rows = [case.gold_rows, case.trace_rows]
        assert json.loads(json.dumps(rows)) == rows
        for row in case.trace_rows:
            ids = [row[name] for name in ("qid", "q_id") if row.get(name)]
            questions = [row[name] for name in ("q", "question") if name in row]
            assert len(set(ids)) <= 1
            assert len(set(questions)) <= 1


def test_ship_cases_reach_every_count_and_both_verdicts() -> None:
    """A generator whose cases all score alike would prove nothing."""
    seen: Counter[str] = Counter()
    for case in drawn(ship_case):
        scored = score_ship(case.gold_rows, case.trace_rows, k=case.k, gates=case.gates)
        qids = [row["qid"] for row in case.gold_rows]
        traced = [row.get("qid") or row.get("q_id") for row in case.trace_rows]
        seen["pass"] += scored["pass"]
        seen["fail"] += not scored["pass"]
        seen["nothing answered"] += scored["answered"] == 0
        seen["gold twice"] += len(set(qids)) < len(qids)
        seen["missing"] += not set(qids) <= set(traced)
        seen["unknown"] += not set(traced) <= {*qids, None, ""}
        for name in ("precision", "chr", "under_refusal", "over_refusal", "recall@k"):
            seen[f"{name} between"] += 0 < scored[name] < 1
        seen["precision below chr"] += scored["precision"] < scored["chr"]
    scarce = {name: count for name, count in seen.items() if count < ROUNDS // 50}
    assert not scarce


def test_smoke_cases_reach_every_label_and_rate() -> None:
    """Each label, and each rate strictly between 0 and 1, is common."""
    seen: Counter[str] = Counter()
    for case in drawn(smoke_case):
        numbers = smoke_numbers(case.gold_rows, case.trace_rows)
        seen.update({row["label"] for row in numbers["rows"]})
        seen["skipped"] += len(numbers["rows"]) < len(case.trace_rows)
        questions = [row["q"] for row in case.gold_rows]
        seen["question twice"] += len(set(questions)) < len(questions)
        for name in ("precision", "over_refusal", "under_refusal", "chr", "claim_containment"):
            seen[f"{name} between"] += 0 < numbers[name] < 1
        seen["compliance between"] += 0 < (numbers["compliance"] or 0) < 1
    assert {"OK", "REFUSAL_OK", "OVER_REFUSAL", "HALLUCINATION", "ANS_NO_HIT"} <= set(seen)
    scarce = {name: count for name, count in seen.items() if count < ROUNDS // 50}
    assert not scarce


def gold(qid: str, *, answerable: bool | None, substrings: Any, citations: Any) -> Row:
    row = {"qid": qid, "answerable": answerable, "gold_claim_substr": substrings}
    return {**row, "gold_citations": citations}


def trace(qid: str, *, claim: str, citations: Any, retrieved: list[str]) -> Row:
    answer = {"claim": claim, "citations": citations}
    return {"qid": qid, "retrieved_ids": retrieved, "answer_json": answer}


MINI_GOLD = [
    gold("A0001", answerable=True, substrings=["rejects null keys"], citations=["p1#2"]),
    gold("A0002", answerable=False, substrings=[], citations=[]),
    gold("A0003", answerable=True, substrings=["only domain example.com"], citations=["pB#1"]),
]
MINI_TRACES = [
    trace(
        "A0001",
        claim="X rejects null keys.",
        citations=["p1#2"],
        retrieved=["p1#1", "p1#2", "p2#1"],
    ),
    trace("A0002", claim="not in context", citations=[], retrieved=["p1#1", "p2#1"]),
    trace(
        "A0003",
        claim="Only domain example.com is allowed.",
        citations=["pB#1"],
        retrieved=["pB#1", "p1#2"],
    ),
]


def test_ship_on_the_worked_example() -> None:
    """Two answered and right, one refused and right; with k=1 only pB#1 is at the top."""
    scored = score_ship(MINI_GOLD, MINI_TRACES)
    assert scored == {
        "answered": 2,
        "refused": 1,
        "answerable": 2,
        "unanswerable": 1,
        "precision": 1.0,
        "chr": 1.0,
        "under_refusal": 0.0,
        "over_refusal": 0.0,
        "recall@k": 1.0,
        "k": 5,
        "gates": {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"},
        "pass": True,
    }
    assert score_ship(MINI_GOLD, MINI_TRACES, k=1)["recall@k"] == 0.5  # 1 of 2 answerable


def test_ship_counts_missing_and_unlabelled_items() -> None:
    """A0003 has no trace; unlabelled A0004 is answered well; unanswerable A0005 is answered."""
    rows = [
        *MINI_GOLD,
        gold("A0004", answerable=None, substrings=[], citations=["p1#1"]),
        gold("A0005", answerable=False, substrings=[], citations=[]),
    ]
    traces = [
        *MINI_TRACES[:2],
        trace("A0004", claim="Anything.", citations=["p1#1"], retrieved=["p1#1"]),
        trace("A0005", claim="Anything.", citations=[], retrieved=[]),
    ]
    scored = score_ship(rows, traces)
    assert (scored["answered"], scored["refused"]) == (4, 1)  # the missing one is answered
    assert (scored["answerable"], scored["unanswerable"]) == (2, 3)  # A0004 counts as unanswerable
    assert scored["precision"] == 0.5  # A0001 and A0004 of 4; A0005 hits but is unanswerable
    assert scored["chr"] == 0.5
    assert scored["under_refusal"] == 0.3333  # A0005 of A0002, A0004, A0005
    assert scored["recall@k"] == 0.5  # A0001 of A0001, A0003
    assert scored["pass"] is False


@cases(
    ("substrings", "citations", "claim", "cited", "precision", "hit_rate"),
    [
        ([], ["a"], "words", ["a"], 1.0, 1.0),  # nothing to contain: contained
        (None, ["a"], "words", ["a"], 0.0, 1.0),  # no such field: not contained
        (["word"], ["a"], "word", ["a"], 0.0, 1.0),  # 4 characters never match
        (["İabc"], ["a"], "İABC", ["a"], 1.0, 1.0),  # 4 characters, 5 after lowering
        (["words"], ["a"], "WORDS", ["a", "b"], 1.0, 1.0),  # both retrieved
        (["words"], ["a"], "words", ["a", "z"], 0.0, 0.0),  # z was not retrieved
        (["words"], ["b"], "words", ["a"], 0.0, 0.0),
        (["words"], [], "words", [], 1.0, 1.0),  # nothing to cite, nothing cited
        (["words"], None, "words", None, 1.0, 1.0),
        (["words"], [], "words", ["a"], 0.0, 0.0),
        (["words"], ["a"], "words", "a", 0.0, 0.0),  # not a list: never a hit
        (["words"], [], "words", "a", 0.0, 0.0),
        (["words"], [], "words", "", 1.0, 1.0),  # falsy is an empty list
        (["words"], ["a"], " NOT IN CONTEXT\n", ["a"], 1.0, 1.0),  # nothing answered
    ],
)
def test_ship_rules_one_by_one(
    substrings: Any, citations: Any, claim: str, cited: Any, precision: float, hit_rate: float
) -> None:
    """One answerable item, ids a and b retrieved: the rates are 0 or 1."""
    row = gold("A1", answerable=True, substrings=substrings, citations=citations)
    scored = score_ship([row], [trace("A1", claim=claim, citations=cited, retrieved=["a", "b"])])
    assert (scored["precision"], scored["chr"]) == (precision, hit_rate)


def test_ship_gates_read_the_value_before_rounding() -> None:
    """Two of three answered items are right: 2/3 prints as 0.6667 and is below it."""
    rows = [*MINI_GOLD[::2], gold("A0004", answerable=True, substrings=[], citations=["p1#1"])]
    traces = [*MINI_TRACES, trace("A0004", claim="Anything.", citations=[], retrieved=[])]
    for threshold, passed in (("0.6667", False), ("0.6666", True)):
        gates = f"precision={threshold},chr=0.5,under=0,over=0"
        scored = score_ship(rows, traces, gates=gates)
        assert (scored["precision"], scored["pass"]) == (0.6667, passed)
        assert scored["gates"]["precision"] == threshold


SMOKE_GOLD: list[Row] = [
    {
        "qid": "q1",
        "q": "What is X?",
        "answerable": True,
        "gold_ids": ["p1#1"],
        "gold_claim": "X is a constrained mapping.",
    },
    {"qid": "q2", "q": "Explain Y.", "answerable": True, "gold_ids": ["p2#1"]},
    {"qid": "q3", "q": "What is Z?", "answerable": False, "gold_ids": []},
]
SMOKE_TRACES: list[Row] = [
    {"q": "What is X?", "answer": "x is a constrained mapping\n- Citations: [p9#9 p1#1]"},
    {"q": "What is X?", "answer": "citations: [p1#1]", "citations": []},  # the field wins
    {"question": "Explain Y.", "answer": " Not in context "},
    {"q": "What is Z?", "answer": "not in context"},
    {"q": "What is Z?", "answer": "not in context."},
    {"q": "Who?", "answer": "skipped"},
]
SMOKE_REPORT = """\
# RAG Quality Report

- Questions scored: **5**
- Answer precision (over answered): **33.3%**
- Over-refusal (answerable but refused): **33.3%**
- Under-refusal / Hallucination (unanswerable but answered): **50.0%**
- Citation hit rate (answerable): **33.3%**
- Claim containment (answerable): **33.3%**

## Per-question

| qid | answered | hit | refusal | label |
|-----|----------|-----|---------|-------|
| q1 | true | true | false | **OK** |
| q1 | true | false | false | **ANS_NO_HIT** |
| q2 | false | false | true | **OVER_REFUSAL** |
| q3 | false | false | true | **REFUSAL_OK** |
| q3 | true | false | false | **HALLUCINATION** |
"""


def test_smoke_report_and_numbers_by_hand() -> None:
    """3 of 5 lines are answered, 1 of them rightly; 1 of 2 lines of q3 should have refused."""
    assert score_smoke(SMOKE_GOLD, SMOKE_TRACES) == SMOKE_REPORT
    numbers = smoke_numbers(SMOKE_GOLD, SMOKE_TRACES)
    assert numbers["compliance"] == 4 / 5  # "not in context." neither lists nor refuses
    assert numbers["rows"][1] == {"qid": "q1", "label": "ANS_NO_HIT"}
    assert smoke_numbers(SMOKE_GOLD, [])["compliance"] is None


def test_smoke_rounds_halves_to_even() -> None:
    """5 of 16 is 31.25 %, which the source prints as 31.2 %."""
    right, wrong = ({"q": "What is X?", "citations": [cited]} for cited in ("p1#1", "p2#1"))
    report = score_smoke(SMOKE_GOLD, [right] * 5 + [wrong] * 11)
    assert "- Answer precision (over answered): **31.2%**\n" in report
