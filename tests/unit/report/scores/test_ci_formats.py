"""What CI systems are given of a run: JUnit, annotations, pages, code quality, badges, Parquet."""

from __future__ import annotations

import html
import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pyarrow import parquet
from tests.support.cases import cases
from tests.support.command import TRACES, Folder

from ragauge import registry
from ragauge.codes import ExitCode
from ragauge.errors import RagaugeError
from ragauge.metrics.metric import Tally
from ragauge.model.report import View
from ragauge.model.scores import (
    MetricResult,
    PerQuestion,
    QuestionList,
    QuestionResult,
    Scores,
    SliceResult,
)
from ragauge.model.verdict import Gate, GateResult, Verdict, VerdictBlock
from ragauge.report.ci.paths import FileLocation
from ragauge.text import plain

NAMES = ["badge", "comment", "github", "gitlab", "junit", "summary"]
HOSTILE = (
    "a|b`c`\n<script>x</script>\x1b[31m\x00\ufffe\u202e*d* @team #12 GH-7 https://evil.example "
    "www.evil.example %0A::error::x ]]> --> &amp; \\"
)


def gate(name: str, status: Any = "fail", **more: Any) -> GateResult:
    known: dict[str, Any] = {"metric": f"m.{name}", "better": "higher", "threshold": 0.8,
                             "given": "0.80", "origin": "--gates"}  # fmt: skip
    about = {key: more.pop(key) for key in [*more] if key in Gate.__struct_fields__}
    value = None if status == "not-evaluable" else 0.5
    result: dict[str, Any] = {"value": value, "n": 4, "margin": None if value is None else -0.3,
                              "interval": None, "detectable": None}  # fmt: skip
    return GateResult(gate=Gate(name=name, **known | about), status=status, **result | more)


def verdict(*gates: GateResult, blocks: tuple[VerdictBlock, ...] = (), **more: Any) -> Verdict:
    found = {"fail": ("fail", ExitCode.GATE_FAILED), "review": ("review", ExitCode.PASS),
             "not-evaluable": ("not-evaluable", ExitCode.NOT_EVALUABLE)}  # fmt: skip
    worst = next(
        (each for each in reversed(found) if any(g.status == each and not g.waived for g in gates)),
        None,
    )
    if blocks:
        worst = "not-evaluable"
    status, code = found[worst] if worst else ("pass", ExitCode.PASS)
    told: dict[str, Any] = {"status": status, "exit_code": code}
    return Verdict(gates=gates, blocks=blocks, **told | more)


def question(qid: str, label: str = "HALLUCINATION", line: int = 1, **more: Any) -> QuestionResult:
    gold, trace = f"eval/gold.jsonl:{line}", f"runs/t.jsonl:{line + 40}"
    known: dict[str, Any] = {"gold": gold, "trace": trace, "labels": {label: 1}}
    return QuestionResult(qid=qid, label=label, **known | more)


def metric(value: float | None, **more: Any) -> MetricResult:
    known: dict[str, Any] = {"n": 3, "records": 3, "excluded": {}, "interval": None, "version": 1,
                             "better": "higher"}  # fmt: skip
    return MetricResult(value=value, **known | more)


def scores(*questions: QuestionResult, values: Any = None, **more: Any) -> Scores:
    counts = dict.fromkeys(Tally.__struct_fields__, 0)
    counts |= {"gold": len(questions) + 2, "scored": len(questions) + 2, "answered": 1}
    known: dict[str, Any] = {
        "profile": "all", "dialect": "native", "k": (5,), "gold_name": "eval/gold.jsonl",
        "trace_name": "runs/t.jsonl", "tally": Tally(**counts), "metrics": {}, "refusal_rules": {},
        "questions": QuestionList.of(questions),
    }  # fmt: skip
    if values is not None:
        known["per_question"] = PerQuestion(
            metrics=("m.one", "m.two"), qids=[each.qid for each in questions],
            turns=[each.turn for each in questions], values=np.array(values, np.float64),
        )  # fmt: skip
    return Scores(**known | more)


def content(name: str, of: Scores, judged: Verdict | None = None, **more: Any) -> Any:
    view = View(scores=of, verdict=judged or verdict(), profile=registry.profile("all"), **more)
    return registry.report(name).content(view)


def text(name: str, of: Scores, judged: Verdict | None = None, **more: Any) -> str:
    found = content(name, of, judged, **more)
    assert isinstance(found, str)
    assert found.endswith("\n")
    return found


EVERY_STATUS = verdict(
    gate("good", "pass"),
    gate("bad"),
    gate("unsure", "review", reason="in the review band 0.4 to 0.6"),
    gate("forgiven", waived="waived until 2026-12-01: known"),
    gate("unknown", "not-evaluable", code="too-few", reason="n = 4 is below min_n = 9"),
    blocks=(
        VerdictBlock("missing-traces", "2 of 9 gold items have no trace"),
        VerdictBlock("too-few", "unknown: n = 4 is below min_n = 9"),  # the gate's own
    ),
)


# --- JUnit ---

SUITE_ATTRIBUTES = {"name", "tests", "failures", "errors", "skipped"}
CASE_ATTRIBUTES = {"classname", "name", "file", "line"}
ORDER = ["failure", "error", "system-out"]


def junit(of: Scores, judged: Verdict | None = None) -> dict[str, ElementTree.Element]:
    """The suites by name, once the document keeps to what readers of JUnit XML take."""
    return well_formed(text("junit", of, judged))


def well_formed(document: str) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(document.encode())
    assert document.startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites ')
    assert root.tag == "testsuites"
    assert set(root.attrib) == SUITE_ATTRIBUTES - {"skipped"}
    for suite in root:
        assert suite.tag == "testsuite"
        assert set(suite.attrib) == SUITE_ATTRIBUTES
        assert [each.tag for each in suite] == sorted(each.tag for each in suite), (
            "properties first"
        )
        cases = suite.findall("testcase")
        assert int(suite.attrib["tests"]) == len(cases)
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(suite.attrib["errors"]) == len(suite.findall("testcase/error"))
        names = [(case.attrib["classname"], case.attrib["name"]) for case in cases]
        assert len(set(names)) == len(names), "readers tell tests apart by their names"
        for case in cases:
            assert {"classname", "name"} <= set(case.attrib) <= CASE_ATTRIBUTES, "no time is known"
            tags = [each.tag for each in case]
            assert tags == [tag for tag in ORDER if tag in tags]
            assert len(set(tags) & {"failure", "error"}) <= 1
            for each in (*case.findall("failure"), *case.findall("error")):
                assert set(each.attrib) == {"message", "type"}
                assert each.text
        for each in suite.iter("property"):
            assert set(each.attrib) == {"name", "value"}
    for count in ("tests", "failures", "errors"):
        assert int(root.attrib[count]) == sum(int(suite.attrib[count]) for suite in root)
    return {suite.attrib["name"]: suite for suite in root}


def test_each_gate_is_a_test() -> None:
    """Failed is a failure, not evaluable an error; waived and review pass and say so."""
    suite = junit(scores(), EVERY_STATUS)["gates"]
    found = {
        case.attrib["name"]: next((each.tag for each in case if each.tag != "system-out"), None)
        for case in suite.iter("testcase")
    }
    assert found == {
        "good >= 0.80": None,
        "bad >= 0.80": "failure",
        "unsure >= 0.80": None,
        "forgiven >= 0.80": None,
        "unknown >= 0.80": "error",
        "missing-traces": "error",  # the block of the gate `unknown` is not told twice
    }
    assert suite.findtext("testcase/failure") == "bad: 0.5000, demanded >= 0.80 (n = 4)"
    asides = [(each.text or "").splitlines()[0] for each in suite.iter("system-out")]
    assert [each for each in asides if not each.startswith("metric: ")] == [
        "review: unsure: 0.5000, demanded >= 0.80 (n = 4): in the review band 0.4 to 0.6",
        "waived: forgiven: 0.5000, demanded >= 0.80 (n = 4): waived until 2026-12-01: known",
    ]
    types = [each.attrib["type"] for each in (*suite.iter("failure"), *suite.iter("error"))]
    assert types == ["gate-failed", "too-few", "missing-traces"]


def test_a_gate_tells_its_numbers() -> None:
    """As output: properties of a single test are what some readers refuse a file for."""
    judged = verdict(gate("bad", part="type=table", interval=(0.25, 0.75)))
    assert junit(scores(), judged)["gates"].findtext("testcase/system-out") == (
        "metric: m.bad\nverdict: fail\nvalue: 0.5000\ndemand: >= 0.80\npolicy: point\n"
        "margin: -0.3000\nn: 4\ninterval: 0.2500 to 0.7500\norigin: --gates\nslice: type=table"
    )


def test_a_drop_says_that_it_is_one() -> None:
    judged = verdict(gate("recall", is_drop=True, given="0.02", threshold=0.02))
    failure = junit(scores(), judged)["gates"].find("testcase/failure")
    assert failure is not None
    assert failure.attrib["message"] == "recall: drop 0.5000, demanded <= 0.02 (n = 4)"


def test_the_metrics_are_properties_of_the_suite() -> None:
    known = {"a": metric(2 / 3), "b": metric(None, n=0, reason="none", excluded={"refused": 3})}
    suite = junit(scores(metrics=known))["gates"]
    found = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
    assert found["a"] == "0.6667 (n = 3)"
    assert found["b"] == "0/0: 3 refused"
    assert (found["verdict"], found["exit_code"], found["profile"]) == ("pass", "0", "all")


def test_each_failing_question_is_a_test() -> None:
    """The worst first; those that went well are none. The body leads to both lines."""
    of = scores(
        question("q1", "OVER_REFUSAL", 3, cause="retrieval-miss"),
        question("q2", "OK", 4),
        question("q3", "HALLUCINATION", 5, turn=2, labels={"HALLUCINATION": 1, "OK": 2}),
        question("q4", "MISSING", 6, trace=None),
        values=[[0.25, 1.0, np.nan, 0.0], [np.nan, 0.0, 0.5, 1 / 3]],
    )
    suite = junit(of)["questions"]
    told = [(case.attrib["name"], case.attrib["line"]) for case in suite.iter("testcase")]
    assert told == [("q4", "6"), ("q3 turn 2", "5"), ("q1", "3")]
    assert {case.attrib["file"] for case in suite.iter("testcase")} == {"eval/gold.jsonl"}
    failures = list(suite.iter("failure"))
    assert [each.attrib["message"] for each in failures] == [
        "MISSING", "HALLUCINATION", "OVER_REFUSAL: retrieval-miss",
    ]  # fmt: skip
    assert failures[0].text == (
        "MISSING\ngold: eval/gold.jsonl:6\ntrace: none\nm.one: 0.0000\nm.two: 0.3333"
    )
    assert failures[1].text == (
        "HALLUCINATION\ngold: eval/gold.jsonl:5\ntrace: runs/t.jsonl:45\n"
        "slots: 1 HALLUCINATION, 2 OK\nm.two: 0.5000"
    )
    assert failures[2].text == (
        "OVER_REFUSAL: retrieval-miss\ngold: eval/gold.jsonl:3\ntrace: runs/t.jsonl:43\n"
        "m.one: 0.2500"
    )


def test_characters_that_xml_forbids_are_shown() -> None:
    """As their escapes, not left out: two ids must not become one."""
    of = scores(question("a\x00\x1b\ufffe\ud800b"), question(HOSTILE), gold_name=HOSTILE)
    judged = verdict(gate("g", title=HOSTILE, reason=HOSTILE, part=HOSTILE, origin=HOSTILE))
    suites = junit(of, judged)
    names = [case.attrib["name"] for case in suites["questions"].iter("testcase")]
    assert names[0] == r"a\x00\x1b\ufffe\ud800b"
    assert names[1].startswith(r"a|b`c` <script>x</script>\x1b[31m\x00\ufffe\u202e*d* @team")


def test_tests_of_one_name_are_told_apart() -> None:
    judged = verdict(gate("g"), gate("g"), gate("g"))
    names = [case.attrib["name"] for case in junit(scores(), judged)["gates"].iter("testcase")]
    assert names == ["g >= 0.80", "g >= 0.80 (2)", "g >= 0.80 (3)"]


def test_nothing_measured_is_an_error() -> None:
    nothing = verdict(
        blocks=(VerdictBlock("nothing-measured", "no trace met a gold item"),),
        exit_code=ExitCode.NOTHING_MEASURED,
    )
    suites = junit(scores(), nothing)
    assert suites["gates"].attrib["errors"] == "1"
    assert suites["questions"].attrib["tests"] == "0"


# --- GitHub annotations ---


def lines(of: Scores, judged: Verdict | None = None) -> list[str]:
    return text("github", of, judged).splitlines()


def test_gates_come_before_questions_and_have_no_file() -> None:
    assert lines(scores(question("q1", line=7, cause="x-y")), EVERY_STATUS) == [
        "::error title=ragauge gate bad%3A fail::0.5000, demanded >= 0.80 (n = 4)",
        "::error title=ragauge gate unknown%3A not evaluable::-, demanded >= 0.80 (n = 4): "
        "n = 4 is below min_n = 9",
        "::error title=ragauge%3A missing-traces::2 of 9 gold items have no trace",
        "::warning title=ragauge gate unsure%3A review::0.5000, demanded >= 0.80 (n = 4): "
        "in the review band 0.4 to 0.6",
        "::notice title=ragauge gate forgiven%3A waived::0.5000, demanded >= 0.80 (n = 4): "
        "waived until 2026-12-01: known",
        "::error file=eval/gold.jsonl,line=7,title=ragauge%3A HALLUCINATION::"
        "q1: HALLUCINATION: x-y (trace runs/t.jsonl:47)",
        "::notice title=ragauge::NOT EVALUABLE: 2 of 9 gold items have no trace; "
        "unknown: n = 4 is below min_n = 9; failed: bad",
    ]  # fmt: skip


def test_questions_of_a_run_that_passes_are_warnings() -> None:
    """By itself a question fails nothing."""
    found = lines(scores(question("q1", "MISSING", trace=None)), verdict(gate("g", "pass")))
    assert found == [
        "::warning file=eval/gold.jsonl,line=1,title=ragauge%3A MISSING::q1: MISSING (no trace)",
        "::notice title=ragauge::PASS",
    ]


def test_texts_cannot_end_a_command() -> None:
    r"""`%`, line ends, and in properties `:` and `,` too."""
    of = scores(question("50%, a:b\r\nc", gold="dir,1:2/g%.jsonl:3"))
    found = lines(of, verdict(gate("a,b:c%")))
    assert found[0].startswith("::error title=ragauge gate a%2Cb%3Ac%25%3A fail::")
    assert found[1] == (
        "::error file=dir%2C1%3A2/g%25.jsonl,line=3,title=ragauge%3A HALLUCINATION::"
        "50%25, a:b c: HALLUCINATION (trace runs/t.jsonl:41)"
    )
    assert len(lines(scores(question(HOSTILE)), verdict(gate("g", title=HOSTILE)))) == 3


@pytest.mark.parametrize(("gates", "shown", "left"), [(0, 10, 4990), (3, 7, 4993), (12, 0, 5000)])
def test_ten_of_a_kind_are_shown(gates: int, shown: int, left: int) -> None:
    """GitHub drops the eleventh, so gates have the first places, and the rest is counted."""
    of = scores(
        *(question(f"q{n}", "OVER_REFUSAL" if n else "MISSING", n + 1) for n in range(5000))
    )
    # Without a gate there is no failure, so the questions are warnings.
    found = lines(of, verdict(*(gate(f"g{n}") for n in range(gates))))
    levels = [line.split()[0] for line in found]
    assert max(levels.count(level) for level in ("::error", "::warning", "::notice")) <= 10
    at = [line for line in found if "file=" in line]
    assert len(at) == shown
    assert all("MISSING" in line for line in at[:1]), "the worst first"
    more = "2 gates and " if gates == 12 else ""
    assert found[-2] == (
        "::notice title=ragauge::not annotated, because GitHub shows 10 of a kind: "
        f"{more}{left} failing questions"
    )


def test_many_notices_leave_room_for_the_last_words() -> None:
    judged = verdict(*(gate(f"g{n}", waived="waived") for n in range(20)))
    found = lines(scores(), judged)
    assert len(found) == 10
    assert "12 gates" in found[-2]


def test_paths_are_those_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative where the file is below the working directory, else as it is."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)
    of = scores(
        question("a", gold=f"{tmp_path}/eval/g.jsonl:1"), question("b", gold="/other/g.jsonl:2"),
        question("c", gold="-:3"), question("d", gold="g.jsonl"),
    )  # fmt: skip
    starts = [line.split(",title")[0] for line in lines(of)][:4]
    assert starts == [
        "::warning file=eval/g.jsonl,line=1", "::warning file=/other/g.jsonl,line=2",
        "::warning title=ragauge%3A HALLUCINATION::c: HALLUCINATION (trace runs/t.jsonl:41)",
        "::warning file=g.jsonl",
    ]  # fmt: skip


# --- GitLab ---


def entries(of: Scores, judged: Verdict | None = None) -> list[dict[str, Any]]:
    found = json.loads(text("gitlab", of, judged))
    for each in found:
        assert list(each) == ["description", "check_name", "fingerprint", "severity", "location"]
        assert each["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert re.fullmatch(r"[0-9a-f]{40}", each["fingerprint"])
        assert each["location"]["lines"]["begin"] >= 1
        assert not each["location"]["path"].startswith(("/", "./"))
    prints = [each["fingerprint"] for each in found]
    assert len(set(prints)) == len(prints)
    return list(found)


def test_entries_of_gates_and_questions() -> None:
    judged = verdict(
        gate("bad", origin="conf/ragauge.toml"), gate("good", "pass"),
        blocks=(VerdictBlock("errored-traces", "1 trace carries an error"),),
    )  # fmt: skip
    found = entries(scores(question("q1", "NO_ANSWER", 4), question("q1", turn=2)), judged)
    assert [
        (each["description"], each["severity"], each["location"]["path"],
         each["location"]["lines"]["begin"])
        for each in found
    ] == [
        ("gate bad: 0.5000, demanded >= 0.80 (n = 4)", "blocker", "conf/ragauge.toml", 1),
        ("1 trace carries an error", "blocker", "eval/gold.jsonl", 1),
        ("q1 turn 2: HALLUCINATION", "critical", "eval/gold.jsonl", 1),
        ("q1: NO_ANSWER", "minor", "eval/gold.jsonl", 4),
    ]  # fmt: skip
    assert [each["check_name"] for each in found] == [
        "ragauge/gate", "ragauge/errored-traces", "ragauge/HALLUCINATION", "ragauge/NO_ANSWER",
    ]  # fmt: skip


def test_a_fingerprint_outlives_a_move() -> None:
    """The line may change and the trace too; another question or label is another entry."""
    first = entries(scores(question("q1", line=4)))[0]["fingerprint"]
    assert entries(scores(question("q1", line=9)))[0]["fingerprint"] == first
    assert entries(scores(question("q2", line=4)))[0]["fingerprint"] != first
    assert entries(scores(question("q1", "MISSING", 4)))[0]["fingerprint"] != first


def test_two_blocks_of_one_code_are_two_entries() -> None:
    """GitLab shows the first of one fingerprint only; `entries` checks that there are two."""
    both = (
        VerdictBlock("missing-traces", "1 gold item"),
        VerdictBlock("missing-traces", "2 slots"),
    )
    assert len(entries(scores(), verdict(blocks=both))) == 2


def test_nothing_wrong_is_an_empty_list() -> None:
    assert text("gitlab", scores(question("q", "OK")), verdict(gate("g", "pass"))) == "[]\n"


# --- summary and comment ---


def rendered(markdown: str) -> str:
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown)
    assert isinstance(page, str)
    return page


def hostile() -> tuple[Scores, Verdict]:
    """Text of others in every place where there may be any."""
    of = scores(
        question(HOSTILE, "HALLUCINATION", cause=HOSTILE, gold=f"{HOSTILE}:1",
                 trace=f"{HOSTILE}:2"),
        metrics={HOSTILE: metric(0.5, excluded={HOSTILE: 1}), "n": metric(None, reason=HOSTILE)},
        slices={HOSTILE: {HOSTILE: SliceResult(n=9, metrics={})}},
        warnings=(HOSTILE,),
        gold_name=HOSTILE, profile=HOSTILE,
    )  # fmt: skip
    judged = verdict(
        gate("g", title=HOSTILE, reason=HOSTILE, metric=HOSTILE),
        blocks=(VerdictBlock("missing-traces", HOSTILE),),
    )
    return of, judged


@pytest.mark.parametrize("name", ["summary", "comment"])
def test_pages_neutralise_text_of_others(name: str) -> None:
    """No element, no link, no call and no broken row comes of it."""
    page = text(name, *hostile())
    visible = re.sub(r"\A<!-- .* -->\n", "", page)
    for mark in ("<script", "\x1b", "\x00", "\u202e", "https://", "www.e", "@team", "#12", "GH-7"):
        assert mark not in visible, mark
    assert page.count("<!--") == (1 if name == "comment" else 0)
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    cells = {len(re.split(r"(?<!\\)(?:\\\\)*\|", row)) - 2 for row in rows}
    assert cells <= {8, 5, 4, 3, 2}, cells
    shown = rendered(page)
    tags = set(re.findall(r"<(/?[a-z0-9]+)", shown))
    ours = {"h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "code", "ul", "li",
            "details", "summary"}  # fmt: skip
    assert {tag.lstrip("/") for tag in tags} <= ours, tags
    seen = html.unescape(shown).replace("\u200b", "")
    assert "@team #12 GH-7 https://evil.example" in seen, "people read it as it was"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("@team", "@&#8203;team"),
        ("a@b.example", "a@&#8203;b.example"),
        ("retrieval.recall@5 fell", "retrieval.recall@5 fell"),
        ("recall@5", "recall@5"),
        ("@5", "@&#8203;5"),
        ("p1#2", "p1#&#8203;2"),
        ("# heading", r"\# heading"),
        ("GH-12", "GH-&#8203;12"),
        ("http://x", "http:&#8203;//x"),
        ("WWW.x.example", "WWW&#8203;.x.example"),
        ("x" * 501, "x" * 499 + "…"),
        ("x" * 500, "x" * 500),
    ],
)
def test_what_links_by_itself_is_parted(given: str, made: str) -> None:
    from ragauge.report.markdown import shortened

    assert shortened(given) == made


def test_a_comment_begins_with_its_marker() -> None:
    """Only letters, digits, dots and single hyphens are in it: nothing ends the comment early."""
    from ragauge.report.markdown import marker

    assert text("comment", scores()).startswith("<!-- ragauge:all -->\n### ragauge: ")
    assert marker("a--b --> <x>") == "<!-- ragauge:a-b-x -->"
    assert marker("中文") == "<!-- ragauge:run -->"


def test_the_comment_as_a_whole() -> None:
    of = scores(
        question("q1", "OVER_REFUSAL", 3, cause="retrieval-miss"),
        metrics={"m.bad": metric(0.5, interval=(0.25, 0.75), excluded={"refused": 1})},
        warnings=("1 trace without a gold item: Q7",),
    )
    assert (
        text("comment", of, verdict(gate("bad", title="G1")))
        == """\
<!-- ragauge:all -->
### ragauge: FAIL: G1

Profile all, 3 questions, 3 traces scored.

| gate | value | demand | margin | n | detectable | verdict |  |
| --- | --- | --- | --- | --- | --- | --- | --- |
| G1 | 0.5000 | >= 0.80 | -0.3000 | 4 | - | fail |  |

<details><summary>Warnings (1)</summary>

- 1 trace without a gold item: Q7

</details>

<details><summary>Metrics (1)</summary>

| metric | value | n | 95 % interval | left out |
| --- | --- | --- | --- | --- |
| `m.bad` | 0.5000 | 3 | 0.2500 to 0.7500 | 1 refused |

</details>

<details><summary>Questions to look at (1)</summary>

| question | label | cause | where |
| --- | --- | --- | --- |
| q1 | OVER_REFUSAL | retrieval-miss | `runs/t.jsonl:43` |

</details>
"""
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limit"), [("summary", 2**20 // 2), ("comment", 65_536 // 2)])
@pytest.mark.parametrize("letter", ["x", "中", "😀", "@1 "])
def test_pages_stay_within_the_limit_and_say_what_was_cut(
    name: str, limit: int, letter: str
) -> None:
    """Thousands of long ids, metrics and warnings: half of what GitHub takes, tables whole."""
    long = letter * 300
    of = scores(
        *(question(f"{n}{long}", line=n + 1) for n in range(3000)),
        metrics={f"m.{n}.{long}": metric(0.5) for n in range(40)},
        warnings=tuple(f"{n} {long}" for n in range(200)),
    )
    page = text(name, of, verdict(*(gate(f"g{n}") for n in range(50))), full=True)
    assert len(page.encode()) <= limit
    last = page.splitlines()[-1]
    assert last.startswith("Left out, because this page may not be larger: ")
    assert page.count("<details>") == page.count("</details>")
    assert "| g49 |" in page, "gates are not what is cut"
    dropped = re.search(r"(\d+) of (\d+) rows of", last)
    assert dropped is not None or "all of" in last


def test_a_summary_lists_what_was_asked_for() -> None:
    """A hundred questions and how many more; with `full` all; many are folded."""
    of = scores(*(question(f"q{n}") for n in range(120)))
    page = text("summary", of)
    assert "<details><summary>Look at (120)</summary>" in page
    assert "| q99 |" in page
    assert "| q100 |" not in page
    assert "... and 20 more." in page
    assert "| q119 |" in text("summary", of, full=True)
    few = text("summary", scores(question("q1")))
    assert "### Look at (1)\n" in few
    assert "<details>" not in few


# --- badge ---


def badge(of: Scores, judged: Verdict | None = None) -> tuple[str, str]:
    """What it says, and the colour behind it."""
    root = ElementTree.fromstring(text("badge", of, judged))
    space = "{http://www.w3.org/2000/svg}"
    title = root.findtext(f"{space}title")
    assert title is not None
    assert root.attrib["aria-label"] == title
    assert root.attrib["role"] == "img"
    label, message = (each.text or "" for each in root.iter(f"{space}text"))
    assert title == f"{label}: {message}"
    assert label == "ragauge"
    left, right = root.iter(f"{space}rect")
    assert int(root.attrib["width"]) == int(left.attrib["width"]) + int(right.attrib["width"])
    return message, right.attrib["fill"]


NOTHING = verdict(
    blocks=(VerdictBlock("nothing-measured", "nothing"),), exit_code=ExitCode.NOTHING_MEASURED
)


@cases(
    ("judged", "said"),
    [
        (verdict(gate("a", "pass")), "pass"),
        (verdict(gate("a")), "fail 1 gate"),
        (verdict(gate("a"), gate("b"), gate("c", waived="x")), "fail 2 gates"),
        (verdict(gate("a", "review")), "review"),
        (verdict(gate("a", "not-evaluable")), "not evaluable"),
        (verdict(gate("a"), blocks=(VerdictBlock("missing-traces", "x"),)), "not evaluable"),
        (NOTHING, "nothing measured"),
        (verdict(gate("a", waived="x")), "pass"),
        (verdict(), "no gates"),
    ],
)
def test_a_badge_says_what_came_of_it(judged: Verdict, said: str) -> None:
    assert badge(scores(), judged)[0] == said


@cases(
    ("metrics", "said"),
    [
        ({"answer.coverage": 0.9149}, "coverage 0.91"),
        ({"retrieval.recall@5": 0.999, "answer.coverage": None}, "recall@5 0.99"),
        ({"answer.precision": 0.001}, "precision 0.01"),
        ({"answer.precision": 1.0}, "precision 1.00"),
        ({"answer.precision": 0.0}, "precision 0.00"),
        ({"x.y": 0.5}, "no gates"),
    ],
)
def test_without_gates_a_metric_speaks(metrics: dict[str, float | None], said: str) -> None:
    """Two decimals, and no 1 or 0 that is none."""
    of = scores(metrics={name: metric(value) for name, value in metrics.items()})
    assert badge(of)[0] == said


def test_white_can_be_read_on_every_colour() -> None:
    """A contrast of 4.5 to 1, as WCAG reckons it."""

    def light(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    judged = [verdict(gate("a", each)) for each in ("pass", "fail", "review", "not-evaluable")]
    colours = {badge(scores(), each)[1] for each in (*judged, verdict())}
    assert len(colours) == 5
    for colour in colours:
        assert 1.05 / (light(colour) + 0.05) >= 4.5, colour


def test_hostile_metrics_stay_text_in_a_badge() -> None:
    of = scores(metrics={'answer.precision@<">&': metric(0.5)})
    assert badge(of)[0] == 'precision@<">& 0.50'


# --- Parquet ---


def test_parquet_has_the_columns_of_csv_unrounded() -> None:
    of = scores(
        question("a", "OK", turn=0), question("b,\n", "MISSING", cause="retrieval-miss"),
        values=[[1 / 3, np.nan], [np.nan, np.nan]],
    )  # fmt: skip
    data = content("parquet", of)
    assert isinstance(data, bytes)
    table = parquet.read_table(io.BytesIO(data))
    assert table.column_names == text("csv", of).splitlines()[0].split(",")
    assert table.to_pylist() == [
        {"qid": "a", "turn": 0, "label": "OK", "cause": None, "m.one": 1 / 3},
        {"qid": "b,\n", "turn": None, "label": "MISSING", "cause": "retrieval-miss",
         "m.one": None},
    ]  # fmt: skip
    assert [str(each) for each in table.schema.types] == [
        "string", "int64", "string", "string", "double",
    ]  # fmt: skip
    assert content("parquet", of) == data


def test_parquet_of_no_questions_has_no_rows() -> None:
    """Also where scores were saved without them."""
    for of in (scores(), scores(values=np.zeros((2, 0)))):
        table = parquet.read_table(io.BytesIO(content("parquet", of)))
        assert table.num_rows == 0
        assert table.column_names[0] == "qid"


def test_parquet_names_the_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RagaugeError) as raised:
        content("parquet", scores())
    assert raised.value.problems[0].code == "missing-extra"
    assert raised.value.problems[0].hint == 'pip install "ragauge[parquet]"'


def test_parquet_is_for_files(folder: Folder) -> None:
    """It is written by its suffix or name, and not printed."""
    assert folder.score(None, "-o", "a.parquet", "-o", "parquet:b.bin").exit_code == 0
    assert (folder.path / "a.parquet").read_bytes() == (folder.path / "b.bin").read_bytes()
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl", "--format", "parquet")
    assert outcome.exit_code == 2
    assert "-o parquet:FILE" in outcome.err


# --- any text ---

ANY = st.text(st.characters(codec=None), max_size=60)


@given(ANY, ANY)
def test_any_text_is_xml_that_can_be_read(name: str, told: str) -> None:
    of = scores(question(name, gold=f"{told}:3"))
    suites = junit(of, verdict(gate("g", title=name, reason=told)))
    assert suites["questions"].attrib["tests"] == "1"


@given(ANY, ANY)
def test_any_text_is_one_command(name: str, told: str) -> None:
    """One line, and the message begins behind the second pair of colons."""
    from ragauge.report.ci.github_commands import command

    line = command("error", told, title=name or "t", location=FileLocation(name, 3))
    assert len(line.splitlines()) == 1
    match = re.fullmatch(r"::error file=([^:,]*),line=3,title=([^:,]*)::(.*)", line)
    assert match is not None
    assert unquote(match[3]) == plain(told)


@given(ANY, ANY)
def test_any_text_is_one_cell(name: str, told: str) -> None:
    """A row of a table keeps its two cells, and no element comes of the text."""
    from ragauge.report.markdown import shortened, table

    page = rendered("\n".join(table(["a", "b"], [(shortened(name), shortened(told))])))
    assert page.count("<td>") == 2
    tags = set(re.findall(r"<([a-z0-9]+)", page))
    assert tags == {"table", "thead", "tbody", "tr", "th", "td"}


# --- all of them ---


@cases("name", NAMES)
def test_the_same_run_gives_the_same_text(name: str) -> None:
    of, judged = hostile()
    assert text(name, of, judged) == text(name, *hostile())


@cases("name", NAMES)
def test_a_run_of_nothing_can_be_shown(name: str) -> None:
    """No gates, no questions, no values."""
    assert text(name, scores()).strip()


@cases(
    ("file", "start"),
    [("r.xml", b"<?xml"), ("r.svg", b"<svg"), ("github:r.txt", b"::"), ("gitlab:r.json", b"["),
     ("summary:r.md", b"## ragauge"), ("comment:r.md", b"<!-- ragauge:ship -->")],
)  # fmt: skip
def test_a_file_is_written_by_suffix_or_name(folder: Folder, file: str, start: bytes) -> None:
    assert folder.score(None, "-o", file).exit_code == 0
    assert (folder.path / file.rpartition(":")[2]).read_bytes().startswith(start)


def test_saved_scores_without_questions_still_have_their_gates(folder: Folder) -> None:
    """`gate` on scores that were saved without `--full`."""
    folder.score(None, "-o", "scores.json", "--profile", "all")
    folder.write("g.toml", '"answer.precision" = { threshold = 0, min_n = 1 }\n')
    outcome = folder.run("gate", "scores.json", "--gates", "g.toml", "--format", "junit")
    assert outcome.exit_code == 0, outcome.err
    suites = well_formed(outcome.out)
    assert suites["gates"].attrib["tests"] == "1"
    assert suites["questions"].attrib["tests"] == "0"


def test_gates_stand_in_the_file_that_was_read(folder: Folder) -> None:
    """Another name than ragauge.toml, and another ending."""
    (folder.path / "conf").mkdir()
    for name in ("w.toml", "w.conf"):
        (folder.path / "conf" / name).write_text("[gates]\nprecision = 1\n", "utf-8")
        wrong = [{**TRACES[0], "answer_json": {"claim": "No idea.", "citations": []}}, *TRACES[1:]]
        outcome = folder.score(wrong, "--config", f"conf/{name}", "--format", "gitlab")
        assert outcome.exit_code == 1, outcome.err
        gates = (
            each for each in json.loads(outcome.out) if "gate precision" in each["description"]
        )
        (entry,) = gates
        assert entry["location"]["path"] == f"conf/{name}"


@cases(
    "demand",
    ['"x"', "true", "{ min_n = 3 }", "{ threshold = 1, review = [2, 1] }",
     '{ threshold = 1, slice = "type" }'],
)  # fmt: skip
def test_a_bad_gate_is_placed_in_the_file_that_was_read(folder: Folder, demand: str) -> None:
    (folder.path / "w.toml").write_text(f"[gates]\nunder = {demand}\n", "utf-8")
    outcome = folder.score(None, "--config", "w.toml")
    assert outcome.exit_code in (2, 3)
    assert "w.toml" in outcome.err
    assert "ragauge.toml" not in outcome.err


@cases("command", ["score", "run", "gate", "compare"])
def test_the_help_names_every_format(folder: Folder, command: str) -> None:
    known = registry.reports()
    names = (
        list(registry.comparisons())
        if command == "compare"
        else [name for name, each in known.items() if each.public]
    )
    said = re.sub(r"\s+", " ", folder.run(command, "--help").out)
    listed = re.search(r"--format NAME What is printed: ([a-z, ]+)\.", said)
    assert listed is not None, said
    assert sorted(listed[1].split(", ")) == sorted(names)
