"""Files that belong to a clang besides its program: libraries, and configuration files that add options."""

from __future__ import annotations

import os

from planish.cc.compiler import Compiler
from planish.cc.frontend import run
from planish.cc.object_cache import ObjectCache, digest

_KIND = "installations"
_MAGIC = b"planish-installation-1"
_FOLDERS = (b"System configuration file directory: ", b"User configuration file directory: ")
READ = ("HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "CLANG_NO_DEFAULT_CONFIG")
"""Variables from which the files follow, or whether they count."""
_ASK = ("-v", "-###", "-x", "c", "-c", "/dev/null")
_CLANG = b"clang version "
_DEEPEST = 9
"""Files may name others; clang refuses what names itself."""


def find_installation(compiler: Compiler, cache: ObjectCache) -> bool:
    """Set what tells a compiler's installation from another; False where it is no clang.

    Which of the configuration files clang reads follows from its name and the target. All in the folders
    where it looks are taken: that is right for any, and asks clang nothing.

    Args:
        compiler: whose it is.
        cache: keeps which files belong to it, for which clang is asked once.
    """
    variables = [os.fsencode(os.environ.get(name, "")) for name in READ]
    key = digest(compiler.identity.encode(), *variables)
    check, _, data = (cache.read(_KIND, key) or b"").partition(b"\n")
    if check != _check(data):
        data = _asked(compiler)
        if not data:
            return False
        cache.put_plain(_KIND, key, _check(data) + b"\n" + data)
    folders, _, programs = data.partition(b"\0\0")
    parts = [*variables, *map(_stamp, programs.split(b"\0"))]
    own = os.fsencode(os.path.dirname(os.path.realpath(compiler.path)))
    for folder in (own, *filter(None, folders.split(b"\0"))):
        for path in _listed(folder):
            parts += _content(path, _DEEPEST)
    compiler.installation = digest(*parts)
    return True


def _check(data: bytes) -> bytes:
    return digest(_MAGIC, data).encode()


def _asked(compiler: Compiler) -> bytes:
    """Ask clang for the folders of its configuration, its program and libraries; empty where it is no clang.

    The program is another one than the compiler's where that is a script, or a wrapper.
    """
    ended = run([*compiler.command, *_ASK])
    if _CLANG not in ended.messages:
        return b""
    lines = ended.messages.splitlines()
    folders = [line[len(said) :] for line in lines for said in _FOLDERS if line.startswith(said)]
    program = next((line.split(b'"')[1] for line in lines if b'"-cc1"' in line), b"")
    # The loader lists what it would load, and does not start the program.
    loaded = run([os.fsdecode(program)], LD_TRACE_LOADED_OBJECTS="1").written if program else b""
    words = [word for line in loaded.splitlines() for word in line.split() if word.startswith(b"/")]
    return b"\0\0".join([b"\0".join(folders), b"\0".join([program, *words])])


def _stamp(path: bytes) -> bytes:
    """Name a file, and which version of it is there."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    return b"%b %d %d" % (path, found.st_size, found.st_mtime_ns)


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
