"""Own processes and threads: messages over pipes, work in threads, the paused collector."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 8
"""Items for each thread that may be done before anybody takes them: memory stays small."""

_MOST_THREADS = 4


# The child imports this very package, whatever its path holds. Behind that, the folder of the
# package comes last on the path: among installed packages there may be one that is called like a
# module of the standard library, and what ragauge needs may lie there and nowhere else.
_START = """\
import sys
root, code = sys.argv.pop(), sys.argv.pop()
sys.path.insert(0, root)
import ragauge
sys.path.append(sys.path.pop(0))
exec(code)
"""


def start_process(option: str, code: str) -> subprocess.Popen[bytes]:
    """Start `python -c CODE`, which imports this very package and is spoken to over its pipes.

    Python would look for every import in the current folder first, and there lie the data, or the
    files of somebody whose change is judged: `-P` leaves that folder out.
    """
    assert option == "-c", "with -m the current folder could not be left to Python alone"
    root = str(Path(__file__).resolve().parents[1])
    flags = [
        flag
        for flag, is_set in (
            ("-P", True),
            ("-E", sys.flags.ignore_environment),
            ("-s", sys.flags.no_user_site),
        )
        if is_set
    ]
    return subprocess.Popen(
        [sys.executable, *flags, option, _START, code, root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # An interrupt from the keyboard is for the parent, which then closes the pipes.
        start_new_session=os.name == "posix",
        env=_without_current_folder(os.environ),
    )


def _without_current_folder(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without empty entries of PYTHONPATH: they stand for the current folder.

    `PYTHONPATH=$PYTHONPATH:lib` leaves one where the variable was not set before.
    """
    copy = dict(environ)
    entries = copy.pop("PYTHONPATH", "").split(os.pathsep)
    if path := os.pathsep.join(filter(None, entries)):
        copy["PYTHONPATH"] = path
    return copy


def write_message(stream: IO[bytes], payload: bytes) -> None:
    """Write one message: its length in 8 bytes, then its bytes."""
    stream.write(len(payload).to_bytes(8, "big"))
    stream.write(payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """Read one message; None at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "big")
    payload = stream.read(size)
    return payload if len(payload) == size else None


class WorkerEndedError(RuntimeError):
    """A worker process ended before it answered; `status` is as `Popen.returncode` has it."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"a worker ended early (status {status})")

    @property
    def reason(self) -> str:
        """What ended it: a signal by its name, or its exit status."""
        if self.status < 0:
            with suppress(ValueError):
                return f"signal {signal.Signals(-self.status).name}"
        return f"status {self.status}"


class _Request(NamedTuple):
    setup: Sequence[bytes]
    message: bytes
    reply: Future[bytes]


class WorkerProcesses:
    """Python processes (`-c CODE`) that answer each message with one; they are started at once.

    A process is served by one thread for its whole life. The threads take requests from one
    queue, so the messages that a process sees come in the order in which they were submitted.
    One that ends fails the message that it had, and is replaced for those behind it.
    """

    def __init__(self, count: int, option: str, code: str) -> None:
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._arguments = (option, code)
        self.processes = [start_process(option, code) for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._serve, args=(process,), daemon=True)
            for process in self.processes
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> WorkerProcesses:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def submit(self, message: bytes, *, setup: Sequence[bytes] = ()) -> Future[bytes]:
        """Have the next idle process answer a message.

        `setup` are messages without an answer that the process must have seen before. It is sent
        only what differs from the setup of its last message, from the first difference on; the
        very same objects count as the same.
        """
        reply: Future[bytes] = Future()
        with self._closing:
            if self._closed:
                raise RuntimeError("the worker processes have ended")
            self._requests.put(_Request(setup, message, reply))
        return reply

    def map(
        self, messages: Iterable[bytes], *, setup: Sequence[bytes] = (), ahead: int
    ) -> Iterator[bytes]:
        """The answers in the order of the messages; work begins at once, before any is taken.

        At most `ahead` messages for each process are answered before their turn, so that a slow
        reader does not make the answers pile up in memory.
        """
        rest = iter(messages)
        replies = deque(
            self.submit(message, setup=setup)
            for message in islice(rest, ahead * len(self.processes))
        )

        def in_order() -> Iterator[bytes]:
            while replies:
                reply = replies.popleft().result()
                replies.extend(self.submit(message, setup=setup) for message in islice(rest, 1))
                yield reply

        return in_order()

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None
        seen: Sequence[bytes] = ()
        while (request := self._requests.get()) is not None:
            try:
                for message in _unseen(request.setup, seen):
                    write_message(process.stdin, message)
                seen = request.setup
                write_message(process.stdin, request.message)
                reply = read_message(process.stdout)
            except OSError:  # a pipe that broke is a worker that ended, not a reader of ours
                reply = None
            except BaseException as error:
                request.reply.set_exception(error)
                continue
            if reply is None:
                request.reply.set_exception(WorkerEndedError(_final_status(process)))
                process, seen = self._replace(process), ()
                assert process.stdin is not None and process.stdout is not None
            else:
                request.reply.set_result(reply)

    def _replace(self, ended: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """Start a process in the place of one that ended, unless all are ending."""
        with self._closing:
            if self._closed:
                return ended
            try:
                process = start_process(*self._arguments)
            except OSError:  # then the requests behind it fail as well
                return ended
            self.processes[self.processes.index(ended)] = process
        _close_pipes(ended)
        return process

    def close(self) -> None:
        """End the processes; whoever still waits for an answer gets an error."""
        with self._closing:
            self._closed = True
        for process in self.processes:
            process.kill()  # it holds nothing that is not here or in a file
        for _ in self._threads:
            self._requests.put(None)  # behind all requests, which fail now
        for thread in self._threads:
            thread.join()
        for process in self.processes:
            process.wait()
            _close_pipes(process)


def _final_status(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that closed its pipe; one that lives on all the same is ended."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=10)
    process.kill()
    return process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):  # what was not sent yet cannot be sent any more
            if pipe is not None:
                pipe.close()


def _unseen(setup: Sequence[bytes], seen: Sequence[bytes]) -> Sequence[bytes]:
    same = 0
    while same < min(len(setup), len(seen)) and setup[same] is seen[same]:
        same += 1
    return setup[same:]


@contextmanager
def paused_collector() -> Iterator[None]:
    """Work without the garbage collector: rows and items are trees, and are freed by count."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_threads(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """What `work` makes of each item, in order; threads do it while the next are prepared.

    That gains time only where `work` is done outside of Python, as compression is.
    """
    threads = min(cores(), _MOST_THREADS)
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # nobody waits for results that nobody takes
                future.cancel()
