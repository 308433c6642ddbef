"""The files of the kb evaluation: a golden set in YAML, and stored query results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragauge.formats import load
from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row

GOLDEN = """\
# Corpus revision 12.
- id: q1
  query: "Where is the config?"
  lang: en
  expected_doc_ids: [doc1]
  expected_chunk_ids: [chunk1]
  must_contain: ["config.toml"]
  forbidden: ["config.yaml"]
  difficulty: easy
  group: config
- id: q2
  query: 설정 파일은 어디에 있나요?
  lang: ko
  expected_doc_ids:
    - doc2
  expected_chunk_ids:
    - chunk2
  difficulty: hard
  group: config
- id: q3
  query: "Who won in 2031?"
  expected_doc_ids: []
- id: q4
  query: "Anything else?"
  must_contain: ["more"]
"""


QUESTIONS = {
    "q1": "Where is the config?",
    "q2": "설정 파일은 어디에 있나요?",
    "q3": "Who won in 2031?",
    "q4": "Anything else?",
}


def hit(rank: int, chunk: str, doc: str, **more: Any) -> Row:
    """A hit as it is stored; its first source span is ten lines."""
    first = 10 * rank
    return {
        "rank": rank,
        "chunk_id": chunk,
        "doc_id": doc,
        "doc_path": f"notes/{doc}.md",
        "heading_path": ["Guide"],
        "section_label": None,
        "snippet": f"text of {chunk}",
        "citation": {
            "kind": "line", "path": f"notes/{doc}.md", "start": first, "end": first + 9,
            "section": None,
        },
        "retrieval": {"method": "lexical", "fusion_score": 1 / rank, "lexical_rank": rank},
        "index_version": "v1",
        "embedding_model": None,
        "chunker_version": "md-heading-v2",
        "indexed_at": "2026-05-09T10:00:00Z",
        "stale": False,
        "score_kind": "bm25",
        **more,
    }  # fmt: skip


def answer(text: str, *places: tuple[str, int, int], grounded: bool = True, **more: Any) -> Row:
    return {
        "answer": text,
        "citations": [
            {
                "marker": f"[#{number}]",
                "citation": {"kind": "line", "path": path, "start": start, "end": end},
                "indexed_at": "2026-05-09T10:00:00Z",
                "stale": False,
            }
            for number, (path, start, end) in enumerate(places, 1)
        ],
        "grounded": grounded,
        "refusal_reason": None if grounded else "score_gate",
        "model": {"id": "m", "provider": "p"},
        "retrieval": {"trace_id": "t", "mode": "lexical", "k": 10, "chunks_returned": 2},
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "latency_ms": 7},
        "created_at": "2026-05-09T10:00:00Z",
        **more,
    }


def result(qid: str, hits: list[Row] | None = None, said: Row | None = None, **more: Any) -> Row:
    return {
        "query_id": qid,
        "query": QUESTIONS.get(qid, f"text of {qid}"),
        "mode": "lexical",
        "hits_top_k": hits or [],
        "answer": said,
        "elapsed_ms": 40,
        "error": None,
        **more,
    }


def scored(folder: Folder, rows: list[Row], *options: str, gold: str = GOLDEN) -> dict[str, Any]:
    outcome = folder.score(
        rows, "--format", "json", "--metrics", "*", *options, gold=gold, gold_name="golden.yaml",
        trace_name="per_query.jsonl",
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    document = json.loads(outcome.out)
    assert isinstance(document, dict)
    return document


def value(document: dict[str, Any], metric: str) -> Any:
    return document["metrics"][metric]["value"]


def test_the_files_are_known_by_their_names(folder: Folder) -> None:
    """Dialect kb and its profile, without a word from the user."""
    document = scored(folder, [result("q1")])
    assert (document["dialect"], document["profile"]) == ("kb", "kb")
    assert document["counts"]["gold"] == 4
    assert (document["missing"], document["unknown"], document["errored"]) == (3, 0, 0)


def test_the_golden_set_says_what_is_expected(folder: Folder) -> None:
    """Documents: answer. An empty list: refuse. No key: unlabelled."""
    folder.write("golden.yaml", GOLDEN)
    items = load.load_gold("golden.yaml").items
    assert [item.expect for item in items] == ["answer", "answer", "refuse", None]
    assert [item.relevant for item in items] == [("chunk1",), ("chunk2",), (), ()]
    assert [item.relevant_docs for item in items] == [("doc1",), ("doc2",), (), None]
    first = items[0]
    assert (first.question, first.lang, first.difficulty, first.group) == (
        "Where is the config?", "en", "easy", "config",
    )  # fmt: skip
    assert (first.must_contain, first.forbidden) == (("config.toml",), ("config.yaml",))
    assert items[1].question == "설정 파일은 어디에 있나요?"
    assert not any(item.extra for item in items)


def test_hits_keep_what_is_stored_of_them(folder: Folder) -> None:
    """Id, both names of the document, lines, text and chunker."""
    folder.write("per_query.jsonl", [result("q1", [hit(2, "chunk1", "doc1")])])
    (trace,) = load.load_traces("per_query.jsonl", dialect="kb").traces
    (found,) = trace.hits
    assert (found.id, found.doc, found.path) == ("chunk1", "doc1", "notes/doc1.md")
    (span,) = found.spans
    assert (span.start, span.end, span.unit) == (20, 30, "line")  # 20 to 29 with both ends
    assert (found.text, found.chunker_version) == ("text of chunk1", "md-heading-v2")


# --- the numbers of the fixture ---

THREE = "".join(
    f"- id: q{n}\n  query: q{n}?\n  expected_doc_ids: [doc{n}]\n  expected_chunk_ids: [chunk{n}]\n"
    for n in (1, 2, 3)
)


def run_of(ranks: dict[str, int | None]) -> list[Row]:
    """Ten hits a question, the expected one at its rank, every other of a document of its own."""
    rows = []
    for qid, at in ranks.items():
        number = qid[1:]
        hits = [
            hit(rank, f"chunk{number}", f"doc{number}")
            if rank == at
            else hit(rank, f"other{number}-{rank}", f"file{number}-{rank}")
            for rank in range(1, 11)
        ]
        rows.append(result(qid, hits))
    return rows


@pytest.mark.parametrize(
    ("ranks", "hit_at", "mrr", "precision"),
    [
        (
            {"q1": 1, "q2": 4, "q3": None},
            (0.3333, 0.3333, 0.6667, 0.6667),
            0.4167,  # (1 + 1/4 + 0) / 3
            (0.3333, 0.1111, 0.1333, 0.0667),
        ),
        (
            {"q1": 2, "q2": 1, "q3": 1},
            (0.6667, 1.0, 1.0, 1.0),
            0.8333,  # (1/2 + 1 + 1) / 3
            (0.6667, 0.3333, 0.2, 0.1),
        ),
    ],
    ids=["run A", "run B"],
)
def test_the_numbers_of_the_fixture(
    folder: Folder,
    ranks: dict[str, int | None],
    hit_at: tuple[float, ...],
    mrr: float,
    precision: tuple[float, ...],
) -> None:
    """hit@k, MRR, precision over k and recall of documents, as kb's own fixture pins them."""
    document = scored(folder, run_of(ranks), gold=THREE)
    ks = (1, 3, 5, 10)
    assert tuple(value(document, f"retrieval.hit@{k}") for k in ks) == hit_at
    assert tuple(value(document, f"retrieval.recall_doc@{k}") for k in ks) == hit_at
    assert tuple(value(document, f"retrieval.precision_at_cutoff@{k}") for k in ks) == precision
    assert value(document, "retrieval.mrr@10") == mrr
    assert value(document, "retrieval.empty") == 0.0
    # A search alone answers nothing: null, not 0.
    for metric in ("answer.groundedness", "refusal.correct", "citation.resolved"):
        assert value(document, metric) is None


def test_a_chunk_beyond_ten_counts_nothing_for_mrr(folder: Folder) -> None:
    """Rank 11 is 0."""
    hits = [hit(rank, "chunk1" if rank == 11 else f"x{rank}", "doc9") for rank in range(1, 12)]
    document = scored(folder, [result("q1", hits)], "--missing", "exclude", gold=THREE)
    assert value(document, "retrieval.mrr@10") == 0.0


# --- documents ---


@cases(
    ("expected", "recall"),
    [
        ("[doc1, doc2]", 0.5),
        ("[notes/doc1.md]", 1.0),
        ("[doc1, notes/doc3.md]", 1.0),
        ("[doc1, doc1]", 1.0),
        ("[doc9]", 0.0),
    ],
)
def test_documents_are_found_by_id_or_by_path(folder: Folder, expected: str, recall: float) -> None:
    """The id is a hash of the content; the path outlives an edit."""
    gold = f"- id: q1\n  query: q?\n  expected_doc_ids: {expected}\n"
    row = result("q1", [hit(1, "a", "doc1"), hit(2, "b", "doc1"), hit(3, "c", "doc3")])
    document = scored(folder, [row], gold=gold)
    assert value(document, "retrieval.recall_doc@5") == recall


def test_many_chunks_of_one_document_use_up_k(folder: Folder) -> None:
    """k counts hits: doc3 is the third, so 1/2 at 1 and 2/2 at 3."""
    gold = "- id: q1\n  query: q?\n  expected_doc_ids: [doc1, doc3]\n"
    row = result("q1", [hit(1, "a", "doc1"), hit(2, "b", "doc1"), hit(3, "c", "doc3")])
    document = scored(folder, [row], gold=gold)
    assert value(document, "retrieval.recall_doc@1") == 0.5
    assert value(document, "retrieval.recall_doc@3") == 1.0


def test_empty_results_are_counted(folder: Folder) -> None:
    """One of four queries has hits."""
    rows = [result("q1", [hit(1, "a", "doc1")]), result("q2"), result("q3"), result("q4")]
    assert value(scored(folder, rows), "retrieval.empty") == 0.75


# --- answers ---


@cases(
    ("text", "right"),
    [
        ("It is in config.toml.", 1.0),
        ("It is in config.toml, not config.yaml.", 0.0),
        ("It is in CONFIG.TOML.", 0.0),
        ("No idea.", 0.0),
        ("", 0.0),
    ],
)
def test_the_text_must_contain_what_the_golden_set_says(
    folder: Folder, text: str, right: float
) -> None:
    """All that must, and none that is forbidden; the case counts."""
    rows = [result("q1", [hit(1, "chunk1", "doc1")], answer(text, ("notes/doc1.md", 10, 19)))]
    document = scored(folder, rows)
    assert value(document, "answer.groundedness") == right
    assert document["metrics"]["answer.groundedness"]["n"] == 1


def test_the_case_may_be_ignored(folder: Folder) -> None:
    """--ignore-case, which the document records."""
    rows = [result("q1", [hit(1, "chunk1", "doc1")], answer("CONFIG.TOML"))]
    document = scored(folder, rows, "--ignore-case")
    assert value(document, "answer.groundedness") == 1.0
    assert document["options"]["ignore_case"] is True


def test_groundedness_is_over_all_answers_as_in_the_source(folder: Folder) -> None:
    """Refusals count too: q1 lacks its string, q4 has it, q2 asks for none: 2 of 3.

    The stricter form beside it leaves out queries without strings: 1 of 2.
    """
    rows = [
        result("q1", [hit(1, "chunk1", "doc1")], answer("nothing found", grounded=False)),
        result("q4", [], answer("more of it", grounded=False)),
        result("q2", [], answer("whatever")),
        {**result("q3", [], None), "error": "timeout"},
    ]
    metrics = scored(folder, rows)["metrics"]
    source, strict = metrics["answer.groundedness"], metrics["answer.groundedness_labelled"]
    assert (source["value"], source["n"], source["version"]) == (0.6667, 3, 2)
    assert (strict["value"], strict["n"]) == (0.5, 2)


def test_an_answer_without_citations_covers_all_of_them(folder: Folder) -> None:
    """citation_coverage is satisfied by it, citation.resolved is not: 2 of 3, and 1 of 3."""
    rows = [
        result("q1", [hit(1, "chunk1", "doc1")], answer("so", ("notes/doc1.md", 10, 19))),
        result("q2", [hit(1, "chunk1", "doc1")], answer("so", ("notes/doc9.md", 10, 19))),
        result("q4", [hit(1, "chunk1", "doc1")], answer("so")),
    ]
    metrics = scored(folder, rows)["metrics"]
    assert metrics["citation.coverage"]["value"] == 0.6667
    assert metrics["citation.resolved"]["value"] == 0.3333


@pytest.mark.parametrize(
    ("said", "grounded", "refused"),
    [("not in context", True, 0.0), ("It is here.", False, 1.0), ("not in context", False, 1.0)],
)
def test_a_refusal_is_what_is_not_grounded(
    folder: Folder, said: str, grounded: bool, refused: float
) -> None:
    """The words play no part, and neither does another flag."""
    rows = [result("q3", [], {**answer(said, grounded=grounded), "refused": not grounded})]
    for row in rows:
        row["answer"]["refused"] = grounded  # the other way round
    assert scored(folder, rows)["metrics"]["refusal.correct"]["value"] == refused


@pytest.mark.parametrize(("grounded", "correct"), [(False, 1.0), (True, 0.0)])
def test_a_query_without_documents_is_to_be_refused(
    folder: Folder, grounded: bool, correct: float
) -> None:
    """q3 expects none; q4 says nothing, and is not counted either way."""
    rows = [
        result("q3", [], answer("?", grounded=grounded)),
        result("q4", [], answer("?", grounded=grounded)),
    ]
    found = scored(folder, rows)["metrics"]["refusal.correct"]
    assert (found["value"], found["n"]) == (correct, 1)


def test_not_grounded_is_a_refusal(folder: Folder) -> None:
    """By the flag, and the report says by which rule; q1 should have been answered."""
    rows = [result("q1", [], answer("?", grounded=False)), result("q2", [], answer("x"))]
    document = scored(folder, rows)
    assert document["counts"]["refused"] == 1
    assert document["refusal_rules"] == {"grounded flag": 1}
    assert value(document, "refusal.over") == 0.5


# --- citations ---

HITS = [hit(1, "chunk1", "doc1"), hit(2, "x", "doc2")]  # lines 10 to 19, and 20 to 29


@cases(
    ("places", "resolved"),
    [
        ([("notes/doc1.md", 10, 19)], 1.0),
        ([("notes/doc1.md", 15, 24)], 1.0),  # 15 to 19: five of ten lines
        ([("notes/doc1.md", 16, 25)], 0.0),  # four of ten
        ([("notes/doc1.md", 19, 19)], 1.0),  # its one line is in the hit
        ([("notes/doc1.md", 20, 20)], 0.0),
        ([("notes/doc2.md", 10, 19)], 0.0),  # the lines of another document
        ([("notes/doc1.md", 10, 19), ("notes/doc2.md", 20, 29)], 1.0),
        ([("notes/doc1.md", 10, 19), ("notes/doc3.md", 1, 1)], 0.0),
        ([], 0.0),
    ],
)
def test_citations_by_lines_are_resolved_by_hits(
    folder: Folder, places: list[tuple[str, int, int]], resolved: float
) -> None:
    """Half of the shorter of both must be shared; an answer without citations is 0."""
    document = scored(folder, [result("q1", HITS, answer("x", *places))])
    assert value(document, "citation.resolved") == resolved
    if places:
        assert value(document, "citation.in_context") == resolved


def test_only_grounded_answers_must_resolve(folder: Folder) -> None:
    """q2 is not grounded, so q1 alone is counted."""
    rows = [
        result("q1", HITS, answer("x", ("notes/doc1.md", 10, 19))),
        result("q2", [], answer("x", ("notes/gone.md", 1, 2), grounded=False)),
    ]
    found = scored(folder, rows)["metrics"]["citation.resolved"]
    assert (found["value"], found["n"]) == (1.0, 1)


def test_citations_by_lines_are_resolved_by_any_hit_of_the_run(folder: Folder) -> None:
    """As citations by id are: q2 retrieved what q1 cites."""
    rows = [
        result("q1", [], answer("x", ("notes/doc1.md", 10, 19))),
        result("q2", HITS),
    ]
    assert value(scored(folder, rows), "citation.resolved") == 1.0


def test_a_page_is_compared_with_pages(folder: Folder) -> None:
    """Page 3 is page 3, not page 4 and not line 3."""
    page = {"kind": "page", "path": "notes/doc1.md", "page": 3}
    hits = [hit(1, "chunk1", "doc1", citation=page)]
    line: Row = {"kind": "line", "path": "notes/doc1.md", "start": 3, "end": 3}
    for cited, resolved in ((page, 1.0), ({**page, "page": 4}, 0.0), (line, 0.0)):
        said = answer("x") | {"citations": [{"marker": "[#1]", "citation": cited}]}
        assert value(scored(folder, [result("q1", hits, said)]), "citation.resolved") == resolved


@cases(
    "cited",
    [
        {"kind": "time", "path": "notes/doc1.md", "start_ms": 100, "end_ms": 200},
        {"kind": "code", "path": "notes/doc1.md", "line_start": 3, "line_end": 9},
        pytest.param(
            {"kind": "region", "path": "notes/doc1.md", "x": 1, "y": 2, "w": 3, "h": 4},
        ),
        pytest.param(
            {"kind": "caption", "path": "notes/doc1.md", "model": "m"},
        ),
    ],
    ids=lambda cited: str(cited["kind"]),
)
def test_every_kind_of_citation_is_read(folder: Folder, cited: Row) -> None:
    """A citation of the very place of a hit is resolved, whatever its kind."""
    said = answer("x") | {"citations": [{"marker": "[#1]", "citation": cited}]}
    rows = [result("q1", [hit(1, "chunk1", "doc1", citation=cited)], said)]
    assert value(scored(folder, rows), "citation.resolved") == 1.0


# --- the rest of a row ---


def test_times_are_those_of_the_row(folder: Folder) -> None:
    """10, 20, 30 and 40 ms: the median is 25, p95 at 0.95 · 3 = 2.85 is 38.5."""
    rows = [result(f"q{n}", elapsed_ms=10 * n) for n in (1, 2, 3, 4)]
    document = scored(folder, rows)
    assert value(document, "latency.total_ms") == 25.0
    assert value(document, "latency.total_ms_p95") == 38.5


def test_an_error_is_a_miss_and_is_counted(folder: Folder) -> None:
    """A failed ask keeps its hits in the file; the row counts as one without."""
    rows = [
        result("q1", [hit(1, "chunk1", "doc1")]),
        result("q2", [hit(1, "chunk2", "doc2")], error="llm: connection refused"),
    ]
    document = scored(folder, rows)
    assert document["errored"] == 1
    assert value(document, "retrieval.hit@1") == 0.5
    excluded = scored(folder, rows, "--missing", "exclude")
    assert value(excluded, "retrieval.hit@1") == 1.0


def test_rows_without_a_golden_entry_are_unknown(folder: Folder) -> None:
    """Named, not scored."""
    document = scored(folder, [result("q1"), result("gone")])
    assert document["unknown"] == 1
    assert any("gone" in warning for warning in document["warnings"])


def test_ranks_that_disagree_with_the_order_are_told(folder: Folder) -> None:
    """The order of the list counts: chunk1 stands first, whatever its rank says."""
    rows = [result("q1", [hit(2, "chunk1", "doc1"), hit(1, "x", "doc2")])]
    document = scored(folder, rows, "--missing", "exclude")
    assert value(document, "retrieval.hit@1") == 1.0
    assert document["counts"]["disordered"] == 1


def test_languages_and_difficulties_are_slices(folder: Folder) -> None:
    """The label-only fields of kb."""
    slices = scored(folder, [result("q1")])["slices"]
    assert {name: part["n"] for name, part in slices["language"].items()} == {"en": 1, "ko": 1}
    assert slices["difficulty"].keys() == {"easy", "hard"}
    assert slices["document"].keys() == {"doc1", "doc2"}


# --- bad golden sets ---


def golden(folder: Folder, text: str) -> Outcome:
    return folder.score(
        [result("q1")], gold=text, gold_name="golden.yaml", trace_name="per_query.jsonl"
    )


def test_an_id_that_stands_twice_is_refused(folder: Folder) -> None:
    """With the line of the second."""
    outcome = golden(folder, THREE + "- id: q1\n  query: again?\n  expected_doc_ids: [d]\n")
    assert (outcome.exit_code, outcome.codes) == (3, {"duplicate-qid"})
    assert outcome.problems[0].where is not None
    assert outcome.problems[0].where.startswith("golden.yaml")


@cases(
    "text",
    [
        "- id: q1\n  query: q?\n  expected_doc_ids: doc1: x\n",
        "- id: q1\n  query: q?\n  expected_doc_ids: [[doc1]]\n",
        "- id: q1\n  query: q?\n- query: r?\n  expected_doc_ids: [doc1]\n",
        "- id: q1\n  query: q?\n  expected_doc_ids: [doc1]\n  must_contain: 7\n",
        "- just text\n",
    ],
)
def test_a_bad_golden_set_is_bad_input(folder: Folder, text: str) -> None:
    """Exit code 3 and the name of the file, never a traceback."""
    outcome = golden(folder, text)
    assert outcome.exit_code == 3
    assert "golden.yaml" in outcome.err


def test_a_misspelt_key_is_kept(folder: Folder) -> None:
    """`must_contains` checks nothing, and is not dropped silently."""
    folder.write("golden.yaml", "- id: q1\n  query: q?\n  expected_doc_ids: [d]\n"
                                "  must_contains: [x]\n")  # fmt: skip
    (item,) = load.load_gold("golden.yaml").items
    assert (item.must_contain, item.extra) == ((), {"must_contains": ["x"]})
