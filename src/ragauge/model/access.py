"""What a setting leads to outside of the files that are measured: a host, or code that runs."""

from __future__ import annotations

from msgspec import Struct


class Access(Struct, frozen=True, kw_only=True):
    """A host that is connected to, or code that is run, because of some settings.

    host        the name or address of a server; None where code is run, or nobody can tell the host
    port        the port of that server
    code        what is run, or what is opened that may connect anywhere, in words
    keys        the settings that say so: where none of them comes from ragauge.toml, the user does
    variables   environment variables whose values are sent
    """

    host: str | None = None
    port: int | None = None
    code: str | None = None
    keys: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
