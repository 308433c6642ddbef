"""BERT's uncased word pieces: a text becomes the numbers that a model of that family reads.

The vocabulary is not part of ragauge: it is taken from an installed package, and checked.
"""

from __future__ import annotations

import struct
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

SPECIAL = {100: "[UNK]", 101: "[CLS]", 102: "[SEP]", 103: "[MASK]"}
VOCABULARY = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
"""The sha256 of the vocabulary as the file of one entry a line that BERT was published with."""

_LONGEST_WORD = 100
_LONG = 20_000
_UNKNOWN, _START, _END = 100, 101, 102
_COUNT_AT = 96
# Ideographs, each of which is a word of its own.
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip


class TextPieces(NamedTuple):
    """The numbers of a text with those of its start and end; whether the text went on."""

    numbers: list[int]
    truncated: bool


def vocabulary_of(data: bytes) -> dict[str, int] | None:
    """Read the vocabulary out of a table of words as blingfire has it; None if it is another.

    A count and the ends of all words stand before the words. A word that begins with a blank begins
    a word of the text; any other goes on with one. Its special entries are in small letters.
    """
    try:
        (count,) = struct.unpack_from("<i", data, _COUNT_AT)
        ends = struct.unpack_from(f"<{count + 1}i", data, _COUNT_AT + 4)
        base = _COUNT_AT + 4 * (count + 2)
        words = [data[base + a : base + b].decode() for a, b in pairwise(ends)]
    except (struct.error, UnicodeDecodeError, OverflowError, MemoryError):
        return None
    entries = [
        SPECIAL.get(number) or (word[1:] if word.startswith(" ") else f"##{word}")
        for number, word in enumerate(words)
    ]
    written = "".join(f"{entry}\n" for entry in entries)
    if sha256(written.encode()).hexdigest() != VOCABULARY:
        return None
    return {entry: number for number, entry in enumerate(entries)}


class WordPieces:
    """Cuts texts into word pieces: the longest that fits first, unknown words as one."""

    def __init__(self, vocabulary: Mapping[str, int], longest: int) -> None:
        self.vocabulary = vocabulary
        self.longest = longest
        self._word = lru_cache(maxsize=65_536)(self._cut)

    def pieces(self, text: str) -> TextPieces:
        """The pieces of a text, at most `longest` with its start and end."""
        if len(text) > _LONG:
            # Its beginning is mostly enough: what follows is cut off anyway.
            beginning = self._pieces(text[:_LONG].rpartition(" ")[0])
            if beginning.truncated:
                return beginning
        return self._pieces(text)

    def _pieces(self, text: str) -> TextPieces:
        room = self.longest - 2
        numbers = [_START]
        for word in words_of(text):
            numbers += self._word(word)
            if len(numbers) > room + 1:
                break
        truncated = len(numbers) > room + 1
        return TextPieces([*numbers[: room + 1], _END], truncated)

    def _cut(self, word: str) -> list[int]:
        if len(word) > _LONGEST_WORD:
            return [_UNKNOWN]
        numbers = []
        at = 0
        while at < len(word):
            prefix = "##" if at else ""
            for end in range(len(word), at, -1):
                number = self.vocabulary.get(prefix + word[at:end])
                if number is not None:
                    numbers.append(number)
                    at = end
                    break
            else:
                return [_UNKNOWN]
        return numbers


def words_of(text: str) -> list[str]:
    """The words and marks of a text, in small letters and without accents."""
    if text.isascii():
        folded = text.translate(_CHARACTER_MAP).lower()
    else:
        cleaned = text.translate(_CHARACTER_MAP)
        spaced = "".join(f" {c} " if _is_ideograph(c) else c for c in cleaned)
        bare = unicodedata.normalize("NFD", spaced)
        # Letter by letter, as the reference does it: a final sigma is lowered like any other.
        folded = "".join(c.lower() for c in bare if unicodedata.category(c) != "Mn")
    words: list[str] = []
    for run in folded.split(" "):
        if run.isalnum():
            words.append(run)
        elif run:
            words += _split(run)
    return words


def _split(run: str) -> list[str]:
    words, start = [], 0
    for at, character in enumerate(run):
        if _is_mark(character):
            if at > start:
                words.append(run[start:at])
            words.append(character)
            start = at + 1
    if start < len(run):
        words.append(run[start:])
    return words


class _CharacterMap(dict[int, str]):
    """Control characters go, and white space becomes a blank; found out once for each."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character in "\t\n\r":
            replacement = " "
        elif code in (0, 0xFFFD) or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
            replacement = ""
        else:
            replacement = " " if character.isspace() else character
        self[code] = replacement
        return replacement


_CHARACTER_MAP = _CharacterMap()


def _is_ideograph(character: str) -> bool:
    code = ord(character)
    return code >= 0x3400 and any(low <= code <= high for low, high in _IDEOGRAPHS)


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    """Punctuation: what Unicode calls so, and every other mark of ASCII."""
    code = ord(character)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(character).startswith("P")
