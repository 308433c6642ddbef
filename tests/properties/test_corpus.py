"""What holds for the corpus of any document: whole characters, one section a block, stable ids."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from ragauge import ids
from ragauge.corpus.blocks import build_blocks, reading_order
from ragauge.corpus.build import build
from ragauge.corpus.parsers import markdown, text
from ragauge.corpus.section_tree import build_sections, check_parsed
from ragauge.model.corpus import Block, Parsed, Section
from tests.support.effort import examples

# Bits of markup that meet in any order, with every kind of line end, also where none is meant.
BITS = st.sampled_from(
    [
        "# ", "## ", "#### ", "###### ", "#", "\n", "\n\n", "\r\n", "\r", "===\n", "---\n", "- ",
        "  - ", "1. ", "> ", "```\n", "~~~ py\n", "    ", "\t", "| a | b |\n", "|---|---|\n",
        "![i](j)", "![", "[a]: b\n", "<div>", "</div>", "<figure>", "<!--", "-->", "*", "_", "`",
        "Figure 1: ", "Table 2", "a", "word. Next", "ä", "日本。", "😀", "\u2028", "\x0b", "\x85",
        "\0", "é", " ", "title: x\n", "...\n", "\\", "&amp;", "\ufeff",
    ]
)  # fmt: skip
SOURCES = st.lists(BITS, max_size=40).map("".join)

# Blocks that stay what they are whatever stands before and behind them.
BLOCK = st.sampled_from(
    ["A word. And more.", "- a\n- b", "```py\n# x\n```", "| a |\n|---|\n| b |", "![i](j)",
     "Figure 1: i", "> q", "<div>x</div>", "***", "    code", "[r]: s"]
)  # fmt: skip
BODY = st.lists(BLOCK, max_size=5)
SECTION = st.tuples(st.integers(1, 6), BODY)


def made(source: bytes) -> tuple[Parsed, tuple[Section, ...], tuple[Block, ...]]:
    parsed = markdown.parse(source)
    sections = build_sections("d.md", parsed)
    return parsed, sections, build_blocks("d.md", parsed, sections)


def rendered(preamble: list[str], sections: list[tuple[int, list[str]]]) -> bytes:
    parts = list(preamble)
    for level, body in sections:
        parts += [f"{'#' * level} title", *body]
    return "".join(f"{part}\n\n" for part in parts).encode()


def by_section(source: bytes) -> dict[str, list[tuple[str, str]]]:
    _, sections, found = made(source)
    grouped: dict[str, list[tuple[str, str]]] = {section.id: [] for section in sections}
    for block in found:
        grouped[block.section].append((block.id, block.fingerprint))
    return grouped


@given(SOURCES)
@examples(100)
def test_spans_are_whole_characters_in_order(source: str) -> None:
    for parse in (markdown.parse, text.parse):
        parsed = parse(source.encode())
        assert parsed.text == source.encode().removeprefix(b"\xef\xbb\xbf")
        check_parsed(parsed)
        at = 0
        for start, end in sorted(
            [piece.span for piece in parsed.pieces] + [each.span for each in parsed.headings]
        ):
            assert at <= start < end <= len(parsed.text)
            parsed.text[start:end].decode()
            parsed.text[:start].decode()
            at = end


@given(SOURCES)
@examples(100)
def test_every_byte_of_a_piece_is_in_one_section(source: str) -> None:
    parsed, sections, found = made(source.encode())
    for piece, block in zip(parsed.pieces, found, strict=True):
        holding = [
            each for each in sections if each.body[0] <= piece.span[0] < each.body[1]
        ]  # fmt: skip
        assert [section.id for section in holding] == [block.section]
        assert holding[0].body[0] <= piece.span[0] < piece.span[1] <= holding[0].body[1]


@given(SOURCES)
@examples(100)
def test_headings_and_bodies_cover_the_text_once(source: str) -> None:
    parsed, sections, _ = made(source.encode())
    parts = sorted(
        [each.body for each in sections] + [each.heading for each in sections if each.heading]
    )
    at = parts[0][0] if parts else len(parsed.text)
    assert not parsed.text[:at].strip()
    for start, end in parts:
        assert start == at
        at = end
    assert at == len(parsed.text)


@given(SOURCES)
@examples(100)
def test_the_tree_is_whole(source: str) -> None:
    parsed, sections, _ = made(source.encode())
    known = {section.id: section for section in sections}
    assert len(known) == len(sections)
    assert [*known] == sorted(known, key=ids.section_path)
    for section in sections:
        assert 1 <= section.depth == len(ids.section_path(section.id)) <= 6
        assert section.subtree[0] <= section.body[0] <= section.body[1] <= section.subtree[1]
        if section.parent is not None:
            above = known[section.parent]
            assert above.depth == section.depth - 1
            assert above.body[1] <= section.subtree[0]
            assert section.subtree[1] <= above.subtree[1]
        if section.anchor is not None:
            start, end = section.anchor
            assert section.body[0] <= start < end <= section.body[1]
            assert parsed.text[start:end].decode().strip()


@given(SOURCES)
@examples(100)
def test_ids_are_unique_sorted_and_understood(source: str) -> None:
    _, _, found = made(source.encode())
    names = [block.id for block in found]
    assert len(set(names)) == len(names)
    assert names == sorted(names, key=reading_order)
    assert [block.span for block in found] == sorted(block.span for block in found)
    for block in found:
        assert ids.parts_of(block.id) == (block.doc, block.section, block.type)
        if "of" in block.attrs:
            assert ids.type_of(block.attrs["of"]) in ("figure", "table")
            assert ids.section_of(block.attrs["of"]) == block.section


@given(BODY, st.lists(SECTION, min_size=1, max_size=8), st.data())
@examples(75)
def test_an_edit_in_a_section_leaves_the_others(
    preamble: list[str], sections: list[tuple[int, list[str]]], data: st.DataObject
) -> None:
    before = by_section(rendered(preamble, sections))
    place = data.draw(st.integers(0, len(sections) - 1))
    edited = [*sections]
    edited[place] = (sections[place][0], data.draw(BODY))
    after = by_section(rendered(preamble, edited))
    assert before.keys() == after.keys()
    changed = [section for section in before if before[section] != after[section]]
    mine = [section for section in before if section != "S.0"][place]
    assert set(changed) <= {mine}


@given(BODY, st.lists(SECTION, max_size=6), SECTION)
@examples(50)
def test_a_new_last_section_changes_nothing_before_it(
    preamble: list[str], sections: list[tuple[int, list[str]]], last: tuple[int, list[str]]
) -> None:
    before = by_section(rendered(preamble, sections))
    after = by_section(rendered(preamble, [*sections, last]))
    assert {section: after[section] for section in before} == before


@given(st.lists(SOURCES, min_size=1, max_size=3))
@examples(40)
def test_a_second_build_gives_the_same_bytes(sources: list[str]) -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        (root / "docs").mkdir()
        for number, source in enumerate(sources):
            (root / "docs" / f"{number}.md").write_bytes(source.encode())
        written = []
        for out in ("one", "two"):
            build([root / "docs"], root / out, workers=1)
            written.append(
                {
                    path.relative_to(root / out): path.read_bytes()
                    for path in (root / out).rglob("*")
                    if path.is_file()
                }
            )
        assert written[0] == written[1]
        assert len(written[0]) == 4 + len(sources)
