"""What Python functions return: metrics by short names, files as commands write them, HTML."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ragauge
from ragauge import RagaugeError, ScoreResult, compare, gate, load_scores, score
from ragauge.api.results import MetricNameError
from ragauge.model.scores import Scores
from tests.support.command import GOLD, TRACES, Folder, Row

BAD: list[Row] = [
    {**TRACES[0], "retrieved_ids": ["zz"], "answer_json": {"claim": "Yes.", "citations": ["zz"]}},
    *TRACES[1:],
]


def many(rows: list[Row]) -> list[Row]:
    """The rows of six gold sets of three: enough for gates that ask for some questions."""
    return [{**row, "qid": f"{row['qid']}-{number}"} for number in range(6) for row in rows]


HOSTILE = "<script>alert(1)</script>\u202e&\"'"


@pytest.fixture
def scores() -> ScoreResult:
    return score(GOLD, BAD)


def test_metrics_are_found_by_the_short_names_of_gates(scores: ScoreResult) -> None:
    # A1 cites the wrong chunk and A3 the right one: 1 of 2 answers.
    assert scores["chr"].value == 0.5
    assert scores["chr"] is scores["citation.hit_rate"] is scores.metrics["citation.hit_rate"]
    assert "chr" in scores
    assert "nope" not in scores
    assert scores.get("nope") is None
    assert scores.get("nope", 3) == 3
    assert scores.get("chr") is scores["chr"]
    assert list(scores) == list(scores.keys()) == list(scores.metrics)
    assert dict(scores) == scores.metrics
    assert len(scores) == 5


def test_a_short_name_means_retrieval_where_it_does_in_gates() -> None:
    scores = score(GOLD, TRACES, profile="all", k=[1, 5])
    assert scores["recall@5"] is scores.metrics["retrieval.recall@5"]
    assert scores["hit@1"] is scores.metrics["retrieval.hit@1"]


def test_a_metric_at_one_cut_off_needs_none() -> None:
    assert score(GOLD, TRACES)["retrieval.recall_all"].value == 1.0
    with pytest.raises(KeyError, match=r"retrieval.hit@1, retrieval.hit@5"):
        score(GOLD, TRACES, profile="all", k=[1, 5])["retrieval.hit"]


@pytest.mark.parametrize("ask", [lambda scores, name: scores[name], ScoreResult.get])
def test_a_name_that_surprises_is_an_error_with_both_ids(ask: Any, scores: ScoreResult) -> None:
    """Under `ship`, `recall@5` of a gate means all evidence; nobody who writes code expects it."""
    with pytest.raises(MetricNameError) as raised:
        ask(scores, "recall@5")
    assert "`retrieval.recall_all@5`" in str(raised.value)
    assert "`retrieval.recall@5`" in str(raised.value)
    assert "recall@5" not in scores
    with pytest.raises(KeyError, match=r"answer.grounded_precision.*answer.precision"):
        scores["precision"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("crh", "did you mean chr"),
        ("recal_all@5", "did you mean retrieval.recall_all@5"),
        ("citation.hitrate", "did you mean citation.hit_rate"),
        ("retrieval.mrr@10", 'was not measured\n  hint: score with also=["retrieval.mrr@10"]'),
        ("zzzz", "measured: answer.grounded_precision, citation.hit_rate"),
        (5, "the name of a metric is a text, got: int"),
        (None, "got: NoneType"),
    ],
)
def test_an_unknown_name_is_a_key_error_with_the_nearest(
    name: Any, said: str, scores: ScoreResult
) -> None:
    with pytest.raises(KeyError) as raised:
        scores[name]
    assert isinstance(raised.value, RagaugeError)
    assert raised.value.code == "unknown-metric"
    assert said in str(raised.value)


def test_an_error_of_a_name_can_be_copied(scores: ScoreResult) -> None:
    with pytest.raises(MetricNameError) as raised:
        scores["recall@5"]
    copied = pickle.loads(pickle.dumps(raised.value))
    assert str(copied) == str(raised.value)
    assert copied.ambiguous


def test_results_are_scores_verdicts_and_comparisons(scores: ScoreResult) -> None:
    assert isinstance(scores, Scores)
    assert copy.copy(scores).metrics == scores.metrics
    verdict = gate(scores)
    assert verdict.status == "fail"
    assert not verdict.passed
    assert verdict["chr"].value == 0.5
    assert verdict["citation.hit_rate"] is verdict["chr"]
    with pytest.raises(KeyError, match="did you mean chr"):
        verdict["ch"]
    comparison = compare(TRACES, BAD, gold=GOLD)
    assert comparison["chr"].delta == -0.5
    assert "chr" in comparison
    assert "retrieval.recall_all@5" in list(comparison)
    with pytest.raises(KeyError, match="may mean"):
        comparison["recall@5"]


def test_representations_are_short(scores: ScoreResult) -> None:
    summary = "<ScoreResult: profile ship, 3 questions, 3 traces scored; FAIL: "
    assert repr(scores).startswith(summary)
    assert repr(gate(scores)).startswith("<VerdictResult: FAIL: ")
    assert repr(compare(TRACES, BAD, gold=GOLD)) == (
        "<ComparisonResult: a → b, 3 questions: 1 regression, 1 draw>"
    )


@pytest.mark.slow
def test_a_comparison_fails_on_kinds_of_questions_as_the_command_does(folder: Folder) -> None:
    """A1 loses its evidence: a build that asks `exit_code` must not be green."""
    assert compare(TRACES, BAD, gold=GOLD).exit_code == 0
    failed = compare(TRACES, BAD, gold=GOLD, fail_on="regression", names=("a.jsonl", "b.jsonl"))
    assert failed.exit_code == 1
    assert failed.to_dict()["fail_on"]["regression"]["kinds"] == {"regression": 1}
    assert "FAIL: 1 regression (fail-on)" in repr(failed)
    assert "FAIL: 1 regression (fail-on)" in failed._repr_html_()
    assert compare(TRACES, BAD, gold=GOLD, fail_on=["regression:1"]).exit_code == 0
    assert compare(TRACES, TRACES, gold=GOLD, fail_on=("regression", "loss")).exit_code == 0
    gold = folder.write("gold.jsonl", GOLD).name
    folder.write("a.jsonl", TRACES)
    folder.write("b.jsonl", BAD)
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", gold, "--fail-on", "regression", "-o", "cli.json"
    )
    assert outcome.exit_code == 1
    compare("a.jsonl", "b.jsonl", gold=gold, fail_on="regression").save("api.json")
    assert Path("api.json").read_bytes() == Path("cli.json").read_bytes()
    # Scores as well, which keep the ranks of all evidence where they were scored in full.
    assert compare(score(GOLD, TRACES), score(GOLD, BAD), fail_on="loss").exit_code == 1


def test_what_a_comparison_may_fail_on_is_checked() -> None:
    with pytest.raises(RagaugeError, match="`regresion` is not understood"):
        compare(TRACES, BAD, gold=GOLD, fail_on="regresion")
    with pytest.raises(RagaugeError, match="strict_kinds is about fail_on"):
        compare(TRACES, BAD, gold=GOLD, strict_kinds=True)


def test_a_comparison_that_nobody_can_decide_does_not_pass() -> None:
    """Evidence under a name that is misspelt makes every question a draw."""
    gold = [{"qid": f"Q{n}", "question": f"{n}?", "answerable": True, "gold_citation": ["c"]}
            for n in range(8)]  # fmt: skip
    traces = [{"qid": f"Q{n}", "retrieved_ids": ["c"], "answer": "Yes."} for n in range(8)]
    comparison = compare(traces, traces, gold=gold, fail_on="regression")
    assert comparison.exit_code == 4
    assert "expect any evidence" in (comparison.undecided or "")


def test_a_verdict_without_gates_has_not_passed() -> None:
    assert not gate(score(GOLD, TRACES, profile="all")).passed
    assert gate(score(many(GOLD), many(TRACES), profile="all"), "chr>=0.9").passed


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["ship", "all"])
def test_a_saved_file_is_the_one_of_the_command(profile: str, folder: Folder) -> None:
    """`save` and `score --full -o` write the same bytes in every format, and commands read them."""
    gold = folder.write("gold.jsonl", many(GOLD)).name
    trace = folder.write("trace.jsonl", many(BAD)).name
    scores = score(gold, trace, profile=profile)
    names = ["json", "md", "csv", "xml", *(["parquet"] if find_spec("pyarrow") else [])]
    outputs = [part for name in names for part in ("-o", f"cli.{name}")]
    folder.run("score", gold, trace, "--profile", profile, "--full", *outputs)
    for name in names:
        scores.save(f"api.{name}")
        assert Path(f"api.{name}").read_bytes() == Path(f"cli.{name}").read_bytes(), name
    assert folder.run("gate", "api.json", "--gates", "chr>=0.9").exit_code == 1
    assert folder.run("compare", "api.json", "cli.json").exit_code == 0
    if profile == "all":  # the JSON of `ship` has keys of its own beside these
        assert scores.to_dict() == json.loads(Path("api.json").read_text())
    again = load_scores("api.json")
    assert [result.value for result in again.values()] == [
        result.value for result in scores.values()
    ]
    again.save("again.json")
    first, second = (json.loads(Path(f"{name}.json").read_text()) for name in ("api", "again"))
    asked, asked_again = first.pop("questions"), second.pop("questions")
    assert first == second
    for question, question_again in zip(asked, asked_again, strict=True):
        # The second may say what is empty, too.
        assert question == {name: question_again[name] for name in question}


def test_a_saved_verdict_is_that_of_the_command(folder: Folder) -> None:
    """It is the file of `ragauge gate -o`, with the questions beside it."""
    gold = folder.write("gold.jsonl", many(GOLD)).name
    trace = folder.write("trace.jsonl", many(BAD)).name
    gates = "chr>=0.9,refusal.over<=0.1"
    verdict = gate(trace, gates, gold=gold)
    verdict.save("api.json")
    folder.run("gate", "api.json", "--gates", gates, "-o", "cli.json", "-o", "cli.md")
    saved, judged = (json.loads(Path(f"{name}.json").read_text()) for name in ("api", "cli"))
    assert len(saved.pop("questions")) == 18
    assert saved == judged
    assert saved["verdict"] == verdict.to_dict()
    assert verdict.to_dict()["exit_code"] == 1
    assert verdict.to_dict()["gates"][0]["name"] == "chr"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["json", "md", "csv"])
def test_a_saved_comparison_is_the_one_of_the_command(name: str, folder: Folder) -> None:
    gold = folder.write("gold.jsonl", GOLD).name
    for file, rows in (("a.jsonl", TRACES), ("b.jsonl", BAD)):
        folder.write(file, rows)
    folder.run("compare", "a.jsonl", "b.jsonl", "--gold", gold, "-o", f"cli.{name}")
    comparison = compare("a.jsonl", "b.jsonl", gold=gold)
    comparison.save(f"api.{name}")
    assert Path(f"api.{name}").read_bytes() == Path(f"cli.{name}").read_bytes()
    # Rows in memory differ by what the runs are called.
    in_memory = compare(TRACES, BAD, gold=GOLD, names=("a.jsonl", "b.jsonl"))
    assert in_memory.deltas == comparison.deltas
    assert in_memory.per_query == comparison.per_query


def test_scores_are_compared_as_their_files_are(folder: Folder) -> None:
    gold = folder.write("gold.jsonl", GOLD).name
    for file, rows in (("a", TRACES), ("b", BAD)):
        score(gold, folder.write(f"{file}.jsonl", rows).name).save(f"{file}.json")
    folder.run("compare", "a.json", "b.json", "-o", "cli.json")
    compare("a.json", "b.json").save("api.json")
    assert Path("api.json").read_bytes() == Path("cli.json").read_bytes()
    in_memory = compare(score(gold, "a.jsonl"), score(gold, "b.jsonl"))
    assert in_memory.deltas == compare("a.json", "b.json").deltas
    assert in_memory.kinds["regression"] == 1


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("scores.pdf", {}, "`.pdf` stands for none"),
        ("scores", {}, "stands for none"),
        ("scores.json", {"format": "jsonn"}, "there is no format `jsonn`"),
        ("scores.json", {"format": 5}, "there is no format `5`"),
        (None, {}, "got: NoneType"),
        (7, {}, "got: int"),
        ("", {}, "stands for none"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error(
    path: Any, options: Any, said: str, scores: ScoreResult, folder: Folder
) -> None:
    for result in (scores, gate(scores), compare(scores, scores)):
        with pytest.raises(RagaugeError, match=said):
            result.save(path, **options)
    assert not list(folder.path.iterdir())


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(markup: str) -> _Tags:
    tags = _Tags()
    tags.feed(markup)
    return tags


def test_a_notebook_shows_verdict_gates_and_worst_questions(scores: ScoreResult) -> None:
    shown = parsed(scores._repr_html_())
    assert "FAIL: " in shown.text
    assert "citation hit rate" in shown.text
    assert "0.5000" in shown.text
    assert ">= 0.75" in shown.text
    assert "ANS_NO_HIT" in shown.text
    assert "<traces>:1" in shown.text
    judged = parsed(gate(scores, "chr>=0.99")._repr_html_())
    assert ">= 0.99" in judged.text
    compared = parsed(compare(TRACES, BAD, gold=GOLD)._repr_html_())
    assert "3 questions compared" in compared.text
    assert "A1" in compared.text
    assert "OK → ANS_NO_HIT" in compared.text


def test_a_notebook_shows_few_of_many() -> None:
    gold = [{**GOLD[0], "qid": f"Q{number}"} for number in range(30)]
    traces = [{**BAD[0], "qid": f"Q{number}"} for number in range(30)]
    good = [{**TRACES[0], "qid": f"Q{number}"} for number in range(30)]
    scores = score(gold, traces, profile="all")
    shown = parsed(scores._repr_html_()).text
    assert "… and 22 questions more" in shown  # 30 - 8
    assert "metrics more: scores.to_pandas()" in shown
    compared = parsed(compare(good, traces, gold=gold)._repr_html_()).text
    assert "… and 22 questions more" in compared


def test_all_that_a_notebook_shows_is_escaped() -> None:
    gold = [{**GOLD[0], "qid": HOSTILE, HOSTILE: 1}, *GOLD[1:]]
    traces = [{**BAD[0], "qid": HOSTILE, HOSTILE: 1}, *TRACES[1:]]
    good = [{**TRACES[0], "qid": HOSTILE}, *TRACES[1:]]
    scores = score(gold, traces)
    verdict = gate(scores, {HOSTILE: {"metric": "chr", "threshold": 0.9}})
    comparison = compare(good, traces, gold=gold, names=(HOSTILE, HOSTILE))
    for result in (scores, verdict, comparison):
        shown = parsed(result._repr_html_())
        assert "script" not in shown.tags
        assert "<script>" in shown.text
        assert "\u202e" not in shown.text
        assert shown.attributes <= {"style", "scope"}
        assert "<script>alert" not in result.to_html()


def test_a_page_is_that_of_the_command(folder: Folder) -> None:
    gold, trace = folder.write("gold.jsonl", GOLD).name, folder.write("trace.jsonl", BAD).name
    scores = score(gold, trace)
    scores.save("scores.json")
    folder.run("gate", "scores.json", "-o", "cli.html")
    assert load_scores("scores.json").to_html() == Path("cli.html").read_text(encoding="utf-8")
    assert gate(scores).to_html() == scores.to_html()
    scores.save("api.html")
    assert Path("api.html").read_text(encoding="utf-8") == scores.to_html()


def test_metrics_gates_and_questions_become_frames(scores: ScoreResult) -> None:
    pandas = pytest.importorskip("pandas")
    metrics = scores.to_pandas()
    assert metrics.set_index("metric").loc["citation.hit_rate", "value"] == 0.5
    assert list(metrics["metric"]) == list(scores)
    questions = scores.to_pandas("questions")
    assert list(questions["qid"]) == ["A1", "A2", "A3"]
    assert list(questions["label"]) == ["ANS_NO_HIT", "REFUSAL_OK", "OK"]
    assert questions["citation.hit_rate"].mean() == 0.5  # of A1 and A3; A2 refuses
    gates = gate(scores).to_pandas()
    assert list(gates["name"]) == ["precision", "chr", "under", "over"]
    comparison = compare(TRACES, BAD, gold=GOLD)
    assert comparison.to_pandas().set_index("metric").loc["citation.hit_rate", "delta"] == -0.5
    changes = comparison.to_pandas("questions")
    assert isinstance(changes, pandas.DataFrame)
    assert list(changes["kind"].fillna("")) == ["regression", "", "draw"]
    # What pandas made is read again.
    assert score(pandas.DataFrame(GOLD), pandas.DataFrame(BAD)).metrics == scores.metrics
    with pytest.raises(RagaugeError, match="known: metrics, questions"):
        scores.to_pandas("slices")  # type: ignore[arg-type]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_are_judged_and_compared(library: str) -> None:
    frame = pytest.importorskip(library).DataFrame
    assert gate(frame(many(TRACES)), "chr>=0.9", gold=frame(many(GOLD))).passed
    comparison = compare(frame(TRACES), frame(BAD), gold=frame(GOLD))
    assert comparison.deltas == compare(TRACES, BAD, gold=GOLD).deltas
    gold, bad, good = many(GOLD), frame(many(BAD)), frame(many(TRACES))
    drop = gate(bad, {"chr": {"max_drop": 0.1}}, gold=gold, baseline=good)
    assert drop["chr"].status == "fail"


def test_without_pandas_a_frame_says_what_to_install(
    scores: ScoreResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(RagaugeError, match="pip install pandas"):
        scores.to_pandas()


def test_the_package_compare_is_also_the_function() -> None:
    import ragauge.compare.align as module
    from ragauge.compare import align

    assert module is align is ragauge.compare.align  # type: ignore[attr-defined]
    assert ragauge.compare(TRACES, TRACES, gold=GOLD).exit_code == 0
    assert compare is ragauge.compare
    assert list(inspect.signature(compare).parameters)[:3] == ["a", "b", "gold"]


def test_a_page_shows_the_hits_of_what_was_scored(folder: Folder) -> None:
    """The page of Python is that of the command, from rows, from files, and under gates."""
    gold = folder.write("gold.jsonl", GOLD).name
    trace = folder.write("trace.jsonl", BAD).name
    folder.run("score", gold, trace, "--full", "-o", "cli.html")
    by_command = Path("cli.html").read_text("utf-8")
    scores = score(gold, trace)
    assert scores.to_html() == by_command
    scores.save("api.html")
    assert Path("api.html").read_text("utf-8") == by_command
    in_memory = score(GOLD, BAD)
    assert in_memory.to_html() == score(iter(GOLD), iter(BAD)).to_html()
    assert in_memory.to_html() != msgspec.structs.replace(in_memory, kept=None).to_html()
    judged = gate(BAD, gold=GOLD)
    assert judged.to_html() != gate(msgspec.structs.replace(in_memory, kept=None)).to_html()
    assert score(GOLD, BAD) == score(GOLD, list(BAD)) != score(GOLD, TRACES)


def test_a_page_shows_no_hits_of_rows_that_have_changed(folder: Folder) -> None:
    gold, rows = folder.write("gold.jsonl", GOLD), [dict(row) for row in TRACES]
    trace = folder.write("trace.jsonl", TRACES)
    in_memory, in_files = score(GOLD, rows), score(gold, trace)
    bare = msgspec.structs.replace(in_memory, kept=None).to_html()
    assert in_memory.to_html() != bare
    rows[0]["retrieved_ids"] = ["zz"]
    rows[0]["answer_json"] = {"claim": "Yes.", "citations": ["zz"]}
    trace.unlink()
    assert in_memory.to_html() == bare
    assert in_files.to_html() == msgspec.structs.replace(in_files, kept=None).to_html()
