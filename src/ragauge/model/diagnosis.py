"""Diagnoses: what is likely to be wrong with a run, with the numbers that say so."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

SCHEMA = "ragauge.diagnosis/1"


class Number(Struct, frozen=True, kw_only=True):
    """One number behind a finding: a metric of the run, or a count, and how it is read.

    `n` is how many questions it is over; `reading` is the limit it is held against, in words;
    `whole` says that it is a count; `before` is the value in the baseline.
    """

    name: str
    value: float | None
    n: int
    reading: str = ""
    whole: bool = False
    before: float | None = None


class Witness(Struct, frozen=True, kw_only=True):
    """A question as evidence: its label and cause, its numbers, and where to look."""

    qid: str
    label: str
    where: str
    turn: int | None = None
    cause: str | None = None
    numbers: Mapping[str, float] = {}


class DiagnosisFinding(Struct, frozen=True, kw_only=True):
    """One likely cause. `affected` counts its questions, of which `witnesses` are the worst.

    `blocking`: as long as it holds, no other number of the run can be trusted. With a baseline
    `was` counts its questions there, less those that only one run has, and `rose` by how many they
    are more now.
    """

    id: str
    title: str
    affected: int
    share: float
    numbers: tuple[Number, ...]
    witnesses: tuple[Witness, ...]
    step: str
    source: str
    blocking: bool = False
    rose: int | None = None
    was: int | None = None


class Tallied(Struct, frozen=True, kw_only=True):
    """How often a label or a cause came up: questions that show it, and records that have it."""

    name: str
    questions: int
    records: int


class Diagnosis(Struct, frozen=True, kw_only=True):
    """A run, its labels and their causes, and what is likely to be wrong, the likeliest first.

    `questions` lists those that need attention, the worst first; `listed_of` is how many there are.
    With a `baseline` findings are what rose against it, and `steady` names what did not.
    """

    name: str
    profile: str
    gold_name: str
    trace_name: str
    counted: int
    records: int
    labels: tuple[Tallied, ...]
    causes: tuple[Tallied, ...]
    findings: tuple[DiagnosisFinding, ...]
    questions: tuple[Witness, ...]
    listed_of: int
    silent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    steady: tuple[str, ...] = ()
