"""Building a corpus: finds files, parses them in this process or in workers, writes the folder.

Workers are plain subprocesses, as those that score (decision 0003): they get the name of a file,
read and parse it, and answer with its rows. Answers are taken in the order of the documents, a few
ahead at most, so the result does not depend on their number and memory does not grow with the
corpus.

Whatever a parser does with a file is a problem of that file alone (decision 0037): an exception,
too deep a recursion, too little memory, and the end of the process by a fault in native code, which
is why files of native parsers are always parsed in a worker.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePath
from typing import Literal

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.concurrency import (
    WorkerEndedError,
    WorkerProcesses,
    cores,
    read_message,
    write_message,
)
from ragauge.corpus.blocks import build_blocks
from ragauge.corpus.garbled_text import count_glyph_numbers
from ragauge.corpus.manifest import (
    MANIFEST,
    SYMLINK,
    CorpusCounts,
    CorpusWriter,
    Manifest,
    is_corpus,
)
from ragauge.corpus.section_tree import build_sections, check_parsed
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Block, Document, Parser, Section

ProgressCallback = Callable[[int, int], None]
"""Is called with the number of files that are done, and of all files."""
TracebackCallback = Callable[[str, str], None]
"""Is called with a document and the traceback of its parser, for each one that failed."""

_AHEAD = 8  # files for each worker that may be parsed before it is their turn to be written
_BYTES_FOR_WORKERS = 1 << 20  # smaller corpora are parsed before a worker has started
_MOST_WORKERS = 8  # one process writes all that the others parse
_FAILED_HINT = (
    "`--on-bad-file skip` builds without it; RAGAUGE_DEBUG=1 shows where the parser failed; please "
    "report it, with the file if you can"
)
_SERVE = "from ragauge.corpus.build import serve; serve()"
_LEAST_GARBLED = 3  # one or two may be an example of it
# UTF-8 that was read as cp1252 and written again: "â€™" for an apostrophe, "Ã¤" for "ä".
_MOJIBAKE = ("â€™", "â€œ", "â€“", "Ã¤", "Ã¶", "Ã¼", "Ã©", "Â\N{NO-BREAK SPACE}")


class SourceFile(Struct, frozen=True):
    """A file that was found, and the name of its document."""

    doc: str
    path: str


class ParsedFile(Struct, frozen=True, kw_only=True):
    """What became of one file: a document with its rows, or a problem.

    `tracebacks` are those of the parser, if it failed on the file or on parts of it.
    """

    document: Document | None = None
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()
    text: bytes = b""
    problem: Problem | None = None
    tracebacks: tuple[str, ...] = ()


class DocumentNote(Struct, frozen=True):
    """Something that a reader should know of a document."""

    doc: str
    text: str


class BuildResult(Struct, frozen=True, kw_only=True):
    """The result of a build: the manifest, notes on documents, and files that were skipped.

    `links` are those that lead out of their folder and were not followed.
    """

    folder: str
    manifest: Manifest
    notes: tuple[DocumentNote, ...] = ()
    skipped: tuple[Problem, ...] = ()
    skipped_count: int = 0
    links: tuple[str, ...] = ()

    @property
    def counts(self) -> CorpusCounts:
        """How much is in the corpus."""
        return self.manifest.counts


class _FoundFiles(Struct):
    sources: list[SourceFile]
    problems: list[Problem]
    links: list[str]
    left_out: Counter[str]
    bytes: int = 0


def build(
    paths: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    on_bad_file: Literal["stop", "skip"] = "stop",
    follow_symlinks: bool = False,
    progress: ProgressCallback | None = None,
    on_traceback: TracebackCallback | None = None,
) -> BuildResult:
    """Build a corpus from files and folders; the result does not depend on `workers`.

    Links that lead out of a folder are followed only if `follow_symlinks` says so.
    """
    folder = Path(out)
    writer = CorpusWriter(folder)
    for path in paths:
        if Path(os.path.realpath(path)).is_relative_to(writer.out):
            message = f"`{path}` lies in `{out}`, which would be replaced"
            raise RagaugeError.of("usage", message, hint="write the corpus to another folder")
    found_files = _find([Path(path) for path in paths], follow_symlinks=follow_symlinks)
    problems = list(found_files.problems)
    notes: list[DocumentNote] = []
    files = _parsed_files(found_files.sources, _worker_count(workers, found_files))
    with writer, closing(files):
        for done, (source, reading) in enumerate(zip(found_files.sources, files, strict=True), 1):
            if on_traceback is not None:
                for text in reading.tracebacks:
                    on_traceback(source.doc, text)
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
        links=tuple(sorted(found_files.links)),
    )


def _no_documents(found_files: _FoundFiles, problems: Sequence[Problem]) -> RagaugeError:
    if problems:
        why = f"none of the {len(problems)} files could be read"
        listed = [*problems[: MAX_REPORTED - 1]]
    else:
        counts = sorted(found_files.left_out.items())
        kinds = ", ".join(f"{suffix} {count}" for suffix, count in counts if suffix != SYMLINK)
        why = "no document was found" + (f"; files of other kinds: {kinds}" if kinds else "")
        listed = []
    hint = f"files that are read end in {', '.join(sorted(registry.parsers()))}"
    if found_files.left_out[SYMLINK]:
        hint += "; `--follow-symlinks` follows links that lead out of the folder"
    return RagaugeError([Problem("nothing-measured", why, hint), *listed], total=len(problems) + 1)


def _find(paths: Sequence[Path], *, follow_symlinks: bool) -> _FoundFiles:
    """Find the files of all paths, by document; a corpus is no source, so nor is the output."""
    found_files = _FoundFiles([], [], [], Counter())
    by_doc: dict[str, str] = {}
    for path in paths:
        if path.is_dir():
            files = _files_below(path, follow_symlinks=follow_symlinks)
        elif path.exists():
            files = iter([(path.name, path)])
        else:
            raise RagaugeError.of(
                "file-not-found", f"`{path}` is not there", hint="check the spelling and the folder"
            )
        for doc, file in files:
            suffix = PurePath(doc).suffix.lower()
            if file is None:
                found_files.left_out[SYMLINK] += 1
                found_files.links.append(str(path / doc))
                continue
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


def _files_below(root: Path, *, follow_symlinks: bool) -> Iterator[tuple[str, Path | None]]:
    """Every file below a folder with its path in it; a folder that links lead to comes once.

    Real folders come first, so that a link never gives its name to what also has its own. A link to
    a file or a folder outside the root is not followed unless asked, since whoever wrote the folder
    could make any file of this machine a document; it comes with None in place of its path.
    """
    real_root = Path(os.path.realpath(root))
    seen: set[str] = set()
    linked: list[tuple[str, Path]] = []
    waiting: deque[tuple[str, Path]] = deque([("", root)])

    def leaves(real: str) -> bool:
        return not follow_symlinks and not Path(real).is_relative_to(real_root)

    while waiting or linked:
        if not waiting:
            linked.sort()
            waiting.append(linked.pop(0))
        inside, folder = waiting.popleft()
        real = os.path.realpath(folder)
        if leaves(real):  # not only links do so: junctions of Windows do
            yield inside, None
            continue
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            message = f"`{folder}` cannot be read: {error.strerror or error}"
            hint = "check its permissions"
            raise RagaugeError.of("file-unreadable", message, hint=hint) from error
        if any(entry.name == MANIFEST and entry.is_file() for entry in entries) and is_corpus(
            folder
        ):
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            doc, path = f"{inside}{entry.name}", folder / entry.name
            if entry.is_symlink():
                try:
                    mode = path.stat().st_mode
                except OSError:  # to nothing, or in a circle: reported as a bad file
                    mode = stat.S_IFREG
                if stat.S_ISDIR(mode):
                    linked.append((f"{doc}/", path))
                elif leaves(os.path.realpath(path)):
                    yield doc, None
                elif stat.S_ISREG(mode):  # a pipe would be waited for, a device may never end
                    yield doc, path
            elif entry.is_dir():
                waiting.append((f"{doc}/", path))
            elif entry.is_file():
                yield doc, path


def read(source: SourceFile) -> ParsedFile:
    """Read and parse one file; whatever goes wrong there is its own problem."""
    parser = _parser_of(source)
    try:
        try:
            data = Path(source.path).read_bytes()
        except OSError as error:
            message = f"the file cannot be read: {error.strerror or error}"
            hint = "check that it is there and its permissions"
            return _problem(source, "file-unreadable", message, hint)
        return _parsed_file(source, parser, data)
    except FieldError as error:
        return _problem(source, error.code, error.message, error.hint)
    except RagaugeError as error:
        first = error.problems[0]
        return _problem(source, first.code, first.message, first.hint)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of an extension in Rust is not an `Exception`
        reason = _FAILURES.get(type(error)) or f"{type(error).__name__}: {error}"
        text = "".join(traceback.format_exception(error))
        return _parser_failed(source, parser, reason, text)


_FAILURES: dict[type[BaseException], str] = {
    MemoryError: "there is not enough memory for it",
    RecursionError: "it is nested too deeply",
}


def _parser_failed(source: SourceFile, parser: Parser, reason: str, *tracebacks: str) -> ParsedFile:
    message = f"the parser for {parser.title} failed: {reason}"
    return _problem(source, "parser-failed", message, _FAILED_HINT, *tracebacks)


def _problem(
    source: SourceFile, code: str, message: str, hint: str, *tracebacks: str
) -> ParsedFile:
    """A file without a document; what is quoted from it may be no UTF-8, which no message holds."""
    problem = Problem(code, _encodable(message), _encodable(hint), Place(source.path))
    return ParsedFile(problem=problem, tracebacks=tuple(map(_encodable, tracebacks)))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _parser_of(source: SourceFile) -> Parser:
    return registry.parsers()[PurePath(source.doc).suffix.lower()]


def _parsed_file(source: SourceFile, parser: Parser, data: bytes) -> ParsedFile:
    parsed = parser.parse(data)
    check_parsed(parsed)
    sections = build_sections(source.doc, parsed)
    blocks = build_blocks(source.doc, parsed, sections)
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
    return ParsedFile(
        document=document,
        sections=sections,
        blocks=blocks,
        text=parsed.text,
        tracebacks=parsed.tracebacks,
    )


def _warnings(text: bytes) -> tuple[str, ...]:
    """What is likely wrong with a text. It is never repaired: that would move offsets."""
    if not text.strip():
        return ("the document is empty",)
    warnings = []
    garbled = sum(text.count(sequence.encode()) for sequence in _MOJIBAKE)
    if garbled >= _LEAST_GARBLED:
        warnings.append(f"{garbled} characters look like UTF-8 that was read as cp1252 (mojibake)")
    glyphs = count_glyph_numbers(text)
    if glyphs >= _LEAST_GARBLED:
        warnings.append(f"{glyphs} glyph numbers such as (cid:12) stand where letters should")
    return tuple(warnings)


def _worker_count(workers: int | None, found_files: _FoundFiles) -> int:
    """The number of worker processes; 0 if all is parsed in this process."""
    native = any(_parser_of(source).native for source in found_files.sources)
    if workers is None:
        large = found_files.bytes >= _BYTES_FOR_WORKERS
        workers = min(cores(), _MOST_WORKERS) if large else 1
    workers = min(workers, len(found_files.sources))
    return workers if workers > 1 or native else 0


def _parsed_files(sources: Sequence[SourceFile], workers: int) -> Generator[ParsedFile, None, None]:
    """Read files in order, in this process or in workers."""
    if not workers:
        yield from map(read, sources)
        return
    with WorkerProcesses(workers, "-c", _SERVE) as processes:
        rest = iter(sources)
        waiting: deque[tuple[SourceFile, Future[bytes]]] = deque()
        while True:
            for source in islice(rest, _AHEAD * workers - len(waiting)):
                waiting.append((source, processes.submit(_encoded(source))))
            if not waiting:
                return
            source, reply = waiting.popleft()
            try:
                reading = _decoded(reply.result(), source)
            except WorkerEndedError:
                reading = _read_alone(source)
            yield reading


def _read_alone(source: SourceFile) -> ParsedFile:
    """Read a file at which a worker ended once more, with nothing else running beside it.

    It may have been another one that took the memory, and a worker that does not even start is no
    fault of the file.
    """
    with WorkerProcesses(1, "-c", _SERVE) as processes:
        try:
            processes.submit(b"").result()
        except WorkerEndedError as error:
            message = f"a worker ended early, before it parsed {source.path}"
            raise RuntimeError(message) from error
        try:
            reply = processes.submit(_encoded(source)).result()
        except WorkerEndedError as error:
            reason = f"its process ended with {error.reason}"
            return _parser_failed(source, _parser_of(source), reason)
    return _decoded(reply, source)


def _encoded(source: SourceFile) -> bytes:
    """A message with a path in bytes: a folder may have a name that is no UTF-8."""
    return msgspec.msgpack.encode((source.doc, os.fsencode(source.path)))


def _decoded(reply: bytes, source: SourceFile) -> ParsedFile:
    """What a worker answered, without a path for the same reason."""
    reading = _DECODER.decode(reply)
    if reading.problem is None:
        return reading
    problem = msgspec.structs.replace(reading.problem, place=Place(source.path))
    return msgspec.structs.replace(reading, problem=problem)


_DECODER = msgspec.msgpack.Decoder(ParsedFile)


def serve() -> None:
    """Parse the files that the standard input names, until it ends: the worker's side.

    An empty message is answered with an empty one, to say that the worker has started.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what a library prints must not get between the answers
    while (message := read_message(stdin)) is not None:
        if not message:
            write_message(stdout, b"")
            continue
        doc, path = msgspec.msgpack.decode(message, type=tuple[str, bytes])
        reading = read(SourceFile(doc, os.fsdecode(path)))
        if reading.problem is not None:
            problem = msgspec.structs.replace(reading.problem, place=None)
            reading = msgspec.structs.replace(reading, problem=problem)
        write_message(stdout, msgspec.msgpack.encode(reading))
