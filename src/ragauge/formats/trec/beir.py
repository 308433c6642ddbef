"""A data set in the folder layout of BEIR: where its judgements and its questions are.

qrels/test.tsv    query-id, corpus-id, score     read elsewhere, as any file of judgements
queries.jsonl     _id, text                      may be absent
corpus.jsonl      the passages                   not looked at
"""

from __future__ import annotations

from pathlib import Path

from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike

DEFAULT_SPLIT = "test"


def is_beir(path: PathLike) -> bool:
    """Whether a path is a folder with judgements in `qrels/`."""
    return bool(_splits(Path(path)))


def qrels_file(path: PathLike) -> Path:
    """The file with the judgements of a BEIR folder: those of `test`, or the only ones."""
    folder = Path(path)
    splits = _splits(folder)
    if DEFAULT_SPLIT in splits:
        return splits[DEFAULT_SPLIT]
    if len(splits) == 1:
        return next(iter(splits.values()))
    names = ", ".join(f"`{split_name}`" for split_name in splits)
    message = f"`{folder}` has no split `{DEFAULT_SPLIT}`, but {names}"
    hint = f"name the file itself, as in `{next(iter(splits.values()))}`"
    raise RagaugeError.of("file-not-found", message, hint=hint)


def _splits(folder: Path) -> dict[str, Path]:
    """The judgement files by the name of their split, in order."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    return {file.stem: file for file in files if file.is_file()}
