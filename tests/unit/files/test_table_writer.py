"""Cells of CSV: texts that a spreadsheet would run stay texts, numbers stay numbers."""

from __future__ import annotations

import csv
import io

import numpy as np

from ragauge.files.table_writer import TableColumn, as_csv
from tests.support.cases import cases


def cell(text: str, *, raw: bool = False) -> str:
    """A text as a reader of CSV has it again."""
    column = TableColumn(name="qid", kind="text", values=[text])
    return list(csv.reader(io.StringIO(as_csv([column], decimals=4, raw=raw), newline="")))[1][0]


@cases(
    "text",
    [
        "=1+1",
        '=HYPERLINK("http://x","y")',
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "  =1+1",
        "＝1+1",  # noqa: RUF001
    ],
)
def test_a_formula_becomes_text(text: str) -> None:
    assert cell(text) == f"'{text}"
    assert cell(text, raw=True) == text


@cases("text", ["-0.5", "+49", "-1e-5", "Q1", "a=b", "", "a-b", "'=1", "1-2"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_a_cell_that_another_separator_would_cut_is_quoted() -> None:
    """Half of Europe reads CSV with semicolons: the part behind one would be a cell of its own."""
    column = TableColumn(name="qid", kind="text", values=["a;=1+1", "a\t=1+1", "::error::x"])
    assert as_csv([column], decimals=4).splitlines()[1:] == [
        '"a;=1+1"',
        '"a\t=1+1"',
        '"::error::x"',
    ]


def test_numbers_below_zero_are_numbers() -> None:
    column = TableColumn(name="delta", kind="number", values=np.array([-0.5, 0.25]))
    assert as_csv([column], decimals=4).splitlines() == ["delta", "-0.5000", "0.2500"]
