"""`ragauge compare`: the kinds of questions with several pieces of evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command import Folder

QUESTIONS = range(30)
GOLD = [
    {
        "qid": f"Q{i:02}",
        "question": f"question number {i}?",
        "answerable": True,
        "gold_citations": [f"d{i}#1", f"d{i}#2"],
    }
    for i in QUESTIONS
]


def rows(*kept: str) -> list[dict[str, Any]]:
    """Hits of which those named are evidence, and the others are not."""
    return [
        {"qid": f"Q{i:02}", "retrieved_ids": [f"d{i}#{name}" for name in kept]} for i in QUESTIONS
    ]


@pytest.fixture
def runs(folder: Folder) -> Folder:
    """Two pieces of evidence each; b lost the second everywhere, c only has other hits between."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", rows("1", "2", "9"))
    folder.write("b.jsonl", rows("1", "8", "9"))
    folder.write("c.jsonl", rows("1", "8", "2"))
    return folder


def compared(folder: Folder, *arguments: str) -> dict[str, Any]:
    """What `compare` prints as JSON."""
    outcome = folder.run("compare", *arguments, "--gold", "gold.jsonl", "--format", "json")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


FAIL_ON = ("--fail-on", "regression", "--fail-on", "loss")


def saved(folder: Folder, name: str) -> str:
    outcome = folder.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
    assert outcome.exit_code in (0, 1), outcome.err
    return f"{name}.json"


def stored(folder: Folder, name: str) -> str:
    arguments = ("gold.jsonl", f"{name}.jsonl", "--store", "--run-id", name)
    assert folder.run("score", *arguments).exit_code in (0, 1)
    return name


@pytest.mark.parametrize("how", ["traces", "scores", "stored", "mixed"])
def test_one_of_two_pieces_lost_everywhere_is_thirty_regressions(runs: Folder, how: str) -> None:
    """The first piece is still at rank 1: recall_all fell from 1 to 0, and hit and mrr did not."""
    if how == "traces":
        names: tuple[str, ...] = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    elif how == "mixed":
        names = (stored(runs, "a"), saved(runs, "b"))
    else:
        names = tuple(
            saved(runs, name) if how == "scores" else stored(runs, name) for name in ("a", "b")
        )
    outcome = runs.run("compare", *names, "--fail-on", "regression", "--format", "json")
    assert outcome.exit_code == 1, outcome.err
    found = json.loads(outcome.out)
    kinds = {"regression": 30, "mixed": 0, "undecided": 0, "loss": 0, "win": 0, "draw": 0}
    assert found["kinds"]["retrieval"] == kinds
    question = found["per_query"][7]
    assert question["lost"] == ["d7#2"]
    assert (question["units"], question["a_units"], question["b_units"]) == (2, 2.0, 1.0)
    assert (question["a_hit_rank"], question["b_hit_rank"]) == (1, 1)
    assert question["note"].startswith("2→1 of 2 found within 10; lost d7#2")


def test_a_piece_further_down_is_a_loss(runs: Folder) -> None:
    """1 + 1/2 becomes 1 + 1/3, and the first evidence did not move."""
    names = ("a.jsonl", "c.jsonl", "--gold", "gold.jsonl", "--format", "json")
    found = json.loads(runs.run("compare", *names, "--fail-on", "regression").out)
    assert found["kinds"]["retrieval"]["loss"] == 30
    assert found["exit_code"] == 0
    assert runs.run("compare", *names, *FAIL_ON).exit_code == 1


def test_the_cut_off_is_that_of_the_gate(runs: Folder) -> None:
    """With a gate on recall@2 the piece at rank 3 is lost."""
    runs.write("ragauge.toml", '[gates]\n"retrieval.recall@2" = { max_drop = 0.9 }\n')
    names = ("a.jsonl", "c.jsonl", "--gold", "gold.jsonl", "--format", "json")
    found = json.loads(runs.run("compare", *names).out)
    assert found["k"] == 2
    assert found["kinds"]["retrieval"]["regression"] == 30


def test_files_of_scores_without_all_ranks_cannot_prove_that_nothing_was_lost(
    runs: Folder,
) -> None:
    """Those of older versions have the first evidence only: --fail-on is not evaluable on them."""
    names = [saved(runs, name) for name in ("a", "b")]
    for name in names:
        document = json.loads((runs.path / name).read_text("utf-8"))
        for question in document["questions"]:
            del question["units"]
        (runs.path / name).write_text(json.dumps(document), "utf-8")
    outcome = runs.run("compare", *names, "--fail-on", "regression")
    assert (outcome.exit_code, outcome.codes) == (4, {"incomparable"})
    quiet = runs.run("compare", *names)
    assert quiet.exit_code == 0
    assert "other pieces may be lost" in " ".join(quiet.out.split())


def test_groups_are_found_by_any_member(folder: Folder) -> None:
    """Another member of a group is as good: the group was not lost; the second group was."""
    folder.write(
        "gold.jsonl",
        [{"qid": "g", "question": "who and when?", "groups": [["x#1", "x#2"], ["y#1"]]}],
    )
    folder.write("a.jsonl", [{"qid": "g", "topk": ["x#1", "y#1"]}])
    folder.write("b.jsonl", [{"qid": "g", "topk": ["x#2", "z#1"]}])
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--format", "json"
    )
    (question,) = json.loads(outcome.out)["per_query"]
    assert question["kind"] == "regression"
    assert question["lost"] == ["y#1"]


def test_a_mean_over_slots(folder: Folder) -> None:
    """Two paraphrases: the piece was found in both, and is found in one."""
    folder.write(
        "gold.jsonl",
        [{"qid": "p", "question": "which port?", "paraphrases": ["which port?", "what port?"],
          "relevant": ["x#1", "y#1"]}],
    )  # fmt: skip
    both = [{"qid": "p", "paraphrase": slot, "topk": ["x#1", "y#1"]} for slot in (0, 1)]
    folder.write("a.jsonl", both)
    folder.write("b.jsonl", [both[0], {**both[1], "topk": ["x#1", "z#1"]}])
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--format", "json"
    )
    (question,) = json.loads(outcome.out)["per_query"]
    assert (question["kind"], question["lost"]) == ("regression", ["y#1"])
    assert (question["a_units"], question["b_units"]) == (2.0, 1.5)


# --- --fail-on ---


@pytest.fixture
def some_lost(folder: Folder) -> Folder:
    """Of 30 questions three lost a piece, and one has another one instead of it."""
    folder.write("gold.jsonl", GOLD)
    before, after = rows("1", "2", "9"), rows("1", "2", "9")
    for place in (3, 5, 8):
        after[place] = rows("1", "8", "9")[place]
    before[20], after[20] = rows("1", "8", "9")[20], rows("8", "2", "9")[20]
    folder.write("a.jsonl", before)
    folder.write("b.jsonl", after)
    return folder


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (("regression",), 1),
        (("regression:2",), 1),
        (("regression:3",), 0),
        (("regression:9%",), 1),  # 2.7 of 30 questions: 2
        (("regression:10%",), 0),
        (("regression:3", "--strict"), 1),  # the mixed one is a fourth
        (("regression:4", "--strict"), 0),
        (("loss:3",), 0),
        (("loss:3", "--fail-on", "regression:2"), 1),
    ],
)
def test_a_tolerance_in_questions_or_as_a_share(
    some_lost: Folder, flags: tuple[str, ...], code: int
) -> None:
    """So many may be lost, and no more."""
    names = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    outcome = some_lost.run("compare", *names, "--fail-on", *flags, "--format", "json")
    assert outcome.exit_code == code, outcome.err
    found = json.loads(outcome.out)
    kinds = {"regression": 3, "mixed": 1, "undecided": 0, "loss": 0, "win": 0, "draw": 26}
    assert found["kinds"]["retrieval"] == kinds
    assert any(check["failed"] for check in found["fail_on"].values()) == bool(code)


@pytest.mark.parametrize(
    "text", ["regresion", "win", "regression:", "regression:-1", "regression:1.5", "regression:x%",
             "regression:100%", "regression:1 %", "loss:999%", "regression:2:3"],
)  # fmt: skip
def test_a_limit_that_is_not_understood_or_never_fails_is_refused(
    some_lost: Folder, text: str
) -> None:
    names = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--fail-on", text)
    outcome = some_lost.run("compare", *names)
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})


@pytest.mark.parametrize("flag", [("--strict",), ("--repeat-of-a", "a.jsonl")])
def test_what_is_about_fail_on_needs_it(some_lost: Folder, flag: tuple[str, ...]) -> None:
    names = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    assert some_lost.run("compare", *names, *flag).exit_code == 2


def seeded(found: list[list[int]], lost: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """One row for each question and seed; `found` says for each seed which questions hit."""
    return [
        {"qid": f"Q{i:02}", "seed": seed,
         "retrieved_ids": ["x#1" if i in lost or i not in hits else f"d{i}#1", f"d{i}#2"]}
        for seed, hits in enumerate(found)
        for i in QUESTIONS
    ]  # fmt: skip


STABLE = list(range(10, 30))
NOISY = [[*STABLE, 0, 1, 2], [*STABLE, 2, 3, 4], [*STABLE, 0, 4, 5]]
OTHERS = [[*STABLE, 1, 3], [*STABLE, 0, 2, 5], [*STABLE, 4, 5, 6]]


def test_the_noise_of_the_baseline_is_not_a_regression(folder: Folder) -> None:
    """Ten questions hit by chance in both runs; in a third one five stable ones are lost, too."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", seeded(NOISY))
    folder.write("b.jsonl", seeded(OTHERS))
    folder.write("c.jsonl", seeded(OTHERS, lost=(12, 15, 18, 21, 27)))
    flags = ("--profile", "all", "--fail-on", "regression")
    noise = compared(folder, "a.jsonl", "b.jsonl", *flags)
    check = noise["fail_on"]["regression"]
    assert check["questions"] > 0
    assert (check["repeated"], check["explained"]) == (30, check["questions"])
    assert (noise["exit_code"], check["p"] > 0.05) == (0, True)
    real = compared(folder, "a.jsonl", "c.jsonl", *flags)
    assert real["exit_code"] == 1
    assert real["fail_on"]["regression"]["p"] < 0.001
    assert real["fail_on"]["regression"]["explained"] == 0


def test_a_stable_baseline_has_no_noise(folder: Folder) -> None:
    """All its seeds agree: one question that is lost in one seed is a regression."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", seeded([STABLE, STABLE]))
    folder.write("b.jsonl", seeded([STABLE, STABLE[1:]]))
    found = compared(folder, "a.jsonl", "b.jsonl", "--profile", "all", "--fail-on", "regression")
    assert found["exit_code"] == 1
    check = found["fail_on"]["regression"]
    assert (check["questions"], check["unstable"], check["p"]) == (1, 0, None)


def test_wordings_are_not_repeats(folder: Folder) -> None:
    """A retriever that finds one wording and not the other does so every time."""
    gold = [{**item, "paraphrases": [item["question"], f"again {item['question']}"]}
            for item in GOLD]  # fmt: skip
    folder.write("gold.jsonl", gold)
    for name, found in (("a", [STABLE, STABLE[1:]]), ("b", [STABLE, STABLE[2:]])):
        renamed = [
            {key if key != "seed" else "paraphrase": value for key, value in row.items()}
            for row in seeded(found)
        ]
        folder.write(f"{name}.jsonl", renamed)
    wordings = compared(folder, "a.jsonl", "b.jsonl", "--profile", "all", "--fail-on", "regression")
    assert wordings["exit_code"] == 1
    assert wordings["fail_on"]["regression"]["repeated"] == 0


@pytest.mark.parametrize("how", ["traces", "stored", "scores"])
def test_other_runs_of_the_baseline_tell_its_noise(folder: Folder, how: str) -> None:
    """Without seeds, two more runs of the same system say what it does by chance."""
    folder.write("gold.jsonl", GOLD)
    for name, hits in zip("aefb", [*NOISY, OTHERS[0]], strict=True):
        rows_of_seed = [{**row, "seed": 0} for row in seeded([hits])]
        folder.write(f"{name}.jsonl", rows_of_seed)
    named = {
        name: {"traces": lambda name: f"{name}.jsonl", "stored": lambda name: stored(folder, name),
               "scores": lambda name: saved(folder, name)}[how](name)
        for name in "aefb"
    }  # fmt: skip
    arguments = ("compare", named["a"], named["b"], "--fail-on", "regression", "--format", "json")
    gold = ("--gold", "gold.jsonl") if how == "traces" else ()
    alone = folder.run(*arguments, *gold)
    assert (alone.exit_code, json.loads(alone.out)["fail_on"]["regression"]["repeated"]) == (1, 0)
    repeats = ("--repeat-of-a", named["e"], "--repeat-of-a", named["f"])
    together = folder.run(*arguments, *gold, *repeats)
    check = json.loads(together.out)["fail_on"]["regression"]
    assert (together.exit_code, check["repeated"], check["p"] > 0.05) == (0, 30, True)


# --- which p-values are corrected ---


def test_p_values_are_corrected_over_the_gated_metrics_alone(runs: Folder) -> None:
    """Two gates: p is doubled. Metrics without a gate only inform, and take no part."""
    names = ("retrieval.recall@5", "retrieval.hit@5")
    runs.write("gates.toml", "".join(f'"{name}" = {{ max_drop = 0.5 }}\n' for name in names))
    options = ("--profile", "all", "--gates", "gates.toml")
    deltas = compared(runs, "a.jsonl", "b.jsonl", *options)["deltas"]
    tested = {
        name: entry
        for name, entry in deltas.items()
        if name.startswith(("retrieval.", "answer.", "citation."))
    }
    corrected = {name for name, entry in tested.items() if entry["p_holm"] is not None}
    assert corrected == set(names)
    assert tested[names[0]]["p_holm"] == pytest.approx(2 * tested[names[0]]["p"], abs=1e-4)
