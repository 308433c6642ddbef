"""Run files: a run with its hits as one file, which stands wherever a run can be named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge.errors import RagaugeError
from ragauge.testing import MarkerSettings, Scorer
from tests.support.command import Folder, Row

QUESTIONS = 20
GATES = '[gates]\n"retrieval.recall@5" = { max_drop = 0.02, policy = "point" }\n'
RULES = ("--profile", "all", "--k", "5", "--dialect", "native")


def gold() -> list[Row]:
    """Twenty questions, each with its evidence at a place of a document."""
    return [
        {
            "qid": f"Q{number:02}",
            "question": f"What is {number}?",
            "answerable": True,
            "gold_spans": [{"doc": "guide.md", "start": number * 100, "end": number * 100 + 80}],
        }
        for number in range(QUESTIONS)
    ]


def traces(chunker: str, *, size: int = 100, lost: int = 0) -> list[Row]:
    """Hits that hold the evidence, for all questions but the first `lost`, in chunks of a size."""
    rows = []
    for number in range(QUESTIONS):
        start = number * 100 if number >= lost else 9000 + number * 100
        start -= start % size
        hit = {
            "id": f"{chunker}-{start}", "doc": "guide.md", "offsets": [start, start + size],
            "doc_hash": "h1", "chunker_version": chunker,
        }  # fmt: skip
        rows.append({"qid": f"Q{number:02}", "hits": [hit]})
    return rows


@pytest.fixture
def base(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder with a run file of the base, in which everything is found."""
    folder.write("gold.jsonl", gold())
    folder.write("gates.toml", GATES)
    save(folder, monkeypatch, "base", traces("v1"), day=1)
    return folder


def save(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str, rows: list[Row], *, day: int
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_768_000_000 + 86_400 * day))
    folder.write(f"{name}.trace.jsonl", rows)
    done = folder.run(
        "score", "gold.jsonl", f"{name}.trace.jsonl", *RULES, "--save-run", f"{name}.jsonl.gz",
        "--run-id", name, "--commit", f"c0ffee{day:02}",
    )  # fmt: skip
    assert done.exit_code == 0, done.err
    assert f"saved the run {name} to {name}.jsonl.gz" in done.err
    assert not Path("ragauge.db").exists()  # nothing is stored


def score(folder: Folder, rows: list[Row], *more: str) -> Any:
    folder.write("head.trace.jsonl", rows)
    return folder.run(
        "score", "gold.jsonl", "head.trace.jsonl", *RULES, "--gates", "gates.toml", *more
    )


def test_a_saved_run_has_its_hits_and_the_same_bytes_each_time(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Path("base.jsonl.gz").read_bytes()
    lines = [json.loads(line) for line in gzip.decompress(first).splitlines()]
    assert [line["kind"] for line in lines].count("result") == QUESTIONS
    results = [line for line in lines if line["kind"] == "result"]
    assert results[0]["trace"]["hits"][0]["id"] == "v1-0"
    assert (lines[0]["run_id"], lines[0]["commit_hash"]) == ("base", "c0ffee01")
    save(base, monkeypatch, "base", traces("v1"), day=1)
    assert Path("base.jsonl.gz").read_bytes() == first


def test_compare_takes_run_files_as_either_side(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a run file stand a run file, a stored run and a trace file; all on their hits."""
    save(base, monkeypatch, "head", traces("v2", size=50, lost=2), day=2)
    stored = base.run(
        "score", "gold.jsonl", "head.trace.jsonl", *RULES, "--store", "--run-id", "kept"
    )
    assert stored.exit_code == 0, stored.err
    trace_file = ("--gold", "gold.jsonl", "--profile", "all", "--k", "5", "--dialect", "native")
    for other, more in (("head.jsonl.gz", ()), ("kept", ()), ("head.trace.jsonl", trace_file)):
        done = base.run("compare", "base.jsonl.gz", other, "--format", "json", *more)
        document = json.loads(done.out)
        assert document["deltas"]["chunker_version_match"] == "fallback_doc_span", other
        # 2 of 20 questions lost their evidence, in chunks of another size
        delta = document["deltas"]["retrieval.recall@5"]
        assert (delta["delta"], delta["n"]) == (-0.1, 20), other
        assert document["run_a"] == "base"
    swapped = base.run("compare", "head.jsonl.gz", "base.jsonl.gz", "--format", "json")
    assert json.loads(swapped.out)["deltas"]["retrieval.recall@5"]["delta"] == 0.1


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (2, 1)])
def test_a_baseline_may_be_a_run_file_whatever_the_chunks(
    base: Folder, lost: int, code: int
) -> None:
    """A re-chunked run is judged on its hits: it passes if nothing is lost, else it fails."""
    rows = traces("v2", size=50, lost=lost)
    done = score(base, rows, "--baseline", "base.jsonl.gz", "--save-run", "head.jsonl.gz")
    assert done.exit_code == code, done.out + done.err
    assert f"1.0000 in the baseline, {1 - lost / 20:.4f} now, on 20 common questions" in done.out
    gated = base.run(
        "gate", "head.jsonl.gz", "--baseline", "base.jsonl.gz", "--gates", "gates.toml"
    )
    assert gated.exit_code == code, gated.out + gated.err


@pytest.mark.parametrize("command", ["compare", "gate", "view", "keep"])
def test_a_run_file_that_was_changed_is_refused(base: Folder, command: str) -> None:
    data = gzip.decompress(Path("base.jsonl.gz").read_bytes())
    Path("bad.jsonl").write_bytes(data.replace(b"v1-100", b"v1-900"))
    arguments = {
        "compare": ["compare", "base.jsonl.gz", "bad.jsonl"],
        "gate": ["gate", "base.jsonl.gz", "--baseline", "bad.jsonl", "--gates", "gates.toml"],
        "view": ["view", "bad.jsonl", "--no-open"],
        "keep": ["runs", "keep", "bad.jsonl", "--in", "kept"],
    }
    done = base.run(*arguments[command])
    assert (done.exit_code, done.problems[0].code) == (3, "bad-export"), done.err
    assert not Path("kept").exists()


def test_a_first_line_of_a_newer_version_is_told(base: Folder) -> None:
    data = gzip.decompress(Path("base.jsonl.gz").read_bytes())
    head = data.replace(b'"schema_version":1', b'"schema_version":99')
    Path("newer.jsonl").write_bytes(head)
    done = base.run("compare", "base.jsonl.gz", "newer.jsonl")
    assert (done.exit_code, done.problems[0].code) == (3, "bad-export")
    assert done.problems[0].where == "newer.jsonl:1"


def test_names_of_run_files_have_their_suffix(base: Folder) -> None:
    done = score(base, traces("v1"), "--save-run", "run.db")
    assert done.exit_code == 2
    assert "--save-run run.db: the name ends with .jsonl or .jsonl.gz" in done.err
    over = score(base, traces("v1"), "--save-run", "base.jsonl.gz", "--baseline", "base.jsonl.gz")
    assert over.exit_code == 2
    assert "would replace the baseline" in over.err


def test_nothing_measured_saves_no_run(base: Folder) -> None:
    done = score(base, [{"qid": "X", "hits": []}], "--save-run", "none.jsonl.gz")
    assert done.exit_code == 5
    assert "no run was saved" in done.err
    assert not Path("none.jsonl.gz").exists()


# --- folders of kept runs, and several baselines ---


def keep(folder: Folder, name: str, *more: str) -> None:
    done = folder.run("runs", "keep", f"{name}.jsonl.gz", "--in", "kept", *more)
    assert done.exit_code == 0, done.err


ALL_THREE = (
    "--baseline", "latest:kept", "--baseline", "pinned:kept", "--baseline", "best-of:3:kept",
)  # fmt: skip


def test_a_folder_keeps_the_newest_runs_and_its_pin(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run is the pin until another is pinned, and stays when it is among the oldest."""
    keep(base, "base", "--last", "2")
    for day in (2, 3, 4):
        save(base, monkeypatch, f"run{day}", traces("v1"), day=day)
        keep(base, f"run{day}", "--last", "2")
    names = sorted(path.name for path in Path("kept").iterdir())
    assert names == [
        "20260112T230640Z-run3.jsonl.gz", "20260113T230640Z-run4.jsonl.gz", "pinned.jsonl.gz",
    ]  # fmt: skip
    assert Path("kept/pinned.jsonl.gz").read_bytes() == Path("base.jsonl.gz").read_bytes()
    keep(base, "run4", "--pin")
    assert Path("kept/pinned.jsonl.gz").read_bytes() == Path("run4.jsonl.gz").read_bytes()
    keep(base, "run4")  # once more is no second run
    assert len(list(Path("kept").iterdir())) == 3
    shown = base.run("compare", "pinned:kept", "latest:kept", "--format", "json")
    assert json.loads(shown.out)["run_a"] == "run4"


def test_a_small_step_passes_the_newest_run_and_fails_the_best_and_the_pinned(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1.00, then 0.95; 0.95 - 0.05 again is no drop of the newest, and a drop of the best."""
    keep(base, "base")
    save(base, monkeypatch, "second", traces("v1", lost=1), day=2)
    keep(base, "second")
    moving = score(base, traces("v1", lost=1), "--baseline", "latest:kept")
    assert moving.exit_code == 0, moving.out
    done = score(base, traces("v1", lost=1), *ALL_THREE, "-o", "scores.json")
    assert done.exit_code == 1, done.out
    gates = json.loads(Path("scores.json").read_text())["verdict"]["gates"]
    assert [(gate["against"], gate["status"], gate["value"]) for gate in gates] == [
        ("latest", "pass", 0.0), ("pinned", "fail", 0.05), ("best-of:3", "fail", 0.05),
    ]  # fmt: skip
    assert "against base: 1.0000 in the baseline, 0.9500 now" in gates[2]["reason"]
    assert "for the best of 2 runs" in gates[2]["reason"]
    assert "vs best-of:3" in done.out


def test_bounds_against_the_best_run_are_wider(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of some runs was lucky: the same two runs, and an interval for all of them."""
    keep(base, "base")
    for day in (2, 3, 4):
        save(base, monkeypatch, f"run{day}", traces("v1", lost=4), day=day)
        keep(base, f"run{day}")
    both = ("--baseline", "pinned:kept", "--baseline", "best-of:4:kept")
    done = score(base, traces("v1", lost=4), *both, "-o", "scores.json")
    pinned, best = json.loads(Path("scores.json").read_text())["verdict"]["gates"]
    assert pinned["value"] == best["value"] == 0.2
    assert best["interval"][0] < pinned["interval"][0]
    assert best["interval"][1] > pinned["interval"][1]
    assert done.exit_code == 1


def test_the_best_run_is_chosen_for_each_metric(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run is best by recall, another by its first ranks: each gate has its own."""
    second = [{**row, "hits": [{"id": "other"}, *row["hits"]]} for row in traces("v1")]
    keep(base, "base")  # recall 1, mrr 1
    save(base, monkeypatch, "later", second, day=2)  # recall 1, mrr 1/2
    keep(base, "later")
    base.write("gates.toml", GATES + '"retrieval.mrr@5" = { max_drop = 0.02, policy = "point" }\n')
    done = score(base, second, "--baseline", "best-of:2:kept", "-o", "scores.json")
    assert done.exit_code == 1
    gates = json.loads(Path("scores.json").read_text())["verdict"]["gates"]
    recall, mrr = sorted(gates, key=lambda gate: gate["metric"], reverse=True)
    assert recall["status"] == "pass"
    assert "against later" in recall["reason"]  # as good as the first, and newer
    assert "against base" in mrr["reason"]
    assert mrr["value"] == 0.5


def test_the_best_run_of_a_slice_is_chosen_by_the_slice(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten questions of each type. The later run is better of all, and worse of the tables."""
    base.write(
        "gold.jsonl",
        [{**row, "type": "table" if at < 10 else "text"} for at, row in enumerate(gold())],
    )
    worse_tables = traces("v1", lost=2)  # 18 of 20, of tables 8 of 10
    worse_texts = [  # 15 of 20, of tables 10 of 10
        {**row, "hits": [{"id": "x"}]} if at >= 15 else row for at, row in enumerate(traces("v1"))
    ]
    for day, (name, rows) in enumerate([("early", worse_texts), ("late", worse_tables)], 1):
        save(base, monkeypatch, name, rows, day=day)
        keep(base, name)
    base.write(
        "gates.toml",
        GATES.replace("max_drop = 0.02", 'max_drop = 0.1, slice = "type=table"'),
    )
    done = score(base, worse_tables, "--baseline", "best-of:2:kept", "-o", "scores.json")
    (gate,) = json.loads(Path("scores.json").read_text())["verdict"]["gates"]
    assert "against early: 1.0000 in the baseline, 0.8000 now" in gate["reason"]
    assert (gate["value"], gate["n"], done.exit_code) == (0.2, 10, 1)


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (4, 1)])
def test_a_drop_of_a_slice_is_judged_across_chunkings(
    base: Folder, monkeypatch: pytest.MonkeyPatch, lost: int, code: int
) -> None:
    """Other chunks, ten questions of each type: those of the other type are not gone."""
    base.write(
        "gold.jsonl",
        [{**row, "type": "table" if at < 10 else "text"} for at, row in enumerate(gold())],
    )
    save(base, monkeypatch, "base", traces("v1"), day=1)
    base.write("gates.toml", GATES.replace("policy", 'slice = "type=table", policy'))
    rows = traces("v2", size=200, lost=lost)
    done = score(base, rows, "--baseline", "base.jsonl.gz", "-o", "scores.json")
    (gate,) = json.loads(Path("scores.json").read_text())["verdict"]["gates"]
    assert (gate["value"], gate["n"], done.exit_code) == (lost / 10, 10, code), gate["reason"]


def test_the_self_test_tries_gates_against_every_baseline(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest run is as this one; four questions differ from the pinned one, and move alone."""
    keep(base, "base")
    save(base, monkeypatch, "later", traces("v1", lost=4), day=2)
    keep(base, "later")
    base.write("gates.toml", GATES + '"retrieval.hit@5" = ">= 0.5"\n')
    tested = base.run(
        "gate", "later.jsonl.gz", "--gates", "gates.toml", "--self-test", *ALL_THREE,
        "--format", "json",
    )  # fmt: skip
    assert tested.exit_code == 0, tested.err
    gates = json.loads(tested.out)["gates"]
    assert [(gate["metric"], gate["against"]) for gate in gates] == [
        ("retrieval.recall@5", "latest"), ("retrieval.recall@5", "pinned"),
        ("retrieval.recall@5", "best-of:3"), ("retrieval.hit@5", None),
    ]  # fmt: skip
    latest, pinned, best, level = (gate["flips"] for gate in gates)
    assert latest == 0.0
    assert level < 0.01  # 0.8 of 20 questions, against 0.5
    assert pinned == 5 / 16  # more of four go down than up: (1 + 4) of 16
    assert best > pinned


def test_without_a_kept_run_there_is_no_verdict_but_for_the_first(base: Folder) -> None:
    """--allow-no-baseline is for a folder that keeps nothing at all, and for no other."""
    done = score(base, traces("v1"), *ALL_THREE)
    assert (done.exit_code, done.problems[0].code) == (4, "no-baseline"), done.err
    first = score(base, traces("v1"), *ALL_THREE, "--allow-no-baseline")
    assert first.exit_code == 0, first.err
    assert "note: kept keeps no run yet" in first.err
    keep(base, "base")
    Path("kept/pinned.jsonl.gz").unlink()
    torn = score(base, traces("v1", lost=20), *ALL_THREE, "--allow-no-baseline")
    assert (torn.exit_code, torn.problems[0].message) == (4, "`kept` keeps no pinned run")


def test_a_foreign_file_among_kept_runs_is_refused(base: Folder) -> None:
    keep(base, "base")
    base.write("kept/trace.jsonl", traces("v1"))
    done = score(base, traces("v1"), "--baseline", "latest:kept")
    assert (done.exit_code, done.problems[0].code) == (3, "bad-export")
    assert done.problems[0].where == "kept/trace.jsonl"


def test_baselines_in_the_configuration(base: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list in ragauge.toml, whose folders are seen from the file."""
    keep(base, "base")
    save(base, monkeypatch, "second", traces("v1", lost=1), day=2)
    keep(base, "second")
    base.write("ragauge.toml", 'baseline = ["latest:kept", "pinned:kept"]\n' + GATES)
    Path("below").mkdir()
    for config in ("ragauge.toml", "../ragauge.toml"):
        done = base.run(
            "score", "gold.jsonl", "second.trace.jsonl", *RULES,
            "--config", f"{Path.cwd() if config[0] == '.' else '.'}/ragauge.toml",
        )  # fmt: skip
        assert done.exit_code == 1, done.out + done.err
        assert "vs pinned" in done.out


@pytest.mark.parametrize("name", ["best-of", "best-of:0", "best-of:x", "best-of:5:"])
def test_a_misspelt_baseline_is_a_usage_error(base: Folder, name: str) -> None:
    done = score(base, traces("v1"), "--baseline", name)
    assert done.exit_code == 2
    assert "best-of:10, best-of:10@main, or best-of:10:FOLDER" in done.err


def test_the_best_of_a_store_is_of_the_suite_and_the_branch(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lucky run of a pull request is no baseline of the main branch."""
    for number, (branch, suite, lost) in enumerate(
        [("main", "default", 1), ("pr", "default", 0), ("main", "other", 0)]
    ):
        monkeypatch.setenv("RAGAUGE_BRANCH", branch)
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_768_000_000 + number))
        base.write("stored.jsonl", traces("v1", lost=lost))
        stored = base.run(
            "score", "gold.jsonl", "stored.jsonl", *RULES, "--store", "--suite", suite,
            "--run-id", f"run{number}",
        )  # fmt: skip
        assert stored.exit_code == 0, stored.err
    on_main = score(base, traces("v1", lost=1), "--baseline", "best-of:5@main")
    assert on_main.exit_code == 0, on_main.out + on_main.err
    on_any = score(base, traces("v1", lost=1), "--baseline", "best-of:5")
    assert on_any.exit_code == 1
    assert "against run1" in on_any.out.replace("\n", " ")
    none = score(base, traces("v1"), "--baseline", "best-of:5@gone")
    assert (none.exit_code, none.problems[0].code) == (4, "no-baseline")


def test_a_run_of_other_questions_is_not_the_best(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the questions changed: the older run is better, and says nothing of this one."""
    keep(base, "base")
    changed = [{**row, "question": "Other?"} if at % 2 else row for at, row in enumerate(gold())]
    base.write("gold.jsonl", changed)
    save(base, monkeypatch, "second", traces("v1", lost=2), day=2)
    keep(base, "second")
    done = score(base, traces("v1", lost=2), "--baseline", "best-of:5:kept", "-o", "scores.json")
    assert done.exit_code == 0, done.out + done.err
    (gate,) = json.loads(Path("scores.json").read_text())["verdict"]["gates"]
    assert "against second" in gate["reason"]


def test_a_diagnosis_reads_run_files_and_folders(
    base: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four questions lost their evidence since: the same, whatever the runs are named by."""
    keep(base, "base")
    save(base, monkeypatch, "later", traces("v1", lost=4), day=2)
    said = []
    for baseline in ("base.jsonl.gz", "latest:kept", "pinned:kept"):
        done = base.run("diagnose", "later.jsonl.gz", "--baseline", baseline, "--format", "json")
        assert done.exit_code == 0, done.err
        said.append(json.loads(done.out))
    assert said[0]["findings"]
    assert said[0] == said[1] == said[2]
    files = base.run("diagnose", "gold.jsonl", "later.trace.jsonl", "--baseline", "base.jsonl.gz")
    assert files.exit_code == 0, files.err
    assert "against base" in files.out


def test_a_diagnosis_reads_the_field_names_of_the_project(base: Folder) -> None:
    base.write(
        "own.jsonl",
        [{"qid": row["qid"], "sources": row["hits"]} for row in traces("v1")],
    )
    plain = base.run(
        "diagnose", "gold.jsonl", "base.trace.jsonl", "--profile", "all", "--format", "json"
    )
    base.write("ragauge.toml", '[fields]\nhits = "sources"\n')
    done = base.run("diagnose", "gold.jsonl", "own.jsonl", "--profile", "all", "--format", "json")
    assert done.exit_code == 0, done.err
    own, native = (json.loads(found.out) for found in (done, plain))
    assert [each["id"] for each in own["findings"]] == [each["id"] for each in native["findings"]]


# --- wherever a run is read ---


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (3, 1)])
def test_python_judges_a_run_file_against_another(
    base: Folder, monkeypatch: pytest.MonkeyPatch, lost: int, code: int
) -> None:
    """The head is cut otherwise, so only its hits show that nothing was lost, or three of 20."""
    save(base, monkeypatch, "head", traces("v2", size=200, lost=lost), day=2)
    monkeypatch.chdir(base.path)
    gates = {"retrieval.recall@5": {"max_drop": 0.02}}
    files = "head.jsonl.gz", "base.jsonl.gz"
    verdict = ragauge.gate(files[0], gates, baseline=files[1])
    assert verdict.exit_code == code
    rows = traces("v2", size=200, lost=lost)
    rules: dict[str, Any] = {"gold": gold(), "profile": "all", "k": (5,), "dialect": "native"}
    assert ragauge.gate(rows, gates, baseline=files[1], **rules).exit_code == code
    compared = ragauge.compare(files[1], files[0], gates=gates, fail_on="regression")
    assert compared.exit_code == code
    assert compared.recognised == "fallback_doc_span"
    assert compared.kinds["regression"] == lost
    mixed = ragauge.compare(files[1], rows, fail_on="regression", **rules)
    assert (mixed.exit_code, mixed.kinds["regression"]) == (code, lost)
    with pytest.raises(RagaugeError, match="takes no options"):
        ragauge.compare(*files, profile="kb")


@pytest.mark.parametrize(("lost", "fails"), [(0, False), (3, True)])
def test_tests_judge_a_drop_against_a_run_file(base: Folder, lost: int, *, fails: bool) -> None:
    """With its hits: by the scores alone a new chunking would look like anything."""
    base.write("head.jsonl", traces("v2", size=200, lost=lost))
    settings = MarkerSettings(
        gold=str(base.path / "gold.jsonl"),
        trace=str(base.path / "head.jsonl"),
        baseline=str(base.path / "base.jsonl.gz"),
        gates={"retrieval.recall@5": {"max_drop": 0.02}},
        profile="all",
        dialect="native",
        k=(5,),
        config="none",
    )
    scored = Scorer(base.path).scored(settings)
    (result,) = scored.judged([gate for gate in scored.gates if gate.is_drop]).gates
    assert result.status == ("fail" if fails else "pass")
    assert result.value == pytest.approx(lost / QUESTIONS)


def test_shadow_and_prompt_read_run_files(base: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they read the same traces; a folder of kept runs names one, too."""
    save(base, monkeypatch, "head", traces("v2", size=200, lost=3), day=2)
    by_file = base.run(
        *("shadow", "--live", "base.jsonl.gz", "--shadow", "head.jsonl.gz", "--format", "json")
    )
    by_traces = base.run(
        *("shadow", "--live", "base.trace.jsonl", "--shadow", "head.trace.jsonl"),
        *("--gold", "gold.jsonl", "--format", "json"),
    )
    assert by_file.exit_code == by_traces.exit_code
    one, other = json.loads(by_file.out), json.loads(by_traces.out)
    assert one["deltas"]["retrieval.recall@5"] == other["deltas"]["retrieval.recall@5"]
    assert one["chunker_version_match"] == "fallback_doc_span"
    assert base.run("runs", "keep", "base.jsonl.gz", "--in", "kept").exit_code == 0
    kept = base.run("shadow", "--live", "latest:kept", "--shadow", "head.jsonl.gz")
    assert kept.exit_code == by_file.exit_code
    prompted = base.run("prompt", "head.jsonl.gz")
    assert prompted.exit_code == 0
    assert prompted.out == base.run("prompt", "gold.jsonl", "head.trace.jsonl").out
    assert base.run("prompt", "head.trace.jsonl").exit_code == 2
    assert base.run("prompt", "pinned:kept").exit_code == 0
