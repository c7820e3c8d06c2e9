"""A PostgreSQL server of our own, which may be stopped and started again."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import URL

ACCOUNT = "postgres"  # the server refuses to run as root
SETTINGS = "-c fsync=off -c listen_addresses='' -c max_connections=40 -c unix_socket_directories="
ACCESS = "local all locked scram-sha-256\nlocal all all trust\n"


@dataclass(frozen=True)
class Cluster:
    """A server's data, and its programs.

    Args:
        folder: where its data, log and socket are.
        programs: where initdb and pg_ctl are.
    """

    folder: Path
    programs: Path

    @property
    def url(self) -> URL:
        """Where it serves."""
        query = {"host": str(self.folder)}
        return URL.create("postgresql+psycopg", "planish", database="postgres", query=query)

    def start(self) -> None:
        """Start the server, and wait until it serves."""
        self._control("-l", "log", "-o", f"{SETTINGS}{self.folder}", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server.

        Args:
            mode: "smart" waits for its clients, "fast" sends them away, "immediate" is a crash.
        """
        self._control("-m", mode, "stop")

    def initialise(self) -> None:
        """Make the data."""
        self._run(self.programs / "initdb", "-D", "data", "-U", "planish", "-A", "trust", "--no-sync")
        (self.folder / "data/pg_hba.conf").write_text(ACCESS)

    def _control(self, *words: str) -> None:
        self._run(self.programs / "pg_ctl", "-D", "data", "-w", *words)

    def _run(self, *command: str | Path) -> None:
        account = pwd.getpwnam(ACCOUNT) if os.geteuid() == 0 else None
        ended = subprocess.run(
            command,
            cwd=self.folder,
            user=account and account.pw_uid,
            group=account and account.pw_gid,
            extra_groups=[] if account else None,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ended.returncode:
            log = self.folder / "log"
            raise RuntimeError(f"{command[0]}: {ended.stderr}\n{log.read_text() if log.exists() else ''}")


@contextmanager
def new_cluster(programs: Path) -> Generator[Cluster]:
    """Make a server and start it; it is gone after."""
    folder = Path(tempfile.mkdtemp(prefix="planish-postgres-"))  # short, as a socket's path must be
    if os.geteuid() == 0:
        shutil.chown(folder, ACCOUNT, ACCOUNT)
    cluster = Cluster(folder, programs)
    try:
        cluster.initialise()
        cluster.start()
        yield cluster
        cluster.stop()
    finally:
        shutil.rmtree(folder)


def installed() -> Path | None:
    """Find the programs of a PostgreSQL server; None where it is not installed."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((p.parent for p in versions), key=lambda p: int(p.parent.name), default=None)
