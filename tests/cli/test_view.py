"""`ragauge view`, and details in the reports of other commands: what users see, and what opens."""

from __future__ import annotations

import json
import re
import webbrowser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge import registry
from ragauge.model.comparison import ComparisonReport, ComparisonView
from ragauge.model.report import Report, View
from tests.support.command import GOLD, TRACES, Folder
from tests.support.stored_runs import WRONG


def _shown(view: View | ComparisonView) -> str:
    """A stand-in for the page: what it was given, as JSON."""
    details = view.details
    verdict = view.comparison.verdict if isinstance(view, ComparisonView) else view.verdict
    told = {
        "verdict": None if verdict is None else verdict.status,
        "details": None if details is None else [msgspec.to_builtins(each) for each in details],
    }
    return f"<html>{json.dumps(told)}</html>\n"


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is a stand-in: these tests are about what it is given and where it goes."""
    reports = {**registry.reports(), "html": Report(
        name="html", title="a page", content=_shown, suffixes=(".html",), public=True,
        detailed=True,
    )}  # fmt: skip
    comparisons = {**registry.comparisons(), "html": ComparisonReport(
        name="html", title="a page", content=_shown, suffixes=(".html",), detailed=True,
    )}  # fmt: skip
    monkeypatch.setattr(registry, "reports", lambda: reports)
    monkeypatch.setattr(registry, "report", reports.__getitem__)
    monkeypatch.setattr(registry, "comparisons", lambda: comparisons)


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to open."""
    opened: list[str] = []

    def open_it(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_it)
    return opened


@pytest.fixture
def runs(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Two stored runs: `wrong`, and `right` after it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.path / "caches"))
    for second, (name, traces) in enumerate({"wrong": WRONG, "right": TRACES}.items()):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_794_733_200 + second))
        outcome = folder.score(traces, "--store", "--run-id", name, trace_name=f"{name}.jsonl")
        assert outcome.exit_code in (0, 1), outcome.err
    return folder


def shown(path: Path | str) -> dict[str, Any]:
    text = Path(path).read_text("utf-8")
    found: dict[str, Any] = json.loads(text.removeprefix("<html>").removesuffix("</html>\n"))
    return found


def ids(path: Path | str, name: str = "attempts") -> list[list[str]]:
    """The hits of each question on a page."""
    return [
        [hit["id"] for one in each.get(name, []) for hit in one["hits"]]
        for each in shown(path)["details"]
    ]


def called(printed: str) -> str:
    """The name of a page that is kept, without what tells where it came from."""
    return Path(printed.strip()).name.rpartition("-")[0]


HITS = [["p1#1", "p1#2", "p2#1"], ["p1#1", "p2#1"], ["pB#1", "p1#2"]]


# --- view


def test_a_run_is_written_to_the_cache_and_opened(runs: Folder, browser: list[str]) -> None:
    outcome = runs.run("view", "right")
    (path,) = (runs.path / "caches" / "ragauge" / "pages").iterdir()
    assert re.fullmatch(r"right-[0-9a-f]{8}\.html", path.name)
    assert (outcome.exit_code, outcome.out, outcome.err) == (0, f"{path}\n", "")
    assert browser == [path.as_uri()]
    assert ids(path) == HITS
    assert path.parent.stat().st_mode & 0o077 == 0  # pages hold what documents say


def test_latest_is_the_last_run_and_its_page_says_its_id(runs: Folder, browser: list[str]) -> None:
    runs.run("runs", "tag", "wrong", "mine")
    assert called(runs.run("view", "latest").out) == "right"
    assert called(runs.run("view", "mine").out) == "wrong"
    assert len(browser) == 2


def test_the_exit_code_is_0_whatever_the_verdict(runs: Folder, browser: list[str]) -> None:
    outcome = runs.run("view", "wrong", "--gates", "precision=0.9", "-o", "page.html")
    assert (outcome.exit_code, outcome.out) == (0, "page.html\n")
    assert shown("page.html")["verdict"] == "fail"
    assert browser == [(runs.path / "page.html").as_uri()]
    assert runs.run("gate", "wrong", "--gates", "precision=0.9").exit_code == 1


def test_nothing_is_opened_if_that_is_not_wanted(runs: Folder, browser: list[str]) -> None:
    assert runs.run("view", "right", "--no-open").exit_code == 0
    assert browser == []


@pytest.mark.parametrize("problem", [False, webbrowser.Error("none"), OSError("no display")])
def test_where_no_browser_can_be_opened_it_is_said(
    runs: Folder, monkeypatch: pytest.MonkeyPatch, problem: Any
) -> None:
    def cannot(url: str) -> bool:
        assert url.startswith("file://")
        if isinstance(problem, Exception):
            raise problem
        return False

    monkeypatch.setattr(webbrowser, "open", cannot)
    outcome = runs.run("view", "right", "-o", "page.html")
    assert (outcome.exit_code, outcome.out) == (0, "page.html\n")
    assert outcome.err == "no browser could be opened: open the page yourself\n"


def test_a_file_of_scores_has_a_page_without_hits(runs: Folder, browser: list[str]) -> None:
    runs.run("score", "gold.jsonl", "right.jsonl", "--full", "-o", "saved.json")
    outcome = runs.run("view", "saved.json")
    assert called(outcome.out) == "saved"
    assert shown(outcome.out.strip())["details"] is None
    assert len(browser) == 1


def test_a_page_is_opened_as_it_is(runs: Folder, browser: list[str]) -> None:
    runs.write("old page.html", "<p>as it was</p>")
    outcome = runs.run("view", "old page.html")
    assert (outcome.exit_code, outcome.out) == (0, "old page.html\n")
    assert browser == [(runs.path / "old page.html").as_uri()]
    assert Path("old page.html").read_text("utf-8") == "<p>as it was</p>"


def test_two_runs_are_shown_against_each_other(runs: Folder, browser: list[str]) -> None:
    outcome = runs.run("view", "right", "--against", "wrong")
    path = Path(outcome.out.strip())
    assert called(outcome.out) == "right-against-wrong"
    assert ids(path) == ids(path, "other") == HITS
    answers = [[each[side][0].get("answer") for side in ("attempts", "other")]
               for each in shown(path)["details"]]  # fmt: skip
    assert answers[1] == ["Z is a city.", "not in context"]  # what the other run said comes first
    assert len(browser) == 1


def test_names_that_are_no_file_names_still_say_the_run(runs: Folder, browser: list[str]) -> None:
    name = "a=b:@ä" + "x" * 150
    runs.run("score", "gold.jsonl", "right.jsonl", "--store", "--run-id", name)
    path = Path(runs.run("view", name).out.strip())
    assert path.name.startswith("a_b__äxxx")
    assert len(path.name) < 110
    assert len(browser) == 1


def test_files_are_whole_or_not_there(runs: Folder, browser: list[str]) -> None:
    Path("folder").mkdir()
    outcome = runs.run("view", "right", "-o", "folder/page.html/x.html", "--no-open")
    assert outcome.exit_code == 0  # its folder is made
    runs.write("kept.html", "old")

    def broken(_view: View) -> str:
        raise OSError("disk")

    with pytest.MonkeyPatch.context() as patch:
        report = msgspec.structs.replace(registry.report("html"), content=broken)
        patch.setattr(registry, "report", lambda _: report)
        assert runs.run("view", "right", "-o", "kept.html").exit_code == 2
    assert Path("kept.html").read_text("utf-8") == "old"
    assert browser == []


def test_a_folder_that_cannot_be_written_to_is_said(
    runs: Folder, browser: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.write("file", "x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(runs.path / "file"))
    outcome = runs.run("view", "right")
    assert (outcome.exit_code, outcome.problems[0].code) == (2, "file-unreadable")
    assert browser == []


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("nothing",), 2, "unknown-run"),
        (("nothing.json",), 2, "file-not-found"),
        (("nothing.html",), 2, "file-not-found"),
        (("compared.json",), 3, "bad-scores"),
        (("right.jsonl",), 3, "bad-scores"),
        (("right", "--against", "nothing"), 2, "unknown-run"),
        (("right", "--store", "sqlite:///none.db"), 2, "store-unavailable"),
        (("right", "-o", "page.json"), 2, "usage"),
        (("page.html", "-o", "other.html"), 2, "usage"),
        (("page.html", "--corpus", "corpus"), 2, "usage"),
        (("saved.json", "--corpus", "corpus"), 2, "usage"),
        (("right", "--against", "saved.json", "--corpus", "corpus"), 2, "usage"),
        (("right", "--corpus", "nothing"), 2, "file-not-found"),
        (("right", "--against", "wrong", "--corpus", "nothing"), 2, "file-not-found"),
        (("right", "--corpus", "broken"), 3, "bad-corpus"),
        (("right", "--map", "x.jsonl"), 2, "usage"),
        (("right", "--against", "saved.json", "--map", "x.jsonl"), 2, "usage"),
    ],
)
def test_wrong_names_are_clear_errors(
    runs: Folder, browser: list[str], arguments: tuple[str, ...], code: int, error: str
) -> None:
    runs.write("page.html", "x")
    Path("broken").mkdir()
    runs.write("broken/manifest.json", "{}")
    runs.run("compare", "wrong", "right", "-o", "compared.json")
    runs.run("score", "gold.jsonl", "right.jsonl", "--full", "-o", "saved.json")
    outcome = runs.run("view", *arguments)
    assert (outcome.exit_code, outcome.problems[0].code) == (code, error), outcome.err
    assert browser == []


def test_a_comparison_is_refused_with_the_way_to_see_it(runs: Folder, browser: list[str]) -> None:
    runs.run("compare", "wrong", "right", "-o", "compared.json")
    (problem,) = runs.run("view", "compared.json").problems
    assert "--against" in problem.hint
    assert browser == []


# --- details in the reports of other commands


def test_scores_are_the_same_with_details_and_without(folder: Folder) -> None:
    for options in ([], ["--full"], ["--profile", "all", "--k", "2"]):
        plain = folder.score(WRONG, "--format", "json", *options)
        detailed = folder.score(WRONG, "--format", "json", *options, "-o", "page.html")
        assert (plain.exit_code, plain.out, plain.err) == (
            detailed.exit_code, detailed.out, detailed.err,
        )  # fmt: skip
        assert ids("page.html") == HITS
    assert not list(folder.path.glob("*.db"))


def test_a_run_that_is_stored_has_details_from_there(folder: Folder) -> None:
    folder.score(TRACES, "--store", "-o", "page.html")
    assert ids("page.html") == HITS


def test_a_page_may_be_printed(folder: Folder) -> None:
    outcome = folder.score(TRACES, "--format", "html")
    assert outcome.out.startswith("<html>{")
    assert "p1#2" in outcome.out


def test_where_nothing_was_measured_the_questions_are_still_told(folder: Folder) -> None:
    stray = [{**row, "qid": f"other-{row['qid']}", "q": "?"} for row in TRACES]
    for options in ([], ["--store"]):
        outcome = folder.score(stray, "-o", "page.html", *options)
        assert outcome.exit_code == 5, outcome.err
        assert [each["qid"] for each in shown("page.html")["details"]] == ["A1", "A2", "A3"]
        assert ids("page.html") == [[], [], []]


def test_no_trace_is_indexed_where_no_report_shows_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("ragauge.report.drilldown.questions.just_scored", never)
    assert folder.score(TRACES, "-o", "scores.json").exit_code == 0


def test_gate_has_details_of_runs_and_none_of_files(runs: Folder) -> None:
    runs.run("gate", "right", "--gates", "precision=0.5", "-o", "page.html")
    assert ids("page.html") == HITS
    runs.run("score", "gold.jsonl", "right.jsonl", "--full", "-o", "saved.json")
    runs.run("gate", "saved.json", "--gates", "precision=0.5", "-o", "page.html")
    assert shown("page.html")["details"] is None


def test_compare_has_details_of_runs_and_trace_files_and_none_of_scores(runs: Folder) -> None:
    plain = runs.run("compare", "wrong", "right")
    detailed = runs.run("compare", "wrong", "right", "-o", "page.html")
    assert (plain.out, plain.err) == (detailed.out, detailed.err)
    stored = shown("page.html")
    assert ids("page.html", "other") == HITS
    runs.run("compare", "wrong.jsonl", "right.jsonl", "--gold", "gold.jsonl", "-o", "page.html")
    assert shown("page.html") == stored
    for name in ("wrong", "right"):
        runs.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
    runs.run("compare", "wrong.json", "right.json", "-o", "page.html")
    assert shown("page.html")["details"] is None


def test_run_has_details_of_what_it_asked(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write(
        "system.py",
        "def answer(question):\n"
        "    return {'hits': [{'id': 'p1#2'}], 'answer': 'not in context'}\n",
    )
    monkeypatch.syspath_prepend(str(folder.path))
    outcome = folder.run(
        "run", "--gold", "gold.jsonl", "--target", "python:system:answer", "-o", "page.html"
    )
    assert ids("page.html") == [["p1#2"]] * 3, outcome.err
    rules = [each["attempts"][0]["refusal"] for each in shown("page.html")["details"]]
    assert rules == ["token"] * 3


def test_gates_on_a_drop_are_judged_as_they_were(runs: Folder) -> None:
    """With the baseline of `score` the page says what `score` said; without one it cannot."""
    runs.write("drop.toml", '[gates]\n"refusal.over" = { max_drop = 0.05, min_n = 1 }\n')
    first = json.loads(runs.run("runs", "list", "--format", "json").out)["runs"][0]["run_id"]
    told = {}
    for name, more in (("with", ("--baseline", first)), ("without", ())):
        outcome = runs.run(
            "view", "latest", "--gates", "drop.toml", "-o", f"{name}.html", "--no-open", *more
        )
        assert outcome.exit_code == 0, outcome.err
        page = (runs.path / f"{name}.html").read_text()
        told[name] = json.loads(page.removeprefix("<html>").split("</html>")[0])["verdict"]
    assert told["without"] == "not-evaluable"
    assert told["with"] != "not-evaluable"


@pytest.mark.parametrize("name", ["feature/chunker", "v1.html", "a.json", "-", "a\\b"])
def test_an_id_that_looks_like_a_file_is_refused(folder: Folder, name: str) -> None:
    """Later nobody could tell the run from the file."""
    outcome = folder.score(None, "--run-id", name, "--store")
    assert outcome.exit_code == 2
    assert f"`{name}` cannot be the id of a run" in outcome.err


def test_questions_of_a_run_without_answers_are_looked_at_by_what_they_lack(
    folder: Folder,
) -> None:
    folder.write("gold.jsonl", [{"qid": f"Q{n}", "question": "?", "relevant": ["x"]} for n in "ab"])
    folder.write("trace.jsonl", [{"qid": "Qa", "hits": ["x"]}, {"qid": "Qb", "hits": ["y"]}])
    told = folder.run("score", "gold.jsonl", "trace.jsonl", "--profile", "all").out
    assert "look at (1)" in told
    assert "retrieval-miss" in told.split("look at (1)")[1]
