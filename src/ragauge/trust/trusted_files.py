"""The user's `trusted.toml`: configuration files that may connect and run code as they stood then.

A file is known by its real path and by a hash of the settings that lead outside. When one of these
changes, as in a checkout of somebody's branch, it has to be trusted again.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from ragauge.config import Config
from ragauge.errors import Place, RagaugeError
from ragauge.files.atomic_write import write_atomically
from ragauge.files.config_dir import config_folder
from ragauge.files.toml_lines import line_of_fault
from ragauge.trust.needs import live_settings_outside

FILE_NAME = "trusted.toml"
NETWORK = ("store", "target", "embed", "embedders")
"""The settings that lead outside; the hash is taken of them."""

_HEAD = "# What `ragauge trust` wrote: which ragauge.toml may connect, and where to.\n"


class TrustedFile(Struct, frozen=True, kw_only=True):
    """A configuration that was trusted: its real path, its hash, and what it led to."""

    path: str
    sha256: str
    access: tuple[str, ...] = ()


class _TrustedToml(Struct, frozen=True, kw_only=True):
    file: tuple[TrustedFile, ...] = ()


def trusted_path() -> Path:
    """Where the list stands: in the user's own folder for settings."""
    return config_folder() / FILE_NAME


def network_hash(config: Config) -> str:
    """A hash of the settings that lead outside; a store in a file is none."""
    settings = {name: getattr(config, name) for name in NETWORK}
    if settings["store"] is not None and settings["store"].startswith("sqlite:"):
        settings["store"] = None
    if live := live_settings_outside(config.live):
        settings["live"] = live
    text = json.dumps(settings, sort_keys=True, ensure_ascii=True, default=str)
    return sha256(text.encode()).hexdigest()


def real_path(config: Config) -> str:
    """The path of the file itself, whatever links lead to it."""
    return os.path.realpath(config.origin)


def read_trusted() -> list[TrustedFile]:
    """The list as it stands; empty where there is none."""
    path = trusted_path()
    hint = "correct it or delete it, then run `ragauge trust` again"
    line: int | None = None
    try:
        text = path.read_text("utf-8")
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            line = line_of_fault(text, error)
            raise
        return list(msgspec.convert(table, _TrustedToml).file)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError, ValueError) as error:
        place = Place(str(path), line)
        raise RagaugeError.of("bad-config", f"{error}", hint=hint, place=place) from error


def find_trusted(config: Config) -> TrustedFile | None:
    """What was trusted of a file, as it stood then; None where nothing was."""
    path = real_path(config)
    return next((file for file in read_trusted() if file.path == path), None)


def is_trusted(config: Config) -> bool:
    """Whether the file was trusted with the settings that it has now."""
    trusted = find_trusted(config)
    return trusted is not None and trusted.sha256 == network_hash(config)


def trust(config: Config, access: Sequence[str]) -> TrustedFile:
    """Put a file on the list, in place of what was trusted of it before."""
    path = real_path(config)
    entry = TrustedFile(path=path, sha256=network_hash(config), access=tuple(access))
    _write([*(file for file in read_trusted() if file.path != path), entry])
    return entry


def remove_trusted(path: str) -> bool:
    """Take a file off the list; False where it is not on it."""
    files = read_trusted()
    left = [file for file in files if file.path != os.path.realpath(path)]
    if len(left) < len(files):
        _write(left)
    return len(left) < len(files)


def _write(files: Iterable[TrustedFile]) -> None:
    parts = [_HEAD]
    for file in sorted(files, key=lambda file: file.path):
        access = ", ".join(map(_quoted, file.access))
        parts.append(
            f"\n[[file]]\npath = {_quoted(file.path)}\nsha256 = {_quoted(file.sha256)}\n"
            f"access = [{access}]\n"
        )
    folder = trusted_path().parent
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(trusted_path(), "".join(parts))


def _quoted(text: str) -> str:
    """A TOML string. Its escapes are those of JSON, but for DEL, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
