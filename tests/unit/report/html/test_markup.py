"""Markup: whatever goes into a page is text there, and no template can make anything else of it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from tests.support.cases import cases

import ragauge
from ragauge.report.html.markup import (
    breakable,
    coordinate,
    environment,
    raw_text,
    shortened,
    svg,
    visible,
)

REPORT = Path(ragauge.__file__).parent / "report"
TEMPLATES = sorted((REPORT / "html" / "templates").iterdir())
EVERY_TEMPLATE = cases("path", TEMPLATES, ids=lambda path: path.name)


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


def read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader


def rendered(source: str, **context: object) -> str:
    return environment().from_string(source).render(**context)


def test_a_template_escapes_texts_and_attributes() -> None:
    source = '<p title="{{ title }}" class="{{ tone }}">{{ text }}{{ number }}</p>'
    assert rendered(source, title="\"'>", text="<b>&", number=1, tone=None) == (
        '<p title="&#34;&#39;&gt;" class="">&lt;b&gt;&amp;1</p>'
    )


def test_a_drawing_escapes_texts_and_attributes() -> None:
    inner = svg("title", "<b>&")
    assert svg("g", inner, "<", class_='"x', text_anchor="end", x=1.25, y=2) == (
        '<g class="&#34;x" text-anchor="end" x="1.2" y="2"><title>&lt;b&gt;&amp;</title>&lt;</g>'
    )


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="is undefined"):
        rendered("{{ missing }}")


@given(st.text(), st.text())
def test_any_text_is_one_text_in_one_element(text: str, title: str) -> None:
    for html in (
        rendered('<p title="{{ title }}">{{ text }}</p>', text=text, title=title),
        svg("p", text, title=title),
    ):
        reader = read(html)
        assert reader.tags == ["p"]
        assert reader.text == visible(text)
        assert reader.attributes == [("title", visible(title))]


@given(st.text())
def test_any_name_can_be_broken_and_is_text(name: str) -> None:
    reader = read(f"<p>{breakable(name)}</p>")
    assert set(reader.tags) <= {"p", "wbr"}
    assert reader.text == visible(name)


def test_a_name_is_broken_behind_dots_and_underscores() -> None:
    assert breakable("a.b_c@5") == "a.<wbr>b_<wbr>c@5"


@EVERY_TEMPLATE
def test_templates_have_no_attributes_that_could_act_or_lead_out(path: Path) -> None:
    """Values in attributes stand between double quotes, where what is escaped cannot end them."""
    source = path.read_text("utf-8")
    if path.name.startswith("notebook_"):
        # A notebook takes style sheets away; what styles are made of are constants of the template.
        constant = r"\{\{ (?:parts\.)?[A-Z]+(?:\[tone\]| if is_number else LEFT)? \}\}"
        source = re.sub(rf'\sstyle="(?:[^"{{}}]|{constant})*"', "", source)
    assert not re.search(r"\s(style|src|srcdoc|action|formaction|on\w+)\s*=", source, re.IGNORECASE)
    assert all(link.startswith("#") for link in re.findall(r'href="?([^"\s>]*)', source))
    assert not re.search(r"=\s*'?\{\{|='", re.sub(r"\{%.*?%\}", "", source, flags=re.DOTALL))


@EVERY_TEMPLATE
def test_templates_cannot_forget_to_escape(path: Path) -> None:
    """`safe` and a block without escaping would let text through; `e` would skip the controls."""
    source = path.read_text("utf-8")
    assert not re.search(r"\|\s*(safe|e|escape|forceescape|xmlattr|tojson)\b|autoescape", source)


def test_only_the_module_of_markup_makes_it_from_text() -> None:
    """`Markup(...)` elsewhere would be a place that can forget to escape."""
    makers = [
        path.name
        for path in REPORT.rglob("*.py")
        if re.search(r"\bMarkup\(", path.read_text("utf-8"))
    ]
    assert makers == ["markup.py"]


def test_the_script_makes_text_nodes_only() -> None:
    script = (REPORT / "html" / "report.js").read_text("utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                 "Function(", "fetch(", "XMLHttpRequest", "import("):  # fmt: skip
        assert word not in script, word


@pytest.mark.parametrize("text", ["</script>", "x</style", "<!-- x"])
def test_raw_text_that_could_end_its_element_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="could end the element"):
        raw_text(text)


def test_controls_are_seen_and_do_nothing() -> None:
    text = "a\x00b\x1b[31m\u202ec\ud800d\r\ne\tf\x85"
    assert visible(text) == "a\\x00b\\x1b[31m\\u202ec\\ud800d\ne\tf\\x85"


@cases(
    ("text", "expected"),
    [("a\n b", "a b"), ("abcdef", "abcd…"), ("abcd", "abcd"), (" " * 50 + "x", "…")],
)
def test_long_texts_are_cut_and_show_it(text: str, expected: str) -> None:
    assert shortened(text, 4) == expected


@cases(("value", "expected"), [(1.0, "1"), (1.25, "1.2"), (-0.01, "0"), (0.5, "0.5"), (6, "6")])
def test_coordinates_have_one_decimal_where_they_need_one(value: float, expected: str) -> None:
    assert coordinate(value) == expected
