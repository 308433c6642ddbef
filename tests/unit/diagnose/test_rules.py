"""Diagnosis: each rule with the run that it is made for and a neighbour that it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ragauge.diagnose.diagnose import diagnosis_of, measured_files
from ragauge.diagnose.rank_findings import BEHIND, NEEDS
from ragauge.diagnose.rules import RULES
from ragauge.model.diagnosis import Diagnosis, DiagnosisFinding
from ragauge.model.labels import CAUSES
from ragauge.registry import select
from ragauge.store import runs as run_store
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, Row
from tests.support.stored_runs import URL, WRONG, put


def item(qid: str, *relevant: object, **rest: object) -> Row:
    return {"qid": qid, "question": f"{qid}?", "answerable": True, "relevant": [*relevant], **rest}


def said(qid: str, hits: Sequence[object], *citations: str, **rest: object) -> Row:
    answer = {"claim": "x", "citations": [*citations]}
    return {"qid": qid, "hits": [*hits], "answer": answer, **rest}


def examined(
    folder: Folder, gold: Sequence[Row], traces: Sequence[Row], profile: str = "all"
) -> Diagnosis:
    one, other = folder.write("gold.jsonl", gold), folder.write("trace.jsonl", traces)
    return diagnosis_of(measured_files(one, other, profile=profile), limit=10)


def finding(diagnosis: Diagnosis, name: str) -> DiagnosisFinding | None:
    return next((each for each in diagnosis.findings if each.id == name), None)


def witnesses(found: DiagnosisFinding | None) -> list[str]:
    return [] if found is None else [each.qid for each in found.witnesses]


def values(found: DiagnosisFinding) -> dict[str, float | None]:
    return {each.name: None if each.value is None else round(each.value, 4)
            for each in found.numbers}  # fmt: skip


FILL = [f"f{n}" for n in range(9)]
LOW = said("low", [*FILL[:5], "e"], "f0")
# gold, traces, rule, questions that it names (none: it is silent)
Case = tuple[str, list[Row], list[Row], str, list[str]]
CASES: list[Case] = [
    ("a question is missing", [item("a", "e"), item("b", "e")], [said("a", ["e"], "e")],
     "missing-traces", ["b"]),
    ("a trace carries an error", [item("a", "e")], [{"qid": "a", "error": "timeout"}],
     "errored-traces", ["a"]),
    ("all is there", [item("a", "e")], [said("a", ["e"], "e")], "missing-traces", []),
    ("two embedders", [item("a", "e"), item("b", "e")],
     [said("a", ["e"], "e", delta_s=[0.2], embed_model="one"),
      said("b", ["e"], "e", delta_s=[0.3], embed_model="two")], "mixed-embedders", ["b", "a"]),
    ("one embedder", [item("a", "e")],
     [said("a", ["e"], "e", delta_s=[0.2], embed_model="one")], "mixed-embedders", []),
    ("no hits", [item("a", "e"), item("b", "e")], [said("a", []), said("b", ["e"], "e")],
     "retrieval-empty", ["a"]),
    ("hits", [item("a", "e")], [said("a", ["x"])], "retrieval-empty", []),
    ("missed", [item("a", "e")], [said("a", ["x"])], "evidence-not-retrieved", ["a"]),
    ("found", [item("a", "e")], [said("a", ["e"])], "evidence-not-retrieved", []),
    ("negative first", [item("a", "e", negatives=["n"])], [said("a", ["n", "e"], "n")],
     "boundaries-bleed", ["a"]),
    ("negative second", [item("a", "e", negatives=["n"])], [said("a", ["e", "n"], "n")],
     "boundaries-bleed", []),
    ("beside", [item("a", "S.1.1.p.Bk1", anchor_section="S.1.1")],
     [said("a", ["S.1.1.p.Bk2"], "x")], "adjacent-block", ["a"]),
    ("elsewhere", [item("a", "S.1.1.p.Bk1", anchor_section="S.1.1")],
     [said("a", ["S.3.1.p.Bk2"], "x")], "adjacent-block", []),
    ("too low", [item("low", "e")], [LOW], "ordering", ["low"]),
    ("fifth", [item("low", "e")], [said("low", [*FILL[:4], "e"], "f0")], "ordering", []),
    ("ignored", [item("a", "e")], [said("a", ["e", "x"], "x")], "evidence-ignored", ["a"]),
    ("cited", [item("a", "e")], [said("a", ["e", "x"], "e")], "evidence-ignored", []),
    ("no citations at all", [item("a", "e")],
     [{"qid": "a", "hits": ["e"], "answer": {"claim": "x"}}], "no-citations", ["a"]),
    ("one citation", [item("a", "e")], [said("a", ["e"], "e")], "no-citations", []),
    ("cites the unknown", [item("a", "e")], [said("a", ["e"], "zz")],
     "unretrieved-citations", ["a"]),
    ("cites a hit", [item("a", "e")], [said("a", ["e", "zz"], "zz")],
     "unretrieved-citations", []),
    # right by its citation, and nobody retrieved it
    ("cites unseen evidence", [item("a", "e"), item("b", "e")],
     [said("a", ["x"], "e"), said("b", ["e"], "e")], "unretrieved-citations", ["a"]),
    # one slot of three does, so most slots have another cause
    ("cites so in one slot", [item("a", "e")],
     [said("a", ["x"], "x", seed=1), said("a", ["x"], "x", seed=2), said("a", ["x"], "e", seed=3)],
     "unretrieved-citations", ["a"]),
    ("no hits recorded", [item("a", "e")], [said("a", [], "e")], "unretrieved-citations", []),
    ("refused, with a citation", [item("a", "e")], [said("a", ["e"], "zz", refused=True)],
     "unretrieved-citations", []),
    ("answered, no answer", [{"qid": "a", "question": "?", "answerable": False}],
     [said("a", ["x"], "x")], "under-refusal", ["a"]),
    ("refused, no answer", [{"qid": "a", "question": "?", "answerable": False}],
     [said("a", ["x"], refused=True)], "over-refusal", []),
    ("far away", [item("a", "e"), item("b", "e")],
     [said("a", ["x", "e"], "x", delta_s=[0.6, 0.6]), said("b", ["x"], "x", delta_s=[0.59])],
     "far-citations", ["a"]),
    ("far away, and right", [item("a", "e")], [said("a", ["e"], "e", delta_s=[0.6])],
     "far-citations", []),
    ("flat and high", [item("a", "e")],
     [said("a", [*FILL, "e"], "f0", delta_s=[0.7] * 5 + [0.72] * 5)], "metric-mismatch", ["a"]),
    ("flat and high, and right", [item("a", "e")],
     [said("a", [*FILL, "e"], "e", delta_s=[0.7] * 5 + [0.72] * 5)], "metric-mismatch", []),
    ("flat and close", [item("a", "e")],
     [said("a", [*FILL, "e"], "f0", delta_s=[0.5] * 5 + [0.52] * 5)], "metric-mismatch", []),
    ("high, and only five", [item("a", "e")],
     [said("a", [*FILL[:4], "e"], "f0", delta_s=[0.7] * 5)], "metric-mismatch", []),
    # five hits at 0.7, five at 0.5: the median of ten is 0.6, 0.1 below
    ("falling", [item("a", "e")],
     [said("a", [*FILL, "e"], "f0", delta_s=[0.7] * 5 + [0.5] * 5)], "filter-too-strict", ["a"]),
    ("hardly falling", [item("a", "e")],
     [said("a", [*FILL, "e"], "f0", delta_s=[0.7] * 5 + [0.51] * 5)], "filter-too-strict", []),
    # tau of rank and ΔS: every pair falls
    ("farthest first", [item("a", "e")],
     [said("a", FILL[:6], "f0", delta_s=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4])], "reversed-order", ["a"]),
    ("nearest first", [item("a", "e")],
     [said("a", FILL[:6], "f0", delta_s=[0.4, 0.5, 0.6, 0.7, 0.8, 0.9])], "reversed-order", []),
    ("scores of no cosine", [item("a", "e")],
     [said("a", [{"id": "x", "score": 7.5}], "x", metric="cosine")],
     "vectors-not-normalised", ["a"]),
    ("scores of BM25", [item("a", "e")], [said("a", [{"id": "x", "score": 7.5}], "x")],
     "vectors-not-normalised", []),
    # 50 of the 100 bytes of the evidence
    ("half a chunk", [item("a", {"id": "e", "doc": "d", "start": 0, "end": 100})],
     [said("a", [{"id": "e", "doc": "d", "offsets": [0, 50]}], "e")], "chunks-cut", ["a"]),
    ("a whole chunk", [item("a", {"id": "e", "doc": "d", "start": 0, "end": 100})],
     [said("a", [{"id": "e", "doc": "d", "offsets": [0, 100]}], "e")], "chunks-cut", []),
    ("three expect a document that nobody gets",
     [*(item(q, {"id": f"e{q}", "doc": "d", "start": 0, "end": 9}) for q in "abc"),
      item("f", {"id": "e", "doc": "o", "start": 0, "end": 9})],
     [said(q, [{"id": "x", "doc": "o", "offsets": [50, 60]}], "x") for q in "abcf"],
     "documents-missing", ["a", "b", "c"]),
    ("two do",
     [*(item(q, {"id": f"e{q}", "doc": "d", "start": 0, "end": 9}) for q in "ab"),
      item("f", {"id": "e", "doc": "o", "start": 0, "end": 9})],
     [said(q, [{"id": "x", "doc": "o", "offsets": [50, 60]}], "x") for q in "abf"],
     "documents-missing", []),
]  # fmt: skip


@cases(("gold", "traces", "rule", "qids"), [each[1:] for each in CASES], ids=[c[0] for c in CASES])
def test_a_rule_finds_what_it_is_made_for_and_no_more(
    folder: Folder, gold: list[Row], traces: list[Row], rule: str, qids: list[str]
) -> None:
    found = finding(examined(folder, gold, traces), rule)
    assert witnesses(found) == qids
    assert (found is not None) == bool(qids)
    if found is not None:
        assert found.affected == len(qids)
        assert found.share == len(qids) / len(gold)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([said("b", ["e"], "e")], "Rerank"),  # hit@50 is 2/2
        ([said("b", ["x"], "x")], "Widen the candidates"),  # hit@50 is 1/2
    ],
)
def test_a_reranker_is_advised_where_it_has_something_to_find(
    folder: Folder, others: list[Row], words: str
) -> None:
    found = finding(
        examined(folder, [item("low", "e"), item("b", "e")], [LOW, *others]), "ordering"
    )
    assert found is not None
    assert found.step.startswith(words)
    assert values(found)["retrieval.hit@20"] == values(found)["retrieval.hit@50"]


def typed(kind: str, n: int, missed: int) -> tuple[list[Row], list[Row]]:
    """Questions with evidence of one type, some of which is not found."""
    gold = [item(f"{kind}{i}", f"e{i}", type=kind) for i in range(n)]
    traces = [
        said(f"{kind}{i}", ["x" if i < missed else f"e{i}"], "x" if i < missed else f"e{i}")
        for i in range(n)
    ]
    return gold, traces


@pytest.mark.parametrize(
    ("tables", "missed", "qids"),
    [
        (5, 1, ["table0"]),  # 4 of 5 found, prose all: 0.20 below
        (6, 1, []),  # 5 of 6: 0.17 below
        (4, 2, []),  # fewer than five questions say nothing
    ],
)
def test_a_type_is_lost_where_it_is_found_a_fifth_less_than_prose(
    folder: Folder, tables: int, missed: int, qids: list[str]
) -> None:
    parts = typed("prose", 5, 0), typed("table", tables, missed)
    gold, traces = ([row for part in parts for row in part[i]] for i in (0, 1))
    found = finding(examined(folder, gold, traces), "typing-lost")
    assert witnesses(found) == qids
    if found is not None:
        assert values(found) == {"retrieval.recall@5, prose": 1.0, "retrieval.recall@5, table": 0.8}


def slots(qid: str, *rows: Row) -> list[Row]:
    return [{**row, "qid": qid, "seed": n} for n, row in enumerate(rows)]


def claiming(text: str) -> Row:
    return {**said("", ["e"], "e"), "answer": {"claim": text, "citations": ["e"]}}


@cases(
    ("rows", "rule", "there"),
    [
        # three ids in reverse order: tau is -1
        ([said("", ["e", "b", "c"], "e"), said("", ["c", "b", "e"], "e")], "order-flips", True),
        # five ids, two neighbours change places: 1 - 2·1/10 = 0.8
        ([said("", list("eabcd"), "e"), said("", list("aebcd"), "e")], "order-flips", False),
        ([said("", ["e", "x"], "e"), said("", ["e", "x"], "x")], "outcome-flips", True),
        # no slot hits: that is not the wording
        ([said("", ["e", "x"], "x"), said("", ["e", "x"], "x")], "outcome-flips", False),
        ([said("", ["e", "x"], "e"), said("", ["e", "x"], "e", "x")], "citations-vary", True),
        ([said("", ["e", "x"], "e"), said("", ["e", "x"], "e")], "citations-vary", False),
        ([claiming("abcdefghij"), claiming("abcdefgxyz")], "claims-vary", True),  # 3 of 10
        ([claiming("abcdefghij"), claiming("abcdefghyz")], "claims-vary", False),  # 2 of 10
    ],
)
def test_slots_of_a_question_are_compared(
    folder: Folder, rows: list[Row], rule: str, there: bool
) -> None:
    found = finding(examined(folder, [item("q", "e")], slots("q", *rows)), rule)
    assert (found is not None) == there


def test_flips_over_steady_hits_are_the_prompt_and_else_retrieval(folder: Folder) -> None:
    steady = [said("", ["e", "x"], "e"), said("", ["e", "x"], "x")]
    moving = [said("", ["e", "x"], "e"), said("", ["x", "e"], "x")]
    steps = []
    for rows in (steady, moving):
        found = finding(examined(folder, [item("q", "e")], slots("q", *rows)), "outcome-flips")
        assert found is not None
        steps.append(found.step)
    assert steps[0].startswith("Fix the prompt")
    assert steps[1].startswith("Fix retrieval")


SHIP = [
    {"qid": f"q{i}", "question": f"q{i}?", "answerable": True, "gold_citations": ["e"],
     "gold_claim_substr": ["blue whale"]}
    for i in range(4)
]  # fmt: skip


def shipped(*claims: tuple[str, str]) -> list[Row]:
    return [
        {"qid": f"q{i}", "retrieved_ids": ["e", "x"],
         "answer_json": {"claim": claim, "citations": [cited]}}
        for i, (claim, cited) in enumerate(claims)
    ]  # fmt: skip


RIGHT, WORDS, LOST = ("A blue whale.", "e"), ("A fin whale.", "e"), ("A blue whale.", "x")


@cases(
    ("claims", "rules"),
    [
        ([RIGHT] * 4, []),
        # precision 3/4 < 0.80, CHR 1: the words
        ([RIGHT] * 3 + [WORDS], ["claims-miss"]),
        # both 1/2: grounding
        ([RIGHT] * 2 + [LOST] * 2, ["evidence-ignored", "grounding-broken"]),
        # both 3/4: CHR holds its limit of 0.75
        ([RIGHT] * 3 + [LOST], ["evidence-ignored"]),
    ],
)
def test_precision_and_citations_tell_words_from_grounding(
    folder: Folder, claims: list[tuple[str, str]], rules: list[str]
) -> None:
    assert [each.id for each in examined(folder, SHIP, shipped(*claims), "ship").findings] == rules


def test_refusals_are_split_by_what_was_in_front_of_them(folder: Folder) -> None:
    gold = [item(f"q{i}", "e") for i in range(3)]
    no = {"claim": "not in context", "citations": []}

    def step(*hits: str) -> tuple[float | None, str]:
        rows = [
            {"qid": f"q{i}", "hits": [hit], "answer": no} for i, hit in enumerate(hits)
        ]  # fmt: skip
        found = finding(examined(folder, gold, rows), "over-refusal")
        assert found is not None
        return values(found)["refused with evidence in top 5"], found.step

    assert step("e", "e", "x") == (2.0, "Loosen the template: most of these had the evidence in "
                                   "front of them and refused.")  # fmt: skip
    number, advice = step("e", "x", "x")
    assert number == 1.0
    assert advice.startswith("Retrieve more")


def test_offsets_are_a_finding_of_their_own(folder: Folder) -> None:
    gold = [{"qid": "a", "paraphrases": ["?"], "anchor_section": "S.1",
             "relevant": [{"id": "S.1.p.Bk1", "doc": "d", "start": 0, "end": 100}]}]  # fmt: skip
    cited = {"id": "S.1.p.Bk1", "doc": "d", "offsets": [0, 200]}
    trace = [{"qid": "a", "query": "?", "topk": ["S.1.p.Bk1"], "answer_citations": [cited]}]
    found = finding(examined(folder, gold, trace, "canary"), "offsets-drift")
    assert found is not None
    assert values(found) == {"citation.accuracy": 0.0, "answer.coverage": 1.0}


def test_what_most_questions_suffer_from_comes_first(folder: Folder) -> None:
    """Two ignore the evidence, one missed it; an incomplete run stands before both."""
    gold = [item(qid, "e") for qid in "abcd"]
    traces = [said("a", ["x"]), said("b", ["e"], "z"), said("c", ["e"], "z")]
    found = [each.id for each in examined(folder, gold, traces).findings]
    assert found[:2] == ["missing-traces", "unretrieved-citations"]
    assert found.index("unretrieved-citations") < found.index("evidence-not-retrieved")


def test_rules_that_could_not_be_asked_are_named(folder: Folder) -> None:
    found = examined(folder, [item("a", "e")], [said("a", ["e"], "e")])
    assert "far-citations" in found.silent
    assert "order-flips" in found.silent
    assert "evidence-not-retrieved" not in found.silent


def test_every_rule_names_metrics_that_exist() -> None:
    assert select(NEEDS, (5,))
    names = [rule.id for rule in RULES]
    assert len(names) == len(set(names))
    assert all(rule.title and rule.source and (rule.needs or rule.facts) for rule in RULES)
    assert set(BEHIND) == set(CAUSES)


def test_the_order_of_the_gold_file_changes_no_finding(folder: Folder) -> None:
    gold = [item(qid, "e") for qid in "abcd"]
    traces = [said("a", ["x"]), said("b", ["e"], "z"), said("c", ["e"], "z"), said("d", ["e"], "e")]
    one, other = examined(folder, gold, traces), examined(folder, gold[::-1], traces[::-1])
    assert [(each.id, each.affected, each.numbers) for each in one.findings] == [
        (each.id, each.affected, each.numbers) for each in other.findings
    ]
    assert (one.labels, one.causes) == (other.labels, other.causes)


def test_a_run_in_order_has_nothing_to_say(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    said = folder.run("diagnose", "gold.jsonl", "trace.jsonl")
    assert said.exit_code == 0
    assert "Nothing stands out" in said.out
    assert "look at" not in said.out


@pytest.fixture
def runs(folder: Folder) -> Folder:
    """A stored run in which a question is answered that has no answer."""
    with run_store.opened_store(URL, create=True) as store:
        put(store, "wrong", WRONG)
    return folder


@pytest.mark.parametrize("form", ["table", "json", "md"])
def test_a_stored_run_and_its_files_say_the_same(runs: Folder, form: str) -> None:
    files = runs.run("diagnose", "gold.jsonl", "trace.jsonl", "--format", form)
    stored = runs.run("diagnose", "wrong", "--format", form)
    assert files.exit_code == stored.exit_code == 0
    named = {"table": "{}: profile", "json": '"name": "{}"', "md": "of {}"}[form]
    first, second = named.format("trace.jsonl"), named.format("wrong")
    opening = "trace.jsonl: profile"
    expected = files.out.replace(first, second).replace(opening, "wrong: profile")
    assert stored.out == expected


def test_the_table_fits_eighty_columns(runs: Folder) -> None:
    said = runs.run("diagnose", "wrong")
    assert (
        said.out
        == """\
wrong: profile ship, 3 questions, 3 traces

label           questions   traces
──────────────────────────────────
OK                      2        2
HALLUCINATION           1        1

1. Questions without an answer are answered: 1 of 3 questions
number           value   n   read as
─────────────────────────────────────────────────────────
under-refusal   1.0000   1   ship and smoke: 0.05 at most
   A2 (HALLUCINATION) trace.jsonl:2
   next: Read these answers against the corpus. If it does hold the answer, the
     gold item is wrong; if not, make the refusal the rule wherever no cited
     text says it.
   rule: under-refusal, after WFGY eval page (under-refusal high)

look at (1)   label           cause   where
───────────────────────────────────────────────────
A2            HALLUCINATION           trace.jsonl:2
not looked for, nothing was recorded: mixed-embedders, reversed-order,
vectors-not-normalised, chunks-cut, boundaries-bleed, metric-mismatch,
filter-too-strict, far-citations, order-flips, outcome-flips, citations-vary,
claims-vary
"""
    )
    assert max(map(len, said.out.splitlines())) <= 80


def test_the_json_has_numbers_and_places(runs: Folder) -> None:
    found = json.loads(runs.run("diagnose", "wrong", "--format", "json").out)
    assert found["schema"] == "ragauge.diagnosis/1"
    assert found["labels"] == [
        {"name": "OK", "questions": 2, "records": 2},
        {"name": "HALLUCINATION", "questions": 1, "records": 1},
    ]
    only = found["findings"][0]
    assert (only["id"], only["affected"], only["share"]) == ("under-refusal", 1, 0.3333)
    assert only["numbers"] == [
        {"name": "refusal.under", "value": 1.0, "n": 1, "whole": False,
         "reading": "ship and smoke: 0.05 at most", "before": None},
    ]  # fmt: skip
    assert only["witnesses"] == found["questions"]
    assert found["questions"] == [
        {"qid": "A2", "label": "HALLUCINATION", "where": "trace.jsonl:2", "turn": None,
         "cause": None, "numbers": {}},
    ]  # fmt: skip


def test_limit_cuts_the_list_and_says_so(folder: Folder) -> None:
    # One question is right, so that ids are those of the gold set.
    folder.write("gold.jsonl", [*(item(qid, "e") for qid in "abc"), item("d", "x")])
    folder.write("trace.jsonl", [*(said(qid, ["x"]) for qid in "abc"), said("d", ["x"], "x")])
    shown = folder.run("diagnose", "gold.jsonl", "trace.jsonl", "--limit", "2").out
    assert "look at (3)" in shown
    assert "... and 1 more; --limit shows more" in shown
    none = json.loads(
        folder.run("diagnose", "gold.jsonl", "trace.jsonl", "--limit", "0", "--format", "json").out
    )
    assert (none["questions"], none["listed_of"]) == ([], 3)


def test_another_profile_can_be_asked_of_a_stored_run(runs: Folder) -> None:
    assert "profile smoke" in runs.run("diagnose", "wrong", "--profile", "smoke").out
    assert runs.run("diagnose", "wrong", "--profile", "nope").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("gold.jsonl",), 2),
        (("wrong", "--dialect", "ship"), 2),
        (("nobody",), 2),
        (("gold.jsonl", "nowhere.jsonl"), 2),
        (("gold.jsonl", "broken.jsonl"), 3),
    ],
)
def test_what_cannot_be_diagnosed_says_why(
    runs: Folder, arguments: tuple[str, ...], code: int
) -> None:
    runs.write("broken.jsonl", "not JSON\n")
    found = runs.run("diagnose", *arguments)
    assert found.exit_code == code
    assert found.out == ""


def test_nothing_measured_is_no_diagnosis(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", [{**TRACES[0], "qid": "zz", "q": "no such question"}])
    found = folder.run("diagnose", "gold.jsonl", "trace.jsonl")
    assert found.exit_code == 5
    assert found.codes == {"nothing-measured"}


def test_names_of_questions_are_shown_safely(folder: Folder) -> None:
    odd = "a|\x1b[31m*b*"
    rows = [item(odd, "e")], [said(odd, ["x"])]
    folder.write("gold.jsonl", rows[0])
    folder.write("trace.jsonl", rows[1])
    for form in ("table", "md"):
        shown = folder.run("diagnose", "gold.jsonl", "trace.jsonl", "--format", form).out
        assert "\x1b" not in shown
        if form == "md":
            assert "a\\|" in shown


def test_workers_change_nothing(runs: Folder) -> None:
    one = runs.run("diagnose", "wrong", "--format", "json", "--workers", "1").out
    assert one == runs.run("diagnose", "wrong", "--format", "json", "--workers", "2").out


FAR = ("metric-mismatch", "far-citations")
BANDS = "[bands.mine]\nstable = 0.70\ntarget = 0.75\nrisk = 0.85\n"


def spread(value: float, embedder: str) -> tuple[list[Row], list[Row]]:
    """Three questions that miss; the first five hits have one ΔS, the next .01 more."""
    names = ("a", "b", "c")
    rest = {"delta_s": [value] * 5 + [value + 0.01] * 5, "embed_model": embedder}
    return [item(n, "e") for n in names], [said(n, [*FILL, "e"], "f0", **rest) for n in names]


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True], ids=["files", "run"])
@pytest.mark.parametrize(
    ("embedder", "value", "found"),
    [
        ("mine", 0.62, []),
        ("mine", 0.86, ["metric-mismatch", "far-citations"]),
        ("other", 0.62, ["metric-mismatch", "far-citations"]),
        ("other", 0.59, []),
    ],
)
def test_what_is_far_is_said_by_the_bands_of_the_embedder(
    folder: Folder, embedder: str, value: float, found: list[str], stored: bool
) -> None:
    gold, traces = spread(value, embedder)
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)
    files = ["gold.jsonl", "trace.jsonl"]
    if stored:  # without bands: those of the project hold when it is looked at
        folder.run("score", *files, "--store", "--run-id", "one", "--profile", "all")
        files = ["one"]
    folder.write("ragauge.toml", BANDS)
    outcome = folder.run("diagnose", *files, "--profile", "all", "--format", "json")
    findings = json.loads(outcome.out)["findings"]
    assert [each["id"] for each in findings if each["id"] in FAR] == found
    if found:
        risk = 0.85 if embedder == "mine" else 0.60
        assert f"{risk:.2f} or more" in findings[0]["numbers"][0]["reading"]
    compact = folder.run("prompt", *files, "--profile", "all").out
    far = "from 0.85 on far" if embedder == "mine" else "from 0.60 on far"
    assert far in compact


def test_a_stored_run_keeps_the_bands_that_it_was_scored_with(folder: Folder) -> None:
    gold, traces = spread(0.62, "mine")
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", traces)
    folder.write("ragauge.toml", BANDS)
    folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "one")
    (folder.path / "ragauge.toml").unlink()
    outcome = folder.run("diagnose", "one", "--format", "json")
    assert not {each["id"] for each in json.loads(outcome.out)["findings"]} & {*FAR}
    folder.write("ragauge.toml", BANDS.replace("0.70", "0.10").replace("0.75", "0.20")
                 .replace("0.85", "0.30"))  # fmt: skip
    outcome = folder.run("diagnose", "one", "--format", "json")
    assert {each["id"] for each in json.loads(outcome.out)["findings"]} > {*FAR}


@pytest.mark.parametrize("embedder", ["lexical-hash-v1", "lexical-own"])
def test_nothing_is_concluded_from_lexical_distances(folder: Folder, embedder: str) -> None:
    gold, traces = spread(0.9, embedder)
    for row in traces:  # and one that would be a strict filter
        row["delta_s"] = [0.9] * 5 + [0.1] * 5
    found = examined(folder, gold, traces)
    assert [each.id for each in found.findings] == ["ordering"]
    told = f"of ΔS only changes against a baseline are read, as {embedder} compares words, not "
    told += "meanings: "
    assert [each for each in found.notes if "ΔS" in each] == [
        f"{told}metric-mismatch, filter-too-strict, far-citations"
    ]
    prompted = folder.run("prompt", "gold.jsonl", "trace.jsonl", "--profile", "all").out
    assert f"Conclude nothing from it: {embedder} compares words, not meanings." in prompted
