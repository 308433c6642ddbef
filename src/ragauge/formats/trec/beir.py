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


def qrels_file(path: PathLike, split: str | None = None) -> Path:
    """The file with the judgements of a split: the one named, else `test`, else the only one."""
    folder = Path(path)
    splits = _splits(folder)
    if not splits:
        message = f"there is no judgement file in `{folder / 'qrels'}`"
        hint = "a BEIR folder has qrels/test.tsv, or another split"
        raise RagaugeError.of("file-not-found", message, hint=hint)
    wanted = DEFAULT_SPLIT if split is None else split
    if wanted in splits:
        return splits[wanted]
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    names = ", ".join(f"`{split_name}`" for split_name in splits)
    message = f"`{folder}` has no split `{wanted}`, but {names}"
    hint = f"name the file itself, as in `{next(iter(splits.values()))}`"
    raise RagaugeError.of("file-not-found", message, hint=hint)


def _splits(folder: Path) -> dict[str, Path]:
    """The judgement files by the name of their split, in order."""
    files = sorted((folder / "qrels").glob("*.tsv"))
    return {file.stem: file for file in files if file.is_file()}
