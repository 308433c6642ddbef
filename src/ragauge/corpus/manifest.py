"""The folder of a corpus on disk: how it is written whole or not at all, and how it is read.

    manifest.json     schema, versions of normaliser and parsers, counts, hashes, the revision
    documents.jsonl   one line a document, by `doc`; sections.jsonl and blocks.jsonl follow it
    text/             the canonical text of each document, under a name that is safe everywhere

The same documents give the same bytes: there is no clock, no machine and no order of arrival in it.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, TypeVar

import msgspec
from msgspec import Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.lock_file import hold
from ragauge.model.corpus import Block, Document, Section

SCHEMA = "ragauge.corpus/1"
NORMALISER = 1
"""What canonical text, title tree, ids and fingerprints are made by; a changed result bumps it."""

MANIFEST = "manifest.json"
SYMLINK = "symlink"
"""What links that lead out of the source folder are counted as in `left_out`."""
TEXT = "text"
_LISTS = ("documents.jsonl", "sections.jsonl", "blocks.jsonl")
_ENTRIES = {MANIFEST, TEXT, *_LISTS}

_UNSAFE = re.compile(r"[^A-Za-z0-9._ ()+,=@~-]")
_DEVICES = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")  # of Windows
_LONGEST_NAME = 180  # most file systems take 255 bytes; `.txt` and a hash may still be added
_ROWS_AT_ONCE = 4096  # rows that are encoded together

T = TypeVar("T", Document, Section, Block)


class CorpusCounts(Struct, frozen=True, kw_only=True):
    """How much is in a corpus; `bytes` are those of the canonical texts."""

    documents: int
    sections: int
    blocks: int
    bytes: int
    formats: dict[str, int] = {}
    types: dict[str, int] = {}


class FileHash(Struct, frozen=True, kw_only=True):
    """One of the lists: its size and the hash of its bytes."""

    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, kw_only=True):
    """What manifest.json says. The revision is a hash over the three lists, so over all content."""

    schema: str = SCHEMA
    revision: str
    normaliser: int = NORMALISER
    parsers: dict[str, int]
    counts: CorpusCounts
    files: dict[str, FileHash]
    left_out: dict[str, int] = {}


class Corpus(Struct, frozen=True, kw_only=True):
    """A corpus that was read: its manifest and its three lists."""

    folder: str
    manifest: Manifest
    documents: tuple[Document, ...]
    sections: tuple[Section, ...] = ()
    blocks: tuple[Block, ...] = ()

    def text(self, document: Document) -> bytes:
        """The canonical text of a document, which must be the one that was built."""
        root = Path(self.folder).resolve()
        path = (root / document.text).resolve()
        if not path.is_relative_to(root / TEXT):
            raise _damaged(path, f"`{document.text}` is outside the corpus")
        text = _bytes_of(path)
        if sha256(text).hexdigest() != document.hash:
            raise _damaged(path, "the text is not the one that was built")
        return text


_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class CorpusWriter:
    """Writes a corpus document by document into a temporary folder beside its place."""

    def __init__(self, out: str | os.PathLike[str]) -> None:
        self.out = Path(out).resolve()
        refuse_foreign(self.out)
        self.names: set[str] = set()
        self.parsers: dict[str, int] = {}
        self.formats: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.totals = Counter(documents=0, sections=0, blocks=0, bytes=0)
        self.hashes = [sha256() for _ in _LISTS]
        self.sizes = [0 for _ in _LISTS]
        self.streams: list[IO[bytes]] = []
        self.build_folder: BuildFolder | None = None

    def __enter__(self) -> CorpusWriter:
        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            self.build_folder = BuildFolder(self.out)
            self.streams = [(self.build_folder.new / name).open("wb") for name in _LISTS]
        except OSError as error:
            self._discard()
            raise _unwritable(self.out, error) from error
        return self

    def __exit__(self, *failure: object) -> None:
        self._discard()

    def text_name(self, doc: str) -> str:
        """Choose the name of a document's text; documents come in order, so it is always the same.

        Names that differ in nothing but case would be one file on some systems.
        """
        name = safe_name(doc)
        if name.lower() in self.names:
            name = f"{name.removesuffix('.txt')}~{sha256(doc.encode()).hexdigest()[:12]}.txt"
        self.names.add(name.lower())
        return name

    def add(
        self, document: Document, sections: Sequence[Section], blocks: Sequence[Block], text: bytes
    ) -> None:
        """Write one document; they come in the order of `doc`."""
        assert self.build_folder is not None
        document = msgspec.structs.replace(document, text=self.text_name(document.doc))
        encode = msgspec.json.Encoder(order="deterministic").encode
        try:
            path = self.build_folder.new / document.text
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
            for position, rows in enumerate(([document], sections, blocks)):
                for at in range(0, len(rows), _ROWS_AT_ONCE):
                    lines = b"".join(encode(row) + b"\n" for row in rows[at : at + _ROWS_AT_ONCE])
                    self.streams[position].write(lines)
                    self.hashes[position].update(lines)
                    self.sizes[position] += len(lines)
        except OSError as error:
            raise _unwritable(self.out, error) from error
        self.totals.update(documents=1, sections=len(sections), blocks=len(blocks), bytes=len(text))
        self.parsers[document.format] = document.parser_version
        self.formats[document.format] += 1
        self.types.update(block.type for block in blocks)

    def finish(self, left_out: Mapping[str, int]) -> Manifest:
        """Write the manifest and put the folder in its place."""
        assert self.build_folder is not None
        files = {
            name: FileHash(bytes=size, sha256=digest.hexdigest())
            for name, size, digest in zip(_LISTS, self.sizes, self.hashes, strict=True)
        }
        formats, types = dict(sorted(self.formats.items())), dict(sorted(self.types.items()))
        manifest = Manifest(
            revision=_revision(files),
            parsers=dict(sorted(self.parsers.items())),
            counts=CorpusCounts(**self.totals, formats=formats, types=types),
            files=files,
            left_out=dict(sorted(left_out.items())),
        )
        try:
            for stream in self.streams:
                stream.close()
            (self.build_folder.new / TEXT).mkdir(exist_ok=True)
            laid_out = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
            (self.build_folder.new / MANIFEST).write_bytes(laid_out + b"\n")
            refuse_foreign(self.out)
            self.build_folder.put_in_place()
        except OSError as error:
            raise _unwritable(self.out, error) from error
        return manifest

    def _discard(self) -> None:
        for stream in self.streams:
            stream.close()
        if self.build_folder is not None:
            self.build_folder.discard()


def refuse_foreign(out: Path) -> None:
    """Refuse to replace anything but an empty folder, or a corpus with nothing else in it."""
    if not out.exists():
        return
    entries = sorted(entry.name for entry in out.iterdir()) if out.is_dir() else None
    if entries == [] or (is_corpus(out) and entries is not None and _ENTRIES.issuperset(entries)):
        return
    strange = [name for name in entries or () if name not in _ENTRIES]
    why = f"it holds `{strange[0]}`" if strange else "it is not a corpus"
    message = f"`{out.name}` is already there and is not replaced: {why}"
    hint = "name a folder that is not there yet, or one that `corpus build` wrote"
    raise RagaugeError.of("file-exists", message, hint=hint)


def is_corpus(folder: Path) -> bool:
    """Whether a folder has a manifest of ours."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, *_NOT_JSON):
        return False
    return isinstance(manifest, dict) and str(manifest.get("schema")).startswith("ragauge.corpus/")


def safe_name(doc: str) -> str:
    """Name the file of a document's text inside the corpus, in characters safe on any system."""
    *folders, last = doc.split("/")
    # A folder `a.md.txt` and the text of `a.md` would otherwise be the same name.
    parts = [re.sub(r"\.(?=txt\Z)", "%2E", _safe_part(part), flags=re.I) for part in folders]
    return "/".join([TEXT, *parts, f"{_safe_part(last)}.txt"])


def _safe_part(part: str) -> str:
    name = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), part)
    if not name:
        return "%"
    if name[0] in ". " or _DEVICES.match(name):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if name[-1] in ". ":
        name = f"{name[:-1]}%{ord(name[-1]):02X}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 13]}~{sha256(part.encode()).hexdigest()[:12]}"
    return name


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read what manifest.json says."""
    path = Path(folder) / MANIFEST
    try:
        manifest = msgspec.json.decode(_bytes_of(path), type=Manifest)
    except _NOT_JSON as error:
        raise _damaged(path, str(error)) from error
    if manifest.schema != SCHEMA:
        raise _damaged(path, f"its schema is `{manifest.schema}`, this version reads `{SCHEMA}`")
    return manifest


def read_corpus(folder: str | os.PathLike[str]) -> Corpus:
    """Read a corpus; its lists must be those that its manifest speaks of."""
    corpus = read_documents(folder)
    sections = tuple(_rows(Path(folder) / _LISTS[1], corpus.manifest, Section))
    blocks = tuple(read_blocks(corpus))
    _check_parts(Path(folder), corpus.documents, sections, blocks)
    return msgspec.structs.replace(corpus, sections=sections, blocks=blocks)


def _check_parts(
    folder: Path,
    documents: Sequence[Document],
    sections: Sequence[Section],
    blocks: Sequence[Block],
) -> None:
    """Hold sections and blocks to what they are parts of: hashes say only that nothing changed."""
    sizes = {document.doc: document.bytes for document in documents}
    above: set[tuple[str, str | None]] = {(doc, None) for doc in sizes}
    for line, section in enumerate(sections, 1):
        # A section stands behind the one that it is in, so none is inside itself.
        if (section.doc, section.parent) not in above:
            raise _damaged(folder / _LISTS[1], "a section is in nothing above it", line=line)
        above.add((section.doc, section.id))
        for start, end in (section.body, section.subtree, section.heading or (0, 0)):
            if not 0 <= start <= end <= sizes[section.doc]:
                raise _damaged(folder / _LISTS[1], "a section is not in its document", line=line)
    for line, block in enumerate(blocks, 1):
        start, end = block.span
        if (block.doc, block.section) not in above or not 0 <= start <= end <= sizes[block.doc]:
            raise _damaged(folder / _LISTS[2], "a block is not in its section", line=line)


def read_documents(folder: str | os.PathLike[str]) -> Corpus:
    """Read what leads to texts: the documents of a corpus, without its sections and blocks."""
    manifest = read_manifest(folder)
    documents = tuple(_rows(Path(folder) / _LISTS[0], manifest, Document))
    return Corpus(folder=str(folder), manifest=manifest, documents=documents)


def read_blocks(corpus: Corpus) -> Iterator[Block]:
    """Read the blocks of a corpus, one after the other."""
    return _rows(Path(corpus.folder) / _LISTS[2], corpus.manifest, Block)


def _rows(path: Path, manifest: Manifest, kind: type[T]) -> Iterator[T]:
    data = _bytes_of(path)
    expected = manifest.files.get(path.name)
    if expected is None or sha256(data).hexdigest() != expected.sha256:
        raise _damaged(path, "its bytes are not those that the manifest speaks of")
    decode = msgspec.json.Decoder(kind).decode
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            yield decode(line)
        except _NOT_JSON as error:
            raise _damaged(path, str(error), line=number) from error


def _revision(files: Mapping[str, FileHash]) -> str:
    hashes = "".join(f"{name} {files[name].sha256}\n" for name in _LISTS)
    return sha256(f"{SCHEMA} {NORMALISER}\n{hashes}".encode()).hexdigest()[:32]


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        hint = "name a folder that `ragauge corpus build` wrote"
        if path.parent.is_dir() and path.name == MANIFEST:
            hint = f"first `ragauge corpus build {path.parent} -o corpus`, then --corpus corpus"
        raise RagaugeError.of("file-not-found", f"`{path}` is not there", hint=hint) from error
    except OSError as error:
        message = f"`{path}` cannot be read: {error.strerror or error}"
        raise RagaugeError.of("file-unreadable", message, hint="check its permissions") from error


def _damaged(path: Path, why: str, *, line: int | None = None) -> RagaugeError:
    message = f"the corpus cannot be used: {why}"
    hint = "build it again with `ragauge corpus build`; its files are not edited by hand"
    return RagaugeError.of("bad-corpus", message, hint=hint, place=Place(str(path), line))


def _unwritable(out: Path, error: OSError) -> RagaugeError:
    message = f"`{out}` cannot be written: {error.strerror or error}"
    hint = "check that the folder above it may be written to, and that the disk has room"
    return RagaugeError.of("file-unreadable", message, hint=hint)


MARKER = ".ragauge-building"
"""A file in the folder of a build, locked as long as the build runs.

It tells leftovers from a running build, and our folders from any other that is called alike.
"""
_NEW, _OLD = "new", "old"


class BuildFolder:
    """The temporary folder of a build: the new corpus in it is renamed to its place in one step.

    It is beside the output, since a rename works only within one file system.
    """

    def __init__(self, out: Path) -> None:
        """Make the folder beside `out`, after clearing what earlier builds have left."""
        self.out = out
        remove_leftovers(out)
        self.folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        self.new = self.folder / _NEW
        self.marker: IO[bytes] | None = None
        try:
            self._mark()
            self.new.mkdir()
        except BaseException:
            self.discard()
            raise

    def _mark(self) -> None:
        """Put the marker in; it is locked under another name before anybody can see it."""
        early = self.folder / f"{MARKER}.early"
        self.marker = early.open("wb")
        self.marker.write(_marker_text(self.out))
        self.marker.flush()
        hold(self.marker)
        with suppress(PermissionError):  # Windows renames no open files: leftovers stay there
            early.rename(self.folder / MARKER)

    def put_in_place(self) -> None:
        """Replace the output by the new folder; if that fails, the old one is back."""
        if not self.out.exists():
            self.new.rename(self.out)
            return
        old = self.folder / _OLD
        self.out.rename(old)
        try:
            self.new.rename(self.out)
        except BaseException:
            old.rename(self.out)
            raise

    def discard(self) -> None:
        """Remove the folder and what is still in it."""
        if self.marker is not None:
            self.marker.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def remove_leftovers(out: Path) -> None:
    """Remove what builds of this output left when they were ended by force.

    One may have been ended between taking the old output away and putting the new one there: then
    the old one comes back first.
    """
    for folder in sorted(out.parent.glob(f".{glob.escape(out.name)}.*")):
        marker = folder / MARKER
        with suppress(OSError):
            linked = folder.is_symlink() or marker.is_symlink()
            if linked or marker.read_bytes() != _marker_text(out):
                continue
            with marker.open("rb+") as stream:
                hold(stream)  # whoever still builds holds it, which is an error here
                if (folder / _OLD).exists() and not out.exists():
                    (folder / _OLD).rename(out)
                shutil.rmtree(folder, ignore_errors=True)


def _marker_text(out: Path) -> bytes:
    return f"a corpus is being built here, to become {out.name}\n".encode(errors="surrogateescape")
