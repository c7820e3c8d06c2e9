"""The database of tasks, runs, trials and results: an SQLite file, or PostgreSQL for a team."""

from planish.store.failures import HeldError
from planish.store.opening import open_store, store_at
from planish.store.reading import Reader
from planish.store.records import ResultRow, Run, RunStatus, StoredTask
from planish.store.store import Store

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
