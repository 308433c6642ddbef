"""Moving whole files to the next version of a corpus: gold sets and traces, row by row.

Rows that nothing moves are written as they were read, and of the others the fields that nothing
moves. The new file is whole or not there; with `stop`, one thing without a new place is enough
for it not to be there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ragauge.corpus.diff.map_file import read_map
from ragauge.corpus.diff.redirects import Redirects
from ragauge.corpus.lookup import Lookup, open_corpus
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.atomic_write import atomic_file, write_atomically
from ragauge.files.fields import FieldError, Row
from ragauge.files.open import opened
from ragauge.files.ranges import Source, rows_of
from ragauge.formats.detect import TREC
from ragauge.formats.gold import DRAFT, PREVIOUS
from ragauge.formats.gold_files import comments_lost, form_of, read_gold_rows
from ragauge.formats.gold_files import written as gold_text
from ragauge.formats.json_rows import decode_row, duplicate_key_error
from ragauge.gold.migrate.evidence import (
    UNMAPPED,
    MigrationSettings,
    NewTexts,
    OnUnmapped,
    Rewriter,
)
from ragauge.gold.migrate.gold_rows import is_dated, rewrite_gold
from ragauge.gold.migrate.trace_rows import rewrite_trace
from ragauge.model.field_spellings import GOLD_SPELLINGS
from ragauge.model.migration import KINDS, SURE, Header

MigratedKind = Literal["gold", "traces"]
_REWRITE: Mapping[str, Callable[[Row, Rewriter], dict[str, Any]]] = {
    "gold": rewrite_gold,
    "traces": rewrite_trace,
}
_COUNT_LABELS = {
    "place kept": "places, same text",
    "place changed": "places, changed text",
    "already new": "already moved",
    "foreign": "ids of no old block",
    "hit on several parts": "hits on split blocks",
    "citation of one block twice": "citations that became one",
    "grade of several": "grades that became one",
    "quote cut anew": "quotes cut anew",
    "quote put aside": "quotes put aside",
    "negative now relevant": "negatives now relevant",
}
"""What is counted beside the kinds, and how it is called."""

_DOCUMENTS = (".yaml", ".yml", ".json")
_NO_LINES = (".yaml", ".yml", ".gz", ".zst", ".parquet", ".csv", ".tsv")

# Fields that do not change keep their bytes: numbers keep their digits, and strings their escapes.
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class MigrationResult(Struct, frozen=True, kw_only=True):
    """What came of moving a file: rows, and what was done with what is in them.

    `tally` counts redirects by kind, and what a reader should know of; `problems` are the first of
    those that were kept or dropped with `on_unmapped`. `drafts` are the first of the items that a
    person must look at before they are scored, `draft_count` all of them. `comments` counts those
    of YAML that were lost in rows that changed.
    """

    rows: int
    changed: int
    tally: dict[str, int]
    problems: tuple[Problem, ...] = ()
    unmapped: int = 0
    drafts: tuple[Problem, ...] = ()
    draft_count: int = 0
    comments: int = 0


class _Migration(Struct):
    """A file on its way: what rewrites its rows, and what became of them so far."""

    rewriter: Rewriter
    rewrite: Callable[[Row, Rewriter], dict[str, Any]]
    is_gold: bool
    name: str = ""
    rows: int = 0
    changed: int = 0
    bad: int = 0
    unmapped: int = 0
    problems: list[Problem] = []
    losses: list[Problem] = []
    draft_count: int = 0
    drafts: list[Problem] = []
    undated: int = 0
    undated_rows: list[Problem] = []

    def note(self, listed: list[Problem], error: FieldError, row: Row, line: int) -> None:
        """List a problem of a row, if it is one of the first."""
        if len(listed) < MAX_REPORTED:
            ids = (row.get(spelling) for spelling in GOLD_SPELLINGS["qid"])
            qid = next((str(value) for value in ids if isinstance(value, str | int)), None)
            place = Place(self.name, line, qid)
            listed.append(Problem(error.code, error.message, error.hint, place))

    def refuse(self, error: FieldError, row: Row, line: int) -> None:
        """Count a row that cannot be read or written again."""
        self.bad += 1
        self.note(self.problems, error, row, line)

    def record(self, changes: Mapping[str, Any], row: Row, line: int) -> None:
        """Count a row that was rewritten, and what could not be redirected in it."""
        self.changed += bool(changes)
        if self.is_gold and changes:
            self._record_item(changes, row, line)
        self.unmapped += len(self.rewriter.problems)
        for problem in self.rewriter.problems:
            self.note(self.losses, problem, row, line)
        self.rewriter.problems.clear()

    def _record_item(self, changes: Mapping[str, Any], row: Row, line: int) -> None:
        if changes.get(DRAFT) is True:
            self.draft_count += 1
            lost = [name.removesuffix(PREVIOUS) for name in changes if name.endswith(PREVIOUS)]
            why = f"no evidence is left in {', '.join(f'`{name}`' for name in lost)}"
            if not lost:
                names = ", ".join(f"`{name}`" for name in self.rewriter.reused)
                why = f"{names} has no new place, and is the id of other text now"
            hint = f"name its evidence in the new corpus, and remove `{DRAFT}`"
            self.note(self.drafts, FieldError("draft-item", why, hint), row, line)
        if not is_dated(row, self.rewriter):
            self.undated += 1
            message = "the item may have been written for the new corpus: others were moved to it"
            hint = "move it in a file of its own, if its ids are those of the old corpus"
            error = FieldError("already-migrated", message, hint)
            self.note(self.undated_rows, error, row, line)

    def stop(self) -> None:
        """Raise what forbids that the new file is written."""
        if self.bad:
            raise RagaugeError(self.problems, total=self.bad)
        # Where some items are of the new corpus already, nothing shows which corpus the ids of the
        # others are of, and ids of both look alike.
        if self.undated and self.rewriter.tally["already new"]:
            raise RagaugeError(self.undated_rows, total=self.undated)
        if self.unmapped and self.rewriter.settings.on_unmapped == "stop":
            raise RagaugeError(self.losses, total=self.unmapped)
        if not self.rows:
            raise RagaugeError.of(
                "nothing-measured", f"`{self.name}` has no rows", hint="check how it is written"
            )

    def result(self, comments: int) -> MigrationResult:
        """The counts when all is done."""
        return MigrationResult(
            rows=self.rows,
            changed=self.changed,
            tally={name: count for name, count in sorted(self.rewriter.tally.items()) if count},
            problems=tuple(self.losses),
            unmapped=self.unmapped,
            drafts=tuple(self.drafts),
            draft_count=self.draft_count,
            comments=comments,
        )


def migrate_file(
    what: MigratedKind,
    name: str | os.PathLike[str],
    migration: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    least: float = SURE,
    on_unmapped: OnUnmapped = "stop",
    corpus: str | os.PathLike[str] | None = None,
) -> MigrationResult:
    """Write a gold set or traces as they are in the new corpus of a migration map.

    `corpus` is that new corpus: quotes whose text changed are cut anew from it. Gold is written in
    the form that the suffix of `out` says, traces as JSON Lines.
    """
    target = os.fspath(out)
    if what == "gold":
        form_of(target, "lines")
    elif target.lower().endswith(_NO_LINES):
        message = f"`{target}` would not be read as JSON Lines, which traces are written as"
        raise RagaugeError.of("usage", message, hint="name a file that ends with .jsonl")
    if os.path.realpath(out) == os.path.realpath(migration):
        raise RagaugeError.of(
            "file-exists", f"`{out}` is the map, and is not replaced", hint="name another file"
        )
    redirects = Redirects(read_map(migration))
    lookup = None if corpus is None else _new_corpus(corpus, redirects.header)
    settings = MigrationSettings(
        least=least,
        on_unmapped=on_unmapped,
        strict=what == "gold",
        texts=None if lookup is None else _texts(lookup),
        new_blocks=frozenset() if lookup is None else frozenset(lookup.blocks),
    )
    moving = _Migration(Rewriter(redirects, settings), _REWRITE[what], what == "gold")
    if what == "gold" and target.lower().endswith(_DOCUMENTS):
        return moving.result(_migrate_document(os.fspath(name), target, moving))
    with opened(name) as source, atomic_file(out) as file:
        if source.layout in TREC:
            message = f"`{source.name}` is a TREC file, which cannot be moved"
            raise RagaugeError.of("usage", message, hint="write its ids as JSON Lines first")
        file.writelines(_rewritten(source, moving, is_gold=what == "gold"))
        moving.stop()
    # A comment of YAML has no place in JSON Lines.
    yaml = what == "gold" and os.fspath(name).lower().endswith((".yaml", ".yml"))
    lost = comments_lost(read_gold_rows(os.fspath(name)), {}, target) if yaml else 0
    return moving.result(lost)


def _migrate_document(name: str, out: str, moving: _Migration) -> int:
    """Move a gold set to a file of YAML or JSON; what nothing moves keeps its place in it."""
    gold = read_gold_rows(name)
    moving.name = gold.name
    changes: dict[int, dict[str, Any]] = {}
    for index, raw in enumerate(gold.rows):
        moving.rows += 1
        try:
            changed = moving.rewrite(raw.fields, moving.rewriter)
            for field, value in changed.items():
                _value(field, value)
        except FieldError as error:
            moving.refuse(error, raw.fields, raw.line)
            continue
        if changed:
            changes[index] = {**raw.fields, **changed}
        moving.record(changed, raw.fields, raw.line)
    moving.stop()
    write_atomically(out, gold_text(gold, changes, out))
    return comments_lost(gold, changes, out)


def _rewritten(source: Source, moving: _Migration, *, is_gold: bool) -> Iterator[bytes]:
    """The lines of the new file; what is wrong with the old ones is kept in `moving`."""
    moving.name = source.name
    for line, data, cut, overlong in rows_of(source):
        moving.rows += 1
        row: Row = {}
        try:
            row = decode_row(data, cut=cut, overlong=overlong)
            if is_gold and (duplicate := duplicate_key_error(data)) is not None:
                raise duplicate
            changes = moving.rewrite(row, moving.rewriter)
            encoded = _encoded(data, changes)
        except FieldError as error:
            moving.refuse(error, row, line)
            continue
        moving.record(changes, row, line)
        yield encoded + b"\n"


def _encoded(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """A row on one line, with some of its fields changed and the others as they stand."""
    line = data.strip()
    if changes:
        fields = dict(_fields(line))
        for name, value in changes.items():
            fields[name] = msgspec.Raw(_value(name, value))
        line = msgspec.json.encode(fields)
    return msgspec.json.format(line, indent=-1) if b"\n" in line or b"\r" in line else line


def _value(name: str, value: Any) -> bytes:
    try:
        if not _is_finite(value):
            raise OverflowError("it is beyond 64 bits")
        return msgspec.json.encode(value)
    except OverflowError as error:
        message = f"`{name}` holds a number that cannot be written again: {error}"
        raise FieldError("bad-field", message, "use a smaller number") from error


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, list) else True


def _new_corpus(folder: str | os.PathLike[str], header: Header) -> Lookup:
    """The new corpus, which must be the one that the map leads to."""
    lookup = open_corpus(os.fspath(folder))
    corpus = lookup.corpus
    if corpus.manifest.revision != header.new.revision:
        raise RagaugeError.of(
            UNMAPPED,
            f"the corpus has revision {corpus.manifest.revision}, the map leads to "
            f"{header.new.revision}",
            hint="give the corpus that was the NEW one of `ragauge corpus diff`",
        )
    return lookup


def _texts(lookup: Lookup) -> NewTexts:
    return lambda doc, start, end: lookup.text(doc)[start:end].decode("utf-8", "replace")


def summary_lines(done: MigrationResult, on_unmapped: OnUnmapped) -> list[str]:
    """What was done, in words: every count that is not 0."""
    lines = [f"{'rows':24} {done.rows:,}, changed {done.changed:,}"]
    kinds = [f"{kind} {done.tally[kind]:,}" for kind in KINDS[:-1] if done.tally.get(kind)]
    total = sum(done.tally.get(kind, 0) for kind in KINDS[:-1])
    split = f"  ({', '.join(kinds)})" if kinds else ""
    lines.append(f"{'ids followed':24} {total:,}{split}")
    lines += [
        f"{label:24} {done.tally[name]:,}"
        for name, label in _COUNT_LABELS.items()
        if done.tally.get(name)
    ]
    if done.unmapped:
        label = f"unmapped, {'kept' if on_unmapped == 'keep' else 'dropped'}"
        lines.append(f"{label:24} {done.unmapped:,}")
    if done.draft_count:
        lines.append(f"{'items now drafts':24} {done.draft_count:,}, to be looked at by a person")
    if done.comments:
        lines.append(f"{'comments not kept':24} {done.comments:,}")
    return lines
