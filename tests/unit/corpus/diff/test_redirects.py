"""Redirects of bytes: a span inside changed text leads to its own new bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ragauge.corpus.diff.redirects import Redirected, Redirects
from tests.support.cases import cases
from tests.support.corpus_versions import mapped

OLD = """\
# Guide

Install the package with pip. It needs Python 3.11 and a compiler. Then run the check once.

The file holds the settings. It is read once when the server starts, and never again.

Start the server with one command. It listens on the port that the settings name.
"""


class Asked:
    """Two versions of one document, which can be asked where a text went."""

    def __init__(self, new: str, folder: Path, *, name: str = "g.md") -> None:
        self.new = new.encode()
        self.redirects = Redirects(mapped({"g.md": OLD}, {name: new}, folder))

    def where(self, text: str) -> Redirected:
        assert OLD.count(text) == 1
        start = OLD.index(text)
        redirected = self.redirects.span("g.md", start, start + len(text))
        assert redirected is not None
        return redirected

    def text(self, text: str) -> list[str]:
        """What stands where a text went."""
        return [self.new[slice(*place.span)].decode() for place in self.where(text).places]


def test_bytes_of_an_unchanged_document_stay(tmp_path: Path) -> None:
    asked = Asked(OLD, tmp_path)
    redirected = asked.where("It needs Python")
    assert (redirected.share, redirected.exact) == (1.0, True)
    assert asked.text("It needs Python") == ["It needs Python"]


def test_bytes_of_a_renamed_document_get_its_name(tmp_path: Path) -> None:
    redirected = Asked(OLD, tmp_path, name="h.md").where("It needs Python")
    assert [(place.doc, place.span) for place in redirected.places] == [("h.md", (39, 54))]


@pytest.mark.parametrize(
    "text", ["Install the package", "Then run the check once.", "It needs Python"]
)
def test_kept_text_in_an_edited_block_is_found_to_the_byte(text: str, tmp_path: Path) -> None:
    asked = Asked(OLD.replace("a compiler", "some tools of the system"), tmp_path)
    assert asked.text(text) == [text]
    assert asked.where(text).exact
    assert asked.where(text).share == 1.0


def test_changed_text_leads_to_what_stands_in_its_place(tmp_path: Path) -> None:
    """`compiler` with the blank before it is 9 of the 37 bytes: 28 / 37 are kept."""
    asked = Asked(OLD.replace("a compiler", "a linker"), tmp_path)
    sentence = "It needs Python 3.11 and a compiler."
    redirected = asked.where(sentence)
    assert asked.text(sentence) == ["It needs Python 3.11 and a linker."]
    assert not redirected.exact
    assert redirected.share == pytest.approx((len(sentence) - len(" compiler")) / len(sentence))


def test_a_place_that_ends_in_a_changed_word_ends_in_what_replaced_it(tmp_path: Path) -> None:
    asked = Asked(OLD.replace("3.11", "3.13"), tmp_path)
    assert asked.text("It needs Python 3.11") == ["It needs Python 3.13"]
    assert asked.text("11 and a compiler") == ["13 and a compiler"]
    assert asked.where("It needs Python 3.11").share == 0.9  # 2 of 20 bytes are gone


def test_nothing_is_left_of_a_word_that_is_gone(tmp_path: Path) -> None:
    redirected = Asked(OLD.replace("a compiler", "a linker"), tmp_path).where("compiler")
    assert (redirected.places, redirected.share) == ((), 0.0)


def test_a_span_over_two_paragraphs_stays_one_while_they_follow_each_other(tmp_path: Path) -> None:
    text = "Then run the check once.\n\nThe file holds the settings."
    asked = Asked(f"Before all else.\n\n{OLD}", tmp_path / "1")
    assert asked.text(text) == [text]
    assert asked.where(text).share == 1.0
    joined = Asked(OLD.replace("once.\n\nThe", "once.\nThe"), tmp_path / "2")
    assert joined.text(text) == [text.replace("\n\n", "\n")]
    apart = Asked(OLD.replace("once.\n\nThe", "once.\n\n## New title here\n\nThe"), tmp_path / "3")
    assert apart.text(text) == text.split("\n\n")


def test_a_span_over_a_split_block_is_two(tmp_path: Path) -> None:
    text = "with pip. It needs Python"
    asked = Asked(OLD.replace(" It needs", "\n\n## A subtitle\n\nIt needs"), tmp_path)
    assert asked.text(text) == ["with pip.", "It needs Python"]
    assert [place.block for place in asked.where(text).places] == [
        "g.md#S.1.p.Bk001", "g.md#S.1.1.p.Bk001",
    ]  # fmt: skip


def test_a_heading_goes_along(tmp_path: Path) -> None:
    asked = Asked(OLD.replace("# Guide", "# The Guide"), tmp_path)
    assert asked.text("# Guide\n\nInstall") == ["# The Guide\n\nInstall"]


TITLED = OLD.replace("The file holds", "## Settings\n\nThe file holds")
ACROSS = "Then run the check once.\n\n## Settings\n\nThe file holds the settings."


def across(new: str, folder: Path, text: str = ACROSS) -> tuple[bool, float, list[str]]:
    """Whether a text over a heading is the same, how much of it, and what stands there."""
    redirects = Redirects(mapped({"g.md": TITLED}, {"g.md": new}, folder))
    start = TITLED.index(text)
    redirected = redirects.span("g.md", start, start + len(text))
    assert redirected is not None
    there = [new.encode()[slice(*place.span)].decode() for place in redirected.places]
    return redirected.exact, redirected.share, there


@cases(
    "new",
    [
        f"Before all else.\n\n{TITLED}",
        TITLED.replace("Install the package", "Put the package in place"),
        TITLED.replace("Start the server", "Run the server"),
        f"# Other\n\nSomething else comes first.\n\n#{TITLED}",
    ],
)
@cases(
    "text",
    [
        ACROSS,
        "# Settings\n\nThe file holds",
        "once.\n\n## Settings",
        "the check once.\n",
        "\n\n## Settings\n\nThe file",
        "and never again.\n\nStart",
    ],
)
def test_text_over_a_heading_that_went_on_as_it_was_is_the_same_text(
    new: str, text: str, tmp_path: Path
) -> None:
    if text in new:
        assert across(new, tmp_path, text) == (True, 1.0, [text])
    else:  # the last word is another one
        assert not across(new, tmp_path, text)[0]


@cases(
    ("old", "new"),
    [
        ("## Settings", "## Options"),
        ("## Settings", "### Settings"),
        ("once.\n\n##", "once.\n\n\n##"),
        ("once.\n\n##", "once.\n\nThat is all there is to it.\n\n##"),
        ("Settings\n\nThe", "Settings\n\nA short word before it.\n\nThe"),
        ("once.", "twice."),
    ],
)
def test_text_over_a_heading_is_changed_where_any_byte_of_it_is(
    old: str, new: str, tmp_path: Path
) -> None:
    changed = TITLED.replace(old, new)
    assert ACROSS not in changed
    assert not across(changed, tmp_path)[0]


def test_a_section_that_moved_with_its_heading_is_the_same_text(tmp_path: Path) -> None:
    first = "## One\n\nThe file holds the settings, and is read once when it starts.\n\n"
    second = "## Two\n\nStart the server with one command, and it listens on its port.\n\n"
    old, new = f"# Guide\n\n{first}{second}", f"# Guide\n\n{second}{first}"
    redirects = Redirects(mapped({"g.md": old}, {"g.md": new}, tmp_path))
    start = old.index("## One")
    redirected = redirects.span("g.md", start, start + len(first.strip()))
    assert redirected is not None
    there = [new[slice(*place.span)] for place in redirected.places]
    assert (redirected.exact, redirected.share, there) == (True, 1.0, [first.strip()])


def test_a_map_of_an_earlier_version_says_no_more_than_it_knows(tmp_path: Path) -> None:
    """Without runs of documents nothing is known of what stands between blocks."""
    migration = mapped({"g.md": TITLED}, {"g.md": f"Before.\n\n{TITLED}"}, tmp_path)
    rows = tuple(
        replace(row, new=tuple(replace(place, runs=None) for place in row.new))
        if row.of == "document"
        else row
        for row in migration.rows
    )
    start = TITLED.index(ACROSS)
    answers = [
        Redirects(version).span("g.md", start, start + len(ACROSS))
        for version in (migration, replace(migration, rows=rows))
    ]
    assert [answer is not None and (answer.share, answer.exact) for answer in answers] == [
        (1.0, True), (1.0, False),
    ]  # fmt: skip


def test_bytes_that_are_no_text_have_no_place(tmp_path: Path) -> None:
    redirected = Asked(f"More.\n\n{OLD}", tmp_path).redirects.span("g.md", 7, 9)
    assert redirected == Redirected((), 0.0, exact=False)


def test_a_document_of_which_no_row_speaks_is_not_known(tmp_path: Path) -> None:
    assert Asked(OLD, tmp_path).redirects.span("other.md", 0, 5) is None


def test_names_are_found_as_they_are_written(tmp_path: Path) -> None:
    redirects = Asked(OLD, tmp_path).redirects
    for name, of in (("g.md", "document"), ("g.md#S.1", "section"), ("g.md#S.1.p.Bk002", "block")):
        row = redirects.find(name)
        assert row is not None
        assert row.of == of
    for section in ("S.1", "1"):
        row = redirects.section("g.md", section)
        assert row is not None
        assert row.old.id == "g.md#S.1"
    assert redirects.section("g.md", "S.2") is None
    assert redirects.find("g.md#S.1.p.Bk009") is None
