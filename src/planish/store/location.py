"""Where the store is: the default, a file, or a URL."""

import os
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from planish.core import StoreError

_FORMS = "Give a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE."


def locate(place: str | Path | None) -> Path | URL:
    """Tell which store is meant.

    Args:
        place: a file or a URL; None for the environment's PLANISH_STORE, else the user's data folder.

    Returns:
        The absolute path of an SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StoreError: the URL is of no database that can be a store.
    """
    place = place or os.environ.get("PLANISH_STORE") or _default()
    if isinstance(place, Path) or "://" not in place:
        return Path(place).expanduser().absolute()
    scheme = place.partition("://")[0]
    try:
        url = make_url(place)
    except (ArgumentError, ValueError) as error:
        # Not as it is written: a URL may hold a password.
        raise StoreError(f"the store's URL, {scheme}://..., is malformed", _FORMS) from error
    match url.get_backend_name():
        case "sqlite" if url.database:
            return Path(url.database).expanduser().absolute()
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise StoreError(f"{scheme}:// names no store", _FORMS)


def _default() -> Path:
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "planish.db"
