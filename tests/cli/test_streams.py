"""What is printed: text from files moves no cursor, forges no line, and gives CI no command."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from ragauge.cli.streams import SafeStream
from tests.e2e.process import COMMAND as RAGAUGE
from tests.e2e.process import environment
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, Row

# A title, a cleared screen, colours, an overwritten line, a turned line, line ends of three kinds.
CONTROLS = "\x1b]0;owned\x07\x1b[2J\x1b[32mPASS\x1b[0m\rB\u202eC\x9b31mD\u2028E\x7f"
# Longer than any line of a table: that it stands alone, only a line end can do.
FORGED = f"PASS: {'forged ' * 12}".strip()
COMMAND = "::error title=forged::in CI"
HOSTILE = f"Q{CONTROLS}\n{FORGED}\n{COMMAND}\n  \u3000{COMMAND}\n##[error]old"
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def hostile(rows: list[Row]) -> list[Row]:
    """The same rows; the question that goes wrong has a hostile id, and so have hits and types."""
    return [
        {**row, "qid": HOSTILE if row["qid"] == "A2" else row["qid"], "type": HOSTILE}
        for row in rows
    ]


WRONG = [
    {**row, "answer_json": {"claim": f"It is {HOSTILE}", "citations": [HOSTILE]}}
    if row["qid"] == "A2"
    else row
    for row in TRACES
]


@pytest.fixture
def files(folder: Folder) -> Folder:
    folder.write("gold.jsonl", hostile(GOLD))
    folder.write("trace.jsonl", hostile(WRONG))
    folder.write("bad.jsonl", [*hostile(WRONG), {"qid": HOSTILE}, {"qid": 5, HOSTILE: HOSTILE}])
    folder.write(
        "waived.toml",
        f'[gates]\nprecision = "0.99"\n[[waivers]]\ngate = "precision"\n'
        f'reason = {json.dumps(HOSTILE)}\nexpires = "2030-01-31"\n',
    )
    folder.write(f"{HOSTILE.replace('/', '')}.jsonl", hostile(GOLD))
    done = folder.run(
        "score", "gold.jsonl", "trace.jsonl", "--full", "-o", "a.json", "--store", "--run-id", "r1"
    )
    assert done.exit_code == 1, done.err
    return folder


SCORE = ("score", "gold.jsonl", "trace.jsonl")
FOR_PEOPLE: dict[str, tuple[str, ...]] = {
    "score": (*SCORE, "--full"),
    "score-md": (*SCORE, "--format", "md", "--full"),
    "score-summary": (*SCORE, "--format", "summary", "--full"),
    "score-comment": (*SCORE, "--format", "comment"),
    "score-smoke": (*SCORE, "--profile", "smoke", "--format", "md"),
    "score-skips": ("score", "gold.jsonl", "bad.jsonl", "--on-bad-line", "skip"),
    "score-stops": ("score", "gold.jsonl", "bad.jsonl"),
    "score-waived": (*SCORE, "--config", "waived.toml", "--as-of", "2029-01-01"),
    "validate": ("validate", "gold.jsonl", "bad.jsonl"),
    "validate-name": ("validate", f"{HOSTILE.replace('/', '')}.jsonl"),
    "lint": ("gold", "lint", "gold.jsonl"),
    "stats": ("gold", "stats", "gold.jsonl"),
    "freeze": ("gold", "freeze", "gold.jsonl"),
    "init": ("init", HOSTILE.replace("/", "")),
    "show": ("runs", "show", "r1"),
    "question": ("runs", "show", "r1", "--question", HOSTILE),
    "no-question": ("runs", "show", "r1", "--question", f"{HOSTILE}2"),
    "diagnose": ("diagnose", "r1"),
    "diagnose-md": ("diagnose", "r1", "--format", "md"),
    "prompt": ("prompt", "r1"),
    "compare": ("compare", "r1", "r1", "--full"),
    "compare-md": ("compare", "r1", "r1", "--full", "--format", "md"),
    "gate": ("gate", "a.json", "--gates", "precision=0.99"),
    "gate-config": ("gate", "a.json", "--config", "waived.toml", "--as-of", "2029-01-01"),
    "no-file": ("score", HOSTILE, HOSTILE),
    "no-run": ("runs", "show", HOSTILE),
    "no-command": (HOSTILE,),
    "no-option": ("score", f"--{HOSTILE}"),
    "no-format": (*SCORE, "--format", HOSTILE),
    "tag": ("runs", "tag", "r1", HOSTILE),
}  # fmt: skip


@pytest.mark.parametrize("command", FOR_PEOPLE.values(), ids=FOR_PEOPLE)
def test_text_for_people_draws_nothing_but_itself(
    files: Folder, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No control character gets out, and no line end in an id begins a line; in CI no command."""
    done = files.run(*command)
    assert done.exit_code != 70, done.err
    printed = done.out + done.err
    assert not UNSAFE.search(printed)
    assert not [line for line in printed.split("\n") if line.strip() == FORGED]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert not commands_in(files.run(*command))


def holds_id(document: object) -> bool:
    """Whether a document has the hostile id, character by character."""
    return json.dumps(HOSTILE) in json.dumps(document)


def commands_in(done: object) -> list[str]:
    """The lines that the runner of GitHub takes for commands, by its own two rules."""
    printed = f"{done.out}\n{done.err}"  # type: ignore[attr-defined]
    return [
        line for line in re.split(r"[\r\n]", printed) if line.lstrip()[:2] == "::" or "##[" in line
    ]


@pytest.mark.parametrize("name", ["json", "csv", "junit", "html", "gitlab", "badge", "compact"])
def test_formats_for_programs_give_ci_no_command(
    files: Folder, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = files.run(*SCORE, "--format", name, "--full", "--raw-csv")
    assert done.exit_code == 1
    assert not commands_in(done)
    if name == "json":
        assert holds_id(json.loads(done.out))


def test_a_cell_that_is_wrapped_begins_no_command(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 80 columns the second line of the id begins with the colons."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for blanks in range(30, 60):
        name = "x" * blanks + COMMAND
        gold = [{**GOLD[1], "qid": name}]
        done = folder.score([{**WRONG[1], "qid": name}], gold=gold)
        assert done.exit_code == 4  # a run of one question
        assert not commands_in(done), blanks


def test_annotations_are_commands(files: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = files.run(*SCORE, "--format", "github")
    lines = done.out.splitlines()
    assert [line for line in lines if line.startswith("::error ")]
    assert all(re.match(r"::(error|warning|notice) ", line) for line in lines)
    assert "title=forged" not in re.sub(r"::.*?::", "", done.out.partition("\n")[0])
    compared = files.run("compare", "r1", "r1", "--format", "github")
    assert compared.out.startswith("::")


def test_csv_to_a_pipe_is_exact(files: Folder) -> None:
    """Also the escape sequence that a library for command lines would take out."""
    done = files.run(*SCORE, "--format", "csv", "--raw-csv")
    assert f'"{HOSTILE}"' in done.out


def named(folder: Folder, qid: str) -> Folder:
    """A stored run `r1` whose question that goes wrong has that id."""
    for name, rows in (("gold.jsonl", GOLD), ("trace.jsonl", WRONG)):
        folder.write(name, [{**row, "qid": qid} if row["qid"] == "A2" else row for row in rows])
    assert folder.run(*SCORE, "--store", "--run-id", "r1").exit_code == 1
    return folder


def test_formulas_are_texts_in_csv_unless_it_is_raw(folder: Folder) -> None:
    formula = '=HYPERLINK("http://x")'
    named(folder, formula)
    compare = ("compare", "r1", "r1")
    for command in (SCORE, ("gate", "r1", "--gates", "precision=0.1"), compare):
        for option in ((), ("--raw-csv",)):
            done = folder.run(*command, "--format", "csv", "-o", "out.csv", *option)
            assert done.exit_code in (0, 1), done.err
            assert (folder.path / "out.csv").read_text() == done.out
            ids = [row["qid"] for row in csv.DictReader(io.StringIO(done.out))]
            assert (formula if option else f"'{formula}") in ids


@cases(
    "command",
    [
        (*SCORE, "--format", "md"),
        (*SCORE, "--format", "md", "--profile", "smoke"),
        ("gate", "r1", "--gates", "precision=0.99", "--format", "md"),
        ("compare", "r1", "r1", "--full", "--format", "md"),
        ("diagnose", "r1", "--format", "md"),
        ("shadow", "--live", "r1", "--shadow", "r1", "--format", "md"),
    ],
    ids=lambda command: f"{command[0]}-{command[-1]}",
)
def test_markdown_calls_nobody_and_links_nowhere(folder: Folder, command: tuple[str, ...]) -> None:
    named(folder, "@team see https://evil.example www.evil.example #12 GH-3")
    done = folder.run(*command)
    assert done.exit_code in (0, 1, 4), done.err
    for link in ("@team", "https://", "www.evil", "#12", "GH-3"):
        assert link not in done.out
    if command[0] in ("score", "compare", "diagnose"):
        assert "@&#8203;team see https:&#8203;//evil" in done.out


@cases(
    ("writes", "printed"),
    [
        (["a\n::error::b\n"], "a\n\\x3a:error::b\n"),
        (["a\n", "::error::b"], "a\n\\x3a:error::b"),
        (["a\n", ":", ":error::b"], "a\n\\x3a:error::b"),
        (["\u3000 \u200b::error::b"], "\u3000 \u200b\\x3a:error::b"),
        ([":\u200b:error::b"], "\\x3a\u200b:error::b"),
        (["  ", "::error::b"], "  \\x3a:error::b"),
        (["a ::b:: c: d"], "a ::b:: c: d"),
        (["a", "::b"], "a::b"),
        (["a ##[error]b"], "a ##\\x5berror]b"),
        (["a #", "#[error]b"], "a ##\\x5berror]b"),
        (["##vso[task.x]"], "##vso\\x5btask.x]"),
        (["## [a](b)"], "## [a](b)"),
        (["a\n\n  \n::b"], "a\n\n  \n\\x3a:b"),
    ],
)
def test_commands_of_ci_are_escaped_however_they_are_written(
    writes: list[str], printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    behind = io.StringIO()
    stream = SafeStream(behind)
    for text in writes:
        stream.write(text)
    assert behind.getvalue() == printed


def test_formats_for_programs_are_exact_in_ci_but_for_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The runner ends a line at a carriage return too; what goes to a file it does not see."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    behind = io.StringIO(newline="")
    SafeStream(behind).put('a\x1b[2J,"b\r::error::c"\n', "csv")
    assert behind.getvalue() == 'a\x1b[2J,"b\r\\x3a:error::c"\n'
    with open(tmp_path / "out.csv", "w", newline="") as file:
        SafeStream(file).put("::error::c\n##[x]\n", "csv")
    assert (tmp_path / "out.csv").read_text() == "::error::c\n##[x]\n"


def test_without_ci_colons_are_only_colons() -> None:
    behind = io.StringIO()
    SafeStream(behind).write("::a\n##[b]\ttab\n")
    assert behind.getvalue() == "::a\n##[b]\ttab\n"


def terminal(folder: Path, *arguments: str) -> str:
    """What a command writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*RAGAUGE, *arguments],
        cwd=folder,
        env=environment(TERM="xterm", COLUMNS="80"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    chunks = []
    while select.select([ours], [], [], 60)[0]:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end was closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    assert process.wait(60) in (0, 1)
    return b"".join(chunks).decode().replace("\r\n", "\n")


OURS = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
@pytest.mark.parametrize(
    "arguments",
    [
        SCORE,
        (*SCORE, "--format", "json", "--full"),
        (*SCORE, "--format", "csv", "--raw-csv"),
        (*SCORE, "--format", "md"),
        (*SCORE, "--format", "junit"),
        ("validate", "gold.jsonl", "trace.jsonl"),
        ("runs", "export", "r1", "-o", "-"),
    ],
    ids=["table", "json", "csv", "md", "junit", "validate", "export"],
)
def test_a_terminal_is_told_nothing_but_our_colours(
    files: Folder, arguments: tuple[str, ...]
) -> None:
    shown = terminal(files.path, *arguments)
    if arguments == SCORE:
        assert "\x1b[1;31mFAIL" in shown, "the verdict is in colour"
        assert "\x1b[32mPASS" not in shown, "the id has no colour of its own"
        shown = OURS.sub("", shown)
    assert not UNSAFE.search(shown)
    if arguments[-1] == "--full":
        document = json.loads(shown[shown.index("{") : shown.rindex("\n}\n") + 2])
        assert holds_id(document)
