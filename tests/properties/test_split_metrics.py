"""How rows are cut, ordered and fed changes no metric: not even those that look at rows again.

The rows are those of the oracle's cases: turns, places, open citations, several slots. A citation
of a hit that another row has makes a run go back to its rows, which may be in any range by then.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from ragauge import gate, load_gold, load_traces, score
from ragauge.files import ranges
from ragauge.model.scores import Scores
from ragauge.model.scores_document import to_document
from ragauge.model.trace import Trace
from ragauge.scoring import inputs, second_pass
from ragauge.scoring import score as pipeline
from ragauge.scoring.engines import choose
from ragauge.scoring.engines.local import InProcess
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.scoring.tasks.task import FindIds, RangeTask
from tests.oracles.full_cases import FLAVOURS, case
from tests.properties.datasets import LAYOUTS, Row, as_lines
from tests.support.cases import cases

FLAVOUR_COUNT = len(FLAVOURS)
SETS = tuple(range(3))
"""Large sets, each of one case of every flavour."""
KINDS = (
    "retrieval.recall@3",  # a mean of values
    "citation.resolved",  # a rate that other rows settle
    "refusal.f1",  # a ratio of sums
    "semantic.delta_s_cited",  # a median
    "latency.total_ms_p95",  # a quantile
    "stability.rank_tau",  # of questions
)


class Files(NamedTuple):
    gold: Path
    trace: Path


def _renamed(row: Row, seed: int) -> Row:
    """A row whose question is told apart from those of other cases."""

    def own(text: str) -> str:
        return text.replace("Question ", f"Question {seed} ")

    row = {**row, "qid": f"{seed}-{row['qid']}"}
    for name in ("question", "query"):
        if name in row:
            row[name] = own(row[name])
    if "paraphrases" in row:
        row["paraphrases"] = [own(text) for text in row["paraphrases"]]
    return row


def _rows(seeds: Iterable[int]) -> tuple[list[Row], list[Row]]:
    """The rows of several cases as one run, the traces of all of them mixed."""
    gold: list[Row] = []
    trace: list[Row] = []
    for seed in seeds:
        items, traces = case(seed)
        gold += [_renamed(row, seed) for row in items]
        trace += [_renamed(row, seed) for row in traces]
    return gold, _moved(trace, gold, random.Random(0))


def _large(number: int) -> tuple[list[Row], list[Row]]:
    return _rows(range(number * FLAVOUR_COUNT, (number + 1) * FLAVOUR_COUNT))


def _small(seed: int) -> tuple[list[Row], list[Row]]:
    return _rows([seed])


def _slot(row: Row, gold: list[Row]) -> tuple[Any, ...]:
    """What a trace fills: its question, the number of the paraphrase, seed and turn."""
    texts = [item.get("paraphrases", []) for item in gold if item["qid"] == row["qid"]]
    number = row.get("paraphrase")
    if number is None:
        found = [of_item.index(row["query"]) for of_item in texts if row.get("query") in of_item]
        number = found[0] if found else None
    return row["qid"], number, row.get("seed"), row.get("turn")


def _moved(rows: list[Row], gold: list[Row], rng: random.Random) -> list[Row]:
    """The rows in another order, in which the last of each slot still is the last of it."""
    slots = [_slot(row, gold) for row in rows]
    last = {slot: place for place, slot in enumerate(slots)}
    order = rng.sample(range(len(rows)), len(rows))
    behind = {slots[place]: position for position, place in enumerate(order)}
    for slot, position in behind.items():
        now = order.index(last[slot])
        order[now], order[position] = order[position], order[now]
    return [rows[place] for place in order]


def _write(folder: Path, gold: list[Row], trace: list[Row], layout: str = "lines") -> Files:
    folder.mkdir(exist_ok=True)
    files = Files(folder / "gold", folder / "trace")
    files.gold.write_bytes(as_lines(gold))
    files.trace.write_bytes(LAYOUTS[layout](trace))
    return files


def _scored(gold: Any, trace: Any, **options: Any) -> Scores:
    """All metrics, by slots, without the intervals, which take long."""
    chosen = {"metrics": ["*"], "intervals": False, **options}
    return score(gold, trace, profile="all", dialect="native", **chosen)


def _with_intervals(gold: Any, trace: Any, **options: Any) -> Scores:
    """A metric of every kind, with the intervals of all questions and of all slices."""
    return _scored(gold, trace, metrics=KINDS, intervals=True, **options)


def _text(scores: Scores) -> bytes:
    """The whole document as it would be printed, every question with its values."""
    return msgspec.json.encode(to_document(scores, gate(scores), full=True))


def _essence(scores: Scores) -> dict[str, Any]:
    """All that two runs over the same rows share to the last bit, lines included."""
    table = scores.per_question
    assert table is not None
    return {
        "metrics": scores.metrics,
        "slices": scores.slices,
        "questions": scores.questions,
        "values": (table.metrics, list(table.qids), list(table.turns), table.values.tobytes()),
        "tally": scores.tally,
        "states": scores.states,
        "confusion": scores.confusion,
        "warnings": scores.warnings,
        "text": _text(scores),
    }


def _unplaced(scores: Scores) -> dict[str, Any]:
    """What is shared by runs whose rows stand elsewhere: the text without names and lines.

    Questions are listed as the gold set has them, so here they are sorted; the warning about
    missing ones names the first few of that list, so here it is only counted.
    """
    shared = _essence(scores)
    document = json.loads(shared.pop("text"))
    document["inputs"] = {}
    for entry in document["questions"]:
        entry["gold"], entry["trace"] = "", entry["trace"] is not None
    document["questions"].sort(key=lambda entry: (entry["qid"], entry["turn"] or 0))
    named = re.compile(r"(the first|without a trace): .*")
    document["warnings"] = [named.sub(r"\1", each) for each in document["warnings"]]
    for name in ("warnings", "questions", "values"):  # the text has them too
        del shared[name]
    shared["text"] = json.dumps(document)
    return shared


def _cut(patch: pytest.MonkeyPatch, range_bytes: int) -> None:
    """Cut files into ranges of about this many bytes, also where workers are counted."""
    plan = partial(ranges.plan, range_bytes=range_bytes)
    patch.setattr(inputs, "plan", plan)
    patch.setattr(ranges, "plan", plan)
    patch.setattr(choose, "RANGE_BYTES", range_bytes)


def _batched(patch: pytest.MonkeyPatch, records: int) -> None:
    """Add up at least this many records together; a batch ends with a range."""
    patch.setattr(pipeline, "ScoringPlan", partial(ScoringPlan, batch_records=records))


# --- cuts -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 6 * FLAVOUR_COUNT, 2 * FLAVOUR_COUNT))
def test_ranges_and_batches_do_not_matter(first: int, tmp_path: Path) -> None:
    """Small runs of every flavour, with ranges of a line or a few and batches of any size."""
    for seed in range(first, first + 2 * FLAVOUR_COUNT):
        rng = random.Random(seed)
        files = _write(tmp_path, *_small(seed))
        expected = _essence(_scored(*files))
        for _ in range(3):
            with pytest.MonkeyPatch.context() as patch:
                _cut(patch, rng.choice((1, 200, 700, 2_000)))
                _batched(patch, rng.choice((1, 2, 3, 7, 20)))
                assert _essence(_scored(*files)) == expected, seed


@cases("number", SETS)
@cases("records", [1, 5, 64])
def test_batches_do_not_matter_to_large_runs(number: int, records: int, tmp_path: Path) -> None:
    """Metrics, slices, questions and the JSON text are the same bits."""
    files = _write(tmp_path, *_large(number))
    expected = _essence(_scored(*files))
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, 900)
        _batched(patch, records)
        assert _essence(_scored(*files)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("number", SETS)
def test_cuts_do_not_matter_to_intervals(number: int, tmp_path: Path) -> None:
    """Those of all questions, and those of the slices."""
    files = _write(tmp_path, *_large(number))
    expected = _essence(_with_intervals(*files))
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, 1_100)
        _batched(patch, 10)
        assert _essence(_with_intervals(*files)) == expected


@cases("number", SETS)
@cases("layout", ["array", "gzip", "escaped"])
def test_layouts_do_not_matter(number: int, layout: str, tmp_path: Path) -> None:
    """An array or a compressed file is looked at again as lines are."""
    gold, trace = _large(number)
    expected = _essence(_scored(*_write(tmp_path, gold, trace)))
    files = _write(tmp_path, gold, trace, layout)
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, 1_500)
        assert _essence(_scored(*files)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("number", SETS)
@pytest.mark.parametrize("layout", ["lines", "array"])
def test_workers_do_not_matter(
    number: int, layout: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One process or two; the two are really started, and have several ranges each."""
    from ragauge.scoring.engines import local

    files = _write(tmp_path, *_large(number), layout)
    expected = [_essence(_scored(*files)), _essence(_with_intervals(*files, workers=1))]
    started: list[int] = []
    begin = local.Subprocesses.__init__

    def counted(self: local.Subprocesses, workers: int) -> None:
        started.append(workers)
        begin(self, workers)

    monkeypatch.setattr(local.Subprocesses, "__init__", counted)
    size = files.trace.stat().st_size
    _cut(monkeypatch, size // 9)
    found = [_essence(_scored(*files, workers=2)), _essence(_with_intervals(*files, workers=2))]
    assert found == expected
    assert started == [2, 2]


# --- order ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 100 + 6 * FLAVOUR_COUNT, 2 * FLAVOUR_COUNT))
def test_the_order_of_rows_does_not_matter(first: int, tmp_path: Path) -> None:
    """Gold in any order; traces in any that keeps the last of each slot the last of it."""
    for seed in range(first, first + 2 * FLAVOUR_COUNT):
        rng = random.Random(seed)
        gold, trace = _small(seed)
        expected = _unplaced(_scored(*_write(tmp_path, gold, trace)))
        for _ in range(2):
            mixed = rng.sample(gold, len(gold))
            found = _scored(*_write(tmp_path, mixed, _moved(trace, gold, rng)))
            assert _unplaced(found) == expected, seed


@pytest.mark.slow
@pytest.mark.parametrize("number", SETS)
def test_the_order_of_a_large_run_does_not_matter(number: int, tmp_path: Path) -> None:
    """Whatever the ranges are; with the gold as it was, intervals are the same too."""
    rng = random.Random(number)
    gold, trace = _large(number)
    moved = _moved(trace, gold, rng)
    files = _write(tmp_path / "given", gold, trace)
    mixed = _write(tmp_path / "mixed", rng.sample(gold, len(gold)), moved)
    expected = _unplaced(_scored(*files))
    assert _unplaced(_scored(*mixed)) == expected
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, 1_000)
        assert _unplaced(_scored(*mixed)) == expected
    same_gold = _write(tmp_path / "same", gold, moved)
    assert _unplaced(_with_intervals(*same_gold)) == _unplaced(_with_intervals(*files))


def _few(questions: int, **more: Any) -> tuple[list[Row], list[Row]]:
    """Recall of 0, 1/2, 1/3, 1 and so on, for intervals that any other order would change."""
    evidence = ["p1", "p2", "p3"]
    gold = [
        {"qid": f"q{n}", "question": f"Q {n}?", "relevant": evidence[: 1 + n % 3], **more}
        for n in range(questions)
    ]
    trace: list[Row] = [
        {"qid": f"q{n}", "topk": ["p1"] if n % 4 else ["p2"]} for n in range(questions)
    ]
    return gold, trace


def _same_in_any_gold_order(folder: Path, gold: list[Row], trace: list[Row]) -> None:
    """The metrics and slices with intervals, for the gold as it is, reversed and shuffled."""
    rng = random.Random(1)
    found = [
        _scored(*_write(folder, order, trace), metrics=["retrieval.recall@3"], intervals=True)
        for order in (gold, gold[::-1], *(rng.sample(gold, len(gold)) for _ in range(6)))
    ]
    assert found[0].metrics["retrieval.recall@3"].interval is not None
    for other in found[1:]:
        assert other.metrics == found[0].metrics
        assert other.slices == found[0].slices


def test_gold_order_does_not_matter_to_intervals(tmp_path: Path) -> None:
    _same_in_any_gold_order(tmp_path, *_few(8))


def test_gold_order_does_not_matter_to_intervals_of_slices(tmp_path: Path) -> None:
    _same_in_any_gold_order(tmp_path, *_few(7, lang="en"))


def test_gold_order_does_not_matter_to_intervals_over_conversations(tmp_path: Path) -> None:
    """One row with a turn is enough for all questions to be resampled as conversations."""
    gold, trace = _few(8)
    gold[0]["turn"] = trace[0]["turn"] = 1
    _same_in_any_gold_order(tmp_path, gold, trace)


def test_moving_rows_keeps_the_last_of_each_slot() -> None:
    """The helper keeps its promise, and moves most rows."""
    gold, trace = _large(0)
    moved = _moved(trace, gold, random.Random(1))
    assert sorted(map(repr, moved)) == sorted(map(repr, trace))
    last = {_slot(row, gold): repr(row) for row in trace}
    assert {_slot(row, gold): repr(row) for row in moved} == last
    assert len(last) < len(trace)  # there are slots with several traces
    assert sum(one is other for one, other in zip(trace, moved, strict=True)) < len(trace) // 4


# --- memory ---------------------------------------------------------------------------------------


def _parts(rows: list[Row], rng: random.Random) -> list[list[Row]]:
    """The rows cut into up to four parts, of which some may be short."""
    cuts = sorted(rng.randint(1, max(1, len(rows) - 1)) for _ in range(3))
    bounds = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in itertools.pairwise(bounds) if a < b]


def _loaded(folder: Path, parts: Sequence[list[Row]]) -> list[Trace]:
    """The traces of several files, one after the other; each file counts its lines from 1."""
    traces: list[Trace] = []
    for number, rows in enumerate(parts):
        path = folder / f"part{number}"
        path.write_bytes(as_lines(rows))
        traces += load_traces(path, dialect="native").traces
    return traces


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 200 + 6 * FLAVOUR_COUNT, 2 * FLAVOUR_COUNT))
def test_files_merged_in_memory_are_one_file(first: int, tmp_path: Path) -> None:
    """Rows of several files have the same lines, and are told apart all the same."""
    for seed in range(first, first + 2 * FLAVOUR_COUNT):
        gold, trace = _small(seed)
        files = _write(tmp_path, gold, trace)
        expected = _unplaced(_scored(*files))
        whole = load_traces(files.trace, dialect="native")
        items = load_gold(files.gold, dialect="native")
        merged = _loaded(tmp_path, _parts(trace, random.Random(seed)))
        for known, traces in ((files.gold, whole), (items, whole), (files.gold, merged)):
            found = _scored(known, traces)
            assert _unplaced(found) == expected, seed


@pytest.mark.slow
@pytest.mark.parametrize("number", SETS)
def test_large_files_merged_in_memory_are_one_file(number: int, tmp_path: Path) -> None:
    gold, trace = _large(number)
    files = _write(tmp_path, gold, trace)
    merged = _loaded(tmp_path, _parts(trace, random.Random(number)))
    assert _unplaced(_with_intervals(files.gold, merged)) == _unplaced(_with_intervals(*files))
    expected = _unplaced(_scored(*files))
    assert _unplaced(_scored(files.gold, merged)) == expected
    assert _unplaced(_scored(load_gold(files.gold, dialect="native"), tuple(merged))) == expected


# --- the second look ------------------------------------------------------------------------------


def _talk(qid: str, turn: int, found: list[str], cited: list[str], **more: Any) -> Row:
    answer = {"claim": f"Answer {turn}.", "citations": cited}
    return {"qid": qid, "turn": turn, "topk": found, "answer_json": answer, **more}


TALK_GOLD: list[Row] = [
    {"qid": "a", "turn": 1, "question": "And a?", "relevant": ["p1"]},
    {"qid": "a", "turn": 2, "question": "And then?", "relevant": ["p1"]},
    {"qid": "b", "question": "And b?", "relevant": [{"doc": "g", "start": 0, "end": 40}]},
    {"qid": "c", "question": "And c?", "relevant": ["p9"]},
]
TALK: list[Row] = [
    _talk("a", 1, ["p1"], ["p1"]),
    _talk("a", 2, ["p2"], ["p1"]),  # p1 was retrieved a turn before
    {
        "qid": "b",
        "topk": [{"id": "k1", "doc": "g", "offsets": [0, 30]}],
        "answer_json": {"claim": "So.", "citations": [{"id": "p2"}]},  # of a hit of a
    },
    {"qid": "c", "topk": ["p3"], "answer_json": {"claim": "No.", "citations": ["made-up"]}},
]
"""In context: both turns of a, and neither b nor c. Resolved: all but c."""


@cases("range_bytes", [1, 150, 1 << 20])
@cases("records", [1, 100])
@cases("order", list(itertools.permutations(range(4))))
def test_rows_settle_each_other_from_anywhere(
    order: tuple[int, ...], records: int, range_bytes: int, tmp_path: Path
) -> None:
    """Wherever the earlier turn or the other trace stands, before or behind: 2/4 and 3/4.

    a is one question in two rows; each row is a question of its own in the means.
    """
    files = _write(tmp_path, TALK_GOLD, [TALK[place] for place in order])
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, range_bytes)
        _batched(patch, records)
        found = _scored(*files)
    assert found.metrics["citation.in_context"].value == 2 / 4
    assert found.metrics["citation.resolved"].value == 3 / 4


@pytest.mark.parametrize("number", SETS)
def test_large_runs_do_look_again(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the tests above would say nothing about it."""
    looks: list[int] = []
    visit, do = second_pass.RereadRows.visit, InProcess.map

    def visited(self: second_pass.RereadRows, wanted: Any, take: Any) -> None:
        looks.append(sum(len(lines) for lines in wanted.values()))
        visit(self, wanted, take)

    def done(self: InProcess, task: RangeTask[Any], parts: Any) -> Any:
        if isinstance(task.work, FindIds):
            looks.append(len(task.work.ids))
        return do(self, task, parts)

    monkeypatch.setattr(second_pass.RereadRows, "visit", visited)
    monkeypatch.setattr(InProcess, "map", done)
    gold, trace = _large(number)
    found = _scored(*_write(tmp_path, gold, trace))
    assert len(looks) >= 3  # the open citations, the earlier turns, the ids of other rows
    assert min(looks) > 0
    assert any("turn" in row for row in gold)
    for metric in ("citation.in_context", "citation.resolved", "stability.citation_jaccard"):
        value = found.metrics[metric].value
        assert value is not None
        assert 0 < value < 1
