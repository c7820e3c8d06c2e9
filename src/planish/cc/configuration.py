"""clang's configuration files: options that stand in no command line, and that an object follows from too."""

from __future__ import annotations

import os

from planish.cc.compiler import Compiler
from planish.cc.frontend import run
from planish.cc.object_cache import ObjectCache, digest

_KIND = "configuration"
_MAGIC = b"planish-configuration-1"
_SAID = (b"System configuration file directory: ", b"User configuration file directory: ")
_DEEPEST = 9
"""Files may name others; clang refuses what names itself."""


def configuration(compiler: Compiler, cache: ObjectCache) -> str:
    """Name what clang's configuration files say; empty where there are none, as nearly always.

    Which of them clang reads follows from its name and the target. All in the folders where it looks are
    taken: that is right for any, and asks clang nothing.

    Args:
        compiler: whose they are.
        cache: keeps the folders, for which clang is asked once.
    """
    parts: list[bytes] = []
    for folder in _folders(compiler, cache):
        for path in _listed(folder):
            parts += _content(path, _DEEPEST)
    return digest(*parts) if parts else ""


def _folders(compiler: Compiler, cache: ObjectCache) -> list[bytes]:
    own = os.fsencode(os.path.dirname(os.path.realpath(compiler.path)))
    key = digest(compiler.identity.encode(), os.fsencode(os.environ.get("HOME", "")))
    check, _, data = (cache.read(_KIND, key) or b"").partition(b"\n")
    if check != _check(data):
        data = b"\n".join(_asked(compiler))
        cache.put_plain(_KIND, key, _check(data) + b"\n" + data)
    return [own, *filter(None, data.split(b"\n"))]


def _check(data: bytes) -> bytes:
    return digest(_MAGIC, data).encode()


def _asked(compiler: Compiler) -> list[bytes]:
    """Ask clang where it looks for them beside its own folder."""
    lines = run([*compiler.command, "-v"]).messages.splitlines()
    return [line[len(said) :] for line in lines for said in _SAID if line.startswith(said)]


def _listed(folder: bytes) -> list[bytes]:
    try:
        return sorted(folder + b"/" + name for name in os.listdir(folder) if name.endswith(b".cfg"))
    except OSError:
        return []


def _content(path: bytes, depth: int) -> list[bytes]:
    """Give a file's name and content, and those of the files that it names."""
    try:
        with open(path, "rb", 0) as file:
            data = file.read()
    except OSError:
        return [path]
    parts = [path, data]
    for word in data.split() if depth else ():
        if word.startswith(b"@"):
            parts += _content(os.path.join(os.path.dirname(path), word[1:].strip(b"\"'")), depth - 1)
    return parts
