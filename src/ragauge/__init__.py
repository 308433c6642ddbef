"""ragauge: deterministic metrics and gates for retrieval-augmented generation.

from ragauge import gate, load_gold, load_traces, score
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragauge.errors import RagaugeError
    from ragauge.pipeline import gate, load_gold, load_traces, score

__version__ = "0.1.0"
__all__ = ["RagaugeError", "__version__", "gate", "load_gold", "load_traces", "score"]


def __getattr__(name: str) -> Any:
    """Import the API when it is used, so that `ragauge --help` does not pay for it."""
    if name == "RagaugeError":
        from ragauge.errors import RagaugeError

        return RagaugeError
    if name in __all__:
        from ragauge import pipeline

        return getattr(pipeline, name)
    raise AttributeError(f"module 'ragauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
