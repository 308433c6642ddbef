"""Code that lies in the current folder never runs: beside data, or in a checkout of somebody's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import ragauge
from tests.e2e.process import GOLD, TRACES, environment, write

# As the script `ragauge` does, which has its own folder and not the current one on the path.
COMMAND = (sys.executable, "-P", "-m", "ragauge")
SOURCE = str(Path(ragauge.__file__).resolve().parents[1])
MARK = """
with open(__file__.rpartition("/")[0] + "/ran.txt", "a") as file:
    file.write(f"{__name__}\\n")
"""
# Modules of the standard library and of packages that the workers import.
MODULES = ("signal", "types", "typing", "gc", "queue", "msgspec", "click", "numpy", "wave", "evil")
MANY = 6_000  # of three traces, 170 bytes each: several ranges of 1 MiB, so that workers have work


def hostile(folder: Path) -> Path:
    """A folder full of modules, and of a distribution that says it brings a plugin."""
    for name in MODULES:
        write(folder / f"{name}.py", MARK)
    points = "".join(
        f"[ragauge.{group}]\nevil = evil:PLUGIN\n" for group in ("dialects", "parsers")
    )
    write(folder / "evil-1.0.dist-info" / "METADATA", "Name: evil\nVersion: 1.0\n")
    write(folder / "evil-1.0.dist-info" / "entry_points.txt", points)
    write(folder / "sitecustomize.py", MARK)
    write(folder / "usercustomize.py", MARK)
    return folder


def run(
    folder: Path, *arguments: str, command: Sequence[str] = COMMAND, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments],
        cwd=folder,
        env=environment(**{"PYTHONPATH": SOURCE, **env}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def ran(folder: Path) -> list[str]:
    """The modules of the folder that were executed, each time."""
    marks = folder / "ran.txt"
    return marks.read_text().split() if marks.exists() else []


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = hostile(tmp_path / "data")
    write(folder / "gold.jsonl", GOLD)
    write(folder / "trace.jsonl", TRACES * MANY)
    return folder


SCORE = ("score", "gold.jsonl", "trace.jsonl", "--profile", "ship", "--workers", "2")


def test_the_modules_do_run_where_the_folder_is_on_the_path(data: Path) -> None:
    """Otherwise the other tests would prove nothing."""
    done = run(data, command=(sys.executable, "-c", "import signal, evil"))
    assert done.returncode == 0, done.stderr
    assert {"signal", "evil"} <= set(ran(data))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paths", "before_us"),
    [
        (SOURCE, []),
        (os.pathsep.join(["", SOURCE]), ["sitecustomize"]),
        (f"{SOURCE}{os.pathsep}", ["sitecustomize"]),
    ],
    ids=["plain", "an empty entry first", "an empty entry last"],
)
def test_workers_that_score_run_no_code_beside_the_data(
    data: Path, paths: str, before_us: list[str]
) -> None:
    """An empty entry of PYTHONPATH, as `PYTHONPATH=$PYTHONPATH:lib` leaves it, is the folder."""
    # In the command itself Python has the entry before any line of ours; workers do not get it.
    safe = (sys.executable, "-P", "-c", f"import sys; sys.path[:] = [p for p in sys.path if p != "
            f"{str(data)!r}]; sys.path.insert(0, {SOURCE!r}); sys.argv[0] = 'ragauge'; "
            "from ragauge.cli.main import main; main()")  # fmt: skip
    done = run(data, *SCORE, command=safe, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    assert ran(data) == before_us


@pytest.mark.slow
def test_workers_that_parse_run_no_code_beside_the_documents(tmp_path: Path) -> None:
    folder = hostile(tmp_path)
    for number in range(4):
        write(folder / "docs" / f"{number}.md", f"# Title {number}\n\nText.\n")
    done = run(folder, "corpus", "build", "docs", "-o", "built", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert ran(folder) == []
    # The folder that is read is the current one, too.
    done = run(folder / "docs", "corpus", "build", ".", "-o", "../again", "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert ran(folder / "docs") == []


@pytest.mark.slow
def test_the_module_ragauge_imports_nothing_of_ours_from_the_current_folder(tmp_path: Path) -> None:
    """`python -m ragauge` finds its own imports elsewhere.

    What Python itself imports before the first line of ragauge (types, contextlib) is beyond us:
    `python -P -m ragauge`, or the script, leaves the folder out from the beginning.
    """
    for name in ("signal", "typing", "__future__", "msgspec", "click", "numpy", "evil"):
        write(tmp_path / f"{name}.py", MARK)
    write(tmp_path / "gold.jsonl", GOLD)
    write(tmp_path / "trace.jsonl", TRACES * MANY)
    done = run(tmp_path, *SCORE, command=(sys.executable, "-m", "ragauge"))
    assert done.returncode == 0, done.stderr
    assert ran(tmp_path) == []


@pytest.mark.slow
def test_children_import_the_same_package_as_their_parent(tmp_path: Path) -> None:
    """Whatever stands first on the path of a child: here another `ragauge`, which is installed."""
    other = write(tmp_path / "site" / "ragauge" / "__init__.py", MARK).parent
    write(other / "concurrency.py", MARK)
    code = (
        f"import sys; sys.path.insert(0, {SOURCE!r})\n"
        "from ragauge.concurrency import WorkerProcesses\n"
        "show = 'import ragauge, sys; from ragauge.concurrency import write_message; '\n"
        "show += 'write_message(sys.stdout.buffer, ragauge.__file__.encode())'\n"
        "with WorkerProcesses(1, '-c', show) as workers:\n"
        "    print(workers.submit(b'').result().decode())\n"
    )
    path = os.pathsep.join([str(tmp_path / "site")])
    done = run(tmp_path, command=(sys.executable, "-P", "-c", code), PYTHONPATH=path)
    assert done.stdout.strip() == ragauge.__file__, done.stderr
    assert ran(other) == []


# --- targets ---

TARGET = """
import signal, types, wave  # nothing else imports `wave`
def answer(question):
    return {"answer": "not in context", "retrieved_ids": [], "kind": signal.SIGINT.name}
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["app:answer", "./app.py:answer", "sub/app.py:answer"])
def test_a_python_target_adds_its_folder_at_the_end_of_the_path(
    tmp_path: Path, target: str
) -> None:
    """What lies beside the function never stands before what Python and ragauge import."""
    folder = hostile(tmp_path)
    for place in (folder / "app.py", folder / "sub" / "app.py"):
        write(place, TARGET)
    hostile(folder / "sub")
    write(folder / "gold.jsonl", GOLD)
    done = run(
        folder, "run", "--gold", "gold.jsonl", "--target", f"python:{target}", "--profile", "ship",
        "--store", "sqlite:///runs.db", "--gates", "precision=0",
    )  # fmt: skip
    assert "stored 3 results" in done.stderr, done.stderr
    assert ", 3 of them errors" not in done.stderr
    assert ran(folder) == []
    assert ran(folder / "sub") == []


@pytest.mark.slow
def test_a_target_in_a_file_does_not_take_the_place_of_a_module(tmp_path: Path) -> None:
    """`python:types.py:answer` is a module of its own, whatever its file is called."""
    write(tmp_path / "types.py", TARGET.replace("types, ", ""))
    write(tmp_path / "gold.jsonl", GOLD)
    done = run(
        tmp_path, "run", "--gold", "gold.jsonl", "--target", "python:./types.py:answer",
        "--profile", "ship", "--store", "sqlite:///runs.db", "--gates", "precision=0",
    )  # fmt: skip
    assert "stored 3 results" in done.stderr, done.stderr
    assert done.returncode != 70
