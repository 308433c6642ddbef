"""Lines of a TOML file: a key is found at its statement, a fault where it begins."""

from __future__ import annotations

import tomllib

import pytest

from ragauge.files.toml_lines import TomlKey, line_of_fault, line_of_key
from tests.support.cases import cases

TEXT = '''\
# gold = "comment"
gold = "a # b" # it's a comment with [ and "

metrics = [
  "one", # ]
  "two",
]
text = """
[gates]
store = "not a key" ""\\"
"""
raw = \'\'\'
[waivers]\'\'\'
a.b . "c.d" = 1
inline = { x = 1, y = [{ z = 2 }] }

[gates]
"recall@5" = ">= 0.8"  # [x]

[embedders.openai]
base = "http://example.com"

[[waivers]]
gate = "one"
[[waivers]]
gate = "two"
[[waivers.parts]]
deep = 1
[waivers.parts.table]
deeper = 2
'''


@cases(
    ("key", "line"),
    [
        (("gold",), 2),
        (("metrics",), 4),
        (("metrics", 1), 4),
        (("text",), 8),
        (("raw",), 12),
        (("a", "b", "c.d"), 14),
        (("inline", "y", 0, "z"), 15),
        (("gates",), 17),
        (("gates", "recall@5"), 18),
        (("embedders",), 20),
        (("embedders", "openai", "base"), 21),
        (("embedders", "openai", "not there"), 20),
        (("waivers", 0, "gate"), 24),
        (("waivers", 1), 25),
        (("waivers", 1, "gate"), 26),
        (("waivers", 1, "parts", 0, "deep"), 28),
        (("waivers", 1, "parts", 0, "table", "deeper"), 30),
        (("nowhere",), 1),
        ((), 1),
    ],
)
@cases("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_key_is_found_at_its_statement(key: TomlKey, line: int, end: str) -> None:
    text = TEXT.replace("\n", end)
    tomllib.loads(text)  # so that the sample is TOML
    assert line_of_key(text, key) == line


@cases(
    ("text", "line"),
    [
        ("gold = ", 1),
        ("a = 1\n\nb = [1,\n2\n\n", 3),
        ("a = 1\nb = 'x\nc = 2\n", 2),
        ('a = 1\nb = """x\nc = 2\n', 2),
        ("a = 1\n[gates\nb = 2\n", 2),
        ("a = 1\nb = 2\na = 3", 3),
        ("[a]\nb = 1\n[a]\nc = 2\n", 3),
        ("a = 1\nb = {x = 1\n}\n", 2),
        ("a = 1\nb = 2\n\0", 3),
    ],
)
def test_a_fault_is_at_the_statement_that_cannot_be_read(text: str, line: int) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    assert line_of_fault(text, caught.value) == line


def test_nesting_that_no_parser_follows_is_found_too() -> None:
    text = "a = 1\nb = " + "[" * 100_000
    assert line_of_fault(text, RecursionError()) == 2


def test_a_long_array_is_read_once() -> None:
    """An array of 20,000 lines: the time must not grow with their square."""
    rows = '["a"],\n' * 20_000
    assert line_of_key(f"long = [\n{rows}]\ngold = 1\n", ("gold",)) == 20_003
