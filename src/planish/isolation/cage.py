"""Candidates are run in a cage: what a worker puts on itself holds for all that it starts.

So it costs nothing when a candidate is run, or a program is started, which is timed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from planish.core import EvaluatorSpec, HasCage, PlanishError
from planish.isolation import landlock, seccomp
from planish.isolation.confinement import cap_addresses, cap_the_rest
from planish.isolation.namespaces import leave_network
from planish.isolation.privileges import drop_capabilities, hide
from planish.isolation.strays import own_strays

SYSTEM = tuple(
    map(
        Path,
        [
            "/usr",
            "/lib",
            "/lib32",
            "/lib64",
            "/libx32",
            "/bin",
            "/sbin",
            "/opt",
            "/etc",
            "/proc",
            "/sys",
            "/dev/random",
            "/dev/urandom",
            "/nix",
            "/gnu",
            "/var/lib",
        ],
    )
)
"""Where a system keeps what programs need; homes, disks, terminals and /tmp are not among it."""
_DEVICES = tuple(map(Path, ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")))
_OF_CARDS = (Path("/dev/shm"), Path("~/.nv").expanduser())
FILE_BYTES = 1 << 30
"""Of the largest file that is written, where nothing else is asked for."""
_on: list[Cage] = []


@dataclass(frozen=True)
class Cage:
    """What a worker may do: compute, read what the system has, and write to its scratch.

    Args:
        reads: further files and folders that may be read.
        writes: further folders that may be written.
        programs: whether the worker starts programs, which then cannot end it. Else what is confined is
            code in the worker itself.
        card: whether a graphics card is used: its devices are written to, its driver asked by Unix sockets.
        file_bytes: of the largest file that may be written.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    programs: bool = True
    card: bool = False
    file_bytes: int = FILE_BYTES

    @staticmethod
    def for_code(writes: Iterable[Path] = (), *, card: bool = False, file_bytes: int = FILE_BYTES) -> Cage:
        """Give the cage of code that runs in the worker: it may read all files, and has nobody to tell."""
        return Cage(("/",), tuple(map(str, writes)), programs=False, card=card, file_bytes=file_bytes)

    @staticmethod
    def of(spec: EvaluatorSpec) -> Cage | None:
        """Give the cage that a spec asks for (`planish.core.HasCage`); None where it asks for none."""
        return spec.cage if isinstance(spec, HasCage) else None

    @staticmethod
    def widest(several: Iterable[Cage | None]) -> Cage | None:
        """Give one cage for evaluators of one worker; None where none of them asks for any."""
        asked = [each for each in several if each is not None]
        if not asked:
            return None
        return Cage(
            tuple(dict.fromkeys(path for each in asked for path in each.reads)),
            tuple(dict.fromkeys(path for each in asked for path in each.writes)),
            any(each.programs for each in asked),
            any(each.card for each in asked),
            max(each.file_bytes for each in asked),
        )


def enter(cage: Cage, folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """Confine this process, and all that it will start, for good.

    A thread that there is already is not confined: enter before libraries are loaded that start some.

    Args:
        cage: what may be done.
        folders: that whoever confines the process goes on to read.

    Returns:
        What does not hold, and why; empty where all does.

    Raises:
        PlanishError: it is confined already, in another way.
    """
    if _on:
        # Neither Landlock nor a filter can be taken off: a second one could only forbid more.
        if _on != [cage]:
            raise PlanishError("a worker that is confined cannot be given other files", "Use another worker.")
        return ()
    cap_the_rest(cage.file_bytes)
    if cage.programs:
        own_strays()
        cap_addresses()
    calls = seccomp.restrict(
        os.getpid() if cage.programs else None, sockets=cage.card, code=not cage.programs
    )
    network = leave_network() if calls else ""  # before Landlock, which hides what it takes
    files = landlock.restrict([*_written(cage), *((path, landlock.LOOK) for path in _read(cage, folders))])
    # After the namespace, which takes a capability to enter.
    drop_capabilities()
    hide()
    _on.append(cage)
    who = "programs are" if cage.programs else "candidates are"
    return tuple(
        f"{who} not confined by {name}: {why}"
        for name, why in (("Landlock", files), ("seccomp", calls), ("a network of their own", network))
        if why
    )


def is_confined() -> bool:
    """Tell whether this process is in a cage."""
    return bool(_on)


def _written(cage: Cage) -> Iterator[tuple[Path, int]]:
    card = [*Path("/dev").glob("nvidia*"), *_OF_CARDS] if cage.card else []
    for path in (Path(tempfile.gettempdir()), *_DEVICES, *card, *map(Path, cage.writes)):
        yield path, landlock.ALL


def _read(cage: Cage, folders: Sequence[Path]) -> Iterator[Path]:
    yield from (*SYSTEM, *_of_python(), *map(Path, cage.reads), *folders)


def told() -> str:
    """Say by what candidates, and programs, are confined here, and what is left open."""
    known = landlock.abi()
    holds = [f"Landlock (ABI {known})"] if known else []
    holds += ["seccomp"] if seccomp.is_there() else []
    holds += ["no capabilities"] if sys.platform == "linux" else []
    holds += ["limits of memory, of files' sizes and of open files"]
    lacks = [] if known else ["files and /proc (no Landlock)"]
    lacks += [] if known >= landlock.SCOPED else ["signals to your other processes"]
    lacks += [] if seccomp.is_there() else ["sessions of their own (no seccomp)"]
    lacks += ["the number of processes (root has no limit)"] if os.geteuid() == 0 else []
    return ", ".join(holds) + (f"; not held: {', '.join(lacks)}" if lacks else "")


def _of_python() -> Iterator[Path]:
    """List where the interpreter, its packages and the libraries that it has loaded are."""
    yield from map(Path, {sys.prefix, sys.base_prefix, *filter(None, sys.path)})
    yield from map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")))
    with suppress(OSError):
        # Libraries may lie anywhere, as LLVM's by PLANISH_LIBLLVM, and those beside them may be loaded later.
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        names = {line.partition("/")[2] for line in lines if ".so" in line}
        yield from {Path(f"/{name}").parent for name in names if name}
