"""Drill-downs: all that a reader wants to see of one question, ready to be shown.

What stands here is already decided: which hits are evidence, what was cited, which rule found the
refusal. A report only lays it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Protocol

from msgspec import Struct

Mark = Literal["gold", "possible", "document", "negative", "cited"]
MARKS: tuple[Mark, ...] = ("gold", "possible", "document", "negative", "cited")
"""What a hit may be: evidence, evidence if it stands at the right place of its chunk, of a document
that was wanted, a known wrong passage, cited."""


class Passage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One hit of a ranked list, or one citation.

    where       its place in the document, in words: `bytes 120-240`
    text        what it says, where that is known
    highlights  the parts of the text that are evidence, as characters from and up to
    """

    id: str
    doc: str | None = None
    section: str | None = None
    where: str | None = None
    score: float | None = None
    type: str | None = None
    delta_s: float | None = None
    text: str | None = None
    highlights: tuple[tuple[int, int], ...] = ()
    marks: tuple[Mark, ...] = ()


class Attempt(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a system did in one slot of a question.

    asked         the words it was asked, where they differ from the question
    trace         where the trace stands, as `traces.jsonl:42`
    label         what came of the slot, where the question has several
    refusal       which rule found that the answer is a refusal, None where it is none
    turn          the turn of the trace, where the question is not one of a turn
    replaced      how many earlier traces of the slot there are, which do not count
    """

    paraphrase: int | None = None
    seed: str | None = None
    turn: int | None = None
    replaced: int = 0
    asked: str | None = None
    trace: str | None = None
    label: str | None = None
    error: str | None = None
    hits: tuple[Passage, ...] = ()
    answer: str | None = None
    refusal: str | None = None
    citations: tuple[Passage, ...] = ()
    delta_s: float | None = None
    latency_ms: float | None = None
    lambda_state: str | None = None


class Expected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of evidence of a question, as its gold item has it.

    rung    the level at which a comparison matched it in both runs
    """

    name: str
    doc: str | None = None
    where: str | None = None
    quote: str | None = None
    grade: float | None = None
    rung: str | None = None


class Drilldown(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question: what was wanted, and what came. `other` are the attempts of run b, compared.

    expect      what the run was scored to expect, which the profile decides where gold is silent
    evidence    the texts of expected pieces, by their names, where neither quote nor hit shows them
    """

    qid: str
    turn: int | None = None
    question: str | None = None
    paraphrases: tuple[str, ...] = ()
    expect: Literal["answer", "refuse"] | None = None
    gold: str | None = None
    expected: tuple[Expected, ...] = ()
    evidence: tuple[Passage, ...] = ()
    negatives: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    must_contain: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    type: str | None = None
    tags: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    other: tuple[Attempt, ...] = ()


class Drilldowns(Protocol):
    """The drill-downs of a run, in the order of its questions; may be walked more than once."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Drilldown]: ...
