"""SQuAD's exact match and F1, and ROUGE-L, from their definitions: one plain step after another.

Nothing of the package is imported here, so that the two can disagree.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

_ARTICLES = ("a", "an", "the")


def squad_words(text: str) -> list[str]:
    """Lower case, no punctuation, no articles, blanks made alike, in this order."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    # An article stands between two edges of words, and what is no letter, digit or `_` is an edge:
    # the long way round, letter by letter.
    words: list[str] = []
    for chunk in kept.split():
        pieces: list[str] = []
        current = ""
        for letter in chunk:
            is_word = letter.isalnum() or letter == "_"
            if pieces and (pieces[-1][-1].isalnum() or pieces[-1][-1] == "_") != is_word:
                pieces.append(letter)
            elif pieces:
                pieces[-1] += letter
            else:
                pieces.append(letter)
        current = "".join(" " if piece in _ARTICLES else piece for piece in pieces)
        words += current.split()
    return words


def exact_match(answer: str, reference: str) -> float:
    return float(" ".join(squad_words(answer)) == " ".join(squad_words(reference)))


def token_f1(answer: str, reference: str) -> float:
    said, right = squad_words(answer), squad_words(reference)
    if not said or not right:
        return float(said == right)
    left = list(right)
    common = 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / len(right)
    return 2 * precision * recall / (precision + recall)


def rouge_words(text: str) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    return "".join(letter if letter in letters else " " for letter in text.lower()).split()


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest common subsequence, by the table of all beginnings."""
    before = [0] * (len(other) + 1)
    for word in one:
        row = [0]
        for place, candidate in enumerate(other):
            row.append(before[place] + 1 if word == candidate else max(row[-1], before[place + 1]))
        before = row
    return before[-1]


def rouge_l(answer: str, reference: str) -> float:
    said, right = rouge_words(answer), rouge_words(reference)
    common = longest_common(said, right)
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / len(right)
    return 2 * precision * recall / (precision + recall)
