"""Evidence that is one place is found by the quick path where the long one finds it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragauge.model.gold import Anchor
from ragauge.model.options import Options
from ragauge.model.trace import Hit, Trace
from ragauge.scoring.evidence_pieces import GoldDetails
from ragauge.scoring.evidence_places import only_place, ranks_of
from ragauge.scoring.trace_details import TableBytes, TraceDetails
from ragauge.spans import Span
from tests.support.effort import examples

_IDS = st.sampled_from(["a", "b", "c", "d#1", "gold"])
_DOCS = st.sampled_from(["doc.md", "other.md"])


def _spans(unit: st.SearchStrategy[str]) -> st.SearchStrategy[Span]:
    pairs = st.tuples(st.integers(0, 8), st.integers(0, 8))
    return st.builds(lambda pair, unit: Span(pair[0], pair[0] + pair[1], unit), pairs, unit)


_BYTES = _spans(st.just("byte"))
_HITS = st.builds(
    Hit, id=_IDS, doc=_DOCS, spans=st.lists(_BYTES, max_size=1).map(tuple),
)  # fmt: skip
_ODD_HITS = st.builds(
    Hit, id=_IDS, doc=st.none() | st.just("") | _DOCS, path=st.none() | _DOCS,
    spans=st.lists(_spans(st.sampled_from(["byte", "line"])), max_size=2).map(tuple),
)  # fmt: skip
_ANCHORS = st.builds(Anchor, doc=_DOCS, spans=_BYTES.map(lambda span: (span,)), id=st.none() | _IDS)


def _told(
    details: GoldDetails, hits: list[Hit], *, single: bool, quick: bool
) -> dict[str, TableBytes]:
    options = Options(overlap="single" if single else "cumulative")
    detailer = TraceDetails({0: details}, {}, options, errors_count=False, bytes_too=False)
    if not quick:
        detailer.only[0] = None
    detailer.add(0, 0, Trace(qid="q", hits=tuple(hits)), [hit.id for hit in hits])
    return detailer.tables.take()


@examples(100)
@given(_ANCHORS, st.lists(_HITS | _ODD_HITS, max_size=6), st.booleans())
def test_both_paths_find_the_same(anchor: Anchor, hits: list[Hit], single: bool) -> None:
    details = GoldDetails(anchors=(anchor,), counted=(True,), places=(anchor,), doc=anchor.doc)
    quick, slow = (_told(details, hits, single=single, quick=each) for each in (True, False))
    assert quick == slow


@given(_ANCHORS, st.lists(_HITS, max_size=6))
def test_usual_hits_need_no_second_look(anchor: Anchor, hits: list[Hit]) -> None:
    place = only_place(GoldDetails(anchors=(anchor,), counted=(True,)))
    assert (place is None) == (not anchor.spans[0].length)
    if place is not None:
        assert ranks_of(place, hits, [hit.id for hit in hits], single=False) is not None


def test_halves_add_up_over_ranks() -> None:
    place = only_place(
        GoldDetails(anchors=(Anchor(doc="d", spans=(Span(10, 20),)),), counted=(True,))
    )
    assert place is not None
    hits = [Hit("x", "d", spans=(Span(0, 12),)), Hit("y", "e", spans=(Span(10, 20),)),
            Hit("z", "d", spans=(Span(17, 29),))]  # fmt: skip
    ids = ["x", "y", "z"]
    # 2 of 10 bytes, then another document, then 3 more: 5 of 10 are half
    assert ranks_of(place, hits, ids, single=False) == (2, [])
    # alone the last one covers 3 of 10
    assert ranks_of(place, hits, ids, single=True) == (None, [])
