"""`score` of gold that names chunks, against hits that are cut otherwise: bands, not numbers."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest

from ragauge.files import ranges
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose
from tests.support.cases import cases
from tests.support.command import Folder, Row

Extent = tuple[int, int]
RULES = ("--profile", "all", "--k", "1,5", "--dialect", "native")
HIT = "retrieval.hit@5"

# The worked examples of the rule: the chunk, and the hits of runs a and b by rank. A hit with the
# very bytes of the chunk has its id.
EXAMPLES: dict[str, tuple[Extent, dict[int, Extent], dict[int, Extent]]] = {
    "larger": ((400, 800), {2: (400, 800)}, {1: (0, 800)}),
    "sentences": ((0, 800), {1: (0, 800)}, {1: (120, 230), 4: (500, 590)}),
    "half": ((0, 800), {3: (0, 800)}, {2: (400, 800)}),
    "sure": ((0, 800), {1: (0, 800)}, {1: (785, 900)}),
    "third": ((0, 800), {1: (0, 400)}, {1: (0, 420)}),
    "overlap": ((2400, 3200), {1: (2000, 2800), 2: (2800, 3600)}, {1: (2400, 3200)}),
}


def gold(*examples: str, qid: str = "q", **fields: Any) -> Row:
    pieces = [
        {"id": f"g{number}", "doc": f"d{number}.md", "start": start, "end": end, **fields}
        for number, name in enumerate(examples)
        for start, end in [EXAMPLES[name][0]]
    ]
    return {"qid": qid, "question": f"what of {qid}?", "relevant": pieces}


def trace(run: str, *examples: str, qid: str = "q") -> Row:
    """The hits of one run; ranks without one hold a hit of another document."""
    by_rank: dict[int, Row] = {}
    for number, name in enumerate(examples):
        piece, a, b = EXAMPLES[name]
        for rank, (start, end) in (a if run == "a" else b).items():
            at = rank if rank not in by_rank else max(by_rank) + 1
            own = (start, end) == piece and run == "a"
            name_of = f"g{number}" if own else f"{run}{number}-{start}"
            by_rank[at] = {"id": name_of, "doc": f"d{number}.md", "start": start, "end": end}
    hits = [
        by_rank.get(
            rank, {"id": f"x{rank}", "doc": "x.md", "start": 10 * rank, "end": 10 * rank + 9}
        )
        for rank in range(1, max(by_rank) + 1)
    ]
    return {"qid": qid, "question": f"what of {qid}?", "topk": hits}


def metrics(folder: Folder, golds: list[Row], traces: list[Row], *options: str) -> dict[str, Any]:
    folder.write("gold.jsonl", golds)
    folder.write("trace.jsonl", traces)
    outcome = folder.run(
        "score", "gold.jsonl", "trace.jsonl", *RULES, "--format", "json", *options
    )  # fmt: skip
    document: dict[str, Any] = json.loads(outcome.out)["metrics"]
    return document


def band(result: dict[str, Any]) -> Any:
    """The value, or the ends where there is none."""
    assert (result["value"] is None) == ("band" in result)
    return result["value"] if result["value"] is not None else tuple(result["band"])


@cases(
    ("name", "run", "hit1", "hit5", "mrr"),
    [
        ("larger", "a", 0, 1, 0.5),
        ("larger", "b", 1, 1, 1),  # [0, 800) holds every place of [400, 800)
        ("sentences", "a", 1, 1, 1),
        ("sentences", "b", (0, 1), (0, 1), (0, 1)),  # rank 1, rank 4, or none
        ("half", "a", 0, 1, 0.3333),
        ("half", "b", 0, (0, 1), (0, 0.5)),  # the half that was found may not hold it
        ("sure", "a", 1, 1, 1),
        ("sure", "b", 0, 0, 0),  # 15 bytes of the last place: not half of 40
        ("third", "a", (0, 1), (0, 1), (0, 1)),
        ("third", "b", (0, 1), (0, 1), (0, 1)),
        ("overlap", "a", (0, 1), 1, (0.5, 1)),  # one neighbour or the other has it
        ("overlap", "b", 1, 1, 1),
    ],
)
def test_the_worked_examples(
    folder: Folder, name: str, run: str, hit1: Any, hit5: Any, mrr: Any
) -> None:
    """Each run by itself: what holds at all places is a number, the rest a band."""
    found = metrics(folder, [gold(name)], [trace(run, name)])
    assert band(found["retrieval.hit@1"]) == hit1
    assert band(found[HIT]) == hit5
    assert band(found["retrieval.mrr@5"]) == mrr


def test_two_chunks(folder: Folder) -> None:
    """One of them is surely found, the other perhaps: recall is at least a half."""
    found = metrics(folder, [gold("overlap", "half")], [trace("b", "overlap", "half")])
    assert (band(found[HIT]), band(found["retrieval.recall@5"])) == (1, (0.5, 1))


def test_evidence_that_a_person_chose_is_a_number(folder: Folder) -> None:
    """`grain: evidence` is scored as an anchor: 200 of 800 bytes are not half."""
    found = metrics(folder, [gold("sentences", grain="evidence")], [trace("b", "sentences")])
    assert (found[HIT]["value"], "band" in found[HIT]) == (0, False)


def test_no_interval_of_what_gold_does_not_say(folder: Folder) -> None:
    names = [f"q{number}" for number in range(8)]
    golds = [gold("sentences", qid=qid) for qid in names]
    found = metrics(folder, golds, [trace("b", "sentences", qid=qid) for qid in names])
    result = found[HIT]
    assert (result["value"], result["interval"], result["reason"]) == (None, None, "place-unknown")
    assert result["band"] == [0, 1]
    assert [end["value"] for end in result["ends"]] == [0, 1]
    assert found["retrieval.empty"]["interval"] is not None


# --- the same chunking ---


def chunks(size: int, step: int, doc: str = "d.md") -> list[Row]:
    return [
        {"id": f"{doc}:{number}", "doc": doc, "start": step * number, "end": step * number + size}
        for number in range(8)
    ]


@pytest.mark.parametrize(("size", "step"), [(400, 400), (400, 320)])
def test_the_same_chunking_is_found_by_ids(folder: Folder, size: int, step: int) -> None:
    """With and without the list of chunks, and however they overlap: the numbers are the same.

    The index names chunks that gold names too (q0), so a neighbour of what q1 asks for is its
    neighbour and not a part of another chunking.
    """
    listed = chunks(size, step)
    folder.write("chunks.jsonl", listed)
    golds = [{"qid": f"q{n}", "question": f"what {n}?", "relevant": [f"d.md:{n}"]} for n in (0, 1)]
    hits = {"q0": ["d.md:0", "d.md:5"], "q1": ["d.md:2", "d.md:0"]}
    traces = [
        {"qid": qid, "question": f"what {qid[1]}?", "topk": names} for qid, names in hits.items()
    ]
    with_list = metrics(folder, golds, traces, "--chunks", "chunks.jsonl")
    without = metrics(folder, golds, traces)
    ranked = ("hit", "recall", "mrr", "ndcg", "map")
    for name in (f"retrieval.{one}@{k}" for one in ranked for k in (1, 5)):
        assert with_list[name] == without[name], name
    assert with_list[HIT]["value"] == 0.5


def test_ids_that_were_used_again_prove_nothing(folder: Folder) -> None:
    """A hit with the id of the chunk lies elsewhere: what it covers counts, and not its name."""
    hit = {"id": "g0", "doc": "d0.md", "start": 400, "end": 900}
    row = {"qid": "q", "question": "what of q?", "topk": [hit]}
    assert band(metrics(folder, [gold("half")], [row])[HIT]) == (0, 1)


def test_a_document_that_was_cut_anew_is_open(folder: Folder) -> None:
    """The index has gold's chunks of one document, and others of the second."""
    golds = [gold("sentences"), gold("sentences", qid="q2")]
    golds[1]["relevant"][0] |= {"doc": "new.md", "id": "g9"}
    second = trace("b", "sentences", qid="q2")
    for hit in second["topk"]:
        hit["doc"] = hit["doc"].replace("d0.md", "new.md")
    found = metrics(folder, golds, [trace("a", "sentences"), second])
    assert band(found[HIT]) == (0.5, 1)


# --- gates ---

MANY = [f"q{number}" for number in range(10)]


def many(folder: Folder, *examples: str, run: str = "b") -> None:
    """Ten questions, each the next of some examples."""
    named = [(qid, examples[number % len(examples)]) for number, qid in enumerate(MANY)]
    folder.write("gold.jsonl", [gold(name, qid=qid) for qid, name in named])
    folder.write("trace.jsonl", [trace(run, name, qid=qid) for qid, name in named])


@cases(
    ("limit", "code", "status"),
    [
        ("0.30", 0, "pass"),  # between 0.5 and 1: both pass
        ("0.50", 0, "pass"),
        ("0.51", 4, "not-evaluable"),
        ("1.00", 4, "not-evaluable"),
    ],
)
def test_a_gate_is_judged_at_both_ends(folder: Folder, limit: str, code: int, status: str) -> None:
    many(folder, "larger", "half")
    gates = ("--gates", f"{HIT}={limit}")
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, *gates, "--format", "json")
    assert outcome.exit_code == code
    (result,) = json.loads(outcome.out)["verdict"]["gates"]
    assert result["status"] == status
    if status == "pass":
        assert result["value"] == 0.5
        assert "at least this: it lies between 0.5000 and 1.0000" in result["reason"]
    else:
        assert "pin 5 questions" in result["reason"]


def test_a_gate_fails_where_both_ends_fail(folder: Folder) -> None:
    """Half of the questions surely miss: at most 0.5."""
    many(folder, "sure", "half")
    gates = ("--gates", f"{HIT}=0.6")
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, *gates, "--format", "json")
    (result,) = json.loads(outcome.out)["verdict"]["gates"]
    assert (outcome.exit_code, result["status"], result["value"]) == (1, "fail", 0.5)
    assert "at most this" in result["reason"]


def test_a_saved_file_is_judged_as_the_run_was(folder: Folder) -> None:
    many(folder, "larger", "half")
    folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--full", "-o", "scores.json")
    for limit, code in (("0.5", 0), ("0.6", 4)):
        assert folder.run("gate", "scores.json", "--gates", f"{HIT}={limit}").exit_code == code


def test_a_stored_run_is_judged_as_it_was(folder: Folder) -> None:
    many(folder, "larger", "half")
    stored = folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--store", "--run-id", "r")
    assert stored.exit_code == 0, stored.err
    for limit, code in (("0.5", 0), ("0.6", 4)):
        assert folder.run("gate", "r", "--gates", f"{HIT}={limit}").exit_code == code
    again = folder.run("rescore", "r")
    assert again.exit_code == 0, again.err
    assert folder.run("gate", "r", "--gates", f"{HIT}=0.6").exit_code == 4


# --- reports ---


def test_every_report_has_the_band(folder: Folder) -> None:
    many(folder, "larger", "half")
    for report in ("table", "md", "junit", "html", "comment"):
        outcome = folder.run(
            "score", "gold.jsonl", "trace.jsonl", *RULES, "--metrics", HIT, "--format", report
        )
        assert "0.5000 … 1.0000" in outcome.out, report
    gates = ("--gates", f"{HIT}=0.6")
    for report in ("github", "gitlab", "table", "md", "junit", "html", "comment"):
        outcome = folder.run(
            "score", "gold.jsonl", "trace.jsonl", *RULES, *gates, "--format", report
        )
        text = " ".join(outcome.out.split())
        assert "lies between 0.5000 and 1.0000" in text, report
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--metrics", HIT)
    assert "gold names chunks, and hits are cut otherwise: 5 questions" in outcome.err


def test_questions_have_their_ends_in_csv(folder: Folder) -> None:
    many(folder, "larger", "half")
    outcome = folder.run(
        "score", "gold.jsonl", "trace.jsonl", *RULES, "--metrics", HIT, "--format", "csv"
    )
    rows = list(csv.DictReader(outcome.out.splitlines()))
    assert (rows[0][HIT], rows[0][f"{HIT} low"], rows[0][f"{HIT} high"]) == ("1.0000",) * 3
    assert (rows[1][HIT], rows[1][f"{HIT} low"], rows[1][f"{HIT} high"]) == ("", "0.0000", "1.0000")


def test_workers_and_small_batches_give_the_same_bytes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(folder, *EXAMPLES)
    once = folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--full", "--format", "json")
    monkeypatch.setattr(inputs, "plan", lambda source: ranges.plan(source, range_bytes=600))
    monkeypatch.setattr(choose, "_worker_count", lambda *_: 2)
    again = folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--full", "--format", "json")
    assert again.out == once.out


# --- citations ---


def cited(start: int, end: int) -> Row:
    row = trace("b", "half")
    citation = {"id": "c", "doc": "d0.md", "start": start, "end": end}
    return {**row, "answer_json": {"claim": "So.", "citations": [citation]}}


@cases(
    ("start", "end", "hit", "accuracy"),
    [
        (0, 800, 1, (0, 1)),  # the very chunk that gold names: accurate if all of it is evidence
        (0, 801, 1, (0, 1)),
        (400, 800, (0, 1), (0, 1)),
        (900, 950, 0, 0),
    ],
)
def test_citations_of_a_chunk(
    folder: Folder, start: int, end: int, hit: Any, accuracy: Any
) -> None:
    item = {**gold("half"), "answerable": True}
    found = metrics(folder, [item], [cited(start, end)])
    assert band(found["citation.hit_rate_answerable"]) == hit
    assert band(found["citation.accuracy"]) == accuracy


# --- files of scores, compared ---


def test_files_of_scores_say_open_where_traces_do(folder: Folder) -> None:
    """Kinds and differences by the ends of either run; what is sure in both stays sure."""
    names = dict(zip(MANY, ["larger", "sentences", "half", "sure"] * 3, strict=False))
    folder.write("gold.jsonl", [gold(name, qid=qid) for qid, name in names.items()])
    for run in ("a", "b"):
        folder.write(f"{run}.jsonl", [trace(run, name, qid=qid) for qid, name in names.items()])
        folder.run(
            "score", "gold.jsonl", f"{run}.jsonl", *RULES, "--full", "-o", f"{run}.json"
        )  # fmt: skip
    outcome = folder.run("compare", "a.json", "b.json", "--format", "json")
    document = json.loads(outcome.out)
    kinds = {one["query_id"]: (one["kind"], one["regression"]) for one in document["per_query"]}
    assert kinds["q0"] == ("win", "no")
    assert kinds["q1"] == ("undecided", "open")
    assert kinds["q3"] == ("regression", "yes")
    delta = document["deltas"][HIT]
    # 2 of 10 surely lose it, 5 may
    assert (delta["delta"], delta["band"], delta["interval"]) == (None, [-0.7, -0.2], None)
    assert delta["p"] == 0.5  # the larger of both ends: 2 of 2 changed to the worse, 2 · (1/2)²
    assert delta["open"] == 5
    code = folder.run("compare", "a.json", "b.json", "--fail-on", "regression").exit_code
    assert code == 1  # q3 surely


def test_a_drop_against_a_file_is_judged_at_both_ends(folder: Folder) -> None:
    many(folder, "larger", "half", run="a")
    folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--full", "-o", "base.json")
    many(folder, "larger", "half")
    for limit, code in (("0.6", 0), ("0.2", 4)):
        folder.write("gates.toml", f'[gates]\n"{HIT}" = {{ max_drop = {limit} }}\n')
        outcome = folder.run(
            "score", "gold.jsonl", "trace.jsonl", *RULES, "--gates", "gates.toml",
            "--baseline", "base.json",
        )  # fmt: skip
        assert outcome.exit_code == code, outcome.out


@pytest.mark.parametrize(
    ("name", "cites", "label", "cause"),
    [
        ("larger", None, "NO_ANSWER", None),  # found at rank 1, wherever it stands
        ("sure", None, "NO_ANSWER", "retrieval-miss"),
        ("sentences", None, "NO_ANSWER", "place-unknown"),
        ("half", None, "NO_ANSWER", "place-unknown"),
        ("larger", "b0-0", "OK", None),
        ("sure", "x.md", "ANS_NO_HIT", "retrieval-miss"),
        ("half", "b0-400", "ANS_NO_HIT", "place-unknown"),  # it may be the half that has it
        ("half", "x1", "ANS_NO_HIT", "place-unknown"),  # surely not cited, but perhaps retrieved
    ],
)
def test_no_label_or_cause_of_what_gold_does_not_say(
    folder: Folder, name: str, cites: str | None, label: str, cause: str | None
) -> None:
    row = trace("b", name)
    if cites is not None:
        row["answer_json"] = {"claim": "yes", "citations": [cites]}
    folder.write("gold.jsonl", [gold(name) | {"answerable": True}])
    folder.write("trace.jsonl", [row])
    options = (*RULES, "--format", "json", "--full")
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", *options)
    (question,) = json.loads(outcome.out)["questions"]
    assert (question["label"], question.get("cause")) == (label, cause)


def test_a_question_says_which_hits_may_be_evidence(folder: Folder) -> None:
    folder.write("gold.jsonl", [gold("half")])
    folder.write("trace.jsonl", [trace("b", "half")])
    folder.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--store", "sqlite:///runs.db")
    shown = folder.run(
        "runs", "show", "latest", "--question", "q", "--store", "sqlite:///runs.db"
    ).out
    assert "NO_ANSWER, place-unknown" in shown
    assert "?2 b0-400" in shown
    assert "? expected if the evidence stands there" in shown
    assert "first evidence" not in shown


def test_a_chunk_that_is_cut_alike_by_chance_is_no_evidence_as_a_whole(folder: Folder) -> None:
    """Of 400 bytes at least 40 and at most all are evidence: 0.1 to 1 of what came back."""
    rows = [
        {"id": f"n{at}", "doc": "d.md", "start": start, "end": end}
        for at, (start, end) in enumerate([(0, 400), (400, 450)])
    ]
    golds = [
        {"qid": f"q{start}", "question": f"what of {start}?",
         "relevant": [{"id": f"g{start}", "doc": "d.md", "start": start, "end": start + 400}]}
        for start in (0, 400)
    ]  # fmt: skip
    traces = [
        {"qid": "q0", "question": "what of 0?", "topk": rows[:1]},
        {"qid": "q400", "question": "what of 400?", "topk": rows[1:]},
    ]
    options = ("--metrics", "retrieval.span_precision@5,retrieval.hit@5")
    both = metrics(folder, golds, traces, *options)
    assert band(both["retrieval.span_precision@5"])[0] == 0.05  # 0.1 and 0
    alone = metrics(folder, golds[:1], traces[:1], *options)
    assert band(alone["retrieval.span_precision@5"]) == 1  # only the name is another
