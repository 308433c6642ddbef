"""Owns the benchmark of placing: hits that are texts beside the same hits with their places.

Run as `python benchmarks/places.py --files 1000 --traces 20000`; `--dir DIR` keeps the data for the
next run. Both must give the same numbers: a wrong place has no speed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

from corpus import SEED, Writer, text_of
from measure import MEGABYTE, Measurement
from score import RAGAUGE, run
from table import grid, machine

HITS, LENGTH = 5, 800  # of a trace, and characters of a hit
YARDSTICK = "places in bytes"
HEADED = "texts below a title"
METRICS = "retrieval.recall@5,retrieval.precision@5,retrieval.mrr@10"


def write(files: int, traces: int, folder: Path) -> dict[str, Path]:
    """Write documents, a gold set of places, and the same hits said in several ways."""
    writer, chance = Writer(SEED), random.Random(SEED)
    texts = {f"page{number:05}.md": text_of(writer.file()) for number in range(files)}
    for name, text in texts.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    names = list(texts)
    paths = {
        what: folder / f"{number}.jsonl"
        for number, what in enumerate((YARDSTICK, "absolute paths", "texts", HEADED))
    }
    streams = {what: path.open("w", encoding="utf-8") for what, path in paths.items()}
    with (folder / "gold.jsonl").open("w", encoding="utf-8") as gold:
        for number in range(traces):
            hits = []
            for _ in range(HITS):
                doc = chance.choice(names)
                start = chance.randrange(len(texts[doc]) - LENGTH)
                text = texts[doc][start : start + LENGTH].strip()
                start = texts[doc].index(text)
                hits.append((doc, start, start + len(text), text))
            doc, start, _, _ = chance.choice(hits) if number % 2 else (names[0], 0, 0, "")
            place = {"doc": doc, "start": start, "end": start + 100}
            gold.write(
                json.dumps({"qid": f"q{number}", "question": "?", "relevant": [place]}) + "\n"
            )
            ways = {
                YARDSTICK: [
                    {"id": f"{d}:{s}", "doc": d, "start": s, "end": e} for d, s, e, _ in hits
                ],
                "absolute paths": [
                    {"id": f"{d}:{s}", "path": f"/data/{d}", "start_index": s, "text": text}
                    for d, s, _, text in hits
                ],
                "texts": [{"text": text} for *_, text in hits],
                HEADED: [{"text": f"Title of {d}\n{text}"} for d, _, _, text in hits],
            }
            for what, listed in ways.items():
                streams[what].write(json.dumps({"qid": f"q{number}", "hits": listed}) + "\n")
    for stream in streams.values():
        stream.close()
    return paths


def section(files: int, traces: int, rounds: int, folder: Path) -> str:
    """Measure, and lay everything out as Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = write(files, traces, folder)
    corpus = str(folder / "corpus")
    run("build", (*RAGAUGE, "corpus", "build", str(folder / "docs"), "-o", corpus), {0})
    size = sum(path.stat().st_size for path in (folder / "docs").iterdir())
    measured: dict[str, list[Measurement]] = {what: [] for what in paths}
    for number in range(rounds):
        print(f"{traces:,} traces, round {number + 1}", file=sys.stderr)
        for what, path in paths.items():
            command = (
                *RAGAUGE, "score", str(folder / "gold.jsonl"), str(path), "--corpus", corpus,
                "--profile", "all", "--metrics", METRICS, "--format", "json", "--workers", "2",
            )  # fmt: skip
            measured[what].append(run(what, command, {0}))
    values = {}
    for what, results in measured.items():
        metrics = json.loads(results[-1].stdout)["metrics"]
        values[what] = {name: metric["value"] for name, metric in metrics.items()}
    if any(found != values[YARDSTICK] for found in values.values()):
        raise SystemExit(f"error: the same hits gave different numbers: {values}")
    fastest = min(result.seconds for result in measured[YARDSTICK])
    return "\n\n".join([
        f"Made by `python benchmarks/places.py --files {files} --traces {traces} "
        f"--rounds {rounds}`.",
        f"{machine()}. {files:,} files of made-up words, {size / MEGABYTE:.1f} MB; {traces:,} "
        f"traces of {HITS} hits of about {LENGTH} characters, all different. **ratio** is the time "
        "of a whole process over that with places in bytes; all give the same numbers.",
        grid("lrrr", ("hits are", "seconds", "ratio", "peak MB"), (
            (what, f"{min(each.seconds for each in results):.2f}",
             f"{min(each.seconds for each in results) / fastest:.2f}",
             f"{max(each.peak_bytes for each in results) / MEGABYTE:,.0f}")
            for what, results in measured.items()
        )),
    ])  # fmt: skip


def main() -> int:
    """Benchmark from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1_000, help="documents of the corpus")
    parser.add_argument("--traces", type=int, default=20_000, help="traces of five hits")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds")
    parser.add_argument("--dir", type=Path, help="keep the generated data here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.dir or Path(temporary)
        print(section(options.files, options.traces, options.rounds, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
