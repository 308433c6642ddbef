"""Bodies of searches: by words, by a vector, or a body of the user's own.

All three are bodies with holes. A hole is a whole value of the JSON and is filled with one: no
question can break out of it, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.targets.shared.address import refused

HOLES = ("question", "k", "vector")
"""What a body may name in braces."""

MOST_CANDIDATES = 10_000
"""The most that Elasticsearch looks at on a shard, and the most neighbours of both products."""

_CANDIDATES = 100
_EXAMPLE = 'as in {"query": {"match": {"text": {question}}}}'
_HOLE = re.compile(r"\{(" + "|".join(HOLES) + r")\}")
# A string as it stands, so that only a hole outside of one is put between quotes.
_BARE = re.compile(r'"(?:[^"\\]|\\.)*"|(' + _HOLE.pattern.replace("(", "(?:") + ")")


class SearchBody(Struct, frozen=True):
    """A body with holes: `tree` has them as texts, `holes` says which there are."""

    tree: Mapping[str, Any]
    holes: frozenset[str]

    def filled(self, values: Mapping[str, Any]) -> bytes:
        """The body with a value in each hole, as JSON."""
        return msgspec.json.encode(_filled(self.tree, values))

    def completed(self, fields: Sequence[str]) -> SearchBody:
        """The same body, which asks for k hits and for some fields if it says nothing of them."""
        tree = {"size": "{k}", "_source": list(fields), **self.tree}
        return SearchBody(tree, self.holes | _holes(tree))


def by_words(fields: str) -> SearchBody:
    """A search for the words of a question in one field, or in several with weights (`title^2`)."""
    names = fields_of(fields)
    if len(names) == 1 and not set("^*") & set(names[0]):
        query: Any = {"match": {names[0]: {"query": "{question}"}}}
    else:
        query = {"multi_match": {"query": "{question}", "fields": names}}
    return _body({"query": query, "track_total_hits": False})


def by_vector(field: str, k: int, candidates: int | None, *, elastic: bool) -> SearchBody:
    """A search for the nearest vectors; the two products want it said differently."""
    if k > MOST_CANDIDATES:
        raise refused(
            f"no server gives {k:,} neighbours", f"--k can be {MOST_CANDIDATES:,} at most"
        )
    if not elastic:
        query: Any = {"query": {"knn": {field: {"vector": "{vector}", "k": "{k}"}}}}
        return _body({**query, "track_total_hits": False})
    knn = {
        "field": field,
        "query_vector": "{vector}",
        "k": "{k}",
        "num_candidates": max(k, _CANDIDATES) if candidates is None else candidates,
    }
    return _body({"knn": knn, "track_total_hits": False})


def own_body(option: str) -> SearchBody:
    """The body that an option gives: JSON, or `@FILE`; holes with quotes around them or without."""
    text = option
    if option.startswith("@"):
        try:
            text = Path(option[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise refused(
                f"the body `{option[1:]}` cannot be read: {_reason(error)}", "write body=@FILE"
            ) from error
    try:
        tree = msgspec.json.decode(_BARE.sub(_quoted, text))
        if not isinstance(tree, dict):
            raise refused("the body is no JSON object", _EXAMPLE)
        body = _body(tree)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise refused(f"the body is no JSON: {error}", _EXAMPLE) from error
    if not body.holes & {"question", "vector"}:
        raise refused("the body asks every question alike", f"put a hole in it, {_EXAMPLE}")
    return body


def fields_of(fields: str) -> list[str]:
    """The fields that an option names, divided by commas."""
    names = [name.strip() for name in fields.split(",")]
    if not all(name.partition("^")[0] for name in names):
        raise refused(f"`match={fields}` names no field between its commas", "match=title^2,text")
    return names


def _quoted(match: re.Match[str]) -> str:
    return f'"{match[1]}"' if match[1] else match[0]


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or type(error).__name__).lower()


def _body(tree: Mapping[str, Any]) -> SearchBody:
    return SearchBody(tree, _holes(tree))


def _holes(value: Any) -> frozenset[str]:
    """The holes in a tree; one that is not a whole value could only be filled by pasting."""
    if isinstance(value, Mapping):
        for name in value:
            _refuse_part(name)
        return frozenset().union(*map(_holes, value.values()))
    if isinstance(value, list):
        return frozenset().union(*map(_holes, value))
    if not isinstance(value, str):
        return frozenset()
    hole = _HOLE.fullmatch(value)
    if hole is None:
        _refuse_part(value)
        return frozenset()
    return frozenset([hole[1]])


def _refuse_part(text: str) -> None:
    hole = _HOLE.search(text)
    if hole is not None:
        raise refused(
            f"`{hole[0]}` is only a part of a text or a name in the body",
            f"a hole is a whole value, {_EXAMPLE}",
        )


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {name: _filled(item, values) for name, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    hole = _HOLE.fullmatch(value) if isinstance(value, str) else None
    return value if hole is None else values[hole[1]]
