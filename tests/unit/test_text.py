"""Rules over plain text: refusal token, citations inside answers, and needles of claims."""

from __future__ import annotations

from ragauge.text import (
    REFUSAL_TOKEN,
    citations_in,
    contains_word,
    normalise,
    phrase_needles,
    short_claims,
    substring_needles,
)
from tests.support.cases import cases


@cases(
    "said",
    ["not in context", "  Not in context\n", "NOT IN CONTEXT", "\u00a0not in context\u2003"],
)
def test_the_refusal_token_is_known_after_strip_and_lower(said: str) -> None:
    """Case and blanks around it do not matter."""
    assert normalise(said) == REFUSAL_TOKEN


@cases(
    "said",
    [
        "not in context.",
        "not  in context",
        "not in\u00a0context",
        "'not in context'",
        "Sorry, not in context",
        "\ufeffnot in context",
    ],
)
def test_anything_else_is_an_answer(said: str) -> None:
    """The token is exact: a full stop makes an answer of it."""
    assert normalise(said) != REFUSAL_TOKEN


def test_nothing_said_is_the_empty_text() -> None:
    """None and blanks are the same to the rules."""
    assert normalise(None) == normalise("") == normalise(" \n\t") == ""


@cases(
    ("answer", "expected"),
    [
        ("- claim\n- citations: [p1#1]", ["p1#1"]),
        ("citations: [a, b]", ["a", "b"]),
        ("citations: [a b\tc\nd]", ["a", "b", "c", "d"]),
        ("citations: [ a ,, b , ]", ["a", "b"]),
        ("Citations:[a]", ["a"]),
        ("CITATIONS  :\n [a,b]", ["a", "b"]),
        ("citations: []", []),
        ("citations: [ ]", []),
        ("citations: [a] and citations: [b]", ["a"]),
        ("see citations: [a, a]", ["a", "a"]),
        ("citations: [[a], b]", ["[a"]),
        ("citations: ['a', \"b\"]", ["'a'", '"b"']),
        ("ciTATions: [P1#1]", ["P1#1"]),
    ],
)
def test_citations_are_found_inside_an_answer(answer: str, expected: list[str]) -> None:
    """The first list counts; commas and blanks separate; the keyword is of any case."""
    assert citations_in(answer) == expected


@cases(
    "answer",
    ["", "no list", "citations: a, b", "citation: [a]", "citations [a]", "citations: [a", "[a]"],
)
def test_an_answer_without_a_list_has_none(answer: str) -> None:
    """None is not the empty list: the answer does not have the agreed form."""
    assert citations_in(answer) is None


def test_substring_needles_are_lowered_and_of_five_characters() -> None:
    """The length is taken after lowering: `İabc` has 4 characters and becomes 5."""
    claims = ["Rejects NULL Keys", "null", "keys.", "", "İabc", "İab", "  x  "]
    assert substring_needles(claims) == (
        "rejects null keys",
        "keys.",
        "i\u0307abc",
        "  x  ",
    )


def test_substring_needles_keep_blanks_and_order() -> None:
    """A claim is taken whole, as it stands."""
    assert substring_needles(["b c d ", " a b c"]) == ("b c d ", " a b c")
    assert substring_needles([]) == ()


@cases(
    ("claim", "expected"),
    [
        ("X is a mapping.", ("x is a mapping",)),
        ("Y: unrelated to X", ("unrelated to x",)),
        ("one two, three four", ("one two", "three four")),
        ("abcd", ()),
        ("ab-cd", ("ab-cd",)),
        ("-abcd", ()),
        ("--a b c--", ("a b c--",)),
        ("a    ", ()),
        ("a\tbc-", ("a\tbc-",)),
        ("Größe und Maß", ("e und ma",)),
        ("42-17 (see 4.2)", ("42-17", "see 4")),
        ("", ()),
        ("?!", ()),
    ],
)
def test_phrase_needles_are_runs_of_letters_digits_hyphens_and_blanks(
    claim: str, expected: tuple[str, ...]
) -> None:
    """A run begins with a letter or digit and has five characters, also without its blanks."""
    assert phrase_needles([claim]) == expected


def test_phrase_needles_of_several_claims_are_joined() -> None:
    """Any phrase of any claim is enough, so all go into one list."""
    assert phrase_needles(["alpha beta", "x", "gamma delta"]) == ("alpha beta", "gamma delta")


@cases(
    ("word", "text", "stands"),
    [
        ("8080", "the port is 8080.", True),
        ("8080", "port:8080,then", True),
        ("8080", "18080", False),
        ("8080", "8080a", False),
        ("80", "80.5 percent", False),
        ("80", "1,80 or 1.80", False),
        ("80", "1,80 or 80", True),
        ("80", "it is 80, 90 or 100", True),
        ("yes", "yes", True),
        ("yes", "yesterday", False),
        ("eu", "the eu's law", True),
        ("eu", "the_eu_law", True),
        ("eu", "neutral", False),
        ("c++", "written in c++.", True),
        ("c++", "c++17", False),
        (".5", "1.5", False),
        ("€5", "for €5", True),
        ("\u00e9", "caf\u00e9", False),
        ("no", "", False),
    ],
)
def test_short_claims_stand_by_themselves(word: str, text: str, *, stands: bool) -> None:
    """No letter or digit touches the word, and no digit that a point or comma joins to it."""
    assert contains_word(text, word) is stands


def test_short_claims_are_lowered_stripped_and_under_five_characters() -> None:
    """Five characters are a substring; what is blank is no word."""
    assert short_claims(["EU", " C++", "8080", "8080 ", "12345", "", "  "]) == ("eu", "c++", "8080")
