"""Charts: where points and bars are, by hand, and the words that go with them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.support.cases import cases
from tests.support.html_pages import gate_result, metric, scores, verdict

from ragauge.model.scores import PerQuestion
from ragauge.model.semantic import Bands, Semantic
from ragauge.report.html import charts, run_page
from ragauge.report.html.charts import Bar, ChartLine, Dot


def parsed(drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawing)


def shapes(root: ElementTree.Element, tag: str, class_: str = "") -> list[ElementTree.Element]:
    return [each for each in root.iter(tag) if class_ in (each.get("class") or "")]


def test_lines_run_through_their_points() -> None:
    """The field is from x 34 to 282 and from y 12 (for 1) to 182 (for 0)."""
    root = parsed(charts.lines([1, 5, 10], [ChartLine("recall", (0.0, 0.5, 1.0))]))
    assert [each.get("d") for each in shapes(root, "path", "stroke")] == [
        "M34 182 L158 97 L282 12"  # a half is 182 - 85
    ]
    titles = [each.text for each in root.iter("title")]
    assert "recall@5: 0.5000" in titles
    assert root.get("role") == "img"
    assert root.get("aria-label") == ("Metrics by k: recall 0.0000 at 1, 0.5000 at 5, 1.0000 at 10")


def test_lines_without_a_value_at_a_k_pass_over_it() -> None:
    root = parsed(charts.lines([1, 5, 10], [ChartLine("x", (0.0, None, 1.0))]))
    assert [each.get("d") for each in shapes(root, "path", "stroke")] == ["M34 182 L282 12"]


def test_names_of_lines_do_not_cover_each_other() -> None:
    """Three that end in one place are moved apart by 13 and stay above the axis."""
    assert charts.spread([180.0, 180.0, 50.0], 13, 182) == [169, 182, 50]
    assert charts.spread([50.0, 52.0], 13, 182) == [50, 63]


def test_bars_are_as_long_as_their_counts() -> None:
    root = parsed(charts.bars("Labels", [Bar("OK", 30, "good"), Bar("BAD", 10, "bad"),
                                         Bar("NONE", 0)]))  # fmt: skip
    found = shapes(root, "rect", "fill")
    assert [each.get("width") for each in found] == ["290", "96.7", "0"]  # 10 of 30 is a third
    assert [each.get("class") for each in found] == ["fill good", "fill bad", "fill quiet"]
    said = [each.text for each in root.iter("text")]
    assert "30 · 75.0 %" in said
    assert root.get("aria-label") == "Labels: OK 30, BAD 10, NONE 0"


def test_bins_have_the_colour_of_their_zone() -> None:
    """Bins of 0.5 from 0: the middles are 0.25, 0.75, 1.25, and zones end at 0.5 and 1."""
    zones = [Bar("stable", 4, "good"), Bar("transitional", 2, "warn"), Bar("risk", 1, "bad")]
    root = parsed(charts.histogram("ΔS", [4, 2, 1], low=0.0, step=0.5, zones=zones,
                                   ends=(0.5, 1.0)))  # fmt: skip
    found = shapes(root, "rect", "fill")
    assert [each.get("class") for each in found] == ["fill good", "fill warn", "fill bad"]
    assert [each.get("height") for each in found] == ["170", "85", "42.5"]
    edges = [each.get("x1") for each in shapes(root, "line", "edge")]
    assert edges == ["153.3", "272.7"]  # 34 + 358 / 3, 34 + 2 * 358 / 3


def test_dots_stand_on_their_scale_with_their_interval() -> None:
    """The scale is from x 6 to 390: 384 wide."""
    root = parsed(charts.dots("recall", [Dot("code", 0.5, (0.25, 0.75), "n 9")]))
    dot = shapes(root, "circle", "dot")[0]
    line = shapes(root, "line", "whisker")[0]
    assert (dot.get("cx"), dot.get("cy")) == ("198", "22")
    assert (line.get("x1"), line.get("x2")) == ("102", "294")
    assert "0.5000 · n 9" in [each.text for each in root.iter("text")]


def test_a_strip_shows_zero_and_what_is_too_small_to_be_detected() -> None:
    """132 wide with margins of 5: from -1 to 1 the unit is 61, and 0 is at 66."""
    root = parsed(charts.strip("x", 0.5, (-1.0, 2.0), low=-1, high=1, zero=True, detectable=0.25))
    assert shapes(root, "circle", "dot")[0].get("cx") == "96.5"
    assert shapes(root, "line", "axis")[0].get("x1") == "66"
    shade = shapes(root, "rect", "shade")[0]
    assert (shade.get("x"), shade.get("width")) == ("50.8", "30.5")
    whisker = shapes(root, "line", "whisker")[0]
    assert (whisker.get("x1"), whisker.get("x2")) == ("5", "127")  # what is beyond ends at the edge


def test_metrics_by_k_are_the_gated_ones_first() -> None:
    run = scores(3, k=(1, 5), metrics={
        "answer.x@1": metric(0.1), "answer.x@5": metric(0.2),
        "retrieval.hit@1": metric(0.3), "retrieval.hit@5": metric(0.4),
        "retrieval.map@1": metric(0.5), "retrieval.map@9": metric(0.6),
        "retrieval.mrr@1": metric(0.5), "retrieval.mrr@5": metric(None),
        "latency.y@1": metric(3.0), "latency.y@5": metric(4.0),
    })  # fmt: skip
    found = run_page.families(run, verdict(gate_result("x", "answer.x@5")))
    assert found == [ChartLine("answer.x", (0.1, 0.2)), ChartLine("retrieval.hit", (0.3, 0.4))]


def test_distances_are_counted_by_zone() -> None:
    """0.39 is stable, 0.40 and 0.59 are transitional, 0.60 is risk; nan is none."""
    values = PerQuestion(
        metrics=("semantic.delta_s_cited",), qids=list("abcde"), turns=[None] * 5,
        values=np.array([[0.39, 0.40, 0.59, 0.60, np.nan]]),
    )  # fmt: skip
    made = run_page.figures(scores(5, per_question=values), verdict())
    (figure,) = [figure for figure in made if figure.title == "ΔS of questions"]
    assert "Questions by ΔS: stable 1, transitional 2, risk 1" in figure.drawing
    assert "0.40 to 0.45: 1<" in figure.drawing
    assert "n = 4" in figure.note


def test_k_stands_in_order_however_it_was_given() -> None:
    values = {f"retrieval.recall@{k}": metric(k / 10) for k in (10, 1, 5)}
    svg = parsed(run_page.figures(scores(3, k=(10, 1, 5), metrics=values), verdict())[0].drawing)
    ticks = shapes(svg, "text", "tick")
    assert [each.text for each in ticks if each.get("text-anchor") == "middle"] == ["1", "5", "10"]
    (path,) = [each.get("d") for each in shapes(svg, "path", "stroke")]
    assert path == "M34 165 L158 97 L282 12"  # 0.1, 0.5 and 1 of 170, from 182 up


@pytest.mark.parametrize(("risk", "is_drawn"), [(0.6, True), (1.4, True), (9.0, False)])
def test_the_zone_of_risk_is_on_the_chart_or_said(risk: float, is_drawn: bool) -> None:
    """The values go up to 0.99; a zone of risk from 9 on would leave no room for them."""
    known = scores(100, semantic=Semantic(embedder="words", bands=Bands(risk=risk, target=0.5)))
    (figure,) = [each for each in run_page.figures(known, verdict()) if "ΔS of" in each.title]
    root = parsed(figure.drawing)
    assert bool(shapes(root, "text", "name bad")) is is_drawn
    assert (f"0 at risk, which begins at {risk:g}" in figure.note) is not is_drawn
    assert all(float(each.get("x") or 0) <= charts.WIDTH for each in root.iter("text"))


def test_a_chart_without_data_is_not_drawn() -> None:
    bare = scores(0, metrics={}, per_question=None, states={}, slices={})
    assert run_page.figures(bare, verdict()) == []


@cases("words", ["λ of questions, computed", "Questions by label",
                                   "Metrics by k", "ΔS of questions", "by type"])  # fmt: skip
def test_every_chart_that_has_data_is_there(words: str) -> None:
    made = run_page.figures(scores(20), verdict(gate_result()))
    (figure,) = [each for each in made if words in f"{each.title} {each.note}"]
    assert re.match(r'<svg [^>]*role="img" aria-label="[^"]+', figure.drawing)
