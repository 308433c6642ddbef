"""Narrowing: evidence that is a whole chunk becomes the sentence in it that holds the answer.

A claim, required string or reference answer that stands once in the chunk tells its sentence; else
a person chooses among the sentences of the chunk. Nothing is narrowed by a guess.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ragauge.corpus.bm25 import words_of
from ragauge.corpus.lookup import Lookup
from ragauge.errors import Place, RagaugeError
from ragauge.files.fields import Row, pick
from ragauge.formats.gold import Own
from ragauge.formats.gold_evidence import entries, replaced
from ragauge.model.field_spellings import HIT_DOCS, HIT_HASHES, HIT_IDS, HIT_SECTIONS
from ragauge.model.gold import GoldItem
from ragauge.spans import spans_in

SHORTEST_STRING = 5
"""Characters of the shortest string that tells a sentence: shorter ones stand there by chance."""

Key = tuple[str, int | None]
# Up to a stop, an empty line, or a line that begins a list, a table, a heading or a quote. A run
# of stops is looked at from its beginning alone, or many of them would take quadratic time.
_SENTENCE = re.compile(
    r"\S.*?(?:(?<![.!?])[.!?]+[\"'”’)\]]*(?=\s|\Z)|(?=\n\s*(?:[-*+|#>`]|\d+[.)]\s|\n))|\Z)",
    re.DOTALL,
)
_KEPT = (*HIT_DOCS, *HIT_HASHES[0], *HIT_SECTIONS)


class Sentence(NamedTuple):
    """A sentence of a chunk: its bytes in the document, and its text."""

    start: int
    end: int
    text: str


def sentences_of(text: str, start: int = 0) -> list[Sentence]:
    """The sentences of a text that begins at a byte; an entry of a list or a table is one."""
    sentences = []
    at, place = 0, start
    for found in _SENTENCE.finditer(text):
        place += _bytes(text[at : found.start()])
        end = place + _bytes(found[0])
        sentences.append(Sentence(place, end, found[0]))
        at, place = found.end(), end
    return sentences


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


class SentenceChoice(NamedTuple):
    """What a person is asked: the question, the chunk, and its sentences, the likeliest first."""

    qid: str
    question: str | None
    chunk: str
    sentences: tuple[Sentence, ...]


Choose = Callable[[SentenceChoice], int | None]
"""Gives the number of the sentence that a person chose, None for none."""


class OpenSample(NamedTuple):
    """The questions to narrow, and how they were drawn: `drawn` of `of` open ones by a seed.

    `keys` is None for all questions; `drawn` is None where nothing was drawn.
    """

    keys: frozenset[Key] | None = None
    drawn: int | None = None
    of: int = 0
    seed: int = 0


def open_sample(comparison: str, sample: int | None, seed: int) -> OpenSample:
    """The questions that a saved comparison leaves open, or a random sample of them."""
    try:
        document = json.loads(Path(comparison).read_bytes())
        queries = document["per_query"]
        keys = [
            (query["query_id"], query.get("turn"))
            for query in queries
            if query.get("regression") == "open" or query.get("certain") is False
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RagaugeError.of(
            "not-rows",
            f"`{comparison}` is not a saved comparison: {error}",
            hint="save one with `ragauge compare A B -o CMP.json`",
            place=Place(comparison),
        ) from error
    if sample is None:
        return OpenSample(frozenset(keys))
    keys.sort(key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    drawn = random.Random(seed).sample(keys, min(sample, len(keys)))
    return OpenSample(frozenset(drawn), len(drawn), len(keys), seed)


class Narrower:
    """Narrows the evidence of rows that are pinned; `counts` says what became of it.

    `choose` asks a person; without it, what no string tells stays as it is.
    """

    def __init__(self, lookup: Lookup, sample: OpenSample, choose: Choose | None = None) -> None:
        self.lookup = lookup
        self.sample = sample
        self.choose = choose
        self.counts: Counter[str] = Counter()

    def row(self, row: Row, own: Own, item: GoldItem) -> dict[str, Any]:
        """A row with the evidence narrowed that is a whole chunk."""
        fields = dict(row)
        keys = self.sample.keys
        if keys is not None and (item.qid, item.turn) not in keys:
            return fields
        for name, path, value in entries(row, own):
            narrowed = self._entry(value, path, item)
            if narrowed is not None:
                fields[name] = replaced(fields[name], path.removeprefix(name), narrowed)
        return fields

    def _entry(self, value: Any, path: str, item: GoldItem) -> dict[str, Any] | None:
        if not isinstance(value, Mapping) or value.get("grain") == "evidence":
            return None
        chunk_id = pick(value, HIT_IDS, inside=f"{path}.")[1]
        spans = spans_in(value, path)
        doc = pick(value, HIT_DOCS, inside=f"{path}.")[1]
        if len(spans) != 1 or doc is None or (chunk_id is None and value.get("grain") is None):
            return None
        start, end = spans[0].start, spans[0].end
        sentences = self.sentences(str(doc), start, end)
        found = _told_by_string(sentences, self._text(str(doc), start, end), start, item)
        by = "string"
        if found is None and self.choose is not None and sentences:
            found, by = self._chosen(sentences, item, str(chunk_id or doc)), "person"
        if found is None:
            self.counts["left"] += 1
            return None
        self.counts[by] += 1
        origin: dict[str, Any] = {} if chunk_id is None else {"id": chunk_id}
        origin |= {"start": start, "end": end}
        if self.sample.drawn is not None:
            origin |= {
                "drawn": self.sample.drawn,
                "of": self.sample.of,
                "seed": self.sample.seed,
            }
        kept = {name: value[name] for name in value if name in _KEPT}
        place = {"start": found.start, "end": found.end, "quote": found.text}
        return {**kept, **place, "grain": "evidence", "by": by, "narrowed_from": origin}

    def _text(self, doc: str, start: int, end: int) -> str:
        return self.lookup.text(doc)[start:end].decode(errors="replace")

    def sentences(self, doc: str, start: int, end: int) -> list[Sentence]:
        """The sentences of a stretch of a document."""
        return sentences_of(self._text(doc, start, end), start)

    def _chosen(self, sentences: Sequence[Sentence], item: GoldItem, chunk: str) -> Sentence | None:
        assert self.choose is not None
        asked = set(words_of(item.question or ""))
        ordered = sorted(sentences, key=lambda sentence: -len(asked & set(words_of(sentence.text))))
        number = self.choose(SentenceChoice(item.qid, item.question, chunk, tuple(ordered)))
        return None if number is None else ordered[number]


def _told_by_string(
    sentences: Sequence[Sentence], text: str, start: int, item: GoldItem
) -> Sentence | None:
    """The sentence with a string of the item that stands once in the chunk."""
    for string in (*(item.claims_any or ()), *item.must_contain, *item.references):
        if len(string) < SHORTEST_STRING:
            continue
        for searched, sought in ((text, string), (text.lower(), string.lower())):
            if len(searched) == len(text) and searched.count(sought) == 1:
                at = searched.index(sought)
                first = start + len(text[:at].encode())
                last = start + len(text[: at + len(sought)].encode())
                held = [one for one in sentences if one.end > first and one.start < last]
                if held and held[0].start <= first and held[-1].end >= last:
                    begin, end = held[0].start, held[-1].end
                    words = text.encode()[begin - start : end - start].decode()
                    return Sentence(begin, end, words)
    return None
