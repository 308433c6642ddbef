"""Random small inputs for the `ship` and `smoke` scorers, drawn from tiny alphabets.

Few values, so that overlaps, ties, duplicates and look-alikes happen all the time. Every case is
valid input that the source's scorer accepts. Beyond its contract stand only fields that both
profiles must ignore: a `refused` flag, `seed`, an `error`, and under `smoke` a trace's `qid`.
"""

# ruff: noqa: RUF001, RUF003 (letters that look like others are the point)
from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.oracles.ship_oracle import DEFAULT_GATES, REFUSAL

Row = dict[str, Any]


def _alphabet(*lines: str) -> tuple[str, ...]:
    return tuple("|".join(lines).split("|"))


GATE_NAMES = ("precision", "chr", "under", "over")
# Rates such as 2/3 lie between 0.6666 and 0.6667: a gate reads the value before rounding.
THRESHOLDS = _alphabet(
    "0|0.05|0.10|1e-1|0.25|0.3333|0.3334|.5|0.50|0.6666|0.6667|0.75|0.8|0.80|1|1.0"
)
PLAIN_IDS = _alphabet("p1#1|p1#2|p2#1|pB#1")
ODD_IDS = _alphabet("P1#1| p1#1|p1#2 |p1#1\u00a0|pß#1|pSS#1|pİ#1|pΣ#1|🙂#1")
BLANKS = _alphabet("||| |\n|\t |\u00a0|\u2003|\x85|\x1f")
REFUSALS = _alphabet("not in context|not in context|Not in context|NOT IN CONTEXT|nOt iN cOnTeXt")
# Not refusals: a full stop, a doubled, unbreakable or missing blank, a dotted İ, invisible marks.
LOOK_ALIKES = _alphabet(
    "Not in context.|not  in context|not in\u00a0context|notin context|NOT İN CONTEXT",
    "\u200bnot in context|\ufeffnot in context|'not in context'",
)
# Substrings under 5 characters never match; "İab" has 3 and becomes 4, "İabc" 4 and becomes 5.
SUBSTRINGS = _alphabet(
    "rejects null keys|Null Keys|null|keys|KEYS.| keys ||     |İab|İabc|i\u0307abc",
    "straße|STRASSE|ΟΔΟΣ Α|ΟΔΌΣ|οδοσ |🙂🙂🙂🙂🙂|null\u00a0keys|not in context|example.com",
)
FRAGMENTS = _alphabet(
    "X rejects null keys.|null keys|null\u00a0keys|Only domain example.com|İabc|STRAẞE|straße",
    "strasse|ΟΔΟΣ|ΟΔΌΣ|οδος α|🙂🙂🙂🙂🙂🙂|not in context",
)
SHIP_QIDS = _alphabet("A1|A2|A3|A4|A5|a1|A1 |Aß|Aİ|🙂")
QUESTIONS = _alphabet(
    "What is X?|what is x?|What is X? |What is\u00a0X?|Explain Y.|Was heißt ß?|Τι είναι Σ;",
    "İ nedir?|🙂?|Summarize.|Why?|How?|When?",
)
GOLD_CLAIMS = _alphabet(
    "X is a constrained mapping.|Y: unrelated to X|abcd|ab-cd|--a b c--|a   b|Key\u00a0One, ok",
    "İstanbul kedi|größe und maß|Σ is 42-17 🙂|?!||a\tbc-|in context|masse",
)
SAYINGS = _alphabet(
    "X is a constrained mapping.|unrelated to x|ABCD|AB-CD|a b c--|a   b|a bc|key\u00a0one",
    "key one|i\u0307stanbul kedi|stanbul kedi|GRÖSSE UND MASS|is 42-17|maße",
)
# Ignoring case, Python's patterns take İ for an i and ſ for an s.
KEYWORDS = _alphabet(
    "citations:|citations:|Citations:|CITATIONS :|citations\n: |cİtations:|citationſ:"
)
NEARLY_KEYWORDS = _alphabet("citation:|citations|sources:")


@dataclass(frozen=True)
class Case:
    """The input of one scoring; `smoke` has no use for `k` and `gates`."""

    gold_rows: list[Row]
    trace_rows: list[Row]
    k: int
    gates: str


def ship_case(rng: random.Random) -> Case:
    """A gold file and a trace file of profile `ship`, with a cut-off and gates."""
    size = _gold_size(rng)
    repeats = size > len(SHIP_QIDS) or rng.random() < 0.4
    qids = rng.choices(SHIP_QIDS, k=size) if repeats else rng.sample(SHIP_QIDS, size)
    gold = [_ship_gold(rng, qid) for qid in qids]
    refusing = rng.choice((0.0, 0.1, 0.3, 0.6, 1.0))
    untraced = rng.choice((0.0, 0.0, 0.2, 0.6))
    traces = []
    for row in gold:
        if rng.random() >= untraced:
            traces += [_ship_trace(rng, row, refusing) for _ in range(rng.choice((1, 1, 1, 2)))]
    strangers = ({"qid": rng.choice((*SHIP_QIDS, "B9"))} for _ in range(rng.randrange(3)))
    traces += [_ship_trace(rng, row, refusing) for row in strangers]
    rng.shuffle(traces)
    return Case(gold, traces[:25], rng.choice((1, 1, 2, 3, 5, 5, 10, 50)), _gates(rng))


def smoke_case(rng: random.Random) -> Case:
    """A question set and a trace file of profile `smoke`."""
    size = _gold_size(rng)
    questions = rng.sample(QUESTIONS, size)
    if size > 1 and rng.random() < 0.25:
        questions[-1] = questions[0]
    gold = [_smoke_gold(rng, f"q{n}", question) for n, question in enumerate(questions, start=1)]
    refusing = rng.choice((0.0, 0.1, 0.3, 0.6, 1.0))
    traces = []
    for _ in range(0 if rng.random() < 0.04 else rng.choice((rng.randint(1, 25), 16, 25))):
        row = rng.choice(gold) if gold and rng.random() < 0.85 else {"q": rng.choice(QUESTIONS)}
        traces.append(_smoke_trace(rng, row, refusing))
    return Case(gold, traces, 5, DEFAULT_GATES)


def _gold_size(rng: random.Random) -> int:
    return 0 if rng.random() < 0.03 else rng.randint(1, 12)


def _gates(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return DEFAULT_GATES
    gates = {name: rng.choice(THRESHOLDS) for name in rng.sample(GATE_NAMES, len(GATE_NAMES))}
    if rng.random() < 0.6:  # one gate alone decides
        always_met = {"precision": "0", "chr": "0.0", "under": "1", "over": "1.0"}
        del always_met[rng.choice(GATE_NAMES)]
        gates |= always_met
    return ",".join(f"{name}={threshold}" for name, threshold in gates.items())


def _ship_gold(rng: random.Random, qid: str) -> Row:
    row: Row = {"qid": qid, "question": rng.choice(QUESTIONS)}
    _put(rng, row, "answerable", rng.choice((True, True, True, False)))
    substrings = rng.choices(SUBSTRINGS, k=rng.choice((0, 0, 1, 1, 2, 3)))
    _put(rng, row, "gold_claim_substr", substrings)
    _put(rng, row, "gold_citations", _ids(rng, rng.choice((0, 1, 1, 2))))
    return row


def _ship_trace(rng: random.Random, gold: Row, refusing: float) -> Row:
    row: Row = _trace_qid(rng, gold["qid"])
    if rng.random() < 0.5:
        row["q"] = gold.get("question", rng.choice(QUESTIONS))
    faithful = rng.random() < 0.7
    gold_ids = gold.get("gold_citations") or []
    retrieved = _ids(rng, rng.randint(0, 4))
    if faithful:
        retrieved += gold_ids
        rng.shuffle(retrieved)
    _put(rng, row, "retrieved_ids", retrieved)
    answer: Row = {}
    substrings = (gold.get("gold_claim_substr") or []) if faithful else []
    _put(rng, answer, "claim", _answer_text(rng, refusing, (*FRAGMENTS, *substrings * 6)))
    cited = gold_ids[:1] if faithful else _ids(rng, rng.randint(0, 1))
    if retrieved and (gold_ids or not faithful):  # nothing to cite: a faithful trace cites nothing
        cited += rng.choices(retrieved, k=rng.randrange(3))
    rng.shuffle(cited)
    _put(rng, answer, "citations", _not_a_list(rng) if rng.random() < 0.08 else cited)
    _put(rng, row, "answer_json", answer)
    return _with_ignored_fields(rng, row)


def _trace_qid(rng: random.Random, qid: str) -> Row:
    draw = rng.random()
    if draw < 0.70:
        return {"qid": qid}
    if draw < 0.82:
        return {"q_id": qid}
    if draw < 0.88:
        return {"qid": qid, "q_id": qid}
    if draw < 0.94:
        return {"qid": rng.choice((None, "")), "q_id": qid}
    return rng.choice(({}, {"qid": None}, {"qid": ""}, {"q_id": None}))  # belongs to no question


def _not_a_list(rng: random.Random) -> Any:
    # The truthy ones never hit; the falsy ones are read as an empty list.
    return rng.choice(("p1#1", "[p1#1]", {"id": "p1#1"}, 3, True, "", {}, 0, False))


def _smoke_gold(rng: random.Random, qid: str, question: str) -> Row:
    row: Row = {"qid": qid, "q": question, "answerable": rng.random() < 0.65}
    if rng.random() < 0.04:
        row["answerable"] = None
    if rng.random() < 0.9:
        # Absent is accepted by the source, null is not.
        row["gold_ids"] = _ids(rng, rng.choice((0, 1, 1, 2)))
    _put(rng, row, "gold_claim", rng.choice(GOLD_CLAIMS))
    return row


def _smoke_trace(rng: random.Random, gold: Row, refusing: float) -> Row:
    spellings = rng.choice((("q",), ("q",), ("question",), ("q", "question")))
    row: Row = dict.fromkeys(spellings, gold["q"])
    if rng.random() < 0.04:
        row = rng.choice(({}, {"q": None}, {"question": ""}))
    if rng.random() < 0.05:
        row["qid"] = f"q{rng.randint(1, 12)}"
    cited = _ids(rng, rng.randint(0, 2))
    if rng.random() < 0.6:
        cited += gold.get("gold_ids", [])[:1]
    claim = gold.get("gold_claim") or ""
    answer = _answer_text(rng, refusing, (*SAYINGS, *[claim] * 6))
    form = rng.random()
    if form < 0.35:
        row["citations"] = cited
    elif form < 0.45:
        row["citations"] = None
    elif form > 0.85:  # both forms: the field wins, even when empty
        row["citations"] = rng.choice(([], _ids(rng, 1)))
    refused = answer.strip().lower() == REFUSAL
    if form >= 0.40 and (not refused or rng.random() < 0.1):
        answer += rng.choice(("\n- ", " ", "")) + _citations_text(rng, cited)
    _put(rng, row, "answer", answer)
    if rng.random() < 0.7:
        row["chunks"] = [{"id": chunk} for chunk in _ids(rng, rng.randint(0, 4))]
    return _with_ignored_fields(rng, row)


def _citations_text(rng: random.Random, cited: list[str]) -> str:
    keyword = rng.choice(NEARLY_KEYWORDS if rng.random() < 0.1 else KEYWORDS)
    separator = rng.choice((", ", ",", " ", "\n", " , ,", "\u00a0", ";"))
    listed = rng.choice(("", " ", ",")) + separator.join(cited) + rng.choice(("", " ", ", "))
    text = f"{keyword}{rng.choice(('', ' '))}[{rng.choice((listed, listed, listed, '', ' '))}"
    second = f"citations: [{rng.choice(PLAIN_IDS)}]"
    ending = rng.choice(("]", "]", "]", "].", "", f"] {second}", f" {second}"))
    return text + ending


def _answer_text(rng: random.Random, refusing: float, fragments: tuple[str, ...]) -> str:
    if rng.random() < refusing:
        return rng.choice(BLANKS) + rng.choice(REFUSALS) + rng.choice(BLANKS)
    if rng.random() < 0.1:
        return rng.choice(BLANKS) + rng.choice(LOOK_ALIKES) + rng.choice(BLANKS)
    text = rng.choice((" ", "; ")).join(rng.choices(fragments, k=rng.choice((0, 1, 1, 2, 3))))
    recased = rng.choice((text, text, text.upper(), text.lower(), text.title()))
    return rng.choice(BLANKS) + recased + rng.choice(BLANKS)


def _ids(rng: random.Random, size: int) -> list[str]:
    return [rng.choice(ODD_IDS if rng.random() < 0.15 else PLAIN_IDS) for _ in range(size)]


def _put(rng: random.Random, row: Row, name: str, value: Any) -> None:
    draw = rng.random()
    if draw < 0.92:
        row[name] = value
    elif draw < 0.96:
        row[name] = None


def _with_ignored_fields(rng: random.Random, row: Row) -> Row:
    if rng.random() < 0.05:
        row["refused"] = rng.random() < 0.5
    if rng.random() < 0.08:
        row["seed"] = rng.randrange(2)
    if rng.random() < 0.03:
        row["error"] = "timeout"
    if rng.random() < 0.3:
        row["ts"] = 1_699_999_999 + rng.randrange(3)
    return row
