"""`corpus chunk` cuts a corpus by size, section or block, and loses no byte of a block."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge.corpus.chunk_list import load_chunks
from ragauge.corpus.chunking import ChunkPolicy, CutChunk, cut_document, length_of
from ragauge.corpus.lookup import Lookup
from ragauge.files.open import opened
from ragauge.ids import doc_of, parts_of
from ragauge.spans import Span, merged, size
from ragauge.text import text_hash
from tests.support.cases import cases
from tests.support.command import Folder, Row
from tests.support.corpora import CODE, FIRST, LAST, looked_up, made
from tests.support.effort import examples


def cut(lookup: Lookup, doc: str = "a.txt", **policy: Any) -> list[CutChunk]:
    return list(cut_document(lookup, lookup.document(doc), ChunkPolicy(**policy)))


def texts(tmp_path: Path, text: str, **policy: Any) -> list[str]:
    """The chunks of a plain text."""
    return [chunk.text for chunk in cut(looked_up(tmp_path, {"a.txt": text}), **policy)]


def rows(folder: Folder, *options: str) -> list[Row]:
    done = folder.run("corpus", "chunk", "corpus", "-o", "c.jsonl", *options)
    assert (done.exit_code, done.err) == (0, ""), done
    return [json.loads(line) for line in (folder.path / "c.jsonl").read_text().splitlines()]


# --- by size ---


def test_hard_cuts_are_exact(tmp_path: Path) -> None:
    text = "abcdefghijklmnopqrstuvw"
    assert texts(tmp_path, text, size=10, hard=True) == ["abcdefghij", "klmnopqrst", "uvw"]


def test_the_next_chunk_repeats_the_overlap(tmp_path: Path) -> None:
    """The last one ends with the text: there is none that is overlap alone."""
    assert texts(tmp_path, "abcdefghijklmn", size=8, overlap=3, hard=True) == [
        "abcdefgh", "fghijklm", "klmn"
    ]  # fmt: skip
    assert texts(tmp_path, "abcdefghijklm", size=8, overlap=3, hard=True) == [
        "abcdefgh", "fghijklm"
    ]  # fmt: skip


@cases(
    ("text", "first"),
    [
        # Of 20 characters the last 3 are looked at: cuts at 17 to 20.
        ("aaaa bbbb cccc. dd eeeeeeee", "aaaa bbbb cccc. dd "),  # the stop is too early
        ("aaaa bbbb cccccc d. eeeeeeee", "aaaa bbbb cccccc d. "),  # a stop, and its blank
        ("aaaa bbbb cccccc. d e f g", "aaaa bbbb cccccc. "),  # a stop before a later blank
        ('aaaa bbbb ccccc!" d e f g', 'aaaa bbbb ccccc!" '),
        ("aaaa bbbb cccccc\n\nd e f g", "aaaa bbbb cccccc\n\n"),  # a paragraph ends
        ("aaaa bbbb ccccccc.ddd e f g", "aaaa bbbb ccccccc.dd"),  # no stop: no blank behind it
        ("aaaa bbbb cccccccccc eeee", "aaaa bbbb cccccccccc"),  # the word ends with the size
        ("aaaa bbbb cccccccc eeeeee", "aaaa bbbb cccccccc "),
        ("aaaa bbbb ccccccccccccccc", "aaaa bbbb cccccccccc"),  # no place: cut exactly
        ("文文文文文文文文文文文文文文文文文。文文文文文", "文文文文文文文文文文文文文文文文文。"),
    ],
)
def test_a_cut_goes_to_a_sentence_or_word_end_near_the_size(
    tmp_path: Path, text: str, first: str
) -> None:
    assert texts(tmp_path, text, size=20)[0] == first


def test_a_soft_cut_never_costs_progress(tmp_path: Path) -> None:
    """With 19 of 20 repeated, a cut before the size would begin where the last chunk began."""
    chunk_texts = texts(tmp_path, "aaaa bbbb cccccccc eeeeee", size=20, overlap=19)
    assert chunk_texts == [
        "aaaa bbbb cccccccc e", "aaa bbbb cccccccc ee", "aa bbbb cccccccc eee",
        "a bbbb cccccccc eeee", " bbbb cccccccc eeeee", "bbbb cccccccc eeeeee",
    ]  # fmt: skip


def test_words_are_counted_with_the_white_space_behind_them(tmp_path: Path) -> None:
    text = "  one two\n\nthree four five six seven "
    assert texts(tmp_path, text, size=3, overlap=1, unit="word") == [
        "  one two\n\nthree ", "three four five ", "five six seven "
    ]  # fmt: skip


def test_words_end_with_a_sentence_where_one_ends_near(tmp_path: Path) -> None:
    """Of 7 words the last one may go: 7 * 15 % is 1."""
    text = "a b c d e f. g h i j"
    assert texts(tmp_path, text, size=7, unit="word") == ["a b c d e f. ", "g h i j"]
    assert texts(tmp_path, text, size=7, unit="word", hard=True) == ["a b c d e f. g ", "h i j"]
    assert texts(tmp_path, "a b c d e. f g h", size=7, unit="word") == ["a b c d e. f g ", "h"]


def test_words_are_never_cut(tmp_path: Path) -> None:
    text = "a b c d e f g。x h i"
    assert texts(tmp_path, text, size=7, unit="word") == ["a b c d e f g。x ", "h i"]


def test_bytes_never_cut_a_character(tmp_path: Path) -> None:
    """ä has two bytes, the face four: a chunk is shorter than asked, the overlap longer."""
    assert texts(tmp_path, "aäaäa", size=4, unit="byte", hard=True) == ["aäa", "äa"]
    assert texts(tmp_path, "aaaäaaa", size=5, overlap=1, unit="byte", hard=True) == [
        "aaaä", "äaaa"
    ]  # fmt: skip
    assert texts(tmp_path, "🙂🙂", size=3, overlap=2, unit="byte", hard=True) == ["🙂", "🙂"]


def test_offsets_are_bytes_whatever_is_counted(tmp_path: Path) -> None:
    lookup = looked_up(tmp_path, {"a.txt": "ääääbbbb"})
    extents = [(chunk.start, chunk.end) for chunk in cut(lookup, size=3, hard=True)]
    assert extents == [(0, 6), (6, 10), (10, 12)]  # äää, äbb, bb


def test_white_space_alone_is_no_chunk(tmp_path: Path) -> None:
    assert texts(tmp_path, "aaaa\n\n\n\n\n\n\n\nbbbb\n", size=4, hard=True) == ["aaaa", "bbbb"]


def test_white_space_in_a_block_is_a_chunk(tmp_path: Path) -> None:
    """Every byte of a block is kept, blanks in code as well."""
    lookup = looked_up(tmp_path, {"a.md": "```\na\n\n\n\nb\n```\n"})
    chunks = cut(lookup, "a.md", size=2, hard=True)
    assert "\n\n" in [chunk.text for chunk in chunks]


# --- by section and block ---


def test_a_section_is_its_own_body(tmp_path: Path) -> None:
    chunks = cut(looked_up(tmp_path), "guide.md", by="section")
    assert [(chunk.id, chunk.section, chunk.type) for chunk in chunks] == [
        ("guide.md#9-41", "S.1", "prose"),
        ("guide.md#53-88", "S.1.1", "code"),  # 18 of code, 15 of prose
    ]


def test_white_space_of_a_block_is_in_its_section(tmp_path: Path) -> None:
    corpus = looked_up(tmp_path).corpus
    wide = tuple(
        replace(block, span=(8, 42)) if block.id == FIRST else block for block in corpus.blocks
    )
    chunks = cut(Lookup(replace(corpus, blocks=wide)), "guide.md", by="section")
    assert (chunks[0].start, chunks[0].end) == (8, 42)


def test_a_section_without_text_has_no_chunk(tmp_path: Path) -> None:
    lookup = looked_up(tmp_path, {"a.md": "# A\n\n## B\n\ntext\n"})
    assert [chunk.section for chunk in cut(lookup, "a.md", by="section")] == ["S.1.1"]


def test_a_large_section_is_cut(tmp_path: Path) -> None:
    chunks = cut(looked_up(tmp_path), "guide.md", by="section", size=20, overlap=2, hard=True)
    assert [(chunk.start, chunk.end) for chunk in chunks] == [
        (9, 30), (28, 41),  # 31 characters: 20, then from the 18th
        (53, 73), (71, 88),  # 34 characters, the second Ä in the second
    ]  # fmt: skip
    assert [chunk.text for chunk in chunks][2:] == [
        "```sh\nmake all\n```\n\n",
        "\n\nÄpfel are red.",
    ]


def test_a_block_keeps_its_id(tmp_path: Path) -> None:
    chunks = cut(looked_up(tmp_path), "guide.md", by="block")
    assert [(chunk.id, chunk.section, chunk.type) for chunk in chunks] == [
        (FIRST, "S.1", "prose"), (CODE, "S.1.1", "code"), (LAST, "S.1.1", "prose")
    ]  # fmt: skip


@cases(
    ("merge_to", "unit", "ids"),
    [
        (33, "char", [FIRST, CODE, LAST]),  # 18 + 2 + 14 is 34
        (34, "char", [FIRST, "guide.md#53-88"]),
        (34, "byte", [FIRST, CODE, LAST]),  # Ä has two
        (35, "byte", [FIRST, "guide.md#53-88"]),
        (6, "word", [FIRST, CODE, LAST]),  # ```sh make all ``` is 4, and 3 more
        (7, "word", [FIRST, "guide.md#53-88"]),
        (10_000, "char", [FIRST, "guide.md#53-88"]),  # never over the end of a section
    ],
)
def test_blocks_of_a_section_are_joined_as_far_as_they_fit(
    tmp_path: Path, merge_to: int, unit: str, ids: list[str]
) -> None:
    chunks = cut(looked_up(tmp_path), "guide.md", by="block", merge_to=merge_to, unit=unit)
    assert [chunk.id for chunk in chunks] == ids


def test_a_large_block_is_cut_and_its_parts_have_ids_of_their_own(tmp_path: Path) -> None:
    chunks = cut(looked_up(tmp_path), "guide.md", by="block", size=20)
    assert [chunk.id for chunk in chunks] == ["guide.md#9-30", "guide.md#30-41", CODE, LAST]


# --- what holds for every chunking ---

TEXTS = st.lists(
    st.sampled_from(
        ["# H\n", "## I\n", "word ", "two words. ", "ä", "🙂🙂 ", "\n\n", "\n", "    code\n",
         "```\n", "| a | b |\n|---|---|\n| c | d |\n", "。", "x" * 30, "- item\n", "\t", "\r\n"]
    ),
    max_size=40,
).map("".join)  # fmt: skip


@st.composite
def policies(draw: st.DrawFn) -> ChunkPolicy:
    by = draw(st.sampled_from(["size", "section", "block"]))
    limit = draw(st.integers(1, 60))
    size = limit if by == "size" or draw(st.booleans()) else None
    return ChunkPolicy(
        by=by,  # type: ignore[arg-type]
        size=size,
        overlap=draw(st.integers(0, limit - 1)) if size is not None else 0,
        unit=draw(st.sampled_from(["char", "word", "byte"])),
        hard=size is not None and draw(st.booleans()),
        merge_to=draw(st.none() | st.integers(1, 80)) if by == "block" else None,
    )


@given(TEXTS, policies())
@examples(50)
def test_every_byte_of_every_block_is_in_a_chunk(
    tmp_path_factory: pytest.TempPathFactory, text: str, policy: ChunkPolicy
) -> None:
    lookup = looked_up(tmp_path_factory.mktemp("cut"), {"a.md": f"x\n\n{text}"})
    raw = lookup.text("a.md")
    chunks = list(cut_document(lookup, lookup.document("a.md"), policy))
    starts = [(chunk.start, chunk.end) for chunk in chunks]
    assert starts == sorted(starts)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    union = merged(starts)
    for block in lookup.blocks_by_doc["a.md"]:
        held = merged([*union, block.span])
        assert size(held) == size(union), (block, starts)
    for chunk in chunks:
        assert raw[chunk.start : chunk.end].decode() == chunk.text
        assert chunk.start < chunk.end


@given(TEXTS, policies())
@examples(50)
def test_sizes_and_overlaps_are_as_asked(
    tmp_path_factory: pytest.TempPathFactory, text: str, policy: ChunkPolicy
) -> None:
    lookup = looked_up(tmp_path_factory.mktemp("cut"), {"a.txt": f"x{text}"})
    raw = lookup.text("a.txt")
    chunks = list(cut_document(lookup, lookup.document("a.txt"), policy))
    unit, limit = policy.unit, policy.size
    if limit is None:
        return
    for chunk in chunks:
        one_character = len(chunk.text) == 1 and unit == "byte"
        assert length_of(chunk.text.encode(), unit) <= limit or one_character
    if policy.by != "size":
        return
    for one, other in pairwise(chunks):
        between = length_of(raw[other.start : one.end], unit) if other.start <= one.end else None
        if between is None:
            continue  # white space was left out between them
        if unit == "byte":
            assert policy.overlap <= between < policy.overlap + 4 or other.start - one.start <= 4
        else:
            assert between == policy.overlap
        if policy.hard and unit == "char":
            assert len(one.text) == limit


# --- the command ---


def test_rows_say_what_a_list_of_chunks_may_say(folder: Folder) -> None:
    corpus = made(folder.path)
    first, *_ = rows(folder, "--by", "section", "--text")
    lookup = looked_up(folder.path)
    assert first == {
        "id": "guide.md#9-41",
        "doc": "guide.md",
        "start": 9,
        "end": 41,
        "section": "S.1",
        "type": "prose",
        "text": "Äpfel are red. Bananas are not.",
        "text_hash": text_hash("Äpfel are red. Bananas are not."),
        "doc_hash": lookup.document("guide.md").hash,
        "chunker_version": "ragauge.chunk/1",
        "policy_hash": ChunkPolicy(by="section").hash,
    }
    assert corpus.exists()
    with opened(folder.path / "c.jsonl") as source:
        listed = load_chunks(source)
    assert listed["guide.md#9-41"].spans == (Span(9, 41),)
    assert "text" not in rows(folder, "--by", "section")[0]


def test_documents_come_in_order_and_the_summary_counts(folder: Folder) -> None:
    made(folder.path)
    done = folder.run("corpus", "chunk", "corpus", "-o", "c.jsonl", "--by", "section")
    assert done.out.splitlines() == [
        f"wrote c.jsonl, policy {ChunkPolicy(by='section').hash}",
        "chunks     3 of 2 documents",
        "length     18 to 34 chars, half of them up to 31",
        "left out   23 bytes: headings and white space",  # 108 - 32 - 35 - 18
    ]
    assert [row["doc"] for row in rows(folder)] == ["guide.md", "sub/notes.txt"]


def test_an_id_of_bytes_claims_nothing_by_its_grammar() -> None:
    """Section and type come from the list; a number behind the last # would be a paragraph."""
    assert parts_of("guide.md#9-41") == (None, None, None)
    assert doc_of("a|r=1|s=2|p=3|b=4#9-41") is None
    assert doc_of("guide.md#9") == "guide.md"


def test_the_policy_hash_tells_settings_apart() -> None:
    settings_ = [
        ChunkPolicy(size=100), ChunkPolicy(size=101), ChunkPolicy(size=100, overlap=1),
        ChunkPolicy(size=100, hard=True), ChunkPolicy(size=100, unit="byte"),
        ChunkPolicy(by="section", size=100), ChunkPolicy(by="block", size=100),
        ChunkPolicy(by="block", size=100, merge_to=5), ChunkPolicy(by="section"),
    ]  # fmt: skip
    assert len({policy.hash for policy in settings_}) == len(settings_)
    assert ChunkPolicy(size=100).hash == ChunkPolicy(size=100, overlap=0).hash


def test_the_same_corpus_and_settings_give_the_same_bytes(folder: Folder) -> None:
    made(folder.path)
    command = [sys.executable, "-m", "ragauge", "corpus", "chunk", "corpus", "--size", "20", "-o"]
    for name, number in (("a", "1"), ("b", "2")):
        subprocess.run([*command, name], check=True, env={"PYTHONHASHSEED": number})
    assert (folder.path / "a").read_bytes() == (folder.path / "b").read_bytes()


@cases(
    ("options", "said"),
    [
        (("--by", "section", "--size", "5"), "--size has no meaning with --by section"),
        (("--max-size", "5"), "--max-size has no meaning with --by size"),
        (("--merge-to", "5"), "--merge-to has no meaning with --by size"),
        (("--by", "section", "--merge-to", "5"), "--merge-to has no meaning with --by section"),
        (("--by", "block", "--overlap", "5"), "--overlap needs --max-size with --by block"),
        (("--by", "section", "--hard"), "--hard needs --max-size with --by section"),
        (("--size", "5", "--overlap", "5"), "--overlap must be less than the size: 5 of 5"),
        (("--size", "0"), "--size"),
    ],
)
def test_settings_without_effect_are_refused(
    folder: Folder, options: tuple[str, ...], said: str
) -> None:
    made(folder.path)
    done = folder.run("corpus", "chunk", "corpus", "-o", "c.jsonl", *options)
    assert done.exit_code == 2
    assert said in done.err
    assert not (folder.path / "c.jsonl").exists()


def test_a_corpus_without_text_is_nothing_to_cut(folder: Folder) -> None:
    made(folder.path, {"a.txt": " \n\n"})
    done = folder.run("corpus", "chunk", "corpus", "-o", "c.jsonl")
    assert (done.exit_code, done.codes) == (5, {"nothing-measured"})
    assert not (folder.path / "c.jsonl").exists()


def test_a_document_without_a_chunk_is_told(folder: Folder) -> None:
    made(folder.path, {"a.txt": " \n\n", "b.txt": "text"})
    done = folder.run("corpus", "chunk", "corpus", "-o", "c.jsonl")
    assert "chunks     1 of 1 document\n" in done.out
    assert "left out   3 bytes: white space\n" in done.out
    assert "empty      1 document without a chunk\n" in done.out


def test_a_damaged_corpus_is_not_cut(folder: Folder) -> None:
    corpus = made(folder.path)
    (corpus / "text" / "guide.md.txt").write_text("other")
    done = folder.run("corpus", "chunk", "corpus", "-o", "c.jsonl")
    assert done.exit_code == 3
    assert "the text is not the one that was built" in done.err
    assert not (folder.path / "c.jsonl").exists()


def test_a_folder_that_is_no_corpus_is_refused(folder: Folder) -> None:
    assert folder.run("corpus", "chunk", "gone", "-o", "c.jsonl").exit_code == 2
