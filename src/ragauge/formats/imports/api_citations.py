"""Citations as the big APIs give them: objects in a response, each API's in its own shape.

Read from the answers of OpenAI (annotations, file search), Anthropic, Cohere, Amazon Bedrock and
Gemini, wherever a trace logged the response as it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ragauge.formats.imports.payload import decoded

_DEEPEST = 12
_MOST = 10_000
_IDS = ("id", "chunk_id", "document_id", "snippet_id", "block_id", "node_id")
_FILES = ("file_id", "filename", "source", "uri", "url", "document_title", "title", "doc", "doc_id")
_TEXTS = ("cited_text", "quote", "sourceContent")
_NUMBERS = ("document_index", "documentIndex", "search_result_index")
_BEDROCK_IDS = ("x-amz-bedrock-kb-chunk-id", "x-amz-bedrock-kb-source-uri")
_BLANKS = re.compile(r"\s+")


class CitedSource(Struct, frozen=True, kw_only=True):
    """What a citation points to: an id, names of its file, some of its text, its number from 0."""

    id: str | None = None
    files: tuple[str, ...] = ()
    text: str | None = None
    number: int | None = None


def references_in(response: Any) -> list[CitedSource] | None:
    """The citations in a response; None where it has no place for any."""
    lists = list(_lists(decoded(response), 0))
    if not lists:
        return None
    return [reference for entries in lists for entry in entries for reference in _of(entry)]


def references_of(entries: Sequence[Any]) -> list[CitedSource]:
    """The citations of a list: ids, or objects of any API."""
    return [reference for entry in entries for reference in _of(entry)]


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    """The lists of citations in a response, in its order."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for entry in value[:_MOST]:
            yield from _lists(entry, depth + 1)
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if name in ("citations", "annotations") and isinstance(inner, list):
            yield inner[:_MOST]
        elif name in ("groundingMetadata", "grounding_metadata") and isinstance(inner, dict):
            yield _grounding(inner)
        elif isinstance(inner, dict | list):
            yield from _lists(inner, depth + 1)


def _grounding(metadata: dict[str, Any]) -> list[Any]:
    """The chunks of Gemini that support some of the answer, in the order of their first use."""
    chunks = metadata.get("groundingChunks", metadata.get("grounding_chunks"))
    supports = metadata.get("groundingSupports", metadata.get("grounding_supports"))
    if not isinstance(chunks, list):
        return []
    used: dict[int, None] = {}
    for support in supports if isinstance(supports, list) else ():
        if isinstance(support, dict):
            names = ("groundingChunkIndices", "grounding_chunk_indices")
            for index in next((support[n] for n in names if isinstance(support.get(n), list)), ()):
                if isinstance(index, int) and 0 <= index < len(chunks):
                    used[index] = None
    cited = []
    for index in used:
        chunk = chunks[index]
        inner = next(iter(chunk.values()), None) if isinstance(chunk, dict) else None
        if isinstance(inner, dict):  # `web` or `retrievedContext`
            cited.append({**inner, "quote": inner.get("text")})
    return cited


def _of(entry: Any) -> Iterator[CitedSource]:
    """What one citation points to; some point to several documents."""
    entry = decoded(entry)
    if isinstance(entry, str):
        yield CitedSource(id=entry)
        return
    if isinstance(entry, int) and not isinstance(entry, bool):
        yield CitedSource(id=str(entry))
        return
    if not isinstance(entry, dict):
        return
    several = _several(entry)
    if several is not None:
        for one in several[:_MOST]:
            yield from _of(one)
        return
    for wrapper in ("file_citation", "file_path", "url_citation", "document", "location"):
        inner = entry.get(wrapper)
        if isinstance(inner, dict):
            entry = {**inner, **{name: entry[name] for name in entry if name != wrapper}}
    for name in ("documentChar", "documentPage", "documentChunk", "s3Location", "webLocation"):
        if isinstance(entry.get(name), dict):
            entry = {**entry[name], **entry}
    metadata = entry.get("metadata")
    if isinstance(metadata, dict):
        stated = [metadata[name] for name in _BEDROCK_IDS if isinstance(metadata.get(name), str)]
        entry = {**entry, **dict(zip(("id", "uri"), stated, strict=False))}
    content = entry.get("content")
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        entry = {**entry, "quote": content["text"]}
    names = [entry[name] for name in _FILES if isinstance(entry.get(name), str)]
    ids = [entry[name] for name in _IDS if isinstance(entry.get(name), str | int)]
    quotes = [_text(entry[name]) for name in _TEXTS if entry.get(name) is not None]
    numbers = [entry[name] for name in _NUMBERS if isinstance(entry.get(name), int)]
    reference = CitedSource(
        id=str(ids[0]) if ids else None,
        files=tuple(name for name in names if name),
        text=next((quote for quote in quotes if quote), None),
        number=numbers[0] if numbers else None,
    )
    if reference != CitedSource():
        yield reference


def _several(entry: dict[str, Any]) -> list[Any] | None:
    for name in ("document_ids", "sources", "retrievedReferences", "retrieved_references"):
        listed = entry.get(name)
        if isinstance(listed, list):
            return listed
    return None


def _text(value: Any) -> str | None:
    """A quote; Bedrock gives it in parts."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(part for part in parts if isinstance(part, str))
    return value if isinstance(value, str) else None


def cited_hits(references: Sequence[CitedSource], hits: Sequence[Any]) -> list[str]:
    """The ids that citations stand for, each once: those of hits, or else what they name.

    A hit is found by its id, by the text that is quoted from it, by its file where no other hit
    is of that file, or by its number.
    """
    known = [hit if isinstance(hit, dict) else {"id": hit} for hit in hits]
    texts = [_plain(hit.get("text")) for hit in known]
    cited: dict[str, None] = {}
    for reference in references:
        hit = _hit_of(reference, known, texts)
        if hit is not None:
            cited[str(hit["id"])] = None
        elif reference.id is not None:
            cited[reference.id] = None
        elif reference.files:
            cited[reference.files[0]] = None
    return list(cited)


def _hit_of(
    reference: CitedSource, hits: Sequence[dict[str, Any]], texts: Sequence[str]
) -> dict[str, Any] | None:
    with_ids = [place for place, hit in enumerate(hits) if hit.get("id") is not None]
    for place in with_ids:
        if reference.id is not None and str(hits[place]["id"]) == reference.id:
            return hits[place]
    quote = _plain(reference.text)
    if quote:
        for place in with_ids:
            if quote in texts[place]:
                return hits[place]
    names = {*reference.files, *([reference.id] if reference.id is not None else [])}
    of_file = [p for p in with_ids if {str(hits[p]["id"]), str(hits[p].get("doc"))} & names]
    if len(of_file) == 1:
        return hits[of_file[0]]
    number = reference.number
    if number is not None and number in with_ids:
        return hits[number]
    return None


def _plain(text: Any) -> str:
    return _BLANKS.sub(" ", text).strip() if isinstance(text, str) else ""
