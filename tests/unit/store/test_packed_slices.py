"""Slices leave an aggregate and come back to it, and nothing else in it changes."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.store.packed_slices import (
    UNREADABLE_SLICES,
    join_slices,
    pack_slices,
    split_slices,
    unpack_slices,
)
from tests.support.cases import cases
from tests.support.effort import examples

AGGREGATE = (
    '{"schema":"s","metrics":{"m":{"value":0.10000000000000001}},"slices":{"type":{}},"k":[5]}'
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def test_slices_are_taken_out_and_put_back_byte_by_byte() -> None:
    split = split_slices(AGGREGATE)
    # A number with digits that no float needs stays as it was written.
    assert split.aggregate == '{"schema":"s","metrics":{"m":{"value":0.10000000000000001}},"k":[5]}'
    assert zlib.decompress(split.slices) == b'{"type":{}}'
    assert join_slices(*split) == AGGREGATE


@cases("text", ["{}", '{"metrics":{}}', "[1]", "nonsense", "", '{"slices"', '"é'])
def test_what_has_no_slices_stays_as_it_is(text: str) -> None:
    assert split_slices(text) == (text, b"")
    assert join_slices(text, b"") == text


@examples(50)
@given(st.dictionaries(st.text(), VALUES, max_size=5), VALUES)
def test_any_document_survives(members: dict[str, object], slices: object) -> None:
    document = {**members, "slices": slices}
    split = split_slices(json.dumps(document))
    assert "slices" not in json.loads(split.aggregate)
    assert json.loads(join_slices(*split)) == document


def test_no_slices_are_no_bytes() -> None:
    assert pack_slices({}) == b""
    assert unpack_slices(b"") == b"{}"
    assert json.loads(unpack_slices(pack_slices({"type": {"fact": {"n": 1}}}))) == {
        "type": {"fact": {"n": 1}}
    }


@pytest.mark.parametrize("payload", [b"\x00", b"nonsense", zlib.compress(b"{}")[:-3]])
def test_damage_is_one_of_the_known_errors(payload: bytes) -> None:
    with pytest.raises(UNREADABLE_SLICES):
        join_slices("{}", payload)
