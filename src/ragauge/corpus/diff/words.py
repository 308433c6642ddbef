"""Text as words at their bytes, and which bytes of one text are in another.

A word is a run of ASCII letters, digits and two-byte letters, a run of ASCII marks, or any other
character on its own, so that scripts without blanks are compared character by character. Blanks
have no weight: a paragraph that is wrapped anew has kept all of its text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.diff.sequence_alignment import Match, align, drop_islands, slide_gaps
from ragauge.model.corpus import Extent
from ragauge.model.migration import Run

# Over bytes, since all places are bytes: decoding would need a table to get back. The two-byte
# letters of UTF-8 are those of European scripts, Hebrew and Arabic; of C2 xx only the no-break
# space (C2 A0) is a blank.
_WORD = re.compile(
    rb"(?:[0-9A-Za-z_]|[\xc3-\xdf][\x80-\xbf])+"
    rb"|[!-/:-@\[-^`{-~]+"
    rb"|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf7][\x80-\xbf]{3}|\xc2[\x80-\x9f\xa1-\xbf]"
)
# Words between two matches that may be the same letters written otherwise. A longer gap is text
# that was rewritten; comparing its letters would seldom find anything.
_LONGEST_REPAIR = 64
_NO_LETTERS = re.compile(r"[\W_]+")


class OwnedText(Struct, frozen=True):
    """A span of a text that belongs to something, such as a block; `owner` is its number."""

    owner: int
    text: bytes
    span: Extent


class Words(Struct):
    """Words in order, each with its bytes in its own text and what it belongs to."""

    words: list[bytes]
    starts: list[int]
    owners: list[int]
    texts: dict[int, bytes]

    def end(self, position: int) -> int:
        """Where a word ends."""
        return self.starts[position] + len(self.words[position])

    def without(self, taken: set[int]) -> Words:
        """The words but for some of them."""
        rest = [i for i in range(len(self.words)) if i not in taken]
        return Words(
            [self.words[i] for i in rest],
            [self.starts[i] for i in rest],
            [self.owners[i] for i in rest],
            self.texts,
        )


class _AlignedWords(Struct, frozen=True):
    """Words of either side, from a place up to another.

    They are the same (`exact`), the same letters written otherwise (`kept`), or what replaced them.
    """

    old: int
    old_end: int
    new: int
    new_end: int
    exact: bool = True
    kept: bool = True


class KeptText(Struct, frozen=True):
    """What of one owner is in another: its bytes without blanks, and where they are.

    `words` are the places of those words among the words that were compared.
    """

    old: int
    new: int
    size: int
    runs: tuple[Run, ...]
    words: tuple[int, ...] = ()


def split_words(owned_texts: Iterable[OwnedText]) -> Words:
    """Split texts into words."""
    words = Words([], [], [], {})
    for part in owned_texts:
        words.texts[part.owner] = part.text
        for word in _WORD.finditer(part.text, *part.span):
            words.words.append(word[0])
            words.starts.append(word.start())
            words.owners.append(part.owner)
    return words


def sizes_by_owner(words: Words) -> dict[int, int]:
    """How many bytes without blanks each owner has."""
    sizes: Counter[int] = Counter()
    for owner, word in zip(words.owners, words.words, strict=True):
        sizes[owner] += len(word)
    return sizes


def find_kept(old: Words, new: Words) -> list[KeptText]:
    """Find which words of one side are on the other, by pairs of owners, in reading order."""
    aligned = align(old.words, new.words)
    # Slide first: an island is judged by what changed around it, which sliding moves.
    matches = drop_islands(
        slide_gaps(aligned, old.words, new.words, _owner_starts(old), _owner_starts(new)),
        [len(word) for word in old.words],
        [len(word) for word in new.words],
    )
    # Words were aligned over the borders of blocks; what they say is about pairs of blocks.
    parts: dict[tuple[int, int], list[_AlignedWords]] = {}
    for match in _with_repairs(old, new, matches):
        for part in _split_by_owner(old, new, match):
            parts.setdefault((old.owners[part.old], new.owners[part.new]), []).append(part)
    kept_texts = []
    for (old_owner, new_owner), listed in parts.items():
        taken = [k for part in listed if part.kept for k in range(part.old, part.old_end)]
        runs = tuple(run for part in listed for run in _byte_runs(old, new, part))
        size = sum(len(old.words[k]) for k in taken)
        if taken:
            kept_texts.append(KeptText(old_owner, new_owner, size, runs, tuple(taken)))
    return kept_texts


def _owner_starts(words: Words) -> set[int]:
    """Where something else begins."""
    owners = words.owners
    return {i for i, owner in enumerate(owners) if i == 0 or owners[i - 1] != owner}


def same_letters(one: bytes, other: bytes) -> bool:
    """Whether two texts differ in nothing but blanks, marks, case and the form of letters."""
    return _letters([one]) == _letters([other])


def _with_repairs(old: Words, new: Words, matches: Sequence[Match]) -> Iterator[_AlignedWords]:
    """The matches, and what is between them on both sides.

    Words that differ in nothing but blanks, marks and case are kept: that is what a better repair
    of hyphens, a heading in capitals or another form of the same letters leaves behind. Others
    were replaced.
    """
    i = j = 0
    for left, low, length in [*matches, (len(old.words), len(new.words), 0)]:
        if i < left and j < low:
            between = _AlignedWords(i, left, j, low, exact=False)
            if _is_short(old, new, between):
                letters = _letters(old.words[i:left])
                same = letters != "" and letters == _letters(new.words[j:low])
                yield replace(between, kept=same)
        if length:
            yield _AlignedWords(left, left + length, low, low + length)
        i, j = left + length, low + length


def _is_short(old: Words, new: Words, part: _AlignedWords) -> bool:
    """Whether a part is a few words of one thing on either side."""
    return (
        part.old_end - part.old <= _LONGEST_REPAIR
        and part.new_end - part.new <= _LONGEST_REPAIR
        and old.owners[part.old] == old.owners[part.old_end - 1]
        and new.owners[part.new] == new.owners[part.new_end - 1]
    )


def _letters(words: Sequence[bytes]) -> str:
    text = b"".join(words).decode("utf-8", "replace")
    return _NO_LETTERS.sub("", unicodedata.normalize("NFC", text).lower())


def _split_by_owner(old: Words, new: Words, part: _AlignedWords) -> Iterator[_AlignedWords]:
    """Cut a part wherever one of its sides begins to belong to something else."""
    if not part.exact:
        yield part  # `_is_short` has seen to it that either side has one owner
        return
    start = part.old
    shift = part.new - part.old
    for k in range(part.old + 1, part.old_end + 1):
        if (
            k == part.old_end
            or old.owners[k] != old.owners[start]
            or new.owners[k + shift] != new.owners[start + shift]
        ):
            yield _AlignedWords(start, k, start + shift, k + shift)
            start = k


def _byte_runs(old: Words, new: Words, part: _AlignedWords) -> Iterator[Run]:
    """The bytes of a part: equal bytes as far as they go, other blanks between them apart.

    Three numbers are old start, new start and length of equal bytes; four are both spans of the
    same letters in other bytes; four and a 0 are what replaced the old text.
    """
    begin, low = old.starts[part.old], new.starts[part.new]
    end, high = old.end(part.old_end - 1), new.end(part.new_end - 1)
    if not part.exact:
        yield (begin, end, low, high) if part.kept else (begin, end, low, high, 0)
        return
    text, other = old.texts[old.owners[part.old]], new.texts[new.owners[part.new]]
    if text[begin:end] == other[low:high]:
        yield begin, low, end - begin
        return
    shift = part.new - part.old
    for k in range(part.old, part.old_end - 1):
        stop, following = old.end(k), old.starts[k + 1]
        halt, next_one = new.end(k + shift), new.starts[k + 1 + shift]
        if text[stop:following] != other[halt:next_one]:
            yield begin, low, stop - begin
            # Blanks that became other blanks are kept text; where one side has none, there is
            # nothing to point at.
            between = text[stop:following], other[halt:next_one]
            if all(between) and not b"".join(between).strip():
                yield stop, following, halt, next_one
            begin, low = following, next_one
    yield begin, low, end - begin
