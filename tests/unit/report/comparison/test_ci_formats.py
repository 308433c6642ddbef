"""What CI systems are given of a comparison: JUnit, annotations, pages, CSV and Parquet."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from pyarrow import parquet
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder
from tests.unit.report.comparison.test_reports import (
    SMALL,
    change,
    comparison,
    hostile,
    many,
    query,
    run,
    verdict,
)
from tests.unit.report.scores.test_ci_formats import HOSTILE, rendered, well_formed

from ragauge import registry
from ragauge.codes import ExitCode
from ragauge.model.comparison import (
    AnswerChange,
    Comparison,
    ComparisonView,
    Kind,
    KindCheck,
)
from ragauge.model.verdict import Verdict, VerdictBlock
from ragauge.report.ci import entries

NAMES = ["comment", "csv", "github", "junit", "summary"]


def content(name: str, value: Comparison, **more: Any) -> Any:
    return registry.comparisons()[name].content(ComparisonView(comparison=value, **more))


def text(name: str, value: Comparison, **more: Any) -> str:
    found = content(name, value, **more)
    assert isinstance(found, str)
    assert found.endswith("\n")
    assert not found.endswith("\n\n")
    return found


# --- JUnit ---


def junit(value: Comparison, **more: Any) -> dict[str, ElementTree.Element]:
    return well_formed(text("junit", value, **more))


def test_a_drop_a_regression_and_a_loss_are_tests() -> None:
    """Wins are none; retrieval and answer of one question are two."""
    suites = junit(SMALL)
    (gate,) = suites["gates"].findall("testcase")
    assert (gate.attrib["classname"], gate.attrib["name"]) == (
        "ragauge.compare.gates", "hit <= 0.02",
    )  # fmt: skip
    failure = gate.find("failure")
    assert failure is not None
    assert failure.attrib["message"] == "hit: drop 0.3333, demanded <= 0.02 (n = 3)"
    found = [
        (case.attrib["classname"].rpartition(".")[2], case.attrib["name"],
         case[0].attrib["type"], case[0].attrib["message"])
        for case in suites["questions"].iter("testcase")
    ]  # fmt: skip
    assert found == [
        ("retrieval", "q3 turn 2", "regression", "regression: rank 1 → miss; missing in b"),
        ("answer", "q3 turn 2", "regression", "regression: OK → MISSING; citations hit → miss"),
        ("retrieval", "q2", "loss", "loss: rank 1 → 3"),
    ]
    bodies = [case[0].text for case in suites["questions"].iter("testcase")]
    assert bodies[0] == (
        "retrieval regression: rank 1 → miss; missing in b\nrecognised by: doc\nnote: missing in b"
    )


def test_deltas_are_properties() -> None:
    found = {
        each.attrib["name"]: each.attrib["value"]
        for each in junit(SMALL)["gates"].findall("properties/property")
    }
    assert found["run_a"] == "old"
    assert found["verdict"] == "fail"
    assert found["retrieval.hit@1"] == "0.6667 → 0.3333, -0.3333 (-1.0000 to +0.5000), p 1.0000"
    assert "retrieval.map" not in found


def test_without_gates_there_is_no_gate() -> None:
    suites = junit(comparison())
    assert suites["gates"].attrib["tests"] == suites["questions"].attrib["tests"] == "0"


@pytest.mark.slow
def test_all_regressions_are_tests_however_many() -> None:
    """3000 of each kind, in retrieval and in answers: 2 × 2 × 3000."""
    assert junit(many(3000))["questions"].attrib["tests"] == "12000"


def test_hostile_text_stays_text() -> None:
    suites = junit(hostile())
    assert suites["gates"].find("testcase/error") is not None
    assert suites["questions"].attrib["failures"] == "2"


# --- GitHub ---


def test_annotations_as_a_whole() -> None:
    assert text("github", SMALL).splitlines() == [
        "::error title=ragauge gate hit%3A fail::drop 0.3333, demanded <= 0.02 (n = 3)",
        "::error title=ragauge%3A retrieval regression::q3 turn 2: rank 1 → miss; missing in b",
        "::error title=ragauge%3A answer regression::q3 turn 2: OK → MISSING; citations hit → miss",
        "::error title=ragauge%3A retrieval loss::q2: rank 1 → 3",
        "::notice title=ragauge::FAIL: hit; 3 questions compared: 1 win, 1 loss, 1 regression; "
        "answers: 0 wins, 0 losses, 1 regression; retrieval.hit@1 -0.3333; no change that n = 3 "
        "can show",
    ]


def test_ten_warnings_and_how_many_more() -> None:
    """20 regressions and losses each, of retrieval and answers: 80, of which 10 are shown."""
    found = text("github", many(20)).splitlines()
    assert sum(line.startswith("::warning") for line in found) == 10
    assert found[-2].endswith("70 more questions that lost something")
    assert len(text("github", hostile()).splitlines()) == 4  # a block, two losses, the headline


# --- summary and comment ---

COMMENT = """\
<!-- ragauge:kb -->
### ragauge: FAIL: hit

old → new

3 questions compared: 1 win, 1 loss, 1 regression; answers: 0 wins, 0 losses, 1 regression; \
retrieval.hit@1 -0.3333; no change that n = 3 can show.

| gate | value | demand | margin | n | detectable | verdict |  |
| --- | --- | --- | --- | --- | --- | --- | --- |
| hit | 0.3333 | <= 0.02 | -0.3133 | 3 | - | fail |  |

| metric | base | head | Δ | 95 % interval | p | p (Holm) | n | detectable |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| `retrieval.hit@1` (gated) | 0.6667 | 0.3333 | -0.3333 | -1.0000 to +0.5000 | 1.0000 | 1.0000 \
| 3 | 0.9000 |
| `answer.precision` | 1.0000 | 1.0000 | +0.0000 | +0.0000 to +0.0000 | 1.0000 | - | 3 | - |

Δ is head - base over the n questions that have a value in both runs; p (Holm) is corrected \
over the gated metrics; detectable is the change that this n would show in four cases of five.

<details><summary>Retrieval regressions (1)</summary>

| question | kind | rank base | rank head | note |
| --- | --- | --- | --- | --- |
| q3 turn 2 | regression | 1 | miss | missing in b |

</details>

<details><summary>Answer regressions (1)</summary>

| question | kind | label base | label head | flipped |
| --- | --- | --- | --- | --- |
| q3 turn 2 | regression | OK | MISSING | citations hit → miss |

</details>

<details><summary>Retrieval losses (1)</summary>

| question | kind | rank base | rank head | note |
| --- | --- | --- | --- | --- |
| q2 | loss | 1 | 3 |  |

</details>

<details><summary>Retrieval wins (1)</summary>

| question | kind | rank base | rank head | note |
| --- | --- | --- | --- | --- |
| q1 | win | miss | 2 |  |

</details>

<details><summary>Why it may differ (1)</summary>

- chunker: size 512 → not set

</details>

- the gold sets differ

3 questions compared, 3 left out: 2 changed, 1 only in a.
"""


def test_the_comment_as_a_whole() -> None:
    assert text("comment", SMALL) == COMMENT


def test_the_comment_is_found_by_its_suite() -> None:
    value = comparison(run_b=run("new", suite="night ly"))
    assert text("comment", value).startswith("<!-- ragauge:night-ly -->\n")


def test_the_summary_has_the_parts_of_the_markdown() -> None:
    page = text("summary", SMALL)
    heads = re.findall(r"^#+ .*$", page, re.M)
    assert heads == [
        "## ragauge: FAIL: hit", "### Metrics", "### Questions", "#### Retrieval regressions (1)",
        "#### Answer regressions (1)", "#### Retrieval losses (1)", "#### Retrieval wins (1)",
        "### Why it may differ", "### What was compared", "### Notes",
    ]  # fmt: skip
    whole = registry.comparisons()["md"].text(ComparisonView(comparison=SMALL))
    rows = [line for line in whole.splitlines() if line.startswith("| ")]
    assert sorted(rows) == sorted(line for line in page.splitlines() if line.startswith("| "))


def evil() -> Comparison:
    """The hostile comparison with the text that would link and call."""
    text_ = HOSTILE
    value = hostile()
    return msgspec.structs.replace(
        value,
        run_a=run(text_, profile=text_, commit_hash=text_), run_b=run(text_, suite=text_),
        deltas=(change(f"m.{text_}", 0.0, 1.0, reason=text_), change(f"o.{text_}", None, None)),
        per_query=(
            query(text_, "loss", 1, 2, note=text_, answer=AnswerChange(
                kind="loss", a_label=text_, b_label=text_, a_cause=text_, refusal=text_,
            )),
        ),
        notes=(text_,), left_out={text_: 1},
        verdict=Verdict(
            status="not-evaluable", exit_code=ExitCode.NOT_EVALUABLE, gates=(),
            blocks=(VerdictBlock("missing", text_),),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["summary", "comment"])
def test_pages_neutralise_text_of_others(name: str) -> None:
    page = text(name, evil())
    visible = re.sub(r"\A<!-- .* -->\n", "", page)
    for mark in ("<script", "\x1b", "\x00", "\u202e", "https://", "www.e", "@team", "#12", "GH-7"):
        assert mark not in visible, mark
    assert visible.count("<!--") == 0
    shown = rendered(page)
    tags = set(re.findall(r"</?([a-z0-9]+)", shown))
    ours = {"h2", "h3", "h4", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li",
            "details", "summary", "strong", "code"}  # fmt: skip
    assert tags <= ours, tags
    assert "@team #12 GH-7" in html.unescape(shown).replace("\u200b", "")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limit"), [("summary", 2**20 // 2), ("comment", 65_536 // 2)])
def test_pages_stay_within_the_limit_and_say_what_was_cut(name: str, limit: int) -> None:
    """Ids of 300 letters that take four bytes each; the first kinds keep their rows."""
    long = "😀" * 300
    value = msgspec.structs.replace(
        many(800),
        per_query=tuple(
            msgspec.structs.replace(each, query_id=f"{each.query_id}{long}", note=long)
            for each in many(800).per_query
        ),
        deltas=tuple(change(f"m.{n}", 0.0, 1.0) for n in range(20)),
        verdict=verdict(),
    )
    page = text(name, value, full=True)
    assert len(page.encode()) <= limit
    assert page.splitlines()[-1].startswith("Left out, because this page may not be larger: ")
    assert page.count("<details>") == page.count("</details>")
    assert "regression-0😀" in page
    assert "| `m.19` |" in page


# --- what --fail-on found ---

PASSED = Verdict(status="pass", exit_code=ExitCode.PASS, gates=verdict().gates, blocks=())
UNKNOWN = Verdict(
    status="not-evaluable", exit_code=ExitCode.NOT_EVALUABLE, gates=(),
    blocks=(VerdictBlock("missing", "1 gold item has no trace"),),
)  # fmt: skip


def checks(kinds: dict[Kind, int], **more: Any) -> tuple[KindCheck, ...]:
    """What --fail-on found, if anything was asked for."""
    kind: Kind = "loss" if "loss" in kinds else "regression"
    return (KindCheck(kind=kind, kinds=kinds, **more),) if kinds else ()


@cases(
    ("more", "headline"),
    [
        ({"allowed": 2}, "FAIL: 3 regressions, 2 allowed (fail-on)"),
        ({"allowed": 3}, "PASS: 3 regressions, 3 allowed (fail-on)"),
        ({"explained": 3, "p": 0.3},
         "PASS: 3 regressions, 3 within the noise of run a (p = 0.3000) (fail-on)"),
        ({"explained": 2, "p": 0.3},
         "FAIL: 3 regressions, 2 within the noise of run a (p = 0.3000) (fail-on)"),
    ],
)  # fmt: skip
def test_what_is_let_pass_is_said(more: dict[str, Any], headline: str) -> None:
    view = ComparisonView(
        comparison=msgspec.structs.replace(SMALL, verdict=None),
        fail_on=checks({"regression": 3}, **more),
    )
    assert entries.decision(view) == headline
    assert int(view.exit_code) == headline.startswith("FAIL")


@cases(
    ("judged", "kinds", "code", "status", "headline"),
    [
        (None, {}, 0, None, None),
        (None, {"regression": 0}, 0, "pass", "PASS: no regressions (fail-on)"),
        (None, {"regression": 0, "loss": 0}, 0, "pass",
         "PASS: no regressions or losses (fail-on)"),
        (None, {"regression": 3}, 1, "fail", "FAIL: 3 regressions (fail-on)"),
        (None, {"regression": 1, "loss": 2}, 1, "fail",
         "FAIL: 1 regression and 2 losses (fail-on)"),
        (None, {"regression": 0, "loss": 1}, 1, "fail", "FAIL: 1 loss (fail-on)"),
        ("fail", {}, 1, "fail", "FAIL: hit"),
        ("fail", {"regression": 2}, 1, "fail", "FAIL: hit; 2 regressions (fail-on)"),
        ("fail", {"regression": 0}, 1, "fail", "FAIL: hit"),
        ("unknown", {"regression": 2}, 4, "not-evaluable",
         "NOT EVALUABLE: 1 gold item has no trace; 2 regressions (fail-on)"),
    ],
)  # fmt: skip
def test_what_the_exit_code_says_is_said_everywhere(
    judged: str | None, kinds: dict[Kind, int], code: int, status: str | None,
    headline: str | None,
) -> None:  # fmt: skip
    """Gates go before questions; a comparison in which nothing is demanded decides nothing."""
    fail_on = checks(kinds)
    value = msgspec.structs.replace(
        SMALL, verdict={None: None, "fail": verdict(), "unknown": UNKNOWN}[judged]
    )
    view = ComparisonView(comparison=value, fail_on=fail_on)
    assert (view.exit_code, view.status, entries.decision(view)) == (code, status, headline)
    for name, marks in (("summary", "##"), ("comment", "###")):
        page = text(name, value, fail_on=fail_on).replace("\\", "").replace("\u200b", "")
        assert f"{marks} ragauge: {headline or 'old → new'}\n" in page
        assert ("\n\nold → new\n\n" in page) is (headline is not None)
    lines = text("github", value, fail_on=fail_on).splitlines()
    level = "error" if code else "warning"
    assert sum(line.startswith(f"::{level} title=ragauge%3A ") for line in lines) >= 3
    assert ("::error" in "".join(lines)) is (code != 0)
    document = json.loads(text("json", value, fail_on=fail_on))
    assert document["exit_code"] == code
    assert [check["kinds"] for check in document["fail_on"].values()] == ([kinds] if kinds else [])
    for name in ("md", "html", "table"):
        page = html.unescape(text(name, value, fail_on=fail_on, width=200).replace("\\", ""))
        assert (headline or "(fail-on)") not in page if headline is None else headline in page, name
    told = "" if headline is None else f"{headline}; "
    assert lines[-1].startswith(f"::notice title=ragauge::{told}3 questions compared")
    suite = junit(value, fail_on=fail_on)["gates"]
    found = {
        each.attrib["name"]: each.attrib["value"] for each in suite.findall("properties/property")
    }
    assert (found["verdict"], found["exit_code"]) == (status or "none", str(code))
    outcomes = [len(case) for case in suite.findall("testcase") if "no regr" in case.attrib["name"]]
    assert outcomes == ([1 if any(kinds.values()) else 0] if fail_on else [])


def test_a_gate_that_passes_does_not_hide_what_fail_on_found() -> None:
    """The gates say PASS, and the command ends with 1."""
    value = msgspec.structs.replace(SMALL, verdict=PASSED)
    view = ComparisonView(comparison=value, fail_on=checks({"regression": 2}))
    assert (view.exit_code, view.status) == (1, "fail")
    assert entries.decision(view) == "FAIL: 2 regressions (fail-on)"
    case = junit(value, fail_on=checks({"regression": 2}))["gates"].findall("testcase")[-1]
    assert (case.attrib["name"], case[0].tag, case[0].attrib["message"]) == (
        "no regressions", "failure", "no regressions: 2 regressions (fail-on)",
    )  # fmt: skip


def test_compare_writes_down_what_its_exit_code_says(folder: Folder) -> None:
    """A2 was refused and is answered now: one regression of an answer."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", TRACES)
    wrong = {**TRACES[1], "answer_json": {"claim": "Z is a city.", "citations": ["p1#1"]}}
    folder.write("b.jsonl", [TRACES[0], wrong, TRACES[2]])
    both = ("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--format", "github")
    loose = folder.run(*both, "-o", "summary:loose.md")
    assert loose.exit_code == 0
    assert "::error" not in loose.out
    assert (folder.path / "loose.md").read_text("utf-8").startswith("## ragauge: a.jsonl →")
    for kind in ("regression", "loss"):
        strict = folder.run(*both, "--fail-on", kind, "-o", "s.xml", "-o", "summary:s.md")
        assert strict.exit_code == 1
        assert strict.out.startswith("::error title=ragauge%3A answer regression::A2: ")
        assert "::notice title=ragauge::FAIL: 1 regression (fail-on); 3 questions" in strict.out
        page = (folder.path / "s.md").read_text("utf-8")
        assert page.startswith("## ragauge: FAIL: 1 regression (fail-on)\n")
        report = (folder.path / "s.xml").read_text("utf-8")
        assert '<property name="verdict" value="fail"' in report
    kept = folder.run("compare", "a.jsonl", "a.jsonl", *both[3:], "--fail-on", "loss")
    assert kept.exit_code == 0
    assert "::notice title=ragauge::PASS: no regressions or losses (fail-on); " in kept.out


# --- CSV and Parquet ---

HEADS = ["qid", "turn", "kind", "certain", "regression", "possible", "doc_kind", "a_rank",
         "b_rank", "a_reciprocal", "b_reciprocal", "units", "a_units", "b_units", "lost", "rungs",
         "answer_kind", "a_label", "b_label", "a_cause", "b_cause", "refusal", "citations", "note",
         "slices", "failed_gate", "damage_share"]  # fmt: skip


def test_csv_as_a_whole() -> None:
    third = msgspec.structs.replace(SMALL.per_query[2], doc_kind="doc_regression")
    value = msgspec.structs.replace(
        SMALL,
        parts={("q1", None): ("type=table", "tag=old")},
        per_query=(*SMALL.per_query[:2], third),
    )
    assert text("csv", value).splitlines() == [
        ",".join(HEADS),
        'q1,,win,yes,,,,,2,,,,,,,exact,,,,,,,,,"type=table; tag=old",,',
        "q2,,loss,yes,,,,1,3,1.0000,0.3333,2,2.0000,1.5000,p4#1,,,,,,,,,,,,",
        "q3,2,regression,yes,,,doc_regression,1,,,,,,,,doc,regression,OK,MISSING,,,,hit → miss,"
        "missing in b,,,",
    ]


def test_ids_and_notes_come_back_as_they_were() -> None:
    value = comparison(per_query=(query('a,"b"\n', "win", 2, 1, note=HOSTILE),))
    found = list(csv.DictReader(io.StringIO(text("csv", value), newline=""), strict=True))
    assert (found[0]["qid"], found[0]["note"]) == ('a,"b"\n', HOSTILE)


def test_parquet_has_the_columns_of_csv_unrounded() -> None:
    data = content("parquet", SMALL)
    table = parquet.read_table(io.BytesIO(data))
    assert table.column_names == HEADS
    rows = table.to_pylist()
    assert rows[1]["b_reciprocal"] == 1 / 3
    assert rows[2]["turn"] == 2
    assert rows[0]["a_rank"] is None
    assert content("parquet", SMALL) == data


def test_a_comparison_of_nothing_has_heads_only() -> None:
    assert text("csv", comparison()) == ",".join(HEADS) + "\n"
    assert parquet.read_table(io.BytesIO(content("parquet", comparison()))).num_rows == 0


@cases("name", NAMES)
@cases("counted", [0, 3])
def test_a_comparison_of_nothing_can_be_shown(name: str, counted: int) -> None:
    assert text(name, comparison(counted=counted)).strip()
    assert text(name, SMALL) == text(name, SMALL)
