"""The packages of the extra `serve`: asked for before anything of the server is imported."""

from __future__ import annotations

from importlib.util import find_spec

from ragauge.errors import RagaugeError

_PACKAGES = ("starlette", "uvicorn", "httptools", "opentelemetry.proto")


def require_serve() -> None:
    """Say what to install where a package is missing."""
    for name in _PACKAGES:
        try:
            missing = find_spec(name) is None
        except ModuleNotFoundError:  # the package above it
            missing = True
        if missing:
            message = f"`ragauge serve` needs the package `{name}`"
            hint = "pip install 'ragauge[serve]'"
            raise RagaugeError.of("missing-extra", message, hint=hint)
