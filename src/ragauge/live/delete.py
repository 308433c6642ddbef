"""Deletion on demand: of a trace, or of all traces of a user, wherever something of them is kept.

The numbers of minutes and windows stay: they are sums over many traces and name nobody. What waits
in the spool is looked through too, since a trace may be on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from ragauge.files.fields import FieldError
from ragauge.live.assemble import USER_NAMES
from ragauge.live.database import LiveDatabase
from ragauge.live.spool import SpooledBody, SpoolReader, decode_spans, encode_spans
from ragauge.live.trace_values import decoded_row, fallback_id

_TABLES = ("live_pairs", "live_gold_candidates", "live_traces")
_AT_ONCE = 500
_BODIES = 100


class Deleted(Struct, frozen=True):
    """How many rows of each table, and traces in the spool, are gone."""

    traces: int
    pairs: int
    candidates: int
    spooled: int


def delete_traces(
    database: LiveDatabase,
    spool: SpoolReader | None,
    *,
    tenant: str = "",
    trace_ids: Sequence[str] = (),
    user_keys: Sequence[str] = (),
    now: int,
) -> Deleted:
    """Delete traces by their ids and by the keyed hashes of their users.

    The deletion itself is noted first, and the spool comes before the store: so a trace that a
    worker has just read is not stored, or it is found there.
    """
    named = [("trace", name) for name in trace_ids] + [("user", name) for name in user_keys]
    with database.transaction():
        database.execute_many(
            "INSERT INTO live_deletions (tenant, kind, name, deleted) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (tenant, kind, name) DO UPDATE SET deleted = excluded.deleted",
            [(tenant, kind, name, now) for kind, name in sorted(set(named))],
        )
    spooled = 0 if spool is None else _delete_spooled(spool, tenant, set(trace_ids), set(user_keys))
    ids = dict.fromkeys(trace_ids)
    for user in user_keys:
        rows = database.read(
            "SELECT trace_id FROM live_traces WHERE tenant = ? AND user_key = ?", (tenant, user)
        )
        ids.update(dict.fromkeys(row[0] for row in rows))
    counts = dict.fromkeys(_TABLES, 0)
    listed = list(ids)
    for start in range(0, len(listed), _AT_ONCE):
        part = listed[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(part))
        with database.transaction() as execute:
            for table in _TABLES:
                sql = f"DELETE FROM {table} WHERE tenant = ? AND trace_id IN ({marks})"
                counts[table] += execute(sql, (tenant, *part)).rowcount
    pairs, candidates, traces = (counts[table] for table in _TABLES)
    return Deleted(traces, pairs, candidates, spooled)


def _delete_spooled(
    spool: SpoolReader, tenant: str, trace_ids: set[str], user_keys: set[str]
) -> int:
    after = deleted = 0
    while bodies := spool.batch(after, _BODIES):
        after = bodies[-1].number
        for body in bodies:
            if body.tenant == tenant:
                rest, count = _without(body, trace_ids, user_keys)
                if count:
                    deleted += count
                    spool.replace(body.number, rest)
    return deleted


def _without(
    body: SpooledBody, trace_ids: set[str], user_keys: set[str]
) -> tuple[bytes | None, int]:
    """A body without some traces, None where nothing is left of it; and how many there were."""
    if body.kind == "spans":
        spans = decode_spans(body.body)
        gone = set(trace_ids)
        for span in spans:
            if any(span.attributes.get(name) in user_keys for name in USER_NAMES):
                gone.add(span.trace_id)
        kept = [span for span in spans if span.trace_id not in gone]
        count = len({span.trace_id for span in spans} & gone)
        return (encode_spans(kept) if kept else None), count
    lines = body.body.split(b"\n")
    gone_lines = set(_named(lines, body.key, trace_ids, user_keys))
    # A row without an id is known by its line: those that go leave an empty one.
    rest = [b"" if place in gone_lines else line for place, line in enumerate(lines)]
    return (b"\n".join(rest) if any(line.strip() for line in rest) else None), len(gone_lines)


def _named(
    lines: Sequence[bytes], key: bytes, trace_ids: set[str], user_keys: set[str]
) -> Iterable[int]:
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            row = decoded_row(line)
        except (FieldError, msgspec.DecodeError):
            continue
        trace_id = row.get("trace_id") or fallback_id(key, place)
        if trace_id in trace_ids or row.get("user_key") in user_keys:
            yield place
