"""`compare` across chunkings against the truth by bytes, and what proves or refutes chunk ids."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.command import Folder
from tests.support.rechunked import (
    CHUNKINGS,
    SearchedChunks,
    TextChunk,
    TextSet,
    chunked,
    compared,
    evidence_gold,
    generated,
    id_gold,
    read_sotu,
    traces,
    true_kind,
    true_ranks,
)

SOTU = Path(__file__).parents[3] / "shared" / "samples" / "chroma_sotu"
HIT = "retrieval.hit@10"
MAX_DROP = 0.02


class Searched(NamedTuple):
    """A set of texts, its chunks, and the hits of every chunking."""

    texts: TextSet
    chunks: dict[str, list[TextChunk]]
    hits: dict[str, dict[str, list[TextChunk]]]


def searched(texts: TextSet) -> Searched:
    chunks = {name: chunked(texts, name) for name in CHUNKINGS}
    return Searched(
        texts,
        chunks,
        {name: SearchedChunks(texts, chunks[name]).searched() for name in CHUNKINGS},
    )


SMALL = searched(generated(documents=8, questions=60, seed=5))


def truth(found: Searched, a: str, b: str) -> list[tuple[list[int | None], list[int | None]]]:
    return [
        (true_ranks(each, found.hits[a][each.qid]), true_ranks(each, found.hits[b][each.qid]))
        for each in found.texts.questions
    ]


def true_delta(pairs: list[tuple[list[int | None], list[int | None]]]) -> float:
    return sum(any(b) - any(a) for a, b in pairs) / len(pairs)


def check_pair(folder: Folder, found: Searched, a: str, b: str, tolerance: float) -> dict[str, int]:
    """One comparison by gold that names chunks of a; returns what its questions came to."""
    folder.write("gold.jsonl", id_gold(found.texts, found.chunks[a]))
    folder.write("a.jsonl", list(traces(found.texts, found.hits[a])))
    folder.write("b.jsonl", list(traces(found.texts, found.hits[b])))
    folder.write("gates.toml", f'[gates]\n"{HIT}" = {{ max_drop = {MAX_DROP} }}\n')
    document = compared(folder, "--k", "10", "--gates", "gates.toml")
    pairs = truth(found, a, b)
    delta, true = document["deltas"][HIT], true_delta(pairs)
    low, high = delta["band"] or (delta["delta"], delta["delta"])
    assert low - tolerance <= true <= high + tolerance, (a, b)
    if abs(true) > 0.01 and low * high > 0:
        assert (low > 0) == (true > 0), (a, b)
    if document["exit_code"] != 4:
        assert document["exit_code"] == (1 if -true > MAX_DROP else 0), (a, b)
    assert (delta["p"] is None) or low * high > 0 or low == high
    counts = {"sure": 0, "wrong": 0, "lost": 0, "missed": 0}
    queries = {each["query_id"]: each for each in document["per_query"]}
    for question, (ranks_a, ranks_b) in zip(found.texts.questions, pairs, strict=True):
        told = queries[question.qid]["regression"]
        lost = any(x and not y for x, y in zip(ranks_a, ranks_b, strict=True))
        counts["sure"] += told == "yes"
        counts["wrong"] += told == "yes" and not lost
        counts["lost"] += lost
        counts["missed"] += told == "no" and lost
    return counts


@pytest.mark.parametrize(
    ("a", "b"), [("fixed800", "sentences"), ("fixed400", "fixed800"), ("sentences", "recursive800")]
)
def test_chunk_ids_leave_open_what_they_do_not_say(folder: Folder, a: str, b: str) -> None:
    """Known bytes: the band holds the truth, no sign, gate or sure regression is wrong."""
    counts = check_pair(folder, SMALL, a, b, 0.035)
    assert (counts["wrong"], counts["missed"]) == (0, 0)


def test_evidence_has_the_kinds_of_the_truth(folder: Folder) -> None:
    """Gold that names bytes: every kind of every question, and no band."""
    for a, b in (("fixed800", "sentences"), ("recursive800", "fixed400")):
        folder.write("gold.jsonl", evidence_gold(SMALL.texts))
        folder.write("a.jsonl", list(traces(SMALL.texts, SMALL.hits[a])))
        folder.write("b.jsonl", list(traces(SMALL.texts, SMALL.hits[b])))
        document = compared(folder, "--k", "10")
        kinds = [each["kind"] for each in document["per_query"]]
        assert kinds == [true_kind(*pair) for pair in truth(SMALL, a, b)]
        delta = document["deltas"][HIT]
        assert delta["band"] is None
        assert delta["delta"] == pytest.approx(true_delta(truth(SMALL, a, b)), abs=1e-4)


@pytest.mark.skipif(not SOTU.exists(), reason="the samples are not here")
def test_a_public_benchmark(folder: Folder) -> None:
    """Four pairs of chunkings of a speech, 76 questions with their true bytes.

    All twelve pairs, and weaker searches, are a campaign: benchmarks/rechunked.py.
    """
    found = searched(read_sotu(SOTU))
    total = {"sure": 0, "wrong": 0, "lost": 0, "missed": 0}
    pairs = [("fixed800", "sentences"), ("recursive800", "fixed400")]
    for a, b in [*pairs, ("fixed400", "fixed800"), ("sentences", "fixed800")]:
        for name, count in check_pair(folder, found, a, b, 0.035).items():
            total[name] += count
    assert total["lost"] > 20
    assert total["wrong"] <= 0.005 * total["sure"]
    assert total["missed"] <= 0.002 * total["lost"]


# --- by text and by document ---


def write(folder: Folder, a: str, b: str, kept: tuple[str, ...]) -> None:
    folder.write("gold.jsonl", id_gold(SMALL.texts, SMALL.chunks[a]))
    folder.write("a.jsonl", list(traces(SMALL.texts, SMALL.hits[a], kept=kept)))
    folder.write("b.jsonl", list(traces(SMALL.texts, SMALL.hits[b], kept=kept)))


def test_texts_tell_what_spans_tell(folder: Folder) -> None:
    """The same regressions, but for texts that stand twice."""
    told = []
    for kept in (("doc", "spans"), ("doc", "text")):
        write(folder, "fixed800", "sentences", kept)
        document = compared(folder, "--k", "10")
        told.append([each["regression"] for each in document["per_query"]])
    assert document["deltas"]["rungs"]["quote"] > 0
    same = sum(one == other for one, other in zip(*told, strict=True))
    assert same >= 0.95 * len(told[0])


def test_documents_prove_losses_and_nothing_else(folder: Folder) -> None:
    """A document that is not among the hits is a loss; one that is says nothing."""
    write(folder, "fixed800", "sentences", ("doc",))
    document = compared(folder, "--k", "10")
    assert document["deltas"]["rungs"]["doc"] > 0
    pairs = truth(SMALL, "fixed800", "sentences")
    told = {each["query_id"]: each["regression"] for each in document["per_query"]}
    for question, (ranks_a, ranks_b) in zip(SMALL.texts.questions, pairs, strict=True):
        lost = any(x and not y for x, y in zip(ranks_a, ranks_b, strict=True))
        docs = {hit.doc for hit in SMALL.hits["sentences"][question.qid]}
        assert told[question.qid] != ("yes" if question.doc in docs else "never")
        assert told[question.qid] != "no" or not lost


# --- ids ---


def test_ids_that_never_meet_are_not_compared(folder: Folder) -> None:
    """Bare ids of two chunkings: no table, whatever the gold set is."""
    write(folder, "fixed800", "fixed400", ())
    arguments = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--k", "10")
    outcome = folder.run("compare", *arguments)
    assert (outcome.exit_code, outcome.codes, outcome.out) == (4, {"incomparable"}, "")


def test_bare_ids_that_meet_are_unproven(folder: Folder) -> None:
    """The same chunks, one search weakened: ids are used, a note says so, and strict refuses."""
    weak = SearchedChunks(SMALL.texts, SMALL.chunks["fixed800"]).searched(weakened=True)
    write(folder, "fixed800", "fixed800", ())
    folder.write("b.jsonl", list(traces(SMALL.texts, weak, kept=())))
    document = compared(folder, "--k", "10")
    assert document["deltas"]["chunker_version_match"] == "unproven"
    ids = document["deltas"]["ids"]
    assert (ids["proof"], ids["reused"]) == ("unproven", 0)
    assert 0 < ids["common"] <= min(ids["distinct_a"], ids["distinct_b"])
    assert any("nothing proves it" in note for note in document["notes"])
    arguments = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--strict-chunker-version")
    outcome = folder.run("compare", *arguments)
    assert (outcome.exit_code, outcome.codes) == (4, {"chunker-mismatch"})


def test_ids_with_places_are_proved(folder: Folder) -> None:
    """Chunks of which both runs know the place are the same; so strict accepts them."""
    write(folder, "fixed800", "fixed800", ("doc", "spans"))
    document = compared(folder, "--k", "10")
    kinds = {each["kind"] for each in document["per_query"]}
    assert kinds == {"draw"}
    assert document["deltas"]["ids"]["common"] == document["deltas"]["ids"]["distinct_a"]


def renamed(hits: dict[str, list[TextChunk]]) -> dict[str, list[TextChunk]]:
    """Hits whose ids are positions in their document, as many indexes have them."""
    return {
        qid: [hit._replace(id=f"{hit.doc}:{int(hit.id[-5:])}") for hit in found]
        for qid, found in hits.items()
    }


def test_positions_as_ids_are_not_believed(folder: Folder) -> None:
    """`d0.txt:3` is another chunk in b: the count of such ids is shown, and places decide."""
    chunks = [
        chunk._replace(id=f"{chunk.doc}:{int(chunk.id[-5:])}") for chunk in SMALL.chunks["fixed800"]
    ]
    folder.write("gold.jsonl", id_gold(SMALL.texts, chunks))
    for run, name in (("a", "fixed800"), ("b", "fixed400")):
        rows = traces(SMALL.texts, renamed(SMALL.hits[name]))
        folder.write(f"{run}.jsonl", list(rows))
    document = compared(folder, "--k", "10")
    ids = document["deltas"]["ids"]
    assert (ids["proof"], document["deltas"]["rungs"]["exact"]) == ("reused-ids", 0)
    assert ids["reused"] > 10
    low, high = document["deltas"][HIT]["band"]
    assert low - 0.035 <= true_delta(truth(SMALL, "fixed800", "fixed400")) <= high + 0.035


def test_snapshots_that_name_two_chunkers_refute_ids(folder: Folder) -> None:
    """Bare ids that meet, and the configurations say that they are of two chunkings."""
    write(folder, "fixed800", "fixed800", ())
    for run, size in (("a", 800), ("b", 400)):
        folder.write(f"{run}.toml", f"[system.chunker]\nsize = {size}\n")
        folder.write("ragauge.toml", f"[system.chunker]\nsize = {size}\n")
        arguments = ("gold.jsonl", f"{run}.jsonl", "--run-id", run, "--store", "--k", "10")
        assert folder.run("score", *arguments).exit_code == 0
    outcome = folder.run("compare", "a", "b")
    assert (outcome.exit_code, outcome.codes) == (4, {"incomparable"})


def test_bare_positions_that_find_nothing_are_asked_about(folder: Folder) -> None:
    """No places, no texts, no documents: ids meet, hit@10 collapses, and a note asks why."""
    chunks = [
        chunk._replace(id=f"n{number}") for number, chunk in enumerate(SMALL.chunks["fixed800"])
    ]
    numbers = [
        {chunk.id: f"n{number}" for number, chunk in enumerate(SMALL.chunks[name])}
        for name in ("fixed800", "fixed400")
    ]
    folder.write("gold.jsonl", id_gold(SMALL.texts, chunks))
    for run, name, names in zip("ab", ("fixed800", "fixed400"), numbers, strict=True):
        hits = {
            qid: [hit._replace(id=names[hit.id]) for hit in found]
            for qid, found in SMALL.hits[name].items()
        }
        folder.write(f"{run}.jsonl", list(traces(SMALL.texts, hits, kept=())))
    document = compared(folder, "--k", "10")
    assert document["deltas"]["chunker_version_match"] == "unproven"
    assert document["deltas"][HIT]["delta"] < -0.5
    assert any("are the ids positions" in note for note in document["notes"])
