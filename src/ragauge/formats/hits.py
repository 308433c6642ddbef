"""From decoded JSON values to hits, citations, and what was recorded beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ragauge.files.fields import Row, as_id, as_number, as_text, conflict, pick, pick_as, wrong_type
from ragauge.model import greek_names
from ragauge.model.field_spellings import (
    HIT_SPELLINGS,
    PERF_SPELLINGS,
    TRACE_SPELLINGS,
    USAGE_SPELLINGS,
)
from ragauge.model.trace import Citation, Hit, Timing, Usage
from ragauge.spans import PLACE_NAMES, Span, place_name, span_of_text, spans_in
from ragauge.text import text_hash

_HASHES = ("doc_hash", "text_hash", "policy_hash")
_HASH_NAMES = frozenset(name for field in _HASHES for name in HIT_SPELLINGS[field])
_HIT_FIELDS = {name: field for field, names in HIT_SPELLINGS.items() for name in names}
_SIMPLE = ("score", "rank", "type", "text", "snippet", "citation", "chunker_version")
"""Fields of a hit that are taken as they are; the others are picked where they are needed."""
_ABSENT: tuple[str, Any] = ("", None)
_MOST_WORDS = 4
"""A string of more is a passage, and no name."""
TEXT_ID = "text="
"""How the name of a hit begins that was made of its text."""
MOST_MS = 366 * 24 * 3600 * 1000
MOST_TOKENS, MOST_COST = 10**9, 10**6
_DELTAS = {name: place for place, name in enumerate(TRACE_SPELLINGS["delta_s"])}
_LAMBDAS = {name: place for place, name in enumerate(TRACE_SPELLINGS["lambda_state"])}
_STATES = frozenset(name for name in _LAMBDAS if "_" in name)
"""Names that can only mean a state; a bare `lambda` may be a weight."""


def hit(value: Any, path: str) -> Hit:
    """Make a hit of a list entry: an id, or an object with one (or with a place)."""
    if isinstance(value, str):
        return Hit(value)
    if not isinstance(value, dict):
        return Hit(as_id(value, path))
    fields = _fields(value, path)
    doc, other = _documents(value, path)
    inner = fields.get("citation", _ABSENT)[1]
    place = inner if isinstance(inner, dict) else value
    spans = spans_in(value, path) or (spans_in(place, path) if place is not value else ())
    is_snippet = "text" not in fields and "snippet" in fields
    if is_snippet:
        fields["text"] = f"{path}.text", fields["snippet"][1]
    text = _taken(fields, "text", as_text)
    if not spans and text and (doc or other):
        spans = span_of_text(value, path, text)
    named = other if other is not None else doc
    spot = _spot(inner, named) if isinstance(inner, dict) and not spans and named else None
    return Hit(
        id=_identity(value, path, doc, spans, text=text, is_hit=True)[0],
        doc=doc,
        section=_section(value, path),
        score=_taken(fields, "score", as_number),
        type=_taken(fields, "type", as_text),
        text=text,
        spans=spans,
        delta_s=distances(value, f"{path}.")[1] if "delta_s" in fields else None,
        chunker_version=_taken(fields, "chunker_version", as_id),
        path=other,
        spot=spot,
        snippet=is_snippet,
        **hashes(value, path),
    )


def _fields(value: Row, path: str) -> dict[str, tuple[str, Any]]:
    """The fields of a hit, each with its path and value. One pass: most hits have few of them."""
    fields: dict[str, tuple[str, Any]] = {}
    for name, entry in value.items():
        field = _HIT_FIELDS.get(name)
        if field is None or entry is None:
            continue
        if field in fields and field in _SIMPLE:
            fields[field] = pick(value, HIT_SPELLINGS[field], inside=f"{path}.")
        else:
            fields[field] = f"{path}.{name}", entry
    return fields


def _taken(
    fields: Mapping[str, tuple[str, Any]], field: str, convert: Callable[[Any, str], Any]
) -> Any:
    name, entry = fields.get(field, _ABSENT)
    return None if entry is None else convert(entry, name)


def hashes(value: Row, path: str) -> dict[str, str]:
    """The hashes that an object gives of its document, its text and its chunker's settings."""
    if value.keys().isdisjoint(_HASH_NAMES):
        return {}
    inside = f"{path}." if path else ""
    stated = {
        field: pick_as(as_id, value, HIT_SPELLINGS[field], inside=inside) for field in _HASHES
    }
    return {field: hashed for field, hashed in stated.items() if hashed is not None}


def citation(value: Any, path: str) -> Citation:
    """Make a citation of a list entry: an id, or an object with an id or a place."""
    if not isinstance(value, dict):
        return Citation(as_id(value, path))
    place: Row = value
    if all(value.get(name) is None for name in HIT_SPELLINGS["id"]):
        inner = pick(value, HIT_SPELLINGS["citation"])[1]
        if isinstance(inner, str):
            return Citation(inner)
        if isinstance(inner, dict):
            place = inner
    doc, other = _documents(place, path)
    doc = doc if doc is not None else other
    spans = spans_in(place, path)
    unnamed = all(place.get(name) is None for name in HIT_SPELLINGS["id"])
    if doc is not None and unnamed and not spans and place.get("kind") is not None:
        return Citation(_spot(place, doc), doc, _section(place, path), placed=True)
    citation_id, placed = _identity(place, path, doc, spans)
    section, delta_s = _section(place, path), distances(value, f"{path}.")[1]
    return Citation(citation_id, doc, section, spans=spans, delta_s=delta_s, placed=placed)


def _identity(
    value: Row,
    path: str,
    doc: str | None,
    spans: Sequence[Span],
    *,
    text: str | None = None,
    is_hit: bool = False,
) -> tuple[str, bool]:
    """The id, or a name made of the place or of the text; and whether it was made.

    A hit may be a document and no more: it is called after it, and counts for metrics of documents.
    """
    own_id = pick_as(as_id, value, HIT_SPELLINGS["id"], inside=f"{path}.")
    if own_id is not None:
        return own_id, False
    if doc is not None and spans:
        return place_name(doc, spans), True
    if text is not None and text.strip():
        return f"{TEXT_ID}{text_hash(text)}", True
    passage = next((name for name in value if _is_unread_passage(name, value[name])), None)
    if is_hit and doc is not None and passage is None:
        return doc, True
    kinds = "an id, a document or a text" if is_hit else "an id or a place"
    hint = _name_hint(value, passage if is_hit else None)
    raise wrong_type(path, f"an id, or an object with {kinds}", value, hint)


def _is_unread_passage(name: str, entry: Any) -> bool:
    """Whether a field that nothing reads is probably the text of a hit, under a wrong name."""
    is_text = isinstance(entry, str) and len(entry.split()) > _MOST_WORDS
    return is_text and name not in _HIT_FIELDS and name not in PLACE_NAMES


def _name_hint(value: Row, passage: str | None) -> str:
    """Which name a hit lacks, and which of its fields may be meant for it."""
    hint = f"add one of {', '.join(HIT_SPELLINGS['id'])}, or a document, or a text"
    if passage is not None:
        return f"`{passage}` is not read; if it is the text, say so: --field hits.text={passage}"
    deeper = next((name for name in value if isinstance(value[name], dict)), None)
    where = f"{deeper}.NAME" if deeper is not None else next(iter(value), None)
    return hint if where is None else f"{hint}; if it is there, say where: --field hits.id={where}"


def _spot(place: Row, doc: str) -> str:
    """A name for a place that has no span: a region of a picture, a caption."""
    coordinates = [
        f"{name}={place[name]}"
        for name in ("kind", "page", "x", "y", "w", "h")
        if isinstance(place.get(name), str | int | float)
    ]
    return f"{doc}#{','.join(coordinates)}"


def _documents(value: Row, path: str) -> tuple[str | None, str | None]:
    """The document, and its path where that is another name for it."""
    doc = pick_as(as_id, value, HIT_SPELLINGS["doc"], inside=f"{path}.")
    where = pick_as(as_id, value, HIT_SPELLINGS["path"], inside=f"{path}.")
    return (where, None) if doc is None else (doc, where if where != doc else None)


def _section(value: Row, path: str) -> str | None:
    return pick_as(as_id, value, HIT_SPELLINGS["section"], inside=f"{path}.")


def _named(row: Row, names: Mapping[str, int]) -> list[tuple[str, Any]]:
    """The fields of a row that have one of the names and a value, in the order of the names."""
    there = names.keys() & row.keys()
    if not there:
        return []
    in_order = sorted(there, key=names.__getitem__)
    return [(name, row[name]) for name in in_order if row[name] is not None]


def distances(row: Row, inside: str = "") -> tuple[list[float | None] | None, float | None]:
    """The ΔS that a row records: a list for its hits, and one number for the whole."""
    first: dict[bool, tuple[str, Any]] = {}
    for name, value in _named(row, _DELTAS):
        path = inside + name
        read: Any
        if is_list := isinstance(value, list):
            entries = enumerate(value)
            read = [one if one is None else distance(one, f"{path}[{i}]") for i, one in entries]
        else:
            read = distance(value, path)
        first_path, first_read = first.setdefault(is_list, (path, read))
        if first_read != read:
            raise conflict(first_path, path, first_read, read)
    return first.get(True, _ABSENT)[1], first.get(False, _ABSENT)[1]


def distance(value: Any, path: str) -> float:
    """Take a ΔS: 1 - cos lies between 0 and 2."""
    number = as_number(value, path)
    if not 0 <= number <= 2:
        raise wrong_type(path, "a number from 0 to 2", value, "ΔS is 1 - cos of two vectors")
    return number


def out_of_order(values: Sequence[Any]) -> bool:
    """Whether the ranks or scores of the list entries disagree with their order."""
    hits = [hit for hit in values if isinstance(hit, dict)]

    def numbers(field: str, kind: Any) -> list[Any]:
        found = (hit.get(name) for hit in hits for name in HIT_SPELLINGS[field])
        return [number for number in found if isinstance(number, kind)]

    return is_disordered(numbers("rank", int), numbers("score", int | float))


def is_disordered(ranks: Sequence[float], scores: Sequence[float]) -> bool:
    """Whether ranks fall, or scores rise, from one hit to the next."""
    return any(later < earlier for earlier, later in pairwise(ranks)) or any(
        later > earlier for earlier, later in pairwise(scores)
    )


def state(row: Row) -> str | None:
    """The recorded λ: a sign or a word; of a list of states the last."""
    for name, value in _named(row, _LAMBDAS):
        last = value[-1] if isinstance(value, list) and value else value
        if not isinstance(last, str):
            continue
        recorded = greek_names.lambda_state(last)
        if recorded is not None:
            return recorded
        if name in _STATES:
            hint = "write one of → ← <> ×, or convergent, divergent, recursive, chaotic"
            raise wrong_type(name, "a state of λ", last, hint)
    return None


def timing(row: Row) -> Timing | None:
    """How long the parts took, where the row says so."""
    nested = (row.get(name) for name in TRACE_SPELLINGS["perf"])
    inner: Row = next((times for times in nested if isinstance(times, Mapping) and times), {})
    retrieve = _milliseconds(inner, PERF_SPELLINGS["retrieve"], "perf.")
    reason = _milliseconds(inner, PERF_SPELLINGS["reason"], "perf.")
    total = _milliseconds(row, TRACE_SPELLINGS["total_ms"], "")
    if total is None and retrieve is not None and reason is not None:
        total = retrieve + reason
    if retrieve is None and reason is None and total is None:
        return None
    return Timing(retrieve=retrieve, reason=reason, total=total)


def _milliseconds(row: Row, names: Sequence[str], inside: str) -> float | None:
    """The first time that there is: a wall clock and a sum of the parts may well differ."""
    for name in names:
        value = row.get(name)
        if value is None or isinstance(value, Mapping):
            continue
        time = as_number(value, inside + name)
        if not 0 <= time <= MOST_MS:
            raise wrong_type(inside + name, "milliseconds", value, "a time is from 0 to a year")
        return time
    return None


def usage(row: Row) -> Usage | None:
    """The tokens and the money that a trace cost, where the row says so."""
    tokens = _amount(row, "tokens", MOST_TOKENS)
    cost = _amount(row, "cost", MOST_COST)
    return None if tokens is None and cost is None else Usage(tokens=tokens, cost=cost)


def _amount(row: Row, field: str, most: float) -> float | None:
    """A number, or that of an object: its total, or else what went in and what came out."""
    name, value = pick(row, TRACE_SPELLINGS[field], meaning=_total)
    amount = _total(value)
    if amount is None:
        return None
    number = as_number(amount, name)
    if not 0 <= number <= most:
        raise wrong_type(name, f"a number from 0 to {most:,}", value, "a trace costs no more")
    return number


def _total(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    parts = {
        part: next((value[name] for name in names if value.get(name) is not None), None)
        for part, names in USAGE_SPELLINGS.items()
    }
    if parts["total"] is not None:
        return parts["total"]
    amounts = [as_number(one, part) for part, one in parts.items() if one is not None]
    return sum(amounts) if amounts else None
