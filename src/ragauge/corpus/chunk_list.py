"""Lists of chunks: where the chunks of some chunker lie, as JSON Lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError, Row, as_id, as_text, pick, wrong_type
from ragauge.files.open import PathLike, opened
from ragauge.files.ranges import Source, rows_of
from ragauge.formats import hits
from ragauge.formats.json_rows import decode_row
from ragauge.model.chunk import Chunk
from ragauge.model.field_spellings import HIT_DOCS, HIT_IDS, HIT_SECTIONS
from ragauge.quotes import normalised
from ragauge.spans import spans_in
from ragauge.text import text_hash

ChunkCheck = Callable[[str, Chunk], Chunk]
"""Looks at a chunk with its id: returns it with what more is known of it, or raises FieldError."""


class ChunkList(Struct, frozen=True):
    """The chunks of a list by their ids, and what was wrong with its lines."""

    chunks: dict[str, Chunk]
    problems: list[Problem]
    problem_count: int


def load_chunks(source: Source, *, check: ChunkCheck | None = None) -> dict[str, Chunk]:
    """Read a list of chunks: `{id, doc, start, end}`, with what else is known of them.

    That may be `section`, `type`, `text`, `text_hash`, `doc_hash`, `chunker_version` and
    `policy_hash`; the last ones let a comparison see what changed between two indexes.
    """
    chunk_list = read_chunks(source, check=check)
    if chunk_list.problem_count:
        raise RagaugeError(chunk_list.problems, total=chunk_list.problem_count)
    return chunk_list.chunks


def read_chunks(source: Source, *, check: ChunkCheck | None = None) -> ChunkList:
    """Read a list of chunks to its end; a chunk that does not pass the check is in it all the same.

    So its id is known, and what is wrong is reported once, not again at every hit on the chunk.
    """
    chunks: dict[str, Chunk] = {}
    problems: list[Problem] = []
    count = 0
    for line, data, cut, overlong in rows_of(source):
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            name, chunk = _chunk(row)
            again = chunks.get(name)
            try:
                chunk = chunk if check is None else check(name, chunk)
            finally:
                chunks.setdefault(name, chunk)
            if again is not None and again != chunk:
                message = f"the chunk `{name}` stands twice, at different places"
                raise FieldError("duplicate-qid", message, "give every chunk its own id")
        except FieldError as error:
            count += 1
            if len(problems) < MAX_REPORTED:
                place = Place(source.name, line)
                problems.append(Problem(error.code, error.message, error.hint, place))
    return ChunkList(chunks, problems, count)


def chunk_list_digest(chunks: Mapping[str, Chunk]) -> str:
    """A short name for what a list of chunks says, whatever its order."""
    encoded = msgspec.json.encode(sorted(chunks.items(), key=lambda entry: entry[0]))
    return sha256(encoded).hexdigest()[:16]


def full_texts(chunks: Mapping[str, Chunk]) -> dict[str, str]:
    """The normalised text of documents whose chunks all have their text at a place in bytes."""
    texts = listed_documents(chunks)
    return {doc: normalised(text.decode("utf-8", "replace")) for doc, text in texts.items()}


def listed_documents(chunks: Mapping[str, Chunk]) -> dict[str, bytes]:
    """The text of documents whose chunks all have their text at a place in bytes.

    What no chunk holds is blank: it is not in the index.
    """
    by_doc: dict[str, list[Chunk]] = {}
    for chunk in chunks.values():
        by_doc.setdefault(chunk.doc, []).append(chunk)
    texts = {}
    for doc, listed in by_doc.items():
        if all(_holds_its_place(chunk) for chunk in listed):
            text = bytearray(b" " * max(chunk.spans[0].end for chunk in listed))
            for chunk in listed:
                span = chunk.spans[0]
                text[span.start : span.end] = (chunk.text or "").encode()
            texts[doc] = bytes(text)
    return texts


def _holds_its_place(chunk: Chunk) -> bool:
    if chunk.text is None or len(chunk.spans) != 1:
        return False
    span = chunk.spans[0]
    return span.unit == "byte" and len(chunk.text.encode()) == span.length


def _chunk(row: Row) -> tuple[str, Chunk]:
    name, value = pick(row, HIT_IDS)
    if value is None:
        hint = "a list of chunks has id, doc, start and end on every line"
        raise FieldError("missing-field", "the chunk has no id", hint)
    spans = spans_in(row, "")
    doc_name, doc = pick(row, HIT_DOCS)
    if doc is None or not spans:
        hint = 'write {"id": "c1", "doc": "guide.md", "start": 0, "end": 400}'
        raise wrong_type(name, "the id of a chunk with doc, start and end", value, hint)
    section = pick(row, HIT_SECTIONS)
    text = row.get("text")
    hashes = hits.hashes(row, "")
    if text is not None and "text_hash" not in hashes:
        hashes["text_hash"] = text_hash(as_text(text, "text"))
    return as_id(value, name), Chunk(
        as_id(doc, doc_name),
        spans,
        _text(section[1], section[0]),
        _text(row.get("type"), "type"),
        text=as_text(text, "text") if text is not None else None,
        chunker_version=_text(row.get("chunker_version"), "chunker_version"),
        **hashes,
    )


def _text(value: Any, name: str) -> str | None:
    return None if value is None else as_id(value, name)


def read_chunk_list(path: PathLike | None) -> dict[str, Chunk]:
    """Read a list of chunks, if there is one."""
    if path is None:
        return {}
    with opened(path) as source:
        return load_chunks(source)
