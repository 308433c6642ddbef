"""One thing to try: files and a command line; and how it is kept as a regression case."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CASES = Path(__file__).with_name("cases")


@dataclass(frozen=True)
class Case:
    """Files by name, and the command that reads them; what it writes has a name with `out`."""

    target: str
    files: Mapping[str, bytes]
    arguments: tuple[str, ...]
    changes: frozenset[str] = frozenset()  # files that the command may change: a store

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values())) + sum(map(len, self.arguments))


@dataclass(frozen=True)
class Finding:
    """What is wrong: its kind, where that can be said, and the words for people."""

    kind: str
    place: str
    words: str

    @property
    def signature(self) -> tuple[str, str]:
        """The same for all inputs that show the same fault."""
        return self.kind, self.place


def write_case(case: Case, finding: Finding, folder: Path = CASES) -> Path:
    """Keep a case; its name has the target and a hash, so equal cases are one file."""
    document = {
        "found": f"{finding.kind}: {finding.words}",
        "target": case.target,
        "arguments": [_text_out(argument) for argument in case.arguments],
        "changes": sorted(case.changes),
        "files": {name: _bytes_out(content) for name, content in sorted(case.files.items())},
    }
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    digest = hashlib.sha256(
        json.dumps([document["arguments"], document["files"]]).encode()
    ).hexdigest()[:10]
    path = folder / f"{case.target}-{digest}.json"
    path.write_text(text, "utf-8")
    return path


def read_case(path: Path) -> Case:
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return Case(
        target=document["target"],
        files={name: _bytes_in(content) for name, content in document["files"].items()},
        arguments=tuple(_text_in(argument) for argument in document["arguments"]),
        changes=frozenset(document["changes"]),
    )


def _bytes_out(content: bytes) -> str | dict[str, str]:
    """Text where it is text, so that a case can be read; else packed."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return {"zlib+base64": base64.b64encode(zlib.compress(content, 9)).decode()}


def _bytes_in(content: str | dict[str, str]) -> bytes:
    if isinstance(content, str):
        return content.encode()
    return zlib.decompress(base64.b64decode(content["zlib+base64"]))


def _text_out(argument: str) -> str | dict[str, str]:
    return _bytes_out(argument.encode("utf-8", "surrogateescape"))


def _text_in(argument: str | dict[str, str]) -> str:
    return _bytes_in(argument).decode("utf-8", "surrogateescape")
