"""Citations as the big APIs give them: objects in a response, each API's in its own shape.

Read from the answers of OpenAI (annotations, file search), Anthropic, Cohere, Amazon Bedrock and
Gemini, wherever a trace logged the response as it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ragauge.files.fields import FieldError
from ragauge.formats.hits import TEXT_ID, hit
from ragauge.formats.imports.payload import decoded
from ragauge.text import text_hash

_DEEPEST = 12
_MOST = 10_000
_IDS = ("id", "chunk_id", "document_id", "snippet_id", "block_id", "node_id")
_FILES = (
    "file_id", "filename", "source", "uri", "url", "document_title", "document_name",
    "documentName", "title", "doc", "doc_id",
)  # fmt: skip
_TEXTS = ("cited_text", "quote", "sourceContent")
_NUMBERS = ("document_index", "documentIndex", "search_result_index", "searchResultIndex")
_WRAPPERS = (
    "file_citation", "file_path", "url_citation", "document", "data", "tool_output", "location",
)  # fmt: skip
_DOCUMENTS, _OWN_TEXTS = ("document", "data", "tool_output"), ("text", "snippet", "content")
_PLACES = ("documentChar", "documentPage", "documentChunk", "web")
"""Where Bedrock says what a citation of a document is of; knowledge bases have `s3Location` etc."""
_BEDROCK_NAMES = {"x-amz-bedrock-kb-chunk-id": "id", "x-amz-bedrock-kb-source-uri": "uri"}
_MARKER = re.compile(r"【[\d:]*†([^【】]+)】")
"""What OpenAI's assistants write into the text, with the name of the file."""
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
        kinds = chunk.values() if isinstance(chunk, dict) else ()
        # `web`, `retrievedContext`, ...: one of them, the others are absent or null.
        inner = next((kind for kind in kinds if isinstance(kind, dict)), None)
        if inner is not None:
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
    for wrapper in _WRAPPERS:
        inner = entry.get(wrapper)
        if isinstance(inner, dict):
            if wrapper in _DOCUMENTS:  # its text is what is cited, and not what was said
                texts = (inner[name] for name in _OWN_TEXTS if isinstance(inner.get(name), str))
                entry = {**entry, "quote": next(texts, entry.get("quote"))}
            entry = {**inner, **{name: entry[name] for name in entry if name != wrapper}}
    for name in [*entry]:
        if isinstance(entry[name], dict) and (name in _PLACES or name.endswith("Location")):
            entry = {**entry[name], **entry}
    metadata = entry.get("metadata")
    if isinstance(metadata, dict):
        stated = {
            field: metadata[name]
            for name, field in _BEDROCK_NAMES.items()
            if isinstance(metadata.get(name), str)
        }
        entry = {**entry, **stated}
    content = entry.get("content")
    if isinstance(content, dict) and isinstance(content.get("text"), str):
        entry = {**entry, "quote": content["text"]}
    marker = entry.get("text")
    if isinstance(marker, str) and (named := _MARKER.fullmatch(marker)):
        entry = {**entry, "filename": entry.get("filename") or named[1]}
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
    names = [_plain_name(entry) or hit_name(entry) for entry in known]
    cited: dict[str, None] = {}
    for reference in references:
        place = _place_of(reference, known, names)
        if place is not None:
            cited[names[place] or ""] = None
        elif reference.id is not None:
            cited[reference.id] = None
        elif reference.files:
            cited[reference.files[0]] = None
        elif reference.text is not None:  # of nothing that was retrieved: still a citation
            cited[f"{TEXT_ID}{text_hash(reference.text)}"] = None
    return list(cited)


_PLAIN_HIT = {"id": str, "text": str, "score": float, "doc": str}


def _plain_name(entry: dict[str, Any]) -> str | None:
    """The id of a hit of the usual shape, which needs no second look; None for any other."""
    if any(_PLAIN_HIT.get(name) is not type(value) for name, value in entry.items()):
        return None
    return entry.get("id")


def hit_name(entry: Any) -> str | None:
    """What a hit is called where traces are read: its id, or a name of its place or its text."""
    try:
        return hit(entry, "").id
    except FieldError:
        return None


def _place_of(
    reference: CitedSource,
    hits: Sequence[dict[str, Any]],
    names: Sequence[str | None],
) -> int | None:
    """The rank from 0 of the hit that a citation means."""
    named = [place for place, name in enumerate(names) if name is not None]
    for place in named:
        if reference.id is not None and names[place] == reference.id:
            return place
    quote = _plain(reference.text)
    if quote:
        for place in named:
            if quote in _plain(hits[place].get("text")):
                return place
    known = {*reference.files, *([reference.id] if reference.id is not None else [])}
    of_file = [place for place in named if {names[place], str(hits[place].get("doc"))} & known]
    if len(of_file) == 1:
        return of_file[0]
    return reference.number if reference.number in named else None


def _plain(text: Any) -> str:
    return _BLANKS.sub(" ", text).strip() if isinstance(text, str) else ""
