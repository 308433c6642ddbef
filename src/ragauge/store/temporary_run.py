"""A temporary run: a run that was just scored, for a page; its traces are lines of a file.

What it says of questions is the same as a stored run does, at less cost: nothing is compressed or
hashed, and facts that only a comparison asks for are not collected (decision 0031).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ragauge.files.ranges import Source
from ragauge.model.evidence import Evidence
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.inputs import ScoredRun
from ragauge.store.runs import facts_of_chunks
from ragauge.store.snapshot import plan_of, snapshot_of
from ragauge.store.traces_by_question import TracesByQuestion, write_lines


class TemporaryRun(NamedTuple):
    """The traces of a run by question and as a file, and what is known of them.

    `evidence` has no more than the ids that gold names and the hashes of documents.
    """

    recogniser: EvidenceIdentifier
    traces: TracesByQuestion
    source: Source
    evidence: Evidence


@contextmanager
def temporary_run(run: ScoredRun) -> Iterator[TemporaryRun]:
    """Write the traces of a run to a file, which is gone at the end."""
    inputs = run.inputs
    # By the same words as a stored run is scored again: they leave out what no trace depends on.
    rules = snapshot_of(run.plan, inputs, system={}, ragauge_version="").scoring
    plan = plan_of(rules, metrics=())
    gathered = facts_of_chunks(run)
    with tempfile.NamedTemporaryFile(prefix="ragauge-", suffix=".jsonl") as file:
        index = write_lines(run.lines, file, plan.profile.join.keep, gathered)
        recogniser = EvidenceIdentifier(
            plan, run.items, run.chunks, gold_name=inputs.gold_name, table=run.table
        )
        source = Source(inputs.trace_name, file.name, 0, index.end, "lines", ())
        yield TemporaryRun(recogniser, TracesByQuestion(file, index), source, gathered.evidence())
