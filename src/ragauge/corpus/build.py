"""Building a corpus: finds files, parses them in this process or in workers, writes the folder.

Workers are plain subprocesses, as those that score (decision 0003): they get the name of a file,
read and parse it, and answer with its rows. Answers are taken in the order of the documents, a few
ahead at most, so the result does not depend on their number and memory does not grow with the
corpus.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Literal

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.concurrency import WorkerProcesses, cores, read_message, write_message
from ragauge.corpus.blocks import build_blocks
from ragauge.corpus.manifest import MANIFEST, CorpusCounts, CorpusWriter, Manifest, is_corpus
from ragauge.corpus.title_tree import build_sections, check_spans
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Block, Document, Section

ProgressCallback = Callable[[int, int], None]
"""Is called with the number of files that are done, and of all files."""

_AHEAD = 8  # files for each worker that may be parsed before it is their turn to be written
_BYTES_FOR_WORKERS = 1 << 20  # smaller corpora are parsed before a worker has started
_MOST_WORKERS = 8  # one process writes all that the others parse
_SERVE = "from ragauge.corpus.build import serve; serve()"
# UTF-8 that was read as cp1252 and written again: "â€™" for an apostrophe, "Ã¤" for "ä".
_MOJIBAKE = ("â€™", "â€œ", "â€“", "Ã¤", "Ã¶", "Ã¼", "Ã©", "Â\N{NO-BREAK SPACE}")


class SourceFile(Struct, frozen=True):
    """A file that was found, and the name of its document."""

    doc: str
    path: str


class ParsedFile(Struct, frozen=True, kw_only=True):
    """What became of one file: a document with its rows, or a problem, or a fault of ours."""

    document: Document | None = None
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()
    text: bytes = b""
    problem: Problem | None = None
    fault: str | None = None


class DocumentNote(Struct, frozen=True):
    """Something that a reader should know of a document."""

    doc: str
    text: str


class BuildResult(Struct, frozen=True, kw_only=True):
    """The result of a build: the manifest, notes on documents, and files that were skipped."""

    folder: str
    manifest: Manifest
    notes: tuple[DocumentNote, ...] = ()
    skipped: tuple[Problem, ...] = ()
    skipped_count: int = 0

    @property
    def counts(self) -> CorpusCounts:
        """How much is in the corpus."""
        return self.manifest.counts


class _FoundFiles(Struct):
    sources: list[SourceFile]
    problems: list[Problem]
    left_out: Counter[str]
    bytes: int = 0


def build(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    on_bad_file: Literal["stop", "skip"] = "stop",
    progress: ProgressCallback | None = None,
) -> BuildResult:
    """Build a corpus from files and folders; the result does not depend on `workers`."""
    folder = Path(out)
    writer = CorpusWriter(folder)
    for path in paths:
        if Path(os.path.realpath(path)).is_relative_to(writer.out):
            message = f"`{path}` lies in `{out}`, which would be replaced"
            raise RagaugeError.of("usage", message, hint="write the corpus to another folder")
    found_files = _find([Path(path) for path in paths])
    problems = list(found_files.problems)
    notes: list[DocumentNote] = []
    files = _parsed_files(found_files.sources, _worker_count(workers, found_files))
    with writer, closing(files):
        for done, reading in enumerate(files, 1):
            if reading.fault is not None:
                raise RuntimeError(reading.fault)
            if reading.problem is not None:
                problems.append(reading.problem)
            elif reading.document is not None and (not problems or on_bad_file == "skip"):
                document = reading.document
                writer.add(document, reading.sections, reading.blocks, reading.text)
                notes += [DocumentNote(document.doc, note) for note in document.notes]
            if progress is not None:
                progress(done, len(found_files.sources))
        if problems and on_bad_file == "stop":
            raise RagaugeError(problems[:MAX_REPORTED], total=len(problems))
        if not writer.totals["documents"]:
            raise _no_documents(found_files, problems)
        manifest = writer.finish(found_files.left_out)
    return BuildResult(
        folder=str(folder),
        manifest=manifest,
        notes=tuple(notes),
        skipped=tuple(problems[:MAX_REPORTED]),
        skipped_count=len(problems),
    )


def _no_documents(found_files: _FoundFiles, problems: Sequence[Problem]) -> RagaugeError:
    if problems:
        why = f"none of the {len(problems)} files could be read"
        listed = [*problems[: MAX_REPORTED - 1]]
    else:
        counts = sorted(found_files.left_out.items())
        kinds = ", ".join(f"{suffix} {count}" for suffix, count in counts)
        why = "no document was found" + (f"; files of other kinds: {kinds}" if kinds else "")
        listed = []
    hint = f"files that are read end in {', '.join(sorted(registry.parsers()))}"
    return RagaugeError([Problem("nothing-measured", why, hint), *listed], total=len(problems) + 1)


def _find(paths: Sequence[Path]) -> _FoundFiles:
    """Find the files of all paths, by document; a corpus is no source, so nor is the output."""
    found_files = _FoundFiles([], [], Counter())
    by_doc: dict[str, str] = {}
    for path in paths:
        if path.is_dir():
            files = _files_below(path)
        elif path.exists():
            files = iter([(path.name, path)])
        else:
            raise RagaugeError.of(
                "file-not-found", f"`{path}` is not there", hint="check the spelling and the folder"
            )
        for doc, file in files:
            suffix = PurePath(doc).suffix.lower()
            if suffix not in registry.parsers():
                found_files.left_out[suffix or "no suffix"] += 1
                continue
            name = str(file)
            before = by_doc.setdefault(doc, name)
            if before == name:
                found_files.sources.append(SourceFile(doc, name))
            elif os.path.realpath(before) != os.path.realpath(name):
                message = f"`{before}` and `{name}` would both be the document `{doc}`"
                hint = "name the folder that holds both: a document is called by its path in it"
                raise RagaugeError.of("usage", message, hint=hint)
    found_files.sources = sorted(set(found_files.sources), key=lambda source: source.doc)
    _refuse_names(found_files)
    found_files.bytes = sum(_size(source.path) for source in found_files.sources)
    return found_files


def _refuse_names(found_files: _FoundFiles) -> None:
    """Turn names that no id can hold into problems."""
    usable_sources = []
    for source in found_files.sources:
        try:
            source.doc.encode()
            usable = "|" not in source.doc
        except UnicodeEncodeError:
            usable = False
        if usable:
            usable_sources.append(source)
            continue
        place = Place(source.path if source.path.isprintable() else ascii(source.path)[1:-1])
        why = "the name of the file cannot be part of an id: it holds `|` or is not UTF-8"
        hint = "rename the file or the folder"
        found_files.problems.append(Problem("bad-document", why, hint, place))
    found_files.sources = usable_sources


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _files_below(root: Path) -> Iterator[tuple[str, Path]]:
    """Every file below a folder with its path in it; a folder that links lead to comes once.

    Real folders come first, so that a link never gives its name to what also has its own.
    """
    seen: set[str] = set()
    linked: list[tuple[str, Path]] = []
    waiting: deque[tuple[str, Path]] = deque([("", root)])
    while waiting or linked:
        if not waiting:
            linked.sort()
            waiting.append(linked.pop(0))
        inside, folder = waiting.popleft()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            message = f"`{folder}` cannot be read: {error.strerror or error}"
            hint = "check its permissions"
            raise RagaugeError.of("file-unreadable", message, hint=hint) from error
        if any(entry.name == MANIFEST for entry in entries) and is_corpus(folder):
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            place = (f"{inside}{entry.name}", folder / entry.name)
            if entry.is_dir():
                (linked if entry.is_symlink() else waiting).append((f"{place[0]}/", place[1]))
            elif entry.is_file() or entry.is_symlink():  # a broken link is reported as a bad file
                yield place


def read(source: SourceFile) -> ParsedFile:
    """Read and parse one file."""
    place = Place(source.path)
    try:
        data = Path(source.path).read_bytes()
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        hint = "check that it is there and its permissions"
        return ParsedFile(problem=Problem("file-unreadable", message, hint, place))
    parser = registry.parsers()[PurePath(source.doc).suffix.lower()]
    try:
        parsed = parser.parse(data)
        check_spans(parsed)
        sections = build_sections(source.doc, parsed)
        blocks = build_blocks(source.doc, parsed, sections)
    except FieldError as error:
        return ParsedFile(problem=Problem(error.code, error.message, error.hint, place))
    except RagaugeError as error:
        return ParsedFile(problem=msgspec.structs.replace(error.problems[0], place=place))
    except Exception as error:
        return ParsedFile(fault=f"{source.path}: {parser.name}: {type(error).__name__}: {error}")
    document = Document(
        doc=source.doc,
        format=parser.name,
        hash=sha256(parsed.text).hexdigest(),
        bytes=len(parsed.text),
        text="",  # the writer names it
        source_hash=sha256(data).hexdigest(),
        title=parsed.title,
        parser_version=parser.version,
        pages=parsed.pages,
        origins=parsed.origins,
        notes=(*parsed.notes, *_warnings(parsed.text)),
    )
    return ParsedFile(document=document, sections=sections, blocks=blocks, text=parsed.text)


def _warnings(text: bytes) -> tuple[str, ...]:
    """What is likely wrong with a text. It is never repaired: that would move offsets."""
    if not text.strip():
        return ("the document is empty",)
    garbled = sum(text.count(sequence.encode()) for sequence in _MOJIBAKE)
    if garbled < 3:  # one or two may be an example of mojibake
        return ()
    return (f"{garbled} characters look like UTF-8 that was read as cp1252 (mojibake)",)


def _worker_count(workers: int | None, found_files: _FoundFiles) -> int:
    if workers is None:
        if found_files.bytes < _BYTES_FOR_WORKERS:
            return 1
        workers = min(cores(), _MOST_WORKERS)
    return max(1, min(workers, len(found_files.sources)))


def _parsed_files(sources: Sequence[SourceFile], workers: int) -> Generator[ParsedFile, None, None]:
    """Read files in order, in this process or in workers."""
    if workers == 1:
        yield from map(read, sources)
        return
    decode = msgspec.msgpack.Decoder(ParsedFile).decode
    messages = map(msgspec.msgpack.encode, sources)
    with WorkerProcesses(workers, "-c", _SERVE) as processes:
        replies = processes.map(messages, ahead=_AHEAD)
        for source in sources:
            try:
                reply = next(replies)
            except (OSError, RuntimeError) as error:  # a pipe that broke is a worker that ended
                message = f"a worker ended early while it parsed {source.path}"
                raise RuntimeError(message) from error
            yield decode(reply)


def serve() -> None:
    """Parse the files that the standard input names, until it ends: the worker's side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the answers
    while (message := read_message(stdin)) is not None:
        reading = read(msgspec.msgpack.decode(message, type=SourceFile))
        write_message(stdout, msgspec.msgpack.encode(reading))
