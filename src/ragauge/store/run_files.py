"""Run files: exported runs as files of their own, and folders in which the newest ones are kept.

A folder holds one file a run, named by its time and its id, and the pinned run. It is what a CI
system can keep of a branch: without a database, and readable by any version of ragauge that can
import a run.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.files.unpack import GZIP, gzip_chunks
from ragauge.model.run import RunRecord, Store
from ragauge.store.export import (
    RunLine,
    export_run,
    gzip_if_named_so,
    import_run,
    parse_run_line,
)

SUFFIXES = (".jsonl", ".jsonl.gz")
PINNED = "pinned"
_MOST_OF_A_LINE = 64 * 1024 * 1024
_START = b'{"kind":"run","schema":"ragauge.run/'


class RunFile(Struct, frozen=True):
    """A file of an exported run, and its first line."""

    path: Path
    run: RunLine


def read_run_file(name: str | Path) -> RunFile | None:
    """The run that a file says it holds; None if it is another kind of file, or none at all.

    Only the first line is read: whether the file is whole is seen when it is imported.
    """
    path = Path(name)
    if str(name) == "-" or not path.is_file():
        return None
    head = b""
    with suppress(RagaugeError, OSError), path.open("rb") as file:
        packed = file.read(len(GZIP)) == GZIP
        file.seek(0)
        pieces = gzip_chunks(file, str(name)) if packed else iter(lambda: file.read(1 << 16), b"")
        for piece in pieces:
            head += piece
            whole = b"\n" in piece or len(head) > _MOST_OF_A_LINE
            if whole or (len(head) >= len(_START) and not head.startswith(_START)):
                break
    if not head.startswith(_START):
        return None
    line = parse_run_line(head.partition(b"\n")[0])
    if line is None:
        raise RagaugeError.of(
            "bad-export",
            "the first line is not that of an exported run of this version",
            hint="export the run again, or upgrade ragauge",
            place=Place(str(name), 1),
        )
    return RunFile(path, line)


def write_run_file(store: Store, run: RunRecord, name: str) -> None:
    """Export a run to a file, gzipped if its name says so; it is whole or not there at all."""
    with gzip_if_named_so(name) as file:
        export_run(store, run, file)


def import_run_file(file: RunFile, store: Store) -> RunRecord:
    """The run of a file, brought into a store."""
    run = store.run(import_run(store, str(file.path)).run_id)
    assert run is not None, "it was imported a moment ago"
    return run


# --- folders of runs ---


def kept_runs(folder: Path) -> list[RunFile]:
    """The runs that a folder keeps, the oldest first; a file of a run's name must be a run."""
    if not folder.is_dir():
        return []
    files = []
    for path in sorted(folder.iterdir()):
        if path.name.endswith(SUFFIXES) and not _is_pin(path):
            files.append(_required(path))
    return sorted(files, key=lambda file: (file.run.created_at, file.run.run_id))


def pinned_run(folder: Path) -> RunFile | None:
    """The run that a folder has pinned."""
    for path in (folder / f"{PINNED}{suffix}" for suffix in reversed(SUFFIXES)):
        if path.exists():
            return _required(path)
    return None


class KeptRun(Struct, frozen=True, kw_only=True):
    """What became of a folder in which a run was kept."""

    path: Path
    pinned: bool
    deleted: Sequence[Path]


def keep_run_file(file: RunFile, folder: Path, *, last: int, pin: bool) -> KeptRun:
    """Keep a run in a folder: with the newest ones up to `last`, and as the pin if it is to be.

    The first run of a folder is its pin, so that there always is one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    suffix = SUFFIXES[1] if file.path.read_bytes()[: len(GZIP)] == GZIP else SUFFIXES[0]
    path = folder / f"{_file_stem(file.run)}{suffix}"
    before = {kept.path for kept in kept_runs(folder) if kept.run.run_id == file.run.run_id}
    pin = pin or pinned_run(folder) is None
    _copy(file.path, path)
    deleted = [old for old in sorted(before) if old != path]
    runs = [kept for kept in kept_runs(folder) if kept.path not in deleted]
    deleted += [old.path for old in runs[:-last]]
    for old in deleted:
        old.unlink()
    if pin:
        _copy(file.path, folder / f"{PINNED}{suffix}")
        (folder / f"{PINNED}{SUFFIXES[suffix == SUFFIXES[0]]}").unlink(missing_ok=True)
    return KeptRun(path=path, pinned=pin, deleted=tuple(deleted))


def _copy(source: Path, path: Path) -> None:
    if path.exists() and path.samefile(source):
        return
    with source.open("rb") as file, atomic_file(str(path)) as copy:
        shutil.copyfileobj(file, copy)


def _file_stem(run: RunLine) -> str:
    """A name that sorts by time: the id where it begins with the time, else the time before it."""
    stamp = re.sub(r"[^0-9TZ]", "", run.created_at)
    name = re.sub(r"[^\w.+=@-]", "_", run.run_id)[:150]
    return name if not stamp or name.startswith(stamp) else f"{stamp}-{name}"


def _is_pin(path: Path) -> bool:
    return path.name in [f"{PINNED}{suffix}" for suffix in SUFFIXES]


def _required(path: Path) -> RunFile:
    file = read_run_file(path)
    if file is None:
        raise RagaugeError.of(
            "bad-export",
            "it is not an exported run",
            hint="a folder of kept runs holds the files of `runs export`, and nothing else",
            place=Place(str(path)),
        )
    return file
