"""Public data sets with the numbers that other people's tools computed: ours are the same.

The data may not be copied, so these tests skip where the folder beside the repository is absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ragauge import score
from ragauge.errors import RagaugeError
from ragauge.model.scores import Scores
from tests.oracles.judged import Row, mean, values, write_lines, write_qrels, write_run
from tests.support.cases import cases

SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "samples"
PRINTED = 5e-5 + 1e-9
"""Half of the last of four decimals, and room for the last bits."""
CLOSE = 1e-9


def sample(name: str) -> Path:
    folder = SAMPLES / name
    if not folder.is_dir():
        pytest.skip(f"no sample data at ../{SAMPLES.parent.name}/{SAMPLES.name}/{name}")
    return folder


def read_lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def expected_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return content


def f1(precision: float | None, recall: float | None) -> float:
    """The harmonic mean of two values, 0 if both are."""
    assert precision is not None
    assert recall is not None
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# --- trec_eval ------------------------------------------------------------------------------------

DEEP = 1000
"""A cut-off beyond every list: what trec_eval has without one."""
CUTOFFS = (1, 5, 10, 15, 20, 30, 100, 200, 500, DEEP)
OURS = {
    "P": "retrieval.precision_at_cutoff",
    "recall": "retrieval.recall",
    "ndcg_cut": "retrieval.ndcg",
    "map_cut": "retrieval.map",
    "success": "retrieval.hit",
}
WHOLE = {
    "map": f"retrieval.map@{DEEP}",
    "Rprec": "retrieval.r_precision",
    "recip_rank": f"retrieval.mrr@{DEEP}",
}
COUNTS = ("num_ret", "num_rel", "num_rel_ret")
NOT_DERIVABLE = ("num_nonrel_judged_ret",)
"""Scores do not tell judged documents without relevance from unjudged ones: no metric needs it, and
the sample has only the first twenty of them for each topic."""
RUNS = ("results", "results_trunc")


def our_name(measure: str) -> str:
    family, _, k = measure.rpartition("_")
    return WHOLE[measure] if measure in WHOLE else f"{OURS[family]}@{k}"


def scored_topics(gold: Path, trace: Path) -> Scores:
    names = [*OURS.values(), "retrieval.precision", "retrieval.mrr", "retrieval.r_precision"]
    return score(gold, trace, metrics=[*names, "run.missing"], k=CUTOFFS, intervals=False)


def counted(scores: Scores, gold: list[Row]) -> dict[str, dict[str, float]]:
    """trec_eval's counts for each topic, as far as the scores tell them.

    num_rel_ret is P_1000 times 1000. What precision over the list divides by is the list's length,
    which is only known where something relevant came back or where nothing came back at all.
    Likewise recall divides by num_rel; where nothing came back the gold says it.
    """
    at_cutoff = values(scores, f"retrieval.precision_at_cutoff@{DEEP}")
    over_list = values(scores, f"retrieval.precision@{DEEP}")
    recall = values(scores, f"retrieval.recall@{DEEP}")
    found: dict[str, dict[str, float]] = {}
    for row in gold:
        qid = row["qid"]
        share, of_list, of_evidence = at_cutoff[qid], over_list[qid], recall[qid]
        assert share is not None
        assert of_evidence is not None
        relevant = share * DEEP
        assert of_list is None or of_list > 0  # no topic of the sample has hits and none relevant
        found[qid] = {
            "num_ret": relevant / of_list if of_list is not None else 0.0,
            "num_rel": relevant / of_evidence if of_evidence else len(row["relevant"]),
            "num_rel_ret": relevant,
        }
    return found


@pytest.mark.parametrize("run", RUNS)
def test_trec_eval_topics_and_means(run: str) -> None:
    """Every measure of NIST's outputs, for each topic and over all; missing topics count 0."""
    folder = sample("trec_eval_suite")
    gold = read_lines(folder / "gold.jsonl")
    scores = scored_topics(folder / "gold.jsonl", folder / f"run.{run}.jsonl")
    expected = expected_of(folder)[run]
    counts = counted(scores, gold)
    topics = [row["qid"] for row in gold]
    assert [*topics, "all"] == list(expected)
    compared = 0
    for topic in topics:
        for measure, wanted in expected[topic].items():
            if measure in NOT_DERIVABLE:
                continue
            if measure in COUNTS:
                assert counts[topic][measure] == pytest.approx(wanted, abs=1e-6), (topic, measure)
            else:
                value = values(scores, our_name(measure))[topic]
                assert value == pytest.approx(wanted, abs=PRINTED), (topic, measure)
            compared += 1
    assert compared == 3 * 45  # 46 measures, one of which cannot be derived
    overall = expected["all"]
    assert overall.keys() - expected[topics[0]].keys() == {"num_q"}
    for measure, wanted in overall.items():
        if measure in COUNTS:
            total = sum(counts[topic][measure] for topic in topics)
            assert total == pytest.approx(wanted, abs=1e-6), measure
        elif measure == "num_q":
            assert {scores.metrics[name].n for name in WHOLE.values()} == {wanted}
        elif measure not in NOT_DERIVABLE:
            assert mean(scores, our_name(measure)) == pytest.approx(wanted, abs=PRINTED), measure


def test_missing_topics_are_reported() -> None:
    """The truncated run lacks topic 302: it counts 0, and is named."""
    folder = sample("trec_eval_suite")
    scores = scored_topics(folder / "gold.jsonl", folder / "run.results_trunc.jsonl")
    assert scores.tally.missing == 1
    assert values(scores, "run.missing") == {"301": 0.0, "302": 1.0, "303": 0.0}
    assert any("302" in warning for warning in scores.warnings)
    assert values(scores, f"retrieval.map@{DEEP}")["302"] == 0.0
    assert values(scores, f"retrieval.precision@{DEEP}")["302"] is None  # no hits to divide by


@pytest.mark.parametrize("run", RUNS)
def test_trec_files_and_json_agree_to_the_last_bit(run: str, tmp_path: Path) -> None:
    """The same data as qrels and run; its lines are reversed, so the order is by score alone."""
    folder = sample("trec_eval_suite")
    gold = read_lines(folder / "gold.jsonl")
    traces = read_lines(folder / f"run.{run}.jsonl")
    qrels = write_qrels(
        tmp_path / "qrels",
        {
            row["qid"]: {
                **dict.fromkeys(row["judged_nonrelevant"], 0),
                **dict.fromkeys(row["relevant"], 1),
            }
            for row in gold
        },
    )
    results = write_run(
        tmp_path / "run",
        {
            row["qid"]: [(hit["id"], hit["score"]) for hit in reversed(row["topk"])]
            for row in traces
        },
    )
    by_json = scored_topics(folder / "gold.jsonl", folder / f"run.{run}.jsonl")
    by_trec = scored_topics(qrels, results)
    assert (by_trec.dialect, by_trec.profile) == ("trec", "all")
    assert by_trec.metrics == by_json.metrics
    assert by_trec.tally.missing == by_json.tally.missing
    for metric in by_json.metrics:
        assert values(by_trec, metric) == values(by_json, metric), metric


# --- Anthropic's documentation questions ----------------------------------------------------------

THREE = {
    "precision": "retrieval.precision@3",
    "recall": "retrieval.recall@3",
    "mrr": "retrieval.mrr@3",
}


def test_anthropic_questions() -> None:
    """Precision over what was retrieved, recall, MRR and F1; the authors left one error out."""
    folder = sample("anthropic_docs_rag")
    expected = expected_of(folder)
    scores = score(
        folder / "gold.jsonl", folder / "run.retrieve_base.jsonl", metrics=list(THREE.values()),
        profile="all", missing="exclude", intervals=False,
    )  # fmt: skip
    found = {name: values(scores, metric) for name, metric in THREE.items()}
    wanted: Mapping[str, Mapping[str, float]] = expected["per_query"]["retrieve_base"]
    assert len(wanted) == 99
    for qid, numbers in wanted.items():
        for name in THREE:
            assert found[name][qid] == pytest.approx(numbers[name], abs=CLOSE), (qid, name)
        combined = f1(found["precision"][qid], found["recall"][qid])
        assert combined == pytest.approx(numbers["f1"], abs=CLOSE), qid
    overall = expected["mean"]["retrieve_base"]
    for name, metric in THREE.items():
        assert mean(scores, metric) == pytest.approx(overall[name], abs=CLOSE), name
        assert scores.metrics[metric].n == overall["n_scored"]
    combined = sum(f1(found["precision"][qid], found["recall"][qid]) for qid in wanted) / 99
    assert combined == pytest.approx(overall["f1"], abs=CLOSE)
    assert scores.tally.errored == overall["n_error"]
    left_out = {qid for qid in found["recall"] if qid not in wanted}
    assert [found[name][qid] for name in THREE for qid in left_out] == [None] * 3


def test_an_error_counts_unless_it_is_excluded() -> None:
    """By default the hundredth question counts 0 in recall and MRR: 99 / 100 of the means."""
    folder = sample("anthropic_docs_rag")
    scores = score(
        folder / "gold.jsonl", folder / "run.retrieve_base.jsonl", metrics=list(THREE.values()),
        profile="all", intervals=False,
    )  # fmt: skip
    overall = expected_of(folder)["mean"]["retrieve_base"]
    for name in ("recall", "mrr"):
        assert mean(scores, THREE[name]) == pytest.approx(overall[name] * 99 / 100, abs=CLOSE)
        assert scores.metrics[THREE[name]].n == 100
    # Precision is over lists with hits, so there the error is left out all the same.
    assert mean(scores, THREE["precision"]) == pytest.approx(overall["precision"], abs=CLOSE)


# --- AutoRAG's lists with repeated ids ------------------------------------------------------------


@cases(
    "system", ["lexical_retrieval", "semantic_retrieval", "hybrid_retrieval", "passage_reranker"]
)
def test_autorag_systems(system: str) -> None:
    """An id that stands five times is one hit, over a list that is as long as it is."""
    folder = sample("autorag_fixture")
    expected = expected_of(folder)["systems"]
    assert len(expected) == 4
    run = folder / f"run.{system}.jsonl"
    metrics = ["retrieval.precision@10", "retrieval.recall@10"]
    scores = score(folder / "gold.jsonl", run, metrics=metrics, profile="all", intervals=False)
    precision, recall = (values(scores, metric) for metric in metrics)
    wanted = expected[system]["per_query"]
    assert wanted.keys() == precision.keys()
    for qid, numbers in wanted.items():
        assert precision[qid] == pytest.approx(numbers["precision"], abs=CLOSE), qid
        assert recall[qid] == pytest.approx(numbers["recall"], abs=CLOSE), qid
        assert f1(precision[qid], recall[qid]) == pytest.approx(numbers["f1"], abs=CLOSE), qid
    overall = expected[system]["mean"]
    assert mean(scores, metrics[0]) == pytest.approx(overall["precision"], abs=CLOSE)
    assert mean(scores, metrics[1]) == pytest.approx(overall["recall"], abs=CLOSE)
    combined = sum(f1(precision[qid], recall[qid]) for qid in wanted) / len(wanted)
    assert combined == pytest.approx(overall["f1"], abs=CLOSE)
    lists = [[hit["id"] for hit in row["topk"]] for row in read_lines(run)]
    assert scores.tally.repeated_ids == sum(len(set(ids)) < len(ids) for ids in lists)


# --- Chroma's chunkings of a speech ---------------------------------------------------------------

CHUNKINGS = ("R200-0", "R400-0", "T400-200")
PRECISION, RECALL, IOU = (f"retrieval.span_{name}@1000" for name in ("precision", "recall", "iou"))


def placed(entry: Row, unit: str) -> Row:
    place = {"start": entry[f"start_{unit}"], "end": entry[f"end_{unit}"]}
    return {"doc": entry["doc"], "unit": unit, **place}


def overlapping(item: Row, chunks: list[Row]) -> list[str]:
    """All chunks that share a character with a gold span."""
    return [
        chunk["id"]
        for chunk in chunks
        if any(
            chunk["start_char"] < span["end_char"] and span["start_char"] < chunk["end_char"]
            for span in item["gold_spans"]
        )
    ]


class Speech:
    """The questions about the speech, and one chunking of it, in files of one unit or of two."""

    def __init__(self, chunking: str, folder: Path) -> None:
        self.source = sample("chroma_sotu")
        self.chunking = chunking
        self.folder = folder
        self.items = read_lines(self.source / "gold.jsonl")
        self.listed = read_lines(self.source / f"chunks.{chunking}.jsonl")
        self.traces = write_lines(
            folder / "traces.jsonl",
            [{"qid": item["qid"], "topk": overlapping(item, self.listed)} for item in self.items],
        )

    def gold(self, unit: str) -> Path:
        rows = [
            {"qid": item["qid"], "relevant": [placed(span, unit) for span in item["gold_spans"]]}
            for item in self.items
        ]
        return write_lines(self.folder / f"gold.{unit}.jsonl", rows)

    def chunks(self, unit: str) -> Path:
        rows = [{"id": chunk["id"], **placed(chunk, unit)} for chunk in self.listed]
        return write_lines(self.folder / f"chunks.{unit}.jsonl", rows)

    def scores(self, unit: str, *, chunks: str | None = None) -> Scores:
        return score(
            self.gold(unit), self.traces, chunks=self.chunks(chunks or unit), intervals=False,
            metrics=[PRECISION, RECALL, IOU],
        )  # fmt: skip


@pytest.mark.parametrize("chunking", CHUNKINGS)
def test_precision_omega_in_characters(chunking: str, tmp_path: Path) -> None:
    """Precision-omega divides by the chunks and by what of the gold no chunk has: it is the IoU.

    Where all of the gold is covered that is the precision, too. The chunks of two chunkings are
    stripped of blank space; a gold span across such a gap is covered in part, and there the
    precision is the higher of the two.
    """
    speech = Speech(chunking, tmp_path)
    expected = expected_of(speech.source)["precision_omega"][chunking]
    scores = speech.scores("char")
    precision, recall, iou = (values(scores, name) for name in (PRECISION, RECALL, IOU))
    assert expected["per_question"].keys() == iou.keys()
    gaps = 0
    for qid, wanted in expected["per_question"].items():
        assert iou[qid] == pytest.approx(wanted, abs=CLOSE), qid
        share, of_gold = precision[qid], recall[qid]
        assert share is not None
        assert of_gold is not None
        if of_gold == 1.0:
            assert share == pytest.approx(wanted, abs=CLOSE), qid
        else:
            # the same covered text, over less: the chunks without the rest of the gold
            assert share > wanted + CLOSE, qid
            gaps += 1
    assert gaps == {"R200-0": 11, "R400-0": 7, "T400-200": 0}[chunking]
    assert mean(scores, IOU) == pytest.approx(expected["mean"], abs=CLOSE)
    assert scores.metrics[IOU].n == 76
    if not gaps:
        assert mean(scores, PRECISION) == pytest.approx(expected["mean"], abs=CLOSE)


@pytest.mark.parametrize("chunking", CHUNKINGS)
def test_the_same_chunks_in_bytes(chunking: str, tmp_path: Path) -> None:
    """Bytes weigh the quotation marks more, but cover what characters cover, and never too much."""
    speech = Speech(chunking, tmp_path)
    by_char, by_byte = speech.scores("char"), speech.scores("byte")
    whole = {qid for qid, value in values(by_char, RECALL).items() if value == 1.0}
    assert whole == {qid for qid, value in values(by_byte, RECALL).items() if value == 1.0}
    assert len(whole) == 76 - {"R200-0": 11, "R400-0": 7, "T400-200": 0}[chunking]
    for metric in (PRECISION, RECALL, IOU):
        found = values(by_byte, metric)
        assert all(value is not None and 0 < value <= 1 for value in found.values()), metric
    # The text has letters of several bytes, so the two units do not give the same shares.
    assert values(by_char, PRECISION) != values(by_byte, PRECISION)


@pytest.mark.parametrize("chunking", CHUNKINGS)
def test_the_files_as_they_are_are_read_in_bytes(chunking: str, tmp_path: Path) -> None:
    """They have both units in every row: bytes are taken, on both sides."""
    speech = Speech(chunking, tmp_path)
    found = score(
        speech.source / "gold.jsonl", speech.traces, intervals=False,
        chunks=speech.source / f"chunks.{chunking}.jsonl", metrics=[PRECISION, RECALL, IOU],
    )  # fmt: skip
    assert found.metrics == speech.scores("byte").metrics


@pytest.mark.parametrize(("gold", "chunks"), [("char", "byte"), ("byte", "char")])
def test_units_do_not_mix(gold: str, chunks: str, tmp_path: Path) -> None:
    """Gold in one unit and chunks in another is an error, not a number."""
    speech = Speech("R400-0", tmp_path)
    with pytest.raises(RagaugeError) as failure:
        speech.scores(gold, chunks=chunks)
    assert {problem.code for problem in failure.value.problems} == {"mixed-units"}
    assert failure.value.total == 76  # every question has hits


# --- SQuAD 2.0: what should be refused ------------------------------------------------------------


@cases("profile", [None, "all"])
@cases("system", ["bert", "nlnet", "bidaf"])
def test_squad_refusals(system: str, profile: str | None) -> None:
    """An empty prediction stands in the files as the refusal token, with nothing cited."""
    folder = sample("squad2_normans")
    expected = expected_of(folder)["refusal"]
    assert len(expected) == 3
    run = folder / f"run.{system}.jsonl"
    names = ["refusal.over", "refusal.under"]
    scores = score(folder / "gold.jsonl", run, metrics=names, profile=profile, intervals=False)
    assert scores.profile == (profile or "ship")
    over, under = (scores.metrics[name] for name in names)
    wanted = expected[system]
    assert (over.records, under.records) == (wanted["A"], wanted["U"])
    assert over.value is not None
    assert under.value is not None
    assert over.value * over.records == pytest.approx(wanted["over_refused"], abs=CLOSE)
    assert under.value * under.records == pytest.approx(wanted["under_refused"], abs=CLOSE)
    said = [row["answer_json"] for row in read_lines(run)]
    refusals = [answer for answer in said if answer["claim"] == "not in context"]
    assert all(not answer["citations"] for answer in refusals)
    assert scores.tally.refused == len(refusals)
    # 112 - under is right to refuse, over is not; together they are all refusals.
    assert len(refusals) == wanted["U"] - wanted["under_refused"] + wanted["over_refused"]
