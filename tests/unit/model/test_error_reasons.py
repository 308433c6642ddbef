"""Reasons of failures: which messages are one reason, which are not, and how they are counted."""

from __future__ import annotations

from ragauge.model.error_reasons import LONGEST, counted_reasons, reason_of, sorted_reasons
from tests.support.cases import cases


@cases(
    ("one", "other", "reason"),
    [
        (
            "http://127.0.0.1:5321/ask cannot be reached: connection refused",
            "http://127.0.0.1:40499/ask cannot be reached: connection refused",
            "cannot be reached: connection refused",
        ),
        ("KeyError: 'Q17'", "KeyError: 'Q4'", "KeyError: 'Q…'"),
        ("10.0.0.7:5432 reset", "10.0.12.9:80 reset", "… reset"),
        ("host db:5432 is down", "host db:5433 is down", "host db… is down"),
        ("<Index object at 0x7f3a12>", "<Index object at 0x7faa01>", "<Index object at …>"),
        ("request req_8f3a99 failed", "request req_01bc2d failed", "request … failed"),
        (
            "job 3f2504e0-4f89-11d3-9a0c-0305e82c3301 died",
            "job 00000000-4f89-11d3-9a0c-0305e82c3301 died",
            "job … died",
        ),
        ("at 2026-11-16T09:12:33.123Z: no", "at 2026-11-16T09:12:34Z: no", "at …: no"),
        ("slot 3, and slot 14 was asked", "slot 9, and slot 10 was asked", None),
        ("a  b\nc", "a b c", "a b c"),
    ],
)
def test_messages_of_one_cause_are_one_reason(one: str, other: str, reason: str | None) -> None:
    assert reason_of(one) == reason_of(other)
    assert reason is None or reason_of(one) == reason


@cases(
    ("one", "other"),
    [
        ("http://a/ask answered 503: busy", "http://a/ask answered 404: busy"),
        ("[Errno 111] Connection refused", "[Errno 104] Connection reset"),
        ("the process ended with exit code 1", "the process ended with exit code 2"),
        ("the process was killed by signal 9", "the process was killed by signal 11"),
        ("no answer within 1 s", "no answer within 60 s"),
        ("'utf-8' codec", "'utf-16' codec"),
        ("ValueError: no index", "KeyError: no index"),
    ],
)
def test_numbers_that_say_what_went_wrong_stay(one: str, other: str) -> None:
    assert reason_of(one) != reason_of(other)


def test_a_reason_is_short_and_never_empty() -> None:
    assert len(reason_of("word " * 1000)) == LONGEST
    assert reason_of("  ") == "no reason given"


def test_the_most_frequent_come_first_and_the_rest_is_summed_up() -> None:
    counts = {"d": 1, "b": 2, "a": 2, "c": 12, "e": 1}
    assert list(sorted_reasons(counts)) == ["c", "a", "b", "d", "e"]
    assert counted_reasons(counts) == "12 × c, 2 × a, 2 × b, 2 × other reasons"
    assert counted_reasons({"a": 3}) == "3 × a"
