"""ragauge: deterministic metrics and gates for retrieval-augmented generation.

from ragauge import gate, load_gold, load_traces, score

PYTEST_DONT_REWRITE: pytest would warn where this was imported before it.
"""

# Nothing is imported here, not even `typing`: under `python -m ragauge` the current folder still
# stands first on the path. `TYPE_CHECKING` is known to type checkers by its name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ragauge.compare.compare import compare_runs
    from ragauge.errors import RagaugeError
    from ragauge.formats.load import load_gold, load_traces
    from ragauge.gates.judge import gate
    from ragauge.scoring.score import score
    from ragauge.store.runs import keep_run, opened_store

__version__ = "0.1.0"
_HOMES = {
    "RagaugeError": "errors",
    "compare_runs": "compare.compare",
    "gate": "gates.judge",
    "keep_run": "store.runs",
    "load_gold": "formats.load",
    "load_traces": "formats.load",
    "opened_store": "store.runs",
    "score": "scoring.score",
}
__all__ = [
    "RagaugeError",
    "__version__",
    "compare_runs",
    "gate",
    "keep_run",
    "load_gold",
    "load_traces",
    "opened_store",
    "score",
]


def __getattr__(name: str) -> "Any":
    """Import the API when it is used, so that `ragauge --help` does not pay for it."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"ragauge.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ragauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
