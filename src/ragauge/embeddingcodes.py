"""Error codes of embedders and of ΔS: name, title, and what to do."""

from __future__ import annotations

USAGE = (
    (
        "bad-model",
        "the model of an embedder is not the one that is expected",
        "A file of weights or a vocabulary is missing, damaged, or another one. Its hash is "
        "checked, because ΔS of other weights cannot be compared. Install the package again, or in "
        "[embedders.NAME] of ragauge.toml say which file is meant, and its sha256.",
    ),
    (
        "embedder-failed",
        "an embedder could not make its vectors",
        "The server did not answer, refused, or answered something else than vectors. What was "
        "made before is in the cache, so the same command goes on from there.",
    ),
)
NOT_EVALUABLE = (
    (
        "lexical-embedder",
        "the ΔS of this run is lexical, and feeds no gate",
        "It comes from hashed n-grams: it compares words, not meanings, and no threshold of ΔS was "
        "made for it. Measure with a model (`--embed minilm`), or leave out the gates on ΔS.",
    ),
)
