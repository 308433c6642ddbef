"""The runner: what is asked, what is recorded, and what a bad target cannot do to a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge import registry
from ragauge.formats.traces import RowReader
from ragauge.model.gold import GoldItem
from ragauge.model.target import Exchange, TargetError, TargetQuestion
from ragauge.model.trace import Hit, Timing, Trace
from ragauge.run import ask as runner
from ragauge.run.ask import BatchCounts, Limits, Progress, RateLimit, Runner, backoff
from ragauge.run.slots import GoldSlots
from tests.support.cases import cases

READER = RowReader(registry.dialect("native"), own=True)
FAST = Limits(concurrency=4, timeout=5.0, retries=0, timing=False)


class Asked:
    """A target made of a function, and all that it was asked."""

    def __init__(self, answer: Callable[[TargetQuestion], Any]) -> None:
        self.answer = answer
        self.questions: list[TargetQuestion] = []
        self.lock = threading.Lock()
        self.about: Mapping[str, Any] = {}

    def ask(self, question: TargetQuestion) -> Any:
        with self.lock:
            self.questions.append(question)
        return self.answer(question)

    def close(self) -> None: ...


class Shelf:
    """What a run kept, by the numbers of the slots."""

    def __init__(self) -> None:
        self.traces: dict[int, Trace] = {}

    def keep(self, batch: Sequence[Trace]) -> BatchCounts:
        for trace in batch:
            assert trace.line is not None
            assert trace.line - 1 not in self.traces
            self.traces[trace.line - 1] = trace
        return BatchCounts(len(batch), sum(each.error is not None for each in batch), 0, 0)


def run(
    answer: Callable[[TargetQuestion], Any], items: Sequence[GoldItem], limits: Limits = FAST,
    seeds: tuple[int, ...] = (), done: Sequence[int] = (),
    known: Mapping[int, str | None] | None = None,
) -> tuple[dict[int, Trace], Asked, Progress]:  # fmt: skip
    slots = GoldSlots(items, seeds)
    target, shelf = Asked(answer), Shelf()
    running = Runner(target, READER, limits, shelf.keep, total=slots.count - len(done))

    def wanted(number: int) -> bool:
        return number not in done

    progress = running.run(slots.sequences(wanted), wanted, known or {})
    return shelf.traces, target, progress


def questions(count: int) -> list[GoldItem]:
    return [GoldItem(qid=f"Q{n}", question=f"What is {n}?") for n in range(count)]


def fail(error: BaseException) -> Callable[[TargetQuestion], Any]:
    def answer(_: TargetQuestion) -> Any:
        raise error

    return answer


def errors(found: dict[int, Trace]) -> list[str | None]:
    return [found[number].error for number in sorted(found)]


def test_every_slot_is_asked_once_and_kept_under_its_number() -> None:
    found, target, progress = run(lambda asked: {"hits": [asked.qid]}, questions(500))
    assert sorted(found) == list(range(500))
    assert all(found[n].qid == f"Q{n}" and found[n].hits == (Hit(f"Q{n}"),) for n in found)
    assert len(target.questions) == 500
    assert (progress.total, progress.done, progress.errors) == (500, 500, 0)


def test_what_was_asked_is_in_the_trace_whatever_the_row_says() -> None:
    found, _, _ = run(
        lambda _: {"question": "other", "seed": 9, "hits": []}, questions(1), seeds=(4,)
    )
    assert (found[0].question, found[0].seed, found[0].line) == ("What is 0?", 4, 1)


@cases(
    ("answered", "hits"),
    [
        ({"topk": [{"id": "a", "score": 0.5}]}, (Hit("a", score=0.5),)),
        (["a", "b"], (Hit("a"), Hit("b"))),
        ([("a", 0.5)], (Hit("a", score=0.5),)),
        ([{"chunk_id": "a"}], (Hit("a"),)),
        (Trace(hits=(Hit("a", text="t"),)), (Hit("a", text="t"),)),
        ({"retrieved_ids": ("a",)}, (Hit("a"),)),
        ([], ()),
    ],
)
def test_rows_of_any_dialect_lists_of_hits_and_traces_are_answers(
    answered: Any, hits: tuple[Hit, ...]
) -> None:
    found, _, _ = run(lambda _: answered, questions(1))
    assert (found[0].hits, found[0].error) == (hits, None)


@cases(
    ("answered", "reason"),
    [
        (None, "an answer is an object or a list of hits, got nothing"),
        ("text", "an answer is an object or a list of hits, got str"),
        (17, "an answer is an object or a list of hits, got int"),
        ({"hits": 3}, "the answer cannot be read: `hits` must be a list, got 3 (bad-field)"),
        ({"detail": 1, "x": 2}, "the answer has no hits and no answer in it, but detail, x"),
        ({}, "the answer has no hits and no answer in it, but nothing"),
        ({"qid": "Q0"}, "the answer has no hits and no answer in it, but qid"),
        ({"qid": "Q9", "hits": []}, "the answer is for `Q9`, and `Q0` was asked"),
    ],
)
def test_wrong_shapes_are_recorded_errors(answered: Any, reason: str) -> None:
    found, _, progress = run(lambda _: answered, questions(1))
    assert errors(found) == [reason]
    assert progress.errors == 1


@cases(
    ("error", "reason"),
    [
        (TargetError("it is closed"), "it is closed"),
        (ValueError("no such index"), "ValueError: no such index"),
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
        (TargetError("a\nb\x1b[31m"), "a b\\x1b[31m"),
        (TargetError("password=hunter2 was wrong"), "password=[redacted] was wrong"),
        (TargetError("x" * 900), "x" * 497 + "..."),
        (TargetError(""), "it failed without a word"),
    ],
)
def test_exceptions_are_recorded_errors(error: BaseException, reason: str) -> None:
    found, target, _ = run(fail(error), questions(2))
    assert errors(found) == [reason, reason]
    assert len(target.questions) == 2


def test_an_error_that_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "backoff", lambda _number, _attempt: 0.001)
    seen: list[str] = []

    def answer(asked: TargetQuestion) -> Any:
        seen.append(asked.qid)
        if seen.count(asked.qid) <= 2:
            raise TargetError("busy", transient=True)
        return ["a"]

    found, _, _ = run(answer, questions(3), Limits(retries=2, timing=False))
    assert errors(found) == [None] * 3
    assert sorted(seen) == ["Q0"] * 3 + ["Q1"] * 3 + ["Q2"] * 3
    seen.clear()
    found, _, _ = run(answer, questions(1), Limits(retries=1, timing=False))
    assert (errors(found), seen) == (["busy"], ["Q0", "Q0"])


@pytest.mark.slow
def test_nobody_asks_before_a_target_wants_to_be_asked_again() -> None:
    first = threading.Event()
    times: list[float] = []

    def answer(_: TargetQuestion) -> Any:
        times.append(time.monotonic())
        if not first.is_set():
            first.set()
            raise TargetError("429", transient=True, wait=0.3)
        return []

    found, _, _ = run(answer, questions(3), Limits(concurrency=1, retries=1))
    assert errors(found) == [None] * 3
    assert times[1] - times[0] >= 0.29


def with_room_for(room: int, wait: float | None) -> Callable[[TargetQuestion], Any]:
    """A target that answers so many questions at once, and asks the others to wait."""
    places = threading.Semaphore(room)

    def answer(_: TargetQuestion) -> Any:
        if not places.acquire(blocking=False):
            raise TargetError("429 Too Many Requests", transient=True, wait=wait, busy=True)
        try:
            time.sleep(0.01)
            return []
        finally:
            places.release()

    return answer


@pytest.mark.slow
@pytest.mark.parametrize("wait", [0.05, 0.0, None])
@pytest.mark.parametrize("retries", [0, 2])
def test_a_busy_target_loses_no_question(wait: float | None, retries: int) -> None:
    """What the target put off was not tried: it takes none of the retries."""
    limits = Limits(concurrency=32, retries=retries, timing=False)
    found, target, _ = run(with_room_for(4, wait), questions(80), limits)
    assert errors(found) == [None] * 80
    assert len(target.questions) < 3 * 80  # and it is not asked over and over


@pytest.mark.slow
def test_a_busy_target_is_asked_by_fewer_at_once_and_by_more_when_it_has_time() -> None:
    target, shelf = Asked(with_room_for(4, 0.02)), Shelf()
    slots = GoldSlots(questions(60))
    running = Runner(target, READER, Limits(concurrency=32), shelf.keep, total=60)
    running.run(slots.sequences(), lambda _: True, {})
    assert 1 <= running.limit.allowed <= 16
    target.answer = lambda _: []
    slots, running.stop = GoldSlots(questions(2000)), threading.Event()
    running.limit.stop = running.stop
    before = running.limit.allowed
    running.progress = Progress(2000)
    running.write = lambda batch: BatchCounts(len(batch), 0, 0, 0)
    running.run(slots.sequences(), lambda _: True, {})
    assert running.limit.allowed > before


@pytest.mark.slow
def test_a_target_that_is_always_busy_holds_a_run_for_a_while_only() -> None:
    """All questions together, not one after another: the others are asked once."""
    limits = Limits(concurrency=1, max_wait=0.4, timing=False)
    busy = TargetError("429 Too Many Requests", transient=True, wait=0.05)
    found, target, _ = run(fail(busy), questions(10), limits)
    assert errors(found) == ["429 Too Many Requests"] * 10
    asked = [question.qid for question in target.questions]
    assert asked.count("Q0") >= 2
    assert asked[asked.count("Q0") :] == [f"Q{n}" for n in range(1, 10)]


def test_a_wait_is_not_longer_than_all_waits_may_be() -> None:
    busy = TargetError("429", transient=True, wait=3600)
    found, target, _ = run(fail(busy), questions(1), Limits(max_wait=0.2, timing=False))
    assert (errors(found), len(target.questions)) == (["429"], 2)


def test_what_cannot_pass_is_not_waited_for() -> None:
    refused = TargetError("403", transient=False, wait=3600)
    found, target, _ = run(fail(refused), questions(1))
    assert (errors(found), len(target.questions)) == (["403"], 1)


def test_a_run_whose_first_results_all_have_one_error_is_stopped() -> None:
    def answer(asked: TargetQuestion) -> Any:
        raise TargetError(f"http://127.0.0.1:{5000 + asked.number}/ask: connection refused")

    _, _, progress = run(answer, questions(500))
    assert progress.stopped == "same-error"
    assert runner.ALIKE <= progress.done < 100
    assert progress.reasons == {"connection refused": progress.done}
    _, _, progress = run(answer, questions(500), replace(FAST, keep_going=True))
    assert (progress.stopped, progress.done) == (None, 500)
    _, _, progress = run(answer, questions(runner.ALIKE))  # nothing is left that could be spared
    assert (progress.stopped, progress.done) == (None, runner.ALIKE)


@pytest.mark.parametrize("other", [TargetError("no such index"), None])
def test_a_run_with_one_other_result_goes_on(other: TargetError | None) -> None:
    def answer(asked: TargetQuestion) -> Any:
        if asked.number:
            raise TargetError("connection refused")
        if other is not None:
            raise other
        return []

    _, _, progress = run(answer, questions(100), replace(FAST, concurrency=1))
    assert (progress.stopped, progress.done) == (None, 100)


@pytest.mark.slow
def test_a_long_wait_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_LONG_WAIT", 0.2)
    waits = iter([0.1, 0.4])  # the first is not worth a word
    notes: list[str] = []

    def answer(_: TargetQuestion) -> Any:
        wait = next(waits, None)
        if wait is not None:
            raise TargetError("429 Too Many Requests", transient=True, wait=wait)
        return []

    slots, shelf = GoldSlots(questions(3), ()), Shelf()
    limits = Limits(concurrency=1, retries=3)
    running = Runner(Asked(answer), READER, limits, shelf.keep, total=3, on_note=notes.append)
    running.run(slots.sequences(lambda _: True), lambda _: True, {})
    assert errors(shelf.traces) == [None] * 3
    assert len(notes) == 1
    assert notes[0].endswith(" s, as the target asks: 429 Too Many Requests")
    running._note_wait(60, "503")
    running._note_wait(60, "503")  # by another thread, meanwhile
    assert notes[1:] == ["waiting for 60 s, as the target asks: 503"]


@pytest.mark.slow
def test_a_call_that_hangs_is_left_behind() -> None:
    release = threading.Event()

    def answer(asked: TargetQuestion) -> Any:
        if asked.qid in ("Q1", "Q3"):
            release.wait(600)
        return ["a"]

    try:
        found, _, progress = run(
            answer, questions(6), Limits(concurrency=2, timeout=1.0, retries=0, timing=False)
        )
    finally:
        release.set()
    slow = "no answer within 1 s"
    assert errors(found) == [None, slow, None, slow, None, None]
    assert (progress.done, progress.errors, progress.stopped) == (6, 2, None)


@pytest.mark.slow
def test_too_many_calls_that_hang_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_LOST", 2)
    release = threading.Event()
    try:
        _, _, progress = run(
            lambda _: release.wait(600), questions(20),
            Limits(concurrency=4, timeout=0.05, retries=0),
        )  # fmt: skip
    finally:
        release.set()
    assert progress.stopped == "hanging"
    assert progress.done < 20


def test_more_errors_than_allowed_end_the_run() -> None:
    _, _, progress = run(
        fail(TargetError("no")), questions(3000), Limits(concurrency=1, max_errors=3, retries=0)
    )
    assert progress.stopped == "errors"
    assert 3 < progress.done < 3000


def test_what_cannot_be_kept_ends_the_run_with_its_error() -> None:
    def keep(_: Sequence[Trace]) -> BatchCounts:
        raise OSError("disk full")

    slots = GoldSlots(questions(1000))
    running = Runner(Asked(lambda _: []), READER, FAST, keep, total=1000)
    with pytest.raises(OSError, match="disk full"):
        running.run(slots.sequences(), lambda _: True, {})


TURNS = [
    GoldItem(qid="C", turn=turn, question=f"turn {turn}") for turn in (1, 2, 3)
]  # fmt: skip


def spoken(asked: TargetQuestion) -> Any:
    return {"hits": [], "answer": f"{asked.text} seed {asked.seed}"}


def test_turns_are_asked_in_order_with_what_was_answered_before() -> None:
    _, target, _ = run(spoken, TURNS, seeds=(0, 1))
    for seed in (0, 1):
        mine = [each for each in target.questions if each.seed == seed]
        assert [each.turn for each in mine] == [1, 2, 3]
        assert mine[0].history == ()
        assert mine[2].history == (
            Exchange("turn 1", f"turn 1 seed {seed}"), Exchange("turn 2", f"turn 2 seed {seed}"),
        )  # fmt: skip


def test_paraphrases_of_a_turn_go_on_with_the_same_paraphrase() -> None:
    items = [
        GoldItem(qid="C", turn=1, question="x", paraphrases=("a", "b")),
        GoldItem(qid="C", turn=2, question="y", paraphrases=("c", "d", "e")),
    ]
    _, target, _ = run(spoken, items)
    said = {each.text: each.history for each in target.questions}
    assert said["a"] == said["b"] == ()
    assert said["c"] == (Exchange("a", "a seed None"),)
    assert said["d"] == (Exchange("b", "b seed None"),)
    assert said["e"] == (Exchange("a", "a seed None"),)  # there is no third one


def test_a_turn_that_failed_has_no_answer_in_the_history() -> None:
    def answer(asked: TargetQuestion) -> Any:
        if asked.turn == 1:
            raise TargetError("no")
        return spoken(asked)

    _, target, _ = run(answer, TURNS)
    assert target.questions[1].history == (Exchange("turn 1", None),)


def test_a_resumed_conversation_knows_the_turns_that_are_done() -> None:
    found, target, _ = run(spoken, TURNS, done=[0], known={0: "as stored"})
    assert sorted(found) == [1, 2]
    assert target.questions[0].history == (Exchange("turn 1", "as stored"),)


def test_times_are_measured_unless_the_target_gives_its_own() -> None:
    timed = Limits(retries=0)
    found, _, _ = run(lambda _: [], questions(1), timed)
    timing = found[0].timing
    assert timing is not None and timing.total is not None and timing.total >= 0  # noqa: PT018
    found, _, _ = run(lambda _: {"latency_ms": 12.5, "hits": []}, questions(1), timed)
    assert found[0].timing == Timing(total=12.5)
    found, _, _ = run(lambda _: [], questions(1))
    assert found[0].timing is None


def test_a_rate_spreads_the_questions() -> None:
    times: list[float] = []

    def answer(_: TargetQuestion) -> Any:
        times.append(time.monotonic())
        return []

    run(answer, questions(6), Limits(concurrency=6, rate=50.0))
    assert max(times) - min(times) >= 0.09  # six questions are five gaps of 20 ms


def test_a_pace_without_a_rate_never_waits() -> None:
    pace = RateLimit(None)
    assert [pace.wait() for _ in range(3)] == [0.0, 0.0, 0.0]


@given(st.integers(0, 10**6), st.integers(0, 20))
def test_waits_grow_and_are_the_same_every_time(number: int, attempt: int) -> None:
    wait = backoff(number, attempt)
    base = min(30.0, 0.25 * 2**attempt)
    assert 0.5 * base <= wait < 1.5 * base
    assert wait == backoff(number, attempt)
