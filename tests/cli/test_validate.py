"""`validate --corpus` looks up every id and place; `score --corpus` uses the corpus as a list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.corpus import resolve
from ragauge.scoring import score
from tests.support.cases import cases
from tests.support.command import Content, Folder, Outcome, Row, lines_of
from tests.support.corpora import CODE, FIRST, GUIDE, LAST, NOTE, looked_up, made

ITEM: Row = {"qid": "q", "question": "?", "answerable": True}
PLACE: Row = {"doc": "guide.md", "start": 9, "end": 24, "quote": "Äpfel are red."}


def checked(
    folder: Folder, gold: Content | None = None, traces: Content | None = None, *options: str
) -> Outcome:
    """Validate files against the small corpus."""
    if not (folder.path / "corpus").exists():
        made(folder.path)
    names = []
    for name, content in (("gold.jsonl", gold), ("trace.jsonl", traces)):
        if content is not None:
            folder.write(name, content)
            names += ["--gold" if name == "gold.jsonl" else "--trace", name]
    return folder.run("validate", *names, "--corpus", "corpus", *options)


def item(folder: Folder, *options: str, **fields: Any) -> Outcome:
    return checked(folder, [{**ITEM, **fields}], None, *options)


def trace(folder: Folder, *options: str, **fields: Any) -> Outcome:
    return checked(folder, None, [{"qid": "q", **fields}], *options)


def told(outcome: Outcome) -> list[str]:
    """The codes and messages of the problems."""
    return [f"{each.code}: {each.message}" for each in outcome.problems]


# --- gold ---


def test_what_is_found_is_counted(folder: Folder) -> None:
    gold = [
        {**ITEM, "relevant": [FIRST, PLACE], "negatives": [CODE], "anchor_section": "guide.md#S.1"},
        {**ITEM, "qid": "r", "groups": [[LAST, {"doc": "guide.md", "start": 53, "end": 71}]],
         "relevant_docs": ["sub/notes.txt"]},
    ]  # fmt: skip
    done = checked(folder, gold, [{"qid": "q", "retrieved_ids": [FIRST, NOTE, FIRST]}])
    assert (done.exit_code, done.err) == (0, "")
    # q: FIRST, CODE and the section; r: LAST and the document.
    assert "gold.jsonl in the corpus: ids 5, places 2, quotes 1, all found\n" in done.out
    assert "trace.jsonl in the corpus: ids 3, places 0, all found\n" in done.out
    assert done.out.endswith("ok\n")


@cases(
    ("fields", "problem"),
    [
        ({"relevant": ["guide.md#S.1.p.Bk002"]}, "unresolved: the corpus has no block"),
        ({"gold_ids": ["c-17"]}, "unresolved: the corpus has no block `c-17`"),
        ({"grades": {"c-17": 2}}, "unresolved: the corpus has no block `c-17`"),
        ({"groups": [[FIRST, "c-17"]]}, "unresolved: the corpus has no block `c-17`"),
        ({"negatives": ["c-17"]}, "unresolved: the corpus has no block `c-17`"),
        ({"relevant_docs": ["gone.md"]}, "unresolved: the corpus has no document `gone.md`"),
        ({"expected_doc_ids": ["gone.md"]}, "unresolved: the corpus has no document `gone.md`"),
        ({"anchor_section": "guide.md#S.4"}, "unresolved: `guide.md` has no section `S.4`"),
        ({"anchor_section": "S.1.1", "relevant_docs": ["sub/notes.txt"]},
         "unresolved: `sub/notes.txt` has no section `S.1.1`"),
        ({"decoy_section": "S.9"}, "unresolved: the section `S.9` cannot be told"),
        ({"relevant": [{**PLACE, "doc": "gone.md"}]}, "unresolved: the corpus has no document"),
        ({"relevant": [{**PLACE, "end": 900}]}, "unresolved: the bytes 9 to 900 are not in"),
        ({"relevant": [{**PLACE, "start": 10}]}, "unresolved: the byte 10 of `guide.md` is inside"),
        ({"relevant": [{**PLACE, "section": "S.8"}]}, "unresolved: `guide.md` has no section"),
        ({"relevant": [{**PLACE, "section": "S.1.1"}]},
         "unresolved: the section `guide.md#S.1.1` has none of the bytes 9 to 24 of `guide.md`"),
        ({"relevant": [{**PLACE, "start": 73, "end": 87}]}, "quote-moved: the text at 73 to 87"),
        ({"relevant": [{**PLACE, "unit": "char", "end": 25}]}, "quote-moved: the text at 9 to 26"),
        ({"relevant": [{"doc": "guide.md", "start": 1, "end": 2, "unit": "page"}]},
         "unresolved: a place in pages cannot be found"),
        ({"groups": [[{**PLACE, "quote": "Cherries"}]]}, "quote-moved: the text at 9 to 24"),
        ({"relevant": [{**PLACE, "doc_hash": "0" * 64}]}, "unresolved: `relevant[0]`: `guide.md`"),
        ({"relevant": [FIRST], "gold_spans": [{**PLACE, "end": 90}]}, "unresolved: the bytes 9 to"),
    ],
)  # fmt: skip
def test_what_gold_names_and_is_not_there_is_a_problem(
    folder: Folder, fields: Row, problem: str
) -> None:
    done = item(folder, **fields)
    assert done.exit_code == 3
    assert len(done.problems) == 1, told(done)
    assert told(done)[0].startswith(problem), told(done)
    assert done.problems[0].where == "gold.jsonl:1"
    assert ", 1 not found\n" in done.out


def test_gold_that_is_right_passes(folder: Folder) -> None:
    """Units are converted, hashes may be short, and an id beside a place may be long gone."""
    known = looked_up(folder.path).document("guide.md").hash
    characters = {**PLACE, "end": 23, "unit": "char", "id": "old-chunk-7"}
    done = item(folder, relevant=[characters], anchor_section="S.1.1")
    assert (done.exit_code, done.err) == (0, ""), done
    lines = {"doc": "guide.md", "start": 11, "end": 11, "kind": "line", "quote": "Äpfel are red."}
    short = {"doc": "guide.md", "start": 53, "end": 71, "doc_hash": f"sha256:{known[:16]}"}
    assert item(folder, relevant=[lines]).exit_code == 0
    assert item(folder, relevant=[short]).exit_code == 0
    # A hash of five letters proves nothing.
    assert item(folder, relevant=[{**short, "doc_hash": known[:5]}]).exit_code == 3


def test_a_place_of_several_spans_has_its_quote_over_all(folder: Folder) -> None:
    place = {"doc": "guide.md", "source_spans": [[9, 24], [73, 88]]}
    right = {**place, "quote": "Äpfel are red. Äpfel are red."}
    assert item(folder, relevant=[right]).exit_code == 0
    wrong = item(folder, relevant=[{**place, "quote": "Äpfel are red. Bananas"}])
    assert [each.code for each in wrong.problems] == ["quote-moved"]


def test_a_moved_quote_says_where_it_stands(folder: Folder) -> None:
    moved = {"doc": "guide.md", "start": 11, "end": 27, "quote": "Bananas are not."}
    assert item(folder, relevant=[moved]).problems[0].hint == "it stands at 25 to 41"


def test_problems_stand_in_the_order_of_the_lines(folder: Folder) -> None:
    """Hashes are read apart from items, and bad lines before both."""
    gold = lines_of([
        {**ITEM, "relevant": [{**PLACE, "doc_hash": "0" * 64}]},
        {**ITEM, "qid": "r", "relevant": ["gone"]},
    ]) + b"17\n" + lines_of([{**ITEM, "qid": "s", "relevant": ["gone"]}])  # fmt: skip
    done = checked(folder, gold)
    assert [each.where for each in done.problems] == [f"gold.jsonl:{n}" for n in (1, 2, 3, 4)]
    assert [each.code for each in done.problems] == [
        "unresolved", "unresolved", "not-a-row", "unresolved"
    ]  # fmt: skip


def test_the_first_problems_are_told_whatever_they_are(folder: Folder) -> None:
    gold = [{**ITEM, "relevant": [{**PLACE, "doc_hash": "0" * 64}]}]
    gold += [{**ITEM, "qid": f"q{n}", "relevant": ["gone"]} for n in range(25)]
    done = checked(folder, gold)
    assert [each.where for each in done.problems] == [f"gold.jsonl:{n + 1}" for n in range(20)]
    assert "... and 6 more problems in gold.jsonl" in done.err


# --- traces ---


@cases(
    ("fields", "problems"),
    [
        ({"retrieved_ids": ["c-1", FIRST, "c-2"]}, ["no block `c-1`", "no block `c-2`"]),
        ({"topk": ["c-1", "c-1"]}, ["no block `c-1`", "no block `c-1`"]),
        ({"topk": [{"id": "c-1", "text": "x"}]}, ["no block `c-1`"]),
        ({"chunks": [{"id": "c-1"}], "answer": "x"}, ["no block `c-1`"]),
        # A citation of a hit is the same problem, and told once.
        ({"topk": ["c-1"], "answer_json": {"claim": "x", "citations": ["c-1", "c-2"]}},
         ["no block `c-1`", "no block `c-2`"]),
        ({"answer": "See citations: [c-1]"}, ["no block `c-1`"]),
        ({"topk": [{"id": FIRST, "doc": "gone.md"}]},
         [f"`{FIRST}` is said to be in `gone.md`", "no document `gone.md`"]),
        ({"topk": [{"id": FIRST, "doc": "sub/notes.txt"}]}, ["is in `guide.md`"]),
        ({"topk": [{"id": "x", "doc": "guide.md", "offsets": [0, 90]}]}, ["the bytes 0 to 90"]),
        ({"topk": [{"id": "x", "doc": "guide.md", "offsets": [0, 10]}]}, ["the byte 10 of"]),
        ({"topk": [{"id": FIRST, "doc": "guide.md", "offsets": [0, 90]}]}, ["the bytes 0 to 90"]),
        ({"topk": [{"id": "x", "doc": "gone.md", "offsets": [0, 9]}]}, ["no document `gone.md`"]),
        ({"topk": [{"id": FIRST, "doc": "guide.md", "doc_hash": "f" * 64}]}, ["has the hash"]),
        ({"chunks": [{"id": FIRST, "doc_hash": "f" * 64}], "answer": "x"}, ["has the hash"]),
        ({"answer_citations": [{"doc": "guide.md", "start": 0, "end": 90}]}, ["the bytes 0 to 90"]),
        ({"answer_citations": [{"doc": "gone.md", "kind": "figure", "page": 2}]}, ["`gone.md`"]),
        ({"topk": [{"id": "x", "offsets": [0, 9]}]}, ["no block `x`"]),
        ({"topk": [{"id": FIRST, "section": "S.44"}]}, ["`guide.md` has no section `S.44`"]),
        ({"chunks": [{"id": FIRST, "section": "S.44"}], "answer": "x"}, ["no section `S.44`"]),
        ({"topk": [{"id": "guide.md", "section": "S.44"}]}, ["no section `S.44`"]),
        ({"topk": [{"id": "x", "doc": "guide.md", "section": "S.44", "offsets": [9, 24]}]},
         ["no section `S.44`"]),
        ({"topk": [{"id": FIRST, "section": "S.1.1"}]},
         ["the section `guide.md#S.1.1` has none of the bytes 9 to 41 of `guide.md`"]),
        ({"topk": [{"id": "x", "doc": "guide.md", "section": "S.1.1", "offsets": [9, 24]}]},
         ["the section `guide.md#S.1.1` has none of the bytes 9 to 24 of `guide.md`"]),
        ({"topk": [{"id": FIRST, "section": "sub/notes.txt#S.0"}]}, ["has none of the bytes"]),
        ({"topk": [{"id": CODE, "doc": "guide.md", "offsets": [9, 24]}]},
         [f"`{CODE}` has the bytes 53 to 71 of `guide.md`, and its place is said to be 9 to 24"]),
        ({"topk": [{"id": CODE, "offsets": [9, 24]}]}, ["is said to be 9 to 24"]),
        ({"topk": [{"id": FIRST, "offsets": [9, 900]}]}, ["the bytes 9 to 900 are not in"]),
        ({"topk": [FIRST], "answer_json": {"citations": [{"id": FIRST, "section": "S.55"}]}},
         ["no section `S.55`"]),
        ({"topk": [FIRST], "answer_json": {"citations": [{"id": FIRST, "offsets": [53, 60]}]}},
         ["is said to be 53 to 60"]),
    ],
)  # fmt: skip
def test_what_traces_name_and_is_not_there_is_a_problem(
    folder: Folder, fields: Row, problems: Sequence[str]
) -> None:
    done = trace(folder, **fields)
    assert done.exit_code == 3
    assert len(done.problems) == len(problems), told(done)
    for found, expected in zip(done.problems, problems, strict=True):
        assert found.code == "unresolved"
        assert expected in found.message
        assert found.where == "trace.jsonl:1"
        assert found.about is not None
        assert found.about.startswith("qid q")


@cases(
    ("fields", "counted"),
    [
        ({"topk": [FIRST, "guide.md"]}, "ids 2, places 0"),  # a document may be what is retrieved
        ({"topk": [{"id": "x", "doc": "guide.md", "offsets": [9, 41]}]}, "ids 0, places 1"),
        ({"topk": [{"id": "x", "doc_id": "17", "doc_path": "guide.md", "offsets": [9, 41]}]},
         "ids 0, places 1"),
        ({"topk": [{"id": FIRST, "doc": "guide.md", "offsets": [9, 24]}],
          "answer_json": {"citations": [FIRST]}}, "ids 1, places 1"),
        ({"answer_citations": [{"doc": "guide.md", "start_line": 3, "end_line": 3}]},
         "ids 0, places 1"),
        ({"error": "timeout"}, "ids 0, places 0"),
        # A section above holds the text as well; a chunk may reach over its block.
        ({"topk": [{"id": CODE, "section": "S.1", "offsets": [43, 88]}]}, "ids 1, places 1"),
        ({"topk": [{"id": FIRST, "section": "guide.md#1"}],
          "answer_json": {"citations": [{"id": FIRST, "section": "S.1"}]}}, "ids 2, places 0"),
    ],
)  # fmt: skip
def test_traces_that_are_right_pass(folder: Folder, fields: Row, counted: str) -> None:
    done = trace(folder, **fields)
    assert (done.exit_code, done.err) == (0, ""), done
    assert f"trace.jsonl in the corpus: {counted}, all found\n" in done.out


def test_an_unknown_id_hints_at_a_list_of_chunks(folder: Folder) -> None:
    assert "--chunks" in trace(folder, topk=["c-17"]).problems[0].hint
    near = trace(folder, topk=["docs/" + FIRST]).problems[0]
    assert near.hint == f"did you mean `{FIRST}`?"


def test_rows_that_cannot_be_read_are_told_once(folder: Folder) -> None:
    data = b'{"qid": "q", "topk": ["c-1"]}\n17\n{"qid": "q", "top'
    done = checked(folder, None, data)
    assert [(each.where, each.code) for each in done.problems] == [
        ("trace.jsonl:1", "unresolved"),
        ("trace.jsonl:2", "not-a-row"),
        ("trace.jsonl:3", "truncated-line"),
    ]


@pytest.mark.parametrize("shape", ["ids", "placed", "exact"])
def test_twenty_problems_are_told_and_all_are_counted(folder: Folder, shape: str) -> None:
    """Each row has two ids that are not there and one that is, however it is written."""
    hits: dict[str, list[Any]] = {
        "ids": ["c-1", FIRST, "c-2"],
        "placed": [{"id": FIRST, "doc": "guide.md", "offsets": [9, 41]},
                   {"id": "x", "doc": "gone.md", "offsets": [0, 1]},
                   {"id": "y", "doc": "guide.md", "offsets": [0, 90]}],
        "exact": [{"chunk_id": FIRST}, {"chunk_id": "c-1"}, {"chunk_id": "c-2"}],
    }  # fmt: skip
    rows = [{"qid": f"q{n}", "topk" if shape != "ids" else "retrieved_ids": hits[shape],
             "answer_json": {"claim": "x", "citations": []}} for n in range(50)]  # fmt: skip
    done = checked(folder, None, rows)
    assert done.exit_code == 3
    assert len(done.problems) == 20
    assert done.problems[-1].where == "trace.jsonl:10"
    assert "... and 80 more problems in trace.jsonl" in done.err
    assert ", 100 not found\n" in done.out
    assert all(each.message and each.hint for each in done.problems)


def test_what_is_remembered_of_hits_is_bounded(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forgetting what was looked up changes no count."""
    rows = [
        {"qid": "q", "topk": [{"id": "x", "doc": "guide.md", "offsets": [n % 7, 90 - n % 2]}]}
        for n in range(60)
    ]
    plain = checked(folder, None, rows)
    assert ", 30 not found" in plain.out
    monkeypatch.setattr(resolve, "_MAX_CACHED", 2)
    assert checked(folder, None, rows) == plain


def test_a_trec_run_is_looked_up(folder: Folder) -> None:
    folder.write("gold.qrels", f"1 0 {FIRST} 1\n1 0 gone 1\n")
    folder.write("run.txt", f"1 Q0 {FIRST} 1 9.5 t\n1 Q0 c-1 2 9.0 t\n1 Q0 guide.md 3 8.0 t\n")
    made(folder.path)
    done = folder.run("validate", "gold.qrels", "run.txt", "--corpus", "corpus")
    assert [(each.where, each.code) for each in done.problems] == [
        ("gold.qrels:1", "unresolved"), ("run.txt:2", "unresolved")
    ]  # fmt: skip
    assert "run.txt in the corpus: ids 3, places 0, 1 not found" in done.out


# --- lists of chunks ---

CHUNKS: list[Row] = [
    {"id": "c-1", "doc": "guide.md", "start": 9, "end": 41},
    {"id": "c-2", "doc": "guide.md", "start": 43, "end": 88},
]


def test_ids_are_looked_up_in_the_list_of_chunks(folder: Folder) -> None:
    folder.write("chunks.jsonl", CHUNKS)
    done = checked(
        folder, [{**ITEM, "relevant": ["c-1", FIRST]}], [{"qid": "q", "topk": ["c-2", CODE]}],
        "--chunks", "chunks.jsonl",
    )  # fmt: skip
    assert (done.exit_code, done.err) == (0, "")
    assert done.out.startswith("chunks.jsonl: 2 chunks\n")
    gone = trace(folder, "--chunks", "chunks.jsonl", topk=["c-3"])
    assert told(gone) == ["unresolved: neither the corpus nor the list of chunks has `c-3`"]
    # A list is of the whole index: a place beside an id does not stand for it.
    placed = {"id": "c-3", "doc": "guide.md", "offsets": [9, 41]}
    assert trace(folder, "--chunks", "chunks.jsonl", topk=[placed]).exit_code == 3


def test_a_place_beside_a_chunk_must_be_in_it(folder: Folder) -> None:
    folder.write("chunks.jsonl", [CHUNKS[0], {**CHUNKS[1], "section": "Setup"}])
    right = [{"id": "c-1", "offsets": [9, 24]}, {"id": "c-2", "section": "Setup"}]
    done = trace(folder, "--chunks", "chunks.jsonl", topk=right)
    assert (done.exit_code, done.err) == (0, "")
    wrong = [{"id": "c-1", "offsets": [53, 71]}, {"id": "c-1", "section": "Setup"}]
    assert told(trace(folder, "--chunks", "chunks.jsonl", topk=wrong)) == [
        "unresolved: `c-1` has the bytes 9 to 41 of `guide.md`, and its place is said to be 53 to "
        "71",
        "unresolved: `guide.md` has no section `Setup`",
    ]


@cases(
    ("row", "message"),
    [
        ({"id": "c-1", "doc": "guide.md", "start": 9, "end": 90}, "the bytes 9 to 90 are not in"),
        ({"id": "c-1", "doc": "gone.md", "start": 9, "end": 41}, "no document `gone.md`"),
        ({"id": "c-1", "doc": "guide.md", "start": 10, "end": 41}, "the byte 10 of `guide.md`"),
        ({**CHUNKS[0], "doc_hash": "0" * 64}, "`guide.md` has the hash"),
        ({**CHUNKS[0], "id": CODE}, f"the corpus has the block `{CODE}` at 53 to 71"),
    ],
)
def test_chunks_must_lie_in_the_corpus(folder: Folder, row: Row, message: str) -> None:
    """`validate` says so beside the line, `score` refuses; the id itself is known."""
    folder.write("chunks.jsonl", [CHUNKS[1], row])
    traces = [{"qid": "q", "topk": ["c-2", row["id"]]}]
    gold = [{**ITEM, "relevant": ["c-2"]}]
    done = checked(folder, gold, traces, "--chunks", "chunks.jsonl")
    assert [(each.where, each.code) for each in done.problems] == [("chunks.jsonl:2", "unresolved")]
    assert message in done.problems[0].message
    scored = folder.score(traces, "--corpus", "corpus", "--chunks", "chunks.jsonl", gold=gold)
    assert (scored.exit_code, scored.out) == (3, "")
    assert scored.problems == done.problems


def test_a_list_of_chunks_needs_a_corpus(folder: Folder) -> None:
    folder.write("gold.jsonl", [ITEM])
    folder.write("chunks.jsonl", CHUNKS)
    done = folder.run("validate", "gold.jsonl", "--chunks", "chunks.jsonl")
    assert done.exit_code == 2
    assert "--corpus" in done.err


def test_the_configuration_names_the_corpus(folder: Folder) -> None:
    made(folder.path)
    folder.write("ragauge.toml", 'corpus = "corpus"\nchunks = "chunks.jsonl"\n')
    folder.write("chunks.jsonl", CHUNKS)
    folder.write("gold.jsonl", [{**ITEM, "relevant": ["c-1"]}])
    assert "gold.jsonl in the corpus: ids 1" in folder.run("validate", "gold.jsonl").out
    folder.write("ragauge.toml", 'corpus = "gone"\n')
    assert folder.run("validate", "gold.jsonl").exit_code == 2


def damage(corpus: Path) -> None:
    (corpus / "blocks.jsonl").write_bytes(b"{}\n")


def test_a_damaged_corpus_is_refused(folder: Folder) -> None:
    damage(made(folder.path))
    done = item(folder, relevant=[FIRST])
    assert (done.exit_code, done.out) == (3, "")
    assert "are not those that the manifest speaks of" in done.err


# --- score ---

METRICS = "retrieval.recall@5,retrieval.span_recall@5,retrieval.anchor_hit@5,citation.resolved"


def scored(folder: Folder, gold: Sequence[Row], traces: Sequence[Row], *options: str) -> Any:
    if not (folder.path / "corpus").exists():
        made(folder.path)
    done = folder.score(
        traces, "--profile", "all", "--metrics", METRICS, "--format", "json", "--full", *options,
        gold=gold,
    )  # fmt: skip
    assert done.exit_code == 0, done.err
    return json.loads(done.out)


def values(document: Any) -> dict[str, float | None]:
    return {name: each["value"] for name, each in document["metrics"].items()}


def test_blocks_of_the_corpus_have_places_and_are_known(folder: Folder) -> None:
    """The place 9 to 24 is in the first block; only a block of the corpus is resolved."""
    gold = [{**ITEM, "relevant": [{"doc": "guide.md", "start": 9, "end": 24}]}]
    traces = [
        {"qid": "q", "topk": [CODE, FIRST], "answer_json": {"claim": "x", "citations": [FIRST]}}
    ]
    blind = folder.score(traces, "--profile", "all", "--format", "json", gold=gold)
    assert blind.codes == {"nothing-placed"}
    found = values(scored(folder, gold, traces, "--corpus", "corpus"))
    assert found["retrieval.recall@5"] == 1.0
    assert found["retrieval.span_recall@5"] == 1.0
    assert found["citation.resolved"] == 1.0
    traces[0]["answer_json"] = {"claim": "x", "citations": ["guide.md#S.1.p.Bk009"]}
    assert values(scored(folder, gold, traces, "--corpus", "corpus"))["citation.resolved"] == 0.0


def test_opaque_chunks_get_section_and_type_from_the_corpus(folder: Folder) -> None:
    """c-2 begins at the heading of S.1.1 and is mostly code: 18 bytes of 15 of prose."""
    folder.write("chunks.jsonl", CHUNKS)
    gold = [{**ITEM, "relevant": ["c-2"], "anchor_section": "S.1.1"}]
    traces = [{"qid": "q", "topk": ["c-2"]}]
    lists = ("--chunks", "chunks.jsonl", "--min-n", "1")
    without = scored(folder, gold, traces, *lists)
    assert values(without)["retrieval.anchor_hit@5"] == 0.0
    assert "type" not in without["slices"]
    document = scored(folder, gold, traces, *lists, "--corpus", "corpus")
    assert values(document)["retrieval.anchor_hit@5"] == 1.0
    assert list(document["slices"]["type"]) == ["code"]


@pytest.mark.parametrize(
    ("said", "anchor_hit", "kind"),
    [
        ({"section": "S.9", "type": "table"}, 0.0, "table"),
        ({"section": "S.9"}, 0.0, "code"),
        ({"type": "table"}, 1.0, "table"),
    ],
)
def test_what_the_list_says_itself_stays(
    folder: Folder, said: Row, anchor_hit: float, kind: str
) -> None:
    folder.write("chunks.jsonl", [{**CHUNKS[1], **said}])
    gold = [{**ITEM, "relevant": ["c-2"], "anchor_section": "S.1.1"}]
    document = scored(
        folder, gold, [{"qid": "q", "topk": ["c-2"]}], "--chunks", "chunks.jsonl", "--corpus",
        "corpus", "--min-n", "1",
    )  # fmt: skip
    assert values(document)["retrieval.anchor_hit@5"] == anchor_hit
    assert list(document["slices"]["type"]) == [kind]


def test_the_list_comes_before_the_blocks(folder: Folder) -> None:
    """A block that is in the list, at its place, has the type that the list gives it."""
    folder.write(
        "chunks.jsonl", [{"id": CODE, "doc": "guide.md", "start": 53, "end": 71, "type": "table"}]
    )
    document = scored(
        folder, [{**ITEM, "relevant": [CODE]}], [{"qid": "q", "topk": [CODE]}],
        "--chunks", "chunks.jsonl", "--corpus", "corpus", "--min-n", "1",
    )  # fmt: skip
    assert list(document["slices"]["type"]) == ["table"]


@pytest.mark.parametrize("damaged", ["lists", "text"])
def test_a_damaged_corpus_scores_nothing(folder: Folder, damaged: str) -> None:
    corpus = made(folder.path)
    if damaged == "lists":
        damage(corpus)
    else:
        (corpus / "text" / "guide.md.txt").write_text(GUIDE.replace("red", "raw"))
    done = folder.score([{"qid": "q", "topk": [FIRST]}], "--corpus", "corpus", gold=[ITEM])
    assert (done.exit_code, done.out) == (3, "")


def test_a_stored_run_freezes_the_corpus_as_its_list(folder: Folder) -> None:
    """The corpus may be gone when the run is scored again."""
    gold = [{**ITEM, "relevant": [{"doc": "guide.md", "start": 9, "end": 24}]}]
    traces = [{"qid": "q", "topk": [CODE, FIRST]}]
    store = ("--store", "sqlite:///runs.db", "--run-id", "one")
    document = scored(folder, gold, traces, "--corpus", "corpus", *store)
    (folder.path / "corpus").rename(folder.path / "gone")
    assert folder.run("rescore", "one", "--store", "sqlite:///runs.db").exit_code == 0
    shown = folder.run("runs", "show", "one", "--store", "sqlite:///runs.db", "--format", "json")
    assert shown.exit_code == 0, shown.err
    again = score.score(
        str(folder.path / "gold.jsonl"), str(folder.path / "trace.jsonl"), profile="all",
        corpus=folder.path / "gone",
    )  # fmt: skip
    assert again.options.chunks == document["options"]["chunks"]
    assert again.metrics["retrieval.recall@5"].value == 1.0


def test_the_number_of_workers_changes_nothing(folder: Folder) -> None:
    gold = [{**ITEM, "relevant": [{"doc": "guide.md", "start": 9, "end": 24}]}]
    traces = [{"qid": "q", "topk": [CODE, FIRST], "seed": n} for n in range(30)]
    one = scored(folder, gold, traces, "--corpus", "corpus", "--workers", "1")
    assert one == scored(folder, gold, traces, "--corpus", "corpus", "--workers", "2")
