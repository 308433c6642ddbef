"""Config causes: what differs between the configurations of two runs, and what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragauge.files.redaction import redacted, words_of
from ragauge.model.comparison import Cause

ABOUT = ("chunker", "embedder", "prompt", "model", "k", "gold", "corpus", "other")
"""What a difference may be about, from what explains most to what explains least."""

BOOKKEEPING = frozenset(
    (
        "commit_hash", "created_at", "finished_at", "host", "hostname", "pid", "run_id",
        "started_at", "timings",
    )
)  # fmt: skip
"""Names of what differs always and explains nothing, at any depth."""

LONGEST = 60
_SHOWN = 3
_BEFORE = 12  # characters shown before the place where two long values begin to differ

# Names that tell what they are about wherever they stand, and names that leave it to the folder
# that they stand in: the `seed` of a chunker, the `model` of an embedder.
_CLEAR = {
    "chunker": ("chunk", "splitter", "policy_hash", "overlap", "target_tokens"),
    "embedder": ("embed",),
    "prompt": ("prompt", "template"),
    "k": ("eval_k", "top_k", "rrf_k", "score_gate", "rerank"),
    "model": ("llm",),
    "gold": ("gold",),
}
_VAGUE = {
    "k": ("k",),
    "embedder": ("vector", "dimensions"),
    "model": ("model", "model_id", "temperature", "seed"),
    "corpus": ("corpus", "index", "parser", "documents", "rev", "build"),
}
_WHOLE = frozenset(("build", "k", "rev", "seed"))  # not the beginnings of longer words

_Path = tuple[str, ...]


def causes(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Cause, ...]:
    """List how two snapshots of a configuration differ, the most important first.

    Secrets are taken out before anything else, so a changed password is no difference.
    """
    ours, theirs = _flat(redacted(a)), _flat(redacted(b))
    differing: list[tuple[_Path, Cause]] = []
    for path in ours.keys() | theirs.keys():
        value_a, value_b = ours.get(path), theirs.get(path)
        if value_a != value_b and not _is_bookkeeping(path):
            short_a, short_b = _short(value_a, value_b)
            cause = Cause(about=_about(path), key=".".join(path), a=short_a, b=short_b)
            differing.append((path, cause))
    # The path comes last: keys that hold dots may join to the same name.
    differing.sort(key=lambda row: (ABOUT.index(row[1].about), row[1].key, row[0]))
    return tuple(cause for _, cause in differing)


def cause_note(causes: Sequence[Cause]) -> str | None:
    """Word the first few causes in one sentence; None if there are none."""
    if not causes:
        return None
    parts = [f"{cause.key} {_bare(cause.a)} → {_bare(cause.b)}" for cause in causes[:_SHOWN]]
    if len(causes) > _SHOWN:
        parts.append(f"and {len(causes) - _SHOWN} more")
    return "; ".join(parts)


def _flat(snapshot: Mapping[str, Any]) -> dict[_Path, str]:
    """The JSON text of everything that is not an object with something in it, by its path."""
    texts: dict[_Path, str] = {}
    todo: list[tuple[_Path, Any]] = [((), snapshot)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, Mapping) and (value or not path):
            todo += [((*path, str(key)), inner) for key, inner in value.items()]
        else:
            texts[path] = _json(value)
    return texts


def _json(value: Any) -> str:
    """JSON text that is the same for the same value: 0 for 0.0, keys in order."""
    return json.dumps(_normal(value), ensure_ascii=False, sort_keys=True, default=str)


def _normal(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): _normal(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(inner) for inner in value]
    return value


def _is_bookkeeping(path: _Path) -> bool:
    return any("_".join(words_of(name)) in BOOKKEEPING for name in path)


def _about(path: _Path) -> str:
    """What a path is about: its last clear name decides, or else its last vague one."""
    for table in (_CLEAR, _VAGUE):
        for name in reversed(path):
            words = words_of(name)
            # How the name begins, then how it goes on.
            for start in range(len(words)):
                rest = "_".join(words[start:])
                for about, beginnings in table.items():
                    if any(_begins(rest, beginning) for beginning in beginnings):
                        return about
    return "other"


def _begins(name: str, beginning: str) -> bool:
    return name == beginning or (beginning not in _WHOLE and name.startswith(beginning))


def _short(one: str | None, other: str | None) -> tuple[str | None, str | None]:
    """Cut both texts to what can be shown, and so that it can be seen that they differ."""
    cut = _cut(one, 0), _cut(other, 0)
    if one is None or other is None or cut[0] != cut[1]:
        return cut
    place = next(
        (i for i, (x, y) in enumerate(zip(one, other, strict=False)) if x != y),
        min(len(one), len(other)),
    )
    return _cut(one, place - _BEFORE), _cut(other, place - _BEFORE)


def _cut(text: str | None, start: int) -> str | None:
    """At most 60 characters from a place on, with an ellipsis where something is cut off."""
    if text is None or (start <= 0 and len(text) <= LONGEST):
        return text
    begin, room = ("", LONGEST) if start <= 0 else ("…", LONGEST - 1)
    rest = text[max(0, start) :]
    return begin + (rest if len(rest) <= room else rest[: room - 1] + "…")


def _bare(text: str | None) -> str:
    """A value as a sentence has it: a text without its quotation marks."""
    if text is None:
        return "unset"
    bare = text.removeprefix('"')
    if text.startswith(('"', "…")):
        bare = bare.removesuffix('"')
    return bare or '""'


_CHUNKERS = frozenset(
    (
        "chunker", "chunker_name", "chunker_version", "chunking", "chunk_size", "chunk_overlap",
        "policy_hash", "splitter", "text_splitter",
    )
)  # fmt: skip
"""Names, at any depth, of what decides how documents are cut."""


def names_other_chunker(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two configurations say that documents were cut in two ways; both must say it."""
    ours, theirs = _flat(a), _flat(b)
    return any(
        ours[path] != theirs[path]
        for path in ours.keys() & theirs.keys()
        if not _CHUNKERS.isdisjoint(name.lower() for name in path)
    )
