"""Retrieved documents as other tools write them, and the hits that they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ragauge.formats.imports.payload import decoded, finite

Hit = dict[str, Any]

_IDS = ("id", "id_", "node_id", "chunk_id", "_id", "point_id", "uuid", "pk")
_METADATA_IDS = ("chunk_id", "id", "_id", "node_id", "uuid", "pk")
_DOCS = (
    "doc_id", "document_id", "source", "file", "file_path", "doc_uri", "filename", "file_name",
    "path", "url", "uri", "ref_doc_id",
)  # fmt: skip
_OWN_DOCS = ("doc", "doc_id", "document_id", "source_id", "doc_uri", "ref_doc_id")
_FLAT_DOCS = ("file_path", "file_name", "filename", "url", "uri")
"""Metadata beside the text, as Haystack writes it; a `source` there may be a kind of search."""
_TEXTS = ("page_content", "text", "content", "chunk", "snippet", "pageContent")
_SCORES = ("score", "relevance_score", "similarity", "similarity_score", "_score")
_METADATA = ("metadata", "meta", "payload", "extra_info")
_OFFSETS = frozenset(("start_index", "start_char_idx", "end_char_idx"))
"""What LangChain and LlamaIndex say of where a chunk was cut out of its document."""
_LISTS = ("documents", "docs", "results", "hits", "matches", "nodes", "context", "chunks")
_METADATA_NAMES = frozenset((*_DOCS, *_METADATA_IDS))
_WRAPPERS = ("node", "document", "doc", "kwargs")
_FLAT = "metadata."
"""So Phoenix names the fields of metadata that it took apart."""
_USUAL_KEYS = 512
"""Spans with more keys are rare, and too large to be remembered."""

REPR_METADATA = "hits with metadata as a Python repr (not read)"
CUT_METADATA = "hits with metadata that was cut (not read)"
ODD_SCORE = "hits with a score that is no number (not read)"


def hits_of(documents: Any, notes: list[str]) -> list[Hit]:
    """The hits in a list of documents; an object may hold the list under some name."""
    # What is no document is still a rank.
    return [hit_of(document, notes) or {} for document in listed(documents)]


def hits_and_loss(documents: Any, dropped: int, notes: list[str]) -> tuple[list[Hit], str | None]:
    """The hits in a list of documents, and what is missing of them, if anything is.

    A list that was cut at a length limit is no JSON any more; `dropped` attributes may have been
    documents.
    """
    documents = decoded(documents)
    if isinstance(documents, str) and documents.startswith(("[", "{")):
        return [], f"the list of documents was cut at {len(documents)} characters"
    return hits_of(documents, notes), f"{dropped} attributes were dropped" if dropped else None


def listed(documents: Any) -> list[Any]:
    """The list that documents stand in: itself, or what an object has under some name."""
    documents = decoded(documents)
    if isinstance(documents, dict):
        lists = (decoded(documents[name]) for name in _LISTS if name in documents)
        documents = next((entry for entry in lists if isinstance(entry, list)), None)
    return documents if isinstance(documents, list) else []


def searched_files(response: Any, notes: list[str]) -> list[Hit]:
    """What a file search of OpenAI found, as its response tells it; files have no chunk ids."""
    response = decoded(response)
    output = response.get("output") if isinstance(response, dict) else response
    calls = [call for call in output if isinstance(call, dict)] if isinstance(output, list) else []
    hits = []
    for call in calls:
        results = call.get("results")
        if call.get("type") == "file_search_call" and isinstance(results, list):
            for result in results:
                if isinstance(result, dict):
                    doc = result.get("filename") or result.get("file_id")
                    score, text = result.get("score"), result.get("text")
                    hits.append(make_hit(notes, None, doc, score, text))
    return hits


def hit_of(document: Any, notes: list[str]) -> Hit | None:
    """The hit that a document is: an object of LangChain, LlamaIndex or a database, or a text."""
    document = decoded(document)
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, list) and len(document) == 2 and isinstance(document[0], dict):
        # What `similarity_search_with_score` gives: the document, and its score.
        return hit_of({**document[0], "score": document[1]}, notes)
    if not isinstance(document, dict):
        return None
    for wrapper in _WRAPPERS:
        inner = decoded(document.get(wrapper))
        if isinstance(inner, dict):
            around = {name: document[name] for name in _SCORES if name in document}
            return hit_of({**inner, **around}, notes)
    metadata = metadata_of(first(document, _METADATA), notes)
    if isinstance(metadata.get("metadata"), dict):  # LangChain's metadata in a payload of Qdrant
        metadata = {**metadata["metadata"], **metadata}
    text = first(document, _TEXTS, of=str, missing=first(metadata, _TEXTS, of=str))
    hit_id = first(document, _IDS, of=(str, int)) or first(metadata, _METADATA_IDS, of=(str, int))
    doc = (
        first(document, _OWN_DOCS, of=str)
        or first(metadata, _DOCS, of=str)
        or first(document, _FLAT_DOCS, of=str)
    )
    named = document.get("document")
    if isinstance(named, str):  # the text in Chroma; the name of a document has no blanks
        if text is None and len(named.split()) > 1:
            text = named
        elif doc is None:
            doc = named
    score = first(document, _SCORES, missing=first(metadata, _SCORES))
    return make_hit(notes, hit_id, doc, score, text, document, metadata)


def make_hit(
    notes: list[str],
    id: Any,
    doc: Any,
    score: Any,
    text: Any,
    *places: Mapping[str, Any],
) -> Hit:
    """A hit of our own, with the fields that are there.

    `places` may say where its text begins and ends in the document, in characters.
    """
    hit: Hit = {}
    if id is not None and id != "":
        hit["id"] = id if isinstance(id, str) else str(id)
    if doc:
        hit["doc"] = doc
    if score is not None:
        number = finite(score)
        if number is None:
            notes.append(ODD_SCORE)
        else:
            hit["score"] = number
    if isinstance(text, str):
        hit["text"] = text
    if doc:
        for fields in places:
            if not _OFFSETS.isdisjoint(fields):
                for name in sorted(_OFFSETS.intersection(fields)):
                    if _is_offset(fields[name]):
                        hit[name] = fields[name]
    return hit


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def metadata_of(value: Any, notes: list[str]) -> Mapping[str, Any]:
    """The metadata of a document: an object, or one as JSON; a Python repr is never evaluated."""
    value = decoded(value)
    if isinstance(value, dict):
        return value
    if isinstance(value, str) and value.startswith("{"):
        notes.append(REPR_METADATA if value.startswith(("{'", "{}")) else CUT_METADATA)
    return {}


def metadata_facts(metadata: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """The id, the document and the score of a chunk in its metadata."""
    score = metadata.get("score")
    score = score if type(score) is float else first(metadata, _SCORES)
    if _METADATA_NAMES.isdisjoint(metadata):  # a usual case, and the quickest answer
        return None, None, score
    hit_id, doc = first(metadata, _METADATA_IDS, of=(str, int)), first(metadata, _DOCS, of=str)
    return hit_id, doc, score


def first(
    fields: Mapping[str, Any],
    names: Iterable[str],
    *,
    of: Any = object,
    missing: Any = None,
) -> Any:
    """The value of the first name that has one of a type."""
    for name in names:
        value = fields.get(name)
        if value is not None and isinstance(value, of) and not isinstance(value, bool):
            return value
    return missing


class DocumentKeys(NamedTuple):
    """Under which keys the fields of one document stand; `flat` are those of its metadata."""

    id: str | None
    score: str | None
    content: str | None
    metadata: str | None
    flat: Sequence[tuple[str, str]]


class NumberedDocuments(NamedTuple):
    """Documents that attributes give field by field, under keys with their number.

    The number is the rank. SDKs keep 128 attributes of a span and drop the oldest, so the best
    hits go first: numbers that are not 0 to n - 1 are the sign of that, and `lost` says so.
    """

    documents: Sequence[DocumentKeys]
    lost: str | None


def numbered_documents(attributes: Mapping[str, Any], prefix: str) -> NumberedDocuments:
    """The documents by rank whose keys begin so."""
    keys = tuple(attributes)
    # Spans of one system have the same keys, so what they mean is worked out once.
    return _usual_layout(keys, prefix) if len(keys) <= _USUAL_KEYS else _layout(keys, prefix)


def _layout(keys: Sequence[str], prefix: str) -> NumberedDocuments:
    # Keys are counted, never a list made up to their number: they can say 999999999.
    ranked: dict[int, dict[str, str]] = {}
    lost: str | None = None
    for key in keys:
        if key.startswith(prefix):
            number, _, field = key.removeprefix(prefix).partition(".")
            if number.isascii() and number.isdecimal() and len(number) < 10:
                ranked.setdefault(int(number), {})[field.removeprefix("document.")] = key
            else:
                lost = f"`{key[:80]}` has no rank"
    ranks = sorted(ranked)
    if ranks and lost is None and ranks[-1] != len(ranks) - 1:
        missing, total = ranks[-1] + 1 - len(ranks), ranks[-1] + 1
        which = f"the first {missing}" if ranks[0] == missing else f"{missing}"
        lost = f"{which} of {total} documents are missing"
    return NumberedDocuments(tuple(_document_keys(ranked[rank]) for rank in ranks), lost)


def _document_keys(fields: Mapping[str, str]) -> DocumentKeys:
    flat = tuple(
        (field.removeprefix(_FLAT), key) for field, key in fields.items() if field.startswith(_FLAT)
    )
    get = fields.get
    return DocumentKeys(get("id"), get("score"), get("content"), get("metadata"), flat)


_usual_layout = lru_cache(256)(_layout)
