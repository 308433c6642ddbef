"""`ragauge shadow`: two indexes, the gates of canary, and what the two have in common."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from ragauge.store import runs as run_store
from tests.support.command import Folder, Row
from tests.support.stored_runs import URL, put

QIDS = [f"q{n}" for n in range(6)]
KINDS = dict(zip(QIDS, "ppptt?", strict=True))


def gold_of(qid: str) -> Row:
    """One piece of evidence; those of q3 and q4 are tables, that of q5 says nothing."""
    name = f"S.1.{KINDS[qid]}.Bk00{qid[1:]}" if KINDS[qid] != "?" else qid
    return {
        "qid": qid, "paraphrases": [f"{qid}?", f"{qid}, please?"], "anchor_section": "S.1",
        "relevant": [{"id": name, "doc": "d", "start": 100, "end": 200}],
    }  # fmt: skip


GOLD = [gold_of(qid) for qid in QIDS]


def evidence(qid: str) -> str:
    name: str = GOLD[QIDS.index(qid)]["relevant"][0]["id"]
    return name


def asked(qid: str, n: int, *, hits: list[str] | None = None, cited: Row | None = None) -> Row:
    name = evidence(qid)
    return {
        "qid": qid, "query": GOLD[QIDS.index(qid)]["paraphrases"][n],
        "topk": [{"id": each, "doc": "d", "offsets": [100, 200]} if each == name else {"id": each}
                 for each in hits or [name, "x"]],
        "ΔS": [0.2, 0.3], "embed_model": "e5",
        "answer_citations": [cited or {"id": name, "doc": "d", "offsets": [100, 200]}],
    }  # fmt: skip


LIVE = [asked(qid, n) for qid in QIDS for n in (0, 1)]
# The shadow loses the evidence of q3 among the hits, and still cites it.
WORSE = [
    asked(qid, n, hits=["x", "y"] if qid == "q3" else None) for qid in QIDS for n in (0, 1)
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs of this page, made once."""
    path = tmp_path_factory.mktemp("made")
    with chdir(path), run_store.opened_store(URL, create=True) as store:
        put(store, "live", LIVE, gold=GOLD, profile="canary")
        put(store, "same", LIVE, gold=GOLD, profile="canary", day=2)
        put(store, "worse", WORSE, gold=GOLD, profile="canary", day=3)
        put(store, "half", LIVE[:-1], gold=GOLD, profile="canary", day=4)
        put(store, "plain", LIVE, gold=GOLD, profile="all", day=5)
    return path


@pytest.fixture
def runs(folder: Folder, made: Path) -> Folder:
    for each in made.iterdir():
        folder.write(each.name, each.read_bytes())
    return folder


def judged(folder: Folder, *arguments: str) -> tuple[int, Any]:
    found = folder.run("shadow", *arguments, "--format", "json")
    return found.exit_code, json.loads(found.out)


def test_an_index_like_the_live_one_is_eligible(runs: Folder) -> None:
    found = runs.run("shadow", "--live", "live", "--shadow", "same")
    assert found.exit_code == 0
    assert found.out.splitlines()[-1] == "eligible for canary"
    code, document = judged(runs, "--live", "live", "--shadow", "same")
    assert (code, document["schema"]) == (0, "ragauge.shadow/1")
    assert (document["decision"], document["failed"]) == ("eligible", [])
    agreement = document["agreement"]
    assert [agreement[name]["value"] for name in ("citations", "rbo", "tau")] == [1.0, 1.0, 1.0]
    assert (agreement["slots"], agreement["meets_target"]) == (12, True)
    assert all(each["delta"] == 0 for each in document["deltas"].values())


def test_a_lost_table_fails_the_drop_and_is_named(runs: Folder) -> None:
    """Recall falls from 1 to 5/6: 0.1667 is more than 0.02."""
    code, document = judged(runs, "--live", "live", "--shadow", "worse", "--min-n", "2")
    assert (code, document["decision"]) == (1, "not-eligible")
    (failed,) = document["failed"]
    assert failed["gate"] == "recall_drop"
    assert [each["qid"] for each in failed["worst"]] == ["q3"]
    assert failed["step"].startswith("Look at what the live index finds")
    recall = document["deltas"]["retrieval.recall@5"]
    assert (recall["live"], recall["shadow"], recall["delta"]) == (1.0, 0.8333, -0.1667)
    # q3 and q4 have tables: half of them is lost, and no prose is
    types = {
        name: part["deltas"]["retrieval.recall@5"]["delta"]
        for name, part in document["by_type"].items()
    }
    assert types == {"prose": 0.0, "table": -0.5}
    assert document["by_type"]["table"]["n"] == 2
    # the hits of q3 have one of two in common, at another rank; its citations are the same
    assert document["agreement"]["citations"]["value"] == 1.0
    assert document["agreement"]["rbo"]["value"] < 1.0
    assert document["kinds"]["retrieval"]["regression"] == 1


def test_a_type_with_few_questions_shows_its_n_alone(runs: Folder) -> None:
    _, document = judged(runs, "--live", "live", "--shadow", "worse")
    assert document["by_type"] == {"prose": {"n": 3, "deltas": {}}, "table": {"n": 2, "deltas": {}}}


def test_missing_slots_cannot_be_judged(runs: Folder) -> None:
    found = runs.run("shadow", "--live", "live", "--shadow", "half")
    assert found.exit_code == 4
    assert found.out.splitlines()[-1].startswith("cannot be judged: 1 slot has no trace")
    allowed = runs.run("shadow", "--live", "live", "--shadow", "half", "--allow-missing")
    assert allowed.exit_code == 1, "what live was asked and the shadow lost counts as the worst"
    assert "1 slot without a result counted as the worst" in " ".join(allowed.out.split())
    assert "1 slot only in the live run: not compared" in allowed.out


FAILING = [
    {"qid": row["qid"], "query": row["query"], "error": "down"} if row["qid"] == "q0" else row
    for row in LIVE
]  # fmt: skip


def broken(rows: list[Row]) -> list[Row]:
    return [{"qid": row["qid"], "query": row["query"], "error": "down"} for row in rows]


@pytest.mark.parametrize(
    ("live", "flag", "told", "note"),
    [
        (
            broken(LIVE), "--allow-errored",
            "12 traces of the baseline carry an error, on 6 of 6 compared questions: q0, q1, q2, "
            "q3, q4 and 1 more; --allow-errored judges without them",
            "live: 12 of 12 traces with an error",
        ),
        (
            FAILING, "--allow-errored",
            "2 traces of the baseline carry an error, on 1 of 6 compared questions: q0; "
            "--allow-errored judges without them",
            "live: 2 of 12 traces with an error",
        ),
        (
            LIVE[2:], "--allow-missing",
            "1 of 6 compared questions has no trace in the baseline: q0; --allow-missing judges "
            "without them",
            "live: 1 of 6 questions without a trace",
        ),
        (
            LIVE[1:], "--allow-missing",
            "1 slot of the baseline has no trace; fewest traces: q0; --allow-missing judges all "
            "the same",
            "live: 1 slot (paraphrase × seed) without a trace",
        ),
    ],
)  # fmt: skip
def test_a_live_index_with_gaps_lets_no_shadow_in(
    runs: Folder, live: list[Row], flag: str, told: str, note: str
) -> None:
    """The shadow loses q3: without the gap of live it falls by 1/5, or by 1/6 where all is there.

    A live index that is down leaves nothing to fall from, whatever is allowed.
    """
    runs.write("broken.jsonl", live)
    runs.write("worse.jsonl", WORSE)
    sides = ("--live", "broken.jsonl", "--shadow", "worse.jsonl", "--gold", "gold.jsonl")
    code, document = judged(runs, *sides)
    assert (code, document["decision"]) == (4, "not-evaluable")
    drop = next(each for each in document["verdict"]["gates"] if each["drop"])
    assert (drop["status"], drop["value"], drop["reason"]) == ("not-evaluable", None, told)
    assert document["notes"][-1] == note
    (failed,) = document["failed"]
    assert failed["worst"] == []
    assert failed["step"].startswith("Ask the live index again")
    allowed, document = judged(runs, *sides, flag)
    assert allowed == (4 if len(live) == 12 and live is not FAILING else 1)
    drop = next(each for each in document["verdict"]["gates"] if each["drop"])
    whole = len(live) == 11
    fallen = None if allowed == 4 else 0.1667 if whole else 0.2
    assert drop["value"] == fallen
    assert note in document["notes"]


def test_errors_of_both_sides_are_told_in_every_format(runs: Folder) -> None:
    runs.write("one.jsonl", FAILING)
    sides = ("--live", "one.jsonl", "--shadow", "one.jsonl", "--gold", "gold.jsonl")
    for kind in ("table", "md", "json"):
        found = runs.run("shadow", *sides, "--format", kind)
        assert found.exit_code == 4
        for side in ("live", "shadow"):
            assert f"{side}: 2 of 12 traces with an error" in found.out


def test_runs_of_another_profile_are_scored_again(runs: Folder) -> None:
    one = judged(runs, "--live", "live", "--shadow", "same")[1]
    other = judged(runs, "--live", "plain", "--shadow", "plain")[1]
    for name in ("verdict", "deltas", "agreement", "by_type", "decision"):
        assert one[name] == other[name]


def test_gates_of_the_command_line_go_on_top(runs: Folder) -> None:
    arguments = ("--live", "live", "--shadow", "worse")
    assert judged(runs, *arguments, "--gates", "recall_drop=0.2")[0] == 0
    assert judged(runs, *arguments, "--gates", "recall_drop=0.01")[0] == 1


def test_trace_files_are_judged_as_stored_runs_are(runs: Folder) -> None:
    runs.write("live.jsonl", LIVE)
    runs.write("worse.jsonl", WORSE)
    files = judged(runs, "--live", "live.jsonl", "--shadow", "worse.jsonl", "--gold", "gold.jsonl")
    stored = judged(runs, "--live", "live", "--shadow", "worse")
    assert files[0] == stored[0] == 1
    for name in ("deltas", "agreement", "by_type", "failed", "decision"):
        one, other = (
            json.dumps(each[name]).replace("worse.jsonl", "trace.jsonl")
            for each in (files[1], stored[1])
        )
        assert one == other


def test_a_file_and_a_run_can_be_mixed(runs: Folder) -> None:
    runs.write("worse.jsonl", WORSE)
    found = judged(runs, "--live", "live", "--shadow", "worse.jsonl", "--gold", "gold.jsonl")
    assert found[0] == 1


MODULE = """\
import json

def asked(which):
    with open(which, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {row["query"]: row for row in rows}

def live(question):
    return asked("live.jsonl")[question]

def worse(question):
    print("thinking")
    return asked("worse.jsonl")[question]
"""


def test_targets_are_asked_and_stored(runs: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.write("live.jsonl", LIVE)
    runs.write("worse.jsonl", WORSE)
    runs.write("system_under_shadow.py", MODULE)
    monkeypatch.syspath_prepend(str(runs.path))
    found = runs.run(
        "shadow", "--live", "python:system_under_shadow:live", "--shadow",
        "python:system_under_shadow:worse", "--gold", "gold.jsonl", "--format", "json",
        "--store", "sqlite:///asked.db",
    )  # fmt: skip
    assert found.exit_code == 1
    document = json.loads(found.out)
    stored = judged(runs, "--live", "live", "--shadow", "worse")[1]
    for name in ("deltas", "by_type", "decision"):
        assert document[name] == stored[name]
    with run_store.opened_store("sqlite:///asked.db") as store:
        assert [each.results for each in store.runs()] == [12, 12]
    assert found.err.count("12 results as") == 2


def test_a_target_that_is_down_is_told_when_it_was_asked(
    runs: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write("live.jsonl", LIVE)
    runs.write("system_that_is_down.py", MODULE + DOWN)
    monkeypatch.syspath_prepend(str(runs.path))
    found = runs.run(
        "shadow", "--live", "python:system_that_is_down:down", "--shadow",
        "python:system_that_is_down:live", "--gold", "gold.jsonl", "--store", "sqlite:///asked.db",
    )  # fmt: skip
    assert found.exit_code == 4
    live, shadow = found.err.splitlines()[-2:]
    assert live.startswith("stored live: 12 results as ")
    assert live.endswith(", 12 of them errors: 12 × RuntimeError: index is offline")
    assert shadow.startswith("stored shadow: 12 results as ")
    assert "error" not in shadow


DOWN = """
def down(question):
    raise RuntimeError("index is offline")
"""


@pytest.mark.parametrize("side", ["live", "shadow"])
def test_an_interrupt_at_once_still_names_the_run(
    runs: Folder, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    """The second interrupt leaves no time to count."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    runs.write("live.jsonl", LIVE)
    runs.write("system_to_interrupt.py", MODULE)
    monkeypatch.syspath_prepend(str(runs.path))
    monkeypatch.setattr("ragauge.run.run.ask_all", interrupted)
    sides = {"live": "same", "shadow": "same", side: "python:system_to_interrupt:live"}
    found = runs.run(
        "shadow", "--live", sides["live"], "--shadow", sides["shadow"], "--gold", "gold.jsonl"
    )
    assert (found.exit_code, found.out) == (130, "")
    with run_store.opened_store(URL) as store:
        (run,) = [each for each in store.runs() if each.status == "incomplete"]
    assert found.err == (
        f"interrupted: what the {side} index answered so far was stored\n"
        f"  hint: go on with `ragauge run --resume {run.run_id} --store {URL}`, then judge it as "
        f"--{side} {run.run_id}\n"
    )


def without_answers(rows: list[Row]) -> list[Row]:
    return [
        {name: value for name, value in row.items() if name != "answer_citations"} for row in rows
    ]


def test_an_index_without_answers_is_judged_only_where_that_is_said(folder: Folder) -> None:
    """Recall is equal, ΔS is 0.25 and every wording finds its evidence; nothing is cited."""
    folder.write("gold.jsonl", GOLD)
    folder.write("live.jsonl", without_answers(LIVE))
    sides = ("--live", "live.jsonl", "--shadow", "live.jsonl", "--gold", "gold.jsonl")
    code, document = judged(folder, *sides)
    assert (code, document["decision"], document["unjudged"]) == (4, "not-evaluable", [])
    code, document = judged(folder, *sides, "--index-only")
    assert (code, document["decision"]) == (0, "eligible")
    assert document["unjudged"] == ["coverage", "citation accuracy"]
    assert [gate["name"] for gate in document["verdict"]["gates"]] == [
        "delta_s_median", "delta_s_p90", "recall_drop", "convergent",
    ]  # fmt: skip
    told = folder.run("shadow", *sides, "--index-only").out
    assert "(index only; not judged: coverage, citation accuracy)" in " ".join(told.split())


def test_answers_never_go_unjudged(runs: Folder) -> None:
    found = runs.run("shadow", "--live", "live", "--shadow", "same", "--index-only")
    assert found.exit_code == 2
    assert "has answers, which would go unjudged" in found.err


# The same text in other chunks: by id nothing agrees, by place everything does.
CHUNKED_GOLD = [
    {"qid": qid, "paraphrases": ["?", "??"], "relevant": [f"a{n}"], "answerable": True}
    for n, qid in enumerate("pqr")
]


def rechunked(prefix: str, version: str, shift: int) -> list[Row]:
    rows = []
    for n, qid in enumerate("pqr"):
        place = {"doc": "d", "offsets": [100 * n + shift, 100 * n + 100 - shift]}
        hit = {"id": f"{prefix}{n}", **place, "chunker_version": version, "doc_hash": "h"}
        for words in ("?", "??"):
            rows.append({
                "qid": qid, "query": words, "topk": [hit], "ΔS": [0.2], "embed_model": "e5",
                "answer_citations": [{"id": f"{prefix}{n}", **place}],
            })  # fmt: skip
    return rows


def test_across_chunkings_both_are_judged_on_common_ground(folder: Folder) -> None:
    """Chunk b0 lies inside a0, and both hold the evidence: the same for every gate."""
    evidence = [
        {**row, "relevant": [{"doc": "d", "start": 100 * n + 20, "end": 100 * n + 70}]}
        for n, row in enumerate(CHUNKED_GOLD)
    ]
    folder.write("gold.jsonl", evidence)
    folder.write("live.jsonl", rechunked("a", "v1", 0))
    folder.write("shadow.jsonl", rechunked("b", "v2", 5))
    waived = folder.write(
        "ragauge.toml",
        """\
[[waivers]]
gate = "citation_accuracy"
reason = "citations are of whole chunks"
expires = "2999-01-01"
""",
    )
    assert waived.exists()
    code, document = judged(
        folder, "--live", "live.jsonl", "--shadow", "shadow.jsonl", "--gold", "gold.jsonl",
        "--as-of", "2998-01-01",
    )  # fmt: skip
    assert document["chunker_version_match"] == "fallback_doc_span"
    assert code == 0
    assert document["deltas"]["retrieval.recall@5"]["shadow"] == 1.0
    agreement = document["agreement"]
    assert agreement["by"] == "place"
    assert [agreement[name]["value"] for name in ("citations", "rbo")] == [1.0, 1.0]
    assert "the chunkings differ: both runs are judged on common ground" in document["notes"]


def test_gold_that_names_chunks_does_not_judge_citations_of_other_chunks(folder: Folder) -> None:
    """Every place of a0 is found, so recall is known; what an answer cites of it is not."""
    folder.write("gold.jsonl", CHUNKED_GOLD)
    folder.write("live.jsonl", rechunked("a", "v1", 0))
    folder.write("shadow.jsonl", rechunked("b", "v2", 5))
    files = ("--live", "live.jsonl", "--shadow", "shadow.jsonl", "--gold", "gold.jsonl")
    code, document = judged(folder, *files)
    assert (code, document["chunker_version_match"]) == (4, "fallback_doc_span")
    assert document["deltas"]["retrieval.recall@5"]["shadow"] == 1.0
    assert "place-unknown" in {block["code"] for block in document["verdict"]["blocks"]}


def test_the_markdown_leads_with_the_decision(runs: Folder) -> None:
    found = runs.run(
        "shadow", "--live", "live", "--shadow", "worse", "--format", "md", "-o", "verdict.json",
        "-o", "verdict.txt",
    )  # fmt: skip
    lines = found.out.splitlines()
    assert lines[0] == "# ragauge: not eligible for canary: recall@5 drop"
    assert lines[2] == "Live `live`, shadow `worse`, 6 questions."
    assert any(line.startswith("- q3 (OK, out-of-scope-citation) trace.jsonl:7") for line in lines)
    assert json.loads((runs.path / "verdict.json").read_text())["decision"] == "not-eligible"
    table = (runs.path / "verdict.txt").read_text()
    assert table == runs.run("shadow", "--live", "live", "--shadow", "worse").out
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ("--live", "live"),
        ("--live", "live.jsonl", "--shadow", "same"),  # no gold set
        ("--live", "live", "--shadow", "same", "--live-chunks", "c.jsonl"),
        ("--live", "live", "--shadow", "same", "--shadow-embedder", "hash"),
        ("--live", "live", "--shadow", "same", "-o", "verdict.html"),
        ("--live", "live", "--shadow", "same", "--profile", "nope"),
        ("--live", "live", "--shadow", "nobody"),
    ],
)
def test_wrong_usage_is_refused(runs: Folder, arguments: tuple[str, ...]) -> None:
    found = runs.run("shadow", *arguments)
    assert (found.exit_code, found.out) == (2, "")


def test_a_file_without_any_known_question_measures_nothing(runs: Folder) -> None:
    runs.write("other.jsonl", [{**LIVE[0], "qid": "zz", "query": "no such question"}])
    found = runs.run("shadow", "--live", "live", "--shadow", "other.jsonl", "--gold", "gold.jsonl")
    assert found.exit_code == 5


def test_bad_lines_are_named(runs: Folder) -> None:
    runs.write("bad.jsonl", "not JSON\n")
    found = runs.run("shadow", "--live", "live", "--shadow", "bad.jsonl", "--gold", "gold.jsonl")
    assert found.exit_code == 3
    assert "bad.jsonl:1" in found.err


def test_workers_change_nothing(runs: Folder) -> None:
    arguments = ("shadow", "--live", "live", "--shadow", "worse", "--format", "json")
    assert runs.run(*arguments).out == runs.run(*arguments, "--workers", "2").out


def test_places_that_gold_does_not_say_are_bands_here_too(folder: Folder) -> None:
    """Of two chunks half is found: recall lies between 1/3 and 1, and is no number in a slice."""
    folder.write("gold.jsonl", [{**row, "type": "text"} for row in CHUNKED_GOLD])
    folder.write("live.jsonl", rechunked("a", "v1", 0))
    rows = [
        {**row, "topk": [{**row["topk"][0], "offsets": [start, start + size]}]}
        for row in rechunked("b", "v2", 0)
        for start in [row["topk"][0]["offsets"][0]]
        for size in [50 if start else 100]
    ]
    folder.write("shadow.jsonl", rows)
    files = ("--live", "live.jsonl", "--shadow", "shadow.jsonl", "--gold", "gold.jsonl")
    code, document = judged(folder, *files, "--min-n", "1")
    assert code == 4
    delta = document["deltas"]["retrieval.recall@5"]
    assert (delta["shadow"], delta["shadow_band"], delta["band"]) == (
        None,
        [0.3333, 1],
        [-0.6667, 0],
    )
    (part,) = document["by_type"].values()
    assert part["n"] == 3
    assert "retrieval.recall@5" not in part["deltas"]
    assert any("gold pin --narrow" in failed["step"] for failed in document["failed"])
    text = folder.run("shadow", *files, "--format", "md").out
    assert "-0.6667 … +0.0000" in text


def test_a_waiver_is_not_revived_by_a_day_before_the_stored_runs(runs: Folder) -> None:
    """The runs are of January 2026; the waiver ended in 2025."""
    runs.write(
        "ragauge.toml",
        """\
[[waivers]]
gate = "retrieval.recall@5"
reason = "known"
expires = "2025-01-31"
""",
    )
    sides = "--live", "live", "--shadow", "worse"
    found = runs.run("shadow", *sides, "--as-of", "2025-01-01")
    assert found.exit_code == 2
    assert "waivers are not judged by a day before it" in found.err
    assert runs.run("shadow", *sides, "--as-of", "2026-01-04").exit_code == 1
