"""docs/licences.md: every package that ragauge and its extras bring, as its metadata states it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, metadata, requires
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PAGE = (ROOT / "docs" / "licences.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.M)
# For work on ragauge itself; nothing of them is shipped.
NOT_SHIPPED = {"dev", "adapters", "bench"}
# Of these the page lists the library alone: they bring about 120 packages.
LARGE = {"langchain", "llamaindex", "chroma", "qdrant"}
# How the identifier of a licence is worded by packages that do not use it yet.
WORDINGS = {
    "MIT": {"MIT License"},
    "BSD-3-Clause": {"BSD License", "3-Clause BSD License"},
    "Apache-2.0": {"Apache Software License", "Apache 2.0"},
    "public domain AND BSD-2-Clause": {"Public Domain"},
}


def _rows(heading: str) -> dict[str, tuple[str, set[str]]]:
    """Licence, and who needs it, by package, of the table below a heading."""
    text = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([a-z0-9-]+) \| ([^|]+) \| ([^|]+) \|$", text, re.M)
    names = {name: (licence, set(re.findall(r"[\w-]+", by))) for name, licence, by in rows[1:]}
    assert len(names) == len(rows) - 1, "a package stands there twice"
    return names


def _brought(texts: Sequence[str], *, deep: bool = True) -> Iterator[str]:
    """The packages that requirements bring, with all that those need here."""
    for text in texts:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        yield name
        if not deep:
            continue
        for extra in ("", *requirement.extras):
            for inner in requires(name) or []:
                marker = Requirement(inner).marker
                if marker is None or marker.evaluate({"extra": extra}):
                    yield from _brought([inner.partition(";")[0]])


def test_all_that_the_package_needs_is_listed() -> None:
    assert set(_rows("What ragauge needs")) == set(_brought(PROJECT["dependencies"]))


def test_all_that_extras_bring_is_listed() -> None:
    extras: dict[str, set[str]] = {}
    for extra, texts in PROJECT["optional-dependencies"].items():
        if extra not in NOT_SHIPPED:
            try:
                for name in _brought(texts, deep=extra not in LARGE):
                    extras.setdefault(name, set()).add(extra)
            except PackageNotFoundError as error:
                if find_spec("mypy") is not None:  # the environment of `make test` has them all
                    raise
                pytest.skip(f"{error.name} is not installed here")
    rows = _rows("What the extras bring")
    assert {name: by for name, (_, by) in rows.items()} == extras


@pytest.mark.parametrize(("name", "licence", "_"), ROWS, ids=lambda value: str(value)[:20])
def test_a_licence_is_what_the_package_states(name: str, licence: str, _: str) -> None:
    if name == "package":
        return  # the heading of a table
    try:
        stated = metadata(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here: see `make adapters`")
    classifiers = [text.rpartition(" :: ")[2] for text in stated.get_all("Classifier") or []]
    fields = [stated[name] for name in ("License-Expression", "License") if name in stated]
    statements = {*fields, *classifiers}
    assert statements & {licence, *WORDINGS.get(licence, ())}, statements
