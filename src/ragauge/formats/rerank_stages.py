"""The stages of a retrieval: the list of hits before a reranker, and the one after it.

A trace has both where `hits_before_rerank` stands beside its hits. The first list takes the place
of the last one where files are opened, so that whatever reads the rows, on the fast path or on the
exact one, reads one list and need not know of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ragauge.errors import Place, RagaugeError
from ragauge.files.ranges import Source
from ragauge.formats.hits import hit
from ragauge.model.field_spellings import FIRST_HITS, LAST_HITS, TRACE_SPELLINGS
from ragauge.model.trace import Trace

_HITS = TRACE_SPELLINGS["hits"]
_NULL = b"null"
_BLOCK = 2**20


def has_both_stages(row: Mapping[str, Any]) -> bool:
    """Whether a row has the list that a reranker was given; an empty one is a list too."""
    return not _is_null(row.get(FIRST_HITS))


def at_first_stage(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its first list for its hits; values may be raw JSON.

    A row without a reranker has one list, which is the first as well as the last.
    """
    if not has_both_stages(row):
        return dict(row)
    first = row[FIRST_HITS]
    names = [name for name in _HITS if not _is_null(row.get(name))]
    nested = _plain(row.get("retrieval"))
    changed = {name: value for name, value in row.items() if name not in names[1:]}
    last: Any = []
    if names:  # under the name that the file has, by which its dialect is recognised
        last = row[names[0]]
        changed[names[0]] = first
    elif isinstance(nested, dict) and any(nested.get(name) is not None for name in _HITS):
        name = next(name for name in _HITS if nested.get(name) is not None)
        last = nested[name]
        changed["retrieval"] = {**nested, name: first}
    else:
        changed["hits"] = first
    changed.setdefault(LAST_HITS, last)  # a file may have been written with its first list
    return changed


def at_last_stage(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as it was before `at_first_stage`; any other as it is."""
    if _is_null(row.get(LAST_HITS)):
        return dict(row)
    swapped = {**row, FIRST_HITS: row[LAST_HITS]}
    return at_first_stage(swapped)


def trace_at_first_stage(trace: Trace) -> Trace:
    """A trace in memory with its first list for its hits."""
    entries = trace.extra.get(FIRST_HITS)
    if not isinstance(entries, list) or LAST_HITS in trace.extra:
        return trace
    hits = tuple(hit(entry, f"{FIRST_HITS}[{rank}]") for rank, entry in enumerate(entries))
    return replace(trace, hits=hits, extra={**trace.extra, LAST_HITS: trace.hits})


def trace_at_last_stage(trace: Trace) -> Trace:
    """A trace in memory as it was before `trace_at_first_stage`; any other as it is."""
    entries = trace.extra.get(LAST_HITS)
    if isinstance(entries, list):  # of a file that was written with its first list
        entries = tuple(hit(entry, f"{LAST_HITS}[{rank}]") for rank, entry in enumerate(entries))
    return trace if entries is None else replace(trace, hits=entries)


def mentions_field(source: Source, name: str) -> bool:
    """Whether a name in quotes stands anywhere in a file of rows: quicker than to decode them."""
    if source.layout not in ("lines", "array", "object") or not source.size:
        return False
    quoted = f'"{name}"'.encode()
    tail = b""
    with open(source.path, "rb") as file:  # not mapped: all of it would count as memory
        file.seek(source.start)
        while block := file.read(_BLOCK):
            if quoted in block or quoted in tail + block[: len(quoted)]:
                return True
            tail = block[-len(quoted) :]
    return False


def refuse_single_stage(source: Source) -> None:
    """Raise where no row had a first list: the numbers would be those of the only list."""
    if source.size and not mentions_field(source, LAST_HITS):
        raise no_first_stage(source.name)


def traces_at_first_stage(traces: Iterable[Trace], name: str) -> tuple[Trace, ...]:
    """Traces in memory with their first lists; an error where none has one."""
    given = tuple(traces)
    if given and not any(isinstance(trace.extra.get(FIRST_HITS), list) for trace in given):
        raise no_first_stage(name)
    return tuple(map(trace_at_first_stage, given))


def no_first_stage(name: str) -> RagaugeError:
    """The error of traces that have one list of hits each, where the first of two is wanted."""
    return RagaugeError.of(
        "missing-field",
        f"no trace has a list of hits before a reranker: `{FIRST_HITS}` is in no row",
        hint=f"leave --stage out, or say where the list is: --field {FIRST_HITS}=candidates",
        place=Place(name),
    )


def _is_null(value: Any) -> bool:
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value) == _NULL)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
