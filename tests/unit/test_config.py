"""`ragauge.toml` and gates files: what is read, what is refused, and what goes over what."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from ragauge.config import Config, Refusal, load_config, load_gates
from ragauge.errors import RagaugeError
from ragauge.model.verdict import Waiver
from ragauge.scoring.refusals import VERSION
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder

FULL = """\
gold = "eval/gold.jsonl"
trace = "runs/trace.jsonl"
profile = "ship"
dialect = "native"
k = [3, 5]
metrics = ["answer.*"]

[gates]
precision = ">= 0.80"
"refusal.over" = { threshold = 0.1, min_n = 30 }

[[waivers]]
gate = "over"
reason = "pages move"
expires = "2030-01-31"

[refusal]
patterns = ["^i do not know"]
"""


def write(folder: Path, text: str, name: str = "ragauge.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> RagaugeError:
    with pytest.raises(RagaugeError) as caught:
        load_config(path)
    return caught.value


def test_every_setting_is_read(tmp_path: Path) -> None:
    """Paths are relative to the folder of the file."""
    path = write(tmp_path, FULL)
    assert load_config(path) == Config(
        origin=str(path),
        gold=str(tmp_path / "eval/gold.jsonl"),
        trace=str(tmp_path / "runs/trace.jsonl"),
        profile="ship",
        dialect="native",
        k=(3, 5),
        metrics=("answer.*",),
        gates={"precision": ">= 0.80", "refusal.over": {"threshold": 0.1, "min_n": 30}},
        waivers=(Waiver(gate="over", reason="pages move", expires=date(2030, 1, 31)),),
        refusal=Refusal(patterns=("^i do not know",)),
    )


@pytest.mark.parametrize("written", ['"2030-01-31"', "2030-01-31"], ids=["text", "date"])
def test_the_last_day_of_a_waiver_is_a_date(tmp_path: Path, written: str) -> None:
    """In quotes or as TOML's own date."""
    text = f"[[waivers]]\ngate = 'over'\nreason = 'pages move'\nexpires = {written}\n"
    (waiver,) = load_config(write(tmp_path, text)).waivers
    assert waiver.expires == date(2030, 1, 31)


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    """It is the same as no file, but for the file."""
    path = write(tmp_path, "")
    assert load_config(path) == Config(origin=str(path))


def test_the_origin_is_no_setting(tmp_path: Path) -> None:
    """It is the file that was read, whatever the file would have it be."""
    assert "origin" in str(refused(write(tmp_path, 'origin = "other.toml"\n')))


def test_an_absolute_path_stays_as_it_is(tmp_path: Path) -> None:
    """Only relative ones are relative to something."""
    path = write(tmp_path, f"gold = '{tmp_path / 'elsewhere.jsonl'}'")
    assert load_config(path).gold == str(tmp_path / "elsewhere.jsonl")


@cases(
    ("text", "line"),
    [
        ("golld = 'x'", 1),
        ("gold = 5", 1),
        ("gold = ['x']", 1),
        ("profile = true", 1),
        ("k = 5", 1),
        ("k = [1.5]", 1),
        ("k = [0]", 1),
        ("gold = 'x'\n\nk = [\n  5,\n  '5',\n]", 3),
        ("metrics = 'answer.*'", 1),
        ("gates = 5", 1),
        ("[gate]\nprecision = 0.8", 1),
        ("[refusal]\npattern = ['x']", 2),
        ("[refusal]\npatterns = 'x'", 2),
        ("[refusal]\n# none\npatterns = ['x', '(']", 3),
        ("[[waivers]]\ngate = 'x'", 1),
        ("[[waivers]]\ngate = 'x'\nreason = 'y'\nexpires = 'soon'", 4),
        ("[[waivers]]\ngate = 'x'\nreason = 'y'\nexpires = '2030-02-30'", 4),
        ("[[waivers]]\ngate = 'x'\nreason = 'y'\nexpires = '2030-01-31'\nby = 'z'", 5),
        ("[waivers]\ngate = 'x'", 1),
        ("[bands.a]\nrisk = 0.7\n[bands.b]\nrisk = 'high'", 4),
        ("[bands.a]\nrisk = 0.7\n[bands.b]\nstable = 0.9\nrisk = 0.1", 3),
        ("[embedders.a]\nx = 1\n[embedders]\nb = 5", 4),
        ("gold = ", 1),
        ("gold = 'x'\ngold = 'y'", 2),
        ("# one\n[gates\n", 2),
        ("gold = 'x'\nk = [1,\n\n", 2),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused(tmp_path: Path, text: str, line: int) -> None:
    """Unknown keys too: a misspelt gate would otherwise never fail. The line is named."""
    path = write(tmp_path, text)
    error = refused(path)
    assert (error.code, error.exit_code) == ("bad-config", 2)
    assert str(error.problems[0].place) == f"{path}:{line}"
    assert error.problems[0].hint


@cases(
    "data",
    [b"a = 1\n\xff", b"a = 1\nb = '\xff'", b"a = 1\nb = '\0'", b"a = 1\nb = " + b"[" * 99_999],
)
def test_damage_is_told_with_its_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "ragauge.toml"
    path.write_bytes(data)
    assert str(refused(path).problems[0].place) == f"{path}:2"


@cases(
    ("text", "line"),
    [
        ("profile = 'nope'", 2),
        ("dialect = 'nope'", 2),
        ("metrics = ['answer.*', 'nope']", 2),
        ("embed = 'nope'", 2),
        ("embed = 'nope:model'", 2),
        ("chunks = 'nope.jsonl'", 2),
        ("corpus = 'nope'", 2),
        ("embed = 'openai:x'\n[embedders.openai]\nbase = 'no URL'", 3),
        ("[gates]\nprecision = 0.5\nnope = 1", 4),
        ("[gates]\nprecision = 'high'", 3),
        ("[gates]\nprecision = { treshold = 1 }", 3),
        ("[gates.precision]\nmin_n = 3", 2),
        ("[[waivers]]\ngate = 'nope'\nreason = 'x'\nexpires = 2030-01-01", 3),
    ],
)
def test_what_only_a_command_finds_out_is_told_with_its_line_too(
    folder: Folder, text: str, line: int
) -> None:
    folder.write("ragauge.toml", f"# our settings\n{text}\n")
    outcome = folder.score()
    assert (outcome.exit_code, outcome.problems[0].where) == (2, f"ragauge.toml:{line}")


def test_what_the_command_line_names_is_not_looked_for_in_the_file(folder: Folder) -> None:
    folder.write("ragauge.toml", "profile = 'nope'\n")
    outcome = folder.score(None, "--profile", "nope")
    assert (outcome.exit_code, outcome.problems[0].where) == (2, None)


@cases(
    ("text", "line"),
    [
        ("[gates]\nprecision = 0.5\nnope = 1", 3),
        ("precision = 0.5\nnope = 1", 2),
        ("precision = 0.5\nchr = { x = 1 }", 2),
        ("[gates]\nprecision = 1\n[gatess]\n", 3),
    ],
)
def test_a_problem_of_a_gates_file_has_its_line(folder: Folder, text: str, line: int) -> None:
    folder.write("gates.toml", text)
    outcome = folder.score(None, "--gates", "gates.toml")
    assert (outcome.exit_code, outcome.problems[0].where) == (2, f"gates.toml:{line}")


@cases(
    "data",
    [b"\xff\xfe", b"gold = '\xff'", b"gold = 'a\0b'", b"a = " + b"[" * 100_000],
    ids=["UTF-16", "not UTF-8", "NUL", "deep"],
)
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, data: bytes) -> None:
    """Damage ends in a message, also in nesting that no parser follows."""
    path = tmp_path / "ragauge.toml"
    path.write_bytes(data)
    assert refused(path).code == "bad-config"
    with pytest.raises(RagaugeError) as caught:
        load_gates(path)
    assert caught.value.code == "bad-config"


def test_a_pattern_that_is_no_pattern_is_refused(folder: Folder) -> None:
    """It is a fault of the configuration, not of the program."""
    folder.write("ragauge.toml", "profile = 'all'\n[refusal]\npatterns = ['(']\n")
    outcome = folder.score()
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.problems[0].code == "bad-config"


def test_a_missing_file_is_told_with_the_command_that_writes_one(tmp_path: Path) -> None:
    """A path that was given must be there."""
    error = refused(tmp_path / "nowhere.toml")
    assert error.code == "file-not-found"
    assert "ragauge init" in error.problems[0].hint


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    """And no traceback."""
    assert refused(tmp_path).exit_code == 2


# --- gates files ---


@pytest.mark.parametrize("text", ["[gates]\nprecision = 0.8\n", "precision = 0.8\n"])
def test_gates_stand_in_a_table_or_at_the_top(tmp_path: Path, text: str) -> None:
    """Both forms are the same."""
    assert load_gates(write(tmp_path, text)) == {"precision": 0.8}


@cases("text", ["", "# nothing\n", "[gates]\n", "gates = 5\n"])
def test_a_gates_file_without_gates_is_refused(tmp_path: Path, text: str) -> None:
    """It was meant to demand something."""
    with pytest.raises(RagaugeError) as caught:
        load_gates(write(tmp_path, text))
    assert (caught.value.code, caught.value.exit_code) == ("bad-config", 2)


@pytest.mark.parametrize(
    "text", ["over = 0.1\n[gates]\nprecision = 0.8\n", "[gates]\nprecision = 0.8\n[gatess]\n"]
)
def test_what_stands_beside_the_table_of_gates_is_refused(tmp_path: Path, text: str) -> None:
    """It would be passed over, and the gate would never fail."""
    with pytest.raises(RagaugeError) as caught:
        load_gates(write(tmp_path, text))
    assert caught.value.code == "bad-config"


def test_a_missing_gates_file_is_not_found(folder: Folder) -> None:
    """As any other file that is named and not there."""
    outcome = folder.score(None, "--gates", "strict.toml")
    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.problems[0].code == "file-not-found"
    assert "strict.toml" in outcome.problems[0].message


# --- how commands use them ---


def test_the_file_in_the_current_folder_is_taken(folder: Folder) -> None:
    """Files, profile, k and gates all come from it."""
    folder.write("ragauge.toml", "gold = 'g.jsonl'\ntrace = 't.jsonl'\nprofile = 'ship'\nk = [1]\n")
    folder.write("g.jsonl", GOLD)
    folder.write("t.jsonl", TRACES)
    outcome = folder.run("score", "--format", "json")
    assert outcome.exit_code == 0
    assert '"k": 1,' in outcome.out
    assert '"recall@k": 0.5,' in outcome.out  # p1#2 is second, pB#1 first


def test_options_go_over_the_file(folder: Folder) -> None:
    """Each by itself: what is not given still comes from the file."""
    folder.write("ragauge.toml", "gold = 'g.jsonl'\ntrace = 'nowhere.jsonl'\nk = [1]\n")
    folder.write("g.jsonl", GOLD)
    folder.write("t.jsonl", TRACES)
    outcome = folder.run("score", "--trace", "t.jsonl", "--k", "2", "--format", "json")
    assert outcome.exit_code == 0
    assert '"k": 2,' in outcome.out
    assert '"recall@k": 1.0,' in outcome.out


def test_another_file_may_be_named(folder: Folder) -> None:
    """Then the one in the current folder is not read, not even to be refused."""
    folder.write("ragauge.toml", "this is not TOML")
    folder.write("ci/strict.toml", "gold = 'g.jsonl'\n[gates]\nprecision = 1.0\nrecall = 1\n")
    folder.write("ci/g.jsonl", GOLD)
    folder.write("t.jsonl", TRACES)
    outcome = folder.run("score", "--config", "ci/strict.toml", "--trace", "t.jsonl")
    assert outcome.exit_code == 2
    assert outcome.problems[0].code == "unknown-metric"  # so the gates were read: `recall` is none
    folder.write("ci/strict.toml", "gold = 'g.jsonl'\n[gates]\nprecision = 1.0\n")
    assert folder.run("score", "--config", "ci/strict.toml", "--trace", "t.jsonl").exit_code == 0


def test_gates_are_layered_profile_file_and_command_line(folder: Folder) -> None:
    """The later goes over the earlier, gate by gate."""
    folder.write("ragauge.toml", "[gates]\nprecision = 1.0\nchr = 1.0\nover = 0.0\n")
    traces = [{**TRACES[0], "answer_json": {"claim": "X accepts them.", "citations": ["p1#2"]}}]
    traces += TRACES[1:]  # precision 1/2, chr 1
    assert folder.score(traces).exit_code == 1
    assert folder.score(traces, "--gates", "precision=0.5").exit_code == 0
    folder.write("gates.toml", "[gates]\nprecision = 0.4\n")
    assert folder.score(traces, "--gates", "gates.toml").exit_code == 0
    assert folder.score(traces, "--gates", "precision=0.5,under=0,chr=1").exit_code == 0


def test_patterns_add_refusals_under_every_profile(folder: Folder) -> None:
    """`ship` keeps the exact token of its source until somebody configures patterns or a rule."""
    said = {"answer_json": {"claim": "I do not know.", "citations": []}}
    traces = [{**row, **said} for row in TRACES]
    outcome = folder.score(traces, "--profile", "ship", "--format", "json")
    assert '"refused": 0,' in outcome.out
    folder.write("ragauge.toml", "[refusal]\npatterns = ['^i do NOT know']\n")
    for profile in ("all", "ship"):
        outcome = folder.score(traces, "--profile", profile, "--format", "json", "--full")
        assert '"pattern": 3' in outcome.out
        assert '"refused": 3,' in outcome.out
    folder.write("ragauge.toml", "[refusal]\nrule = 'natural'\n")
    outcome = folder.score(traces, "--profile", "ship", "--format", "json", "--full")
    assert f'"natural v{VERSION}": 3' in outcome.out
    folder.write("ragauge.toml", "[refusal]\nrule = 'token'\n")
    outcome = folder.score(traces, "--profile", "all", "--format", "json")
    assert '"refused": 0,' in outcome.out


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("rule = 'token'\npatterns = ['x']", "reads no patterns"),
        ("rule = 'loose'", "Invalid enum value 'loose'"),
        ("languages = ['en', 'tlh']", "Invalid enum value 'tlh'"),
    ],
)
def test_what_decides_nothing_is_refused(folder: Folder, lines: str, told: str) -> None:
    """A rule that is not known, or that leaves patterns unread, is an error with its line."""
    folder.write("ragauge.toml", f"[refusal]\n{lines}\n")
    outcome = folder.score(TRACES)
    assert outcome.exit_code == 2
    assert told in outcome.err
    assert "ragauge.toml:" in outcome.err


def test_waivers_are_judged_on_the_day_that_is_asked_for(folder: Folder) -> None:
    """--as-of makes the outcome independent of the clock."""
    folder.write(
        "ragauge.toml",
        "[[waivers]]\ngate = 'over'\nreason = 'pages move'\nexpires = '2030-01-31'\n",
    )
    refusing = [{**TRACES[0], "answer_json": {"claim": "not in context"}}, *TRACES[1:]]
    valid = folder.score(refusing, "--as-of", "2030-01-31")
    assert (valid.exit_code, "waived until 2030-01-31: pages move" in valid.out) == (0, True)
    expired = folder.score(refusing, "--as-of", "2030-02-01")
    assert (expired.exit_code, "expired on 2030-01-31" in expired.out) == (1, True)
    wrong = folder.score(refusing, "--as-of", "tomorrow")
    assert (wrong.exit_code, wrong.out) == (2, "")
