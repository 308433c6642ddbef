"""The limit on questions that are asked at once: how it shrinks, grows, pauses and lets go."""

from __future__ import annotations

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from ragauge.run.concurrency_limit import ConcurrencyLimit, spread


def limit(most: int) -> ConcurrencyLimit:
    return ConcurrencyLimit(most, threading.Event())


def answer(places: ConcurrencyLimit, times: int) -> None:
    for _ in range(times):
        places.grow()


def test_all_refusals_of_one_round_halve_it_once() -> None:
    places = limit(32)
    for _ in range(24):
        places.shrink(0)
    assert places.allowed == 16
    places.shrink(0)  # an answer that comes late
    assert places.allowed == 16
    places.shrink(1)
    assert places.allowed == 8


def test_one_question_can_always_be_asked() -> None:
    places = limit(1)
    for asked_in in range(5):
        places.shrink(asked_in)
    assert places.allowed == 1
    assert places.enter(0) is not None


def test_it_grows_by_one_a_round_and_never_beyond_what_was_asked_for() -> None:
    places = limit(16)
    places.shrink(0)  # 8
    answer(places, 8 + 2)  # a round of 8 answers, a little more as the number grows meanwhile
    assert 9 <= places.allowed < 10
    answer(places, 10_000)
    assert places.allowed == 16


def test_a_number_that_was_refused_is_tried_late_and_later_each_time() -> None:
    """The target has room for three: a fourth question costs everybody a pause."""
    places = limit(4)
    answers_until_refused = []
    for asked_in in range(4):
        before = 0
        while places.allowed < 4:
            places.grow()
            before += 1
        answers_until_refused.append(before)
        places.shrink(asked_in)
    first, second, third, fourth = answers_until_refused
    assert first == 0
    assert 3 * 8 < second < third < fourth


def test_what_has_no_place_waits_until_there_is_one() -> None:
    places = limit(2)
    places.shrink(0)
    entered = threading.Event()

    def ask() -> None:
        assert places.enter(1) == 1
        entered.set()

    assert places.enter(0) == 1
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    assert not entered.wait(0.05)
    places.leave()
    assert entered.wait(10)
    thread.join()
    assert places.asking == 1


def test_after_a_pause_questions_come_back_one_by_one() -> None:
    places = limit(20)
    times: list[float] = []

    def ask(number: int) -> None:
        places.enter(number)
        times.append(time.monotonic())

    places.pause_for(0.1)
    end = places.paused_until
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(times) >= end
    assert max(times) - min(times) > 0.1  # spread over a quarter of a second


def test_those_who_wait_see_the_end_of_the_run() -> None:
    places = limit(1)
    places.enter(0)
    results: list[int | None] = []
    thread = threading.Thread(target=lambda: results.append(places.enter(1)))
    thread.start()
    places.stop.set()
    while thread.is_alive():
        places.wake()
        thread.join(0.01)
    assert results == [None]


@given(st.integers(0, 10**6), st.integers(0, 100))
def test_the_spread_is_a_fraction_and_the_same_every_time(number: int, attempt: int) -> None:
    assert 0 <= spread(number, attempt) < 1
    assert spread(number, attempt) == spread(number, attempt)
