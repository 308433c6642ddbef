"""The profile canary: is a shadow index fit to go into canary, against the live one."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row, lines_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "canary"

# Two questions in two wordings: the evidence of Qn is the bytes 0 to 100 of section S.n.
GOLD: list[Row] = [
    {
        "qid": f"Q{n}",
        "paraphrases": [f"What is {n}?", f"Explain {n}."],
        "relevant": [{"id": f"S.{n}.p.Bk001", "doc": f"d{n}.md", "start": 0, "end": 100}],
        "anchor_section": f"S.{n}",
        "negatives": [f"S.{n}.p.Bk009"],
    }
    for n in (1, 2)
]


def slots() -> list[Row]:
    """Two wordings with two seeds of each question, in which all is right; Q2 is the last four."""
    return [
        {
            "qid": f"Q{n}",
            "query": query,
            "seed": seed,
            "topk": [
                {"id": f"S.{n}.p.Bk001", "offsets": [0, 100]},
                {"id": f"S.{n}.p.Bk002", "offsets": [100, 200]},
            ],
            "ΔS": [0.2, 0.3],
            "λ_state": "→",
            "answer_citations": [{"id": f"S.{n}.p.Bk001", "offsets": [0, 100]}],
            "embed_model": "small",
        }
        for n in (1, 2)
        for query in (f"What is {n}?", f"Explain {n}.")
        for seed in (1, 2)
    ]


def index_only() -> list[Row]:
    return [{key: row[key] for key in row if key != "answer_citations"} for row in slots()]


def live(folder: Folder) -> None:
    """Save the scores of a run in which all is right as live.json."""
    first = folder.score(
        slots(), "--full", "-o", "live.json", "--allow-no-baseline", gold=GOLD,
        trace_name="live.jsonl",
    )  # fmt: skip
    assert first.exit_code == 0


def judged(folder: Folder, rows: list[Row], *options: str) -> tuple[Outcome, dict[str, Any]]:
    """Score rows against live.json; the outcome, and its gates by name."""
    live(folder)
    outcome = folder.score(rows, "--baseline", "live.json", "--format", "json", *options, gold=GOLD)
    return outcome, gates_of(outcome)


def gates_of(outcome: Outcome) -> dict[str, Any]:
    return {gate["name"]: gate for gate in json.loads(outcome.out)["verdict"]["gates"]}


def failing(gates: dict[str, Any]) -> set[str]:
    return {name for name, gate in gates.items() if gate["status"] == "fail"}


def blocks_of(outcome: Outcome) -> list[tuple[str, str]]:
    blocks = json.loads(outcome.out)["verdict"]["blocks"]
    return [(block["code"], block["message"]) for block in blocks]


def test_a_run_like_the_live_one_passes(folder: Folder) -> None:
    """Six gates, all of them met, exit code 0."""
    outcome, gates = judged(folder, slots())
    assert outcome.exit_code == 0
    assert {name: (gate["status"], gate["value"]) for name, gate in gates.items()} == {
        "coverage": ("pass", 1.0),
        "citation_accuracy": ("pass", 1.0),
        "delta_s_median": ("pass", 0.2),
        "delta_s_p90": ("pass", 0.2),
        "recall_drop": ("pass", 0.0),
        "convergent": ("pass", 1.0),
    }
    assert json.loads(outcome.out)["profile"] == "canary"


def change_sections(rows: list[Row]) -> None:
    for row in rows[4:]:
        row["answer_citations"] = [{"id": "S.9.p.Bk009", "offsets": [500, 600]}]


def change_offsets(rows: list[Row]) -> None:
    for row in rows[4:]:
        row["answer_citations"][0]["offsets"] = [200, 250]


def change_all_distances(rows: list[Row]) -> None:
    for row in rows:
        row["ΔS"] = [0.41, 0.5]


def change_far_distances(rows: list[Row]) -> None:
    for row in rows[4:]:
        row["ΔS"] = [0.6, 0.7]


def change_rank(rows: list[Row]) -> None:
    others = [{"id": f"S.8.p.Bk00{n}", "offsets": [0, 9]} for n in range(4)]
    rows[7]["topk"] = [rows[7]["topk"][1], *others, rows[7]["topk"][0]]
    rows[7]["ΔS"] = [0.2] * 6


def change_one_answer(rows: list[Row]) -> None:
    rows[7]["answer_citations"] = []


@cases(
    ("change", "failed"),
    [
        # Q2 cites another section: 1 of 2 covered, 1 of 2 accurate, 1 of 2 convergent.
        (change_sections, {"coverage": 0.5, "citation_accuracy": 0.5, "convergent": 0.5}),
        # The id is right, the bytes are not: 1 of 2.
        (change_offsets, {"citation_accuracy": 0.5}),
        (change_all_distances, {"delta_s_median": 0.41}),
        # 0.2 and 0.6: the median is 0.4, which passes; p90 is 0.2 + 0.9 · 0.4.
        (change_far_distances, {"delta_s_p90": 0.56}),
        # One of four slots of one of two questions finds the evidence at rank 6: 1/8.
        (change_rank, {"recall_drop": 0.125}),
        (change_one_answer, {"convergent": 0.5}),
    ],
    ids=lambda each: each.__name__.removeprefix("change_") if callable(each) else "",
)
def test_each_gate_can_fail(folder: Folder, change: Any, failed: dict[str, float]) -> None:
    """Exit code 1, and only the gates that the change is about."""
    rows = slots()
    change(rows)
    outcome, gates = judged(folder, rows)
    assert outcome.exit_code == 1
    assert failing(gates) == set(failed)
    assert {name: gates[name]["value"] for name in failed} == failed


@pytest.mark.parametrize(("given", "exit_code"), [("0.125", 0), ("0.12", 1), ("0.02", 1)])
def test_the_drop_is_set_on_the_command_line(folder: Folder, given: str, exit_code: int) -> None:
    """`recall_drop=X` changes the number of the profile's gate, and nothing else of it."""
    rows = slots()
    change_rank(rows)  # a drop of 1/8
    outcome, gates = judged(folder, rows, "--gates", f"recall_drop={given}")
    assert outcome.exit_code == exit_code
    assert len(gates) == 6
    assert gates["recall_drop"]["demand"] == f"<= {given}"
    assert (gates["recall_drop"]["metric"], gates["recall_drop"]["drop"]) == (
        "retrieval.recall@5",
        True,
    )


@pytest.mark.parametrize("given", ["recall_drop=abc", "recall_drop=nan", "recall_drop=inf"])
def test_a_drop_that_is_no_number_is_refused(folder: Folder, given: str) -> None:
    """Exit code 2, as for any other gate."""
    outcome = folder.score(slots(), "--gates", given, gold=GOLD)
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-gate"})


def test_a_drop_has_an_upper_limit(folder: Folder) -> None:
    """`recall_drop>=0.05` is refused, as `coverage<=0.7` is."""
    assert folder.score(slots(), "--gates", "coverage<=0.7", gold=GOLD).exit_code == 2
    assert folder.score(slots(), "--gates", "recall_drop>=0.05", gold=GOLD).exit_code == 2


def test_a_drop_is_written_as_other_numbers_are(folder: Folder) -> None:
    """`coverage=1_0` is refused."""
    assert folder.score(slots(), "--gates", "coverage=1_0", gold=GOLD).exit_code == 2
    assert folder.score(slots(), "--gates", "recall_drop=1_0", gold=GOLD).exit_code == 2


def test_without_a_baseline_the_drop_decides_nothing(folder: Folder) -> None:
    """Exit code 4 although every other gate passes."""
    outcome = folder.score(slots(), "--format", "json", gold=GOLD)
    assert outcome.exit_code == 4
    assert [code for code, _ in blocks_of(outcome)] == ["no-baseline"]
    gates = gates_of(outcome)
    assert gates["recall_drop"]["status"] == "not-evaluable"
    assert all(gate["status"] == "pass" for name, gate in gates.items() if name != "recall_drop")


def test_the_baseline_itself_may_be_scored(folder: Folder) -> None:
    """--allow-no-baseline leaves the drop out, and the report says so."""
    outcome = folder.score(slots(), "--format", "json", "--allow-no-baseline", gold=GOLD)
    assert (outcome.exit_code, blocks_of(outcome)) == (0, [])
    assert gates_of(outcome)["recall_drop"]["waived"] == (
        "left out: there is no baseline, and --allow-no-baseline"
    )
    table = folder.run("score", "gold.jsonl", "trace.jsonl", "--allow-no-baseline")
    assert "waived" in table.out


def test_allowing_no_baseline_excuses_nothing_else(folder: Folder) -> None:
    """Another gate that fails still fails; and with a baseline the drop is judged."""
    rows = slots()
    change_one_answer(rows)
    assert folder.score(rows, "--allow-no-baseline", gold=GOLD).exit_code == 1
    rows = slots()
    change_rank(rows)
    assert judged(folder, rows, "--allow-no-baseline")[0].exit_code == 1


def test_an_index_without_answers_is_judged_by_its_hits(folder: Folder) -> None:
    """ΔS of the first five hits stands in; what needs an answer is not evaluable: 4."""
    outcome, gates = judged(folder, index_only())
    assert outcome.exit_code == 4
    # 0.2 and 0.3: the median is 0.25, p90 is 0.2 + 0.9 · 0.1.
    for name, metric, value in (
        ("delta_s_median", "semantic.delta_s_hits@5", 0.25),
        ("delta_s_p90", "semantic.delta_s_hits_p90@5", 0.29),
    ):
        assert (gates[name]["status"], gates[name]["value"]) == ("pass", value)
        reason = gates[name]["reason"]
        assert reason.startswith(f"no answer cites anything: judged by {metric}; by the source's")
    for name in ("coverage", "citation_accuracy"):
        assert (gates[name]["status"], gates[name]["value"]) == ("not-evaluable", None)
    # λ follows hit@5 where there are no answers.
    assert (gates["convergent"]["status"], gates["convergent"]["value"]) == ("pass", 1.0)
    assert {code for code, _ in blocks_of(outcome)} == {"undefined-metric"}


def test_far_hits_of_an_index_without_answers_fail(folder: Folder) -> None:
    """The stand-in is judged by the same number: a median of 0.45 is more than 0.40."""
    rows = index_only()
    for row in rows:
        row["ΔS"] = [0.4, 0.5]
    _, gates = judged(folder, rows)
    assert (gates["delta_s_median"]["status"], gates["delta_s_median"]["value"]) == ("fail", 0.45)


def test_the_stand_in_is_saved_with_the_scores(folder: Folder) -> None:
    """A saved index-only run is judged as it was."""
    folder.score(index_only(), "--full", "-o", "only.json", gold=GOLD)
    again = gates_of(folder.run("gate", "only.json", "--format", "json"))
    assert (again["delta_s_median"]["status"], again["delta_s_median"]["value"]) == ("pass", 0.25)


def test_an_answer_without_citations_is_no_index_only_run(folder: Folder) -> None:
    """But where no answer cites, ΔS is of the hits there too."""
    rows = slots()
    for row in rows:
        row["answer_citations"] = []
    _, gates = judged(folder, rows)
    assert gates["coverage"]["value"] == 0.0
    assert gates["delta_s_median"]["value"] == 0.25


def test_a_slot_that_is_missing_blocks(folder: Folder) -> None:
    """Two wordings × two seeds: the fourth slot of Q2 is missed.

    Where that is allowed it counts as the worst beside the baseline, which has it: 3/4 of Q2.
    """
    outcome, gates = judged(folder, slots()[:7])
    assert outcome.exit_code == 4
    assert blocks_of(outcome) == [
        ("missing-traces", "1 slot has no trace (paraphrase × seed)"),
    ]
    failed = {name for name, gate in gates.items() if gate["status"] != "pass"}
    assert (failed, gates["recall_drop"]["value"]) == ({"recall_drop"}, 0.125)
    assert judged(folder, slots()[:7], "--allow-missing")[0].exit_code == 1


def test_a_question_that_is_missing_blocks(folder: Folder) -> None:
    """Without --allow-missing; with it the question has no hits, and the drop shows it."""
    outcome, _ = judged(folder, slots()[:4])
    assert (outcome.exit_code, blocks_of(outcome)) == (
        4,
        [("missing-traces", "1 of 2 gold items has no trace")],
    )
    lenient, gates = judged(folder, slots()[:4], "--allow-missing")
    assert (lenient.exit_code, gates["recall_drop"]["value"]) == (1, 0.5)


def test_other_profiles_do_not_ask_for_the_whole_grid(folder: Folder) -> None:
    """Under all a missing slot is counted and decides nothing."""
    folder.write("gates.toml", '"retrieval.recall@5" = { threshold = 1, min_n = 2 }\n')
    outcome = folder.score(
        slots()[:7], "--profile", "all", "--gates", "gates.toml", "--format", "json",
        gold=GOLD,
    )  # fmt: skip
    assert outcome.exit_code == 0
    assert json.loads(outcome.out)["counts"]["missing_slots"] == 1


def test_a_trace_with_an_error_blocks(folder: Folder) -> None:
    """Allowed, it is a slot without hits: recall of Q2 is 3/4, and λ of Q2 is <>."""
    rows = slots()
    rows[7]["error"] = "timeout"
    outcome, _ = judged(folder, rows)
    assert outcome.exit_code == 4
    blocks = blocks_of(outcome)
    assert {code for code, _ in blocks} == {"errored-traces"}
    worst = "1 trace carries an error: 0.8750 with them at their worst"
    assert any(worst in text for _, text in blocks)
    lenient, gates = judged(folder, rows, "--allow-errored")
    assert lenient.exit_code == 1
    assert failing(gates) == {"recall_drop", "convergent"}
    assert gates["recall_drop"]["value"] == 0.125


def test_gold_says_by_its_evidence_that_there_is_an_answer(folder: Folder) -> None:
    """Evidence or a section mean answer; nothing means unlabelled; `answerable` wins."""
    gold: list[Row] = [
        {"qid": "evidence", "paraphrases": ["a?"], "relevant": ["S.1.p.Bk001"]},
        {"qid": "section", "paraphrases": ["b?"], "anchor_section": "S.1"},
        {"qid": "nothing", "paraphrases": ["c?"]},
        {"qid": "said", "paraphrases": ["d?"], "anchor_section": "S.1", "answerable": False},
    ]
    rows = [
        {"qid": item["qid"], "topk": ["S.1.p.Bk001"], "answer_citations": ["S.1.p.Bk001"]}
        for item in gold
    ]
    outcome = folder.score(rows, "--format", "json", "--allow-no-baseline", gold=gold)
    document = json.loads(outcome.out)
    assert (document["counts"]["answerable"], document["counts"]["unanswerable"]) == (2, 1)
    coverage = document["metrics"]["answer.coverage"]
    assert (coverage["value"], coverage["n"]) == (1.0, 2)
    assert coverage["excluded"] == {"unlabelled": 1, "unanswerable": 1}


@pytest.mark.parametrize("codec", ["cp1252", "mac_roman"])
def test_damaged_greek_letters_change_no_score(folder: Folder, codec: str) -> None:
    """`Î”S` and `Î»_state`, or as a Mac shows them, with the signs in the values."""
    rows = slots()
    rows[0]["λ_state"] = "<>"
    clean = folder.score(rows, "--full", "--format", "json", gold=GOLD)
    text = lines_of(rows).decode().encode().decode(codec)
    assert "ΔS" not in text
    damaged = folder.score(text, "--full", "--format", "json", gold=GOLD)
    one, other = json.loads(clean.out), json.loads(damaged.out)
    assert one == other
    assert one["metrics"]["semantic.delta_s_cited"]["value"] == 0.2
    # Q1 records → and <>, which is <>; Q2 records → alone.
    assert one["lambda"]["recorded"] == {"→": 1, "←": 0, "<>": 1, "×": 0}


def test_distances_of_two_embedders_are_not_judged_together(folder: Folder) -> None:
    """Both gates on ΔS are not evaluable, the others are judged: 4."""
    rows = slots()
    rows[7]["embed_model"] = "large"
    outcome, gates = judged(folder, rows)
    assert outcome.exit_code == 4
    assert {name for name, gate in gates.items() if gate["status"] == "not-evaluable"} == {
        "delta_s_median", "delta_s_p90",
    }  # fmt: skip
    assert {code for code, _ in blocks_of(outcome)} == {"mixed-embedders"}
    assert json.loads(outcome.out)["embedders"] == ["large", "small"]


def test_a_drop_of_distances_of_another_embedder_is_not_judged(folder: Folder) -> None:
    """ΔS of the live run's embedder says nothing about that of this run; recall does."""
    folder.write("gates.toml", '"semantic.delta_s_cited" = { max_drop = 0.5 }\n')
    rows = slots()
    for row in rows:
        row["embed_model"] = "large"
    outcome, gates = judged(folder, rows, "--gates", "gates.toml")
    assert outcome.exit_code == 4
    dropped = next(gate for gate in gates.values() if gate["metric"].endswith("delta_s_cited")
                   and gate["drop"])  # fmt: skip
    assert dropped["reason"] == "ΔS of different embedders is never compared"
    assert gates["recall_drop"]["status"] == "pass"
    assert gates["recall_drop"]["reason"].endswith("; the embedders of the two runs differ")


def test_a_paraphrase_is_found_by_its_text(folder: Folder) -> None:
    """The same slots as with numbers; both documents are equal."""
    numbered = slots()
    for row in numbered:
        row["paraphrase"] = 0 if row.pop("query").startswith("What") else 1
    by_text = json.loads(folder.score(slots(), "--format", "json", gold=GOLD).out)
    by_number = json.loads(folder.score(numbered, "--format", "json", gold=GOLD).out)
    assert by_text == by_number
    counts = by_text["counts"]
    assert (counts["scored"], counts["duplicates"], counts["missing_slots"]) == (8, 0, 0)


def test_the_last_trace_of_a_paraphrase_is_scored(folder: Folder) -> None:
    """A repeated slot is counted, and its first trace is not looked at."""
    first = deepcopy(slots()[0])
    first["topk"], first["ΔS"], first["answer_citations"] = [], [], []
    outcome, _ = judged(folder, [first, *slots()])
    assert outcome.exit_code == 0
    assert json.loads(outcome.out)["duplicates"] == 1


def test_other_words_are_a_slot_of_their_own(folder: Folder) -> None:
    """A query that is no paraphrase does not take the place of one."""
    other = deepcopy(slots()[0])
    other["query"] = "Something else?"
    outcome = folder.score([*slots(), other], "--format", "json", gold=GOLD)
    counts = json.loads(outcome.out)["counts"]
    assert (counts["scored"], counts["duplicates"]) == (9, 0)


def test_a_trace_without_an_id_joins_by_its_paraphrase(folder: Folder) -> None:
    """The text of the query names the question and the wording."""
    rows = slots()
    for row in rows:
        del row["qid"]
    with_ids = json.loads(folder.score(slots(), "--format", "json", gold=GOLD).out)
    by_text = json.loads(folder.score(rows, "--format", "json", gold=GOLD).out)
    joined = by_text.pop("joined")
    assert joined == {"by_id": 0, "by_text": len(rows), "ambiguous": 0, "unmatched": 0}
    assert by_text.pop("warnings") != with_ids.pop("warnings")  # it is said
    assert by_text == with_ids


@pytest.mark.parametrize(("name", "exit_code"), [("shadow", 1), ("shadow-fixed", 0), ("live", 0)])
def test_the_example_is_judged_as_its_page_says(folder: Folder, name: str, exit_code: int) -> None:
    """The live index alone exits with 4, the first shadow with 1, the repaired one with 0."""
    gold = str(EXAMPLE / "gold.jsonl")
    first = folder.run("score", gold, str(EXAMPLE / "live.jsonl"), "--full", "-o", "live.json")
    assert first.exit_code == 4
    outcome = folder.run(
        "score", gold, str(EXAMPLE / f"{name}.jsonl"), "--baseline", "live.json",
        "--format", "json",
    )  # fmt: skip
    assert outcome.exit_code == exit_code
    assert failing(gates_of(outcome)) == ({"recall_drop"} if name == "shadow" else set())
