"""Short ways through an answer find the refusals that all patterns on all of it find."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragauge.scoring import refusals
from ragauge.scoring.refusals import LanguagePatterns, declines_as_a_whole, language_patterns
from ragauge.text import citation_list
from tests.support.cases import cases
from tests.support.effort import examples

LANGUAGES = language_patterns(("en", "de", "fr", "es"))
PIECES = (
    "i", "we", "cannot", "can't", "could not", "am unable to", "do not know", "don't", "find",
    "answer", "the context", "does not mention", "does not specify", "the documents", "sorry",
    "unfortunately", "not", "no information", "provided", "is not provided", "however", "but",
    "while it is old,", "the port is 8080", "it is", "so", "therefore", "please consult", "n/a",
    "as an ai", "based on", "if", "would need", "answer:", "final answer :", "citations: [a, b]",
    "[1]", "[2, 3]", "**", "`x`", "\\\\(", "\"i do not know\"", "1.", "- ", "kann ich nicht",
    "ich weiß es nicht", "leider", "je ne sais pas", "no lo sé", "aucune information",
)  # fmt: skip
ENDS = (" ", " ", " ", ". ", "; ", ", ", "\n", "  ", "\t", "\u00a0", "! ", "? ", "… ", ": ")
texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)), max_size=14).map(
    lambda parts: "".join(piece + end for piece, end in parts)
)


def plainly(text: str, language: LanguagePatterns) -> bool:
    """The rules without any short way: every pattern is asked of all of the answer."""
    plain = _plain(text, language)
    if len(plain) <= 120 and language.whole.match(plain.strip(" .!()[]-–")):
        return True
    if not refusals._has_stem(plain, language):
        return False
    texts = refusals._clause_texts(refusals._SENTENCE.split(plain), language)
    parts: list[Any] = []
    declined = False
    for clause_text in texts:
        kind = refusals._declines(clause_text, language)
        in_aside = bool(parts) and parts[-1].kind == "aside"
        in_aside = in_aside and bool(refusals._ITEM.match(clause_text))
        clause = refusals._clause(clause_text, kind, language, declined=declined, in_aside=in_aside)
        declined = declined or clause.kind in refusals._DECLINING
        parts.append(clause)
    return refusals._declining(parts)


def _plain(text: str, language: LanguagePatterns) -> str:
    listed = citation_list(text)
    if listed is not None:
        text = text[: listed.start] + text[listed.end :]
    text = refusals._MARKUP.sub("", text.translate(refusals._QUOTES))
    text = refusals._LABEL.sub("", refusals._BLANKS.sub(" ", text).strip())
    if '"' in text and not refusals._QUOTED.fullmatch(text):
        text = refusals._QUOTED.sub("it", text)
    for spelling, usual in language.replaces:
        text = text.replace(spelling, usual)
    return refusals._NUMBER.sub(r"\1) ", text.replace('"', ""))


@given(text=texts)
@examples(600)
def test_short_ways_find_the_same_refusals(text: str) -> None:
    for language in LANGUAGES:
        assert declines_as_a_whole(text, language) == plainly(text, language)


@cases(
    "text",
    [
        "i do  not know the answer to it",
        "i do\tnot know the answer to it",
        "i do\u00a0not know the answer to it",
        "i **do** not know the answer to it",
        "i do not [1] know the answer to it",
        "final answer: i do not know the answer to it",
        "i do not know it. citations: [the port is 8080]",
        "hello there; i do not know the answer to it",
    ],
)
def test_each_short_way_is_left_where_its_pattern_is_needed(text: str) -> None:
    english = LANGUAGES[0]
    assert declines_as_a_whole(text, english) == plainly(text, english)
    assert plainly("i do not know the answer to it", english)
