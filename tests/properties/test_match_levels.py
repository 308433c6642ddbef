"""What holds for all match levels: the same both ways, and blind to what is hit."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge.compare.effective_gold import EffectiveGold, expected_pieces
from ragauge.compare.same_documents import KnownDocuments, SameDocuments
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import MATCH_LEVELS
from ragauge.model.evidence import ChunkFacts, DocFacts, Evidence, SketchRow
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.model.payloads import number_of
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX, pieces_of
from ragauge.scoring.score import score
from ragauge.spans import Span
from tests.support.chunked_runs import match, side_of
from tests.support.effort import examples

# A few names and words, so that everything meets everything.
IDS = ("d#1", "d#2", "e#1", "c1", "c2")
DOCS = ("d", "e", "f")
WORDS = ("the first words of a text", "other words of a text", "the last words of it")
QIDS = ("q", "r")

spans = st.sampled_from(
    ((), (Span(0, 10),), (Span(5, 20),), (Span(0, 10, "char"),), (Span(0, 10), Span(30, 40)))
)
maybe_doc = st.none() | st.sampled_from(DOCS)
maybe_text = st.none() | st.sampled_from(WORDS)
versions = st.sampled_from(((), ("v1",), ("v2",), ("v1", "v2")))
hashes = st.sampled_from(((), ("h1",), ("h2",)))
anchors = st.builds(
    Anchor,
    doc=st.sampled_from(DOCS),
    spans=spans.filter(lambda found: bool(found) and found[0].unit == "byte"),
    id=st.none() | st.sampled_from(IDS),
    quote=maybe_text,
)
ids = st.lists(st.sampled_from(IDS), max_size=3).map(tuple)
chunk_facts = st.builds(
    ChunkFacts, doc=maybe_doc, path=st.none() | st.sampled_from(("d", "p")), spans=spans,
    text=maybe_text, text_hash=st.sampled_from((None, "t1", "t2")),
)  # fmt: skip
doc_facts = st.builds(
    DocFacts, path=st.sampled_from((None, None, "p")), hashes=hashes, chunkers=versions
)
sketches = st.lists(
    st.tuples(st.sampled_from(IDS), st.integers(0, 2), st.integers(0, 2), maybe_doc), max_size=2,
    unique_by=lambda row: row[0],
)  # fmt: skip


@st.composite
def items(draw: st.DrawFn) -> list[GoldItem]:
    """Two questions with evidence of every kind."""
    members = st.lists(st.sampled_from(IDS) | anchors, min_size=1, max_size=2).map(tuple)
    return [
        GoldItem(
            qid=qid,
            expect="answer",
            relevant=draw(ids),
            anchors=draw(st.lists(anchors, max_size=1).map(tuple)),
            places=draw(st.lists(anchors, max_size=1).map(tuple)),
            grades=draw(
                st.dictionaries(st.sampled_from(IDS), st.sampled_from((0.0, 1.0, 2.0)), max_size=2)
            ),
            groups=draw(st.lists(members, max_size=2).map(tuple)),
            relevant_docs=draw(st.none() | st.lists(st.sampled_from(DOCS), max_size=2).map(tuple)),
        )
        for qid in QIDS
    ]


@st.composite
def sides(draw: st.DrawFn) -> KnownDocuments:
    """A side that knows some things."""
    rows = [
        SketchRow(number_of(name), text, place, number_of(doc) if doc else 0)
        for name, text, place, doc in draw(sketches)
    ]
    evidence = Evidence(
        expected=draw(st.dictionaries(st.sampled_from(IDS), chunk_facts, max_size=3)),
        docs=draw(st.dictionaries(st.sampled_from(DOCS), doc_facts, max_size=3)),
        chunkers=draw(versions),
        units=draw(st.sampled_from(((), ("byte",), ("char",), ("byte", "char")))),
        sketch=tuple(sorted(rows)),
    )
    listed = st.builds(Chunk, doc=st.sampled_from(DOCS), spans=spans, text=maybe_text)
    keys: list[tuple[str, int | None]] = [(qid, None) for qid in QIDS]
    return KnownDocuments(
        evidence,
        draw(st.dictionaries(st.sampled_from(keys), st.integers(0, 7))),
        draw(st.dictionaries(st.sampled_from(IDS), listed, max_size=2)),
        draw(st.dictionaries(st.sampled_from(DOCS), st.sampled_from((*WORDS, "x")), max_size=2)),
    )


@examples(25)
@given(gold=items(), a=sides(), b=sides())
def test_both_ways_have_the_same_levels(
    gold: list[GoldItem], a: KnownDocuments, b: KnownDocuments
) -> None:
    """What works on both sides does so whichever of them is called a.

    An id that the sides contradict each other about is another matter: what the first means by it
    is expected.
    """
    assume(not SameDocuments(a, b).contradicted)
    there, back = match(gold, a, b), match(gold, b, a)
    assert (there.levels, there.counts, there.match) == (back.levels, back.counts, back.match)


@examples(25)
@given(gold=items(), a=sides())
def test_a_side_and_itself_are_exact(gold: list[GoldItem], a: KnownDocuments) -> None:
    """Whatever it knows or does not know, and the items stay the very same."""
    found = match(gold, a, a)
    # A document says nothing of the chunks in it, so it is never exact.
    for item, levels in zip(gold, found.levels, strict=True):
        by_document = item.relevant_docs and not expected_pieces(item)
        assert set(levels) <= ({"doc"} if by_document else {"exact"}), item
    assert all(
        one is item and other is item
        for one, other, item in zip(found.items_a, found.items_b, gold, strict=True)
    )


@examples(25)
@given(gold=items(), a=sides(), b=sides())
def test_the_order_of_tables_does_not_show(
    gold: list[GoldItem], a: KnownDocuments, b: KnownDocuments
) -> None:
    """The same entries in another order are the same."""

    def turned(side: KnownDocuments) -> KnownDocuments:
        evidence = replace(
            side.evidence,
            expected=dict(reversed(side.evidence.expected.items())),
            docs=dict(reversed(side.evidence.docs.items())),
        )
        return KnownDocuments(
            evidence,
            side.carries,
            dict(reversed(list(side.chunks.items()))),
            dict(reversed(list(side.texts.items()))),
        )

    graded = [replace(item, grades=dict(reversed(item.grades.items()))) for item in gold]
    assert match(graded, turned(a), turned(b)) == match(gold, a, b)


@examples(25)
@given(gold=items(), a=sides(), b=sides())
def test_carrying_less_is_never_a_better_level(
    gold: list[GoldItem], a: KnownDocuments, b: KnownDocuments
) -> None:
    """A level works because a side carries what it needs.

    Ids in doubt are another matter: they are believed where nothing else can be compared.
    """
    assume(not SameDocuments(a, b).no_common_ids)
    assume(not (a.chunks and b.chunks) or a.chunks.keys() == b.chunks.keys())
    everything = [KnownDocuments(run.evidence, {}, run.chunks, run.texts) for run in (a, b)]
    full = match(gold, *everything)
    less = match(gold, a, b)
    for one, other in zip(_places(full), _places(less), strict=True):
        assert one <= other


def _places(gold: EffectiveGold) -> list[int]:
    return [MATCH_LEVELS.index(level) for levels in gold.levels for level in levels]


@examples(25)
@given(gold=items(), a=sides(), b=sides())
def test_both_sides_have_the_same_pieces(
    gold: list[GoldItem], a: KnownDocuments, b: KnownDocuments
) -> None:
    """As many, as relevant, with the same gains and groups; none of them an id that fell."""
    found = match(gold, a, b)
    for item, levels, one, other in zip(
        gold, found.levels, found.items_a, found.items_b, strict=True
    ):
        mine, theirs = (pieces_of(each, {}, Options()) for each in (one, other))
        assert (mine.ids, mine.relevant, mine.gains, mine.groups) == (
            theirs.ids, theirs.relevant, theirs.gains, theirs.groups,
        )  # fmt: skip
        members = expected_pieces(item)
        if not members:
            continue
        fell = {
            member
            for member, level in zip(members, levels, strict=True)
            if level != "exact" and isinstance(member, str)
        }
        assert fell.isdisjoint(mine.ids)
        assert fell.isdisjoint(anchor.id for anchor in mine.anchors)
        if "none" not in levels:
            assert len(pieces_of(item, {}, Options()).relevant) == len(mine.relevant)


CHUNKS = {
    name: Hit(
        name, doc=doc, text=text, spans=(Span(start, start + len(text)),), chunker_version=version,
        doc_hash=doc,
    )
    for version in ("v1", "v2")
    for name, doc, text, start in (
        (f"{version}-1", "d", WORDS[0], 0),
        (f"{version}-2", "d", WORDS[1], 30),
        (f"{version}-3", "e", WORDS[2], 0),
    )
}  # fmt: skip


def _traces(version: str, picks: Sequence[Sequence[int]]) -> list[Trace]:
    return [
        Trace(
            qid=f"q{number}",
            hits=tuple(CHUNKS[f"{version}-{pick}"] for pick in picked),
            answer=Answer(claim="x", citations=tuple(f"{version}-{pick}" for pick in picked[:1])),
        )
        for number, picked in enumerate(picks)
    ]


@examples(25)
@given(
    expected=st.lists(st.sampled_from(("v1-1", "v1-2", "v1-3")), min_size=2, max_size=4),
    a=st.permutations([1, 2, 3, 1]),
    b=st.permutations([1, 2, 3, 2]),
    seed=st.integers(0, 9),
)
def test_levels_do_not_depend_on_what_is_hit(
    expected: list[str], a: list[int], b: list[int], seed: int
) -> None:
    """The same chunks in another order, or for other questions: other numbers, the same levels."""
    gold = [
        GoldItem(qid=f"q{number}", expect="answer", relevant=(name,))
        for number, name in enumerate(expected)
    ]
    fixed = match(
        gold,
        side_of(_traces("v1", [[1, 2], [3, 1]]), gold),
        side_of(_traces("v2", [[2, 1], [3]]), gold),
    )
    cut = random.Random(seed).randrange(1, 4)
    traces = [
        _traces(version, [picks[:cut], picks[cut:]]) for version, picks in (("v1", a), ("v2", b))
    ]
    found = match(gold, *(side_of(each, gold) for each in traces))
    assert found.levels == fixed.levels
    assert found.match == "fallback_doc_span"
    for effective, run in zip((found.items_a, found.items_b), traces, strict=True):
        scores = score(effective, run, profile="all", k=3, intervals=False)
        wanted = [
            any(hit.id[3:] == name[3:] for hit in run[number].hits) if number < 2 else False
            for number, name in enumerate(expected)
        ]
        assert scores.metrics["retrieval.hit@3"].value == sum(wanted) / len(wanted)


@examples(25)
@given(gold=items(), a=sides(), b=sides(), seed=st.integers(0, 99))
def test_effective_items_can_be_scored(
    gold: list[GoldItem], a: KnownDocuments, b: KnownDocuments, seed: int
) -> None:
    """Against hits with and without spans and texts; no unit is mixed, no piece is found by id."""
    a, b = (
        KnownDocuments(replace(run.evidence, units=("byte",)), run.carries, {}, run.texts)
        for run in (a, b)
    )
    found = match(gold, a, b)
    draw = random.Random(seed)
    hits = [
        Hit(
            name, doc=draw.choice((None, *DOCS)), text=draw.choice((None, *WORDS)),
            spans=draw.choice(((), (Span(0, 12),))),
        )
        for name in IDS
    ]  # fmt: skip
    run = [
        Trace(qid=qid, hits=tuple(hits), answer=Answer(claim="x", citations=IDS[:2]))
        for qid in QIDS
    ]
    for effective in (found.items_a, found.items_b):
        scores = score(effective, run, profile="all", k=5, intervals=False)
        value = scores.metrics["retrieval.hit@5"].value
        assert value is None or 0 <= value <= 1
    assert all(
        place.id.startswith(EFFECTIVE_PREFIX)
        for item, one in zip(gold, found.items_a, strict=True)
        for place in one.places
        if place.id is not None and not place.spans and place not in item.places
    )
