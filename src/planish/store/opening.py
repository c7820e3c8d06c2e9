"""Opening a store, of either kind."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL

from planish.store.location import locate
from planish.store.sqlite import open_sqlite
from planish.store.store import Store
from planish.store.upgrade import ensure_schema


def open_store(url: str | Path | None = None, *, read_only: bool = False, timeout: float = 10.0) -> Store:
    """Open the store, making it or bringing its schema up to date where needed.

    Args:
        url: a file, `sqlite:///FILE` or `postgresql://USER@HOST/DATABASE`; None for the environment's
            PLANISH_STORE, else `planish.db` in the user's data folder.
        read_only: refuse to write; the store must exist, with this version's schema.
        timeout: seconds to wait for another process's lock before giving up.

    Returns:
        The store; close it, or use it in a `with` statement.

    Raises:
        StoreError: it cannot be opened; the message says why and the hint what to do.
    """
    place = locate(url)
    if isinstance(place, URL):
        from planish.store.postgres import open_postgres

        session = open_postgres(place, read_only=read_only, timeout=timeout)
    else:
        session = open_sqlite(place, read_only=read_only, timeout=timeout)
    try:
        ensure_schema(session, read_only=read_only)
    except BaseException:
        session.close()
        raise
    return Store(session)


@contextmanager
def store_at(store: Store | str | Path | None) -> Generator[Store]:
    """Give a store that is open as it is, and open any other for the block; raises as `open_store` does."""
    if isinstance(store, Store):
        yield store
        return
    with open_store(store) as opened:
        yield opened
