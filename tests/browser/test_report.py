"""The HTML report as a person uses it: a real Chromium, a file on disk, no network."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from ragauge.model.comparison import AnswerChange, Cause, ComparedRun, Delta, QueryComparison
from ragauge.model.drilldown import Attempt, Drilldown, Expected, Passage
from ragauge.model.report import View
from ragauge.model.scores import PerQuestion, QuestionList, QuestionResult, SliceResult
from ragauge.model.semantic import Bands, Semantic
from tests.browser.chromium import NEEDS_CHROMIUM
from tests.support import html_pages as pages

pytestmark = NEEDS_CHROMIUM
expect = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not there: pip install playwright"
).expect
MANY = 10_000
PATIENCE = 20_000  # milliseconds
HOSTILE = (
    "<script>alert(1)</script></script><!--<img src=x onerror=alert(2)>\"'`{{x}}&lt;"
    "javascript:alert(3)\u2028\u202e\u0000\x1b[31m\ud800]]>"
)
SEEN = "<script>alert(1)</script>"


class Opened:
    """A page in a browser, and what it said and asked for."""

    def __init__(self, chromium: Any, path: Path, **more: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **more})
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = path.as_uri()
        self.page.goto(self.address)

    def close(self) -> None:
        self.context.close()
        assert self.said == []
        assert {each.partition("#")[0] for each in self.asked} == {self.address}

    def rows(self) -> list[str]:
        found = self.page.locator(".questions tbody button.open").all_text_contents()
        return [str(each) for each in found]

    def counts(self, told: str) -> None:
        """Wait until the page says so many questions; answers are read while it searches."""
        expect(self.page.locator(".count")).to_have_text(told, timeout=PATIENCE)

    def focuses(self, text: str) -> None:
        """Wait until what has that text has the focus, which a dialog gives back a little later."""
        self.page.wait_for_function("text => document.activeElement.textContent === text", arg=text)

    def wide(self) -> bool:
        """Whether the page itself can be scrolled sideways."""
        width = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.page.evaluate(width))


def written(folder: Path, text: str) -> Path:
    path = folder / "report.html"
    path.write_text(text, "utf-8", newline="\n")
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of 10,000 questions with ten hits each, and a text for every hit."""
    details = [pages.drilldown(i, hits=10, words=40) for i in range(MANY)]
    page = pages.run_page(pages.run_view(MANY, details=details))
    assert len(page.encode()) < 6_000_000
    return written(tmp_path_factory.mktemp("many"), page)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = pages.comparison_page(pages.comparison_view(30))
    return written(tmp_path_factory.mktemp("compared"), page)


@pytest.fixture
def report(chromium: Any, many: Path) -> Iterator[Opened]:
    opened = Opened(chromium, many)
    opened.page.locator(".questions tbody tr").first.wait_for()
    yield opened
    opened.close()


def test_ten_thousand_questions_are_paged(report: Opened) -> None:
    report.counts("10,000 questions")
    assert len(report.rows()) == 50
    first = report.rows()[0]
    report.page.get_by_role("button", name="Next page").click()
    assert report.rows()[0] != first
    expect(report.page.locator(".range")).to_have_text("51–100", timeout=PATIENCE)
    report.page.get_by_role("button", name="Previous page").click()
    assert report.rows()[0] == first
    report.page.get_by_label("Questions a page").select_option("250")
    assert len(report.rows()) == 250


def test_questions_are_filtered(report: Opened) -> None:
    """Every fifth question is an ANS_NO_HIT and every fifth a HALLUCINATION: 2 of 5 fail."""
    page = report.page
    page.get_by_label("Search").fill("q-0123")
    report.counts("10 of 10,000 questions")
    page.get_by_label("Search").fill("TABLE? q-0007")  # all words, in the id or the question
    assert report.rows() == ["Q-00079", "Q-00076", "Q-00073", "Q-00070"]
    page.get_by_label("Search").fill("")
    page.get_by_label("only failing").check()
    report.counts("4,000 of 10,000 questions")
    page.locator("select[data-filter=label]").select_option(label="ANS_NO_HIT (2,000)")
    report.counts("2,000 of 10,000 questions")
    page.locator("select[data-filter=type]").select_option(index=1)  # code: i % 3 == 2
    report.counts("666 of 10,000 questions")  # 11, 26, ... 9986
    page.get_by_label("Search").fill("no such words")
    report.counts("0 of 10,000 questions")
    page.get_by_text("No question matches.").wait_for()


def test_answers_and_whole_questions_are_searched(chromium: Any, tmp_path: Path) -> None:
    """They are read from their blocks when somebody searches, in the order they are stored in."""
    n = 450  # three blocks
    details = [pages.drilldown(i) for i in range(n)]
    long = "What is the number of " + "prose and code and " * 30 + "Zanzibar?"
    details[7] = replace(details[7], question=long)
    said = (replace(details[444].attempts[0], answer="It is a Xylophone."),)
    details[444] = replace(details[444], attempts=said)
    opened = Opened(chromium, written(tmp_path, pages.run_page(pages.run_view(n, details=details))))
    page = opened.page
    for words, found in (("zanzibar", "Q-00007"), ("a xylophone.", "Q-00444"),
                         ("NUMBER zanzibar q-00007", "Q-00007")):  # fmt: skip
        page.get_by_label("Search").fill(words)
        page.get_by_role("button", name=found).wait_for()
        assert opened.rows() == [found]
        opened.counts("1 of 450 questions")
    page.get_by_label("Search").fill("answer 31")
    page.get_by_role("button", name="Q-00319").wait_for()
    # 31 and 310 to 319, and what has an answer and 31 in its id: 131, 231, 331, 431
    opened.counts("15 of 450 questions")
    page.get_by_label("Search").fill("more characters are not on this page")
    page.get_by_text("No question matches.").wait_for()
    expect(page.locator("#reading")).to_have_text("", timeout=PATIENCE)
    opened.close()


def test_scores_without_details_are_searched_by_id(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, written(tmp_path, pages.run_page(pages.run_view(20))))
    opened.page.get_by_label("Search").fill("q-00007")
    opened.page.get_by_role("button", name="Q-00007").wait_for()
    assert opened.rows() == ["Q-00007"]
    opened.close()


def test_an_expected_piece_that_was_missed_says_its_text(chromium: Any, tmp_path: Path) -> None:
    """One with a quote has that, and one of which nothing is known has neither."""
    expected = (
        Expected(name="guide.md#S.1", doc="guide.md", where="bytes 3-9"),
        Expected(name="guide.md#S.2", doc="guide.md", quote="as it is quoted"),
        Expected(name="guide.md#S.3", doc="guide.md"),
    )
    evidence = (passage_of("guide.md#S.1", "What stands there."),)
    one = replace(pages.drilldown(0), expected=expected, evidence=evidence)
    opened = Opened(chromium, written(tmp_path, pages.run_page(pages.run_view(1, details=[one]))))
    opened.page.get_by_role("button", name="Q-00000").click()
    pieces = opened.page.get_by_role("dialog").locator("h3:text('Expected evidence') + ul > li")
    pieces.first.wait_for()
    assert [[line for line in each.split("\n") if line] for each in pieces.all_inner_texts()] == [
        ["guide.md#S.1", "guide.md · bytes 3-9", "What stands there."],
        ["guide.md#S.2", "guide.md", "as it is quoted"],
        ["guide.md#S.3", "guide.md"],
    ]
    opened.close()


def passage_of(name: str, text: str) -> Passage:
    return Passage(id=name, doc="guide.md", where="bytes 3-9", text=text, marks=("gold",))


def test_questions_are_sorted_by_any_column(report: Opened) -> None:
    """The worst labels come first; recall@5 of question i is (i % 11) / 10."""
    page = report.page
    assert report.rows()[:2] == ["Q-00004", "Q-00009"]  # HALLUCINATION
    label = page.locator("th[data-name=label]")
    expect(label).to_have_attribute("aria-sort", "descending", timeout=PATIENCE)
    page.get_by_role("button", name="question id").click()
    assert report.rows()[:2] == ["Q-00000", "Q-00001"]
    expect(label).to_have_attribute("aria-sort", "none", timeout=PATIENCE)
    page.get_by_role("button", name="question id").click()
    assert report.rows()[0] == "Q-09999"
    page.locator("th[data-name='retrieval.recall@5'] button").click()
    assert report.rows()[:2] == ["Q-00010", "Q-00021"]  # 10 % 11 = 21 % 11 = 10
    page.locator("th[data-name='retrieval.recall@5'] button").click()
    assert report.rows()[:2] == ["Q-00000", "Q-00011"]


def test_a_question_is_opened_with_the_mouse(report: Opened) -> None:
    page = report.page
    page.get_by_label("Search").fill("Q-00042")
    page.get_by_text("What is the number 42 of prose?").click()
    drill = page.get_by_role("dialog")
    drill.get_by_role("heading", name="Q-00042").wait_for()
    drill.get_by_text("gold.jsonl:43").wait_for()
    drill.get_by_text("trace.jsonl:43").wait_for()
    drill.get_by_text("The answer 42.").wait_for()
    hits = drill.locator("ol.passages > li")
    expect(hits).to_have_count(10, timeout=PATIENCE)
    assert "★ evidence" in hits.nth(1).inner_text()
    assert "❞ cited" in hits.nth(1).inner_text()
    assert hits.nth(1).locator("mark").first.text_content() == "treasure"
    drill.get_by_text("forbidden").wait_for()
    assert page.url.endswith("#q=Q-00042")
    drill.get_by_role("button", name="Close").click()
    drill.wait_for(state="hidden")


def test_the_focus_comes_back_to_a_row_that_was_made_anew(report: Opened) -> None:
    """The table is made anew when answers were read, which may be while a question is open."""
    page = report.page
    page.locator("button.open").nth(1).focus()
    second = report.rows()[1]
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=second).wait_for()
    page.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
    page.keyboard.press("Escape")
    report.focuses(second)
    page.evaluate("document.getElementById('search').dispatchEvent(new Event('input'))")
    report.focuses(second)


def test_everything_is_done_with_the_keyboard(report: Opened) -> None:
    page = report.page
    page.keyboard.press("/")
    page.keyboard.type("Q-0012")
    report.counts("10 of 10,000 questions")
    page.locator("button.open").first.focus()
    page.keyboard.press("ArrowDown")
    second = report.rows()[1]
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=second).wait_for()
    page.keyboard.press("n")
    page.get_by_role("heading", name=report.rows()[2]).wait_for()
    page.keyboard.press("p")
    page.get_by_role("heading", name=second).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    report.focuses(second)


def test_an_address_opens_a_question(chromium: Any, many: Path) -> None:
    opened = Opened(chromium, many)
    opened.page.goto(f"{opened.address}#q=Q-09999")
    opened.page.get_by_role("heading", name="Q-09999").wait_for()
    opened.page.evaluate("location.hash = '#q=Q-00001'")
    opened.page.get_by_role("heading", name="Q-00001").wait_for()
    opened.close()


def test_the_dialog_follows_the_address(report: Opened) -> None:
    """Back closes what a click opened; so does an address that names no question."""
    page, drill = report.page, report.page.get_by_role("dialog")
    names = report.rows()
    for name in names[:2]:  # the second opening uses the entry of the first again
        page.get_by_role("button", name=name).click()
        drill.get_by_role("heading", name=name).wait_for()
        drill.get_by_role("button", name="Close").click()
        drill.wait_for(state="hidden")
        page.wait_for_url("**#questions")
    page.get_by_role("button", name=names[2]).click()
    drill.get_by_role("heading", name=names[2]).wait_for()
    page.keyboard.press("n")
    drill.get_by_role("heading", name=names[3]).wait_for()
    page.go_back()
    drill.wait_for(state="hidden")
    assert page.url == report.address
    page.go_forward()
    drill.get_by_role("heading", name=names[3]).wait_for()
    page.evaluate("location.hash = '#metrics'")
    drill.wait_for(state="hidden")
    assert page.url.endswith("#metrics")
    page.go_back()
    drill.get_by_role("heading", name=names[3]).wait_for()


def test_an_address_of_no_question_is_said(report: Opened) -> None:
    page = report.page
    page.evaluate("location.hash = '#q=Q-00001'")
    page.get_by_role("heading", name="Q-00001").wait_for()
    page.evaluate("location.hash = '#q=zz%20z'")
    page.get_by_text("No question of this page has the id zz z.").wait_for()
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.url.endswith("#q=zz%20z")
    page.evaluate("location.hash = '#q=Q-00001'")
    page.get_by_role("heading", name="Q-00001").wait_for()
    expect(page.locator("#unknown")).to_have_text("", timeout=PATIENCE)


def test_a_question_that_is_filtered_out_has_no_neighbours(report: Opened) -> None:
    page = report.page
    page.get_by_label("Search").fill("Q-0012")
    page.evaluate("location.hash = '#q=Q-00777'")
    page.get_by_role("heading", name="Q-00777").wait_for()
    page.get_by_text("hidden by the filters").wait_for()
    for key in ("n", "p"):
        page.keyboard.press(key)
        expect(page.locator("#drill-title")).to_have_text("Q-00777", timeout=PATIENCE)
        assert page.url.endswith("#q=Q-00777")


def test_an_address_without_a_turn_means_the_question_without_one(
    chromium: Any, tmp_path: Path
) -> None:
    details = [pages.drilldown(i) for i in range(4)]
    results = [
        replace(each, qid="c2" if turn == 3 else "c1", turn=turn)
        for each, turn in zip(pages.run_view(4).scores.questions, (1, None, 2, 3), strict=True)
    ]
    view = pages.run_view(4, questions=QuestionList.of(results), details=details)
    opened = Opened(chromium, written(tmp_path, pages.run_page(view)))
    for address, title, gold in (
        ("c1", "c1", 2), ("c1&turn=2", "c1 turn 2", 3), ("c1&turn=1", "c1 turn 1", 1),
        ("c2", "c2 turn 3", 4),
    ):  # fmt: skip
        opened.page.evaluate(f"location.hash = '#q={address}'")
        opened.page.get_by_role("heading", name=title, exact=True).wait_for()
        opened.page.get_by_text(f"gold.jsonl:{gold}", exact=True).wait_for()
    opened.page.evaluate("location.hash = '#q=c1&turn=9'")
    opened.page.get_by_text("has the id c1 turn 9.").wait_for()
    opened.close()


def test_answers_that_are_cut_are_said_to_be(chromium: Any, tmp_path: Path) -> None:
    """Five answers of about 900,000 characters that hardly compress: not all have room."""
    details = []
    for i in range(5):
        said = base64.b64encode(random.Random(i).randbytes(1_200_000)).decode()
        attempt = Attempt(answer=said, hits=(pages.passage(i, "text"),))
        details.append(Drilldown(qid=f"Q-{i:05d}", attempts=(attempt,)))
    opened = Opened(chromium, written(tmp_path, pages.run_page(pages.run_view(5, details=details))))
    opened.page.get_by_text("To keep this page below 5.5 MB, 2 answers are shortened").wait_for()
    cut = []
    for i in range(5):
        opened.page.evaluate(f"location.hash = '#q=Q-{i:05d}'")
        opened.page.get_by_role("heading", name=f"Q-{i:05d}").wait_for()
        told = opened.page.locator("blockquote p.text").text_content()
        cut.append("more characters are not on this page" in str(told))
        expect(opened.page.locator("ol.passages .text")).to_have_text("text", timeout=PATIENCE)
    assert cut == [False, False, True, True, False]  # 1 and 4 fail, and 0 comes next
    opened.close()


def test_the_theme_is_switched_and_kept(report: Opened) -> None:
    page = report.page

    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = paper()
    button = page.get_by_role("button", name="Theme")
    button.click()
    expect(button).to_have_text("Theme: light", timeout=PATIENCE)
    assert paper() == light
    button.click()
    expect(button).to_have_text("Theme: dark", timeout=PATIENCE)
    dark = paper()
    assert dark != light
    page.reload()
    page.locator(".questions tbody tr").first.wait_for()
    assert paper() == dark
    page.emulate_media(media="print")
    assert paper() == light  # paper is light


def test_the_system_says_what_the_theme_is(chromium: Any, many: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        opened = Opened(chromium, many, color_scheme=scheme)
        found = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
        grounds.append(found)
        opened.close()
    assert grounds[0] != grounds[1]


def test_paper_has_the_summary_and_the_failing_questions(report: Opened) -> None:
    page = report.page
    page.emulate_media(media="print")
    page.get_by_role("heading", name="Gates").wait_for()
    page.get_by_role("heading", name="Look at (4,000)").wait_for()
    page.get_by_text("... and 3,700 more.").wait_for()
    assert not page.locator("#table").is_visible()
    assert not page.get_by_role("button", name="Theme").is_visible()


@pytest.mark.parametrize("width", [400, 700, 1280])
@pytest.mark.parametrize("name", ["many", "compared"])
def test_nothing_scrolls_sideways(
    chromium: Any, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    path = request.getfixturevalue(name)
    opened = Opened(chromium, path, viewport={"width": width, "height": 800})
    opened.page.locator("button.open").first.wait_for()
    assert not opened.wide()
    opened.page.locator("button.open").first.click()
    opened.page.locator("#drill-title").wait_for()
    drill = "(() => { const it = document.getElementById('drill');"
    assert opened.page.evaluate(f"{drill} return it.scrollWidth <= it.clientWidth; }})()")
    opened.close()


def test_both_ranked_lists_stand_side_by_side(chromium: Any, compared: Path) -> None:
    opened = Opened(chromium, compared)
    page = opened.page
    page.locator("button.open").first.click()
    page.locator("#drill-title").wait_for()
    sides = page.locator(".side")
    expect(sides).to_have_count(2, timeout=PATIENCE)
    assert "trace.jsonl:1" in sides.nth(0).inner_text()
    assert "head.jsonl:1" in sides.nth(1).inner_text()
    first = [sides.nth(i).locator("ol li code").first.text_content() for i in range(2)]
    assert first == ["guide.md#S.0", "guide.md#S.2"]  # b has the hits in reverse
    boxes = [sides.nth(i).bounding_box() for i in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    page.set_viewport_size({"width": 400, "height": 800})
    boxes = [sides.nth(i).bounding_box() for i in range(2)]
    assert boxes[1]["y"] > boxes[0]["y"] + boxes[0]["height"] - 1
    opened.close()


def test_a_mark_that_does_not_count_for_the_rank_is_explained(
    chromium: Any, compared: Path
) -> None:
    """Question 0: rank a is 1 and rank b a miss, and the second hit of both has a mark."""
    opened = Opened(chromium, compared)
    page = opened.page
    page.evaluate("location.hash = '#q=Q-00000'")
    page.get_by_role("heading", name="Q-00000").wait_for()
    assert "half of the shorter" in page.locator(".rule").inner_text()
    sides = page.locator(".side")
    assert "does not count" not in sides.nth(0).inner_text()
    assert "Hit 2 is marked ★ but does not count for rank b (miss)" in sides.nth(1).inner_text()
    page.evaluate("location.hash = '#q=Q-00002'")  # 2 and 2
    page.get_by_role("heading", name="Q-00002").wait_for()
    assert "does not count" not in page.locator(".sides").inner_text()
    opened.close()


def test_a_long_name_of_a_slot_does_not_scroll_sideways(chromium: Any, tmp_path: Path) -> None:
    attempts = tuple(Attempt(seed=f"{i}{'x' * 500}") for i in range(2))
    details = [Drilldown(qid="Q-00000", attempts=attempts)]
    page = pages.run_page(pages.run_view(1, details=details))
    opened = Opened(chromium, written(tmp_path, page), viewport={"width": 400, "height": 800})
    opened.page.locator("button.open").first.click()
    opened.page.get_by_role("tab").first.wait_for()
    assert opened.page.evaluate("(it => it.scrollWidth <= it.clientWidth)(drill)")
    opened.close()


def test_a_comparison_is_filtered_by_kind(chromium: Any, compared: Path) -> None:
    """Every third question is a regression, and regressions come first."""
    opened = Opened(chromium, compared)
    opened.page.locator("button.open").first.wait_for()
    assert opened.rows()[:2] == ["Q-00000", "Q-00003"]
    opened.page.get_by_label("only worse").check()
    opened.counts("10 of 30 questions")
    opened.page.get_by_label("only worse").uncheck()
    opened.page.locator("select[data-filter=kind]").select_option(label="win (10)")
    assert opened.rows()[0] == "Q-00001"
    opened.close()


def test_slots_are_chosen_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    details = [pages.drilldown(i, attempts=3) for i in range(3)]
    page = pages.run_page(pages.run_view(3, details=details))
    opened = Opened(chromium, written(tmp_path, page))
    opened.page.locator("button.open").first.click()
    tab = opened.page.get_by_role("tab", name="seed 0")
    tab.focus()
    opened.page.keyboard.press("ArrowRight")
    chosen = opened.page.get_by_role("tab", name="seed 1")
    expect(chosen).to_have_attribute("aria-selected", "true", timeout=PATIENCE)
    opened.focuses("seed 1")
    opened.close()


def test_without_scripts_the_page_says_what_is_missing(chromium: Any, many: Path) -> None:
    opened = Opened(chromium, many, java_script_enabled=False)
    page = opened.page
    # Where a driver forbids scripts the parser still hides `noscript`: its text is there.
    assert "runs no scripts" in str(page.locator("noscript").text_content())
    page.get_by_role("heading", name="Look at (4,000)").wait_for()
    page.get_by_role("table", name="Metrics").wait_for()
    opened.close()


def test_saved_scores_say_that_they_hold_no_hits(chromium: Any, tmp_path: Path) -> None:
    opened = Opened(chromium, written(tmp_path, pages.run_page(pages.run_view(5))))
    opened.page.locator("button.open").first.click()
    drill = opened.page.get_by_role("dialog")
    drill.get_by_text("there are no hits and no answers to show").wait_for()
    drill.get_by_text("trace.jsonl:5").wait_for()
    opened.close()


def hostile_run() -> View:
    """A run with hostile text in every field that holds any."""
    bad = HOSTILE
    hit = Passage(id=bad + "x" * 100_000, doc=bad, section=bad, where=bad, type=bad, text=bad * 40,
                  highlights=((0, 25), (40, 90)), marks=("gold", "negative", "cited"))  # fmt: skip
    attempt = Attempt(seed=bad, asked=bad, trace=bad, label=bad, error=bad, hits=(hit,),
                      answer=bad, refusal=bad, citations=(hit,), lambda_state=bad)  # fmt: skip
    item = Drilldown(
        qid=bad, question=bad, paraphrases=(bad,), expect="answer", gold=bad, negatives=(bad,),
        expected=(Expected(name=bad, doc=bad, where=bad, quote=bad, rung=bad),), claims=(bad,),
        must_contain=(bad,), forbidden=(bad,), type=bad, tags=(bad,), attempts=(attempt, attempt),
    )  # fmt: skip
    result = QuestionResult(qid=bad, label="HALLUCINATION", gold=bad, trace=bad, labels={bad: 2})
    view = pages.run_view(
        1, details=[item], gold_name=bad, trace_name=bad, profile=bad, dialect=bad,
        gold_hash=bad, embedders=(bad,), warnings=(bad,), skipped=(bad,), confusion={bad: 1},
        refusal_rules={bad: 1}, states={bad: {bad: 1}}, questions=QuestionList.of([result]),
        metrics={bad: pages.metric(0.5), "x.y@1": pages.metric(None, 0, reason=bad)},
        slices={bad: {bad: SliceResult(n=9, metrics={bad: pages.metric(0.4)})},
                "type": {bad: SliceResult(n=9, metrics={bad: pages.metric(0.4)})}},
        per_question=PerQuestion(metrics=(bad,), qids=[bad], turns=[None],
                                 values=np.array([[0.5]])),
        semantic=Semantic(embedder=bad, bands=Bands()),
    )  # fmt: skip
    gates = pages.verdict(pages.gate_result(bad, bad))
    return View(scores=view.scores, verdict=gates, profile=view.profile, details=[item])


def hostile_comparison() -> Any:
    bad = HOSTILE
    return pages.comparison_view(
        1,
        run_a=ComparedRun(name=bad, profile=bad, gold_name=bad, trace_name=bad, gold_hash=bad,
                       created_at=bad, commit_hash=bad, suite=bad, chunker_versions=(bad,)),
        deltas=(Delta(metric=bad, better="higher", a=0.1, b=0.2, delta=0.1, n=1, reason=bad),),
        per_query=(QueryComparison(
            query_id=bad, kind="regression", a_hit_rank=1, b_hit_rank=None, note=bad,
            answer=AnswerChange(kind="loss", a_label=bad, b_label=bad, refusal=bad, citations=bad,
                                a_cause=bad, b_cause=bad),
        ),),
        causes=(Cause(about=bad, key=bad, a=bad, b=bad),), notes=(bad,), left_out={bad: 1},
        verdict=pages.verdict(pages.gate_result(bad, bad)),
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["run", "comparison"])
def test_hostile_text_is_text(chromium: Any, tmp_path: Path, kind: str) -> None:
    """It is seen as it stands, makes no element, runs nothing and asks for nothing."""
    page = (
        pages.run_page(hostile_run())
        if kind == "run"
        else pages.comparison_page(hostile_comparison())
    )
    opened = Opened(chromium, written(tmp_path, page), viewport={"width": 400, "height": 800})
    opened.page.locator("button.open").first.wait_for()
    scripts = "[...document.scripts].filter((each) => !each.type).length"
    assert opened.page.evaluate(scripts) == 1
    assert opened.page.evaluate("document.querySelectorAll('img, iframe, base').length") == 0
    assert not opened.wide()
    assert SEEN in opened.page.locator("main").inner_text()
    assert "\\u202e" in opened.page.locator("main").inner_text()
    opened.page.locator("button.open").first.click()
    drill = opened.page.locator("#drill")
    drill.locator("#drill-title").wait_for()
    assert SEEN in drill.inner_text()
    assert drill.locator("script, img").count() == 0
    if kind == "run":
        assert drill.get_by_role("tab").count() == 2  # two of one name are two
        assert drill.locator("li.gold mark").first.text_content() == SEEN
        assert drill.inner_text().count(SEEN) > 20
        assert opened.page.url.count("#q=%3Cscript%3E") == 1
    text = opened.page.locator("body").text_content()
    assert not any(sign in text for sign in "\u202e\u0000\x1b\ufffd")
    opened.close()
