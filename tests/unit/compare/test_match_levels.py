"""Match levels: two runs are compared by the best level that works on both, whatever they hit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ragauge.compare.same_documents import KnownDocuments
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import MatchLevel
from ragauge.model.evidence import ChunkFacts, DocFacts, Evidence, SketchRow
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.model.payloads import number_of
from ragauge.model.trace import Citation, Hit
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX
from ragauge.scoring.places import ANYWHERE, NOWHERE
from ragauge.spans import Span
from tests.support.cases import cases
from tests.support.chunked_runs import TEXT, Index, asked, compare, item, match, side_of

OLD = Index("d.md", TEXT, "old", version="v1", doc_hash="h")
NEW = Index("d.md", TEXT, "new", version="v2", doc_hash="h")
HIT = "retrieval.hit"
MRR = "retrieval.mrr@5"
CITED = "citation.hit_rate"


# --- exact ---


def test_a_run_and_itself_are_exact() -> None:
    """And the items are the very same."""
    items = [item("old100"), item("old900", qid="r")]
    traces = [asked(OLD.hit(100, 200)), asked(OLD.hit(0, 100), qid="r")]
    found = compare(items, traces, traces)
    assert found.levels == ("exact", "exact")
    # Nobody retrieved the second chunk, and a version without a policy proves nothing of it.
    assert (found.gold.match, found.gold.unproven) == ("unproven", 1)
    assert all(one is other for one, other in zip(found.gold.items_a, items, strict=True))
    assert all(one is other for one, other in zip(found.gold.items_b, items, strict=True))
    assert found.gold.counts == {"exact": 2, "doc_span": 0, "quote": 0, "doc": 0, "none": 0}


def test_plain_ids_without_versions_are_exact() -> None:
    """Recorded on neither side counts as equal."""
    found = compare([item("p1")], [asked(Hit("p1"))], [asked(Hit("p2"), Hit("p1"))])
    assert (found.levels, found.both(MRR)) == (("exact",), (1.0, 0.5))


def test_nothing_expected_is_no_match() -> None:
    """Neither of no items, nor of items without evidence."""
    bare = [GoldItem(qid="q")]
    assert match([], KnownDocuments(Evidence()), KnownDocuments(Evidence())).match == "none"
    found = match(bare, KnownDocuments(Evidence()), KnownDocuments(Evidence()))
    assert (found.match, found.levels, found.items_a[0]) == ("none", ((),), bare[0])


def test_a_version_on_one_side_only_is_not_the_same() -> None:
    """The id falls to its place; b misses by its id and hits by its place."""
    bare = Index("d.md", TEXT, "new", doc_hash="h")
    found = compare([item("old100")], [asked(OLD.hit(100, 200))], [asked(bare.hit(100, 200))])
    assert (found.levels, found.both(f"{HIT}@1")) == (("doc_span",), (1.0, 1.0))


def test_equal_ids_with_equal_text_are_exact_though_versions_differ() -> None:
    """The other version cut this chunk alike."""
    old, new = OLD.hit(100, 200, "c"), NEW.hit(100, 200, "c")
    found = compare([item("c")], [asked(old)], [asked(new)])
    assert (found.levels, found.both(f"{HIT}@1")) == (("exact",), (1.0, 1.0))


def test_equal_ids_at_an_equal_place_are_exact_though_versions_differ() -> None:
    """Without texts the place in the unchanged document tells it."""
    old, new = (each._replace(kept=("doc", "spans")) for each in (OLD, NEW))
    same = compare([item("c")], [asked(old.hit(0, 50, "c"))], [asked(new.hit(0, 50, "c"))])
    assert same.levels == ("exact",)
    other = compare([item("c")], [asked(old.hit(0, 50, "c"))], [asked(new.hit(0, 60, "c"))])
    assert other.levels == ("doc_span",)


def test_a_text_hash_of_another_kind_is_checked_by_the_text() -> None:
    """One trace has a hash of its own, the other none: ours is made of the same text."""
    old = replace(OLD.hit(100, 200, "c"), text_hash="md5:1234")
    found = compare([item("c")], [asked(old)], [asked(NEW.hit(100, 200, "c"))])
    assert found.levels == ("exact",)


def test_equal_ids_with_other_text_are_not_exact() -> None:
    """With the same version: then versions cannot be believed, in the whole run."""
    new = OLD._replace(prefix="old")
    items = [item("c"), item("old500", qid="r")]
    a = [asked(OLD.hit(100, 200, "c")), asked(OLD.hit(500, 600), qid="r")]
    b = [asked(new.hit(300, 400, "c")), asked(new.hit(480, 600), qid="r")]
    found = compare(items, a, b)
    assert found.levels == ("doc_span", "doc_span")
    assert found.both(f"{HIT}@1") == (1.0, 0.5)  # `c` of b is another chunk, and no hit
    assert "`c`" in found.gold.notes[0]


def test_a_contradiction_in_an_edited_document_speaks_of_that_document() -> None:
    """Its ids are not exact; those of another document are."""
    edited = OLD._replace(text="New words. " + TEXT, doc_hash="h2")
    other = Index("e.md", TEXT, "e", version="v1", doc_hash="he")
    items = [item("c"), item("e100", qid="r")]
    a = [asked(OLD.hit(100, 200, "c")), asked(other.hit(100, 200), qid="r")]
    b = [asked(edited.hit(100, 200, "c")), asked(other.hit(0, 100), qid="r")]
    found = compare(items, a, b)
    assert (found.levels, found.gold.match) == (("quote", "exact"), "mixed")
    assert found.gold.unproven == 1  # e100 is known to one run alone
    assert len(found.gold.notes) == 1


def _sketched(*rows: tuple[str, int, int, str]) -> KnownDocuments:
    sketch = [
        SketchRow(number_of(name), text, place, number_of(doc) if doc else 0)
        for name, text, place, doc in rows
    ]
    docs = {doc: DocFacts(chunkers=("v1",)) for *_, doc in rows if doc}
    rows_in_order = tuple(sorted(sketch))
    return KnownDocuments(
        Evidence(docs=docs, chunkers=("v1",), sketch=rows_in_order, bare_places=True)
    )


@cases(
    ("one", "other", "trusted"),
    [
        (("x", 5, 0, "d"), ("x", 5, 0, "d"), True),
        (("x", 5, 0, "d"), ("x", 6, 0, "d"), False),
        (("x", 5, 0, "d"), ("y", 6, 0, "d"), True),  # another id
        (("x", 5, 1, "d"), ("x", 5, 2, "d"), True),  # the same text at another place
        (("x", 0, 1, "d"), ("x", 6, 2, "d"), False),  # a text on one side only: the place decides
        (("x", 0, 1, "d"), ("x", 0, 1, "d"), True),
        (("x", 0, 0, "d"), ("x", 0, 2, "d"), True),  # nothing known
        (("x", 5, 0, "d"), ("x", 6, 0, "e"), False),  # ids that count through all documents
        (("x", 5, 0, ""), ("x", 6, 0, ""), False),
        (("x", 0, 1, ""), ("x", 0, 2, ""), False),  # no document is named, the places differ
        (("x", 0, 1, "d"), ("x", 0, 2, ""), False),
        (("x", 0, 1, "d"), ("x", 0, 1, ""), True),  # nothing says that it is another document
        (("x", 0, 1, "d"), ("x", 0, 1, "e"), False),  # the same offsets of another document
    ],
)
def test_sketches_contradict(
    one: tuple[str, int, int, str], other: tuple[str, int, int, str], trusted: bool
) -> None:
    """A chunk that nobody expects tells as well that versions cannot be believed."""
    found = match([item("c")], _sketched(one), _sketched(other))
    assert (found.levels == (("exact",),)) is trusted
    assert bool([note for note in found.notes if "equal ids alone" in note]) is not trusted


@pytest.mark.parametrize(("start", "levels"), [(0, ("exact",)), (50, ("doc_span",))])
def test_sketches_of_a_renamed_document_tell_by_the_offsets(
    start: int, levels: tuple[MatchLevel, ...]
) -> None:
    """The same chunks of a renamed document say nothing against ids, others do."""
    old = Index("d.md", TEXT, "x", doc_hash="h", kept=("doc", "spans"))
    other = Index("e.md", TEXT, "y", kept=("doc", "spans"))
    a = [asked(old.hit(0, 100, "x1"), other.hit(0, 100))]
    new = old._replace(doc="new.md")
    b = [asked(new.hit(start, start + 100, "x1"), other.hit(100, 200))]
    assert compare([item("y0")], a, b).levels == levels


def test_sketches_of_older_runs_are_compared_with_their_own_kind() -> None:
    """Their places hold the name of the document: next to bare offsets they say nothing."""

    def sketched(place: int, *, bare: bool) -> KnownDocuments:
        row = SketchRow(number_of("x"), 0, place, number_of("d"))
        docs = {"d": DocFacts(chunkers=("v1",))}
        return KnownDocuments(
            Evidence(docs=docs, chunkers=("v1",), sketch=(row,), bare_places=bare)
        )

    for bare, other_bare, levels in (
        (False, False, (("doc",),)),
        (True, True, (("doc",),)),
        (False, True, (("exact",),)),
    ):
        a, b = sketched(1, bare=bare), sketched(2, bare=other_bare)
        assert match([item("d#1")], a, b).levels == levels


def test_sketches_of_an_edited_document_do_not_contradict() -> None:
    """It was edited: other texts of its chunks are no wonder."""
    a, b = (
        KnownDocuments(
            Evidence(
                docs={"d": DocFacts(hashes=(hashed,))},
                sketch=(SketchRow(number_of("x"), number, 0, number_of("d")),),
            )
        )
        for hashed, number in (("h", 5), ("h2", 6))
    )
    found = match([item("c"), item("d#1", qid="r")], a, b)
    assert found.levels == (("exact",), ("doc",))


def test_policies_are_compared_too() -> None:
    """The same chunker with other settings is another chunking."""
    a, b = (
        KnownDocuments(
            Evidence(docs={"d": DocFacts(chunkers=("v1",), policies=(policy,))}, units=("byte",))
        )
        for policy in ("p1", "p2")
    )
    assert match([item("d#1")], a, b).levels == (("doc",),)
    assert match([item("d#1")], a, a).levels == (("exact",),)


@cases(
    ("seen", "whole_run", "level"),
    [
        (("v1",), ("v1", "code"), "exact"),  # b has not met the document: its run has v1
        (("v1",), ("v2", "code"), "doc"),
        ((), (), "exact"),
        (("v1",), (), "doc"),
        ((), ("v1",), "doc"),
    ],
)
def test_a_document_that_a_side_has_not_met(
    seen: tuple[str, ...], whole_run: tuple[str, ...], level: MatchLevel
) -> None:
    """The versions of its whole run must share one with those of the document."""
    a = KnownDocuments(Evidence(docs={"d": DocFacts(chunkers=seen)}, chunkers=seen))
    b = KnownDocuments(Evidence(docs={"e": DocFacts(chunkers=whole_run)}, chunkers=whole_run))
    assert match([item("d#1")], a, b).levels == ((level,),)
    assert match([item("d#1")], b, a).levels == ((level,),)


# --- doc + span ---


def test_chunks_split_finer() -> None:
    """E = 100 to 200; thirds of it at ranks 1 and 3 cover 33 and then 67: rank 3."""
    a = [asked(OLD.hit(100, 200), cites=["old100"])]
    b = [asked(NEW.hit(100, 133), NEW.hit(400, 433), NEW.hit(133, 167), cites=["new133"])]
    found = compare([item("old100")], a, b)
    assert (found.levels, found.gold.match) == (("doc_span",), "fallback_doc_span")
    assert found.both(MRR) == pytest.approx((1.0, 1 / 3))
    assert found.both(CITED) == (1.0, 1.0)
    assert found.both("retrieval.precision@3") == pytest.approx((1.0, 2 / 3))


def test_chunks_merged_coarser() -> None:
    """One large chunk holds all of it, and the citation of it is a hit."""
    a = [asked(OLD.hit(0, 100), OLD.hit(100, 200), cites=["old100"])]
    found = compare([item("old100")], a, [asked(NEW.hit(0, 500), cites=["new0"])])
    assert (found.levels, found.both(MRR), found.both(CITED)) == (
        ("doc_span",), (0.5, 1.0), (1.0, 1.0),
    )  # fmt: skip


@pytest.mark.parametrize(("start", "hit"), [(150, 1.0), (151, 0.0)])
def test_chunks_shifted_by_half(start: int, hit: float) -> None:
    """50 of 100 bytes are half; 49 are not."""
    b = [asked(NEW.hit(start, start + 100))]
    found = compare([item("old100")], [asked(OLD.hit(100, 200))], b)
    assert found.both(f"{HIT}@5") == (1.0, hit)


@cases(
    ("expected", "got", "hit"),
    [
        ((1, 100), (1, 100), 1.0),  # identical
        ((1, 100), (1, 40), 0.0),  # split: .40
        ((1, 100), (50, 52), 0.0),  # .03
        ((200, 209), (1, 1000), 1.0),  # merged: all of it
        ((1, 100), (51, 150), 1.0),  # shifted by half: .50
        ((80, 99), (90, 110), 1.0),  # an overlapping neighbour: .50
    ],
)
def test_overlap_is_a_share_of_the_expected_lines(
    expected: tuple[int, int], got: tuple[int, int], hit: float
) -> None:
    """The shares of the expected span that one hit covers, in inclusive line numbers."""

    def lines(name: str, first: int, last: int, version: str) -> Hit:
        return Hit(
            name, doc="d", spans=(Span(first, last + 1, "line"),), chunker_version=version
        )  # fmt: skip

    found = compare(
        [item("c")], [asked(lines("c", *expected, "v1"))], [asked(lines("n", *got, "v2"))]
    )
    assert (found.levels, found.both(f"{HIT}@5")) == (("doc_span",), (1.0, hit))


def test_overlapping_chunks_are_counted_once() -> None:
    """100 to 140 and 110 to 145 cover 45 of 100; with 145 to 150 it is half."""
    first = [NEW.hit(100, 140), NEW.hit(110, 145)]
    a = [asked(OLD.hit(100, 200))]
    assert compare([item("old100")], a, [asked(*first)]).both(f"{HIT}@5") == (1.0, 0.0)
    found = compare([item("old100")], a, [asked(*first, NEW.hit(145, 150))])
    assert found.both(MRR) == pytest.approx((1.0, 1 / 3))


def test_single_asks_one_hit_for_half() -> None:
    """Two quarters together are half; alone they are not."""
    a = [asked(OLD.hit(100, 200))]
    b = [asked(NEW.hit(100, 125), NEW.hit(125, 150), NEW.hit(140, 190))]
    together = compare([item("old100")], a, b)
    assert together.both(MRR) == (1.0, 0.5)
    alone = compare([item("old100")], a, b, options=Options(overlap="single"))
    assert alone.both(MRR) == pytest.approx((1.0, 1 / 3))


def test_a_miss_does_not_slide_down() -> None:
    """Another part of the document is a miss on the level of the place, not a hit of the document.

    Also where nothing came back at all.
    """
    a = [asked(OLD.hit(100, 200))]
    elsewhere = compare([item("old100")], a, [asked(NEW.hit(300, 400))])
    assert (elsewhere.levels, elsewhere.both(f"{HIT}@5")) == (("doc_span",), (1.0, 0.0))
    other = asked(NEW.hit(0, 100), qid="r")
    empty = compare([item("old100"), item("x", qid="r")], a, [asked(), other])
    assert empty.gold.levels[0] == ("doc_span",)
    assert empty.gold.levels[1] == ("none",)
    assert empty.both(f"{HIT}@5") == (0.5, 0.0)  # nothing is known of x


def test_hits_without_spans_take_the_next_level() -> None:
    """One such hit in the question is enough, on either side."""
    bare = NEW._replace(kept=("doc", "text"))
    a = [asked(OLD.hit(100, 200))]
    found = compare([item("old100")], a, [asked(NEW.hit(300, 400), bare.hit(100, 200))])
    assert (found.levels, found.both(MRR)) == (("quote",), (1.0, 0.5))
    assert compare([item("old100")], [asked(OLD.hit(100, 200))], a).levels == ("exact",)


def test_units_must_be_known_on_both_sides() -> None:
    """Bytes are not compared with lines; where hits have bytes and characters, neither is safe."""
    a = [asked(OLD.hit(100, 200))]
    lines = replace(NEW.hit(100, 200), spans=(Span(10, 20, "line"),))
    assert compare([item("old100")], a, [asked(lines)]).levels == ("quote",)
    chars = replace(NEW.hit(300, 400), spans=(Span(300, 400, "char"),), doc="e.md")
    both = [asked(NEW.hit(100, 200)), asked(chars, qid="r")]
    assert compare([item("old100"), item("x", qid="r")], a, both).gold.levels[0] == ("quote",)


def test_one_item_has_one_unit() -> None:
    """Pieces whose places are known in bytes and in lines: the first unit that works is taken."""
    facts = {
        "b": ChunkFacts(doc="d", spans=(Span(0, 9),)),
        "l": ChunkFacts(doc="d", spans=(Span(0, 9, "line"),), text="some text of the chunk"),
    }
    a, b = (
        KnownDocuments(Evidence(expected=facts, chunkers=(version,), units=("byte", "line")))
        for version in ("v1", "v2")
    )
    changed = replace(b.evidence, expected={})
    assert match([item("b", "l")], a, KnownDocuments(changed)).levels == (("doc_span", "quote"),)
    assert match([item("l")], a, KnownDocuments(changed)).levels == (("doc_span",),)


def test_a_list_of_chunks_gives_places() -> None:
    """The hits have none of their own; the list knows the chunk that nobody retrieved."""
    listed = {"old100": Chunk("d.md", (Span(100, 200),), chunker_version="v1")}
    other = {"new100": Chunk("d.md", (Span(100, 150),), chunker_version="v2")}
    items = [item("old100")]
    a = side_of([], items, chunks=listed)
    b = side_of([asked(Hit("new100"))], items, chunks=other)
    found = match(items, a, b)
    assert found.levels == (("doc_span",),)
    place = found.items_b[0].places[0]
    assert (place.id, place.spans) == (f"{EFFECTIVE_PREFIX}old100", (Span(100, 200),))


def test_a_renamed_document_is_found_by_its_hash() -> None:
    """Each side's effective item names it as the side does."""
    new = NEW._replace(doc="moved.md")
    a, b = [asked(OLD.hit(100, 200), cites=["old100"])], [asked(new.hit(100, 200))]
    found = compare([replace(item("old100"), relevant_docs=("d.md",))], a, b)
    assert (found.levels, found.both(MRR)) == (("doc_span",), (1.0, 1.0))
    assert found.both("retrieval.recall_doc@5") == (1.0, 1.0)
    assert "`d.md` and `moved.md`" in found.gold.notes[0]
    assert [each.relevant_docs for each in (found.gold.items_a[0], found.gold.items_b[0])] == [
        ("d.md",), ("moved.md",),
    ]  # fmt: skip


def test_two_copies_are_no_renamed_document() -> None:
    """Which of the two would it be? The hash decides nothing; without texts the level is doc."""
    copies = [NEW._replace(doc=doc, kept=("doc", "spans")) for doc in ("one.md", "two.md")]
    b = [asked(*(copy.hit(100, 200, copy.doc) for copy in copies))]
    old = OLD._replace(kept=("doc", "spans"))
    found = compare([item("old100")], [asked(old.hit(100, 200))], b)
    assert (found.levels, found.both(f"{HIT}@5")) == (("doc",), (1.0, 0.0))


def test_a_copy_that_both_sides_know_is_not_the_renamed_one() -> None:
    """copy.md is copy.md; so d.md can only have become new.md."""
    copy_a, copy_b = OLD._replace(doc="copy.md"), NEW._replace(doc="copy.md")
    new = NEW._replace(doc="new.md")
    a = [asked(OLD.hit(100, 200), copy_a.hit(0, 50, "a"))]
    b = [asked(copy_b.hit(100, 200, "b"), new.hit(100, 200))]
    found = compare([item("old100")], a, b)
    assert (found.levels, found.both(MRR)) == (("doc_span",), (1.0, 0.5))


def test_a_path_names_a_document_too() -> None:
    """Ids that change with every parser: the path stays."""
    old = OLD._replace(doc="id1", path="d.md", doc_hash=None)
    new = NEW._replace(doc="id2", path="d.md", doc_hash=None)
    found = compare([item("old100")], [asked(old.hit(100, 200))], [asked(new.hit(100, 180))])
    assert (found.levels, found.both(f"{HIT}@1"), found.gold.notes) == (
        ("doc_span",), (1.0, 1.0), (),
    )  # fmt: skip


def test_a_hash_on_one_side_only_is_no_equal_hash() -> None:
    """The offsets may have moved: the quote is safer."""
    bare = NEW._replace(doc_hash=None)
    found = compare([item("old100")], [asked(OLD.hit(100, 200))], [asked(bare.hit(100, 200))])
    assert found.levels == ("quote",)


# --- quote ---

EDITED = NEW._replace(text="A new beginning. " + TEXT, doc_hash="h2")  # all moved by 17 bytes


def test_a_document_edited_before_the_passage() -> None:
    """The old offsets would point elsewhere; the quote finds it, also cut in two."""
    a = [asked(OLD.hit(100, 200), cites=["old100"])]
    b = [asked(EDITED.hit(100, 117), EDITED.hit(117, 157), EDITED.hit(157, 217), cites=["new157"])]
    found = compare([item("old100")], a, b)
    assert (found.levels, found.gold.match) == (("quote",), "fallback_quote")
    assert found.both(MRR) == pytest.approx((1.0, 1 / 3))  # 0, 39 and then 39 + 59 of 99
    assert found.both(CITED) == (1.0, 1.0)
    assert found.both("retrieval.precision@3") == pytest.approx((1.0, 2 / 3))


@pytest.mark.parametrize(("end", "hit"), [(147, 1.0), (146, 0.0)])
def test_half_of_a_quote(end: int, hit: float) -> None:
    """The quote has 60 characters, 10 words without their blanks at the ends: 30 are half."""
    quote = "abcdefghij" * 3 + "0123456789" * 3
    text = "x" * 117 + quote + "y" * 100
    old = Index("d.md", quote, "old", version="v1", doc_hash="h")
    new = Index("d.md", text, "new", version="v2", doc_hash="h2")
    found = compare([item("old0")], [asked(old.hit(0, 60))], [asked(new.hit(0, end))])
    assert (found.levels, found.both(f"{HIT}@5")) == (("quote",), (1.0, hit))


def test_single_asks_one_text_for_half() -> None:
    """39 and 39 of 99 together, and 59 alone."""
    a = [asked(OLD.hit(100, 200))]
    b = [asked(EDITED.hit(117, 157), EDITED.hit(157, 197), EDITED.hit(157, 217, "z"))]
    assert compare([item("old100")], a, b).both(MRR) == (1.0, 0.5)
    alone = compare([item("old100")], a, b, options=Options(overlap="single"))
    assert alone.both(MRR) == pytest.approx((1.0, 1 / 3))


def test_a_chunk_that_came_twice_covers_once() -> None:
    """The quote says the same words twice; one chunk of them, retrieved twice, is one of them."""
    words = "the same words again and again, "
    text = words * 2 + TEXT[:30]
    old = Index("d.md", text, "old", version="v1", doc_hash="h")
    new = Index("d.md", "!" + text, "new", version="v2", doc_hash="h2")
    a = [asked(old.hit(0, 94))]
    once = new.hit(1, 33)
    assert compare([item("old0")], a, [asked(once, once)]).both(f"{HIT}@5") == (1.0, 0.0)
    twice = compare([item("old0")], a, [asked(once, new.hit(33, 65))])
    assert twice.both(MRR) == (1.0, 0.5)  # 31 + 31 of 93


def test_a_renamed_document_is_found_by_its_text() -> None:
    """Without hashes, where full texts are known: the same text, or the one that has the quote."""
    old = OLD._replace(doc_hash=None)
    new = NEW._replace(doc="moved.md", doc_hash=None)
    a, b = [asked(old.hit(100, 200))], [asked(new.hit(100, 200))]
    same = compare([item("old100")], a, b, texts_a={"d.md": TEXT}, texts_b={"moved.md": TEXT})
    assert (same.levels, same.both(f"{HIT}@1")) == (("doc_span",), (1.0, 1.0))
    texts = {"moved.md": "New. " + TEXT, "other.md": "Other words."}
    edited = compare([item("old100")], a, b, texts_a={"d.md": TEXT}, texts_b=texts)
    assert (edited.levels, edited.both(f"{HIT}@1")) == (("quote",), (1.0, 1.0))
    assert edited.gold.items_b[0].places[0].doc == "moved.md"
    assert "`d.md` and `moved.md`" in edited.gold.notes[0]
    twice = {**texts, "copy.md": TEXT}
    unclear = compare([item("old100")], a, b, texts_a={"d.md": "Old. " + TEXT}, texts_b=twice)
    assert unclear.levels == ("doc",)


def test_a_document_that_a_side_does_not_know_may_be_any() -> None:
    """Without full texts; a note counts it."""
    new = NEW._replace(doc="moved.md", doc_hash="h2")
    found = compare([item("old100")], [asked(OLD.hit(100, 200))], [asked(new.hit(100, 200))])
    assert (found.levels, found.both(f"{HIT}@1")) == (("quote",), (1.0, 1.0))
    assert [found.gold.items_a[0].places[0].doc, found.gold.items_b[0].places[0].doc] == [
        "d.md", "",
    ]  # fmt: skip
    assert "1 expected text was looked for in any document" in found.gold.notes[0]


def test_a_deleted_passage() -> None:
    """With the full text it is known to be gone: the level does not work, and the document does.

    Without it the quote is sought, and not found: a miss.
    """
    text = TEXT[:100] + TEXT[200:]
    new = NEW._replace(text=text, doc_hash="h2")
    a, b = [asked(OLD.hit(100, 200))], [asked(new.hit(60, 160))]
    known = compare([item("old100")], a, b, texts_b={"d.md": text})
    assert (known.levels, known.both(f"{HIT}@5")) == (("doc",), (1.0, 1.0))
    assert "1 expected text was not in the documents of both runs" in known.gold.notes[0]
    unknown = compare([item("old100")], a, b)
    assert (unknown.levels, unknown.both(f"{HIT}@5")) == (("quote",), (1.0, 0.0))


@cases(
    ("text", "hashes", "level"),
    [
        (TEXT, ("h", "h"), "doc_span"),
        ("other", ("h", "h"), "doc_span"),  # equal hashes are enough
        (TEXT, ("h", "md5"), "doc_span"),  # hashes of two kinds, and the very same text
        (TEXT[:300] + " " * 300, ("h", "md5"), "quote"),
        (TEXT[:300] + " " * 300, (None, None), "doc_span"),  # nothing contradicts
        (TEXT[:300] + "!" * 300, (None, None), "quote"),
        (TEXT[:300], (None, None), "doc_span"),
        (TEXT[:300], ("h", None), "quote"),
        (TEXT, ("h", None), "doc_span"),
    ],
)
def test_full_texts_tell_whether_a_document_changed(
    text: str, hashes: tuple[str | None, str | None], level: MatchLevel
) -> None:
    """Texts put together from chunks have blanks where no chunk lies."""
    old, new = OLD._replace(doc_hash=hashes[0]), NEW._replace(doc_hash=hashes[1])
    a, b = [asked(old.hit(100, 200))], [asked(new.hit(100, 200))]
    found = compare([item("old100")], a, b, texts_a={"d.md": TEXT}, texts_b={"d.md": text})
    assert found.levels == (level,)


def test_two_documents_with_the_same_quote_are_told_apart() -> None:
    """The expected chunk is of d.md; the same words in e.md are another chunk."""
    other = Index("e.md", "A new beginning. " + TEXT, "e", version="v2", doc_hash="he")
    a = [asked(OLD.hit(100, 200))]
    b = [asked(other.hit(117, 217), EDITED.hit(117, 217), cites=["e117"])]
    found = compare([item("old100")], a, b)
    assert (found.levels, found.both(MRR), found.b.metrics[CITED].value) == (
        ("quote",), (1.0, 0.5), 0.0,
    )  # fmt: skip


def test_a_text_of_an_unknown_document_may_be_the_quote() -> None:
    """Hits that say nothing of their document are not known to be of another."""
    bare = EDITED._replace(kept=("text",))
    items = [replace(item("old100"), relevant_docs=("d.md", "e.md"))]
    b = [asked(bare.hit(117, 217)), asked(EDITED.hit(0, 50), qid="r")]
    found = compare(items, [asked(OLD.hit(100, 200))], b[:1])
    assert (found.levels, found.both(f"{HIT}@1")) == (("quote",), (1.0, 1.0))


# --- hits that name no document ---


def test_the_only_document_of_an_item_is_none_of_several_known_ones() -> None:
    """`x50` is looked for by its place, `y0` by its id, which a knows in another document.

    So a hit that names no document may be of either: its offsets prove nothing.
    """
    first, second = (Index(f"{name}.md", TEXT, name, version="v1") for name in "xy")
    bare = Index("", TEXT, "y", version="v2", kept=("spans", "text"))
    a = [asked(first.hit(50, 150), second.hit(0, 30))]
    b = [asked(bare.hit(0, 30), bare.hit(50, 150))]
    found = compare([item("x50", "y0")], a, b)
    assert found.levels == ("doc_span", "exact")
    assert found.both("retrieval.recall@5") == (1.0, 0.5)
    alone = compare([item("x50")], a, b)  # one document is known, and so that is meant
    assert (alone.levels, alone.both("retrieval.recall@5")) == (("doc_span",), (1.0, 1.0))


def test_documents_that_do_not_count_are_still_named() -> None:
    """b names no documents, so they count in neither run; gold still names two of them."""
    evidence = Anchor(doc="x.md", spans=(Span(0, 100),))
    gold = replace(item(anchors=[evidence]), relevant_docs=("y.md",))
    named = Index("x.md", TEXT, "x", kept=("doc", "spans"))
    bare = named._replace(kept=("spans",))
    found = compare([gold], [asked(named.hit(0, 100))], [asked(bare.hit(0, 100))])
    assert found.levels == ("exact",)
    assert found.both("retrieval.recall@5") == (1.0, 0.0)
    assert found.both("retrieval.recall_doc@5") == (None, None)


def test_an_item_that_stays_as_it_is_names_what_gold_names() -> None:
    """Where b knows an id of it does not show: the numbers are those of the run by itself."""
    evidence = Anchor(doc="x.md", spans=(Span(0, 100),))
    bare = Index("x.md", TEXT, "x", kept=("spans",))
    b = [asked(Hit("y0", doc="y.md"))]
    found = compare([item("y0", anchors=[evidence])], [asked(bare.hit(0, 100))], b)
    assert found.levels == ("exact", "exact")
    assert found.both("retrieval.recall@5") == (0.5, 0.5)


def test_equal_offsets_in_unnamed_documents_prove_no_equal_chunk() -> None:
    """Many documents begin with a chunk of the same size."""
    old = Index("", TEXT, "x", version="v1", kept=("spans",))
    new = old._replace(version="v2")
    found = compare([item("x0")], [asked(old.hit(0, 100))], [asked(new.hit(0, 100))])
    assert found.levels == ("none",)


# --- document, and nothing ---


def test_only_documents_are_carried() -> None:
    """Neither spans nor texts: any chunk of the document is a hit, on both sides."""
    old, new = (each._replace(kept=("doc",)) for each in (OLD, NEW))
    a = [asked(old.hit(100, 200), cites=["old100"])]
    found = compare([item("old100")], a, [asked(Hit("x", doc="e"), new.hit(0, 9), cites=["new0"])])
    assert (found.levels, found.gold.match) == (("doc",), "fallback_doc")
    assert (found.both(MRR), found.both(CITED)) == ((1.0, 0.5), (1.0, 1.0))
    assert found.b.metrics["retrieval.span_recall@5"].value is None


def test_a_guessed_document_is_no_hit() -> None:
    """A hit without a document may be taken for the item's only one elsewhere, not here."""
    a = KnownDocuments(Evidence(chunkers=("v1",)))
    b = KnownDocuments(Evidence(chunkers=("v2",)))
    found = match([item("d#1")], a, b)
    assert found.levels == (("doc",),)
    (effective,) = found.items_a
    scored = compare([effective], [asked(Hit("x"))], [asked(Hit("d#7"))])
    assert scored.both(f"{HIT}@5") == (0.0, 1.0)


def test_nothing_works() -> None:
    """Opaque ids of two chunkers: in b the piece may be anywhere, and a note counts it."""
    a = [asked(Hit("c1", chunker_version="v1"))]
    b = [asked(Hit("x7", chunker_version="v2"))]
    found = compare([item("c1")], a, b)
    assert (found.levels, found.gold.match) == (("none",), "none")
    assert "1 expected piece was not recognised" in found.gold.notes[0]
    (place_a,), (place_b,) = (each[0].places for each in (found.gold.items_a, found.gold.items_b))
    assert (place_a.doc, place_b.doc) == (NOWHERE, ANYWHERE)


def test_pieces_of_one_item_may_be_on_different_levels() -> None:
    """old100 is known to a; c9 is known to nobody, and its item names two documents."""
    items = [replace(item("old100", "c9"), relevant_docs=("d.md", "e.md"))]
    bare = NEW.hit(100, 200)
    found = compare(items, [asked(OLD.hit(100, 200))], [asked(bare)])
    assert (found.levels, found.gold.match) == (("doc_span", "none"), "mixed")
    assert found.both("retrieval.recall@5") == (0.5, 0.5)  # c9 may be anywhere


# --- anchors, grades, groups, documents ---

ANCHOR = Anchor(doc="d.md", spans=(Span(100, 200),), id="b1", section="S.1")


def test_anchors_are_exact_where_the_chunking_is() -> None:
    """And are the same place elsewhere, without their id."""
    a = [asked(OLD.hit(100, 200))]
    same = compare([item(anchors=[ANCHOR])], a, [asked(OLD.hit(300, 400))])
    assert (same.levels, same.gold.items_b[0].anchors) == (("exact",), (ANCHOR,))
    b = [asked(NEW.hit(300, 400, "b1"), NEW.hit(110, 190))]
    found = compare([item(anchors=[ANCHOR])], a, b)
    assert (found.levels, found.both(MRR)) == (("doc_span",), (1.0, 0.5))
    somewhere = replace(ANCHOR, id=f"{EFFECTIVE_PREFIX}b1", grain="chunk")
    assert found.gold.items_b[0].anchors == (somewhere,)


def test_an_anchor_with_a_quote_survives_an_edit() -> None:
    """Its own quote goes before the text of the chunk that it came from."""
    quoted = replace(ANCHOR, quote=TEXT[100:200])
    a, b = [asked(OLD.hit(100, 200))], [asked(EDITED.hit(117, 217))]
    found = compare([item(anchors=[quoted])], a, b)
    assert (found.levels, found.both(f"{HIT}@1")) == (("quote",), (1.0, 1.0))
    assert found.gold.items_b[0].anchors[0].section == "S.1"
    bare = compare([item(anchors=[ANCHOR])], a, b)
    assert (bare.levels, bare.both(f"{HIT}@1")) == (("doc",), (1.0, 1.0))
    known = compare([item(anchors=[ANCHOR])], [asked(OLD.hit(100, 200, "b1"))], b)
    assert known.levels == ("quote",)


def test_two_anchors_on_one_document_stay_two() -> None:
    """On the level of the document both are the same place, and yet two pieces."""
    places = [replace(ANCHOR, id=None), replace(ANCHOR, id=None, spans=(Span(300, 400),))]
    a, b = [asked(OLD.hit(100, 200))], [asked(EDITED.hit(0, 50))]
    found = compare([item(anchors=places)], a, b)
    assert found.levels == ("doc", "doc")
    assert found.b.metrics["retrieval.recall@5"].value == 1.0
    assert len(found.gold.items_b[0].anchors) == 2


def test_an_id_that_an_anchor_has_is_that_anchor() -> None:
    """One piece, as in scoring."""
    a, b = [asked(OLD.hit(100, 200))], [asked(NEW.hit(100, 200))]
    found = compare([item("b1", anchors=[ANCHOR])], a, b)
    assert (found.levels, found.both("retrieval.recall@5")) == (("doc_span",), (1.0, 1.0))


@pytest.mark.parametrize("level", [1, 2])
def test_grades_fall_back(level: int) -> None:
    """c1 has grade 2, c2 grade 1, c3 none: the level decides what counts, the grade the gain."""
    graded = replace(item(), grades={"c2": 1.0, "c1": 2.0, "c3": 0.0})
    a = [asked(OLD.hit(100, 200, "c1"), OLD.hit(200, 300, "c2"))]
    b = [asked(NEW.hit(200, 300), NEW.hit(100, 200))]
    found = compare([graded], a, b, options=Options(relevance_level=level))
    assert found.levels == ("doc_span", "doc_span")
    assert set(found.gold.items_b[0].grades) == {
        f"{EFFECTIVE_PREFIX}c1",
        f"{EFFECTIVE_PREFIX}c2",
        "c3",
    }
    assert found.both("retrieval.recall@1") == ((0.5, 0.5) if level == 1 else (1.0, 0.0))
    first, second = found.both("retrieval.ndcg@5")
    assert first == 1.0
    assert second == pytest.approx(0.8597, abs=1e-4)  # (1 + 2/log2 3) / (2 + 1/log2 3)


def test_a_grade_of_which_nothing_is_known_stays() -> None:
    """c9 is on no level: it may be found anywhere, and the ideal order has it."""
    graded = replace(item(), grades={"c1": 1.0, "c9": 3.0})
    kept = ("spans", "text")
    a = [asked(OLD._replace(kept=kept, doc_hash=None).hit(100, 200, "c1"))]
    b = [asked(NEW._replace(kept=kept, doc_hash=None).hit(100, 200))]
    found = compare([graded], a, b)
    assert found.levels == ("quote", "none")
    # 1 of 3 + 1 / log2 3
    assert found.both("retrieval.ndcg@5") == pytest.approx((0.2754, 0.2754), abs=1e-4)
    names = {f"{EFFECTIVE_PREFIX}c1", f"{EFFECTIVE_PREFIX}c9"}
    assert set(found.gold.items_a[0].grades) == names


def test_groups_fall_back() -> None:
    """(c1 or the anchor) and c2: b covers the anchor and not c2."""
    far = Anchor(doc="d.md", spans=(Span(400, 500),))
    grouped = replace(item(), groups=(("c1", far), ("c2",)))
    a = [asked(OLD.hit(100, 200, "c1"), OLD.hit(200, 300, "c2"))]
    found = compare([grouped], a, [asked(NEW.hit(390, 480))])
    assert found.levels == ("doc_span", "doc_span", "doc_span")
    assert found.both("retrieval.group_recall@5") == (1.0, 0.5)
    assert found.both("retrieval.recall@5") == pytest.approx((2 / 3, 1 / 3))


def test_a_group_of_which_nothing_is_known_stays() -> None:
    """The other one is satisfied."""
    grouped = replace(item(), groups=(("c1",), ("c8", "c9")), relevant_docs=("d.md", "e.md"))
    a, b = [asked(OLD.hit(100, 200, "c1"))], [asked(NEW.hit(100, 200))]
    found = compare([grouped], a, b)
    assert found.levels == ("doc_span", "none", "none")
    assert found.both("retrieval.group_recall@5") == (0.5, 0.5)


def test_places_of_gold_give_spans_to_ids() -> None:
    """`places` knows where c1 lies; nobody retrieved it."""
    placed = replace(item("c1"), places=(replace(ANCHOR, id="c1"),))
    a, b = [asked(OLD.hit(400, 500))], [asked(NEW.hit(100, 190))]
    found = compare([placed], a, b)
    assert (found.levels, found.both(f"{HIT}@1")) == (("doc_span",), (0.0, 1.0))
    assert found.b.metrics["retrieval.span_recall@5"].value == 0.9


def test_places_in_an_edited_document_are_left_out() -> None:
    """Their offsets are those of one version: span metrics have nothing to say on both sides."""
    placed = replace(item("c1"), places=(replace(ANCHOR, id="c1"),))
    a, b = [asked(OLD.hit(100, 200, "c1"))], [asked(EDITED.hit(117, 217))]
    found = compare([placed], a, b)
    assert (found.levels, found.both("retrieval.span_recall@5")) == (("quote",), (None, None))
    assert "1 place was left out" in found.gold.notes[0]


def test_a_cited_place_is_accurate_on_the_level_of_places() -> None:
    """The cited span of b is compared with the expected one."""
    b = asked(NEW.hit(100, 200))
    assert b.answer is not None
    cited = Citation("new100", doc="d.md", spans=(Span(100, 200),))
    answer = replace(b.answer, citations=("new100",), cited=(cited,))
    found = compare([item("old100")], [asked(OLD.hit(100, 200))], [replace(b, answer=answer)])
    assert found.b.metrics["citation.accuracy"].value == 1.0


@cases(
    ("docs_a", "docs_b", "known_alike"),
    [
        (("d",), ("d",), True),
        ((), (), True),
        (("d",), ("e",), False),
        (("e",), ("d",), False),
    ],
)
def test_expected_documents(
    docs_a: tuple[str, ...], docs_b: tuple[str, ...], known_alike: bool
) -> None:
    """By document and never exact; without documents of hits, if both know the name or neither."""
    items = [GoldItem(qid="q", relevant_docs=("d",))]
    a, b = (
        KnownDocuments(Evidence(docs={doc: DocFacts() for doc in docs}))
        for docs in (docs_a, docs_b)
    )
    found = match(items, a, b)
    assert (found.levels, found.items_b) == ((("doc",),), tuple(items))
    bare = KnownDocuments(b.evidence, {("q", None): 0})
    lost = match(items, a, bare)
    assert lost.levels == (("doc" if known_alike else "none",),)
    assert lost.items_a[0].relevant_docs == (("d",) if known_alike else None)


def test_an_expected_document_that_was_renamed() -> None:
    """Each side looks for its own name."""
    items = [GoldItem(qid="q", relevant_docs=("d.md", "e.md"))]
    new = NEW._replace(doc="moved.md")
    found = compare(items, [asked(OLD.hit(0, 50))], [asked(new.hit(0, 50))])
    assert found.levels == ("doc", "doc")
    assert found.both("retrieval.recall_doc@5") == (0.5, 0.5)
    assert found.gold.items_b[0].relevant_docs == ("moved.md", "e.md")


def test_anchors_with_one_id_stay_two() -> None:
    """Two places of one block, both on the level of the document."""
    places = [ANCHOR, replace(ANCHOR, spans=(Span(300, 400),))]
    found = compare([item(anchors=places)], [asked(OLD.hit(100, 200))], [asked(EDITED.hit(0, 50))])
    assert (found.levels, len({each.id for each in found.gold.items_b[0].anchors})) == (
        ("doc", "doc"), 2,
    )  # fmt: skip
