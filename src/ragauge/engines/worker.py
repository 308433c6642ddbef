"""The worker process of the pool engine: reads a job, then ranges, and answers with partials.

Behind the last range it may be given ids, and ranges again to look for them in, or to be packed.
"""

from __future__ import annotations

import gc
import signal
import sys

import msgspec

from ragauge.framing import read_message, write_message
from ragauge.jobs import Job
from ragauge.packing import RangePacker
from ragauge.rows import RangeReducer
from ragauge.source import Range

REDUCE, WANTED, SCAN, QIDS, PACK = b"r", b"w", b"s", b"j", b"p"
"""What a message is: a range to reduce, ids to look for, a range to look for them in, the ids of
the questions to pack for, or a range to pack."""


def main() -> None:
    """Serve until the standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    gc.disable()  # rows are trees and are freed by count
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    payload = read_message(stdin)
    if payload is None:
        return
    reducer = RangeReducer(msgspec.msgpack.decode(payload, type=Job))
    wanted: frozenset[str] = frozenset()
    packer: RangePacker | None = None
    while (message := read_message(stdin)) is not None:
        kind, body = message[:1], message[1:]
        if kind == WANTED:
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
        else:
            partial = reducer.reduce(msgspec.msgpack.decode(body, type=Range))
            write_message(stdout, msgspec.msgpack.encode(partial))


if __name__ == "__main__":
    main()
