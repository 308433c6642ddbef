"""A PostgreSQL server for tests: one that is named, one that is started, or a skip that says why.

`RAGAUGE_TEST_POSTGRES` names a server by its URL. Otherwise one is started in a temporary folder,
once for a test process, and stopped when pytest ends; nothing listens on the network. Tests that
ask for it carry `pytest.mark.xdist_group("postgres")`, so that one worker starts one server.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

NAMED = "RAGAUGE_TEST_POSTGRES"
SKIPPED = (
    f"there is no PostgreSQL: set {NAMED} to a URL, or install the server "
    "(apt install postgresql) or the Python package pgserver"
)
PATIENCE = 30.0
_SERVER = pytest.StashKey[str]()
_numbers = itertools.count(1)


def server_url(config: pytest.Config) -> str:
    """The URL of the server of this test process, which is started at the first call."""
    if _SERVER not in config.stash:
        config.stash[_SERVER] = _find(config)
    url = config.stash[_SERVER]
    if not url:
        pytest.skip(SKIPPED)
    return url


def _find(config: pytest.Config) -> str:
    """The URL of a server, and "" if there is none; what is started is stopped with pytest."""
    if named := os.environ.get(NAMED):
        return named
    programs = _programs()
    if programs is not None:
        return _start(programs, config.add_cleanup)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pgserver.postgres_server import get_server
    except ImportError:
        return ""
    return _start_packaged(get_server, config.add_cleanup)


def _programs() -> Path | None:
    """The folder with the programs of the newest server that is installed."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name.zfill(4)
    )
    if (on_path := shutil.which("initdb")) is not None:
        found.insert(0, Path(on_path).resolve().parent)
    whole = [path for path in found if (path / "initdb").exists() and (path / "postgres").exists()]
    return whole[-1] if whole else None


def _owner() -> dict[str, int | Sequence[int]]:
    """Whom the server runs as: it refuses root."""
    if os.geteuid() != 0:
        return {}
    import pwd

    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
    return {}


def _start(programs: Path, at_end: Callable[[Callable[[], None]], None]) -> str:
    """Start a server on a socket in a temporary folder."""
    owner = _owner()
    # The path of a socket may have some hundred bytes only, so a short one is taken if there is.
    place = "/tmp" if Path("/tmp").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="ragauge-pg-", dir=place))
    at_end(lambda: shutil.rmtree(folder, ignore_errors=True))
    if owner:
        os.chown(folder, int(str(owner["user"])), int(str(owner["group"])))
    data = folder / "data"
    made = subprocess.run(
        [programs / "initdb", "-D", data, "-U", "ragauge", "-A", "trust", "-E", "UTF8",
         "--locale=C", "--no-sync", "--no-instructions"],
        cwd=folder, capture_output=True, text=True, check=False, **owner,
    )  # type: ignore[call-overload]  # fmt: skip
    assert made.returncode == 0, made.stderr
    # The server dies with the tests, also if nobody is left to stop it.
    tied = [] if (setpriv := shutil.which("setpriv")) is None else [setpriv, "--pdeathsig", "INT"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*tied, programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=",
             "-c", "fsync=off", "-c", "full_page_writes=off"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            **owner,
        )  # type: ignore[call-overload]  # fmt: skip
    at_end(lambda: _stop(process))
    url = f"postgresql://ragauge@/postgres?host={quote(str(folder), safe='')}"
    _wait_for(url, process, folder / "log")
    return url


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    end = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(url).close()
            return
        except psycopg.OperationalError:
            ended = process.poll() is not None
            if ended or time.monotonic() > end:
                pytest.fail(f"PostgreSQL did not start: {log.read_text(errors='replace')}")
            time.sleep(0.02)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server at once, without waiting for those who are still connected."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)
        process.wait(PATIENCE)


def _start_packaged(
    get_server: Callable[..., object], at_end: Callable[[Callable[[], None]], None]
) -> str:
    """Start the server that comes with the package pgserver."""
    folder = tempfile.mkdtemp(prefix="ragauge-pg-")
    at_end(lambda: shutil.rmtree(folder, ignore_errors=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = get_server(folder)
    at_end(server.cleanup)  # type: ignore[attr-defined]
    return str(server.get_uri())  # type: ignore[attr-defined]


@contextmanager
def own_schema(url: str) -> Iterator[str]:
    """A URL of the same server that sees nothing but an empty schema of its own."""
    import psycopg

    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"')
        try:
            options = quote(f"-csearch_path={name}", safe="")
            yield f"{url}{'&' if '?' in url else '?'}options={options}"
        finally:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE')
