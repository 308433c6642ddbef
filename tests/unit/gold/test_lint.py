"""`gold lint`: each rule is triggered by one item and not by its neighbour."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.codes import CODES
from ragauge.gold.lint.rules import RULES, SEVERITIES
from tests.support.cases import cases
from tests.support.command import GOLD, Folder, Outcome, Row

SET_WIDE = ("set-size", "few-of-type", "chunks-only")  # said of any small set, and of any by ids

BASE: Row = {
    "qid": "Q1",
    "question": "Which port does it listen on?",
    "answerable": True,
    "relevant": ["guide.md#S.1.1.p.Bk001"],
}
OTHER: Row = {
    "qid": "Q2",
    "question": "How long are settings kept?",
    "answerable": True,
    "relevant": ["guide.md#S.1.2.p.Bk001"],
}
GUIDE = """# Guide

Welcome to the guide.

## Port

It listens on port 8080. The port can be changed.

## Kept

Old settings are kept for a day.

### Deep

#### Deeper

##### Deepest

A note far down.
"""


def found(outcome: Outcome) -> list[dict[str, Any]]:
    """The findings of a report, without those that any small set gets."""
    document = json.loads(outcome.out)
    return [finding for finding in document["findings"] if finding["rule"] not in SET_WIDE]


def lint(folder: Folder, *rows: Row, options: tuple[str, ...] = ()) -> Outcome:
    folder.write("gold.jsonl", rows)
    return folder.run("gold", "lint", "gold.jsonl", "--format", "json", *options)


def with_corpus(folder: Folder, *more: str) -> tuple[str, ...]:
    folder.write("docs/guide.md", GUIDE)
    folder.write("docs/other.md", "# Other\n\nNothing of note.\n")
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    return ("--corpus", "corpus", *more)


def at(text: str, length: int | None = None) -> Row:
    """A place in the guide."""
    start = GUIDE.index(text)
    return {"doc": "guide.md", "start": start, "end": start + (length or len(text))}


# The rule, the item that breaks it, the neighbour that does not.
CASES: list[tuple[str, Row, Row]] = [
    ("empty-question", {**BASE, "question": "  "}, BASE),
    ("empty-question", {**BASE, "paraphrases": ["Which port?", ""]}, BASE),
    ("no-question", {k: v for k, v in BASE.items() if k != "question"}, BASE),
    ("no-evidence", {**BASE, "relevant": []}, BASE),
    ("no-evidence", {**BASE, "relevant": []}, {**BASE, "relevant": [], "expected_doc": "a.md"}),
    (
        "no-evidence",
        {**BASE, "relevant": []},
        {**BASE, "relevant": [], "anchor_section": "S.1"},
    ),
    ("refusal-with-evidence", {**BASE, "answerable": False}, BASE),
    (
        "refusal-with-evidence",
        {**BASE, "answerable": False},
        {**BASE, "answerable": False, "relevant": [], "anchor_section": "S.1"},
    ),
    # under ship, whose field it is: 4 and 5 characters
    ("unmatchable-claims", {**BASE, "gold_claim_substr": ["8080"]},
     {**BASE, "gold_claim_substr": ["80801"]}),
    ("unmatchable-claims", {**BASE, "gold_claim": "ja: nein"}, {**BASE, "gold_claim": "ja nein"}),
    ("short-claim", {**BASE, "gold_claim_substr": ["8080", "port 8080"]},
     {**BASE, "gold_claim_substr": ["port 8080"]}),
    ("contradiction", {**BASE, "must_contain": ["port"], "forbidden": ["port"]},
     {**BASE, "must_contain": ["port"], "forbidden": ["Port"]}),  # case counts
    ("contradiction", {**BASE, "must_contain": ["port 80"], "forbidden": ["port"]},
     {**BASE, "must_contain": ["port"], "forbidden": ["port 80"]}),
    ("contradiction", {**BASE, "forbidden": [""]}, {**BASE, "forbidden": ["x"]}),
    ("relevant-negative", {**BASE, "negatives": ["guide.md#S.1.1.p.Bk001"]},
     {**BASE, "negatives": ["guide.md#S.1.1.p.Bk002"]}),
    ("relevant-negative", {**BASE, "anchor_section": "S.1", "decoy_section": "S.1.2"},
     {**BASE, "anchor_section": "S.1.1", "decoy_section": "S.1.2"}),
    # S.1.1 to S.2.1.1 are 5 edges, to S.2.1 4
    ("far-negative", {**BASE, "negatives": ["guide.md#S.2.1.1.p.Bk001"]},
     {**BASE, "negatives": ["guide.md#S.2.1.p.Bk001"]}),
    ("far-negative", {**BASE, "negatives": ["else.md#S.1.1.p.Bk002"]},
     {**BASE, "negatives": ["S.1.1.p.Bk002"]}),
    ("near-duplicate-paraphrase",
     {**BASE, "paraphrases": ["Which port does it listen on", "On what port is it served?"]},
     {**BASE, "paraphrases": ["Where does it accept connections?"]}),
    ("misspelt-field", {**BASE, "negative": []}, {**BASE, "negatives": []}),
    ("unread-field", {**BASE, "reviewer": "kim"}, {**BASE, "tags": ["kim"]}),
]  # fmt: skip


@cases(("rule", "bad", "good"), CASES, ids=lambda each: str(each)[:40])
def test_a_rule_finds_its_item_and_not_the_neighbour(
    folder: Folder, rule: str, bad: Row, good: Row
) -> None:
    outcome = lint(folder, OTHER, bad)
    mine = [finding for finding in found(outcome) if finding["rule"] == rule]
    assert [(finding["line"], finding["qid"]) for finding in mine] == [(2, "Q1")]
    assert mine[0]["severity"] == RULES[rule].severity
    assert mine[0]["hint"].strip()
    assert outcome.exit_code == (3 if RULES[rule].severity == "error" else 0)
    assert rule not in [finding["rule"] for finding in found(lint(folder, OTHER, good))]


@cases(
    ("profile", "claims", "rules"),
    [
        ("ship", ["8080"], ["unmatchable-claims"]),
        ("smoke", ["8080"], ["unmatchable-claims"]),
        ("ship", ["8080", "port 8080"], ["short-claim"]),
        ("ship", ["80801"], []),
        ("all", ["8080"], []),
        ("canary", ["8080", "port 8080"], []),
        ("kb", ["C++"], []),
    ],
)
def test_whether_short_claims_match_depends_on_the_profile(
    folder: Folder, profile: str, claims: list[str], rules: list[str]
) -> None:
    """The sources of `ship` and `smoke` never find them; elsewhere they are words."""
    outcome = lint(folder, {**BASE, "gold_claim_substr": claims}, options=("--profile", profile))
    mine = [finding for finding in found(outcome) if "claim" in finding["rule"]]
    assert [finding["rule"] for finding in mine] == rules
    assert all(profile in finding["hint"] for finding in mine)


def test_a_good_set_is_ok_with_its_counts(folder: Folder) -> None:
    folder.write("gold.jsonl", [BASE, OTHER])
    outcome = folder.run("gold", "lint", "gold.jsonl", "--strict")
    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[0] == "gold.jsonl: 2 gold items, dialect native, profile all"
    assert outcome.out.splitlines()[-1] == "ok: 0 errors, 0 warnings, 3 notes"


@cases(
    ("rows", "options", "times"),
    [
        ([BASE, OTHER, BASE], (), 1),
        ([BASE, OTHER, BASE, BASE], (), 2),
        ([{**BASE, "turn": 1}, {**BASE, "turn": 2}], (), 0),
        ([{**BASE, "turn": 1}, {**BASE, "turn": 1}], (), 1),
        # ship knows no turns
        ([{**BASE, "turn": 1}, {**BASE, "turn": 2}], ("--profile", "ship"), 1),
    ],
)
def test_ids_that_stand_twice(
    folder: Folder, rows: list[Row], options: tuple[str, ...], times: int
) -> None:
    outcome = lint(folder, *rows, options=options)
    mine = [finding for finding in found(outcome) if finding["rule"] == "duplicate-qid"]
    assert sum(finding.get("times", 1) for finding in mine) == times
    assert outcome.exit_code == (3 if times else 0)
    if times:
        assert str(len(rows)) in mine[0]["hint"]  # the last line is named


def test_items_that_ask_the_same_are_one_finding(folder: Folder) -> None:
    same = {**OTHER, "qid": "Q0", "question": "How LONG are settings kept"}
    third = {**OTHER, "qid": "Q9", "question": "How long are the settings kept?"}
    assert [finding["message"] for finding in found(lint(folder, BASE, OTHER, same))] == [
        "2 items ask the same: Q0, Q2"
    ]
    [finding] = found(lint(folder, BASE, third, OTHER, same))
    assert finding["rule"] == "near-duplicate-question"
    assert finding["message"] == "3 items ask nearly the same: Q0, Q2, Q9"
    assert (finding["line"], finding["qid"], finding["times"]) == (4, "Q0", 2)


def test_a_paraphrase_may_be_the_question_of_another_item(folder: Folder) -> None:
    other = {**OTHER, "paraphrases": ["Which port does it listen on??"]}
    outcome = lint(folder, BASE, other, options=("--profile", "all"))
    assert [finding["rule"] for finding in found(outcome)] == ["near-duplicate-question"]


def test_numbers_and_turns_make_questions_different(folder: Folder) -> None:
    years = [
        {**BASE, "qid": f"Q{year}", "question": f"What was the revenue of the group in {year}?"}
        for year in (2021, 2022)
    ]
    assert found(lint(folder, *years)) == []
    turns = [{**BASE, "qid": name, "turn": 1} for name in ("A", "B")]
    outcome = lint(folder, *turns)
    assert found(outcome) == []
    assert json.loads(outcome.out)["not_judged"] == {"turns": 2, "negatives": 0}


@pytest.mark.parametrize(("count", "expected"), [(0, 1), (2, 1), (3, 0)])
def test_canary_asks_for_three_paraphrases(folder: Folder, count: int, expected: int) -> None:
    wordings = ["Which port is used?", "Where does it listen?", "What must a firewall open?"]
    row = {**BASE, "paraphrases": wordings[:count]}
    for profile, times in (("canary", expected), ("all", 0)):
        outcome = lint(folder, row, options=("--profile", profile))
        rules = [finding["rule"] for finding in found(outcome)]
        assert rules.count("few-paraphrases") == times


def test_negatives_of_which_nobody_knows_where_they_lie_are_counted(folder: Folder) -> None:
    row = {**BASE, "negatives": ["chunk-17", "guide.md#S.1.2.p.Bk001"]}
    outcome = lint(folder, row, options=("--profile", "all"))
    assert found(outcome) == []
    assert json.loads(outcome.out)["not_judged"]["negatives"] == 1
    table = folder.run("gold", "lint", "gold.jsonl").out
    assert "not judged 1 negative of 2: where they lie is not known" in table


# --- with a corpus ---


def test_evidence_is_looked_up_in_the_corpus(folder: Folder) -> None:
    options = with_corpus(folder)
    wrong = {**OTHER, "relevant": ["guide.md#S.1.2.p.Bk009"], "expected_doc": "gone.md"}
    outcome = lint(folder, BASE, wrong, options=options)
    mine = [finding for finding in found(outcome) if finding["rule"] == "unresolved"]
    assert [finding["line"] for finding in mine] == [2, 2]
    assert {"`guide.md#S.1.2.p.Bk009`" in finding["message"] for finding in mine} == {True, False}
    assert json.loads(outcome.out)["looked_up"] == {
        "ids": 3, "places": 0, "quotes": 0, "not_found": 2,
    }  # fmt: skip
    assert outcome.exit_code == 3


def test_a_quote_must_stand_at_its_offset(folder: Folder) -> None:
    options = with_corpus(folder)
    quote = "Old settings are kept for a day."
    good = {**OTHER, "relevant": [{**at(quote), "quote": quote}]}
    moved = {**at(quote), "start": at(quote)["start"] + 1, "quote": quote}
    bad = {**OTHER, "relevant": [moved]}
    assert "quote-moved" not in [
        finding["rule"] for finding in found(lint(folder, good, options=options))
    ]
    [finding] = [
        finding
        for finding in found(lint(folder, bad, options=options))
        if finding["severity"] == "error"
    ]
    assert finding["rule"] == "quote-moved"
    start = GUIDE.index(quote)
    assert f"{start} to {start + len(quote)}" in finding["hint"]


@cases(("first", "last"), [(-1, 0), (0, 1), (-1, 1), (-2, 0)])
def test_a_quote_that_is_off_by_a_blank_is_reported(folder: Folder, first: int, last: int) -> None:
    """The bytes around the quote are line ends, so that only white space is wrong."""
    options = with_corpus(folder)
    quote = "Old settings are kept for a day."
    place = at(quote)
    off = {**place, "start": place["start"] + first, "end": place["end"] + last, "quote": quote}
    outcome = lint(folder, {**OTHER, "relevant": [off]}, options=options)
    [finding] = [finding for finding in found(outcome) if finding["severity"] == "error"]
    assert (outcome.exit_code, finding["rule"]) == (3, "quote-moved")
    assert finding["hint"] == f"it stands at {place['start']} to {place['end']}"


def test_evidence_that_is_only_an_id_is_told_once(folder: Folder) -> None:
    """`test_fingerprints.py` has what a lock says of it."""
    options = with_corpus(folder)
    outcome = lint(folder, BASE, {**OTHER, "negatives": ["guide.md#S.1.p.Bk001"]}, options=options)
    [finding] = [finding for finding in found(outcome) if finding["rule"] == "not-pinned"]
    assert (finding["severity"], finding["qid"], finding["times"]) == ("warning", "Q1", 2)
    # Where no corpus knows the ids, they may be those of any chunker.
    assert "not-pinned" not in lint(folder, BASE, OTHER).out


def test_a_place_in_lines_has_its_line_end(folder: Folder) -> None:
    options = with_corpus(folder)
    quote = "Old settings are kept for a day."
    line = GUIDE[: GUIDE.index(quote)].count("\n") + 1
    place = {"doc": "guide.md", "line_start": line, "line_end": line, "quote": quote}
    outcome = lint(folder, {**OTHER, "relevant": [place]}, options=options)
    assert [finding for finding in found(outcome) if finding["severity"] == "error"] == []


def test_a_negative_may_not_lie_where_the_evidence_lies(folder: Folder) -> None:
    options = with_corpus(folder)
    place = at("It listens on port 8080.")  # nearly half of the block of 49 bytes
    near = {**BASE, "relevant": [place], "negatives": ["guide.md#S.1.1.p.Bk001"]}
    fine = {**BASE, "relevant": [place], "negatives": ["guide.md#S.1.2.p.Bk001"]}
    assert "relevant-negative" in [
        finding["rule"] for finding in found(lint(folder, near, options=options))
    ]
    assert "relevant-negative" not in [
        finding["rule"] for finding in found(lint(folder, fine, options=options))
    ]


def test_the_corpus_tells_where_negatives_lie(folder: Folder) -> None:
    options = with_corpus(folder)
    deep = "guide.md#S.1.2.1.1.1.p.Bk001"  # S.1.1 to S.1.2.1.1.1: 1 up, 4 down
    row = {**BASE, "negatives": [deep, "other.md#S.1.p.Bk001", "guide.md#S.1.p.Bk001"]}
    messages = [
        finding["message"]
        for finding in found(lint(folder, row, options=options))
        if finding["rule"] == "far-negative"
    ]
    assert len(messages) == 2
    assert f"the negative `{deep}` is 5 edges away from the answer" in messages


def test_the_share_of_sections_that_are_reached(folder: Folder) -> None:
    """Five sections have text: S.1, S.1.1, S.1.2, S.1.2.1.1.1 and S.1 of the other document."""
    options = with_corpus(folder)
    outcome = lint(folder, BASE, OTHER, options=options)
    coverage = json.loads(outcome.out)["coverage"]
    assert (coverage["sections_reached"], coverage["sections"], coverage["share"]) == (2, 5, 0.4)
    assert (coverage["documents_reached"], coverage["documents"]) == (1, 2)
    assert "low-coverage" in [finding["rule"] for finding in found(outcome)]
    more = [
        {"qid": f"M{n}", "question": f"What does part {n} say?", "relevant": [name]}
        for n, name in enumerate(["guide.md#S.1.p.Bk001", "other.md#S.1.p.Bk001"])
    ]
    outcome = lint(folder, BASE, OTHER, *more, options=options)
    assert json.loads(outcome.out)["coverage"]["share"] == 0.8  # 4 of 5 is enough
    assert "low-coverage" not in [finding["rule"] for finding in found(outcome)]


def test_questions_to_be_refused_reach_nothing(folder: Folder) -> None:
    options = with_corpus(folder)
    refused = {**BASE, "answerable": False, "relevant": [], "anchor_section": "guide.md#S.1.1"}
    outcome = lint(folder, refused, options=options)
    assert json.loads(outcome.out)["coverage"]["sections_reached"] == 0


def test_types_that_no_question_is_on(folder: Folder) -> None:
    folder.write("docs/guide.md", GUIDE + "\n```sh\nmake\n```\n")
    folder.run("corpus", "build", "docs", "-o", "corpus")
    rows = [{**BASE, "qid": f"Q{n}", "question": f"What is said of item {n}?"} for n in range(5)]
    outcome = lint(folder, *rows[:4], options=("--corpus", "corpus"))
    rules = {finding["rule"]: finding["message"] for finding in json.loads(outcome.out)["findings"]}
    assert rules["missing-type"] == "no question is on code; the corpus has 1 such blocks"
    assert rules["few-of-type"] == "4 questions are on prose, and a slice needs 5"
    code = {**OTHER, "type": "code"}
    outcome = lint(folder, *rows, code, options=("--corpus", "corpus"))
    rules = {finding["rule"]: finding["message"] for finding in json.loads(outcome.out)["findings"]}
    assert "missing-type" not in rules
    assert rules["few-of-type"] == "1 question is on code, and a slice needs 5"


def test_beyond_some_items_missing_evidence_is_counted(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragauge.gold.lint.check.MAX_LISTED_ITEMS", 2)
    options = with_corpus(folder)
    rows = [
        {**BASE, "qid": f"Q{n}", "question": f"What of {n}?", "relevant": ["x#S.1.p.Bk001", "y"]}
        for n in range(5)
    ]
    rows.reverse()
    mine = [e for e in found(lint(folder, *rows, options=options)) if e["rule"] == "unresolved"]
    # 2 of each of the first 2 by id, wherever they stand, and one line for 6 of 3
    assert [finding.get("qid") for finding in mine] == ["Q1", "Q1", "Q0", "Q0", None]
    assert mine[-1]["message"] == "6 more ids or places of 3 other items are not in the corpus"
    assert mine[-1]["times"] == 6


# --- size, rows that cannot be read, exit codes, formats ---


@pytest.mark.parametrize(("count", "expected"), [(191, True), (192, False)])
def test_a_small_set_is_told_so(folder: Folder, count: int, expected: bool) -> None:
    """Of 192 questions at one half, four runs of five at 0.4001 lie below the interval."""
    rows = [{**BASE, "qid": f"Q{n}", "question": f"What of {n}?"} for n in range(count)]
    document = json.loads(lint(folder, *rows).out)
    assert ("set-size" in document["rules"]) == expected
    assert document["size"]["n"] == count


def test_rows_that_cannot_be_read_are_counted_and_the_rest_is_judged(folder: Folder) -> None:
    folder.write("gold.jsonl", b'{"qid": 1,}\n' + json.dumps({**BASE, "relevant": []}).encode())
    outcome = folder.run("gold", "lint", "gold.jsonl")
    assert outcome.exit_code == 3
    assert "error[bad-json]" in outcome.out
    assert "error[no-evidence]: the item is answerable and names no evidence" in outcome.out
    assert "  --> gold.jsonl:2  (qid Q1)" in outcome.out
    assert "left out   1 row that cannot be read" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("2 errors, 0 warnings,")


def test_only_unreadable_rows_are_errors_and_not_nothing(folder: Folder) -> None:
    folder.write("gold.jsonl", "17\n")
    assert folder.run("gold", "lint", "gold.jsonl").exit_code == 3


def test_an_empty_set_is_nothing(folder: Folder) -> None:
    folder.write("gold.jsonl", "\n")
    outcome = folder.run("gold", "lint", "gold.jsonl")
    assert outcome.exit_code == 5
    assert outcome.codes == {"nothing-measured"}
    assert outcome.out == ""


def test_warnings_fail_under_strict_only(folder: Folder) -> None:
    folder.write("gold.jsonl", [{**BASE, "gold_claim_substr": ["8080", "port 8080"]}])
    assert folder.run("gold", "lint", "gold.jsonl").exit_code == 0
    assert folder.run("gold", "lint", "gold.jsonl", "--strict").exit_code == 1


def test_at_most_twenty_of_a_severity_are_printed(folder: Folder) -> None:
    rows = [{**BASE, "qid": f"Q{n:02}", "question": f"What of {n}?", "relevant": []}
            for n in range(25)]  # fmt: skip
    folder.write("gold.jsonl", rows)
    out = folder.run("gold", "lint", "gold.jsonl").out
    assert out.count("error[no-evidence]") == 20
    assert "... and 5 more errors" in out
    assert "no-evidence 25" in out
    assert len(found(lint(folder, *rows))) == 25


def test_what_a_terminal_would_obey_is_shown_as_text(folder: Folder) -> None:
    folder.write("gold.jsonl", [{**BASE, "qid": "Q\u001b[2J", "relevant": []}])
    out = folder.run("gold", "lint", "gold.jsonl").out
    assert "\u001b" not in out
    assert "Q\\x1b[2J" in out


def test_judgements_need_no_questions(folder: Folder) -> None:
    folder.write("qrels.txt", "301 0 d1 1\n302 0 d2 1\n")
    outcome = folder.run("gold", "lint", "qrels.txt", "--format", "json")
    assert outcome.exit_code == 0
    assert found(outcome) == []


def test_the_same_finding_is_told_by_validate(folder: Folder) -> None:
    """One logic for both commands."""
    folder.write("gold.jsonl", [{**BASE, "relevant": [], "reviewer": "kim"}])
    printed = folder.run("validate", "gold.jsonl").out
    assert "1 answerable gold item without evidence: Q1" in printed
    assert "1 other field is not read: `ragauge validate --fields` lists it" in printed
    rules = json.loads(folder.run("gold", "lint", "gold.jsonl", "--format", "json").out)["rules"]
    assert {"no-evidence", "unread-field"} <= set(rules)


def test_the_gold_of_the_tests_is_fine(folder: Folder) -> None:
    assert [finding["rule"] for finding in found(lint(folder, *GOLD))] == []


@cases("name", RULES)
def test_every_rule_can_be_explained(folder: Folder, name: str) -> None:
    rule = RULES[name]
    assert rule.name == name
    assert rule.severity in SEVERITIES
    outcome = folder.run("explain", f"{rule.severity}[{name}]")
    assert outcome.exit_code == 0
    assert outcome.out.startswith(f"{name}: {rule.title}")


@cases(
    ("piece", "told"),
    [
        ("p1#2", True),
        ({"id": "p1#2", "doc": "d.md", "start": 0, "end": 9}, True),
        ({"doc": "d.md", "start": 0, "end": 9, "grain": "chunk"}, True),
        ({"doc": "d.md", "start": 0, "end": 9}, False),
        ({"id": "p1#2", "doc": "d.md", "start": 0, "end": 9, "grain": "evidence"}, False),
    ],
)
def test_gold_of_whole_chunks_is_told(folder: Folder, piece: Any, told: bool) -> None:
    """One line for the set, unless a single piece is the evidence itself."""
    rows = [{"qid": f"Q{n}", "question": f"what is {n}?", "relevant": ["p9#9"]} for n in (1, 2)]
    rows[1]["relevant"] = [piece]
    findings = json.loads(lint(folder, *rows).out)["findings"]
    assert sum(each["rule"] == "chunks-only" for each in findings) == told


def test_every_rule_has_a_case() -> None:
    """A rule that no test triggers may find nothing."""
    source = Path(__file__).read_text("utf-8")
    own = [name for name in RULES if name not in CODES]
    assert [name for name in own if source.count(f'"{name}"') == 0] == []
    assert not set(own) & set(CODES)
