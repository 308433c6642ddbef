"""Taking typed fields out of rows: spellings, types, and errors that name the path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragauge.files.fields import (
    FieldError,
    as_bool,
    as_id,
    as_ids,
    as_int,
    as_list,
    as_number,
    as_object,
    as_text,
    as_texts,
    pick,
    shown,
    wrong_type,
)
from tests.support.cases import cases

NAMES = ("one", "two", "three")
VALUES: list[Any] = [None, True, False, 0, 7, -3, 1.5, "", "x", [], ["x"], {}, {"x": 1}, 2**63]


def test_the_first_spelling_that_is_there_is_taken() -> None:
    """In the order of the names, with null as absent."""
    assert pick({"two": 2}, NAMES) == ("two", 2)
    assert pick({"one": None, "two": 2}, NAMES) == ("two", 2)
    assert pick({"three": 0}, NAMES) == ("three", 0)
    assert pick({"four": 4}, NAMES) == ("", None)
    assert pick({}, NAMES) == ("", None)


def test_spellings_that_agree_are_one_field() -> None:
    """The name is that of the first."""
    assert pick({"three": ["x"], "two": ["x"]}, NAMES) == ("two", ["x"])


def test_spellings_that_disagree_are_an_error() -> None:
    """Both are named and shown, with the path inside the object."""
    with pytest.raises(FieldError) as caught:
        pick({"one": "a", "three": "b"}, NAMES, inside="topk[2].")
    assert caught.value.code == "field-conflict"
    assert caught.value.message == (
        '`topk[2].one` and `topk[2].three` are the same field and disagree: "a" and "b"'
    )
    assert caught.value.hint


@pytest.mark.parametrize("own", ["one", "two", "three"])
def test_an_own_name_wins_over_the_others(own: str) -> None:
    """Whatever its place among the names."""
    row = {"one": 1, "two": 2, "three": 3}
    assert pick(row, NAMES, (own,)) == (own, row[own])


def test_among_own_names_the_first_that_is_not_empty_wins() -> None:
    """As `a or b` does in the sources; an empty one is taken when there is no other."""
    own = ("two", "three")
    assert pick({"two": "", "three": "c"}, NAMES, own) == ("three", "c")
    assert pick({"two": "b", "three": "c"}, NAMES, own) == ("two", "b")
    assert pick({"one": "a", "two": ""}, NAMES, own) == ("two", "")
    assert pick({"one": "a", "two": None}, NAMES, own) == ("one", "a")


def test_other_spellings_are_read_where_no_own_name_is_there() -> None:
    """And must agree with each other."""
    assert pick({"three": 3}, NAMES, ("one",)) == ("three", 3)
    with pytest.raises(FieldError):
        pick({"two": 2, "three": 3}, NAMES, ("one",))


@cases(
    ("take", "accepted"),
    [
        (as_id, {0: "0", 7: "7", -3: "-3", "": "", "x": "x"}),
        (as_int, {0: 0, 7: 7, -3: -3}),
        (as_number, {0: 0.0, 7: 7.0, -3: -3.0, 1.5: 1.5}),
        (as_text, {"": "", "x": "x"}),
    ],
)
def test_each_type_takes_its_own_values_and_no_others(
    take: Callable[[Any, str], Any], accepted: dict[Any, Any]
) -> None:
    """true and false are no numbers here, and numbers of more than 64 bits are none either."""
    for value in VALUES:
        hashable = not isinstance(value, list | dict | bool)
        if hashable and value in accepted:
            taken = take(value, "field")
            assert taken == accepted[value]
            assert type(taken) is type(accepted[value])
        else:
            with pytest.raises(FieldError) as caught:
                take(value, "field")
            assert caught.value.code == "bad-field"
            assert caught.value.message.startswith("`field` must be ")
            assert caught.value.hint


@pytest.mark.parametrize(("take", "kind"), [(as_bool, bool), (as_list, list), (as_object, dict)])
def test_flags_lists_and_objects_are_taken_as_they_are(
    take: Callable[[Any, str], Any], kind: type
) -> None:
    """Nothing is converted: "true" and 1 are not true, and one thing is not a list of it."""
    for value in VALUES:
        if type(value) is kind:
            assert take(value, "field") is value
        else:
            with pytest.raises(FieldError, match="`field` must be "):
                take(value, "field")


def test_an_id_may_be_a_whole_number() -> None:
    """It is read as its digits, so that 7 and "7" are one id."""
    assert as_id(7, "qid") == as_id("7", "qid") == "7"
    assert as_ids([7, "x"], "ids") == ("7", "x")


def test_the_border_of_64_bits() -> None:
    """The largest and the smallest number are taken, one more is not."""
    assert as_int(2**63 - 1, "seed") == 2**63 - 1
    assert as_int(-(2**63), "seed") == -(2**63)
    for value in (2**63, -(2**63) - 1):
        for take in (as_int, as_number, as_id):
            with pytest.raises(FieldError, match="64 bits"):
                take(value, "seed")


@pytest.mark.parametrize("take", [as_texts, as_ids])
def test_a_list_names_the_place_of_its_bad_element(take: Callable[[Any, str], Any]) -> None:
    """Counted from 0, as in the object."""
    assert take(None, "tags") == take([], "tags") == ()
    assert take(["a", "b"], "tags") == ("a", "b")
    with pytest.raises(FieldError, match=r"`tags\[2\]` must be "):
        take(["a", "b", None], "tags")
    with pytest.raises(FieldError, match="`tags` must be a list"):
        take("a", "tags")


@cases(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("0.83", '"0.83"'),
        ("größe", '"größe"'),
        ({"a": [1, None]}, '{"a": [1, null]}'),
        ("x" * 58, '"' + "x" * 58 + '"'),
        ("x" * 59, '"' + "x" * 56 + "..."),
    ],
)
def test_a_value_is_shown_as_the_file_has_it(value: object, text: str) -> None:
    """In the words of JSON, and cut to 60 characters."""
    assert shown(value) == text
    assert len(shown(value)) <= 60


def test_the_message_of_a_wrong_type() -> None:
    """What, what was expected, what was found."""
    error = wrong_type("topk[3].score", "a number", "0.83", "write the number without quotes")
    assert (error.code, error.hint) == ("bad-field", "write the number without quotes")
    assert str(error) == error.message == '`topk[3].score` must be a number, got "0.83"'
