"""One row for each spelling of each field, and every way that a row can be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from ragauge import load_gold, load_traces, registry, score
from ragauge.files import ranges
from ragauge.formats.fast_rows import FastDecoder
from ragauge.formats.json_rows import decode_row
from ragauge.formats.traces import RowReader
from ragauge.model import field_spellings
from ragauge.model.payloads import freeze_trace, thaw, trace_of
from ragauge.model.scores import Scores
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose

Row = dict[str, Any]

GOLD = {
    "qid": "q0", "question": "Frage 0?", "paraphrases": ["Frage null?"], "answerable": True,
    "relevant": ["p1", "p3"], "claims_any": ["null keys"], "constraints": ["Be brief."],
}  # fmt: skip
BASE: Row = {"qid": "q0", "seed": 1, "retrieved_ids": ["p2", "p1"]}
TRACE_VALUES: Row = {
    "qid": "q0",
    "question": "Frage 0?",
    "paraphrase": 0,
    "seed": 2,
    "turn": 3,
    "hits": ["p3", "p1"],
    "answer": {"claim": "It rejects null keys.", "citations": ["p1"]},
    "claim": "It rejects null keys.",
    "text": "It rejects null keys. citations: [p1]",
    "citations": ["p1"],
    "refused": True,
    "grounded": False,
    "constraints_echo": ["Be brief."],
    "error": "timeout",
    "delta_s": 0.25,
    "lambda_state": "->",
    "perf": {"t_retrieve_ms": 2.5, "t_reason_ms": 4},
    "total_ms": 12,
    "tokens": 640,
    "cost": 0.25,
    "unknown_ids": ["p3"],
    "oversampled": True,
}
HIT_VALUES: Row = {
    "id": "p3",
    "doc": "a.md",
    "path": "docs/a.md",
    "section": "s1",
    "score": 0.5,
    "rank": 2,
    "type": "table",
    "text": "some text",
    "snippet": "some",
    "citation": {"doc": "a.md", "start": 1, "end": 4},
    "chunker_version": "v1",
    "doc_hash": "h1",
    "text_hash": "h2",
    "policy_hash": "h3",
    "delta_s": 0.5,
}
ANSWER_VALUES: Row = {
    field: TRACE_VALUES.get(field, "It rejects null keys.")
    for field in field_spellings.ANSWER_SPELLINGS
}
PERF_VALUES: Row = {"retrieve": 2.5, "reason": 4}
GOLD_VALUES: Row = {
    "qid": "q0",
    "question": "Frage 0?",
    "paraphrases": ["Frage null?"],
    "answerable": True,
    "relevant": ["p1"],
    "relevant_docs": ["a.md"],
    "places": [{"doc": "a.md", "start": 1, "end": 4}],
    "groups": [["p1", "p2"]],
    "grades": {"p1": 2},
    "anchor_section": "s1",
    "negatives": ["p9"],
    "decoy_section": "s2",
    "claims": ["null keys"],
    "references": ["It rejects them."],
    "must_contain": ["null"],
    "forbidden": ["void"],
    "constraints": ["Be brief."],
    "turn": 1,
    "unit": "byte",
    "type": "fact",
    "tags": ["t"],
    "group": "g",
    "difficulty": "hard",
    "lang": "de",
}


class Spelled(NamedTuple):
    """A row in which one field of one table is spelled with one of its names."""

    table: str
    field: str
    name: str
    row: Row


def trace_rows() -> Iterator[Spelled]:
    """A trace row for every spelling of every field; the first of a field comes first."""
    for field, name, value in _spellings(field_spellings.TRACE_SPELLINGS, TRACE_VALUES):
        base = {key: BASE[key] for key in BASE if key not in field_spellings.TRACE_SPELLINGS[field]}
        yield Spelled("row", field, name, {**base, name: value})
    for field, name, value in _spellings(field_spellings.HIT_SPELLINGS, HIT_VALUES):
        hit = {name: value} if field == "id" else {"id": "p3", name: value}
        row = {"qid": "q0", "topk": [hit, {"id": "p1", "rank": 1, "score": 0.75}]}
        yield Spelled("hit", field, name, row)
    for field, name, value in _spellings(field_spellings.ANSWER_SPELLINGS, ANSWER_VALUES):
        yield Spelled("answer", field, name, {**BASE, "answer_json": {name: value}})
    for field, name, value in _spellings(field_spellings.PERF_SPELLINGS, PERF_VALUES):
        yield Spelled("perf", field, name, {**BASE, "perf": {name: value}})


def gold_rows() -> Iterator[Spelled]:
    """A gold row for every spelling of every field."""
    for field, name, value in _spellings(field_spellings.GOLD_SPELLINGS, GOLD_VALUES):
        base = {} if field == "qid" else {"qid": "q0"}
        yield Spelled("gold", field, name, {**base, name: value})


def _spellings(table: Mapping[str, tuple[str, ...]], values: Row) -> Iterator[tuple[str, str, Any]]:
    assert table.keys() == values.keys(), "a new field needs a value here"
    for field, names in table.items():
        for name in names:
            yield field, name, "answer" if name == "expect" else values[field]


def as_line(row: Row) -> bytes:
    """A row as JSON on one line."""
    return json.dumps(row, ensure_ascii=False).encode()


def fast_trace(row: Row) -> Any:
    """The trace of a row on the fast path; None if it is for the exact path."""
    decoder = FastDecoder(unread=False)
    return decoder.trace(as_line(row), 1, strip_citations=False, cites_in_text=True)


def exact_trace(row: Row) -> Any:
    """The trace of a row on the exact path."""
    reader = RowReader(registry.dialect("native"), own=False)
    return reader.trace(decode_row(as_line(row), cut=False, overlong=False), 1)


def measured(scores: Scores) -> Any:
    """What scores must share when two files say the same."""
    return msgspec.json.encode((scores.metrics, scores.tally, scores.refusal_rules))


def by_every_path(row: Row, folder: Path) -> dict[str, Any]:
    """What each path makes of a row: its trace on some, its scores on others."""
    gold, file = folder / "gold.jsonl", folder / "trace.jsonl"
    gold.write_bytes(as_line(GOLD))
    file.write_bytes(as_line(row) + b"\n")
    traces = load_traces(file, dialect="native")
    exact = exact_trace(row)
    fast = fast_trace(row)
    results = {
        "exact": exact,
        "fast": exact if fast is None else fast,
        "in memory": traces.traces[0],
        "stored": trace_of(thaw(freeze_trace(traces.traces[0]))),
    }
    if as_line(row).isascii():  # the other forms of Greek letters are many, and alike
        options: Any = {"profile": "all", "metrics": ["*"], "intervals": False, "workers": 1}
        results["scores"] = measured(score(gold, file, **options))
        results["scores of traces in memory"] = measured(score(gold, traces, **options))
    return results


def disagreements(folder: Path, *, prefix: str = "") -> list[str]:
    """The spellings that some path reads otherwise than the first spelling of their field.

    Only those that begin with `prefix` are looked at.
    """
    wrong: list[str] = []
    first: dict[tuple[str, str], dict[str, Any]] = {}
    for spelled in trace_rows():
        is_first = (spelled.table, spelled.field) not in first
        if not is_first and not spelled.name.startswith(prefix):
            continue
        results = by_every_path(spelled.row, folder)
        expected = first.setdefault((spelled.table, spelled.field), {})
        expected.update({path: results[path] for path in results.keys() - expected.keys()})
        for path, result in results.items():
            is_trace = not path.startswith("scores")
            if result != expected[path] or (is_trace and result != results["exact"]):
                wrong.append(f"{spelled.table}.{spelled.field}: `{spelled.name}`, {path}")
    return wrong


def gold_disagreements(folder: Path) -> list[str]:
    """The spellings of gold fields that `load_gold` reads otherwise than the first of a field."""
    wrong: list[str] = []
    first: dict[str, Any] = {}
    file = folder / "gold.jsonl"
    reader = RowReader(registry.dialect("native"), own=False)
    for spelled in gold_rows():
        file.write_bytes(as_line(spelled.row) + b"\n")
        item = load_gold(file, dialect="native").items[0]
        if item != reader.gold(spelled.row, 1):
            wrong.append(f"{spelled.field}: `{spelled.name}` is read in two ways")
        if spelled.name == "gold_claim":
            item = replace(item, claim_rule="substring")  # cut into phrases: a rule of its own
        if item != first.setdefault(spelled.field, item):
            wrong.append(f"{spelled.field}: `{spelled.name}`")
    return wrong


def pool_disagreement(folder: Path) -> bool:
    """Whether two worker processes read a file of all spellings otherwise than this process."""
    gold, file = folder / "gold.jsonl", folder / "trace.jsonl"
    gold.write_bytes(as_line(GOLD))
    rows = [
        spelled.row if spelled.field == "paraphrase" else {"paraphrase": place, **spelled.row}
        for place, spelled in enumerate(trace_rows())
    ]
    file.write_bytes(b"".join(as_line(row) + b"\n" for row in rows))
    options: Any = {"profile": "all", "metrics": ["*"], "intervals": False}
    alone = score(gold, file, workers=1, **options)
    assert alone.tally.traces == len(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "plan", partial(ranges.plan, range_bytes=2_000))
        patch.setattr(choose, "RANGE_BYTES", 2_000)
        together = score(gold, file, workers=2, **options)
    return bool(measured(alone) != measured(together))
