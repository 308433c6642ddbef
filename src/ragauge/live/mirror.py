"""The mirror: sampled live questions are asked of a second system, off the path of the user.

It takes questions of traces that were scored, so whoever asked has long had an answer. A system
that is slow or broken costs nothing but its own pairs: there is a cap on questions a second, a
timeout, and a circuit breaker. Some questions are asked once more of both systems, because
approximate search does not agree even with itself.

The worker's thread reads and writes the store; another one asks, and knows nothing of the store.
"""

from __future__ import annotations

import logging
import re
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.files.fields import FieldError
from ragauge.files.redaction import REDACTED
from ragauge.formats.traces import RowReader
from ragauge.live.database import Execute, LiveDatabase
from ragauge.live.index_drift import apps_with_traces
from ragauge.live.pairs import MatchRung, PairValues, measure_pair, refusal_reader
from ragauge.live.privacy import Redactor, user_hash_key
from ragauge.live.settings import LiveSettings, MirrorRule
from ragauge.live.trace_sampler import hash_share
from ragauge.live.trace_values import KnownIds
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.payloads import UNREADABLE
from ragauge.model.target import Target, TargetOptions, TargetQuestion
from ragauge.model.trace import Citation, Hit, Trace
from ragauge.run.ask import BatchCounts, Limits, Runner
from ragauge.run.run import open_target
from ragauge.run.secrets import configured_secrets, shown_address, shown_options
from ragauge.run.slots import QuestionSlot, SlotSequence
from ragauge.scoring.score import score
from ragauge.spans import Span

MINUTE = 60_000
SCAN_EVERY = 1_000
MOST_WAITING = 200
"""Questions that wait to be asked; more are counted and passed over."""
AT_ONCE = 8
LEAD_SECONDS = 10
"""So many seconds' worth of questions may be caught up with after a pause."""
INTERRUPTED_AFTER = 15 * MINUTE
_TIMED_OUT = re.compile(r"no answer (?:from \S{1,300} )?within|timed out")

log = logging.getLogger("ragauge.live")

PairRole = Literal["shadow", "again", "self"]
_COUNT = """INSERT INTO live_counts (tenant, minute, outcome, spans, traces) VALUES (?, ?, ?, 0, ?)
ON CONFLICT (tenant, minute, outcome) DO UPDATE SET traces = live_counts.traces + excluded.traces"""
_CLAIM = """INSERT INTO live_pairs
(tenant, trace_id, role, app, live, shadow, question_key, asked, minute, state, measured)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, trace_id, role) DO NOTHING"""


class MirroredQuestion(Struct, frozen=True, kw_only=True):
    """A live question that is asked again, and what live did with it."""

    tenant: str
    trace_id: str
    app: str
    live: str
    question_key: str
    trace: Trace
    gold_id: str | None
    asks_twice: bool


class CircuitBreaker:
    """Stops asking a system that fails: some errors in a row open it, then one question may try."""

    def __init__(self, errors_to_open: int, open_seconds: float) -> None:
        self.errors_to_open = errors_to_open
        self.open_ms = round(open_seconds * 1000)
        self.errors = 0
        self.open_until: int | None = None

    def is_open(self, now: int) -> bool:
        """Whether nothing is to be asked now."""
        return self.open_until is not None and now < self.open_until

    def room(self, now: int) -> int | None:
        """How many questions may be asked: one where it was open, and any number where not."""
        if self.is_open(now):
            return 0
        return None if self.open_until is None else 1

    def note(self, now: int, *, failed: bool) -> None:
        """Count a result."""
        if not failed:
            self.errors, self.open_until = 0, None
            return
        self.errors += 1
        if self.errors >= self.errors_to_open or self.open_until is not None:
            self.open(now)

    def open(self, now: int) -> None:
        """Ask nothing for a while."""
        self.open_until = now + self.open_ms


class AskedSystem:
    """A system that questions are mirrored to: how it is opened, asked, and given a rest."""

    def __init__(
        self, address: str, settings: LiveSettings, rule: MirrorRule, options: Mapping[str, Any]
    ) -> None:
        self.address = address
        self.rule = rule
        self.target_options = TargetOptions(
            k=rule.k,
            timeout=rule.timeout,
            corpus=rule.corpus or settings.corpus,
            chunks=rule.chunks,
            settings=options,
        )
        self.breaker = CircuitBreaker(rule.errors_to_open, rule.open_seconds)
        self._target: Target | None = None
        self._reader = RowReader(registry.dialect("native"), own=True)

    @property
    def name(self) -> str:
        """What it is called in the store: its address, and a digest of its options."""
        shown = msgspec.json.encode(
            [
                shown_options(self.target_options.settings),
                self.target_options.k,
                self.target_options.corpus,
                self.target_options.chunks,
            ],
            order="deterministic",
        )
        return f"{shown_address(self.address)}#{sha256(shown).hexdigest()[:8]}"

    def ask(self, questions: Sequence[tuple[str, str]]) -> list[Trace | None]:
        """Ask some questions, each with an id; the answers, in the order of the questions.

        An error is an answer too. So many of them that the breaker opens end it: what was not asked
        any more is None.
        """
        try:
            if self._target is None:
                self._target = open_target(self.address, self.target_options)
        except Exception as error:  # a plugin may raise anything; it is tried again with the next
            reason = f"the target cannot be opened: {type(error).__name__}"
            log.warning("%s: %s", shown_address(self.address), reason)
            return [Trace(error=reason) for _ in questions]
        settings = self.target_options.settings
        secrets = configured_secrets(self.address, settings, self._target)
        arrived: dict[int, Trace] = {}

        def write(batch: Sequence[Trace]) -> BatchCounts:
            for trace in batch:
                assert trace.line is not None
                arrived[trace.line - 1] = trace
            return BatchCounts(len(batch), sum(t.error is not None for t in batch), 0, 0)

        limits = Limits(
            concurrency=min(AT_ONCE, len(questions)),
            timeout=self.rule.timeout,
            retries=0,
            rate=self.rule.qps,
            max_errors=self.rule.errors_to_open - 1,
            max_wait=0.0,
            keep_going=True,
        )
        slots = [
            QuestionSlot(number, TargetQuestion(qid=key, text=text, number=number))
            for number, (key, text) in enumerate(questions)
        ]
        runner = Runner(
            self._target, self._reader, limits, write, total=len(slots), secrets=secrets
        )
        runner.run([SlotSequence((slot,)) for slot in slots], lambda _: True, {})
        return [arrived.get(number) for number in range(len(slots))]

    def close(self) -> None:
        """Let go of the target."""
        if self._target is not None:
            self._target.close()
            self._target = None


class AnsweredQuestion(Struct, frozen=True):
    """A question with the answers that came, by role."""

    question: MirroredQuestion
    answers: dict[PairRole, Trace | None]


class _Batch(threading.Thread):
    """Asks some questions, and holds the answers until the worker takes them."""

    def __init__(self, mirror: Mirror, questions: Sequence[MirroredQuestion]) -> None:
        super().__init__(daemon=True, name="ragauge-mirror")
        self.mirror = mirror
        self.questions = questions
        self.answered: list[AnsweredQuestion] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Ask the shadow, and then both once more where that is wanted."""
        try:
            self.answered = self.mirror.ask(self.questions)
        except BaseException as error:  # the worker raises it in its own thread
            self.failure = error


class Mirror:
    """The part of the worker that mirrors questions."""

    name = "mirror"

    def __init__(
        self,
        settings: LiveSettings,
        database: LiveDatabase,
        *,
        options: Options = Options(),  # noqa: B008  (frozen)
        gold_values: Callable[[str, Trace], Mapping[str, float | None]] | None = None,
        known_ids: KnownIds | None = None,
    ) -> None:
        self.settings = settings
        self.database = database
        self.rule = settings.shadow
        self.gold_values = gold_values
        self.refuses = refusal_reader(options.refusal_patterns, options.refusal_languages)
        self.shadow: AskedSystem | None = None
        self.live: AskedSystem | None = None
        self.known_ids = self.known_to_shadow = known_ids
        if self.rule is not None:
            if self.rule.corpus is not None:  # a shadow may be made of other documents
                self.known_to_shadow = KnownIds.read(self.rule.corpus)
            self._redactor = Redactor(settings.redaction, user_hash_key(database))
            self.shadow = AskedSystem(self.rule.target, settings, self.rule, self.rule.options)
            if self.rule.live is not None:
                options_of_live = self.rule.live_options
                self.live = AskedSystem(self.rule.live, settings, self.rule, options_of_live)
        self._waiting: deque[MirroredQuestion] = deque()
        self._batch: _Batch | None = None
        self._tokens = 1.0
        self._refilled: int | None = None
        self._scanned: int | None = None
        self._tidied: int | None = None
        self._counts: dict[tuple[str, str, int], int] = {}
        self._seen: dict[tuple[str, str, int], set[str]] = {}
        self._reader = RowReader(registry.dialect("native"), own=False)

    # --- the worker's thread ---

    def step(self, now: int) -> None:
        """Store what was answered, look for new questions, and have some of them asked."""
        if self.rule is None or self.shadow is None:
            return
        self._refill(now)
        if self._batch is not None:
            if self._batch.is_alive():
                return
            batch, self._batch = self._batch, None
            if batch.failure is not None:
                raise batch.failure
            self._store(batch.answered, now)
        if self._scanned is None or now - self._scanned >= SCAN_EVERY:
            self._scan(now)
        self._start(now)

    def wait(self, seconds: float = 60.0) -> None:
        """Wait for the questions that are being asked; the next step stores their answers."""
        if self._batch is not None:
            self._batch.join(seconds)

    def close(self) -> None:
        """End; questions that are being asked stay marked, and count as interrupted later."""
        for system in (self.shadow, self.live):
            if system is not None:
                system.close()

    def _refill(self, now: int) -> None:
        assert self.rule is not None
        if self._refilled is not None:
            gained = max(0, now - self._refilled) * self.rule.qps / 1000
            self._tokens = min(max(1.0, self.rule.qps * LEAD_SECONDS), self._tokens + gained)
        self._refilled = now

    def _scan(self, now: int) -> None:
        """Look for traces that were scored since, minute by minute where the count has grown."""
        self._scanned = now
        tidies = self._tidied is None or now - self._tidied >= INTERRUPTED_AFTER
        self._tidied = now if tidies else self._tidied
        oldest = now // MINUTE - (round(self.settings.assemble_longest * 1000) // MINUTE + 2)
        for key in [key for key in self._counts if key[2] < oldest]:
            del self._counts[key]
            self._seen.pop(key, None)
        for tenant, app in apps_with_traces(self.database):
            if tidies:
                self._tidy(tenant, app, now)
            rows = self.database.read(
                "SELECT minute, count(*) FROM live_traces WHERE tenant = ? AND app = ?"
                " AND minute >= ? GROUP BY minute ORDER BY minute",
                (tenant, app, oldest),
            )
            for minute, count in rows:
                key = tenant, app, int(minute)
                if self._counts.get(key) != int(count):
                    self._take(key)
                    self._counts[key] = int(count)

    def _take(self, key: tuple[str, str, int]) -> None:
        """Choose the questions of a minute by the hash of their traces."""
        assert self.rule is not None
        tenant, _, minute = key
        rows = self.database.read(
            "SELECT trace_id FROM live_traces WHERE tenant = ? AND app = ? AND minute = ?"
            " AND state = 'scored' AND body IS NOT NULL ORDER BY trace_id",
            key,
        )
        seen = self._seen.setdefault(key, set())
        passed_over = 0
        for (trace_id,) in rows:
            if trace_id in seen or hash_share(trace_id) >= self.rule.rate:
                continue
            seen.add(trace_id)
            if len(self._waiting) >= MOST_WAITING:
                passed_over += 1
            elif (question := self._question(tenant, trace_id)) is not None:
                self._waiting.append(question)
        if passed_over:
            with self.database.transaction() as execute:
                execute(_COUNT, (tenant, minute, "not-mirrored", passed_over))

    def _question(self, tenant: str, trace_id: str) -> MirroredQuestion | None:
        """The question of a trace, unless it was mirrored before or cannot be."""
        rows = self.database.read(
            "SELECT app, build, index_hash, question_key, gold_id, body FROM live_traces t"
            " WHERE tenant = ? AND trace_id = ? AND NOT EXISTS (SELECT 1 FROM live_pairs p"
            " WHERE p.tenant = t.tenant AND p.trace_id = t.trace_id)",
            (tenant, trace_id),
        )
        if not rows:
            return None
        app, build, index_hash, question_key, gold_id, body = rows[0]
        assert self.rule is not None
        try:
            row = msgspec.json.decode(zlib.decompress(body))
            trace = self._reader.trace(row)
        except (*UNREADABLE, FieldError) as error:
            log.warning("trace %s cannot be mirrored: %s", trace_id, error)
            trace = Trace()
        again = self.live is not None and hash_share(f"self\0{trace_id}") < self.rule.self_rate
        return MirroredQuestion(
            tenant=tenant,
            trace_id=trace_id,
            app=app,
            live=index_hash or build,
            question_key=question_key or trace_id,
            trace=trace,
            gold_id=gold_id,
            asks_twice=again,
        )

    def _start(self, now: int) -> None:
        """Hand as many questions to a thread as the cap and the breaker allow."""
        assert self.shadow is not None
        if not self._waiting or self._tokens < 1:
            return
        room = self.shadow.breaker.room(now)
        chosen: list[MirroredQuestion] = []
        with self.database.transaction() as execute:
            while self._waiting and self._tokens >= 1 and not (room and len(chosen) >= room):
                question = self._waiting.popleft()
                if not self._is_there(execute, question):
                    continue  # it was deleted meanwhile
                why = _why_not(question.trace)
                if why is None and room == 0:
                    # As many as would have been asked count as not answered.
                    why = "circuit-open"
                    self._tokens -= 1
                if self._claim(execute, question, "shadow", now, why) and why is None:
                    self._tokens -= 1
                    chosen.append(self._doubled(execute, question, now, tries=room is not None))
        if chosen:
            self._batch = _Batch(self, chosen)
            self._batch.start()

    def _doubled(
        self, execute: Execute, question: MirroredQuestion, now: int, *, tries: bool
    ) -> MirroredQuestion:
        """A question that is asked, with the second asking claimed where it is to be."""
        rests = self.live is not None and self.live.breaker.is_open(now)
        if not question.asks_twice or tries or rests:
            return replace(question, asks_twice=False)
        self._claim(execute, question, "again", now)
        self._claim(execute, question, "self", now)
        self._tokens -= 1
        return question

    @staticmethod
    def _is_there(execute: Execute, question: MirroredQuestion) -> bool:
        sql = "SELECT 1 FROM live_traces WHERE tenant = ? AND trace_id = ?"
        return execute(sql, (question.tenant, question.trace_id)).fetchone() is not None

    def _claim(
        self,
        execute: Execute,
        question: MirroredQuestion,
        role: PairRole,
        now: int,
        why: str | None = None,
    ) -> bool:
        """Note that a question is being asked, or why it is not; False if another server does."""
        assert self.shadow is not None
        state = "asking" if why is None else "skipped"
        row = (
            question.tenant, question.trace_id, role, question.app, question.live,
            self.shadow.name, question.question_key, now, now // MINUTE, state,
            None if why is None else msgspec.json.encode({"why": why}),
        )  # fmt: skip
        return bool(execute(_CLAIM, row).rowcount == 1)

    def _tidy(self, tenant: str, app: str, now: int) -> None:
        """Mark questions that a server was asking when it ended, and forget deleted traces.

        A trace may be deleted in the moment in which another server claims its question.
        """
        since = (now - 2 * 24 * 60 * MINUTE) // MINUTE
        with self.database.transaction() as execute:
            execute(
                "UPDATE live_pairs SET state = 'skipped', measured = ? WHERE tenant = ? AND app = ?"
                " AND minute >= ? AND state = 'asking' AND asked < ?",
                (
                    msgspec.json.encode({"why": "interrupted"}),
                    tenant,
                    app,
                    since,
                    now - INTERRUPTED_AFTER,
                ),
            )
            execute(
                "DELETE FROM live_pairs WHERE tenant = ? AND app = ? AND minute >= ? AND NOT EXISTS"
                " (SELECT 1 FROM live_traces t WHERE t.tenant = live_pairs.tenant"
                " AND t.trace_id = live_pairs.trace_id)",
                (tenant, app, since),
            )

    def _store(self, answered: Sequence[AnsweredQuestion], now: int) -> None:
        """Measure the pairs, and store them."""
        with self.database.transaction() as execute:
            for entry in answered:
                self._store_pairs(execute, entry, now)

    def _store_pairs(self, execute: Execute, entry: AnsweredQuestion, now: int) -> None:
        assert self.shadow is not None
        question = entry.question
        answers: dict[PairRole, Trace | None] = {
            role: self._checked(role, answer) for role, answer in entry.answers.items()
        }
        shadow = answers["shadow"]
        first: MatchRung = "exact"
        if shadow is None:
            self.shadow.breaker.open(now)
        else:
            self.shadow.breaker.note(now, failed=shadow.error is not None)
            values = self._measure(question, shadow)
            first = values.rung or first
            self._write(execute, question, "shadow", shadow, values)
        for role, answer in answers.items():
            if answer is None:
                self._write_skipped(execute, question, role, "circuit-open")
            elif role != "shadow":
                if role == "self" and self.live is not None:
                    self.live.breaker.note(now, failed=answer.error is not None)
                values = measure_pair(question.trace, answer, self.refuses, first=first)
                self._write(execute, question, role, answer, values)

    def _checked(self, role: PairRole, answer: Trace | None) -> Trace | None:
        """An answer with the ids that the corpus of its system does not have."""
        known = self.known_ids if role == "self" else self.known_to_shadow
        if answer is None or known is None:
            return answer
        return replace(answer, unknown_ids=known.unknown(answer))

    def _write_skipped(
        self, execute: Execute, question: MirroredQuestion, role: PairRole, why: str
    ) -> None:
        execute(
            "UPDATE live_pairs SET state = 'skipped', measured = ?"
            " WHERE tenant = ? AND trace_id = ? AND role = ?",
            (msgspec.json.encode({"why": why}), question.tenant, question.trace_id, role),
        )

    def _measure(self, question: MirroredQuestion, shadow: Trace) -> PairValues:
        values = measure_pair(question.trace, shadow, self.refuses)
        if question.gold_id is None or self.gold_values is None:
            return values
        live = self.gold_values(question.gold_id, question.trace)
        other = {} if shadow.error is not None else self.gold_values(question.gold_id, shadow)
        gold = {name: (live[name], other.get(name)) for name in sorted(live)}
        return replace(values, gold=gold)

    def _write(
        self,
        execute: Execute,
        question: MirroredQuestion,
        role: PairRole,
        answer: Trace,
        values: PairValues,
    ) -> None:
        state = "answered"
        if answer.error is not None:
            state = "timed-out" if _TIMED_OUT.search(answer.error) else "errored"
        body = None
        if not self.settings.redaction.texts:
            body = zlib.compress(msgspec.json.encode(self._redactor.row(native_row(answer))), 1)
        execute(
            "UPDATE live_pairs SET state = ?, body = ?, measured = ?"
            " WHERE tenant = ? AND trace_id = ? AND role = ?",
            (
                state,
                body,
                msgspec.json.encode(values, order="deterministic"),
                question.tenant,
                question.trace_id,
                role,
            ),
        )

    # --- the thread that asks ---

    def ask(self, questions: Sequence[MirroredQuestion]) -> list[AnsweredQuestion]:
        """Ask the shadow all, and both once more what is to be asked twice."""
        assert self.shadow is not None
        answers: list[dict[PairRole, Trace | None]] = [{} for _ in questions]
        twice = [place for place, question in enumerate(questions) if question.asks_twice]
        todo: list[tuple[PairRole, int]] = [("shadow", place) for place in range(len(questions))]
        todo += [("again", place) for place in twice]
        asked = self.shadow.ask([_asked(questions[place]) for _, place in todo])
        for (role, place), trace in zip(todo, asked, strict=True):
            answers[place][role] = trace
        if twice and self.live is not None:
            once_more = self.live.ask([_asked(questions[place]) for place in twice])
            for place, trace in zip(twice, once_more, strict=True):
                answers[place]["self"] = trace
        return [AnsweredQuestion(*entry) for entry in zip(questions, answers, strict=True)]


GOLD_METRICS = ("answer.coverage", "citation.accuracy")


def gold_scorer(
    items: Mapping[str, GoldItem], options: Options
) -> Callable[[str, Trace], Mapping[str, float | None]]:
    """What scores a trace by the gold item that its question is, as `score` does."""

    def values(gold_id: str, trace: Trace) -> Mapping[str, float | None]:
        item = items.get(gold_id)
        if item is None:
            return {}
        own = replace(trace, qid=item.qid, paraphrase=None, seed=None, turn=None, line=1)
        scores = score(
            [item],
            [own],
            profile="all",
            metrics=GOLD_METRICS,
            intervals=False,
            workers=1,
            options=options,
        )
        return {name: scores.metrics[name].value for name in GOLD_METRICS}

    return values


def _asked(question: MirroredQuestion) -> tuple[str, str]:
    return question.trace_id, question.trace.question or ""


def _why_not(trace: Trace) -> str | None:
    """Why a question cannot be asked again as it was asked; None where it can."""
    if not (trace.question or "").strip():
        return "no-question"
    if REDACTED in (trace.question or ""):
        return "redacted-question"
    if trace.turn is not None:
        return "conversation"  # what was said before is not known here
    return None


def native_row(trace: Trace) -> dict[str, Any]:
    """A trace as a row in our own names, which any reader of traces takes."""
    row: dict[str, Any] = {
        "question": trace.question,
        "hits": [_hit_row(hit) for hit in trace.hits],
        "error": trace.error,
        "latency_ms": None if trace.timing is None else trace.timing.total,
        **trace.index,
    }
    answer = trace.answer
    if answer is not None:
        row["answer"] = {
            "claim": answer.claim,
            "text": answer.text,
            "citations": None
            if answer.citations is None
            else [_citation_row(citation) for citation in answer.listed],
            "refused": answer.refused,
            "grounded": answer.grounded,
            "delta_s": answer.delta_s,
        }
        row["answer"] = {name: value for name, value in row["answer"].items() if value is not None}
    return {name: value for name, value in row.items() if value is not None}


def _hit_row(hit: Hit) -> dict[str, Any]:
    row = {
        "id": hit.id, "doc": hit.doc, "section": hit.section, "score": hit.score, "type": hit.type,
        "text": hit.text, "source_spans": _span_rows(hit.spans), "delta_s": hit.delta_s,
        "chunker_version": hit.chunker_version,
    }  # fmt: skip
    return {name: value for name, value in row.items() if value is not None}


def _citation_row(citation: Citation) -> dict[str, Any]:
    row = {
        "id": citation.id, "doc": citation.doc, "section": citation.section,
        "source_spans": _span_rows(citation.spans), "delta_s": citation.delta_s,
    }  # fmt: skip
    return {name: value for name, value in row.items() if value is not None}


def _span_rows(spans: Iterable[Span]) -> list[dict[str, Any]] | None:
    return [msgspec.to_builtins(span) for span in spans] or None
