"""The target `command:PROGRAM ...`: processes that read questions and write answers, line by line.

A line of JSON goes in, a line of JSON comes out, one question at a time. There are as many
processes as questions are asked at once; one that dies, hangs or writes nonsense is replaced.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from ragauge.errors import RagaugeError
from ragauge.model.target import Question, TargetError, TargetKind, TargetOptions

MOST_BYTES = 64 * 1024 * 1024
_LAST_LINES = 5
_LONGEST = 2000
_POSIX = os.name == "posix"


class _Process:
    """One process, with a thread that reads its answers and one that reads its complaints."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=_POSIX,  # an interrupt is for ragauge; these have time to answer
            )  # fmt: skip
        except OSError as error:
            words = (error.strerror or str(error)).lower()
            raise TargetError(f"`{command[0]}` cannot be started: {words}") from error
        self.lines: SimpleQueue[bytes] = SimpleQueue()
        self.complaints: deque[bytes] = deque(maxlen=_LAST_LINES)
        self.threads = [
            threading.Thread(target=work, daemon=True, name="ragauge-command")
            for work in (self._read, self._listen)
        ]
        for thread in self.threads:
            thread.start()

    def _read(self) -> None:
        """Hand on the answers; an empty line stands for the end."""
        stream = self.process.stdout
        assert stream is not None
        with suppress(OSError, ValueError):
            while line := stream.readline(MOST_BYTES + 1):
                self.lines.put(line)
                if len(line) > MOST_BYTES:
                    break
        self.lines.put(b"")

    def _listen(self) -> None:
        """Keep the last lines of what it complains of; nothing may fill its pipe."""
        stream = self.process.stderr
        assert stream is not None
        with suppress(OSError, ValueError):
            while line := stream.readline(_LONGEST):
                if line.strip():
                    self.complaints.append(line.strip())

    def ask(self, line: bytes, timeout: float) -> bytes:
        """Send a line and wait for the answer."""
        stream = self.process.stdin
        assert stream is not None
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError) as error:
            raise self._died() from error
        try:
            answer = self.lines.get(timeout=timeout)
        except Empty as error:
            self.kill()
            told = f"no answer within {timeout:g} s{self._said()}"
            raise TargetError(told, transient=True) from error
        if not answer:
            raise self._died()
        if len(answer) > MOST_BYTES:
            self.kill()
            raise TargetError(f"the answer is larger than {MOST_BYTES:,} bytes")
        return answer

    def _died(self) -> TargetError:
        try:
            code: int | None = self.process.wait(1.0)
        except subprocess.TimeoutExpired:
            code = None  # it lives on and has closed its output
        self.kill()
        if code is None:
            how = "closed its output"
        elif code < 0:
            how = f"was killed by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        return TargetError(f"the process {how}{self._said()}", transient=True)

    def _said(self) -> str:
        """The last lines of its standard error."""
        self.threads[1].join(0.2)
        lines = b" | ".join(self.complaints).decode("utf-8", errors="replace")
        return f"; it said: {lines}" if lines else ""

    def kill(self) -> None:
        """End it and what it has started."""
        with suppress(OSError):
            if _POSIX:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0)
        for thread in self.threads:
            thread.join(1.0)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError, ValueError):
                    stream.close()

    def close(self) -> None:
        """Let it end by itself: its input ends. What does not end within a second is killed."""
        with suppress(OSError, ValueError):
            if self.process.stdin is not None:
                self.process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(1.0)
        self.kill()


class CommandTarget:
    """Asks processes; each is asked by one thread at a time."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        try:
            self.command = shlex.split(address, posix=_POSIX)
        except ValueError as error:
            raise _refused(f"`{address}` cannot be split: {error}", "close the quotes") from error
        if not self.command:
            raise _refused("`command:` names no program", 'write "command:python answer.py"')
        if shutil.which(self.command[0]) is None:
            raise _refused(
                f"there is no program `{self.command[0]}`", "check the name and the PATH"
            )
        if options.settings:
            name = sorted(options.settings)[0]
            raise _refused(
                f"a command takes no option `{name}`", "write what it needs into the command"
            )
        self.k = options.k
        self.timeout = options.timeout
        self.idle: list[_Process] = []
        self.all: set[_Process] = set()
        self.lock = threading.Lock()
        self.closed = False

    @property
    def about(self) -> Mapping[str, Any]:
        """Nothing that the address does not say."""
        return {}

    def ask(self, question: Question) -> Any:
        """Ask a process that is idle, or a new one."""
        line = msgspec.json.encode({
            "qid": question.qid,
            "question": question.text,
            "paraphrase": question.paraphrase,
            "seed": question.seed,
            "turn": question.turn,
            "history": question.history,
            "k": self.k,
        })  # fmt: skip
        process = self._take()
        try:
            answer = process.ask(line + b"\n", self.timeout)
            answered = msgspec.json.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self._drop(process)
            shown = answer[:80].decode("utf-8", errors="replace").strip()
            raise TargetError(f"a line of the output is no JSON ({error}): {shown}") from error
        except BaseException:
            self._drop(process)
            raise
        with self.lock:
            if not self.closed:
                self.idle.append(process)
        return answered

    def _take(self) -> _Process:
        with self.lock:
            if self.idle:
                return self.idle.pop()
        process = _Process(self.command)
        with self.lock:
            self.all.add(process)
            closed = self.closed
        if closed:
            self._drop(process)
            raise TargetError("the run has ended")
        return process

    def _drop(self, process: _Process) -> None:
        process.kill()
        with self.lock:
            self.all.discard(process)

    def close(self) -> None:
        """End all processes: those that are idle by the end of their input."""
        with self.lock:
            self.closed = True
            idle, busy = list(self.idle), [each for each in self.all if each not in self.idle]
            self.idle, self.all = [], set()
        for process in busy:
            process.kill()
        for process in idle:
            with suppress(OSError, ValueError):
                process.process.stdin.close()  # type: ignore[union-attr]
        for process in idle:
            process.close()


def _refused(message: str, hint: str) -> RagaugeError:
    return RagaugeError.of("bad-target", message, hint=hint)


TARGET = TargetKind(
    name="command",
    title="a program that reads and writes JSON Lines: command:PROGRAM ARGUMENTS",
    schemes=("command",),
    open=CommandTarget,
)
