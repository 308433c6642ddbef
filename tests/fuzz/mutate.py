"""Breaks files and command lines: of bytes, words, lines, JSON values and options."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import click
import zstandard

from ragauge.cli.main import root

MOST_BYTES = 200_000
_WORD = re.compile(rb'"[^"\n]*"|-?\d+(?:\.\d+)?|[^\W\d]\w*|[^\w\s]')

# What readers, terminals, spreadsheets and parsers of documents trip over.
BYTES: tuple[bytes, ...] = (
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\r", b"\r\n",
    b"\n", b"\n\n", b"\t", b" ", b"\x0b\x0c", b"\x1b[2J", b"\xe2\x80\xa8", b"{", b"}", b"[", b"]",
    b'"', b"\\", b"\\u0000", b"\\ud800", b",", b":", b"NaN", b"Infinity", b"null", b"true", b"-0",
    b"1e999", b"0x10", b"1_000", b"9" * 40, b"<", b"</", b"<table><tr><td>", b"<![CDATA[", b"<!--",
    b"&#x110000;", b"&nbsp;", b"<svg><math>", b"#", b"######", b"```", b"~~~", b"| a | b |\n|---|",
    b"- ", b"> ", b"[^1]", b"[a]: ", b"---\n", b"===\n", b".. ", b"::\n\n", b".. figure:: x\n",
    b".. include:: x\n", b"|x|", b"+--+--+\n", b"`x <y>`_", b"&a ", b"*a", b"!!python/object:x.y ",
    b"<<: ", b"? ", b"%PDF-1.4", b"endobj", b"stream\n", b"/Kids [1 0 R]", b"xref", b"0 0 R",
    b"::error::x", b"=1+1", b"../../x", b"%s%n", b"Q0", b"qid",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 0.5, 1e308, -1e308, 5e-324, 2**31, 2**53 + 1, 2**63, -(2**63) - 1,
    10**40, float("nan"), float("inf"), "", " ", "0", "nan", "\x00", "\ud800", "é", "e\u0301",
    "\u2028", "\x1b]0;x\x07", "::error::x", "=1+1", "x" * 5000, "../../x", "[p1#1]", [], {}, [[]],
    [None], [1, "1"], {"": ""}, {"id": None}, [{"id": 1}], [0, 0], [5, 1], [-1, 2**63],
)  # fmt: skip
ARGUMENTS: tuple[str, ...] = (
    "", " ", "-", "--", "0", "1", "-1", "5,10", "5,5", "0,1", "2147483648", "9" * 30, "0.5", "nan",
    "inf", "-inf", "1e400", "x", "é", "\udcff", "a\nb", "\x1b[2J", ".", "..", "nosuch",
    "nosuch.jsonl", "out.json", "out.html", "out.csv", "out.md", "out.parquet", "out", "json:out",
    "csv:out", "x:out", ":", "nosuch/out.json", "nosuch/../gold.jsonl", "./gold.jsonl",
    "sqlite:///out.db", "sqlite:///", "sqlite://x", "foo:bar", "latest", "%s", "{}", "retrieval.*",
    "recall@5>=0.8", "recall@5>=nan", "recall@5<=0.8", "mrr=2", "=", ">=1", "a=b=c", "2026-13-45",
    "2026-11-16", "qid~(", "qid~[[a]", "type=a", "10/s", "0/s", "1/x", "all", "ship", "smoke",
    "canary", "kb", "native", "trec", "hashing", "table", "json", "md", "csv", "html", "junit",
    "github", "gitlab", "compact", "badge", "summary", "comment", "parquet", "doc:5-1", "doc#S.1",
)  # fmt: skip
NUMBERS: tuple[str, ...] = (
    "0", "1", "-1", "2", "5,10", "1,1", "0.5", "-0.0", "1.5", "2147483647", "2147483648", "9" * 25,
    "nan", "inf", "-inf", "1e400", "1e-400", "٣", "1_0", "0x1", " 5", "5,", ",", "1/s",
    "2026-02-30",
)  # fmt: skip
# Not for a campaign: more processes, a server, programs and hosts.
_NOT_TRIED = {"workers", "port", "target", "live", "shadow", "embed", "embedder", "concurrency"}


def mutate_bytes(rng: Random, content: bytes, others: Sequence[bytes] = ()) -> bytes:
    """One to four changes of a file; `others` are files of its kind to take pieces from."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        content = rng.choice(_CHANGES)(rng, content, others)[:MOST_BYTES]
    return content


def mutate_packed(rng: Random, content: bytes, pack: str) -> bytes:
    """Break what is inside a packed file, or the packed bytes themselves."""
    if rng.random() < 0.5:
        return packed(mutate_bytes(rng, content), pack)
    return _mutate_raw(rng, packed(content, pack), ())


def packed(content: bytes, pack: str) -> bytes:
    if pack == "gzip":
        return gzip.compress(content, mtime=0)
    return zstandard.ZstdCompressor().compress(content)


def _mutate_raw(rng: Random, content: bytes, _others: Sequence[bytes]) -> bytes:
    """Change single bytes in place: all lengths in the file stay right."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8)) if changed else 0):
        place = rng.randrange(len(changed))
        changed[place] = rng.choice((changed[place] ^ (1 << rng.randrange(8)), 0, 0xFF, 0x7F))
    return bytes(changed)


def _cut(rng: Random, content: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    return start, min(len(content), start + rng.choice((1, 2, 8, 64, 1024)))


def _delete(rng: Random, content: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _cut(rng, content)
    return content[:start] + content[end:]


def _truncate(rng: Random, content: bytes, _: Sequence[bytes]) -> bytes:
    return content[: rng.randint(0, len(content))]


def _repeat(rng: Random, content: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _cut(rng, content)
    return content[:end] + content[start:end] * rng.choice((1, 2, 50, 1000)) + content[end:]


def _insert(rng: Random, content: bytes, _: Sequence[bytes]) -> bytes:
    place = rng.randint(0, len(content))
    return content[:place] + rng.choice(BYTES) * rng.choice((1, 1, 1, 300)) + content[place:]


def _splice(rng: Random, content: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others or (content,))
    return content[: rng.randint(0, len(content))] + other[rng.randint(0, len(other)) :]


def _change_word(rng: Random, content: bytes, _: Sequence[bytes]) -> bytes:
    words = list(_WORD.finditer(content))
    if not words:
        return content
    word = rng.choice(words)
    replaced = rng.choice((rng.choice(words)[0], rng.choice(BYTES), _literal(rng), b""))
    return content[: word.start()] + replaced + content[word.end() :]


def _literal(rng: Random) -> bytes:
    return json.dumps(rng.choice(VALUES)).encode()


def _change_lines(rng: Random, content: bytes, _: Sequence[bytes]) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, lines[place])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case _:
            lines[place] = lines[place].rstrip(b"\r\n")
    return b"".join(lines)


def _change_json(rng: Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Change a value, a key or an element of one JSON document in the file."""
    return _change_document(rng, content, others, _change_node)


def _change_alike(rng: Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Replace a value by another of its type, which gets past readers that check types."""
    return _change_document(rng, content, others, _change_value)


def _change_document(
    rng: Random, content: bytes, others: Sequence[bytes], change: Callable[[Random, Any], None]
) -> bytes:
    lines = content.splitlines(keepends=True)
    place = rng.randrange(len(lines) or 1)
    # Either the file is one document, or every line is one.
    for start, end in ((0, len(lines)), (place, place + 1)):
        try:
            document = json.loads(b"".join(lines[start:end]))
            if isinstance(document, dict | list):
                change(rng, document)
                lines[start:end] = [json.dumps(document).encode() + b"\n"]
                return b"".join(lines)
        except (ValueError, RecursionError):
            continue
    return _change_word(rng, content, others)


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every object or list in a document with each of its keys."""
    nodes = [document]
    places = []
    for node in nodes:  # grows while it is walked
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                nodes.append(node[key])
    return places


def _change_value(rng: Random, document: Any) -> None:
    places = _places(document)
    if not places:
        return
    node, key = rng.choice(places)
    value = node[key]
    alike = [other[name] for other, name in places if type(other[name]) is type(value)]
    match value:
        case bool():
            node[key] = not value
        case int():
            node[key] = rng.choice((0, -1, value + 1, value - 1, 2**31, 2**53, *alike))
        case float():
            node[key] = rng.choice((0.0, 1.0, -value, value * 1e300, 5e-324, *alike))
        case str():
            node[key] = rng.choice(("", value[:-1], value + "x", value.upper(), "é\x00", *alike))
        case list():
            node[key] = rng.choice((value[::-1], value[:1], [], value + value, *alike))
        case _:
            node[key] = deepcopy(rng.choice((None, *alike)))


def _change_node(rng: Random, document: Any) -> None:
    places = _places(document)
    if not places:
        return
    node, key = rng.choice(places)
    match rng.randrange(6):
        case 0:
            del node[key]
        case 1 if isinstance(node, dict):
            node[rng.choice(("", "qid", "id", "answer", "topk", "x" * 300))] = node.pop(key)
        case 2:
            node[key] = [node[key]] if rng.random() < 0.5 else {"id": node[key]}
        case 3:
            deep: Any = node[key]
            for _ in range(rng.choice((3, 100, 900))):
                deep = [deep]
            node[key] = deep
        case 4 if isinstance(node, list):
            node *= 2
        case _:
            node[key] = deepcopy(rng.choice(VALUES))  # the next change may be inside it


Change = Callable[[Random, bytes, Sequence[bytes]], bytes]
_CHANGES: tuple[Change, ...] = (
    _mutate_raw, _delete, _truncate, _repeat, _insert, _splice, _change_word, _change_word,
    _change_lines, _change_json, _change_json, _change_alike, _change_alike, _change_alike,
)  # fmt: skip


def mutate_arguments(
    rng: Random, arguments: Sequence[str], files: Sequence[str]
) -> tuple[str, ...]:
    """One to three changes of a command line: options of the command, odd values, fewer words."""
    changed = list(arguments)
    command, depth = command_of(arguments)
    options = [
        option
        for option in command.params
        if isinstance(option, click.Option) and option.name not in _NOT_TRIED
    ]
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(depth, len(changed)) if len(changed) > depth else None
        match rng.randrange(4):
            case 0 if place is not None:
                del changed[place]
            case 1 if place is not None and not changed[place].startswith("-"):
                changed[place] = rng.choice((*ARGUMENTS, *files))
            case _ if options:
                option = rng.choice(options)
                changed.append(rng.choice((*option.opts, *option.secondary_opts)))
                if not option.is_flag:
                    changed += [_value(rng, option, files) for _ in range(option.nargs)]
            case _:
                changed.append(rng.choice(ARGUMENTS))
    return tuple(changed)


def _value(rng: Random, option: click.Option, files: Sequence[str]) -> str:
    """Mostly a value that is nearly right: what is quite wrong is refused before anything runs."""
    if isinstance(option.type, click.Choice) and rng.random() < 0.8:
        return str(rng.choice(list(option.type.choices)))
    kind = (option.metavar or option.type.name).upper()
    if re.search(r"INT|FLOAT|\b[KNL]\b|DATE|TOLERANCE|SECONDS", kind) and rng.random() < 0.8:
        return rng.choice(NUMBERS)
    if re.search(r"FILE|DIR|MAP|LIST|TRACE|GOLD", kind) and rng.random() < 0.5:
        return rng.choice(files)
    return rng.choice((*ARGUMENTS, *files))


def command_of(arguments: Sequence[str]) -> tuple[click.Command, int]:
    """The command that the first words name, and how many words that are."""
    command: click.Command = root
    context = click.Context(root)
    depth = 0
    while isinstance(command, click.Group) and depth < len(arguments):
        inner = command.get_command(context, arguments[depth])
        if inner is None:
            break
        command, depth = inner, depth + 1
    return command, depth
