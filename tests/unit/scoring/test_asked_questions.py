"""A trace is foreign to its item by its question: the rule, word by word."""

from __future__ import annotations

from ragauge.scoring.tasks.asked_questions import AskedQuestions, QuestionTally, folded_question
from tests.support.cases import cases

GOLD = [
    ("How long is the warranty?", "What is the guarantee period?"),
    ("Which ports are open?",),
    ("退货期限是多久?",),
    ("Why so?",),
    ("वारंटी कितनी लंबी है?",),
    (),
]


def tally_of(item: int, asked: str | None) -> QuestionTally:
    questions = AskedQuestions(GOLD)
    questions.add(item, asked, 7)
    return questions.take()


def kind(item: int, asked: str | None) -> str:
    """What becomes of a trace of an item with this question."""
    tally = tally_of(item, asked)
    if not tally.compared:
        return "not compared"
    return "foreign" if tally.foreign else "reworded" if tally.reworded else "same"


@cases(
    ("item", "asked", "expected"),
    [
        (0, "How long is the warranty?", "same"),
        (0, "what is the GUARANTEE period", "same"),  # a paraphrase, folded
        (0, "  how long -- is the warranty ?!", "same"),  # blanks and punctuation
        (0, "query: How long is the warranty?", "reworded"),  # a prefix
        (0, "warranty duration", "reworded"),  # shares one word of four letters
        (0, "Which ports are open?", "foreign"),  # the question of another item
        (0, "Reset my password please", "foreign"),  # no word of four letters in common
        (0, "Is it so?", "reworded"),  # it has no such word itself
        (0, "退货期限是多久?", "foreign"),  # another item's, in whatever script
        (0, "保修期有多长", "reworded"),  # a translation: nothing that could be shared
        (2, "退货期限", "reworded"),  # shares pairs of characters
        (2, "如何重置密码", "foreign"),  # shares none
        (3, "Reset my password", "reworded"),  # the item has no word of four letters
        (4, "वारंटी की अवधि", "reworded"),  # vowel signs are parts of words
        (0, None, "not compared"),
        (0, "", "not compared"),
        (5, "Which ports are open?", "not compared"),  # the item has no question
    ],
)
def test_which_questions_are_foreign(item: int, asked: str | None, expected: str) -> None:
    assert kind(item, asked) == expected


def test_an_accent_in_two_code_points_is_the_same_question() -> None:
    questions = AskedQuestions([("Où est le café ?",)])
    questions.add(0, "OÙ EST LE CAFÉ", 1)  # NFD
    assert questions.take() == QuestionTally(compared=1)


def test_a_question_of_two_items_is_foreign_to_neither() -> None:
    questions = AskedQuestions([("What is C?",), ("What is C++?",)])
    questions.add(0, "What is C++?", 1)  # both fold to "what is c"
    questions.add(1, "What is C?", 2)
    assert questions.take() == QuestionTally(compared=2)


def test_first_ones_are_those_with_the_lowest_lines() -> None:
    questions = AskedQuestions(GOLD)
    for line in range(50, 0, -1):
        questions.add(0, "Reset my password please", line)
    tally = questions.take()
    assert tally.foreign == tally.compared == 50
    assert [line for line, _ in tally.first] == [1, 2, 3, 4, 5]
    assert questions.take() == QuestionTally()


def test_without_questions_nothing_is_compared() -> None:
    questions = AskedQuestions([])
    questions.add(3, "anything", 1)
    assert questions.take() == QuestionTally()


@cases("text", ["", "  ", "?!", "ǰ̌", "\u0345", "İ", "a\u0301\u0301"])
def test_folding_twice_changes_nothing(text: str) -> None:
    assert folded_question(folded_question(text)) == folded_question(text)
