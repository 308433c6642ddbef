"""Keys that stand twice in one object: found wherever they are, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragauge.files.duplicate_keys import duplicate_keys, may_have_duplicate_keys
from tests.support.cases import cases
from tests.support.effort import examples


@cases(
    ("data", "expected"),
    [
        (b'{"a": 1, "b": ":", "c": {"a": 1}}', ()),
        (b'{"a": 1, "a": 1}', ("a",)),
        (b'{"a":1 ,"b":2,"a"\t: 3, "b" : 4}', ("a", "b")),
        (b'{"a": 1, "\\u0061": 2}', ("a",)),
        (b'{"a": ":", "\\u003a": 2}', ()),
        (b'{"a": "\\u003a", "a": 2}', ("a",)),
        (b'{"hits": [{"id": "x"}, {"id": "y", "score": 1, "id": "z"}]}', ("hits[1].id",)),
        (b'{"hits": [[1, 2], {"a": {"b": 1, "b": 2}}]}', ("hits[1].a.b",)),
        (b'[{"a": 1}, {"a": 1, "a": 2}]', ("[1].a",)),
        (b'{"a": "\\"a\\": 1, \\"a\\": 2"}', ()),
        (b'{"a": 1e999, "a": 123456789012345678901234567890}', ("a",)),
        (b'{"": 1, "": 2}', ("",)),
        (b'{"a": 1, "a": 2, "a": 3}', ("a",)),
        (b"17", ()),
        (b'{"a": 1, "a": 2', ()),
        (b'{"a": 1, "a": "\\ud800"}', ()),
    ],
)
def test_keys_that_stand_twice_are_named_by_their_path(
    data: bytes, expected: tuple[str, ...]
) -> None:
    """Also escaped ones, and inside lists and objects."""
    assert duplicate_keys(data) == expected


def test_any_depth_and_any_number_take_little_time() -> None:
    """A path is shortened, and after 20 keys the search ends."""
    deep = b'{"x":' * 50_000 + b'{"a": 1, "a": 2}' + b"}" * 50_000
    (path,) = duplicate_keys(deep)
    assert path.startswith("x.x.x.")
    assert path.endswith(".x.a")
    assert len(path) < 100
    many = b"{" + b",".join(b'"k%d": 1, "k%d": 2' % (n, n) for n in range(1000)) + b"}"
    assert len(duplicate_keys(many)) == 20


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(':\\"a{}[], \n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from(["a", "b", ":", '"', "é"]), inner), max_size=4).map(
            tuple
        )
    ),
    max_leaves=12,
)


def written(value: Any, *, escape: bool) -> str:
    """The JSON of a value in which a tuple of pairs is an object."""
    if isinstance(value, tuple):
        members = (
            f"{json.dumps(k, ensure_ascii=escape)} : {written(v, escape=escape)}" for k, v in value
        )
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(entry, escape=escape) for entry in value) + "]"
    return json.dumps(value, ensure_ascii=escape)


@given(value=VALUES, escape=st.booleans())
@examples(300)
def test_the_search_agrees_with_a_decoder_that_sees_all_pairs(value: Any, escape: bool) -> None:
    """The quick look at colons never says no where there is one."""
    text = written(value, escape=escape)
    twice = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            twice.append(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=look)
    assert bool(duplicate_keys(text.encode())) == bool(twice)
    assert may_have_duplicate_keys(text.encode()) == bool(twice)
