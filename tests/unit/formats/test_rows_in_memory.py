"""Dicts, frames, tables and data sets give the numbers of the file that they would be."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragauge import RagaugeError, load_gold, load_traces, score
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Row

ROWS: list[Row] = [
    {"user_input": "Who?", "response": "Me.", "retrieved_contexts": ["It was me."],
     "reference": "Me.", "reference_contexts": ["It was me."]},
    {"user_input": "Why?", "response": "So.", "retrieved_contexts": ["Other."],
     "reference": "So.", "reference_contexts": ["It had to be."]},
]  # fmt: skip


def lines(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def pandas_frame(rows: list[Row]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def polars_frame(rows: list[Row]) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def polars_lazy(rows: list[Row]) -> Any:
    return polars_frame(rows).lazy()


def arrow_table(rows: list[Row]) -> Any:
    return pytest.importorskip("pyarrow").Table.from_pylist(rows)


def data_set(rows: list[Row]) -> Any:
    """A data set of Hugging Face. Its library brings Arrow, 180 MB in all, and is in no lane.

    Tried with datasets 5.2.0: `pip install datasets` beside the package, then this file.
    """
    return pytest.importorskip("datasets").Dataset.from_list(rows)


class LikeDataset:
    """What of a data set is used, for lanes without its library: names, rows, no format."""

    __module__ = "datasets.arrow_dataset"

    def __init__(self, rows: list[Row], *, as_rows: bool = False) -> None:
        self.rows = rows
        self.as_rows = as_rows

    @property
    def column_names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def with_format(self, kind: str | None) -> LikeDataset:
        return LikeDataset(self.rows, as_rows=kind is None)

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            whole = {name: row.get(name) for name in self.column_names}
            yield whole if self.as_rows else object()


def streamed_data_set(rows: list[Row]) -> Any:
    return data_set(rows).to_iterable_dataset()


def formatted_data_set(rows: list[Row]) -> Any:
    """A data set that would yield frames of one row."""
    return data_set(rows).with_format("pandas")


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        pandas_frame,
        polars_frame,
        polars_lazy,
        arrow_table,
        data_set,
        streamed_data_set,
        formatted_data_set,
        LikeDataset,
    ],
)
def test_rows_are_scored_as_their_file_is(make: Callable[[list[Row]], Any], tmp_path: Path) -> None:
    files = lines(tmp_path / "gold.jsonl", GOLD), lines(tmp_path / "trace.jsonl", TRACES)
    expected = score(*files)
    scores = score(make(GOLD), make(TRACES))
    assert scores.metrics == expected.metrics
    assert (scores.gold_name, scores.trace_name) == ("<gold>", "<traces>")
    mixed = score(files[0], make(TRACES))
    assert mixed.metrics == expected.metrics


def test_the_splits_of_a_data_set_are_named() -> None:
    splits = pytest.importorskip("datasets").DatasetDict(dev=data_set(GOLD), test=data_set(GOLD))
    with pytest.raises(RagaugeError, match="got the splits of one: dev, test"):
        score(splits, TRACES)
    assert score(splits["test"], TRACES).metrics == score(GOLD, TRACES).metrics


@pytest.mark.parametrize("make", [list, pandas_frame, polars_frame, data_set])
def test_rows_of_other_tools_are_recognised(make: Callable[[list[Row]], Any]) -> None:
    rows = make(ROWS)
    scores = score(rows, rows, profile="all", k=1, metrics=["retrieval.recall"])
    assert scores.metrics["retrieval.recall@1"].value == 0.5
    assert any("read as ragas" in warning for warning in scores.warnings)


def test_own_field_names_are_mapped() -> None:
    gold = [{"Case": "A", "evidence": ["p"]}]
    traces = [{"case": "A", "docs": [{"uid": "p"}]}]
    fields = {
        "gold": {"qid": "Case", "relevant": "evidence"},
        "traces": {"qid": "case", "hits": "docs[].uid"},
    }
    scores = score(gold, traces, profile="all", k=1, fields=fields)
    assert scores.metrics["retrieval.recall@1"].value == 1.0


def test_values_of_numpy_and_moments_are_plain() -> None:
    gold = [{"qid": np.str_("A"), "relevant": np.array(["p", "q"])}]
    traces = [
        {"qid": "A", "hits": ["p"], "latency_ms": np.float64(7.5), "seed": np.int64(1),
         "ts": datetime.datetime(2026, 1, 1)},
    ]  # fmt: skip
    scores = score(gold, traces, profile="all", k=1)
    assert scores.metrics["retrieval.recall@1"].value == 0.5
    assert scores.metrics["latency.total_ms"].value == 7.5


def test_empty_cells_are_absent() -> None:
    """A frame fills the columns of rows that lack them with NaN."""
    pandas = pytest.importorskip("pandas")
    traces = pandas.DataFrame([{"qid": "A", "hits": ["p"]}, {"qid": "B", "error": "late"}])
    gold = [{"qid": "A", "relevant": ["p"]}, {"qid": "B", "relevant": ["p"]}]
    scores = score(gold, traces, profile="all", k=1)
    assert (scores.tally.errored, scores.tally.scored) == (1, 2)


def test_rows_are_loaded_too() -> None:
    assert len(load_gold(GOLD).items) == len(GOLD)
    assert len(load_traces(TRACES).traces) == len(TRACES)


@pytest.mark.parametrize("bad", [[{"qid": object()}], [{"qid": "A", "hits": {1, object}}]])
def test_what_json_cannot_hold_is_an_error_with_its_row(bad: list[Row]) -> None:
    with pytest.raises(RagaugeError, match="row 1 of <traces> cannot be written as JSON"):
        score(GOLD, bad)


@cases("bad", [None, 7, [1, 2], [{"qid": "A"}, 7], {"qid": "A"}])
def test_anything_else_is_an_error_that_says_what_to_give(bad: Any) -> None:
    with pytest.raises(RagaugeError, match="traces must be a path") as raised:
        score(GOLD, bad)
    assert "a list of dicts" in raised.value.problems[0].hint
    for load in (load_gold, load_traces):
        with pytest.raises(RagaugeError, match="must be a path or rows"):
            load(bad)
