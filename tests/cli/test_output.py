"""Files that `-o` names: an input is never written over, and what is no file is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from ragauge.cli.main import root
from tests.support.command import GOLD, TRACES, Folder
from tests.support.umlaut_corpus import BLOCK, make_corpus

CHUNKS = '{"id": "p1#1", "doc": "p1", "start": 0, "end": 5}\n'
REFUSED = "would replace the {}, which is read: name another file"


@pytest.fixture
def files(folder: Folder) -> Folder:
    """All that a run may be scored with, each in a file of its own."""
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    folder.write("chunks.jsonl", CHUNKS)
    folder.write("ragauge.toml", '[gates]\nprecision = "0.1"\n')
    folder.write("other.toml", '[gates]\nprecision = "0.1"\n')
    folder.write("gates.toml", '[gates]\nprecision = "0.1"\n')
    folder.write("system.json", '{"model": "m"}')
    done = folder.run("score", "gold.jsonl", "trace.jsonl", "--full", "-o", "base.json", "--store")
    assert done.exit_code == 0, done.err
    return folder


def contents(folder: Folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}


SCORE = ("score", "gold.jsonl", "trace.jsonl")
RUN = ("run", "--gold", "gold.jsonl", "--target", "python:gone:gone")
GATE = ("gate", "base.json", "--gates", "precision=0.1")


@pytest.mark.parametrize(
    ("command", "file", "what"),
    [
        (SCORE, "gold.jsonl", "gold set"),
        (SCORE, "trace.jsonl", "trace file"),
        (SCORE, "ragauge.toml", "configuration"),
        (SCORE, "ragauge.db", "store"),
        ((*SCORE, "--store=sqlite:///kept.db"), "kept.db", "store"),
        ((*SCORE, "--config", "other.toml"), "other.toml", "configuration"),
        ((*SCORE, "--chunks", "chunks.jsonl"), "chunks.jsonl", "list of chunks"),
        ((*SCORE, "--baseline", "base.json"), "base.json", "baseline"),
        ((*SCORE, "--gates", "gates.toml"), "gates.toml", "gates file"),
        ((*SCORE, "--store", "--snapshot", "system.json"), "system.json", "snapshot"),
        (RUN, "gold.jsonl", "gold set"),
        (RUN, "ragauge.db", "store"),
        ((*RUN, "--chunks", "chunks.jsonl"), "chunks.jsonl", "list of chunks"),
        ((*RUN, "--snapshot", "system.json"), "system.json", "snapshot"),
        (GATE, "base.json", "scores"),
        (GATE, "ragauge.toml", "configuration"),
        ((*GATE[:2], "--gates", "gates.toml"), "gates.toml", "gates file"),
        ((*GATE, "--baseline", "./base.json"), "base.json", "scores"),
        (("compare", "base.json", "latest"), "base.json", "first run"),
        (("compare", "latest", "base.json"), "base.json", "second run"),
    ],
)
def test_an_input_is_never_written_over(
    files: Folder, command: tuple[str, ...], file: str, what: str
) -> None:
    """Nor anything else: the other output is not written either."""
    files.write("kept.db", "")
    before = contents(files)
    outcome = files.run(*command, "-o", "other.md", "-o", f"json:{file}")
    assert outcome.exit_code == 2
    assert REFUSED.format(what) in outcome.err
    assert outcome.out == ""
    assert contents(files) == before


@pytest.fixture
def documents(files: Folder) -> Folder:
    """The same beside a corpus, the next one, and what is written about them."""
    make_corpus(files)
    assert files.run("corpus", "build", "docs", "-o", "new").exit_code == 0
    for name in ("gold.json", "trace.json", "trace.md", "chunks.json"):
        files.write(name, (files.path / name).with_suffix(".jsonl").read_bytes())
    files.write("placed.jsonl", [{"qid": "A", "question": "How large?", "relevant": [BLOCK]}])
    assert files.run("corpus", "diff", "corpus", "new", "-o", "map.jsonl").exit_code == 0
    files.write("vectors.db", "")
    return files


BLOCKS, TEXT = "corpus/blocks.jsonl", "corpus/text/guide.md.txt"
SHADOW = ("shadow", "--live", "trace.json", "--shadow", "trace.md", "--gold", "gold.json")
CALIBRATE = (
    "calibrate", "gold.jsonl", "--traces", "trace.jsonl", "--embed", "hashing", "--embed-cache",
    "vectors.db", "--chunks", "chunks.jsonl", "--corpus", "corpus",
)  # fmt: skip
EXPORT = ("runs", "export", "latest")
CHUNK = ("corpus", "chunk", "corpus")
DIFF = ("corpus", "diff", "corpus", "new")
FREEZE = ("gold", "freeze", "gold.jsonl", "--force")
NEW = ("gold", "new", "--corpus", "corpus", "--force")
PIN = ("gold", "pin", "placed.jsonl", "--corpus", "corpus", "--chunks", "chunks.jsonl")
NEGATIVES = ("gold", "negatives", *PIN[2:])
MIGRATE = ("gold", "migrate", "placed.jsonl", "--map", "map.jsonl", "--corpus", "new")
MOVE = ("traces", "migrate", "trace.jsonl", "--map", "map.jsonl")
IMPORT = ("traces", "import", "trace.jsonl", "--gold", "gold.jsonl")
ANNOTATE = ("traces", "annotate", "base.json", "--to", "phoenix", "--traces", "trace.jsonl")

SPARED = [
    (IMPORT, "trace.jsonl", "export"),
    (IMPORT, "gold.jsonl", "gold set"),
    (ANNOTATE, "base.json", "file of scores"),
    (ANNOTATE, "trace.jsonl", "trace file"),
    (("gold", "import", "gold.jsonl"), "gold.jsonl", "export"),
    (SHADOW, "trace.json", "live run"),
    (SHADOW, "trace.md", "shadow run"),
    (SHADOW, "gold.json", "gold set"),
    ((*SHADOW, "--live-chunks", "chunks.json"), "chunks.json", "live list of chunks"),
    ((*SHADOW, "--shadow-chunks", "chunks.json"), "chunks.json", "shadow list of chunks"),
    ((*SHADOW, "--live-corpus", "corpus"), "corpus/manifest.json", "live corpus"),
    ((*SHADOW, "--shadow-corpus", "corpus"), TEXT, "shadow corpus"),
    ((*SHADOW, "--store", "sqlite:///base.json"), "base.json", "store"),
    ((*SHADOW, "--gates", "base.json"), "base.json", "gates file"),
    (CALIBRATE, "gold.jsonl", "gold set"),
    (CALIBRATE, "trace.jsonl", "trace file"),
    (CALIBRATE, "chunks.jsonl", "list of chunks"),
    (CALIBRATE, TEXT, "corpus"),
    (CALIBRATE, "vectors.db", "cache of vectors"),
    (CALIBRATE, "ragauge.toml", "configuration"),
    ((*CALIBRATE, "--config", "other.toml"), "other.toml", "configuration"),
    ((*EXPORT, "--store", "sqlite:///trace.jsonl"), "trace.jsonl", "store"),
    ((*EXPORT, "--config", "gold.jsonl"), "gold.jsonl", "configuration"),
    (CHUNK, BLOCKS, "corpus"),
    (CHUNK, TEXT, "corpus"),
    (DIFF, BLOCKS, "old corpus"),
    (DIFF, "new/text/guide.md.txt", "new corpus"),
    (FREEZE, "gold.jsonl", "gold set"),
    (FREEZE, "ragauge.toml", "configuration"),
    (NEW, BLOCKS, "corpus"),
    (PIN, "chunks.jsonl", "list of chunks"),
    (PIN, BLOCKS, "corpus"),
    (NEGATIVES, "chunks.jsonl", "list of chunks"),
    (NEGATIVES, BLOCKS, "corpus"),
    (MIGRATE, "placed.jsonl", "gold set"),
    (MIGRATE, "map.jsonl", "map"),
    (MIGRATE, "new/blocks.jsonl", "corpus"),
    (MOVE, "trace.jsonl", "trace file"),
    (MOVE, "map.jsonl", "map"),
]


@pytest.mark.parametrize(("command", "file", "what"), SPARED)
def test_nor_is_one_of_another_command(
    documents: Folder, command: tuple[str, ...], file: str, what: str
) -> None:
    if command[:2] == EXPORT[:2] and "--config" in command:
        documents.write(file, "")  # a configuration may be empty
    before = tree(documents)
    outcome = documents.run(*command, "-o", file)
    assert outcome.exit_code == 2
    assert f"-o {file} {REFUSED.format(what)}" in outcome.err
    assert outcome.out == ""
    assert tree(documents) == before


@pytest.mark.parametrize(("command", "file", "what"), SPARED)
def test_nor_under_a_name_that_only_leads_back_to_it(
    documents: Folder, command: tuple[str, ...], file: str, what: str
) -> None:
    """A folder that is not there is left by `..` as one that is: that is where it is written."""
    if command[:2] == EXPORT[:2] and "--config" in command:
        documents.write(file, "")
    before = tree(documents)
    outcome = documents.run(*command, "-o", f"nosuch/../{file}")
    assert outcome.exit_code == 2
    assert f"-o nosuch/../{file} {REFUSED.format(what)}" in outcome.err
    assert tree(documents) == before


@pytest.mark.parametrize(
    "name", ["nosuch/../trace.jsonl", "link.jsonl", "hard.jsonl", "here/trace.jsonl", "trace.jsonl"]
)
@pytest.mark.parametrize("read_as", ["trace.jsonl", "link.jsonl", "hard.jsonl", "nosuch/../gone"])
def test_links_of_any_kind_are_followed(files: Folder, name: str, read_as: str) -> None:
    os.symlink("trace.jsonl", files.path / "link.jsonl")
    os.link(files.path / "trace.jsonl", files.path / "hard.jsonl")
    os.symlink(".", files.path / "here")
    before = contents(files)
    outcome = files.run("score", "gold.jsonl", read_as, "-o", f"json:{name}")
    if read_as == "nosuch/../gone":
        assert (outcome.exit_code, outcome.codes) == (2, {"file-not-found"})
    else:
        assert outcome.exit_code == 2
        assert REFUSED.format("trace file") in outcome.err
    assert contents(files) == before


OTHER_OUTPUTS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "score": ((*SCORE, "-o", "json:a.out"), "-o", "csv:{}"),
    "gate": ((*GATE, "-o", "json:a.out"), "-o", "csv:{}"),
    "run": ((*RUN, "-o", "json:a.out"), "-o", "csv:{}"),
    "compare": (("compare", "base.json", "base.json", "-o", "json:a.out"), "-o", "csv:{}"),
    "report": (
        ("compare", "base.json", "base.json", "--write-report", "--runs-dir", "."),
        "-o",
        "json:nosuch/../base.json/report.md",
    ),
    "shadow": ((*SHADOW, "-o", "a.json"), "-o", "nosuch/../a.json"),
    "diff": ((*DIFF, "-o", "a.out"), "--review", "{}"),
}


@pytest.mark.parametrize("spelling", ["a.out", "nosuch/../a.out", "link.out"])
@pytest.mark.parametrize("name", OTHER_OUTPUTS)
def test_two_outputs_are_not_one_file(documents: Folder, name: str, spelling: str) -> None:
    """The second would replace the first; also where neither is there yet, or a link is."""
    command, option, value = OTHER_OUTPUTS[name]
    os.symlink("a.out", documents.path / "link.out")
    if name == "report":
        documents.write("b.json", (documents.path / "base.json").read_bytes())
        command = tuple("b.json" if part == "base.json" else part for part in command)
        value = "json:nosuch/../b.json/report.md"
    before = tree(documents)
    outcome = documents.run(*command, option, value.format(spelling))
    assert outcome.exit_code == 2, outcome.err
    assert "which is written too" in outcome.err
    assert tree(documents) == before


@pytest.mark.parametrize("name", ["new", "new/", "trace.jsonl/", "/dev/null", "."])
def test_what_is_no_file_is_refused_before_anything_is_done(documents: Folder, name: str) -> None:
    before = tree(documents)
    for command in (SCORE, GATE, ("compare", "base.json", "base.json")):
        outcome = documents.run(*command, "-o", f"json:{name}")
        assert (outcome.exit_code, outcome.codes) == (2, {"file-unreadable"})
        assert outcome.out == ""
    assert tree(documents) == before


def test_a_store_and_what_lies_beside_it_are_no_outputs(files: Folder) -> None:
    """Also one that is not there yet, under another spelling."""
    for name in ("new.db", "nosuch/../new.db", "new.db-wal", "new.db-journal"):
        outcome = files.run(*SCORE, "--store=sqlite:///new.db", "-o", f"json:{name}")
        assert outcome.exit_code == 2
        assert REFUSED.format("store") in outcome.err
    assert not (files.path / "new.db").exists()


def test_a_file_system_without_case_has_one_file_for_two_names(
    files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragauge.cli import output

    two = ("-o", "json:OUT.x", "-o", "csv:out.X")
    with monkeypatch.context() as patched:
        patched.setattr(output, "_ignores_case", lambda _: True)
        outcome = files.run(*SCORE, *two)
    assert outcome.exit_code == 2
    assert "which is written too" in outcome.err
    assert files.run(*SCORE, *two).exit_code == 0, "here they are two files"


def test_a_corpus_is_not_built_from_its_own_texts(documents: Folder) -> None:
    before = tree(documents)
    for path in ("corpus", "corpus/text", TEXT, "nosuch/../corpus/text"):
        outcome = documents.run("corpus", "build", path, "-o", "corpus")
        assert outcome.exit_code == 2, path
        assert tree(documents) == before, path


def tree(folder: Folder) -> dict[str, bytes]:
    found = (path for path in folder.path.rglob("*") if path.is_file())
    return {str(path.relative_to(folder.path)): path.read_bytes() for path in found}


def test_the_rows_to_review_do_not_replace_a_corpus(documents: Folder) -> None:
    before = tree(documents)
    outcome = documents.run(*DIFF, "--review", TEXT)
    assert outcome.exit_code == 2
    assert f"--review {TEXT} {REFUSED.format('old corpus')}" in outcome.err
    assert tree(documents) == before


@pytest.mark.parametrize("name", ["corpus/notes.md", "corpus/text/more.md", "corpus/text/a/b.md"])
def test_nothing_else_is_written_into_a_corpus(documents: Folder, name: str) -> None:
    """Also by a command that does not read it; elsewhere a folder may be called `text`."""
    before = tree(documents)
    outcome = documents.run(*SCORE, "-o", name)
    assert (outcome.exit_code, outcome.codes) == (2, {"file-exists"})
    assert f"`{name}` is in a corpus" in outcome.err
    assert tree(documents) == before
    assert documents.run(*SCORE, "-o", "text/more.md").exit_code == 0


@pytest.mark.parametrize("command", [PIN, NEGATIVES])
def test_what_may_be_written_over_still_is(documents: Folder, command: tuple[str, ...]) -> None:
    """`-o ...; may be GOLD`, says the help of these two."""
    documents.write("chunks.jsonl", CHUNKS)
    before = (documents.path / "placed.jsonl").read_bytes()
    outcome = documents.run(*command, "-o", "placed.jsonl")
    assert outcome.exit_code == 0, outcome.err
    assert (documents.path / "placed.jsonl").read_bytes() != before


def test_every_command_with_an_output_spares_its_inputs() -> None:
    """A corpus is built over nothing but a corpus, and a page is tested below."""
    tested = {" ".join(command[:2]) for command, _, _ in SPARED}
    tested |= {" ".join(command[:1]) for command, _, _ in SPARED}
    tested |= {"score", "run", "gate", "view", "compare", "corpus build"}
    assert {name for name, command in commands(root) if "-o" in options_of(command)} <= tested


def commands(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


def options_of(command: click.Command) -> set[str]:
    return {name for option in command.params for name in option.opts}


@pytest.mark.parametrize("out", ["docs", "gold.jsonl"])
def test_a_corpus_is_not_built_over_its_sources(documents: Folder, out: str) -> None:
    before = tree(documents)
    outcome = documents.run("corpus", "build", "docs", "-o", out)
    assert (outcome.exit_code, outcome.codes) == (2, {"file-exists"})
    assert tree(documents) == before


def test_an_input_that_the_configuration_names_is_spared_too(files: Folder) -> None:
    files.write(
        "ragauge.toml",
        'gold = "gold.jsonl"\ntrace = "trace.jsonl"\nchunks = "chunks.jsonl"\n'
        'baseline = "base.json"\nstore = "sqlite:///kept.db"\n',
    )
    files.write("kept.db", "")
    for name in ("gold.jsonl", "trace.jsonl", "chunks.jsonl", "base.json", "kept.db"):
        before = contents(files)
        assert files.run("score", "-o", f"json:{name}").exit_code == 2, name
        assert contents(files) == before


@pytest.mark.parametrize("name", ["./gold.jsonl", "sub/../gold.jsonl", "link.jsonl", "twin?.jsonl"])
def test_another_name_of_an_input_is_the_input(files: Folder, name: str) -> None:
    (files.path / "sub").mkdir()
    (files.path / "link.jsonl").symlink_to("gold.jsonl")
    os.link(files.path / "gold.jsonl", files.path / "twin?.jsonl")
    for gold, output in (("gold.jsonl", name), (name, "gold.jsonl")):
        outcome = files.run("score", gold, "trace.jsonl", "-o", f"json:{output}")
        assert outcome.exit_code == 2
        assert REFUSED.format("gold set") in outcome.err


def test_standard_input_may_be_a_file_too(files: Folder) -> None:
    before = contents(files)
    with (files.path / "trace.jsonl").open() as trace:
        done = subprocess.run(
            [sys.executable, "-m", "ragauge", "score", "gold.jsonl", "-", "-o", "json:trace.jsonl"],
            stdin=trace, cwd=files.path, capture_output=True, encoding="utf-8", timeout=60,
            check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert REFUSED.format("trace file") in done.stderr
    assert contents(files) == before


def test_the_files_of_a_folder_of_judgements_are_inputs(files: Folder) -> None:
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv", "report.html"):
        files.write(f"beir/{name}", "")
    for name in ("queries.jsonl", "corpus.jsonl", "qrels/test.tsv", "qrels/new.tsv"):
        outcome = files.run("score", "beir", "trace.jsonl", "-o", f"json:beir/{name}")
        assert outcome.exit_code == 2, name
        assert REFUSED.format("gold set") in outcome.err
    outcome = files.run("score", "beir", "trace.jsonl", "-o", "beir/report.html")
    assert "would replace" not in outcome.err


def test_files_that_are_no_input_are_replaced_as_ever(files: Folder) -> None:
    """An output of the last time, and a file that has the name of a gate or of nothing read."""
    for _ in range(2):
        outcome = files.run(*SCORE, "-o", "json:system.json", "-o", "precision=0.1.md")
        assert outcome.exit_code == 0, outcome.err
    assert (files.path / "system.json").read_bytes().startswith(b"{")


def test_a_page_does_not_replace_what_it_shows(files: Folder) -> None:
    (files.path / "gates.html").write_bytes((files.path / "gates.toml").read_bytes())
    before = contents(files)
    outcome = files.run(
        "view", "base.json", "--gates", "gates.html", "-o", "gates.html", "--no-open"
    )
    assert outcome.exit_code == 2
    assert REFUSED.format("gates file") in outcome.err
    assert contents(files) == before


@pytest.mark.parametrize("name", ["badge", "json", "parquet"])
def test_standard_output_is_no_file(files: Folder, name: str) -> None:
    outcome = files.run(*SCORE, "-o", f"{name}:-")
    assert outcome.exit_code == 2
    assert f"-o {name}:-: -o writes files; --format NAME prints" in outcome.err
    assert not (files.path / "-").exists()


@pytest.mark.parametrize(
    ("file", "start"), [("R.XML", b"<?xml"), ("r.Json", b"{"), ("R.HTML", b"<!")]
)
def test_the_case_of_a_suffix_does_not_matter(files: Folder, file: str, start: bytes) -> None:
    outcome = files.run(*SCORE, "-o", file)
    assert outcome.exit_code == 0, outcome.err
    assert (files.path / file).read_bytes().startswith(start)


def test_many_gates_are_no_file_name(files: Folder) -> None:
    """A name of more than 255 bytes is an error of the file system; gates may be longer."""
    names = ("recall_all", "recall", "precision", "ndcg", "hit")
    gates = ",".join(f"retrieval.{name}@{k}>=0.0" for k in (1, 3, 5, 10) for name in names)
    assert len(gates) > 255
    outcome = files.run(*SCORE, "--profile", "all", "--gates", gates)
    assert "file-unreadable" not in outcome.codes
    assert "n = 2 is below min_n = 5" in outcome.out, outcome.err  # they were read, and judged
