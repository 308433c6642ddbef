"""Traces: what a system did for one question."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ragauge.spans import Span

SlotKey = tuple[int | None, int | str | None, int | None]
"""Paraphrase, seed and turn: with the question they name the slot that a trace fills."""


class Hit(Struct, frozen=True, omit_defaults=True):
    """One retrieved item, at the rank of its place in the list.

    `path` is another name of the document, where the trace has two; `spot` names a place that has
    no span, as a region of a picture. `doc_hash` is of the document's content, `text_hash` of the
    chunk's; `policy_hash` is of the settings of the chunker. `snippet`: the text is only a part
    of the chunk's, which may differ from question to question. `placement` says by what its place
    was found in a corpus, or why it was not (`model.placement`).
    """

    id: str
    doc: str | None = None
    section: str | None = None
    score: float | None = None
    type: str | None = None
    text: str | None = None
    spans: tuple[Span, ...] = ()
    delta_s: float | None = None
    chunker_version: str | None = None
    path: str | None = None
    spot: str | None = None
    doc_hash: str | None = None
    text_hash: str | None = None
    policy_hash: str | None = None
    snippet: bool = False
    placement: str | None = None


class Citation(Struct, frozen=True, omit_defaults=True):
    """One cited item. `placed` says that it has no id of its own, only a place in a document."""

    id: str
    doc: str | None = None
    section: str | None = None
    spans: tuple[Span, ...] = ()
    delta_s: float | None = None
    placed: bool = False


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was answered.

    `citations` is None where there is no list; `odd_citations` says that the field held something
    that is not a list, which is no citation and can never be a hit. `cited` goes beside
    `citations`, entry by entry, where the list says more than ids. `cites_in_text`: there is no
    list, and `citations` are the hits that stand in brackets in the text.
    """

    claim: str | None = None
    text: str | None = None
    citations: tuple[str, ...] | None = None
    cited: tuple[Citation, ...] = ()
    odd_citations: bool = False
    cites_in_text: bool = False
    refused: bool | None = None
    grounded: bool | None = None
    constraints_echo: tuple[str, ...] | None = None
    delta_s: float | None = None

    @property
    def listed(self) -> tuple[Citation, ...]:
        """Every citation, with no more than its id where the list says no more."""
        return self.cited or tuple(map(Citation, self.citations or ()))

    @property
    def said(self) -> str | None:
        """The claim, or the text where there is no claim."""
        return self.claim if self.claim is not None else self.text


class Timing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long the parts took, in milliseconds."""

    retrieve: float | None = None
    reason: float | None = None
    total: float | None = None


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a trace cost: its tokens, and money in the currency of whoever counts it."""

    tokens: float | None = None
    cost: float | None = None


class Trace(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The trace of one slot; fields that nothing reads stay in `extra`.

    `lambda_state` is the recorded state, one of `→ ← <> ×`; `disordered` says that the ranks or
    scores of the hits disagree with the order of the list, which is the order that counts.
    `unknown_ids` are ids of hits and citations that the corpus of a live monitor does not have;
    None where nobody looked. `oversampled`: a live monitor kept it by a higher rate than that of
    all traffic, as an error or a gold question, so it says nothing of shares of the traffic.
    `embedder` took the ΔS of this trace anew, from its texts; without it they are as recorded.
    """

    qid: str | None = None
    question: str | None = None
    paraphrase: int | None = None
    seed: int | str | None = None
    turn: int | None = None
    hits: tuple[Hit, ...] = ()
    answer: Answer | None = None
    error: str | None = None
    lambda_state: str | None = None
    timing: Timing | None = None
    usage: Usage | None = None
    index: dict[str, str] = {}
    unknown_ids: tuple[str, ...] | None = None
    oversampled: bool = False
    disordered: bool = False
    embedder: str | None = None
    extra: dict[str, Any] = {}
    line: int | None = None


class TraceSet(Struct, frozen=True, kw_only=True):
    """The traces of a file in file order, with the file they came from."""

    traces: tuple[Trace, ...]
    name: str
    dialect: str
    notes: tuple[str, ...] = ()
    skipped: int = 0
