"""The documentation site as files: nothing is loaded from elsewhere, and every link arrives."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.support.site import built, needs_site

pytestmark = needs_site

# What a browser fetches by itself; a link that somebody has to follow is not among them.
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
FETCHED_BY_CSS = re.compile(r"""url\(\s*['"]?(?!data:|#)([^'")]+)|@import\s+['"]([^'"]+)""")


class Page(HTMLParser):
    """What a page of the site loads, links to, and can be reached by."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.headings = 0
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.headings += tag == "h1"
        self.ids |= {values["id"]} if "id" in values else set()
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif LOADING.get(tag) in values:
            self.loads.append(values[LOADING[tag]])
        if "style" in values:
            self.loads += fetched(values["style"])


def fetched(css: str) -> list[str]:
    return [first or second for first, second in FETCHED_BY_CSS.findall(css)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    loaded = [(path, target) for path, page in pages.items() for target in page.loads]
    loaded += [(path, each) for path in site.rglob("*.css") for each in fetched(path.read_text())]
    assert len(loaded) > 5 * len(pages)
    outside = [
        f"{path.relative_to(site)} loads {target}"
        for path, target in loaded
        if re.match(r"[a-z]+:|//", target) or not (path.parent / urlpath(target)).exists()
    ]
    assert not outside


def urlpath(target: str) -> str:
    return unquote(urldefrag(target).url.partition("?")[0])


def test_every_link_and_every_fragment_arrives(site: Path, pages: dict[Path, Page]) -> None:
    lost = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            reached = (path.parent / urlpath(link)).resolve() if urlpath(link) else path
            fragment = unquote(urldefrag(link).fragment)
            if not reached.is_file() or (fragment and fragment not in pages[reached].ids):
                lost.append(f"{path.relative_to(site)} links to {link}")
    assert not lost


def test_every_page_of_the_project_has_one_heading(site: Path, pages: dict[Path, Page]) -> None:
    found = {str(path.relative_to(site)): page.headings for path, page in pages.items()}
    assert "search.html" in found
    del found["search.html"]  # Sphinx's own
    assert {name for name, count in found.items() if count != 1} == set()
    assert {"index.html", "glossary.html", "tutorial/first-gate.html"} <= set(found)


def test_the_front_page_says_what_it_is_and_how_to_begin(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "index.html").read_text("utf-8"))
    assert "ragauge scores the traces of a RAG system against a gold set" in text
    assert "ragauge demo" in text
    assert "ragauge score eval/gold.jsonl runs/trace.jsonl" in text


def test_the_search_index_is_a_script_so_that_it_works_from_disk(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")
    assert '"glossary"' in index


def test_options_keep_their_two_dashes(site: Path) -> None:
    text = (site / "reference" / "errors.html").read_text("utf-8")
    assert "unless told to with --force" in text
