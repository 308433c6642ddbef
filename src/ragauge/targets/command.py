"""The target `command:PROGRAM ...`: processes that read questions and write answers, line by line.

A line of JSON goes in, a line of JSON comes out, one question at a time. There are as many
processes as questions are asked at once; one that dies, hangs or writes nonsense is replaced.

A line too many would be taken for the answer to the next question, and every answer after it
would be that of the question before. So an answer may name its slot, and the lines of those that
do not are counted: no line may wait when a question is asked, nor be left when a process ends.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.shared.address import question_fields, refused

MOST_BYTES = 64 * 1024 * 1024
TOO_MANY = (
    "the program wrote more lines than it was asked questions, so this may be the answer to another"
    ": write one line for each question, with its `slot`, and nothing else"
)
_SLOT = "slot"
_LAST_LINES = 5
_LONGEST = 2000
_MOST_WAITING = 1000  # lines that nobody has asked for: it would go on until the memory is full
_PATIENCE, _COUNTING = 1.0, 5.0  # seconds that a process has to end; more if lines are counted
_POSIX = os.name == "posix"


class _Process:
    """One process, with a thread that reads its answers and one that reads its complaints."""

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=_POSIX,  # an interrupt is for ragauge; these have time to answer
            )
        except OSError as error:
            words = (error.strerror or str(error)).lower()
            raise TargetError(f"`{command[0]}` cannot be started: {words}") from error
        self.gone = False
        self.asked = self.answers = 0
        self.last: TargetQuestion | None = None
        self.unnamed = array("q")  # the slots whose answers did not say whose they are
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
                if len(line) > MOST_BYTES or self.lines.qsize() > _MOST_WAITING:
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

    def waiting(self) -> bytes | None:
        """A line that is there before anything was asked; None where there is none."""
        try:
            line = self.lines.get_nowait()
        except Empty:
            return None
        if not line:
            raise self._died()
        return line

    def ask(self, line: bytes, timeout: float) -> bytes:
        """Send a line and wait for the answer."""
        stream = self.process.stdin
        assert stream is not None
        self.asked += 1
        try:
            stream.write(line)
            stream.flush()
        except (OSError, ValueError) as error:
            raise self._died() from error
        try:
            answer = self.lines.get(timeout=timeout)
        except Empty as error:
            self.kill()
            reason = f"no answer within {timeout:g} s{self._last_complaints()}"
            raise TargetError(reason, transient=True) from error
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
        return TargetError(f"the process {how}{self._last_complaints()}", transient=True)

    def _last_complaints(self) -> str:
        """The last lines of its standard error."""
        self.threads[1].join(0.2)
        lines = b" | ".join(self.complaints).decode("utf-8", errors="replace")
        return f"; it said: {lines}" if lines else ""

    def kill(self) -> None:
        """End it and what it has started."""
        if self.gone:
            return  # its number may be that of another process by now
        with suppress(OSError):
            if _POSIX:
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0)
            self.gone = True
        for thread in self.threads:
            thread.join(1.0)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError, ValueError):
                    stream.close()

    def has_too_many(self) -> bool:
        """Whether it has written more answers than it was asked questions, now that it is gone."""
        with suppress(Empty):
            while True:
                with suppress(TargetError):
                    _read(self.lines.get_nowait())
                    self.answers += 1
        return self.answers > self.asked


def _end(processes: Sequence[_Process]) -> None:
    """Let processes end by themselves: their input ends. What does not end is killed."""
    for process in processes:
        with suppress(OSError, ValueError):
            if process.process.stdin is not None:
                process.process.stdin.close()
    patience = _COUNTING if any(process.unnamed for process in processes) else _PATIENCE
    until = time.monotonic() + patience
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.process.wait(max(0.0, until - time.monotonic()))
        process.kill()


def _read(line: bytes) -> dict[str, Any] | list[Any]:
    """What a line says; what is no object and no list was never meant as an answer."""
    try:
        answered = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = f"a line of the output is no JSON ({error}): {_begins(line)}"
        raise TargetError(reason) from error
    if not isinstance(answered, dict | list):
        raise TargetError(f"an answer is an object or a list of hits, got {_begins(line)}")
    return answered


def _begins(line: bytes) -> str:
    return line[:80].decode("utf-8", errors="replace").strip()


def _names(answered: dict[str, Any] | list[Any], question: TargetQuestion) -> bool | None:
    """Whether an answer says that it belongs to a question; None if it leaves that open."""
    if isinstance(answered, list):
        return None
    if answered.get(_SLOT) is not None:
        return str(answered[_SLOT]) == str(question.number)
    qid = answered.get("qid")
    if qid is not None and str(qid) != question.qid:
        return False
    others = {"paraphrase": question.paraphrase, "seed": question.seed, "turn": question.turn}
    same = all(answered.get(name) == value for name, value in others.items() if value is not None)
    return True if qid is not None and same else None


class CommandTarget:
    """Asks processes; each is asked by one thread at a time."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        try:
            self.command = shlex.split(address, posix=_POSIX)
        except ValueError as error:
            raise refused(f"`{address}` cannot be split: {error}", "close the quotes") from error
        if not self.command:
            raise refused("`command:` names no program", 'write "command:python answer.py"')
        if shutil.which(self.command[0]) is None:
            raise refused(f"there is no program `{self.command[0]}`", "check the name and the PATH")
        if options.settings:
            name = sorted(options.settings)[0]
            raise refused(
                f"a command takes no option `{name}`", "write what it needs into the command"
            )
        self.k = options.k
        self.timeout = options.timeout
        self.idle: list[_Process] = []
        self.all: set[_Process] = set()
        self.lock = threading.Lock()
        self.closed = False
        self.naming = False  # whether answers have named their slots
        self.doubtful = array("q")

    @property
    def about(self) -> Mapping[str, Any]:
        """Nothing that the address does not say."""
        return {}

    @property
    def doubts(self) -> int:
        """How many answers may be those of other questions, as far as is known."""
        return len(self.doubtful)

    def ask(self, question: TargetQuestion) -> Any:
        """Ask a process that is idle and has said nothing more, or a new one."""
        fields = question_fields(question, self.k)
        line = msgspec.json.encode({"qid": question.qid, **fields, _SLOT: question.number})
        while True:
            process = self._take()
            try:
                early = process.waiting()
                answer = process.ask(line + b"\n", self.timeout) if early is None else early
                answered = _read(answer)
            except BaseException:
                self._drop(process)
                raise
            process.answers += 1
            named = _names(answered, question)
            repeated = (
                named is not True
                and process.last is not None
                and _names(answered, process.last) is True
            )
            if early is None and not repeated:
                break
            self._drop(process, doubted=True)  # a new process knows nothing of questions before
        reason = self._objection(answered, question, named)
        if reason is not None:
            _end([process])
            self._drop(process)
            raise TargetError(reason)
        if named is None:
            process.unnamed.append(question.number)
        process.last = question
        with self.lock:
            if not self.closed:
                self.idle.append(process)
        if isinstance(answered, dict):
            answered.pop(_SLOT, None)  # the number of a slot says nothing of the system
        return answered

    def _objection(
        self, answered: dict[str, Any] | list[Any], question: TargetQuestion, named: bool | None
    ) -> str | None:
        """Why an answer cannot be that to a question."""
        slot = answered.get(_SLOT) if isinstance(answered, dict) else None
        if slot is not None:
            self.naming = True
        elif self.naming:
            start = _begins(msgspec.json.encode(answered))
            return f"the answer names no `slot`, as other answers of the program do: {start}"
        if named is not False:
            return None
        if slot is not None:
            return f"the answer is for slot {slot}, and slot {question.number} was asked"
        assert isinstance(answered, dict)
        return f"the answer is for `{answered['qid']}`, and `{question.qid}` was asked"

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

    def _drop(self, process: _Process, *, doubted: bool = False) -> None:
        """End a process. If it wrote too much, nobody knows since when: its answers are doubted.

        Those that named their slots stand, but the last one was given twice.
        """
        process.kill()
        too_many = process.has_too_many()
        with self.lock:
            self.all.discard(process)
            if doubted or too_many:
                self.doubtful.extend(process.unnamed)
                if process.last is not None:
                    self.doubtful.append(process.last.number)

    def settle(self) -> Mapping[int, str]:
        """Let the idle processes end, and return which answers may be those of other questions."""
        with self.lock:
            idle, self.idle = self.idle, []
        _end(idle)
        for process in idle:
            self._drop(process)
        with self.lock:
            doubtful, self.doubtful = sorted(set(self.doubtful)), array("q")
        return dict.fromkeys(doubtful, TOO_MANY)

    def close(self) -> None:
        """End all processes: those that are idle by the end of their input."""
        with self.lock:
            self.closed = True
            idle = self.idle
            busy = self.all.difference(idle)
            self.idle, self.all = [], set()
        for process in busy:
            process.kill()
        _end(idle)


TARGET = TargetKind(
    name="command",
    title="a program that reads and writes JSON Lines: command:PROGRAM ARGUMENTS",
    schemes=("command",),
    open=CommandTarget,
)
