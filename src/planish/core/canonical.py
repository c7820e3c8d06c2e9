"""Canonical JSON and content hashes: one text for one value, in every process and on every host."""

import hashlib
import json
from typing import Any

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
