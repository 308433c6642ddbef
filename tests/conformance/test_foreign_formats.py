"""What every format of another tool must do: be recognised alone, and read what it recognises."""

from __future__ import annotations

from pathlib import Path

from ragauge import registry
from ragauge.files.open import unpacked
from ragauge.formats.imports.foreign_format import ForeignFile
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, lines_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPORTS = sorted(
    path
    for path in FIXTURES.glob("**/*")
    if path.suffix in (".pb", ".json", ".jsonl")
    and path.name != "gold.jsonl"
    and path.parent.name != "expected"
)


def recognised(path: Path) -> list[str]:
    with unpacked(path) as file:
        foreign = ForeignFile(file)
        return [name for name, one in registry.foreign_formats().items() if one.recognise(foreign)]


@cases("path", EXPORTS, ids=lambda path: path.name)
def test_a_file_is_of_one_format_at_most(path: Path) -> None:
    assert len(recognised(path)) <= 1


@cases("path", sorted((FIXTURES / "imports").glob("*.*")), ids=lambda p: p.name)
def test_every_export_is_recognised(path: Path) -> None:
    is_export = path in EXPORTS
    assert len(recognised(path)) == is_export


@cases("name", registry.foreign_formats())
def test_a_format_says_what_it_is_and_reads_something(name: str) -> None:
    form = registry.foreign_format(name)
    assert form.title
    assert form.source
    assert form.read_traces is not None or form.read_gold is not None


def test_files_of_our_own_are_of_no_other_format(tmp_path: Path) -> None:
    for content in (lines_of(GOLD), lines_of(TRACES)):
        path = tmp_path / "own.jsonl"
        path.write_bytes(content)
        assert recognised(path) == []
    for path in (FIXTURES / "imports" / "expected").iterdir():
        assert recognised(path) == []


def test_no_mark_of_a_vocabulary_is_that_of_another() -> None:
    marks = [mark for one in registry.vocabularies().values() for mark in one.marks]
    assert len(marks) == len(set(marks))
