"""Which values of a target's configuration are secret: they are stored and shown nowhere."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ragauge.files.redaction import (
    SecretValues,
    is_secret,
    is_secret_header,
    redacted,
    redacted_url,
    secret_parts,
)
from ragauge.text import plain

_HEADER = "header."
_SHORT_NAMES = frozenset(("key", "pass", "passwd", "pw"))
"""Names of options that mean a secret where they stand alone; elsewhere they are harmless."""


def shown_address(address: str) -> str:
    """An address without secrets, as it is stored and shown."""
    scheme, _, rest = address.partition(":")
    if scheme == "command":
        with suppress(ValueError):
            words = shlex.split(rest)  # a secret may be the word after `--api-key`
            if redacted(words) != words:
                return f"command:{shlex.join(redacted(words))}"
    return plain(redacted_url(address) if scheme.startswith("http") else str(redacted(address)))


def shown_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a target without secrets, as they are stored and shown."""
    values = SecretValues(_secrets_of_options(options))
    shown: dict[str, Any] = values.hide_in(redacted(dict(options)))
    return shown


def configured_secrets(
    address: str, options: Mapping[str, Any], target: object = None
) -> SecretValues:
    """The secrets in an address and its options, and those that a target took from elsewhere.

    A target names the latter as `secrets`: keys from the environment, headers as they are sent.
    """
    own = getattr(target, "secrets", ())
    values = [*_secrets_of_address(address), *_secrets_of_options(options), *own]
    return SecretValues(values)


def _secrets_of_address(address: str) -> Iterator[str]:
    scheme, _, rest = address.partition(":")
    if scheme != "command":
        yield from secret_parts(address, shown_address(address))
        return
    with suppress(ValueError):
        words = shlex.split(rest)
        for word, shown in zip(words, redacted(words), strict=True):
            yield from secret_parts(word, shown)


def _secrets_of_options(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if value is None or isinstance(value, bool):
            continue
        text = str(value)
        if name.startswith(_HEADER):
            if is_secret_header(name.removeprefix(_HEADER)):
                yield text
        elif is_secret(name) or name.lower() in _SHORT_NAMES:
            yield text
        else:
            yield from secret_parts(text, str(redacted(text)))
