"""Texts that a corpus knows, on the way to the page: hits, citations and expected pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.cases import cases
from tests.support.corpora import CODE, FIRST, GUIDE, LAST, made

from ragauge.cli.store_options import temporary_store
from ragauge.compare import align, common_gold, compare
from ragauge.corpus.excerpts import Excerpts
from ragauge.model.drilldown import Drilldown, Expected, Passage
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.trace import Answer, Citation, Hit, Trace
from ragauge.report.drilldown import corpus_texts
from ragauge.report.drilldown.questions import details_of_comparison, details_of_run
from ragauge.spans import Span
from ragauge.store import runs as run_store

RED = "Äpfel are red. Bananas are not."  # the bytes 9 to 41
OTHER = "0" * 64


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return made(tmp_path)


def drilled(
    where: Path | None, gold: GoldItem, *traces: Trace, texts: Excerpts | None = None, **more: Any
) -> Drilldown:
    """The drill-down of one question, as `view --corpus` has it: the run was scored without."""
    if texts is None and where is not None:
        texts = Excerpts([where])
    with temporary_store() as store:
        given = {"profile": "all", "intervals": False, **more}
        scores = run_store.keep_run(store, [gold], traces, run_id="r", **given)
        with details_of_run(store, run_store.find_run(store, "r"), scores, texts) as details:
            (found,) = details
            return found


def item(*relevant: str, **more: Any) -> GoldItem:
    return GoldItem(qid="q", question="?", expect="answer", relevant=relevant, **more)


def hits(where: Path, gold: GoldItem, *found: Hit, **more: Any) -> tuple[Passage, ...]:
    return drilled(where, gold, Trace(qid="q", hits=found), **more).attempts[0].hits


def lit(found: Passage) -> list[str]:
    return [(found.text or "")[start:end] for start, end in found.highlights]


# --- hits


def test_a_hit_has_the_text_at_its_place_with_its_evidence_lit(corpus: Path) -> None:
    gold = item(anchors=(Anchor(doc="guide.md", spans=(Span(0, 15),)),))
    whole, apart, elsewhere = hits(
        corpus, gold,
        Hit("h", doc="guide.md", spans=(Span(9, 41),)),
        Hit("k", doc="guide.md", spans=(Span(0, 7), Span(9, 23))),
        Hit("n", doc="sub/notes.txt", spans=(Span(0, 8),)),
    )  # fmt: skip
    assert (whole.text, lit(whole)) == (RED, ["Äpfel"])
    assert (apart.text, lit(apart)) == ("# Guide … Äpfel are red", ["# Guide", "Äpfel"])
    assert (elsewhere.text, elsewhere.highlights) == ("Plain a.", ())


def test_a_block_is_known_by_its_id(corpus: Path) -> None:
    gold = item(anchors=(Anchor(doc="guide.md", spans=(Span(9, 15),)),))
    placed = Hit("n", doc="sub/notes.txt", spans=(Span(0, 8),))  # else the run is not evaluable
    (found, unknown, _) = hits(corpus, gold, Hit(FIRST), Hit("k7"), placed)
    assert found == Passage(
        id=FIRST, doc="guide.md", section="S.1", where="bytes 9-41", type="prose", text=RED,
        highlights=((0, 5),), marks=("document",),
    )  # fmt: skip
    assert unknown == Passage(id="k7")


def test_a_run_that_was_scored_with_the_corpus_says_where_its_blocks_lie(corpus: Path) -> None:
    (found,) = hits(corpus, item(FIRST), Hit(FIRST), corpus=str(corpus))
    assert (found.doc, found.where, found.text) == ("guide.md", "bytes 9-41", RED)
    assert (lit(found), found.marks) == ([RED], ("gold",))


def test_what_a_trace_says_is_shown_before_what_the_corpus_says(corpus: Path) -> None:
    (found,) = hits(
        corpus, item(FIRST), Hit(FIRST, doc="guide.md", spans=(Span(9, 41),), text="Apples.")
    )
    assert found.text == "Apples."


def test_without_a_corpus_there_is_no_text() -> None:
    trace = Trace(qid="q", hits=(Hit(FIRST, doc="guide.md", spans=(Span(9, 41),)),))
    (found,) = drilled(None, item(FIRST), trace).attempts[0].hits
    assert (found.text, found.highlights) == (None, ())


@pytest.mark.parametrize("span", [Span(10, 20), Span(9, 999), Span(300, 400), Span(0, 9, "token")])
def test_a_place_that_is_not_in_the_text_has_none(corpus: Path, span: Span) -> None:
    gold = item(anchors=(Anchor(doc="guide.md", spans=(Span(9, 15),)),))
    (found,) = hits(corpus, gold, Hit("h", doc="guide.md", spans=(span,)))
    assert (found.text, found.highlights) == (None, ())


# --- another text of the same name


def test_a_document_of_another_hash_has_no_text(corpus: Path) -> None:
    """What one hit tells of a document holds for all hits of it, in all traces of the run."""
    texts = Excerpts([corpus])
    placed: dict[str, Any] = {"doc": "guide.md", "spans": (Span(9, 41),)}
    note = Hit("n", doc="sub/notes.txt", spans=(Span(0, 8),))
    found = hits(
        corpus, item(FIRST), Hit("a", **placed, doc_hash=OTHER), Hit("b", **placed), Hit(CODE),
        note, texts=texts,
    )  # fmt: skip
    assert [each.text for each in found] == [None, None, None, "Plain a."]
    assert texts.foreign == {"guide.md"}


def test_a_list_of_chunks_may_tell_the_hash_too(corpus: Path, tmp_path: Path) -> None:
    chunks = tmp_path / "chunks.jsonl"
    row = '{"id": "c1", "doc": "guide.md", "start": 9, "end": 41, "doc_hash": "%s"}\n'
    chunks.write_text(row % OTHER)
    (found,) = hits(corpus, item("c1"), Hit("c1"), chunks=chunks)
    assert (found.where, found.text) == ("bytes 9-41", None)
    chunks.write_text(row.replace(', "doc_hash": "%s"', ""))
    (found,) = hits(corpus, item("c1"), Hit("c1"), chunks=chunks)
    assert (found.where, found.text) == ("bytes 9-41", RED)


def test_each_side_of_a_comparison_reads_the_version_that_it_knows(tmp_path: Path) -> None:
    later = GUIDE.replace("Äpfel", "Pears")  # one byte less
    corpora = [made(tmp_path), made(tmp_path, {"guide.md": later}, out="later")]
    gold = item(anchors=(Anchor(doc="guide.md", spans=(Span(9, 22),)),))
    with temporary_store() as store:
        for name, corpus in zip("ab", corpora, strict=True):
            run_store.keep_run(
                store, [gold], [Trace(qid="q", hits=(Hit(FIRST),))], run_id=name, profile="all",
                intervals=False, corpus=str(corpus),
            )  # fmt: skip
        a, b = (common_gold.StoredRun(store, run_store.find_run(store, name)) for name in "ab")
        aligned = align.align(a, b, detailed=True)
        (one, _), (other, _) = compare.describe_run(a), compare.describe_run(b)
        comparison = compare.compare(aligned, one, other)
        texts = Excerpts(corpora)
        with details_of_comparison(a, b, aligned, comparison, texts) as details:
            (found,) = details
    (before,), (after,) = found.attempts[0].hits, found.other[0].hits
    assert (before.text, after.text) == (RED, RED.replace("Äpfel", "Pears"))
    assert found.evidence == ()  # whose text of the two is meant cannot be told
    assert texts.foreign == set()


# --- citations


def test_a_citation_outside_the_hits_has_its_text(corpus: Path) -> None:
    gold = item(anchors=(Anchor(doc="guide.md", spans=(Span(9, 15),)),))
    found = drilled(corpus, gold, Trace(
        qid="q", hits=(Hit(LAST), Hit("n", doc="sub/notes.txt", spans=(Span(0, 8),))),
        answer=Answer(citations=("c", LAST, FIRST), cited=(
            Citation("c", doc="guide.md", spans=(Span(9, 23),)), Citation(LAST), Citation(FIRST),
        )),
    ))  # fmt: skip
    placed, shown, block = found.attempts[0].citations
    assert (placed.text, lit(placed)) == ("Äpfel are red", ["Äpfel"])
    assert (shown.text, found.attempts[0].hits[0].text) == (None, "Äpfel are red.")
    assert (block.text, block.where, block.section) == (RED, "bytes 9-41", "S.1")


# --- what is expected


def test_expected_pieces_that_were_missed_have_their_text(corpus: Path) -> None:
    gold = item(
        FIRST, LAST, CODE,
        anchors=(
            Anchor(doc="guide.md", spans=(Span(0, 7),)),
            Anchor(doc="guide.md", spans=(Span(9, 15),), quote="Äpfel"),
            Anchor(doc="gone.md", spans=(Span(0, 7),)),
        ),
    )  # fmt: skip
    found = drilled(corpus, gold, Trace(qid="q", hits=(Hit(LAST),)))
    assert found.expected[:4] == (
        Expected(name=FIRST, doc="guide.md", where="bytes 9-41"),
        Expected(name=LAST, doc="guide.md", where="bytes 73-88"),
        Expected(name=CODE, doc="guide.md", where="bytes 53-71"),
        Expected(name="guide.md#byte=0-7", doc="guide.md", where="bytes 0-7"),
    )
    # Of `LAST` a hit shows it, and the second place has a quote.
    assert [(each.id, each.text) for each in found.evidence] == [
        (FIRST, RED),
        (CODE, "```sh\nmake all\n```"),
        ("guide.md#byte=0-7", "# Guide"),
    ]
    assert {each.marks for each in found.evidence} == {("gold",)}


def test_an_id_that_only_hits_place_is_told_by_them() -> None:
    """Also by hits of other questions, for a question that missed it."""
    placed = Hit("k1", doc="d.md", spans=(Span(3, 9),), text="six by")
    gold = [item("k1"), GoldItem(qid="r", question="!", expect="answer", relevant=("k1", "k2"))]
    with temporary_store() as store:
        traces = [Trace(qid="q", hits=(placed,)), Trace(qid="r", hits=(Hit("x"),))]
        scores = run_store.keep_run(
            store, gold, traces, run_id="r", profile="all", intervals=False
        )  # fmt: skip
        run = run_store.find_run(store, "r")
        with details_of_run(store, run, scores) as details:
            one, other = details
    known = Expected(name="k1", doc="d.md", where="bytes 3-9")
    assert one.expected == (known,)
    assert one.evidence == ()
    assert other.expected == (known, Expected(name="k2"))
    assert [(each.id, each.text) for each in other.evidence] == [("k1", "six by")]


def test_a_run_that_was_just_stored_knows_it_too() -> None:
    """Who stores a run holds a record that does not have it."""
    from msgspec.structs import replace

    with temporary_store() as store:
        hit = Hit("k1", doc="d.md", spans=(Span(3, 9),))
        scores = run_store.keep_run(
            store, [item("k1")], [Trace(qid="q", hits=(hit,))], run_id="r", profile="all",
            intervals=False,
        )  # fmt: skip
        run = replace(run_store.find_run(store, "r"), evidence=b"")
        with details_of_run(store, run, scores) as details:
            (found,) = details
    assert found.expected == (Expected(name="k1", doc="d.md", where="bytes 3-9"),)


@cases(
    ("profile", "gold", "expects"),
    [
        ("canary", {"relevant": ("k1",)}, "answer"),  # by its evidence
        ("canary", {"anchor_section": "S.1"}, "answer"),
        ("canary", {}, None),
        ("canary", {"relevant": ("k1",), "expect": "refuse"}, "refuse"),
        ("all", {"relevant": ("k1",)}, None),
        ("all", {"expect": "answer"}, "answer"),
        ("smoke", {"relevant": ("k1",)}, "refuse"),  # it has no label but `answerable`
        ("ship", {"relevant": ("k1",)}, None),
    ],
)
def test_what_is_expected_is_what_the_profile_scores(
    profile: str, gold: dict[str, Any], expects: str | None
) -> None:
    question = GoldItem(qid="q", question="?", **gold)
    trace = Trace(qid="q", question="?", hits=(Hit("k1"),), answer=Answer(text="Yes."))
    assert drilled(None, question, trace, profile=profile).expect == expects


# --- long ones


def test_very_long_passages_are_cut_around_their_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page cuts too, but it would have to hold all of them first."""
    monkeypatch.setattr(corpus_texts, "MOST", 20)
    text = "a" * 100 + "TREASURE" + "b" * 100 + "\n"
    texts = Excerpts([made(tmp_path, {"long.txt": text})])
    gold = item(anchors=(Anchor(doc="long.txt", spans=(Span(100, 108),)),))
    (found,) = hits(
        tmp_path, gold, Hit("h", doc="long.txt", spans=(Span(0, 208),)), texts=texts
    )  # fmt: skip
    # 20 characters, 8 of them evidence: 6 on either side.
    assert found.text == "… aaaaaaTREASUREbbbbbb …"
    assert lit(found) == ["TREASURE"]
    assert texts.cut == {("long.txt", (Span(0, 208),))}
