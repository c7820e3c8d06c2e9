"""Locks of runs, and leases: which run measures which candidate."""

from __future__ import annotations

import fcntl
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, text, update

from planish.core import is_locked
from planish.store.schema import leases

# The lock of a killed process may outlive it by a moment, and a reader holds one while it looks.
PATIENCE_S = 0.5
_RUNS = 0x706C616E  # "plan": the runs' part of a PostgreSQL database's advisory locks


class RunLocks(ABC):
    """Locks of the runs that are being written to."""

    def acquire(self, run_id: str) -> bool:
        """Acquire a run's lock; return whether it is held now. Harmless when it is held already."""
        deadline = time.monotonic() + PATIENCE_S
        while not (acquired := self._try_to_acquire(run_id)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return acquired

    @abstractmethod
    def _try_to_acquire(self, run_id: str) -> bool: ...

    @abstractmethod
    def release(self, run_id: str) -> None:
        """Release a run's lock."""

    @abstractmethod
    def held(self, run_ids: Iterable[str]) -> set[str]:
        """Return those of these runs that are locked, by this or another process."""

    @abstractmethod
    def close(self) -> None:
        """Release all locks; the connection ends next."""

    def may_be_shared(self) -> bool:
        """Return whether other processes may hold locks; False only where that is certain."""
        return True


class FileLocks(RunLocks):
    """Locks on files beside the SQLite file.

    Only a killed process leaves its file behind; the next writer removes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, int] = {}

    def acquire(self, run_id: str) -> bool:
        """Acquire a run's lock; see `RunLocks`."""
        if run_id not in self._files:
            self._sweep()
        return super().acquire(run_id)

    def _try_to_acquire(self, run_id: str) -> bool:
        if run_id not in self._files and (file := self._try(self._file(run_id))) is not None:
            self._files[run_id] = file
        return run_id in self._files

    def release(self, run_id: str) -> None:
        """Release a run's lock; see `RunLocks`."""
        file = self._files.pop(run_id)
        self._file(run_id).unlink(missing_ok=True)
        # A forked child may have the file open too, so closing it is not enough.
        fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)

    def close(self) -> None:
        """Release all locks; see `RunLocks`."""
        for run_id in list(self._files):
            self.release(run_id)

    def held(self, run_ids: Iterable[str]) -> set[str]:
        """Return the runs that are locked; see `RunLocks`."""
        return {run_id for run_id in run_ids if run_id in self._files or is_locked(self._file(run_id))}

    def may_be_shared(self) -> bool:
        """Return whether other processes may hold locks: there is a lock file, maybe a stale one."""
        name = self._file("").name
        with os.scandir(self._path.parent) as found:
            return any(
                each.name.startswith(name) and each.name.removeprefix(name) not in self._files
                for each in found
            )

    def _file(self, run_id: str) -> Path:
        return self._path.with_name(f"{self._path.name}-run-{run_id}")

    def _sweep(self) -> None:
        name = self._file("").name
        for path in [p for p in self._path.parent.iterdir() if p.name.startswith(name)]:
            if path.name.removeprefix(name) not in self._files and (file := self._try(path)) is not None:
                path.unlink(missing_ok=True)
                os.close(file)

    def _try(self, path: Path) -> int | None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the file before this one had the lock.
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(file)
        return None


class AdvisoryLocks(RunLocks):
    """Locks of the PostgreSQL session: the server ends them with the connection.

    A new connection after a lost one holds none; `acquire` then locks them again.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _try_to_acquire(self, run_id: str) -> bool:
        if run_id not in (mine := self._mine()) and self._call("pg_try_advisory_lock", run_id):
            mine.add(run_id)
        return run_id in mine

    def release(self, run_id: str) -> None:
        """Release a run's lock; see `RunLocks`."""
        if run_id in self._mine():
            self._call("pg_advisory_unlock", run_id)
            self._mine().discard(run_id)

    def close(self) -> None:
        """Do nothing, since the server releases them; see `RunLocks`."""

    def held(self, run_ids: Iterable[str]) -> set[str]:
        """Return the runs that are locked; see `RunLocks`."""
        query = text(
            "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND classid = :runs AND granted "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        locked = {f"{number:08x}" for number in self._connection.execute(query, {"runs": _RUNS}).scalars()}
        return locked & set(run_ids)

    def _mine(self) -> set[str]:
        return self._connection.info.setdefault("runs", set[str]())

    def _call(self, function: str, run_id: str) -> bool:
        number = int.from_bytes(bytes.fromhex(run_id), "big", signed=True)
        call = text(f"SELECT {function}(:runs, :number)")
        return bool(self._connection.execute(call, {"runs": _RUNS, "number": number}).scalar())


LEASE_S = 120.0
"""Seconds that a lease lasts at most, where its process hangs; one that is killed ends its leases at once."""
_CLAIMING = 0x706C6170  # a lock beside those of the runs

# Made once: for a single candidate, to make statements takes longer than to execute them.
_FOUND = select(leases).where(or_(leases.c.task_key == bindparam("task"), leases.c.until < bindparam("now")))
_DROP = delete(leases).where(
    leases.c.task_key == bindparam("task"), leases.c.candidate_hash == bindparam("candidate")
)
_ADD = insert(leases)


def acquire(
    connection: Connection,
    locks: RunLocks,
    run_id: str,
    task_key: str,
    hashes: Sequence[str],
    most: int,
    lease_s: float = LEASE_S,
) -> list[str]:
    """Lease candidates for a run; what it had leased before, and is not among them, is released.

    Args:
        connection: in a transaction that may write.
        locks: show which runs live.
        run_id: the run.
        task_key: its task.
        hashes: of the candidates, the most wanted first.
        most: how many may be leased.
        lease_s: how long.

    Returns:
        Those that are leased now; the others are leased by runs that live.
    """
    if connection.dialect.name == "postgresql":  # an SQLite file has one writer anyway
        # Between looking and writing another process must not lease the same; it ends with the transaction.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CLAIMING})
    now = time.time()
    found = connection.execute(_FOUND, {"task": task_key, "now": now}).all()
    current = [row for row in found if row.task_key == task_key and row.until >= now]
    owners = {row.candidate_hash: row.run_id for row in current}
    # By the runs' locks, which the kernel or the server lets go when a process dies: the lease is for those
    # that hang.
    others = set(owners.values()) - {run_id}
    living = locks.held(others) if others else set[str]()
    mine = [each for each in hashes if owners.get(each) not in living][:most]
    # What is leased already stays: a search that has much under way asks for little more each time.
    kept = {each for each in mine if owners.get(each) == run_id}
    gone = [r for r in found if r.until < now or (r.run_id not in living and r.candidate_hash not in kept)]
    if gone:
        connection.execute(_DROP, [{"task": r.task_key, "candidate": r.candidate_hash} for r in gone])
    if new := [each for each in mine if each not in kept]:
        row = {"task_key": task_key, "run_id": run_id, "until": now + lease_s}
        connection.execute(_ADD, [{**row, "candidate_hash": each} for each in new])
    return mine


def renew(connection: Connection, run_id: str, lease_s: float) -> None:
    """Extend a run's leases; those that another run has acquired since are lost to it."""
    until = time.time() + lease_s
    connection.execute(update(leases).where(leases.c.run_id == run_id).values(until=until))
