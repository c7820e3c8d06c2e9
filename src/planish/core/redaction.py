"""Redaction of passwords in text that people see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

MASK = "***"
_SHORT = 5

_PATTERNS = (
    # password=..., in a query or a connection string.
    (r"((?:passw(?:or)?d|passfile|pwd)\s*(?:=|%3D))\s*(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]+)", r"\1***"),
    # ?name=value, where the name may be a mistyped one of these.
    (r"([?&;](?!host=|port=)[\w%]+=)[^\s&'\"]+", r"\1***"),
    # //user:password@host, also where the password holds spaces, or an "@" of its own.
    (r"(//[^\s:@/'\"]*):(?:\S*@|(?!\d{1,5}(?:[/?\s]|$))\S[^@\n]*@(?:\S*@)*)", r"\1:***@"),
    # //user:password/database, where the "@" was forgotten: a port is a number.
    (r"(//[^\s:@/'\"]*):(?!\d{1,5}(?!\w)|\*)[^\s'\"]+", r"\1:***"),
    # user:password@host, where the "//" was forgotten.
    (r"([\w.+%-]+):(?!//|\*)\S*@", r"\1:***@"),
)


def redact(text: str) -> str:
    """Return a text without the passwords in its URLs and connection strings.

    It is for texts of which nothing is known, such as command lines and errors. It rather hides too much.
    """
    for pattern, masked in _compiled():
        text = pattern.sub(masked, text)
    return text


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return a text in which each of these secrets is masked; a short one only where it is a whole word."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        pattern = re.escape(secret)
        text = re.sub(pattern if len(secret) > _SHORT else rf"(?<!\w){pattern}(?!\w)", MASK, text)
    return text


@cache  # compiled at the first error: importing stays cheap
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(pattern, re.IGNORECASE), masked) for pattern, masked in _PATTERNS)
