"""The runner: asks a target slot by slot in threads, with a rate limit, retries and back-off.

Threads ask; one more thread stores the traces that have arrived; the calling thread watches. A
call that does not come back in time is abandoned with its thread, and another takes over. A target
that is busy is asked by fewer threads at once, and later.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from ragauge.files.redaction import SecretValues
from ragauge.formats.traces import RowReader
from ragauge.model.error_reasons import reason_of
from ragauge.model.target import Exchange, RevisingTarget, Target, TargetError, TargetQuestion
from ragauge.model.trace import Trace
from ragauge.run.answer_to_trace import answer_trace, error_trace
from ragauge.run.concurrency_limit import ConcurrencyLimit, spread
from ragauge.run.slots import QuestionSlot, SlotSequence

GRACE = 5.0
"""Seconds that questions which were asked have left when a run is interrupted."""

MOST_LOST = 1000
"""Calls that hang at the same time; more would eat up the memory."""

ALIKE = 20
"""Results that must all have the same error for a run to be stopped early."""

_TICK = 0.05
_MOMENT = 0.002
_BATCH = 512
_LONG_WAIT = 5.0  # seconds that are worth a note
_WAITING = 256  # results that may wait to be stored, before asking pauses
_LONGEST_WAIT = 300.0  # no target may make us wait longer
_FIRST_WAIT, _LAST_WAIT = 0.25, 30.0  # seconds of back-off

Stopped = Literal["interrupted", "errors", "hanging", "same-error"]


class Limits(Struct, frozen=True, kw_only=True):
    """How hard a target is asked.

    timeout     seconds for one question
    retries     how often a question is asked again after an error that may pass
    rate        questions a second, at most
    max_errors  more errors than these end the run; it can be resumed
    max_wait    seconds that a busy target may put a question off, in all
    keep_going  whether a run goes on although all its first results have the same error
    timing      whether the time that an answer took is stored
    """

    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 2
    rate: float | None = None
    max_errors: int | None = None
    max_wait: float = 900.0
    keep_going: bool = False
    timing: bool = True


class Progress(Struct):
    """What has come of a run so far; `hits` of `labelled` questions found their evidence.

    `reasons` counts the errors by what they have in common.
    """

    total: int
    done: int = 0
    errors: int = 0
    hits: int = 0
    labelled: int = 0
    seconds: float = 0.0
    stopped: Stopped | None = None
    reasons: Counter[str] = field(default_factory=Counter)


class BatchCounts(Struct, frozen=True):
    """What was stored of a batch: how many results, errors, and hits of labelled questions."""

    results: int
    errors: int
    hits: int
    labelled: int


class RateLimit:
    """Lets questions through one by one, at a rate."""

    def __init__(self, rate: float | None) -> None:
        self.gap = 0.0 if rate is None else 1 / rate
        self.next = 0.0
        self.lock = threading.Lock()

    def wait(self) -> float:
        """The seconds to wait before the next question; its place is taken."""
        if not self.gap:
            return 0.0
        with self.lock:
            now = time.monotonic()
            at = max(now, self.next)
            self.next = at + self.gap
            return at - now


def backoff(number: int, attempt: int) -> float:
    """Seconds to wait before a slot is asked again: longer each time, and never in step.

    The spread comes from the slot, not from chance.
    """
    return float(min(_LAST_WAIT, _FIRST_WAIT * 2**attempt) * (0.5 + spread(number, attempt)))


class SequenceTask:
    """A sequence that is being asked: where it stands, and what was answered before."""

    def __init__(self, sequence: SlotSequence, wanted: Callable[[int], bool]) -> None:
        self.sequence = sequence
        self.wanted = wanted
        self.place = 0
        self.attempt = 0
        self.waits = 0  # how often the target was too busy for the slot, and since when
        self.busy_since = math.inf
        self.delay = 0.0
        self.history: dict[int, dict[int | None, Exchange]] = {}  # by turn, then by paraphrase

    def current(self, earlier: Mapping[int, str | None]) -> QuestionSlot | None:
        """The slot to ask next; those that were answered earlier only add to the history."""
        while self.place < len(self.sequence.slots):
            slot = self.sequence.slots[self.place]
            if self.wanted(slot.number):
                return slot
            self.advance(slot, earlier.get(slot.number))
        return None

    def question(self, slot: QuestionSlot) -> TargetQuestion:
        """What is asked, with the turns before: of the same paraphrase where they have it."""
        question = slot.question
        if not self.history or question.turn is None:
            return question
        history = tuple(
            exchanges.get(question.paraphrase) or next(iter(exchanges.values()))
            for turn, exchanges in self.history.items()
            if turn < question.turn
        )
        return replace(question, history=history)

    def advance(self, slot: QuestionSlot, answer: str | None) -> None:
        """Go on to the next slot."""
        question = slot.question
        if question.turn is not None:
            exchanges = self.history.setdefault(question.turn, {})
            exchanges[question.paraphrase] = Exchange(question.text, answer)
        self.place += 1
        self.attempt = self.waits = 0
        self.busy_since = math.inf


class _Worker(threading.Thread):
    """A thread that asks; `deadline` is when the question that it has asked is overdue."""

    def __init__(self, runner: Runner, task: SequenceTask | None) -> None:
        super().__init__(daemon=True, name="ragauge-asking")
        self.runner = runner
        self.task = task
        self.slot: QuestionSlot | None = None
        self.deadline = math.inf
        self.lost = False

    def run(self) -> None:
        """Ask until there is nothing left to ask."""
        self.runner.work(self)


class Runner:
    """One run over a target. `write` is called by one thread, with traces in order of arrival.

    `on_progress` is called every few moments, `on_note` where the user should know something.
    """

    def __init__(
        self,
        target: Target,
        reader: RowReader,
        limits: Limits,
        write: Callable[[Sequence[Trace]], BatchCounts],
        *,
        total: int,
        secrets: SecretValues | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.target = target
        self.reader = reader
        self.limits = limits
        self.write = write
        self.secrets = secrets or SecretValues()
        self.on_progress = on_progress
        self.on_note = on_note
        self.paused_until = 0.0  # the target has asked for patience
        self.busy_since = math.inf  # nothing but that it is busy has come since
        self.results = self.failed = 0
        self.progress = Progress(total)
        self.rate_limit = RateLimit(limits.rate)
        self.arrived: SimpleQueue[Trace | None] = SimpleQueue()
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.limit = ConcurrencyLimit(min(limits.concurrency, max(1, total)), self.stop)
        self.over = threading.Event()
        self.workers: set[_Worker] = set()
        self.lost: list[_Worker] = []
        self.failure: BaseException | None = None
        self.sequences: Iterator[SlotSequence] = iter(())
        self.wanted: Callable[[int], bool] = lambda _: True
        self.earlier: Mapping[int, str | None] = {}
        # A target with a timeout of its own should find it out first, with a better message.
        self.overdue = limits.timeout + min(1.0, 0.2 + limits.timeout / 10)

    def run(
        self,
        sequences: Iterable[SlotSequence],
        wanted: Callable[[int], bool],
        earlier: Mapping[int, str | None],
    ) -> Progress:
        """Ask all wanted slots; `earlier` are the answers of turns that were asked before."""
        self.sequences, self.wanted, self.earlier = iter(sequences), wanted, earlier
        begun = time.monotonic()
        writer = threading.Thread(target=self._write, daemon=True, name="ragauge-writing")
        writer.start()
        try:
            with self._interruptible():
                self._ask_all(begun)
                self._end_writing()
                writer.join()
        except BaseException:  # a second interrupt: the caller closes the store, so let it rest
            self.stop.set()
            self._end_writing()
            writer.join(GRACE)
            raise
        if self.failure is not None:
            raise self.failure
        return self.progress

    def _ask_all(self, begun: float) -> None:
        """Let threads ask, and watch them, until nothing is left or the run ends."""
        for _ in range(min(self.limits.concurrency, self.progress.total)):
            self._start(None)
        grace = math.inf
        while self.workers and time.monotonic() < grace:
            self.over.wait(_TICK)
            self._watch()
            self.progress.seconds = time.monotonic() - begun
            self.on_progress(self.progress)
            if self.stop.is_set():
                self.limit.wake()
                if grace == math.inf:
                    grace = time.monotonic() + GRACE

    def _end_writing(self) -> None:
        """Take no answer any more, and let the writer end when it has stored those that came."""
        with self.lock:
            for worker in self.workers:
                worker.lost = True
        self.arrived.put(None)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Take the first interrupt for a wish to end; the second ends at once."""
        import signal

        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupt(_number: int, _frame: Any) -> None:
            if self.stop.is_set():
                raise KeyboardInterrupt
            self._end("interrupted")

        # A job that is cancelled is terminated: what runs below is ended in the same way.
        signals = (signal.SIGINT, signal.SIGTERM)
        handlers = {number: signal.signal(number, interrupt) for number in signals}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _end(self, why: Stopped) -> None:
        self.progress.stopped = self.progress.stopped or why
        self.stop.set()

    def _start(self, task: SequenceTask | None) -> None:
        worker = _Worker(self, task)
        with self.lock:
            self.over.clear()
            self.workers.add(worker)
        worker.start()

    def _watch(self) -> None:
        """Abandon calls that are overdue, and let new threads go on with their tasks."""
        now = time.monotonic()
        with self.lock:
            overdue = [worker for worker in self.workers if worker.deadline < now]
        for worker in overdue:
            with self.lock:
                if worker.deadline >= now:
                    continue  # it came back at the last moment
                worker.lost = True
                self.workers.discard(worker)
            self.limit.leave()
            assert worker.task is not None and worker.slot is not None
            slow = TargetError(f"no answer within {self.limits.timeout:g} s", transient=True)
            self._failed(worker.task, worker.slot, slow, self.limits.timeout * 1000)
            self.lost = [lost for lost in self.lost if lost.is_alive()]
            self.lost.append(worker)
            if len(self.lost) > MOST_LOST:
                self._end("hanging")
            self._start(worker.task)
        most = self.limits.max_errors
        doubts = self.target.doubts if isinstance(self.target, RevisingTarget) else 0
        if most is not None and self.failed + doubts > most:
            self._end("errors")

    def work(self, worker: _Worker) -> None:
        """What a worker does, until nothing is left or it was given up."""
        try:
            while self._task(worker):
                pass
        except BaseException as error:  # ours: what a target raises never comes this far
            self.failure = self.failure or error
            self.stop.set()
        with self.lock:
            self.workers.discard(worker)
            if not self.workers:
                self.over.set()

    def _task(self, worker: _Worker) -> bool:
        """Ask one sequence to its end; False if there is none, or the run ends."""
        task = worker.task
        if task is None:
            with self.lock:
                sequence = next(self.sequences, None)
            if sequence is None:
                return False
            task = worker.task = SequenceTask(sequence, self.wanted)
        while (slot := task.current(self.earlier)) is not None:
            if not self._ask(worker, task, slot):
                return False
        worker.task = None
        return True

    def _ask(self, worker: _Worker, task: SequenceTask, slot: QuestionSlot) -> bool:
        """Ask one question once; False if the run ends or the worker was given up."""
        delay, task.delay = task.delay, 0.0
        if delay:
            self.stop.wait(delay)
        if (asked_in := self.limit.enter(slot.number)) is None:
            return False
        if delay := self.rate_limit.wait():
            self.stop.wait(delay)
        # The store is slower than the target: wait, or memory would grow with the run.
        while self.arrived.qsize() > _WAITING and not self.stop.is_set():
            time.sleep(_MOMENT)
        if self.stop.is_set():
            return False
        error: TargetError | None = None
        trace: Trace | None = None
        begun = time.perf_counter()
        worker.slot = slot
        worker.deadline = time.monotonic() + self.overdue
        try:
            answered = self.target.ask(task.question(slot))
            elapsed = _milliseconds(begun)
            measured = elapsed if self.limits.timing else None
            trace = answer_trace(self.reader, slot, answered, measured, self.secrets)
        except TargetError as failed:
            error, elapsed = failed, _milliseconds(begun)
        except BaseException as failed:
            error, elapsed = TargetError(described(failed)), _milliseconds(begun)
        with self.lock:
            worker.deadline = math.inf
            if worker.lost:  # too late: the slot has its error, or somebody else asks it again
                return False
        if error is not None and error.busy:
            self.limit.shrink(asked_in)
        elif error is None:
            self.limit.grow()
        self.limit.leave()
        if error is not None:
            self._failed(task, slot, error, elapsed)
        elif trace is not None:
            with self.lock:
                self.results += 1
                self.busy_since = math.inf
            self.arrived.put(trace)
            task.advance(slot, trace.answer.said if trace.answer is not None else None)
        return True

    def _failed(
        self, task: SequenceTask, slot: QuestionSlot, error: TargetError, elapsed: float
    ) -> None:
        """Try again later, or record the error."""
        if error.busy:
            if self._put_off(task, slot, error):
                return
        elif error.transient and task.attempt < self.limits.retries:
            task.delay = backoff(slot.number, task.attempt)
            task.attempt += 1
            return
        measured = elapsed if self.limits.timing else None
        trace = error_trace(slot, self.secrets.hide(error.reason), measured)
        self.arrived.put(trace)
        task.advance(slot, None)
        reason = reason_of(trace.error or "")
        with self.lock:
            self.results += 1
            self.failed += 1
            if not error.busy:
                self.busy_since = math.inf
            self.progress.reasons[reason] += 1
            most = self.limits.max_errors
            if most is not None and self.failed > most:
                self._end("errors")
            alike = self.progress.reasons[reason] == self.results >= ALIKE
            if alike and not self.limits.keep_going and self.results < self.progress.total:
                self._end("same-error")

    def _put_off(self, task: SequenceTask, slot: QuestionSlot, error: TargetError) -> bool:
        """Let a slot come back when the target has time; False if that has taken too long.

        That is no try: the question was not looked at. But a target that is always busy must not
        hold a run for ever, so the time is counted, for the slot and for the run.
        """
        now = time.monotonic()
        with self.lock:
            self.busy_since = min(self.busy_since, now)
            task.busy_since = min(task.busy_since, now)
            left = min(self.busy_since, task.busy_since) + self.limits.max_wait - now
        if left <= 0:
            return False
        if error.wait:  # it holds for all questions, not only this one
            seconds = min(error.wait, _LONGEST_WAIT, left)
            self.limit.pause_for(seconds)
            self._note_wait(seconds, error.reason)
        else:
            task.delay = min(backoff(slot.number, task.waits), left)
        task.waits += 1
        return True

    def _note_wait(self, seconds: float, reason: str) -> None:
        """Say once that nothing will be asked for a while."""
        now = time.monotonic()
        with self.lock:
            before = self.paused_until
            self.paused_until = max(before, now + seconds)
        if seconds >= _LONG_WAIT and before <= now:
            words = self.secrets.hide(reason)
            self.on_note(f"waiting for {seconds:.0f} s, as the target asks: {words}")

    def _write(self) -> None:
        """Store what has arrived, again and again; the writer's own thread."""
        more = True
        while more:
            batch, more = self._arrivals()
            if batch and self.failure is None:
                try:
                    counts = self.write(batch)
                except BaseException as error:
                    self.failure = error
                    self.stop.set()
                    continue
                progress = self.progress
                progress.done += counts.results
                progress.errors += counts.errors
                progress.hits += counts.hits
                progress.labelled += counts.labelled

    def _arrivals(self) -> tuple[list[Trace], bool]:
        batch: list[Trace] = []
        trace = self.arrived.get()
        while trace is not None:
            batch.append(trace)
            if len(batch) >= _BATCH:
                return batch, True
            try:
                trace = self.arrived.get_nowait()
            except Empty:
                return batch, True
        return batch, False


def described(error: BaseException) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _milliseconds(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)
