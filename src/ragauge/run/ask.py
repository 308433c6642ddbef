"""The runner: asks a target slot by slot in threads, with a rate limit, retries and back-off.

Threads ask; one more thread stores the traces that have arrived; the calling thread watches. A
call that does not come back in time is abandoned with its thread, and another takes over.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from queue import Empty, SimpleQueue
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ragauge.formats.traces import RowReader
from ragauge.model.target import Exchange, RevisingTarget, Target, TargetError, TargetQuestion
from ragauge.model.trace import Trace
from ragauge.run.answer_to_trace import answer_trace, error_trace
from ragauge.run.slots import QuestionSlot, SlotSequence

GRACE = 5.0
"""Seconds that questions which were asked have left when a run is interrupted."""

MOST_LOST = 1000
"""Calls that hang at the same time; more would eat up the memory."""

_TICK = 0.05
_MOMENT = 0.002
_BATCH = 512
_LONG_WAIT = 5.0  # seconds that are worth a note
_WAITING = 256  # results that may wait to be stored, before asking pauses
_LONGEST_WAIT = 300.0  # no target may make us wait longer
_FIRST_WAIT, _LAST_WAIT = 0.25, 30.0  # seconds of back-off

Stopped = Literal["interrupted", "errors", "hanging"]


class Limits(Struct, frozen=True, kw_only=True):
    """How hard a target is asked.

    timeout     seconds for one question
    retries     how often a question is asked again after an error that may pass
    rate        questions a second, at most
    max_errors  more errors than these end the run; it can be resumed
    timing      whether the time that an answer took is stored
    """

    concurrency: int = 8
    timeout: float = 60.0
    retries: int = 2
    rate: float | None = None
    max_errors: int | None = None
    timing: bool = True


class Progress(Struct):
    """What has come of a run so far; `hits` of `labelled` questions found their evidence."""

    total: int
    done: int = 0
    errors: int = 0
    hits: int = 0
    labelled: int = 0
    seconds: float = 0.0
    stopped: Stopped | None = None


class BatchCounts(Struct, frozen=True):
    """What was stored of a batch: how many results, errors, and hits of labelled questions."""

    results: int
    errors: int
    hits: int
    labelled: int


class RateLimit:
    """Lets questions through one by one: at a rate, and not before a target wants to be asked."""

    def __init__(self, rate: float | None) -> None:
        self.gap = 0.0 if rate is None else 1 / rate
        self.next = 0.0
        self.lock = threading.Lock()

    def wait(self) -> float:
        """The seconds to wait before the next question; its place is taken."""
        if not self.gap and not self.next:
            return 0.0
        with self.lock:
            now = time.monotonic()
            at = max(now, self.next)
            # Without a rate, `next` is only the end of a pause.
            if self.gap or self.next <= now:
                self.next = at + self.gap if self.gap else 0.0
            return at - now

    def pause(self, seconds: float) -> None:
        """Let nothing through for some seconds."""
        with self.lock:
            self.next = max(self.next, time.monotonic() + seconds)


def backoff(number: int, attempt: int) -> float:
    """Seconds to wait before a slot is asked again: longer each time, and never in step.

    The spread comes from the slot, not from chance.
    """
    digest = blake2b(f"{number}:{attempt}".encode(), digest_size=4).digest()
    spread = int.from_bytes(digest, "big") / 2**32
    return float(min(_LAST_WAIT, _FIRST_WAIT * 2**attempt) * (0.5 + spread))


class SequenceTask:
    """A sequence that is being asked: where it stands, and what was answered before."""

    def __init__(self, sequence: SlotSequence, wanted: Callable[[int], bool]) -> None:
        self.sequence = sequence
        self.wanted = wanted
        self.place = 0
        self.attempt = 0
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
        self.attempt = 0


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
        on_progress: Callable[[Progress], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.target = target
        self.reader = reader
        self.limits = limits
        self.write = write
        self.on_progress = on_progress
        self.on_note = on_note
        self.paused_until = 0.0  # the target has asked for patience
        self.failed = 0
        self.progress = Progress(total)
        self.rate_limit = RateLimit(limits.rate)
        self.arrived: SimpleQueue[Trace | None] = SimpleQueue()
        self.lock = threading.Lock()
        self.stop = threading.Event()
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
        with self._interruptible():
            for _ in range(min(self.limits.concurrency, self.progress.total)):
                self._start(None)
            grace = math.inf
            while self.workers and time.monotonic() < grace:
                self.over.wait(_TICK)
                self._watch()
                self.progress.seconds = time.monotonic() - begun
                self.on_progress(self.progress)
                if self.stop.is_set() and grace == math.inf:
                    grace = time.monotonic() + GRACE
            with self.lock:
                for worker in self.workers:
                    worker.lost = True
            self.arrived.put(None)
            writer.join()
        if self.failure is not None:
            raise self.failure
        return self.progress

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
        delay, task.delay = max(task.delay, self.rate_limit.wait()), 0.0
        if delay:
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
            trace = answer_trace(
                self.reader, slot, answered, elapsed if self.limits.timing else None
            )
        except TargetError as failed:
            error, elapsed = failed, _milliseconds(begun)
        except BaseException as failed:
            error, elapsed = TargetError(described(failed)), _milliseconds(begun)
        with self.lock:
            worker.deadline = math.inf
            if worker.lost:  # too late: the slot has its error, or somebody else asks it again
                return False
        if error is not None:
            self._failed(task, slot, error, elapsed)
        elif trace is not None:
            self.arrived.put(trace)
            task.advance(slot, trace.answer.said if trace.answer is not None else None)
        return True

    def _failed(
        self, task: SequenceTask, slot: QuestionSlot, error: TargetError, elapsed: float
    ) -> None:
        """Try again later, or record the error."""
        if error.transient and task.attempt < self.limits.retries:
            task.delay = backoff(slot.number, task.attempt)
            if error.wait is not None:  # Retry-After: it holds for all questions, not only this one
                task.delay = max(task.delay, min(error.wait, _LONGEST_WAIT))
                self.rate_limit.pause(task.delay)
                self._note_wait(task.delay, error.reason)
            task.attempt += 1
            return
        self.arrived.put(error_trace(slot, error.reason, elapsed if self.limits.timing else None))
        task.advance(slot, None)
        with self.lock:
            self.failed += 1
            most = self.limits.max_errors
            if most is not None and self.failed > most:
                self._end("errors")

    def _note_wait(self, seconds: float, reason: str) -> None:
        """Say once that nothing will be asked for a while."""
        now = time.monotonic()
        with self.lock:
            before = self.paused_until
            self.paused_until = max(before, now + seconds)
        if seconds >= _LONG_WAIT and before <= now:
            self.on_note(f"waiting for {seconds:.0f} s, as the target asks: {reason}")

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
