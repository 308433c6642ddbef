"""`corpus build` finds files, writes a folder that is whole or not there, and can be read again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge import registry
from ragauge.corpus.build import build
from ragauge.corpus.manifest import BuildFolder, read_corpus, read_manifest, safe_name
from ragauge.errors import RagaugeError
from ragauge.model.corpus import Parsed, Parser, Piece
from tests.support.cases import cases
from tests.support.command import Folder

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = "# Guide\n\nRead this first. Then that.\n\n## Setup\n\n```sh\nmake\n```\n\n![a](b.png)\n"

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def documents(folder: Folder, out: str = "out") -> list[str]:
    return [document.doc for document in read_corpus(folder.path / out).documents]


def sources(folder: Folder) -> None:
    folder.write("docs/guide.md", GUIDE)
    folder.write("docs/b/notes.TXT", "one\n\ntwo\n")
    folder.write("docs/b/pic.png", b"\x89PNG")
    folder.write("docs/Makefile", "all:\n")
    folder.write("docs/.hidden.md", "# no\n")
    folder.write("docs/.git/x.md", "# no\n")


def test_a_corpus_is_built_and_summed_up(folder: Folder) -> None:
    sources(folder)
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert done.exit_code == 0
    assert done.err == ""
    revision = read_manifest("out").revision
    assert done.out.splitlines() == [
        f"wrote out, revision {revision}",
        "documents  2  (markdown 1, text 1)",
        "sections   3",  # S.0 of the notes; S.1 and S.1.1 of the guide
        "blocks     5  (prose 3, code 1, figure 1)",
        "bytes      85",  # 76 and 9
        "left out   2  (.png 1, no suffix 1)",
    ]


def test_many_kinds_of_other_files_are_summed_up(folder: Folder) -> None:
    """The summary names eight kinds, the manifest all of them."""
    folder.write("docs/a.md", "# A\n")
    for number in range(11):
        folder.write(f"docs/f.x{number:02}", "")
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert "left out   11  (.x00 1, " in done.out
    assert ".x07 1, and 3 more kinds)" in done.out
    assert read_manifest("out").left_out == {f".x{number:02}": 1 for number in range(11)}


def test_what_is_written_can_be_read_again(folder: Folder) -> None:
    sources(folder)
    built = build(["docs"], "out", workers=1)
    corpus = read_corpus("out")
    assert corpus.manifest == built.manifest
    assert [document.doc for document in corpus.documents] == ["b/notes.TXT", "guide.md"]
    guide = corpus.documents[1]
    assert guide.title == "Guide"
    assert guide.hash == guide.source_hash == sha256(GUIDE.encode()).hexdigest()
    assert corpus.text(guide) == GUIDE.encode()
    assert [section.id for section in corpus.sections] == ["S.0", "S.1", "S.1.1"]
    assert [block.id for block in corpus.blocks[2:]] == [
        "guide.md#S.1.p.Bk001", "guide.md#S.1.1.c.Bk001", "guide.md#S.1.1.f.Bk002",
    ]  # fmt: skip
    assert corpus.manifest.left_out == {".png": 1, "no suffix": 1}
    assert sorted(os.listdir("out")) == [
        "blocks.jsonl", "documents.jsonl", "manifest.json", "sections.jsonl", "text",
    ]  # fmt: skip


def test_neither_workers_nor_the_order_of_paths_show(folder: Folder) -> None:
    for number in range(12):
        folder.write(f"{'ab'[number % 2]}/f{number}.md", f"# T{number}\n\n" + "text\n\n" * number)
    build(["a", "b"], "one", workers=1)
    build(["b", "a"], "two", workers=3)
    assert tree(folder.path / "one") == tree(folder.path / "two")
    assert documents(folder, "one") == sorted(f"f{number}.md" for number in range(12))


def test_the_pages_of_this_project_are_a_corpus(folder: Folder) -> None:
    build([DOCS], "one")
    build([DOCS], "two", workers=2)
    assert tree(folder.path / "one") == tree(folder.path / "two")
    corpus = read_corpus("one")
    pages = [path for path in DOCS.rglob("*.md") if not path.name.startswith(".")]
    assert len(corpus.documents) >= len(pages) > 10
    assert corpus.manifest.counts.types.keys() >= {"prose", "code", "table"}
    for document in corpus.documents:
        if document.format == "markdown":
            assert corpus.text(document) == (DOCS / document.doc).read_bytes()


def test_a_corpus_is_replaced_and_nothing_else_is(folder: Folder) -> None:
    folder.write("docs/a.md", "# A\n")
    build(["docs"], "out")
    folder.write("docs/b.md", "# B\n")
    (folder.path / "docs/a.md").unlink()
    build(["docs"], "out")
    assert documents(folder) == ["b.md"]
    assert not (folder.path / "out/text/a.md.txt").exists()
    assert sorted(os.listdir()) == ["docs", "out"]


def test_an_empty_folder_is_filled(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    (folder.path / "out").mkdir()
    build(["a.md"], "out")
    assert documents(folder) == ["a.md"]


@cases(
    ("name", "content"),
    [
        ("out/notes.txt", "mine"),
        ("out/manifest.json", '{"schema": "other"}'),
        ("out/manifest.json", "no json"),
        ("out", "a file"),
    ],
)
def test_what_is_not_a_corpus_is_left_alone(folder: Folder, name: str, content: str) -> None:
    folder.write("a.md", "# A\n")
    folder.write(name, content)
    before = tree(folder.path)
    done = folder.run("corpus", "build", "a.md", "-o", "out")
    assert done.exit_code == 2
    assert done.codes == {"file-exists"}
    assert tree(folder.path) == before


def test_a_file_of_yours_inside_a_corpus_is_not_deleted(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    build(["a.md"], "out")
    folder.write("out/mine.txt", "x")
    before = tree(folder.path)
    done = folder.run("corpus", "build", "a.md", "-o", "out")
    assert done.codes == {"file-exists"}
    assert "`mine.txt`" in done.err
    assert tree(folder.path) == before


def test_corpora_are_no_sources(folder: Folder) -> None:
    """The output may stand inside the sources, and other corpora beside it."""
    folder.write("docs/a.txt", "A\n")
    build(["docs"], "docs/one")
    build(["docs"], "docs/two")
    build(["docs"], "docs/one")
    assert documents(folder, "docs/one") == documents(folder, "docs/two") == ["a.txt"]


def test_nothing_found(folder: Folder) -> None:
    folder.write("docs/pic.png", b"x")
    done = folder.run("corpus", "build", "docs", "-o", "deep/out")
    assert done.exit_code == 5
    assert done.codes == {"nothing-measured"}
    assert ".png 1" in done.err
    assert not (folder.path / "deep/out").exists()


def test_a_path_that_is_not_there(folder: Folder) -> None:
    done = folder.run("corpus", "build", "gone", "-o", "out")
    assert (done.exit_code, done.codes) == (2, {"file-not-found"})


@cases("arguments", [[], ["x.md"], ["-o", "out"], ["x.md", "-o", "y", "--workers", "0"]])
def test_usage(folder: Folder, arguments: list[str]) -> None:
    assert folder.run("corpus", "build", *arguments).exit_code == 2


@pytest.mark.parametrize("workers", ["1", "2"])
def test_bad_files_are_told_together(folder: Folder, workers: str) -> None:
    folder.write("docs/good.md", "# G\n")
    for number in range(25):
        folder.write(f"docs/bad{number:02}.md", b"\xff")
    done = folder.run("corpus", "build", "docs", "-o", "out", "--workers", workers)
    assert done.exit_code == 3
    assert [problem.where for problem in done.problems] == [
        os.path.join("docs", f"bad{number:02}.md") for number in range(20)
    ]
    assert done.codes == {"bad-encoding"}
    assert "and 5 more problems" in done.err
    assert os.listdir() == ["docs"]


def test_bad_files_can_be_skipped(folder: Folder) -> None:
    folder.write("docs/bad.md", b"\xff")
    folder.write("docs/good.md", "# G\n")
    done = folder.run("corpus", "build", "docs", "-o", "out", "--on-bad-file", "skip")
    assert done.exit_code == 0
    assert "skipped    1" in done.out
    assert "bad.md" in done.err
    assert "[bad-encoding]" in done.err
    assert documents(folder) == ["good.md"]


def test_skipping_everything_is_nothing(folder: Folder) -> None:
    folder.write("bad.md", b"\xff")
    done = folder.run("corpus", "build", "bad.md", "-o", "out", "--on-bad-file", "skip")
    assert done.exit_code == 5
    assert done.codes == {"nothing-measured", "bad-encoding"}
    assert os.listdir() == ["bad.md"]


def test_two_files_cannot_be_one_document(folder: Folder) -> None:
    folder.write("a/x.md", "# A\n")
    folder.write("b/x.md", "# B\n")
    done = folder.run("corpus", "build", "a", "b", "-o", "out")
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert "`x.md`" in done.err
    again = str(folder.path / "a/x.md")  # the same file by another name is one document
    assert folder.run("corpus", "build", "a", "a/x.md", again, "-o", "out").exit_code == 0
    assert documents(folder) == ["x.md"]


@needs_links
def test_links_are_followed_once(folder: Folder) -> None:
    folder.write("docs/z/a.md", "# A\n")
    folder.write("more/b.md", "# B\n")
    (folder.path / "docs/loop").symlink_to("..", target_is_directory=True)
    (folder.path / "docs/again").symlink_to("z", target_is_directory=True)
    (folder.path / "docs/z/back").symlink_to("../../docs", target_is_directory=True)
    build(["docs"], "out", follow_symlinks=True)
    assert documents(folder) == ["loop/more/b.md", "z/a.md"]


@needs_links
def test_links_that_lead_out_of_the_folder_are_counted_and_not_followed(folder: Folder) -> None:
    """Whoever writes the folder could else make any file of the machine a document."""
    folder.write("docs/a.md", "# A\n")
    folder.write("docs/pic.png", b"x")
    folder.write("docs2/b.md", "# B\n")  # its name begins like that of the folder
    folder.write("secret/key.txt", "no\n")
    links = folder.path / "docs"
    (links / "inner.md").symlink_to("a.md")
    (links / "key.txt").symlink_to("../secret/key.txt")
    (links / "absolute.txt").symlink_to(folder.path / "secret/key.txt")
    (links / "beside.md").symlink_to("../docs2/b.md")
    (links / "folder").symlink_to("../secret", target_is_directory=True)
    (links / "again").symlink_to("../secret", target_is_directory=True)
    (links / "through").symlink_to("folder", target_is_directory=True)
    (links / "gone.md").symlink_to("../secret/gone.md")
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert done.exit_code == 0
    assert documents(folder) == ["a.md", "inner.md"]
    assert read_manifest("out").left_out == {".png": 1, "symlink": 7}
    assert "left out   8  (symlink 7, .png 1)" in done.out
    names = ("absolute.txt", "again", "beside.md", "folder", "gone.md", "key.txt", "through")
    assert done.err.splitlines() == [
        f"not followed: docs/{name} leads out of the folder; --follow-symlinks follows it"
        for name in names
    ]
    (links / "gone.md").unlink()
    done = folder.run("corpus", "build", "docs", "-o", "out", "--follow-symlinks")
    assert (done.exit_code, done.err) == (0, "")
    assert documents(folder) == [
        "a.md", "absolute.txt", "again/key.txt", "beside.md", "inner.md", "key.txt",
    ]  # fmt: skip
    assert read_manifest("out").left_out == {".png": 1}


@needs_links
def test_a_link_that_is_named_is_followed(folder: Folder) -> None:
    """The folder that counts is the one that a link in the command line leads to."""
    folder.write("real/docs/a.md", "# A\n")
    folder.write("real/b.md", "# B\n")
    (folder.path / "real/docs/up.md").symlink_to("../b.md")
    (folder.path / "docs").symlink_to("real/docs", target_is_directory=True)
    (folder.path / "c.md").symlink_to("real/b.md")
    done = folder.run("corpus", "build", "docs", "c.md", "-o", "out")
    assert done.exit_code == 0
    assert documents(folder) == ["a.md", "c.md"]
    assert read_manifest("out").left_out == {"symlink": 1}


@needs_links
def test_only_links_that_lead_out_are_nothing(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    (folder.path / "docs").mkdir()
    (folder.path / "docs/a.md").symlink_to("../a.md")
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert (done.exit_code, done.codes) == (5, {"nothing-measured"})
    assert "`--follow-symlinks`" in done.problems[0].hint
    assert sorted(os.listdir()) == ["a.md", "docs"]


@needs_links
def test_links_in_a_circle_are_bad_files(folder: Folder) -> None:
    folder.write("docs/a.md", "# A\n")
    links = folder.path / "docs"
    (links / "self.md").symlink_to("self.md")
    (links / "one").symlink_to("two")
    (links / "two").symlink_to("one")
    done = folder.run("corpus", "build", "docs", "-o", "out", "--on-bad-file", "skip")
    assert done.exit_code == 0
    assert documents(folder) == ["a.md"]
    assert "skipped: docs/self.md: the file cannot be read" in done.err.replace("\\", "/")
    assert read_manifest("out").left_out == {"no suffix": 2}


@needs_links
def test_links_to_pipes_and_devices_are_not_read(folder: Folder) -> None:
    """A pipe would be waited for, and a device may never end."""
    folder.write("docs/a.md", "# A\n")
    os.mkfifo("docs/pipe")
    os.mkfifo("docs/manifest.json")
    (folder.path / "docs/pipe.md").symlink_to("pipe")
    (folder.path / "docs/zero.md").symlink_to("/dev/zero")
    build(["docs"], "out", follow_symlinks=True)
    assert documents(folder) == ["a.md"]


@needs_links
def test_a_broken_link_is_a_bad_file(folder: Folder) -> None:
    folder.write("docs/a.md", "# A\n")
    (folder.path / "docs/b.md").symlink_to("gone.md")
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert (done.exit_code, done.codes) == (2, {"file-unreadable"})
    assert done.problems[0].where == os.path.join("docs", "b.md")


@pytest.mark.skipif(sys.platform == "win32", reason="no such name on Windows")
def test_a_name_that_no_id_can_hold_is_a_bad_file(folder: Folder) -> None:
    folder.write("docs/a|b.md", "# A\n")
    folder.write("docs/c#d e.md", "# C\n\nx\n")
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert (done.exit_code, done.codes) == (3, {"bad-document"})
    assert (
        folder.run("corpus", "build", "docs", "-o", "out", "--on-bad-file", "skip").exit_code == 0
    )
    assert documents(folder) == ["c#d e.md"]


@cases(
    ("doc", "name"),
    [
        ("a/b.md", "text/a/b.md.txt"),
        ("../../etc/x.md", "text/%2E%2E/%2E%2E/etc/x.md.txt"),
        ("./x.md", "text/%2E/x.md.txt"),
        ("a//b.md", "text/a/%/b.md.txt"),
        ("c:\\x.md", "text/c%3A%5Cx.md.txt"),
        ("ä%.md", "text/%C3%A4%25.md.txt"),
        ("x.md.txt/y.md", "text/x.md%2Etxt/y.md.txt"),
        ("con.md", "text/%63on.md.txt"),
        (".a/b. /c.md", "text/%2Ea/b.%20/c.md.txt"),
    ],
)
def test_names_of_texts_are_safe(doc: str, name: str) -> None:
    assert safe_name(doc) == name


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = safe_name("x" * 250 + "1.md"), safe_name("x" * 250 + "2.md")
    assert one != other
    assert max(len(one), len(other)) < 200


def test_names_that_differ_in_case_are_two_files(folder: Folder) -> None:
    """On some systems `A.md` and `a.md` cannot both be there, so the documents are made up."""
    from ragauge.corpus.manifest import CorpusWriter

    with CorpusWriter("out") as writer:
        names = [writer.text_name(doc) for doc in ("AB.md", "Ab.md", "aB.md")]
    assert names[0] == "text/AB.md.txt"
    assert len({name.lower() for name in names}) == 3
    assert os.listdir(folder.path) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_leaves_nothing_behind(folder: Folder, workers: int) -> None:
    for number in range(30):
        folder.write(f"docs/{number}.md", "# A\n")

    def interrupt(done: int, total: int) -> None:
        assert total == 30
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(["docs"], "out", workers=workers, progress=interrupt)
    assert os.listdir() == ["docs"]


def test_a_full_disk_leaves_the_old_corpus(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("docs/a.md", "# A\n")
    build(["docs"], "out")
    before = tree(folder.path)

    def full(_path: Path, _data: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    done = folder.run("corpus", "build", "docs", "-o", "out")
    monkeypatch.undo()
    os.chdir(folder.path)
    assert (done.exit_code, done.codes) == (2, {"file-unreadable"})
    assert "No space left" in done.err
    assert tree(folder.path) == before
    assert sorted(os.listdir()) == ["docs", "out"]


def test_a_rename_that_fails_puts_the_old_corpus_back(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write("docs/a.md", "# A\n")
    build(["docs"], "out")
    folder.write("docs/b.md", "# B\n")
    before = tree(folder.path)
    rename = Path.rename

    def refuse_second(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse_second)
    with pytest.raises(RagaugeError, match="Permission denied"):
        build(["docs"], "out")
    assert tree(folder.path) == before
    assert sorted(os.listdir()) == ["docs", "out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from ragauge.corpus.build import build

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[1] == "parsing":
    build(["docs"], "out", workers=1, progress=kill)
else:
    rename = Path.rename
    Path.rename = lambda path, to: kill() if path.name == "new" else rename(path, to)
    build(["docs"], "out", workers=1)
"""


def hidden() -> list[str]:
    return sorted(name for name in os.listdir() if name.startswith("."))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
@pytest.mark.parametrize("during", ["parsing", "swapping"])
def test_what_an_end_by_force_leaves_is_removed_by_the_next_build(
    folder: Folder, during: str
) -> None:
    folder.write("docs/a.md", "# A\n")
    folder.write("docs/b.md", "# B\n")
    build(["docs"], "out")
    before = tree(folder.path / "out")
    done = subprocess.run([sys.executable, "-c", KILLED, during], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(hidden()) == 1
    assert (folder.path / "out").exists() == (during == "parsing")
    # A build that fails leaves the old corpus, and puts it back if it was on its way out.
    folder.write("docs/bad.md", b"\xff")
    assert folder.run("corpus", "build", "docs", "-o", "out").exit_code == 3
    assert hidden() == []
    assert tree(folder.path / "out") == before


def test_leftovers_of_others_and_folders_without_a_marker_stay(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    folder.write(".out.mine/notes.txt", "x")
    folder.write(".out.marked/.ragauge-building", "something else")
    folder.write(".out.other.x/.ragauge-building", "")
    other = BuildFolder(folder.path / "out.other")  # its name begins like one of `out`
    assert other.marker is not None
    other.marker.close()  # as if its process had ended
    before = hidden()
    build(["a.md"], "out")
    assert hidden() == before
    build(["a.md"], "out.other")
    assert hidden() == [".out.marked", ".out.mine", ".out.other.x"]


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is held there")
def test_a_build_that_goes_on_is_left_alone(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    going_on = BuildFolder(folder.path / "out")
    build(["a.md"], "out")
    assert going_on.new.is_dir()
    going_on.discard()
    assert hidden() == []


class Panic(BaseException):
    """As extensions in Rust raise it: not an `Exception`."""


def overlapping(data: bytes) -> Parsed:
    piece = Piece(type="prose", span=(0, len(data)))
    return Parsed(text=data, headings=(), pieces=(piece, piece))


def half_a_pair(data: bytes) -> Parsed:
    return Parsed(text=data, headings=(), pieces=(), title="\ud83d")


def endless(data: bytes) -> Parsed:
    return endless(data)


def too_large(data: bytes) -> Parsed:
    return Parsed(text=data * (1 << 60), headings=(), pieces=())


def panic(data: bytes) -> Parsed:
    raise Panic(data.decode())


def missing(_data: bytes) -> Parsed:
    raise FileNotFoundError(2, "No such file or directory")


@cases(
    ("parse", "reason"),
    [
        (overlapping, "ValueError: the span (0, 4) is outside the text or overlaps another"),
        (half_a_pair, "UnicodeEncodeError: "),
        (endless, "it is nested too deeply"),
        (too_large, "there is not enough memory for it"),
        (panic, "Panic: text"),
        (missing, "FileNotFoundError: "),
    ],
)
def test_whatever_a_parser_raises_is_the_problem_of_one_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, parse: Callable[[bytes], Parsed], reason: str
) -> None:
    bad = Parser(name="bad", title="bad files", suffixes=(".bad",), parse=parse)
    parsers = registry.parsers() | {".bad": bad}
    monkeypatch.setattr(registry, "parsers", lambda: parsers)
    folder.write("docs/a.bad", "text")
    folder.write("docs/b.md", "# B\n")
    done = folder.run("corpus", "build", "docs", "-o", "out")
    assert (done.exit_code, done.codes) == (3, {"parser-failed"})
    (problem,) = done.problems
    assert problem.where == os.path.join("docs", "a.bad")
    assert problem.message.startswith(f"the parser for bad files failed: {reason}")
    assert "--on-bad-file skip" in problem.hint
    assert "Traceback" not in done.err
    assert os.listdir() == ["docs"]
    monkeypatch.setenv("RAGAUGE_DEBUG", "1")
    done = folder.run("corpus", "build", "docs", "-o", "out", "--on-bad-file", "skip")
    assert done.exit_code == 0
    assert "skipped    1" in done.out
    assert "[parser-failed]" in done.err
    assert documents(folder) == ["b.md"]
    assert "a.bad:\nTraceback (most recent call last):\n" in done.err
    assert "in _parsed_file" in done.err  # where it came from, not only what it said


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are Unicode there")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_folder_may_have_a_name_that_is_not_utf_8(folder: Folder, workers: str) -> None:
    docs = Path(os.fsdecode(b"docs\xff"))
    docs.mkdir()
    (docs / "a.html").write_text("<h1>A</h1>", encoding="utf-8")
    (docs / "b.html").write_bytes(b"\xff")
    (docs / "c.ipynb").write_text('{"cells": "\\ud83d"}', encoding="utf-8")
    command = ["corpus", "build", str(docs), "-o", "out", "--workers", workers]
    done = folder.run(*command)
    assert (done.exit_code, done.codes) == (3, {"bad-encoding", "bad-document"})
    assert [problem.where for problem in done.problems] == [
        "docs\\udcff/b.html", "docs\\udcff/c.ipynb",
    ]  # fmt: skip
    assert folder.run(*command, "--on-bad-file", "skip").exit_code == 0
    assert documents(folder) == ["a.html"]


def test_an_end_of_the_program_is_no_problem_of_a_file(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM is a `SystemExit` inside whatever runs."""

    def terminated(_data: bytes) -> Parsed:
        raise SystemExit(143)

    bad = Parser(name="bad", title="bad", suffixes=(".md",), parse=terminated)
    monkeypatch.setattr(registry, "parsers", lambda: {".md": bad})
    folder.write("a.md", "text")
    with pytest.raises(SystemExit, match="143"):
        build(["a.md"], "out", on_bad_file="skip")
    assert os.listdir() == ["a.md"]


def test_what_looks_garbled_is_noted_and_not_repaired(folder: Folder) -> None:
    text = "It\u00e2\u20ac\u2122s what\u00e2\u20ac\u2122s said, isn\u00e2\u20ac\u2122t it?\n"
    folder.write("a.md", text)
    folder.write("b.md", "")
    done = folder.run("corpus", "build", "a.md", "b.md", "-o", "out")
    assert "note: a.md: 3 characters look like UTF-8 that was read as cp1252" in done.out
    assert "note: b.md: the document is empty" in done.out
    corpus = read_corpus("out")
    assert corpus.text(corpus.documents[0]) == text.encode()


@cases("name", ["documents.jsonl", "sections.jsonl", "blocks.jsonl", "text/a.md.txt"])
def test_a_corpus_that_was_changed_is_noticed(folder: Folder, name: str) -> None:
    folder.write("a.md", "# A\n\nx\n")
    build(["a.md"], "out")
    with open(f"out/{name}", "ab") as file:
        file.write(b"\n")

    def read_all() -> None:
        corpus = read_corpus("out")
        corpus.text(corpus.documents[0])

    with pytest.raises(RagaugeError, match="the corpus cannot be used") as error:
        read_all()
    assert error.value.code == "bad-corpus"


def test_a_text_outside_the_corpus_is_not_read(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    folder.write("secret.txt", "# A\n")
    build(["a.md"], "out")
    corpus = read_corpus("out")
    moved = msgspec.structs.replace(corpus.documents[0], text="text/../../secret.txt")
    with pytest.raises(RagaugeError, match="outside the corpus"):
        corpus.text(moved)


@pytest.mark.parametrize("content", ["", "[]", '{"schema": "ragauge.corpus/1"}'])
def test_a_manifest_that_cannot_be_read(folder: Folder, content: str) -> None:
    folder.write("out/manifest.json", content)
    with pytest.raises(RagaugeError, match="the corpus cannot be used"):
        read_manifest("out")


def test_a_newer_schema_is_not_guessed(folder: Folder) -> None:
    folder.write("a.md", "# A\n")
    build(["a.md"], "out")
    manifest = json.loads((folder.path / "out/manifest.json").read_text("utf-8"))
    folder.write("out/manifest.json", json.dumps({**manifest, "schema": "ragauge.corpus/2"}))
    with pytest.raises(RagaugeError, match="this version reads"):
        read_manifest("out")


def test_a_folder_without_manifest(folder: Folder) -> None:
    with pytest.raises(RagaugeError) as caught:
        read_corpus(folder.path)
    assert caught.value.code == "file-not-found"


PART = (
    "# Part {n}\n\nIt is about the number {n}. "
    + "Ünd so on, and on. " * 40
    + "\n\n- one\n  - two\n\n"
    "```sh\n# no heading\n```\n\n| a | `b\\|c` |\n|---|---|\n| 1 | 2 |\n\n"
)


def large(size: int) -> tuple[bytes, int]:
    """A file of at least so many bytes, and the number of its parts."""
    count = size // len(PART.encode()) + 1
    return "".join(PART.format(n=n) for n in range(count)).encode(), count


def test_a_large_file_is_read_to_its_end(folder: Folder) -> None:
    data, count = large(2_000_000)
    folder.write("docs/large.md", data)
    built = build(["docs"], "out")
    assert built.counts.types == {"code": count, "prose": 2 * count, "table": count}
    assert built.counts.sections == count
    last = read_corpus("out").blocks[-1]
    assert last.id == f"large.md#S.{count}.t.Bk004"
    assert data[slice(*last.span)].decode() == "| a | `b\\|c` |\n|---|---|\n| 1 | 2 |"


MEASURED = """
from pathlib import Path
from ragauge.corpus.build import build
built = build(["docs"], "out", workers=1)
# Not ru_maxrss: that also counts how large the process was that started this one.
(peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(built.counts.blocks, peak.split()[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
@pytest.mark.parametrize("one_line", [False, True])
def test_fifty_megabytes_fit_into_little_memory(folder: Folder, one_line: bool) -> None:
    data, count = (b"word " * 10_000_000, 0) if one_line else large(50_000_000)
    folder.write("docs/large.md", data)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True
    )
    blocks, kilobytes = map(int, done.stdout.split())
    assert blocks == (1 if one_line else 4 * count)
    assert kilobytes < 600_000


def test_an_empty_file_is_a_document_without_blocks(folder: Folder) -> None:
    for suffix in ("md", "txt", "html", "rst", "ipynb"):
        folder.write(f"docs/empty.{suffix}", b"")
    built = build(["docs"], "out")
    assert (built.counts.documents, built.counts.sections, built.counts.blocks) == (5, 0, 0)
    assert {note.text for note in built.notes} == {"the document is empty"}


def test_progress_is_told(folder: Folder) -> None:
    for number in range(5):
        folder.write(f"docs/{number}.md", "# A\n")
    calls: list[tuple[int, int]] = []
    build(["docs"], "out", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


@pytest.mark.skipif(shutil.which("false") is None, reason="no program that fails")
def test_a_worker_that_dies_is_told(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        folder.write(f"docs/{number}.md", "# A\n")
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(RuntimeError, match="a worker ended early"):
        build(["docs"], "out", workers=2)
    assert os.listdir() == ["docs"]
