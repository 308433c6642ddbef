"""What goes to a worker and what comes back: a job for one trace file, a partial for each range."""

from __future__ import annotations

from msgspec import Struct

from ragauge.errors import Problem
from ragauge.files.ranges import Source
from ragauge.model.chunk import Chunk
from ragauge.model.dialect import Dialect
from ragauge.model.options import Options
from ragauge.model.profile import JoinRules
from ragauge.scoring.tasks.asked_questions import QuestionTally
from ragauge.scoring.tasks.row_notes import NotedRows
from ragauge.scoring.trace_columns import Columns, GoldKeys


class Job(Struct, frozen=True, kw_only=True):
    """All that a worker needs to reduce the ranges of one trace file.

    `stored`: its rows are traces as they are stored. `qids` are only there for serialising.
    `bytes_too`: how much text was retrieved is wanted too, and how much of the evidence is in it.
    `measured`: questions from this number on are not measured, and their traces counted apart.
    `note_rows`: a page will show the traces, so partials bring notes on their rows.
    `check_keys`: every row is searched for keys that stand twice, which takes time.
    `sole`: of some fields only the dialect's own names are read.
    `places`: the index of places that hits are looked up in, as a path.
    """

    source: Source
    dialect: Dialect
    own: bool
    rules: JoinRules
    keys: GoldKeys
    paraphrases: dict[int, dict[str, int]]
    by_turn: dict[str, dict[int, int]] = {}
    count_repeats: bool = False
    note_open: bool = False
    chunks: dict[str, Chunk] = {}
    options: Options = Options()
    stored: bool = False
    bytes_too: bool = True
    qids: tuple[str, ...] = ()
    measured: int | None = None
    note_rows: bool = False
    check_keys: bool = False
    sole: bool = False
    places: str | None = None


class NamedHits(Struct, frozen=True, kw_only=True):
    """What hits and citations are known by, over some rows.

    matched     one of them is called as something that gold names
    placed      one has a place of its own
    listed      a chunk of the list has the id of one
    documented  one has a document
    quotable    one has a text
    example     the first of them, as a sentence names it
    retrieved   a hit is called as something that gold names; `matched` may be by citations alone
    example_hit the first hit, as a sentence names it
    ending      a document of a hit whose name ends as one that gold names
    identified  one has an id or a document of its own, and not its text alone
    """

    matched: bool = False
    placed: bool = False
    listed: bool = False
    documented: bool = False
    quotable: bool = False
    example: str | None = None
    retrieved: bool = False
    example_hit: str | None = None
    ending: str | None = None
    identified: bool = False

    def __or__(self, later: NamedHits) -> NamedHits:
        return NamedHits(
            matched=self.matched or later.matched,
            placed=self.placed or later.placed,
            listed=self.listed or later.listed,
            documented=self.documented or later.documented,
            quotable=self.quotable or later.quotable,
            example=later.example if self.example is None else self.example,
            retrieved=self.retrieved or later.retrieved,
            example_hit=later.example_hit if self.example_hit is None else self.example_hit,
            ending=later.ending if self.ending is None else self.ending,
            identified=self.identified or later.identified,
        )


class Misplaced(Struct, frozen=True, array_like=True):
    """A problem whose line is still counted from the start of its range."""

    line: int
    problem: Problem


class Partial(Struct, frozen=True, kw_only=True):
    """The records of one range as columns, and what was counted on the way.

    `beside` counts the traces of questions that are not measured. `duplicate_keys` are the lines of
    the first rows with a key twice, and what was found there. `closed` are names that are not read,
    each with the number of rows that have it and the line of the first. `placements` counts by what
    hits were placed, or why not; `prefixes` are those of document names that were matched without.
    `by_text` counts the traces without an id that were joined by their question, `ambiguous` those
    whose question several items share. `asked` says how the questions of the traces compare with
    those of their gold items.
    """

    range_index: int
    columns: Columns
    slots: list[tuple[int | None, int | str | None, int | None]]
    newlines: int
    crlf: bool
    traces: int
    unknown: int
    unknown_first: tuple[tuple[int, str], ...]
    problems: tuple[Misplaced, ...]
    problem_count: int
    embedders: tuple[str, ...] = ()
    beside: int = 0
    noted: NotedRows | None = None
    duplicate_keys: tuple[tuple[int, str], ...] = ()
    duplicate_key_count: int = 0
    closed: dict[str, tuple[int, int]] = {}
    placements: dict[str, int] = {}
    prefixes: tuple[str, ...] = ()
    by_text: int = 0
    ambiguous: int = 0
    asked: QuestionTally = QuestionTally()
