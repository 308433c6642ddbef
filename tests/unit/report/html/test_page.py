"""The HTML files: what they say without a script, their policy, their bytes, their colours."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support import html_pages as pages
from tests.support.cases import cases

import ragauge
from ragauge.model import phrases
from ragauge.model.comparison import AnswerChange, Cause, ComparedRun, Delta, QueryComparison
from ragauge.model.drilldown import Attempt, Drilldown, Passage
from ragauge.model.scores import QuestionList, QuestionResult, SliceResult
from ragauge.model.verdict import VerdictBlock
from ragauge.report.comparison import sentences
from ragauge.report.html import page as shell
from ragauge.report.html.details import PageDetails

PAGE = Path(ragauge.__file__).parent / "report" / "html"
ROOT = Path(__file__).resolve().parents[4]
RUN = pages.run_page(pages.run_view(12, details=[pages.drilldown(i) for i in range(12)]))
COMPARED = pages.comparison_page(pages.comparison_view(12))
BOTH = pytest.mark.parametrize("page", [RUN, COMPARED], ids=["run", "comparison"])


class _Reader(HTMLParser):
    """The elements of a page, and the text that is seen without a script."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br", "link", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def text_of(page: str) -> str:
    return " ".join("\n".join(_Reader(page.replace("<wbr>", "")).text).split())


@BOTH
def test_every_element_is_closed_in_order(page: str) -> None:
    reader = _Reader(page)
    assert reader.open == []
    assert page.startswith("<!doctype html>\n<html lang=")
    assert page.endswith("</html>\n")


@BOTH
def test_the_policy_lets_our_style_and_script_through_and_nothing_else(page: str) -> None:
    reader = _Reader(page)
    (policy,) = [each["content"] for each in reader.all("meta")
                 if each.get("http-equiv") == "Content-Security-Policy"]  # fmt: skip
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert policy.endswith("base-uri 'none'; form-action 'none'")
    for directive, pattern in (("style", r"<style>(.*?)</style>"),
                               ("script", r"<script>(.*?)</script>")):  # fmt: skip
        (text,) = re.findall(pattern, page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive}-src 'sha256-{digest}'" in policy


@BOTH
def test_nothing_on_the_page_leads_out_or_carries_a_style(page: str) -> None:
    for tag, attributes in _Reader(page).elements:
        assert not {"style", "src", "srcset", "action"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes), tag
        assert (attributes.get("href") or "#").startswith("#")
        assert tag not in ("iframe", "object", "embed", "img", "base", "link", "form")
    assert "http://" not in page
    assert "https://" not in page


@BOTH
def test_links_and_labels_find_what_they_name_once(page: str) -> None:
    reader = _Reader(page)
    names = [each["id"] for _, each in reader.elements if "id" in each]
    assert len(names) == len(set(names))
    for link in reader.all("a"):
        assert (link["href"] or "")[1:] in names
    headings = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))


@BOTH
def test_tables_have_captions_and_heads(page: str) -> None:
    reader = _Reader(page)
    assert len(reader.all("caption")) == len(reader.all("table"))
    assert all(each.get("scope") in ("col", "row") for each in reader.all("th"))
    assert all(each.get("aria-label") for each in reader.all("svg"))


def test_a_run_says_all_without_a_script() -> None:
    view = pages.run_view(12)
    text = text_of(RUN)
    for said in (
        phrases.verdict_headline(view.verdict), phrases.run_summary(view.scores).capitalize(),
        "0.6000", ">= 0.80", "-0.2000", "0.5000 to 0.7000",  # value, demand, margin, interval
        "0/0 (no-citations): citation hit rate", "less is better", "812.5000",
        "2 traces carry an error", "trace.jsonl:9: bad-json", "By type",
        "answered, to be refused", "citation mode", "within", "questions by λ, computed: → 3, × 1",
        "Look at (5)", "ANS_NO_HIT", "ranked-too-low", "trace.jsonl:2", "token",
        "runs no scripts",
    ):  # fmt: skip
        assert said in text, said


def test_a_comparison_says_all_without_a_script() -> None:
    comparison = pages.comparison_view(12).comparison
    text = text_of(COMPARED)
    for said in (
        sentences.headline(comparison), sentences.rung_line(comparison),
        sentences.left_out_line(comparison), sentences.retrieval_line(comparison),
        "-0.1000", "-0.1500 to -0.0500", "0.0100", "0.0200", "0.0400", "other scale", "gated",
        "chunker: size 512 → 256", "a note", "Regressions and losses (4)", "main → head",
    ):  # fmt: skip
        assert said in text, said


def test_the_table_has_a_column_for_all_that_is_known_of_questions() -> None:
    found = pages.unpacked(RUN)["index"]
    columns = {each["name"]: each for each in found["columns"]}
    assert list(columns) == ["qid", "question", "type", "label", "cause", "gold", "trace",
                             "retrieval.recall@5", "semantic.delta_s_cited"]  # fmt: skip
    assert columns["question"]["values"][3] == "What is the number 3 of prose?"
    assert columns["retrieval.recall@5"]["values"][:3] == [0.0, 0.1, 0.2]
    label = columns["label"]
    names = [label["choices"][value]["name"] for value in label["values"]]
    assert names[:5] == list(pages.LABELS)
    assert found["failing"][:5] == [0, 1, 0, 0, 1]
    assert columns["cause"]["values"][:2] == [-1, 0]


def test_a_comparison_has_kinds_ranks_and_rungs() -> None:
    found = pages.unpacked(COMPARED)["index"]
    columns = {each["name"]: each for each in found["columns"]}
    assert columns["rank a"]["values"][:3] == ["1", "3", "2"]
    assert columns["rank b"]["values"][:3] == ["miss", "1", "2"]
    assert columns["rung"]["values"][0] == "exact"
    assert [each["name"] for each in columns["kind"]["choices"]] == ["draw", "win", "regression"]
    assert found["sides"] == ["a · main", "b · head"]


def test_saved_scores_and_scores_without_questions_say_so() -> None:
    assert "no hits and no answers to show" in text_of(pages.run_page(pages.run_view(3)))
    bare = pages.run_view(3, questions=QuestionList.of([]), per_question=None)
    assert "save them with --full" in text_of(pages.run_page(bare))


def test_turns_are_part_of_the_table() -> None:
    view = pages.run_view(2)
    turned = [replace(each, turn=i + 1) for i, each in enumerate(view.scores.questions)]
    page = pages.run_page(pages.run_view(2, questions=QuestionList.of(turned)))
    columns = {each["name"]: each for each in pages.unpacked(page)["index"]["columns"]}
    assert columns["turn"]["values"] == [1, 2]
    assert "Q-00001 turn 2" in text_of(page)


@pytest.mark.slow
def test_long_texts_keep_the_page_within_its_budget_and_it_says_so() -> None:
    """400 questions with 3 texts of 10,000 characters that are hard to compress: 12 MB of them."""

    def hit(place: int) -> Passage:
        digests = (hashlib.sha256(f"{place} {i}".encode()).hexdigest() for i in range(156))
        return pages.passage(place, " ".join(digests))

    details = [
        Drilldown(
            qid=f"Q-{i:05d}", attempts=(Attempt(hits=tuple(map(hit, range(i, i + 1200, 400)))),)
        )
        for i in range(400)
    ]
    page = pages.run_page(pages.run_view(400, details=details))
    assert len(page.encode()) < 5_500_000
    (told,) = re.findall(r"To keep this page below 5\.5 MB, ([^<]*)<", page)
    assert re.match(r"[\d,]+ texts of passages are (shortened|left out)", told)
    assert len(page.encode()) > 4_500_000
    assert "To keep this page" not in RUN


def noise(i: int, size: int) -> str:
    """Characters that hardly compress."""
    return base64.b64encode(random.Random(i).randbytes(size * 3 // 4)).decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "hits", "text", "answer"),
    [(3000, 3, 700, 0), (3000, 3, 0, 2500), (900, 60, 0, 0), (6000, 5, 40, 900), (60, 2, 90_000, 0),
     (60, 2, 0, 300_000), (9000, 2, 0, 0)],
)  # fmt: skip
def test_a_page_that_leaves_something_out_is_full(
    n: int, hits: int, text: int, answer: int
) -> None:
    """Whatever it is that takes the room: texts, answers, long lists, or questions themselves."""

    def hit(place: int) -> Passage:
        name = noise(place, 200 if hits == 60 or n == 9000 else 12)
        return Passage(id=name, text=noise(-place, text) if text else None)

    details = [
        Drilldown(qid=f"Q-{i:05d}", paraphrases=(noise(i, 300),) if n == 9000 else (), attempts=(
            Attempt(hits=tuple(map(hit, range(i * hits, (i + 1) * hits))),
                    answer=noise(i, answer) if answer else None),))
        for i in range(n)
    ]  # fmt: skip
    page = pages.run_page(pages.run_view(n, details=details))
    assert "To keep this page below 5.5 MB" in page
    assert 4_500_000 < len(page.encode()) <= 5_500_000


def test_huge_names_do_not_fill_the_page() -> None:
    """Of 6 MB in the id and 6 MB in the type of a question, 1,000 characters are shown."""
    huge = [noise(place, 6_000_000) for place in range(2)]
    results = [replace(each, qid=huge[0]) for each in pages.run_view(1).scores.questions]
    details = [Drilldown(qid=huge[0], type=huge[1])]
    view = pages.run_view(1, questions=QuestionList.of(results), details=details)
    page = pages.run_page(view)
    assert len(page.encode()) < 200_000
    columns = {each["name"]: each for each in pages.unpacked(page)["index"]["columns"]}
    for text, name in ((columns["qid"]["values"][0], huge[0]),
                       (columns["type"]["choices"][0]["name"], huge[1])):  # fmt: skip
        assert text == f"{name[:1000]} … (5,999,000 more characters are not on this page)"


@pytest.mark.parametrize("full", [False, True])
def test_tables_of_slices_have_a_most_and_say_what_is_missing(full: bool) -> None:
    parts = {f"tag{i:05d}": SliceResult(n=9, metrics={}) for i in range(1234)}
    view = pages.run_view(3, slices={"tag": parts})
    text = text_of(pages.run_page(replace(view, full=full)))
    assert "tag00199" in text
    assert "tag00200" not in text
    assert "… and 1,034 more." in text


def test_skipped_lines_that_are_not_listed_are_counted() -> None:
    """20 of 60 are kept in the scores."""
    listed = tuple(f"trace.jsonl:{i}: bad-json" for i in range(20))
    view = pages.run_view(
        3, skipped=listed, tally=pages.tally(3, trace_skipped=50, gold_skipped=10)
    )
    assert "… and 40 more." in text_of(pages.run_page(view))
    assert "more." not in text_of(pages.run_page(pages.run_view(
        3, skipped=listed, tally=pages.tally(3, trace_skipped=20))))  # fmt: skip


def test_a_gate_on_a_drop_says_so() -> None:
    result = pages.gate_result("retrieval.hit@1", "retrieval.hit@1")
    drop = replace(result, gate=replace(result.gate, is_drop=True))
    for each, is_said in ((result, False), (drop, True)):
        view = replace(pages.run_view(3), verdict=pages.verdict(each))
        assert ("drop of retrieval.hit@1" in text_of(pages.run_page(view))) is is_said


def test_the_ends_of_an_interval_have_four_decimals() -> None:
    change = Delta(metric="m", better="higher", a=0.5, b=0.6, delta=0.1, n=9,
                   interval=(3e-08, 0.2))  # fmt: skip
    text = text_of(pages.comparison_page(pages.comparison_view(3, deltas=(change,))))
    assert "+0.0000 to +0.2000" in text
    assert "e-08" not in text


def test_a_comparison_says_what_is_marked_and_what_counts() -> None:
    assert "half of the shorter" in pages.unpacked(COMPARED)["index"]["rule"]


HOSTILE = "<script>x</script><!--\"'`{{ x }}{% y %}&lt;\u202e\x00\x1b[31m\ud800]]>\n"


def page_of(name: str) -> str:
    """A page on which all that others write has one name."""
    result = QuestionResult(qid=name, label="HALLUCINATION", gold=name, trace=name, labels={})
    metrics = {name: pages.metric(0.5), "x.y@1": pages.metric(None, 0, reason=name)}
    parts = {name: SliceResult(n=9, metrics={name: pages.metric(0.4)})}
    view = pages.run_view(
        1, gold_name=name, trace_name=name, profile=name, dialect=name, gold_hash=name,
        embedders=(name,), warnings=(name,), skipped=(name,), confusion={name: 1},
        refusal_rules={name: 1}, states={name: {name: 1}}, metrics=metrics,
        questions=QuestionList.of([result]), slices={name: parts, "type": parts},
    )  # fmt: skip
    gates = pages.verdict(replace(pages.gate_result(name, name), waived=name))
    blocks = (VerdictBlock(code=name, message=name),)
    return pages.run_page(replace(view, verdict=replace(gates, blocks=blocks)))


def compared_page_of(name: str) -> str:
    run = ComparedRun(name=name, profile=name, gold_name=name, trace_name=name, gold_hash=name,
                   created_at=name, commit_hash=name, suite=name)  # fmt: skip
    answer = AnswerChange(kind="loss", a_label=name, b_label=name, refusal=name)
    query = QueryComparison(query_id=name, kind="regression", a_hit_rank=1, b_hit_rank=None,
                            note=name, answer=answer)  # fmt: skip
    delta = Delta(metric=name, better="lower", a=0.1, b=0.2, delta=0.1, n=1, reason=name, lost=True)
    view = pages.comparison_view(
        1, run_a=run, run_b=run, deltas=(delta,), per_query=(query,), notes=(name,),
        causes=(Cause(about=name, key=name, a=name, b=name),), left_out={name: 1},
        verdict=pages.verdict(pages.gate_result(name, name)),
    )  # fmt: skip
    return pages.comparison_page(replace(view, details=None))


@pytest.mark.parametrize("made_of", [page_of, compared_page_of])
def test_hostile_names_make_no_element_and_hide_nothing(made_of: Callable[[str], str]) -> None:
    """Elements and attributes are those of a page of harmless names, and the text is readable."""
    page = made_of(HOSTILE)
    harmless, hostile = _Reader(made_of("name\n")), _Reader(page)
    assert [(tag, list(attributes)) for tag, attributes in hostile.elements if tag != "wbr"] == [
        (tag, list(attributes)) for tag, attributes in harmless.elements if tag != "wbr"
    ]
    assert text_of(page).count(r"{{ x }}{% y %}&lt;\u202e\x00\x1b[31m\ud800]]>") > 10
    assert not re.search("[\u202e\x00\x1b\ud800]", page)


WITHOUT_A_PAGE = """
import sys
from ragauge import registry
import ragauge.cli.main, ragauge.cli.score, ragauge.cli.compare, ragauge.report.drilldown.questions
registry.reports(), registry.comparisons()
assert not {"jinja2", "markupsafe", "ragauge.report.html.markup"} & set(sys.modules)
"""


@pytest.mark.slow
def test_templates_are_loaded_only_where_a_page_is_made() -> None:
    environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[2])}
    subprocess.run([sys.executable, "-c", WITHOUT_A_PAGE], env=environment, check=True)


SCRIPT = """
import sys
from tests.support import html_pages as pages
view = pages.run_view(300, details=[pages.drilldown(i, words=200) for i in range(300)])
sys.stdout.write(pages.run_page(view))
sys.stdout.write(pages.comparison_page(pages.comparison_view(60)))
"""


def made_with(**environment: str) -> str:
    clean = {**os.environ, "PYTHONUTF8": "1", **environment}
    path = os.pathsep.join([str(ROOT), str(PAGE.parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env={**clean, "PYTHONPATH": path}, capture_output=True,
        check=True,
    )  # fmt: skip
    return hashlib.sha256(done.stdout).hexdigest()


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes_anywhere() -> None:
    here = made_with(PYTHONHASHSEED="1", TZ="UTC")
    assert here == made_with(PYTHONHASHSEED="77", TZ="Pacific/Auckland", LC_ALL="C")


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def colors() -> dict[str, tuple[str, str]]:
    style = (PAGE / "report.css").read_text("utf-8")
    found = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", style)
    return {name: (light, dark) for name, light, dark in found}


@cases("theme", [0, 1], ids=["light", "dark"])
@cases(
    ("ink", "grounds"),
    [
        ("ink", ["paper", "raised", "sunk", "mark", "warn-soft", "bad-soft"]),
        ("quiet", ["paper", "raised", "sunk"]),
        ("accent", ["paper", "raised"]),
        ("good", ["paper", "good-soft"]),
        ("warn", ["paper", "warn-soft"]),
        ("bad", ["paper", "bad-soft"]),
        ("info", ["info-soft"]),
        *((f"s{i}", ["paper"]) for i in range(6)),
    ],
)
def test_text_can_be_read_on_its_ground(ink: str, grounds: list[str], theme: int) -> None:
    """A contrast of 4.5, as WCAG AA asks for."""
    known = colors()
    for ground in grounds:
        assert contrast(known[ink][theme], known[ground][theme]) >= 4.5, ground


def test_a_budget_that_nothing_fits_in_leaves_the_table() -> None:
    """The page is then larger than the budget, but says what is not there."""
    said: list[Any] = []

    def write(blocks: shell.Blocks, notes: Any) -> str:
        said.append((sorted(name for name, _ in blocks), list(notes)))
        return "x" * 1000

    details = PageDetails([pages.drilldown(i) for i in range(3)], [True] * 3)
    shell.fill_page(write, [("index", "")], details, budget=10)
    names, notes = said[-1]
    assert "index" in names
    assert "3 questions are shown without details" in notes[0]
