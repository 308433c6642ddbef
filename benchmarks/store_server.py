"""Owns the PostgreSQL server of the store benchmark: one that is named, or one that is started.

It is started from the programs on the path, those of a Linux distribution, or those that the Python
package pgserver brings, with the settings that a new server has. Nothing listens on the network,
and it ends with the benchmark.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

SCHEMA = "ragauge_benchmark"
PATIENCE = 30.0


@dataclass(frozen=True)
class Server:
    """Where a server is, or why there is none."""

    url: str = ""
    missing: str = ""

    @property
    def store(self) -> str:
        """The URL of a store in the schema of the benchmark."""
        options = quote(f"-csearch_path={SCHEMA}", safe="")
        return f"{self.url}{'&' if '?' in self.url else '?'}options={options}"

    def clear(self) -> None:
        """Make the schema anew, with nothing in it."""
        self.drop()
        self._run(f"CREATE SCHEMA {SCHEMA}")

    def drop(self) -> None:
        """Remove the schema with all that is in it."""
        self._run(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")

    def results(self) -> int:
        """How many results are stored."""
        return self._run(f"SELECT count(*) FROM {SCHEMA}.eval_query_results")

    def disk_bytes(self) -> int:
        """How much the tables take, with indexes and what lies beside them."""
        return self._run(
            "SELECT sum(pg_total_relation_size(oid))::int8 FROM pg_class WHERE relkind = 'r' "
            f"AND relnamespace = '{SCHEMA}'::regnamespace"
        )

    def _run(self, statement: str) -> int:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            found = cursor.fetchone() if cursor.description else None
            return int(found[0]) if found else 0


@contextmanager
def opened(url: str | None) -> Iterator[Server]:
    """The server of a URL, or else one that is started, or the reason why there is none."""
    programs = _programs()
    if find_spec("psycopg") is None:
        yield Server(missing="no package psycopg")
    elif url:
        server = Server(url)
        try:
            yield server
        finally:
            server.drop()
    elif programs is None:
        yield Server(missing="no server")
    else:
        # The path of a socket may have some hundred bytes only: a short one is taken.
        place = "/tmp" if Path("/tmp").is_dir() else None
        with tempfile.TemporaryDirectory(prefix="ragauge-bench-pg-", dir=place) as folder:
            yield from _started(programs, Path(folder))


def _programs() -> Path | None:
    """The folder with the programs of a server."""
    found = [Path(os.path.realpath(shutil.which("initdb") or "/")).parent]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = find_spec("pgserver")
    if package is not None and package.origin is not None:
        found.append(Path(package.origin).parent / "pginstall" / "bin")
    return next((each for each in found if (each / "postgres").exists()), None)


def _owner(folder: Path) -> int | None:
    """Whom the server runs as, and whose the folder is: it refuses root."""
    if os.geteuid() != 0:
        return None
    import pwd

    user = pwd.getpwnam("nobody").pw_uid
    os.chown(folder, user, -1)
    return user


def _started(programs: Path, folder: Path) -> Iterator[Server]:
    """Start a server, and end it at once: nothing of it is needed any more."""
    user = _owner(folder)
    groups = None if user is None else ()
    data, log = folder / "data", folder / "log"
    initdb = (programs / "initdb", "-D", data, "-U", "ragauge", "-A", "trust", "-E", "UTF8")
    postgres = (programs / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=")
    # The server ends with the benchmark, also if nobody is left to stop it.
    setpriv = shutil.which("setpriv")
    tied = () if setpriv is None else (setpriv, "--pdeathsig", "QUIT")
    with log.open("wb") as said:
        try:
            subprocess.run(
                (*initdb, "--locale=C"), cwd=folder, stdout=said, stderr=said, check=True,
                user=user, extra_groups=groups,
            )  # fmt: skip
            process = subprocess.Popen(
                (*tied, *postgres), cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                user=user, extra_groups=groups, start_new_session=True,
            )  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            yield Server(missing=f"no server: {type(error).__name__} when it was started")
            return
    try:
        url = f"postgresql://ragauge@/postgres?host={quote(str(folder), safe='')}"
        answers = _answers(url, process)
        yield Server(url) if answers else Server(missing="no server: it was started in vain")
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(PATIENCE)


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    """Wait for the first answer."""
    import psycopg

    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            psycopg.connect(url).close()
            return True
        except psycopg.OperationalError:
            time.sleep(0.1)
    return False
