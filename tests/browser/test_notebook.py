"""What a notebook shows of a result, in a real Chromium: readable in light and dark, and inert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragauge import compare, gate, score
from tests.browser.chromium import NEEDS_CHROMIUM
from tests.support.command import GOLD, TRACES

pytestmark = NEEDS_CHROMIUM
pytest.importorskip("playwright.sync_api", reason="playwright is not there")

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{x}}\u202e"
BAD = {"retrieved_ids": ["zz"], "answer_json": {"claim": "Yes.", "citations": ["zz"]}}


@pytest.mark.parametrize(
    ("theme", "ink"), [("white", "rgb(0, 0, 0)"), ("black", "rgb(255, 255, 255)")]
)
def test_results_are_seen_and_run_nothing(
    chromium: Any, tmp_path: Path, theme: str, ink: str
) -> None:
    gold = [{**GOLD[0], "qid": HOSTILE}, *GOLD[1:]]
    good = [{**TRACES[0], "qid": HOSTILE}, *TRACES[1:]]
    bad = [{**TRACES[0], **BAD, "qid": HOSTILE}, *TRACES[1:]]
    scores = score(gold, bad)
    results = (
        scores,
        gate(scores, {HOSTILE: {"metric": "chr", "threshold": 0.9}}),
        compare(good, bad, gold=gold, names=(HOSTILE, HOSTILE)),
    )
    cells = "".join(f"<section>{result._repr_html_()}</section>" for result in results)
    color = "black" if theme == "white" else "white"
    path = tmp_path / "notebook.html"
    style = f"background:{theme};color:{color}"
    path.write_text(f'<meta charset="utf-8"><body style="{style}">{cells}', encoding="utf-8")
    page = chromium.new_page()
    said: list[str] = []
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.extend([request.url] * ("notebook" not in request.url)))
    page.goto(path.as_uri())
    sections = page.locator("section").all_inner_texts()
    assert "FAIL: precision, citation hit rate" in sections[0]
    assert ">= 0.9" in sections[1]
    assert "3 questions compared" in sections[2]
    for text in sections:
        assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in text
    # Text takes the colour of the notebook: it can be read on any background.
    cell = page.locator("section td, section th").first
    assert cell.evaluate("cell => getComputedStyle(cell).color") == ink
    assert page.locator("section :is(script, img, style, link, iframe)").count() == 0
    assert said == []
    page.close()
