"""The profile `kb`: each number of the kb evaluation by hand, its names, labels and project."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import msgspec
import pytest

from ragauge import registry, score
from ragauge.errors import RagaugeError
from ragauge.formats import load
from ragauge.gates import judge
from ragauge.model.profile import JoinRules
from ragauge.model.scores import MetricResult, Scores
from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row

SEVEN = (
    "retrieval.hit@1", "retrieval.hit@3", "retrieval.hit@5", "retrieval.hit@10",
    "retrieval.mrr@10", "retrieval.recall_doc@1", "retrieval.recall_doc@3",
    "retrieval.recall_doc@5", "retrieval.recall_doc@10", "citation.coverage",
    "answer.groundedness", "retrieval.empty", "refusal.correct",
)  # fmt: skip


def query(name: str, **more: Any) -> Row:
    return {"id": name, "query": f"{name}?", **more}


def hits(*names: str) -> list[Row]:
    """Hits by `doc/chunk`, in order."""
    pairs = [name.split("/") for name in names]
    return [{"chunk_id": chunk, "doc_id": doc} for doc, chunk in pairs]


def result(name: str, *found: str, said: Row | None = None, error: str | None = None) -> Row:
    return {
        "query_id": name, "hits_top_k": hits(*found), "answer": said, "elapsed_ms": 9,
        "error": error,
    }  # fmt: skip


def answer(text: str, *citations: str, grounded: bool = True) -> Row:
    return {"answer": text, "grounded": grounded, "citations": list(citations)}


def scores_of(folder: Folder, golden: list[Row], results: list[Row], **options: Any) -> Scores:
    gold, trace = folder.write("golden.jsonl", golden), folder.write("results.jsonl", results)
    found = score(gold, trace, intervals=False, **options)
    assert (found.dialect, found.profile) == ("kb", "kb")
    return found


def measured(folder: Folder, golden: list[Row], results: list[Row], name: str) -> MetricResult:
    return scores_of(folder, golden, results).metrics[name]


# --- what is measured ---


def test_the_profile_measures_what_its_source_measures(folder: Folder) -> None:
    """The seven, documents by rank, two in a stricter form, and what became of the run; no gate."""
    found = scores_of(folder, [query("q", expected_doc_ids=["d"])], [result("q")])
    others = [name for name in found.metrics if name not in SEVEN]
    assert set(SEVEN) <= found.metrics.keys()
    assert others == [
        "retrieval.mrr_doc@10", "citation.resolved", "answer.groundedness_labelled",
        "run.duplicate", "run.errored", "run.missing", "run.unknown",
    ]  # fmt: skip
    assert found.k == (1, 3, 5, 10)
    assert registry.profile("kb").gates == {}
    assert judge.gate(found).gates == ()


def test_other_cut_offs_leave_the_reciprocal_rank_alone(folder: Folder) -> None:
    """--k 2 is for hits and documents; MRR is cut at 10."""
    golden = [query("q", expected_doc_ids=["d"], expected_chunk_ids=["c"])]
    found = scores_of(folder, golden, [result("q", "d/x", "d/y", "d/c")], k=2).metrics
    assert {name for name in found if "@" in name} == {
        "retrieval.hit@2", "retrieval.recall_doc@2", "retrieval.mrr@10", "retrieval.mrr_doc@10",
    }  # fmt: skip
    assert found["retrieval.hit@2"].value == 0.0
    assert found["retrieval.mrr@10"].value == pytest.approx(1 / 3)


# --- hit@k and MRR ---


def run_of(ranks: dict[str, int | None]) -> list[Row]:
    """Ten hits a query, the expected chunk at its rank."""
    return [
        result(
            name,
            *(f"{name}/c-{name}" if rank == at else f"x{rank}/x{rank}" for rank in range(1, 11)),
        )
        for name, at in ranks.items()
    ]


@pytest.mark.parametrize(
    ("ranks", "hit_at", "mrr"),
    [
        # (1 + 1/4 + 0) / 3 = 5/12
        ({"q1": 1, "q2": 4, "q3": None}, (0.3333, 0.3333, 0.6667, 0.6667), 0.4167),
        # (1/2 + 1 + 1) / 3 = 5/6
        ({"q1": 2, "q2": 1, "q3": 1}, (0.6667, 1.0, 1.0, 1.0), 0.8333),
    ],
    ids=["run A", "run B"],
)
def test_the_numbers_of_the_fixture(
    folder: Folder, ranks: dict[str, int | None], hit_at: tuple[float, ...], mrr: float
) -> None:
    """As the source's own fixture has them, with four decimals in the document."""
    golden = [query(q, expected_doc_ids=[q], expected_chunk_ids=[f"c-{q}"]) for q in ranks]
    outcome = folder.score(
        run_of(ranks), "--format", "json", gold=golden, gold_name="golden.jsonl",
        trace_name="results.jsonl",
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    found = {name: each["value"] for name, each in json.loads(outcome.out)["metrics"].items()}
    assert tuple(found[f"retrieval.hit@{k}"] for k in (1, 3, 5, 10)) == hit_at
    assert tuple(found[f"retrieval.recall_doc@{k}"] for k in (1, 3, 5, 10)) == hit_at
    assert (found["retrieval.mrr@10"], found["retrieval.mrr_doc@10"]) == (mrr, mrr)


def test_any_expected_chunk_is_a_hit(folder: Folder) -> None:
    """The second of two, at rank 3: a hit from 3 on, and 1/3."""
    golden = [query("q", expected_doc_ids=["d"], expected_chunk_ids=["c1", "c2"])]
    found = scores_of(folder, golden, [result("q", "x/a", "x/b", "d/c2", "d/c1")]).metrics
    values = [found[f"retrieval.hit@{k}"].value for k in (1, 3, 5, 10)]
    assert values == [0.0, 1.0, 1.0, 1.0]
    assert found["retrieval.mrr@10"].value == pytest.approx(1 / 3)


@pytest.mark.parametrize(("rank", "reciprocal", "hit"), [(10, 0.1, 1.0), (11, 0.0, 0.0)])
def test_the_reciprocal_rank_ends_at_ten(
    folder: Folder, rank: int, reciprocal: float, hit: float
) -> None:
    """Rank 10 gives 1/10, rank 11 nothing."""
    golden = [query("q", expected_doc_ids=["d"], expected_chunk_ids=["c"])]
    row = result("q", *(f"x/x{n}" for n in range(1, rank)), "d/c")
    found = scores_of(folder, golden, [row]).metrics
    assert found["retrieval.mrr@10"].value == pytest.approx(reciprocal)
    assert found["retrieval.mrr_doc@10"].value == pytest.approx(reciprocal)
    assert found["retrieval.hit@10"].value == hit


@pytest.mark.parametrize("expected", [{}, {"expected_chunk_ids": []}], ids=["absent", "empty"])
def test_queries_without_chunks_are_not_asked_for_hits(folder: Folder, expected: Row) -> None:
    """1 of 1: the other names documents only, which have a rank of their own."""
    golden = [
        query("q1", expected_doc_ids=["d"], expected_chunk_ids=["c"]),
        query("q2", expected_doc_ids=["d"], **expected),
    ]
    found = scores_of(folder, golden, [result("q1", "d/c"), result("q2", "x/x", "d/e")]).metrics
    hit = found["retrieval.hit@1"]
    assert (hit.value, hit.n, hit.excluded) == (1.0, 1, {"no-evidence": 1})
    by_doc = found["retrieval.mrr_doc@10"]
    assert (by_doc.value, by_doc.n) == (0.75, 2)  # (1 + 1/2) / 2


# --- recall@k_doc ---


def test_k_counts_chunks_not_documents(folder: Folder) -> None:
    """Four chunks of d1 use up k = 3: d2 comes fifth, d3 never."""
    golden = [query("q", expected_doc_ids=["d1", "d2", "d3"])]
    row = result("q", "d1/a", "d1/b", "d1/c", "d1/d", "d2/e")
    found = scores_of(folder, golden, [row]).metrics
    values = [found[f"retrieval.recall_doc@{k}"].value for k in (1, 3, 5, 10)]
    assert values == pytest.approx([1 / 3, 1 / 3, 2 / 3, 2 / 3])


def test_a_document_that_is_named_twice_is_one(folder: Folder) -> None:
    """1 of 2 documents, not 2 of 3 names."""
    golden = [query("q", expected_doc_ids=["d1", "d1", "d2"])]
    found = measured(folder, golden, [result("q", "d1/a")], "retrieval.recall_doc@5")
    assert found.value == 0.5


# --- empty_result_rate ---


def test_an_error_is_an_empty_result(folder: Folder) -> None:
    """Nothing found, an error before the search, an error behind it; one has hits: 3/4."""
    golden = [query(f"q{n}", expected_doc_ids=["d"]) for n in (1, 2, 3, 4, 5)]
    results = [
        result("q1", "d/c"),
        result("q2"),
        result("q3", error="index: gone"),
        result("q4", "d/c", error="llm: connection refused"),
    ]
    found = scores_of(folder, golden, results)
    empty = found.metrics["retrieval.empty"]
    assert (empty.value, empty.n, empty.excluded) == (0.75, 4, {"missing": 1})
    assert found.metrics["run.errored"].value == 0.4  # 2 of 5 queries
    excluded = scores_of(folder, golden, results, missing="exclude").metrics["retrieval.empty"]
    assert (excluded.value, excluded.excluded) == (0.5, {"missing": 1, "errored": 2})


@pytest.mark.parametrize("profile", ["all", "canary"])
def test_elsewhere_an_error_is_left_out(folder: Folder, profile: str) -> None:
    """The rule is that of kb alone: 0 of the 1 that has no error."""
    gold = folder.write("golden.jsonl", [query("q1"), query("q2")])
    trace = folder.write("results.jsonl", [result("q1", "d/c"), result("q2", error="late")])
    found = score(gold, trace, profile=profile, dialect="kb", metrics=["retrieval.empty"])
    empty = found.metrics["retrieval.empty"]
    assert (empty.value, empty.n, empty.excluded) == (0.0, 1, {"errored": 1})


def test_an_error_is_a_miss_and_has_no_answer(folder: Folder) -> None:
    """1 of 2 in hits, documents and MRR; the answer that was stored before it counts nowhere."""
    golden = [
        query(q, expected_doc_ids=["d"], expected_chunk_ids=["c"], must_contain=["yes"])
        for q in ("q1", "q2")
    ]
    results = [
        result("q1", "d/c", said=answer("yes", "c")),
        result("q2", "d/c", said=answer("no", "gone"), error="late"),
    ]
    found = scores_of(folder, golden, results).metrics
    for name in ("retrieval.hit@1", "retrieval.recall_doc@1", "retrieval.mrr@10"):
        assert (found[name].value, found[name].n) == (0.5, 2), name
    for name in ("answer.groundedness", "citation.resolved"):
        assert (found[name].value, found[name].excluded) == (1.0, {"errored": 1}), name


# --- answers ---


def test_all_strings_must_be_there_and_no_forbidden_one(folder: Folder) -> None:
    """Right; one of two missing; a forbidden one; a refusal with strings; without strings: 2/5.

    Who names no strings is satisfied by anything, as in the source; of those with strings, 1/4.
    """
    strings = {"expected_doc_ids": ["d"], "must_contain": ["7", "days"], "forbidden": ["14"]}
    golden = [query(f"q{n}", **strings) for n in (1, 2, 3, 4)]
    golden.append(query("q5", expected_doc_ids=["d"]))
    texts = ["7 days", "7 weeks", "7 days, not 14", "I cannot say", "anything"]
    results = [
        result(f"q{n}", said=answer(text, grounded=n != 4)) for n, text in enumerate(texts, 1)
    ]
    found = measured(folder, golden, results, "answer.groundedness")
    assert (found.value, found.n, found.excluded) == (0.4, 5, {})
    found = measured(folder, golden, results, "answer.groundedness_labelled")
    assert (found.value, found.n, found.excluded) == (0.25, 4, {"no-strings": 1})


def test_every_citation_must_exist(folder: Folder) -> None:
    """Found here; found by another query; one of two is nowhere; none at all; not grounded: 2/4."""
    golden = [query(f"q{n}", expected_doc_ids=["d"]) for n in (1, 2, 3, 4, 5)]
    results = [
        result("q1", "d/a", said=answer("x", "a")),
        result("q2", "d/b", said=answer("x", "a", "b")),
        result("q3", "d/a", said=answer("x", "a", "gone")),
        result("q4", "d/a", said=answer("x")),
        result("q5", "d/a", said=answer("x", "gone", grounded=False)),
    ]
    found = measured(folder, golden, results, "citation.resolved")
    assert (found.value, found.n, found.excluded) == (0.5, 4, {"not-grounded": 1})


def test_an_empty_list_says_refuse_and_no_key_says_nothing(folder: Folder) -> None:
    """Refused, answered and searched only, of those to be refused: 1/2; others do not count."""
    golden = [
        query("refused", expected_doc_ids=[]),
        query("answered", expected_doc_ids=[]),
        query("searched", expected_doc_ids=[]),
        query("unlabelled", must_contain=["x"]),
        query("chunks only", expected_chunk_ids=["c"]),
        query("to answer", expected_doc_ids=["d"]),
    ]
    results = [result(row["id"], said=answer("?", grounded=False)) for row in golden]
    results[1]["answer"] = answer("Certainly.")
    results[2]["answer"] = None
    found = scores_of(folder, golden, results)
    refusal = found.metrics["refusal.correct"]
    assert (refusal.value, refusal.n) == (0.5, 2)
    assert refusal.excluded == {"no-answer": 1, "unlabelled": 2, "answerable": 1}
    assert found.metrics["retrieval.recall_doc@5"].excluded == {"no-docs": 5}


def test_nothing_to_measure_is_null_with_the_reason(folder: Folder) -> None:
    """A search alone, of queries that name nothing: null everywhere, but hits were found."""
    found = scores_of(folder, [query("q", lang="en", forbidden=[])], [result("q", "d/c")]).metrics
    reasons = {name: found[name].reason for name in SEVEN if found[name].value is None}
    assert found["retrieval.empty"].value == 0.0
    assert reasons.keys() == set(SEVEN) - {"retrieval.empty"}
    assert reasons["retrieval.hit@1"] == "no-evidence"
    assert reasons["retrieval.recall_doc@1"] == "no-docs"
    for name in ("citation.coverage", "answer.groundedness", "refusal.correct"):
        assert reasons[name] == "no-answer"
    nobody = scores_of(folder, [query("q", expected_doc_ids=["d"])], []).metrics
    assert (nobody["retrieval.empty"].value, nobody["retrieval.empty"].reason) == (None, "missing")


# --- labels ---


@cases(
    ("expected", "row", "label"),
    [
        ({"must_contain": ["yes"]}, result("q", "d/c", said=answer("yes", "x")), "OK"),
        # wrong strings: what the citations show of the evidence says where to look
        ({"must_contain": ["yes"]}, result("q", "d/c", said=answer("no", "c")), "CLAIM_MISSING"),
        ({"forbidden": ["no"]}, result("q", "d/c", said=answer("no", "x")), "ANS_NO_HIT"),
        ({"must_contain": ["yes"]}, result("q", said=answer("no", "c")), "OUT_OF_SCOPE"),
        # no strings: nothing is asked of what is said
        ({}, result("q", "d/c", said=answer("no", "c")), "OK"),
        ({}, result("q", "d/x", said=answer("no")), "OK"),
        ({"must_contain": ["I"]}, result("q", said=answer("I", grounded=False)), "OVER_REFUSAL"),
        ({}, result("q", "d/c"), "NO_ANSWER"),
        ({}, result("q", "d/c", said=answer("yes"), error="late"), "ERRORED"),
    ],
)
def test_an_answer_with_the_right_strings_is_ok(
    folder: Folder, expected: Row, row: Row, label: str
) -> None:
    """The kb evaluation calls an answer right by its strings, whatever it cites."""
    golden = [query("q", expected_doc_ids=["d"], expected_chunk_ids=["c"], **expected)]
    (question,) = scores_of(folder, golden, [row]).questions
    assert question.label == label


@pytest.mark.parametrize(
    ("expected", "said", "label"),
    [
        ({"expected_doc_ids": []}, answer("?", grounded=False), "REFUSAL_OK"),
        ({"expected_doc_ids": []}, answer("x"), "HALLUCINATION"),
        ({"must_contain": ["x"]}, answer("x"), "UNLABELLED"),
    ],
)
def test_labels_of_what_is_to_be_refused_or_says_nothing(
    folder: Folder, expected: Row, said: Row, label: str
) -> None:
    """An empty list is a refusal; without the key nobody knows whether there is an answer."""
    found = scores_of(folder, [query("q", **expected)], [result("q", said=said)])
    assert [each.label for each in found.questions] == [label]


# --- names ---

GOLDEN = [query("q", expected_doc_ids=["d"], expected_chunk_ids=["c"], must_contain=["yes"])]
RESULTS = [result("q", "x/x", "d/e", "d/c", said=answer("yes", "c"))]


def scored(folder: Folder, *options: str) -> Outcome:
    return folder.score(
        RESULTS, "--format", "json", *options, gold=GOLDEN, gold_name="golden.jsonl",
        trace_name="results.jsonl",
    )  # fmt: skip


@cases(
    ("name", "metric", "value"),
    [
        ("hit@1", "retrieval.hit@1", 0.0),
        ("hit@3", "retrieval.hit@3", 1.0),
        ("hit@7", "retrieval.hit@7", 1.0),
        ("mrr", "retrieval.mrr@10", 0.3333),
        ("mrr@2", "retrieval.mrr@2", 0.0),
        ("recall@1_doc", "retrieval.recall_doc@1", 0.0),
        ("recall@5_doc", "retrieval.recall_doc@5", 1.0),
        ("mrr_doc", "retrieval.mrr_doc@10", 0.5),
        ("citation_coverage", "citation.coverage", 1.0),
        ("groundedness", "answer.groundedness", 1.0),
        ("empty_result_rate", "retrieval.empty", 0.0),
        ("refusal_correctness", "refusal.correct", None),
    ],
)
def test_the_names_of_the_source_are_short_names(
    folder: Folder, name: str, metric: str, value: float | None
) -> None:
    """In --metrics and in --gates."""
    chosen = scored(folder, "--metrics", name)
    assert chosen.exit_code == (5 if value is None else 0), chosen.err
    metrics = json.loads(chosen.out)["metrics"]
    assert {each: found["value"] for each, found in metrics.items()} == {metric: value}
    folder.write("gates.toml", f'"{name}" = {{ threshold = 0.5, min_n = 1 }}\n')
    gated = json.loads(scored(folder, "--gates", "gates.toml").out)
    (shown,) = gated["verdict"]["gates"]
    assert (shown["name"], shown["metric"], shown["value"]) == (name, metric, value)


def test_a_short_name_with_k_is_every_cut_off(folder: Folder) -> None:
    """As the source writes it."""
    found = json.loads(scored(folder, "--metrics", "recall@k_doc,hit@k", "--k", "1,3").out)
    assert list(found["metrics"]) == [
        "retrieval.recall_doc@1", "retrieval.recall_doc@3", "retrieval.hit@1", "retrieval.hit@3",
    ]  # fmt: skip


@cases("name", ["recall@x_doc", "recall@0_doc", "recall@5", "hit@", "hit@5_doc"])
def test_other_names_are_unknown(folder: Folder, name: str) -> None:
    """Neither a chunk-level recall nor a cut-off that is none."""
    for options in (("--metrics", name), ("--gates", f"{name}=0.5")):
        outcome = scored(folder, *options)
        assert (outcome.exit_code, outcome.codes) == (2, {"unknown-metric"}), options


def test_short_names_with_k_also_work_for_metrics_of_other_profiles(folder: Folder) -> None:
    """`recall@5` of `all` is a metric on the command line as well as a gate."""
    outcome = folder.score(None, "--profile", "all", "--metrics", "recall@2", "--format", "json")
    assert list(json.loads(outcome.out)["metrics"]) == ["retrieval.recall@2"]
    assert registry.profile("all").meant("recall@2") == "retrieval.recall@2"
    assert registry.profile("all").meant("nothing@2") == "nothing@2"


# --- a new project ---


def test_init_writes_a_knowledge_base_project_that_works(folder: Folder) -> None:
    """A golden set whose header says what an empty list means, and gates that can be read."""
    outcome = folder.run("init", "--profile", "kb")
    assert outcome.exit_code == 0, outcome.err
    golden = (folder.path / "eval/golden.yaml").read_text("utf-8")
    header = "".join(line for line in golden.splitlines(keepends=True) if line.startswith("#"))
    assert "expected_doc_ids: []" in header
    assert "should be refused" in header
    assert "without the key" in header
    items = load.load_gold("eval/golden.yaml").items
    assert {item.expect for item in items} == {"answer", "refuse"}
    assert load.load_gold("eval/golden.yaml").dialect == "kb"
    config = tomllib.loads((folder.path / "ragauge.toml").read_text("utf-8"))
    assert (config["profile"], config["gold"]) == ("kb", "eval/golden.yaml")
    rows = [
        result(
            item.qid,
            *(f"{doc}/{chunk}" for doc in item.relevant_docs or () for chunk in item.relevant),
            said=answer(" ".join(item.must_contain), *item.relevant, grounded=bool(item.relevant)),
        )
        for item in items
    ]
    folder.write(config["trace"], rows)
    few = folder.run("score")  # the sample has three queries, and a gate needs five
    assert few.exit_code == 4, few.out + few.err
    assert "is below min_n = 5" in few.out
    text = (folder.path / "ragauge.toml").read_text("utf-8")
    folder.write(
        "ragauge.toml", text.replace('"confident-fail" }', '"confident-fail", min_n = 1 }')
    )
    passed = folder.run("score")
    assert passed.exit_code == 0, passed.out + passed.err
    assert passed.out.rstrip().endswith("PASS")
    folder.write(config["trace"], [result(item.qid) for item in items])
    assert folder.run("score").exit_code != 0
    workflow = (folder.path / ".github/workflows/ragauge.yml").read_text("utf-8")
    assert 'pip install "ragauge[yaml]"' in workflow
    assert config["trace"] in workflow
    assert config["gold"] in workflow


def test_init_writes_the_usual_project_if_nothing_is_said(folder: Folder) -> None:
    """`ship`, as before, without a word of YAML."""
    assert folder.run("init").exit_code == 0
    written = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*.*")}
    assert {"ragauge.toml", "eval/gold.jsonl"} <= written
    assert not [name for name in written if name.endswith(".yaml")]
    assert tomllib.loads((folder.path / "ragauge.toml").read_text("utf-8"))["profile"] == "ship"


def test_init_knows_no_other_profile(folder: Folder) -> None:
    """Exit code 2, and the names that it knows."""
    outcome = folder.run("init", "--profile", "nothing")
    assert outcome.exit_code == 2
    assert "ship" in outcome.err
    assert "kb" in outcome.err


def test_an_unknown_rule_is_refused() -> None:
    """A profile cannot misspell the rule."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"errored_hits": "none"}, JoinRules)
    with pytest.raises(RagaugeError):
        registry.profile("kbb")
