"""The user's own folder for settings, which no project can write to."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """The folder that is ours among the user's settings; it may not be there yet.

    A relative XDG_CONFIG_HOME is passed over, as its specification says: it would be a folder in
    the project.
    """
    base = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(base) if base and os.path.isabs(base) else Path.home() / ".config"
    return folder / "ragauge"
