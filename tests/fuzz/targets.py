"""What is broken in a campaign: good files of every kind, and the commands that read them.

The good files are small, and most are made by the commands themselves: corpora, maps, locks,
saved scores, stores and exported runs. Whatever a command writes has a name that begins with `out`.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from random import Random

import click
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ragauge.cli.main import root, run
from ragauge.corpus.manifest import FileHash, _revision
from tests.e2e.process import QASET, SMOKE_TRACES
from tests.fuzz.case import Case
from tests.fuzz.mutate import (
    command_of,
    mutate_arguments,
    mutate_bytes,
    mutate_packed,
    packed,
)
from tests.support.command import GOLD, TRACES, lines_of
from tests.support.pdf_files import pdf

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "canary"


FRAMEWORKS = Path(__file__).resolve().parents[1] / "fixtures" / "test_frameworks"
CSV_GOLD = (
    b"qid,question,answerable,gold_claim_substr,gold_citations\n"
    b"A1,Does X support null keys?,true,rejects null keys,p1#2\n"
    b'A2,Explain Z.,false,[],"[]"\n'
    b'A3,"What ""domain"" is allowed?",yes,only domain|example.com,p1#1;pB#1\n'
)
CSV_TRACES = (
    b"qid,hits,answer,citations,latency_ms\n"
    b"A1,\"['p1#1', 'p1#2']\",X rejects null keys.,p1#2,12.5\n"
    b'A2,"[""p1#1""]",not in context,[],3\n'
    b'A3,"[{""id"": ""pB#1"", ""score"": 0.5}]","Only domain\nexample.com",pB#1,\n'
)
OWN_CASES = b"Case;Prompt;Evidence\nA1;Does X support null keys?;p1#2\nA2;Explain Z.;pB#1|p1#1\n"
OWN_LOG = (
    b'{"id": "l1", "meta": {"case": "A1"}, "out": "X rejects.", "docs": [{"uid": "p1#2"}]}\n'
    b'{"id": "l2", "meta": {"case": "A2"}, "out": "no", "docs": "[{\\"uid\\": \\"p1#1\\"}]"}\n'
)
OWN_FIELDS = (
    b'[fields.gold]\nqid = "Case"\nquestion = "Prompt"\nrelevant = "Evidence"\n\n'
    b'[fields.traces]\nqid = "meta.case"\nanswer = "out"\nhits = "docs"\n"hits.id" = "uid"\n'
    b'ignore = ["id"]\n'
)

Seal = Callable[[Mapping[str, bytes]], dict[str, bytes]]


@dataclass(frozen=True)
class Target:
    """Files that belong together, those of them that are broken, and commands to read them."""

    name: str
    files: Mapping[str, bytes]
    broken: Sequence[str]  # names of files; none: the command line is broken
    commands: Sequence[str]
    packs: Mapping[str, str] = field(default_factory=dict)  # files that are packed, and how
    changes: frozenset[str] = frozenset()
    seal: Seal | None = None  # makes the hashes right that would tell at once

    def good_cases(self) -> list[Case]:
        """Every command with nothing broken."""
        files = {
            name: packed(content, self.packs[name]) if name in self.packs else content
            for name, content in self.files.items()
        }
        return [
            Case(self.name, files, tuple(command.split()), self.changes)
            for command in self.commands
        ]

    def case(self, rng: Random) -> Case:
        """One broken case; the same for the same state of `rng`."""
        case = rng.choice(self.good_cases())
        if not self.broken:
            return replace(case, arguments=mutate_arguments(rng, case.arguments, list(case.files)))
        name = rng.choice(self.broken)
        content = self.files[name]
        if name in self.packs:
            content = mutate_packed(rng, content, self.packs[name])
        else:
            content = mutate_bytes(rng, content, list(self.files.values()))
        files = {**case.files, name: content}
        if self.seal is not None and rng.random() < 0.8:
            with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
                files = self.seal(files)
        return replace(case, files=files)


# --- good files ----------------------------------------------------------------------------------

KB_GOLD = """\
# comment
queries:
  - id: kb-001
    query: How long is a copy kept?
    expected_doc_ids: [retention]
    expected_chunk_ids: ["retention#2"]
    must_contain: ["7 days"]
    forbidden: ["14 days"]
    tags: [retention, &t x]
  - {id: kb-002, query: "Who has the key?", expected_doc_ids: [restore], weight: 2.5}
  - id: kb-003
    query: |
      What will it cost
      next year?
    expected_doc_ids: []
"""
KB_TRACES = [
    {"query_id": "kb-001", "hits_top_k": [{"chunk_id": "retention#2", "doc_id": "retention",
     "score": 0.81}], "answer": {"text": "For 7 days.", "grounded": True,
     "citations": ["retention#2"]}, "elapsed_ms": 412},
    {"query_id": "kb-002", "hits_top_k": [{"chunk_id": "a#1", "doc_id": "a", "score": 0.1}],
     "answer": {"text": "You.", "grounded": True, "citations": ["a#1"]}, "elapsed_ms": 530},
    {"query_id": "kb-003", "hits_top_k": [], "answer": {"text": "I cannot say.",
     "grounded": False, "citations": []}, "elapsed_ms": 120},
]  # fmt: skip
NATIVE_GOLD = [
    {"qid": "N1", "question": "What is red?", "type": "fact", "tags": ["a"], "turn": 1,
     "relevant": [{"id": "c1", "doc": "guide.md", "start": 9, "end": 41, "grade": 2,
     "quote": "Äpfel are red."}], "negatives": ["c2"], "answer": "Apples.", "lang": "en"},
    {"qid": "N2", "question": "What else?", "evidence_groups": [["c1", "c2"], ["c3"]],
     "paraphrases": ["And?"], "difficulty": "hard"},
]  # fmt: skip
NATIVE_TRACES = [
    {"qid": "N1", "seed": 1, "hits": [{"id": "c1", "score": 0.9, "doc": "guide.md", "start": 0,
     "end": 41, "text": "Äpfel are red."}, {"id": "c2", "text": "No."}], "answer": "Apples [c1].",
     "citations": ["c1"], "delta_s": [0.1, 0.5], "tokens": 12, "latency_ms": 3.5},
    {"qid": "N2", "seed": 1, "hits": ["c3"], "error": "timeout", "ts": "2026-03-02T09:00:00Z"},
]  # fmt: skip
QRELS = b"301 0 FT-1 2\n301 0 FT-2 1\n301 0 FT-3 0\n302 0 FT-1 1\n303 0 FT-9 1\n"
TREC_RUN = (
    b"301 Q0 FT-2 1 14.2 bm25\n301 Q0 FT-3 2 13.9 bm25\n301 Q0 FT-1 3 12.5 bm25\n"
    b"302 Q0 FT-7 1 9.1 bm25\n302 Q0 FT-1 2 9.1 bm25\n304 Q0 FT-5 1 8.8 bm25\n"
)
BEIR = {
    "beir/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t2\n",
    "beir/queries.jsonl": b'{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n',
    "run.txt": b"q1 Q0 d1 1 2.5 x\nq2 Q0 d3 1 1.5 x\n",
}
CONFIG = """\
gold = "gold.jsonl"
trace = "trace.jsonl"
profile = "ship"
k = [5]
store = "sqlite:///store.db"
relevance_level = 1
ignore_case = true
min_n = 2
suite = "nightly"
[gates]
"recall@5" = 0.8
chr = { threshold = 0.5, min_n = 1, policy = "interval" }
"answer.grounded_precision" = { max_drop = 0.02 }
[[waivers]]
gate = "chr"
reason = "a known fault"
expires = 2026-12-01
[refusal]
patterns = ["no (idea|clue)"]
[citation]
mode = "overlap"
window = 10
[system]
model = "m"
[bands."hashing:64"]
stable = 0.3
target = 0.4
risk = 0.6
"""
DOCUMENTS = {
    "guide.md": """\
---
title: Guide
---
# Guide

Äpfel are red. Bananas *are* [not](x.md "t").[^1]

## Setup {#setup}

```sh
make all
```

| a | b |
|---|:-:|
| 1 | `|` |

- one
  1. two

> quoted
> <div>html &amp; more</div>

Setext
======

[^1]: A note.
""",
    "page.html": """\
<!DOCTYPE html><html lang="en"><head><title>Page</title><meta charset="utf-8"></head><body>
<nav>menu</nav><main><h1 id="top">Page</h1><p>Some <b>bold</b> text&nbsp;&amp; more.</p>
<h2>Table</h2><table><thead><tr><th colspan="2">a</th></tr></thead><tr><td>1<td>2</table>
<pre><code class="language-sh">make all
</code></pre><ul><li>one<ul><li>two</ul></ul><dl><dt>t<dd>d</dl><script>x()</script>
<details><summary>s</summary>hidden</details><img alt="a picture"><!-- c --></main></body></html>
""",
    "manual.rst": """\
======
Manual
======

Some *text* with a `link <x>`_ and |sub|.

.. |sub| replace:: words

Setup
-----

.. code-block:: sh

   make all

.. note:: Careful.

+---+---+
| a | b |
+===+===+
| 1 | 2 |
+---+---+

.. list-table::
   :header-rows: 1

   * - a
     - b

:field: value

term
  definition [1]_

.. [1] A footnote.
""",
    "notes.txt": "Plain a.\n\nPlain b,\nin two lines.\n\f\nPlain c.\n",
}
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "\n", "Words."]},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": "print(1)",
         "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                     {"output_type": "execute_result", "data": {"text/plain": "1",
                      "text/html": "<b>1</b>"}, "metadata": {}, "execution_count": 1}]},
        {"cell_type": "raw", "metadata": {}, "source": ["raw"], "attachments": {}},
    ],
    "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip
TABLE = "72 700 200 60 re S 72 730 m 272 730 l S 172 700 m 172 760 l S"


def _pdf() -> bytes:
    first = [
        (72, 800, 20, "Title"), (72, 740, 10, "a"), (180, 740, 10, "b"), (72, 710, 10, "1"),
        (180, 710, 10, "2"), (72, 600, 10, "Words of a para-"), (72, 588, 10, "graph."),
    ]  # fmt: skip
    second = [(72, 800, 14, "Second", "bold"), (72, 700, 9, "code()", "mono")]
    outline = [("Title", 0), ("Second", 1)]
    return pdf([first, second], outline=outline, title="A title", drawn=TABLE)


def _parquet(rows: Sequence[Mapping[str, object]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), buffer)
    return buffer.getvalue()


def _made(folder: Path, files: Mapping[str, bytes], *commands: str) -> dict[str, bytes]:
    """Write files, run commands on them, and take all files that are there then."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    before = os.getcwd()
    os.chdir(folder)
    try:
        for command in commands:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                code = run(command.split())
            assert code in (0, 1, 4), f"`ragauge {command}` exits with {code}: {said.getvalue()}"
    finally:
        os.chdir(before)
    for store in folder.glob("*.db"):
        with contextlib.closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def _seal_corpus(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Write the hashes of the lists of a corpus into its manifest."""
    manifest = json.loads(files["corpus/manifest.json"])
    for name, entry in manifest["files"].items():
        content = files[f"corpus/{name}"]
        entry.update(bytes=len(content), sha256=sha256(content).hexdigest())
    entries = msgspec.convert(manifest["files"], dict[str, FileHash])
    manifest["revision"] = _revision(entries)
    return {**files, "corpus/manifest.json": json.dumps(manifest).encode()}


def _seal_run(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Write the hash of an exported run into its last line."""
    head, _, end = files["run.jsonl"].rstrip(b"\n").rpartition(b"\n")
    last = json.loads(end)
    last["sha256"] = sha256(head + b"\n").hexdigest()
    return {**files, "run.jsonl": head + b"\n" + json.dumps(last).encode() + b"\n"}


def _picked(files: Mapping[str, bytes], *beginnings: str) -> dict[str, bytes]:
    return {name: text for name, text in files.items() if name.startswith(beginnings)}


# --- targets -------------------------------------------------------------------------------------

_READ = (
    "score gold{g} trace{t}",
    "score gold{g} trace{t} --on-bad-line skip --format json --full",
    "score gold{g} trace{t} --on-bad-line skip --profile all -o out.html -o out.csv",
    "validate gold{g} trace{t}",
    "gold lint gold{g}",
    "diagnose gold{g} trace{t} --format json",
    "prompt gold{g} trace{t}",
)


def _reading(name: str, gold: tuple[str, bytes], trace: tuple[str, bytes], **packs: str) -> Target:
    files = {f"gold{gold[0]}": gold[1], f"trace{trace[0]}": trace[1]}
    commands = [command.format(g=gold[0], t=trace[0]) for command in _READ]
    return Target(name, files, list(files), commands, packs)


def _readers() -> Iterator[Target]:
    canary = [(EXAMPLES / name).read_bytes() for name in ("gold.jsonl", "live.jsonl")]
    few = b"".join(canary[1].splitlines(keepends=True)[:6])
    for name, gold, trace in (
        ("ship", lines_of(GOLD), lines_of(TRACES)),
        ("smoke", lines_of(QASET), lines_of(SMOKE_TRACES)),
        ("canary", canary[0], few),
        ("native", lines_of(NATIVE_GOLD), lines_of(NATIVE_TRACES)),
    ):
        yield _reading(f"read-{name}", (".jsonl", gold), (".jsonl", trace))
    array = json.dumps(GOLD).encode(), json.dumps(TRACES, indent=1).encode()
    yield _reading("read-array", (".json", array[0]), (".json", array[1]))
    yield _reading("read-yaml", (".yaml", KB_GOLD.encode()), (".jsonl", lines_of(KB_TRACES)))
    flat = [{key: row[key] for key in ("qid", "q", "retrieved_ids")} for row in TRACES]
    parquet = _parquet(GOLD), _parquet(flat)
    yield _reading("read-parquet", (".parquet", parquet[0]), (".parquet", parquet[1]))
    jsonl = lines_of(GOLD), lines_of(TRACES)
    for pack, suffix in (("gzip", ".jsonl.gz"), ("zstd", ".jsonl.zst")):
        packs = {f"gold{suffix}": pack, f"trace{suffix}": pack}
        yield _reading(f"read-{pack}", (suffix, jsonl[0]), (suffix, jsonl[1]), **packs)
    yield _reading("read-csv", (".csv", CSV_GOLD), (".csv", CSV_TRACES))
    own = {
        "cases.csv": OWN_CASES,
        "log.jsonl": OWN_LOG,
        "ragauge.toml": OWN_FIELDS,
    }
    yield Target("own-fields", own, list(own), [
        "score cases.csv log.jsonl --profile all", "validate cases.csv log.jsonl",
        "score cases.csv log.jsonl --on-bad-line skip --format json --full",
        "gold import cases.csv -o out.jsonl", "traces import log.jsonl -o out.jsonl",
        "init cases.csv log.jsonl --dry-run --force",
    ])  # fmt: skip
    for folder, name in (
        ("ragas", "ids.jsonl"), ("ragas", "ids.csv"), ("ragas", "turns.jsonl"),
        ("deepeval", "goldens.csv"), ("deepeval", "test-run.json"),
        ("promptfoo", "results.jsonl"), ("promptfoo", "promptfooconfig.yaml"),
    ):  # fmt: skip
        export = {name: (FRAMEWORKS / folder / name).read_bytes()}
        commands = [f"gold import {name} -o out.jsonl", f"init {name} --dry-run"]
        if name != "promptfooconfig.yaml":  # it has test cases and no results
            commands += [
                f"score {name} {name} --profile all", f"validate {name} {name}",
                f"traces import {name} -o out.jsonl",
            ]  # fmt: skip
        yield Target(f"read-{folder}-{name}", export, [name], commands)
    yield _reading("read-trec", (".txt", QRELS), (".txt", TREC_RUN))
    commands = ["score beir run.txt", "score beir run.txt --format json", "validate beir run.txt"]
    yield Target("read-beir", BEIR, list(BEIR), commands)


def _exports() -> Iterator[Target]:
    """Exports of other tools; those in protobuf where the package for it is installed."""
    folder = Path(__file__).resolve().parents[1] / "fixtures" / "imports"
    gold = (folder / "gold.jsonl").read_bytes()
    suffixes = [".json", ".jsonl", *([".pb"] if find_spec("opentelemetry") else [])]
    for path in sorted(folder.iterdir()):
        if path.suffix in suffixes and path.name != "gold.jsonl":
            files = {path.name: path.read_bytes(), "gold.jsonl": gold}
            commands = [
                f"traces import {path.name} -o out.jsonl --gold gold.jsonl",
                f"traces import {path.name} -o out.jsonl --retrieval each --stage first",
            ]
            if path.name not in ("openllmetry-langchain.pb", "trulens.json"):  # texts without ids
                commands.append(f"score gold.jsonl {path.name} --format json")
                commands.append(f"validate gold.jsonl {path.name}")
            yield Target(f"import-{path.name}", files, [path.name], commands)


NATIVE_ROWS = [
    {"trace_id": "t1", "app": "shop", "build": "v1", "index_hash": "i1", "type": "fact",
     "question": "What is red?", "answer": "Apples [1].", "latency_ms": 12.5, "session": "s",
     "user_id": "u", "hits": [{"id": "a.md#1", "doc": "a.md", "text": "Apples are red.",
     "score": 0.9, "delta_s": 0.3, "start": 0, "end": 15}, "b.md#2"], "citations": ["a.md#1"]},
    {"trace_id": "t2", "qid": "G1", "hits": [], "answer": {"text": "I don't know.",
     "refused": True, "citations": []}, "tokens": 7, "ts": "2026-03-02T09:00:00Z"},
    {"question": "Which?", "error": "timeout after 30 s", "perf": {"t_retrieve_ms": 3}},
]  # fmt: skip


def _bodies() -> Iterator[Target]:
    """What is posted to a live monitor, where its packages are installed."""
    if not find_spec("starlette"):
        return
    from tests.support.live_server import otlp_request

    folder = Path(__file__).resolve().parents[1] / "fixtures" / "imports"
    spans = otlp_request(2, error="boom")
    native = {
        "json": json.dumps(NATIVE_ROWS).encode(),
        "x-ndjson": lines_of(NATIVE_ROWS),
    }
    for media, content in native.items():
        command = f"collect /api/traces application/{media}"
        yield Target(f"body-{media}", {"body": content}, ["body"], [command])
    for path in (folder / "openinference-langchain.json", *sorted(folder.glob("*.pb"))):
        media = "json" if path.suffix == ".json" else "x-protobuf"
        command = f"collect /v1/traces application/{media}"
        yield Target(f"body-{path.name}", {"body": path.read_bytes()}, ["body"], [command])
    content = spans.SerializeToString()
    command = "collect /v1/traces application/x-protobuf"
    yield Target("body-spans", {"body": content}, ["body"], [command])
    yield Target("body-gzip", {"body": content}, ["body"], [f"{command} gzip"], {"body": "gzip"})


def _parsers() -> Iterator[Target]:
    documents = {name: text.encode() for name, text in DOCUMENTS.items()}
    documents["book.ipynb"] = json.dumps(NOTEBOOK, indent=1).encode()
    documents["paper.pdf"] = _pdf()
    for name, content in documents.items():
        kind = Path(name).suffix[1:]
        build = f"corpus build docs/{name} -o out --workers 1"
        yield Target(
            f"parse-{kind}", {f"docs/{name}": content}, [f"docs/{name}"],
            [build, f"{build} --on-bad-file skip"],
        )  # fmt: skip


def _corpora(folder: Path) -> Iterator[Target]:
    """Corpora, chunks, maps, locks, and the commands on gold that read them."""
    changed = DOCUMENTS["guide.md"].replace("## Setup", "New words.\n\n## Setup")
    gold = [
        {"qid": "G1", "question": "What is red?", "relevant": ["guide.md#S.1.p.Bk001"]},
        {"qid": "G2", "question": "How is it made?", "negatives": ["notes.txt#S.0.p.Bk001"],
         "relevant": [{"doc": "guide.md", "start": 46, "end": 53, "quote": "Bananas"}]},
    ]  # fmt: skip
    traces = [
        {"qid": "G1", "hits": [{"id": "guide.md#S.1.p.Bk001"}, {"id": "notes.txt#S.0.p.Bk001"}],
         "answer": "Red.", "citations": ["guide.md#S.1.p.Bk001"]},
        {"qid": "G2", "hits": [{"id": "guide.md#S.1.1.c.Bk001"}], "answer": "With make."},
    ]  # fmt: skip
    made = _made(
        folder,
        {
            "old/guide.md": DOCUMENTS["guide.md"].encode(),
            "old/notes.txt": DOCUMENTS["notes.txt"].encode(),
            "new/guide.md": changed.encode(),
            "new/notes.txt": DOCUMENTS["notes.txt"].encode(),
            "gold.jsonl": lines_of(gold),
            "trace.jsonl": lines_of(traces),
        },
        "corpus build old -o corpus --workers 1",
        "corpus build new -o corpus2 --workers 1",
        "corpus diff corpus corpus2 -o map.jsonl",
        "corpus chunk corpus -o chunks.jsonl --size 40 --unit char --text",
        "gold freeze gold.jsonl",
    )
    files = _picked(made, "corpus", "gold", "trace", "map", "chunks")
    corpus = [name for name in files if name.startswith("corpus/")]
    yield Target("corpus", files, corpus, [
        "corpus chunk corpus -o out.jsonl --by section",
        "corpus diff corpus corpus2 -o out.jsonl --review out.md",
        "corpus diff corpus2 corpus --format json",
        "validate gold.jsonl trace.jsonl --corpus corpus",
        "gold lint gold.jsonl --corpus corpus",
        "gold pin gold.jsonl --corpus corpus -o out.jsonl",
        "gold negatives gold.jsonl --corpus corpus -o out.jsonl",
        "gold new --corpus corpus -o out.yaml",
        "gold stats gold.jsonl --corpus corpus",
        "score gold.jsonl trace.jsonl --corpus corpus --profile all",
        "run --gold gold.jsonl --target bm25:corpus --corpus corpus --store sqlite:///out.db"
        " --run-id r --no-timing --concurrency 1",
    ], seal=_seal_corpus)  # fmt: skip
    yield Target("chunks", files, ["chunks.jsonl"], [
        "score gold.jsonl trace.jsonl --chunks chunks.jsonl --profile all",
        "validate gold.jsonl trace.jsonl --corpus corpus --chunks chunks.jsonl",
        "gold lint gold.jsonl --corpus corpus --chunks chunks.jsonl",
        "calibrate gold.jsonl --chunks chunks.jsonl --embed hashing",
    ])  # fmt: skip
    yield Target("map", files, ["map.jsonl"], [
        "gold migrate gold.jsonl --map map.jsonl -o out.jsonl",
        "gold migrate gold.jsonl --map map.jsonl -o out.yaml --on-unmapped drop --corpus corpus2",
        "traces migrate trace.jsonl --map map.jsonl -o out.jsonl --on-unmapped keep",
        "corpus redirect map.jsonl guide.md#S.1.p.Bk001",
        "corpus redirect map.jsonl guide.md:30-60 --format json",
        "compare trace.jsonl trace.jsonl --gold gold.jsonl --map map.jsonl",
    ])  # fmt: skip
    yield Target("lock", files, ["gold.lock", "gold.jsonl"], [
        "gold verify gold.jsonl", "gold verify gold.jsonl --no-new", "gold freeze gold.jsonl",
        "gold freeze gold.jsonl -o out.lock", "gold stats gold.jsonl --format json",
    ], changes=frozenset({"gold.lock"}))  # fmt: skip
    yield Target("gold-tools", files, ["gold.jsonl", "trace.jsonl"], [
        "gold pin gold.jsonl --corpus corpus -o out.yaml --on-unresolved keep",
        "gold negatives gold.jsonl --corpus corpus -n 2 --format json",
        "gold lint gold.jsonl --corpus corpus --format json --strict",
        "gold migrate gold.jsonl --map map.jsonl -o out.json --on-unmapped keep",
        "traces migrate trace.jsonl --map map.jsonl -o out.jsonl",
        "calibrate gold.jsonl --corpus corpus --embed hashing -o out.toml",
        "probe k-sweep trace.jsonl --gold gold.jsonl --corpus corpus --embed hashing",
        "probe triangulate gold.jsonl trace.jsonl --corpus corpus --embed hashing",
        "probe hybrid --sparse trace.jsonl --dense trace.jsonl --hybrid trace.jsonl"
        " --corpus corpus --embed hashing",
        "score gold.jsonl trace.jsonl --corpus corpus --embed hashing --format json",
    ])  # fmt: skip


def _stored(folder: Path) -> Iterator[Target]:
    """Saved scores, stores, exported runs and the configuration, and a line for every command."""
    second = [{**row, "retrieved_ids": row["retrieved_ids"][::-1]} for row in TRACES]
    made = _made(
        folder,
        {
            "gold.jsonl": lines_of(GOLD), "trace.jsonl": lines_of(TRACES),
            "second.jsonl": lines_of(second), "ragauge.toml": CONFIG.encode(),
            "plain.toml": b"",
        },
        "score gold.jsonl trace.jsonl --full --allow-no-baseline -o a.json --config plain.toml",
        "score gold.jsonl second.jsonl --full --allow-no-baseline -o b.json --config plain.toml",
        "score gold.jsonl trace.jsonl --store sqlite:///store.db --run-id first --tag baseline"
        " --config plain.toml --allow-no-baseline",
        "score gold.jsonl second.jsonl --store sqlite:///store.db --run-id other"
        " --config plain.toml",
        "runs export first --store sqlite:///store.db -o run.jsonl",
    )  # fmt: skip
    inputs = _picked(made, "gold", "trace", "second")
    yield Target("config", {**made, "gates.toml": b'[gates]\nchr = 0.5\n"recall@5" = 0.1\n'},
        ["ragauge.toml", "gates.toml"], [
        "score", "score --format json --gates gates.toml --as-of 2026-11-16",
        "validate", "gate a.json --gates gates.toml --as-of 2026-11-16",
        "compare a.json b.json --as-of 2026-11-16", "runs list",
    ], changes=frozenset({"store.db"}))  # fmt: skip
    yield Target("scores", {**inputs, **_picked(made, "a.json", "b.json")}, ["a.json"], [
        "gate a.json --allow-no-baseline", "gate a.json --format json --self-test",
        "gate a.json --baseline b.json -o out.junit.xml -o out.md", "compare a.json b.json",
        "compare b.json a.json --format json --full", "compare a.json b.json -o out.html",
        "score gold.jsonl trace.jsonl --baseline a.json", "view a.json --no-open -o out.html",
    ])  # fmt: skip
    store = "--store sqlite:///store.db"
    yield Target("store", {**inputs, "store.db": made["store.db"]}, ["store.db"], [
        f"runs list {store}", f"runs show first {store}", f"runs export first -o out.jsonl {store}",
        f"compare first other {store}", f"rescore --all {store}", f"gate other {store}",
        f"history chr --format json {store}", f"diagnose other {store}", f"prompt other {store}",
        f"runs tag other x {store}", f"runs delete other --yes {store}",
        f"view other --no-open -o out.html {store}", f"baseline show {store}",
        f"shadow --live first --shadow other {store}", f"baseline set other {store}",
        f"score gold.jsonl trace.jsonl --baseline baseline {store}",
    ], changes=frozenset({"store.db"}))  # fmt: skip
    yield Target("exported-run", {"run.jsonl": made["run.jsonl"]}, ["run.jsonl"], [
        "runs import run.jsonl --store sqlite:///out.db",
        "runs import run.jsonl --store sqlite:///out.db --run-id x",
        "compare run.jsonl run.jsonl", "runs keep run.jsonl --in out", "gate run.jsonl",
    ], seal=_seal_run)  # fmt: skip
    plain = {**made, "ragauge.toml": b""}
    lines: dict[str, list[str]] = {}
    for line in _LINES:
        _, depth = command_of(line.split())
        name = "-".join(["options", *line.split()[:depth]])
        lines.setdefault(name, []).append(f"{line} {store}" if line in _WITH_STORE else line)
    # A command that was added since is tried with its options alone.
    for command in sorted(all_commands() - NOT_RUN):
        lines.setdefault("-".join(["options", *command.split()]), [command])
    for name, commands in lines.items():
        yield Target(name, plain, [], commands, changes=frozenset({"store.db"}))


_WITH_STORE = (
    "baseline set other", "baseline show", "compare first other", "diagnose other", "gate first",
    "history chr", "leaderboard first other", "prompt other", "rescore --all", "runs list",
    "runs show first",
    "runs tag other x", "runs delete other --yes", "runs export first -o out.jsonl",
    "shadow --live first --shadow other", "view first --no-open -o out.html",
)  # fmt: skip
_LINES = (
    *_WITH_STORE, "score gold.jsonl trace.jsonl", "validate gold.jsonl trace.jsonl",
    "calibrate gold.jsonl --traces trace.jsonl --embed hashing", "demo", "demo --write out",
    "explain bad-json", "init out", "metrics retrieval.recall", "schema gold",
    "run --gold gold.jsonl --target bm25:x --store sqlite:///out.db --run-id r --no-timing",
    "probe k-sweep trace.jsonl --embed hashing", "gold lint gold.jsonl", "gold stats gold.jsonl",
    "gold freeze gold.jsonl -o out.lock", "gold verify gold.jsonl",
    "gold new --corpus x -o out.yaml", "gold pin gold.jsonl --corpus x -o out.jsonl",
    "gold negatives gold.jsonl --corpus x", "gold migrate gold.jsonl --map x -o out.jsonl",
    "traces migrate trace.jsonl --map x -o out.jsonl", "corpus diff x y", "corpus redirect x y",
    "corpus build gold.jsonl -o out --workers 1", "corpus chunk x -o out.jsonl",
    "runs import run.jsonl --store sqlite:///out.db", "runs keep run.jsonl --in out",
)  # fmt: skip
# They serve until they are ended: tests/unit/gold/editor, tests/e2e/test_live_* and tests/browser.
NOT_RUN = {"gold edit", "serve"}


def all_commands(group: click.Group = root, prefix: str = "") -> set[str]:
    """The names of all commands, as they are typed."""
    names = set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            names |= all_commands(command, f"{prefix}{name} ")
        else:
            names.add(f"{prefix}{name}")
    return names


def all_targets(folder: Path) -> list[Target]:
    """All targets; what their good files are made with is written to `folder`."""
    (folder / "corpora").mkdir(parents=True)
    (folder / "stored").mkdir()
    return [
        *_readers(), *_exports(), *_bodies(), *_parsers(),
        *_corpora(folder / "corpora"), *_stored(folder / "stored"),
    ]  # fmt: skip
