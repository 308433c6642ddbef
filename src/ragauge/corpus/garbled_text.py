"""Text that is not words: glyph numbers, private-use characters, and letters that are shifted.

A PDF draws glyphs. Which letters they stand for is written in a table of the font, and where that
is missing or wrong, the text layer is numbers of glyphs or codes of the font. The page looks right,
and no search will ever find a word on it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_CID = re.compile(r"\(cid:[0-9]+\)")
"""How pdfminer, and what is built on it, writes a glyph without a letter."""
_WORD = re.compile(r"[^\W\d_]{4,}")
_VOWEL = re.compile(r"[AEIOUYaeiouy]")
_NO_LETTERS = frozenset(("Cc", "Cn", "Co", "Cs"))  # control, unassigned, private use, surrogate
_LEAST_CHARACTERS = 30  # fewer may be a page number and some bullets of a symbol font
_LEAST_WORDS = 20
_MOST_STRANGE = 0.2
# Of the words with four Latin letters or more, 0 to 4 % have no vowel: that was counted in manual
# pages of nine languages. With all letters shifted by 29, as the numbers of glyphs mostly are, the
# same pages have 25 % to 50 %. Words of three letters would tell less: names in code are such.
_MOST_WITHOUT_VOWEL = 0.2


def is_garbled(words: Sequence[str]) -> bool:
    """Whether much of what a text layer says cannot be words of any language."""
    text = "".join(words)
    if len(text) < _LEAST_CHARACTERS:
        return False
    strange = sum(len(glyph) for glyph in _CID.findall(text))
    if not text.isascii() or not text.isprintable():
        strange += sum(
            letter == "\N{REPLACEMENT CHARACTER}" or unicodedata.category(letter) in _NO_LETTERS
            for letter in text
        )
    if strange > _MOST_STRANGE * len(text):
        return True
    latin = [match for word in words for match in _WORD.findall(word) if match.isascii()]
    without_vowel = sum(_VOWEL.search(word) is None for word in latin)
    return len(latin) >= _LEAST_WORDS and without_vowel > _MOST_WITHOUT_VOWEL * len(latin)


def count_glyph_numbers(text: bytes) -> int:
    """How often a text has `(cid:12)` in place of a letter."""
    return text.count(b"(cid:") and len(_CID.findall(text.decode("utf-8", "replace")))
