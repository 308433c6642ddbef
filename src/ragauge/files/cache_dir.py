"""The user's folder for what can be made again: vectors, and pages that were looked at."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder that is ours among the user's caches; it may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = Path(base) if base and os.path.isabs(base) else Path.home() / ".cache"
    return folder / "ragauge"
