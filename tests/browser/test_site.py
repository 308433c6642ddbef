"""The documentation site as a reader uses it: a real Chromium, the files on disk, no network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import website
from tests.browser.chromium import WITHOUT_CHROMIUM
from tests.support.site import ROOT, built, needs_site

pytestmark = [*needs_site, WITHOUT_CHROMIUM]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory)


WIDE, NARROW = ({"width": width, "height": 900} for width in (1280, 400))
each_width = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "400"])


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A page that must not complain of anything, nor ask anybody but the disk."""
    opened = chromium.new_page(viewport=WIDE)
    opened.set_default_timeout(10_000)
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda sent: asked.append(sent.url))
    yield opened
    opened.close()
    assert [each for each in said if not each.startswith("log: ")] == []
    assert asked
    assert [url for url in asked if not url.startswith("file:")] == []


def test_a_word_is_found_and_its_page_opened(page: Any, site: Path) -> None:
    page.goto(f"{site.as_uri()}/search.html?q=waiver")
    results = page.locator("#search-results ul.search li")
    results.filter(has_text="Waiver").first.wait_for()
    page.get_by_role("link", name="Set gates, and waive one for a while").first.click()
    page.wait_for_url("**/how-to/gates-and-waivers.html*")
    assert page.locator("h1").inner_text().startswith("Set gates")


def test_greek_letters_are_found(page: Any, site: Path) -> None:
    page.goto(f"{site.as_uri()}/search.html?q=λ")
    page.locator("#search-results ul.search li").first.wait_for()
    assert page.locator("#search-results").get_by_text("λ from ids").count() > 0


@each_width
def test_the_sidebar_leads_through_chapters_in_the_order_of_the_front_page(
    page: Any, site: Path, size: Any
) -> None:
    page.set_viewport_size(size)
    page.goto(f"{site.as_uri()}/index.html")
    if size is NARROW:
        page.locator(".mobile-header label[for=__navigation]").click()
    tops = page.locator(".sidebar-tree > ul > li > a")
    front = (ROOT / website.FRONT).read_text("utf-8")
    assert tops.all_inner_texts() == [chapter.title for chapter in website.chapters(front)]
    tops.filter(has_text="Explanation").click()
    page.wait_for_url("**/explanation/index.html")
    page.locator("article").get_by_role("link", name="Why ids and spans").click()
    page.wait_for_url("**/explanation/why-ids-and-spans.html")


# What sticks out of the text at the right, and cannot be reached by scrolling a part of it.
STICKING_OUT = """() => {
  const article = document.querySelector("article");
  if (article === null) return [];
  const limit = article.getBoundingClientRect().right + 8;
  const scrolls = (part) => ["auto", "scroll"].includes(getComputedStyle(part).overflowX);
  const held = (part) => part !== article && (scrolls(part) || held(part.parentElement));
  return [...article.querySelectorAll("*")]
    .filter((part) => part.getBoundingClientRect().right > limit && !held(part))
    .map((part) => part.textContent.slice(0, 60));
}"""


def test_what_sticks_out_of_a_page_is_noticed(page: Any, site: Path) -> None:
    page.goto(f"{site.as_uri()}/glossary.html")
    wide = '<div><div style="width: 3000px">wide</div></div>'
    page.evaluate("html => document.querySelector('article').innerHTML += html", wide)
    assert page.evaluate(STICKING_OUT) == ["wide"]
    page.evaluate("document.querySelector('article > div:last-child').style.overflowX = 'auto'")
    assert page.evaluate(STICKING_OUT) == []


def test_tables_and_blocks_scroll_by_themselves_on_every_page(page: Any, site: Path) -> None:
    wide = []
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri(), wait_until="domcontentloaded")
        for size in (WIDE, NARROW):
            page.set_viewport_size(size)
            found = page.evaluate(STICKING_OUT)
            wide += [f"{path.relative_to(site)} at {size['width']}: {text}" for text in found[:3]]
    assert wide == []


@each_width
def test_the_theme_can_be_switched(page: Any, site: Path, size: Any) -> None:
    page.set_viewport_size(size)
    page.goto(f"{site.as_uri()}/glossary.html")
    colours = set()
    for _ in range(3):  # as the system has it, light, dark
        page.locator(".theme-toggle:visible").first.click()
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
