"""Gold sets as files: linted, frozen, verified and counted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct

from ragauge.corpus.chunk_list import load_chunks
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.errors import RagaugeError
from ragauge.files.atomic_write import write_atomically
from ragauge.files.open import opened
from ragauge.files.ranges import Source
from ragauge.formats.detect import Choice, choose
from ragauge.formats.load import open_source, read_gold
from ragauge.formats.loaded import Loaded
from ragauge.gold.lint.check import LintReport, Surroundings, check
from ragauge.gold.locate import locator
from ragauge.gold.lock import Difference, Lock, compare, frozen, lock_path, read_lock, written
from ragauge.gold.stats import GoldStats, stats_of
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options

PathLike = str | os.PathLike[str]


class GoldFile(Struct, frozen=True):
    """A gold set that was read, with what could not be read of it."""

    source: Source
    choice: Choice
    loaded: Loaded

    @property
    def items(self) -> list[GoldItem]:
        """The items, where there must be some and every row must be readable."""
        self.loaded.stop_on_problems()
        if not self.loaded.items:
            raise nothing(self.source.name)
        return self.loaded.items

    @property
    def notes(self) -> list[str]:
        """What is to be said of how the file was read."""
        return [*self.source.notes, *([self.choice.note] if self.choice.note else [])]


class Frozen(Struct, frozen=True):
    """A lock that was written, or that stood there already."""

    path: Path
    lock: Lock
    fresh: bool


class Verified(Struct, frozen=True):
    """A lock, the set as it would be frozen now, and what is different between them."""

    path: Path
    lock: Lock
    now: Lock
    difference: Difference


def nothing(name: str) -> RagaugeError:
    """The error for a gold set without items."""
    return RagaugeError.of(
        "nothing-measured", f"`{name}` has no gold items", hint="check how it is written"
    )


@contextmanager
def gold_file(
    gold: PathLike, *, profile: str | None = None, dialect: str = "auto",
    lookup: Lookup | None = None,
) -> Iterator[GoldFile]:  # fmt: skip
    """Read a gold set of any kind; its source is open meanwhile. Quotes are found in a corpus."""
    with ExitStack() as stack:
        source = open_source(stack, gold)
        assert source is not None
        choice = choose(dialect, profile, gold=source)
        locate = None if lookup is None else locator(lookup, convert=False)
        yield GoldFile(source, choice, read_gold(gold, source, choice, locate=locate))


def lint(
    gold: PathLike,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    profile: str | None = None,
    dialect: str = "auto",
    options: Options = Options(),  # noqa: B008  (frozen)
) -> LintReport:
    """Judge a gold set by every rule; rows that cannot be read are told and left out."""
    lookup = _lookup(corpus)
    with gold_file(gold, profile=profile, dialect=dialect, lookup=lookup) as file:
        around = Surroundings(
            profile=file.choice.profile,
            options=options,
            dialect=file.choice.dialect.name,
            lookup=lookup,
            chunks=_chunks(chunks),
        )
        return check(
            file.loaded.items, around, name=file.source.name, problems=file.loaded.problems,
            problem_count=file.loaded.problem_count, notes=file.notes,
        )  # fmt: skip


def stats(
    gold: PathLike,
    *,
    corpus: PathLike | None = None,
    chunks: PathLike | None = None,
    profile: str | None = None,
    dialect: str = "auto",
) -> GoldStats:
    """Count what is in a gold set."""
    lookup = _lookup(corpus)
    with gold_file(gold, profile=profile, dialect=dialect, lookup=lookup) as file:
        return stats_of(
            file.items, name=file.source.name, dialect=file.choice.dialect.name,
            lookup=lookup, chunks=_chunks(chunks), notes=file.notes,
        )  # fmt: skip


def freeze(
    gold: PathLike,
    out: PathLike | None = None,
    *,
    profile: str | None = None,
    dialect: str = "auto",
    force: bool = False,
) -> Frozen:
    """Write the lock of a gold set; one that holds another set is only replaced by `force`."""
    path = Path(out) if out is not None else lock_path(gold)
    if path.exists() and os.path.samefile(path, gold):
        raise RagaugeError.of(
            "file-exists", f"`{path}` is the gold set itself", hint="name another file for its lock"
        )
    with gold_file(gold, profile=profile, dialect=dialect) as file:
        lock = frozen(file.items, file.choice.dialect.name, file.source.name)
    text = written(lock)
    if path.exists():
        if path.is_file() and path.read_bytes() == text.encode():
            return Frozen(path, lock, False)
        if not force:
            raise RagaugeError.of(
                "file-exists",
                f"`{path}` is already there, and holds something else",
                hint="`ragauge gold verify` shows what changed, and --update writes it anew; "
                "--force replaces it unseen",
            )
    write_atomically(path, text)
    return Frozen(path, lock, True)


def verify(gold: PathLike, lock: PathLike | None = None) -> Verified:
    """Compare a gold set with its lock, read in the dialect that the lock names."""
    path = Path(lock) if lock is not None else lock_path(gold)
    known = read_lock(path)
    with gold_file(gold, dialect=known.dialect) as file:
        items, name = file.items, file.source.name
    now = frozen(items, known.dialect, name)
    return Verified(path, known, now, compare(known, items, name))


def update(verified: Verified) -> None:
    """Write the lock anew, as the set was when it was verified."""
    write_atomically(verified.path, written(verified.now))


def _lookup(corpus: PathLike | None) -> Lookup | None:
    return None if corpus is None else Lookup(read_corpus(corpus))


def _chunks(given: PathLike | None) -> dict[str, Chunk]:
    if given is None:
        return {}
    with opened(given) as source:
        return load_chunks(source)
