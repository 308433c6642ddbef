"""The usual shapes of trace rows, as types that the decoder checks while it decodes."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from ragauge.files.fields import INT64

WideInt = Annotated[int, Meta(ge=-INT64, le=INT64 - 1)]
Milliseconds = Annotated[float, Meta(ge=0, le=366 * 24 * 3600 * 1000)]


class NoDistance(Struct, gc=False, kw_only=True):
    """Names of ΔS in ASCII; under any other name the row is not of a usual shape."""

    delta_s: None = None
    deltaS: None = None  # noqa: N815
    deltas: None = None
    DeltaS: None = None
    dS: None = None  # noqa: N815
    delta_s_list: None = None
    deltaS_list: None = None  # noqa: N815
    deltaS_q_ctx: None = None  # noqa: N815
    delta_s_q_ctx: None = None
    delta_s_qr: None = None


class NoState(NoDistance, gc=False, kw_only=True):
    """Names of λ in ASCII, likewise."""

    lambda_: None = field(default=None, name="lambda")
    lambda_state: None = None
    lambda_observe: None = None
    lambda_final: None = None
    lambda_states: None = None


class FastPerf(Struct, gc=False):
    """The times of the parts."""

    t_retrieve_ms: Milliseconds | None = None
    t_reason_ms: Milliseconds | None = None


class OtherNames(NoDistance, gc=False, kw_only=True):
    """Names of a hit's id, document, section, text or place that no usual shape has."""

    chunk_id: None = None
    snippet_id: None = None
    block_id: None = None
    doc_id: None = None
    doc_path: None = None
    path: None = None
    section_id: None = None
    snippet: None = None
    citation: None = None
    source_spans: None = None
    start_byte: None = None
    start_char: None = None
    start_token: None = None
    start_ms: None = None
    line_start: None = None
    start_line: None = None
    unit: None = None
    kind: None = None


class FastHit(OtherNames, gc=False, kw_only=True):
    """A hit with an id and perhaps a text; whatever else is read of hits must be null here."""

    id: str
    text: str | None = None
    type: str | None = None
    doc: None = None
    section: None = None
    score: None = None
    rank: None = None
    chunker_version: None = None
    span: None = None
    offsets: None = None
    start: None = None
    end: None = None


class FastAnswer(NoState, gc=False, kw_only=True):
    """An answer with a claim and citations; whatever else is read of answers must be null here."""

    claim: str | None = None
    citations: list[str] | None = None
    text: None = None
    answer: None = None
    refused: None = None
    grounded: None = None
    constraints_echo: None = None


class _Row(NoState, gc=False, kw_only=True):
    """What all usual shapes have: the common fields first, in their common order.

    The fields behind them may only be null: any other value in them fails to decode, so the row
    takes the exact path, at little cost to the rows that pass.
    """

    qid: str | None = None
    seed: WideInt | None = None
    q: str | None = None
    retrieved_ids: list[str] | None = None
    answer_json: FastAnswer | None = None
    paraphrase: WideInt | None = None
    turn: WideInt | None = None
    q_id: None = None
    id: None = None
    query_id: None = None
    query: None = None
    topk: None = None
    items: None = None
    retrieved: None = None
    hits_top_k: None = None
    hits: None = None
    retrieval: None = None
    answer_text: None = None
    answer_citations: None = None
    cited_chunks: None = None
    refused: None = None
    grounded: None = None
    constraints_echo: None = None
    error: None = None
    latency_ms: Milliseconds | None = None
    elapsed_ms: Milliseconds | None = None
    perf: FastPerf | None = None

    @property
    def timed(self) -> bool:
        """Whether the row records how long anything took."""
        return not (self.latency_ms is None and self.elapsed_ms is None and self.perf is None)


class FastRow(_Row, gc=False, kw_only=True):
    """The usual shapes, mixed as they come."""

    question: str | None = None
    chunks: list[FastHit] | None = None
    answer: str | None = None
    citations: list[str] | None = None


class JoinedRow(_Row, gc=False, kw_only=True):
    """The one shape that is reduced by columns: joined by id, with `answer_json`."""

    question: None = None
    chunks: None = None
    answer: None = None
    citations: None = None


class StrictAnswer(Struct, gc=False, forbid_unknown_fields=True):
    """An answer with a claim and citations, and nothing else."""

    claim: str | None = None
    citations: list[str] | None = None


class StrictRow(Struct, gc=False, forbid_unknown_fields=True):
    """The shape of the source's own example, and nothing else: the cheapest to decode.

    Nothing is passed over, so the decoder has checked every byte.
    """

    qid: str | None = None
    seed: WideInt | None = None
    q: str | None = None
    retrieved_ids: list[str] | None = None
    answer_json: StrictAnswer | None = None


Joined = list[StrictRow] | list[JoinedRow]
