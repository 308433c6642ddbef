"""Words at their bytes: what of one text stands in another, to the byte."""

from __future__ import annotations

from ragauge.corpus.diff.words import (
    KeptText,
    OwnedText,
    Words,
    find_kept,
    sizes_by_owner,
    split_words,
)
from tests.support.cases import cases


def words(*texts: str) -> Words:
    """Texts that stand in a row, each belonging to its number."""
    whole = "\n\n".join(texts).encode()
    owned_texts = []
    at = 0
    for owner, text in enumerate(texts):
        size = len(text.encode())
        owned_texts.append(OwnedText(owner, whole, (at, at + size)))
        at += size + 2
    return split_words(owned_texts)


def kept(old: str, new: str) -> KeptText | None:
    parts = find_kept(words(old), words(new))
    assert len(parts) <= 1
    return parts[0] if parts else None


@cases(
    ("text", "expected"),
    [
        ("The port, 8080.", ["The", "port", ",", "8080", "."]),
        ("snake_case **x**", ["snake_case", "**", "x", "**"]),
        ("über Größe", ["über", "Größe"]),
        ("日本。", ["日", "本", "。"]),  # a script without blanks
        ("a\N{NO-BREAK SPACE}b", ["a", "b"]),
        ("“so” 😀", ["“", "so", "”", "😀"]),
        (" \t\n", []),
    ],
)
def test_text_becomes_words(text: str, expected: list[str]) -> None:
    split = words(text)
    assert [word.decode() for word in split.words] == expected
    data = text.encode()
    assert [data[start : split.end(i)] for i, start in enumerate(split.starts)] == split.words


def test_a_changed_word_is_not_kept() -> None:
    """23 bytes without blanks, 4 of them changed; the blanks around the word are lost with it."""
    part = kept("The port is 8080 by default.", "The port is 9090 by default.")
    assert part is not None
    assert part.size == 19
    assert part.runs == ((0, 0, 11), (12, 16, 12, 16, 0), (17, 17, 11))
    assert sizes_by_owner(words("The port is 8080 by default.")) == {0: 23}


def test_other_line_breaks_change_nothing() -> None:
    """All words are kept; where blanks differ in length, they are a run of their own."""
    part = kept("one two\nthree", "one  two three")
    assert part is not None
    assert part.size == 11
    assert part.runs == ((0, 0, 3), (3, 4, 3, 5), (4, 5, 3), (7, 8, 8, 9), (8, 9, 5))


def test_a_repaired_hyphen_keeps_the_word() -> None:
    """`infor-` and `mation` are 12 bytes; as one word they have the same letters."""
    part = kept("All the infor-\nmation there is", "All the information there is")
    assert part is not None
    assert part.size == sizes_by_owner(words("All the infor-\nmation there is"))[0]
    assert (8, 21, 8, 19) in part.runs


def test_letters_in_another_case_or_form_are_kept() -> None:
    old, new = "the Cafe\N{COMBINING ACUTE ACCENT} of old", "the CAFÉ of old"
    part = kept(old, new)
    assert part is not None
    assert part.size == sizes_by_owner(words(old))[0]


def test_marks_alone_are_not_the_same_letters() -> None:
    part = kept("one two three --- four five six", "one two three *** four five six")
    assert part is not None
    assert part.size == 22  # 11 bytes of words on either side of the marks


def test_rewritten_text_shares_nothing() -> None:
    """`the`, `of` and `with` occur on both sides, and say nothing."""
    old = "Completely different text with the words of old authors in the middle of nothing"
    new = "Nobody reads of the results that were printed with ink of the cheapest kind"
    part = kept(old, new)
    assert part is None or part.size < 10


def test_text_is_cut_where_it_belongs_to_something_else() -> None:
    """One paragraph became two: a part in each."""
    parts = find_kept(
        words("First things first. Second things later."),
        words("First things first.", "Second things later."),
    )
    assert [(part.old, part.new, part.size) for part in parts] == [(0, 0, 17), (0, 1, 18)]
    assert [part.runs for part in parts] == [((0, 0, 19),), ((20, 21, 20),)]


def test_two_that_became_one_are_both_found_in_it() -> None:
    parts = find_kept(
        words("One and two.", "Three and four."), words("One and two.\nThree and four.")
    )
    assert [(part.old, part.new) for part in parts] == [(0, 0), (1, 0)]
    assert [part.runs for part in parts] == [((0, 0, 12),), ((14, 13, 15),)]
