"""A process that tries cases, with a watchdog: whatever a case does, the campaign goes on."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.case import Case, Finding
from tests.fuzz.examine import examine, isolate

CPU_SECONDS = 20  # a good case takes a tenth of a second; a busy machine makes it no more
WALL_SECONDS = 300  # for what waits without computing
MOST_MEMORY = 8 << 30
MOST_WRITTEN = 1 << 30
_FRAME = re.compile(r'File ".*/([^/"]+)", line \d+ in (\w+)')


Examine = Callable[[Case, Path], list[Finding]]


class Worker:
    """A child process that examines one case after the other, and is replaced when it dies."""

    def __init__(self, examine: Examine = examine, *, cpu_seconds: float = CPU_SECONDS) -> None:
        self._examine = examine
        self._cpu_seconds = cpu_seconds
        self._folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(other, self._folder, self._examine, self._cpu_seconds), daemon=True
        )
        self._process.start()
        other.close()

    def examine(self, case: Case) -> list[Finding]:
        """What is wrong with a case; a process that dies is a finding too."""
        try:
            self._connection.send(case)
            findings: list[Finding] = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            if not (self._folder / "stack").exists():
                raise RuntimeError("the process that tries cases could not be started") from None
            stack = (self._folder / "stack").read_text("utf-8", "replace")
            code = self._process.exitcode
            self._start()
            return [_died(code, stack)]
        return findings

    def close(self) -> None:
        self._connection.close()
        self._process.join(10)
        self._process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _died(code: int | None, stack: str) -> Finding:
    """Why the process ended, and in which function of ours it was."""
    frames = _FRAME.findall(stack.partition("most recent call first")[2])
    where = " ".join(frames[0]) if frames else "?"
    if code in (-signal.SIGPROF, 1) and stack:
        return Finding("hang", where, f"it does not end; the watchdog found it in {where}")
    return Finding("crash", f"{code} {where}", f"the process ended with {code}, in {where}")


def _serve(connection: Connection, folder: Path, examine: Examine, cpu_seconds: float) -> None:
    """Examine cases until the other end is closed."""
    import resource  # not on Windows

    isolate()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # native libraries write there past Python
        os.dup2(nowhere, number)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(folder / "stack", "w+", encoding="utf-8") as stack:
        faulthandler.enable(stack)
        # The clock of CPU is a watchdog that a busy machine does not set off; its signal ends the
        # process even inside native code, after the stack was written.
        faulthandler.register(signal.SIGPROF, stack, chain=True)
        while True:
            try:
                case = connection.recv()
            except EOFError:
                return
            stack.seek(0)
            stack.truncate()
            signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
            faulthandler.dump_traceback_later(WALL_SECONDS, exit=True, file=stack)
            findings = examine(case, folder / "case")
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send(findings)
