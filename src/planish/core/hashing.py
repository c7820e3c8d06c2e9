"""Canonical JSON, content hashes and random streams: the same in every process; the version of documents.

What the version of JSON documents that commands print and exports write promises is in
docs/reference/stability.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.random import Generator


_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def canonical_json(value: Any) -> str:
    """Write a value as JSON with sorted keys and no spaces.

    Args:
        value: numbers, strings, booleans, None, and lists, tuples or string-keyed mappings of these.

    Returns:
        The text; equal values give equal texts.

    Raises:
        ValueError: a number is infinite or not a number.
        TypeError: a value has no JSON form.
    """
    return _encode(value)


def content_hash(text: str) -> str:
    """Name a text by the first 128 bits of its SHA-256, as 32 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def rng(seed: int, *index: int) -> Generator:
    """Make the generator that belongs to a seed and a position in the run.

    Args:
        seed: the run's seed, not negative.
        index: where in the run: a candidate's index, or several numbers that name the position.
    """
    import numpy as np

    return np.random.default_rng((seed, *index))


SCHEMA_VERSION = 1
"""It is raised when a key of any document is removed or changes its meaning; a new key does not raise it."""


def versioned(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its version as the first key, `schema_version`."""
    return {"schema_version": SCHEMA_VERSION, **document}
