"""A case becomes as small as it can be while it still shows the fault."""

from __future__ import annotations

from tests.fuzz.case import Case
from tests.fuzz.minimise import minimise

LINES = b"".join(b'{"qid": "%d", "answer": "words"}\n' % number for number in range(200))
BROKEN = LINES[:3000] + b"\x00BAD" + LINES[3000:]


def is_bad(case: Case) -> bool:
    return b"\x00BAD" in case.files.get("trace.jsonl", b"")


def test_only_what_shows_the_fault_is_left() -> None:
    arguments = ("score", "gold.jsonl", "trace.jsonl", "--format", "json", "--full")
    case = Case("x", {"gold.jsonl": LINES, "trace.jsonl": BROKEN}, arguments)
    small = minimise(case, is_bad)
    assert small.files == {"trace.jsonl": b"\x00BAD"}
    assert small.arguments == ("score",)


def test_words_that_the_fault_needs_stay() -> None:
    case = Case("x", {"a": b"1", "b": b"2"}, ("gold", "lint", "a", "--strict", "--dialect", "kb"))
    small = minimise(case, lambda case: "--strict" in case.arguments and "b" in case.files)
    assert small.arguments == ("gold", "lint", "--strict")  # the name of the command always stays
    assert small.files == {"b": b""}


def test_two_places_that_the_fault_needs_together_stay() -> None:
    content = LINES[:500] + b"<" + LINES[500:900] + b">" + LINES[900:]
    case = Case("x", {"a": content}, ("validate",))
    small = minimise(case, lambda case: {*b"<>"} <= {*case.files.get("a", b"")})
    assert small.files == {"a": b"<>"}


def test_the_number_of_tries_is_bounded() -> None:
    tried = []

    def fails(case: Case) -> bool:
        tried.append(case)
        return is_bad(case)

    small = minimise(Case("x", {"trace.jsonl": BROKEN}, ("validate",)), fails, tries=10)
    assert len(tried) == 10
    assert is_bad(small)
    assert small.size < len(BROKEN)
