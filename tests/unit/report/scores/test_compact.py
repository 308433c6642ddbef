"""The report compact: the short JSON of the scoring prompt, key by key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.cases import cases
from tests.support.command import Folder, Row

KEYS = ["P@5", "R@5", "coverage", "citation_accuracy", "ΔS_med", "ΔS_p90", "bad_qids", "by_type"]


def item(qid: str, **more: Any) -> Row:
    place = {"id": f"S.{qid}.t.Bk001", "doc": "d.md", "start": 0, "end": 100}
    return {
        "qid": qid, "paraphrases": [f"{qid}?"], "relevant": [place],
        "anchor_section": f"S.{qid}", **more,
    }  # fmt: skip


def trace(qid: str, far: float | None = 0.1, *, cites: bool = True, **more: Any) -> Row:
    """Three hits, the first of them the evidence; the second is further away."""
    row: Row = {
        "qid": qid,
        "topk": [{"id": f"S.{qid}.t.Bk001"}, {"id": "S.9.p.Bk002"}, {"id": "S.9.p.Bk003"}],
        "answer_citations": [{"id": f"S.{qid}.t.Bk001", "offsets": [0, 100]}],
    }
    if far is not None:
        row["ΔS"] = [far, far + 0.1, None]
    if not cites:
        del row["answer_citations"]
    return {**row, **more}


def compact(folder: Folder, gold: list[Row], rows: list[Row], *options: str) -> dict[str, Any]:
    outcome = folder.score(rows, "--format", "compact", *options, gold=gold)
    document = json.loads(outcome.out)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("profile", ["canary", "all"])
def test_every_key_in_its_order(folder: Folder, profile: str) -> None:
    """Also where the profile's own metrics are others: the report brings what it needs."""
    gold = [item(str(n)) for n in range(1, 4)]
    rows = [trace("1", 0.1), trace("2", 0.2), trace("3", 0.4)]
    document = compact(folder, gold, rows, "--profile", profile)
    assert list(document) == KEYS
    expected: dict[str, Any] = {
        "P@5": 0.3333,  # one of three hits is evidence
        "R@5": 1.0,
        "coverage": 1.0 if profile == "canary" else None,  # all does not guess what to answer
        "citation_accuracy": 1.0,
        "ΔS_med": 0.2,
        "ΔS_p90": 0.36,  # at 0.9 · 2 = 1.8: 0.2 + 0.8 · 0.2
        "bad_qids": [],
        "by_type": {"table": {"n": 3, "P@5": None, "R@5": None, "coverage": None}},
    }
    assert document == expected


def test_other_metrics_may_be_chosen_beside_it(folder: Folder) -> None:
    """--metrics does not take the report's own away."""
    document = compact(
        folder, [item("1")], [trace("1")], "--profile", "all", "--metrics", "retrieval.empty"
    )
    assert (document["R@5"], document["ΔS_med"]) == (1.0, 0.1)


def test_other_cut_offs_leave_the_fives_alone(folder: Folder) -> None:
    """P@5 is at 5 whatever --k says."""
    document = compact(folder, [item("1")], [trace("1")], "--profile", "all", "--k", "1")
    assert (document["P@5"], document["R@5"]) == (0.3333, 1.0)


def test_the_text_is_indented_and_keeps_its_letters(folder: Folder) -> None:
    """ΔS is not escaped; the line ends with a line end."""
    text = folder.score([trace("1")], "--format", "compact", gold=[item("1")]).out
    assert '\n  "ΔS_med": 0.1,\n' in text
    assert text.endswith("}\n")


def test_values_have_four_decimals(folder: Folder) -> None:
    """2 of 3 found and covered: 0.6667; a sixth of the hits is evidence, which is 0.2222."""
    gold = [item(str(n)) for n in range(1, 4)]
    lost = trace("3", topk=["S.9.p.Bk001"], ΔS=[0.3], answer_citations=["S.9.p.Bk001"])
    document = compact(folder, gold, [trace("1"), trace("2"), lost])
    assert (document["R@5"], document["coverage"]) == (0.6667, 0.6667)
    assert document["P@5"] == 0.2222  # (1/3 + 1/3 + 0) / 3
    assert document["citation_accuracy"] == 0.6667  # without a span a citation fails


def test_bad_questions_are_sorted(folder: Folder) -> None:
    """Not covered: b and a; too far: z, whose ΔS is above 0.60; m is neither."""
    gold = [item(name) for name in "zbma"]
    stray: dict[str, Any] = {"answer_citations": [{"id": "S.9.p.Bk003", "doc": "d.md"}]}
    rows = [trace("z", 0.7), trace("b", 0.1, **stray), trace("m", 0.1), trace("a", 0.1, **stray)]
    assert compact(folder, gold, rows)["bad_qids"] == ["a", "b", "z"]


@pytest.mark.parametrize(("far", "bad"), [(0.6, []), (0.6001, ["1"]), (0.59, [])])
def test_a_distance_is_bad_above_the_risk_line_only(
    folder: Folder, far: float, bad: list[str]
) -> None:
    """0.60 itself is not above 0.60."""
    assert compact(folder, [item("1")], [trace("1", far)])["bad_qids"] == bad


@cases("slots", [[0.6] * 3, [0.6] * 7, [0.5, 0.7], [0.55, 0.6, 0.65], [0.58, 0.59, 0.61, 0.62]])
def test_a_mean_of_just_the_risk_line_is_not_above_it(folder: Folder, slots: list[float]) -> None:
    """The slots of a question are averaged; rounding does not make it bad."""
    rows = [trace("1", far, seed=seed) for seed, far in enumerate(slots)]
    assert compact(folder, [item("1")], rows)["bad_qids"] == []


def test_a_question_covered_in_one_slot_is_not_bad(folder: Folder) -> None:
    """Coverage 1/2 is not 0."""
    stray: dict[str, Any] = {"answer_citations": [{"id": "S.9.p.Bk003", "doc": "d.md"}]}
    rows = [trace("1", seed=1), trace("1", seed=2, **stray)]
    document = compact(folder, [item("1")], rows)
    assert (document["coverage"], document["bad_qids"]) == (0.5, [])


def test_an_index_without_answers_takes_the_distances_of_its_hits(folder: Folder) -> None:
    """Far by the median of the first five hits; no coverage and no accuracy."""
    gold = [item("1"), item("2")]
    rows = [trace("1", 0.1, cites=False), trace("2", 0.6, cites=False)]
    document = compact(folder, gold, rows)
    # Medians 0.15 and 0.65; p90 of each 0.19 and 0.69; then the medians over questions.
    assert (document["ΔS_med"], document["ΔS_p90"]) == (0.4, 0.44)
    assert (document["coverage"], document["citation_accuracy"]) == (None, None)
    assert document["bad_qids"] == ["2"]


def test_only_the_first_five_hits_stand_in(folder: Folder) -> None:
    """The sixth is as far as can be, and is not looked at: median of 0.1 to 0.5."""
    row = trace("1", None, cites=False, topk=[f"S.9.p.Bk00{n}" for n in range(6)])
    row["ΔS"] = [0.1, 0.2, 0.3, 0.4, 0.5, 2.0]
    document = compact(folder, [item("1")], [row])
    assert (document["ΔS_med"], document["ΔS_p90"]) == (0.3, 0.46)


def test_what_is_undefined_is_null(folder: Folder) -> None:
    """No evidence, no distances, no answers: nothing is 0."""
    document = compact(
        folder, [{"qid": "1", "paraphrases": ["?"]}], [{"qid": "1", "topk": ["a"]}],
        "--dialect", "canary",
    )  # fmt: skip
    assert document == dict.fromkeys(KEYS) | {"bad_qids": [], "by_type": {}}


def test_types_have_values_of_their_own(folder: Folder) -> None:
    """Five tables, of which four are found; two of code, too few to show."""
    gold = [item(str(n)) for n in range(1, 6)]
    gold += [item(str(n), type="code") for n in range(6, 8)]
    rows = [trace(str(n)) for n in range(1, 8)]
    rows[0] |= {"topk": ["S.9.p.Bk001"], "ΔS": [0.1], "answer_citations": ["S.9.p.Bk001"]}
    document = compact(folder, gold, rows)
    assert document["by_type"] == {
        "code": {"n": 2, "P@5": None, "R@5": None, "coverage": None},
        # P@5 is (4 · 1/3 + 0) / 5
        "table": {"n": 5, "P@5": 0.2667, "R@5": 0.8, "coverage": 0.8},
    }
    assert list(document["by_type"]["table"]) == ["n", "P@5", "R@5", "coverage"]
    assert compact(folder, gold, rows, "--min-n", "2")["by_type"]["code"]["R@5"] == 1.0


def test_a_conversation_is_bad_once(folder: Folder) -> None:
    """Two bad turns of one id are one entry."""
    gold = [item("1", turn=turn) for turn in (1, 2)]
    rows = [trace("1", 0.9, turn=turn) for turn in (1, 2)]
    assert compact(folder, gold, rows)["bad_qids"] == ["1"]


def test_a_saved_run_prints_the_same(folder: Folder) -> None:
    """`gate --format compact` of a full scores file, bad_qids included."""
    gold = [item(str(n)) for n in range(1, 4)]
    rows = [trace("1", 0.7), trace("2", 0.2), trace("3", 0.4)]
    first = folder.score(
        rows, "--full", "--format", "compact", "-o", "scores.json", gold=gold
    )  # fmt: skip
    again = folder.run("gate", "scores.json", "--format", "compact")
    assert again.out == first.out
    assert json.loads(again.out)["bad_qids"] == ["1"]
