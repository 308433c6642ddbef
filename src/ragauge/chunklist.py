"""Lists of chunks: where the chunks of some chunker lie, as JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from ragauge.decoding import decode_row
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.fields import FieldError, Row, as_id, pick, wrong_type
from ragauge.loading import rows_of
from ragauge.model.dialect import HIT_DOCS, HIT_IDS, HIT_SECTIONS
from ragauge.pieces import Chunk
from ragauge.source import Source
from ragauge.spans import spans_in


def load_chunks(source: Source) -> dict[str, Chunk]:
    """Read a list of chunks: `{id, doc, start, end}`, with `section` and `type` where known."""
    chunks: dict[str, Chunk] = {}
    problems: list[Problem] = []
    count = 0
    for line, data, cut, overlong in rows_of(source):
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            name, chunk = _chunk(row)
            if name in chunks and chunks[name] != chunk:
                raise FieldError(
                    "duplicate-qid",
                    f"the chunk `{name}` stands twice, at different places",
                    "give every chunk its own id",
                )
            chunks[name] = chunk
        except FieldError as error:
            count += 1
            if len(problems) < MAX_REPORTED:
                place = Place(source.name, line)
                problems.append(Problem(error.code, error.message, error.hint, place))
    if count:
        raise RagaugeError(problems, total=count)
    return chunks


def digest(chunks: Mapping[str, Chunk]) -> str:
    """A short name for what a list of chunks says, whatever its order."""
    said = msgspec.json.encode(sorted(chunks.items(), key=lambda each: each[0]))
    return sha256(said).hexdigest()[:16]


def _chunk(row: Row) -> tuple[str, Chunk]:
    name, found = pick(row, HIT_IDS)
    if found is None:
        raise FieldError(
            "missing-field",
            "the chunk has no id",
            "a list of chunks has id, doc, start and end on every line",
        )
    spans = spans_in(row, "")
    doc_name, doc = pick(row, HIT_DOCS)
    if doc is None or not spans:
        raise wrong_type(
            name, "the id of a chunk with doc, start and end", found,
            'write {"id": "c1", "doc": "guide.md", "start": 0, "end": 400}',
        )  # fmt: skip
    section = pick(row, HIT_SECTIONS)
    return as_id(found, name), Chunk(
        as_id(doc, doc_name), spans, _text(section[1], section[0]), _text(row.get("type"), "type")
    )


def _text(value: Any, name: str) -> str | None:
    return None if value is None else as_id(value, name)
