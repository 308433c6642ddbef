"""A data set in the folder layout of BEIR: where its judgements are, and what its questions say.

qrels/test.tsv    query-id, corpus-id, score     read elsewhere, as any file of judgements
queries.jsonl     _id, text                      may be absent
corpus.jsonl      the passages                   not looked at
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError, Row, shown
from ragauge.files.open import opened
from ragauge.files.ranges import Source, plan, read_rows
from ragauge.formats.json_rows import decode_row

PathLike = str | os.PathLike[str]
DEFAULT_SPLIT = "test"


class _Query(Struct):
    """The fields of a question that are read; BEIR's `metadata` and others are passed over."""

    id: str = msgspec.field(name="_id")
    text: str


def is_beir(path: PathLike) -> bool:
    """Whether a path is a folder with judgements in `qrels/`."""
    return bool(_splits(Path(path)))


def qrels_file(path: PathLike, split: str | None = None) -> Path:
    """The file with the judgements of a split: the one named, else `test`, else the only one."""
    folder = Path(path)
    splits = _splits(folder)
    if not splits:
        message = f"there is no judgement file in `{folder / 'qrels'}`"
        hint = "a BEIR folder has qrels/test.tsv, or another split"
        raise RagaugeError.of("file-not-found", message, hint=hint)
    wanted = DEFAULT_SPLIT if split is None else split
    if wanted in splits:
        return splits[wanted]
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    names = ", ".join(f"`{split_name}`" for split_name in splits)
    message = f"`{folder}` has no split `{wanted}`, but {names}"
    hint = f"name the file itself, as in `{next(iter(splits.values()))}`"
    raise RagaugeError.of("file-not-found", message, hint=hint)


def queries(path: PathLike) -> dict[str, str]:
    """The text of each question by its id; empty where there is no `queries.jsonl`."""
    file = Path(path) / "queries.jsonl"
    if not file.exists():
        return {}
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    count = 0
    decode = msgspec.json.Decoder(_Query).decode
    with opened(file) as source:
        for line, data, cut, overlong in _rows(source):
            try:
                query = decode(data)
                texts[query.id] = query.text
                continue
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass  # read again below, by what knows how to say what is wrong
            try:
                row = decode_row(data, cut=cut, overlong=overlong)
                texts[_text(row, "_id")] = _text(row, "text")
            except FieldError as failure:
                count += 1
                if len(problems) < MAX_REPORTED:
                    place = Place(source.name, line)
                    problems.append(Problem(failure.code, failure.message, failure.hint, place))
    if count:
        raise RagaugeError(problems, total=count)
    return texts


def _splits(folder: Path) -> dict[str, Path]:
    """The judgement files by the name of their split, in order."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    return {file.stem: file for file in files if file.is_file()}


def _rows(source: Source) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Yield line, bytes, whether the row may be cut off, and whether it is too long."""
    first = 1
    for part in plan(source):
        rows = read_rows(source, part)
        first = first if part.first_line is None else part.first_line
        for index, data in enumerate(rows.data):
            overlong = index in rows.overlong
            if overlong or data.strip():
                last = part.end >= source.size and index == len(rows.data) - 1
                yield first + rows.line(index), data, last and not rows.ended, overlong
        first += rows.newlines


def _text(row: Row, name: str) -> str:
    if name not in row:
        hint = "a line of queries.jsonl has `_id` and `text`"
        raise FieldError("missing-field", f"`{name}` is missing", hint)
    value = row[name]
    if isinstance(value, str):
        return value
    if name == "_id" and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    hint = "write it in double quotes"
    raise FieldError("bad-field", f"`{name}` must be text, got {shown(value)}", hint)
