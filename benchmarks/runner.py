"""Owns the benchmark of asking: `ragauge run` beside a bare loop of `http.client`, on one server.

Run as `python benchmarks/runner.py --questions 20000 --rounds 3`. The server answers at once and
runs in a process of its own. One gold set is asked with one seed and with ten, so that what a start
and an end cost is told apart from what a question costs, and whether memory grows with a run.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import Measurement, measure
from table import grid, machine

HITS = 10
CONCURRENCY = 16
BODY = json.dumps({"hits": [{"id": f"d{n}#1", "score": 1 - n / 20} for n in range(HITS)]}).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
HERE = str(Path(__file__))
BARE, RAGAUGE = "bare loop of `http.client`", "`ragauge run`"


class _Answering(asyncio.Protocol):
    """Answers every request alike, once it has come whole."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.waiting = b""

    def data_received(self, data: bytes) -> None:
        self.waiting += data
        while (end := self.waiting.find(b"\r\n\r\n")) >= 0:
            head = self.waiting[:end].lower()
            _, found, length = head.partition(b"content-length:")
            whole = end + 4 + (int(length.split(b"\r\n")[0]) if found else 0)
            if len(self.waiting) < whole:
                return
            self.waiting = self.waiting[whole:]
            self.transport.write(ANSWER)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    server = await loop.create_server(_Answering, sock=listening)
    print(listening.getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def served() -> Iterator[int]:
    """The port of a server in a process of its own."""
    with subprocess.Popen([sys.executable, HERE, "serve"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def ask_bare(port: int, questions: int) -> None:
    """Ask with nothing but the standard library, in as many threads, and keep nothing."""
    numbers = iter(range(questions))
    lock = threading.Lock()

    def work() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                break
            asked = json.dumps({"question": f"What is number {number}?", "k": HITS})
            connection.request("POST", "/ask", asked, {"Content-Type": "application/json"})
            found = json.loads(connection.getresponse().read())
            assert len(found["hits"]) == HITS
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(CONCURRENCY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@dataclass(frozen=True)
class Slope:
    """What one more question costs: the difference of two sizes, and their peaks of memory."""

    wall: float
    cpu: float
    small: Measurement
    large: Measurement

    @classmethod
    def of(cls, small: Measurement, large: Measurement, more: int) -> Slope:
        assert small.cpu_seconds is not None
        assert large.cpu_seconds is not None
        return cls(
            (large.seconds - small.seconds) / more,
            (large.cpu_seconds - small.cpu_seconds) / more,
            small,
            large,
        )


def gold_file(folder: Path, questions: int) -> Path:
    """A gold set of so many questions, each with one document that is found."""
    path = folder / f"gold-{questions}.jsonl"
    with path.open("w") as file:
        for number in range(questions):
            row = {"qid": f"Q{number}", "question": f"What is number {number}?",
                   "relevant": [f"d{number % HITS}#1"]}  # fmt: skip
            file.write(json.dumps(row) + "\n")
    return path


def commands(
    folder: Path, port: int, items: int, questions: int, turn: str
) -> dict[str, list[str]]:
    """What is measured, each in a process of its own."""
    store = f"sqlite:///{folder}/{questions}-{turn}.db"
    seeds = max(1, questions // items)
    ragauge = [
        sys.executable, "-m", "ragauge", "run", "--gold", str(gold_file(folder, items)),
        "--seeds", ",".join(map(str, range(seeds))), "--target", f"http://127.0.0.1:{port}/ask",
        "--concurrency", str(CONCURRENCY),
        "--profile", "kb", "--store", store, "--run-id", "bench", "--format", "json",
    ]  # fmt: skip
    return {BARE: [sys.executable, HERE, "bare", str(port), str(questions)], RAGAUGE: ragauge}


def compared(questions: int, rounds: int, folder: Path) -> dict[str, list[Slope]]:
    """Measure both, round by round."""
    found: dict[str, list[Slope]] = {BARE: [], RAGAUGE: []}
    small = max(1, questions // 10)
    with served() as port:
        for turn in range(rounds):
            for name, slopes in found.items():
                both = []
                for size in (small, questions):
                    done = measure(
                        commands(folder, port, small, size, str(turn))[name], sampled=False
                    )
                    if done.returncode:
                        raise SystemExit(f"{name} failed: {done.stderr}")
                    both.append(done)
                slopes.append(Slope.of(both[0], both[1], questions - small))
    return found


def section(questions: int, rounds: int, folder: Path) -> str:
    """The table, and the ratios."""
    slopes = compared(questions, rounds, folder)
    rows = []
    for name, each in slopes.items():
        wall = statistics.median(slope.wall for slope in each)
        cpu = statistics.median(slope.cpu for slope in each)
        peaks = [max(getattr(slope, size).peak_mb for slope in each) for size in ("small", "large")]
        rows.append([
            name, f"{1 / wall:,.0f}", f"{wall * 1e6:,.0f} µs", f"{cpu * 1e6:,.0f} µs",
            f"{peaks[0]:.0f} MB", f"{peaks[1]:.0f} MB",
        ])  # fmt: skip
    ratios = [
        theirs.wall / ours.wall for ours, theirs in zip(slopes[RAGAUGE], slopes[BARE], strict=True)
    ]
    head = ["", "questions/s", "each", "processor", f"peak, {questions // 10:,}",
            f"peak, {questions:,}"]  # fmt: skip
    table = grid("lrrrrr", head, rows)
    told = (
        f"{RAGAUGE} asks {statistics.median(ratios):.2f} times as many questions a second as the "
        f"{BARE}, {CONCURRENCY} at a time; it also reads, stores and scores the answers."
    )
    return f"{machine()}\n\n{table}\n\n{told}"


def whole_section(questions: int, rounds: int, folder: Path) -> str:
    """Both parts as Markdown, with the command that makes them."""
    folder.mkdir(parents=True, exist_ok=True)
    command = f"Made by `python benchmarks/runner.py --questions {questions} --rounds {rounds}`."
    parts = [command, section(questions, rounds, folder), overhead(questions // 4 or 1, folder)]
    return "\n\n".join(parts)


SLEEPER = """
import time
SPENT = []
HITS = [{"id": f"d{n}#1"} for n in range(10)]

def ask(question):
    begun = time.perf_counter()
    time.sleep(0.01)
    SPENT.append(time.perf_counter() - begun)
    return HITS
"""


def overhead(questions: int, folder: Path) -> str:
    """What is added to the time of a function that takes 10 ms, for each question asked."""
    from ragauge.run import run as running
    from ragauge.run.ask import Limits
    from ragauge.store import runs as run_store

    folder.joinpath("sleeper.py").write_text(SLEEPER)
    asked = running.Asked(address=f"python:{folder}/sleeper.py:ask", k=HITS)
    given = running.read_run_input(
        gold_file(folder, questions), asked, running.ScoringRequest(profile="kb")
    )
    target = running.open_target(asked.address, asked.target_options(60.0))
    with run_store.opened_store(f"sqlite:///{folder}/sleeper.db", create=True) as store:
        run = running.start_run(store, asked, given, target, run_store.RunDescription())
        limits = Limits(concurrency=CONCURRENCY)
        spent = running.ask_all(store, run, asked, given, target, limits).seconds
    own = sum(sys.modules["sleeper"].SPENT)
    added = (spent * CONCURRENCY - own) / questions * 1000
    return f"{added:.2f} ms are added to a function that takes {own / questions * 1000:.2f} ms."


def main(arguments: Sequence[str]) -> int:
    """Benchmark from the command line, or be a part of it."""
    if arguments[:1] == ["serve"]:
        asyncio.run(_serve())
    if arguments[:1] == ["bare"]:
        ask_bare(int(arguments[1]), int(arguments[2]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        print(whole_section(options.questions, options.rounds, Path(temporary)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
