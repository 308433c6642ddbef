"""`traces import` and `gold import`: files of another tool become one of our own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from ragauge.errors import RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.files.open import unpacked
from ragauge.formats.imports.convert import AUTO, encoded, format_of, native_rows
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ImportOptions, Side
from ragauge.formats.imports.question_join import QuestionJoin


def import_files(
    names: Sequence[str],
    out: str,
    side: Side,
    *,
    format_name: str = AUTO,
    gold: str | None = None,
    options: ImportOptions = ImportOptions(),  # noqa: B008  (frozen)
) -> Coverage:
    """Write the rows of files to one file, whole or not at all, and say what was in them."""
    coverage = Coverage()
    with ExitStack() as stack:
        files = [ForeignFile(stack.enter_context(unpacked(name))) for name in names]
        form = format_of(files, format_name, side)
        join = None if gold is None else _join(gold)
        target = stack.enter_context(atomic_file(out))
        rows = native_rows(form, files, side, coverage=coverage, options=options, join=join)
        target.writelines(encoded(rows))
        if not coverage.rows:
            what = "trace" if side == "traces" else "test case"
            message = f"there is no {what} in {', '.join(f'`{file.name}`' for file in files)}"
            hint = f"they were read as {form.title}; is the export empty, or of another part?"
            raise RagaugeError.of("nothing-measured", message, hint=hint)
    return coverage


def _join(gold: str) -> QuestionJoin:
    # `load` converts files too, and so imports this package.
    from ragauge.formats.load import load_gold

    items = load_gold(gold).items
    return QuestionJoin((item.qid, item.question or "") for item in items)
