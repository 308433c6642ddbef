"""YAML as it is written: readable, and any reader gets the same values back."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ragauge.files.yaml_writer import edited_item, flow_text, item_text, list_text, regions
from tests.support.cases import cases

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    st.sampled_from(["yes", "No", "~", "null", "1e3", "0x1f", "2024-01-05", "a: b", "- a", " a"]),
    st.lists(st.sampled_from(["a", " b", "", "# c", "- d", "e "]), min_size=2).map("\n".join),
)
SCALARS = st.one_of(
    TEXTS, st.none(), st.booleans(), st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
ROWS = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types: 1 is neither True nor 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@pytest.mark.slow
@given(st.lists(ROWS, max_size=3))
def test_what_is_written_is_read_again(rows: list[dict[str, Any]]) -> None:
    assert same(yaml.safe_load(list_text(rows)), rows)
    assert same(yaml.safe_load(flow_text(rows)), rows)


@pytest.mark.slow
@given(st.lists(ROWS, min_size=1, max_size=4), ROWS, st.data())
def test_one_item_is_replaced_and_the_others_keep_their_text(
    rows: list[dict[str, Any]], new: dict[str, Any], data: st.DataObject
) -> None:
    """Comments around an item are not part of it."""
    chosen = data.draw(st.integers(0, len(rows) - 1))
    text = list_text(rows, [["of", "one"]] * len(rows)) + "# the end\n"
    found = regions(text, ())
    assert found is not None
    region = found[chosen]
    written = item_text(new, column=region.column)
    replaced = text[: region.start] + written + text[region.end :]
    assert same(yaml.safe_load(replaced), [*rows[:chosen], new, *rows[chosen + 1 :]])
    assert replaced.count("# of\n# one\n") >= len(rows)
    assert replaced.endswith("# the end\n")


@cases(
    ("value", "written"),
    [
        ("guide.md#S.2", "guide.md#S.2"),
        ("yes", '"yes"'),
        ("12", '"12"'),
        ("a # b", '"a # b"'),
        ("", '""'),
        ("Größe", '"Größe"'),
        ("line\u2028end", '"line\\u2028end"'),
        (1e-5, "1.0e-05"),
        (0.5, "0.5"),
        (True, "true"),
        (None, "null"),
        ([1, "a"], "[1, a]"),
    ],
)
def test_scalars_are_plain_where_no_reader_can_mistake_them(value: Any, written: str) -> None:
    assert flow_text(value) == written


def test_text_of_several_lines_is_laid_out() -> None:
    assert item_text({"a": "x\n  y\n\nz", "b": [{"c": 1}]}) == (
        "a: |-\n    x\n      y\n\n    z\n  b:\n    - c: 1"
    )
    assert item_text({"a": "x\ny"}, literal=False) == 'a: "x\\ny"'
    assert item_text({"a": "x\n "}) == 'a: "x\\n "'


def test_numbers_that_yaml_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        flow_text(math.inf)


@pytest.mark.slow
@given(st.lists(ROWS, min_size=1, max_size=3), ROWS, st.data())
def test_changed_fields_are_replaced_in_their_places(
    rows: list[dict[str, Any]], other: dict[str, Any], data: st.DataObject
) -> None:
    """Some fields get another value, some leave, some are added behind the others."""
    chosen = data.draw(st.integers(0, len(rows) - 1))
    old = rows[chosen]
    first, *rest = old
    left = [first, *(name for name in rest if data.draw(st.booleans()))]
    new = {name: data.draw(VALUES) if data.draw(st.booleans()) else old[name] for name in left}
    new |= {name: value for name, value in other.items() if name not in old}
    text = list_text(rows, [["of", "one"]] * len(rows)) + "# the end\n"
    item_regions = regions(text, ())
    assert item_regions is not None
    region = item_regions[chosen]
    edit = edited_item(text, region, old, new)
    assert edit is not None
    replaced = text[: region.start] + edit.text + text[edit.end :]
    assert same(yaml.safe_load(replaced), [*rows[:chosen], new, *rows[chosen + 1 :]])
    assert replaced.startswith(text[: region.start])
    assert replaced.endswith("# the end\n")


@pytest.mark.parametrize("text", ["- {a: 1, b: 2}\n", "- b: 2\n  a: 1\n"])
def test_fields_on_one_line_or_in_another_order_are_not_edited_one_by_one(text: str) -> None:
    item_regions = regions(text, ())
    assert item_regions is not None
    assert edited_item(text, item_regions[0], {"a": 1, "b": 2}, {"a": 1, "b": 3}) is None
