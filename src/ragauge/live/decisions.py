"""Decisions over live traffic: one for every window that closes, stored with its evidence.

The table takes no changes. Two servers on one store may both decide about a window: the first row
stays. Whoever wrote it tells the webhooks and begins the command, once for every change of mind.
"""

from __future__ import annotations

import logging
import os
import queue
import shlex
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge import __version__
from ragauge.errors import RagaugeError
from ragauge.files.redaction import redacted
from ragauge.live.alert_rules import INDEX_DRIFT
from ragauge.live.alerts import config_hash, iso_time, milliseconds_of
from ragauge.live.database import LiveDatabase
from ragauge.live.decision_rules import (
    RULES,
    AlertWindow,
    DecisionEvidence,
    DecisionRecord,
    EvidencePair,
    decide,
    evidence_maker,
    pack_evidence,
    record_bytes,
    unpack_evidence,
)
from ragauge.live.mirror import AskedSystem
from ragauge.live.outbox import Message, queue_messages
from ragauge.live.pairs import PairValues
from ragauge.live.settings import LiveSettings, PromotionRule
from ragauge.live.trace_sampler import hash_share
from ragauge.text import plain

MINUTE = 60_000
HOUR = 60 * MINUTE
EVERY = 5_000
SETTLE = 30_000
"""So long after a window was seen it is decided about: its alerts are evaluated meanwhile."""
LATE_ALERTS = 2 * MINUTE
"""So long after its end an alert still counts for the window that is decided about: it is evaluated
after that end. For the window before it this would count one alert as two."""
CATCH_UP = HOUR
LATE_NUMBERS = 256
"""A window of another server may become visible after one with a larger number."""
LEAST_EVIDENCE_HOURS = 24
COMMAND_SECONDS = 600.0
_MOST_READ, _MOST_OUTPUT = 2**20, 4000
_UNNUMBERED = -1

log = logging.getLogger("ragauge.live")

_COLUMNS = (
    "number, created_at, tenant, app, live, shadow, begins_at, ends_at, decision, "
    "CAST(record_json AS TEXT), record_hash"
)


class StoredDecision(Struct, frozen=True, kw_only=True):
    """A decision as the store has it; `record_json` are the bytes that were decided."""

    number: int
    created_at: str
    tenant: str
    app: str
    live: str
    shadow: str
    begins_at: str | None
    ends_at: str | None
    decision: str
    record_json: str
    record_hash: str


def read_decisions(
    database: LiveDatabase,
    *,
    tenant: str | None = None,
    app: str | None = None,
    number: int | None = None,
    limit: int = 1,
) -> list[StoredDecision]:
    """The newest decisions, the newest first; those of one tenant, app or number."""
    wanted = {"tenant": tenant, "app": app, "number": number}
    clauses = [f"{name} = ?" for name, value in wanted.items() if value is not None]
    where = f" WHERE {' AND '.join(clauses)}" if clauses else ""
    values = [value for value in wanted.values() if value is not None]
    rows = database.read(
        f"SELECT {_COLUMNS} FROM eval_decisions{where} ORDER BY number DESC LIMIT ?",
        (*values, limit),
    )
    names = StoredDecision.__struct_fields__
    return [StoredDecision(**dict(zip(names, row, strict=True))) for row in rows]


def read_record(stored: StoredDecision) -> DecisionRecord:
    """The record of a stored decision."""
    try:
        return msgspec.json.decode(stored.record_json, type=DecisionRecord)
    except msgspec.DecodeError as error:
        message = f"the record of decision {stored.number} cannot be read: {error}"
        hint = "a newer ragauge may have made it; else restore the store from a backup"
        raise RagaugeError.of("bad-store", message, hint=hint) from error


def repeat_decision(database: LiveDatabase, stored: StoredDecision) -> DecisionRecord:
    """Compute a stored decision again from its evidence; an error unless the bytes are the same."""
    name = f"decision {stored.number}"
    rows = database.read("SELECT evidence FROM eval_decisions WHERE number = ?", (stored.number,))
    packed = bytes(rows[0][0])
    maker = evidence_maker(packed)
    if maker.rules != RULES:
        raise RagaugeError.of(
            "decision-differs",
            f"{name} was made by version {maker.rules} of the rules, and this is {RULES}",
            hint=f"repeat it with ragauge {maker.ragauge_version}, which made it",
        )
    record = decide(unpack_evidence(packed))
    again = record_bytes(record)
    if again != stored.record_json.encode() or sha256(again).hexdigest() != stored.record_hash:
        raise RagaugeError.of(
            "decision-differs",
            f"{name} says `{stored.decision}`, and its evidence gives another record: "
            f"`{record.decision}`",
            hint="the row was changed, or the rules were without a new version: compare the "
            "record with a backup of the store",
        )
    return record


class _Window(NamedTuple):
    """A window of all traffic of an app that has closed."""

    number: int
    tenant: str
    app: str
    begins_at: str
    ends_at: str


class _Ended(NamedTuple):
    """How a command ended."""

    decision: int
    exit_code: int | None
    output: str


class Decisions:
    """The part of the worker that decides."""

    name = "decisions"

    def __init__(
        self,
        settings: LiveSettings,
        database: LiveDatabase,
        *,
        settle: int = SETTLE,
    ) -> None:
        self.settings = settings
        self.database = database
        self.rule = settings.shadow
        self.settle = settle
        self.config_hash = config_hash(settings)
        self.shadow = ""
        if self.rule is not None:
            system = AskedSystem(self.rule.target, settings, self.rule, self.rule.options)
            self.shadow = system.name
        self._looked: int | None = None
        self._after: int | None = None
        self._noticed: dict[int, int] = {}
        self._done: set[int] = set()
        self._ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()
        self._commands: list[threading.Thread] = []

    def step(self, now: int) -> None:
        """Decide about the windows that have closed, and note how commands ended."""
        self._note_ended(now)
        if self._looked is not None and now - self._looked < EVERY:
            return
        self._looked = now
        for window in self._new_windows(now):
            noticed = self._noticed.setdefault(window.number, now)
            if now - noticed >= self.settle:
                self._decide(window, now)
                self._done.add(window.number)
                del self._noticed[window.number]

    def wait(self, seconds: float = 60.0) -> None:
        """Wait for commands that run; the next step notes how they ended."""
        for thread in self._commands:
            thread.join(seconds)

    def _new_windows(self, now: int) -> list[_Window]:
        if self._after is None:
            rows = self.database.read(
                "SELECT max(number) FROM eval_live_windows WHERE ends_at < ?",
                (iso_time(now - CATCH_UP),),
            )
            self._after = int(rows[0][0] or 0)
        rows = self.database.read(
            "SELECT number, tenant, app, begins_at, ends_at FROM eval_live_windows"
            " WHERE number > ? AND build = '' AND index_hash = '' AND question_type = ''"
            " ORDER BY number",
            (self._after,),
        )
        windows = [_Window(*row) for row in rows]
        if windows:
            self._after = max(self._after, windows[-1].number - LATE_NUMBERS)
            self._done = {number for number in self._done if number > self._after}
        return [window for window in windows if window.number not in self._done]

    def _decide(self, window: _Window, now: int) -> None:
        if self._is_decided(window):
            return
        packed = pack_evidence(self.evidence(window))
        # Decided by what is stored, not by what it was before: 24 and 24.0 are different bytes.
        evidence = unpack_evidence(packed)
        record = decide(evidence)
        if not evidence.shadow and record.decision == "hold":
            return  # nothing is mirrored, and nothing is wrong: there is nothing to decide
        text = record_bytes(record)
        before = self.database.read(
            "SELECT decision FROM eval_decisions WHERE tenant = ? AND app = ? AND shadow = ?"
            " ORDER BY number DESC LIMIT 1",
            (window.tenant, window.app, evidence.shadow),
        )
        is_new = record.decision != (before[0][0] if before else "hold")
        with self.database.transaction() as execute:
            inserted = execute(
                "INSERT INTO eval_decisions (created_at, tenant, app, live, shadow, begins_at,"
                " ends_at, decision, ragauge_version, config_hash, record_json, record_hash,"
                " evidence) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING RETURNING number",
                (
                    iso_time(now),
                    window.tenant,
                    window.app,
                    evidence.live,
                    evidence.shadow,
                    window.begins_at,
                    window.ends_at,
                    record.decision,
                    __version__,
                    self.config_hash,
                    text.decode(),
                    sha256(text).hexdigest(),
                    packed,
                ),
            ).fetchone()
            if inserted is None:
                return  # another server has decided about it
            number = int(inserted[0])
            log.info("%s: %s (%s)", window.app, record.decision, "; ".join(record.reasons))
            command = self._command(record.decision) if is_new else None
            if is_new:
                key = f"decision\0{number}\0{sha256(text).hexdigest()}"
                message = Message(window.tenant, key, decision_message(number, record))
                queue_messages(execute, self.settings.alerts.webhooks, [message], now)
            if command is not None:
                execute(
                    "INSERT INTO live_actions (decision, tenant, command, began)"
                    " VALUES (?, ?, ?, ?)",
                    (number, window.tenant, plain(str(redacted(command))), now),
                )
        if command is not None:
            self._begin(number, command, record.decision, text)

    def _is_decided(self, window: _Window) -> bool:
        """Whether the window has its decision: pairs that came later make no second one."""
        rows = self.database.read(
            "SELECT 1 FROM eval_decisions WHERE tenant = ? AND app = ? AND shadow = ?"
            " AND begins_at = ? AND ends_at = ? LIMIT 1",
            (window.tenant, window.app, self.shadow, window.begins_at, window.ends_at),
        )
        return bool(rows)

    def _command(self, decision: str) -> str | None:
        if self.rule is None:
            return None
        return {"promote": self.rule.on_promote, "roll-back": self.rule.on_roll_back}.get(decision)

    def _begin(self, number: int, command: str, decision: str, record: bytes) -> None:
        """Run a command in a thread of its own; the row that says so is stored already."""

        def run() -> None:
            self._ended.put(run_command(number, command, decision, record))

        thread = threading.Thread(target=run, daemon=True, name="ragauge-action")
        thread.start()
        self._commands = [*(each for each in self._commands if each.is_alive()), thread]

    def _note_ended(self, now: int) -> None:
        while not self._ended.empty():
            ended = self._ended.get()
            log.info("the command of decision %d ended with %s", ended.decision, ended.exit_code)
            with self.database.transaction() as execute:
                execute(
                    "UPDATE live_actions SET ended = ?, exit_code = ?, output = ?"
                    " WHERE decision = ?",
                    (now, ended.exit_code, ended.output, ended.decision),
                )

    # --- evidence ---

    def evidence(self, window: _Window) -> DecisionEvidence:
        """All that is known about a window and the pairs up to its end."""
        rule = self.rule
        windows = [*self._windows_before(window), window]
        firing = firing_times(self.database, window.tenant, window.app)
        live, asked, left_out = self._pairs(window) if rule is not None else ("", [], 0)
        return DecisionEvidence(
            tenant=window.tenant,
            app=window.app,
            live=live,
            shadow=self.shadow,
            windows=(
                *(alert_window(one, firing) for one in windows[:-1]),
                alert_window(window, firing, late=LATE_ALERTS),
            ),
            pairs=without_ids(asked),
            hours=hours_of(asked),
            rule=PromotionRule() if rule is None else rule.promote,
            least_pairs=0 if rule is None else rule.least_pairs,
            least_hours=0 if rule is None else rule.least_hours,
            ragauge_version=__version__,
            config_hash=self.config_hash,
            left_out=left_out,
        )

    def _windows_before(self, window: _Window) -> list[_Window]:
        rows = self.database.read(
            "SELECT number, tenant, app, begins_at, ends_at FROM eval_live_windows"
            " WHERE tenant = ? AND app = ? AND build = '' AND index_hash = ''"
            " AND question_type = '' AND ends_at <= ? ORDER BY ends_at DESC LIMIT 1",
            (window.tenant, window.app, window.begins_at),
        )
        return [_Window(*row) for row in rows]

    def _pairs(self, window: _Window) -> tuple[str, list[AskedPair], int]:
        """The index that live has now, the pairs with it, and how many the sample leaves out."""
        rule = self.rule
        assert rule is not None
        end = milliseconds_of(window.ends_at)
        begin = end - round(2 * max(rule.least_hours, LEAST_EVIDENCE_HOURS) * HOUR)
        where = (
            " FROM live_pairs WHERE tenant = ? AND app = ? AND minute >= ? AND minute <= ?"
            " AND asked < ? AND shadow = ? AND state <> 'asking'"
        )
        values = window.tenant, window.app, begin // MINUTE, end // MINUTE, end, self.shadow
        asked = self.database.read(
            f"SELECT asked, trace_id, live{where} AND role = 'shadow'", values
        )
        if not asked:
            return "", [], 0
        live = str(max(asked)[2])
        names = sorted((name for _, name, own in asked if own == live), key=hash_share)
        chosen = names[: rule.most_pairs]
        pairs = []
        for start in range(0, len(chosen), 500):
            some = chosen[start : start + 500]
            marks = ", ".join("?" * len(some))
            pairs += self.database.read(
                "SELECT trace_id, question_key, asked, role, state, measured"
                f"{where} AND trace_id IN ({marks})",
                (*values, *some),
            )
        asked_pairs = sorted(map(_asked_pair, pairs), key=_order)
        return live, since_last_change(asked_pairs), len(names) - len(chosen)


class AskedPair(NamedTuple):
    """A row of `live_pairs`: what it says, and when it was asked about which trace and question."""

    asked: int
    trace_id: str
    question_key: str
    pair: EvidencePair


def _order(asked: AskedPair) -> tuple[int, str, str]:
    return asked.asked, asked.trace_id, asked.pair.role


def _asked_pair(row: Sequence[Any]) -> AskedPair:
    trace_id, question, asked, role, state, measured = row
    values = why = None
    if state != "skipped":
        values = msgspec.json.decode(bytes(measured), type=PairValues)
    elif measured is not None:
        why = msgspec.json.decode(bytes(measured))["why"]
    pair = EvidencePair(_UNNUMBERED, role, state, values, why)
    return AskedPair(int(asked), trace_id, question, pair)


def without_ids(asked: Sequence[AskedPair]) -> tuple[EvidencePair, ...]:
    """The pairs as evidence, in the order in which they were asked: questions become numbers."""
    numbers: dict[str, int] = {}
    return tuple(
        replace(one.pair, question=numbers.setdefault(one.question_key, len(numbers)))
        for one in asked
    )


def hours_of(asked: Sequence[AskedPair]) -> float:
    """The hours over which the shadow was asked."""
    times = [one.asked for one in asked if one.pair.role == "shadow"]
    return (max(times) - min(times)) / HOUR if times else 0.0


def since_last_change(asked: Sequence[AskedPair]) -> list[AskedPair]:
    """The pairs from the moment on that the shadow has had the index that it has now."""
    indexes = [
        (place, values.other.index)
        for place, one in enumerate(asked)
        if one.pair.role != "self"
        and (values := one.pair.values) is not None
        and values.other.index is not None
    ]
    if not indexes:
        return list(asked)
    newest = indexes[-1][1]
    others = [place for place, index in indexes if index != newest]
    return list(asked[others[-1] + 1 :]) if others else list(asked)


class FiringTime(NamedTuple):
    """When an alert was firing: from a time, up to another or until now."""

    rule: str
    begins: int
    ends: int | None


def firing_times(database: LiveDatabase, tenant: str, app: str) -> list[FiringTime]:
    """The times at which alerts of an app were firing, by their changes of state."""
    rows = database.read(
        "SELECT rule, series, at, before, after FROM live_alert_events WHERE tenant = ?"
        " AND app = ? AND (before = 'firing' OR after = 'firing') ORDER BY number",
        (tenant, app),
    )
    open_since: dict[tuple[str, str], int] = {}
    times = []
    for rule, series, at, before, after in rows:
        begun = open_since.pop((rule, series), None) if before == "firing" else None
        if begun is not None and after != "firing":
            times.append(FiringTime(rule, begun, int(at)))
        if after == "firing":
            open_since[rule, series] = int(at) if begun is None else begun
    times += [FiringTime(rule, begun, None) for (rule, _), begun in open_since.items()]
    return sorted(times, key=lambda time: (time.begins, time.rule))


def alert_window(window: _Window, times: Iterable[FiringTime], *, late: int = 0) -> AlertWindow:
    """A window with the rules that were firing in it, or until so long after its end."""
    begins, ends = milliseconds_of(window.begins_at), milliseconds_of(window.ends_at)
    firing = {
        time.rule
        for time in times
        if time.begins <= ends + late and (time.ends is None or time.ends > begins)
    }
    return AlertWindow(
        begins_at=window.begins_at,
        ends_at=window.ends_at,
        firing=tuple(sorted(firing)),
        drift=(INDEX_DRIFT,) if INDEX_DRIFT in firing else (),
    )


# --- telling and acting ---


def decision_message(number: int, record: DecisionRecord) -> dict[str, Any]:
    """What a webhook is told: the record, and a sentence for people."""
    title = {"promote": "promote", "hold": "hold", "roll-back": "roll back"}[record.decision]
    return {
        "schema": "ragauge.decision-message/1",
        "number": number,
        "text": f"{record.app}: {title} ({'; '.join(record.reasons)})",
        "record": msgspec.to_builtins(record),
    }


def run_command(
    number: int,
    command: str,
    decision: str,
    record: bytes,
    *,
    environment: Mapping[str, str] = os.environ,
    timeout: float = COMMAND_SECONDS,
) -> _Ended:
    """Run what follows a decision: without a shell, with the record on its standard input."""
    known = {
        **environment,
        "RAGAUGE_DECISION": decision,
        "RAGAUGE_DECISION_NUMBER": str(number),
    }
    try:
        done = subprocess.run(
            shlex.split(command.removeprefix("command:")),
            input=record,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=known,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _Ended(number, None, f"no end within {timeout:g} s")
    except (OSError, ValueError) as error:
        return _Ended(number, None, plain(str(redacted(str(error)))))
    # Half of a secret does not look like one: it is taken out before the text is cut.
    output = plain(str(redacted(done.stdout[-_MOST_READ:].decode("utf-8", "replace"))))
    return _Ended(number, done.returncode, output[-_MOST_OUTPUT:])
