"""How fast spans become traces: OTLP as protobuf and as JSON, and the memory of a large file.

The yardsticks are what the packages themselves take in the same minutes: protobuf's parser with a
dictionary a span, and msgspec's decoder of JSON to plain objects. On a busy machine the processor
time of everything grows, and their ratio to ragauge stays.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from page import write_sections
from table import grid, machine

TEXT = "A null key raises ValueError; keys are compared byte by byte, and case matters. " * 6
SPANS_A_TRACE = 8
BATCH = 512


def spans_of(trace: int) -> list[dict[str, Any]]:
    """The spans of one question, as the instrumentor of LangChain writes them: a chain of eight."""
    question = f"Does setting number {trace} support null keys?"
    trace_id = f"{trace + 1:032x}"
    metadata = json.dumps({"qid": f"Q{trace:06}", "session_id": "s-1", "index_hash": "bm25:v3"})
    documents = [
        {"id": f"c{(trace * 7 + rank) % 5000}", "page_content": TEXT, "metadata": {"score": 0.5}}
        for rank in range(5)
    ]
    names = ("chain", "map", "sequence", "retriever", "format", "prompt", "model", "parser")
    kinds = ("CHAIN", "CHAIN", "CHAIN", "RETRIEVER", "CHAIN", "CHAIN", "LLM", "CHAIN")
    parents = (None, 0, 1, 2, 2, 0, 0, 0)
    start = 1_700_000_000_000_000_000 + trace * 1_000_000_000
    spans = []
    for place, (name, kind, parent) in enumerate(zip(names, kinds, parents, strict=True)):
        attributes: dict[str, object] = {
            "input.value": question,
            "output.value": f"The answer is {trace}. [c{(trace * 7) % 5000}]",
            "session.id": "s-1",
            "metadata": metadata,
            "openinference.span.kind": kind,
        }
        if kind == "RETRIEVER":
            attributes["output.value"] = json.dumps({"documents": documents})
            for rank, document in enumerate(documents):
                prefix = f"retrieval.documents.{rank}.document"
                attributes[f"{prefix}.content"] = document["page_content"]
                attributes[f"{prefix}.metadata"] = json.dumps(document["metadata"])
        if kind == "LLM":
            attributes["llm.input_messages.0.message.content"] = TEXT
            attributes["llm.output_messages.0.message.content"] = attributes["output.value"]
            attributes["llm.token_count.total"] = 49
        span = {
            "traceId": trace_id,
            "spanId": f"{trace * SPANS_A_TRACE + place + 1:016x}",
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(start + place * 1000),
            "endTimeUnixNano": str(start + 900_000 - place * 1000),
            "attributes": [{"key": key, "value": _value(v)} for key, v in attributes.items()],
            "status": {"code": 1},
        }
        if parent is not None:
            span["parentSpanId"] = f"{trace * SPANS_A_TRACE + parent + 1:016x}"
        spans.append(span)
    return spans[::-1]  # children end before their parents


def _value(value: object) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def bodies(count: int) -> Iterator[dict[str, Any]]:
    """Requests of a batch each, as JSON."""
    batch: list[dict[str, Any]] = []
    resource_part = {"attributes": [{"key": "service.name", "value": {"stringValue": "rag"}}]}
    for trace in range(count // SPANS_A_TRACE):
        batch += spans_of(trace)
        if len(batch) >= BATCH or trace == count // SPANS_A_TRACE - 1:
            scope = {"scope": {"name": "openinference"}, "spans": batch}
            yield {"resourceSpans": [{"resource": resource_part, "scopeSpans": [scope]}]}
            batch = []


def write_json(path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for body in bodies(count):
            file.write(json.dumps(body, separators=(",", ":"), ensure_ascii=False) + "\n")


def write_document(path: Path, count: int) -> None:
    """All spans in one resource of one document."""
    head = '{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{},"spans":['
    with path.open("w", encoding="utf-8") as file:
        for number, body in enumerate(bodies(count)):
            spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
            text = json.dumps(spans, separators=(",", ":"), ensure_ascii=False)[1:-1]
            file.write((head if number == 0 else ",") + text)
        file.write("]}]}]}")


def write_protobuf(path: Path, count: int) -> None:
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    with path.open("wb") as file:
        for body in bodies(count):
            data = TracesData()
            for part in body["resourceSpans"]:
                spans = data.resource_spans.add()
                spans.resource.attributes.add(key="service.name").value.string_value = "rag"
                scope = spans.scope_spans.add()
                for span in part["scopeSpans"][0]["spans"]:
                    message = scope.spans.add(
                        trace_id=bytes.fromhex(span["traceId"]),
                        span_id=bytes.fromhex(span["spanId"]),
                        parent_span_id=bytes.fromhex(span.get("parentSpanId", "")),
                        name=span["name"],
                        start_time_unix_nano=int(span["startTimeUnixNano"]),
                        end_time_unix_nano=int(span["endTimeUnixNano"]),
                    )
                    message.status.code = 1
                    for pair in span["attributes"]:
                        value = message.attributes.add(key=pair["key"]).value
                        if "intValue" in pair["value"]:
                            value.int_value = int(pair["value"]["intValue"])
                        else:
                            value.string_value = pair["value"]["stringValue"]
            file.write(data.SerializeToString())


def plain_protobuf(path: Path) -> int:
    """The yardstick: every span as a dictionary of its attributes, all at once, and no more."""
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    data = TracesData.FromString(path.read_bytes())
    count = 0
    for part in data.resource_spans:
        for scope in part.scope_spans:
            for span in scope.spans:
                {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes}
                count += 1
    return count


def plain_json(path: Path) -> int:
    """The yardstick: every line as plain objects, and no more."""
    import msgspec

    count = 0
    with path.open("rb") as file:
        for line in file:
            msgspec.json.decode(line)
            count += 1
    return count


def ragauge(path: Path) -> int:
    from ragauge.formats.imports.import_files import import_files

    return import_files([str(path)], f"{path}.traces.jsonl", "traces").rows


def prepare() -> None:
    """Import what the readers import."""
    from opentelemetry.proto.trace.v1 import trace_pb2  # noqa: F401

    from ragauge import registry
    from ragauge.formats.imports import import_files  # noqa: F401

    registry.foreign_formats()
    registry.vocabularies()


READERS = {"ragauge": ragauge, "protobuf": plain_protobuf, "msgspec": plain_json}


def measured(reader: str, path: Path) -> tuple[float, float]:
    """The processor time in seconds and the peak memory in MB of a reader, in its own process."""
    command = [sys.executable, __file__, "--one", reader, "--file", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), float(peak)


KINDS: Sequence[tuple[str, str, Callable[[Path, int], None]]] = (
    ("spans.pb", "protobuf", write_protobuf),
    ("spans.jsonl", "msgspec", write_json),
    ("document.json", "msgspec", write_document),
)
HEADINGS = ("file", "MB", "reader", "spans a second of CPU", "ratio", "peak MB")


def rows_of(count: int, rounds: int, folder: Path, *, beside: bool) -> Iterator[tuple[str, ...]]:
    """The figures of each kind of file: ragauge, and its yardstick beside it."""
    for name, yardstick, write in KINDS:
        path = folder / name
        write(path, count)
        size = path.stat().st_size / 1e6
        readers = (yardstick, "ragauge") if beside else ("ragauge",)
        taken: dict[str, list[tuple[float, float]]] = {reader: [] for reader in readers}
        for _ in range(rounds):
            for reader, measurements in taken.items():
                measurements.append(measured(reader, path))
        for reader, measurements in taken.items():
            seconds, peak = min(measurements)
            rate = f"{count / seconds:,.0f}"
            ratio = f"{min(taken[yardstick])[0] / seconds:.2f}" if beside else ""
            yield name, f"{size:,.0f}", reader, rate, ratio, f"{peak:,.0f}"
        path.unlink()


def section(asked: argparse.Namespace, folder: Path) -> str:
    """Measure, and lay everything out as Markdown."""
    command = f"python benchmarks/spans.py --spans {asked.spans} --rounds {asked.rounds}"
    rows = list(rows_of(asked.spans, asked.rounds, folder, beside=True))
    if asked.large:
        command += f" --large {asked.large}"
        rows += rows_of(asked.large, 1, folder, beside=False)
    parts = [
        f"Made by `{command}`.",
        f"{machine()}. Processor time of one process; fastest of the interleaved rounds. Beside "
        "the import of a file, to the written traces, stand the packages alone: protobuf with a "
        "dictionary a span, and msgspec's decoder to plain objects. `document.json` has all spans "
        "in one document; it is mapped, and counts as memory although the system may take it "
        "back.",
        grid("lrlrrr", HEADINGS, rows),
    ]
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spans", type=int, default=100_000)
    parser.add_argument("--large", type=int, help="import so many spans too, for the memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="where the files are written for a while")
    parser.add_argument("--write", type=Path, help="put the table into this Markdown file")
    parser.add_argument("--one")
    parser.add_argument("--file", type=Path)
    asked = parser.parse_args()
    if asked.one:
        prepare()  # what is imported once is no time of a span
        begun = time.process_time()
        READERS[asked.one](asked.file)
        spent = time.process_time() - begun
        print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
        return
    with tempfile.TemporaryDirectory(dir=asked.dir) as scratch:
        text = section(asked, Path(scratch))
    print(text)
    if asked.write:
        write_sections(asked.write, {"spans": text})


if __name__ == "__main__":
    main()
