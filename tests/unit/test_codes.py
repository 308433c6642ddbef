"""Every code is raised or reported somewhere, and can be explained."""

from __future__ import annotations

import gzip
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from ragauge import registry
from ragauge.codes import CODES
from ragauge.files import ranges
from ragauge.live.database import open_database
from ragauge.model.corpus import Parsed, Parser
from ragauge.scoring import score
from ragauge.store import runs as run_store
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Content, Folder, Outcome, Row, line_of, lines_of
from tests.support.decided_store import promoted
from tests.support.live_rows import add_windows, window_row

FIRST, SECOND, THIRD = (line_of(row) for row in TRACES)
MALFORMED = b'{"qid": }'
DEEP = 100_000


Recipe = Callable[[Folder, pytest.MonkeyPatch], Outcome]
FULL = ("--full", "--format", "json")


def _unreadable(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    return folder.run("score", ".", ".")


def _exists(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.run("init")
    return folder.run("init")


def _bad_config(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("ragauge.toml", "golld = 'eval/gold.jsonl'\n")
    return folder.score()


def _other_dialect(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    """Pinned rows are longer, and push the one with the mark of `ship` behind the first 64 KiB."""
    folder.write("docs/a.md", "# A\n\nSo it is. So it was.\n")
    folder.run("corpus", "build", "docs", "-o", "corpus")
    rows = [{"qid": f"A{number}", "relevant": ["a.md#S.1.p.Bk001"]} for number in range(1000)]
    folder.write("gold.jsonl", [*rows, {"qid": "B", "gold_claim_substr": ["So it is"]}])
    return folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "gold.jsonl")


def _text_changed(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("docs/a.md", "# A\n\n## B\n\nSo it is.\n")
    folder.run("corpus", "build", "docs", "-o", "corpus")
    folder.write("gold.jsonl", [{"qid": "A1", "relevant": ["a.md#S.1.1.p.Bk001"]}])
    folder.run("gold", "freeze", "gold.jsonl", "--corpus", "corpus")
    folder.write("docs/a.md", "# A\n\n## New\n\nSo it was not.\n\n## B\n\nSo it is.\n")
    folder.run("corpus", "build", "docs", "-o", "edited")
    return folder.run("gold", "pin", "gold.jsonl", "--corpus", "edited", "-o", "new.jsonl")


def _already_migrated(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    _unmapped(folder, monkeypatch)
    folder.write("gold.jsonl", [{"qid": "A1", "relevant": ["c1"], "migrated_to": "another"}])
    return folder.run("gold", "migrate", "gold.jsonl", "--map", "map.jsonl", "-o", "new.jsonl")


def _unmapped(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("a/a.txt", "A paragraph that will be gone.\n")
    folder.write("b/b.txt", "Nothing of the kind.\n")
    for name in "ab":
        folder.run("corpus", "build", name, "-o", f"corpus-{name}")
    folder.run("corpus", "diff", "corpus-a", "corpus-b", "-o", "map.jsonl")
    return folder.run("corpus", "redirect", "map.jsonl", "a.txt#S.0.p.Bk001")


def _bad_scores(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("scores.json", '{"precision": 1.0}')
    return folder.run("gate", "scores.json")


def _bad_lock(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gold.jsonl", GOLD)
    folder.write("gold.lock", '{"schema": "else"}')
    return folder.run("gold", "verify", "gold.jsonl")


def _too_long(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(ranges, "MAX_LINE", 100)
    return folder.score()


def _unpacked_too_large(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", "1K")
    monkeypatch.setenv("RAGAUGE_UNPACK_RATIO", "10")
    return folder.score(gzip.compress(lines_of(TRACES * 100), mtime=0))


def _too_few(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gates.toml", "precision = { threshold = 0.5, min_n = 30 }\n")
    return folder.score(None, "--gates", "gates.toml", *FULL)


def _bug(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(score, "score_inputs", broken)
    return folder.score()


def _bad_plugin(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    broken = EntryPoint("broken", "no_such_package:METRICS", "ragauge.metrics")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [broken])
    registry.metrics.cache_clear()
    try:
        return folder.score()
    finally:
        monkeypatch.undo()
        registry.metrics.cache_clear()


def _missing_extra(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setitem(sys.modules, "yaml", None)
    return folder.score(gold="- qid: A1\n", gold_name="gold.yaml")


def scored(
    *options: str, trace: Content | None = None, gold: Content | None = None, **names: str
) -> Recipe:
    return lambda folder, _: folder.score(trace, *options, gold=gold, **names)


ERRORED: list[Row] = [{**TRACES[0], "error": "timeout"}, *TRACES[1:]]
PLACE = {"doc": "a.md", "start": 0, "end": 9}
CANARY = ("--profile", "canary", "--gates", "recall_drop=0.02,delta_s_median=0.4")
DISTANT = [
    {"qid": "A1", "seed": 1, "topk": ["p1"], "ΔS": [0.2], "embed_model": "one"},
    {"qid": "A1", "seed": 2, "topk": ["p1"], "ΔS": [0.2], "embed_model": "other"},
]


def _incomparable(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    live = scored("--profile", "all", "-o", "live.json", trace=TRACES[:1], gold=GOLD[:1])
    live(folder, monkeypatch)
    again = scored(*CANARY, *FULL, "--baseline", "live.json", trace=DISTANT[:1], gold=GOLD[:1])
    return again(folder, monkeypatch)


def _fewer_questions(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """One of two answers of the baseline is asked for no more."""
    scored("--full", "-o", "live.json")(folder, monkeypatch)
    folder.write("gates.toml", 'fall = { metric = "precision", max_drop = 0.1, min_n = 1 }\n')
    demand = ("--gates", "gates.toml", "--baseline", "live.json", *FULL)
    return scored(*demand, trace=TRACES[:2], gold=GOLD[:2])(folder, monkeypatch)


def _stored(folder: Folder, *names: str) -> None:
    for name in names:
        assert folder.score(None, "--run-id", name, "--store").exit_code == 0


def on_store(*arguments: str, changed: str | None = None, written: bytes | None = None) -> Recipe:
    """Run a command on a store of one run `one`, changed by SQL or overwritten."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        _stored(folder, "one")
        path = folder.path / "ragauge.db"
        if changed is not None:
            with closing(sqlite3.connect(path)) as database:
                database.execute(changed)
                database.commit()
        if written is not None:
            path.write_bytes(written)
        return folder.run(*arguments)

    return recipe


def _held(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    _stored(folder, "one")
    with run_store.opened_store("sqlite:///ragauge.db") as store, store.hold("one"):
        return folder.run("run", "--resume", "one")


def _bad_export(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    _stored(folder, "one")
    folder.write("run.jsonl", '{"schema": "else"}')
    return folder.run("runs", "import", "run.jsonl")


def _forged_decision(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    """A decision whose record was changed in the file."""
    url = f"sqlite:///{folder.path / 'live.db'}"
    with closing(open_database(url)) as database:
        promoted(database)
    with closing(sqlite3.connect(folder.path / "live.db")) as connection, connection:
        connection.execute("DROP TRIGGER eval_decisions_stay")
        forged = "replace(record_json, 'every condition holds', 'nothing was wrong')"
        connection.execute(f"UPDATE eval_decisions SET record_json = {forged}")
    return folder.run("decide", "repeat", "--store", url)


def _exported_window(number: int) -> Recipe:
    """An export of a window of a store that has one, whose traces are gone."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        url = f"sqlite:///{folder.path / 'live.db'}"
        with closing(open_database(url)) as database:
            add_windows(database, [window_row(29_800_000 * 60_000, {})])
        return folder.run("live", "export", "--store", url, "--window", str(number), "--out", "out")

    return recipe


def _bad_document(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("docs/a.ipynb", "no notebook")
    return folder.run("corpus", "build", "docs", "-o", "out")


def _parser_failed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    def parse(_data: bytes) -> Parsed:
        raise ZeroDivisionError

    failing = Parser(name="text", title="plain text", suffixes=(".txt",), parse=parse)
    monkeypatch.setattr(registry, "parsers", lambda: {".txt": failing})
    folder.write("a.txt", "Text.\n")
    return folder.run("corpus", "build", "a.txt", "-o", "out")


def _bad_corpus(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("out/manifest.json", '{"schema": "ragauge.corpus/1"}')
    return folder.run("corpus", "chunk", "out", "-o", "chunks.jsonl")


def _chunked(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    for version in ("v1", "v2"):
        hits = [{"id": "p1#2", "chunker_version": version}]
        folder.score([{"qid": "A1", "topk": hits}], "--run-id", version, "--store", gold=GOLD[:1])
    return folder.run("compare", "v1", "v2", "--strict-chunker-version")


def _nothing_common(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.score(TRACES[:1], "--run-id", "one", "--store", gold=GOLD[:1])
    folder.score(TRACES[2:], "--run-id", "other", "--store", gold=GOLD[2:])
    return folder.run("compare", "one", "other")


def pinned(*evidence: object) -> Recipe:
    """Pin evidence to a corpus of one document."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        folder.write("docs/a.md", "# A\n\nSo it is. So it was.\n")
        assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
        folder.write("gold.jsonl", [{"qid": "A1", "relevant": list(evidence)}])
        return folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "new.jsonl")

    return recipe


def looked_up(evidence: object) -> Recipe:
    """Validate evidence against a corpus; what was read is shown as well, and is not the point."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        folder.write("docs/a.md", "# A\n\nSo it is. So it was.\n")
        assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
        folder.write("gold.jsonl", [{"qid": "A1", "relevant": [evidence]}])
        done = folder.run("validate", "gold.jsonl", "--corpus", "corpus")
        assert "gold.jsonl: 1 gold item" in done.out
        return replace(done, out="")

    return recipe


def _bad_target(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gold.jsonl", GOLD)
    return folder.run("run", "--gold", "gold.jsonl", "--target", "ftp://host")


def _failing_target(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gold.jsonl", [{"qid": f"A{n}", "question": "?"} for n in range(300)])
    return folder.run(
        "run", "--gold", "gold.jsonl", "--target", "python:json:loads", "--max-errors", "0",
        "--concurrency", "1",
    )  # fmt: skip


def _bad_model(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Other weights; where onnxruntime is not installed it is never asked for anything."""
    monkeypatch.setitem(sys.modules, "onnxruntime", ModuleType("onnxruntime"))
    folder.write("model.onnx", b"other weights")
    folder.write("ragauge.toml", '[embedders.minilm]\npath = "model.onnx"\n')
    return folder.score(TRACES, "--embed", "minilm", "--embed-cache", "none")


def _embedder_failed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Nothing listens at the address; it is not worth waiting for."""
    monkeypatch.setattr("ragauge.files.http_retries.time.sleep", lambda _: None)
    monkeypatch.setenv("RAGAUGE_EMBED_BASE", "http://127.0.0.1:1/v1")
    hits = [{"id": "p1#2", "text": "X rejects null keys."}]
    row = {"qid": "A1", "question": "Does X support null keys?", "topk": hits}
    return folder.score([row], "--embed", "openai:any", "--embed-cache", "none", gold=GOLD[:1])


def _not_sent(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Nothing listens at the address of the service."""
    monkeypatch.setattr("ragauge.files.http_retries.time.sleep", lambda _: None)
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", [{**TRACES[0], "trace_id": "t", "span_id": "s"}])
    folder.run("score", "gold.jsonl", "trace.jsonl", "--full", "-o", "json:scores.json")
    send = ("--to", "phoenix", "--send", "--host", "http://127.0.0.1:1")
    return folder.run("traces", "annotate", "scores.json", *send)


def _named_in_file(text: str) -> Recipe:
    """Refused before the gold set is looked for."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        folder.write("ragauge.toml", f"{text}\n")
        return folder.run("run", "--gold", "gold.jsonl")

    return recipe


def _unjudged(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    """An embedder of which calibration says that its ΔS decides nothing."""
    folder.write(
        "ragauge.toml",
        '[bands.m.calibration]\nauc = 0.6\nevidence = 40\nothers = 40\nagainst = "hard negatives"\n'
        "stable = [0.4, 0.5]\nrisk = [0.6, 0.7]\njudged = false\n",
    )
    rows = [
        {"qid": row["qid"], "topk": ["p1#2"], "delta_s": [0.3], "embed_model": "m"}
        for row in TRACES
    ]
    folder.write("gates.toml", '"semantic.delta_s_hits" = { zone = "stable", min_n = 1 }\n')
    gates = ("--gates", "gates.toml", "--require-delta-s")
    return folder.score(rows, "--profile", "all", *gates, *FULL)


def _place_unknown(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    """Gold names chunks of run a; run b has halves of them."""
    numbers = range(6)
    gold = [{"qid": f"q{i}", "question": "?", "relevant": [f"a{i}"]} for i in numbers]
    folder.write("gold.jsonl", gold)
    for name, end in (("a", 800), ("b", 400)):
        places = [{"id": f"{name}{i}", "doc": f"d{i}", "start": 0, "end": end} for i in numbers]
        rows = [{"qid": f"q{i}", "hits": [place]} for i, place in enumerate(places)]
        folder.write(f"{name}.jsonl", rows)
    folder.write("gates.toml", '"retrieval.hit@5" = { max_drop = 0.02 }\n')
    files = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    return folder.run("compare", *files, "--gates", "gates.toml", "--format", "json")


LEXICAL = [{"qid": "A1", "question": "null keys?", "topk": [{"id": "p1#2", "text": "null keys"}]}]
LEXICAL_GATE = (
    "--profile", "all", "--embed", "hashing", "--embed-cache", "none",
    "--gates", "semantic.delta_s_hits<=2",
)  # fmt: skip


MANY = [
    {"qid": str(n), "question": f"Which colour{n} is right?", "relevant": [f"c{n}"]}
    for n in range(5)
]
PLACED = [
    {"qid": str(n), "relevant": [{"doc": "a.md", "start": 10 * n, "end": 10 * n + 9}]}
    for n in range(5)
]
ELSEWHERE = [{"qid": str(n), "hits": [f"other-{n}"]} for n in range(5)]
FOREIGN = [{"qid": str(n), "q": "Reset my password", "hits": [f"c{n}"]} for n in range(5)]

RECIPES: dict[str, Recipe] = {
    "bad-model": _bad_model,
    "embedder-failed": _embedder_failed,
    "not-sent": _not_sent,
    "lexical-embedder": scored(*LEXICAL_GATE, *FULL, trace=LEXICAL, gold=GOLD[:1]),
    "unjudged-delta-s": _unjudged,
    "place-unknown": _place_unknown,
    "bad-target": _bad_target,
    "host-not-allowed": _named_in_file('target = "http://example.com/ask"'),
    "not-trusted": _named_in_file('target = "python:app:answer"'),
    "cannot-resume": on_store("run", "--resume", "one"),
    "run-held": _held,
    "too-many-errors": _failing_target,
    "unresolved": looked_up("a.md#S.1.p.Bk002"),
    "quote-moved": looked_up({"doc": "a.md", "start": 5, "end": 14, "quote": "So it was."}),
    "quote-not-found": pinned({"doc": "a.md", "quote": "never said"}),
    "quote-ambiguous": pinned({"doc": "a.md", "quote": "So it"}),
    "draft-item": scored(gold=[{"qid": "A1", "question": "", "draft": True}]),
    "bad-store-url": lambda folder, _: folder.run("runs", "list", "--store", "mysql://host/x"),
    "store-unavailable": lambda folder, _: folder.run("runs", "list"),
    "no-token": lambda folder, _: folder.run("serve", "--host", "0.0.0.0"),
    "run-exists": on_store("score", "gold.jsonl", "trace.jsonl", "--run-id", "one", "--store"),
    "unknown-run": on_store("compare", "one", "two"),
    "bad-store": on_store("runs", "list", written=b"no database " * 100),
    "newer-store": on_store("runs", "list", changed="PRAGMA user_version = 99"),
    "bad-export": _bad_export,
    "decision-differs": _forged_decision,
    "incomplete-run": on_store("gate", "one", changed="UPDATE eval_runs SET status = 'incomplete'"),
    "chunker-mismatch": _chunked,
    "nothing-in-common": _nothing_common,
    "usage": scored("--k", "five"),
    "file-not-found": lambda folder, _: folder.run("score", "gold.jsonl", "trace.jsonl"),
    "file-unreadable": _unreadable,
    "bad-config": _bad_config,
    "bad-gate": scored("--gates", "precision=nan"),
    "unknown-metric": scored("--metrics", "answer.precission"),
    "unknown-name": scored("--profile", "shipp"),
    "bad-field-path": scored("--field", "answer=sources[?"),
    "field-not-found": scored("--field", "answer=nowhere"),
    "file-exists": _exists,
    "bad-plugin": _bad_plugin,
    "missing-extra": _missing_extra,
    "bad-json": scored(trace=MALFORMED + b"\n" + FIRST),
    "truncated-line": scored(trace=FIRST[:40]),
    "bad-encoding": scored(trace=b'{"qid": "\xff"}'),
    "nul-byte": scored(trace=FIRST + b"\n\0"),
    "line-too-long": _too_long,
    "too-deep": scored(trace=b"[" * DEEP),
    "not-a-row": scored(trace=b"17"),
    "bad-field": scored(trace=[{"qid": "A1", "turn": "x"}]),
    "missing-field": scored(gold=[*GOLD, {"question": "What?"}]),
    "field-conflict": scored("--profile", "all", trace=[{"qid": "A1", "id": "A2"}]),
    "duplicate-qid": scored("--profile", "all", gold=GOLD * 2),
    "duplicate-key": scored(
        "--profile", "all", gold=b'{"qid": "A1", "relevant": ["x"], "relevant": ["y"]}'
    ),
    "nothing-placed": scored(
        "--profile", "all", *FULL, gold=[{"qid": "A1", "relevant": [PLACE]}], trace=TRACES[:1]
    ),
    "mixed-units": scored(
        gold=[{"qid": "A1", "relevant": [PLACE, {**PLACE, "unit": "char"}]}], trace=TRACES[:1]
    ),
    "quote-unpinned": scored(
        gold=[{"qid": "A1", "relevant": [{"doc": "a.md", "quote": "so"}]}], trace=TRACES[:1]
    ),
    "bad-document": _bad_document,
    "parser-failed": _parser_failed,
    "bad-corpus": _bad_corpus,
    "bad-gzip": scored(trace=gzip.compress(lines_of(TRACES * 20), mtime=0)[:50]),
    "bad-zstd": scored(trace=b"\x28\xb5\x2f\xfd"),
    "unpacks-too-large": _unpacked_too_large,
    "bad-parquet": scored(trace=b"PAR1 and no more"),
    "bad-csv": scored(trace="qid,hits\na\n", trace_name="trace.csv"),
    "bad-spans": scored(trace=b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "cut'),
    "bad-yaml": scored(gold="- qid: [", gold_name="gold.yaml"),
    "unmapped": _unmapped,
    "already-migrated": _already_migrated,
    "text-changed": _text_changed,
    "other-dialect": _other_dialect,
    "bad-lock": _bad_lock,
    "bad-scores": _bad_scores,
    "missing-traces": scored(*FULL, trace=TRACES[:2]),
    "errored-traces": scored(*FULL, trace=ERRORED),
    "skipped-lines": scored("--on-bad-line=skip", *FULL, trace=lines_of(TRACES) + b"17"),
    "nothing-answered": scored(*FULL, trace=TRACES[1:2], gold=GOLD[1:2]),
    "undefined-metric": scored(
        "--profile", "all", "--gates", "under=0.05", *FULL, trace=TRACES[:1], gold=GOLD[:1]
    ),
    "no-such-window": _exported_window(2),
    "window-gone": _exported_window(1),
    "too-few": _too_few,
    "fewer-questions": _fewer_questions,
    "no-baseline": scored(*CANARY, *FULL, trace=DISTANT[:1], gold=GOLD[:1]),
    "incomparable": _incomparable,
    "mixed-embedders": scored(*CANARY, *FULL, trace=DISTANT, gold=GOLD[:2]),
    "nothing-measured": scored(*FULL, trace=b""),
    "not-rows": scored(trace=b"qid,answer\nA1,yes\n"),
    "ids-never-match": scored("--profile", "all", *FULL, gold=MANY, trace=ELSEWHERE),
    "no-places": scored(
        "--profile", "all", "--metrics", "citation.*", *FULL, gold=PLACED, trace=ELSEWHERE
    ),
    "foreign-traces": scored("--profile", "all", *FULL, gold=MANY, trace=FOREIGN),
    "bug": _bug,
}


def test_there_is_a_recipe_for_every_code() -> None:
    """A code that nothing can raise explains nothing; a new one needs a recipe here."""
    assert set(RECIPES) == set(CODES)


@cases("code", RECIPES)
def test_every_code_is_raised_or_reported(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """On stderr as error[code] with a hint, or in the verdict; with the exit code it stands for."""
    outcome = RECIPES[code](folder, monkeypatch)
    assert code in outcome.codes, outcome
    assert outcome.exit_code == CODES[code].exit
    assert all(problem.hint.strip() for problem in outcome.problems)
    assert "Traceback" not in outcome.err
    # What was scored is shown, whatever the verdict; what was refused has nothing to show.
    assert (outcome.out == "") == bool(outcome.problems)
    assert outcome.problems or outcome.exit_code not in (2, 3, 70)


def test_every_code_can_be_explained(folder: Folder) -> None:
    """`ragauge explain CODE` says what it means and which exit code it has."""
    for code, entry in CODES.items():
        outcome = folder.run("explain", code)
        assert outcome.exit_code == 0
        assert outcome.out.startswith(f"{code}: {entry.title}  (exit code {int(entry.exit)})\n")


def test_a_bug_says_that_it_is_one(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 70, the place in the source, and no blame on the user's files."""
    outcome = _bug(folder, monkeypatch)
    assert outcome.exit_code == 70
    assert "ZeroDivisionError: division by zero (test_codes.py:" in outcome.err
    assert "not in your files" in outcome.err
