"""Values that nobody expects are errors of whoever gave them, never a bug of ours (exit 70)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import click
import pytest

from ragauge.cli.main import root
from ragauge.errors import RagaugeError
from ragauge.model.options import Options
from ragauge.scoring.score import score
from tests.support.command import GOLD, TRACES, Folder
from tests.support.effort import seeds


@pytest.fixture
def files(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    folder.write("docs/a.md", "# A\n\nA text.\n")
    return folder


BLOCK = "a.md#S.1.p.Bk001"
SCORE = ("score", "gold.jsonl", "trace.jsonl")
RUN = ("run", "--gold", "gold.jsonl", "--target", "command:true")


@pytest.mark.parametrize("k", ["2147483648", "1000000000", "9" * 30, "5,9223372036854775808", "0"])
def test_a_cut_off_beyond_all_lists_is_refused(files: Folder, k: str) -> None:
    for profile in ("ship", "all"):
        outcome = files.run(*SCORE, "--profile", profile, "--k", k)
        assert (outcome.exit_code, outcome.codes) == (2, {"usage"})
    files.write("k.toml", f"k = [{k}]\n" if len(k) < 19 else "k = [2147483648]\n")
    assert files.run(*SCORE, "--config", "k.toml").exit_code == 2
    assert files.run(*RUN, "--k", k).exit_code == 2


def test_the_largest_cut_off_is_only_large(files: Folder) -> None:
    outcome = files.run(*SCORE, "--profile", "all", "--k", "999999999", "--format", "json")
    assert outcome.exit_code == 0, outcome.err
    assert json.loads(outcome.out)["metrics"]["retrieval.recall@999999999"]["value"] == 1.0


@pytest.mark.parametrize("level", ["nan", "inf", "-inf", "1e400"])
def test_a_relevance_level_is_a_number(files: Folder, level: str) -> None:
    outcome = files.run(*SCORE, f"--relevance-level={level}")
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})
    assert "finite number" in outcome.err
    files.write("level.toml", f"relevance_level = {level}\n")
    outcome = files.run(*SCORE, "--config", "level.toml")
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-config"})
    with pytest.raises(RagaugeError, match="finite number"):
        score("gold.jsonl", "trace.jsonl", options=Options(relevance_level=float(level)))


def test_an_argument_that_is_no_text_is_refused(files: Folder) -> None:
    """The operating system passes no NUL, but bytes that are not UTF-8."""
    for arguments in (
        (*SCORE, "--store", "--suite", "\udcff"),
        (*SCORE, "--store", "--tag", "\udcff"),
        ("runs", "list", "--suite", "\udcff"),
        (*SCORE, "--config", "\0"),
        ("corpus", "build", "docs", "-o", "\0"),
        ("\0",),
    ):
        outcome = files.run(*arguments)
        assert outcome.exit_code in (2, 5), outcome.err
        assert "bug" not in outcome.codes


PATTERNS = [
    "[[a-z]]",  # FutureWarning: a set in a set
    "[a--b]",  # FutureWarning: a difference of sets
    "[a&&b]",
    "[a||b]",
    "[a~~b]",
    "a(?i)b",  # an error since Python 3.11, a DeprecationWarning before
    "(",
    "a{99999999999999999999}",
    "(" * 5000 + ")" * 5000,
    "(?P<a>.)(?P<a>.)",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_that_python_warns_of_is_refused(files: Folder, pattern: str) -> None:
    """In a later version of Python it would mean something else."""
    files.write("refusal.toml", f"[refusal]\npatterns = [{json.dumps(pattern)}]\n")
    outcome = files.run(*SCORE, "--config", "refusal.toml")
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-config"})
    assert "the pattern `" in outcome.err
    outcome = files.run(*RUN, "--filter", f"qid~{pattern}")
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})
    with pytest.raises(RagaugeError, match="the pattern `") as caught:
        score("gold.jsonl", "trace.jsonl", refusal_patterns=[pattern])
    assert caught.value.exit_code == 2


def test_a_label_of_saved_scores_that_nobody_knows_is_refused(files: Folder) -> None:
    assert files.run(*SCORE, "--full", "-o", "scores.json").exit_code == 0
    text = (files.path / "scores.json").read_text()
    for old, new in (('"label": "OK"', '"label": "FINE"'), ('"OK": 1', '"FINE": 1')):
        assert old in text
        files.write("odd.json", text.replace(old, new))
        for command in (
            ("gate", "odd.json", "--gates", "precision=0.1"),
            ("compare", "scores.json", "odd.json"),
            ("view", "odd.json", "--no-open"),
        ):
            outcome = files.run(*command)
            assert (outcome.exit_code, outcome.codes) == (3, {"bad-scores"}), outcome.err
            assert "the label `FINE`" in outcome.err


def test_stored_scores_with_a_label_that_nobody_knows_are_refused(files: Folder) -> None:
    import sqlite3
    import zlib

    assert files.run(*SCORE, "--store", "--run-id", "a").exit_code == 0
    with sqlite3.connect("ragauge.db") as database:
        (packed,) = database.execute("SELECT questions FROM eval_scorings").fetchone()
        questions = json.loads(zlib.decompress(packed))
        for change in ({"labels": [0, 0, 99]}, {"labels": [0]}, {"causes": {"7": {"x": 1}}}):
            damaged = zlib.compress(json.dumps({**questions, **change}).encode())
            database.execute("UPDATE eval_scorings SET questions = ?", (damaged,))
            database.commit()
            outcome = files.run("runs", "show", "a")
            assert (outcome.exit_code, outcome.codes) == (3, {"bad-store"}), outcome.err
    database.close()


@pytest.mark.parametrize(
    "content",
    [
        b'{"schema": "ragauge.corpus/1", "revision": "\xff"}',
        b'{"schema": "ragauge.corpus/1\xff"}',
        b'{"\xff": 1}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"",
        b"5",
    ],
)
def test_a_manifest_that_is_not_utf8_is_a_damaged_corpus(files: Folder, content: bytes) -> None:
    assert files.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    Path("corpus/manifest.json").write_bytes(content)
    for command in (
        ("corpus", "chunk", "corpus", "-o", "chunks.jsonl"),
        ("corpus", "diff", "corpus", "corpus"),
        ("gold", "lint", "gold.jsonl", "--corpus", "corpus"),
        (*SCORE, "--corpus", "corpus"),
    ):
        outcome = files.run(*command)
        assert (outcome.exit_code, outcome.codes) == (3, {"bad-corpus"}), outcome.err
    outcome = files.run("corpus", "build", "docs", "-o", "corpus")
    assert (outcome.exit_code, outcome.codes) == (2, {"file-exists"})


# What each command needs to get as far as its options are used.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "baseline set": ("r1",),
    "baseline show": (),
    "calibrate": ("gold.jsonl", "--traces", "trace.jsonl", "--embed", "hashing"),
    "compare": ("r1", "r1"),
    "corpus build": ("docs", "-o", "other"),
    "corpus chunk": ("corpus", "-o", "new.jsonl"),
    "corpus diff": ("corpus", "corpus"),
    "corpus redirect": ("map.jsonl", BLOCK),
    "demo": (),
    "diagnose": ("r1",),
    "explain": (),
    "gate": ("base.json", "--gates", "precision=0.1"),
    "gold freeze": ("gold.jsonl", "-o", "new.lock"),
    "gold lint": ("gold.jsonl",),
    "gold migrate": ("placed.jsonl", "--map", "map.jsonl", "-o", "new.jsonl"),
    "gold negatives": ("placed.jsonl", "--corpus", "corpus"),
    "gold new": ("--corpus", "corpus", "-o", "new.jsonl"),
    "gold pin": ("placed.jsonl", "--corpus", "corpus", "-o", "new.jsonl"),
    "gold stats": ("gold.jsonl",),
    "gold verify": ("gold.jsonl",),
    "history": ("answer.precision",),
    "init": ("other",),
    "metrics": (),
    "prompt": ("r1",),
    "rescore": ("r1",),
    "run": ("--gold", "gold.jsonl", "--target", "python:rag:ask"),
    "runs export": ("r1", "-o", "new.jsonl"),
    "runs import": ("r1.jsonl", "--run-id", "r2"),
    "runs list": (),
    "runs show": ("r1",),
    "runs tag": ("r1", "t"),
    "schema": ("scores",),
    "score": ("gold.jsonl", "trace.jsonl"),
    "shadow": ("--live", "r1", "--shadow", "r1"),
    "traces migrate": ("trace.jsonl", "--map", "map.jsonl", "-o", "new.jsonl"),
    "validate": ("gold.jsonl", "trace.jsonl"),
    "view": ("r1", "--no-open", "-o", "new.html"),
}
VALUES = [
    "nan", "inf", "-inf", "-1", "0", "0.5", "2147483648", "9223372036854775808", "1e400", "", "\0",
    "\udcff", "x" * 100_000, "-", ".", "/", "a/b", "sqlite:///", "=", "a=b", "precision=nan",
    "recall@2147483648=1", "recall@5>=inf", "::", "${X}", "qid~[[a]]", "\n", "٣", "1_0",
    "2026-02-30", "0001-01-01", "gold.jsonl", "docs", "nosuch", "map.jsonl", "base.json",
    "ragauge.db", "*", "r1",
]  # fmt: skip


def commands(group: click.Group, *names: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *names, name)
        elif command is not None:
            yield " ".join([*names, name]), command


@pytest.mark.slow
def test_no_value_of_any_option_is_a_bug(files: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all commands, options and values some at random; a campaign tries more."""
    monkeypatch.syspath_prepend(str(files.path))
    files.write("rag.py", "def ask(question, k):\n    return []\n")
    files.write("placed.jsonl", [{"qid": "A", "question": "How?", "relevant": [BLOCK]}])
    for arguments in (
        (*SCORE, "--store", "--run-id", "r1", "--full", "-o", "base.json"),
        ("runs", "export", "r1", "-o", "r1.jsonl"),
        ("corpus", "build", "docs", "-o", "corpus"),
        ("corpus", "diff", "corpus", "corpus", "-o", "map.jsonl"),
        ("gold", "freeze", "gold.jsonl"),
    ):
        assert files.run(*arguments).exit_code == 0, arguments
    whole = {path: path.read_bytes() for path in files.path.rglob("*") if path.is_file()}
    options = [
        (name, option.opts[-1])
        for name, command in commands(root)
        for option in command.params
        if isinstance(option, click.Option) and not option.is_flag and name in ARGUMENTS
    ]
    for seed in seeds(100):
        chosen = Random(seed)
        (name, option), value = chosen.choice(options), chosen.choice(VALUES)
        joined = (f"{option}={value}",) if option.startswith("--") else (option, value)
        outcome = files.run(*name.split(), *ARGUMENTS[name], *joined)
        assert outcome.exit_code in (0, 1, 2, 3, 4, 5), (name, option, value[:60], outcome.err)
        for path, content in whole.items():
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
