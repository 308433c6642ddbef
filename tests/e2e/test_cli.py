"""The command line as a user runs it: real processes, real files, exit codes and streams."""

from __future__ import annotations

import gzip
import json
import os
import re
import select
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from ragauge import registry
from ragauge.codes import CODES, ExitCode
from ragauge.model.labels import MEANINGS
from tests.e2e.process import (
    COMMAND,
    GOLD,
    QASET,
    SMOKE_TRACES,
    TRACES,
    WRONG,
    Row,
    environment,
    lines_of,
    run,
    write,
)

ESCAPE = "\x1b"
WORKED = {
    "answered": 2,
    "refused": 1,
    "answerable": 2,
    "unanswerable": 1,
    "precision": 1.0,
    "chr": 1.0,
    "under_refusal": 0.0,
    "over_refusal": 0.0,
    "recall@k": 1.0,
    "k": 5,
    "gates": {"precision": "0.80", "chr": "0.75", "under": "0.05", "over": "0.10"},
    "pass": True,
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the worked example of seeds 003 and 004."""
    write(tmp_path / "gold.jsonl", GOLD)
    write(tmp_path / "trace.jsonl", TRACES)
    write(tmp_path / "wrong.jsonl", WRONG)
    return tmp_path


@pytest.fixture
def smoke(tmp_path: Path) -> Path:
    """A folder with a small set of seed 001."""
    write(tmp_path / "qaset.json", json.dumps(QASET, indent=2))
    write(tmp_path / "trace.jsonl", SMOKE_TRACES)
    return tmp_path


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def widths(text: str) -> set[int]:
    return {len(line) for line in text.splitlines()}


# --- score ---


@pytest.mark.parametrize(
    "arguments",
    [
        (
            "--profile",
            "ship",
            "--k",
            "5",
            "--gates",
            "precision=0.80,chr=0.75,under=0.05,over=0.10",
        ),
        ("--profile", "ship"),
        (),
    ],
    ids=["as documented", "the profile alone", "found by itself"],
)
def test_the_worked_example_prints_the_documented_json(
    project: Path, arguments: tuple[str, ...]
) -> None:
    """Byte by byte what json.dumps(..., indent=2) makes of the documented object."""
    done = run(
        project, "score", "--gold", "gold.jsonl", "--trace", "trace.jsonl", "--format", "json",
        *arguments,
    )  # fmt: skip
    assert done.stdout == json.dumps(WORKED, indent=2) + "\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("gold.jsonl", "trace.jsonl"),
        ("--gold", "gold.jsonl", "--trace", "trace.jsonl"),
        ("--trace=trace.jsonl", "--gold=gold.jsonl"),
        ("gold.jsonl", "--trace", "trace.jsonl"),
    ],
)
def test_files_are_named_by_position_or_by_option(
    project: Path, arguments: tuple[str, ...]
) -> None:
    """Every form gives the same."""
    done = run(project, "score", *arguments, "--format", "json")
    assert (done.returncode, json.loads(done.stdout)) == (0, WORKED)


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "gold.jsonl"),
        ("score", "gold.jsonl", "trace.jsonl", "more.jsonl"),
        ("score", "gold.jsonl", "trace.jsonl", "--gold", "gold.jsonl"),
        ("score", "-", "-"),
        ("score", "gold.jsonl", "trace.jsonl", "--nope"),
        ("score", "gold.jsonl", "trace.jsonl", "--k", "0"),
        ("score", "gold.jsonl", "trace.jsonl", "--format", "xml"),
        ("score", "gold.jsonl", "trace.jsonl", "--workers", "0"),
        ("scor",),
        ("gate",),
        ("validate",),
    ],
)
def test_a_wrong_command_line_is_told_with_a_hint(
    project: Path, arguments: tuple[str, ...]
) -> None:
    """Exit code 2, nothing on stdout, and what to do instead."""
    done = run(project, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(r"error\[(usage|unknown-name)\]: ", done.stderr)
    assert "\n  hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_command_the_usage_is_shown(tmp_path: Path) -> None:
    """Nothing was asked for, so nothing succeeded."""
    done = run(tmp_path)
    assert done.returncode == 2
    assert "Usage: ragauge [OPTIONS] COMMAND" in done.stdout + done.stderr


def test_smoke_prints_the_report_of_its_source(smoke: Path) -> None:
    """Line by line: 1 of 2 answers right, 1 of 2 refused, 1 of 2 hallucinated."""
    done = run(smoke, "score", "qaset.json", "trace.jsonl", "--profile", "smoke", "--format", "md")
    assert done.stdout == (
        "# RAG Quality Report\n"
        "\n"
        "- Questions scored: **4**\n"
        "- Answer precision (over answered): **50.0%**\n"
        "- Over-refusal (answerable but refused): **50.0%**\n"
        "- Under-refusal / Hallucination (unanswerable but answered): **50.0%**\n"
        "- Citation hit rate (answerable): **50.0%**\n"
        "- Claim containment (answerable): **50.0%**\n"
        "\n"
        "## Per-question\n"
        "\n"
        "| qid | answered | hit | refusal | label |\n"
        "|-----|----------|-----|---------|-------|\n"
        "| q1 | true | true | false | **OK** |\n"
        "| q2 | false | false | true | **OVER_REFUSAL** |\n"
        "| q3 | false | false | true | **REFUSAL_OK** |\n"
        "| q4 | true | false | false | **HALLUCINATION** |\n"
    )
    assert done.returncode == 1
    assert "verdict: FAIL" in done.stderr


@pytest.mark.parametrize("profile", ["ship", "smoke", "all"])
@pytest.mark.parametrize("full", [(), ("--full",)], ids=["short", "full"])
def test_every_profile_writes_every_format(
    project: Path, profile: str, full: tuple[str, ...]
) -> None:
    """None of them ends in a fault of the program."""
    done = run(
        project, "score", "gold.jsonl", "wrong.jsonl", "--profile", profile, *full,
        "-o", "out.json", "-o", "out.md", "-o", "out.txt",
    )  # fmt: skip
    assert done.returncode in (0, 1, 4), done.stderr
    assert (project / "out.txt").read_text("utf-8") == done.stdout
    assert (project / "out.md").read_text("utf-8").startswith("# ")
    assert isinstance(json.loads((project / "out.json").read_bytes()), dict)


def test_the_dialect_is_found_without_a_profile(project: Path, smoke: Path) -> None:
    """By the field names of both files; each implies its profile."""
    ship = run(project, "score", "gold.jsonl", "wrong.jsonl", "--format", "json", "--full")
    assert (json.loads(ship.stdout)["profile"], ship.returncode) == ("ship", 1)
    write(smoke / "trace.jsonl", SMOKE_TRACES)
    found = run(smoke, "score", "qaset.json", "trace.jsonl", "--format", "md")
    assert found.stdout.startswith("# RAG Quality Report\n")
    assert found.returncode == 1


def test_files_of_two_dialects_are_read_by_any_spelling(project: Path) -> None:
    """Under `all`, and the reader is told."""
    write(project / "qaset.json", [{**row, "qid": f"A000{i + 1}"} for i, row in enumerate(QASET)])
    done = run(project, "score", "qaset.json", "trace.jsonl")
    assert done.returncode == 0
    assert done.stdout.startswith("profile all, ")
    assert "dialect smoke and the traces like ship" in done.stderr


def test_a_dialect_may_be_forced(project: Path) -> None:
    """It chooses the profile and whose spelling wins."""
    both = [{**row, "gold_ids": ["zz"], "q": row["question"]} for row in GOLD]
    write(project / "both.jsonl", both)
    traces = [{**row, "answer": "Else. citations: [zz]", "chunks": ["zz"]} for row in TRACES]
    write(project / "traces.jsonl", traces)
    ship = run(
        project, "score", "both.jsonl", "traces.jsonl", "--dialect", "ship", "--format", "json"
    )
    assert (ship.returncode, json.loads(ship.stdout)) == (0, WORKED)
    other = run(
        project, "score", "both.jsonl", "traces.jsonl", "--dialect", "smoke", "--format", "md"
    )
    assert "| A0001 | true | true | false | **OK** |" in other.stdout
    assert "- Under-refusal / Hallucination (unanswerable but answered): **100.0%**" in other.stdout
    native = run(project, "score", "both.jsonl", "traces.jsonl", "--dialect", "native")
    assert native.returncode == 3
    assert "error[field-conflict]" in native.stderr
    unknown = run(project, "score", "both.jsonl", "traces.jsonl", "--dialect", "shipp")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "did you mean `ship`?" in unknown.stderr


def test_metrics_and_cut_offs_may_be_chosen(project: Path) -> None:
    """Only those are reported, with the profile's gates on top."""
    done = run(
        project, "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--k", "1,2",
        "--metrics", "retrieval.recall_all,refusal.over", "--format", "json",
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["k"] == [1, 2]
    assert {name: entry["value"] for name, entry in document["metrics"].items()} == {
        "retrieval.recall_all@1": 0.5,  # pB#1 is first, p1#2 second
        "retrieval.recall_all@2": 1.0,
        "refusal.over": 0.0,
    }


# --- exit codes ---

OUTCOMES: list[tuple[int, tuple[str, ...]]] = [
    (0, ("gold.jsonl", "trace.jsonl")),
    (0, ("gold.jsonl", "wrong.jsonl", "--profile", "all")),
    (1, ("gold.jsonl", "wrong.jsonl")),
    (1, ("gold.jsonl", "wrong.jsonl", "--gates", "under=0")),
    (2, ("gold.jsonl", "trace.jsonl", "--profile", "all", "--gates", "precision=1.1")),
    (2, ("gold.jsonl", "nowhere.jsonl")),
    (2, ("gold.jsonl", "trace.jsonl", "--gates", "precision=high")),
    (3, ("gold.jsonl", "bad.jsonl")),
    (3, ("bad.jsonl", "trace.jsonl")),
    (4, ("gold.jsonl", "partial.jsonl")),
    (0, ("gold.jsonl", "partial.jsonl", "--allow-missing", "--gates", "precision=0,chr=0")),
    (4, ("gold.jsonl", "bad.jsonl", "--on-bad-line=skip")),
    (0, ("gold.jsonl", "bad.jsonl", "--on-bad-line=skip", "--allow-skipped")),
    (4, ("unanswerable.jsonl", "refused.jsonl")),
    (0, ("unanswerable.jsonl", "refused.jsonl", "--allow-empty")),
    (4, ("gold.jsonl", "errored.jsonl", "--profile", "all", "--gates", "precision=0")),
    (4, ("gold.jsonl", "errored.jsonl", "--profile", "ship")),
    (0, ("gold.jsonl", "errored.jsonl", "--profile", "ship", "--allow-errored")),
    (5, ("gold.jsonl", "empty.jsonl")),
    (5, ("empty.jsonl", "trace.jsonl")),
    (5, ("empty.jsonl", "empty.jsonl", "--profile", "all")),
    (5, ("gold.jsonl", "strange.jsonl", "--allow-missing", "--allow-empty")),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "arguments"), OUTCOMES)
def test_the_exit_code_says_what_came_of_the_run(
    project: Path, expected: int, arguments: tuple[str, ...]
) -> None:
    """The report is printed in every case but 2 and 3."""
    write(project / "bad.jsonl", lines_of(TRACES) + b'{"qid": }\n')
    write(project / "partial.jsonl", TRACES[:2])
    write(project / "unanswerable.jsonl", [GOLD[1], {**GOLD[1], "qid": "again"}])
    write(project / "refused.jsonl", [TRACES[1], {**TRACES[1], "qid": "again"}])
    write(project / "errored.jsonl", [{**TRACES[0], "error": "timeout"}, *TRACES[1:]])
    write(project / "empty.jsonl", b"")
    write(project / "strange.jsonl", [{**row, "qid": f"B{i}"} for i, row in enumerate(TRACES)])
    done = run(project, "score", *arguments)
    assert done.returncode == expected, done.stderr
    assert (done.stdout == "") == (expected in (2, 3))
    assert "Traceback" not in done.stderr


# --- output ---


def test_files_are_written_in_the_format_of_their_suffix(project: Path) -> None:
    """Several at once, also into folders that are not there yet, beside what is printed."""
    done = run(
        project, "score", "gold.jsonl", "wrong.jsonl", "--full", "--format", "md",
        "-o", "out/scores.json", "-o", "report.md", "-o", "report.txt",
    )  # fmt: skip
    assert done.returncode == 1
    assert json.loads((project / "out" / "scores.json").read_text("utf-8"))["schema"]
    assert (project / "report.md").read_text("utf-8") == done.stdout
    assert done.stdout.startswith("# ragauge: FAIL")
    assert (project / "report.txt").read_text("utf-8").startswith("profile ship, ")
    assert left(project / "out") == {"scores.json"}
    assert left(project) == {
        "gold.jsonl", "trace.jsonl", "wrong.jsonl", "out", "report.md", "report.txt",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["report.xyz", "report", "report.JSONL"])
def test_an_unknown_suffix_is_refused_before_anything_is_written(project: Path, name: str) -> None:
    """Also the files with known suffixes are not written."""
    before = left(project)
    done = run(project, "score", "gold.jsonl", "trace.jsonl", "-o", "scores.json", "-o", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert ".json" in done.stderr
    assert left(project) == before


def test_bad_input_writes_no_file_and_keeps_the_old_one(project: Path) -> None:
    """A report of an earlier run is not taken for this one's, nor destroyed by it."""
    write(project / "bad.jsonl", b'{"qid": }')
    write(project / "old.json", b"old")
    done = run(project, "score", "gold.jsonl", "bad.jsonl", "-o", "new.json", "-o", "old.json")
    assert done.returncode == 3
    assert (project / "old.json").read_bytes() == b"old"
    assert "new.json" not in left(project)


def test_data_goes_to_stdout_and_talk_to_stderr(project: Path) -> None:
    """What is printed parses although there is much to warn about."""
    traces = [*TRACES, TRACES[0], {**TRACES[0], "qid": "B1"}]
    write(project / "noisy.jsonl", b"\xef\xbb\xbf" + lines_of(traces).replace(b"\n", b"\r\n"))
    write(project / "more.jsonl", [*GOLD, {**GOLD[0], "qid": "A0004"}])
    done = run(project, "score", "more.jsonl", "noisy.jsonl", "--format", "json", "--full")
    document = json.loads(done.stdout)
    assert (document["missing"], document["duplicates"], document["unknown"]) == (1, 1, 1)
    for line in (
        "warning: noisy.jsonl: byte order mark at the start",
        "warning: noisy.jsonl: CRLF line ends",
        "warning: 1 gold item without a trace: A0004",
        "warning: 1 trace replaced by a later one of the same question",
        "warning: 1 trace of no gold item, the first: B1 at noisy.jsonl:5",
    ):
        assert line in done.stderr.splitlines()
    assert done.returncode == 4


def test_errors_leave_stdout_empty(project: Path) -> None:
    """A program that reads the output gets nothing, not half of it."""
    write(project / "bad.jsonl", b'{"qid": }')
    for format_name in ("table", "json", "md"):
        done = run(project, "score", "gold.jsonl", "bad.jsonl", "--format", format_name)
        assert (done.returncode, done.stdout) == (3, "")


LONG = "a-very-long-identifier/" * 12
WIDE = "漢字" * 60


@pytest.mark.parametrize("profile", ["ship", "all", "smoke"])
def test_tables_are_at_most_80_columns_wide(project: Path, profile: str) -> None:
    """Long ids and paths are wrapped, and not cut."""
    gold = [{**row, "qid": LONG + row["qid"]} for row in GOLD]
    traces = [{**row, "qid": LONG + row["qid"]} for row in WRONG]
    write(project / "a-folder-with-a-long-name/and-another-one/gold.jsonl", gold)
    name = "a-folder-with-a-long-name/and-another-one/traces-of-the-latest-run.jsonl"
    write(project / name, traces)
    done = run(
        project, "score", "a-folder-with-a-long-name/and-another-one/gold.jsonl", name,
        "--profile", profile, "--gates", "precision=0.99,under=0.01",
    )  # fmt: skip
    # Gates that a profile does not have need five questions.
    assert done.returncode == (4 if profile == "all" else 1)
    assert max(widths(done.stdout)) <= 80
    if profile != "smoke":
        seen = "".join(line[:30].split("  ")[0].strip() for line in done.stdout.splitlines())
        assert LONG[:200] in seen.replace(" ", "")


def test_wide_characters_count_twice(project: Path) -> None:
    """In a terminal they take two columns."""
    write(project / "gold.jsonl", [{**row, "qid": WIDE + row["qid"]} for row in GOLD])
    write(project / "trace.jsonl", [{**row, "qid": WIDE + row["qid"]} for row in WRONG])
    done = run(project, "score", "gold.jsonl", "trace.jsonl")
    assert done.returncode == 1
    columns = [len(line) + sum(c in "漢字" for c in line) for line in done.stdout.splitlines()]
    assert max(columns) <= 80
    assert "漢字" in done.stdout


@pytest.mark.parametrize(
    "arguments", [("demo",), ("explain",), ("metrics",), ("metrics", "refusal.over")]
)
def test_other_commands_are_at_most_80_columns_wide(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """So they can be read in any terminal, and pasted into a page."""
    done = run(tmp_path, *arguments)
    assert done.returncode == 0
    rows = ("  gold ", "  trace ")  # of the worked example: JSON is not broken into lines
    long = [line for line in done.stdout.splitlines() if len(line) > 80]
    assert [line for line in long if not line.startswith(rows)] == []


@pytest.mark.parametrize(
    "command", [("score", "gold.jsonl", "wrong.jsonl"), ("demo",), ("metrics",), ("score", "x")]
)
@pytest.mark.parametrize("env", [{"TERM": "xterm-256color"}, {"NO_COLOR": "1"}])
def test_there_are_no_escape_codes_outside_a_terminal(
    project: Path, command: tuple[str, ...], env: dict[str, str]
) -> None:
    """Neither on stdout nor on stderr."""
    done = run(project, *command, env=env)
    assert ESCAPE not in done.stdout + done.stderr


def in_a_terminal(folder: Path, env: dict[str, str], *arguments: str) -> str:
    """Run the command with a terminal as its stdout, and return what was written to it."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=environment(TERM="xterm-256color", **env),
        stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(follower)
    said = b""
    while select.select([leader], [], [], 30)[0]:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        said += piece
    process.wait(timeout=30)
    os.close(leader)
    return said.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_colour_is_for_terminals_and_can_be_refused(project: Path) -> None:
    """NO_COLOR goes over the terminal, and so does a dumb one."""
    arguments = ("score", "gold.jsonl", "wrong.jsonl")
    assert ESCAPE in in_a_terminal(project, {}, *arguments)
    assert ESCAPE not in in_a_terminal(project, {"NO_COLOR": "1"}, *arguments)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize(
    "arguments",
    [("score", "gold.jsonl", "wrong.jsonl"), ("demo",), ("metrics", "citation.hit_rate")],
)
def test_an_output_that_is_not_utf8_is_no_fault(
    project: Path, encoding: str, arguments: tuple[str, ...]
) -> None:
    """As when output is redirected on Windows: lines and arrows may look poorer, nothing more."""
    done = run(project, *arguments, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout
    assert "error[bug]" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs file names of any bytes")
@pytest.mark.parametrize("format_name", ["table", "json", "md"])
def test_a_file_name_that_is_not_utf8_is_no_fault(project: Path, format_name: str) -> None:
    """It is shown with its odd bytes replaced or escaped."""
    odd = os.fsdecode(b"trace\xff.jsonl")
    write(project / odd, WRONG)
    done = run(project, "score", "gold.jsonl", odd, "--full", "--format", format_name)
    assert done.returncode == 1, done.stderr
    assert "error[bug]" not in done.stderr


# --- standard input, pipes and devices ---


@pytest.mark.parametrize("profile", [(), ("--profile", "ship")], ids=["found", "given"])
def test_a_dash_is_standard_input(project: Path, profile: tuple[str, ...]) -> None:
    """For either file, with the same outcome, places and gates as from a file."""
    plain = run(project, "score", "gold.jsonl", "wrong.jsonl", *profile)
    done = run(project, "score", "gold.jsonl", "-", *profile, stdin=lines_of(WRONG))
    assert done.returncode == plain.returncode == 1
    assert "<stdin>:2" in done.stdout
    assert done.stdout.split("look at")[0] == plain.stdout.split("look at")[0]
    gold = run(project, "score", "-", "wrong.jsonl", *profile, stdin=lines_of(GOLD))
    assert (gold.returncode, gold.stdout) == (plain.returncode, plain.stdout)


def test_standard_input_may_be_packed(project: Path) -> None:
    """As any other file may: `ragauge score gold.jsonl - < trace.jsonl.gz`."""
    done = run(project, "score", "gold.jsonl", "-", stdin=gzip.compress(lines_of(WRONG)))
    assert done.returncode == 1, done.stderr
    assert "<stdin>:2" in done.stdout


def test_bad_lines_of_standard_input_have_places(project: Path) -> None:
    """<stdin> stands for the file's name."""
    done = run(project, "score", "gold.jsonl", "-", stdin=lines_of(TRACES) + b'{"qid": }\n')
    assert (done.returncode, done.stdout) == (3, "")
    assert "  --> <stdin>:4" in done.stderr


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_pipe_may_stand_for_a_file(project: Path) -> None:
    """As in `ragauge score gold.jsonl <(zcat trace.gz)`."""
    reader, writer = os.pipe()
    os.write(writer, lines_of(TRACES))
    os.close(writer)
    try:
        done = subprocess.run(
            [*COMMAND, "score", "gold.jsonl", f"/dev/fd/{reader}", "--format", "json"],
            cwd=project, env=environment(), pass_fds=[reader], capture_output=True, timeout=60,
            encoding="utf-8", check=False,
        )  # fmt: skip
    finally:
        os.close(reader)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == WORKED


@pytest.mark.parametrize("arguments", [("explain",), ("demo",), ("--help",), ("metrics",)])
def test_a_reader_that_goes_away_is_no_fault(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """As in `ragauge ... | head -1`: no traceback, no talk, and not the code of a failed gate."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=tmp_path, env=environment(), stdout=writer,
            stderr=subprocess.PIPE, timeout=60, encoding="utf-8", check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode not in set(ExitCode) - {ExitCode.PASS}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_not_a_fault_of_the_program(project: Path) -> None:
    """The output could not be written: that is said, with a code of its own."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "score", "gold.jsonl", "trace.jsonl"], cwd=project, env=environment(),
            stdout=full, stderr=subprocess.PIPE, timeout=60, encoding="utf-8", check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("error[file-unreadable]: ")
    assert "No space left on device" in done.stderr


# --- configuration and gates ---


def test_the_configuration_of_the_folder_is_picked_up(project: Path) -> None:
    """Files, profile and gates; options go over it, gate by gate."""
    write(
        project / "ragauge.toml",
        'gold = "gold.jsonl"\ntrace = "wrong.jsonl"\nprofile = "ship"\n\n[gates]\nunder = 0.0\n',
    )
    assert run(project, "score").returncode == 1
    lenient = "precision=0,chr=0"
    assert run(project, "score", "--gates", lenient).returncode == 1
    assert run(project, "score", "--gates", f"{lenient},under=1").returncode == 0
    assert run(project, "score", "--gates", f"{lenient},refusal.under<=1.0").returncode == 0
    assert run(project, "score", "--gates", "precision=0.9,under=1").returncode == 1
    assert run(project, "score", "--trace", "trace.jsonl").returncode == 0
    assert run(project, "score", "--profile", "ship", "--trace", "trace.jsonl").returncode == 0


def test_another_configuration_may_be_named(project: Path) -> None:
    """Its paths are relative to its own folder."""
    write(project / "ci" / "strict.toml", 'gold = "../gold.jsonl"\ntrace = "../wrong.jsonl"\n')
    done = run(project, "score", "--config", "ci/strict.toml", "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["under_refusal"] == 1.0
    missing = run(project, "score", "--config", "nowhere.toml")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "error[file-not-found]" in missing.stderr


def test_gates_may_stand_in_a_file(project: Path) -> None:
    """With options that a command line cannot say."""
    gates = write(
        project / "gates.toml",
        'under = "<= 1.0"\nprecision = { threshold = 0.9, review = [0.6, 0.9] }\n'
        '"retrieval.recall_all@5" = { threshold = 0.5, policy = "interval", min_n = 2 }\n',
    )
    done = run(project, "score", "gold.jsonl", "wrong.jsonl", "--gates", "gates.toml",
               "--format", "json", "--full")  # fmt: skip
    statuses = {
        gate["name"]: gate["status"] for gate in json.loads(done.stdout)["verdict"]["gates"]
    }
    assert statuses == {
        "under": "pass",
        "precision": "review",  # 2/3 is in the band
        "retrieval.recall_all@5": "fail",  # 2 of 2, but the interval begins at 0.34
        "chr": "fail",  # 2/3, and the profile's own demand is still in force
        "over": "pass",
    }
    assert done.returncode == 1
    write(gates, "precision = { threshold = 0.9, revue = [0.6, 0.9] }\n")
    done = run(project, "score", "gold.jsonl", "wrong.jsonl", "--gates", "gates.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[bad-config]" in done.stderr


@pytest.mark.parametrize("traces", ["trace.jsonl", "wrong.jsonl"])
def test_gate_decides_as_score_did(project: Path, traces: str) -> None:
    """On the saved file, with the same numbers."""
    scored = run(
        project, "score", "gold.jsonl", traces, "--full", "-o", "s.json", "--format", "json"
    )
    judged = run(project, "gate", "s.json", "--format", "json")
    assert judged.returncode == scored.returncode == (0 if traces == "trace.jsonl" else 1)
    saved = json.loads((project / "s.json").read_text("utf-8"))
    assert json.loads(judged.stdout)["verdict"] == saved["verdict"]
    assert json.loads(judged.stdout)["metrics"] == saved["metrics"]
    table = run(project, "gate", "s.json")
    assert table.returncode == scored.returncode
    assert max(widths(table.stdout)) <= 80


def test_gate_decides_otherwise_under_other_gates(project: Path) -> None:
    """Nothing is scored again: the trace file may be gone."""
    run(project, "score", "gold.jsonl", "wrong.jsonl", "--full", "-o", "s.json")
    (project / "wrong.jsonl").unlink()
    (project / "gold.jsonl").unlink()
    assert run(project, "gate", "s.json").returncode == 1
    assert (
        run(project, "gate", "s.json", "--gates", "under=1,precision=0.6,chr=0.6").returncode == 0
    )
    assert run(project, "gate", "s.json", "--gates", "answer.compliance=0.5").returncode == 4
    write(project / "ragauge.toml", "[gates]\nunder = 1\nprecision = 0.6\nchr = 0.6\n")
    done = run(project, "gate", "s.json", "-o", "judged.json", "-o", "judged.md")
    assert done.returncode == 0
    assert json.loads((project / "judged.json").read_text("utf-8"))["verdict"]["status"] == "pass"
    assert (project / "judged.md").read_text("utf-8").startswith("# ragauge: PASS")


def test_gate_judges_a_smoke_run_too(smoke: Path) -> None:
    """Its JSON is the scores document."""
    run(smoke, "score", "qaset.json", "trace.jsonl", "--profile", "smoke", "-o", "s.json")
    done = run(smoke, "gate", "s.json")
    assert done.returncode == 1
    assert "G1 precision" in done.stdout


def test_gate_refuses_the_short_json_of_ship(project: Path) -> None:
    """It does not carry n; the hint says how to save one that does."""
    run(project, "score", "gold.jsonl", "trace.jsonl", "-o", "short.json")
    assert json.loads((project / "short.json").read_text("utf-8")) == WORKED
    done = run(project, "gate", "short.json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "error[bad-scores]" in done.stderr
    assert "--full" in done.stderr


def test_gate_needs_gates(project: Path) -> None:
    """A run under `all` has none of its own."""
    run(project, "score", "gold.jsonl", "trace.jsonl", "--profile", "all", "-o", "s.json")
    done = run(project, "gate", "s.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert run(project, "gate", "s.json", "--gates", "precision=1").returncode == 4  # n = 2
    write(project / "g.toml", '"answer.precision" = { threshold = 1, min_n = 2 }\n')
    assert run(project, "gate", "s.json", "--gates", "g.toml").returncode == 0


# --- validate ---


def test_validate_says_what_is_in_the_files(project: Path) -> None:
    """And ends with ok."""
    done = run(project, "validate", "gold.jsonl", "trace.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "gold.jsonl: 3 gold items, dialect ship\ntrace.jsonl: 3 traces, dialect ship\nok\n"
    )
    assert run(project, "validate", "gold.jsonl").stdout.startswith("gold.jsonl: 3 gold items")
    alone = run(project, "validate", "--trace", "trace.jsonl")
    assert (alone.returncode, alone.stdout) == (0, "trace.jsonl: 3 traces, dialect ship\nok\n")


def test_validate_shows_problems_of_both_files(project: Path) -> None:
    """Each with its place; exit code 3."""
    write(project / "gold.jsonl", lines_of(GOLD) + b'{"question": "What?"}\n')
    write(project / "trace.jsonl", lines_of(TRACES) + b"[]\n" + b'{"qid": "A0001", "turn": []}\n')
    done = run(project, "validate", "gold.jsonl", "trace.jsonl")
    assert done.returncode == 3
    assert re.findall(r"error\[([a-z-]+)\]", done.stderr) == [
        "missing-field", "not-a-row", "bad-field",
    ]  # fmt: skip
    assert re.findall(r"--> (\S+)", done.stderr) == [
        "gold.jsonl:4",
        "trace.jsonl:4",
        "trace.jsonl:5",
    ]
    assert "ok" not in done.stdout.splitlines()


def test_validate_says_how_the_files_fit_together(project: Path) -> None:
    """Missing, doubled and unknown traces are findings, not problems."""
    traces = [*TRACES[:2], TRACES[0], {**TRACES[2], "qid": "B9"}]
    write(project / "trace.jsonl", traces)
    done = run(project, "validate", "gold.jsonl", "trace.jsonl")
    assert done.returncode == 0
    assert "1 gold item without a trace: A0003" in done.stdout
    assert "1 trace replaced by a later one of the same question" in done.stdout
    assert "1 trace of no gold item, the first: B9 at trace.jsonl:4" in done.stdout


@pytest.mark.parametrize("name", ["gold.jsonl", "trace.jsonl"])
def test_validate_does_not_pass_an_empty_file(project: Path, name: str) -> None:
    """Exit code 5: there is nothing to validate."""
    write(project / name, b"\n")
    done = run(project, "validate", "gold.jsonl", "trace.jsonl")
    assert done.returncode == 5, done.stderr
    assert "ok" not in done.stdout.splitlines()


@pytest.mark.parametrize("files_", [("gold.jsonl",), ("gold.jsonl", "trace.jsonl")])
def test_validate_refuses_what_score_would_refuse(project: Path, files_: tuple[str, ...]) -> None:
    """Two items of one id under `all`, whether or not traces are given too."""
    write(project / "gold.jsonl", [*GOLD, GOLD[0]])
    done = run(project, "validate", *files_, "--profile", "all")
    assert done.returncode == 3
    assert "error[duplicate-qid]" in done.stderr
    assert "--> gold.jsonl:4" in done.stderr


# --- metrics and explain ---


def test_metrics_lists_every_metric(tmp_path: Path) -> None:
    """With its direction and title, cut-offs shown as @k."""
    done = run(tmp_path, "metrics")
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.splitlines() if re.match(r"\w+\.\w+", line)]
    expected = [
        f"{metric.id}@k" if metric.at_k else metric.id for metric in registry.metrics().values()
    ]
    assert listed == expected


def test_metrics_as_json(tmp_path: Path) -> None:
    """Every metric, or one."""
    done = run(tmp_path, "metrics", "--format", "json")
    entries = json.loads(done.stdout)
    assert [entry["id"] for entry in entries] == list(registry.metrics())
    assert all(entry["formula"] and entry["title"] and entry["over"] for entry in entries)
    (one,) = json.loads(run(tmp_path, "metrics", "refusal.over", "--format", "json").stdout)
    assert one in entries


@pytest.mark.parametrize("name", ["retrieval.recall_all", "retrieval.recall_all@5"])
def test_metrics_explains_one(tmp_path: Path, name: str) -> None:
    """Formula, population, what is left out, the rule for 0/0, an example and the source."""
    done = run(tmp_path, "metrics", name)
    assert done.returncode == 0
    assert done.stdout.startswith("retrieval.recall_all@k  (version 2, higher is better)\n")
    for word in ("formula", "over", "left out", "0/0", "source", "example"):
        assert re.search(rf"^{word}", done.stdout, re.MULTILINE)


def test_metrics_knows_the_short_names_of_profiles(tmp_path: Path) -> None:
    """And says whose they are, on stderr; an unknown name gets a suggestion."""
    done = run(tmp_path, "metrics", "chr")
    assert done.returncode == 0
    assert "citation.hit_rate  (version" in done.stdout
    assert "citation.hit_rate_answerable  (version" in done.stdout
    assert "in the profile smoke, chr is short for citation.hit_rate_answerable" in done.stderr
    unknown = run(tmp_path, "metrics", "refusal.ovr")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "did you mean `refusal.over`?" in unknown.stderr


def test_explain_lists_every_code_and_label(tmp_path: Path) -> None:
    """Each on a line, with the exit code."""
    done = run(tmp_path, "explain")
    assert done.returncode == 0
    for code, entry in CODES.items():
        assert re.search(rf"^  {code} +{int(entry.exit)}  ", done.stdout, re.MULTILINE)
    for label in MEANINGS:
        assert re.search(rf"^  {label} ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("bad-json", "bad-json: a line is not valid JSON  (exit code 3)"),
        ("error[bad-json]", "bad-json: a line is not valid JSON  (exit code 3)"),
        ("[bad-json]", "bad-json: a line is not valid JSON  (exit code 3)"),
        ("4", "exit code 4: not evaluable"),
        ("0", "exit code 0: pass"),
        ("ok", "OK: "),
        ("HALLUCINATION", "HALLUCINATION: "),
        ("answer.precision", "`answer.precision` is a metric: "),
    ],
)
def test_explain_knows_codes_exit_codes_and_labels(tmp_path: Path, name: str, first: str) -> None:
    """As they are printed, with brackets or without."""
    done = run(tmp_path, "explain", name)
    assert done.returncode == 0
    assert done.stdout.startswith(first)


@pytest.mark.parametrize("name", ["bad-jsn", "99", "\u00b2", ""])
def test_explain_refuses_what_it_does_not_know(tmp_path: Path, name: str) -> None:
    """Exit code 2, with what it does know."""
    done = run(tmp_path, "explain", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[")
    assert "error[bug]" not in done.stderr


# --- init and demo ---

RIGHT: list[Row] = [
    {"qid": "Q001", "retrieved_ids": ["refunds#2"],
     "answer_json": {"claim": "It takes within 14 days.", "citations": ["refunds#2"]}},
    {"qid": "Q002", "retrieved_ids": ["plans#4"],
     "answer_json": {"claim": "The Enterprise plan.", "citations": ["plans#4"]}},
    {"qid": "Q003", "retrieved_ids": [],
     "answer_json": {"claim": "not in context", "citations": []}},
]  # fmt: skip
WRITTEN = ["ragauge.toml", "eval/gold.jsonl", ".github/workflows/ragauge.yml"]


def test_init_writes_a_project_that_works(tmp_path: Path) -> None:
    """Configuration and gold are valid: right answers pass, a wrong one blocks."""
    done = run(tmp_path, "init")
    assert (done.returncode, done.stderr) == (0, "")
    for name in WRITTEN:
        assert f"wrote {Path(name)}" in done.stdout
    assert sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    ) == sorted(str(Path(name)) for name in WRITTEN)
    write(tmp_path / "runs" / "trace.jsonl", RIGHT)
    assert run(tmp_path, "validate").returncode == 0
    scored = run(tmp_path, "score", "--full", "-o", "ragauge.json", "-o", "ragauge.md")
    assert scored.returncode == 0, scored.stderr
    wrong = [*RIGHT[:2], {**RIGHT[2], "answer_json": {"claim": "Ann.", "citations": []}}]
    write(tmp_path / "runs" / "trace.jsonl", wrong)
    assert run(tmp_path, "score").returncode == 1
    write(tmp_path / "runs" / "trace.jsonl", RIGHT[:2])
    assert run(tmp_path, "score").returncode == 4


def test_init_replaces_nothing_unless_told_to(tmp_path: Path) -> None:
    """One file that is there is enough to write none."""
    write(tmp_path / "new" / "eval" / "gold.jsonl", b"mine\n")
    done = run(tmp_path, "init", "new")
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[file-exists]" in done.stderr
    assert "eval/gold.jsonl" in done.stderr
    assert left(tmp_path / "new") == {"eval"}
    assert (tmp_path / "new" / "eval" / "gold.jsonl").read_bytes() == b"mine\n"
    assert run(tmp_path, "init", "new", "--force").returncode == 0
    assert (tmp_path / "new" / "eval" / "gold.jsonl").read_bytes() != b"mine\n"
    assert all((tmp_path / "new" / name).is_file() for name in WRITTEN)


def test_demo_shows_a_failing_gate_and_where_to_look(tmp_path: Path) -> None:
    """The exit code is 0 all the same, and no file is written."""
    done = run(tmp_path, "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^under-refusal +0\.2500 +<= 0\.05 .* fail$", done.stdout, re.MULTILINE)
    assert re.search(r"^FAIL\b.*\bunder-refusal$", done.stdout, re.MULTILINE)
    line = re.search(r"Look at demo/trace\.jsonl:(\d+): question (\w+)", done.stdout)
    assert line is not None
    rows = (files("ragauge.cli.demo_data") / "trace.jsonl").read_text("utf-8").splitlines()
    assert json.loads(rows[int(line[1]) - 1])["qid"] == line[2]
    assert left(tmp_path) == set()


def test_demo_writes_its_files_where_it_is_told(tmp_path: Path) -> None:
    """The bundled ones, byte by byte; the command that it names then fails the build."""
    done = run(tmp_path, "demo", "--write", "try")
    assert done.returncode == 0
    for name in ("gold.jsonl", "trace.jsonl"):
        assert (tmp_path / "try" / name).read_bytes() == (
            files("ragauge.cli.demo_data") / name
        ).read_bytes()
    assert run(tmp_path, "score", "try/gold.jsonl", "try/trace.jsonl").returncode == 1
    write(tmp_path / "try" / "gold.jsonl", b"mine\n")
    again = run(tmp_path, "demo", "--write", "try")
    assert (again.returncode, again.stdout) == (2, "")
    assert (tmp_path / "try" / "gold.jsonl").read_bytes() == b"mine\n"
    assert run(tmp_path, "demo", "--write", "try", "--force").returncode == 0
    assert (tmp_path / "try" / "gold.jsonl").read_bytes() != b"mine\n"


@pytest.mark.parametrize(
    "command", ["score", "gate", "validate", "metrics", "explain", "init", "demo", ""]
)
def test_every_command_has_help(tmp_path: Path, command: str) -> None:
    """On stdout, with exit code 0."""
    done = run(tmp_path, *filter(None, [command, "-h" if command else "--help"]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: ragauge {command}".rstrip())


def test_the_version_is_printed(tmp_path: Path) -> None:
    """As the package has it."""
    import ragauge

    assert run(tmp_path, "--version").stdout == f"ragauge {ragauge.__version__}\n"


def test_a_closed_standard_output_is_no_fault(project: Path) -> None:
    """What was asked for as a file is written, and the exit code is that of the gates."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "score", "gold.jsonl", "trace.jsonl",
         "-o", "scores.json"], cwd=project, env=environment(), stderr=subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (project / "scores.json").exists()
