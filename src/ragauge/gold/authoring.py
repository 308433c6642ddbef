"""Writing gold with a corpus at hand: what is read, what the corpus is asked, what is written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.chunk_list import load_chunks
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.errors import MAX_REPORTED, Problem, RagaugeError
from ragauge.files import yaml_writer
from ragauge.files.atomic_write import write_atomically
from ragauge.files.fields import FieldError
from ragauge.files.open import opened
from ragauge.formats.gold_files import (
    GoldRows,
    comments_lost,
    form_of,
    read_gold_rows,
    without_draft,
    written,
)
from ragauge.gold.draft import draft
from ragauge.gold.negatives import Negative, Suggester
from ragauge.gold.pin import Pinner, Pinning, pin
from ragauge.model.chunk import Chunk


class Suggested(Struct, frozen=True, kw_only=True):
    """The negatives that were found for one item; none if it has enough, or no evidence."""

    qid: str
    line: int
    negatives: tuple[Negative, ...]


class Suggestions(Struct, frozen=True, kw_only=True):
    """The negatives of a file; `unplaced` items have no evidence, so nothing is near them.

    `comments` of YAML that stood in what changed are gone.
    """

    items: tuple[Suggested, ...]
    unplaced: int
    short: int
    comments: int = 0


class Drafts(Struct, frozen=True, kw_only=True):
    """The text of a file of drafts, and how much of the corpus it covers."""

    text: str
    drafts: int
    types: dict[str, int]
    documents: int
    all_documents: int
    sections: int
    all_sections: int


def open_corpus(folder: str) -> Lookup:
    """Read a corpus so that it can be asked."""
    return Lookup(read_corpus(folder))


def read_gold(path: str, dialect: str = "auto") -> GoldRows:
    """Read the raw rows of a gold file that is not empty."""
    gold = read_gold_rows(path, dialect)
    if not gold.rows:
        raise RagaugeError.of(
            "nothing-measured",
            f"`{gold.name}` has no gold item",
            hint="write one item on each line; `ragauge gold new` drafts some from a corpus",
        )
    return gold


def read_chunks(path: str | None) -> dict[str, Chunk]:
    """Read a list of chunks, if there is one."""
    if path is None:
        return {}
    with opened(path) as source:
        return load_chunks(source)


def pin_file(
    gold: str,
    corpus: str,
    out: str,
    *,
    chunks: str | None = None,
    repin: bool = False,
    keep: bool = False,
    dialect: str = "auto",
) -> Pinning:
    """Pin the evidence of a gold file and write it; nothing is written if it cannot be pinned.

    `keep`: items that cannot be resolved are written as they are.
    """
    rows = read_gold(gold, dialect)
    form_of(out, rows.form)
    pinned = pin(rows, Pinner(open_corpus(corpus), read_chunks(chunks), repin=repin))
    if pinned.problem_count and (pinned.fatal or not keep):
        raise RagaugeError(pinned.problems, total=pinned.problem_count)
    write_atomically(out, written(rows, pinned.changes, out))
    return replace(pinned, comments=comments_lost(rows, pinned.changes, out))


def suggest_negatives(
    gold: str,
    corpus: str,
    out: str | None = None,
    *,
    count: int = 5,
    chunks: str | None = None,
    anywhere: bool = False,
    dialect: str = "auto",
) -> Suggestions:
    """Find hard negatives so that every item has `count` of them; with `out` they are written."""
    rows = read_gold(gold, dialect)
    if out is not None:
        form_of(out, rows.form)
    lookup = open_corpus(corpus)
    pinner = Pinner(lookup, read_chunks(chunks))
    suggester = Suggester(lookup)
    found: list[Suggested] = []
    changes: dict[int, dict[str, Any]] = {}
    problems: list[Problem] = []
    failed = unplaced = short = 0
    for index, raw in enumerate(rows.rows):
        try:
            pinned = pinner.row(raw.fields, rows.reader.own_gold)
            item = rows.reader.gold(without_draft(pinned.fields), raw.line)
        except FieldError as error:
            failed += 1
            if len(problems) < MAX_REPORTED:
                problems.append(rows.problem(error, index))
            continue
        wanted = count - len(item.negatives)
        new = suggester.suggest(item, pinned.spots, wanted, anywhere=anywhere)
        unplaced += not pinned.spots
        short += bool(pinned.spots) and len(new) < wanted
        found.append(Suggested(qid=item.qid, line=raw.line, negatives=tuple(new)))
        if new:
            kept = list(raw.fields.get("negatives") or ())
            changes[index] = {**raw.fields, "negatives": [*kept, *(each.id for each in new)]}
    if failed:
        raise RagaugeError(problems, total=failed)
    lost = 0
    if out is not None:
        write_atomically(out, written(rows, changes, out))
        lost = comments_lost(rows, changes, out)
    return Suggestions(items=tuple(found), unplaced=unplaced, short=short, comments=lost)


def draft_text(
    corpus: str,
    out: str,
    *,
    count: int = 20,
    sections: Sequence[str] = (),
    per_section: int = 1,
    negatives: int = 5,
) -> Drafts:
    """Draft items from a corpus, in the form that the name of the file says."""
    form = form_of(out, "array")
    lookup = open_corpus(corpus)
    try:
        drafts = draft(
            lookup, count, sections=sections, per_section=per_section, negatives=negatives
        )
    except FieldError as error:
        raise RagaugeError.of(error.code, error.message, hint=error.hint) from error
    if not drafts:
        raise RagaugeError.of(
            "nothing-measured",
            "the corpus has no block to draft from",
            hint="a block needs three words; name other sections, or build the corpus again",
        )
    rows = [each.row for each in drafts]
    if form == "yaml":
        text = yaml_writer.list_text(rows, [each.comments for each in drafts])
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        text = "".join(f"{line}\n" for line in lines)
        if form == "array":
            text = "[\n" + ",\n".join(lines) + "\n]\n"
    types = Counter(row["type"] for row in rows)
    return Drafts(
        text=text,
        drafts=len(rows),
        types=dict(sorted(types.items(), key=lambda each: (-each[1], each[0]))),
        documents=len({row["relevant"][0]["doc"] for row in rows}),
        all_documents=len(lookup.documents),
        sections=len({row["anchor_section"] for row in rows}),
        all_sections=len({(block.doc, block.section) for block in lookup.corpus.blocks}),
    )
