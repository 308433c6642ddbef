"""`calibrate`: ΔS of evidence, hard negatives and random texts, and the bands that follow."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.calibrating import auc, propose
from tests.unit.command import Folder, Row
from tests.unit.directions import ID, plane_only


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


def at(distance: float) -> str:
    """A text at this ΔS from the question `1 0`."""
    return f"{1 - distance:.6f} {math.sqrt(1 - (1 - distance) ** 2):.6f}"


def files(folder: Folder, count: int = 30) -> None:
    """Evidence from .30 on, hard negatives from .65 on, and others from .80 on, each .001 apart."""
    gold: list[Row] = []
    traces: list[Row] = []
    for number in range(count):
        step = number / 1000
        gold.append({
            "qid": f"Q{number:02}", "question": "1 0", "relevant": [f"e{number}"],
            "negatives": [f"n{number}"],
        })  # fmt: skip
        texts = {f"e{number}": 0.30 + step, f"n{number}": 0.65 + step, f"o{number}": 0.80 + step}
        traces.append({
            "qid": f"Q{number:02}", "question": "1 0",
            "topk": [{"id": name, "text": at(value)} for name, value in texts.items()],
        })  # fmt: skip
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)


def run(folder: Folder, *options: str) -> dict[str, object]:
    outcome = folder.run(
        "calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane",
        "--format", "json", *options,
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    document: dict[str, object] = json.loads(outcome.out)
    return document


def test_pairs_are_measured_by_kind(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """30 values from .300 to .329: p50 is .3145, p10 .3029; all of them are in the stable zone."""
    plane_only(monkeypatch)
    files(folder)
    found = run(folder)
    groups = found["groups"]
    assert isinstance(groups, dict)
    positive = groups["positive"]
    assert positive["n"] == 30
    assert positive["percentiles"]["p50"] == pytest.approx(0.3145, abs=1e-4)
    assert positive["percentiles"]["p10"] == pytest.approx(0.3029, abs=1e-4)
    assert positive["zones"] == {"stable": 1.0, "transitional": 0.0, "risk": 0.0}
    assert positive["on_target"] == 1.0
    assert groups["negative"]["n"] == 30
    assert groups["negative"]["zones"]["risk"] == 1.0
    assert groups["random"]["n"] == 150  # five for each question
    assert found["auc"]["negative"] == 1.0  # type: ignore[index]
    assert found["embedder"] == ID
    assert found["lexical"] is False


def test_the_same_files_give_the_same_bytes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random pairs are drawn by a hash of the question's id: also from a shuffled gold set."""
    plane_only(monkeypatch)
    files(folder)
    first = run(folder)
    lines = (folder.path / "gold.jsonl").read_text().splitlines(keepends=True)
    (folder.path / "gold.jsonl").write_text("".join(reversed(lines)))
    assert run(folder, "--embed-cache", "none") == first


def test_bands_are_written_for_the_configuration(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written can be used as it is."""
    plane_only(monkeypatch)
    files(folder)
    proposed = run(folder, "-o", "ragauge.toml")["proposed"]
    written = tomllib.loads((folder.path / "ragauge.toml").read_text())
    assert written == {"bands": {ID: proposed}}
    assert run(folder)["bands"] == proposed


def test_too_few_pairs_propose_nothing(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    files(folder, 5)
    found = run(folder)
    assert found["proposed"] is None
    assert "too few" in str(found["reason"])
    outcome = folder.run(
        "calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane", "-o", "b.toml"
    )
    assert (outcome.exit_code, outcome.codes) == (4, {"too-few"})
    assert not (folder.path / "b.toml").exists()


def test_an_embedder_that_separates_nothing_gets_no_bands(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    files(folder)
    text = (folder.path / "trace.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    for row in rows:
        row["topk"] = [{**hit, "text": at(0.5)} for hit in row["topk"]]
    folder.write("trace.jsonl", rows)
    found = run(folder)
    assert found["auc"] == {"negative": 0.5, "random": 0.5}
    assert found["proposed"] is None
    assert "50.0%" in str(found["reason"])


def test_what_has_no_text_is_counted(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    files(folder)
    more: list[Row] = [
        {"qid": "X", "question": "1 0", "relevant": ["gone"], "negatives": ["gone too"]},
        {
            "qid": "Y",
            "question": "1 0",
            "relevant": [{"doc": "d", "start": 0, "end": 17, "quote": at(0.3)}],
        },
    ]
    with (folder.path / "gold.jsonl").open("a") as file:
        file.write("".join(json.dumps(each) + "\n" for each in more))
    found = run(folder)
    assert found["left_out"] == {"evidence without a text": 1, "negatives without a text": 1}
    assert found["groups"]["positive"]["n"] == 31  # type: ignore[index]


def test_without_any_text_nothing_is_measured(folder: Folder) -> None:
    files(folder)
    outcome = folder.run("calibrate", "gold.jsonl", "--embed", "hashing")
    assert (outcome.exit_code, outcome.codes, outcome.out) == (5, {"nothing-measured"}, "")


def test_an_embedder_is_needed(folder: Folder) -> None:
    files(folder)
    assert folder.run("calibrate", "gold.jsonl").exit_code == 2


def test_the_table_shows_the_three_kinds(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    files(folder)
    outcome = folder.run("calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "plane")
    for said in ("evidence  ", "hard negatives", "random texts", "proposed   stable < "):
        assert said in outcome.out
    lexical = folder.run("calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "hashing")
    assert "lexical-hash-v1 (lexical)" in lexical.out


# The arithmetic.


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        ([0.1, 0.2], [0.3, 0.4], 1.0),
        ([0.3, 0.4], [0.1, 0.2], 0.0),
        ([0.1, 0.4], [0.2, 0.4], 0.625),  # nearer, nearer, further, a tie: 2.5 of 4
        ([0.2], [0.2], 0.5),
        ([], [0.2], None),
        ([0.2], [], None),
    ],
)
def test_auc_counts_pairs(near: list[float], far: list[float], expected: float | None) -> None:
    assert auc(np.array(near), np.array(far)) == expected


@given(st.lists(st.floats(0, 2), min_size=1), st.lists(st.floats(0, 2), min_size=1))
def test_auc_is_the_share_of_pairs(near: list[float], far: list[float]) -> None:
    wins = sum((one < other) + (one == other) / 2 for one in near for other in far)
    assert auc(np.array(near), np.array(far)) == pytest.approx(wins / (len(near) * len(far)))


def test_bands_come_from_random_pairs_and_where_the_kinds_part_best() -> None:
    """Far: .50 to .90 in 101 even steps, so p1 is .504 and p10 is .54; near: all below .52."""
    far = np.linspace(0.5, 0.9, 101)
    near = np.array([0.30, 0.35, 0.40, 0.45, 0.52])
    # At .52 all of near are inside, and 6 of the 101 far: .9406; at .45 it is 4 / 5.
    assert propose(near, far).__struct_fields__ == ("stable", "target", "risk")
    found = propose(near, far)
    assert (found.stable, found.target, found.risk) == (0.50, 0.52, 0.54)


@given(
    st.lists(st.floats(0, 2), min_size=20, max_size=60),
    st.lists(st.floats(0, 2), min_size=20, max_size=60),
)
def test_bands_never_descend(near: list[float], far: list[float]) -> None:
    found = propose(np.array(near), np.array(far))
    assert 0 <= found.stable <= found.target <= found.risk <= 2
