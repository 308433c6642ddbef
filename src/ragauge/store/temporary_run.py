"""A run that was just scored, put aside to be looked at: its traces lie in a file, a line each.

What is told of its questions is the same as of a stored run, at less cost: nothing is packed or
hashed, and what only a comparison asks for is not gathered.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ragauge.files.ranges import Source
from ragauge.model.evidence import Evidence
from ragauge.scoring.identify import Recogniser
from ragauge.scoring.inputs import Kept
from ragauge.store.runs import told_by_chunks
from ragauge.store.snapshot import plan_of, snapshot_of
from ragauge.store.traces_by_question import ByQuestion, written


class Aside(NamedTuple):
    """A run put aside: its traces by question and as a file, and what is known of them.

    `evidence` has no more than the ids that gold names and the hashes of documents.
    """

    recogniser: Recogniser
    found: ByQuestion
    source: Source
    evidence: Evidence


@contextmanager
def put_aside(kept: Kept) -> Iterator[Aside]:
    """Put a run aside; it is gone at the end."""
    inputs = kept.inputs
    # By the same words as a stored run is scored again: they leave out what no trace depends on.
    rules = snapshot_of(kept.plan, inputs, system={}, ragauge_version="").scoring
    plan = plan_of(rules, metrics=())
    gathered = told_by_chunks(kept)
    with tempfile.NamedTemporaryFile(prefix="ragauge-", suffix=".jsonl") as file:
        noted = written(kept.lines, file, plan.profile.join.keep, gathered)
        recogniser = Recogniser(
            plan, kept.items, kept.chunks, gold_name=inputs.gold_name, table=kept.table
        )
        source = Source(inputs.trace_name, file.name, 0, noted.end, "lines", ())
        yield Aside(recogniser, ByQuestion(file, noted), source, gathered.evidence())
