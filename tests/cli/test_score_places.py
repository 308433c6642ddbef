"""Hits without ids or places of the corpus: `score` places them by name, offsets and text."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ragauge.files import ranges
from ragauge.formats.load import load_traces
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose
from ragauge.scoring.score import score
from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row, lines_of
from tests.support.corpora import made
from tests.support.html_pages import unpacked

APPLES = (
    "# Äpfel\n\nÄpfel are picked in September, when the nights grow cold.\n\n"
    "They keep for  six months in a cool cellar,\nif they do not touch each other.\n"
)
PORTS = (
    "# Ports\n\nThe gateway listens on port 8080 unless the environment says otherwise.\n\n"
    "The metrics of the gateway are served on port 9090, to the inner network alone.\n"
)
SAME = "# Same\n\nThis page is the same in both folders, word for word, and says nothing new.\n"
FILES = {"fruit/äpfel.md": APPLES, "ops/ports.md": PORTS, "a/same.md": SAME, "b/same.md": SAME}

EVIDENCE = {
    "q1": ("fruit/äpfel.md", "They keep for  six months in a cool cellar"),
    "q2": ("ops/ports.md", "served on port 9090"),
    "q3": ("ops/ports.md", "The gateway listens on port 8080"),
}
METRICS = "retrieval.recall@3,retrieval.precision@3,retrieval.mrr@10,retrieval.span_recall@3"


def place(doc: str, text: str) -> Row:
    """Where a text stands in its document, counted in bytes."""
    start = FILES[doc].encode().index(text.encode())
    return {"doc": doc, "start": start, "end": start + len(text.encode())}


GOLD: list[Row] = [
    {"qid": qid, "question": f"{qid}?", "answerable": True, "relevant": [place(doc, text)]}
    for qid, (doc, text) in EVIDENCE.items()
]

# What a system retrieved: pieces of documents, cut by a chunker of its own.
CELLAR = "They keep for  six months in a cool cellar,\nif they do not touch each other."
PICKED = "Äpfel are picked in September, when the nights grow cold."
GATEWAY = "The gateway listens on port 8080 unless the environment says otherwise."
INNER = "The metrics of the gateway are served on port 9090, to the inner network alone."
RETRIEVED: dict[str, list[tuple[str, str]]] = {
    "q1": [("fruit/äpfel.md", PICKED), ("fruit/äpfel.md", CELLAR)],  # found at 2
    "q2": [("ops/ports.md", INNER)],  # found at 1
    "q3": [("ops/ports.md", INNER), ("fruit/äpfel.md", PICKED)],  # not found
}
# recall (1 + 1 + 0) / 3; precision (1/2 + 1 + 0) / 3; mrr (1/2 + 1 + 0) / 3
EXPECTED = {
    "retrieval.recall@3": 0.6667,
    "retrieval.precision@3": 0.5,
    "retrieval.mrr@10": 0.5,
    "retrieval.span_recall@3": 0.6667,
}

MakeHit = Callable[[str, str], Row]


def by_characters(doc: str, text: str) -> Row:
    start = FILES[doc].index(text)
    return {"id": text[:9], "doc": doc, "start_char": start, "end_char": start + len(text)}


def by_start(doc: str, text: str) -> Row:
    """What LangChain's splitters say with `add_start_index`: characters, and no end."""
    return {
        "id": text[:9],
        "path": f"/srv/{doc}",
        "start_index": FILES[doc].index(text),
        "text": text,
    }


def unsaid_characters(doc: str, text: str) -> Row:
    """Offsets that count characters without saying so; the text tells."""
    start = FILES[doc].index(text)
    return {"id": text[:9], "doc": doc, "start": start, "end": start + len(text), "text": text}


def wrong_offsets(doc: str, text: str) -> Row:
    """Offsets of another version of the document."""
    return {"id": text[:9], "doc": doc, "start": 3, "end": 3 + len(text), "text": text}


SHAPES: dict[str, MakeHit] = {
    "bytes": lambda doc, text: {"id": text[:9], **place(doc, text)},
    "absolute paths": lambda doc, text: {
        "id": text[:9], **place(doc, text), "doc": f"/home/me/docs/{doc}"
    },
    "addresses": lambda doc, text: {
        "id": text[:9], **place(doc, text), "doc": f"file:///docs/{doc.replace('ä', '%C3%A4')}"
    },
    "windows": lambda doc, text: {
        "id": text[:9], **place(doc, text), "doc": "C:\\docs\\" + doc.replace("/", "\\")
    },
    "file names": lambda doc, text: {"id": text[:9], **place(doc, text), "doc": doc.split("/")[1]},
    "characters": by_characters,
    "a start": by_start,
    "unsaid characters": unsaid_characters,
    "wrong offsets": wrong_offsets,
    "texts": lambda doc, text: {"text": text},  # noqa: ARG005
    "texts with ids": lambda doc, text: {"id": text[:9], "text": text},  # noqa: ARG005
    "texts of other documents": lambda doc, text: {"doc": f"{hash(doc)}", "text": text},
    "other blanks": lambda doc, text: {"text": " \n".join(text.split())},  # noqa: ARG005
    "decomposed": lambda doc, text: {"text": unicodedata.normalize("NFD", text)},  # noqa: ARG005
    "with a head": lambda doc, text: {"text": f"Title of {doc}\n\n{text}"},
}  # fmt: skip


def traces(make: MakeHit) -> list[Row]:
    return [
        {"qid": qid, "hits": [make(*entry) for entry in hits]} for qid, hits in RETRIEVED.items()
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    return str(made(tmp_path, FILES))


def scored(folder: Folder, corpus: str | None, rows: list[Row], *options: str) -> Outcome:
    corpus_options = () if corpus is None else ("--corpus", corpus)
    return folder.score(
        rows, "--profile", "all", "--metrics", METRICS, "--format", "json", *corpus_options,
        *options, gold=GOLD,
    )  # fmt: skip


def values(outcome: Outcome) -> dict[str, float]:
    assert outcome.exit_code == 0, outcome.err
    metrics = json.loads(outcome.out)["metrics"]
    return {name: metrics[name]["value"] for name in METRICS.split(",")}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hit_counts_wherever_it_stands_however_it_says_so(
    folder: Folder, corpus: str, shape: str
) -> None:
    assert values(scored(folder, corpus, traces(SHAPES[shape]))) == EXPECTED


def test_a_list_of_chunks_with_texts_places_hits_too(folder: Folder) -> None:
    """Its chunks lie side by side; the hits are cut otherwise."""
    chunks = []
    for doc in ("fruit/äpfel.md", "ops/ports.md"):
        text = FILES[doc]
        for number, start in enumerate(range(0, len(text), 50)):
            part = text[start : start + 50]
            first = len(text[:start].encode())
            chunks.append(
                {"id": f"{doc}:{number}", "doc": doc, "text": part,
                 "start": first, "end": first + len(part.encode())}
            )  # fmt: skip
    folder.write("chunks.jsonl", chunks)
    for shape in ("texts", "absolute paths", "a start"):
        outcome = scored(folder, None, traces(SHAPES[shape]), "--chunks", "chunks.jsonl")
        assert values(outcome) == EXPECTED


def test_workers_place_hits_as_one_process_does(
    folder: Folder, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for make in SHAPES.values() for row in traces(make)]
    alone = scored(folder, corpus, rows, "--full")
    monkeypatch.setattr(inputs, "plan", partial(ranges.plan, range_bytes=2000))
    monkeypatch.setattr(choose, "_worker_count", lambda *_: 2)
    assert scored(folder, corpus, rows, "--full").out == alone.out


def test_what_was_placed_and_what_not_is_counted(folder: Folder, corpus: str) -> None:
    rows = traces(SHAPES["absolute paths"])
    same = "This page is the same in both folders, word for word"
    rows[0]["hits"] += [
        {"id": "1", "text": same},
        {"id": "2", "doc": "same.md", "start": 8, "end": 30},
        {"id": "3", "text": "Nothing like this stands in any of the documents, nowhere at all."},
        {"id": "4"},
        {"id": "5", "doc": "gone.md", "start": 1, "end": 5},
        {"id": "6", "doc": "ops/ports.md", "start": 1, "end": 5000},
        {"id": "7", "doc": "x/b/same.md", "text": same},
    ]
    outcome = scored(folder, corpus, rows, "--full")
    assert json.loads(outcome.out)["placing"] == {
        "placed": {"offsets": 5, "text": 1},
        "unplaced": {
            "no-text": 1, "unknown-document": 1, "offsets-elsewhere": 1, "text-not-found": 1,
            "ambiguous": 2,
        },
        "prefixes": ["/home/me/docs/", "x/"],
    }  # fmt: skip
    assert "6 of 12 hits were placed (by offsets 5, text 1)" in outcome.err
    assert "2 have a name or a text that several places have" in outcome.err
    assert "without their prefix `/home/me/docs/`, `x/`" in outcome.err


NOT_PLACED: dict[str, tuple[MakeHit, bool, str, str]] = {
    "ids": (lambda doc, text: {"id": text[:9]}, True, "no known id", "--chunks"),  # noqa: ARG005
    "no corpus": (
        lambda doc, text: {"text": text}, False, "no corpus to look", "--corpus"  # noqa: ARG005
    ),
    "other names": (SHAPES["absolute paths"], False, "gold names otherwise", "--corpus"),
    "other texts": (
        lambda doc, text: {"text": text[::-1]}, True, "does not stand there", "corpus"  # noqa: ARG005
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_PLACED)
def test_a_run_whose_hits_have_no_place_is_not_evaluable(
    folder: Folder, corpus: str, case: str
) -> None:
    make, with_corpus, reason, cure = NOT_PLACED[case]
    outcome = scored(folder, corpus if with_corpus else None, traces(make))
    assert outcome.exit_code == 4
    (block,) = json.loads(outcome.out)["verdict"]["blocks"]
    assert block["code"] == "nothing-placed"
    assert reason in block["message"]
    assert cure in block["message"]


def test_a_run_that_retrieves_nothing_is_evaluable(folder: Folder, corpus: str) -> None:
    outcome = scored(folder, corpus, [{"qid": qid, "hits": []} for qid in RETRIEVED])
    assert values(outcome)["retrieval.recall@3"] == 0.0


# --- evidence that is a quote and nothing else ---

QUOTES: list[Row] = [
    {"qid": qid, "question": f"{qid}?", "answerable": True, "relevant": [{"quote": text}]}
    for qid, (_, text) in EVIDENCE.items()
]
QUOTED = {name: value for name, value in EXPECTED.items() if "span" not in name}


def quoted(folder: Folder, rows: list[Row], *options: str, gold: list[Row] = QUOTES) -> Outcome:
    return folder.score(
        rows, "--profile", "all", "--metrics", ",".join(QUOTED), "--format", "json", *options,
        gold=gold,
    )  # fmt: skip


def metrics_of(outcome: Outcome) -> dict[str, float]:
    assert outcome.exit_code == 0, outcome.err
    metrics = json.loads(outcome.out)["metrics"]
    return {name: metrics[name]["value"] for name in QUOTED}


@cases("shape", ["texts", "texts with ids", "other blanks", "with a head"])
def test_a_quote_is_found_by_the_texts_of_hits(folder: Folder, shape: str) -> None:
    assert metrics_of(quoted(folder, traces(SHAPES[shape]))) == QUOTED


@pytest.mark.parametrize("shape", ["bytes", "absolute paths", "characters", "texts"])
def test_a_quote_is_found_by_places_where_there_is_a_corpus(
    folder: Folder, corpus: str, shape: str
) -> None:
    assert metrics_of(quoted(folder, traces(SHAPES[shape]), "--corpus", corpus)) == QUOTED


def found_at(folder: Folder, quote: str, *texts: str) -> int | None:
    """The rank at which a quote is found, by its reciprocal."""
    gold = [{"qid": "q", "question": "?", "relevant": [{"quote": quote}]}]
    rows = [{"qid": "q", "hits": [{"id": str(n), "text": text} for n, text in enumerate(texts)]}]
    reciprocal = metrics_of(quoted(folder, rows, gold=gold))["retrieval.mrr@10"]
    return round(1 / reciprocal) if reciprocal else None


def test_half_of_the_characters_of_a_quote_find_it(folder: Folder) -> None:
    """Of 80 characters, of which the last 40 have two bytes each, 40 are a half."""
    head = "abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    tail = "äöüßéèêàâçáíóúñãõåøæœłżźćńśđðþÿìòùîôûëïý"
    assert found_at(folder, head + tail, head) == 1
    assert found_at(folder, head + tail, head[1:]) is None
    assert found_at(folder, head + tail, f"x {tail} x") == 1
    assert found_at(folder, head + tail, f"before it {head[:26]}") is None
    # 26 and then 14 more of 80, together a half
    assert found_at(folder, head + tail, f"before it {head[:26]}", f"{tail[-14:]} behind") == 2


def test_no_quote_can_be_found_without_a_text(folder: Folder) -> None:
    outcome = quoted(folder, [{"qid": qid, "hits": ["a", "b"]} for qid in EVIDENCE])
    assert (outcome.exit_code, outcome.codes) == (4, {"nothing-placed"})


def test_a_quote_in_a_group_is_found_too(folder: Folder) -> None:
    gold = [{"qid": "q", "question": "?", "groups": [[{"quote": INNER}], [{"quote": PICKED}]]}]
    rows = [{"qid": "q", "hits": [{"id": "a", "text": INNER}]}]
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", rows)
    outcome = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--format", "json",
        "--metrics", "retrieval.group_recall@3",
    )  # fmt: skip
    assert json.loads(outcome.out)["metrics"]["retrieval.group_recall@3"]["value"] == 0.5


def test_validate_finds_what_score_finds(folder: Folder, corpus: str) -> None:
    folder.write("gold.jsonl", GOLD)
    for shape in ("texts", "absolute paths", "a start", "with a head"):
        folder.write("trace.jsonl", traces(SHAPES[shape]))
        outcome = folder.run("validate", "gold.jsonl", "trace.jsonl", "--corpus", corpus)
        assert outcome.exit_code == 0, outcome.err
    folder.write("trace.jsonl", traces(NOT_PLACED["other texts"][0]))
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl", "--corpus", corpus)
    assert outcome.codes == {"unresolved"}


# --- comparing, judging and diagnosing what was placed ---


def test_compare_places_hits_of_both_files(folder: Folder, corpus: str) -> None:
    """The same hits, said in two ways, are a draw; without a corpus there is nothing to compare."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", traces(SHAPES["absolute paths"]))
    folder.write("b.jsonl", traces(SHAPES["texts"]))
    worse = traces(SHAPES["a start"])
    worse[1]["hits"] = worse[2]["hits"][1:]
    folder.write("c.jsonl", worse)
    arguments = ("--gold", "gold.jsonl", "--profile", "all", "--format", "json")
    same = folder.run("compare", "a.jsonl", "b.jsonl", *arguments, "--corpus", corpus)
    assert same.exit_code == 0, same.err
    document = json.loads(same.out)
    assert {row["kind"] for row in document["per_query"]} <= {"draw", "both_miss"}
    lost = folder.run("compare", "a.jsonl", "c.jsonl", *arguments, "--corpus", corpus)
    kinds = {row["query_id"]: row["kind"] for row in json.loads(lost.out)["per_query"]}
    assert kinds["q2"] == "regression"
    blind = folder.run("compare", "a.jsonl", "b.jsonl", *arguments)
    assert (blind.exit_code, blind.codes) == (4, {"nothing-placed"})


def test_stored_runs_need_no_corpus_again(folder: Folder, corpus: str) -> None:
    """Their hits are stored with their places: compare, diagnose and rescore find them."""
    store = ("--store", "sqlite:///runs.db")
    for name, shape in (("one", "texts"), ("two", "absolute paths")):
        outcome = scored(folder, corpus, traces(SHAPES[shape]), *store, "--run-id", name)
        assert outcome.exit_code == 0, outcome.err
    compared = folder.run("compare", "one", "two", *store, "--format", "json")
    kinds = {row["kind"] for row in json.loads(compared.out)["per_query"]}
    assert kinds <= {"draw", "both_miss"}
    assert "unchanged" in folder.run("rescore", "one", *store).out
    diagnosed = folder.run("diagnose", "one", *store, "--format", "json")
    assert diagnosed.exit_code == 0, diagnosed.err


def test_diagnose_does_not_blame_an_index_whose_hits_have_no_place(
    folder: Folder, corpus: str
) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", traces(SHAPES["texts"]))
    blind = folder.run("diagnose", "gold.jsonl", "trace.jsonl", "--profile", "all")
    assert (blind.exit_code, blind.codes) == (4, {"nothing-placed"})
    outcome = folder.run(
        "diagnose", "gold.jsonl", "trace.jsonl", "--profile", "all", "--corpus", corpus
    )
    assert outcome.exit_code == 0, outcome.err


TARGET = """
import json
rows = {rows!r}
def ask(question, limit=9):
    return dict(documents=rows[question][:limit])
"""


def test_shadow_asks_and_places_as_run_does(folder: Folder, corpus: str) -> None:
    """One hit is enough for q2 and not for q1, whose evidence is the second."""
    rows = {f"{qid}?": [text for _, text in hits] for qid, hits in RETRIEVED.items()}
    folder.write("own.py", TARGET.format(rows=rows))
    folder.write("gold.jsonl", GOLD)
    for least in ("0.9", "0.6"):
        gate = f'"retrieval.recall@3" = {{ threshold = {least}, min_n = 1 }}\n'
        folder.write(f"least-{least}.toml", gate)
    outcome = folder.run(
        "shadow", "--live", "python:own.py:ask", "--shadow", "python:own.py:ask", "--gold",
        "gold.jsonl", "--profile", "all", "--corpus", corpus, "--format", "json", "--filter",
        "qid~q[12]", "--shadow-option", "limit=1", "--no-timing", "--rate", "100/s",
        "--store", "sqlite:///runs.db", "--gates", "least-0.9.toml", "--index-only",
    )  # fmt: skip
    assert outcome.exit_code == 1, outcome.err
    (gate,) = json.loads(outcome.out)["verdict"]["gates"]
    assert gate["value"] == 0.5  # of q1 and q2 the second alone
    both = folder.run(
        "shadow", "--live", "python:own.py:ask", "--shadow", "python:own.py:ask", "--gold",
        "gold.jsonl", "--profile", "all", "--corpus", corpus, "--format", "json",
        "--option", "limit=2", "--store", "sqlite:///runs.db", "--gates",
        "least-0.6.toml", "--index-only",
    )  # fmt: skip
    assert both.exit_code == 0, both.err


def test_options_of_targets_are_refused_for_other_sides(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", traces(SHAPES["bytes"]))
    for option in (("--live-option", "a=b"), ("--filter", "qid=q1")):
        outcome = folder.run(
            "shadow", "--live", "trace.jsonl", "--shadow", "trace.jsonl", "--gold", "gold.jsonl",
            *option,
        )  # fmt: skip
        assert outcome.exit_code == 2
        assert f"{option[0]}: --live trace.jsonl is no target" in outcome.err


def test_delta_s_from_texts_does_not_keep_hits_from_their_places(
    folder: Folder, corpus: str
) -> None:
    outcome = scored(
        folder, corpus, traces(SHAPES["texts"]), "--embed", "hashing", "--embed-cache", "none",
        "--store", "sqlite:///runs.db", "--run-id", "measured",
    )  # fmt: skip
    assert values(outcome) == EXPECTED
    rescored = folder.run("rescore", "measured", "--store", "sqlite:///runs.db")
    assert "unchanged" in rescored.out


def test_traces_in_memory_are_placed_too(corpus: str, tmp_path: Path) -> None:
    gold, trace = tmp_path / "gold.jsonl", tmp_path / "trace.jsonl"
    gold.write_bytes(lines_of(GOLD))
    trace.write_bytes(lines_of(traces(SHAPES["texts"])))
    loaded = load_traces(str(trace))
    scores = score(str(gold), loaded, corpus=corpus, profile="all", k=3)
    assert (
        round(scores.metrics["retrieval.recall@3"].value or 0, 4) == EXPECTED["retrieval.recall@3"]
    )
    assert scores.placing is not None
    assert scores.placing.placed == {"text": 5}


def test_a_page_shows_the_evidence_among_hits_that_are_texts(folder: Folder, corpus: str) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", traces(SHAPES["texts"]))
    outcome = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--corpus", corpus, "--profile", "all",
        "-o", "page.html",
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    rows = {
        row["gold"]: row
        for row in unpacked((folder.path / "page.html").read_text("utf-8"))["questions-0"]
    }
    start = INNER.index("served")
    highlights = rows["gold.jsonl:2"]["attempts"][0]["hits"]["highlights"]
    assert highlights == {"0": [[start, start + len("served on port 9090")]]}
    assert "5 of 5 hits were placed" in (folder.path / "page.html").read_text("utf-8")
