"""Reference answers: how near what was said is to an answer that is known to be right.

Exact match and F1 are those of SQuAD, ROUGE-L that of the package rouge-score with its default
tokenizer and no stemmer. Both normalise English; other scripts have no words for ROUGE-L.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from functools import cached_property
from typing import NamedTuple

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_WORD = re.compile(r"[^a-z0-9]+")


class Likeness(NamedTuple):
    """How near an answer is to a reference, by three measures from 0 to 1."""

    exact_match: float
    token_f1: float
    rouge_l: float


class AnswerText:
    """A text with the words that it is compared by."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def squad(self) -> list[str]:
        """The words as SQuAD has them: in lower case, without punctuation and articles."""
        lowered = self.text.lower().translate(_PUNCTUATION)
        return _ARTICLES.sub(" ", lowered).split()

    @cached_property
    def squad_counts(self) -> Counter[str]:
        """How often each of these words stands there."""
        return Counter(self.squad)

    @cached_property
    def rouge(self) -> list[str]:
        """The words as rouge-score has them: runs of the letters a to z and digits."""
        return _NO_WORD.sub(" ", self.text.lower()).split()


class ReferenceAnswer(AnswerText):
    """A right answer."""

    @cached_property
    def _places(self) -> dict[str, int]:
        """For each word of ROUGE-L the places that it stands at, as bits."""
        places: dict[str, int] = {}
        for place, word in enumerate(self.rouge):
            places[word] = places.get(word, 0) | 1 << place
        return places

    def likeness(self, answer: AnswerText) -> Likeness:
        """How near an answer is to this one."""
        return Likeness(
            float(answer.squad == self.squad), self._token_f1(answer), self._rouge_l(answer)
        )

    def _token_f1(self, answer: AnswerText) -> float:
        if not answer.squad or not self.squad:  # as SQuAD 2.0: two empty texts agree
            return float(answer.squad == self.squad)
        common = (answer.squad_counts & self.squad_counts).total()
        return 2 * common / (len(answer.squad) + len(self.squad))

    def _rouge_l(self, answer: AnswerText) -> float:
        if not answer.rouge or not self.rouge:
            return 0.0
        return 2 * self._common(answer.rouge) / (len(answer.rouge) + len(self.rouge))

    def _common(self, words: list[str]) -> int:
        """The length of the longest common subsequence.

        Bit by bit (Hyyrö 2004): a row of the usual table is one number, whose zeros are the steps.
        """
        full = (1 << len(self.rouge)) - 1
        row = full
        for word in words:
            matches = row & self._places.get(word, 0)
            row = (row + matches | row - matches) & full
        return len(self.rouge) - row.bit_count()
