"""How Sphinx makes the site; scripts/website.py calls it with the pages."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1] / "src" / "ragauge" / "__init__.py"
_VERSION = re.search(r'^__version__ = "(.+)"$', _PACKAGE.read_text("utf-8"), re.MULTILINE)
assert _VERSION is not None

project = "ragauge"
release = _VERSION[1]
language = "en"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 4
smartquotes = False  # "--force" is an option, not a dash
html_theme = "furo"
html_title = f"ragauge {release}"
html_favicon = "_static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_copyright = False
html_show_sourcelink = False
html_copy_source = False
html_use_index = False  # there are no index entries
html_permalinks_icon = "#"
