"""Location of the store: the default, a file, or a URL; and how it is named to people."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from planish.core import StoreError
from planish.core.redaction import redact

_FORMS = "Name a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE."
_ESCAPES = "In a user or password, write @ as %40, / as %2F, : as %3A, ? as %3F and % as %25."
_FILE = "Write ./FILE where it is the name of a file."

# What a mistyped URL begins with; a file that is named so can be given as ./FILE.
_URL_LIKE = r"\s*(?:[a-z][a-z0-9+.-]*:/|postgres\w*(?:\+\w+)?:|sqlite\w*:|[^\s/]*=)"
_EXPLICIT = ("/", "./", "../", "~")
# Of a query, only these name the server, and only where they cannot have swallowed something else.
_SHOWN = ("host", "port")
_PLAIN = r"[\w./:,-]*"
_NAME = r"[^/:@=&;?\s]*"
_PORTS = range(1, 65536)


def locate(location: str | Path | None) -> Path | URL:
    """Return which store is meant.

    Args:
        location: a file or a URL; None for the environment's PLANISH_STORE, else the user's data folder.

    Returns:
        The absolute path of an SQLite file, or the URL of a PostgreSQL database.

    Raises:
        StoreError: it names no database that can be a store. The text is not repeated: it may hold a
            password.
    """
    location = location or os.environ.get("PLANISH_STORE") or _default()
    if isinstance(location, Path):
        return location.expanduser().absolute()
    if "://" in location:
        return _of_url(location)
    if _is_doubtful(location):
        raise StoreError("the store's name is neither a file's nor a URL", f"{_FORMS} {_FILE}")
    return Path(location).expanduser().absolute()


def label(url: URL) -> str:
    """Return a database's URL as it is shown to people: without anything that may be a secret.

    The user is shown beside a password alone: otherwise it may be a password whose user was forgotten.
    """
    query = {name: value for name, value in url.query.items() if _is_shown(name, value)}
    user = url.username if url.password else None
    return URL.create("postgresql", user, None, url.host, url.port, url.database, query).render_as_string()


def secrets(url: URL) -> Sequence[str]:
    """Return the parts of a database's URL that its label leaves out, and that nothing else may repeat."""
    hidden = [url.password or url.username or "", *_values(url)]
    shown = label(url)
    return [part for part in hidden if part and part not in shown]


def _of_url(text: str) -> Path | URL:
    url = _parsed(text)
    match url.get_backend_name():
        case "sqlite" if url.database:
            if url.host or url.username or url.password or url.query:
                raise _malformed()
            return Path(url.database).expanduser().absolute()
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise StoreError("the store's URL is of a kind of database that cannot be one", _FORMS)


def _parsed(text: str) -> URL:
    try:
        url = make_url(text)
        text.encode()
    except (ArgumentError, ValueError):
        # Without its cause, which repeats parts of the URL.
        raise _malformed() from None
    front, at, rest = text.partition("@")
    # Of "?password=p@ss", the front is no user's and the rest no host's.
    if (at and "?" in front) or "@" in rest or not _is_sound(url):
        raise _malformed()
    return url


def _is_sound(url: URL) -> bool:
    """Return whether no part of a URL can be a part of a password that is not escaped."""
    file = url.get_backend_name() == "sqlite"
    named = file or all(
        re.fullmatch(_NAME, name) for name in ((url.host or "").replace(":", ""), url.database or "")
    )
    once = all(isinstance(value, str) for value in url.query.values())
    port = url.port is None or url.port in _PORTS
    return named and once and port and url.password != "" and "\0" not in (url.database or "")


def _malformed() -> StoreError:
    return StoreError("the store's URL is malformed", f"{_FORMS} {_ESCAPES}")


def _is_doubtful(text: str) -> bool:
    """Return whether a text resembles a URL or a connection string, which may hold a password."""
    stray = "@" in text and not text.startswith(_EXPLICIT)
    return stray or redact(text) != text or re.match(_URL_LIKE, text, re.IGNORECASE) is not None


def _is_shown(name: str, value: object) -> bool:
    return name in _SHOWN and isinstance(value, str) and re.fullmatch(_PLAIN, value) is not None


def _values(url: URL) -> Sequence[str]:
    return [str(value) for name, value in url.query.items() if not _is_shown(name, value)]


def _default() -> Path:
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "planish.db"
