"""Migration: where each block, section and document of a corpus stands in its next version."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ragauge.model.corpus import Extent

SCHEMA = "ragauge.migration/1"

SURE = 0.85
"""From this confidence on a row is taken as it is; below it a person should look."""
LEAST = 0.60
"""Below this share of kept text a block counts as gone."""

Subject = Literal["block", "section", "document"]
Kind = Literal["same", "shift", "edit", "split", "merge", "move", "unmapped"]
KINDS: tuple[Kind, ...] = ("same", "shift", "edit", "split", "merge", "move", "unmapped")

Run = tuple[int, ...]
"""A stretch of text that was kept.

Three numbers are the same bytes: where they begin in the old text, where in the new one, and how
many they are. Four numbers are the same letters written in other bytes, such as another line
break: old start and end, new start and end. Four numbers and a 0 are text that was not kept, and
what stands in its place.
"""


class OldPlace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something of the old corpus; a section spans its subtree, a document its whole text.

    A document has the hash of its text, and that of its file where it is another one.
    """

    id: str
    doc: str
    span: Extent
    heading: Extent | None = None
    hash: str | None = None
    source_hash: str | None = None


class NewPlace(OldPlace, frozen=True, kw_only=True, omit_defaults=True):
    """Where it went: the block, section or document there, and which bytes of the old one it holds.

    `runs` are absent where the span begins with the whole old text, byte by byte. Those of a
    document are what went on unchanged from one block or heading to the next.
    """

    runs: tuple[Run, ...] | None = None


class MapRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one block, section or document.

    `confidence` is the share of its text that stands at the new places, by bytes without blanks.
    `named` says that a document has kept its name, or a section its heading: it is still the same
    one, however much of its text came and went.
    """

    of: Subject
    kind: Kind
    old: OldPlace
    new: tuple[NewPlace, ...] = ()
    confidence: float = 0.0
    named: bool = False
    note: str | None = None

    @property
    def for_review(self) -> bool:
        """Whether it needs a person's attention."""
        return self.confidence < SURE and not self.named


class CorpusVersion(Struct, frozen=True, kw_only=True):
    """One of the two corpora, as its manifest tells of it."""

    revision: str
    documents: int
    sections: int
    blocks: int


class MigrationFigures(Struct, frozen=True, kw_only=True):
    """How well the two versions fit together.

    coverage        the share of old blocks that have a new place; null without blocks
    duplicate_ids   ids that stand for more than one block or section of a version
    drift           the share of the bytes of mapped blocks that are not there; null likewise
    review          rows that need a person's attention
    """

    coverage: float | None
    duplicate_ids: int
    drift: float | None
    review: int


class MigrationTarget(Struct, frozen=True, kw_only=True):
    """What a figure should be, and whether it is."""

    figure: str
    demand: str
    met: bool


class Header(Struct, frozen=True, kw_only=True):
    """The first line of a map: which versions it leads from and to, and what is in it."""

    schema: str = SCHEMA
    old: CorpusVersion
    new: CorpusVersion
    counts: dict[str, dict[str, int]]
    figures: MigrationFigures
    targets: tuple[MigrationTarget, ...]


class MigrationMap(Struct, frozen=True):
    """A whole map: rows of documents, then sections, then blocks, in the order of the corpus."""

    header: Header
    rows: tuple[MapRow, ...]
