"""Where a quote is in a text: byte for byte, or up to white space and Unicode composition."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from typing import AnyStr

from ragauge.model.corpus import Extent
from ragauge.quotes import normalised

_WORD = re.compile(r"\S+")


def places_in(text: bytes, quote: str) -> list[Extent]:
    """Every place of a quote in a text, in order; those that overlap an earlier one as well.

    Where it is nowhere byte for byte, runs of white space count as one blank, and composed
    characters as their parts.
    """
    wanted = quote.encode(errors="surrogatepass")
    exact = [(at, at + len(wanted)) for at in _all_starts(text, wanted)] if wanted else []
    return exact if exact else _normalised_places(text.decode(), normalised(quote))


def _all_starts(text: AnyStr, wanted: AnyStr) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _normalised_places(text: str, wanted: str) -> list[Extent]:
    """The places of a normalised quote; an extent never begins or ends in white space."""
    if not wanted:
        return []
    # The text is composed word by word, so that a place in the composed text leads back to a word
    # of the text by its number, whatever composing did to lengths.
    words = [(word[0], word.start()) for word in _WORD.finditer(text)]
    folded = [unicodedata.normalize("NFC", word) for word, _ in words]
    starts = []
    at = 0
    for word in folded:
        starts.append(at)
        at += len(word) + 1
    places = []
    for first in _all_starts(" ".join(folded), wanted):
        edges = []
        for letter, behind in ((first, False), (first + len(wanted) - 1, True)):
            number = bisect_right(starts, letter) - 1
            word, origin = words[number]
            inside = letter - starts[number]
            if folded[number] == word:
                edges.append(origin + inside + behind)
            else:
                edges.append(origin + _edges(word)[inside][behind])
        places.append((edges[0], edges[1]))
    return [(len(text[:start].encode()), len(text[:end].encode())) for start, end in places]


def _edges(word: str) -> list[tuple[int, int]]:
    """From where to where the letters of a word come that are left when it is composed."""
    edges: list[tuple[int, int]] = []
    at = 0
    for cluster in _clusters(word):
        composed = unicodedata.normalize("NFC", cluster)
        edges += [(at, at + len(cluster))] * len(composed)
        at += len(cluster)
    return edges


def _clusters(word: str) -> Iterator[str]:
    """Parts of a word that are composed each by itself: a letter with all that may join it.

    Most marks have a combining class; the vowels of Hangul and of some scripts of India have none,
    and join the letter before them nevertheless.
    """
    cluster = ""
    for letter in word:
        if cluster and not unicodedata.combining(letter):
            apart = unicodedata.normalize("NFC", cluster) + unicodedata.normalize("NFC", letter)
            if unicodedata.normalize("NFC", cluster + letter) == apart:
                yield cluster
                cluster = ""
        cluster += letter
    if cluster:
        yield cluster
