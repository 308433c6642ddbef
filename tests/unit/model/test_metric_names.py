"""Labels for people, and old ids that are read for ever, through every door by which they come."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from ragauge import registry
from ragauge.gates import parse
from ragauge.model.metric_names import FORMER_IDS, METRIC_LABELS, current_id, metric_label
from ragauge.model.scores_document import from_document
from tests.support.cases import cases
from tests.support.command import Folder, Row

GOLD: list[Row] = [
    {"qid": name, "question": f"What is {name}?", "relevant": ["p1"]} for name in "ab"
]
HIT = {"topk": ["p1"], "answer_json": {"claim": "It is.", "citations": ["p1"]}}
MISS = {"topk": ["p2"], "answer_json": {"claim": "No.", "citations": ["p2"]}}
# a hits in both slots: →. b hits in one of two: <>.
TRACES: list[Row] = [
    {"qid": "a", "seed": 1, **HIT},
    {"qid": "a", "seed": 2, **HIT},
    {"qid": "b", "seed": 1, **HIT},
    {"qid": "b", "seed": 2, **MISS},
]
OLD = "stability.lambda_<>"
NEW = "stability.lambda_recursive"
old_ids = cases(("old", "new"), list(FORMER_IDS.items()))


def aged(text: str) -> str:
    """What an older version would have written."""
    new_to_old = {new: old for old, new in FORMER_IDS.items() if new != "stability.convergent"}
    for new, old in new_to_old.items():
        text = text.replace(f'"{new}"', f'"{old}"')
    return text


@pytest.fixture
def project(folder: Folder) -> Folder:
    """Gold, traces, and the scores of them as an older version saved them."""
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    done = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--format", "json", "--full"
    )
    assert f'"{NEW}"' in done.out
    assert OLD not in done.out
    folder.write("old.json", aged(done.out))
    return folder


def verdict(project: Folder, *more: str) -> dict[str, Any]:
    done = project.run("gate", "old.json", "--format", "json", *more)
    assert not done.err.startswith("error"), done.err
    verdict: dict[str, Any] = json.loads(done.out)["verdict"]
    return verdict


@old_ids
def test_no_metric_has_an_old_id_and_every_new_one_has_a_metric(old: str, new: str) -> None:
    assert old not in registry.metrics()
    assert new in registry.metrics()
    assert current_id(old) == new
    assert current_id(f"{old}@5") == f"{new}@5"


def test_every_id_can_be_typed_on_a_keyboard() -> None:
    assert all(name.isascii() for name in registry.metrics())


@old_ids
def test_old_ids_select_metrics(old: str, new: str) -> None:
    assert [each.id for each in registry.select([old], (5,))] == [new]


@old_ids
@cases("profile_name", list(registry.profiles()))
def test_gates_are_read_by_old_ids(old: str, new: str, profile_name: str) -> None:
    """On a command line, in a table of `ragauge.toml` or a gates file, and as its `metric`."""
    profile = registry.profile(profile_name)
    (inline,) = parse.parse_items(f"{old}=0.5", profile, (5,))
    (row,) = parse.parse_table({old: 0.5}, profile, (5,), origin="ragauge.toml")
    table = {"mine": {"metric": old, "threshold": 0.5}}
    (named,) = parse.parse_table(table, profile, (5,), origin="gates.toml")
    assert inline.metric == row.metric == named.metric == new


def test_metrics_on_the_command_line_go_by_old_ids(project: Folder) -> None:
    done = project.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--metrics", OLD,
        "--format", "json",
    )  # fmt: skip
    # b of a and b: 1 / 2
    assert json.loads(done.out)["metrics"][NEW]["value"] == 0.5


def test_the_configuration_and_its_waivers_go_by_old_ids(project: Folder) -> None:
    project.write(
        "ragauge.toml",
        f'metrics = ["{OLD}"]\n[gates]\n"{OLD}" = {{ threshold = 0.1, min_n = 2 }}\n'
        f'[[waivers]]\ngate = "{OLD}"\nreason = "known"\nexpires = 2030-01-01\n',
    )
    done = project.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--format", "json",
        "--as-of", "2029-01-01",
    )  # fmt: skip
    assert done.exit_code == 0, done.err
    (gate,) = json.loads(done.out)["verdict"]["gates"]
    assert (gate["metric"], gate["status"]) == (NEW, "fail")
    assert gate["waived"]


def test_a_waiver_by_an_old_id_covers_a_gate_by_the_new_one(project: Folder) -> None:
    project.write(
        "ragauge.toml",
        f'[gates]\n"{NEW}" = {{ threshold = 0.1, min_n = 2 }}\n'
        f'[[waivers]]\ngate = "{OLD}"\nreason = "known"\nexpires = 2030-01-01\n',
    )
    (gate,) = verdict(project, "--as-of", "2029-01-01")["gates"]
    assert gate["waived"]


def test_saved_scores_are_read_by_new_ids(project: Folder) -> None:
    """Metrics, slices and the values of questions."""
    scores = from_document((project.path / "old.json").read_bytes(), "old.json")
    assert scores.metrics[NEW].value == 0.5
    assert OLD not in scores.metrics
    assert scores.per_question is not None
    assert scores.per_question.of(NEW).tolist() == [0.0, 1.0]
    assert not set(FORMER_IDS) & set(scores.per_question.metrics)


@pytest.mark.parametrize("name", [OLD, NEW])
def test_saved_scores_are_judged_by_either_id(project: Folder, name: str) -> None:
    project.write("gates.toml", f'"{name}" = {{ threshold = "<= 0.6", min_n = 2 }}\n')
    (gate,) = verdict(project, "--gates", "gates.toml")["gates"]
    assert (gate["metric"], gate["value"], gate["status"]) == (NEW, 0.5, "pass")
    (gate,) = verdict(project, "--gates", f"{name}<=0.6")["gates"]
    assert (gate["metric"], gate["n"]) == (NEW, 2)


def test_saved_scores_are_a_baseline_and_one_side_of_a_comparison(project: Folder) -> None:
    project.write("gates.toml", f'"{OLD}" = {{ max_drop = 0.1, min_n = 2 }}\n')
    arguments = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--full")
    done = project.run(
        *arguments, "--baseline", "old.json", "--gates", "gates.toml", "--format", "json"
    )
    (gate,) = json.loads(done.out)["verdict"]["gates"]
    assert (gate["metric"], gate["value"], gate["status"]) == (NEW, 0.0, "pass")
    project.run(*arguments, "-o", "json:new.json")
    done = project.run("compare", "old.json", "new.json", "--format", "json")
    delta = json.loads(done.out)["deltas"][NEW]
    assert (delta["a"], delta["b"], delta["delta"]) == (0.5, 0.5, 0.0)


def test_stored_runs_are_read_by_new_ids(project: Folder) -> None:
    """A run of an older store, beside one of today: history, compare and rescore."""
    store = ("--store", "sqlite:///runs.db")
    score = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all")
    assert project.run(*score, *store, "--run-id", "then").exit_code == 0
    with closing(sqlite3.connect(project.path / "runs.db")) as database, database:
        for table, column in (
            ("eval_runs", "config_snapshot_json"),
            ("eval_runs", "aggregate_json"),
            ("eval_scorings", "aggregate_json"),
            ("eval_metric_values", "metric"),
        ):
            changed = database.execute(
                f"UPDATE {table} SET {column} = replace({column}, ?, ?)"
                f" WHERE instr({column}, ?) > 0",
                (NEW, OLD, NEW),
            )
            assert changed.rowcount == 1, (table, column)
    assert project.run(*score, *store, "--run-id", "now").exit_code == 0

    for name in (OLD, NEW):
        done = project.run("history", name, *store, "--format", "json")
        points = json.loads(done.out)["points"]
        assert [(each["metric"], each["value"]) for each in points] == [(NEW, 0.5), (NEW, 0.5)]
        assert points[1]["changes"] == []
    done = project.run("compare", "then", "now", *store, "--format", "json")
    delta = json.loads(done.out)["deltas"][NEW]
    assert (delta["a"], delta["b"], delta["n"]) == (0.5, 0.5, 2)
    done = project.run("rescore", "then", *store, "--format", "json")
    assert done.exit_code == 0, done.err
    assert json.loads(done.out)["runs"][0]["changes"] == []


def test_a_metric_is_explained_by_its_old_id_and_its_label(folder: Folder) -> None:
    new = folder.run("metrics", NEW)
    assert folder.run("metrics", OLD) == new
    assert folder.run("metrics", "all evidence@5") == folder.run("metrics", "retrieval.recall_all")


def test_labels_are_of_metrics_and_no_two_share_one() -> None:
    assert set(METRIC_LABELS) <= set(registry.metrics())
    assert len(set(METRIC_LABELS.values())) == len(METRIC_LABELS)
    assert metric_label("retrieval.recall_all@5") == "all evidence@5"
    assert metric_label("retrieval.recall@5") == "retrieval.recall@5"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("chr=0.5", "citation hit rate"),
        ("citation.hit_rate=0.5", "citation hit rate"),
        ("recall@5=0.5", "all evidence@5"),
        ("precision=0.5", None),
    ],
)
def test_a_gate_is_shown_by_the_label_of_its_metric(given: str, shown: str | None) -> None:
    (gate,) = parse.parse_items(given, registry.profile("ship"), (5,))
    assert gate.title == shown


def test_what_a_gate_is_on_is_shown_beside_the_label() -> None:
    """A slice and a drop are told; a name that somebody chose stays."""
    table = {
        "over": {"threshold": 0.5, "slice": "type=table"},
        "under": {"max_drop": 0.1},
        "too shy": {"metric": "refusal.over", "threshold": 0.2},
    }
    gates = parse.parse_table(table, registry.profile("ship"), (5,), origin="ragauge.toml")
    assert [each.title for each in gates] == [
        "over-refusal, type=table",
        "under-refusal drop",
        None,
    ]


@cases("format_name", ["table", "md", "comment", "summary", "html"])
def test_reports_show_labels(folder: Folder, format_name: str) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    done = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "ship", "--format", format_name
    )
    for label in ("citation hit rate", "over-refusal", "all evidence@5"):
        assert label in done.out


@cases(
    ("profile", "gates", "short", "full"),
    [
        ("ship", "precision=0.1", "precision", "answer.grounded_precision"),
        ("ship", "recall@5>=0.1", "recall@5", "retrieval.recall_all@5"),
        ("smoke", "precision=0.1", "precision", "answer.precision"),
        ("smoke", "chr=0.1", "chr", "citation.hit_rate_answerable"),
        ("all", "precision=0.1", "precision", "answer.precision"),
    ],
)
def test_a_short_name_that_surprises_is_noted_once(
    folder: Folder, profile: str, gates: str, short: str, full: str
) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    arguments = ("score", "gold.jsonl", "trace.jsonl", "--profile", profile, "--format", "json")
    noted = folder.run(*arguments, "--gates", gates)
    assert noted.err.count(
        f"note: the short name `{short}` in --gates is deprecated, because it surprises: in "
        f"profile {profile} it means `{full}`; write that id\n"
    ) == 1  # fmt: skip
    silent = folder.run(*arguments, "--gates", gates.replace(short, full))
    assert "note: the short name" not in silent.err
    assert silent.exit_code == noted.exit_code


@cases("profile", list(registry.profiles()))
def test_deprecated_short_names_are_short_names(profile: str) -> None:
    found = registry.profile(profile)
    assert set(found.deprecated) <= set(found.aliases)


def test_gates_of_the_profile_itself_are_not_noted(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    done = folder.run("score", "gold.jsonl", "trace.jsonl", "--profile", "ship")
    assert "deprecated" not in done.err
