"""Names of the specification are read; under `--profile ship` only those of its source are."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragauge import load_gold, score
from ragauge.errors import RagaugeError
from ragauge.files import ranges
from ragauge.model.scores import Scores
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose
from tests.conformance.runs import write
from tests.oracles.ship_oracle import score_ship
from tests.support.cases import cases
from tests.support.command import Folder, Row

# --- names of the specification -------------------------------------------------------------------

SECTION_2 = {
    "qid": "q1", "question": "What?", "paraphrases": ["What is it?"], "expect": "refuse",
    "relevant": ["p1"], "relevant_docs": ["d.md"], "groups": [["p1"]], "grades": {"p1": 2},
    "anchor_section": "S.1", "negatives": ["p9"], "claims_any": ["blue whale"],
    "must_contain": ["blue"], "forbidden": ["red"], "constraints": ["Be brief."], "type": "prose",
    "tags": ["t"], "group": "g", "difficulty": "hard", "lang": "en",
}  # fmt: skip


def test_every_field_of_gold_is_read_under_its_own_name(tmp_path: Path) -> None:
    item = load_gold(write(tmp_path / "gold.jsonl", [SECTION_2])).items[0]
    assert item.extra == {}
    for name, value in SECTION_2.items():
        wanted = tuple(value) if isinstance(value, list) and name != "groups" else value
        wanted = (("p1",),) if name == "groups" else wanted
        assert getattr(item, name) == wanted, name


@cases(
    ("row", "expect"),
    [
        ({"expect": "answer"}, "answer"),
        ({"expect": "refuse"}, "refuse"),
        ({"expect": "unlabelled"}, None),
        ({"expect": None, "answerable": False}, "refuse"),
        ({"expect": "answer", "answerable": True}, "answer"),
    ],
)
@cases("more", [{}, {"tags": ["t"]}])  # fast and exact
def test_what_is_expected_may_be_a_word(
    tmp_path: Path, row: Row, expect: str | None, more: Row
) -> None:
    gold = write(tmp_path / "gold.jsonl", [{"qid": "q1", **row, **more}])
    assert load_gold(gold).items[0].expect == expect


@cases(
    ("row", "code"),
    [
        ({"expect": "maybe"}, "bad-field"),
        ({"expect": True}, "bad-field"),
        ({"answerable": "refuse"}, "bad-field"),
        ({"expect": "answer", "answerable": False}, "field-conflict"),
    ],
)
def test_any_other_word_is_an_error(tmp_path: Path, row: Row, code: str) -> None:
    with pytest.raises(RagaugeError) as failure:
        load_gold(write(tmp_path / "gold.jsonl", [{"qid": "q1", **row}]))
    assert failure.value.problems[0].code == code


def test_refusals_are_measured_by_the_names_of_the_specification(folder: Folder) -> None:
    """Both were silently 0/0 before: u1 is answered, a1 contains its claim."""
    gold: list[Row] = [
        {"qid": "u1", "question": "Who?", "expect": "refuse"},
        {"qid": "a1", "question": "What?", "expect": "answer", "claims_any": ["blue whale"]},
    ]
    traces = [
        {"qid": "u1", "hits": ["p1"], "claim": "Me.", "citations": []},
        {"qid": "a1", "hits": ["p1"], "claim": "A blue whale.", "citations": ["p1"]},
    ]
    outcome = folder.score(traces, "--format", "json", gold=gold)
    metrics = json.loads(outcome.out)["metrics"]
    assert metrics["refusal.under"]["value"] == 1.0
    assert metrics["answer.claim_containment"]["value"] == 1.0


@cases(
    ("row", "references"),
    [
        ({"reference": "Bern"}, ("Bern",)),
        ({"ground_truths": ["Bern", "Berne", "Bern", " "]}, ("Bern", "Berne")),
        ({"reference_answer": "Bern", "ground_truth": ["Bern"]}, ("Bern",)),
        ({"answers": {"text": ["Bern"], "answer_start": [4]}}, ("Bern",)),
        ({"answers": [{"text": "Bern", "answer_start": 4}]}, ("Bern",)),
        ({"expected_output": 8080}, ("8080",)),
        ({"reference": ""}, ()),
    ],
)
def test_reference_answers_have_many_names(
    tmp_path: Path, row: Row, references: tuple[str, ...]
) -> None:
    gold = write(tmp_path / "gold.jsonl", [{"qid": "q1", **row}])
    assert load_gold(gold).items[0].references == references


@pytest.mark.parametrize(
    "row", [{"reference": True}, {"answers": [{"id": 3}]}, {"reference": "a", "answers": ["b"]}]
)
def test_reference_answers_are_text(tmp_path: Path, row: Row) -> None:
    with pytest.raises(RagaugeError):
        load_gold(write(tmp_path / "gold.jsonl", [{"qid": "q1", **row}]))


# --- ship -----------------------------------------------------------------------------------------

GOLD: list[Row] = [
    {
        "qid": f"q{n}",
        "question": f"What is {n}?",
        "answerable": n % 3 != 2,
        "gold_claim_substr": ["blue whale"],
        "gold_citations": ["p1"],
    }
    for n in range(12)
]
GOOD: Row = {
    "retrieved_ids": ["p1"],
    "answer_json": {"claim": "A blue whale.", "citations": ["p1"]},
}
OTHER: list[Row] = [
    GOOD,
    {"retrieved_ids": ["p1"], "answer_json": None, "answer": "A blue whale.", "citations": ["p1"]},
    {"retrieved_ids": ["p1"], "answer_text": "A blue whale. citations: [p1]"},
    {**GOOD, "retrieved_ids": None, "topk": ["p1"]},
    {"retrieval": {"items": ["p1"]}, "answer_json": GOOD["answer_json"]},
    {"retrieved_ids": ["p1"], "claim": "A blue whale.", "answer_citations": ["p1"]},
    {**GOOD, "answer": {"claim": "not in context"}, "cited_chunks": ["p9"]},
    {"chunks": [{"id": "p1"}], "ΔS": [0.25], "answer": "A blue whale.", "citations": ["p1"]},
]


def ship(folder: Path, gold: list[Row], traces: list[Row], **options: Any) -> Scores:
    files = write(folder / "gold.jsonl", gold), write(folder / "trace.jsonl", traces)
    return score(*files, profile="ship", intervals=False, **options)


def rows(*, unread: bool) -> list[Row]:
    more = {"note": "x"} if unread else {}
    return [{"qid": f"q{n}", **OTHER[n % len(OTHER)], **more} for n in range(12)]


def numbers(scores: Scores) -> dict[str, float]:
    names = {"precision": "answer.grounded_precision", "chr": "citation.hit_rate",
             "under_refusal": "refusal.under", "over_refusal": "refusal.over",
             "recall@k": "retrieval.recall_all@5"}  # fmt: skip
    found = {}
    for name, metric in names.items():
        result = scores.metrics[metric]
        value = result.default if result.value is None else result.value
        assert value is not None
        found[name] = round(value, 4)
    return found


@pytest.mark.parametrize("unread", [False, True])
def test_only_the_names_of_the_source_are_read_under_ship(tmp_path: Path, unread: bool) -> None:
    """Rows with other dialects' answers and hits score as the source scores them."""
    traces = rows(unread=unread)
    theirs = score_ship(GOLD, traces)
    scores = ship(tmp_path, GOLD, traces)
    assert numbers(scores) == {name: theirs[name] for name in numbers(scores)}
    assert theirs["precision"] < 1.0


@pytest.mark.slow
def test_workers_read_the_same_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = [
        {**row, "qid": f"q{n % 12}"} for n in range(200) for row in [rows(unread=n > 99)[n % 12]]
    ]
    alone = ship(tmp_path, GOLD, traces, workers=1)
    monkeypatch.setattr(inputs, "plan", partial(ranges.plan, range_bytes=2_000))
    monkeypatch.setattr(choose, "RANGE_BYTES", 2_000)
    together = ship(tmp_path, GOLD, traces, workers=2)
    assert together.metrics == alone.metrics
    assert together.warnings == alone.warnings


def test_gold_has_the_names_of_the_source_too(tmp_path: Path) -> None:
    gold = [
        {**row, "gold_citations": None, "relevant": ["p2"], "expect": "answer"} if n % 2 else row
        for n, row in enumerate(GOLD)
    ]
    traces = [{"qid": f"q{n}", **GOOD} for n in range(12)]
    theirs = score_ship(gold, traces)
    scores = ship(tmp_path, gold, traces)
    assert numbers(scores) == {name: theirs[name] for name in numbers(scores)}
    assert any("`relevant` on line 2 and 5 more is not read" in one for one in scores.warnings)


def test_another_answer_is_a_warning_with_its_line(folder: Folder) -> None:
    """A crash that was logged as null beside an answer of another dialect does not pass."""
    traces = [{"qid": f"q{n}", **GOOD} for n in range(3)]
    traces[1] |= {"answer_json": None, "answer": "A blue whale.", "citations": ["p1"]}
    gold = [{**row, "answerable": True} for row in GOLD[:3]]
    outcome = folder.score(traces, "--profile", "ship", gold=gold)
    assert "trace.jsonl: `answer` on line 2 is not read" in outcome.err
    assert "trace.jsonl: `citations` on line 2 is not read" in outcome.err
    assert "ANS_NO_HIT" in outcome.out
    # 2 of 3 answered right: under the threshold of 0.80
    assert outcome.exit_code == 1
    checked = folder.run("validate", "gold.jsonl", "trace.jsonl", "--profile", "ship")
    assert "`answer` on line 2 is not read" in checked.out + checked.err


def test_with_a_dialect_every_spelling_is_read(tmp_path: Path) -> None:
    traces = [
        {"qid": f"q{n}", "topk": ["p1"], "answer": "A blue whale.", "citations": ["p1"]}
        for n in range(12)
    ]
    scores = ship(tmp_path, GOLD, traces, dialect="native")
    assert scores.metrics["citation.hit_rate"].value == pytest.approx(8 / 12)  # 4 are to be refused
    assert not any("is not read" in warning for warning in scores.warnings)


def test_the_dialect_alone_still_reads_every_spelling(tmp_path: Path) -> None:
    """Only a profile that is asked for by name is the source's to the letter."""
    traces = [{"qid": f"q{n}", **GOOD} for n in range(12)]
    traces[0] |= {"answer_json": None, "answer": "A blue whale.", "citations": ["p1"]}
    files = write(tmp_path / "gold.jsonl", GOLD), write(tmp_path / "trace.jsonl", traces)
    scores = score(*files, intervals=False)
    assert scores.profile == "ship"
    assert scores.metrics["citation.hit_rate"].value == pytest.approx(8 / 12)
