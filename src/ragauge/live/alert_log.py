"""The log of alerts: a file of JSON lines, one for each change of an alert.

It follows the table of events by their numbers and reads its own last line when it starts, so no
change is missing after a crash and none is there twice. A file that was rotated away is made anew.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ragauge.errors import RagaugeError
from ragauge.live.alerts import AlertRecord, iso_time
from ragauge.live.database import LiveDatabase

AT_ONCE = 500
_LONGEST_LINE = 2**20
_SUFFIXES = (".jsonl", ".log")
_BEGIN = b'{"number":'


class AlertLog:
    """The part of the worker that writes the log, if the settings name a file."""

    name = "alert log"

    def __init__(self, path: str | None, database: LiveDatabase) -> None:
        self.path = None if path is None else Path(path)
        self.database = database
        self._last: int | None = None

    def step(self, now: int) -> None:  # noqa: ARG002
        """Write what is new."""
        if self.path is None:
            return
        if self._last is None:
            self._last = self._start(self.path)
        events = read_events(self.database, after=self._last, limit=AT_ONCE)
        if not events:
            return
        lines = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
        try:
            with self.path.open("ab") as stream:
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            self._last = None  # some of it may be there
            raise RagaugeError.of(
                "file-unreadable",
                f"`{self.path}` cannot be written: {error.strerror or error}",
                hint="check [live.alerts] log, and who may write to the folder",
            ) from error
        self._last = events[-1]["number"]

    def _start(self, path: Path) -> int:
        """The number of the last event in the file; a new file begins with the next event."""
        last = check_log(path)
        if last is not None:
            return last
        return int(self.database.read("SELECT max(number) FROM live_alert_events")[0][0] or 0)


def check_log(path: str | os.PathLike[str]) -> int | None:
    """The number of the last event in a log, None where there is none yet; spares other files.

    Whoever wrote ragauge.toml names the file, and chooses some of the words in it: those lines must
    not come to stand in what a shell reads, nor behind the rows of a gold set.
    """
    real = Path(os.path.realpath(path))
    if real.suffix not in _SUFFIXES:
        raise _not_a_log(path, f"a log ends with {' or '.join(_SUFFIXES)}")
    try:
        with real.open("r+b") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _LONGEST_LINE))
            text = stream.read()
            whole, _, cut = text.rpartition(b"\n")
            last = _number_of(whole.rpartition(b"\n")[2]) if whole else None
            is_ours = last is not None if whole else cut.startswith(_BEGIN[: len(cut)])
            if not is_ours:
                raise _not_a_log(path, "it has other lines than alerts")
            if cut:  # a line that a crash has cut is written again
                stream.seek(-len(cut), os.SEEK_END)
                stream.truncate()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _not_a_log(path, error.strerror or str(error)) from error
    return last


def _number_of(line: bytes) -> int | None:
    try:
        return int(msgspec.json.decode(line)["number"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError):
        return None


def _not_a_log(path: str | os.PathLike[str], why: str) -> RagaugeError:
    message = f"[live.alerts] log: `{os.fspath(path)}` cannot be written to: {why}"
    hint = "name a new file, as alerts.jsonl, in a folder that you may write to"
    return RagaugeError.of("bad-config", message, hint=hint)


_COLUMNS = "number, tenant, app, rule, series, at, before, after, record_json"


def read_events(
    database: LiveDatabase, *, after: int = 0, limit: int = 2**31 - 1
) -> list[dict[str, Any]]:
    """Changes of alerts from a number on, the oldest first."""
    sql = f"SELECT {_COLUMNS} FROM live_alert_events WHERE number > ? ORDER BY number LIMIT ?"
    return [_event(row) for row in database.read(sql, (after, limit))]


def last_events(
    database: LiveDatabase, *, tenant: str, app: str | None = None, limit: int
) -> list[dict[str, Any]]:
    """The newest changes of a tenant's alerts, the oldest first."""
    where = "tenant = ?" if app is None else "tenant = ? AND app = ?"
    rows = database.read(
        f"SELECT {_COLUMNS} FROM live_alert_events WHERE {where} ORDER BY number DESC LIMIT ?",
        (tenant, *(() if app is None else (app,)), limit),
    )
    return [_event(row) for row in reversed(rows)]


def _event(row: Sequence[Any]) -> dict[str, Any]:
    return {
        "number": int(row[0]),
        "at": iso_time(int(row[5])),
        "tenant": row[1],
        "app": row[2],
        "rule": row[3],
        "series": row[4],
        "before": row[6],
        "state": row[7],
        "record": msgspec.json.decode(row[8], type=AlertRecord),
    }
