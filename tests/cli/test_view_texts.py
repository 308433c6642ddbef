"""Pages that show what a corpus knows, and where pages are kept: as a user writes the commands."""

from __future__ import annotations

import json
import shutil
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ragauge.cli.view import _source
from ragauge.compare.common_gold import StoredRun
from tests.support.command import Folder
from tests.support.corpora import CODE, FIRST, GUIDE, LAST, made
from tests.support.html_pages import unpacked

RED = "Äpfel are red. Bananas are not."
GOLD = [
    {"qid": "q1", "question": "Which are red?", "answerable": True, "relevant": [FIRST]},
    {"qid": "q2", "question": "How is it made?", "answerable": True, "relevant": [CODE]},
]
TRACES: list[dict[str, Any]] = [
    {"qid": "q1", "hits": [{"id": FIRST}], "answer": {"text": "Äpfel.", "citations": [LAST]}},
    {"qid": "q2", "hits": [{"id": "k", "doc": "guide.md", "start": 0, "end": 7}]},
]


@pytest.fixture
def guide(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A folder with a corpus, gold and traces that have no text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.path / "caches"))
    made(folder.path)
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    return folder


def texts(page: str | Path) -> dict[str, str | None]:
    """The texts of a page's passages, by their ids."""
    blocks = unpacked(Path(page).read_text("utf-8"))
    found: dict[str, str | None] = {}
    for name, text in zip_longest(blocks["pieces-0"][0], blocks["texts-0"]):
        found[name] = found.get(name) or text
    return found


KNOWN = {FIRST: RED, LAST: "Äpfel are red.", CODE: "```sh\nmake all\n```", "k": "# Guide"}
SCORE = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all")


def test_score_shows_the_texts_of_its_corpus(guide: Folder) -> None:
    outcome = guide.run(*SCORE, "--corpus", "corpus", "-o", "page.html")
    assert (outcome.exit_code, outcome.err) == (0, "")
    assert texts("page.html") == KNOWN
    rows = {
        row["gold"]: row for row in unpacked(Path("page.html").read_text("utf-8"))["questions-0"]
    }
    found, missed = rows["gold.jsonl:1"], rows["gold.jsonl:2"]
    assert found["attempts"][0]["hits"]["highlights"] == {"0": [[0, len(RED)]]}
    assert missed["expected"] == [{"name": CODE, "doc": "guide.md", "where": "bytes 53-71"}]
    assert "evidence" not in found
    assert len(missed["evidence"]["piece"]) == 1


def test_questions_are_the_same_for_a_run_that_was_stored(guide: Folder) -> None:
    """And the store has no texts: without the corpus there are none."""
    guide.run(*SCORE, "--corpus", "corpus", "-o", "page.html")
    guide.run(*SCORE, "--corpus", "corpus", "--store", "--run-id", "r")
    assert guide.run("view", "r", "--corpus", "corpus", "--no-open", "-o", "r.html").err == ""
    one, other = (unpacked(Path(name).read_text("utf-8")) for name in ("page.html", "r.html"))
    for block in ("questions-0", "answers-0", "pieces-0", "texts-0"):
        assert one[block] == other[block]
    guide.run("view", "r", "--no-open", "-o", "bare.html")
    assert texts("bare.html") == dict.fromkeys((FIRST, LAST, "k"))


def test_view_shows_them_for_a_run_that_was_scored_without(guide: Folder) -> None:
    guide.run(*SCORE, "--store", "--run-id", "r")
    guide.run("view", "r", "--corpus", "corpus", "--no-open", "-o", "page.html")
    assert texts("page.html") == KNOWN


def test_run_shows_them(guide: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    guide.write(
        "spoken.py", f"def answer(question):\n    return {{'hits': [{{'id': {FIRST!r}}}]}}\n"
    )
    monkeypatch.syspath_prepend(str(guide.path))
    guide.run(
        "run", "--gold", "gold.jsonl", "--target", "python:spoken:answer", "--profile", "all",
        "--corpus", "corpus", "-o", "page.html",
    )  # fmt: skip
    assert texts("page.html") == {FIRST: RED, CODE: KNOWN[CODE]}


def test_compare_shows_them_of_both_versions(guide: Folder) -> None:
    later = made(guide.path, {"guide.md": GUIDE.replace("Äpfel", "Pears")}, out="later")
    guide.run(*SCORE, "--corpus", "corpus", "--store", "--run-id", "a")
    guide.run(*SCORE, "--corpus", later.name, "--store", "--run-id", "b")
    for command in (
        ("compare", "a", "b"),
        ("view", "b", "--against", "a", "--no-open"),
    ):
        outcome = guide.run(*command, "--corpus", "corpus", "--corpus", "later", "-o", "page.html")
        assert outcome.exit_code == 0, outcome.err
        blocks = unpacked(Path("page.html").read_text("utf-8"))
        assert RED in blocks["texts-0"]
        assert RED.replace("Äpfel", "Pears") in blocks["texts-0"]


def test_the_corpus_of_the_configuration_is_shown(guide: Folder) -> None:
    """A corpus that is not on this machine does not keep anybody from looking at a run."""
    guide.run(*SCORE, "--store", "--run-id", "r")
    guide.write("ragauge.toml", 'corpus = "corpus"\n')
    assert guide.run("view", "r", "--no-open", "-o", "page.html").err == ""
    assert texts("page.html") == KNOWN
    shutil.rmtree("corpus")
    outcome = guide.run("view", "r", "--no-open", "-o", "page.html")
    assert (outcome.exit_code, outcome.err) == (
        0,
        "warning: the corpus `corpus` of ragauge.toml is not there: its texts are not shown\n",
    )
    assert texts("page.html") == dict.fromkeys((FIRST, LAST, "k"))


def test_what_is_not_shown_is_counted_once(guide: Folder) -> None:
    for row in TRACES:
        assert "doc_hash" not in row["hits"][0]
    hits = [
        {"id": "a", "doc": "guide.md", "start": 0, "end": 7, "doc_hash": "0" * 64},
        {"id": "b", "doc": "guide.md", "start": 0, "end": 7},
        {"id": "c", "doc": "sub/notes.txt", "start": 0, "end": 99},
        {"id": "d", "doc": "sub/notes.txt", "start": 50, "end": 99},
        {"id": "e", "doc": "sub/notes.txt", "start": 0, "end": 8},
    ]
    guide.write("trace.jsonl", [{"qid": qid, "hits": hits} for qid in ("q1", "q2")])
    outcome = guide.run(*SCORE, "--corpus", "corpus", "-o", "page.html")
    assert outcome.exit_code == 0
    assert outcome.err == (
        "warning: 6 of 10 hits were placed (by offsets 6); 4 have offsets outside the document\n"
        "warning: no text is shown of 1 document: the corpus has other content than the run knows\n"
    )
    found = texts("page.html")
    assert [found[name] for name in "abcde"] == [None, None, None, None, "Plain a."]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("a", "b", "--corpus", "nothing", "-o", "page.html"), 2, "file-not-found"),
        (("a", "b", "--corpus", "corpus"), 2, "usage"),
        (("a.json", "b", "--corpus", "corpus", "-o", "page.html"), 2, "usage"),
    ],
)
def test_a_corpus_that_compare_cannot_use_is_an_error(
    guide: Folder, arguments: tuple[str, ...], code: int, error: str
) -> None:
    for name in "ab":
        guide.run(*SCORE, "--store", "--run-id", name, "--full", "-o", f"{name}.json")
    outcome = guide.run("compare", *arguments)
    assert (outcome.exit_code, outcome.problems[0].code) == (code, error), outcome.err
    assert not Path("page.html").exists()


def test_a_text_that_was_changed_in_the_corpus_is_an_error(guide: Folder) -> None:
    guide.run(*SCORE, "--store", "--run-id", "r")
    text = Path("corpus/text/guide.md.txt")
    text.write_bytes(text.read_bytes().replace("Äpfel".encode(), b"Apples"))
    outcome = guide.run("view", "r", "--corpus", "corpus", "--no-open", "-o", "page.html")
    assert (outcome.exit_code, outcome.problems[0].code) == (3, "bad-corpus")
    assert not Path("page.html").exists()


# --- the names of pages that are kept


def kept(guide: Folder, *arguments: str) -> Path:
    return Path(guide.run("view", *arguments, "--no-open").out.strip())


def test_runs_of_one_name_in_two_stores_have_two_pages(guide: Folder) -> None:
    for store in ("one.db", "two.db"):
        guide.run(*SCORE, "--store", f"sqlite:///{store}", "--run-id", "r")
    one, two = (kept(guide, "r", "--store", f"sqlite:///{name}.db") for name in ("one", "two"))
    assert one != two
    assert one.parent == two.parent
    assert one == kept(guide, "r", "--store", f"sqlite:///{guide.path / 'one.db'}")
    against = kept(guide, "r", "--against", "r", "--store", "sqlite:///one.db")
    assert against != kept(guide, "r", "--against", "r", "--store", "sqlite:///two.db")


def test_files_of_one_name_in_two_folders_have_two_pages(
    guide: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide.run(*SCORE, "--full", "-o", "saved.json")
    Path("sub").mkdir()
    shutil.copy("saved.json", "sub/saved.json")
    here, there = kept(guide, "saved.json"), kept(guide, "sub/saved.json")
    assert here != there
    assert here == kept(guide, "./sub/../saved.json")
    monkeypatch.chdir("sub")
    assert there == kept(guide, "saved.json")


def test_a_password_is_no_part_of_where_a_run_came_from() -> None:
    def source(url: str) -> str:
        made = SimpleNamespace(store=SimpleNamespace(url=url), record=SimpleNamespace(run_id="r"))
        return _source(StoredRun(cast(Any, made.store), cast(Any, made.record)), "r")

    told = source("postgresql://me:secret@host/db")
    assert told == source("postgresql://me:other@host/db")
    assert told != source("postgresql://me:secret@host/other")
    assert "secret" not in json.dumps(told)
