"""Which rule decides that an answer is a refusal: their order, and both ways to read a row."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest

from ragauge import score
from ragauge.files import ranges
from ragauge.model.gold import GoldItem, GoldSet
from ragauge.model.options import Options
from ragauge.model.scores import Scores
from ragauge.model.trace import Answer, Trace, TraceSet
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose
from ragauge.scoring.refusals import VERSION
from tests.support.cases import cases
from tests.support.command import Folder

Row = dict[str, Any]
NATURAL = f"natural v{VERSION}"
DECLINING = "I could not find that in the documents."


def gold(count: int, **fields: Any) -> list[Row]:
    return [{"qid": f"q{n}", "answerable": True, **fields} for n in range(count)]


def said(text: str | None, n: int = 0, **fields: Any) -> Row:
    return {"qid": f"q{n}", "answer_json": {"claim": text, "citations": [], **fields}}


def scored(
    folder: Folder, golds: list[Row], traces: list[Row], profile: str = "all", **settings: Any
) -> Scores:
    files = [folder.write("gold.jsonl", golds), folder.write("trace.jsonl", traces)]
    return score(*files, profile=profile, **settings)


def rules_of(folder: Folder, *answers: Row, **settings: Any) -> dict[str, int]:
    traces = [{**row, "qid": f"q{n}"} for n, row in enumerate(answers)]
    return scored(folder, gold(len(traces)), traces, **settings).refusal_rules


@cases(
    ("answer", "rules"),
    [
        (said("Not in context "), {"token": 1}),
        (said(DECLINING), {NATURAL: 1}),
        (said("Nope."), {}),
        (said(None), {}),
        (said("Nope.", refused=True), {"refused flag": 1}),
        (said("Nope.", grounded=False), {"grounded flag": 1}),
        # a flag alone decides, both ways
        (said(DECLINING, refused=False), {}),
        (said("not in context", refused=False), {}),
        (said(DECLINING, grounded=True), {}),
        (said("not in context", grounded=True), {}),
        (said(DECLINING, refused=True, grounded=True), {"refused flag": 1}),
        (said(DECLINING, refused=False, grounded=False), {}),
    ],
)
def test_rules_have_an_order(folder: Folder, answer: Row, rules: dict[str, int]) -> None:
    """A flag, the token, configured patterns, built-in patterns."""
    assert rules_of(folder, answer) == rules


def test_configured_patterns_come_between_the_token_and_the_built_in_ones(folder: Folder) -> None:
    """What the user wrote is named before what came with the package."""
    patterns = ["documents", "^nope"]
    answers = said("not in context"), said(DECLINING), said("I don't know."), said("Nope.")
    assert rules_of(folder, *answers, refusal_patterns=patterns) == {
        "pattern": 2,
        "token": 1,
        NATURAL: 1,
    }


def test_languages_are_chosen(folder: Folder) -> None:
    """English is on; any others are configured."""
    answers = said("I don't know."), said("Das weiß ich nicht."), said("Je ne sais pas.")
    assert rules_of(folder, *answers) == {NATURAL: 1}
    both = Options(refusal_languages=("de", "fr"))
    assert rules_of(folder, *answers, options=both) == {NATURAL: 2}
    assert rules_of(folder, *answers, options=Options(refusal_languages=())) == {}


def test_an_answer_with_a_claim_of_its_item_or_its_reference_is_no_refusal() -> None:
    """However it reads; an item that is to be refused describes its refusal by them."""
    items = (
        GoldItem(qid="q0", expect="answer", claims_any=("i don't know",)),
        GoldItem(qid="q1", expect="answer", claims_any=("the song",)),
        GoldItem(qid="q2", expect="answer", references=("I Don't  Know",)),
        GoldItem(qid="q3", expect="answer", references=("Yesterday",)),
        GoldItem(qid="q4", expect="refuse", references=("I don't know.",)),
        GoldItem(qid="q5", expect="answer", claims_any=("know",)),
    )
    traces = [
        Trace(qid=f"q{n}", answer=Answer(claim="I don't know.", citations=()))
        for n in range(len(items))
    ]
    golds = GoldSet(items=items, name="gold", dialect="native")
    run = TraceSet(traces=tuple(traces), name="trace", dialect="native")
    scores = score(golds, run, profile="all", metrics=["refusal.over", "refusal.correct"])
    assert scores.refusal_rules == {NATURAL: 3}  # q1, q3, q4
    assert scores.metrics["refusal.over"].value == pytest.approx(2 / 5)
    assert scores.metrics["refusal.correct"].value == 1.0


@pytest.mark.parametrize("profile", ["ship", "smoke"])
def test_sources_read_the_token_alone(folder: Folder, profile: str) -> None:
    """Neither words nor flags, and a warning says what that hides."""
    golds = [{"qid": f"q{n}", "question": f"What is {n}?", "answerable": False} for n in range(5)]
    texts = ["not in context", DECLINING, "Nope.", "I don't know.", "It is 5."]
    traces: list[Row] = [
        {"qid": f"q{n}", "question": f"What is {n}?", "answer": text, "retrieved_ids": []}
        for n, text in enumerate(texts)
    ]
    traces[2]["refused"] = True
    if profile == "ship":
        for row in traces:
            row["answer_json"] = {"claim": row.pop("answer")}
    scores = scored(folder, golds, traces, profile)
    assert scores.refusal_rules == {"token": 1}
    assert scores.metrics["refusal.under"].value == 0.8
    assert scores.warnings[-1] == (
        "2 answers read like refusals but lack the token `not in context`, 1 carries "
        '`refused: true`: q1, q2, q3; set `refusal.rule = "natural"`'
    )
    natural = scored(folder, golds, traces, profile, options=Options(refusal_rule="natural"))
    assert natural.refusal_rules == {"refused flag": 1, "token": 1, NATURAL: 2}
    assert natural.metrics["refusal.under"].value == 0.2
    assert not [warning for warning in natural.warnings if "refus" in warning]


def test_the_warning_names_five_questions_and_counts_every_answer(folder: Folder) -> None:
    """The rest is an ellipsis; what a flag denies is not hidden."""
    golds = gold(8)
    traces = [said(DECLINING, n) for n in range(7)] + [said(DECLINING, 7, refused=False)]
    *_, warning = scored(folder, golds, traces, "ship").warnings
    assert warning == (
        "7 answers read like refusals but lack the token `not in context`: "
        'q0, q1, q2, q3, q4, …; set `refusal.rule = "natural"`'
    )
    *_, warning = scored(folder, gold(1), [said("Yes.", refused=True)], "ship").warnings
    assert warning == '1 answer carries `refused: true`: q0; set `refusal.rule = "natural"`'


def test_short_claims_under_a_source_are_named(folder: Folder) -> None:
    """They never match there; elsewhere nothing is said, because they do."""
    golds = gold(2, gold_claim_substr=["8080", "port 8080", "EU"])
    traces = [said("The port is 8080.", n) for n in range(2)]
    *_, warning = scored(folder, golds, traces, "ship").warnings
    assert warning == (
        "4 claims under 5 characters, which never match, as in the source of the profile: "
        "`8080` (q0), `EU` (q0), `8080` (q1), `EU` (q1)"
    )
    assert not any("claims" in warning for warning in scored(folder, golds, traces).warnings)


# --- both paths ---

ANSWERS = (
    "not in context", DECLINING, "I don't know why, but it is 5.", "I don't know.", "It is 5.",
    "I DON’T KNOW", "No information available [1].", "Nope, documents.", "8080", "",
)  # fmt: skip


def written(folder: Folder, *, odd: bool) -> Scores:
    """Every answer as a row of the fast path, or with a field that only the exact path reads."""
    golds = [
        {
            "qid": f"q{n}",
            "answerable": n % 2 == 0,
            "gold_claim_substr": ["don't know", "8080"][n % 2 :],
        }
        for n in range(len(ANSWERS) * 30)
    ]
    rows = []
    for n, text in enumerate(itertools.islice(itertools.cycle(ANSWERS), len(golds))):
        extra: Row = {"answer_json": {"claim": text, "citations": []}}
        if odd:
            extra["answer_json"]["constraints_echo"] = []
        rows.append({"qid": f"q{n}", "retrieved_ids": ["a"], **extra})
    folder.write("gold.jsonl", golds)
    folder.write("trace.jsonl", rows)
    return score(
        folder.path / "gold.jsonl",
        folder.path / "trace.jsonl",
        profile="all",
        refusal_patterns=["^nope"],
        metrics=["refusal.*", "answer.claim_containment", "answer.compliance"],
        workers=2,
    )


@pytest.mark.slow
def test_both_paths_and_workers_agree(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows by columns, rows one by one, and rows in other processes give the same."""
    fast = written(folder, odd=False)
    exact = written(folder, odd=True)
    assert fast.refusal_rules == exact.refusal_rules
    assert set(fast.refusal_rules) == {"pattern", "token", NATURAL}
    assert fast.metrics == exact.metrics
    monkeypatch.setattr(inputs, "plan", partial(ranges.plan, range_bytes=2_000))
    monkeypatch.setattr(choose, "RANGE_BYTES", 2_000)
    for odd in (False, True):
        apart = written(folder, odd=odd)
        assert (apart.refusal_rules, apart.metrics) == (fast.refusal_rules, fast.metrics)
