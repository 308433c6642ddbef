"""Markup: whatever goes into an element is text there, and nothing else can be made of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ragauge
from ragauge.report.html.markup import (
    Markup,
    coordinate,
    element,
    own_text,
    shortened,
    together,
    visible,
)

SOURCE = Path(ragauge.__file__).parent


class _Reader(HTMLParser):
    """Counts the elements of a page and collects its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def read(made: Markup) -> _Reader:
    reader = _Reader()
    reader.feed(made.source)
    reader.close()
    return reader


def test_an_element_escapes_its_text_and_its_attributes() -> None:
    made = element("p", "<b>&", title="\"'>", class_="x", aria_label="y", hidden=True, id=None)
    assert made.source == (
        '<p title="&quot;&#39;&gt;" class="x" aria-label="y" hidden>&lt;b&gt;&amp;</p>'
    )


def test_elements_hold_elements_numbers_lists_and_nothing() -> None:
    inner = element("b", 1)
    assert element("p", inner, None, [inner, "<"]).source == "<p><b>1</b><b>1</b>&lt;</p>"
    assert together([inner, "&"]).source == "<b>1</b>&amp;"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("style", "x"), ("onclick", "x"), ("ONCLICK", "x"), ("src", "x"), ("href", "javascript:x"),
        ("href", "https://example.com"), ('x="', "y"), ("a b", "y"),
    ],
)  # fmt: skip
def test_attributes_that_could_act_are_refused(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"is not for this page|leads to a place|is no name"):
        element("a", **{name: value})


def test_a_link_leads_to_a_place_on_the_page() -> None:
    assert element("a", href="#gates").source == '<a href="#gates"></a>'


@pytest.mark.parametrize("text", ["</script>", "x</style", "<!-- x"])
def test_own_text_that_could_end_its_element_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="could end it"):
        own_text("script", text)


def test_controls_are_seen_and_do_nothing() -> None:
    text = "a\x00b\x1b[31m\u202ec\ud800d\r\ne\tf\x85"
    assert visible(text) == "a\\x00b\\x1b[31m\\u202ec\\ud800d\ne\tf\\x85"


@given(st.text(), st.text())
def test_any_text_is_one_text_in_one_element(text: str, title: str) -> None:
    reader = read(element("p", text, title=title))
    assert reader.tags == ["p"]
    assert reader.text == visible(text)
    assert reader.attributes == [("title", visible(title))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n b", "a b"), ("abcdef", "abcd…"), ("abcd", "abcd"), (" " * 50 + "x", "…")],
)
def test_long_texts_are_cut_and_show_it(text: str, expected: str) -> None:
    assert shortened(text, 4) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, "1"), (1.25, "1.2"), (-0.01, "0"), (0.5, "0.5")]
)
def test_coordinates_have_one_decimal_where_they_need_one(value: float, expected: str) -> None:
    assert coordinate(value) == expected


def test_only_the_module_of_markup_makes_it_from_text() -> None:
    """`Markup(...)` elsewhere would be a place that can forget to escape."""
    places = [*(SOURCE / "page").glob("*.py"), SOURCE / "reports" / "html.py",
              SOURCE / "comparisons" / "html.py"]  # fmt: skip
    makers = [path.name for path in places if re.search(r"\bMarkup\(", path.read_text("utf-8"))]
    assert makers == ["markup.py"]


def test_the_script_makes_text_nodes_only() -> None:
    script = (SOURCE / "page" / "report.js").read_text("utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                 "Function(", "fetch(", "XMLHttpRequest", "import("):  # fmt: skip
        assert word not in script, word
