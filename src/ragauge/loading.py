"""Loading whole files into the model: gold sets, trace sets, and telling which dialect they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ragauge import registry
from ragauge.decoding import decode_row
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.fields import FieldError, Row
from ragauge.jsontext import STRING
from ragauge.model.dialect import Dialect
from ragauge.model.gold import GoldItem
from ragauge.model.trace import Trace
from ragauge.reading import Reader
from ragauge.source import Source, plan, read_rows

SNIFFED = 64 * 1024
TREC = ("qrels", "run")
"""Layouts that are no JSON."""
_TOKEN = re.compile(STRING + rb"|[{}\[\]:]", re.DOTALL)


class Loaded(Struct, frozen=True):
    """The rows of a file that could be read, and what was wrong with the others."""

    items: list[Any]
    problems: list[Problem]
    problem_count: int

    def stop_on_problems(self) -> None:
        """Raise what was wrong, if anything was."""
        if self.problem_count:
            raise RagaugeError(self.problems, total=self.problem_count)


class _UsualGold(Struct, forbid_unknown_fields=True):
    """The usual gold row. Any other row is read on the exact path; a test compares the two."""

    qid: Annotated[str, Meta(min_length=1)]
    question: str
    answerable: bool
    gold_claim_substr: tuple[str, ...]
    gold_citations: tuple[str, ...]


def load_gold_rows(source: Source, reader: Reader) -> Loaded:
    """Read every gold item of a file."""
    decode = msgspec.json.Decoder(_UsualGold).decode

    def usual(data: bytes, line: int) -> GoldItem | None:
        try:
            row = decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return GoldItem(
            qid=row.qid,
            question=row.question,
            expect="answer" if row.answerable else "refuse",
            relevant=row.gold_citations,
            claims_any=row.gold_claim_substr,
            line=line,
        )

    return _load(source, reader, reader.gold, usual)


def load_trace_rows(source: Source, reader: Reader) -> Loaded:
    """Read every trace of a file."""
    return _load(source, reader, reader.trace)


def _load(
    source: Source,
    reader: Reader,
    make: Callable[[Row, int], GoldItem | Trace],
    usual: Callable[[bytes, int], GoldItem | None] | None = None,
) -> Loaded:
    items: list[Any] = []
    problems: list[Problem] = []
    count = 0
    for line, data, cut, overlong in rows_of(source):
        if usual is not None and (item := usual(data, line)) is not None:
            items.append(item)
            continue
        row: Row | None = None
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            items.append(make(row, line))
        except FieldError as failure:
            count += 1
            if len(problems) < MAX_REPORTED:
                problems.append(reader.problem(failure, row, Place(source.name, line)))
    return Loaded(items, problems, count)


def rows_of(source: Source) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Yield line, bytes, whether it ends the file without a newline, and whether it is too long.

    Rows come in file order; blank lines are passed over.
    """
    first = 1
    for part in plan(source):
        rows = read_rows(source, part)
        if part.first_line is not None:
            first = part.first_line
        at_end = part.end >= source.size
        for index, data in enumerate(rows.data):
            overlong = index in rows.overlong
            if overlong or data.strip():
                cut = at_end and not rows.ended and index == len(rows.data) - 1
                yield first + rows.line(index), data, cut, overlong
        first += rows.newlines


def sniff(source: Source) -> set[str]:
    """The field names of the rows at the head of a file; nothing is checked."""
    with open(source.path, "rb") as file:
        file.seek(source.start)
        head = file.read(SNIFFED)
    names: set[str] = set()
    if source.layout in TREC:
        return names
    depth, rows_at = 0, 1 if source.layout == "array" else 0
    tokens = [match.group() for match in _TOKEN.finditer(head)]
    for token, following in pairwise(tokens):
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
        elif following == b":" and depth == rows_at + 1 and token != b":":
            names.add(token[1:-1].decode("utf-8", "replace"))
    return names


def detect(gold_names: set[str], trace_names: set[str]) -> tuple[Dialect, str | None]:
    """The dialect that the field names speak of, and a note where they leave doubt."""
    known = registry.dialects().values()
    gold = _best(gold_names, [(each, each.gold_marks) for each in known])
    trace = _best(trace_names, [(each, each.trace_marks) for each in known])
    # A family by the marks of one file alone must own some name of the other one too.
    if gold is not None and trace is None and not _owns(gold.own_trace, trace_names):
        gold = None
    if trace is not None and gold is None and not _owns(trace.own_gold, gold_names):
        trace = None
    if gold is None and trace is None:
        note = "no dialect was recognised by its field names: read by any spelling, under `all`"
        return registry.dialect("native"), note if gold_names or trace_names else None
    if gold is None or trace is None or gold.name == trace.name:
        return gold or trace or registry.dialect("native"), None
    note = (
        f"the gold set looks like dialect {gold.name} and the traces like {trace.name}: "
        "both are read by any spelling, under the profile `all`"
    )
    return registry.dialect("native"), note


_GOLD_WORDS = frozenset(("answerable", "relevant", "relevant_docs"))
_TRACE_WORDS = frozenset(("hits", "retrieved", "topk"))
"""Names that no dialect has to itself, but that stand on one side only."""


def refuse_swapped(gold_names: set[str], trace_names: set[str], gold: str, trace: str) -> None:
    """Raise if the gold file has the marks of traces, and the trace file those of gold."""
    known = registry.dialects().values()
    gold_marks = _GOLD_WORDS.union(*(each.gold_marks for each in known))
    trace_marks = _TRACE_WORDS.union(*(each.trace_marks for each in known))
    swapped = gold_names & trace_marks and trace_names & gold_marks
    if swapped and not gold_names & gold_marks and not trace_names & trace_marks:
        raise RagaugeError.of(
            "usage",
            f"`{gold}` looks like a trace file, and `{trace}` like a gold set",
            hint="the gold set comes first",
        )


def _owns(own: Mapping[str, tuple[str, ...]], names: set[str]) -> bool:
    return not names or any(name in names for owned in own.values() for name in owned)


def _best(names: set[str], marks: Sequence[tuple[Dialect, frozenset[str]]]) -> Dialect | None:
    counted = [(len(names & own), dialect.name, dialect) for dialect, own in marks]
    top = max(counted)
    return top[2] if top[0] > 0 and sum(each[0] == top[0] for each in counted) == 1 else None
