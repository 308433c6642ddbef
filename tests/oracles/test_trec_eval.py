"""Random judgements and runs: the trec_eval metrics are those of trec_eval itself.

`pytrec_eval` is NIST's code behind a Python door. Where the two differ on purpose, a test says so:
topics without relevant documents, topics without results, and documents that stand twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.errors import RagaugeError
from ragauge.model.options import Options
from ragauge.model.scores import Scores
from tests.oracles.judged import (
    Qrels,
    Run,
    in_order,
    mean,
    values,
    write_beir,
    write_graded,
    write_lines,
    write_qrels,
    write_run,
    write_traces,
)
from tests.support.cases import cases

pytrec_eval: Any = pytest.importorskip("pytrec_eval")

CLOSE = 1e-12
KS = (1, 2, 3, 5, 10, 20)
DEEP = 1000
CUT = {
    "P": "retrieval.precision_at_cutoff",
    "recall": "retrieval.recall",
    "success": "retrieval.hit",
    "map_cut": "retrieval.map",
    "ndcg_cut": "retrieval.ndcg",
}
WHOLE = {
    "Rprec": "retrieval.r_precision",
    "recip_rank": f"retrieval.mrr@{DEEP}",
    "map": f"retrieval.map@{DEEP}",
}
PAIRS = {f"{theirs}_{k}": f"{ours}@{k}" for theirs, ours in CUT.items() for k in KS} | WHOLE
"""Each measure of trec_eval, and the metric that is the same."""
THEIRS = {f"{family}.{','.join(map(str, KS))}" for family in CUT} | set(WHOLE)
ASKED = (*CUT.values(), "retrieval.precision", *WHOLE.values())
GRADES = (-2, -1, 0, 0, 0, 1, 1, 1, 2, 3)
SCORES = (
    1.0, 1.0 + 1e-9, 1.0 - 1e-9, 0.5, 0.1, 0.1 + 1e-10, 16777216.0, 16777217.0, 0.0, -0.0, 1e-50,
    -3.25, -3.25 - 1e-8, 7.0,
)  # fmt: skip
"""Few, so that ties are common; several differ only beyond single precision."""
LEVELS = (1, 2, 3)


def documents(rng: random.Random) -> list[str]:
    """Ids whose order as text, as bytes and by number differ."""
    names = [f"d{n}" for n in range(1, 15)] + [f"D{n}" for n in range(1, 8)]
    return rng.sample([*names, "é1", "z", "ä", "d-1", "d_1", "d.1", "d1a", "🙂"], 24)


def drawn(seed: int, *, tied: bool = True) -> tuple[Qrels, Run]:
    """Topics of which some have no results, and results of which some have no topic."""
    rng = random.Random(seed)
    docs = documents(rng)
    topics = [f"t{n}" for n in rng.sample(range(100), rng.randint(2, 8))]
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, list[tuple[str, float]]] = {}
    for topic in topics:
        judged = rng.sample(docs, rng.randint(1, 14))
        grades = rng.choice((GRADES, GRADES, (0, 1), (1,), (0, -1)))
        qrels[topic] = {doc: rng.choice(grades) for doc in judged}
        if not run or rng.random() < 0.85:
            run[topic] = results(rng, docs, tied=tied)
    if rng.random() < 0.5:
        run["stranger"] = results(rng, docs, tied=tied)
    return qrels, run


def results(rng: random.Random, docs: list[str], *, tied: bool) -> list[tuple[str, float]]:
    found = rng.sample(docs, rng.randint(1, len(docs)))
    if not tied:
        return [(doc, float(n)) for n, doc in enumerate(found)]
    return [(doc, rng.choice(SCORES)) for doc in found]


def by_trec_eval(qrels: Qrels, run: Run, *, level: int = 1) -> dict[str, dict[str, float]]:
    """NIST's values. Negative grades alone crash it, so every topic gets a 0 that no run has."""
    known = {qid: {"in no run": 0, **docs} for qid, docs in qrels.items()}
    judge = pytrec_eval.RelevanceEvaluator(known, THEIRS, relevance_level=level)
    found: dict[str, dict[str, float]] = judge.evaluate({q: dict(docs) for q, docs in run.items()})
    return found


def scored(gold: Path, trace: Path, *, level: int = 1, intervals: bool = False) -> Scores:
    return score(
        gold, trace, profile="all", metrics=ASKED, k=KS, intervals=intervals,
        options=Options(relevance_level=level),
    )  # fmt: skip


def scored_by_trec(folder: Path, qrels: Qrels, run: Run, *, level: int = 1) -> Scores:
    files = write_qrels(folder / "qrels", qrels), write_run(folder / "run", run)
    return scored(*files, level=level)


def routes(folder: Path, qrels: Qrels, run: Run) -> Iterator[tuple[Path, Path]]:
    """The same data in files of every kind, and of two kinds."""
    golds = [
        write_qrels(folder / "qrels", qrels),
        write_beir(folder / "beir", qrels),
        write_graded(folder / "gold.jsonl", qrels),
    ]
    traces = [write_run(folder / "run", run), write_traces(folder / "traces.jsonl", run)]
    return ((gold, trace) for gold in golds for trace in traces)


def with_evidence(qrels: Qrels, level: int) -> set[str]:
    return {qid for qid, docs in qrels.items() if any(g >= level for g in docs.values())}


def compare(scores: Scores, qrels: Qrels, run: Run, level: int) -> int:
    """Compare every measure of every topic; return how many values were compared."""
    theirs = by_trec_eval(qrels, run, level=level)
    labelled = with_evidence(qrels, level)
    compared = 0
    for measure, metric in PAIRS.items():
        ours = values(scores, metric)
        assert ours.keys() == qrels.keys()
        for qid, value in ours.items():
            place = f"{measure} of {qid}, level {level}"
            if qid not in labelled:
                assert value is None, place
            elif qid not in run:
                assert value == 0.0, place
            else:
                assert value == pytest.approx(theirs[qid][measure], abs=CLOSE), place
                compared += 1
        present = [theirs[qid][measure] if qid in run else 0.0 for qid in labelled]
        result = scores.metrics[metric]
        assert result.n == len(present)
        if present:
            overall = sum(present) / len(present)
            assert mean(scores, metric) == pytest.approx(overall, abs=CLOSE), measure
        else:
            assert result.value is None
    return compared


@pytest.mark.parametrize("level", LEVELS)
def test_every_topic_of_random_runs(level: int, tmp_path: Path) -> None:
    """Grades from -2 to 3, ties, unjudged documents, missing topics; means count missing as 0."""
    compared = 0
    for seed in range(120):
        qrels, run = drawn(seed)
        compared += compare(scored_by_trec(tmp_path, qrels, run, level=level), qrels, run, level)
    assert compared > 3_000


@cases("level", LEVELS)
@cases("first", [1000, 1020])
def test_all_ways_to_write_it_down_agree(first: int, level: int, tmp_path: Path) -> None:
    """TREC files, a BEIR folder, items with grades, traces: the same bits, whichever are paired."""
    for seed in range(first, first + 20):
        qrels, run = drawn(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = [scored(*files, level=level) for files in routes(folder, qrels, run)]
        compare(found[0], qrels, run, level)
        for other in found[1:]:
            assert_same(found[0], other)


def assert_same(one: Scores, other: Scores) -> None:
    assert other.metrics == one.metrics
    for metric in one.metrics:
        assert values(other, metric) == values(one, metric), metric
    for count in ("gold", "traces", "missing", "unknown", "scored", "repeated_ids", "duplicates"):
        assert getattr(other.tally, count) == getattr(one.tally, count), count


def test_intervals_do_not_depend_on_the_files_either(tmp_path: Path) -> None:
    qrels, run = drawn(2)
    found = [scored(*files, intervals=True) for files in routes(tmp_path, qrels, run)]
    assert found[0].metrics["retrieval.map@10"].interval is not None
    for other in found[1:]:
        assert_same(found[0], other)


def test_cases_have_all_that_is_promised() -> None:
    """Ties that only single precision makes, missing and empty topics, strangers, every grade."""
    seen = dict.fromkeys(("tie", "missing", "no evidence", "stranger", "unjudged"), 0)
    grades = set()
    for seed in range(120):
        qrels, run = drawn(seed)
        seen["missing"] += bool(qrels.keys() - run.keys())
        seen["stranger"] += bool(run.keys() - qrels.keys())
        seen["no evidence"] += bool(qrels.keys() - with_evidence(qrels, 1))
        for qid in qrels.keys() & run.keys():
            exact = [doc for doc, _ in sorted(run[qid], key=lambda hit: (hit[1], hit[0].encode()))]
            seen["tie"] += exact[::-1] != in_order(run[qid])
            seen["unjudged"] += any(doc not in qrels[qid] for doc, _ in run[qid])
            grades |= set(qrels[qid].values())
    assert min(seen.values()) > 20
    assert grades == set(GRADES)


@cases(
    ("first", "second"),
    [(2.0, 2.0), (16777217.0, 16777216.0), (0.0, -0.0), (1.0 + 1e-9, 1.0), (1e-50, 0.0)],
)
def test_scores_that_are_equal_in_single_precision_tie(
    first: float, second: float, tmp_path: Path
) -> None:
    """The larger id is first, whatever the exact scores say: b before a, at rank 1."""
    qrels, run = {"t": {"b": 1}}, {"t": [("a", first), ("b", second)]}
    found = scored_by_trec(tmp_path, qrels, run)
    assert values(found, f"retrieval.mrr@{DEEP}") == {"t": 1.0}
    assert by_trec_eval(qrels, run)["t"]["recip_rank"] == 1.0


def test_topics_without_results_count_0_and_are_named(tmp_path: Path) -> None:
    """pytrec_eval leaves them out (trec_eval without -c); here they are 0 and reported."""
    qrels, run = {"t1": {"a": 1}, "t2": {"a": 1}}, {"t1": [("a", 1.0)]}
    assert by_trec_eval(qrels, run).keys() == {"t1"}
    for files in routes(tmp_path, qrels, run):
        found = scored(*files)
        assert values(found, "retrieval.map@10") == {"t1": 1.0, "t2": 0.0}
        assert mean(found, "retrieval.map@10") == 0.5
        assert found.tally.missing == 1
        assert any("t2" in warning for warning in found.warnings)
        left_out = score(*files, profile="all", metrics=["retrieval.map@10"], missing="exclude")
        assert mean(left_out, "retrieval.map@10") == 1.0  # as pytrec_eval


def test_topics_without_relevant_documents_are_left_out(tmp_path: Path) -> None:
    """trec_eval counts them 0 in every mean; here 0/0 is no value, and the reason is said."""
    qrels, run = (
        {"t1": {"a": 1}, "t2": {"a": 0, "b": -1}},
        {
            "t1": [("a", 1.0)],
            "t2": [("a", 1.0), ("b", 0.5)],
        },
    )
    theirs = by_trec_eval(qrels, run)
    for files in routes(tmp_path, qrels, run):
        found = scored(*files)
        for measure, metric in PAIRS.items():
            assert theirs["t2"][measure] == 0.0
            assert values(found, metric)["t2"] is None
            assert found.metrics[metric].excluded == {"no-evidence": 1}
            assert found.metrics[metric].n == 1


def test_a_higher_level_changes_what_is_relevant_and_not_what_is_gained(tmp_path: Path) -> None:
    """At level 2 only b is relevant; ndcg takes both grades: (1 + 2/log2 3) / (2 + 1/log2 3)."""
    qrels, run = {"t": {"a": 1, "b": 2}}, {"t": [("a", 2.0), ("b", 1.0)]}
    theirs = by_trec_eval(qrels, run, level=2)["t"]
    for files in routes(tmp_path, qrels, run):
        found = scored(*files, level=2)
        assert values(found, f"retrieval.mrr@{DEEP}") == {"t": 0.5}
        assert values(found, "retrieval.recall@1") == {"t": 0.0}
        assert values(found, "retrieval.ndcg@2")["t"] == pytest.approx(0.859719, abs=1e-6)
        assert values(found, "retrieval.ndcg@2")["t"] == pytest.approx(
            theirs["ndcg_cut_2"], abs=CLOSE
        )


def test_a_topic_of_low_grades_alone_has_no_evidence_at_level_2(tmp_path: Path) -> None:
    """trec_eval gives it a gain all the same, and 0 in all else; here it is left out of both."""
    qrels, run = {"t": {"a": 1}}, {"t": [("a", 2.0)]}
    theirs = by_trec_eval(qrels, run, level=2)["t"]
    assert (theirs["ndcg_cut_1"], theirs["P_1"]) == (1.0, 0.0)
    for files in routes(tmp_path, qrels, run):
        found = scored(*files, level=2)
        assert found.metrics["retrieval.ndcg@1"].excluded == {"no-evidence": 1}
        assert found.metrics["retrieval.recall@1"].excluded == {"no-evidence": 1}


def test_repeated_documents_keep_their_ranks_and_gain_once(tmp_path: Path) -> None:
    """A document that stands again is as one that nobody judged: trec_eval would refuse the run."""
    repeats = 0
    for seed in range(2000, 2020):
        rng = random.Random(seed)
        qrels, plain = drawn(seed, tied=False)
        run, renamed = {}, {}
        for qid, found in plain.items():
            again = rng.choices(range(len(found)), k=rng.randint(0, 4))
            docs = [doc for doc, _ in found]
            for place in again:
                docs.insert(rng.randint(0, len(docs)), found[place][0])
            names = [f"again{n}" if doc in docs[:n] else doc for n, doc in enumerate(docs)]
            run[qid] = [(doc, float(-n)) for n, doc in enumerate(docs)]
            renamed[qid] = [(doc, float(-n)) for n, doc in enumerate(names)]
            repeats += qid in qrels and bool(again)
        folder = tmp_path / str(seed)
        folder.mkdir()
        found_by = [scored(*files) for files in routes(folder, qrels, run)]
        compare(found_by[0], qrels, renamed, 1)
        with_repeats = sum(len(set(dict(run[q]))) < len(run[q]) for q in qrels.keys() & run.keys())
        for each in found_by:
            assert each.tally.repeated_ids == with_repeats
            assert_same(found_by[0], each)
    assert repeats > 40


def test_the_last_of_two_judgements_counts(tmp_path: Path) -> None:
    """The file has a judged 0 and then 1; b the other way round. JSON may not say so at all."""
    run = {"t": [("a", 2.0), ("b", 1.0)]}
    lines = [("a", 0), ("b", 1), ("a", 1), ("b", 0)]
    qrels, results_ = tmp_path / "twice", write_run(tmp_path / "run", run)
    qrels.write_text("".join(f"t 0 {doc} {grade}\n" for doc, grade in lines), "utf-8")
    items = tmp_path / "gold.jsonl"
    grades = ", ".join(f'"{doc}": {grade}' for doc, grade in lines)
    items.write_text(f'{{"qid": "t", "grades": {{{grades}}}}}\n', "utf-8")
    theirs = by_trec_eval({"t": {"a": 1, "b": 0}}, run)["t"]
    found = scored(qrels, results_)
    for measure, metric in PAIRS.items():
        assert values(found, metric)["t"] == pytest.approx(theirs[measure], abs=CLOSE), measure
    with pytest.raises(RagaugeError, match=r"`grades.a`, `grades.b` stand twice"):
        scored(items, results_)


def test_lines_in_any_order_and_topics_apart(tmp_path: Path) -> None:
    """The lines of a topic need not stand together, in either file."""
    for seed in range(3000, 3030):
        qrels, run = drawn(seed)
        expected = scored_by_trec(tmp_path, qrels, run)
        for name in ("qrels", "run"):
            lines = (tmp_path / name).read_text("utf-8").splitlines(keepends=True)
            random.Random(seed).shuffle(lines)
            (tmp_path / name).write_text("".join(lines), "utf-8")
        shuffled = scored(tmp_path / "qrels", tmp_path / "run")
        assert_same(expected, shuffled)


def test_list_order_counts_in_json(tmp_path: Path) -> None:
    """A trace that carries scores is not sorted by them: the list is as given."""
    gold = write_graded(tmp_path / "gold.jsonl", {"t": {"a": 1}})
    hits = [{"id": "b", "score": 1.0}, {"id": "a", "score": 2.0}]
    found = scored(gold, write_lines(tmp_path / "traces.jsonl", [{"qid": "t", "topk": hits}]))
    assert values(found, f"retrieval.mrr@{DEEP}") == {"t": 0.5}
    assert found.tally.disordered == 1


# --- ir_measures ----------------------------------------------------------------------------------


def ir_pairs(ir: Any, level: int) -> list[tuple[Any, str]]:
    pairs: list[tuple[Any, str]] = [
        (ir.Rprec(rel=level), WHOLE["Rprec"]),
        (ir.RR(rel=level), WHOLE["recip_rank"]),
        (ir.AP(rel=level), WHOLE["map"]),
    ]
    for k in KS:
        pairs += [
            (ir.P(rel=level) @ k, f"retrieval.precision_at_cutoff@{k}"),
            (ir.R(rel=level) @ k, f"retrieval.recall@{k}"),
            (ir.AP(rel=level) @ k, f"retrieval.map@{k}"),
            (ir.Success(rel=level) @ k, f"retrieval.hit@{k}"),
            (ir.RR(rel=level) @ k, f"retrieval.mrr@{k}"),
            (ir.nDCG @ k, f"retrieval.ndcg@{k}"),
        ]
    return pairs


@pytest.mark.parametrize("level", [1, 2])
def test_every_topic_as_ir_measures_has_it(level: int, tmp_path: Path) -> None:
    """It also has a reciprocal rank with a cut-off, by code of its own, which breaks no ties."""
    ir: Any = pytest.importorskip("ir_measures")
    pairs = ir_pairs(ir, level)
    compared = 0
    for seed in range(4000, 4030):
        qrels, run = drawn(seed, tied=False)
        files = write_qrels(tmp_path / "qrels", qrels), write_run(tmp_path / "run", run)
        found = score(
            *files, metrics=[*ASKED, "retrieval.mrr"], k=KS, intervals=False,
            options=Options(relevance_level=level),
        )  # fmt: skip
        theirs = {
            (each.measure, each.query_id): each.value
            for each in ir.iter_calc(
                [measure for measure, _ in pairs],
                {qid: {"in no run": 0, **docs} for qid, docs in qrels.items()},
                {qid: dict(docs) for qid, docs in run.items()},
            )
        }
        for measure, metric in pairs:
            ours = values(found, metric)
            for qid in with_evidence(qrels, level):
                wanted = theirs[measure, qid]  # 0 for a topic without results, as here
                assert ours[qid] == pytest.approx(wanted, abs=CLOSE), (seed, str(measure), qid)
                compared += 1
    assert compared > 1_000


@pytest.mark.parametrize("level", LEVELS)
def test_bpref_is_that_of_trec_eval(level: int, tmp_path: Path) -> None:
    """Judged, not judged, and graded below 0, which trec_eval takes for not judged."""
    compared = 0
    for seed in range(120):
        qrels, run = drawn(seed)
        files = write_qrels(tmp_path / "qrels", qrels), write_run(tmp_path / "run", run)
        options = Options(relevance_level=level)
        scores = score(*files, profile="all", metrics=["retrieval.bpref"], options=options)
        ours = values(scores, "retrieval.bpref")
        labelled = with_evidence(qrels, level)
        # Without the 0 that other tests add: here it would count. Negative grades alone crash it.
        judge = pytrec_eval.RelevanceEvaluator(
            {qid: dict(qrels[qid]) for qid in sorted(labelled)}, {"bpref"}, relevance_level=level
        )
        theirs = judge.evaluate({qid: dict(run[qid]) for qid in run})
        for qid, value in ours.items():
            if qid not in labelled:
                assert value is None
            elif qid not in run:
                assert value == 0.0
            else:
                assert value == pytest.approx(theirs[qid]["bpref"], abs=CLOSE), (seed, qid)
                compared += 0 < theirs[qid]["bpref"] < 1
    assert compared > 10


def test_judged_is_that_of_ir_measures(tmp_path: Path) -> None:
    """Of the topics with evidence: ir_measures has a value for others too, which judge nothing."""
    ir_measures: Any = pytest.importorskip("ir_measures")
    compared = 0
    for seed in range(60):
        qrels, run = drawn(seed, tied=False)
        files = write_qrels(tmp_path / "qrels", qrels), write_run(tmp_path / "run", run)
        scores = score(*files, profile="all", metrics=["retrieval.judged"], k=KS, intervals=False)
        wanted = [ir_measures.parse_measure(f"Judged@{k}") for k in KS]
        found = {qid: dict(docs) for qid, docs in run.items()}
        for metric in ir_measures.iter_calc(wanted, qrels, found):
            # It has 0 for topics without results, which have no hits to be judged.
            if metric.query_id in with_evidence(qrels, 1) and metric.query_id in run:
                ours = values(scores, f"retrieval.judged@{metric.measure['cutoff']}")
                assert ours[metric.query_id] == pytest.approx(metric.value, abs=CLOSE)
                compared += 0 < metric.value < 1
    assert compared > 200


@pytest.mark.parametrize("level", LEVELS)
def test_judgements_count_alike_in_every_kind_of_file(level: int, tmp_path: Path) -> None:
    asked = ("retrieval.bpref", "retrieval.judged", "retrieval.unjudged")
    counted = 0.0
    for seed in range(1000, 1010):
        qrels, run = drawn(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        first, *others = (
            score(*files, profile="all", metrics=asked, options=Options(relevance_level=level))
            for files in routes(folder, qrels, run)
        )
        counted += first.metrics["retrieval.unjudged@5"].value or 0
        for other in others:
            assert other.metrics == first.metrics
    assert counted > 10
