"""A metric from run to run: which runs have it, and where its values cannot be compared."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.model.run import RunRecord
from ragauge.store.history import measured_in, timeline
from tests.support.cases import cases


def run(
    run_id: str,
    /,
    *,
    profile: str = "ship",
    gold: str = "a" * 64,
    status: Any = "complete",
    aggregate: str | None = None,
    **values: float | None,
) -> RunRecord:
    """A run with some metrics; `__` in a name is a dot, `_at_` an @, `_v2` a version."""
    metrics = {}
    for key, value in values.items():
        name, _, version = key.partition("_v")
        name = name.replace("__", ".").replace("_at_", "@")
        metrics[name] = {
            "value": value, "n": 3, "version": int(version or 1), "better": "higher",
            "interval": None if value is None else [value - 0.1, value + 0.1],
            "reason": "no-evidence" if value is None else None,
        }  # fmt: skip
    return RunRecord(
        run_id=run_id, suite="default", profile=profile, created_at="2026-01-01T00:00:00Z",
        commit_hash=None, gold_hash=gold, gold_key="k", status=status,
        aggregate=json.dumps({"metrics": metrics}) if aggregate is None else aggregate,
    )  # fmt: skip


def test_values_are_taken_run_by_run_in_the_given_order() -> None:
    line = timeline(
        [run("one", answer__precision=0.5), run("two", answer__precision=0.75)], "answer.precision"
    )
    assert [(each.run.run_id, each.measured.value) for each in line.points] == [
        ("one", 0.5), ("two", 0.75),
    ]  # fmt: skip
    assert line.points[1].measured.interval == (0.65, 0.85)
    assert line.points[1].changes == ()


def test_a_short_name_means_what_the_profile_of_each_run_says() -> None:
    """`chr` is one metric under ship and another under smoke: the step between is marked."""
    line = timeline(
        [
            run("one", citation__hit_rate=0.5),
            run("two", profile="smoke", citation__hit_rate_answerable=0.6),
        ],
        "chr",
    )
    assert [each.metric for each in line.points] == [
        "citation.hit_rate", "citation.hit_rate_answerable",
    ]  # fmt: skip
    assert line.points[1].changes == (
        "another metric: citation.hit_rate → citation.hit_rate_answerable",
        "another profile: ship → smoke",
    )


@cases(
    ("asked", "profile", "key"),
    [
        ("hit@5", "kb", "retrieval__hit_at_5"),
        ("mrr", "kb", "retrieval__mrr_at_10"),  # kb measures it at 10 only
        ("recall@5", "ship", "retrieval__recall_all_at_5"),
        ("retrieval.hit@5", "gone", "retrieval__hit_at_5"),  # a profile that is no more
        ("retrieval.recall_all", "ship", "retrieval__recall_all_at_5"),
    ],
)
def test_names_are_understood(asked: str, profile: str, key: str) -> None:
    given = run("one", profile=profile, **{key: 0.5})  # type: ignore[arg-type]
    line = timeline([given], asked)
    assert [each.measured.value for each in line.points] == [0.5]


def test_a_name_without_its_cut_off_is_refused_where_there_are_several() -> None:
    several = run("one", profile="all", retrieval__hit_at_1=0.5, retrieval__hit_at_5=1.0)
    with pytest.raises(RagaugeError) as caught:
        timeline([several], "retrieval.hit")
    assert caught.value.code == "unknown-metric"
    assert "retrieval.hit@1, retrieval.hit@5" in caught.value.problems[0].hint


def test_a_changed_gold_set_and_a_changed_formula_are_marked() -> None:
    line = timeline(
        [
            run("one", answer__precision=0.5),
            run("two", answer__precision=0.5, gold="b" * 64),
            run("three", answer__precision_v2=0.6, gold="b" * 64),
            run("four", answer__precision_v2=0.6, gold="b" * 64),
        ],
        "answer.precision",
    )
    assert [each.changes for each in line.points] == [
        (),
        ("the gold set changed: aaaaaaaa → bbbbbbbb",),
        ("the formula changed: version 1 → 2",),
        (),
    ]
    assert line.last(2).points[0].changes == ("the formula changed: version 1 → 2",)


def test_a_run_without_the_metric_is_named_and_never_a_zero() -> None:
    line = timeline(
        [
            run("one", answer__precision=0.5),
            run("none", refusal__over=0.0),
            run("half", status="incomplete", aggregate="{}"),
            run("torn", aggregate='{"metrics": {"answer.precision": 3'),
            run("undefined", answer__precision=None),
        ],
        "answer.precision",
    )
    assert [each.run.run_id for each in line.points] == ["one", "undefined"]
    assert line.points[1].measured.value is None
    assert line.points[1].measured.reason == "no-evidence"
    assert (line.without, line.incomplete, line.unreadable) == (("none",), ("half",), ("torn",))


def test_a_metric_that_is_no_longer_registered_can_still_be_followed() -> None:
    line = timeline([run("one", answer__charm=0.5)], "answer.charm")
    assert [each.measured.value for each in line.points] == [0.5]


@pytest.mark.parametrize("runs", [[], [run("one", answer__precision=0.5)]])
def test_an_unknown_metric_is_refused(runs: list[RunRecord]) -> None:
    with pytest.raises(RagaugeError) as caught:
        timeline(runs, "answer.precison")
    assert caught.value.code == "unknown-metric"
    assert "answer.precision" in caught.value.problems[0].hint


def test_a_known_metric_that_no_run_has_gives_no_points() -> None:
    line = timeline([run("one", answer__precision=0.5)], "refusal.over")
    assert line.points == ()
    assert line.without == ("one",)


def test_the_document_has_all_of_it() -> None:
    document = timeline([run("one", answer__precision=0.5)], "precision").document()
    assert document["schema"] == "ragauge.history/1"
    assert document["metric"] == "precision"
    # Under ship, precision is the grounded one, which this run does not have.
    assert document["points"] == []
    assert document["without"] == ["one"]
    line = timeline([run("one", profile="all", answer__precision=0.5)], "precision")
    (point,) = line.document()["points"]
    assert (point["metric"], point["value"], point["interval"]) == (
        "answer.precision", 0.5, [0.4, 0.6],
    )  # fmt: skip
    assert json.loads(json.dumps(line.document())) == line.document()


def test_scores_that_cannot_be_read_are_none() -> None:
    assert measured_in(run("one", aggregate="nonsense")) is None
    assert measured_in(run("one", aggregate="{}")) == {}
