"""A key twice in one object: an error in gold, a warning under `ship`, counted in traces."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, line_of, lines_of

TWICE = (
    b'{"qid": "A1", "question": "Does X support null keys?", "answerable": true, '
    b'"gold_citations": ["p1#2"], "gold_citations": ["p1#9"]}'
)
NESTED = (
    b'{"qid": "A1", "question": "What?", "answerable": true, "relevant": '
    b'[{"doc": "a.md", "start": 1, "end": 9, "end": 5}]}'
)
NATIVE = b'{"qid": "A9", "question": "Why?", "relevant": ["x"]}'
TRACE = (
    b'{"qid": "A1", "q": "Does X support null keys?", "retrieved_ids": ["p1#9"], "retrieved_ids": '
    b'["p1#2"], "answer_json": {"claim": "X rejects null keys.", "citations": ["p1#2"]}}'
)


def in_form(rows: list[bytes], form: str) -> tuple[bytes, str]:
    """Rows as a file of a kind, and its name."""
    if form == "array":
        return b"[\n" + b",\n".join(rows) + b"\n]\n", "gold.json"
    if form == "gzip":
        return gzip.compress(b"\n".join(rows), mtime=0), "gold.jsonl.gz"
    if form == "yaml":
        return b"".join(b"- " + row + b"\n" for row in rows), "gold.yaml"
    return b"".join(row + b"\n" for row in rows), "gold.jsonl"


@cases("form", ["lines", "array", "gzip", "yaml"])
@cases(("row", "key"), [(TWICE, "gold_citations"), (NESTED, "relevant[0].end")])
def test_a_key_twice_in_gold_is_an_error(folder: Folder, form: str, row: bytes, key: str) -> None:
    """Evidence would be lost without a word; the line, the item and the key are named."""
    gold, name = in_form([NATIVE, row], form)
    folder.write(name, gold)
    folder.write("trace.jsonl", TRACES)
    for command in (("score", name, "trace.jsonl"), ("validate", name)):
        outcome = folder.run(*command, "--profile", "all")
        assert outcome.exit_code == 3, outcome
        (problem,) = outcome.problems
        line = 3 if form == "array" else 2
        assert (problem.code, problem.where) == ("duplicate-key", f"{name}:{line}")
        assert problem.message == f"`{key}` stands twice in one object"
        assert "qid A1" in (problem.about or "")


def test_such_an_item_can_be_skipped_like_any_bad_line(folder: Folder) -> None:
    """It is counted, and nothing of it is scored."""
    gold = TWICE + b"\n" + lines_of(GOLD[1:])
    outcome = folder.score(None, "--profile", "all", "--on-bad-line", "skip", gold=gold)
    assert "1 bad line skipped" in outcome.err + outcome.out


@pytest.mark.parametrize("profile", ["ship", "smoke"])
def test_under_ship_and_smoke_the_last_wins_with_a_warning(folder: Folder, profile: str) -> None:
    """As in their sources; the scores are those of the last value alone."""
    rows = lines_of(GOLD[1:])
    once = TWICE.replace(b'"gold_citations": ["p1#2"], ', b"")
    folder.write("gold.jsonl", TWICE + b"\n" + rows)
    folder.write("once.jsonl", once + b"\n" + rows)
    folder.write("trace.jsonl", TRACES)
    options = ("--profile", profile, "--format", "json", "--full")
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", *options)
    plain = folder.run("score", "once.jsonl", "trace.jsonl", *options)
    warning = (
        "gold.jsonl: 1 row with a key twice in one object, of which the last counts; on line 1 "
        "`gold_citations` stands twice"
    )
    assert warning in outcome.err
    assert warning in json.loads(outcome.out)["warnings"]
    assert outcome.exit_code == plain.exit_code
    metrics = [json.loads(one.out)["metrics"] for one in (outcome, plain)]
    assert metrics[0] == metrics[1]
    validated = folder.run("validate", "gold.jsonl", "--profile", profile)
    assert validated.exit_code == 0
    assert "1 row with a key twice in one object" in validated.out


@pytest.mark.parametrize("workers", ["1", "2"])
def test_validate_counts_them_in_traces(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """Wherever they are, on the fast path and off it; the first one is named with its line."""
    monkeypatch.setattr("ragauge.scoring.engines.choose.WORKERS_FROM_BYTES", 0)
    monkeypatch.setattr("ragauge.scoring.engines.choose.cores", lambda: int(workers))
    odd = TRACE.replace(b'"q":', b'"turn": null, "error": null, "q":')
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", b"\n".join([line_of(TRACES[1]), TRACE, odd, line_of(TRACES[2])]))
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl")
    assert outcome.exit_code == 0
    assert (
        "trace.jsonl: 4 traces, dialect ship, 2 rows with a key twice in one object, of which the "
        "last counts; on line 2 `retrieved_ids` stands twice"
    ) in outcome.out
    alone = folder.run("validate", "--trace", "trace.jsonl")
    assert "2 rows with a key twice in one object" in alone.out


@pytest.mark.parametrize("workers", ["1", "2"])
def test_score_counts_those_that_only_the_exact_path_reads(folder: Folder, workers: str) -> None:
    """The same ones, however the file is cut; the last value is the one that is scored."""
    exact = b'{"qid": "A3", "delta_s": [0.1, 0.2], "topk": [["pB#1", 1]], "topk": ["pB#1", "p1#2"]}'
    rows = [TRACE, exact, line_of(TRACES[1])] * 2
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", b"\n".join(rows))
    options = ("--profile", "all", "--workers", workers, "--format", "json", "--full")
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", *options)
    scores = json.loads(outcome.out)
    assert [text for text in scores["warnings"] if "twice in one object" in text] == [
        "trace.jsonl: 2 rows with a key twice in one object, of which the last counts; on line 2 "
        "`topk` stands twice"
    ]
    assert scores["metrics"]["retrieval.recall@5"]["value"] == 1


def test_lint_names_them(folder: Folder) -> None:
    """As an error where they are one, else as a warning with its line."""
    folder.write("gold.jsonl", TWICE + b"\n" + lines_of(GOLD[1:]))
    strict = folder.run("gold", "lint", "gold.jsonl", "--profile", "all")
    assert strict.exit_code == 3
    assert "error[duplicate-key]: `gold_citations` stands twice in one object" in strict.out
    assert "--> gold.jsonl:1" in strict.out
    ship = folder.run("gold", "lint", "gold.jsonl", "--profile", "ship", "--format", "json")
    (finding,) = [one for one in json.loads(ship.out)["findings"] if one["rule"] == "duplicate-key"]
    assert (finding["severity"], finding["line"], finding["qid"]) == ("warning", 1, "A1")


def test_tools_that_write_gold_refuse_it_under_any_profile(folder: Folder) -> None:
    """A row that is written again would lose one of the two."""
    folder.write("docs/a.md", "# A\n\nSo it is. So it was.\n")
    folder.run("corpus", "build", "docs", "-o", "corpus")
    folder.write("gold.jsonl", TWICE + b"\n")
    outcome = folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "new.jsonl")
    assert outcome.exit_code == 3
    assert [problem.code for problem in outcome.problems] == ["duplicate-key"]
    assert not (folder.path / "new.jsonl").exists()


def test_a_unit_twice_above_the_items_of_a_yaml_file_is_an_error(folder: Folder) -> None:
    """Unless both say the same."""
    text = "unit: byte\nunit: {}\nitems:\n- {{qid: A1, question: Why?, relevant: [x]}}\n"
    folder.write("gold.yaml", text.format("char"))
    outcome = folder.run("validate", "gold.yaml")
    assert (outcome.exit_code, outcome.problems[0].code) == (3, "duplicate-key")
    folder.write("gold.yaml", text.format("byte"))
    assert folder.run("validate", "gold.yaml").exit_code == 0


def test_parquet_columns_of_one_name_are_refused_and_maps_judged(folder: Folder) -> None:
    """A map may have a key twice, as JSON may."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [pa.array(["A1"]), pa.array([["x"]]), pa.array([["y"]])]
    table = pa.Table.from_arrays(columns, names=["qid", "relevant", "relevant"])
    pq.write_table(table, folder.path / "gold.parquet")
    outcome = folder.run("validate", "gold.parquet")
    assert (outcome.exit_code, outcome.problems[0].code) == (3, "bad-parquet")
    assert "two columns" in outcome.problems[0].message
    grades = pa.array([[("a", 1.0), ("b", 2.0), ("a", 0.0)]], pa.map_(pa.string(), pa.float64()))
    pq.write_table(pa.table({"qid": ["A1"], "grades": grades}), folder.path / "gold.parquet")
    outcome = folder.run("validate", "gold.parquet")
    assert (outcome.exit_code, outcome.problems[0].code) == (3, "duplicate-key")
    assert "`grades.a`" in outcome.problems[0].message


def test_a_question_of_a_beir_folder_is_gold_too(folder: Folder) -> None:
    """The text of a question would be another one."""
    folder.write("set/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    folder.write("set/queries.jsonl", '{"_id": "q1", "text": "Why?", "text": "How: so?"}\n')
    outcome = folder.run("validate", "set")
    assert (outcome.exit_code, outcome.problems[0].code) == (3, "duplicate-key")
    assert outcome.problems[0].where == "set/queries.jsonl:1"
