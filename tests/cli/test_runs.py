"""The commands on stored runs: runs, baseline, rescore and history."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ragauge.cli import options
from ragauge.model.run import Store
from ragauge.store import runs as run_store
from tests.support.command import GOLD, TRACES, Folder
from tests.support.read_only import open_folder, read_only
from tests.support.stored_runs import MORE_GOLD, URL, WRONG, change, put, put_half

EVIL = "evil\x1b[2J\nname\u202e"
SAFE = "evil\\x1b[2J name\\u202e"


@pytest.fixture
def store(folder: Folder) -> Iterator[Store]:
    assert folder.path.is_dir()  # it is the current one
    with run_store.opened_store(URL, create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three runs: all right, one wrong, and the same against a larger gold set."""
    path = tmp_path_factory.mktemp("stored")
    with contextlib.chdir(path), run_store.opened_store(URL, create=True) as store:
        put(store, "first", tags=("nightly",), commit_hash="0123456789abcdef")
        put(store, "second", WRONG, day=2)
        put(store, "third", WRONG, gold=MORE_GOLD, day=3, suite="big")
    return path / "ragauge.db"


@pytest.fixture
def few(stored: Path, folder: Folder) -> Iterator[Store]:
    """The three runs, in a store of the test's own."""
    shutil.copy(stored, folder.path)
    with run_store.opened_store(URL) as opened:
        yield opened


def narrow(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    told = {"width": width, "color": False}
    monkeypatch.setattr(options, "screen", lambda: told)
    for name in ("runs", "baseline", "rescore", "history"):
        monkeypatch.setattr(f"ragauge.cli.{name}.screen", lambda: told)


def in_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    stdin = io.StringIO(typed)
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", stdin)


# --- runs list


@pytest.mark.usefixtures("few")
def test_runs_are_listed_the_newest_last(folder: Folder) -> None:
    done = folder.run("runs", "list")
    assert done.exit_code == 0
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["first", "second", "third"]
    assert "nightly" in lines[2]
    assert done.err == ""


@pytest.mark.usefixtures("few")
def test_the_table_fits_and_keeps_what_matters(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wide screen shows all columns, a narrow one whole ids and states and fewer columns."""
    for width in (200, 80, 60, 20):
        narrow(monkeypatch, width)
        lines = folder.run("runs", "list").out.splitlines()
        assert max(map(len, lines)) <= width
        heads = lines[0].split()
        assert heads[0] == "run"
        assert "status" in heads
        if width == 200:
            assert heads == ["run", "created", "suite", "profile", "status", "results", "tags",
                             "gold", "commit", "headline"]  # fmt: skip
            assert "1.0000 answer.grounded_precision" in lines[2]
            assert "01234567 " in lines[2]
            assert "0123456789" not in lines[2]
        if width == 20:
            assert heads == ["run", "status"]


def test_long_names_are_never_cut(store: Store, folder: Folder) -> None:
    long = "x" * 120
    put(store, long)
    assert long in folder.run("runs", "list").out


@pytest.mark.usefixtures("few")
def test_a_list_can_be_narrowed(folder: Folder) -> None:
    document = json.loads(folder.run("runs", "list", "--suite", "big", "--format", "json").out)
    assert document["schema"] == "ragauge.runs/1"
    assert document["store"] == URL
    assert [run["run_id"] for run in document["runs"]] == ["third"]
    done = folder.run("runs", "list", "--limit", "2", "--format", "json")
    assert [run["run_id"] for run in json.loads(done.out)["runs"]] == ["second", "third"]
    run = json.loads(done.out)["runs"][0]
    # 2 of 3 answers are right: A2 should have been refused.
    assert run["headline"] == {"metric": "answer.grounded_precision", "value": 0.6667}
    assert "newest 2 of 3" in folder.run("runs", "list", "--limit", "2").err


def test_nothing_stored_is_said_and_exits_with_5(store: Store, folder: Folder) -> None:
    done = folder.run("runs", "list")
    assert (done.exit_code, done.out) == (5, "")
    assert "no run is stored" in done.err
    put(store, "a")
    done = folder.run("runs", "list", "--suite", "other")
    assert done.exit_code == 5
    assert "there are default" in done.err


def test_a_store_that_is_not_there_is_not_made(folder: Folder) -> None:
    done = folder.run("runs", "list", "--store", "sqlite:///none.db")
    assert done.codes == {"store-unavailable"}
    assert not Path("none.db").exists()


def test_the_store_may_be_named_in_the_configuration(few: Store, folder: Folder) -> None:
    few.close()
    Path("ragauge.db").rename("mine.db")
    folder.write("other.toml", 'store = "sqlite:///mine.db"\n')
    assert folder.run("runs", "list", "--config", "other.toml").exit_code == 0


# --- runs show


def test_a_run_is_shown_with_its_scores(store: Store, folder: Folder) -> None:
    put(store, "first", tags=("nightly",), system={"chunker": {"size": 512}, "prompt": "v1"})
    out = folder.run("runs", "show", "nightly").out
    for line in (
        "run        first", "status     complete", "system     chunker.size: 512",
        "           prompt: v1", "scorings   1: 2026-01-01T00:00:00Z, ragauge",
        "traces     trace.jsonl, 3 results", "profile ship, 3 questions, 3 traces scored",
        "answer.grounded_precision   1.0000   2",
    ):  # fmt: skip
        assert line in out
    assert "no gates" not in out  # nothing was to be decided


@pytest.mark.usefixtures("few")
def test_a_run_is_shown_as_json(folder: Folder) -> None:
    document = json.loads(folder.run("runs", "show", "second", "--format", "json").out)
    assert document["schema"] == "ragauge.run-info/1"
    assert document["run"]["run_id"] == "second"
    assert document["inputs"]["gold"] == "gold.jsonl"
    assert document["scorings"][0]["number"] == 1
    scores = document["scores"]
    assert scores["schema"].startswith("ragauge.scores/")
    assert scores["metrics"]["refusal.under"]["value"] == 1.0  # A2 is answered: 1 of 1
    assert "verdict" not in scores
    assert "questions" not in scores
    full = json.loads(folder.run("runs", "show", "second", "--format", "json", "--full").out)
    assert [each["qid"] for each in full["scores"]["questions"]] == ["A1", "A2", "A3"]


def test_bad_lines_are_shown(store: Store, folder: Folder) -> None:
    put(store, "a", [*TRACES, *({"qid": 5.5} for _ in range(7))], on_bad_line="skip")
    out = folder.run("runs", "show", "a").out if store.runs() else ""
    assert "bad lines  trace.jsonl:4" in out
    assert "... and 2 more" in out  # 7 bad lines, 5 listed
    assert "... and" not in folder.run("runs", "show", "a", "--full").out.partition("scorings")[0]
    document = json.loads(folder.run("runs", "show", "a", "--format", "json").out)
    assert document["inputs"]["trace_bad_lines"] == 7


def test_an_incomplete_run_is_shown_without_scores(store: Store, folder: Folder) -> None:
    put_half(store, "half")
    done = folder.run("runs", "show", "half")
    assert done.exit_code == 0
    assert "status     incomplete" in done.out
    assert "metric" not in done.out
    document = json.loads(folder.run("runs", "show", "half", "--format", "json").out)
    assert document["scores"] is None
    assert (document["run"]["status"], document["run"]["results"]) == ("incomplete", 3)
    assert "trace.jsonl, 3 results" in done.out
    listed = json.loads(folder.run("runs", "list", "--format", "json").out)
    assert [each["results"] for each in listed["runs"]] == [3]
    assert "may be missing" in folder.run("runs", "show", "half", "--question", "A1").err


@pytest.mark.usefixtures("few")
def test_an_unknown_run_is_refused(folder: Folder) -> None:
    done = folder.run("runs", "show", "nope")
    assert (done.exit_code, done.codes) == (2, {"unknown-run"})


@pytest.mark.usefixtures("few")
def test_a_question_is_shown_with_its_traces(folder: Folder) -> None:
    out = folder.run("runs", "show", "first", "--question", "A1").out
    assert "question   A1\n           Does X support null keys?" in out
    assert "result     1, line 1: ok, first evidence 2" in out
    assert "hits        1 p1#1\n           *2 p1#2\n            3 p2#1\n" in out
    assert "answer     X rejects null keys." in out


@pytest.mark.usefixtures("few")
def test_a_question_is_shown_as_json_lines(folder: Folder) -> None:
    out = folder.run("runs", "show", "first", "--question", "A1", "--format", "json").out
    gold, result = (json.loads(line) for line in out.splitlines())
    assert gold["item"]["relevant"] == ["p1#2"]
    assert (result["hit_rank"], result["expected_ranks"]) == (2, [2])
    assert result["trace"]["hits"][0] == {"id": "p1#1"}


def test_expected_places_are_recognised(store: Store, folder: Folder) -> None:
    """A hit that shares half with an expected span is expected, whatever its id is."""
    gold = [{"qid": "Q", "question": "?", "answerable": True,
             "gold_spans": [{"doc": "d", "start": 0, "end": 100}]}]  # fmt: skip
    hits = [
        {"id": "x", "doc": "d", "start": 500, "end": 600},
        {"id": "y", "doc": "d", "start": 0, "end": 60},  # 60 of 60 in common
        {"id": "z", "doc": "e", "start": 0, "end": 100},
    ]
    put(store, "a", [{"qid": "Q", "topk": hits}], gold=gold, profile="all")
    out = folder.run("runs", "show", "a", "--question", "Q", "--format", "json").out
    result = json.loads(out.splitlines()[-1])
    assert (result["hit_rank"], result["expected_ranks"]) == (2, [2])
    assert "evidence   d, byte 0-100" in folder.run("runs", "show", "a", "--question", "Q").out


def test_a_question_that_is_only_in_the_traces_or_only_in_gold(
    store: Store, folder: Folder
) -> None:
    put(store, "a", [*TRACES, {**TRACES[0], "qid": "Z"}], gold=MORE_GOLD)
    assert "not in the gold set" in folder.run("runs", "show", "a", "--question", "Z").out
    assert "no result is stored" in folder.run("runs", "show", "a", "--question", "A4").out


@pytest.mark.usefixtures("few")
def test_a_trace_that_cannot_be_read_is_said(folder: Folder) -> None:
    change("UPDATE eval_query_results SET result_json = x'00' WHERE query_id = 'A1'")
    out = folder.run("runs", "show", "first", "--question", "A1").out
    assert "cannot be read" in out


@pytest.mark.usefixtures("few")
def test_an_unknown_question_is_refused_with_near_ones(folder: Folder) -> None:
    done = folder.run("runs", "show", "first", "--question", "A11")
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert "`A1`" in done.problems[0].hint


# --- runs tag


def test_a_tag_names_one_run_and_can_be_removed(few: Store, folder: Folder) -> None:
    done = folder.run("runs", "tag", "second", "nightly")
    assert done.exit_code == 0
    assert "before first" in done.err
    assert run_store.find_run(few, "nightly").run_id == "second"
    assert folder.run("runs", "tag", "second", "nightly", "--remove").exit_code == 0
    assert run_store.find_run(few, "second").tags == ()
    done = folder.run("runs", "tag", "second", "nightly", "--remove")
    assert (done.exit_code, done.codes) == (2, {"usage"})


@pytest.mark.parametrize("tag", ["latest", "", "a/b", " x", "first"])
def test_tags_that_would_mean_something_else_are_refused(
    few: Store, folder: Folder, tag: str
) -> None:
    done = folder.run("runs", "tag", "second", tag)
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert run_store.find_run(few, "second").tags == ()


# --- runs delete


def test_deleting_needs_yes_where_nobody_can_be_asked(few: Store, folder: Folder) -> None:
    done = folder.run("runs", "delete", "first")
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert "--yes" in done.err
    assert folder.run("runs", "delete", "first", "second", "--yes").exit_code == 0
    assert [run.run_id for run in few.runs()] == ["third"]


@pytest.mark.parametrize(("typed", "left"), [("n\n", 3), ("\n", 3), ("y\n", 2)])
def test_a_terminal_is_asked(
    few: Store, folder: Folder, monkeypatch: pytest.MonkeyPatch, typed: str, left: int
) -> None:
    in_a_terminal(monkeypatch, typed)
    done = folder.run("runs", "delete", "first")
    assert done.exit_code == 0
    assert "delete 1 run?" in done.err
    assert len(few.runs()) == left


def test_one_unknown_name_keeps_all_runs(few: Store, folder: Folder) -> None:
    assert folder.run("runs", "delete", "first", "nope", "--yes").codes == {"unknown-run"}
    assert len(few.runs()) == 3


def test_a_baseline_is_not_deleted_unless_forced(few: Store, folder: Folder) -> None:
    folder.run("baseline", "set", "third")
    done = folder.run("runs", "delete", "first", "third", "--yes")
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert "baseline:big" in done.err
    assert len(few.runs()) == 3
    assert folder.run("runs", "delete", "third", "--yes", "--force").exit_code == 0
    assert [run.run_id for run in few.runs()] == ["first", "second"]


def test_incomplete_runs_are_deleted_together(few: Store, folder: Folder) -> None:
    put_half(few, "half", day=4)
    put_half(few, "other", day=5)
    assert folder.run("runs", "delete").exit_code == 2
    done = folder.run("runs", "delete", "--incomplete", "--yes")
    assert "deleted half" in done.err
    assert [run.run_id for run in few.runs()] == ["first", "second", "third"]
    done = folder.run("runs", "delete", "--incomplete", "--yes")
    assert (done.exit_code, "no run" in done.err) == (0, True)


NOW = "1770000000"  # 2026-02-02T02:40:00Z


@pytest.fixture
def dated(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Runs of five days in January and one of another suite; the third one is tagged."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", NOW)
    for day in (1, 5, 10, 20, 30):
        put(store, f"day-{day}", day=day, tags=("keep-it",) if day == 10 else ())
    put(store, "other", day=2, suite="big")
    return store


def left(store: Store) -> list[str]:
    return [run.run_id for run in store.runs()]


def test_runs_older_than_an_age_are_deleted(dated: Store, folder: Folder) -> None:
    """2 February less 20 days is 13 January; the run of the 10th has a tag."""
    done = folder.run("runs", "delete", "--older-than", "20d", "--yes")
    assert done.exit_code == 0
    assert done.err.splitlines() == [
        "kept day-10: it has the tag keep-it", "deleted day-1", "deleted other", "deleted day-5",
    ]  # fmt: skip
    assert left(dated) == ["day-10", "day-20", "day-30"]
    done = folder.run("runs", "delete", "--older-than", "3w", "--yes")
    assert "no run in sqlite:///ragauge.db fits --older-than: nothing was deleted" in done.err
    assert done.exit_code == 0


@pytest.mark.parametrize(
    ("age", "oldest"),
    [("30d", "day-5"), ("4w", "day-10"), ("75H", "day-30"), ("74h", None)],
)
def test_an_age_is_counted_in_hours_days_or_weeks(
    dated: Store, folder: Folder, age: str, oldest: str | None
) -> None:
    """From 02:40 on 2 February: 30 days before is 3 January, 74 hours before is 30 January 00:40.

    The run of a day is of its first minute.
    """
    dated.untag("keep-it")
    folder.run("runs", "delete", "--older-than", age, "--suite", "default", "--yes")
    assert next((run for run in left(dated) if run != "other"), None) == oldest


@pytest.mark.parametrize("age", ["", "d", "30", "30m", "-1d", "1.5d", "٣d", "9999999d", "30 d"])
def test_what_is_no_age_is_refused(dated: Store, folder: Folder, age: str) -> None:
    done = folder.run("runs", "delete", "--older-than", age, "--yes")
    assert (done.exit_code, done.codes) == (2, {"usage"})
    assert len(left(dated)) == 6


def test_the_newest_runs_of_each_suite_are_kept(dated: Store, folder: Folder) -> None:
    """Of `default` the newest two, of `big` its only one; the tagged run counts among them."""
    put_half(dated, "half", day=1)
    assert folder.run("runs", "delete", "--keep", "2", "--yes").exit_code == 0
    assert left(dated) == ["half", "other", "day-10", "day-20", "day-30"]
    assert folder.run("runs", "delete", "--keep", "1", "--suite", "big", "--yes").exit_code == 0
    assert folder.run("runs", "delete", "--keep", "0", "--yes").exit_code == 2


def test_conditions_together_choose_what_fits_all(dated: Store, folder: Folder) -> None:
    put_half(dated, "half", day=1)
    put_half(dated, "now", day=31)
    folder.run("runs", "delete", "--incomplete", "--older-than", "7d", "--yes")
    assert left(dated) == ["day-1", "other", "day-5", "day-10", "day-20", "day-30", "now"]
    # More than 20 days old are the 1st and the 5th; the newest four begin with the 5th.
    folder.run("runs", "delete", "--older-than", "20d", "--keep", "4", "--yes")
    assert left(dated) == ["other", "day-5", "day-10", "day-20", "day-30", "now"]


def test_a_dry_run_lists_and_deletes_nothing(dated: Store, folder: Folder) -> None:
    done = folder.run("runs", "delete", "--older-than", "20d", "--dry-run")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.out.splitlines()[2:]] == ["day-1", "other", "day-5"]
    assert "kept day-10" in done.err
    assert "3 runs would be deleted; nothing was" in done.err
    assert len(left(dated)) == 6
    done = folder.run("runs", "delete", "day-1", "--dry-run")
    assert "1 run would be deleted" in done.err
    assert len(left(dated)) == 6


def test_baselines_are_never_chosen(dated: Store, folder: Folder) -> None:
    folder.run("baseline", "set", "day-1")
    folder.run("runs", "delete", "--older-than", "0h", "--yes", "--force")
    assert left(dated) == ["day-1", "day-10"]


def test_the_baseline_of_the_configuration_is_never_chosen(dated: Store, folder: Folder) -> None:
    """It is named by its id, and has no tag."""
    folder.write("ragauge.toml", 'baseline = "day-5"\n')
    done = folder.run("runs", "delete", "--older-than", "0h", "--yes")
    assert "kept day-5: it is a baseline of ragauge.toml" in done.err
    assert left(dated) == ["day-5", "day-10"]
    folder.write("ragauge.toml", 'baseline = "nothing-stored"\n')
    folder.run("runs", "delete", "--older-than", "0h", "--yes")
    assert left(dated) == ["day-10"]


def test_names_and_ages_do_not_mix(dated: Store, folder: Folder) -> None:
    for more in (("--older-than", "1d"), ("--keep", "1")):
        done = folder.run("runs", "delete", "day-1", *more, "--yes")
        assert (done.exit_code, done.codes) == (2, {"usage"})
    assert len(left(dated)) == 6


def test_the_terminal_lists_what_goes(
    dated: Store, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_terminal(monkeypatch, "y\n")
    done = folder.run("runs", "delete", "--keep", "4")
    assert "day-1, 2026-01-01T00:00:00Z, 3 results" in done.err
    assert "delete 1 run?" in done.err
    assert len(left(dated)) == 5


# --- runs compact


def test_a_store_is_compacted(store: Store, folder: Folder) -> None:
    put(store, "small")
    rows = [{**TRACES[0], "answer_json": {"claim": str(i) * 3000, "citations": []}, "seed": str(i)}
            for i in range(2000)]  # fmt: skip
    put(store, "large", rows, day=2)
    store.delete("large")
    store.close()
    before = Path("ragauge.db").stat().st_size
    done = folder.run("runs", "compact")
    after = Path("ragauge.db").stat().st_size
    assert done.exit_code == 0
    assert after < before / 2
    megabytes = [f"{size / 1e6:.1f} MB" for size in (after, before)]
    assert done.err == "compacted sqlite:///ragauge.db: {}, before {}\n".format(*megabytes)
    assert folder.run("runs", "show", "small").exit_code == 0


# --- stores that may not be written to


def test_a_read_only_store_is_listed_shown_compared_and_exported(
    stored: Path, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_folder() as reached:
        shutil.copy(stored, reached)
        monkeypatch.chdir(reached)
        with read_only(reached):
            for words in (
                ("runs", "list"), ("runs", "show", "first"), ("history", "precision"),
                ("compare", "first", "second"), ("rescore", "first"),
                ("runs", "export", "first", "-o", "-"),
                ("runs", "show", "first", "--question", "A1"),
            ):  # fmt: skip
                done = folder.run(*words)
                assert done.exit_code == 0, (words, done.err)
                assert [path.name for path in reached.iterdir()] == ["ragauge.db"]
            for writing in (
                ("runs", "tag", "first", "x"), ("runs", "delete", "first", "--yes"),
                ("runs", "compact"), ("baseline", "set", "first"),
            ):  # fmt: skip
                done = folder.run(*writing)
                assert done.codes == {"store-unavailable"}, (writing, done.err)
                assert "is read-only" in done.err
        monkeypatch.chdir(folder.path)


# --- where a run comes from


def test_branch_and_changes_are_shown(store: Store, folder: Folder) -> None:
    commit = "0123456789abcdef"
    put(store, "clean", commit_hash=commit, branch="main", dirty=False)
    put(store, "dirty", commit_hash=commit, branch=EVIL, author="A. Nyone", dirty=True, day=2)
    shown = folder.run("runs", "show", "clean").out
    assert f"commit     {commit}\nbranch     main\n" in shown
    shown = folder.run("runs", "show", "dirty").out
    assert f"commit     {commit}, with files changed since\n" in shown
    assert f"branch     {SAFE}\nauthor     A. Nyone\n" in shown
    entries = json.loads(folder.run("runs", "list", "--format", "json").out)["runs"]
    assert [(run["branch"], run["author"], run["dirty"]) for run in entries] == [
        ("main", None, False), (EVIL, "A. Nyone", True),
    ]  # fmt: skip


def test_the_list_has_the_branch_where_one_is_known(
    few: Store, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow(monkeypatch, 200)
    assert "branch" not in folder.run("runs", "list").out
    put(few, "now", commit_hash="0123456789abcdef", branch="main", dirty=True, day=9)
    lines = folder.run("runs", "list").out.splitlines()
    assert "branch  commit" in lines[0]
    assert "main    01234567+" in lines[-1]


def test_an_exported_run_takes_its_branch_along(few: Store, folder: Folder) -> None:
    put(few, "now", commit_hash="0123", branch="main", author="A. Nyone", dirty=False, day=9)
    folder.run("runs", "export", "now", "-o", "run.jsonl")
    folder.run("runs", "import", "run.jsonl", "--store", "sqlite:///other.db")
    with run_store.opened_store("sqlite:///other.db") as other:
        run = run_store.find_run(other, "now")
        assert (run.branch, run.author, run.dirty) == ("main", "A. Nyone", False)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("configured", ["", "store_author = false\n", "store_author = true\n"])
def test_score_stores_the_branch_and_the_author_only_with_consent(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, configured: str
) -> None:
    for name in ("RAGAUGE_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA", "RAGAUGE_BRANCH",
                 "GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_BRANCH"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    folder.write("ragauge.toml", configured)
    person = ("-c", "user.name=A. Nyone", "-c", "user.email=a@example.com")
    for words in (("init", "-b", "trunk"), ("add", "."), (*person, "commit", "-m", "all")):
        subprocess.run(["git", *words], check=True, capture_output=True)
    assert folder.run("score", "gold.jsonl", "trace.jsonl", "--store", URL).exit_code == 0
    folder.write("gold.jsonl", [{**GOLD[0], "question": "?"}, *GOLD[1:]])
    assert folder.run("score", "gold.jsonl", "trace.jsonl", "--store", URL).exit_code == 0
    with run_store.opened_store(URL) as store:
        first, second = store.runs()
    author = "A. Nyone" if "true" in configured else None
    assert (first.branch, first.author, first.dirty) == ("trunk", author, False)
    assert (second.branch, second.author, second.dirty) == ("trunk", author, True)
    assert first.commit_hash == second.commit_hash is not None


# --- runs export and import


@pytest.mark.usefixtures("few")
def test_a_run_goes_from_one_store_to_another(folder: Folder) -> None:
    assert "3 results" in folder.run("runs", "export", "nightly", "-o", "run.jsonl.gz").err
    other = ("--store", "sqlite:///other.db")
    done = folder.run("runs", "import", "run.jsonl.gz", *other)
    assert done.exit_code == 0
    assert "imported first" in done.err
    folder.run("runs", "export", "first", "-o", "again.jsonl.gz", *other)
    assert Path("run.jsonl.gz").read_bytes() == Path("again.jsonl.gz").read_bytes()
    assert folder.run("runs", "import", "run.jsonl.gz", *other).codes == {"run-exists"}
    done = folder.run("runs", "import", "run.jsonl.gz", "--run-id", "new", *other)
    assert "imported new" in done.err


@pytest.mark.usefixtures("few")
def test_an_export_may_go_to_standard_output(folder: Folder) -> None:
    done = folder.run("runs", "export", "first", "-o", "-")
    folder.run("runs", "export", "first", "-o", "run.jsonl")
    assert done.out.encode() == Path("run.jsonl").read_bytes()


@pytest.mark.usefixtures("few")
def test_a_suffix_that_says_no_format_is_refused(folder: Folder) -> None:
    assert folder.run("runs", "export", "first", "-o", "run.csv").codes == {"usage"}
    assert not Path("run.csv").exists()


def test_an_incomplete_run_is_not_exported(store: Store, folder: Folder) -> None:
    put_half(store, "half")
    done = folder.run("runs", "export", "half", "-o", "run.jsonl")
    assert (done.exit_code, done.codes) == (4, {"incomplete-run"})
    assert not Path("run.jsonl").exists()


@pytest.mark.usefixtures("few")
def test_rows_that_cannot_be_read_are_counted(folder: Folder) -> None:
    change("UPDATE eval_query_results SET result_json = x'00' WHERE ordinal = 1")
    assert "1 stored row cannot" in folder.run("runs", "export", "first", "-o", "run.jsonl").err
    done = folder.run("runs", "import", "run.jsonl", "--run-id", "new")
    assert "1 row cannot be read" in done.err


def test_a_damaged_file_is_refused(few: Store, folder: Folder) -> None:
    folder.run("runs", "export", "first", "-o", "run.jsonl")
    data = Path("run.jsonl").read_bytes()
    folder.write("cut.jsonl", data[:-5])
    done = folder.run("runs", "import", "cut.jsonl", "--run-id", "new")
    assert (done.exit_code, done.codes) == (3, {"bad-export"})
    assert len(few.runs()) == 3
    assert folder.run("runs", "import", "none.jsonl").codes == {"file-not-found"}


# --- baseline


def test_a_baseline_is_set_and_shown(few: Store, folder: Folder) -> None:
    assert "the baseline of default is first" in folder.run("baseline", "set", "first").err
    done = folder.run("baseline", "set", "second")
    assert "is second, before first" in done.err
    folder.run("baseline", "set", "third")
    rows = folder.run("baseline", "show").out.splitlines()[2:]
    assert [row.split()[:2] for row in rows] == [["big", "third"], ["default", "second"]]
    document = json.loads(folder.run("baseline", "show", "--suite", "big", "--format", "json").out)
    assert document["schema"] == "ragauge.baselines/1"
    (entry,) = document["baselines"]
    assert (entry["suite"], entry["tag"], entry["run"]["run_id"]) == (
        "big",
        "baseline:big",
        "third",
    )
    assert run_store.find_run(few, "baseline", suite="default").run_id == "second"


@pytest.mark.usefixtures("few")
def test_no_baseline_is_exit_code_4_with_a_hint(folder: Folder) -> None:
    done = folder.run("baseline", "show")
    assert (done.exit_code, done.codes) == (4, {"no-baseline"})
    assert "baseline set" in done.problems[0].hint
    folder.run("baseline", "set", "first")
    assert folder.run("baseline", "show", "--suite", "big").exit_code == 4


def test_half_a_run_is_never_a_baseline(store: Store, folder: Folder) -> None:
    put_half(store, "half")
    for words in (("baseline", "set", "half"), ("runs", "tag", "half", "baseline")):
        done = folder.run(*words)
        assert (done.exit_code, done.codes) == (4, {"incomplete-run"})
    assert run_store.find_run(store, "half", complete=False).tags == ()
    assert folder.run("runs", "tag", "half", "look").exit_code == 0


# --- rescore


def older(value: float) -> None:
    """Let the stored scores of all runs be those of another version of a formula."""
    connection = run_store.open_store(URL)
    for run in connection.runs():
        (scoring,) = connection.scorings(run.run_id)
        document = json.loads(scoring.aggregate)
        metric = document["metrics"]["answer.grounded_precision"]
        metric.update(value=value, unrounded=[value], interval=None, version=0)
        text = msgspec.json.encode(document).decode()
        change("UPDATE eval_scorings SET aggregate_json = ? WHERE run_id = ?", text, run.run_id)
    connection.close()


def test_scoring_again_changes_nothing_where_nothing_changed(few: Store, folder: Folder) -> None:
    done = folder.run("rescore", "--all")
    assert done.exit_code == 0
    assert done.out == "first: unchanged\nsecond: unchanged\nthird: unchanged\n"
    assert len(few.scorings("first")) == 1


def test_a_changed_formula_is_shown_with_both_values_and_versions(
    few: Store, folder: Folder
) -> None:
    older(0.125)
    done = folder.run("rescore", "second")
    assert done.exit_code == 0
    assert "second: stored as scoring 2; changed metrics: 1\n" in done.out
    assert "answer.grounded_precision  0.1250 (v0)  0.6667 (v3)" in done.out
    assert [each.number for each in few.scorings("second")] == [1, 2]
    assert folder.run("rescore", "second").out == "second: unchanged\n"


def test_rescored_runs_as_json(few: Store, folder: Folder) -> None:
    older(0.125)
    put_half(few, "half", day=4)
    document = json.loads(folder.run("rescore", "--all", "--format", "json").out)
    assert document["schema"] == "ragauge.rescored/1"
    assert [(run["run_id"], run["status"]) for run in document["runs"]] == [
        ("first", "changed"), ("second", "changed"), ("third", "changed"), ("half", "skipped"),
    ]  # fmt: skip
    (found,) = document["runs"][1]["changes"]
    assert (found["old"]["value"], found["old"]["version"]) == (0.125, 0)
    assert (found["new"]["value"], found["new"]["version"]) == (0.6667, 3)


def test_one_unreadable_run_does_not_stop_the_others(few: Store, folder: Folder) -> None:
    older(0.125)
    change("UPDATE eval_runs SET config_snapshot_json = 'x' WHERE run_id = 'first'")
    done = folder.run("rescore", "--all")
    assert (done.exit_code, done.codes) == (3, {"bad-store"})
    assert "failed first" in done.err
    assert len(few.scorings("second")) == len(few.scorings("third")) == 2


def test_nothing_to_score_is_exit_code_5(store: Store, folder: Folder) -> None:
    assert folder.run("rescore", "--all").exit_code == 5
    put_half(store, "half")
    done = folder.run("rescore", "--all")
    assert done.exit_code == 5
    assert "skipped half" in done.err
    assert folder.run("rescore", "half").codes == {"incomplete-run"}
    assert folder.run("rescore").exit_code == 2
    assert folder.run("rescore", "half", "--all").exit_code == 2


# --- history


@pytest.mark.usefixtures("few")
def test_a_metric_is_followed_over_all_runs(folder: Folder) -> None:
    done = folder.run("history", "precision")
    assert done.exit_code == 0
    lines = done.out.splitlines()
    assert lines[0] == "answer.grounded_precision, higher is better"
    # 2 of 2 answers right, 2 of 3, then 2 of 4: under ship a missing trace is an empty answer.
    assert [line.split()[2:4] for line in lines if line.startswith("2026")] == [
        ["first", "1.0000"], ["second", "0.6667"], ["third", "0.5000"],
    ]  # fmt: skip
    marks = [line for line in lines if line.startswith("──") and "→" in line]
    assert len(marks) == 1
    assert "the gold set changed" in marks[0]
    assert "not comparable" in marks[0]
    assert lines.index(marks[0]) + 1 == next(n for n, line in enumerate(lines) if "third" in line)
    assert "█▃▁  from 0.5000 to 1.0000" in lines


@pytest.mark.usefixtures("few")
def test_history_fits_the_screen(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (120, 80, 60, 45):
        narrow(monkeypatch, width)
        out = folder.run("history", "precision").out
        assert max(map(len, out.splitlines())) <= width
        assert "0.6667" in out


def test_runs_without_the_metric_are_named_and_not_zero(few: Store, folder: Folder) -> None:
    put(few, "all", profile="all", day=4)
    put_half(few, "half", day=5)
    done = folder.run("history", "retrieval.hit@5")
    assert "left out, without this metric: 3 runs: first, second, third" in done.err
    assert "left out, incomplete: 1 run: half" in done.err
    assert "0.0000" not in done.out.partition("95 %")[0]
    document = json.loads(folder.run("history", "retrieval.hit@5", "--format", "json").out)
    assert [point["run_id"] for point in document["points"]] == ["all"]
    assert document["without"] == ["first", "second", "third"]


def test_history_can_be_narrowed(few: Store, folder: Folder) -> None:
    put(few, "all", profile="all", day=4)

    def runs(*words: str) -> list[str]:
        done = folder.run("history", "precision", "--format", "json", *words)
        return [point["run_id"] for point in json.loads(done.out)["points"]]

    assert runs() == ["first", "second", "third", "all"]
    assert runs("--suite", "big") == ["third"]
    assert runs("--profile", "ship", "--limit", "2") == ["second", "third"]
    assert "newest 1 of 4" in folder.run("history", "precision", "--limit", "1").err


@pytest.mark.usefixtures("few")
def test_a_metric_that_no_run_has_is_exit_code_5(folder: Folder) -> None:
    done = folder.run("history", "semantic.delta_s_hits")
    assert (done.exit_code, done.out) == (5, "")
    assert "no complete run" in done.err
    done = folder.run("history", "answer.charm")
    assert (done.exit_code, done.codes) == (2, {"unknown-metric"})
    assert folder.run("history", "precision", "--suite", "none").exit_code == 5


# --- hostile names


def test_no_name_reaches_the_terminal_as_it_is(store: Store, folder: Folder) -> None:
    """Ids, tags, suites and commits come from files: they are shown, and do nothing."""
    gold = [{**GOLD[0], "qid": EVIL, "question": EVIL}, *GOLD[1:]]
    put(store, EVIL, [{**TRACES[0], "qid": EVIL, "retrieved_ids": [EVIL]}, *TRACES[1:]], gold=gold,
        suite=EVIL, commit_hash=EVIL, system={EVIL: EVIL}, is_file=True)  # fmt: skip
    store.tag(EVIL, EVIL)  # no command makes such a tag; another program may
    for words in (
        ("runs", "list"), ("runs", "show", "latest"), ("runs", "show", "latest", "--full"),
        ("runs", "show", "latest", "--question", EVIL), ("history", "precision"),
        ("runs", "show", "latest", "--question", "no"), ("baseline", "set", "latest"),
        ("baseline", "show"), ("rescore", "latest"), ("runs", "tag", "latest", "x"),
        ("runs", "tag", "latest", "y", "--remove"), ("runs", "delete", "latest", "--yes"),
        ("runs", "export", "latest", "-o", "run.jsonl"),
        ("runs", "delete", "latest", "--yes", "--force"), ("runs", "import", "run.jsonl"),
        ("runs", "import", "run.jsonl", "--run-id", "other"),
    ):  # fmt: skip
        done = folder.run(*words)
        assert done.exit_code in (0, 2, 3), (words, done.err)
        said = done.out + done.err
        assert not set(said) & set("\x1b\u202e"), words
        assert "evil" not in said or SAFE in said.replace("\n           ", " "), words
    assert [run.run_id for run in store.runs()] == ["other"]


def test_json_has_names_as_they_are(store: Store, folder: Folder) -> None:
    put(store, EVIL, is_file=True)  # as an older version stored it, or another program
    done = folder.run("runs", "list", "--format", "json")
    assert json.loads(done.out)["runs"][0]["run_id"] == EVIL
    assert "\x1b" not in done.out
