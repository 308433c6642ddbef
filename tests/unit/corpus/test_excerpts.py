"""What stands at a place of a corpus: spans of any unit, blocks, and what must not be shown."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragauge.corpus import excerpts
from ragauge.corpus.excerpts import Excerpt, Excerpts
from ragauge.errors import RagaugeError
from ragauge.scoring.highlights import spaced
from ragauge.spans import Span
from tests.support.cases import cases
from tests.support.corpora import CODE, FIRST, GUIDE, NOTE, NOTES, made

HASH = sha256(GUIDE.encode()).hexdigest()
G = ("guide.md",)


def read(texts: Excerpts, *spans: Span, hashes: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    excerpt = texts.find("any", G, spans, hashes)
    return None if excerpt is None else excerpt.parts


# --- places


@cases(
    ("spans", "parts"),
    [
        ((Span(0, 7),), ("# Guide",)),
        ((Span(9, 15),), ("Äpfel",)),  # Ä has the bytes 9 and 10
        ((Span(9, 23), Span(0, 7)), ("Äpfel are red", "# Guide")),  # as they are listed
        ((Span(9, 14, "char"),), ("Äpfel",)),
        ((Span(3, 4, "line"),), ("Äpfel are red. Bananas are not.\n",)),
        ((Span(5, 5),), ("",)),
        ((Span(88, 89),), ("\n",)),  # the last byte
    ],
)
def test_spans_are_read_in_their_order(
    tmp_path: Path, spans: tuple[Span, ...], parts: tuple[str, ...]
) -> None:
    texts = Excerpts([made(tmp_path)])
    assert texts.find("any", G, spans, ()) == Excerpt(parts, "guide.md", spans)
    assert (texts.foreign, texts.lost) == (set(), set())


@cases(
    "span",
    [
        Span(10, 15),  # inside Ä
        Span(0, 10),
        Span(80, 90),  # one byte too far
        Span(200, 300),
        Span(7, 3),
        Span(-5, 3),
        Span(0, 99, "char"),
        Span(1, 99, "line"),
        Span(0, 3, "token"),
        Span(1, 2, "page"),
    ],
)
def test_a_place_that_is_not_there_has_no_text_and_is_counted(tmp_path: Path, span: Span) -> None:
    """Also if only one of several spans is not there, and once however often it is asked for."""
    texts = Excerpts([made(tmp_path)])
    assert read(texts, span) is read(texts, span) is None
    assert read(texts, Span(0, 7), span) is None
    assert texts.lost == {("guide.md", (span,)), ("guide.md", (Span(0, 7), span))}


def test_blocks_are_known_by_name_where_there_are_no_spans(tmp_path: Path) -> None:
    texts = Excerpts([made(tmp_path)])
    assert texts.find(FIRST, (), (), ()) == Excerpt(
        ("Äpfel are red. Bananas are not.",), "guide.md", (Span(9, 41),), "S.1", "prose"
    )
    assert texts.find(CODE, G, (), ()) == Excerpt(
        ("```sh\nmake all\n```",), "guide.md", (Span(53, 71),), "S.1.1", "code"
    )
    assert texts.find("guide.md#S.9.p.Bk001", G, (), ()) is None
    assert texts.find(FIRST, G, (Span(0, 7),), ()) == Excerpt(("# Guide",), *G, (Span(0, 7),))


def test_a_document_may_have_a_second_name_or_be_unknown(tmp_path: Path) -> None:
    texts = Excerpts([made(tmp_path)])
    excerpt = texts.find("any", ("doc-7", "sub/notes.txt"), (Span(0, 8),), ())
    assert excerpt == Excerpt(("Plain a.",), "sub/notes.txt", (Span(0, 8),))
    assert texts.find("any", ("doc-7",), (Span(0, 8),), ()) is None
    assert texts.find("any", (), (Span(0, 8),), ()) is None
    assert (texts.foreign, texts.lost) == (set(), set())


# --- which text it is


@pytest.mark.parametrize("given", [HASH, HASH[:8], HASH.upper(), f"sha256:{HASH}"])
def test_a_text_of_the_known_hash_is_shown(tmp_path: Path, given: str) -> None:
    assert read(Excerpts([made(tmp_path)]), Span(0, 7), hashes=(given,)) == ("# Guide",)


@pytest.mark.parametrize("given", [("0" * 64,), (HASH[:7],), (HASH, "0" * 64), ("",)])
def test_a_text_of_another_hash_is_not_shown(tmp_path: Path, given: tuple[str, ...]) -> None:
    """Nor one of which two hashes are known: nobody can tell which of them is meant."""
    texts = Excerpts([made(tmp_path)])
    assert read(texts, Span(0, 7), hashes=given) is None
    assert texts.find(FIRST, (), (), given) is None
    assert texts.foreign == {"guide.md"}
    assert read(texts, Span(0, 7)) == ("# Guide",)


def test_of_two_versions_the_one_with_the_hash_is_read(tmp_path: Path) -> None:
    """Without a hash the first; blocks lie where each version has them."""
    later = GUIDE.replace("# Guide", "# The new guide")
    both = [made(tmp_path), made(tmp_path, {"guide.md": later}, out="later")]
    texts = Excerpts(both)
    assert read(texts, Span(0, 7)) == ("# Guide",)
    assert read(texts, Span(0, 15), hashes=(sha256(later.encode()).hexdigest(),)) == (
        "# The new guide",
    )
    excerpt = texts.find(FIRST, (), (), (sha256(later.encode()).hexdigest(),))
    assert excerpt is not None
    assert (excerpt.parts, excerpt.spans) == (("Äpfel are red. Bananas are not.",), (Span(17, 49),))
    assert texts.find(NOTE, (), (), ()) is not None  # which only the first has
    assert texts.foreign == set()


def test_a_folder_that_is_no_corpus_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as raised:
        Excerpts([tmp_path / "nothing"])
    assert raised.value.code == "file-not-found"
    folder = made(tmp_path)
    text = folder / "text" / "guide.md.txt"
    text.write_bytes(text.read_bytes().replace(b"Guide", b"Other"))
    texts = Excerpts([folder])
    with pytest.raises(RagaugeError) as raised:
        read(texts, Span(0, 7))
    assert raised.value.code == "bad-corpus"
    (folder / "documents.jsonl").write_text(json.dumps({"doc": "x"}))
    with pytest.raises(RagaugeError) as raised:
        Excerpts([folder])
    assert raised.value.code == "bad-corpus"


def test_blocks_are_read_only_if_somebody_asks_for_one(tmp_path: Path) -> None:
    folder = made(tmp_path)
    (folder / "blocks.jsonl").write_text("{}\n")
    texts = Excerpts([folder])
    assert read(texts, Span(0, 7)) == ("# Guide",)
    with pytest.raises(RagaugeError):
        texts.find(FIRST, (), (), ())


@pytest.mark.parametrize("kept", [0, 10, 1 << 24])
def test_what_is_kept_does_not_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(excerpts, "_CACHED_CHARACTERS", kept)
    texts = Excerpts([made(tmp_path)])
    for _ in range(3):
        assert read(texts, Span(0, 7)) == ("# Guide",)
        assert read(texts, Span(9, 15)) == ("Äpfel",)
        assert read(texts, Span(0, 10)) is None


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Excerpts:
    return Excerpts([made(tmp_path_factory.mktemp("guide"), {"guide.md": GUIDE, "n.txt": NOTES})])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spans=st.lists(st.tuples(st.integers(-3, 95), st.integers(-3, 95)), min_size=1, max_size=4))
def test_whatever_is_shown_is_what_stands_there(
    guide: Excerpts, spans: list[tuple[int, int]]
) -> None:
    data = GUIDE.encode()

    def is_edge(offset: int) -> bool:
        return offset == len(data) or data[offset] & 0xC0 != 0x80

    good = all(0 <= a <= b <= len(data) and is_edge(a) and is_edge(b) for a, b in spans)
    excerpt = read(guide, *(Span(a, b) for a, b in spans))
    # An empty span inside a character has nothing to cut.
    if excerpt is None:
        assert not good
    else:
        assert tuple(part.encode() for part in excerpt) == tuple(data[a:b] for a, b in spans)


# --- parts with gaps between them


@cases(
    ("lit", "sizes", "expected"),
    [
        (((0, 4),), [4], ((0, 4),)),
        (((2, 6),), [4, 4], ((2, 4), (7, 9))),  # cut at the gap of 3, which it does not cover
        (((0, 4), (4, 8)), [4, 4], ((0, 4), (7, 11))),
        (((5, 6),), [4, 0, 4], ((11, 12),)),  # behind two gaps
        ((), [4, 4], ()),
    ],
)
def test_highlights_move_with_their_parts(
    lit: tuple[tuple[int, int], ...], sizes: list[int], expected: tuple[tuple[int, int], ...]
) -> None:
    assert spaced(lit, sizes, 3) == expected


@given(
    parts=st.lists(st.text(max_size=6), min_size=1, max_size=4),
    lit=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=3),
)
def test_the_same_characters_are_lit_with_gaps_and_without(
    parts: list[str], lit: list[tuple[int, int]]
) -> None:
    text = "".join(parts)
    inside = [(a, min(b, len(text))) for a, b in lit if a < min(b, len(text))]
    lighted = "".join(
        letter for at, letter in enumerate(text) if any(a <= at < b for a, b in inside)
    )  # fmt: skip
    moved = spaced(inside, [len(part) for part in parts], 3)
    joined = " … ".join(parts)
    places = {at for a, b in moved for at in range(a, b)}
    assert "".join(joined[at] for at in sorted(places)) == lighted
