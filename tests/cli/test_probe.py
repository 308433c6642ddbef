"""`probe`: each probe finds what it is for, by its rule, and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge.diagnose.probes import Probe, hybrid, k_sweep
from ragauge.diagnose.scored_traces import scored_traces
from ragauge.model.semantic import Bands
from ragauge.model.trace import Hit, Trace
from tests.support.command import Folder, Row
from tests.support.literal_embedder import ID, plane_only


@pytest.fixture(autouse=True)
def caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))


def ranked(qid: str, distances: Sequence[float | None], names: str = "h") -> Trace:
    hits = [Hit(f"{names}{rank}", delta_s=each) for rank, each in enumerate(distances)]
    return Trace(qid=qid, hits=tuple(hits))


def many(distances: Sequence[float | None], count: int = 5, names: str = "h") -> list[Trace]:
    return [ranked(f"Q{number}", distances, names) for number in range(count)]


def swept(traces: Sequence[Trace], ks: Sequence[int], bands: Bands = Bands()) -> Probe:  # noqa: B008
    return k_sweep(scored_traces(traces), ks, bands)


# Over ranks.


def test_flat_and_high_is_a_mismatch() -> None:
    """.70 everywhere: medians .70 at each k, no movement."""
    found = swept(many([0.7] * 20), (5, 10, 20))
    assert found.finding == "index-or-metric-mismatch"
    assert found.numbers["median"] == {"5": 0.7, "10": 0.7, "20": 0.7}
    assert found.numbers["spread"] == 0


def test_falling_with_k_is_a_strict_filter() -> None:
    """The near hits stand behind rank 5: the nearest goes from .70 to .30, .40 nearer."""
    found = swept(many([0.7] * 5 + [0.3] * 15), (5, 10, 20))
    assert found.finding == "filter-too-strict"
    assert found.numbers["nearest"] == {"5": 0.7, "10": 0.3, "20": 0.3}
    assert found.numbers["fall"] == pytest.approx(0.4)
    # The first ten are .70 five times and .30 five times: .50 between them.
    assert found.numbers["median"] == {"5": 0.7, "10": 0.5, "20": 0.3}
    assert found.worst[0]["qid"] == "Q0"


@pytest.mark.parametrize(
    "distances",
    [
        [0.3] * 20,  # flat, and not high
        [0.2 + rank * 0.03 for rank in range(20)],  # rising, as it should be
        [0.62] * 5 + [0.8] * 15,  # high, and not flat
        [0.5] + [0.8] * 19,  # flat and high, but for the first hit: an index that finds it
    ],
    ids=["low", "rising", "high", "found"],
)
def test_other_curves_are_fine(distances: list[float]) -> None:
    assert swept(many(distances), (5, 10, 20)).finding == "ok"


def test_high_is_what_the_bands_say() -> None:
    """An embedder whose unrelated texts are at .35: .34 is high there."""
    bands = Bands(stable=0.2, target=0.25, risk=0.3)
    assert swept(many([0.34] * 20), (5, 20), bands).finding == "index-or-metric-mismatch"
    assert "0.30" in swept(many([0.34] * 20), (5, 20), bands).rule


def test_questions_without_enough_hits_are_counted() -> None:
    short = [ranked("S1", [0.5] * 19), ranked("S2", [0.5] * 19 + [None])]
    failed = [Trace(qid="E", error="timeout")]
    found = swept([*many([0.3] * 20), *short, *failed], (5, 20))
    assert found.n == 5
    assert found.left_out == {
        "questions without 20 hits that have ΔS": 2, "traces with an error": 1,
    }  # fmt: skip
    few = swept(many([0.7] * 20, 4), (5, 20))
    assert (few.finding, few.n) == ("not-evaluable", 4)


def test_a_cut_off_that_nobody_reaches_is_left_out() -> None:
    found = swept(many([0.7] * 10), (5, 10, 20))
    assert found.finding == "index-or-metric-mismatch"
    assert list(found.numbers["median"]) == ["5", "10"]
    assert found.left_out == {"cut-off: k = 20, which 0 questions reach": 1}
    assert "from k = 5 to 10" in found.rule


def test_slots_of_a_question_count_once() -> None:
    """Q0 has two slots at .1 and .3: its nearest is .2 in the mean."""
    again = [
        replace(ranked("Q0", [0.3] * 20), seed=1), replace(ranked("Q0", [0.1] * 20), seed=2)
    ]  # fmt: skip
    found = swept([*again, *many([0.2] * 20)[1:]], (5, 20))
    assert found.n == 5
    assert found.numbers["nearest"]["5"] == pytest.approx(0.2)


def test_the_worst_questions_of_a_mismatch_are_those_far_away() -> None:
    """Six questions at .2, and 19 at .9, of which F07 is at .95."""
    far = [ranked(f"F{n:02}", [0.95 if n == 7 else 0.9] * 20) for n in range(19)]
    found = swept([*many([0.2] * 20, 6), *far], (5, 20))
    assert found.finding == "index-or-metric-mismatch"
    assert [row["qid"] for row in found.worst] == ["F07", "F00", "F01", "F02", "F03"]
    assert found.worst[0] == {"qid": "F07", "nearest@5": 0.95, "nearest@20": 0.95}


def test_the_worst_questions_of_a_strict_filter_are_those_that_fall() -> None:
    """Five fall by .3, one by .5, and one is further away and does not fall at all."""
    deep = [ranked("D", [0.7] * 5 + [0.2] * 15), ranked("E", [0.9] * 20)]
    found = swept([*many([0.7] * 5 + [0.4] * 15), *deep], (5, 20))
    assert found.finding == "filter-too-strict"
    assert [row["qid"] for row in found.worst] == ["D", "Q0", "Q1", "Q2", "Q3"]


def test_where_medians_fall_the_medians_are_shown() -> None:
    """The nearest hit is the first, at .5; behind it .9 five times, then .6: the median falls."""
    found = swept(many([0.5] + [0.9] * 4 + [0.6] * 15), (5, 20))
    assert found.finding == "filter-too-strict"
    assert found.numbers["fall"] == 0
    assert found.worst[0] == {"qid": "Q0", "median@5": 0.9, "median@20": 0.6}


def test_slots_with_too_few_hits_are_counted() -> None:
    short = replace(ranked("Q0", [0.9] * 19), seed=1)
    found = swept([*many([0.3] * 20), short], (5, 20))
    assert found.left_out == {"slots of other questions without 20 hits that have ΔS": 1}
    assert found.numbers["nearest"]["5"] == 0.3


@given(st.permutations(range(12)))
def test_the_order_of_slots_changes_nothing(order: list[int]) -> None:
    slots = [
        replace(ranked(f"Q{n % 6}", [0.1 * (n % 7 + 1)] * 20), seed=n // 6, turn=n % 2)
        for n in range(12)
    ]
    assert swept([slots[n] for n in order], (5, 20)) == swept(slots, (5, 20))


# Two retrievers.


def split(sparse: float, dense: float, both: float, *, apart: bool = True) -> Any:
    names = "d" if apart else "s"
    runs = {
        "sparse": many([sparse] * 5, names="s"),
        "dense": many([dense] * 5, names=names),
        "hybrid": many([both] * 5, names="s"),
    }
    return hybrid({name: scored_traces(each) for name, each in runs.items()}, 5)


@pytest.mark.parametrize(
    ("sparse", "dense", "both", "finding"),
    [
        (0.40, 0.45, 0.46, "hybrid-split"),  # .06 above the better one
        (0.40, 0.45, 0.44, "ok"),  # .04 above it
        (0.40, 0.55, 0.70, "ok"),  # one of them is not good by itself
        (0.40, 0.45, 0.30, "ok"),
    ],
)
def test_a_hybrid_that_is_worse_than_its_parts(
    sparse: float, dense: float, both: float, finding: str
) -> None:
    found = split(sparse, dense, both)
    assert found.finding == finding
    assert found.numbers["median"] == {"sparse": sparse, "dense": dense, "hybrid": both}


def test_the_overlap_of_two_retrievers() -> None:
    """No id in common, or all of them."""
    assert split(0.4, 0.4, 0.5).numbers["overlap"] == 0
    assert split(0.4, 0.4, 0.5, apart=False).numbers["overlap"] == 1


def test_only_questions_of_all_three_runs_count() -> None:
    runs = {
        "sparse": many([0.4] * 5, 7),
        "dense": many([0.4] * 5, 6),
        "hybrid": [*many([0.4] * 5, 5), ranked("Q5", [None])],
    }
    found = hybrid({name: scored_traces(each) for name, each in runs.items()}, 5)
    assert found.n == 5
    assert found.left_out == {"questions without ΔS in all three runs": 2}


def test_turns_of_a_conversation_are_compared_one_by_one() -> None:
    """Five conversations: the hybrid is worse in their second turns, which are in all runs."""
    runs = {
        name: [
            replace(each, turn=turn)
            for turn, value in ((1, 0.4), (2, second))
            for each in many([value] * 5, names=name)
        ]
        for name, second in (("sparse", 0.4), ("dense", 0.4), ("hybrid", 0.6))
    }
    found = hybrid({name: scored_traces(each) for name, each in runs.items()}, 5)
    assert (found.n, found.numbers["worse"]) == (10, 5)
    assert found.worst[0] == {"qid": "Q0", "turn": 2, "sparse": 0.4, "dense": 0.4, "hybrid": 0.6}


def test_what_each_run_leaves_out_is_told() -> None:
    plain = many([0.4] * 5)
    runs = {"sparse": [*plain, plain[0]], "dense": plain, "hybrid": plain}
    found = hybrid({name: scored_traces(each) for name, each in runs.items()}, 5)
    assert found.left_out == {"traces replaced by a later one of the same slot (sparse)": 1}


# As commands.


def at(distance: float) -> str:
    return f"{1 - distance:.6f} {math.sqrt(1 - (1 - distance) ** 2):.6f}"


def sweep_file(folder: Folder, distances: Sequence[float], name: str = "trace.jsonl") -> None:
    rows: list[Row] = [
        {
            "qid": f"Q{number}", "question": "1 0",
            "topk": [
                {"id": f"h{rank}", "text": at(each)} for rank, each in enumerate(distances)
            ],
        }
        for number in range(5)
    ]  # fmt: skip
    folder.write(name, rows)


@pytest.mark.parametrize(
    ("distances", "finding", "code"),
    [
        ([0.7] * 20, "index-or-metric-mismatch", 1),
        ([0.7] * 5 + [0.3] * 15, "filter-too-strict", 1),
        ([0.3] * 20, "ok", 0),
        ([0.7] * 10, "index-or-metric-mismatch", 1),  # without k = 20
        ([0.3] * 9, "not-evaluable", 4),
    ],
)
def test_k_sweep_of_texts(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, distances: list[float], finding: str, code: int
) -> None:
    plane_only(monkeypatch)
    sweep_file(folder, distances)
    options = ("probe", "k-sweep", "trace.jsonl", "--embed", "plane")
    outcome = folder.run(*options, "--format", "json")
    document = json.loads(outcome.out)
    assert (document["finding"], outcome.exit_code) == (finding, code)
    assert document["embedder"] == ID
    assert "at least 0.60 at every k" in " ".join(document["rule"].split())
    shown = folder.run(*options)
    assert shown.exit_code == code
    assert shown.out.startswith(f"k-sweep: {finding}\n")


def test_k_sweep_of_recorded_distances(folder: Folder) -> None:
    rows = [{"qid": f"Q{n}", "topk": ["a", "b"], "ΔS": [0.7, 0.7]} for n in range(5)]
    folder.write("trace.jsonl", rows)
    outcome = folder.run("probe", "k-sweep", "trace.jsonl", "--k", "1,2", "--format", "json")
    document = json.loads(outcome.out)
    assert (document["finding"], outcome.exit_code) == ("index-or-metric-mismatch", 1)
    assert document["embedder"] is None
    folder.write("trace.jsonl", [{**row, "embed_model": f"m{n % 2}"} for n, row in enumerate(rows)])
    mixed = folder.run("probe", "k-sweep", "trace.jsonl", "--k", "1,2")
    assert (mixed.exit_code, mixed.codes) == (4, {"mixed-embedders"})


def test_lexical_distances_are_shown_and_not_judged(folder: Folder) -> None:
    sweep_file(folder, [0.7] * 20)
    outcome = folder.run(
        "probe", "k-sweep", "trace.jsonl", "--embed", "hashing", "--format", "json"
    )
    assert (json.loads(outcome.out)["finding"], outcome.exit_code) == ("not-evaluable", 4)


def test_a_stored_run_may_be_probed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    sweep_file(folder, [0.7] * 20)
    gold = [{"qid": f"Q{number}", "relevant": ["h0"]} for number in range(5)]
    folder.write("gold.jsonl", gold)
    folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "one")
    outcome = folder.run("probe", "k-sweep", "one", "--embed", "plane")
    assert outcome.exit_code == 1
    assert outcome.out.startswith("k-sweep: index-or-metric-mismatch")


def triangle(folder: Folder, decoys: int) -> None:
    """Five questions; the first hit lies on the decoy in some of them, else on the anchor."""
    gold: list[Row] = []
    traces: list[Row] = []
    for number in range(5):
        gold.append({
            "qid": f"Q{number}", "question": "1 0", "relevant": ["anchor"], "negatives": ["decoy"],
        })  # fmt: skip
        hits = [{"id": "anchor", "text": "1 0"}, {"id": "decoy", "text": "0.6 0.8"}]
        traces.append({"qid": f"Q{number}", "topk": hits[::-1] if number < decoys else hits})
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)


@pytest.mark.parametrize(
    ("decoys", "finding", "code"),
    [(0, "ok", 0), (1, "ok", 0), (2, "anchor-and-decoy-close", 1)],  # 1 of 5 is not above 20 %
)
def test_triangulation(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, decoys: int, finding: str, code: int
) -> None:
    """The decoy is .4 away from the anchor, so margins are +.4 or -.4."""
    plane_only(monkeypatch)
    triangle(folder, decoys)
    outcome = folder.run(
        "probe", "triangulate", "gold.jsonl", "trace.jsonl", "--embed", "plane", "--format", "json"
    )
    document = json.loads(outcome.out)
    assert (document["finding"], outcome.exit_code) == (finding, code)
    assert document["numbers"]["close"] == decoys
    assert document["numbers"]["margin"] == 0.4
    assert document["worst"][0]["margin"] == (-0.4 if decoys else 0.4)


def test_triangulation_says_what_it_left_out(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    triangle(folder, 0)
    with (folder.path / "trace.jsonl").open("a") as file:
        file.write('{"qid": "stray", "topk": []}\n')
    outcome = folder.run("probe", "triangulate", "gold.jsonl", "trace.jsonl", "--embed", "plane")
    assert "left out: 1 trace of no gold item: stray\n" in outcome.out


def test_a_decoy_without_a_text_leaves_its_question_out(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane_only(monkeypatch)
    triangle(folder, 0)
    content = (folder.path / "gold.jsonl").read_text().replace('"decoy"', '"gone"', 1)
    folder.write("gold.jsonl", content)
    outcome = folder.run("probe", "triangulate", "gold.jsonl", "trace.jsonl", "--embed", "plane")
    assert "left out: 1 question without an anchor and a decoy that have texts" in outcome.out


def test_hybrid_as_a_command(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    plane_only(monkeypatch)
    for name, value in (("s", 0.40), ("d", 0.45), ("h", 0.50)):
        sweep_file(folder, [value] * 5, f"{name}.jsonl")
    outcome = folder.run(
        "probe", "hybrid", "--sparse", "s.jsonl", "--dense", "d.jsonl", "--hybrid", "h.jsonl",
        "--embed", "plane", "--format", "json",
    )  # fmt: skip
    document = json.loads(outcome.out)
    assert (document["finding"], outcome.exit_code) == ("hybrid-split", 1)
    assert document["numbers"]["worse"] == 5


def conversations(folder: Folder) -> None:
    """Two turns each: what is evidence in the first is the decoy in the second."""
    texts = {"cat": "1 0", "tax": "0 1"}
    gold: list[Row] = []
    traces: list[Row] = []
    for number in range(5):
        for turn, (right, wrong) in enumerate((("cat", "tax"), ("tax", "cat")), 1):
            name = {"qid": f"C{number}", "turn": turn}
            gold.append({**name, "question": "?", "relevant": [right], "negatives": [wrong]})
            traces.append({**name, "topk": [{"id": right, "text": texts[right]}]})
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)


@pytest.mark.parametrize("stored", [False, True], ids=["file", "run"])
def test_a_turn_is_a_question_of_its_own(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    """Each first hit is the evidence of its turn: ΔS 0 to the anchor, and 1 to the decoy."""
    plane_only(monkeypatch)
    conversations(folder)
    if stored:
        folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "one")
    options = ("probe", "triangulate", "gold.jsonl", "one" if stored else "trace.jsonl")
    outcome = folder.run(*options, "--embed", "plane", "--format", "json")
    found = json.loads(outcome.out)
    assert (found["finding"], found["n"], outcome.exit_code) == ("ok", 10, 0)
    assert found["worst"][1] == {"qid": "C0", "turn": 2, "anchor": 0, "decoy": 1, "margin": 1}
    assert "    C0 turn 2: anchor 0.0000" in folder.run(*options, "--embed", "plane").out


def test_anchors_and_first_hits_may_be_places_of_a_corpus(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gold by bytes without a quote, and hits without a text: both are read from the corpus."""
    plane_only(monkeypatch)
    folder.write("docs/near.md", "# 0 1\n\n0.6 0.8\n")  # the paragraph is 7 to 14
    folder.write("docs/far.md", "# 0 1\n\n-1 0\n")
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    decoy = "far.md#S.1.p.Bk001"
    evidence = [{"doc": "near.md", "start": 7, "end": 14}]
    hit = {"id": "x", "doc": "near.md", "span": [7, 14]}
    folder.write("gold.jsonl", [
        {"qid": f"Q{n}", "question": "1 0", "relevant": evidence, "negatives": [decoy]}
        for n in range(5)
    ])  # fmt: skip
    folder.write("trace.jsonl", [{"qid": f"Q{n}", "topk": [hit]} for n in range(5)])
    outcome = folder.run(
        "probe", "triangulate", "gold.jsonl", "trace.jsonl", "--embed", "plane",
        "--corpus", "corpus", "--format", "json",
    )  # fmt: skip
    found = json.loads(outcome.out)
    assert (found["finding"], found["n"], outcome.exit_code) == ("ok", 5, 0), outcome.err
    assert (found["numbers"]["anchor"], found["numbers"]["decoy"]) == (0, 1.6)  # 1 + 0.6


def recorded(folder: Folder, *traced: tuple[str, float]) -> None:
    """Six gold questions, and traces of two hits at one ΔS."""
    folder.write("gold.jsonl", [{"qid": f"Q{n}", "relevant": ["a"]} for n in range(6)])
    folder.write("trace.jsonl", [
        {"qid": qid, "topk": ["a", "b"], "ΔS": [value] * 2} for qid, value in traced
    ])  # fmt: skip


SIX = [f"Q{number}" for number in range(6)]


@pytest.mark.parametrize("how", ["alone", "with gold", "stored"])
def test_a_replaced_trace_is_not_probed(folder: Folder, how: str) -> None:
    """All questions at .9, and then again at .2: `score` says .2, and so does the probe."""
    recorded(folder, *((qid, 0.9) for qid in SIX), *((qid, 0.2) for qid in SIX))
    options = ["trace.jsonl"]
    if how == "stored":
        folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "one")
        options = ["one"]
    elif how == "with gold":
        options += ["--gold", "gold.jsonl"]
    outcome = folder.run("probe", "k-sweep", *options, "--k", "1,2", "--format", "json")
    found = json.loads(outcome.out)
    assert (found["finding"], found["n"], outcome.exit_code) == ("ok", 6, 0)
    assert found["numbers"]["median"] == {"1": 0.2, "2": 0.2}
    assert found["left_out"] == {"traces replaced by a later one of the same slot": 6}


@pytest.mark.parametrize("stored", [False, True], ids=["file", "run"])
def test_traces_of_no_gold_item_are_named_and_not_probed(folder: Folder, stored: bool) -> None:
    """Six at .2, and 19 strangers at .9, which alone would be a mismatch."""
    strangers = [f"X{number:02}" for number in range(19)]
    recorded(folder, *((qid, 0.2) for qid in SIX), *((qid, 0.9) for qid in strangers))
    options = ["trace.jsonl", "--gold", "gold.jsonl"]
    if stored:
        folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "one")
        options = ["one"]
    outcome = folder.run("probe", "k-sweep", *options, "--k", "1,2", "--format", "json")
    found = json.loads(outcome.out)
    assert (found["finding"], found["n"], outcome.exit_code) == ("ok", 6, 0)
    assert found["left_out"] == {"traces of no gold item": 19}
    assert found["unknown"] == strangers
    shown = folder.run("probe", "k-sweep", *options, "--k", "1,2").out
    assert "left out: 19 traces of no gold item: X00, X01, X02, X03, X04 and 14 more\n" in shown


def test_a_stored_run_may_be_probed_with_other_gold(folder: Folder) -> None:
    recorded(folder, *((qid, 0.2) for qid in SIX))
    folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "one")
    folder.write("few.jsonl", [{"qid": qid, "relevant": ["a"]} for qid in SIX[1:]])
    outcome = folder.run("probe", "k-sweep", "one", "--gold", "few.jsonl", "--k", "1,2")
    assert "left out: 1 trace of no gold item: Q0\n" in outcome.out


def test_strangers_do_not_mix_embedders(folder: Folder) -> None:
    recorded(folder, *((qid, 0.2) for qid in SIX))
    rows = [{"qid": qid, "topk": ["a", "b"], "ΔS": [0.2, 0.2], "embed_model": "m"} for qid in SIX]
    folder.write("trace.jsonl", [*rows, {**rows[0], "qid": "X", "embed_model": "other"}])
    outcome = folder.run("probe", "k-sweep", "trace.jsonl", "--gold", "gold.jsonl", "--k", "1,2")
    assert (outcome.exit_code, outcome.codes) == (0, set())


def test_traces_of_other_gold_are_nothing_to_probe(folder: Folder) -> None:
    recorded(folder, ("X", 0.2))
    outcome = folder.run("probe", "k-sweep", "trace.jsonl", "--gold", "gold.jsonl", "--k", "1,2")
    assert (outcome.exit_code, outcome.codes, outcome.out) == (5, {"nothing-measured"}, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["k-sweep", "trace.jsonl", "--k", "5"],
        ["k-sweep", "trace.jsonl", "--k", "5,x"],
        ["k-sweep", "trace.jsonl", "--k", "0,5"],
        ["triangulate", "gold.jsonl", "trace.jsonl"],
        ["hybrid", "--sparse", "a"],
        ["zigzag"],
        [],
    ],
)
def test_command_lines_that_cannot_work(folder: Folder, arguments: list[str]) -> None:
    triangle(folder, 0)
    assert folder.run("probe", *arguments).exit_code == 2


def test_nothing_to_probe(folder: Folder) -> None:
    folder.write("trace.jsonl", b"")
    outcome = folder.run("probe", "k-sweep", "trace.jsonl")
    assert (outcome.exit_code, outcome.codes) == (5, {"nothing-measured"})
