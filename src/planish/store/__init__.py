"""The database of tasks, runs, trials and results: an SQLite file, or PostgreSQL for a team."""

from planish.store.opening import has_default_store, open_store, store_at
from planish.store.reader import Reader
from planish.store.schema import STARTED_BY, ResultRow, Run, RunStatus, StoredTask
from planish.store.session import HeldError
from planish.store.store import Store

__all__ = [
    "STARTED_BY",
    "HeldError",
    "Reader",
    "ResultRow",
    "Run",
    "RunStatus",
    "Store",
    "StoredTask",
    "has_default_store",
    "open_store",
    "store_at",
]
