"""Whatever the functions are given, an error of the user is a `RagaugeError` with a hint."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragauge
from ragauge import RagaugeError
from ragauge.api.arguments import ARGUMENTS
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder
from tests.unit.api.test_results import many

SCORES = ragauge.score(GOLD, TRACES)

VALUES: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "int": lambda: 5,
    "float": lambda: 1.5,
    "bool": lambda: True,
    "dict": lambda: {"qid": "a"},
    "empty dict": dict,
    "dict of columns": lambda: {"qid": ["a"], "answer": ["b"]},
    "bytes": lambda: b"abc",
    "empty list": list,
    "ints": lambda: [1, 2],
    "texts": lambda: ["a"],
    "nones": lambda: [None],
    "mixed": lambda: [GOLD[0], 5],
    "generator of ints": lambda: (number for number in [1]),
    "generator of dicts": lambda: ({"x": 1} for _ in [1]),
    "empty generator": lambda: iter(()),
    "path that is not there": lambda: Path("nosuch.jsonl"),
    "folder": lambda: Path("."),
    "empty text": str,
    "text": lambda: "nosuch",
    "text with a NUL": lambda: "a\0b",
    "set": lambda: {1, 2},
    "object": object,
    "array": lambda: np.zeros(3),
    "matrix": lambda: np.zeros((2, 2)),
    "lists": lambda: [[1]],
    "objects inside": lambda: [{"qid": object()}],
    "keys that are numbers": lambda: [{1: 2}],
    "nested": lambda: [{"qid": {"a": 1}}],
    "module": lambda: sys,
}


def _frames() -> dict[str, Callable[[], Any]]:
    if not (find_spec("pandas") and find_spec("polars")):
        return {}
    pandas, polars = import_module("pandas"), import_module("polars")
    return {
        "empty frame": pandas.DataFrame,
        "frame without columns": lambda: pandas.DataFrame(index=[0, 1]),
        "frame without rows": lambda: pandas.DataFrame(columns=["qid", "answer"]),
        "frame of polars": polars.DataFrame,
        "series": lambda: pandas.Series([1, 2]),
        "series of polars": lambda: polars.Series([1]),
        "two columns of one name": lambda: pandas.DataFrame([["a", "b"]], columns=["qid", "qid"]),
    }


VALUES |= _frames()

CALLS: dict[str, Callable[[Any], Any]] = {
    "score gold": lambda value: ragauge.score(value, TRACES),
    "score traces": lambda value: ragauge.score(GOLD, value),
    "load_gold": ragauge.load_gold,
    "load_traces": ragauge.load_traces,
    "load_scores": ragauge.load_scores,
    "gate": ragauge.gate,
    "gate gates": lambda value: ragauge.gate(SCORES, value),
    "gate baseline": lambda value: ragauge.gate(SCORES, "chr>=0.5", baseline=value),
    "gate gold": lambda value: ragauge.gate(TRACES, gold=value),
    "gate traces": lambda value: ragauge.gate(value, gold=GOLD),
    "compare a": lambda value: ragauge.compare(value, SCORES),
    "compare traces": lambda value: ragauge.compare(value, TRACES, gold=GOLD),
    "compare gold": lambda value: ragauge.compare(TRACES, TRACES, gold=value),
    "compare names": lambda value: ragauge.compare(SCORES, SCORES, names=value),
    "compare gates": lambda value: ragauge.compare(SCORES, SCORES, gates=value),
    "item": lambda value: SCORES[value],
    "get": SCORES.get,
    "in": lambda value: value in SCORES,
    "item of a verdict": lambda value: SCORES.verdict[value],
    "save": SCORES.save,
    "format": lambda value: SCORES.save("scores.json", format=value),
    "to_pandas": SCORES.to_pandas,
    "opened_store": lambda value: ragauge.opened_store(value).__enter__(),
    "record": ragauge.record,
    "secrets": lambda value: ragauge.record("traces.jsonl", secrets=value),
    "write": lambda value: ragauge.record("traces.jsonl").write(value),
    "hits": lambda value: ragauge.record("traces.jsonl").write("q", "a", value),
    "retrieval": lambda value: ragauge.record("t.jsonl").langchain(retrieval=value),
    "assert_rag question": lambda value: ragauge.assert_rag(value, "a", ["c"], GOLD),
    "assert_rag answer": lambda value: ragauge.assert_rag("q", value, ["c"], {"relevant": ["c"]}),
    "assert_rag hits": lambda value: ragauge.assert_rag("q", "a", value, {"relevant": ["c"]}),
    "assert_rag gold": lambda value: ragauge.assert_rag("q", "a", ["c"], value),
    **{
        f"assert_rag {name}": lambda value, name=name: ragauge.assert_rag(  # type: ignore[misc]
            "q", "a", ["c"], {"relevant": ["c"]}, **{name: value}
        )
        for name in ("k", "only", "citations", "gates", "corpus", "chunks", "fields")
    },
    "assert_rag qid": lambda value: ragauge.assert_rag("q", "a", ["c"], GOLD, qid=value),
    **{
        f"score {name}": lambda value, name=name: ragauge.score(  # type: ignore[misc]
            GOLD, TRACES, **{name: value}
        )
        for name in (
            "profile", "dialect", "k", "metrics", "also", "gates", "missing", "on_bad_line",
            "refusal_patterns", "workers", "intervals", "hashes", "chunks", "corpus", "options",
            "embed", "bands", "fields", "ignore_fields",
        )
    },
    **{
        f"gate {name}": lambda value, name=name: ragauge.gate(SCORES, **{name: value})  # type: ignore[misc]
        for name in ("waivers", "today", "allow_missing")
    },
    **{
        f"compare {name}": lambda value, name=name: ragauge.compare(  # type: ignore[misc]
            TRACES, TRACES, gold=GOLD, **{name: value}
        )
        for name in (
            "overlap", "strict", "fail_on", "strict_kinds", "accept_open", "chunks_a", "workers",
            "allow_errored",
        )
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("folder")
def test_wrong_arguments_are_errors_with_a_hint(call: str) -> None:
    """An `AttributeError`, `TypeError` or bare `AssertionError` for what a user gives is a bug."""
    for name, make in VALUES.items():
        outcome: Exception | None = None
        try:
            CALLS[call](make())
        except (RagaugeError, AssertionError) as error:
            outcome = error
        if isinstance(outcome, RagaugeError):
            assert outcome.problems[0].hint, name
        elif outcome is not None:
            # The failure of a check, which says what was asked; no assertion of our own.
            assert call.startswith("assert_rag"), (name, outcome)
            assert "asked: " in str(outcome), name


@cases(
    ("call", "value", "said"),
    [
        ("score gold", "dict", "gold must be a path or rows, got: one dict"),
        ("score gold", "empty list", "gold has no rows"),
        ("score traces", "nones", "list of NoneType"),
        ("score traces", "generator of ints", "list of int"),
        ("score traces", "none", "got: NoneType"),
        ("score traces", "path that is not there", "nosuch.jsonl"),
        ("score traces", "bytes", "bytes"),
        ("score k", "float", "k is a whole number, or a list of them, got: float"),
        ("score metrics", "ints", "metrics is a list of texts, got: list of int"),
        ("score options", "dict", "options is an Options value, got: dict"),
        ("score fields", "text", "fields is a dict of field names, got: str 'nosuch'"),
        ("compare overlap", "text", 'overlap is "cumulative" or "single", got: str \'nosuch\''),
        ("compare traces", "empty list", "run a has no rows"),
        ("gate", "dict", "scores must be those of `score`, or a path, got: dict"),
        ("gate gates", "ints", "gates are a text, a table, or a list of them, got: list of int"),
        ("opened_store", "none", "url is a text, got: NoneType"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_errors_name_the_argument_and_what_it_was(call: str, value: str, said: str) -> None:
    with pytest.raises(RagaugeError) as raised:
        CALLS[call](VALUES[value]())
    assert said in str(raised.value)


def test_one_text_stands_for_a_list_of_one() -> None:
    assert list(ragauge.score(GOLD, TRACES, metrics="chr")) == ["citation.hit_rate"]
    assert "retrieval.mrr@10" in ragauge.score(GOLD, TRACES, also="retrieval.mrr@10")


def test_iterators_are_read_as_lists_are() -> None:
    scores = ragauge.score(iter(GOLD), (row for row in TRACES))
    assert scores.metrics == SCORES.metrics
    assert len(ragauge.load_gold(row for row in GOLD).items) == 3
    assert ragauge.compare(iter(TRACES), iter(TRACES), gold=iter(GOLD)).counted == 3
    assert ragauge.gate(iter(TRACES), gold=iter(GOLD)).passed


def test_gates_of_scores_may_be_text_too() -> None:
    gates: Any = "retrieval.mrr@10>=0.5"
    scores = ragauge.score(many(GOLD), many(TRACES), gates=gates)
    assert ragauge.gate(scores, "retrieval.mrr@10>=0.5").passed


def test_gates_may_be_a_file_and_options_go_to_the_scoring(folder: Folder) -> None:
    path = folder.write("gates.toml", '[gates]\n"retrieval.mrr@10" = ">= 0.99"\n')
    gold, traces = many(GOLD), many(TRACES)
    verdict = ragauge.gate(traces, path, gold=gold, profile="all", k=5)
    assert verdict.scores.profile == "all"
    # A1 has its evidence second, A3 first: (1/2 + 1) / 2.
    assert verdict["retrieval.mrr@10"].value == 0.75
    assert not verdict.passed
    with pytest.raises(RagaugeError, match="profile: what was scored already"):
        ragauge.gate(SCORES, profile="all")
    # The gold set does not make scores anew either.
    with pytest.raises(RagaugeError, match="k: what was scored already"):
        ragauge.gate(SCORES, gold=GOLD, k=3)
    with pytest.raises(RagaugeError, match="stage: what was scored already"):
        ragauge.compare(SCORES, SCORES, gold=GOLD, stage="first")
    with pytest.raises(RagaugeError, match="chunks_a: what was scored already"):
        ragauge.compare(SCORES, SCORES, chunks_a="chunks.jsonl")
    assert ragauge.compare(SCORES, TRACES, gold=GOLD, profile="ship").counted == 3
    with pytest.raises(RagaugeError, match="gates on a drop only, got: chr"):
        ragauge.compare(SCORES, SCORES, gates="chr>=0.5")
    worse = many([{**TRACES[0], "retrieved_ids": []}, *TRACES[1:]])
    drop = ragauge.compare(
        traces, worse, gold=gold,
        gates={"retrieval.recall_all@5": {"max_drop": 0.1}},
    )  # fmt: skip
    assert int(drop.exit_code) == 1


def test_every_argument_that_is_checked_is_one_of_a_function() -> None:
    """A name that no function has would check nothing."""
    import inspect

    functions = [
        ragauge.score, ragauge.gate, ragauge.keep_run, ragauge.load_gold, ragauge.opened_store,
        ragauge.assert_rag, ragauge.api.commands.compare,
    ]  # fmt: skip
    names = {name for function in functions for name in inspect.signature(function).parameters}
    assert set(ARGUMENTS) <= names
