"""The engine that reduces ranges in worker processes.

Workers are plain subprocesses that import no numpy and share nothing: they get a job and
then ranges, over a pipe. So the calling script needs no `__main__` guard and nothing is forked.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress

import msgspec

from ragauge.concurrency import read_message, started, write_message
from ragauge.files.ranges import Range
from ragauge.scoring.engines.worker_process import (
    JOB,
    LAY,
    PACK,
    QIDS,
    REDUCE,
    SCAN,
    UNPACK,
    WANTED,
)
from ragauge.scoring.tasks.job import Job, Partial
from ragauge.scoring.tasks.lines import Laid
from ragauge.scoring.tasks.pack import Packed
from ragauge.scoring.tasks.unpack import Unpacked, Unpacking

_AHEAD = 3


class Pool:
    """Worker processes that are started at once and given their jobs later, while they import."""

    def __init__(self, workers: int) -> None:
        self.order: list[Range] = []
        self.next = 0
        self.done: dict[int, bytes] = {}
        self.failure: BaseException | None = None
        self.ready = threading.Condition()
        self.room = threading.Semaphore(workers * _AHEAD)
        self.threads: list[threading.Thread] = []
        self.unpacking: list[threading.Thread] = []
        self.processes = [
            started("-m", "ragauge.scoring.engines.worker_process") for _ in range(workers)
        ]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *failure: object) -> None:
        self._close()

    def run(self, job: Job, ranges: Sequence[Range]) -> Iterator[Partial]:
        """Yield the partial of each range, from the last range to the first."""
        self._again()
        self.order = list(reversed(ranges))
        for reply in self._replies([JOB + msgspec.msgpack.encode(job)], REDUCE):
            yield msgspec.msgpack.decode(reply, type=Partial)

    def unpack(self, task: Unpacking) -> Callable[[], Unpacked]:
        """Have a worker unpack a stored run; what is returned waits for it.

        One worker is left out, where there are several: the caller has work of its own meanwhile.
        """
        several = max(1, len(self.processes) - 1)
        place = len(self.unpacking) % several
        process = self.processes[place]
        before = self.unpacking[-several] if len(self.unpacking) >= several else None
        replies: list[bytes | None] = []

        def ask() -> None:
            if before is not None:
                before.join()
            assert process.stdin is not None and process.stdout is not None
            with suppress(OSError):  # a pipe that broke is a worker that ended
                write_message(process.stdin, UNPACK + msgspec.msgpack.encode(task))
                replies.append(read_message(process.stdout))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        self.unpacking.append(thread)

        def wait() -> Unpacked:
            thread.join()
            if not replies or replies[0] is None:
                raise RuntimeError(f"a worker ended early (status {process.poll()})")
            return msgspec.msgpack.decode(replies[0], type=Unpacked)

        return wait

    def retrieved(self, wanted: Set[str]) -> set[str]:
        """Which of some ids are among the hits of any row, once all ranges are reduced."""
        self._again()
        found: set[str] = set()
        for reply in self._replies([WANTED + msgspec.msgpack.encode(sorted(wanted))], SCAN):
            found.update(msgspec.msgpack.decode(reply, type=list[str]))
        return found

    def pack(self, job: Job, ranges: Sequence[Range]) -> Iterator[Packed]:
        """Yield each range packed, from the first to the last, once all ranges are reduced.

        The job is that of the reduction, with the ids of its questions.
        """
        self._again()
        self.order = list(ranges)
        for reply in self._replies([QIDS + msgspec.msgpack.encode(job.qids)], PACK):
            yield msgspec.msgpack.decode(reply, type=Packed)

    def lay(self, job: Job, ranges: Sequence[Range]) -> Iterator[Laid]:  # noqa: ARG002
        """Yield the lines of each range, from the first to the last, once all are reduced.

        The job is that of the reduction, which the workers still have.
        """
        self._again()
        self.order = list(ranges)
        for reply in self._replies([], LAY):
            yield msgspec.msgpack.decode(reply, type=Laid)

    def _again(self) -> None:
        for thread in (*self.threads, *self.unpacking):
            thread.join()
        self.threads, self.unpacking, self.next = [], [], 0
        self.room = threading.Semaphore(len(self.processes) * _AHEAD)

    def _replies(self, first: Sequence[bytes], kind: bytes) -> Iterator[bytes]:
        """Give every worker some messages, then the ranges in order; yield the answers in order."""
        for process in self.processes:
            thread = threading.Thread(target=self._serve, args=(process, first, kind), daemon=True)
            thread.start()
            self.threads.append(thread)
        yield from self._results()

    def _take(self) -> int | None:
        with self.ready:
            if self.failure is not None or self.next >= len(self.order):
                return None
            self.next += 1
            return self.next - 1

    def _serve(self, process: subprocess.Popen[bytes], first: Sequence[bytes], kind: bytes) -> None:
        """Feed one worker: it takes ranges in order, so its own ranges descend."""
        assert process.stdin is not None and process.stdout is not None
        try:
            for message in first:
                write_message(process.stdin, message)
            while True:
                self.room.acquire()
                position = self._take()
                if position is None:
                    return
                part = msgspec.msgpack.encode(self.order[position])
                write_message(process.stdin, kind + part)
                reply = read_message(process.stdout)
                if reply is None:
                    raise RuntimeError(f"a worker ended early (status {process.poll()})")
                with self.ready:
                    self.done[position] = reply
                    self.ready.notify_all()
        except BaseException as error:
            with self.ready:
                self.failure = self.failure or error
                self.ready.notify_all()

    def _results(self) -> Iterator[bytes]:
        for position in range(len(self.order)):
            with self.ready:
                self.ready.wait_for(lambda: position in self.done or self.failure is not None)  # noqa: B023
                if self.failure is not None:
                    raise RuntimeError("reading in worker processes failed") from self.failure
                reply = self.done.pop(position)
            self.room.release()
            yield reply

    def _close(self) -> None:
        with self.ready:
            self.next = len(self.order)
            self.failure = self.failure or RuntimeError("the workers were sent home")
            self.ready.notify_all()  # nobody waits for what will not come
        for _ in self.threads:
            self.room.release()
        for process in self.processes:
            process.kill()  # it holds nothing that is not here or in a file
        for process in self.processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
        for thread in (*self.threads, *self.unpacking):
            thread.join()
