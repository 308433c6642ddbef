"""Hand-made runs over the same documents in different chunks, for tests of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ragauge.compare.effective_gold import EffectiveGold, expected_pieces, match_items
from ragauge.compare.same_documents import KnownDocuments, SameDocuments
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import MatchLevel
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.model.scores import Scores
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.scoring import score
from ragauge.scoring.chunk_facts import FactsCollector
from ragauge.spans import Span

# 60 words of 9 letters and a blank behind each: word n begins at byte 10 n.
TEXT = "".join(f"w{n:02d}abcdef " for n in range(60))


class Index(NamedTuple):
    """The chunks of one document, as hits; `kept` names what traces of the run tell of them."""

    doc: str
    text: str
    prefix: str
    version: str | None = None
    doc_hash: str | None = None
    path: str | None = None
    kept: tuple[str, ...] = ("doc", "spans", "text")

    def hit(self, start: int, end: int, name: str | None = None) -> Hit:
        """The chunk of some bytes, called by where it begins unless a name is given."""
        full = Hit(
            f"{self.prefix}{start}" if name is None else name,
            doc=self.doc, text=self.text[start:end], spans=(Span(start, end),),
        )  # fmt: skip
        return Hit(
            full.id,
            doc=full.doc if "doc" in self.kept else None,
            text=full.text if "text" in self.kept else None,
            spans=full.spans if "spans" in self.kept else (),
            chunker_version=self.version,
            doc_hash=self.doc_hash,
            path=self.path,
        )


def asked(*hits: Hit, qid: str = "q", cites: Sequence[str] = ()) -> Trace:
    """The trace of a question: its hits in order, and what its answer cites."""
    return Trace(qid=qid, hits=hits, answer=Answer(claim="x", citations=tuple(cites)))


def item(*relevant: str, qid: str = "q", anchors: Sequence[Anchor] = ()) -> GoldItem:
    """A question that has an answer in some chunks."""
    return GoldItem(
        qid=qid, question="?", expect="answer", relevant=relevant, anchors=tuple(anchors)
    )


def side_of(
    traces: Sequence[Trace],
    items: Sequence[GoldItem],
    *,
    chunks: Mapping[str, Chunk] | None = None,
    texts: Mapping[str, str] | None = None,
) -> KnownDocuments:
    """What a run knows after its traces."""
    named = [each for one in items for each in expected_pieces(one)]
    wanted = {each if isinstance(each, str) else each.id or "" for each in named}
    gatherer = FactsCollector(wanted, chunks or {})
    carries: dict[tuple[str, int | None], int] = {}
    for trace in traces:
        key = trace.qid or "", trace.turn
        carries[key] = gatherer.add(trace) & carries.get(key, 7)
    if chunks:
        gatherer.add_chunks()
    return KnownDocuments(gatherer.take().evidence(), carries, chunks or {}, texts or {})


def match(items: Sequence[GoldItem], a: KnownDocuments, b: KnownDocuments) -> EffectiveGold:
    """The match levels of two runs, and their effective gold."""
    return match_items(items, SameDocuments(a, b))


class Outcome(NamedTuple):
    """How two runs are matched, and both scored with their effective gold."""

    gold: EffectiveGold
    a: Scores
    b: Scores

    @property
    def levels(self) -> tuple[MatchLevel, ...]:
        """The match levels of all pieces in a row."""
        return tuple(level for levels in self.gold.levels for level in levels)

    def both(self, metric: str) -> tuple[float | None, float | None]:
        """A metric on both sides."""
        return self.a.metrics[metric].value, self.b.metrics[metric].value


def compare(
    items: Sequence[GoldItem],
    traces_a: Sequence[Trace],
    traces_b: Sequence[Trace],
    *,
    texts_a: Mapping[str, str] | None = None,
    texts_b: Mapping[str, str] | None = None,
    options: Options = Options(),  # noqa: B008  (frozen)
) -> Outcome:
    """Match, and score both sides again."""
    a = side_of(traces_a, items, texts=texts_a)
    b = side_of(traces_b, items, texts=texts_b)
    gold = match(items, a, b)
    scored = [
        _scored(effective, traces, options)
        for effective, traces in ((gold.items_a, traces_a), (gold.items_b, traces_b))
    ]
    return Outcome(gold, *scored)


def _scored(items: Sequence[GoldItem], traces: Sequence[Trace], options: Options) -> Scores:
    """One side, as `compare` has it before it judges places."""
    with score.opened_inputs(items, traces, profile="all", k=(1, 2, 3, 5)) as inputs:
        plan = score.scoring_plan(inputs, options=options, intervals=False)
        return score.score_inputs(inputs, replace(plan, judge_places=False)).scores
