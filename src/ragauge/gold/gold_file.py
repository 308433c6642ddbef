"""A gold set as a file: read in any format, with what could not be read of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from msgspec import Struct

from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.files.ranges import Source
from ragauge.formats.detect import FormatChoice, choose
from ragauge.formats.field_map import NO_FIELDS, FieldMaps
from ragauge.formats.load import open_source, read_gold
from ragauge.formats.loaded_rows import LoadedRows
from ragauge.gold.locate import locator
from ragauge.model.gold import GoldItem


class GoldFile(Struct, frozen=True):
    """A gold set that was read, with what could not be read of it."""

    source: Source
    choice: FormatChoice
    loaded: LoadedRows

    @property
    def items(self) -> list[GoldItem]:
        """The items, where there must be some and every row must be readable."""
        self.loaded.stop_on_problems()
        if not self.loaded.items:
            raise no_items(self.source.name)
        return self.loaded.items

    @property
    def notes(self) -> list[str]:
        """What is to be said of how the file was read."""
        return [*self.source.notes, *([self.choice.note] if self.choice.note else [])]


def no_items(name: str) -> RagaugeError:
    """Build the error for a gold set without items."""
    return RagaugeError.of(
        "nothing-measured", f"`{name}` has no gold items", hint="check how it is written"
    )


@contextmanager
def gold_file(
    gold: PathLike,
    *,
    profile: str | None = None,
    dialect: str = "auto",
    lookup: Lookup | None = None,
    fields: FieldMaps = NO_FIELDS,
) -> Iterator[GoldFile]:
    """Read a gold set of any kind; its source is open meanwhile. Quotes are found in a corpus."""
    with ExitStack() as stack:
        source = open_source(stack, gold, fields=fields)
        assert source is not None
        choice = choose(dialect, profile, gold=source)
        locate = None if lookup is None else locator(lookup, convert=False)
        yield GoldFile(source, choice, read_gold(gold, source, choice, locate=locate))


def lookup_of(corpus: PathLike | None) -> Lookup | None:
    """The corpus behind a path, if one was given."""
    return None if corpus is None else Lookup(read_corpus(corpus))
