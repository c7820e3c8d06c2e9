"""Cache of objects by what they were made of, in a folder that processes and users may share.

The store's database takes longer to open (SQLAlchemy 190 ms) than clang takes for a small file (35 ms). Each
entry is a file of its own, which is written elsewhere and then renamed: it is whole or not there. What is
damaged is found by its checksum, and made again. Beside objects, the cache has notes of compilations for the
report of a build.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as `typing` has it
if TYPE_CHECKING:
    from planish.cc.settings import CompileSettings

_SHARED = 0o066
"""What others may do with a file, as far as they may with the folder it is in."""


def share(file: int, folder: str) -> None:
    """Let others read a new file of the cache where they may read its folder, whatever the umask says."""
    os.fchmod(file, os.fstat(file).st_mode & 0o700 | os.stat(folder).st_mode & _SHARED)


def atomic_write(path: str, data: bytes, mode: int = 0o666, *, shared: bool = False) -> None:
    """Write a file so that it is whole or as before, whoever ends this process.

    Args:
        path: where.
        data: its content.
        mode: of a new file, before the umask.
        shared: whether those may read it who may read its folder.

    Raises:
        OSError: it cannot be written.
    """
    folder = os.path.dirname(path)
    # Not by the number of the process: those of containers repeat, and one may have left its part here.
    part = os.path.join(folder, f".planish-{os.urandom(8).hex()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            if shared:
                share(descriptor, folder)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        finally:
            os.close(descriptor)
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except FileNotFoundError:
            pass  # an interrupt came when it had its place already
        raise


try:
    from _blake2 import blake2b  # hashlib loads OpenSSL besides, which takes 3 ms
except ImportError:  # another interpreter than CPython
    from hashlib import blake2b

VARIABLE = "PLANISH_CACHE"
_MAGIC = "planish-cc-1"
_LARGEST = 8 << 20
"""Bytes of one of the 256 folders of objects: 2 GiB in all."""


def digest(*parts: bytes) -> str:
    """Name contents: the same for the same parts, and for no others."""
    made = blake2b(digest_size=20)
    for part in parts:
        made.update(len(part).to_bytes(8, "little"))
        made.update(part)
    return made.hexdigest()


class CachedObject:
    """A compilation as the cache keeps it.

    Attributes:
        seconds: that the search was given.
        evaluations: that it was given; 0: as many as the time allowed.
        has_diagnostics: whether clang says more than its front end does: it has to be run for that.
        about: the report of the search, as JSON.
        code: the object; empty: see `is_clangs`.
    """

    __slots__ = ("about", "code", "evaluations", "has_diagnostics", "seconds")

    def __init__(
        self, seconds: float, evaluations: int, about: bytes, code: bytes, *, has_diagnostics: bool
    ) -> None:
        self.seconds, self.evaluations, self.has_diagnostics = seconds, evaluations, has_diagnostics
        self.about, self.code = about, code

    @property
    def is_clangs(self) -> bool:
        """Return whether clang has to make the object each time: it may depend on more than is known."""
        return not self.code

    def is_enough(self, seconds: float, evaluations: int) -> bool:
        """Return whether as much was spent on it as is to be spent now."""
        tries = self.evaluations or float("inf")
        return self.seconds >= seconds and tries >= (evaluations or float("inf"))


class ObjectCache:
    """The folder.

    Args:
        folder: where; it is made when something is put there.

    Attributes:
        folder: the same.
        error: what went wrong with it first; empty where nothing did.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.error = ""

    def get(self, key: str) -> CachedObject | None:
        """Look an entry up."""
        data = self.read("objects", key)
        entry = _read(data) if data else None
        if entry is None and data is not None:
            self.note(f"has a damaged entry, {self._path('objects', key)}; it is made anew")
        return entry

    def read(self, kind: str, key: str) -> bytes | None:
        """Read a file of the cache; None where there is none."""
        try:
            with open(self._path(kind, key), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self.note(f"cannot be read: {error}")
        return None

    def names(self, kind: str, beginning: str) -> list[str]:
        """List the keys of a kind that begin so; at least the first two characters are given."""
        folder, rest = os.path.split(self._path(kind, beginning))
        try:
            return [beginning[:2] + name for name in os.listdir(folder) if name.startswith(rest)]
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            self.note(f"cannot be read: {error}")
        return []

    def put(self, key: str, entry: CachedObject) -> None:
        """Keep an entry; where the cache is full, older ones go."""
        check = digest(entry.about, entry.code)
        flags = f"{entry.seconds!r} {entry.evaluations} {entry.has_diagnostics:d}"
        head = f"{_MAGIC} {flags} {len(entry.about)} {check}\n"
        self.put_plain("objects", key, head.encode() + entry.about + entry.code)

    def put_plain(self, kind: str, key: str, data: bytes) -> None:
        """Keep a file of some kind; where there is no more room for its kind, older ones go."""
        path = self._path(kind, key)
        self.write(path, data)
        _make_room(os.path.dirname(path), path)

    def note_build(self, output: str, source: str, fields: list[bytes]) -> None:
        """Keep what was done for an object, in place of what was noted when it was made before."""
        where, what = os.fsencode(os.path.abspath(output)), os.fsencode(os.path.abspath(source))
        key = digest(where, what, str(os.geteuid()).encode())
        self.write(self._path("builds", key), b"\0".join([_MAGIC.encode(), where, what, *fields]))

    def write(self, path: str, data: bytes) -> None:
        """Write a file of the cache whole, or not at all; errors are noted."""
        try:
            self.make_folder(os.path.dirname(path))
            atomic_write(path, data, shared=True)
        except OSError as error:
            if not os.path.exists(path):  # else it is another user's, and as good
                self.note(f"cannot be written: {error}")

    def make_folder(self, path: str) -> None:
        """Make a folder of the cache as open to others as the cache itself is; a new one is the user's alone.

        Raises:
            OSError: it cannot be made.
        """
        if os.path.isdir(path):
            return
        os.makedirs(self.folder, 0o700, exist_ok=True)
        mode = os.stat(self.folder).st_mode & 0o7777
        folder = self.folder
        for name in os.path.relpath(path, self.folder).split("/"):
            folder = f"{folder}/{name}"
            try:
                os.mkdir(folder)
                os.chmod(folder, mode)
            except FileExistsError:
                pass

    def note(self, what: str) -> None:
        """Note an error."""
        self.error = self.error or f"the cache {self.folder} {what}"

    def _path(self, kind: str, key: str) -> str:
        return f"{self.folder}/{kind}/{key[:2]}/{key[2:]}"


def open_cache() -> ObjectCache:
    """Open the cache that PLANISH_CACHE names, else the one in the user's folder of caches."""
    if named := os.environ.get(VARIABLE):
        return ObjectCache(os.path.abspath(named))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return ObjectCache(os.path.join(home, "planish", "cc"))


def _read(data: bytes) -> CachedObject | None:
    head, _, rest = data.partition(b"\n")
    try:
        magic, seconds, evaluations, has_diagnostics, length, check = head.decode("ascii").split(" ")
        about, code = rest[: int(length)], rest[int(length) :]
        if magic != _MAGIC or digest(about, code) != check:
            return None
        return CachedObject(
            float(seconds), int(evaluations), about, code, has_diagnostics=has_diagnostics == "1"
        )
    except ValueError:
        return None


def _make_room(folder: str, newest: str) -> None:
    """Remove the oldest files of a folder that has grown too large."""
    try:
        found = sorted((e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(folder))
        size = sum(row[1] for row in found)
        for _, one, path in found:
            if size <= _LARGEST or path == newest:
                break
            os.unlink(path)
            size -= one
    except OSError:
        pass  # another process makes room, or owns it


def note(
    cache: ObjectCache,
    settings: CompileSettings,
    output: str,
    source: str,
    how: str,
    about: bytes,
    seconds: float,
) -> None:
    """Keep what was done, for the report of the build, and say it where that is asked for.

    Args:
        cache: where it is kept.
        settings: whether it is said.
        output: the object, or the program that it is for.
        source: the file.
        how: "searched", "known" (from the cache) or "clang" (left alone).
        about: what came of it, as JSON.
        seconds: that it took.
    """
    cache.note_build(output, source, [how.encode(), f"{seconds:.3f}".encode(), about])
    if settings.reports:
        from planish.cc.reporting import tell

        tell(source, how, about, seconds)


def left_to_clang(why: str) -> CachedObject:
    """Return what is kept of a source whose object clang has to make each time."""
    return CachedObject(float("inf"), 0, refused(why), b"", has_diagnostics=False)


def refused(why: str) -> bytes:
    """Return the report of a source that is left to clang."""
    import json

    return json.dumps({"why": why}).encode()
