"""Asked questions: whether a trace is about the question of its gold item, or about another one.

An id that was given anew joins a trace with an item that it has nothing to do with, and every
number of that run is wrong. The texts of the questions show it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import Struct

from ragauge.scoring.packed_texts import PackedLists, UnpackedValues

FIRST_NAMED = 5
"""Foreign traces whose places are noted."""

_SHORTEST_WORD = 4
_SEVERAL = -1  # no item's number

# Scripts that are written without blanks between words. Ranges of code points, as Python's own
# tables do not know scripts: Thai, Lao, Myanmar, Khmer, Tai Tham, kana, bopomofo, Han.
_WITHOUT_BLANKS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1A20, 0x1AAF), (0x2E80, 0x2FDF),
    (0x3005, 0x3007), (0x3040, 0x30FF), (0x3100, 0x312F), (0x31A0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip


Kind = Literal["same", "reworded", "foreign"]


class QuestionTally(Struct, frozen=True, kw_only=True):
    """How many traces say which question they were asked, and of these how many say another.

    `foreign` are about something else than their gold item, `reworded` differ in any other way.
    `first` has the lines of the first foreign ones, and their items.
    """

    compared: int = 0
    foreign: int = 0
    reworded: int = 0
    first: tuple[tuple[int, int], ...] = ()


class AskedQuestions:
    """Compares the questions of traces with those of their gold items.

    `questions` has for each gold item its question and its paraphrases; none where they are not to
    be compared.
    """

    def __init__(self, questions: Sequence[tuple[str, ...]]) -> None:
        self.questions = questions
        read = questions.reader() if isinstance(questions, PackedLists) else questions.__getitem__
        self._texts = UnpackedValues(read).__getitem__
        self._item_of_text: dict[str, int] | None = None
        self._of_item = lru_cache(maxsize=1 << 14)(self._features_of_item)
        self._kind = lru_cache(maxsize=1 << 14)(self._kind_of)
        self._begin()

    def _begin(self) -> None:
        self._compared = self._foreign = self._reworded = 0
        self._first: list[tuple[int, int]] = []

    def add(self, item: int, asked: str | None, line: int) -> None:
        """Compare the question of a trace with that of its item."""
        texts = self._texts(item) if self.questions else ()
        if not asked or not texts:
            return
        self._compared += 1
        # Most traces have the question of their item to the letter.
        if asked == texts[0] or (kind := self._kind(item, asked)) == "same":
            return
        if kind == "reworded":
            self._reworded += 1
            return
        self._foreign += 1
        self._first.append((line, item))
        if len(self._first) > 4 * FIRST_NAMED:
            self._first = sorted(self._first)[:FIRST_NAMED]

    def add_all(
        self, items: Sequence[int | None], asked: Sequence[str | None], lines: Sequence[int]
    ) -> None:
        """Compare the questions of traces with those of their items; None for no item."""
        for item, text, line in zip(items, asked, lines, strict=True):
            if item is not None and text:
                self.add(item, text, line)

    def _kind_of(self, item: int, asked: str) -> Kind:
        folded = folded_question(asked)
        if any(folded == folded_question(text) for text in self._texts(item)):
            return "same"
        return "foreign" if self._is_foreign(item, folded) else "reworded"

    def take(self) -> QuestionTally:
        """What was counted so far; the next trace begins a new count."""
        tally = QuestionTally(
            compared=self._compared,
            foreign=self._foreign,
            reworded=self._reworded,
            first=tuple(sorted(self._first)[:FIRST_NAMED]),
        )
        self._begin()
        return tally

    def _is_foreign(self, item: int, folded: str) -> bool:
        if self._item_of_text is None:
            self._item_of_text = {}
            for number, texts in enumerate(self.questions):
                if texts:
                    text = folded_question(texts[0])
                    several = text in self._item_of_text
                    self._item_of_text[text] = _SEVERAL if several else number
        if folded and self._item_of_text.get(folded, item) != item:
            return True
        asked, own = features_of(folded), self._of_item(item)
        shares = [
            not one.isdisjoint(other)
            for one, other in ((asked.words, own.words), (asked.pairs, own.pairs))
            if one and other
        ]
        return bool(shares) and not any(shares)

    def _features_of_item(self, item: int) -> QuestionFeatures:
        features = [features_of(folded_question(text)) for text in self._texts(item)]
        return QuestionFeatures(
            frozenset().union(*(feature.words for feature in features)),
            frozenset().union(*(feature.pairs for feature in features)),
        )


@lru_cache(maxsize=1 << 14)
def folded_question(text: str) -> str:
    """A question as questions are compared: NFC, case folded, one blank for all that is no word."""
    if text.isascii():
        folded = text.lower()
        words = "".join([letter if letter.isalnum() else " " for letter in folded])
    else:
        # Folding can take a text out of its normal form.
        composed = unicodedata.normalize("NFC", text).casefold()
        folded = unicodedata.normalize("NFC", composed)
        words = "".join([letter if _is_of_word(letter) else " " for letter in folded])
    return " ".join(words.split())


def _is_of_word(letter: str) -> bool:
    """Letters and digits; also vowel signs and accents that stand by themselves."""
    return letter.isalnum() or unicodedata.category(letter).startswith("M")


class QuestionFeatures(NamedTuple):
    """What two questions may share: words of four letters, and pairs of characters."""

    words: frozenset[str]
    pairs: frozenset[str]


def features_of(folded: str) -> QuestionFeatures:
    """The features of a folded question; pairs are those of scripts without blanks."""
    if folded.isascii():
        words = [word for word in folded.split() if len(word) >= _SHORTEST_WORD]
        return QuestionFeatures(frozenset(words), frozenset())
    words, pairs = [], []
    for word in folded.split():
        for is_dense, run in _runs(word):
            if is_dense:
                pairs += [run[i : i + 2] for i in range(len(run) - 1)]
            elif len(run) >= _SHORTEST_WORD:
                words.append(run)
    return QuestionFeatures(frozenset(words), frozenset(pairs))


def _runs(word: str) -> Iterable[tuple[bool, str]]:
    """A word in runs of characters of scripts without blanks and of others."""
    start = 0
    for place in range(1, len(word) + 1):
        if place == len(word) or _is_dense(word[place]) != _is_dense(word[start]):
            yield _is_dense(word[start]), word[start:place]
            start = place


@lru_cache(maxsize=4096)
def _is_dense(letter: str) -> bool:
    return any(low <= ord(letter) <= high for low, high in _WITHOUT_BLANKS)
