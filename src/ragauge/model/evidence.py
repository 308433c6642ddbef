"""Evidence: what a run knows of chunks and documents, frozen with it.

A comparison needs no index: whether a chunk id still means the same text, where an expected chunk
lay, and whether a document was edited or renamed, is told by what both runs have seen.
"""

from __future__ import annotations

from enum import IntFlag
from typing import NamedTuple

from msgspec import Struct

from ragauge.spans import Span


class Carries(IntFlag):
    """What the hits of a result carry: a bit is set if every hit has it (also if there is none)."""

    SPANS = 1
    DOCS = 2
    TEXTS = 4


class ChunkFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run knows of one chunk: from the hits that retrieved it, or from the list of chunks.

    `doc` is the document's id and `path` another name of it. `text_hash` is the hash that the
    trace gives, or one that was made of the text.
    """

    doc: str | None = None
    path: str | None = None
    spans: tuple[Span, ...] = ()
    text: str | None = None
    text_hash: str | None = None
    chunker_version: str | None = None
    policy_hash: str | None = None


class DocFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run knows of one document: its content hash, and the chunkers its chunks came from.

    `hashes` has more than one entry only if the run itself saw two versions.
    """

    path: str | None = None
    hashes: tuple[str, ...] = ()
    chunkers: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()


class SketchRow(NamedTuple):
    """One chunk id in a sketch, all as 64-bit numbers; 0 where nothing is known."""

    id: int
    text: int
    place: int
    doc: int


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All of it.

    expected   the chunk ids that the gold set names as evidence, as far as the run knows them
    negatives  those that it names as hard negatives, and not as evidence
    docs       the documents that were seen, by their id (or path, where they have no id)
    chunkers   every chunker version seen; `policies` every policy hash
    units      the units of the spans of hits
    sketch     the ids with the smallest hashes, at most SKETCH of them, in the order of the hashes:
               the ids that two sketches share are a fair sample of those that two runs share
    bare_places  whether places in the sketch are numbers of offsets alone; in runs that were
               stored by an earlier version they are of a document and offsets
    index      what the traces say of the index they came from: each field with its values
    """

    expected: dict[str, ChunkFacts] = {}
    negatives: dict[str, ChunkFacts] = {}
    docs: dict[str, DocFacts] = {}
    chunkers: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    sketch: tuple[SketchRow, ...] = ()
    bare_places: bool = False
    index: dict[str, tuple[str, ...]] = {}

    def observed(self) -> dict[str, str | list[str]]:
        """What the traces say of the index, with the chunkers of the hits: a value, or several."""
        seen = {**self.index, "chunker_version": self.chunkers, "policy_hash": self.policies}
        return {
            name: values[0] if len(values) == 1 else list(values)
            for name, values in sorted(seen.items())
            if values
        }


SKETCH = 16_384
