"""Cache of objects by what they were made of, in a folder that processes and users may share.

It uses nothing of the rest of planish, nor does `clang.run`. A known object takes 20 ms of the processor
beyond Python's own start. To import `planish.core`, which has a disk cache and an atomic write of its own,
takes 70 to 80 ms more; the sandbox, which runs programs, 120 ms; the store's database 190 ms.

Each entry is a file of its own, which is written elsewhere and then renamed: it is whole or not there. What
is damaged is found by its checksum, and made again. Entries are of several kinds, each with a folder:
objects, manifests, searches, notes for the report of a build.
"""

from __future__ import annotations

import os

_SHARED = 0o066
"""Rights of others to a file, as far as they have them to the folder it is in."""


def atomic_write(path: str, data: bytes, mode: int = 0o666, *, shared: bool = False) -> None:
    """Write a file so that it is whole or as before, however this process ends.

    Args:
        path: where.
        data: its content.
        mode: of a new file, before the umask.
        shared: whether all users that may read its folder may read it.

    Raises:
        OSError: it cannot be written.
    """
    folder = os.path.dirname(path)
    # Not by the number of the process: those of containers repeat, and one may have left its part here.
    part = os.path.join(folder, f".planish-{os.urandom(8).hex()}.part")
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            if shared:
                own, others = os.fstat(file.fileno()).st_mode & 0o700, os.stat(folder).st_mode & _SHARED
                os.fchmod(file.fileno(), own | others)  # whatever the umask says
            file.write(data)
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
        except OSError:
            pass  # an interrupt came when it was there already, or it was never made
        raise


try:
    from _blake2 import blake2b  # hashlib loads OpenSSL besides, which takes 3 ms
except ImportError:  # another interpreter than CPython
    from hashlib import blake2b

_MAGIC = b"planish-cc-11"
"""Begins each entry. A version whose searches make other code has another number: entries are made anew."""
_OBJECTS = "objects"
_LARGEST = 8 << 20  # 2 GiB in all


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
        largest: bytes of one of the 256 folders of a kind.

    Attributes:
        folder: the same.
        error: what went wrong with it first; empty where nothing did.
    """

    def __init__(self, folder: str, largest: int = _LARGEST) -> None:
        self.folder, self.error, self._largest = folder, "", largest

    def get(self, key: str) -> CachedObject | None:
        """Return an object; None where it is not there."""
        if (data := self.read(_OBJECTS, key)) is None:
            if os.path.exists(path := self._path(_OBJECTS, key)):
                self.note(f"has a damaged entry, {path}; it is created again")
            return None
        head, _, rest = data.partition(b"\n")
        seconds, evaluations, has_diagnostics, size = head.split(b" ")
        about, code = rest[: int(size)], rest[int(size) :]
        return CachedObject(
            float(seconds), int(evaluations), about, code, has_diagnostics=has_diagnostics == b"1"
        )

    def keep(self, key: str, entry: CachedObject) -> None:
        """Keep an object."""
        head = f"{entry.seconds!r} {entry.evaluations} {entry.has_diagnostics:d} {len(entry.about)}\n"
        self.put(_OBJECTS, key, head.encode() + entry.about + entry.code)

    def read(self, kind: str, key: str) -> bytes | None:
        """Return an entry of a kind; None where it is not there, or damaged."""
        try:
            with open(self._path(kind, key), "rb") as file:
                return contents(file.read())
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

    def put(self, kind: str, key: str, data: bytes) -> None:
        """Keep an entry of a kind; older ones are removed where the folder is full; errors are noted."""
        path = self._path(kind, key)
        try:
            self.make_folder(os.path.dirname(path))
            atomic_write(path, b"%b %b\n%b" % (_MAGIC, digest(data).encode(), data), shared=True)
        except OSError as error:
            if not os.path.exists(path):  # else it is another user's, and as good
                self.note(f"cannot be written: {error}")
        self._make_room(os.path.dirname(path), path)

    def folder_of(self, kind: str, name: str) -> str:
        """Make a folder for another cache; return its path, empty where it cannot be made."""
        path = f"{self.folder}/{kind}/{name}"
        try:
            self.make_folder(path)
        except OSError as error:
            self.note(f"cannot be written: {error}")
            return ""
        return path

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

    def _make_room(self, folder: str, newest: str) -> None:
        """Remove the oldest files of a folder that has grown too large."""
        try:
            found = sorted((e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(folder))
            size = sum(row[1] for row in found)
            for _, one, path in found:
                if size <= self._largest or path == newest:
                    break
                os.unlink(path)
                size -= one
        except OSError:
            pass  # another process removes it, or owns it

    def _path(self, kind: str, key: str) -> str:
        return f"{self.folder}/{kind}/{key[:2]}/{key[2:]}"


def open_cache() -> ObjectCache:
    """Open the cache that PLANISH_CACHE names, else the one in the user's folder of caches."""
    if named := os.environ.get("PLANISH_CACHE"):
        return ObjectCache(os.path.abspath(named))
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return ObjectCache(os.path.join(home, "planish", "cc"))


def contents(file: bytes) -> bytes | None:
    """Return the contents of a file of the cache; None where it is damaged."""
    head, _, data = file.partition(b"\n")
    return data if head.split(b" ") == [_MAGIC, digest(data).encode()] else None
