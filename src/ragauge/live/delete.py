"""Deletion on demand: of a trace, or of all traces of a user, wherever something of them is kept.

The numbers of minutes, windows and decisions stay: they name nobody. Everything that has an id
goes: traces, pairs, gold candidates, the worst traces in messages to webhooks, and what waits in
the spool or was put aside, since a trace may be on its way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ragauge.files.fields import FieldError
from ragauge.live.assemble import USER_NAMES
from ragauge.live.database import LiveDatabase
from ragauge.live.spool import SpooledBody, SpoolReader, decode_spans, encode_spans
from ragauge.live.trace_values import decoded_row, fallback_id
from ragauge.live.traffic import quarantine_path

_TABLES = ("live_pairs", "live_gold_candidates", "live_traces")
_AT_ONCE = 500
_BODIES = 100


class Deleted(Struct, frozen=True):
    """How many rows of each table, traces in the spool and bodies put aside are gone."""

    traces: int
    pairs: int
    candidates: int
    spooled: int
    put_aside: int
    messages: int
    """Messages to webhooks that named one of the traces, and no longer do."""


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
    if database.url.startswith("sqlite"):
        database.read("PRAGMA secure_delete = ON")  # zeros, not bytes that a page still holds
    users = set(user_keys)
    _note(database, tenant, trace_ids, user_keys, now)
    ids = set(trace_ids)
    put_aside = spooled = 0
    if spool is not None:
        # Of a trace in several bodies only one may name the user.
        of_users = _spooled_ids(spool, tenant, users)
        _note(database, tenant, sorted(of_users), (), now)
        ids |= of_users
        spooled = _delete_spooled(spool, tenant, ids, users)
        put_aside = _delete_put_aside(spool.path.parent, tenant, ids | users)
    counts = dict.fromkeys(_TABLES, 0)
    for user in sorted(users):
        where = "WHERE tenant = ? AND user_key = ?"
        rows = database.read(f"SELECT trace_id FROM live_traces {where}", (tenant, user))
        ids.update(row[0] for row in rows)
        with database.transaction() as execute:  # a candidate outlives its trace
            sql = f"DELETE FROM live_gold_candidates {where}"
            counts["live_gold_candidates"] += execute(sql, (tenant, user)).rowcount
    listed = sorted(ids)
    for start in range(0, len(listed), _AT_ONCE):
        part = listed[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(part))
        with database.transaction() as execute:
            for table in _TABLES:
                sql = f"DELETE FROM {table} WHERE tenant = ? AND trace_id IN ({marks})"
                counts[table] += execute(sql, (tenant, *part)).rowcount
    messages = _forget_in_messages(database, tenant, ids)
    if database.url.startswith("sqlite"):
        database.read("PRAGMA wal_checkpoint(TRUNCATE)")  # the log has the rows as they were
    pairs, candidates, traces = (counts[table] for table in _TABLES)
    return Deleted(traces, pairs, candidates, spooled, put_aside, messages)


def _note(
    database: LiveDatabase,
    tenant: str,
    trace_ids: Sequence[str],
    user_keys: Sequence[str],
    now: int,
) -> None:
    named = {("trace", name) for name in trace_ids} | {("user", name) for name in user_keys}
    with database.transaction():
        database.execute_many(
            "INSERT INTO live_deletions (tenant, kind, name, deleted) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (tenant, kind, name) DO UPDATE SET deleted = excluded.deleted",
            [(tenant, kind, name, now) for kind, name in sorted(named)],
        )


def _forget_in_messages(database: LiveDatabase, tenant: str, ids: set[str]) -> int:
    """Take ids out of the messages to webhooks, whether they were sent or not."""
    sql = (
        "SELECT number, payload FROM live_outbox WHERE tenant = ? AND number > ?"
        " ORDER BY number LIMIT ?"
    )
    after = changed = 0
    while rows := database.read(sql, (tenant, after, _AT_ONCE)):
        after = int(rows[-1][0])
        with database.transaction() as execute:
            for number, text in rows:
                payload = msgspec.json.decode(text)
                named = [alert for alert in payload.get("alerts", ()) if "worst_traces" in alert]
                if not any(ids.intersection(alert["worst_traces"]) for alert in named):
                    continue
                for alert in named:
                    alert["worst_traces"] = [
                        name for name in alert["worst_traces"] if name not in ids
                    ]
                without = msgspec.json.encode(payload, order="deterministic").decode()
                execute("UPDATE live_outbox SET payload = ? WHERE number = ?", (without, number))
                changed += 1
    return changed


def _spooled_ids(spool: SpoolReader, tenant: str, user_keys: set[str]) -> set[str]:
    """The ids of traces that wait in the spool with a span that names one of the users."""
    after, ids = 0, set()
    while user_keys and (bodies := spool.batch(after, _BODIES)):
        after = bodies[-1].number
        for body in bodies:
            if body.tenant == tenant and body.kind == "spans":
                spans = decode_spans(body.body)
                ids |= {
                    span.trace_id
                    for span in spans
                    if any(span.attributes.get(name) in user_keys for name in USER_NAMES)
                }
    return ids


def _delete_put_aside(folder: Path, tenant: str, names: set[str]) -> int:
    """Delete the bodies in quarantine that hold one of these names: nobody could read them."""
    deleted = 0
    # An id may stand there as JSON has it.
    marks = {name.encode() for name in names} | {msgspec.json.encode(name) for name in names}
    for path in sorted(folder.glob(quarantine_path("*", tenant, "*"))):
        content = path.read_bytes()
        if any(mark in content for mark in marks):
            path.unlink(missing_ok=True)
            deleted += 1
    return deleted


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
        kept = [span for span in spans if span.trace_id not in trace_ids]
        count = len({span.trace_id for span in spans} & trace_ids)
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
