"""What each run is measuring just now, so that no two processes measure the same at once."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, or_, select, text, update

from planish.store.locks import RunLocks
from planish.store.schema import claims

LEASE_S = 120.0
"""Seconds that a claim lasts at most, where its process hangs; one that is killed ends its claims at once."""
_CLAIMING = 0x706C6170  # a lock beside those of the runs


def claim(
    connection: Connection, locks: RunLocks, run_id: str, task_key: str, hashes: Sequence[str], most: int
) -> list[str]:
    """Claim candidates for a run, in place of what it had claimed before.

    Args:
        connection: in a transaction that may write.
        locks: tell which runs live.
        run_id: the run.
        task_key: its task.
        hashes: of the candidates, the most wanted first.
        most: how many may be claimed.

    Returns:
        Those that are claimed now; the others are claimed by runs that live.
    """
    if connection.dialect.name == "postgresql":  # an SQLite file has one writer anyway
        # Between looking and writing another process must not claim the same; it ends with the transaction.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _CLAIMING})
    now = time.time()
    connection.execute(delete(claims).where(or_(claims.c.run_id == run_id, claims.c.until < now)))
    same = claims.c.task_key == task_key, claims.c.candidate_hash.in_(hashes)
    owners = {row.candidate_hash: row.run_id for row in connection.execute(select(claims).where(*same))}
    living = locks.held(set(owners.values())) if owners else set[str]()
    # By the runs' locks, which the kernel or the server lets go when a process dies: the lease is for those
    # that hang.
    free = [each for each in hashes if owners.get(each) not in living][:most]
    gone = [each for each in free if each in owners]
    if gone:
        connection.execute(delete(claims).where(same[0], claims.c.candidate_hash.in_(gone)))
    if free:
        row = {"task_key": task_key, "run_id": run_id, "until": now + LEASE_S}
        connection.execute(insert(claims), [{**row, "candidate_hash": each} for each in free])
    return free


def renew(connection: Connection, run_id: str) -> None:
    """Let what a run has claimed last longer; what another one has taken since is lost to it."""
    until = time.time() + LEASE_S
    connection.execute(update(claims).where(claims.c.run_id == run_id).values(until=until))
