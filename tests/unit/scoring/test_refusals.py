"""Natural refusals: labelled answers in four languages, and what the rules make of one clause."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from ragauge.model.options import RefusalLanguage
from ragauge.scoring.refusal_languages import en
from ragauge.scoring.refusals import (
    LazyPattern,
    NaturalRefusals,
    declines_as_a_whole,
    language_patterns,
)
from tests.support.cases import cases

LABELLED = Path(__file__).parent / "refusals"
LANGUAGES: tuple[RefusalLanguage, ...] = ("en", "de", "fr", "es")
LEAST = {"en": 300, "de": 60, "fr": 60, "es": 60}


def labelled(language: str) -> list[tuple[bool, str]]:
    """The answers of a language: whether each declines as a whole, and what it says."""
    lines = (LABELLED / f"{language}.txt").read_text("utf-8").splitlines()
    return [(line[0] == "+", line[2:].replace("\\n", "\n")) for line in lines if line[0] in "+-"]


@cases("language", LANGUAGES)
def test_labelled_answers(language: RefusalLanguage) -> None:
    """Precision and recall on the answers that were written for the patterns."""
    answers = labelled(language)
    assert len(answers) >= LEAST[language]
    texts = [text.strip().lower() for _, text in answers]
    found = NaturalRefusals([language]).find(texts)
    labels = [label for label, _ in answers]
    right = sum(label and decline for label, decline in zip(labels, found, strict=True))
    assert right / sum(found) >= 0.98, "precision"
    assert right / sum(labels) >= 0.97, "recall"


@cases("language", LANGUAGES)
def test_looking_at_the_beginnings_of_words_alone_loses_nothing(language: RefusalLanguage) -> None:
    """`at_words` finds what its alternatives find at any letter, in the same place."""
    (patterns,) = language_patterns((language,))
    texts = [text.strip().lower() for one in LANGUAGES for _, text in labelled(one)]
    for pattern in (patterns.declines, patterns.lacks):
        anywhere = re.compile(pattern.pattern.removeprefix(r"\b(?=\w)"))
        assert anywhere.pattern != pattern.pattern
        for text in texts:
            matches = [pattern.search(text), anywhere.search(text)]
            spans = [match and match.span() for match in matches]
            assert spans[0] == spans[1], text


@cases("language", LANGUAGES)
def test_stems_exclude_no_refusal(language: RefusalLanguage) -> None:
    """The quick look for stems, over many texts at once, gives what the patterns alone give."""
    texts = [text.strip().lower() for _, text in labelled(language)]
    (patterns,) = language_patterns((language,))
    expected = bytes(declines_as_a_whole(text, patterns) for text in texts)
    assert NaturalRefusals([language]).find(texts) == expected
    one_by_one = b"".join(NaturalRefusals([language]).find([text]) for text in texts)
    assert one_by_one == expected


@cases("language", LANGUAGES)
def test_other_languages_decline_little_in_english(language: RefusalLanguage) -> None:
    """A further language makes refusals of no English answer that is none."""
    answers = [text.strip().lower() for label, text in labelled("en") if not label]
    alone = sum(NaturalRefusals(["en"]).find(answers))
    assert sum(NaturalRefusals(["en", language]).find(answers)) == alone


def test_no_language_finds_nothing() -> None:
    """Without languages the text decides nothing."""
    assert NaturalRefusals([]).find(["i don't know."]) == b"\0"
    assert NaturalRefusals(["en"]).find([]) == b""


@cases(
    "text",
    [
        "i don't know.",
        "I don’t know.".lower(),
        "**i don't know**",
        '"i don\'t know."',
        "answer: i don't know",
        "i don't know. citations: []",
        "i don't know [1][2].",
    ],
)
def test_markup_does_not_matter(text: str) -> None:
    """Quotes, emphasis, a label and citations are no part of what is said."""
    assert NaturalRefusals(["en"]).declines(text)


@cases(
    "text",
    [
        "i don't know why, but the limit is 5.",
        'the button says "i don\'t know".',
        "the limit is 5. i don't know why.",
        "you can set it in the menu. the manual does not mention a default.",
        "the file is not found if the path is wrong.",
        "vat is not included.",
    ],
)
def test_answers_with_a_refusal_in_them_are_answers(text: str) -> None:
    """What declines one part and gives another, quotes a refusal, or denies something."""
    assert not NaturalRefusals(["en"]).declines(text)


def test_long_answers_are_looked_at_from_both_ends() -> None:
    """Of an answer that is longer than any refusal, the middle is left out."""
    natural = NaturalRefusals(["en"])
    filler = "the river is long. " * 5_000
    assert not natural.declines(f"{filler}i don't know.")
    assert not natural.declines(f"i don't know. {filler}")
    assert natural.declines(f"{'please contact us. ' * 5_000}".join(("i don't know. ", "")))


def test_patterns_are_compiled_when_they_are_used_first() -> None:
    """To compile those of English takes as long as all that a small run does."""
    patterns = importlib.reload(en).PATTERNS
    assert isinstance(patterns.declines, LazyPattern)
    assert "compiled" not in vars(patterns.declines)
    assert patterns.declines.search("i cannot find it") is not None
    assert "compiled" in vars(patterns.declines)
