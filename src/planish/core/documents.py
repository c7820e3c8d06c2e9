"""Version of the JSON documents that commands print and exports write.

What it promises is in docs/reference/stability.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEMA_VERSION = 1
"""It is raised when a key of any document is removed or changes its meaning; a new key does not raise it."""


def versioned(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its version as the first key, `schema_version`."""
    return {"schema_version": SCHEMA_VERSION, **document}
