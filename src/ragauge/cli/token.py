"""`ragauge token`: who may send to and read from a live monitor."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, say, screen
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_line, print_lines

if TYPE_CHECKING:
    from ragauge.live.access import LiveToken
    from ragauge.live.database import LiveDatabase

_SCHEMA = "ragauge.tokens/1"
_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}|")
_DAY = 86_400_000


@click.group("token", no_args_is_help=False, short_help="Make and revoke tokens of a live monitor.")
def COMMAND() -> None:  # noqa: N802
    """Make, list and revoke the tokens that `ragauge serve` lets in.

    A token belongs to one tenant, whose traces no other tenant sees. Its secret is shown once; the
    store has a hash of it. A server notices a change within 5 seconds.
    """


@COMMAND.command("create", short_help="Make a token; its secret is shown once.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice(["ingest", "read", "admin"]),
    help="What it may do: send traces, see pages and metrics, or also change things. Repeats.",
)
@click.option("--tenant", default="", metavar="NAME", help="Whose it is (default: the only one).")
@click.option("--note", default="", metavar="TEXT", help="What it is for.")
@click.option(
    "--days", type=click.IntRange(1, 3650), help="How long it counts (default: for ever)."
)
@options([STORE_OPTION, CONFIG_OPTION])
def _create(scopes: tuple[str, ...], tenant: str, note: str, days: int | None, **where: Any) -> int:
    """Make a token and print it: the only time that anybody sees it."""
    from ragauge.live.access import create_token

    if not _TENANT.fullmatch(tenant):
        raise click.UsageError(
            f"--tenant {tenant!r}: up to 64 small letters, digits, dots, hyphens and underscores"
        )
    now = int(time.time() * 1000)
    expires = None if days is None else now + days * _DAY
    with _database(where, create=True) as database:
        token = create_token(
            database, scopes, now=now, tenant=tenant, note=note[:200], expires=expires
        )
    print_line(token.text)
    say(f"keep it: it is not shown again; `ragauge token revoke {token.token_id}` ends it")
    return 0


@COMMAND.command("list", short_help="List the tokens, without their secrets.")
@options([ANY_FORMAT, STORE_OPTION, CONFIG_OPTION])
def _list(format_name: str, **where: Any) -> int:
    """List the tokens of a store."""
    from ragauge.live.access import list_tokens
    from ragauge.report.terminal import stored_runs
    from ragauge.report.terminal.stored_runs import TerminalColumn

    now = int(time.time() * 1000)
    with _database(where) as database:
        tokens = list_tokens(database)
    if format_name == "json":
        entries = [
            {
                "token_id": token.token_id,
                "tenant": token.tenant,
                "scopes": sorted(token.scopes),
                "state": _state(token, now),
                "created": _moment(token.created),
                "expires": _moment(token.expires),
                "note": token.note,
            }
            for token in tokens
        ]
        print_json({"schema": _SCHEMA, "tokens": entries})
        return 0
    if not tokens:
        say("there are no tokens: `ragauge token create` makes one")
        return 0
    columns = [
        TerminalColumn("id", [token.token_id for token in tokens]),
        TerminalColumn("tenant", [token.tenant or "-" for token in tokens]),
        TerminalColumn("scopes", [",".join(sorted(token.scopes)) for token in tokens]),
        TerminalColumn("state", [_state(token, now) for token in tokens]),
        TerminalColumn("created", [_moment(token.created) or "" for token in tokens], 1),
        TerminalColumn("expires", [_moment(token.expires) or "never" for token in tokens], 2),
        TerminalColumn("note", [token.note for token in tokens], 3),
    ]
    print_lines(stored_runs.table(columns, int(screen()["width"])))
    return 0


@COMMAND.command("revoke", short_help="Revoke a token, by its id.")
@click.argument("token_id", metavar="ID")
@options([STORE_OPTION, CONFIG_OPTION])
def _revoke(token_id: str, **where: Any) -> int:
    """Revoke a token and end its sessions. ID is what `token list` shows."""
    from ragauge.errors import RagaugeError
    from ragauge.live.access import PREFIX, revoke_token

    if token_id.startswith(f"{PREFIX}_"):  # the whole token: its id is enough
        token_id = token_id.split("_")[1]
    with _database(where) as database:
        if not revoke_token(database, token_id, now=int(time.time() * 1000)):
            message = f"there is no token `{token_id}` that counts"
            raise RagaugeError.of("no-token", message, hint="`ragauge token list` shows them")
    say(f"revoked {token_id}; servers notice within 5 seconds")
    return 0


@contextmanager
def _database(where: dict[str, Any], *, create: bool = False) -> Iterator[LiveDatabase]:
    """The store of the live monitor, as `ragauge serve` would take it."""
    from ragauge.live.database import open_database

    with closing(open_database(live_store_url(CommandOptions(**where)), create=create)) as database:
        yield database


def _state(token: LiveToken, now: int) -> str:
    if token.revoked is not None:
        return "revoked"
    return "active" if token.is_active(now) else "expired"


def _moment(time_ms: int | None) -> str | None:
    from datetime import UTC, datetime

    if time_ms is None:
        return None
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
