"""Docs that cannot rot: pages are run, generated, linked and worded as they say.

How a page is written so that it can be run. Each page gets an empty folder of its own; its blocks
are taken from top to bottom:

    ```json title=eval/gold.jsonl       the block is written to that file, in any language;
                                        a later block with the same title replaces it
    ```console                          a line that begins with `$ ` is run by a POSIX shell, and
    $ ragauge validate                  what it prints (stdout and stderr, in order) must be the
    ok                                  lines below it, exactly; `\\` at the end goes on below
    $ echo $?                           the exit code of the command before; a command that does
    3                                   not exit with 0 must be followed by this line
    ```text output-of="ragauge demo"    what a command prints, without the command

`ragauge` and `python` are those of the interpreter that runs the tests. Lines such as `$ make demo`
are not run, but the target must exist. Blocks of any other kind (sh, yaml, python) are only shown.

`RAGAUGE_UPDATE_DOCS=1 pytest tests/unit/test_docs.py` rewrites the outputs in place; read the diff.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import ragauge
import reference
from ragauge.cli.main import root as command_group
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
UPDATE = bool(os.environ.get("RAGAUGE_UPDATE_DOCS"))
PAGES = [ROOT / "README.md", ROOT / "DESIGN.md", *sorted(ROOT.glob("docs/**/*.md"))]
FENCE = re.compile(r"```(?P<language>[a-z]*)(?P<options>.*)")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
INLINE_CODE = re.compile(r"`([^`]+)`")
SHELL = """
ragauge() { "$THIS_PYTHON" -m ragauge "$@"; }
python() { "$THIS_PYTHON" "$@"; }
"""
_NOT_OURS = ("RAGAUGE", "GITHUB_SHA", "CI_COMMIT_SHA")
FORBIDDEN = ("simply", "just ", "easy")

each_page = cases("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
WITH_COMMANDS = [
    page
    for page in PAGES
    if re.search("^```(console|.* output-of=)", page.read_text("utf-8"), re.M)
]


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its options, and its lines from `start` to `end`."""

    language: str
    options: dict[str, str]
    start: int
    end: int


def blocks_of(lines: list[str]) -> Iterator[Block]:
    opening: tuple[int, re.Match[str]] | None = None
    for number, line in enumerate(lines):
        match = FENCE.fullmatch(line)
        if match is None:
            continue
        if opening is None:
            opening = number, match
            continue
        start, first = opening
        pairs = (each.partition("=") for each in shlex.split(first["options"]))
        yield Block(first["language"], {key: value for key, _, value in pairs}, start + 1, number)
        opening = None
    assert opening is None, f"the block that opens on line {opening[0] + 1} is not closed"


def prose_of(page: Path) -> list[str]:
    """The lines of a page that are in no block."""
    lines = page.read_text("utf-8").split("\n")
    fenced = {n for block in blocks_of(lines) for n in range(block.start - 1, block.end + 1)}
    return [line for number, line in enumerate(lines) if number not in fenced]


class Replay:
    """Runs the blocks of a page in a folder, and gives the page with what they really print."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = str(Path(ragauge.__file__).resolve().parents[1])
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(_NOT_OURS)},
            "THIS_PYTHON": sys.executable,
            "PYTHONPATH": source,
            "PYTHONUTF8": "1",
            "COLUMNS": "80",
            "LC_ALL": "C",
            "SOURCE_DATE_EPOCH": "1794733200",  # 2026-11-15T09:00:00Z, for runs that are stored
        }

    def page(self, text: str) -> str:
        lines = text.split("\n")
        replayed: list[str] = []
        done = 0
        for block in blocks_of(lines):
            replayed += lines[done : block.start]
            replayed += self._block(block, lines[block.start : block.end])
            done = block.end
        return "\n".join(replayed + lines[done:])

    def _block(self, block: Block, lines: list[str]) -> list[str]:
        if "title" in block.options:
            path = self.folder / block.options["title"]
            assert path.resolve().is_relative_to(self.folder.resolve()), path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")
        elif "output-of" in block.options:
            printed, code = self._run(block.options["output-of"])
            assert code == 0, f"`{block.options['output-of']}` exits with {code}"
            return printed
        elif block.language == "console":
            return self._console(lines)
        return lines

    def _console(self, lines: list[str]) -> list[str]:
        replayed: list[str] = []
        command, code, told = "", 0, True
        for position, line in enumerate(lines):
            continued = position > 0 and lines[position - 1].endswith("\\") and command != ""
            if not line.startswith("$ ") and not continued:
                continue
            replayed.append(line)
            command = f"{command}\n{line}" if continued else line.removeprefix("$ ")
            if line.endswith("\\"):
                continue
            if command == "echo $?":
                replayed.append(str(code))
                told = True
            elif not command.startswith("make "):
                assert told, f"exit code {code} is not shown: add `$ echo $?` above `{command}`"
                printed, code = self._run(command)
                replayed += printed
                told = code == 0
            command = ""
        assert told, f"exit code {code} is not shown: add `$ echo $?` at the end of the block"
        return replayed

    def _run(self, command: str) -> tuple[list[str], int]:
        done = subprocess.run(
            ["sh", "-c", SHELL + command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
            check=False,
        )
        printed = done.stdout.removesuffix("\n")
        return printed.split("\n") if printed else [], done.returncode


def anchors_of(page: Path) -> set[str]:
    headings = (line.lstrip("#").strip() for line in prose_of(page) if line.startswith("#"))
    return {reference.anchor(heading.replace("`", "")) for heading in headings}


def commands() -> dict[str, set[str]]:
    """Every option of every command; the options of `ragauge` itself are under "ragauge"."""
    top = click.Context(command_group, info_name="ragauge", **command_group.context_settings)
    found = {"ragauge": _options(command_group, top)}
    for name in command_group.list_commands(top):
        command = command_group.get_command(top, name)
        assert command is not None
        context = click.Context(command, parent=top)
        found[f"ragauge {name}"] = _options(command, context)
        for each in reference.parts_of(command, context):
            found[f"ragauge {name}"] |= _options(each, click.Context(each, parent=context))
    return found


def _options(command: click.Command, context: click.Context) -> set[str]:
    return {
        name
        for each in command.get_params(context)
        if isinstance(each, click.Option)
        for name in [*each.opts, *each.secondary_opts]
    }


def code_of(page: Path) -> Iterator[str]:
    """What stands on a page as code: words between backticks, and lines of shell and YAML."""
    lines = page.read_text("utf-8").split("\n")
    for block in blocks_of(lines):
        if block.language in ("sh", "yaml", "console"):
            for line in lines[block.start : block.end]:
                yield line.removeprefix("$ ").removeprefix("- run: ").strip()
    for line in prose_of(page):
        yield from INLINE_CODE.findall(line)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text("utf-8")
    replayed = Replay(tmp_path).page(text)
    if UPDATE and replayed != text:
        page.write_text(replayed, "utf-8", newline="\n")
        return
    difference = difflib.unified_diff(
        text.split("\n"), replayed.split("\n"), "the page", "what is printed", lineterm=""
    )
    assert replayed == text, "\n".join([f"{page.relative_to(ROOT)}:", *difference])


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in (match["target"] for line in prose_of(page) for match in LINK.finditer(line)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        reached = (page.parent / name).resolve() if name else page
        assert reached.exists(), f"{page.relative_to(ROOT)} links to {target}, which is not there"
        if fragment:
            assert fragment in anchors_of(reached), f"there is no heading for {target}"


@each_page
def test_nothing_is_called_obvious(page: Path) -> None:
    for number, line in enumerate(page.read_text("utf-8").lower().split("\n"), 1):
        found = [word for word in FORBIDDEN if word in f"{line} "]
        assert not found, f"{page.relative_to(ROOT)}:{number} says {found}"


@each_page
def test_make_targets_exist(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for code in code_of(page):
        if match := re.match(r"make ([a-z-]+)", code):
            assert match[1] in targets, f"`{code}`: the Makefile has no such target"


@each_page
def test_commands_and_options_exist(page: Path) -> None:
    known = commands()
    for code in code_of(page):
        for part in re.split(r"[|;>&]", code):
            words = part.split()
            if len(words) < 2 or words[0] != "ragauge" or not re.fullmatch(r"[a-z]+", words[1]):
                continue
            name = f"ragauge {words[1]}"
            assert name in known, f"{page.relative_to(ROOT)}: there is no command `{name}`"
            options = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
            assert options <= known[name], f"{code}: no option {sorted(options - known[name])}"


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / match["target"].partition("#")[0]).resolve()
        for line in prose_of(index)
        for match in LINK.finditer(line)
    }
    missing = [str(page.relative_to(ROOT)) for page in PAGES[2:] if page not in {*linked, index}]
    assert not missing, f"docs/README.md leads to every page but {missing}"


def test_the_reference_pages_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main(["--check"]) == 0, capsys.readouterr().err


@cases("name", sorted(commands()))
def test_every_command_and_option_is_in_the_reference(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    section = page if name == "ragauge" else page.partition(f"\n## {name}\n")[2]
    assert section, f"there is no section for `{name}`"
    section = section.partition("\n## ")[0]
    missing = [option for option in commands()[name] if f"`{option}`" not in section]
    assert not missing, f"`{name}` is described without {sorted(missing)}"


@pytest.mark.slow
def test_stale_missing_and_foreign_pages_are_named_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reference.main([], folder=tmp_path) == 0
    assert reference.main(["--check"], folder=tmp_path) == 0
    (tmp_path / "errors.md").write_text("old\n", "utf-8")
    (tmp_path / "metrics.md").unlink()
    (tmp_path / "gone.md").write_text("of a page that is made no more\n", "utf-8")
    capsys.readouterr()
    assert reference.main(["--check"], folder=tmp_path) == 1
    named = re.findall(r"docs/reference/(\S+) is stale", capsys.readouterr().err)
    assert named == ["errors.md", "gone.md", "metrics.md"]
    assert reference.main([], folder=tmp_path) == 0
    assert reference.main(["--check"], folder=tmp_path) == 0
    assert not (tmp_path / "gone.md").exists()


@pytest.mark.parametrize(("names", "said"), [(["a", "b"], "['b']"), ([], "['a']")])
def test_a_name_without_words_and_words_without_a_name_are_refused(
    names: list[str], said: str
) -> None:
    with pytest.raises(reference.MissingWordsError, match=re.escape(said)):
        reference.described("KEYS", names, {"a": "the first"})


def test_a_page_shows_what_was_printed_and_the_exit_code(tmp_path: Path) -> None:
    page = (
        "```json title=a/b.json\n{}\n```\n```console\n$ cat a/b.json\nold\n"
        "$ cat a/b.json \\\n    missing 2>/dev/null\n$ echo $?\n0\n$ make test\n```\n"
        '```text output-of="echo $ seen"\n```\n'
    )
    assert Replay(tmp_path).page(page) == (
        "```json title=a/b.json\n{}\n```\n```console\n$ cat a/b.json\n{}\n"
        "$ cat a/b.json \\\n    missing 2>/dev/null\n{}\n$ echo $?\n1\n$ make test\n```\n"
        '```text output-of="echo $ seen"\n$ seen\n```\n'
    )


def test_a_page_may_not_keep_an_exit_code_to_itself(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit code 3 is not shown"):
        Replay(tmp_path).page("```console\n$ (exit 3)\n```\n")
