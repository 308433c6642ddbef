"""Models of the package sentence-transformers, where it is installed, from files on this machine.

The hub is switched off before the package is imported: a model that is not here is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.errors import RagaugeError
from ragauge.model.access import Access
from ragauge.model.embedder import Embedded, EmbedderKind, Role, Vectors

_WEIGHTS = (".safetensors", ".bin", ".json", ".txt", ".model")
_STEP = 1024 * 1024


class SentenceTransformerEmbedder:
    """A loaded model. Texts are run one by one, so that no neighbour changes a vector."""

    lexical = False

    def __init__(self, model: Any, name: str, weights: str, prefixes: Mapping[str, str]) -> None:
        self.model = model
        self.prefixes = prefixes
        # The method was renamed in version 6, which warns of the old name.
        newer = getattr(model, "get_embedding_dimension", None)
        self.dimensions = int((newer or model.get_sentence_embedding_dimension)())
        self.longest = int(model.max_seq_length or 0)
        self.id = f"{name}@st-{weights[:16]};unit;max={self.longest or 'own'}"
        if any(prefixes.values()):
            self.id += f";prefix={prefixes['query']!r},{prefixes['document']!r}"

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:
        """Make the vectors of some texts."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        truncated = []
        for row, text in enumerate(texts):
            prefixed = self.prefixes[role] + text
            output = self.model.encode([prefixed], batch_size=1, show_progress_bar=False)
            vectors[row] = _unit(output)
            truncated.append(self._is_cut(prefixed))
        return Embedded(vectors, truncated)

    def _is_cut(self, text: str) -> bool:
        tokenizer = getattr(self.model, "tokenizer", None)
        if tokenizer is None or not self.longest:
            return False
        return len(tokenizer(text, truncation=False, verbose=False)["input_ids"]) > self.longest


def _unit(output: Any) -> Vectors:
    vector = np.asarray(output, np.float64).reshape(-1)
    length = float(np.sqrt((vector * vector).sum()))
    return (vector / length if length else vector).astype(np.float32)


def _open(settings: Mapping[str, Any]) -> SentenceTransformerEmbedder:
    """Load a model by its folder, or by the name under which it was downloaded before."""
    name = str(settings.get("model") or settings.get("path") or "")
    if not name:
        message = "the embedder sentence_transformers: there is no model"
        hint = "write --embed sentence_transformers:FOLDER"
        raise RagaugeError.of("bad-config", message, hint=hint)
    os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        message = "the package sentence-transformers is not installed"
        hint = "pip install sentence-transformers; or use --embed minilm"
        raise RagaugeError.of("missing-extra", message, hint=hint) from error
    try:
        folder = Path(name)
        if not folder.is_dir():  # a model that was downloaded before
            from huggingface_hub import snapshot_download

            folder = Path(snapshot_download(name, local_files_only=True))
        with _silent():
            model = SentenceTransformer(str(folder), device="cpu")
    except Exception as error:  # the package raises whatever its parts raise
        message = f"`{name}` cannot be loaded: {type(error).__name__}"
        hint = "name a folder with a model of sentence-transformers; nothing is downloaded"
        raise RagaugeError.of("bad-model", message, hint=hint) from error
    prefixes = {
        "query": str(settings.get("query_prefix", "")),
        "document": str(settings.get("document_prefix", "")),
    }
    return SentenceTransformerEmbedder(model, Path(name).name, _hash(folder), prefixes)


@contextmanager
def _silent() -> Iterator[None]:
    """Work without the progress bars of the package below, which would stand among our words."""
    try:
        from transformers.utils.logging import disable_progress_bar, enable_progress_bar
    except ImportError:
        yield
        return
    disable_progress_bar()
    try:
        yield
    finally:
        enable_progress_bar()


def _reaches(settings: Mapping[str, Any]) -> Sequence[Access]:
    """A folder of a model may hold Python modules and pickles, which the package loads."""
    key = "model" if settings.get("model") else "path"
    return (Access(code=f"the model {settings.get(key)}, which is loaded as code", keys=(key,)),)


def _hash(folder: Path) -> str:
    """A hash of the weights, the vocabulary and the settings of a model."""
    hasher = sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    for name, path in sorted(files.items()):
        if path.suffix in _WEIGHTS and path.is_file():
            hasher.update(name.encode() + b"\0")
            with path.open("rb") as file:
                while chunk := file.read(_STEP):
                    hasher.update(chunk)
    return hasher.hexdigest()


EMBEDDER = EmbedderKind(
    name="sentence_transformers",
    title="a model of sentence-transformers in a folder, where the package is installed",
    open=_open,
    reaches=_reaches,
)
