"""Answers of services in their own JSON: where the hits are in them, and where the answer is.

A service answers with names of its own, and often as a stream. What is already spelled as a trace
is left alone; hits and answer are looked for only where nothing is spelled so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ragauge.model.field_spellings import FIRST_HITS, HIT_SPELLINGS, TRACE_SPELLINGS
from ragauge.model.target import TargetError, TargetOptions
from ragauge.spans import PLACE_NAMES
from ragauge.targets.shared.address import TargetSettings
from ragauge.targets.shared.foreign_hits import FIELDS, HitMaker, flat

HIT_LISTS = (
    "results", "documents", "source_documents", "sources", "contexts", "context", "passages",
    "matches", "nodes", "source_nodes", "references", "docs", "retrieved_documents",
    "retrieved_contexts", "search_results", "data",
)  # fmt: skip
"""Names under which services list what they retrieved, beside those that traces have."""

ANSWERS = ("response", "output", "result", "output_text", "completion", "generated_text", "message")
"""Names under which services answer, beside those that traces have."""

_TOKENS = ("token", "delta", "content", "text", "chunk", "answer", *ANSWERS)
"""Names of a piece of an answer in a stream."""

_DEEPEST = 3
_LONGEST_ID = 4  # words: a string of more is a passage
_DONE = "[DONE]"
_TEXTS = frozenset(FIELDS["text"])
_HIT_NAMES = frozenset(name for names in HIT_SPELLINGS.values() for name in names)
_ANSWER_NAMES = (*TRACE_SPELLINGS["answer"], *TRACE_SPELLINGS["text"])


def known_answer(answered: Any) -> Any:
    """An answer with its hits and its text under the names of a trace, where they can be told."""
    if isinstance(answered, list):
        return [_hit(entry) for entry in answered]
    if not isinstance(answered, Mapping):
        return answered
    row = dict(answered)
    listed = next((name for name in TRACE_SPELLINGS["hits"] if row.get(name) is not None), None)
    if listed is not None and isinstance(row[listed], list):
        row[listed] = [_hit(entry) for entry in row[listed]]
    elif "retrieval" not in row:
        hits = _hits_in(row)
        if hits is not None:
            if listed is not None:  # as the `hits` of a search engine, which hold its `hits`
                del row[listed]
            row["hits"] = [_hit(entry, is_text=True) for entry in hits]
    if isinstance(first := row.get(FIRST_HITS), list):
        row[FIRST_HITS] = [_hit(entry) for entry in first]
    if all(row.get(name) is None for name in _ANSWER_NAMES):
        answer = next((text for name in ANSWERS if (text := _said(row.get(name)))), None)
        answer = answer if answer is not None else _choice(row)
        if answer is not None:
            row["answer"] = answer
    return row


def _hits_in(answered: Mapping[str, Any], depth: int = 1) -> list[Any] | None:
    """The first list of what may be hits: by its name, then one level deeper."""
    for name in (*HIT_LISTS, *TRACE_SPELLINGS["hits"]):
        value = answered.get(name)
        if isinstance(value, list) and all(_may_be_hit(entry) for entry in value):
            return value
    if depth < _DEEPEST:
        for value in answered.values():
            if isinstance(value, Mapping):
                hits = _hits_in(value, depth + 1)
                if hits is not None:
                    return hits
    return None


def _may_be_hit(entry: Any) -> bool:
    if isinstance(entry, str):
        return True
    if not isinstance(entry, Mapping):
        return False
    names = flat(entry).keys()
    return not _TEXTS.isdisjoint(names) or not _HIT_NAMES.isdisjoint(names)


def _hit(entry: Any, *, is_text: bool = False) -> Any:
    """A hit under the names of a trace. In a list of a service's own, a string is a text."""
    if isinstance(entry, str):
        return {"text": entry} if len(entry.split()) > (1 if is_text else _LONGEST_ID) else entry
    if not isinstance(entry, Mapping):
        return entry
    has_id = any(entry.get(name) is not None for name in HIT_SPELLINGS["id"])
    has_text = entry.get("text") is not None or entry.get("snippet") is not None
    fields = flat(entry)
    if has_id and (has_text or fields.keys() <= _HIT_NAMES | set(PLACE_NAMES)):
        return entry
    try:
        hit = _MAKER.hit(fields)
    except TargetError:
        return entry
    stated = {name: value for name, value in entry.items() if _is_stated(name, value)}
    fields_stated = {
        field for field, names in HIT_SPELLINGS.items() if not stated.keys().isdisjoint(names)
    }
    if not stated.keys().isdisjoint(PLACE_NAMES):
        fields_stated |= {"offsets", "source_spans", "unit"}
    return stated | {name: value for name, value in hit.items() if name not in fields_stated}


def _is_stated(name: str, value: Any) -> bool:
    return value is not None and (name in _HIT_NAMES or name in PLACE_NAMES)


def _said(value: Any) -> str | None:
    """What a field says: a text, or the message that holds one."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in ("content", "text", "answer") if name in value), None)
    return value if isinstance(value, str) else None


def _choice(row: Mapping[str, Any]) -> str | None:
    """The answer of an API that speaks as OpenAI's does, whole or a piece of it."""
    choices = row.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        return None
    texts = (_said(choices[0].get(name)) for name in ("message", "delta", "text"))
    return next((text for text in texts if text), None)


def decoded_answer(body: bytes, content_type: str) -> Any:
    """The JSON of an answer; the lines or events of a stream become one object.

    ValueError where it is neither.
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        try:
            return msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if not _is_stream(body):
                raise ValueError(str(error)) from error
    return _joined(_events(body.decode("utf-8", "strict")))


def _is_stream(body: bytes) -> bool:
    lines = [line for line in body.splitlines() if line.strip()]
    if not lines:
        return False
    if lines[0].startswith((b"data:", b"event:", b"id:", b":")):
        return True
    return len(lines) > 1 and all(line.lstrip().startswith((b"{", b"[")) for line in lines)


def _events(text: str) -> Iterator[Any]:
    """What the events of a stream say: JSON where it is JSON, else a piece of text."""
    lines = text.splitlines()
    if any(line.startswith("data:") for line in lines):
        datas: list[str] = []
        for line in [*lines, ""]:
            if line.startswith("data:"):
                datas.append(line.removeprefix("data:").removeprefix(" "))
            elif not line and datas:
                yield _value("\n".join(datas))
                datas = []
        return
    for line in lines:
        if line.strip():
            yield msgspec.json.decode(line)


def _value(data: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return data


def _joined(events: Iterator[Any]) -> dict[str, Any]:
    """One answer of all events: the last of each field, and the pieces of the text together."""
    row: dict[str, Any] = {}
    pieces: list[str] = []
    for event in events:
        if isinstance(event, str):
            pieces += [] if event == _DONE else [event]
            continue
        if isinstance(event, list):
            row["hits"] = event
            continue
        if not isinstance(event, Mapping):
            continue
        piece = _piece(event)
        if piece is not None:
            so_far = "".join(pieces)
            # The last event of some services repeats the whole.
            pieces = [piece] if so_far and piece.startswith(so_far) else [*pieces, piece]
        inner = event.get("data")
        fields = {**inner, **event} if isinstance(inner, Mapping) else event
        for name, value in fields.items():
            if value is not None and not (name in _TOKENS and isinstance(value, str)):
                row[name] = value
    if pieces:
        row["answer"] = "".join(pieces)
    return row


def _piece(event: Mapping[str, Any]) -> str | None:
    """The piece of the answer in an event, if it has one."""
    inner = event.get("data")
    if isinstance(inner, str):
        return inner
    if isinstance(inner, Mapping):
        event = {**inner, **event}
    for name in _TOKENS:
        piece = _said(event.get(name))
        if piece is not None:
            return piece
    return _choice(event)


_MAKER = HitMaker(TargetSettings({}), TargetOptions())
