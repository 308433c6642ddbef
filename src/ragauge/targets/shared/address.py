"""Addresses of targets: what stands behind the scheme, its settings, and the library it needs.

An address is `PLACE?name=value&name=value`; what `--option` says goes beside it. A name that a
target does not know is refused, because a misspelt setting would otherwise change nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from ragauge.errors import RagaugeError
from ragauge.model.target import TargetOptions

OF_EMBEDDER = "embedder."
"""What the settings of an embedder begin with; they are handed on without it."""


def refused(message: str, hint: str) -> RagaugeError:
    """Build the error of an address that can never work."""
    return RagaugeError.of("bad-target", message, hint=hint)


class Settings:
    """The settings of one target, from its address and from the options, as they were written."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = dict(given)

    def text(self, name: str, fallback: str | None = None) -> str | None:
        """A setting as text; None where there is none."""
        value = self.given.get(name)
        return fallback if value is None or value == "" else str(value)

    def needed(self, name: str, example: str) -> str:
        """A setting that must be there."""
        value = self.text(name)
        if value is None:
            raise refused(f"the target needs `{name}`", f"for example {example}")
        return value

    def number(self, name: str, fallback: float, least: float, most: float) -> float:
        """A number between two bounds."""
        text = self.text(name)
        if text is None:
            return float(fallback)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise refused(
                f"`{name}` must be a number from {least:g} to {most:g}, got `{text}`",
                f"leave it out for {fallback:g}",
            )
        return value

    def one_of(self, name: str, known: Iterable[str]) -> str | None:
        """A word out of some, in their order of preference; None where there is none."""
        value, names = self.text(name), list(known)
        if value is not None and value not in names:
            raise refused(f"`{name}` is `{value}`", f"it can be {', '.join(names)}")
        return value

    def below(self, prefix: str) -> dict[str, Any]:
        """The settings whose names begin so, without that beginning."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.given.items()
            if name.startswith(prefix)
        }


def split_address(
    address: str, options: TargetOptions, known: Iterable[str], *, keep: bool = False
) -> tuple[str, Settings]:
    """The place of an address, and its settings; `keep` leaves unknown ones in the place.

    A setting may stand in the address or in the options, not in both with different values.
    """
    names = set(known)
    place, mark, query = address.partition("?")
    given: dict[str, Any] = {}
    kept: list[str] = []
    for part in query.split("&") if mark else ():
        pair = parse_qsl(part, keep_blank_values=True)
        name, value = pair[0] if pair else ("", "")
        if _is_known(name, names):
            _add(given, name, value)
        elif keep:
            kept.append(part)
        elif part:
            raise _unknown(name or part, names)
    for name, value in options.settings.items():
        if not _is_known(name, names):
            raise _unknown(name, names)
        _add(given, name, value)
    if kept:
        place += "?" + "&".join(kept)
    return place, Settings(given)


def _is_known(name: str, names: set[str]) -> bool:
    if name.startswith(OF_EMBEDDER):
        return OF_EMBEDDER in names and name != OF_EMBEDDER
    return name in names


def _add(given: dict[str, Any], name: str, value: Any) -> None:
    if name in given and str(given[name]) != str(value):
        raise refused(
            f"`{name}` is given twice, with different values",
            "write it in the address or as an option",
        )
    given[name] = value


def _unknown(name: str, names: set[str]) -> RagaugeError:
    listed = ", ".join(f"{each}NAME" if each == OF_EMBEDDER else each for each in sorted(names))
    return refused(f"the target takes no `{name}`", f"known: {listed}" if names else "leave it out")


def library(name: str, extra: str, *, package: str | None = None) -> Any:
    """Import a library that comes with an extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        told = package or name.partition(".")[0].replace("_", "-")
        raise RagaugeError.of(
            "missing-extra",
            f"the target `{extra}` needs a package that is not installed: {told}",
            hint=f"pip install 'ragauge[{extra}]'",
        ) from error
