"""The reports of a comparison: whole outputs, their order, hostile text, widths, and empty ones."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from tests.support.cases import cases

from ragauge import registry
from ragauge.codes import ExitCode
from ragauge.model import phrases
from ragauge.model.comparison import (
    DOC_KINDS,
    KINDS,
    MATCH_LEVELS,
    SCHEMA,
    AnswerChange,
    Cause,
    ComparedRun,
    Comparison,
    ComparisonView,
    Delta,
    Kind,
    QueryComparison,
)
from ragauge.model.scores import MetricResult
from ragauge.model.verdict import Gate, GateResult, Verdict, VerdictBlock
from ragauge.report.comparison import sentences
from ragauge.text import plain

REPORTS = ["json", "md", "table"]
HOSTILE = "a|b`c`\n<script>x</script>\x1b[31m\x9b2J\u202e*d*"


def run(name: str, **more: Any) -> ComparedRun:
    known = {"profile": "kb", "gold_name": "gold.jsonl", "trace_name": f"{name}.jsonl"}
    return ComparedRun(name=name, **{**known, "questions": 3, **more})


def change(metric: str, a: float | None, b: float | None, **more: Any) -> Delta:
    delta = None if a is None or b is None else b - a
    return Delta(**{"metric": metric, "better": "higher", "a": a, "b": b, "delta": delta, "n": 3}
                 | more)  # fmt: skip


def query(
    qid: str, kind: Kind | None, a: int | None, b: int | None, **more: Any
) -> QueryComparison:
    return QueryComparison(query_id=qid, kind=kind, a_hit_rank=a, b_hit_rank=b, **more)


def comparison(**more: Any) -> Comparison:
    nothing: dict[str, Any] = {
        "run_a": run("old"), "run_b": run("new"), "match": "exact", "rungs": {}, "aggregate_a": {},
        "aggregate_b": {}, "deltas": (), "kinds": {}, "answer_kinds": {}, "per_query": (),
        "counted": 3,
    }  # fmt: skip
    return Comparison(**nothing | more)


def verdict(status: Any = "fail", **more: Any) -> Verdict:
    gate = Gate(
        name="hit", metric="retrieval.hit@1", better="higher", threshold=0.02, given="0.02",
        origin="--gates", is_drop=True,
    )  # fmt: skip
    result = GateResult(
        gate=gate, status=status, value=0.3333, n=3, margin=-0.3133, interval=None, detectable=None
    )
    code = ExitCode.PASS if status == "pass" else ExitCode.GATE_FAILED
    return Verdict(status=status, exit_code=code, gates=(result,), blocks=(), **more)


def shown(name: str, value: Comparison, **more: Any) -> str:
    text = registry.comparisons()[name].text(ComparisonView(comparison=value, **more))
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    return text


def document(value: Comparison, **more: Any) -> dict[str, Any]:
    found = json.loads(shown("json", value, **more))
    assert isinstance(found, dict)
    return found


SMALL = comparison(
    run_a=run("old", created_at="2026-11-01T10:00:00Z", commit_hash="0123456789abcdef", errored=1),
    run_b=run("new", missing=1),
    match="mixed",
    rungs={"doc": 1, "exact": 2},
    aggregate_a={
        "retrieval.hit@1": MetricResult(
            value=2 / 3, n=3, records=4, excluded={}, interval=(0.2077, 0.93849), version=1,
            better="higher",
        )
    },
    aggregate_b={
        "retrieval.hit@1": MetricResult(
            value=None, n=0, records=0, excluded={}, interval=None, version=1, better="higher",
            reason="no-relevant",
        )
    },
    deltas=(
        change("answer.precision", 1.0, 1.0, interval=(0.0, 0.0), p=1.0, test="permutation"),
        change(
            "retrieval.hit@1", 2 / 3, 1 / 3, interval=(-1.0, 0.5), p=1.0, p_holm=1.0,
            test="mcnemar", detectable=0.9, gated=True,
        ),
        change("retrieval.map", None, None, n=0, reason="no-relevant"),
    ),
    kinds={"win": 1, "regression": 1, "loss": 1},
    answer_kinds={"regression": 1, "draw": 2},
    per_query=(
        query("q1", "win", None, 2, rungs=("exact",)),
        query(
            "q2", "loss", 1, 3, a_reciprocal=1.0, b_reciprocal=1 / 3, units=2, a_units=2.0,
            b_units=1.5, lost=("p4#1",),
        ),
        query(
            "q3", "regression", 1, None, note="missing in b", rungs=("doc",), turn=2,
            answer=AnswerChange(
                kind="regression", a_label="OK", b_label="MISSING", citations="hit → miss"
            ),
        ),
    ),
    left_out={"only in a": 1, "changed": 2},
    causes=(Cause(about="chunker", key="size", a="512", b=None),),
    notes=("the gold sets differ",),
    verdict=verdict(),
)  # fmt: skip

TABLE = """\
3 questions compared: 1 win, 1 loss, 1 regression; answers: 0 wins, 0 losses, 1
regression; retrieval.hit@1 -0.3333; no change that n = 3 can show
a = old, 2026-11-01T10:00:00Z, commit 0123456789ab, profile kb, 3 questions, 0
missing, 1 errored
b = new, profile kb, 3 questions, 1 missing, 0 errored
3 questions compared, 3 left out: 2 changed, 1 only in a

metric                  a       b        Δ       95 % interval       p  n
─────────────────────────────────────────────────────────────────────────
retrieval.hit@1 *  0.6667  0.3333  -0.3333  -1.0000 to +0.5000  1.0000  3
answer.precision   1.0000  1.0000  +0.0000  +0.0000 to +0.0000  1.0000  3
* gated; p corrected (Holm) over the gated metrics
undefined in both runs: retrieval.map (no-relevant)

chunker_version_match: mixed (2 exact, 1 doc)
retrieval: 1 regression, 1 loss, 1 win, 0 draws
answers: 1 regression, 0 losses, 0 wins, 2 draws

retrieval regressions (1)  rank a  rank b  note
───────────────────────────────────────────────────────
q3 turn 2                       1    miss  missing in b

answer regressions (1)  label a  label b  flipped
──────────────────────────────────────────────────────────────
q3 turn 2               OK       MISSING  citations hit → miss

retrieval losses (1)  rank a  rank b  note
──────────────────────────────────────────
q2                         1       3

retrieval wins (1)  rank a  rank b  note
────────────────────────────────────────
q1                    miss       2

why it may differ:
  chunker: size 512 → not set

note: the gold sets differ

hit: 0.3333, demanded <= 0.02
FAIL: hit
"""

MARKDOWN = """\
# ragauge: old → new

3 questions compared: 1 win, 1 loss, 1 regression; answers: 0 wins, 0 losses, 1 regression; \
retrieval.hit@1 -0.3333; no change that n = 3 can show.

**FAIL: hit**

| gate | value | demand | margin | n | detectable | verdict |  |
| --- | --- | --- | --- | --- | --- | --- | --- |
| hit | 0.3333 | <= 0.02 | -0.3133 | 3 | - | fail |  |

## What was compared

|  | a | b |
| --- | --- | --- |
| run | old | new |
| created | 2026-11-01T10:00:00Z | - |
| commit | 0123456789abcdef | - |
| profile | kb | kb |
| gold | gold.jsonl | gold.jsonl |
| trace | old.jsonl | new.jsonl |
| questions | 3 | 3 |
| missing | 0 | 1 |
| errored | 1 | 0 |

3 questions compared, 3 left out: 2 changed, 1 only in a.

## Why it may differ

- chunker: size 512 → not set

## Metrics

| metric | a | b | Δ | 95 % interval | p | p (Holm) | n | detectable |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| `retrieval.hit@1` (gated) | 0.6667 | 0.3333 | -0.3333 | -1.0000 to +0.5000 | 1.0000 | 1.0000 \
| 3 | 0.9000 |
| `answer.precision` | 1.0000 | 1.0000 | +0.0000 | +0.0000 to +0.0000 | 1.0000 | - | 3 | - |

Δ is b - a over the n questions that have a value in both runs; p (Holm) is corrected over \
the gated metrics; detectable is the change that this n would show in four cases of five.

- undefined in both runs: retrieval.map (no-relevant)
- chunker_version_match: mixed (2 exact, 1 doc)

## Questions

- retrieval: 1 regression, 1 loss, 1 win, 0 draws
- answers: 1 regression, 0 losses, 0 wins, 2 draws

### Retrieval regressions (1)

| question | kind | rank a | rank b | note |
| --- | --- | --- | --- | --- |
| q3 turn 2 | regression | 1 | miss | missing in b |

### Answer regressions (1)

| question | kind | label a | label b | flipped |
| --- | --- | --- | --- | --- |
| q3 turn 2 | regression | OK | MISSING | citations hit → miss |

### Retrieval losses (1)

| question | kind | rank a | rank b | note |
| --- | --- | --- | --- | --- |
| q2 | loss | 1 | 3 |  |

### Retrieval wins (1)

| question | kind | rank a | rank b | note |
| --- | --- | --- | --- | --- |
| q1 | win | miss | 2 |  |

## Notes

- the gold sets differ
"""


def test_the_table_as_a_whole() -> None:
    assert shown("table", SMALL) == TABLE


def test_the_markdown_as_a_whole() -> None:
    assert shown("md", SMALL) == MARKDOWN


def test_the_json_as_a_whole() -> None:
    """Every key in its order; kinds and rungs that did not occur are 0."""
    text = shown("json", SMALL)
    found = json.loads(text)
    bands = {
        **dict.fromkeys(("band", "band_interval", "a_band", "b_band")),
        "open": 0, "estimate": None,
    }  # fmt: skip
    places: dict[str, Any] = {
        "possible": [], "regression": None, "certain": True, "places": None, "a_found": None,
        "b_found": None, "doc_kind": None,
    }  # fmt: skip
    expected: dict[str, Any] = {
        "schema": SCHEMA,
        "run_a": "old",
        "run_b": "new",
        "runs": {
            "a": {
                "name": "old", "profile": "kb", "gold_name": "gold.jsonl",
                "trace_name": "old.jsonl", "gold_hash": None,
                "created_at": "2026-11-01T10:00:00Z", "commit_hash": "0123456789abcdef",
                "suite": None, "chunker_versions": [], "questions": 3, "missing": 0, "errored": 1,
            },
            "b": {
                "name": "new", "profile": "kb", "gold_name": "gold.jsonl",
                "trace_name": "new.jsonl", "gold_hash": None, "created_at": None,
                "commit_hash": None, "suite": None, "chunker_versions": [], "questions": 3,
                "missing": 1, "errored": 0,
            },
        },
        "aggregate_a": {
            "retrieval.hit@1": {
                "value": 0.6667, "n": 3, "records": 4, "interval": [0.2077, 0.9385], "version": 1,
                "unrounded": 2 / 3, "reason": None, "band": None,
            }
        },
        "aggregate_b": {
            "retrieval.hit@1": {
                "value": None, "n": 0, "records": 0, "interval": None, "version": 1,
                "unrounded": None, "reason": "no-relevant", "band": None,
            }
        },
        "deltas": {
            "chunker_version_match": "mixed",
            "rungs": {"exact": 2, "doc_span": 0, "quote": 0, "doc": 1, "none": 0},
            "undecided": {"regression_open": 0, "kind_open": 0, "unplaced": 0, "wide": 0},
            "ids": None,
            "sizes": None,
            "answer.precision": {
                "a": 1.0, "b": 1.0, "delta": 0.0, "n": 3, "interval": [0.0, 0.0], "p": 1.0,
                "p_holm": None, "changed": False, "moved": False,
                "test": "permutation", "detectable": None, "gated": False,
                "better": "higher", "reason": None, **bands,
                "unrounded": {"a": 1.0, "b": 1.0, "delta": 0.0, "interval": [0.0, 0.0]},
            },
            "retrieval.hit@1": {
                "a": 0.6667, "b": 0.3333, "delta": -0.3333, "n": 3, "interval": [-1.0, 0.5],
                "p": 1.0, "p_holm": 1.0, "changed": False, "moved": False,
                "test": "mcnemar", "detectable": 0.9, "gated": True,
                "better": "higher", "reason": None, **bands,
                "unrounded": {
                    "a": 2 / 3, "b": 1 / 3, "delta": 1 / 3 - 2 / 3, "interval": [-1.0, 0.5]
                },
            },
            "retrieval.map": {
                "a": None, "b": None, "delta": None, "n": 0, "interval": None, "p": None,
                "p_holm": None, "changed": False, "moved": False,
                "test": None, "detectable": None, "gated": False,
                "better": "higher", "reason": "no-relevant", **bands,
                "unrounded": {"a": None, "b": None, "delta": None, "interval": None},
            },
        },
        "slices": {},
        "kinds": {
            "retrieval": {**dict.fromkeys(KINDS, 0), "regression": 1, "loss": 1, "win": 1},
            "answer": {**dict.fromkeys(KINDS, 0), "regression": 1, "draw": 2},
            "document": dict.fromkeys(DOC_KINDS, 0),
        },
        "document_level": None,
        "k": 10,
        "left_out": {"changed": 2, "only in a": 1},
        "counted": 3,
        "causes": [{"about": "chunker", "key": "size", "a": "512", "b": None}],
        "notes": ["the gold sets differ"],
        "verdict": {
            "status": "fail",
            "exit_code": int(ExitCode.GATE_FAILED),
            "gates": found["verdict"]["gates"],  # the scores document's own, tested there
            "blocks": [],
        },
        "fail_on": {},
        "fail_on_checks": [],
        "fail_on_reason": None,
        "exit_code": 1,
        "per_query": [
            {
                "query_id": "q1", "kind": "win", "a_hit_rank": None, "b_hit_rank": 2, "note": None,
                "turn": None, "a_reciprocal": None, "b_reciprocal": None, "units": None,
                "a_units": None, "b_units": None, "lost": [], "gained": [], "rungs": ["exact"],
                "answer": None, **places,
            },
            {
                "query_id": "q2", "kind": "loss", "a_hit_rank": 1, "b_hit_rank": 3, "note": None,
                "turn": None, "a_reciprocal": 1.0, "b_reciprocal": 0.3333, "units": 2,
                "a_units": 2.0, "b_units": 1.5, "lost": ["p4#1"], "gained": [], "rungs": [],
                "answer": None, **places,
            },
            {
                "query_id": "q3", "kind": "regression", "a_hit_rank": 1, "b_hit_rank": None,
                "note": "missing in b", "turn": 2, "a_reciprocal": None, "b_reciprocal": None,
                "units": None, "a_units": None, "b_units": None, "lost": [], "gained": [],
                "rungs": ["doc"],
                "answer": {
                    "kind": "regression", "a_label": "OK", "b_label": "MISSING", "refusal": None,
                    "citations": "hit → miss", "a_cause": None, "b_cause": None,
                },
                **places,
            },
        ],
    }  # fmt: skip
    assert found == expected
    assert json.dumps(found) == json.dumps(expected), "the order of keys"
    assert found["verdict"]["gates"][0]["margin"] == -0.3133
    assert "hit → miss" in text, "letters are not escaped"


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_found_by_its_name_and_suffix(name: str) -> None:
    report = registry.comparisons()[name]
    assert report.name == name
    assert report.suffixes == ({"json": ".json", "md": ".md", "table": ".txt"}[name],)
    assert report.title.strip()


@pytest.mark.parametrize("name", REPORTS)
def test_the_same_comparison_gives_the_same_text(name: str) -> None:
    """Also if counts were put into their mappings in another order."""
    turned = msgspec.structs.replace(
        SMALL,
        kinds=dict(reversed(list(SMALL.kinds.items()))),
        answer_kinds=dict(reversed(list(SMALL.answer_kinds.items()))),
        rungs=dict(reversed(list(SMALL.rungs.items()))),
        left_out=dict(reversed(list(SMALL.left_out.items()))),
    )
    assert shown(name, SMALL) == shown(name, SMALL) == shown(name, turned)


def many(per_kind: int) -> Comparison:
    """Questions in turns: a draw, a win, a loss and a regression, in retrieval and in answers."""
    kinds: tuple[Kind, ...] = ("draw", "win", "loss", "regression")
    queries = [
        query(
            f"{kind}-{n}", kind, 1, 1,
            answer=AnswerChange(kind=kind, a_label="OK", b_label="OK"),
        )
        for n in range(per_kind)
        for kind in kinds
    ]  # fmt: skip
    counts = dict.fromkeys(kinds, per_kind)
    return comparison(
        per_query=tuple(queries), kinds=counts, answer_kinds=counts, counted=len(queries)
    )


ORDER = ["retrieval regressions", "answer regressions", "retrieval losses", "answer losses",
         "retrieval wins", "answer wins"]  # fmt: skip


@cases("name", ["md", "table"])
@cases("full", [False, True])
def test_regressions_come_first_and_draws_last_if_at_all(name: str, full: bool) -> None:
    text = shown(name, many(2), full=full)
    heads = re.findall(r"^(?:### )?((?:retrieval|answer) [a-z]+) \(2\)", text, re.M | re.I)
    draws = ["retrieval draws", "answer draws"] if full else []
    assert [head.lower() for head in heads] == ORDER + draws
    assert ("draw-0" in text) is full
    assert "2 regressions, 2 losses, 2 wins, 2 draws" in text, "draws are counted always"


@pytest.mark.parametrize(("name", "most"), [("md", 50), ("table", 8)])
def test_long_lists_are_cut_unless_all_are_asked_for(name: str, most: int) -> None:
    """Of each kind so many; what is left is counted."""
    value = many(most + 3)
    text = shown(name, value)
    assert text.count("... and 3 more") == len(ORDER)
    assert f"win-{most - 1} " in text
    assert f"win-{most} " not in text
    assert "more" not in shown(name, many(most))
    whole = shown(name, value, full=True)
    assert "more" not in whole
    assert f"draw-{most + 2} " in whole
    assert len(document(value)["per_query"]) == 4 * (most + 3), "JSON has all of them"


def test_json_keeps_the_order_of_the_comparison() -> None:
    ids = [each["query_id"] for each in document(many(2))["per_query"]]
    assert ids == [f"{kind}-{n}" for n in (0, 1) for kind in ("draw", "win", "loss", "regression")]


def hostile() -> Comparison:
    """Text of others in every place where there may be any."""
    text = HOSTILE
    return comparison(
        run_a=run(text, profile=text, created_at=text, commit_hash=text, chunker_versions=(text,)),
        run_b=run(text, suite=text),
        deltas=(
            change(f"m.{text}", 0.0, 1.0),
            change(f"n.{text}", None, 1.0, reason=text),
            change(f"o.{text}", None, None, reason=text),
        ),
        kinds={"loss": 1},
        per_query=(
            query(
                text, "loss", 1, 2, note=text,
                answer=AnswerChange(
                    kind="loss", a_label=text, b_label=text, refusal=text, citations=text
                ),
            ),
        ),
        left_out={text: 1},
        causes=(Cause(about=text, key=text, a=text, b=text),),
        notes=(text,),
        verdict=Verdict(
            status="not-evaluable", exit_code=ExitCode.NOT_EVALUABLE, gates=(),
            blocks=(VerdictBlock("missing", text),),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 120])
def test_nothing_of_others_steers_the_terminal(width: int) -> None:
    """No escape, no other control and no turned line; what was there is told."""
    text = shown("table", hostile(), width=width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert r"\x1b[31m\x9b2J\u202e" in text.replace("\n", "")


def test_markdown_of_others_stays_text() -> None:
    """A row is a row: as many cells as heads, and no mark is left that means something."""
    text = shown("md", hostile())
    assert "<script>" not in text
    assert "\x1b" not in text
    rows = re.findall(r"^\|.*\|$", text, re.M)
    cells = {len(re.split(r"(?<!\\)\|", row)) - 2 for row in rows}
    assert cells == {3, 5, 8}  # of runs, questions and metrics
    assert not re.search(r"(?<!\\)[`*]", re.sub(r"^\*\*|\*\*$", "", text, flags=re.M))
    assert (
        r"| a\|b\`c\` &lt;script&gt;x&lt;/script&gt;\\x1b\[31m\\x9b2J\\u202e\*d\* | loss |" in text
    )


@cases(
    ("id_", "cell"),
    [
        ("a\\|b", r"a\\\|b"),
        ("snake_case_1", "snake_case_1"),
        ("_em_", r"\_em\_"),
        ("# no title", r"\# no title"),
        ("- no list", r"\- no list"),
        ("[x](http://y)", r"\[x\](http:&#8203;//y)"),
        ("@team ping", "@&#8203;team ping"),
        ("recall@5 of #12", "recall@5 of #&#8203;12"),
        ("a & b", "a &amp; b"),
        ("2026-11-01", "2026-11-01"),
        ("1. x", r"1\. x"),
        ("ελληνικά 中文", "ελληνικά 中文"),
        ("two\r\nlines\tand", "two lines and"),
    ],
)
def test_ids_in_markdown(id_: str, cell: str) -> None:
    value = comparison(per_query=(query(id_, "win", 2, 1),), kinds={"win": 1})
    assert f"| {cell} | win | 2 | 1 |  |\n" in shown("md", value)


@cases(
    "id_",
    [HOSTILE, "a\\|b", "\\", "|", "`|`", "_x_ __y__ a_b", "![i](j)", "&amp;", "~~s~~", "1 < 2 > 0",
     "# h", "> q", "- l", "1. o", "2) p", "3.5", "10#", "4.",
     "<!-- c", "https://example.org/?a=1&b=_2_", "**", "x\n---\ny"],
)  # fmt: skip
def test_a_reader_of_the_markdown_sees_the_id(id_: str) -> None:
    """Rendered, the cell and the title have the text as it is, and no element of its making.

    But for the empty character that parts an address, so that it is no link.
    """
    value = comparison(
        run_a=run(id_), notes=(id_,), per_query=(query(id_, "win", 2, 1),), kinds={"win": 1}
    )
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(shown("md", value))
    wanted = html.escape(plain(id_), quote=False).replace('"', "&quot;")
    page = page.replace("\u200b", "")
    assert f"<td>{wanted}</td>\n<td>win</td>" in page
    assert f"<h1>ragauge: {wanted} → new</h1>" in page
    assert f"<li>{wanted}</li>" in page


def test_json_has_hostile_text_as_it_is() -> None:
    found = document(hostile())
    assert found["per_query"][0]["query_id"] == HOSTILE
    assert found["run_a"] == HOSTILE
    assert "\x1b" not in shown("json", hostile()), "JSON escapes controls"


LONG = comparison(
    deltas=(
        change("retrieval.precision_at_cutoff@10", 0.1, 0.12, interval=(-0.01, 0.05), p=1e-7,
               detectable=0.05),
        change("citation.anchor_distance", 1.5, 1.25, better="lower", interval=(-0.5, -0.00002),
               p=0.03125),
        change("latency.total_ms_p95", 1240.5, 1380.25, better="lower"),
    ),
)  # fmt: skip


@cases("width", [20, 40, 60, 80, 120])
def test_nothing_is_cut_off_at_any_width(width: int) -> None:
    """Lines fit, and all numbers of all metrics are there; below 60 columns in prose."""
    text = shown("table", LONG, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    if width >= 40:
        joined = re.sub(r"\s+", " ", text)
        for told in ("0.1000", "0.1200", "+0.0200", "-0.0100 to", "+0.0500", "1e-07", "-2e-05"):
            assert told in joined


def test_a_wide_screen_shows_all_columns() -> None:
    text = shown("table", LONG, width=120)
    assert """\
metric                                 a       b        Δ       95 % interval       p  n  detectable
────────────────────────────────────────────────────────────────────────────────────────────────────
retrieval.precision_at_cutoff@10  0.1000  0.1200  +0.0200  -0.0100 to +0.0500   1e-07  3      0.0500
citation.anchor_distance ↓        1.5000  1.2500  -0.2500   -0.5000 to -2e-05  0.0312  3           -
latency.total_ms_p95 ↓            1240.5  1380.2   +139.8                   -       -  3           -
↓ less is better
also moved (unadjusted): citation.anchor_distance -0.2500
""" in text  # fmt: skip


def test_eighty_columns_keep_the_interval_and_p() -> None:
    """n and detectable go first; then long names are broken."""
    assert """\
metric                           a       b        Δ       95 % interval       p
───────────────────────────────────────────────────────────────────────────────
retrieval.precision_at_     0.1000  0.1200  +0.0200  -0.0100 to +0.0500   1e-07
 cutoff@10
citation.anchor_distance ↓  1.5000  1.2500  -0.2500   -0.5000 to -2e-05  0.0312
latency.total_ms_p95 ↓      1240.5  1380.2   +139.8                   -       -
""" in shown("table", LONG, width=80)


def test_sixty_columns_break_intervals_too() -> None:
    assert """\
                                               95 %
metric               a       b        Δ    interval       p
───────────────────────────────────────────────────────────
retrieval.      0.1000  0.1200  +0.0200  -0.0100 to   1e-07
 precision_at_                              +0.0500
 cutoff@10
citation.       1.5000  1.2500  -0.2500  -0.5000 to  0.0312
 anchor_                                     -2e-05
 distance ↓
latency.total_  1240.5  1380.2   +139.8           -       -
 ms_p95 ↓
""" in shown("table", LONG, width=60)


def test_short_names_leave_room_for_whole_intervals() -> None:
    """8 for the name, 6, 6, 7, 18 and 6 for the rest and 5 times 2 between: 61."""
    value = comparison(deltas=(change("x.longer", 0.0, 0.5, interval=(-0.5, 1.0), p=0.5),))
    assert "x.longer  0.0000  0.5000  +0.5000  -0.5000 to +1.0000  0.5000\n" in shown(
        "table", value, width=61
    )
    assert "-0.5000 to  0.5000\n" in shown("table", value, width=60)


def test_fewer_columns_have_a_line_for_each_metric() -> None:
    assert """\
retrieval.precision_at_cutoff@10: 0.1000
→ 0.1200, +0.0200 (-0.0100 to +0.0500),
p 1e-07
""" in shown("table", LONG, width=40)


RED, GREEN = "\x1b[31m", "\x1b[32m"


def test_colours_tell_better_from_worse() -> None:
    """Only if asked for; less of a metric of which less is better is green."""
    value = comparison(
        deltas=(
            change("a.worse", 1.0, 0.5, interval=(-0.9, 0.1)),
            change("b.better", 0.5, 0.75, interval=(-0.1, 0.9)),
            change("c.lower", 3.0, 1.0, better="lower", interval=(-2.5, -1.5), p=0.01, p_holm=0.01),
            change("d.same", 1.0, 1.0),
        )
    )
    text = shown("table", value, color=True)
    assert f"{RED}-0.5000" in text
    assert f"{GREEN}+0.2500" in text
    assert "\x1b[1;32m-2.0000" in text, "bold where the interval excludes 0"
    assert re.search(r"(?<!m)\+0\.0000", text)
    assert "\x1b" not in shown("table", value)


@cases("name", REPORTS)
@cases("counted", [0, 3])
def test_a_comparison_of_nothing_can_be_shown(name: str, counted: int) -> None:
    """No metrics, no questions, no causes, no notes, no verdict."""
    text = shown(name, comparison(counted=counted, rungs=dict.fromkeys(MATCH_LEVELS, 0)))
    if name == "json":
        found = json.loads(text)
        about = ["chunker_version_match", "rungs", "undecided", "ids", "sizes"]
        assert list(found["deltas"]) == about
        assert (found["per_query"], found["verdict"], found["causes"]) == ([], None, [])
    else:
        assert "no expected items" in text
        assert "metric  " not in text


def test_markdown_says_what_there_is_not() -> None:
    text = shown("md", comparison(deltas=(change("retrieval.map", None, None, reason="x"),)))
    assert "No metric has a value in either run." in text
    assert "No difference between the two configurations is known." in text
    assert "- undefined in both runs: retrieval.map (x)" in text
    assert "## Notes" not in text
    assert "| commit |" not in text, "known of neither"


@pytest.mark.parametrize("name", ["md", "table"])
def test_undefined_metrics_share_a_line(name: str) -> None:
    """By reason, each metric once; one that a side has is listed, with its reason below."""
    value = comparison(
        deltas=(
            change("retrieval.ndcg@5", None, None, reason="no-grades"),
            change("retrieval.ndcg@10", None, None, reason="no-grades"),
            change("answer.coverage", None, None, reason="no-answers"),
            change("retrieval.span_iou@5", None, 0.5, reason="no spans in a"),
        )
    )
    text = shown(name, value, width=120)
    assert (
        "undefined in both runs: answer.coverage (no-answers); retrieval.ndcg (no-grades)\n" in text
    )
    assert "retrieval.span_iou@5: no spans in a\n" in text
    assert re.search(r"retrieval.span_iou@5`?[ |]+-[ |]+0.5000[ |]+-[ |]+-[ |]+-[ |]+3", text)


@pytest.mark.parametrize("name", ["md", "table"])
def test_gated_metrics_come_first(name: str) -> None:
    value = comparison(
        deltas=(change("a.x", 0.0, 0.0), change("b.y", 0.0, 0.0), change("c.z", 0, 0, gated=True))
    )
    text = shown(name, value)
    places = [text.index(metric) for metric in ("c.z", "a.x", "b.y")]
    assert text.index("metric ") < places[0]
    assert sorted(text.rindex(metric) for metric in ("c.z", "a.x", "b.y")) == places


@pytest.mark.parametrize("name", ["md", "table"])
def test_missing_and_errored_questions_are_always_named(name: str) -> None:
    """Also where there are none."""
    value = comparison(run_a=run("old", missing=4, errored=5))
    text = shown(name, value)
    if name == "table":
        assert "a = old, profile kb, 3 questions, 4 missing, 5 errored\n" in text
        assert "b = new, profile kb, 3 questions, 0 missing, 0 errored\n" in text
    else:
        assert "| missing | 4 | 0 |\n| errored | 5 | 0 |\n" in text


@cases(
    ("more", "expected"),
    [
        ({"counted": 0}, "no questions compared"),
        ({"counted": 0, "left_out": {"changed": 2}}, "no questions compared: 2 left out"),
        ({}, "3 questions compared: nothing measured in both runs"),
        (
            {"kinds": {"win": 2, "loss": 1}, "deltas": (change("retrieval.hit@1", 1 / 3, 2 / 3),)},
            "3 questions compared: 2 wins, 1 loss, 0 regressions; retrieval.hit@1 +0.3333; "
            "no change that n = 3 can show",
        ),
        (
            {"counted": 1, "deltas": (change("x.y", 1.0, 1.0), change("x.z", None, 1.0))},
            "1 question compared: no metric differs",
        ),
        (
            {"deltas": (change("x.y", 0.0, 0.5), change("retrieval.hit@5", 0.0, 0.25, n=2))},
            "3 questions compared: retrieval.hit@5 +0.2500; no change that n up to 3 can show",
        ),
        (
            {
                "deltas": (
                    change("x.y", 0.5, 0.0, interval=(-0.75, -0.25), p=0.01, p_holm=0.02),
                    change("x.z", 0.0, 1.0, p=0.4, p_holm=0.4),
                )
            },
            "3 questions compared: x.y -0.5000; 1 of 2 metrics changed beyond chance: 0 better, "
            "1 worse",
        ),
        (
            {
                "deltas": (
                    change("x.y", 0.5, 0.0, interval=(-0.75, -0.25), p=0.0001),
                    change("x.z", 0.0, 0.5, interval=(0.25, 0.75), p=0.0001),
                    change("x.g", 0.5, 0.5, interval=(0.0, 0.0), gated=True, p=1.0, p_holm=1.0),
                )
            },
            "3 questions compared: x.g +0.0000; no change that n = 3 can show",
        ),
        (
            {
                "deltas": (
                    change("x.y", 0.5, 0.0, interval=(-0.75, -0.25), p=0.03, p_holm=0.06),
                    change("x.g", 0.5, 0.6, interval=(0.05, 0.2), p=0.02, p_holm=0.04, gated=True),
                )
            },
            "3 questions compared: x.g +0.1000; 1 of 2 gated metrics changed beyond chance: "
            "1 better, 0 worse",
        ),
        (
            {"answer_kinds": {"win": 1, "draw": 2}},
            "3 questions compared: answers: 1 win, 0 losses, 0 regressions; "
            "nothing measured in both runs",
        ),
    ],
)
def test_the_headline(more: dict[str, Any], expected: str) -> None:
    """One sentence, which claims no more than the intervals do."""
    assert sentences.headline(comparison(**more)) == expected


def test_an_interval_that_ends_at_zero_does_not_exclude_it() -> None:
    sure = {"p": 0.001, "p_holm": 0.001}
    assert not change("x.y", 0, 1, interval=(0.0, 1.0), **sure).is_changed
    assert not change("x.y", 1, 0, interval=(-1.0, -0.0), **sure).is_changed
    assert change("x.y", 0, 1, interval=(0.00001, 1.0), **sure).is_changed
    assert not change("x.y", 0, 1, **sure).is_changed


def test_few_questions_that_all_went_one_way_are_not_beyond_chance() -> None:
    """Two of two: every resample is worse, and so would a coin be in one case of four."""
    few = change("x.y", 1, 0, interval=(-1.0, -0.5), p=0.04)
    assert msgspec.structs.replace(few, p_holm=0.04).is_changed
    assert not msgspec.structs.replace(few, p_holm=0.5).is_changed


@cases("name", ["table", "md", "comment", "summary", "html"])
def test_what_else_moved_is_said_apart_and_never_in_the_headline(name: str) -> None:
    """A metric without a corrected p is one of many: by chance one in twenty moves."""
    value = comparison(
        deltas=(
            change("x.g", 0.5, 0.5, interval=(-0.1, 0.1), gated=True, p=1.0, p_holm=1.0),
            change("x.y", 0.5, 0.0, interval=(-0.75, -0.25), p=0.03),
        )
    )
    text = html.unescape(shown(name, value, width=200)).replace("\\", "").replace("\u200b", "")
    assert "also moved (unadjusted): x.y -0.5000" in text
    assert "beyond chance" not in text
    assert not value.deltas[1].is_changed


@cases(
    ("p", "told", "number"),
    [
        (1.0, "1.0000", 1.0),
        (0.031254, "0.0313", 0.03125),
        (1 / 10001, "0.0001", 9.999e-05),
        (0.000049, "5e-05", 4.9e-05),
        (2.0**-50, "9e-16", 8.882e-16),
        (0.0, "<1e-300", 2.225e-308),
        (None, "-", None),
    ],
)
def test_a_p_value_is_never_zero(p: float | None, told: str, number: float | None) -> None:
    assert sentences.chance(p) == told
    found = document(comparison(deltas=(change("x.y", 0.0, 1.0, p=p),)))
    assert found["deltas"]["x.y"]["p"] == number


@cases(
    ("value", "expected"),
    [
        (1 / 3, "+0.3333"),
        (-0.5, "-0.5000"),
        (0.0, "+0.0000"),
        (-0.0, "+0.0000"),
        (0.00002, "+2e-05"),
        (-0.00002, "-2e-05"),
        (None, "-"),
    ],
)
def test_changes_have_a_sign(value: float | None, expected: str) -> None:
    assert phrases.signed_number(value) == expected


@pytest.mark.parametrize("name", ["md", "table"])
def test_ranks_over_several_slots(name: str) -> None:
    """The mean reciprocal rank stands behind the rank where it is another, and is explained."""
    one = query("q", "loss", 1, 1, a_reciprocal=1.0, b_reciprocal=0.75)
    text = shown(name, comparison(per_query=(one,), kinds={"loss": 1}))
    assert "1 (0.7500)" in text
    assert "1 (1.0000)" not in text
    assert "n brackets behind a rank: the mean reciprocal rank over the slots" in text
    plain = query("q", "loss", 1, 2, a_reciprocal=1.0, b_reciprocal=0.5)
    assert "brackets behind" not in shown(name, comparison(per_query=(plain,), kinds={"loss": 1}))


@pytest.mark.parametrize("name", ["md", "table"])
def test_an_answer_has_the_note_that_no_other_table_has(name: str) -> None:
    """Of a question with nothing expected of retrieval the note stands with its answer."""
    answer = AnswerChange(
        kind="regression", a_label="REFUSAL_OK", b_label="HALLUCINATION",
        refusal="refused → answered",
    )  # fmt: skip
    value = comparison(
        per_query=(
            query("q1", None, None, None, note="first", answer=answer),
            query("q2", "loss", 1, 2, note="second", answer=answer),
        ),
        kinds={"loss": 1}, answer_kinds={"regression": 2}, counted=3,
    )  # fmt: skip
    text = shown(name, value, width=100)
    assert "refused → answered; first" in text
    assert "refused → answered; second" not in text
    assert "second" in text
    assert "0 draws; 2 questions with nothing expected of retrieval" in text
    assert "0 draws; 1 question with no answers to compare" in text


def test_a_passing_verdict_is_the_last_line() -> None:
    text = shown("table", comparison(verdict=verdict("pass")))
    assert text.endswith("\n\nPASS\n")


def test_many_causes_are_cut() -> None:
    causes = tuple(Cause(about="other", key=f"k{n}", a="", b="1") for n in range(10))
    text = shown("table", comparison(causes=causes))
    assert "  other: k7 empty → 1\n... and 2 more; --full shows all\n" in text
    assert "k9 empty → 1" in shown("table", comparison(causes=causes), full=True)
    assert "- other: k9 empty → 1\n" in shown("md", comparison(causes=causes))
