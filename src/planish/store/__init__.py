"""The database of tasks, runs, trials and results: an SQLite file, or PostgreSQL for a team."""

from planish.store.failures import HeldError
from planish.store.opening import open_store, store_at
from planish.store.records import ResultRow, Run, RunStatus, StoredTask
from planish.store.store import Store
from planish.store.store_reader import Reader

__all__ = [
    "HeldError",
    "Reader",
    "ResultRow",
    "Run",
    "RunStatus",
    "Store",
    "StoredTask",
    "open_store",
    "store_at",
]
