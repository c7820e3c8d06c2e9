"""Static libraries: archives of `ar`, as GNU and BSD write them."""

from __future__ import annotations

from collections.abc import Iterator

ARCHIVE = b"!<arch>\n"
_HEAD = 60
_INDICES = ("/", "//", "/SYM64/", "__.SYMDEF")
_LONG_NAMES = "//"
_BSD = "#1/"


def members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each member, without the indices of symbols and names."""
    at, names = len(ARCHIVE), b""
    while at + _HEAD <= len(data):
        name, size = data[at : at + 16].decode("latin-1").rstrip(), int(data[at + 48 : at + 58])
        # Members begin at even offsets.
        start, at = at + _HEAD, at + _HEAD + size + size % 2
        content = data[start : start + size]
        if name == _LONG_NAMES:
            names = content
        # A slash with a number is not an index: it is the offset of a long name.
        if name.startswith("/") and name[1:].isdigit():
            name = names[int(name[1:]) :].partition(b"/\n")[0].decode("latin-1")
        elif name.startswith(_INDICES):
            continue
        # A long name of BSD's comes before the content.
        long = int(name.removeprefix(_BSD)) if name.startswith(_BSD) else 0
        if long:
            name = content[:long].rstrip(b"\0").decode("latin-1")
        yield name.removesuffix("/"), content[long:]
