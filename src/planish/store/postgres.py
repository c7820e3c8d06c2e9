"""Opening a PostgreSQL database as the store."""

from sqlalchemy import URL, Connection, create_engine
from sqlalchemy.pool import NullPool

from planish.core import StoreError
from planish.store.failures import explained
from planish.store.location import label, secrets
from planish.store.locks import AdvisoryLocks
from planish.store.store_session import StoreSession, persist

# The server ends a connection, with the locks that it holds, soon after the other side is gone.
_KEEPALIVE = "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"


def open_postgres(url: URL, *, read_only: bool, timeout: float) -> StoreSession:
    """Connect to a database that exists.

    Args:
        url: with the driver psycopg.
        read_only: only read.
        timeout: seconds to wait for the server, and for another session's lock.

    Raises:
        StoreError: psycopg is missing, or the server cannot be reached, or it refuses. One that is starting
            up is waited for.
    """
    name, hidden = label(url), secrets(url)
    limits = f"-c lock_timeout={timeout * 1000:.0f} {_KEEPALIVE}"
    if read_only:
        limits += " -c default_transaction_read_only=on"
    try:
        engine = create_engine(_with(url, limits, max(2, round(timeout))), poolclass=NullPool)
    except ModuleNotFoundError as error:
        hint = "Install it: pip install 'planish[postgres]'."
        raise StoreError(f"the store {name} needs psycopg, which is missing here", hint) from error

    def connect(again: bool) -> Connection:
        with explained(name, connected=again, hidden=hidden):
            return engine.connect()

    connection = persist(connect)
    return StoreSession(connection, AdvisoryLocks(connection), name, read_only)


def _with(url: URL, limits: str, seconds: int) -> URL:
    """Add to a URL what it does not say itself."""
    defaults = {"connect_timeout": str(seconds), "application_name": "planish"} | dict(url.query)
    options = f"{limits} {defaults.get('options', '')}"
    return url.update_query_dict({**defaults, "options": options.strip()})
