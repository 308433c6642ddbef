"""`compare` of two chunkings by gold that names chunks: the worked examples of the rule."""

from __future__ import annotations

import csv
from typing import Any

import pytest

import ragauge
from tests.support.cases import cases
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


@cases(
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


@cases(
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


def test_every_report_has_the_bands_and_what_is_open(folder: Folder) -> None:
    """b finds four of eight at all places, and four at some: 0.5 to 1, whatever the format."""
    many(folder, *("larger",) * 4, *("sentences",) * 4)
    files = ("c.md", "c.html", "comment:c.txt", "summary:c.text")
    compared(folder, "--k", "5", *(part for name in files for part in ("-o", name)))
    for name in files:
        text = (folder.path / name.rpartition(":")[2]).read_text()
        assert "-0.5000 … +0.0000" in text, name
        assert "0.5000 … 1.0000" in text, name
        assert "0 sure, 4 open, 4 none" in text, name


def test_what_is_lost_at_every_place_is_in_the_reports_of_ci(folder: Folder) -> None:
    """Of two pieces one is surely lost, the other gained at some places: mixed or regression."""
    piece = {"doc": "d0.md", "start": 0, "end": 800}
    other = {"doc": "d1.md", "start": 0, "end": 800}
    folder.write(
        "gold.jsonl",
        [{"qid": "q", "question": "?", "relevant": [{"id": "g", **piece}, {"id": "h", **other}]}],
    )
    half = {"doc": "d1.md", "start": 0, "end": 400}
    for run, hit in (("a", {"id": "a0", **piece}), ("b", {"id": "b0", **half})):
        hits = [{**hit, "chunker_version": run}]
        folder.write(f"{run}.jsonl", [{"qid": "q", "question": "?", "topk": hits}])
    document = compared(folder, "--fail-on", "regression", "-o", "c.xml", "-o", "c.html", code=1)
    (query,) = document["per_query"]
    assert (query["kind"], query["regression"]) == ("undecided", "yes")
    assert query["possible"] == ["regression", "mixed"]
    assert document["fail_on"]["regression"]["kinds"] == {"regression": 1}
    assert 'name="q"' in (folder.path / "c.xml").read_text()


def test_an_uncertain_kind_of_the_source_fails_nothing(folder: Folder) -> None:
    """Under kb half of the chunk says regression, and the places say that nobody knows."""
    many(folder, "sentences")
    options = ("--profile", "kb", "--fail-on", "regression")
    document = compared(folder, *options, code=4)
    (query,) = document["per_query"]
    assert (query["kind"], query["certain"]) == ("regression", False)
    assert document["fail_on"]["regression"]["questions"] == 0
    assert document["fail_on"]["regression"]["open"] == 1


def test_fail_on_loss_is_open_where_only_the_rank_is(folder: Folder) -> None:
    """a at 1; b at 1 or 2 by the place: nothing is lost anywhere, and it may be a loss."""
    folder.write("gold.jsonl", gold("q", "larger"))
    folder.write("a.jsonl", rows("q", "a", "larger"))
    hits = [
        {"id": f"b{at}", "doc": "d0.md", "start": at, "end": at + 200, "chunker_version": "b"}
        for at in (400, 600)
    ]
    other = {"id": "x", "doc": "other.md", "start": 0, "end": 9, "chunker_version": "b"}
    folder.write("b.jsonl", [{"qid": "q", "question": "what?", "topk": [hits[0], other, hits[1]]}])
    document = compared(folder, "--fail-on", "regression", code=0)
    assert document["per_query"][0]["possible"] == ["loss", "win"]  # 2 → 1 or 3
    compared(folder, "--fail-on", "loss", code=4)
    compared(folder, "--fail-on", "loss", "--accept-open", code=0)
    compared(folder, "--fail-on", "loss:1", code=4)  # of one question it could never fail


def test_a_question_that_is_worse_at_all_places_is_a_loss(folder: Folder) -> None:
    """a at 1; b at 2 or nowhere: a loss or a regression, and each is worse."""
    folder.write("gold.jsonl", gold("q", "sure"))
    folder.write("a.jsonl", rows("q", "a", "sure"))
    half = {"id": "b0", "doc": "d0.md", "start": 0, "end": 400, "chunker_version": "b"}
    other = {"id": "x", "doc": "other.md", "start": 0, "end": 9, "chunker_version": "b"}
    folder.write("b.jsonl", [{"qid": "q", "question": "what?", "topk": [other, half]}])
    document = compared(folder, "--fail-on", "loss", code=1)
    assert document["per_query"][0]["possible"] == ["regression", "loss"]
    assert document["fail_on"]["loss"]["kinds"] == {"regression": 0, "loss": 1}
    compared(folder, "--fail-on", "regression", code=4)


GATE = '[gates]\n"retrieval.%s" = { max_drop = 0.1 }\n'


def test_a_gate_that_fails_wherever_the_evidence_stands_says_the_least_drop(
    folder: Folder,
) -> None:
    """Four are surely lost and four may be: a drop of 0.5 to 1."""
    many(folder, *("sure",) * 4, *("sentences",) * 4)
    folder.write("gates.toml", GATE % "hit@5")
    document = compared(folder, "--k", "5", "--gates", "gates.toml", code=1)
    (result,) = document["verdict"]["gates"]
    assert (result["status"], result["value"]) == ("fail", 0.5)
    assert "between +0.5000 and +1.0000" in result["reason"]
    # At the high end the four that are open have lost nothing.
    assert [one["query_id"] for one in result["damage"]] == ["q0", "q1", "q2", "q3"]


def test_damage_counts_what_is_lost_at_the_least(folder: Folder) -> None:
    """The half is at 2 or nowhere instead of 1: it loses half of its reciprocal rank, or all."""
    folder.write("gold.jsonl", [row for n in range(6) for row in gold(f"q{n}", "sure")])
    folder.write("a.jsonl", [row for n in range(6) for row in rows(f"q{n}", "a", "sure")])
    half = {"id": "b0", "doc": "d0.md", "start": 0, "end": 400, "chunker_version": "b"}
    other = {"id": "x", "doc": "other.md", "start": 0, "end": 9, "chunker_version": "b"}
    folder.write(
        "b.jsonl",
        [{"qid": f"q{n}", "question": "what?", "topk": [other, half]} for n in range(6)],
    )
    folder.write("gates.toml", GATE % "mrr@5")
    document = compared(folder, "--k", "5", "--gates", "gates.toml", code=1)
    (result,) = document["verdict"]["gates"]
    assert result["value"] == 0.5
    assert [(one["before"], one["value"], one["lost"]) for one in result["damage"]] == [
        (1, 0.5, [])
    ] * 6


def test_a_drop_of_a_slice_is_judged_at_both_ends(folder: Folder) -> None:
    """The tables are found everywhere, the rest at some places."""
    many(folder, *("larger",) * 6, *("sentences",) * 6)
    items = [row for n in range(12) for row in gold(f"q{n}", "larger" if n < 6 else "sentences")]
    folder.write(
        "gold.jsonl",
        [{**item, "type": "table" if n < 6 else "text"} for n, item in enumerate(items)],
    )
    for part, code in (("table", 0), ("text", 4)):
        gate = f'"retrieval.hit@5" = {{ max_drop = 0.1, slice = "type={part}" }}'
        folder.write("gates.toml", f"[gates]\n{gate}\n")
        document = compared(folder, "--k", "5", "--gates", "gates.toml", code=code)
        (result,) = document["verdict"]["gates"]
        assert result["n"] == 6, part


def test_slices_leave_out_what_is_open_in_a_run(folder: Folder) -> None:
    """Both runs find the same half: the difference is 0 at all places, and neither has a value."""
    many(folder, *("larger",) * 6, *("sentences",) * 6)
    items = [row for n in range(12) for row in gold(f"q{n}", "larger" if n < 6 else "sentences")]
    folder.write("gold.jsonl", [{**item, "type": str(n % 2)} for n, item in enumerate(items)])
    for run in ("a", "b"):
        traces = [row for n in range(6) for row in rows(f"q{n}", "b", "larger")]
        traces += [row for n in range(6, 12) for row in rows(f"q{n}", "b", "sentences")]
        for row in traces:
            row["topk"] = [
                {**hit, "id": hit["id"] + run, "chunker_version": run} for hit in row["topk"]
            ]
        folder.write(f"{run}.jsonl", traces)
    document = compared(folder, "--k", "5")
    delta = document["deltas"]["retrieval.hit@5"]
    assert (delta["delta"], delta["a_band"]) == (0, [0.5, 1])
    part = document["slices"]["type"]["0"]["deltas"]
    assert "retrieval.hit@5" not in part


def answered(folder: Folder, *cited: tuple[int, int]) -> dict[str, Any]:
    """Questions whose answers cite their chunk in a, and some bytes of the document in b."""
    items, traces_a, traces_b = [], [], []
    for number, (start, end) in enumerate(cited):
        doc = f"d{number}.md"
        items.append(
            {
                "qid": f"q{number}",
                "question": "what?",
                "answerable": True,
                "relevant": [{"id": f"g{number}", "doc": doc, "start": 0, "end": 800}],
            }
        )
        whole = {"id": f"a{number}", "doc": doc, "start": 0, "end": 800, "chunker_version": "a"}
        part = {"id": f"b{number}", "doc": doc, "start": start, "end": end}
        found = {**whole, "id": f"b{number}-all", "chunker_version": "b"}
        row = {"qid": f"q{number}", "question": "what?", "answer": "so it is"}
        traces_a.append({**row, "topk": [whole], "citations": [f"a{number}"]})
        hits = [found, {**part, "chunker_version": "b"}]
        traces_b.append({**row, "topk": hits, "citations": [f"b{number}"]})
    folder.write("gold.jsonl", items)
    folder.write("a.jsonl", traces_a)
    folder.write("b.jsonl", traces_b)
    return compared(folder)


def test_an_answer_that_cites_a_part_of_the_chunk_is_open(folder: Folder) -> None:
    """All of the chunk is cited, a part of it, and what is not in it."""
    document = answered(folder, (0, 900), (0, 400), (900, 1300))
    kinds = [query["answer"]["kind"] for query in document["per_query"]]
    assert kinds == ["draw", "undecided", "regression"]
    assert document["kinds"]["answer"]["undecided"] == 1
    compared(folder, "--fail-on", "regression", code=1)
    answered(folder, (0, 900), (0, 400))
    compared(folder, "--fail-on", "regression", code=4)
    compared(folder, "--fail-on", "regression", "--accept-open", code=0)
    answered(folder, (0, 900), (0, 800))
    compared(folder, "--fail-on", "regression", code=0)


def test_python_takes_the_least_evidence_and_notebooks_show_bands(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With evidence of 800 bytes the chunk is its own place, and half of it must be found."""
    many(folder, *("sentences",) * 5)
    monkeypatch.chdir(folder.path)
    result = ragauge.compare("a.jsonl", "b.jsonl", gold="gold.jsonl")
    assert result.kinds["undecided"] == 5
    assert "-1.0000 … +0.0000" in result._repr_html_()
    long = ragauge.compare("a.jsonl", "b.jsonl", gold="gold.jsonl", least_evidence=800)
    assert long.kinds["regression"] == 5


def test_options_of_traces_are_refused_where_there_are_none(folder: Folder) -> None:
    """Scores are compared as they are: another k or chunks would change nothing."""
    many(folder, *("sentences",) * 5)
    for run in ("a", "b"):
        folder.run("score", "gold.jsonl", f"{run}.jsonl", "--full", "-o", f"{run}.json")
    for option in (("--k", "3"), ("--chunks-a", "c.jsonl"), ("--profile", "kb")):
        assert folder.run("compare", "a.json", "b.json", *option).exit_code == 2
    outcome = folder.run("compare", "a.json", "b.json", "--least-evidence", "80")
    assert outcome.exit_code == 2
    assert folder.run("compare", "a.json", "b.json").exit_code == 0


def test_a_question_without_a_result_is_worse_than_a_miss(folder: Folder) -> None:
    """a finds a half of the chunk and b has no trace: lost where it stands there, else a loss."""
    many(folder, "third", "larger")
    folder.write("b.jsonl", rows("q1", "b", "larger"))
    query = compared(folder)["per_query"][0]
    assert (query["query_id"], query["possible"]) == ("q0", ["regression", "loss"])
    document = compared(folder, "--fail-on", "loss", "--allow-missing", code=1)
    assert document["fail_on"]["loss"]["kinds"] == {"regression": 0, "loss": 1}


def test_a_table_says_which_kinds_are_certain(folder: Folder) -> None:
    """Under kb the kind of the source stands there, whether it is certain or not."""
    many(folder, "sure", "sentences")
    compared(folder, "--profile", "kb", "-o", "c.csv")
    with open(folder.path / "c.csv", encoding="utf-8", newline="") as file:
        found = [(row["qid"], row["kind"], row["certain"]) for row in csv.DictReader(file)]
    assert found == [("q0", "regression", "yes"), ("q1", "regression", "no")]


FIRST, SECOND = "The harbour closes at dusk in winter. ", "A red lantern marks the northern pier."


def guessed(folder: Folder, question: str, *options: str) -> Any:
    """a finds a chunk of two sentences (38 bytes each), b the first of them and nothing else."""
    text = FIRST + SECOND
    hits = {"a": ("chunk", text), "b": ("first", FIRST)}
    folder.write("gold.jsonl", [{"qid": "q", "question": question, "relevant": ["chunk"]}])
    for run, (name, words) in hits.items():
        hit = {"id": name, "doc": "d.md", "start": 0, "end": len(words), "text": words}
        row = {"qid": "q", "question": question, "topk": [{**hit, "chunker_version": run}]}
        folder.write(f"{run}.jsonl", [row])
    return compared(folder, "--k", "5", *options)


@pytest.mark.parametrize(
    ("question", "b"),
    [
        # Places are [0, 40), [20, 60) and [36, 76); the first hit covers half of the first alone.
        # Of [20, 60) 17 bytes stand in the first sentence and 22 in the second: it has two places.
        ("harbour in winter?", 1),
        ("northern pier?", 0),
        ("why?", 1 / 3),  # no word tells: all places weigh the same
    ],
)
def test_a_guess_is_by_the_words_of_the_question(folder: Folder, question: str, b: float) -> None:
    plain, guess = guessed(folder, question), guessed(folder, question, "--guess-place")
    hit = guess["deltas"]["retrieval.hit@5"]
    assert (hit.pop("guess"), hit["band"]) == (
        {"a": 1.0, "b": round(b, 4), "delta": round(b - 1, 4)}, [-1, 0],
    )  # fmt: skip
    for delta in guess["deltas"].values():
        if isinstance(delta, dict):
            delta.pop("guess", None)
    assert guess == plain  # it decides nothing, and is nowhere else


def test_every_report_has_the_column_of_guesses(folder: Folder) -> None:
    guessed(folder, "northern pier?")
    files = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--k", "5", "--guess-place")
    outputs = [word for name in ("md", "html") for word in ("-o", f"out.{name}")]
    shown = folder.run("compare", *files, *outputs).out
    assert "guess: Δ if the evidence stands" in " ".join(shown.split())
    written = [(folder.path / f"out.{name}").read_text("utf-8") for name in ("md", "html")]
    for text in (shown, *written):
        assert "guess" in text
        assert "-1.0000" in text


def test_nothing_is_guessed_without_texts(folder: Folder) -> None:
    many(folder, *("sentences",) * 5)
    files = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--guess-place")
    shown = folder.run("compare", *files).out
    assert "5 questions of 5 whose evidence" in " ".join(shown.split())
    assert "guess: Δ" not in shown
    for run in ("a", "b"):
        folder.run("score", "gold.jsonl", f"{run}.jsonl", "--full", "-o", f"{run}.json")
    assert folder.run("compare", "a.json", "b.json", "--guess-place").exit_code == 2
