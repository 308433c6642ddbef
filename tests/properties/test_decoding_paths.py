"""The fast paths give what the exact path gives, and files give what sets in memory give."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragauge import RagaugeError, load_gold, load_traces, registry
from ragauge.files.open import opened
from ragauge.files.ranges import plan
from ragauge.formats.fast_rows import FastDecoder
from ragauge.formats.traces import RowReader
from ragauge.model.dialect import Dialect
from ragauge.model.options import Options
from ragauge.scoring.gold_table import gold_table
from ragauge.scoring.score import score
from ragauge.scoring.scoring_run import ScoringPlan, ScoringRun
from ragauge.scoring.tasks.job import Partial
from ragauge.scoring.tasks.reduce import RangeReducer
from tests.properties.datasets import (
    Data,
    Row,
    as_lines,
    data_sets,
    essence,
    large_data,
    scored,
    written,
)
from tests.support.cases import cases
from tests.support.effort import examples

PROFILES = ("all", "ship", "smoke")
USUAL = {"qid": "q0", "retrieved_ids": ["p1"], "answer_json": {"claim": "So.", "citations": ["p1"]}}
GOLD = [{"qid": "q0", "question": "Frage 0?", "answerable": True, "gold_citations": ["p1"]}]


class _NoDecoder(FastDecoder):
    """Leaves every row to the exact path."""

    def row(self, data: bytes) -> None:  # noqa: ARG002
        return None

    def rows(self, data: Sequence[bytes]) -> None:  # noqa: ARG002
        return None


class _ExactReducer(RangeReducer):
    """Sends every row down the exact path."""

    def __init__(self, job: Any) -> None:
        super().__init__(job)
        self.by_columns = False
        self.fast = self.fast_in_full = _NoDecoder(unread=True)


class _CountingReducer(RangeReducer):
    """Counts the rows that are read again on the exact path."""

    exact = 0

    def _exact(self, *arguments: Any, **options: Any) -> None:
        type(self).exact += 1
        super()._exact(*arguments, **options)


def _reduce(
    kind: type[RangeReducer], gold: list[Row], trace: bytes, profile: str, range_bytes: int = 400
) -> list[Partial]:
    """The partials of a trace file, reduced by one kind of reducer."""
    chosen = registry.profile(profile)
    dialect: Dialect = registry.dialect(chosen.dialect)
    own = chosen.dialect != "native"
    reader = RowReader(dialect, own=own)
    scoring = ScoringPlan(profile=chosen, dialect=dialect, own=own, k=(5,), selected=[])
    items = [reader.gold(row) for row in gold]
    table = gold_table(items, chosen, Options(), name="gold")
    run = ScoringRun(scoring, table, gold_name="gold", trace_name="trace")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace")
        path.write_bytes(trace)
        with opened(path) as found:
            source = msgspec.structs.replace(found, name="trace")
            reducer = kind(run.job(source))
            ranges = plan(source, range_bytes=range_bytes)
            return [reducer.reduce(part) for part in reversed(ranges)]


@examples(50)
@given(data=data_sets(), profile=st.sampled_from(PROFILES))
def test_fast_rows_equal_exact_rows(data: Data, profile: str) -> None:
    """Typed decoding and whole columns give the bytes that the exact path gives, row by row."""
    trace = as_lines(data.trace)
    fast = _reduce(RangeReducer, data.gold, trace, profile)
    assert fast == _reduce(_ExactReducer, data.gold, trace, profile)


@pytest.mark.parametrize("profile", PROFILES)
def test_columns_equal_exact_rows(profile: str) -> None:
    """So do hundreds of rows of the one shape that is reduced by columns."""
    data = large_data(1, 300)
    usual = [{**row, "error": None} for row in data.trace] + [USUAL] * 3
    trace = as_lines(usual)
    fast = _reduce(RangeReducer, data.gold, trace, profile, 20_000)
    assert fast == _reduce(_ExactReducer, data.gold, trace, profile, 20_000)


def test_usual_rows_take_the_fast_path() -> None:
    """The comparison says something: usual rows do not come to the exact path."""
    text_row = {"q": "Frage 0?", "chunks": [{"id": "p1"}], "answer": "So.", "citations": ["p1"]}
    for row, profile in ((USUAL, "all"), (USUAL, "ship"), (text_row, "smoke"), (text_row, "all")):
        _CountingReducer.exact = 0
        (partial,) = _reduce(_CountingReducer, GOLD, as_lines([row]), profile)
        assert (partial.traces, partial.unknown) == (1, 0)
        assert _CountingReducer.exact == 0, profile


@examples(25)
@given(data=data_sets(), profile=st.sampled_from(PROFILES))
def test_a_second_look_sees_what_the_exact_path_sees(data: Data, profile: str) -> None:
    """Scores are the same when every row is read on the exact path, the first time and again."""
    fast = scored(data, profile=profile, metrics=["*"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FastDecoder, "row", lambda *_: None)
        patch.setattr(FastDecoder, "rows", lambda *_: None)
        exact = scored(data, profile=profile, metrics=["*"])
    assert fast.metrics == exact.metrics


def test_a_second_look_reads_citations_that_stand_outside_the_answer(tmp_path: Path) -> None:
    """Both slots cite p1, though `answer_json` does not say so."""
    row = {"qid": "a", "retrieved_ids": ["p1"], "answer_json": {"claim": "x"}, "citations": ["p1"]}
    (tmp_path / "gold.jsonl").write_bytes(as_lines([{"qid": "a", "relevant": ["p1"]}]))
    (tmp_path / "trace.jsonl").write_bytes(as_lines([{**row, "seed": 1}, {**row, "seed": 2}]))
    found = score(tmp_path / "gold.jsonl", tmp_path / "trace.jsonl", profile="all")
    assert found.metrics["stability.citation_jaccard"].value == 1.0


ODD_FIELDS = {
    "q is a number": '"q": 5',
    "q and question disagree": '"q": "Frage 0?", "question": "Frage 1?"',
    "qid and id disagree": '"id": "q1"',
    "seed is a fraction": '"seed": 1.0',
    "seed is too large": '"seed": 9223372036854775808',
    "seed is true": '"seed": true',
    "seed is a string": '"seed": "1"',
    "turn is a string": '"turn": "1"',
    "score of a hit is a string": '"chunks": [{"id": "p1", "score": "0.83"}]',
    "text of a hit is a number": '"chunks": [{"id": "p1", "text": 5}]',
    "hit with two ids": '"chunks": [{"id": "p1", "chunk_id": "p2"}]',
    "hit is a number": '"chunks": [7]',
    "citations outside": '"citations": ["p1"]',
    "citations outside are a string": '"citations": "p1"',
    "citations outside disagree": '"citations": ["p2"]',
    "answer beside answer_json": '"answer": "So."',
    "error is false": '"error": false',
    "error is a number": '"error": 3',
    "refused is a word": '"refused": "yes"',
    "retrieval beside hits": '"retrieval": {"topk": ["p2"]}',
    "a number out of range": '"more": 1e999',
    "a negative number out of range": '"more": [-1E+400]',
    "a number out of range as text": '"more": "1e999"',
    "a score out of range": '"topk": [{"id": "p1", "score": 1e999}]',
    "both halves of a pair": '"more": "\\ud83d\\ude42"',
    "a number of many digits": '"more": 123456789012345678901234567890',
    "NaN": '"more": NaN',
    "half a surrogate pair": '"more": "\\ud800"',
    "an unknown escape": '"more": "\\q"',
    "a control character": '"more": "\x01"',
    "a NUL byte": '"more": "\x00"',
    "latency is a string": '"latency_ms": "5"',
    "latency": '"latency_ms": 5',
    "latency below zero": '"elapsed_ms": -1',
    "latency of an age": '"latency_ms": 1e15',
    "parts of latency": '"perf": {"t_retrieve_ms": 1.5, "t_reason_ms": 2}',
    "latency is a word inside": '"perf": {"t_retrieve_ms": "soon"}',
    "perf is a number": '"perf": 3',
    "delta_s": '"delta_s": [0.1]',
    "delta_s of the whole": '"deltaS": 0.1',
    "delta_s out of range": '"delta_s_qr": 3',
    "ΔS": '"ΔS": 0.25',
    "ΔS escaped": '"\\u0394S": 0.25',
    "ΔS damaged": '"Î”S": 0.25',
    "ΔS as a word": '"ΔS": "far"',
    "ΔS in the answer": '"answer_json": {"claim": "x", "citations": ["p1"], "ΔS": 0.3}',
    "delta_s in the answer": '"answer_json": {"claim": "x", "citations": ["p1"], "delta_s": 0.3}',
    "λ": '"λ_state": "→"',
    "λ escaped": '"\\u03bb_state": "\\u2192"',
    "λ unknown": '"lambda_state": "upwards"',
    "lambda as a weight": '"lambda": 0.5',
    "λ in the answer": '"answer_json": {"claim": "x", "citations": ["p1"], "lambda_final": "->"}',
    "a text with an escape": '"more": "caf\\u00e9"',
    "ranks of hits": '"chunks": [{"id": "p1", "rank": 2}, {"id": "p2", "rank": 1}]',
    "offsets of hits": '"chunks": [{"id": "p1", "offsets": [3, 1]}]',
    "a distance of a hit": '"chunks": [{"id": "p1", "delta_s": 0.5}]',
    "a distance of a hit, damaged": '"chunks": [{"id": "p1", "Î”S": 9}]',
    "an escaped NUL": '"more": "\\u0000"',
    "deep nesting": '"more": ' + "[" * 3000 + "]" * 3000,
    "a key twice": '"qid": "q9"',
    "a known key twice": '"answer_json": {"claim": "not in context"}',
}


@cases("profile", PROFILES)
@cases("field", ODD_FIELDS.values(), ids=ODD_FIELDS)
def test_odd_rows_are_judged_alike(field: str, profile: str) -> None:
    """What is wrong with a row, and what it is worth, does not depend on the path it takes.

    Nor on the rows beside it, which decide whether it is reduced by columns.
    """
    answer = '"answer_json": {"claim": "So.", "citations": ["p1"]}'
    for base in (answer, f'"retrieved_ids": ["p1"], {answer}', '"answer_json": {"claim": "So."}'):
        row = f'{{"qid": "q0", {base}, {field}}}\n'.encode()
        for trace in (row, row + b'{"qid": "q1", "error": "timeout"}\n'):
            fast = _reduce(RangeReducer, GOLD, trace, profile, 1 << 20)
            assert fast == _reduce(_ExactReducer, GOLD, trace, profile, 1 << 20)


DAMAGED = {
    "a byte that is never UTF-8": b"\xff",
    "a surrogate in UTF-8": b"\xed\xa0\x80",
    "an overlong form": b"\xc0\x80",
    "beyond the last character": b"\xf4\x90\x80\x80",
    "half a character": b"\xc3",
    "a NUL byte": b"\x00",
    "a control character": b"\x1f",
    "a quote": b'"',
    "a backslash": b"\\",
    "nothing wrong": b"\xc3\xa4",
}


@cases("profile", PROFILES)
@cases("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_rows_are_judged_alike(damage: bytes, profile: str) -> None:
    """Bytes that are no text are found in every part of a row, by every path."""
    whole = (
        b'{"qid": "q0@", "q": "Frage 0?@", "retrieved_ids": ["p1@"], "answer_json": '
        b'{"claim": "So.@", "citations": ["p1@"]}}\n'
    )
    parts = whole.split(b"@")
    plain = b"".join(parts)
    rows = [
        b"".join(parts[:place]) + damage + b"".join(parts[place:]) for place in range(1, len(parts))
    ]
    rows += [plain.replace(b'"So."', b'"So.", "more' + damage + b'": 1', 1)]
    rows += [plain.replace(b'"So."', b'"So.", "more": "' + damage + b'"', 1)]
    for row in rows:
        for trace in (row, plain + row, row + plain, row + b'{"qid": "q1", "error": "x"}\n'):
            fast = _reduce(RangeReducer, GOLD, trace, profile, 1 << 20)
            assert fast == _reduce(_ExactReducer, GOLD, trace, profile, 1 << 20)
            harmless = damage == DAMAGED["nothing wrong"]
            assert fast[0].problem_count == (0 if harmless else 1), row


@cases("field", ODD_FIELDS.values(), ids=ODD_FIELDS)
def test_odd_rows_are_judged_alike_in_memory(field: str, tmp_path: Path) -> None:
    """A row that `load_traces` refuses is refused by `score`, and the other way round."""
    gold, trace = tmp_path / "gold", tmp_path / "trace"
    gold.write_bytes(as_lines(GOLD))
    trace.write_text(
        f'{{"qid": "q0", "answer_json": {{"claim": "So."}}, {field}}}\n', encoding="utf-8"
    )
    outcomes = []
    for traces in (lambda: trace, lambda: load_traces(trace, dialect="native")):
        try:
            scores = score(gold, traces(), profile="all", intervals=False)
            outcomes.append(str(essence(scores)))
        except RagaugeError as error:
            outcomes.append(error.problems[0].code)
    assert outcomes[0] == outcomes[1]


USUAL_GOLD = st.fixed_dictionaries(
    {
        "qid": st.sampled_from(("q0", "q1", "ä", "7")),
        "question": st.sampled_from(("", "Frage?", "Ünïcode 🙂")),
        "answerable": st.booleans(),
        "gold_claim_substr": st.lists(st.sampled_from(("null keys", "", "ß")), max_size=2),
        "gold_citations": st.lists(st.sampled_from(("p1", "pä", "")), max_size=3),
    }
)
STRAY_GOLD = st.dictionaries(
    st.sampled_from(("q", "gold_ids", "gold_claim", "constraints", "tags", "note", "answerable")),
    st.sampled_from((None, "Frage?", [], ["p1"], "p1", True)),
    max_size=2,
)


@examples(50)
@given(usual=USUAL_GOLD, stray=STRAY_GOLD, dialect=st.sampled_from(("native", "ship", "smoke")))
@example(
    usual={
        "qid": "",
        "question": "",
        "answerable": True,
        "gold_claim_substr": [],
        "gold_citations": [],
    },
    stray={},
    dialect="native",
)
def test_usual_gold_equals_exact_gold(usual: Row, stray: Row, dialect: str) -> None:
    """A gold row that is decoded at once makes the item, or the error, of the exact path."""
    row = {**usual, **stray}
    reader = RowReader(registry.dialect(dialect), own=True)
    try:
        expected: Any = (reader.gold(row, 1),)
    except Exception as error:
        expected = str(error)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "gold")
        path.write_bytes(as_lines([row]))
        try:
            found: Any = load_gold(path, dialect=dialect).items
        except RagaugeError as error:
            found = error.problems[0].message
    assert found == expected


def test_usual_gold_takes_the_fast_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The comparison says something: a usual gold row does not come to the exact path."""
    row = {"qid": "a", "question": "?", "answerable": True}
    row |= {"gold_claim_substr": ["x"], "gold_citations": ["p1"]}
    path = tmp_path / "gold"
    path.write_bytes(as_lines([row]))
    expected = RowReader(registry.dialect("native"), own=True).gold(row, 1)
    monkeypatch.setattr(RowReader, "gold", None)
    assert load_gold(path, dialect="native").items == (expected,)


@examples(30)
@given(data=data_sets(), profile=st.sampled_from(PROFILES))
def test_files_equal_sets_in_memory(data: Data, profile: str) -> None:
    """Scoring two paths, and scoring what was loaded from them, is the same.

    `ship`, asked for by name, reads fewer names than loading does, so its files are read as native.
    """
    dialect = registry.profile(profile).dialect
    dialect = "native" if dialect == "ship" else dialect
    with written(data) as files:
        streamed = score(*files, profile=profile, dialect=dialect, k=3, metrics=["*"])
        gold, traces = (
            load_gold(files.gold, dialect=dialect),
            load_traces(files.trace, dialect=dialect),
        )
        loaded = score(gold, traces, profile=profile, k=3, metrics=["*"])
        mixed = score(
            files.gold, traces.traces, profile=profile, dialect=dialect, k=3, metrics=["*"]
        )
    assert essence(loaded) == essence(streamed)
    assert essence(mixed) == essence(streamed)


@examples(40)
@given(data=data_sets())
def test_loaded_rows_are_the_rows(data: Data) -> None:
    """Loading drops nothing: one item a row, in file order, with its line."""
    with written(data) as files:
        gold = load_gold(files.gold, dialect="native")
        traces = load_traces(files.trace, dialect="native")
    assert [item.qid for item in gold.items] == [row["qid"] for row in data.gold]
    assert [trace.line for trace in traces.traces] == list(range(1, len(data.trace) + 1))
    assert [trace.qid for trace in traces.traces] == [row.get("qid") for row in data.trace]


def test_refusal_patterns_change_only_what_they_match() -> None:
    """They are looked for in every row, after the token and before the built-in ones."""
    data = large_data(2, 40)
    random.Random(2).shuffle(data.trace)
    with written(data) as files:
        plain = score(*files, profile="all", metrics=["*"])
        unmatched = score(*files, profile="all", metrics=["*"], refusal_patterns=["no such words"])
        matched = score(
            *files, profile="all", metrics=["*"], refusal_patterns=["^straße$", "^ ?not in context"]
        )
    assert essence(unmatched) == essence(plain)
    said = [row for row in data.trace if row["answer_json"]["claim"] == "Straße"]
    assert said
    assert matched.refusal_rules == {**plain.refusal_rules, "pattern": len(said)}
