"""From decoded JSON values to hits, citations, and what was recorded beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ragauge.files.fields import Row, as_id, as_number, as_text, conflict, pick, wrong_type
from ragauge.model import greek_names
from ragauge.model.dialect import HIT_HASHES, HIT_IDS, HIT_SECTIONS
from ragauge.model.trace import Citation, Hit, Timing
from ragauge.spans import Span, place_name, spans_in

_HASH_NAMES = frozenset({*HIT_HASHES[0], *HIT_HASHES[1], "policy_hash"})
MOST_MS = 366 * 24 * 3600 * 1000
_DELTAS = {name: place for place, name in enumerate(greek_names.DELTA_S)}
_LAMBDAS = {name: place for place, name in enumerate(greek_names.LAMBDA)}
_STATES = frozenset(name for name in greek_names.LAMBDA if "_" in name)
"""Names that can only mean a state; a bare `lambda` may be a weight."""


def hit(value: Any, path: str) -> Hit:
    """Make a hit of a list entry: an id, or an object with one (or with a place)."""
    if isinstance(value, str):
        return Hit(value)
    if not isinstance(value, dict):
        return Hit(as_id(value, path))
    doc, other = _documents(value, path)
    inner = value.get("citation")
    place = inner if isinstance(inner, dict) else value
    spans = spans_in(value, path) or (spans_in(place, path) if place is not value else ())
    named = other if other is not None else doc
    spot = _spot(inner, named) if isinstance(inner, dict) and not spans and named else None
    version = value.get("chunker_version")
    text = value.get("text")
    is_snippet = text is None and value.get("snippet") is not None
    if is_snippet:
        text = value["snippet"]
    score = value.get("score")
    return Hit(
        id=_identity(value, path, doc, spans)[0],
        doc=doc,
        section=_section(value, path),
        score=as_number(score, f"{path}.score") if score is not None else None,
        type=_text(value, "type", path),
        text=as_text(text, f"{path}.text") if text is not None else None,
        spans=spans,
        delta_s=_delta(value, path),
        chunker_version=as_id(version, f"{path}.chunker_version") if version is not None else None,
        path=other,
        spot=spot,
        snippet=is_snippet,
        **hashes(value, path),
    )


def hashes(value: Row, path: str) -> dict[str, str]:
    """The hashes that an object gives of its document, its text and its chunker's settings."""
    if value.keys().isdisjoint(_HASH_NAMES):
        return {}
    found = {}
    for field, names in (
        ("doc_hash", HIT_HASHES[0]),
        ("text_hash", HIT_HASHES[1]),
        ("policy_hash", ("policy_hash",)),
    ):
        name, given = pick(value, names, inside=f"{path}." if path else "")
        if given is not None:
            found[field] = as_id(given, name)
    return found


def citation(value: Any, path: str) -> Citation:
    """Make a citation of a list entry: an id, or an object with an id or a place."""
    if not isinstance(value, dict):
        return Citation(as_id(value, path))
    place: Row = value
    if all(value.get(name) is None for name in HIT_IDS):
        inner = value.get("citation")
        if isinstance(inner, str):
            return Citation(inner)
        if isinstance(inner, dict):
            place = inner
    doc, other = _documents(place, path)
    doc = doc if doc is not None else other
    spans = spans_in(place, path)
    unnamed = all(place.get(name) is None for name in HIT_IDS)
    if doc is not None and unnamed and not spans and place.get("kind") is not None:
        return Citation(_spot(place, doc), doc, _section(place, path), placed=True)
    known, placed = _identity(place, path, doc, spans)
    return Citation(
        id=known,
        doc=doc,
        section=_section(place, path),
        spans=spans,
        delta_s=_delta(value, path),
        placed=placed,
    )


def _identity(value: Row, path: str, doc: str | None, spans: Sequence[Span]) -> tuple[str, bool]:
    """The id, or a name made of the place; and whether it was made."""
    name, found = pick(value, HIT_IDS, inside=f"{path}.")
    if found is not None:
        return as_id(found, name), False
    if doc is not None and spans:
        return place_name(doc, spans), True
    raise wrong_type(
        path, "an id or an object with an id", value, f"add one of {', '.join(HIT_IDS)}"
    )


def _spot(place: Row, doc: str) -> str:
    """A name for a place that has no span: a region of a picture, a caption."""
    told = [
        f"{name}={place[name]}"
        for name in ("kind", "page", "x", "y", "w", "h")
        if isinstance(place.get(name), str | int | float)
    ]
    return f"{doc}#{','.join(told)}"


def _documents(value: Row, path: str) -> tuple[str | None, str | None]:
    """The document, and its path where that is another name for it."""
    name, found = pick(value, ("doc", "doc_id"), inside=f"{path}.")
    other_name, other = pick(value, ("doc_path", "path"), inside=f"{path}.")
    doc = as_id(found, name) if found is not None else None
    where = as_id(other, other_name) if other is not None else None
    return (where, None) if doc is None else (doc, where if where != doc else None)


def _section(value: Row, path: str) -> str | None:
    name, found = pick(value, HIT_SECTIONS, inside=f"{path}.")
    return as_id(found, name) if found is not None else None


def _text(value: Row, name: str, path: str) -> str | None:
    found = value.get(name)
    return as_text(found, f"{path}.{name}") if found is not None else None


def _named(row: Row, names: Mapping[str, int]) -> list[tuple[str, Any]]:
    """The fields of a row that have one of the names and a value, in the order of the names."""
    there = names.keys() & row.keys()
    if not there:
        return []
    found = sorted(there, key=names.__getitem__)
    return [(name, row[name]) for name in found if row[name] is not None]


def _delta(value: Row, path: str) -> float | None:
    return distances(value, f"{path}.")[1]


def distances(row: Row, inside: str = "") -> tuple[list[float | None] | None, float | None]:
    """The ΔS that a row records: a list for its hits, and one number for the whole."""
    listed: tuple[str, list[float | None]] | None = None
    single: tuple[str, float] | None = None
    for name, value in _named(row, _DELTAS):
        path = inside + name
        if isinstance(value, list):
            each = [
                None if one is None else distance(one, f"{path}[{i}]")
                for i, one in enumerate(value)
            ]
            if listed is not None and listed[1] != each:
                raise conflict(listed[0], path, listed[1], each)
            listed = listed or (path, each)
        else:
            number = distance(value, path)
            if single is not None and single[1] != number:
                raise conflict(single[0], path, single[1], number)
            single = single or (path, number)
    return listed[1] if listed else None, single[1] if single else None


def distance(value: Any, path: str) -> float:
    """Take a ΔS: 1 - cos lies between 0 and 2."""
    number = as_number(value, path)
    if not 0 <= number <= 2:
        raise wrong_type(path, "a number from 0 to 2", value, "ΔS is 1 - cos of two vectors")
    return number


def out_of_order(values: Sequence[Any]) -> bool:
    """Whether the ranks or scores of the list entries disagree with their order."""
    entries = [each for each in values if isinstance(each, dict)]
    ranks = [each["rank"] for each in entries if isinstance(each.get("rank"), int)]
    scores = [each["score"] for each in entries if isinstance(each.get("score"), int | float)]
    return any(later < earlier for earlier, later in pairwise(ranks)) or any(
        later > earlier for earlier, later in pairwise(scores)
    )


def state(row: Row) -> str | None:
    """The recorded λ: a sign or a word; of a list of states the last."""
    for name, value in _named(row, _LAMBDAS):
        last = value[-1] if isinstance(value, list) and value else value
        if not isinstance(last, str):
            continue
        found = greek_names.lambda_state(last)
        if found is not None:
            return found
        if name in _STATES:
            raise wrong_type(
                name,
                "a state of λ",
                last,
                "write one of → ← <> ×, or convergent, divergent, recursive, chaotic",
            )
    return None


def timing(row: Row) -> Timing | None:
    """How long the parts took, where the row says so."""
    perf = row.get("perf")
    inner: Row = perf if isinstance(perf, Mapping) else {}
    retrieve = _milliseconds(inner, "t_retrieve_ms", "perf.")
    reason = _milliseconds(inner, "t_reason_ms", "perf.")
    total = _milliseconds(row, "latency_ms", "")
    if total is None:
        total = _milliseconds(row, "elapsed_ms", "")
    if total is None and retrieve is not None and reason is not None:
        total = retrieve + reason
    if retrieve is None and reason is None and total is None:
        return None
    return Timing(retrieve=retrieve, reason=reason, total=total)


def _milliseconds(row: Row, name: str, inside: str) -> float | None:
    value = row.get(name)
    if value is None or isinstance(value, Mapping):
        return None
    found = as_number(value, inside + name)
    if not 0 <= found <= MOST_MS:
        raise wrong_type(inside + name, "milliseconds", value, "a time is from 0 to a year")
    return found
