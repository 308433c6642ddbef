"""The worker process: it is sent jobs, work and ranges, and answers each range with a result.

It imports no numpy, so it starts quickly and stays small (decision 0003).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable

import msgspec

from ragauge.concurrency import read_message, write_message
from ragauge.files.ranges import Range
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.pack import SerialiseRows
from ragauge.scoring.tasks.task import FindIds, NameHits, Reduce, Worker
from ragauge.scoring.tasks.unpack import Unpack

JOB, WORK, RANGE = b"j", b"w", b"r"
"""The first byte of a message says what it is. Only a range is answered."""


def serve() -> None:
    """Serve until the standard input ends, then end the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    gc.disable()  # rows are trees and are freed by count
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    decode_range = msgspec.msgpack.Decoder(Range).decode
    work_kinds = Reduce | FindIds | NameHits | SerialiseRows | Unpack
    decode_work = msgspec.msgpack.Decoder(work_kinds).decode
    worker = Worker()
    do: Callable[[Range], object] | None = None
    while (message := read_message(stdin)) is not None:
        kind, body = message[:1], message[1:]
        if kind == JOB:
            worker.take(msgspec.msgpack.decode(body, type=Job))
        elif kind == WORK:
            do = decode_work(body).begin(worker)
        else:
            assert do is not None, "work comes before its ranges"
            write_message(stdout, msgspec.msgpack.encode(do(decode_range(body))))
    os._exit(0)  # nothing is left to be done, and freeing a gold set takes its time
