"""Values that nobody expects are errors of whoever gave them, never a bug of ours (exit 70)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.model.options import Options
from ragauge.scoring.score import score
from tests.support.command import GOLD, TRACES, Folder


@pytest.fixture
def files(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    folder.write("docs/a.md", "# A\n\nA text.\n")
    return folder


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
