"""What chunk ids and section names say, and how sections lie to each other."""

from __future__ import annotations

from ragauge.ids import (
    IdParts,
    distance,
    doc_of,
    lies_in,
    parts_of,
    section_of,
    section_path,
    split_section,
    type_of,
)
from tests.support.cases import cases

OPAQUE = IdParts(None, None, None)


@cases(
    ("chunk", "expected"),
    [
        ("S.4.2.p.Bk011a", (None, "S.4.2", "prose")),
        ("S.4.1.p.Bk010", (None, "S.4.1", "prose")),
        ("S.p.Bk001", (None, "S", "prose")),
        ("guide.md#S.4.2.c.Bk011a", ("guide.md", "S.4.2", "code")),
        ("docs/a:b.md#S.10.t.Bk002", ("docs/a:b.md", "S.10", "table")),
        ("c#-notes#S.1.f.Bk003", ("c#-notes", "S.1", "figure")),
        ("a#S.9#S.1.x.Bk003z", ("a#S.9", "S.1", "caption")),
        ("https://x.org/a#b#S.1.2.3.p.Bk1", ("https://x.org/a#b", "S.1.2.3", "prose")),
    ],
)
def test_a_typed_block_tells_section_and_type(
    chunk: str, expected: tuple[str | None, str | None, str | None]
) -> None:
    """The document is all before the last `#`, whatever it contains."""
    assert parts_of(chunk) == expected


@cases(
    ("chunk", "expected"),
    [
        ("doc|r=8c1e9a02|s=3.2|p=014|b=006", ("doc", "3.2", None)),
        ("doc|r=8c1e9a02|s=p005|p=005|b=006", ("doc", None, None)),
        ("a/b#c.md|r=1|s=intro|p=1|b=2", ("a/b#c.md", "intro", None)),
        ("a|b|r=1|s=A.3|p=1|b=2", ("a|b", "A.3", None)),
    ],
)
def test_fields_tell_document_and_section(
    chunk: str, expected: tuple[str | None, str | None, str | None]
) -> None:
    """A page in place of a section means that there were no headings."""
    assert parts_of(chunk) == expected


@cases(
    ("chunk", "expected"),
    [
        ("A.3.1.bk012", (None, "A.3.1", None)),
        ("B.bk1", (None, "B", None)),
        ("manual.pdf#A.3.1.bk012", ("manual.pdf", "A.3.1", None)),
        ("p1#2", ("p1", None, None)),
        ("https://x.org/a#b#007", ("https://x.org/a#b", None, None)),
    ],
)
def test_lettered_blocks_and_numbered_chunks(
    chunk: str, expected: tuple[str | None, str | None, str | None]
) -> None:
    """A numbered chunk tells only its document."""
    assert parts_of(chunk) == expected


@cases(
    "chunk",
    [
        "",
        "#",
        "#2",
        "#S.4.2.p.Bk011a",
        "2",
        "p1",
        "p1#",
        "p1#2a",
        "p1#2\n",
        "p1#\u0662",
        "a|b#2",
        "a|b#S.4.2.p.Bk011a",
        "https://x.org/a#creating-test-cases",
        "https://x.org/a#S.4.2",
        "8c1e9a02-0000-4000-8000-000000000000",
        "S.4.2",
        "S.4.2.q.Bk011",
        "S.4.2.p.bk011",
        "S.4.2.p.Bk",
        "S.4.2.p.Bk011ab",
        "S.4.2.p.Bk011a\n",
        "S..4.p.Bk011",
        "S.4.p.Bk\u0661",
        "A.3.1.bk",
        "a.3.1.bk012",
        "3.1.bk012",
        "A.3.1.bk012#x",
        "doc|r=8c1e9a02|s=3.2|p=014",
        "doc|r=8c1e9a02|s=|p=014|b=006",
        "|r=8c1e9a02|s=3.2|p=014|b=006",
        "doc|s=3.2|r=8c1e9a02|p=014|b=006",
    ],
)
def test_every_other_id_is_opaque(chunk: str) -> None:
    """A guess would put a chunk into a section it is not in."""
    assert parts_of(chunk) == OPAQUE


def test_each_part_has_its_function() -> None:
    """They are the parts of `parts_of`."""
    chunk = "guide.md#S.4.2.p.Bk011a"
    assert (doc_of(chunk), section_of(chunk), type_of(chunk)) == parts_of(chunk)
    assert (doc_of("x"), section_of("x"), type_of("x")) == OPAQUE


@cases(
    ("text", "expected"),
    [
        ("guide.md#S.4.2", ("guide.md", "S.4.2")),
        ("guide.md#4.2", ("guide.md", "4.2")),
        ("guide.md#A.3.1", ("guide.md", "A.3.1")),
        ("guide.md#S", ("guide.md", "S")),
        ("a#S.1#S.4", ("a#S.1", "S.4")),
        ("#S.4.2", (None, "S.4.2")),
        ("S.4.2", (None, "S.4.2")),
        ("", (None, "")),
        ("C#", (None, "C#")),
        ("guide.md#creating-test-cases", (None, "guide.md#creating-test-cases")),
        ("guide.md#S.4.", (None, "guide.md#S.4.")),
        ("guide.md#S.4.2\n", (None, "guide.md#S.4.2\n")),
        ("guide.md#S.4.2.p.Bk011a", (None, "guide.md#S.4.2.p.Bk011a")),
        ("policies/security", (None, "policies/security")),
    ],
)
def test_a_section_may_name_its_document(text: str, expected: tuple[str | None, str]) -> None:
    """Only a dotted path after the last `#` is a section with a document before it."""
    assert split_section(text) == expected


@cases(
    ("section", "path"),
    [
        ("S", ()),
        ("S.4.2", (4, 2)),
        ("4.2", (4, 2)),
        ("4.02", (4, 2)),
        ("4", (4,)),
        ("A.3.1", ("A", 3, 1)),
        ("A", ("A",)),
        ("policies/security/keys", ("policies", "security", "keys")),
        ("/policies//security/", ("policies", "security")),
        ("4/2", ("4", "2")),
        ("creating-test-cases", ("creating-test-cases",)),
        ("S.4.2.p", ("S.4.2.p",)),
        ("S.", ("S.",)),
        ("1.2.", ("1.2.",)),
        ("\u0664.2", ("\u0664.2",)),
        ("9" * 5000, ("9" * 5000,)),
        ("", ("",)),
    ],
)
def test_the_path_of_a_section(section: str, path: tuple[int | str, ...]) -> None:
    """Numbers are numbers, `S` is the root, and what has no steps is one step."""
    assert section_path(section) == path


@cases(
    ("section", "anchor", "expected"),
    [
        ("S.4.2", "S.4.2", True),
        ("S.4.2.1", "S.4.2", True),
        ("4.2.1", "S.4", True),
        ("S.4", "S.4.2", False),
        ("S.4.21", "S.4.2", False),
        ("S.4.2", "S.4.21", False),
        ("1.10", "1.1", False),
        ("A.3.1", "A.3", True),
        ("A.3.1", "3", False),
        ("S.4.2", "S", True),
        ("any-slug", "S", True),
        ("S", "S", True),
        ("S", "S.1", False),
        ("policies/security/keys", "policies/security", True),
        ("policies/security-keys", "policies/security", False),
        ("policies", "pol", False),
    ],
)
def test_lying_in_a_section_goes_by_whole_steps(section: str, anchor: str, expected: bool) -> None:
    """`S.4.21` begins with the letters of `S.4.2` and does not lie in it."""
    assert lies_in(section, anchor) is expected


@cases(
    ("a", "b", "edges"),
    [
        ("S.4.2", "4.2", 0),
        ("S.4.2", "S.4", 1),
        ("S.4.1", "S.4.2", 2),
        ("1.10", "1.2", 2),
        ("1.10", "1.1", 2),
        ("S.4.2", "S.4.21", 2),
        ("S", "S.4.2", 2),
        ("S.1.2.3", "S.1.4", 3),  # up twice to 1, down once
        ("S.1.2", "S.2.2", 4),  # the common ancestor is the root; equal last steps do not count
        ("A.3", "3", 3),
        ("a/b/c", "a/d", 3),
        ("one", "another", 2),
    ],
)
def test_distance_counts_edges_through_the_common_ancestor(a: str, b: str, edges: int) -> None:
    """It is the same in both directions."""
    assert distance(a, b) == distance(b, a) == edges
