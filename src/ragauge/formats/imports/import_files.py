"""`traces import` and `gold import`: files of another tool, or with other names, become our own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from ragauge.concurrency import paused_collector
from ragauge.errors import RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.files.open import UnpackedFile, inspect, unpacked
from ragauge.files.ranges import Source
from ragauge.formats.field_map import NO_FIELDS, FieldMap, FieldMaps
from ragauge.formats.imports.convert import AUTO, encoded, format_of, native_rows, recognise
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import (
    ForeignFile,
    ForeignFormat,
    ImportOptions,
    Row,
    Side,
)
from ragauge.formats.imports.json_file import json_objects
from ragauge.formats.imports.question_join import QuestionJoin
from ragauge.formats.renamed_rows import renamed_source

OWN = "fields"
"""What `--from` calls rows with names of the user's own."""


def import_files(
    names: Sequence[str],
    out: str,
    side: Side,
    *,
    format_name: str = AUTO,
    gold: str | None = None,
    options: ImportOptions = ImportOptions(),  # noqa: B008  (frozen)
    fields: FieldMaps = NO_FIELDS,
) -> Coverage:
    """Write the rows of files to one file, whole or not at all, and say what was in them.

    `fields` are names of the user's own; files are taken to have them where there are some for this
    side, or a file is a table that no other tool wrote.
    """
    coverage = Coverage()
    own = fields.gold if side == "gold" else fields.traces
    with ExitStack() as stack:
        unpacked_files = [stack.enter_context(unpacked(name)) for name in names]
        files = [ForeignFile(file) for file in unpacked_files]
        if format_name == OWN or (format_name == AUTO and _has_own_names(files, own)):
            form = _own_format(stack, own)
        else:
            form = format_of(files, format_name, side)
        join = None if gold is None else _join(gold, fields)
        target = stack.enter_context(atomic_file(out))
        rows = native_rows(form, files, side, coverage=coverage, options=options, join=join)
        with paused_collector():
            target.writelines(encoded(rows))
        if not coverage.rows:
            what = "trace" if side == "traces" else "test case"
            message = f"there is no {what} in {', '.join(f'`{file.name}`' for file in files)}"
            hint = f"they were read as {form.title}; is the export empty, or of another part?"
            raise RagaugeError.of("nothing-measured", message, hint=hint)
    return coverage


def _has_own_names(files: Sequence[ForeignFile], own: FieldMap) -> bool:
    """Whether files are to be read by names of the user's own."""
    if own.entries:
        return True
    return all(inspect_foreign(file).tabular and recognise(file) is None for file in files)


def _own_format(stack: ExitStack, own: FieldMap) -> ForeignFormat:
    """Files with names of the user's own, as a format like those of other tools."""

    def read(files: Sequence[ForeignFile], _: ImportOptions, __: Coverage) -> Iterator[Row]:
        for file in files:
            source = renamed_source(stack, inspect_foreign(file), own)
            renamed = UnpackedFile(source.name, source.path, source.layout == "lines")
            yield from json_objects(ForeignFile(renamed))

    return ForeignFormat(
        name=OWN,
        title="rows with your own field names",
        source="[fields]",
        recognise=lambda _: False,
        read_traces=read,
        read_gold=read,
    )


def inspect_foreign(file: ForeignFile) -> Source:
    """The source that a file is as it stands."""
    return inspect(UnpackedFile(file.name, file.path, file.converted))


def _join(gold: str, fields: FieldMaps) -> QuestionJoin:
    # `load` converts files too, and so imports this package.
    from ragauge.formats.load import load_gold

    items = load_gold(gold, fields=fields).items
    return QuestionJoin((item.qid, item.question or "") for item in items)
