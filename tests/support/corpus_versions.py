"""Corpora for tests of migration, made of Markdown texts without looking for files."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ragauge.corpus.blocks import build_blocks
from ragauge.corpus.diff.classify import migration_map
from ragauge.corpus.manifest import Corpus, CorpusWriter, read_corpus
from ragauge.corpus.parsers import markdown
from ragauge.corpus.section_tree import build_sections
from ragauge.model.corpus import Document
from ragauge.model.migration import MapRow, MigrationMap


def corpus_of(files: Mapping[str, str], folder: Path) -> Corpus:
    """Write a corpus of Markdown files to a folder, and read it."""
    with CorpusWriter(folder) as writer:
        for doc, source in sorted(files.items()):
            data = source.encode()
            parsed = markdown.parse(data)
            sections = build_sections(doc, parsed)
            document = Document(
                doc=doc, format="markdown", hash=sha256(parsed.text).hexdigest(),
                bytes=len(parsed.text), text="", source_hash=sha256(data).hexdigest(),
            )  # fmt: skip
            writer.add(document, sections, build_blocks(doc, parsed, sections), parsed.text)
        writer.finish({})
    return read_corpus(folder)


def mapped(old: Mapping[str, str], new: Mapping[str, str], folder: Path) -> MigrationMap:
    """The map from one set of files to another."""
    return migration_map(corpus_of(old, folder / "old"), corpus_of(new, folder / "new"))


def rows_of(found: MigrationMap, of: str) -> dict[str, MapRow]:
    """The rows of blocks, sections or documents, by their old id."""
    return {row.old.id: row for row in found.rows if row.of == of}


def brief(row: MapRow) -> tuple[str, tuple[str, ...], float]:
    """What a row says, in short."""
    return row.kind, tuple(place.id for place in row.new), row.confidence
