"""`gold edit` as a person uses it: a real command, a real Chromium, the file on disk."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge.corpus.build import build
from tests.browser.chromium import NEEDS_CHROMIUM

GUIDE = "# Größe\n\nDie Größe 🙂 zählt.\n\n## Port\n\nThe port is 8080.\n\n👩‍💻 end\n"
GOLD: list[dict[str, Any]] = [
    {"qid": "A", "question": "", "relevant": [], "draft": True},
    {"qid": "B", "question": "x"},
]

pytestmark = [
    *NEEDS_CHROMIUM,
    pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a signal"),
]


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(GUIDE, "utf-8", newline="\n")
    (tmp_path / "docs" / "other.txt").write_text("Other text.\n", "utf-8", newline="\n")
    build([tmp_path / "docs"], tmp_path / "corpus", workers=1)
    write(tmp_path, GOLD)
    source = str(Path(ragauge.__file__).resolve().parents[1])
    command = subprocess.Popen(
        [sys.executable, "-m", "ragauge", "gold", "edit", "gold.jsonl", "--corpus", "corpus"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source, "PYTHONUTF8": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert command.stdout is not None
    try:
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", command.stdout.readline())
        assert found is not None
        assert command.stdout.readline() == "Ctrl-C ends\n"
        yield found[0]
    finally:
        command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=20)
    assert (out, err, command.returncode) == ("ended\n", "", 0)


@pytest.fixture
def page(chromium: Any, url: str) -> Iterator[Any]:
    """The page, loaded; it must not complain of anything, nor ask anybody else."""
    opened = chromium.new_page(viewport={"width": 1300, "height": 800})
    opened.set_default_timeout(10_000)
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("dialog", lambda dialog: dialog.accept())
    opened.goto(url)
    opened.get_by_text("2 items", exact=True).wait_for()
    yield opened
    opened.close()
    home = url.partition("?")[0]
    assert all(each.startswith(home) for each in asked)
    assert [each for each in said if "409" not in each and "400" not in each] == []


def write(folder: Path, rows: list[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "gold.jsonl").write_text(text, "utf-8")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "gold.jsonl").read_text("utf-8").splitlines()]


def save(page: Any) -> None:
    page.get_by_role("button", name="Save").click()
    page.get_by_text(re.compile("^Saved")).wait_for()


def word(page: Any, text: str, find: str) -> tuple[float, float]:
    """The middle of a word on the screen: the word is sought, and its box asked for."""
    page.get_by_label("Find and select text").fill(find)
    page.get_by_role("button", name="Find", exact=True).click()
    box = page.evaluate(
        "() => { const box = document.getSelection().getRangeAt(0).getBoundingClientRect();"
        " return [box.left + box.width / 2, box.top + box.height / 2]; }"
    )
    page.locator("#selected", has_text=text).wait_for()
    return float(box[0]), float(box[1])


def test_a_draft_is_completed_with_the_mouse(page: Any, tmp_path: Path) -> None:
    """A double click selects a word behind umlauts and an emoji: bytes 28 to 34, not 23 to 28."""
    middle = word(page, "zählt", "zählt")
    page.mouse.dblclick(*middle)
    page.get_by_text("Selected: bytes 28 to 34, “zählt”", exact=True).wait_for()
    page.get_by_role("button", name="Add as evidence").click()
    page.locator("mark.evidence", has_text="zählt").first.wait_for()
    page.get_by_label("Question").fill("Was tut die Größe?")
    page.get_by_label("Expected").select_option("answer")
    page.get_by_label("Still a draft").uncheck()
    save(page)
    first, second = rows(tmp_path)
    entry = first["relevant"][0]
    assert (entry["start"], entry["end"], entry["quote"]) == (28, 34, "zählt")
    assert {**first, "relevant": []} == {
        "qid": "A", "question": "Was tut die Größe?", "relevant": [], "answerable": True,
    }  # fmt: skip
    assert second == GOLD[1]


def test_the_mouse_is_drawn_over_an_emoji(page: Any, tmp_path: Path) -> None:
    """From the blank before the emoji to the dot behind `zählt`; blanks at the ends go."""
    left, right = word(page, "🙂", "🙂"), word(page, ".", "t.")
    page.mouse.move(left[0] - 14, left[1])
    page.mouse.down()
    page.mouse.move(right[0] + 12, right[1], steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Add as evidence").click()
    page.locator("mark.evidence", has_text="zählt").first.wait_for()
    save(page)
    entry = rows(tmp_path)[0]["relevant"][0]
    assert entry["quote"] == "🙂 zählt."
    assert (entry["start"], entry["end"]) == (23, 35)


def test_half_a_character_is_selected_whole(page: Any, tmp_path: Path) -> None:
    """Scripts and some keyboards can put an end between the two UTF-16 halves of an emoji."""
    start = GUIDE.encode("utf-16-le").index("🙂".encode("utf-16-le")) // 2
    page.evaluate(
        "(at) => { const node = document.getElementById('text').firstChild;"
        " document.getSelection().setBaseAndExtent(node, at + 1, node, at + 3); }",
        start,
    )
    page.get_by_text("bytes 23 to 27").wait_for()
    page.get_by_role("button", name="Add as evidence").click()
    page.locator("mark.evidence").first.wait_for()
    save(page)
    assert rows(tmp_path)[0]["relevant"][0]["quote"] == "🙂"


def test_the_keyboard_is_enough(page: Any, tmp_path: Path) -> None:
    """Find, add, mark a negative and save, without the mouse."""
    page.get_by_label("Find and select text").focus()
    page.keyboard.type("👩‍💻 end")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Add as evidence").focus()
    page.keyboard.press("Enter")
    page.locator("#evidence .quote", has_text="👩‍💻 end").wait_for()
    page.get_by_label("Find and select text").fill("port is")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Mark as negative").focus()
    page.keyboard.press("Space")
    page.locator("#negatives", has_text="guide.md#S.1.1.p.Bk001").wait_for()
    page.keyboard.press("Control+s")
    page.get_by_text(re.compile("^Saved")).wait_for()
    row = rows(tmp_path)[0]
    assert row["relevant"][0]["quote"] == "👩‍💻 end"
    raw = GUIDE.encode()
    start = raw.index("👩‍💻 end".encode())
    assert (row["relevant"][0]["start"], row["relevant"][0]["end"]) == (start, len(raw) - 1)
    assert row["negatives"] == ["guide.md#S.1.1.p.Bk001"]


def test_evidence_and_negatives_are_removed(page: Any, tmp_path: Path) -> None:
    for text, name in (("Die Größe", "Add as evidence"), ("8080", "Mark as negative")):
        word(page, text, text)
        page.get_by_role("button", name=name).click()
    page.locator("#negatives", has_text="Bk001").wait_for()
    save(page)
    assert len(rows(tmp_path)[0]["relevant"]) == len(rows(tmp_path)[0]["negatives"]) == 1
    page.get_by_role("button", name="Remove evidence 1").click()
    page.get_by_role("button", name=re.compile("^Remove negative")).click()
    page.locator("#negatives", has_text="none yet").wait_for()
    save(page)
    assert rows(tmp_path)[0] == {**GOLD[0], "negatives": []}


def test_a_block_with_evidence_is_no_negative(page: Any) -> None:
    word(page, "Größe", "Die Größe")
    page.get_by_role("button", name="Add as evidence").click()
    page.locator("mark.evidence").first.wait_for()
    word(page, "zählt", "zählt")
    page.get_by_role("button", name="Mark as negative").click()
    page.get_by_text("This block holds evidence, so it is no negative").wait_for()


def test_a_change_on_disk_is_shown_and_not_written_over(page: Any, tmp_path: Path) -> None:
    page.get_by_label("Question").fill("mine")
    theirs = [{**GOLD[0], "question": "theirs"}, GOLD[1]]
    write(tmp_path, theirs)
    page.get_by_role("button", name="Save").click()
    page.get_by_text(re.compile("^Not saved: the file has changed on disk")).wait_for()
    assert page.get_by_label("Question").input_value() == "mine"
    assert rows(tmp_path) == theirs
    page.reload()
    page.get_by_text("2 items", exact=True).wait_for()
    assert page.get_by_label("Question").input_value() == "theirs"


def test_other_documents_and_items_are_opened(page: Any) -> None:
    page.get_by_label("Document", exact=True).select_option("other.txt")
    page.locator("#text", has_text="Other text.").wait_for()
    page.get_by_role("button", name=re.compile("^B")).click()
    page.get_by_text("B, line 2").wait_for()
    page.get_by_label("Find items").fill("A")
    assert page.locator("#items li").count() == 1
