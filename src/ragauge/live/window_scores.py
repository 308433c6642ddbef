"""The score of some live traces: exactly that of `ragauge score` on the same traces.

Questions that match gold are held against it; every other question is an item without labels, so
that all traces count in the metrics that need none. The repeats of a question are its slots, in the
order of their arrival.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.files.ranges import Source
from ragauge.files.temporary_file import temporary_file
from ragauge.formats.dialects.native import DIALECT
from ragauge.ids import parts_of
from ragauge.live.trace_values import LiveGold, row_with
from ragauge.metrics.metric import Selected
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.scores import Scores
from ragauge.model.scores_document import metrics_document
from ragauge.scoring.engines.local import InProcess
from ragauge.scoring.gold_table import gold_table
from ragauge.scoring.inputs import TraceFile
from ragauge.scoring.scoring_run import InputFacts, ScoringPlan, ScoringRun
from ragauge.scoring.summary import joined_values

PROFILE = "live"
MOST_DOCUMENTS = 300
"""Documents whose share of the hits is kept by name; the rest are `other`."""


class StoredTrace(Struct, frozen=True, gc=False):
    """What scoring needs of a row of `live_traces`, in the order of `COLUMNS`."""

    trace_id: str
    question_key: str
    gold_id: str | None
    packed: bytes


COLUMNS = "trace_id, question_key, gold_id"


class AskedTrace(Struct, frozen=True, gc=False):
    """A trace of a window: the question and the repeat that it is, and its JSON with both."""

    qid: str
    line: bytes


def asked_traces(traces: Iterable[StoredTrace], gold: LiveGold) -> Iterator[AskedTrace]:
    """The traces of a window, which come in the order of their arrival."""
    repeats: dict[str, int] = {}
    for trace in traces:
        is_gold = trace.gold_id is not None and trace.gold_id in gold.items
        qid = trace.gold_id if is_gold and trace.gold_id else f"live-{trace.question_key}"
        seed = repeats[qid] = repeats.get(qid, 0) + 1
        yield AskedTrace(qid, row_with(qid, seed, zlib.decompress(trace.packed)))


@lru_cache
def scoring_plan(options: Options, *, sums_only: bool = False) -> ScoringPlan:
    """What is measured of live traffic, as `ragauge score --profile live` measures it.

    With `sums_only` without what is no sum over traces: what compares the repeats of a question.
    """
    profile = registry.profiles()[PROFILE]
    selected = registry.select(profile.metrics, profile.k)
    if sums_only:
        selected = [chosen for chosen in selected if chosen.metric.of_question is None]
    return ScoringPlan(
        profile=profile,
        dialect=DIALECT,
        own=True,
        k=profile.k,
        selected=selected,
        options=options,
        intervals=not sums_only,
        slices=False,
    )


class WindowScores(Struct, frozen=True):
    """What was measured of some traces: the scores, and the shares of documents among the hits."""

    scores: Scores
    selected: tuple[Selected, ...]
    documents: dict[str, int]
    gold_matched: int
    values: dict[str, list[float]]
    """Of metrics that are a quantile over traces, the value of each trace."""

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics as the JSON of `score` has them."""
        return metrics_document(self.scores)


def score_traces(
    traces: Iterable[StoredTrace],
    gold: LiveGold,
    options: Options = Options(),  # noqa: B008  (frozen)
    *,
    sums_only: bool = False,
) -> WindowScores:
    """Score traces, which come in the order of their arrival.

    With `sums_only` only what a minute keeps: no intervals, repeats or documents.
    """
    with temporary_file() as temporary:
        items: dict[str, GoldItem] = {}
        documents: dict[_HitDocument, int] = {}
        matched = 0
        write = temporary.file.write
        for asked in asked_traces(traces, gold):
            if asked.qid not in items:
                items[asked.qid] = gold.items.get(asked.qid) or GoldItem(qid=asked.qid)
            matched += asked.qid in gold.items
            write(asked.line)
            write(b"\n")
            if not sums_only:
                for hit in _decode_hits(asked.line).hits:
                    documents[hit] = documents.get(hit, 0) + 1
        temporary.file.flush()
        size = os.path.getsize(temporary.path)
        source = Source("traces", temporary.path, 0, size, "lines", ())
        plan = scoring_plan(options, sums_only=sums_only)
        table = gold_table(list(items.values()), plan.profile, options, name="gold", slices=False)
        run = ScoringRun(plan, table, gold_name="gold", trace_name="traces")
        run.take_inputs(InputFacts(gold_name="gold", trace_name="traces"))
        run.read(TraceFile(source, InProcess(), stored=True))
        scores = run.finish()
        values = {
            plan.selected[place].id: joined_values(parts).value.tolist()
            for place, parts in run.totals.values.items()
        }
        return WindowScores(scores, tuple(plan.selected), _shares(documents), matched, values)


class _HitDocument(Struct, frozen=True, gc=False):
    id: str
    doc: str | None = None


class _HitDocuments(Struct, gc=False):
    hits: list[_HitDocument] = []


_decode_hits = msgspec.json.Decoder(_HitDocuments).decode


def _shares(hits: Mapping[_HitDocument, int]) -> dict[str, int]:
    """How many hits lie in each document, the most first."""
    documents: dict[str, int] = {}
    for hit, count in hits.items():
        name = hit.doc or parts_of(hit.id).doc or hit.id
        documents[name] = documents.get(name, 0) + count
    ordered = sorted(documents.items(), key=lambda entry: (-entry[1], entry[0]))
    shares = dict(ordered[:MOST_DOCUMENTS])
    rest = sum(count for _, count in ordered[MOST_DOCUMENTS:])
    return {**shares, "": rest} if rest else shares


def gold_rows(qids: Sequence[str], gold: LiveGold) -> Iterator[bytes]:
    """The gold set of a window as rows of a file: items of the set, and questions that it lacks."""
    for qid in dict.fromkeys(qids):
        yield gold.rows.get(qid) or msgspec.json.encode({"qid": qid})
