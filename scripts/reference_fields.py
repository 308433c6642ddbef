"""The keys of the scores document with their types, as real documents of the demo have them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from ragauge import registry
from ragauge.formats.field_map import Stage
from ragauge.gates.judge import gate
from ragauge.model.options import Options
from ragauge.model.report import View
from ragauge.model.scores import Scores
from ragauge.model.scores_document import to_document
from ragauge.model.verdict import Waiver
from ragauge.scoring.score import score

MAPS = {
    "metrics": "ID",
    "metrics.ID.excluded": "REASON",
    "slices": "BY",
    "slices.BY": "PART",
    "slices.BY.PART.metrics": "ID",
    "refusal_rules": "RULE",
    "refusal_table": "CASE",
    "lambda.computed": "STATE",
    "lambda.recorded": "STATE",
    "questions[].values": "ID",
    "questions[].bands": "ID",
    "questions[].labels": "LABEL",
    "questions[].causes": "CAUSE",
    "questions[].slices": "DIMENSION",
    "errors": "REASON",
    "placing.placed": "BY",
    "placing.unplaced": "REASON",
    "gates": "NAME",
}
"""Objects whose keys are data: one word stands for all of them."""

TURN_GOLD = [{"qid": "T1", "turn": 1, "question": "What is X?", "relevant": ["p1#1"]}]
TURN_TRACES = [
    {"qid": "T1", "turn": 1, "seed": seed, "topk": ["p1#1"], "delta_s": [0.2],
     "embed_model": "e5", "lambda_state": "convergent"}
    for seed in (1, 2)
] + [
    {"qid": "T1", "turn": 1, "seed": 3, "error": "down"},
    {"question": "What is X?", "turn": 1, "seed": 4, "topk": ["p1#1"]},
]  # fmt: skip
"""A run with turns, recorded λ and ΔS, an error and a trace without an id, for the keys that the
demo's documents lack."""

PLACE_GOLD = [{"qid": "P1", "question": "?", "relevant": [{"doc": "a.md", "start": 0, "end": 9}]}]
PLACE_CHUNKS = [{"id": "c1", "doc": "a.md", "start": 0, "end": 18, "text": "X rejects nothing."}]
PLACE_TRACES = [
    {"qid": "P1", "hits": [{"path": "/data/docs/a.md", "text": "X rejects nothing."}, {"id": "x"}]}
]
"""A run with a hit that is placed by its text and one that is not placed."""

OPEN_GOLD = [
    {"qid": f"O{number}", "question": f"What is X{number}?", "tags": ["t"],
     "relevant": [{"id": "g", "doc": "a.md", "start": 0, "end": 200}]}
    for number in range(6)
]  # fmt: skip
OPEN_TRACES = [
    {"qid": row["qid"], "hits": [{"id": "x", "doc": "a.md", "start": 0, "end": 90}]}
    for row in OPEN_GOLD[:5]
] + [{"qid": "O5", "error": "down"}]
"""A run of other chunks than gold names, whose numbers depend on where the evidence stands."""

STAGE_GOLD = [{"qid": "R1", "question": "What is X?", "relevant": ["p1#1"]}]
STAGE_TRACES = [{"qid": "R1", "hits": ["p1#1"], "hits_before_rerank": ["p1#2", "p1#1"]}]
"""A run with the hits before and after a reranker."""


def scores_fields() -> dict[str, str]:
    """Each key of the scores document and its type.

    Seven documents hold every key together: 0/0 with a default and without, something left out, a
    block, a warning, a skipped line, a waiver, turns and states, places, stages, bands.
    """
    waiver = Waiver(gate="under", reason="known", expires=date(2030, 1, 31))
    with (
        as_file(files("ragauge.cli.demo_data")) as folder,
        tempfile.TemporaryDirectory() as temporary,
    ):
        gold, trace = folder / "gold.jsonl", folder / "trace.jsonl"
        first, _, rest = trace.read_text("utf-8").partition("\n")
        broken, single = Path(temporary) / "broken.jsonl", Path(temporary) / "single.jsonl"
        broken.write_text(f"not JSON\n{rest}", "utf-8")
        single.write_text(gold.read_text("utf-8").partition("\n")[0], "utf-8")
        alone = Path(temporary) / "alone.jsonl"
        alone.write_text(first, "utf-8")
        whole = score(gold, trace, profile="all", hashes=True)
        partial = score(gold, broken, profile="all", on_bad_line="skip", hashes=False)
        default = score(single, alone, profile="ship", hashes=True)
        turns = _score_rows(Path(temporary), TURN_GOLD, TURN_TRACES)
        chunks = Path(temporary) / "chunks.jsonl"
        chunks.write_text(json.dumps(PLACE_CHUNKS[0]), "utf-8")
        placed = _score_rows(Path(temporary), PLACE_GOLD, PLACE_TRACES, chunks)
        staged = _score_rows(Path(temporary), STAGE_GOLD, STAGE_TRACES, stage="first")
        rechunked = _score_rows(Path(temporary), OPEN_GOLD, OPEN_TRACES)
    undefined = gate(partial, "precision=0.80,answer.constraints_echoed=0.80")
    failing: dict[str, Any] = {"under": {"threshold": 0.05, "min_n": 1}}
    waived = gate(whole, failing, waivers=[waiver], today=date(2026, 11, 15))
    return _fields([
        to_document(whole, waived, full=True),
        to_document(partial, undefined, full=True),
        to_document(default, gate(default), full=True),
        to_document(turns, gate(turns), full=True),
        to_document(placed, gate(placed), full=True),
        to_document(staged, gate(staged), full=True),
        to_document(rechunked, gate(rechunked), full=True),
    ])  # fmt: skip


def _score_rows(
    folder: Path,
    gold: list[dict[str, Any]],
    traces: list[dict[str, Any]],
    chunks: Path | None = None,
    stage: Stage | None = None,
) -> Scores:
    paths = folder / "rows-gold.jsonl", folder / "rows-trace.jsonl"
    for path, rows in zip(paths, (gold, traces), strict=True):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return score(
        *paths, profile="all", options=Options(min_n=1), chunks=chunks, stage=stage, hashes=True
    )


def ship_fields() -> dict[str, str]:
    """Each key of the short JSON of the profile `ship` and its type."""
    profile = registry.profile("ship")
    with as_file(files("ragauge.cli.demo_data")) as folder:
        scores = score(folder / "gold.jsonl", folder / "trace.jsonl", profile="ship")
    view = View(scores=scores, verdict=gate(scores), profile=profile)
    return _fields([json.loads(registry.report(profile.reports["json"]).text(view))])


def _fields(documents: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for document in documents:
        _walk(document, "", found)
    return {
        path: _words(kinds)
        for path, kinds in found.items()
        # An empty list shows no type; its path is left to the objects that it can hold.
        if kinds or not any(each.startswith(f"{path}[]") for each in found)
    }


def _walk(value: Any, path: str, found: dict[str, set[str]]) -> None:
    """Note the type at every path; keys that are data go under one word."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _walk(inner, f"{path}.{MAPS.get(path, key)}".lstrip("."), found)
    elif not isinstance(value, list | tuple):
        found.setdefault(path, set()).add(_kind(value))
    elif any(isinstance(each, Mapping) for each in value):
        for inner in value:
            _walk(inner, f"{path}[]", found)
    else:
        found.setdefault(path, set()).update(f"list of {_kind(each)}s" for each in value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "string"
    return "whole number" if isinstance(value, int) else "number"


def _words(kinds: set[str]) -> str:
    """Types in words, null last; a whole number beside a number is a number."""
    wider = {each for each in kinds if each.replace("whole ", "") in kinds - {each}}
    named = sorted(kinds - {"null"} - wider)
    return " or ".join([*named, "null"] if "null" in kinds else named)
