"""`compare` of two chunkings by gold that names chunks: the worked examples of the rule."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.command import Folder
from tests.support.rechunked import compared

Hits = dict[int, tuple[int, int]]

# Piece, hits of a, hits of b: rank to bytes. A hit with the very bytes of the piece has its id.
EXAMPLES: dict[str, tuple[tuple[int, int], Hits, Hits]] = {
    "larger": ((400, 800), {2: (400, 800)}, {1: (0, 800)}),
    "sentences": ((0, 800), {1: (0, 800)}, {1: (120, 230), 4: (500, 590)}),
    "half": ((0, 800), {3: (0, 800)}, {2: (400, 800)}),
    "sure": ((0, 800), {1: (0, 800)}, {1: (785, 900)}),
    "third": ((0, 800), {1: (0, 400)}, {1: (0, 420)}),
    "overlap": ((2400, 3200), {1: (2000, 2800), 2: (2800, 3600)}, {1: (2400, 3200)}),
}


def rows(name: str, run: str, *examples: str) -> list[dict[str, Any]]:
    """The trace of a question that one or two examples are pieces of, in documents of their own.

    Ranks without a hit of an example hold one of another document.
    """
    by_rank: dict[int, dict[str, Any]] = {}
    for number, example in enumerate(examples):
        _, hits_a, hits_b = EXAMPLES[example]
        for rank, (start, end) in (hits_a if run == "a" else hits_b).items():
            at = rank if rank not in by_rank else max(by_rank) + 1
            by_rank[at] = {
                "id": f"{run}{number}-{start}-{end}",
                "doc": f"d{number}.md",
                "start": start,
                "end": end,
                "chunker_version": run,
            }
    hits = []
    for rank in range(1, max(by_rank) + 1):
        other: dict[str, Any] = {
            "id": f"{run}-x{rank}",
            "doc": "other.md",
            "start": rank * 10,
            "end": rank * 10 + 9,
        }
        hits.append(by_rank.get(rank, {**other, "chunker_version": run}))
    return [{"qid": name, "question": "what?", "topk": hits}]


def gold(name: str, *examples: str) -> list[dict[str, Any]]:
    pieces = [
        {"id": f"gold{number}", "doc": f"d{number}.md", "start": start, "end": end}
        for number, example in enumerate(examples)
        for start, end in [EXAMPLES[example][0]]
    ]
    return [{"qid": name, "question": "what?", "relevant": pieces}]


def example(folder: Folder, *examples: str, k: str = "1,5") -> dict[str, Any]:
    folder.write("gold.jsonl", gold("q", *examples))
    folder.write("a.jsonl", rows("q", "a", *examples))
    folder.write("b.jsonl", rows("q", "b", *examples))
    return compared(folder, "--k", k)


@pytest.mark.parametrize(
    ("name", "kind", "possible", "regression", "ranks", "places"),
    [
        ("larger", "win", ["win"], "no", (2, 1), 19),
        ("sentences", "undecided", ["regression", "loss", "draw"], "open", (1, [1, None]), 39),
        ("half", "undecided", ["regression", "win"], "open", (3, [2, None]), 39),
        ("sure", "regression", ["regression"], "yes", (1, None), 39),
        ("third", "undecided", ["win", "draw"], "no", ([1, None], [1, None]), 39),
        ("overlap", "undecided", ["win", "draw"], "no", ([1, 2], 1), 39),
    ],
)
def test_the_worked_examples(
    folder: Folder,
    name: str,
    kind: str,
    possible: list[str],
    regression: str,
    ranks: tuple[Any, Any],
    places: int,
) -> None:
    """Kinds, ranks and places of all six."""
    document = example(folder, name)
    (query,) = document["per_query"]
    assert (query["kind"], query["possible"], query["regression"]) == (kind, possible, regression)
    assert (query["a_hit_rank"], query["b_hit_rank"], query["places"]) == (*ranks, places)
    assert document["deltas"]["chunker_version_match"] == "fallback_doc_span"
    assert document["deltas"]["undecided"]["kind_open"] == (kind == "undecided")


def test_the_bands_of_the_examples(folder: Folder) -> None:
    """Differences are joint: at [400, 440) only b finds the third, and nowhere only a does."""
    delta = example(folder, "sentences")["deltas"]["retrieval.hit@5"]
    assert (delta["delta"], delta["band"], delta["a"], delta["b_band"]) == (
        None,
        [-1, 0],
        1,
        [0, 1],
    )
    assert delta["p"] is None
    assert delta["reason"].startswith("place-unknown")
    delta = example(folder, "third")["deltas"]["retrieval.hit@5"]
    assert (delta["band"], delta["a_band"], delta["b_band"]) == ([0, 1], [0, 1], [0, 1])
    deltas = example(folder, "overlap")["deltas"]
    hit5, hit1 = deltas["retrieval.hit@5"], deltas["retrieval.hit@1"]
    assert (hit5["a"], hit5["b"], hit5["delta"], hit5["band"]) == (1, 1, 0, None)
    assert (hit1["delta"], hit1["band"]) == (None, [0, 1])


def test_two_pieces(folder: Folder) -> None:
    """The overlap is found everywhere, the half at some places: recall may fall by a half."""
    document = example(folder, "overlap", "half")
    deltas = document["deltas"]
    assert deltas["retrieval.hit@5"]["delta"] == 0
    assert deltas["retrieval.recall@5"]["band"] == [-0.5, 0]
    assert document["per_query"][0]["regression"] == "open"


def test_sizes_are_counted(folder: Folder) -> None:
    """The chunk of the gold, the hits, and the bytes within ten of them."""
    document = example(folder, "sure")
    sizes = document["deltas"]["sizes"]
    assert (sizes["gold_bytes"], sizes["a_top_bytes"], sizes["b_top_bytes"]) == (800, 800, 115)


def test_found_places_are_counted(folder: Folder) -> None:
    """6 places in the first sentence and 5 in the second."""
    (query,) = example(folder, "sentences")["per_query"]
    assert (query["places"], query["a_found"], query["b_found"]) == (39, 39, 11)


def test_fail_on_and_gates(folder: Folder) -> None:
    """A sure regression fails, an open one cannot be judged, and is accepted where asked."""
    example(folder, "sure")
    compared(folder, "--fail-on", "regression", code=1)
    example(folder, "half")
    compared(folder, "--fail-on", "regression", code=4)
    compared(folder, "--fail-on", "regression", "--accept-open", code=0)
    example(folder, "third")
    compared(folder, "--fail-on", "regression", code=0)


def many(folder: Folder, *examples: str) -> None:
    """A question for each example."""
    named = [(f"q{number}", name) for number, name in enumerate(examples)]
    folder.write("gold.jsonl", [row for qid, name in named for row in gold(qid, name)])
    for run in ("a", "b"):
        traces = [row for qid, name in named for row in rows(qid, run, name)]
        folder.write(f"{run}.jsonl", traces)


@pytest.mark.parametrize(
    ("examples", "code"),
    [
        (("larger",) * 8, 0),  # nothing is lost anywhere
        (("sure",) * 8, 1),  # all is lost, wherever it stood
        (("larger",) * 6 + ("sentences",) * 2, 4),  # a fall between 0 and .25
        (("sure",) * 4 + ("half",) * 4, 1),  # .5 at least
        (("larger",) * 4 + ("third",) * 4, 0),  # open, and no fall at any place
    ],
)
def test_gates_on_bands(folder: Folder, examples: tuple[str, ...], code: int) -> None:
    """A gate passes at the low end, fails at the high end, or is not evaluable."""
    many(folder, *examples)
    folder.write("gates.toml", '[gates]\n"retrieval.hit@5" = { max_drop = 0.1 }\n')
    options = ("--k", "5", "--gates", "gates.toml")
    document = compared(folder, *options, code=code)
    (result,) = document["verdict"]["gates"]
    if code == 4:
        assert "2 questions" in result["reason"]
        assert document["verdict"]["blocks"][0]["code"] == "place-unknown"
