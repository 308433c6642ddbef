"""The scores document: written with rounded values, read back for gates, refused if it is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge import gate, load_gold, load_traces, registry, score
from ragauge.errors import RagaugeError
from ragauge.formats import load
from ragauge.model.gold import GoldItem
from ragauge.model.scores import SCHEMA, Scores
from ragauge.model.scores_document import from_document, json_text, rounded, to_document
from ragauge.model.trace import Hit, Trace
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, lines_of

WRONG = {"qid": "A3", "retrieved_ids": ["p9"], "answer_json": {"claim": "No.", "citations": ["p9"]}}


@pytest.fixture
def scores(tmp_path: Path) -> Scores:
    """A run in which one of three answers is wrong, under the profile `all`."""
    (tmp_path / "gold.jsonl").write_bytes(lines_of(GOLD))
    (tmp_path / "trace.jsonl").write_bytes(lines_of([*TRACES[:2], WRONG]))
    return score(tmp_path / "gold.jsonl", tmp_path / "trace.jsonl", profile="all")


def document_of(scores: Scores, *, full: bool = False) -> dict[str, Any]:
    return to_document(scores, gate(scores, "precision=0.8"), full=full)


@cases(
    ("value", "expected"),
    [(2 / 3, 0.6667), (1.0, 1.0), (-0.0, 0.0), (-0.00001, 0.0), (0.00005, 0.0001), (None, None)],
)
def test_values_are_rounded_to_four_decimals(value: float | None, expected: float | None) -> None:
    """There is no minus zero, which would print as -0.0."""
    assert repr(rounded(value)) == repr(expected)


def test_the_document_has_every_count_and_metric(scores: Scores) -> None:
    """With value, n, records, what was left out, interval and version, as plain JSON values."""
    document = document_of(scores)
    assert document["schema"] == SCHEMA
    assert document["inputs"] == {"gold": scores.gold_name, "trace": scores.trace_name}
    assert set(document["metrics"]) == {each.id for each in registry.select(["*"], scores.k)}
    entry = document["metrics"]["answer.precision"]
    assert entry["value"] == 0.5  # 1 of 2 answers cites its evidence
    assert (entry["n"], entry["records"], entry["excluded"]) == (2, 2, {"refused": 1})
    assert entry["interval"] == [0.0945, 0.9055]
    assert (entry["version"], entry["better"]) == (3, "higher")
    undefined = document["metrics"]["answer.constraints_echoed"]
    assert (undefined["value"], undefined["interval"], undefined["n"]) == (None, None, 0)
    assert undefined["reason"] == "no-constraints"
    assert json.loads(json.dumps(document)) == json.loads(msgspec.json.encode(document))
    assert "questions" not in document


def test_the_full_document_has_every_question(scores: Scores) -> None:
    """With its label and the places to look at."""
    questions = document_of(scores, full=True)["questions"]
    assert [(each["qid"], each["label"]) for each in questions] == [
        ("A1", "OK"),
        ("A2", "REFUSAL_OK"),
        ("A3", "ANS_NO_HIT"),
    ]
    assert questions[2]["trace"] == f"{scores.trace_name}:3"


@cases("profile", ["all", "ship", "smoke"])
@cases("full", [False, True])
def test_every_profile_gives_a_document_that_can_be_encoded(
    tmp_path: Path, profile: str, full: bool
) -> None:
    """No value of an array library is left in it."""
    (tmp_path / "gold.jsonl").write_bytes(lines_of(GOLD))
    (tmp_path / "trace.jsonl").write_bytes(lines_of([*TRACES, WRONG]))
    found = score(tmp_path / "gold.jsonl", tmp_path / "trace.jsonl", profile=profile)
    document = to_document(found, gate(found), full=full)
    assert json.loads(msgspec.json.encode(document))["profile"] == profile


def test_a_document_is_read_back_as_it_was_written(scores: Scores) -> None:
    """All that gates need, to the last bit: metrics, counts, rules, k and profile."""
    document = document_of(scores, full=True)
    back = from_document(msgspec.json.encode(document), "scores.json")
    assert (back.profile, back.dialect, back.k) == (scores.profile, scores.dialect, scores.k)
    assert (back.gold_name, back.trace_name) == (scores.gold_name, scores.trace_name)
    assert back.tally == scores.tally
    assert back.refusal_rules == scores.refusal_rules
    assert back.metrics == scores.metrics
    assert document_of(back)["metrics"] == document["metrics"]


@pytest.mark.parametrize(("threshold", "status"), [("0.6666", "pass"), ("0.6667", "fail")])
def test_a_saved_value_is_judged_as_it_was_before_rounding(
    folder: Folder, threshold: str, status: str
) -> None:
    """2/3 is printed as 0.6667 and is below it, in the run and in the file."""
    wrong = {**TRACES[1], "answer_json": {"claim": "Z is a city.", "citations": ["p1#1"]}}
    gold = folder.write("g.jsonl", GOLD)
    trace = folder.write("t.jsonl", [TRACES[0], wrong, TRACES[2]])
    found = score(gold, trace, profile="all")
    demand: dict[str, object] = {"answer.precision": {"threshold": threshold, "min_n": 3}}
    assert gate(found, demand).status == status
    document = to_document(found, gate(found, demand), full=False)
    saved = folder.write("scores.json", msgspec.json.encode(document))
    assert gate(saved, demand).status == status


@cases("profile", ["ship", "smoke", "all"])
@cases("gates", ["precision=0.4", "precision=0.9", "under=0,over=0"])
def test_a_saved_document_gets_the_same_verdict(
    tmp_path: Path, folder: Folder, profile: str, gates: str
) -> None:
    """Judging again costs nothing and changes nothing."""
    gold, trace = folder.write("g.jsonl", GOLD), folder.write("t.jsonl", [*TRACES[:2], WRONG])
    found = score(gold, trace, profile=profile)
    verdict = gate(found, gates)
    document = to_document(found, verdict, full=True)
    (tmp_path / "scores.json").write_bytes(msgspec.json.encode(document))
    again = gate(tmp_path / "scores.json", gates)
    assert (again.status, again.exit_code) == (verdict.status, verdict.exit_code)
    assert [each.status for each in again.gates] == [each.status for each in verdict.gates]
    assert [each.n for each in again.gates] == [each.n for each in verdict.gates]


def test_the_default_of_a_source_survives_the_file(folder: Folder) -> None:
    """0/0 under ship is judged as in the run: here nothing is unanswerable."""
    gold = folder.write("g.jsonl", [GOLD[0], GOLD[2]])
    trace = folder.write("t.jsonl", [TRACES[0], TRACES[2]])
    found = score(gold, trace, profile="ship")
    document = to_document(found, gate(found), full=True)
    assert document["metrics"]["refusal.under"]["value"] is None
    back = from_document(msgspec.json.encode(document), "scores.json")
    assert back.metrics["refusal.under"].shown == 0.0
    assert gate(back).exit_code == gate(found).exit_code == 0


def test_a_document_may_have_fields_of_a_later_version(scores: Scores) -> None:
    """Unknown keys are passed over: the schema's number says when that is not enough."""
    document = {**document_of(scores), "later": {"x": 1}}
    assert from_document(msgspec.json.encode(document), "scores.json").tally == scores.tally


def refused(data: bytes) -> RagaugeError:
    with pytest.raises(RagaugeError) as caught:
        from_document(data, "scores.json")
    return caught.value


@cases(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"not json",
        b'{"schema": 1}',
        b'{"precision": 1.0, "pass": true}',
        b'{"schema": "\xff"}',
        b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["empty", "object", "list", "null", "text", "number", "short ship JSON", "bytes", "deep"],
)
def test_a_file_that_is_no_document_is_refused(data: bytes) -> None:
    """With the command that writes one."""
    error = refused(data)
    assert (error.code, error.exit_code) == ("bad-scores", 3)
    assert "ragauge score" in error.problems[0].hint
    assert str(error.problems[0].place) == "scores.json"


def test_another_schema_is_refused(scores: Scores) -> None:
    """Also an older or newer one of ours."""
    document = {**document_of(scores), "schema": "ragauge.scores/999"}
    error = refused(msgspec.json.encode(document))
    assert error.code == "bad-scores"
    assert "ragauge.scores/999" in error.problems[0].message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("metrics", None),
        ("metrics", {"x": {}}),
        ("metrics", {"x": {"value": "high"}}),
        ("counts", {}),
        ("k", ["5"]),
        ("inputs", {}),
        ("refusal_rules", {"token": "many"}),
    ],
)
def test_a_damaged_document_is_refused(scores: Scores, key: str, value: object) -> None:
    """Each part that gates need must be there, with its types."""
    document = {**document_of(scores), key: value}
    assert refused(msgspec.json.encode(document)).code == "bad-scores"


def test_sets_from_memory_score_as_files_do(folder: Folder) -> None:
    """The API may be given names or what it loaded itself."""
    gold, trace = folder.write("g.jsonl", GOLD), folder.write("t.jsonl", [*TRACES, WRONG])
    loaded = score(load_gold(gold), load_traces(trace), profile="ship")
    found = score(gold, trace, profile="ship")
    assert to_document(loaded, gate(loaded), full=True) == to_document(
        found, gate(found), full=True
    )
    assert load.load_gold(gold).items[0].qid == "A1"


def test_slices_that_are_json_already_are_the_same_bytes() -> None:
    items = [
        GoldItem(qid=f"q{number}", relevant=(f"guide{number % 2}#1",), type="fact")
        for number in range(12)
    ]
    traces = [Trace(qid=item.qid, hits=(Hit("guide1#1"),)) for item in items]
    scores = score(items, traces, profile="all")
    assert any(part.metrics for parts in scores.slices.values() for part in parts.values())
    verdict = gate(scores, "precision=0.8")
    as_values, as_json = (
        json_text(to_document(scores, verdict, full=True, raw_slices=raw)) for raw in (False, True)
    )
    assert as_values == as_json
