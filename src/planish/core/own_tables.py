"""Tables of the user's own that default searches begin with, as files in the user's data folder.

`planish learn` writes one where it is better than what comes with planish on programs to which it was not
fitted, and removes one that is so no longer. A level reads its own.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from pathlib import Path
from typing import Any

from planish.core.files import DAMAGED, replace_text, why

FORMAT = 1
_log = logging.getLogger("planish")


def table_path(name: str) -> Path:
    """Return the file of a table, by its name: "hlo-gains"."""
    from platformdirs import user_data_path

    return user_data_path("planish", appauthor=False) / "tables" / f"{name}.json"


def write_table(name: str, version: str, rows: Any, judged: str) -> None:
    """Write a table.

    Args:
        name: its name.
        version: the level's, that its rows depend on.
        rows: what it holds, as JSON can say it.
        judged: how good it was on programs to which it was not fitted.

    Raises:
        OSError: it cannot be written.
    """
    path = table_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    held = {"format": FORMAT, "version": version, "judged": judged, "rows": rows}
    replace_text(path, json.dumps(held, separators=(",", ":")))


def read_table(name: str, version: str) -> tuple[Any, str] | None:
    """Read a table, once for each state of its file; its rows are shared, and are not to be changed.

    Args:
        name: its name.
        version: the level's; a table of another one is none.

    Returns:
        Its rows, and how good it was; None where there is none. A damaged one is reported by a warning.
    """
    path = table_path(name)
    try:
        state = path.stat()
        held = _read(path, state.st_mtime_ns, state.st_size)
        if (held["format"], held["version"]) != (FORMAT, version):
            return None
        return held["rows"], str(held["judged"])
    except FileNotFoundError:
        return None
    except DAMAGED as error:
        _log.warning("cannot read %s: %s; it is left out", path, why(error))
        return None


@lru_cache(maxsize=4)
def _read(path: Path, changed_ns: int, size: int) -> dict[str, Any]:  # noqa: ARG001
    return json.loads(path.read_text(encoding="utf-8"))
