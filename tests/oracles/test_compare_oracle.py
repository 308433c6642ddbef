"""Comparisons of random pairs of runs agree with an independent reading of the specification."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest

from ragauge.compare import compare as compare_module
from ragauge.errors import RagaugeError
from ragauge.model.comparison import Comparison
from ragauge.model.run import Store
from ragauge.scoring import score
from ragauge.scoring.inputs import ScoredRun
from ragauge.store import runs as run_store
from tests.oracles.compare_cases import SCENARIOS, case, listed
from tests.oracles.compare_oracle import RUNGS, Compared, compare, holm
from tests.support.cases import cases
from tests.support.effort import seeds

Row = dict[str, Any]
Overlap = Literal["cumulative", "single"]

OVERLAPS: tuple[Overlap, ...] = ("cumulative", "single")
KS = (1, 3, 5, 10)
GATED = ("retrieval.hit@1", "retrieval.hit@5", "retrieval.mrr@10", "retrieval.recall@3")
CASES = 300
PER_STORE = 15
WHEN = "2026-01-01T00:00:00Z"


def keep(
    store: Store, folder: Path, gold: Path, name: str, rows: list[Row], listed: list[Row]
) -> None:
    trace = folder / f"{name}.jsonl"
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def kept(each: ScoredRun) -> None:
        run_store.store_run(store, each, run_store.RunDescription(run_id=name, created_at=WHEN))

    chunks = folder / f"{name}-chunks.jsonl" if listed else None
    if chunks is not None:
        chunks.write_text("".join(json.dumps(row) + "\n" for row in listed), "utf-8")
    score.score(
        gold, trace, keep=kept, profile="all", k=KS, intervals=False, dialect="native",
        chunks=chunks,
    )  # fmt: skip


def told(
    store: Store, folder: Path, name: str, gold: list[Row], a: list[Row], b: list[Row],
    overlaps: tuple[Overlap, ...], lists: tuple[list[Row], list[Row]] = ([], []),
) -> list[Comparison]:  # fmt: skip
    """Store two runs and compare them, once for each way to count an overlap."""
    path = folder / f"{name}-gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in gold), "utf-8")
    keep(store, folder, path, f"{name}-a", a, lists[0])
    keep(store, folder, path, f"{name}-b", b, lists[1])
    return [
        compare_module.compare_runs(store, f"{name}-a", f"{name}-b", overlap=each, gated=GATED)
        for each in overlaps
    ]


def differences(found: Comparison, wanted: Compared) -> list[str]:
    """All that the two say differently."""
    wrong: list[str] = []

    def check(what: str, one: object, other: object) -> None:
        if one != other:
            wrong.append(f"{what}: {one}, not {other}")

    questions = {each.query_id: each for each in found.per_query}
    if found.places is not None:
        # The oracle takes a whole chunk for the evidence. Where chunks are compared place by place,
        # its rungs are checked here, and numbers against true bytes in test_compare_truth.py.
        for qid in questions.keys() & wanted.questions.keys():
            check(f"{qid} rungs", questions[qid].rungs, wanted.questions[qid].rungs)
        return wrong
    check("questions", sorted(questions), sorted(wanted.questions))
    for qid, each in wanted.questions.items():
        question = questions[qid]
        check(f"{qid} rungs", question.rungs, each.rungs)
        check(f"{qid} kind", question.kind, each.kind)
        for side, rank, ranks, value, reciprocal in (
            ("a", question.a_hit_rank, each.ranks_a, question.a_reciprocal, each.reciprocal_a),
            ("b", question.b_hit_rank, each.ranks_b, question.b_reciprocal, each.reciprocal_b),
        ):
            check(f"{qid} rank in {side}", rank, ranks[0] if len(ranks) == 1 else None)
            if value is None or reciprocal is None:
                check(f"{qid} reciprocal in {side}", value, reciprocal)
            elif value != pytest.approx(float(reciprocal), abs=1e-9):
                check(f"{qid} reciprocal in {side}", value, float(reciprocal))
    check("rungs", {name: n for name, n in found.rungs.items() if n}, wanted.rungs)
    # Whether ids are proved is no matter of the oracle.
    check("match", "exact" if found.match == "unproven" else found.match, wanted.match)
    check("kinds", {name: n for name, n in found.kinds.items() if n}, wanted.kinds)

    deltas = {each.metric: each for each in found.deltas}
    for name, metric in wanted.metrics.items():
        delta = deltas[name]
        check(f"{name} n", delta.n, metric.n)
        for what, got, right in (
            ("a", delta.a, metric.a), ("b", delta.b, metric.b), ("delta", delta.delta, metric.delta)
        ):  # fmt: skip
            if got is None or right is None:
                check(f"{name} {what}", got, right)
            elif got != pytest.approx(float(right), abs=1e-9):
                check(f"{name} {what}", got, float(right))
        if metric.n:
            check(f"{name} test", delta.test, "permutation" if metric.p is None else "mcnemar")
        if metric.p is not None and delta.p != pytest.approx(float(metric.p), abs=1e-12):
            check(f"{name} p", delta.p, float(metric.p))
    corrected = holm({name: p for name in GATED if (p := deltas[name].p) is not None})
    for delta in found.deltas:
        p = corrected.get(delta.metric)
        if p is None or delta.p_holm != pytest.approx(p, abs=1e-12):
            check(f"{delta.metric} p_holm", delta.p_holm, p)
    return wrong


@cases("first", seeds(90, step=PER_STORE))
def test_comparisons_are_those_of_the_oracle(tmp_path: Path, first: int) -> None:
    wrong: dict[str, list[str]] = {}
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        for seed in range(first, first + PER_STORE):
            scenario, gold, a, b = case(seed)
            overlaps: tuple[Overlap, ...] = OVERLAPS if seed % 3 == 0 else OVERLAPS[:1]
            if set(compare(gold, a, b, ks=KS).rungs) == {"none"}:
                with pytest.raises(RagaugeError, match="nothing that is expected is recognised"):
                    told(store, tmp_path, str(seed), gold, a, b, overlaps)
                continue
            made = told(store, tmp_path, str(seed), gold, a, b, overlaps)
            for overlap, found in zip(overlaps, made, strict=True):
                right = compare(gold, a, b, ks=KS, overlap=overlap)
                if each := differences(found, right):
                    wrong[f"{seed}, {scenario}, {overlap}"] = each
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("first", seeds(45, step=PER_STORE))
def test_comparisons_with_lists_are_those_of_the_oracle(tmp_path: Path, first: int) -> None:
    wrong: dict[str, list[str]] = {}
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        for seed in range(first, first + PER_STORE):
            scenario, gold, a, b, lists = listed(seed)
            right = compare(gold, a, b, ks=KS, lists=lists)
            if set(right.rungs) == {"none"}:
                continue  # refused, as without lists
            (found,) = told(store, tmp_path, str(seed), gold, a, b, OVERLAPS[:1], lists)
            if each := differences(found, right):
                wrong[f"{seed}, {scenario}"] = each
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


# Small forms of what campaigns found: gold, both runs, and for each question what is right by hand:
# the level of its pieces, and its best rank in each run.
_WORDS = "a passage of some words, "
_MORE = "and what stands behind it."
FOUND: dict[str, tuple[list[Row], list[Row], list[Row], dict[str, Row]]] = {
    # A hit that names no document is of the item's only one. Here b knows an id of the item in
    # another document, but nothing is rewritten: gold names `d1` alone, as in a run by itself.
    "an id names no document": (
        [{"qid": "q", "relevant": [{"doc": "d1", "start": 164, "end": 267}, "c3"]}],
        [{"qid": "q", "topk": [{"id": "c2", "offsets": [159, 267]}]}],
        [{"qid": "q", "topk": [{"id": "c3", "doc": "d0"}]}],
        {"q": {"rungs": ("exact", "exact"), "a": 1, "b": 1}},
    ),
    # `x` is looked for by its place in `d0`, and `y` is known to be in `d1`: the last hit of b may
    # be of either, and finds nothing.
    "two documents are known": (
        [{"qid": "q", "relevant": ["y", "x"]}],
        [
            {
                "qid": "q",
                "topk": [
                    {"id": "x", "doc": "d0", "offsets": [72, 171]},
                    {"id": "y", "doc": "d1", "offsets": [306, 319], "text": _WORDS},
                ],
            }
        ],
        [
            {
                "qid": "q",
                "topk": [
                    {"id": "x", "offsets": [0, 17]},
                    {"id": "z", "offsets": [107, 204]},
                    {"id": "y", "offsets": [306, 319], "text": _WORDS},
                ],
            }
        ],
        {"q": {"rungs": ("exact", "doc_span"), "a": 1, "b": 3}},
    ),
    # b names no documents, so `d0` counts in neither run; the item still names two.
    "documents that do not count are named": (
        [
            {
                "qid": "q",
                "relevant": [{"doc": "d1", "start": 62, "end": 130}],
                "expected_doc_ids": ["d0"],
            }
        ],
        [{"qid": "r", "topk": [{"id": "c5", "offsets": [382, 477]}]}],
        [{"qid": "q", "topk": [{"id": "c1", "offsets": [52, 130]}]}],
        {"q": {"rungs": ("doc_span",), "a": None, "b": None}},
    ),
    # `c2` has another text, and nothing says that its document was cut anew: no id is believed.
    # Another hit of b has the version of a, which says nothing of this one.
    "another text of an id in no known document": (
        [{"qid": "q", "relevant": ["c2", "c3"]}],
        [{"qid": "r", "topk": [{"id": "c2", "text": _WORDS, "chunker_version": "v1"}]}],
        [
            {
                "qid": "r",
                "topk": [
                    {"id": "c2", "doc": "d0", "text": _WORDS + _MORE},
                    {"id": "c4", "chunker_version": "v1"},
                ],
            }
        ],
        {"q": {"rungs": ("quote", "none"), "a": None, "b": None}},
    ),
    # No hit names a document. An id that nobody expects is at another place: no id is believed.
    "another place of an id in no known document": (
        [{"qid": "q", "relevant": [{"doc": "d1", "start": 10, "end": 60}]}],
        [{"qid": "q", "topk": [{"id": "x", "offsets": [41, 158]}]}],
        [{"qid": "r", "topk": [{"id": "x", "offsets": [29, 92]}]}],
        {"q": {"rungs": ("doc_span",), "a": None, "b": None}},
    ),
    # And where only one run names its document.
    "another place of an id in a document that one run knows": (
        [{"qid": "q", "relevant": ["y"]}],
        [
            {
                "qid": "q",
                "topk": [
                    {"id": "x", "offsets": [0, 72]},
                    {"id": "y", "doc": "d0", "offsets": [72, 171]},
                ],
            }
        ],
        [{"qid": "q", "topk": [{"id": "x", "doc": "d0", "offsets": [0, 17]}]}],
        {"q": {"rungs": ("doc_span",), "a": 2, "b": None}},
    ),
    # Equal offsets prove no equal chunk where no document is named; the version is a's alone.
    "the same place in no known document": (
        [{"qid": "q", "relevant": ["z", "x"]}],
        [
            {
                "qid": "q",
                "topk": [
                    {"id": "z", "offsets": [338, 460]},
                    {"id": "x", "doc": "d0", "offsets": [206, 298], "chunker_version": "v1"},
                ],
            }
        ],
        [{"qid": "r", "topk": [{"id": "z", "offsets": [338, 460]}]}],
        {"q": {"rungs": ("none", "doc_span"), "a": (1, 2), "b": None}},  # z may be any hit
    ),
    # b has a hit that says its id alone: no run without hits, and no version equals v1.
    "a hit that says nothing": (
        [{"qid": "q", "relevant": ["c0"]}, {"qid": "r", "relevant": ["c0"]}],
        [{"qid": "q", "topk": [{"id": "c0", "doc": "d0", "chunker_version": "v1"}]}],
        [{"qid": "r", "topk": [{"id": "c10"}]}],
        {
            "q": {"rungs": ("doc",), "a": 1, "b": None},
            "r": {"rungs": ("none",), "a": None, "b": (1, None)},
        },
    ),
    # Entries that gold writes in two ways are two pieces: here two of three are found.
    "a place with its quote and without": (
        [
            {
                "qid": "q",
                "relevant": [
                    {"doc": "d1", "start": 0, "end": 25, "quote": _WORDS},
                    {"doc": "d1", "start": 0, "end": 25},
                    {"doc": "d1", "start": 25, "end": 51},
                ],
            }
        ],
        [{"qid": "q", "topk": [{"id": "x", "doc": "d1", "offsets": [0, 25]}]}],
        [{"qid": "q", "topk": [{"id": "x", "doc": "d1", "offsets": [0, 25]}]}],
        {"q": {"rungs": ("exact",) * 3, "a": 1, "b": 1}},
    ),
    # A chunk that comes twice gains nothing again, also where it does not name its document again:
    # its text is of `d1`, the quote of `d2`.
    "a chunk that comes twice": (
        [{"qid": "q", "relevant": [{"doc": "d2", "id": "c2", "start": 192, "end": 243}]}],
        [
            {
                "qid": "q",
                "topk": [
                    {"id": "c1", "doc": "d1", "text": _WORDS + _MORE},
                    {"id": "c1", "text": _WORDS + _MORE},
                ],
            },
            {"qid": "r", "topk": [{"id": "c2", "doc": "d2", "text": _WORDS}]},
        ],
        [{"qid": "q", "topk": [{"id": "n1", "text": "other words altogether"}]}],
        {"q": {"rungs": ("quote",), "a": None, "b": None}},
    ),
    # b calls the document `new` and has a copy of it: seen from a it is either of them, seen from b
    # it is `d0` renamed. Ids of a renamed document are not believed, from whichever side.
    "a document that was renamed and copied": (
        [{"qid": "q", "relevant": ["x"]}],
        [{"qid": "r", "topk": [{"id": "x", "doc": "d0", "offsets": [320, 366], "doc_hash": "h"}]}],
        [
            {
                "qid": "q",
                "topk": [
                    {"id": "x", "doc": "new", "offsets": [320, 366], "doc_hash": "h"},
                    {"id": "k", "doc": "copy", "offsets": [214, 320], "doc_hash": "h"},
                ],
            }
        ],
        {"q": {"rungs": ("doc_span",), "a": None, "b": 1}},
    ),
}


@cases("name", FOUND)
def test_what_campaigns_found(tmp_path: Path, name: str) -> None:
    """Both the comparison and the oracle give what is right by hand."""
    gold, a, b, wanted = FOUND[name]
    gold = [{"question": "What?", **row} for row in gold]
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        (found,) = told(store, tmp_path, "found", gold, a, b, OVERLAPS[:1])
    right = compare(gold, a, b, ks=KS)
    assert differences(found, right) == []
    assert {
        question.query_id: {
            "rungs": question.rungs, "a": question.a_hit_rank, "b": question.b_hit_rank
        }
        for question in found.per_query
    } == wanted  # fmt: skip


def test_the_cases_are_worth_comparing() -> None:
    """Every scenario, rung and kind is there many times, on each kind of evidence."""
    rungs: Counter[str] = Counter()
    kinds: Counter[str | None] = Counter()
    scenarios: Counter[str] = Counter()
    for seed in range(CASES):
        scenario, gold, a, b = case(seed)
        scenarios[scenario] += 1
        found = compare(gold, a, b, ks=KS)
        rungs.update(found.rungs)
        kinds.update(each.kind for each in found.questions.values())
    assert set(scenarios) == set(SCENARIOS)
    assert min(rungs[rung] for rung in RUNGS) >= 20, rungs
    assert min(kinds[kind] for kind in ("regression", "loss", "win", "draw", None)) >= 50, kinds
