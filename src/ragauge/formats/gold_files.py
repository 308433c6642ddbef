"""Gold files as raw rows: read with every field as it stands, and written back changed in place.

A row that is not changed keeps its bytes, and so does everything around the rows: blank lines,
comments of YAML, other keys of its mapping. A changed row keeps the fields that were not touched,
in YAML with the comments between them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files import yaml_writer
from ragauge.files.fields import FieldError, Row
from ragauge.files.ranges import Source, rows_of
from ragauge.files.yaml_reader import ROW_KEYS, UNIT, yaml_lines
from ragauge.formats.detect import SNIFFED, TREC, choose, recognise_gold
from ragauge.formats.gold import DRAFT
from ragauge.formats.gold_evidence import entries
from ragauge.formats.json_rows import decode_row, duplicate_key_error
from ragauge.formats.load import open_source
from ragauge.formats.traces import RowReader

Form = Literal["lines", "array", "object", "yaml"]
Changes = Mapping[int, Mapping[str, Any]]
"""New rows, by their place among the rows."""

_YAML = (".yaml", ".yml")
_OTHERS = (".gz", ".zst", ".parquet", ".csv", ".tsv")
_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RawRow(Struct, frozen=True):
    """One row: its line, its bytes as JSON, and its fields."""

    line: int
    data: bytes
    fields: dict[str, Any]


class GoldRows(Struct, frozen=True, kw_only=True):
    """The rows of a gold file in order, and the reader that knows their dialect.

    `text` is the file itself where rows can be replaced in it; None for packed files and pipes.
    `detected`: the dialect was recognised by the names of fields, and by nothing else.
    """

    name: str
    rows: tuple[RawRow, ...]
    reader: RowReader
    form: Form
    text: bytes | None
    detected: bool

    def place(self, index: int) -> Place:
        """The file and line of a row."""
        return Place(self.name, self.rows[index].line)

    def problem(self, error: FieldError, index: int) -> Problem:
        """Say where an error is: file, line, item and dialect."""
        return self.reader.problem(error, self.rows[index].fields, self.place(index))


def read_gold_rows(path: str, dialect: str = "auto") -> GoldRows:
    """Read a gold file row by row; rows that are no objects are an error, fields are not read."""
    with ExitStack() as stack:
        source = open_source(stack, path)
        assert source is not None
        if source.layout in TREC:
            raise RagaugeError.of(
                "usage",
                f"`{source.name}` holds TREC judgements, which have no fields that could be edited",
                hint="write the gold set as JSON Lines, with `relevant` or `grades`",
            )
        reader_choice = choose(dialect, None, gold=source)
        reader = RowReader(reader_choice.dialect, own=reader_choice.own)
        rows: list[RawRow] = []
        problems: list[Problem] = []
        count = 0
        for line, data, cut, overlong in rows_of(source):
            try:
                fields = dict(decode_row(data, cut=cut, overlong=overlong))
                if (duplicate := duplicate_key_error(data)) is not None:
                    raise duplicate  # under any profile: a row that is written again would lose it
                rows.append(RawRow(line, data.strip(), fields))
            except FieldError as error:
                count += 1
                if len(problems) < MAX_REPORTED:
                    problems.append(reader.problem(error, None, Place(source.name, line)))
        if count:
            raise RagaugeError(problems, total=count)
        form, text = _form(path, source)
    return GoldRows(
        name=source.name,
        rows=tuple(rows),
        reader=reader,
        form=form,
        text=text,
        detected=dialect == "auto",
    )


def _form(path: str, source: Source) -> tuple[Form, bytes | None]:
    plain = path != "-" and os.path.isfile(path)
    if plain and path.lower().endswith(_YAML):
        with open(path, "rb") as file:
            text = file.read()
        return "yaml", None if text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")) else text
    form: Form = "array" if source.layout == "array" else "lines"
    if source.layout == "object":
        form = "object"
    if not plain or not os.path.samefile(path, source.path):
        return form, None
    with open(path, "rb") as file:
        return form, file.read()


def written(gold: GoldRows, changes: Changes, name: str) -> str:
    """The text of the file `name`: the rows with their changes, in the form that its suffix says.

    `.yaml` and `.yml` are YAML; `.json` is JSON as it was read, an array if it was YAML; any other
    name is JSON Lines. Rows that would be recognised as another dialect are refused.
    """
    _refuse_other_dialect(gold, changes)
    try:
        return _written(gold, changes, form_of(name, gold.form))
    except ValueError as error:
        message = f"a number is too large to be written: {error}"
        hint = "write it as text, or keep the form of the file that was read"
        raise RagaugeError.of("bad-field", message, hint=hint, place=Place(gold.name)) from error


def _refuse_other_dialect(gold: GoldRows, changes: Changes) -> None:
    """Refuse what would be read in another dialect: with it profile and gates would change."""
    if not gold.detected or not changes:
        return
    before, after = _head_names(gold, {}), _head_names(gold, changes)
    old, new = (recognise_gold(names) for names in (before, after))
    if old == new:
        return
    was, would_be = (
        "no dialect of its own" if dialect is None else f"dialect {dialect.name}"
        for dialect in (old, new)
    )
    added = ", ".join(f"`{name}`" for name in sorted(after - before))
    with_added = f"with {added} " if added else ""
    raise RagaugeError.of(
        "other-dialect",
        f"{with_added}`{gold.name}` would be recognised as {would_be}, and is {was}",
        hint="say --dialect here and wherever the file is used, and it is read as you say",
        place=Place(gold.name),
    )


def _head_names(gold: GoldRows, changes: Changes) -> set[str]:
    """The names of the fields that the head of a file has, by which its dialect is recognised."""
    names: set[str] = set()
    size = 0
    for index, raw in enumerate(gold.rows):
        row = changes.get(index)
        names.update(raw.fields if row is None else row)
        size += len(raw.data if row is None else json.dumps(row, ensure_ascii=False).encode()) + 1
        if size >= SNIFFED:
            break
    return names


def _written(gold: GoldRows, changes: Changes, form: Form) -> str:
    if gold.text is not None and form == gold.form:
        placed = _spliced(gold, gold.text, changes)
        if placed is not None:
            return placed
    rows = [changes.get(index, raw.fields) for index, raw in enumerate(gold.rows)]
    if form == "yaml":
        return yaml_writer.list_text(rows)
    lines = [_line(gold, index, changes) for index in range(len(rows))]
    if form == "lines":
        return "".join(f"{line}\n" for line in lines)
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def form_of(name: str, form: Form) -> Form:
    """The form that a file is written in, by its name; packed files and tables are refused."""
    lowered = name.lower()
    if lowered.endswith(_OTHERS):
        message = f"`{name}` would be a packed file or a table, and gold is written as plain text"
        hint = "name a file that ends with .jsonl, .json or .yaml"
        raise RagaugeError.of("usage", message, hint=hint)
    if lowered.endswith(_YAML):
        return "yaml"
    if lowered.endswith(".json"):
        return "array" if form == "yaml" else form
    return "lines"


def _spliced(gold: GoldRows, text: bytes, changes: Changes) -> str | None:
    """The file with its changed rows in their places; None if they cannot be put there."""
    whole = text.decode()
    if not changes:
        return whole
    if gold.form == "yaml":
        return _spliced_yaml(gold, whole.removeprefix("\ufeff"), changes)
    at = 0
    parts: list[bytes] = []
    for index, (start, end) in enumerate(_regions(gold, text)):
        if index in changes:
            parts += [text[at:start], _replacement(gold, index, changes, text, start)]
            at = end
    return b"".join([*parts, text[at:]]).decode()


def _regions(gold: GoldRows, text: bytes) -> Iterator[tuple[int, int]]:
    """Where each row stands: rows follow each other, and nothing else has their bytes."""
    at = 0
    for raw in gold.rows:
        start = text.index(raw.data, at)
        at = start + len(raw.data)
        yield start, at


def _replacement(gold: GoldRows, index: int, changes: Changes, text: bytes, start: int) -> bytes:
    """A changed row as JSON: over several lines where it was, a field on each."""
    raw = gold.rows[index]
    if b"\n" not in raw.data:
        return _line(gold, index, changes).encode()
    column = start - (text.rfind(b"\n", 0, start) + 1)
    fields = _raw_fields(raw.data)
    lines = []
    for name, value in changes[index].items():
        if name in fields and raw.fields.get(name) is value:
            said = bytes(fields[name]).decode()
        else:
            said = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)
            said = said.replace("\n", "\n" + " " * (column + 2))
        lines.append(f"{' ' * (column + 2)}{json.dumps(name, ensure_ascii=False)}: {said}")
    inside = ",\n".join(lines)
    return f"{{\n{inside}\n{' ' * column}}}".encode()


def _line(gold: GoldRows, index: int, changes: Changes) -> str:
    """A row on one line; fields that are as they were keep their digits and spaces."""
    raw = gold.rows[index]
    if index not in changes and b"\n" not in raw.data:
        return raw.data.decode()
    fields = _raw_fields(raw.data)
    parts = []
    for name, value in changes.get(index, raw.fields).items():
        same = name in fields and raw.fields.get(name) is value
        text = bytes(fields[name]).decode() if same else "\n"
        if "\n" in text:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        parts.append(f"{json.dumps(name, ensure_ascii=False)}: {text}")
    return "{" + ", ".join(parts) + "}"


def _spliced_yaml(gold: GoldRows, text: str, changes: Changes) -> str | None:
    """The file with changed fields in their places; a whole item anew where they have none."""
    regions = yaml_writer.regions(text, ROW_KEYS)
    if regions is None or len(regions) != len(gold.rows):
        return None
    wanted = [changes.get(index, raw.fields) for index, raw in enumerate(gold.rows)]
    head = yaml_writer.value_of(text, UNIT)
    before: tuple[str, int] = ("", 0)
    old_unit = new_unit = None
    if head is not None and regions and head.end <= regions[0].start:
        old_unit = new_unit = head.value
        if _in_bytes(gold, changes):
            before, new_unit = (f"{text[: head.start]}byte", head.end), "byte"
        changes = {index: _under(row, new_unit) for index, row in changes.items()}
    olds = [raw.fields if old_unit is None else _under(raw.fields, old_unit) for raw in gold.rows]
    for by_field in (True, False):
        parts, at = [before[0]], before[1]
        for index, region in enumerate(regions):
            if index in changes:
                old = olds[index] if by_field else None
                item = _yaml_item(text, region, changes[index], old)
                parts += [text[at : region.start], item.text]
                at = item.end
        spliced = "".join([*parts, text[at:]])
        # What was put together from pieces is read again: a file that says something else than
        # what was meant is never written.
        if _reads_as(spliced, wanted, headed=old_unit is not None):
            return spliced
    return None


def _yaml_item(
    text: str, region: yaml_writer.Region, row: Mapping[str, Any], old: Row | None
) -> yaml_writer.Edit:
    """An item with its changed fields in place; written anew without `old`, or on one line."""
    if region.flow:
        return yaml_writer.Edit(yaml_writer.flow_text(row), region.end)
    edited = None if old is None else yaml_writer.edited_item(text, region, old, row)
    if edited is not None:
        return edited
    ends_line = not yaml_writer.rest_of_line(text, region.end).strip()
    item = yaml_writer.item_text(row, column=region.column, literal=ends_line)
    return yaml_writer.Edit(item, region.end)


def _reads_as(text: str, rows: Sequence[Mapping[str, Any]], *, headed: bool) -> bool:
    """Whether a YAML text holds these rows, the order of their fields included.

    `headed`: the unit stands in the header, and in an item only where it is another one there.
    """
    with TemporaryFile() as file:  # the reader asks for the size of its file
        file.write(text.encode())
        file.seek(0)
        try:
            read = [json.loads(line) for line in yaml_lines(file, "the edited file")]
        except RagaugeError:
            return False

    def listed(rows: Sequence[Mapping[str, Any]]) -> list[str]:
        return [
            json.dumps({name: row[name] for name in row if name != UNIT or not headed})
            for row in rows
        ]

    return listed(read) == listed(rows)


def _in_bytes(gold: GoldRows, changes: Changes) -> bool:
    """Whether all offsets of a file count bytes now, so that its header can say so."""
    return all(
        changes[index].get(UNIT, "byte") == "byte"
        if index in changes
        else not any(
            isinstance(entry.value, Mapping) for entry in entries(raw.fields, gold.reader.own_gold)
        )
        for index, raw in enumerate(gold.rows)
    )


def _under(row: Row, unit: str) -> Row:
    """A changed row below a header that names a unit: it says its own where that is another."""
    own = str(row.get(UNIT, "byte"))
    rest = {name: value for name, value in row.items() if name != UNIT}
    return rest if own == unit else {**rest, UNIT: own}


def comments_lost(gold: GoldRows, changes: Changes, name: str) -> int:
    """How many comments of a YAML file are not in what `written` makes of it."""
    if gold.form != "yaml" or gold.text is None:
        return 0
    comments = yaml_writer.comments(gold.text.decode().removeprefix("\ufeff"))
    if not comments or form_of(name, gold.form) != "yaml":
        return len(comments)
    return len(comments) - len(yaml_writer.comments(_written(gold, changes, "yaml")))


def without_draft(row: Row) -> dict[str, Any]:
    """A row without the mark of a draft, so that it can be read although nobody confirmed it."""
    return {name: value for name, value in row.items() if name != DRAFT}


def read_items(path: str, dialect: str = "auto") -> GoldRows:
    """Read the raw rows of a gold file that is not empty."""
    gold = read_gold_rows(path, dialect)
    if not gold.rows:
        hint = "write one item on each line; `ragauge gold new` drafts some from a corpus"
        raise RagaugeError.of("nothing-measured", f"`{gold.name}` has no gold item", hint=hint)
    return gold
