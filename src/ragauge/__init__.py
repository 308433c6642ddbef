"""ragauge: deterministic metrics and gates for retrieval-augmented generation.

from ragauge import compare, gate, load_gold, load_traces, score

PYTEST_DONT_REWRITE: pytest would warn where this was imported before it.
"""

# `sys` is built in. Nothing else is imported here, not even `typing`: under `python -m ragauge` the
# current folder still stands first on the path. `TYPE_CHECKING` is known to type checkers by name.
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ragauge.api.commands import (
        compare,
        gate,
        keep_run,
        load_gold,
        load_scores,
        load_traces,
        opened_store,
        score,
    )
    from ragauge.api.results import ComparisonResult, ScoreResult, VerdictResult
    from ragauge.compare.compare import compare_runs
    from ragauge.errors import RagaugeError
    from ragauge.recorder.record import record
    from ragauge.testing import assert_rag

__version__ = "0.1.0"
_HOMES = {
    "ComparisonResult": "api.results",
    "RagaugeError": "errors",
    "ScoreResult": "api.results",
    "VerdictResult": "api.results",
    "assert_rag": "testing",
    "compare": "compare",
    "compare_runs": "compare.compare",
    "gate": "api.commands",
    "keep_run": "api.commands",
    "load_gold": "api.commands",
    "load_scores": "api.commands",
    "load_traces": "api.commands",
    "opened_store": "api.commands",
    "record": "recorder.record",
    "score": "api.commands",
}
__all__ = [
    "ComparisonResult",
    "RagaugeError",
    "ScoreResult",
    "VerdictResult",
    "__version__",
    "assert_rag",
    "compare",
    "compare_runs",
    "gate",
    "keep_run",
    "load_gold",
    "load_scores",
    "load_traces",
    "opened_store",
    "record",
    "score",
]


def __getattr__(name: str) -> "Any":
    """Import the API when it is used, so that `ragauge --help` does not pay for it."""
    if name in __all__:
        from importlib import import_module

        module = import_module(f"ragauge.{_HOMES[name]}")
        return module if name == "compare" else getattr(module, name)
    raise AttributeError(f"module 'ragauge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _ComparePackage(type(sys)):  # type: ignore[misc]
    """`ragauge.compare`: the package of that name, and the function if it is called."""

    def __call__(self, *args: "Any", **kwargs: "Any") -> "ComparisonResult":
        """Compare run b with run a: see `ragauge.api.commands.compare`."""
        from ragauge.api.commands import compare

        return compare(*args, **kwargs)

    @property
    def __signature__(self) -> "Any":
        from inspect import signature

        from ragauge.api.commands import compare

        return signature(compare)


class _RootPackage(type(sys)):  # type: ignore[misc]
    """The root: a package that is imported becomes an attribute of it, also one that is called."""

    def __setattr__(self, name: str, value: "Any") -> None:
        if name == "compare":
            value.__class__ = _ComparePackage
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _RootPackage
