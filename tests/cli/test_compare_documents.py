"""`compare` of runs that share only documents: by document if that is accepted, else exit 4."""

from __future__ import annotations

import csv
from typing import Any

import pytest

import ragauge
from tests.support.command import Folder
from tests.support.rechunked import compared

GATE = '[gates]\n"retrieval.%s" = { max_drop = %s }\n'
PLACED = {"start": 100, "end": 200}


def hit(run: str, name: str, doc: str) -> dict[str, Any]:
    """A hit that says nothing of its place but the document."""
    return {"id": f"{run}-{name}", "doc": doc, "chunker_version": run}


def runs(folder: Folder, *found: tuple[int | None, int | None], evidence: str = "id") -> None:
    """A question for each pair: the rank of its document in run a and in run b; None for a miss.

    Gold names the chunk of run a, or a place in the document.
    """
    items: list[dict[str, Any]] = []
    traces: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    for number, ranks in enumerate(found):
        piece = {"doc": f"d{number}.md", **PLACED} if evidence == "place" else f"a-c{number}"
        items.append({"qid": f"q{number}", "question": "what?", "relevant": [piece]})
        for run, rank in zip("ab", ranks, strict=True):
            hits = [hit(run, f"x{number}-{place}", f"x{place}.md") for place in range(6)]
            if rank is not None:
                hits[rank - 1] = hit(run, f"c{number}", f"d{number}.md")
            traces[run].append({"qid": f"q{number}", "question": "what?", "topk": hits})
    folder.write("gold.jsonl", items)
    folder.write("a.jsonl", traces["a"])
    folder.write("b.jsonl", traces["b"])


@pytest.mark.parametrize("evidence", ["id", "place"])
def test_documents_that_are_found_pass_no_gate(folder: Folder, evidence: str) -> None:
    """b finds another chunk of every document: all evidence may be lost."""
    runs(folder, *[(2, 1)] * 8, evidence=evidence)
    folder.write("gates.toml", GATE % ("hit@5", 0.1))
    options = ("--k", "5", "--gates", "gates.toml")
    document = compared(folder, *options, code=4)
    (result,) = document["verdict"]["gates"]
    assert "--accept-doc-level judges retrieval.hit_doc@5" in result["reason"]
    assert document["verdict"]["blocks"][0]["code"] == "place-unknown"
    compared(folder, "--fail-on", "regression", code=4)
    assert "--accept-doc-level" in compared(folder, "--fail-on", "loss", code=4)["fail_on_reason"]


@pytest.mark.parametrize("evidence", ["id", "place"])
def test_a_gate_moves_to_the_metric_of_documents_if_that_is_accepted(
    folder: Folder, evidence: str
) -> None:
    """One of eight documents is lost: 0.125 by document, under that name."""
    runs(folder, *[(2, 1)] * 7, (1, None), evidence=evidence)
    for limit, code in ((0.13, 0), (0.12, 1)):
        folder.write("gates.toml", GATE % ("hit@5", limit))
        options = ("--k", "5", "--gates", "gates.toml", "--accept-doc-level")
        document = compared(folder, *options, code=code)
        (result,) = document["verdict"]["gates"]
        if code == 0 or evidence == "place":
            assert (result["metric"], result["value"]) == ("retrieval.hit_doc@5", 0.125)
            assert result["reason"].startswith("by document")
        if code:
            assert [one["query_id"] for one in result["damage"]] == ["q7"]
    # A document that is lost is a loss wherever the evidence stood: it fails before any option.
    if evidence == "id":
        folder.write("gates.toml", GATE % ("hit@5", 0.12))
        compared(folder, "--k", "5", "--gates", "gates.toml", code=1)


def test_recall_and_reciprocal_ranks_move_and_other_metrics_do_not(folder: Folder) -> None:
    """There is no nDCG of documents: its gate stays open."""
    runs(folder, *[(2, 1)] * 8, evidence="place")
    for metric, moved in (
        ("recall@5", "retrieval.recall_doc@5"),
        ("mrr@5", "retrieval.mrr_doc@5"),
        ("ndcg@5", None),
        ("precision@5", None),
    ):
        folder.write("gates.toml", GATE % (metric, 0.1))
        options = ("--k", "5", "--gates", "gates.toml", "--accept-doc-level")
        document = compared(folder, *options, code=0 if moved else 4)
        (result,) = document["verdict"]["gates"]
        assert result["metric"] == (moved or f"retrieval.{metric}")


def test_kinds_by_document_stand_beside_those_of_the_evidence(folder: Folder) -> None:
    """Ranks of documents: 2 to 1, 1 to 3, 1 to none, none to 2, 3 to 3."""
    runs(folder, (2, 1), (1, 3), (1, None), (None, 2), (3, 3), evidence="place")
    document = compared(folder, "--k", "5")
    names = ["doc_win", "doc_loss", "doc_regression", "doc_win", "doc_draw"]
    assert [query["doc_kind"] for query in document["per_query"]] == names
    assert {query["kind"] for query in document["per_query"]} == {"undecided"}
    assert document["kinds"]["document"] == {
        "doc_regression": 1,
        "doc_mixed": 0,
        "doc_loss": 1,
        "doc_win": 2,
        "doc_draw": 1,
    }
    assert document["kinds"]["retrieval"]["regression"] == 0
    delta = document["document_level"]["retrieval.hit_doc@5"]
    assert (delta["a"], delta["b"], delta["delta"], delta["n"]) == (0.8, 0.8, 0.0, 5)
    assert delta["p_holm"] is None
    assert document["deltas"]["retrieval.hit@5"]["delta"] is None


def test_fail_on_counts_kinds_by_document_only_if_that_is_accepted(folder: Folder) -> None:
    """One document is lost, one is lower: 1 of 5, or 2 with losses."""
    runs(folder, (2, 1), (1, 3), (1, None), (None, 2), (3, 3), evidence="place")
    compared(folder, "--fail-on", "regression", code=4)
    accepted = compared(folder, "--fail-on", "regression", "--accept-doc-level", code=1)
    assert accepted["fail_on"]["regression"]["doc_kinds"] == {"doc_regression": 1}
    assert accepted["fail_on"]["regression"]["kinds"] == {"regression": 0}
    compared(folder, "--fail-on", "regression:1", "--accept-doc-level", code=0)
    accepted = compared(folder, "--fail-on", "loss:1", "--accept-doc-level", code=1)
    assert accepted["fail_on"]["loss"]["doc_kinds"] == {"doc_regression": 1, "doc_loss": 1}


def test_what_is_open_for_another_reason_stays_open(folder: Folder) -> None:
    """Of q0 the hits have places, and gold names a chunk: documents are not all that is known."""
    items: list[dict[str, Any]] = []
    traces: dict[str, list[dict[str, Any]]] = {"a": [], "b": []}
    for number in range(8):
        doc = f"d{number}.md"
        piece: Any = (
            {"id": "g", "doc": doc, "start": 0, "end": 800} if not number else f"a-c{number}"
        )
        items.append({"qid": f"q{number}", "question": "what?", "relevant": [piece]})
        for run, end in (("a", 800), ("b", 400)):
            own = hit(run, f"c{number}", doc)
            own |= {} if number else {"start": 0, "end": end}
            traces[run].append({"qid": f"q{number}", "question": "what?", "topk": [own]})
    folder.write("gold.jsonl", items)
    folder.write("a.jsonl", traces["a"])
    folder.write("b.jsonl", traces["b"])
    folder.write("gates.toml", GATE % ("hit@5", 0.1))
    options = ("--k", "5", "--gates", "gates.toml", "--accept-doc-level")
    document = compared(folder, *options, code=4)
    assert document["verdict"]["gates"][0]["metric"] == "retrieval.hit@5"
    checks = compared(folder, "--fail-on", "regression", "--accept-doc-level", code=4)
    assert checks["fail_on"]["regression"]["open"] == 1


def test_reports_say_by_document(folder: Folder) -> None:
    """Whatever the format, and never as the kind of the evidence."""
    runs(folder, *[(1, 1)] * 4, (1, None), evidence="place")
    files = ("c.md", "c.html", "comment:c.txt", "summary:c.text", "c.xml")
    compared(folder, "--k", "10", *(part for name in files for part in ("-o", name)))
    for name in files:
        text = (folder.path / name.rpartition(":")[2]).read_text()
        assert "1 doc_regression" in text, name
        assert "by document" in text, name
    table = folder.run("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl").out
    assert "retrieval.hit_doc@10 1.0000" in " ".join(table.split())
    compared(folder, "-o", "c.csv")
    with open(folder.path / "c.csv", encoding="utf-8", newline="") as file:
        kinds = [(row["kind"], row["doc_kind"]) for row in csv.DictReader(file)]
    assert kinds == [("undecided", "doc_draw")] * 4 + [("undecided", "doc_regression")]


def test_gold_that_names_documents_is_never_exact(folder: Folder) -> None:
    """Its kinds are what gold asks for, and by document; a strict comparison is refused."""
    folder.write("gold.jsonl", [{"qid": "q", "question": "?", "expected_doc_ids": ["d.md"]}])
    for run in "ab":
        topk = [hit(run, "c", "d.md")] if run == "a" else []
        folder.write(f"{run}.jsonl", [{"qid": "q", "question": "?", "topk": topk}])
    document = compared(folder)
    assert document["deltas"]["chunker_version_match"] == "fallback_doc"
    (query,) = document["per_query"]
    assert (query["kind"], query["doc_kind"]) == ("regression", "doc_regression")
    outcome = folder.run(
        *("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--strict-chunker-version")
    )
    assert outcome.exit_code == 4


def test_a_slice_moves_too(folder: Folder) -> None:
    """Tables lose one of six documents, the rest none."""
    runs(folder, *[(1, 1)] * 5, (1, None), *[(1, 1)] * 6, evidence="place")
    items = [
        {
            "qid": f"q{n}",
            "question": "what?",
            "relevant": [{"doc": f"d{n}.md", **PLACED}],
            "type": "table" if n < 6 else "prose",
        }
        for n in range(12)
    ]
    folder.write("gold.jsonl", items)
    for part, code in (("table", 1), ("prose", 0)):
        gate = f'"retrieval.hit@5" = {{ max_drop = 0.1, slice = "type={part}" }}'
        folder.write("gates.toml", f"[gates]\n{gate}\n")
        options = ("--k", "5", "--gates", "gates.toml", "--accept-doc-level")
        (result,) = compared(folder, *options, code=code)["verdict"]["gates"]
        assert (result["n"], result["metric"]) == (6, "retrieval.hit_doc@5"), part


def test_a_waiver_of_the_gate_covers_it_by_document(folder: Folder) -> None:
    """It names the metric that the gate was written for."""
    runs(folder, *[(1, None)] * 3, *[(1, 1)] * 3, evidence="place")
    waiver = '[[waivers]]\ngate = "retrieval.hit@5"\nreason = "moving"\nexpires = 2999-01-01\n'
    folder.write("ragauge.toml", GATE % ("hit@5", 0.1) + waiver)
    compared(folder, "--k", "5", "--accept-doc-level", code=0)


def test_python_accepts_it_too(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `accept_doc_level`, for gates and for `fail_on`."""
    runs(folder, *[(1, 1)] * 6, evidence="place")
    monkeypatch.chdir(folder.path)
    gates = {"retrieval.hit@5": {"max_drop": 0.1}}
    args = ("a.jsonl", "b.jsonl")
    assert ragauge.compare(*args, gold="gold.jsonl", gates=gates, k=5).exit_code == 4
    accepted = ragauge.compare(
        *args, gold="gold.jsonl", gates=gates, k=5, accept_doc_level=True, fail_on="regression"
    )
    assert accepted.exit_code == 0


def test_two_limits_of_one_kind_are_both_told(folder: Folder) -> None:
    """Three of sixty are lost: more than two, and no more than 5 %."""
    runs(folder, *[(1, 1)] * 57, *[(1, None)] * 3)
    limits = ("--fail-on", "regression:2", "--fail-on", "regression:5%", "--accept-doc-level")
    for order in (limits, (*limits[2:4], *limits[:2], limits[4])):
        document = compared(folder, *order, code=1)
        found = {one["given"]: one["status"] for one in document["fail_on_checks"]}
        assert found == {"regression:2": "fail", "regression:5%": "pass"}
        assert document["fail_on"]["regression"]["allowed"] == 2
