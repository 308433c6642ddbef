"""From files of other tools to rows of our own: recognised, read, joined with gold, written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import msgspec

from ragauge import registry
from ragauge.concurrency import paused_collector
from ragauge.errors import RagaugeError
from ragauge.files.open import UnpackedFile
from ragauge.files.ranges import Source
from ragauge.files.temporary_file import temporary_file
from ragauge.formats.imports.answer_citations import with_citations
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import (
    ForeignFile,
    ForeignFormat,
    ImportOptions,
    Row,
    Side,
)
from ragauge.formats.imports.question_join import QuestionJoin
from ragauge.formats.imports.span import TraceSpan
from ragauge.formats.imports.trace_assembler import traces_of
from ragauge.model.field_spellings import IMPORTED

AUTO = "auto"
SPANS = "otlp"
"""The format that spans come in where no file holds them."""
UNNAMED = "(unnamed)"
"""The id of a hit of which nothing is known but its rank."""
_encode = msgspec.json.Encoder().encode


def recognise(file: ForeignFile) -> ForeignFormat | None:
    """The format that a file is in; None for gold and traces of our own, and for anything else."""
    if not file.head.strip():
        return None
    formats: Iterable[ForeignFormat] = registry.foreign_formats().values()
    return next((form for form in formats if form.recognise(file)), None)


def format_of(files: Sequence[ForeignFile], name: str, side: Side) -> ForeignFormat:
    """The format that files are to be read in; they must hold the side that is asked for."""
    if name != AUTO:
        form: ForeignFormat = registry.foreign_format(name)
    else:
        recognised = {file.name: recognise(file) for file in files}
        for file_name, one in recognised.items():
            if one is None:
                raise _unrecognised(file_name)
        forms = {one.name: one for one in recognised.values() if one is not None}
        if len(forms) > 1:
            (one_name, one), (other_name, other) = list(recognised.items())[:2]
            assert one is not None and other is not None
            message = f"`{one_name}` holds {one.title} and `{other_name}` {other.title}"
            raise RagaugeError.of("usage", message, hint="import each format on its own")
        (form,) = forms.values()
    if form.reader(side) is None:
        raise _wrong_side(form, files[0].name, side)
    return form


def native_rows(
    form: ForeignFormat,
    files: Sequence[ForeignFile],
    side: Side,
    *,
    coverage: Coverage,
    options: ImportOptions = ImportOptions(),  # noqa: B008  (frozen)
    join: QuestionJoin | None = None,
) -> Iterator[Row]:
    """The rows that files hold, under our own names; `coverage` counts them meanwhile."""
    coverage.format = form.title
    read = form.reader(side)
    assert read is not None
    rows = read(files, options, coverage)
    if side == "traces":
        yield from _native_traces(form.name, rows, coverage, join)
        return
    for fields in rows:
        row = {IMPORTED: form.name, **fields}
        coverage.add_gold(row)
        yield row


def assemble(
    spans: Iterable[TraceSpan],
    *,
    options: ImportOptions = ImportOptions(),  # noqa: B008  (frozen)
    coverage: Coverage | None = None,
    join: QuestionJoin | None = None,
) -> list[Row]:
    """The traces of spans that came in requests: the rows that a file of them would give.

    A trace is whole only when all its spans are there; whoever collects them decides when that is.
    """
    coverage = Coverage() if coverage is None else coverage
    traces = traces_of(spans, options, coverage, in_memory=True)
    return list(_native_traces(SPANS, traces, coverage, join))


def _native_traces(
    format_name: str, rows: Iterable[Row], coverage: Coverage, join: QuestionJoin | None
) -> Iterator[Row]:
    for fields in rows:
        row = {IMPORTED: format_name, **fields}
        _name_hits(row, coverage)
        with_citations(row)
        coverage.add(row)  # with the ids that the export has, before gold lends others
        if join is not None:
            join.apply(row, coverage)
        yield row


def _name_hits(row: Row, coverage: Coverage) -> None:
    """Give hits that have neither an id nor a text a name: a rank must not be lost."""
    for hit in row.get("hits") or ():
        if isinstance(hit, dict) and "id" not in hit and not hit.get("text"):
            hit["id"] = hit.get("doc", UNNAMED)
            if "doc" not in hit:
                coverage.note("hits without an id, a text or a document")


def encoded(rows: Iterable[Row]) -> Iterator[bytes]:
    """Rows as JSON Lines."""
    for row in rows:
        yield _encode(row) + b"\n"


def converted_source(
    stack: ExitStack,
    file: UnpackedFile,
    side: Side,
    *,
    questions: Callable[[], Mapping[str, str]] | None = None,
) -> Source | None:
    """A source of our own rows made of another tool's file; None if it is not one.

    The rows lie in a file without a name, and keep the name of the original in all messages.
    """
    foreign = ForeignFile(file)
    form = recognise(foreign)
    if form is None:
        return None
    if form.reader(side) is None:
        raise _wrong_side(form, file.name, side)
    coverage = Coverage()
    texts = questions() if questions is not None else {}
    join = QuestionJoin(texts) if texts else None
    copy = stack.enter_context(temporary_file())
    rows = native_rows(form, [foreign], side, coverage=coverage, join=join)
    with paused_collector():
        copy.file.writelines(encoded(rows))
    copy.file.flush()
    size = os.path.getsize(copy.path)
    notes = (f"read as {form.title}", *coverage.join_sentences(), *coverage.sentences())
    return Source(file.name, copy.path, 0, size, "lines" if size else "empty", notes)


def _unrecognised(name: str) -> RagaugeError:
    names = ", ".join(sorted(registry.foreign_formats()))
    message = f"`{name}` is in no format that is known"
    hint = f"name it with --from: {names}; for fields of your own see `[fields]` in ragauge.toml"
    return RagaugeError.of("unknown-name", message, hint=hint)


def _wrong_side(form: ForeignFormat, name: str, side: Side) -> RagaugeError:
    message = f"`{name}` holds {form.title}, and no {'gold items' if side == 'gold' else 'traces'}"
    other = "ragauge traces import" if side == "gold" else "ragauge gold import"
    place = "as the traces" if side == "gold" else "as the gold set"
    hint = f"give it {place}, or write it in ragauge's own names with `{other}`"
    return RagaugeError.of("usage", message, hint=hint)
