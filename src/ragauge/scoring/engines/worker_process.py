"""The worker process of the pool engine: reads jobs, then ranges, and answers with partials.

Behind the last range it may be given ids, and ranges again: to look for them in, to be packed, or
to be laid aside.
"""

from __future__ import annotations

import gc
import os
import signal
import sys

import msgspec

from ragauge.concurrency import read_message, write_message
from ragauge.files.ranges import Range
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.lines import LineMaker
from ragauge.scoring.tasks.pack import RangePacker
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.tasks.unpack import Unpacking, unpack_elsewhere

JOB, UNPACK = b"j", b"u"
"""What a message is: a job, which the messages behind it belong to, or a stored run to unpack."""

REDUCE, WANTED, SCAN, QIDS, PACK, LAY = b"r", b"w", b"s", b"q", b"p", b"l"
"""Or a range to reduce, ids to look for, a range to look for them in, the ids of the questions to
pack for, a range to pack, or a range whose lines to lay aside."""


def main() -> None:
    """Serve until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    gc.disable()  # rows are trees and are freed by count
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    reducer: RangeReducer | None = None
    wanted: frozenset[str] = frozenset()
    packer: RangePacker | None = None
    maker: LineMaker | None = None
    while (message := read_message(stdin)) is not None:
        kind, body = message[:1], message[1:]
        if kind == JOB:
            reducer = RangeReducer(msgspec.msgpack.decode(body, type=Job))
            maker = None
        elif kind == UNPACK:
            unpacked = unpack_elsewhere(msgspec.msgpack.decode(body, type=Unpacking))
            write_message(stdout, msgspec.msgpack.encode(unpacked))
        elif reducer is None:
            raise ValueError("the first message is a job")
        elif kind == WANTED:
            wanted = msgspec.msgpack.decode(body, type=frozenset[str])
        elif kind == SCAN:
            found = reducer.scan(msgspec.msgpack.decode(body, type=Range), wanted)
            write_message(stdout, msgspec.msgpack.encode(sorted(found)))
        elif kind == QIDS:
            qids = msgspec.msgpack.decode(body, type=tuple[str, ...])
            job = msgspec.structs.replace(reducer.job, qids=qids)
            packer = RangePacker(job, reducer=reducer)
        elif kind == PACK and packer is not None:
            packed = packer.pack(msgspec.msgpack.decode(body, type=Range))
            write_message(stdout, msgspec.msgpack.encode(packed))
        elif kind == LAY:
            maker = maker or LineMaker(reducer.job, reducer=reducer)
            laid = maker.lay(msgspec.msgpack.decode(body, type=Range))
            write_message(stdout, msgspec.msgpack.encode(laid))
        else:
            partial = reducer.reduce(msgspec.msgpack.decode(body, type=Range))
            write_message(stdout, msgspec.msgpack.encode(partial))


if __name__ == "__main__":
    main()
    os._exit(0)  # nothing is left to be done, and freeing a gold set takes its time
