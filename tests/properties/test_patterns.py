"""Patterns that were made linear find what the plain ones before them found."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus import anchors
from ragauge.corpus.canonical_text import lines_of
from ragauge.corpus.parsers import markdown, pdf_blocks, rst
from ragauge.formats import fast_rows
from ragauge.formats.trec import lines
from ragauge.gates import parse
from ragauge.report.comparison import table
from ragauge.targets.openai import answer_of
from ragauge.text import citations_in
from tests.support.effort import examples


def words(*parts: str) -> st.SearchStrategy[str]:
    """Texts of a few parts, in any order and number."""
    return st.lists(st.sampled_from(parts), max_size=12).map("".join)


CITATIONS = re.compile(r"citations\s*:\s*\[([^\]]*)\]", re.IGNORECASE)
ANSWERS = words(
    "citations", "CITATIONS", "c\u0131tat\u0130on\u017f", ":", "[", "]", " ", "\n", "a", "b,", "."
)


@given(answer=ANSWERS)
@examples(500)
def test_citations_are_those_of_the_pattern(answer: str) -> None:
    """The first list that is closed, however many are opened."""
    match = CITATIONS.search(answer)
    listed = None if match is None else [part for part in re.split(r"[,\s]+", match[1]) if part]
    assert citations_in(answer) == listed


@given(answer=ANSWERS)
@examples(300)
def test_the_claim_is_the_answer_without_its_line_of_citations(answer: str) -> None:
    """With the stop and the line end behind it."""
    line = re.compile(r"citations\s*:\s*\[[^\]]*\][ \t.]*\n?", re.IGNORECASE)
    assert answer_of(answer, [])["claim"] == line.sub("", answer, count=1).strip()


ODD_NAME = re.compile(rb'(?:[\x80-\xff]|\\u)[^"]*"\s*:')


@given(text=words('"', "é", "\\u", "\\", "u", ":", " ", "a", ",", "{"))
@examples(500)
def test_odd_names_are_those_of_the_pattern(text: str) -> None:
    """A row is plain unless a name has a letter beyond ASCII, plain or escaped."""
    data = text.encode()
    plain = (data.isascii() and b"\\u" not in data) or ODD_NAME.search(data) is None
    assert fast_rows._is_plain(data) == plain


TITLE = re.compile(r"""^title:[ \t]+(["']?)(.*?)\1[ \t]*$""", re.MULTILINE)


@given(text=words("title:", " ", "\t", "'", '"', "a", "b: c", "\n"))
@examples(500)
def test_titles_of_front_matter_are_those_of_the_pattern(text: str) -> None:
    """Quotes around a title are no part of it."""
    match = TITLE.search("\n".join(lines_of(text)))
    assert markdown._front_title(text) == (match[2].strip() if match else None)


def spans(pattern: Any) -> Callable[[str], object]:
    """Where a pattern is in a text."""
    return lambda text: [(match.span(), match.groups()) for match in pattern.finditer(text)]


def whole(pattern: re.Pattern[bytes]) -> Callable[[str], object]:
    return lambda text: pattern.fullmatch(text.encode()) is not None


def groups(pattern: re.Pattern[str]) -> Callable[[str], object]:
    """What a pattern takes out of a line; nothing is the empty text."""

    def taken(text: str) -> object:
        match = pattern.match(text)
        return match and [group or "" for group in match.groups()]

    return taken


def first(pattern: re.Pattern[str]) -> Callable[[str], object]:
    def taken(text: str) -> object:
        match = pattern.search(text)
        return match and match.span()

    return taken


def is_in(pattern: re.Pattern[str]) -> Callable[[str], object]:
    return lambda text: pattern.search(text) is not None


ITEM = re.compile(r"\s*([A-Za-z](?:[\w.@→←×]|<>)*)\s*(>=|<=|=)\s*(\S.*?)\s*\Z")
LIMIT = re.compile(r"\s*(>=|<=)?\s*(\S.*?)\s*\Z")
DIRECTIVE = re.compile(r"\.\.\s+([\w][\w:.+-]*?)\s*::(?:\s+(.*?))?\s*$")
OPTION = re.compile(r"\s+:([\w-]+(?: [\w-]+)*):(?:\s+(.*?))?\s*$")
DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
BORDER = re.compile(rb"[\s+|=:-]*[+=-][\s+|=:-]*")
LAST_WORD = re.compile(rf"{pdf_blocks._WORD.pattern}$")
AROUND_CODE = re.compile(rb"\s*(?:`{3,}[^`]*|~{3,}.*|-{3}|\+{3}|\.\.\s.*::.*|:[\w-]+:.*)")
AROUND_TABLE = re.compile(rb"\s*(?:\.\.\s.*::.*|:(?!header:)[\w-]+:.*)")
CASES = {
    "around code": (whole(AROUND_CODE), whole(anchors._AROUND_CODE), ".: a-`~"),
    "around a table": (whole(AROUND_TABLE), whole(anchors._AROUND_TABLE), ".: a\n"),
    "border": (whole(BORDER), whole(anchors._BORDER), "+-|: =x"),
    "last word": (first(re.compile(r"[\w.]*\Z")), first(anchors._LAST_WORD), "a.b -"),
    "last word of a line": (first(LAST_WORD), first(pdf_blocks._LAST_WORD), "aé-1_ \n"),
    "leaders": (is_in(re.compile(r"(?:\.\s?){4,}\s*\w*$")), is_in(pdf_blocks.LEADERS), "... a1"),
    "target": (spans(re.compile(r"\s*<[^<>]*>\s*$")), spans(rst._TARGET), " <>a\n"),
    "large": (spans(re.compile(r"\d{3,}\.\d{4}")), spans(table._LARGE), "0123. -"),
    "decimal": (whole(DECIMAL), whole(lines._DECIMAL), "019.+-eEx"),
    "item": (groups(ITEM), lambda text: groups(parse._ITEM)(text.strip()), "a. <>=1\n"),
    "limit": (groups(LIMIT), lambda text: groups(parse._LIMIT)(text.strip()), "<>= .1\n"),
    "directive": (groups(DIRECTIVE), groups(rst._DIRECTIVE), ".a: -"),
    "option": (groups(OPTION), groups(rst._OPTION), " :a-x"),
}


@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
@examples(200)
def test_other_patterns_find_what_they_found(case: str, data: st.DataObject) -> None:
    """On any short text of the characters that they are about."""
    old, new, alphabet = CASES[case]
    begin = {"directive": ".. a::", "option": " :a:"}.get(case, ".. " if "around" in case else "")
    text = data.draw(st.sampled_from(["", begin])) + data.draw(st.text(alphabet, max_size=14))
    assert new(text) == old(text)
