"""Who may use a file: Debian's machine-readable copyright file (DEP-5)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

UNKNOWN = "unknown"
_FIELD = re.compile(r"^(Files|License):[ \t]*(.*(?:\n[ \t].*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Licences:
    """The licences of a package's files.

    Args:
        rules: a pattern of paths and a licence's short name; the last rule that fits a path counts.
    """

    rules: Sequence[tuple[re.Pattern[str], str]]

    def of(self, path: str) -> str:
        """Give the short name for a path within the package: "MIT", "GPL-2+ or MIT"; else "unknown"."""
        return next((name for pattern, name in reversed(self.rules) if pattern.fullmatch(path)), UNKNOWN)


def read_licences(tree: Path) -> Licences:
    """Read debian/copyright of an unpacked package; where it is missing or free text, nothing is known."""
    file = tree / "debian" / "copyright"
    return parse_licences(file.read_text(errors="replace") if file.is_file() else "")


def parse_licences(text: str) -> Licences:
    """Read the stanzas of a copyright file that have `Files` and `License`."""
    rules: list[tuple[re.Pattern[str], str]] = []
    for stanza in re.split(r"\n[ \t]*\n", text):
        fields = dict(_FIELD.findall(stanza))
        names = fields.get("License", "").strip().splitlines()
        if names and "Files" in fields:
            name = " ".join(names[0].split())
            rules += [(_pattern(glob), name) for glob in fields["Files"].split()]
    return Licences(rules)


def _pattern(glob: str) -> re.Pattern[str]:
    """Make a DEP-5 glob an expression: only `*`, `?` and a backslash are special, and `*` takes slashes."""
    made = re.sub(r"\\(.)|(\*)|(\?)|([^*?\\])", _piece, glob)
    return re.compile(made, re.DOTALL)


def _piece(match: re.Match[str]) -> str:
    escaped, star, one, plain = match.groups()
    return ".*" if star else "." if one else re.escape(escaped or plain)
