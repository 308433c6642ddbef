"""A PostgreSQL server for tests: one that is named, one that is started, or a skip that says why.

`RAGAUGE_TEST_POSTGRES` names a server by its URL. Otherwise one is started in a temporary folder,
once for a test process, and stopped when pytest ends; nothing listens on the network. Tests that
ask for it carry `pytest.mark.xdist_group("postgres")`, so that one worker starts one server.
"""

from __future__ import annotations

import importlib.util
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
        server = PostgresServer(programs)
        config.add_cleanup(server.remove)
        server.start()
        config.add_cleanup(server.stop)
        return server.url
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


class PostgresServer:
    """A server on a socket in a temporary folder, which may be stopped and started again."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self._owner = _owner()
        # The path of a socket may have some hundred bytes only: a short one is taken if there is.
        place = "/tmp" if Path("/tmp").is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="ragauge-pg-", dir=place))
        self.url = f"postgresql://ragauge@/postgres?host={quote(str(self.folder), safe='')}"
        if self._owner:
            os.chown(self.folder, int(str(self._owner["user"])), int(str(self._owner["group"])))
        made = subprocess.run(
            [programs / "initdb", "-D", self.folder / "data", "-U", "ragauge", "-A", "trust",
             "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"],
            cwd=self.folder, capture_output=True, text=True, check=False, **self._owner,
        )  # type: ignore[call-overload]  # fmt: skip
        assert made.returncode == 0, made.stderr

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # The server dies with the tests, also if nobody is left to stop it.
        setpriv = shutil.which("setpriv")
        tied = [] if setpriv is None else [setpriv, "--pdeathsig", "INT"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*tied, self.programs / "postgres", "-D", self.folder / "data", "-k", self.folder,
                 "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, **self._owner,
            )  # type: ignore[call-overload]  # fmt: skip
        _wait_for(self.url, self._process, self.folder / "log")

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """End it without waiting for those who are connected; SIGQUIT is as a crash."""
        self._process.send_signal(number)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(PATIENCE)

    def remove(self) -> None:
        """Delete its files."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """A server of one test, which may stop it."""
    programs = _programs() or _packaged_programs()
    if programs is None:
        pytest.skip(SKIPPED)
    server = PostgresServer(programs)
    try:
        server.start()
        yield server
        server.stop()
    finally:
        server.remove()


def _packaged_programs() -> Path | None:
    """The programs that the package pgserver brings."""
    found = importlib.util.find_spec("pgserver")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "pginstall" / "bin"
    return path if (path / "initdb").exists() else None


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
