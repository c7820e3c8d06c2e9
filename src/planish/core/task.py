"""Programs, targets, objectives, and the task that binds them; this machine as a target."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol

from planish.core.hashing import canonical_json, content_hash

if TYPE_CHECKING:
    from typing_extensions import TypeVar


class Program(Protocol):
    """Program to be optimized; immutable."""

    @property
    def level(self) -> str:
        """The name of the level that it belongs to."""
        ...

    @property
    def text(self) -> str:
        """Its canonical text, which the level's `read` reads back."""
        ...


if TYPE_CHECKING:
    # A level's own class of programs; any where none is named, as in code for all levels.
    ProgramT = TypeVar("ProgramT", bound=Program, default=Any)
    ProgramT_co = TypeVar("ProgramT_co", bound=Program, default=Any, covariant=True)
else:  # Python has had defaults since 3.13
    from typing import TypeVar

    ProgramT = TypeVar("ProgramT")
    ProgramT_co = TypeVar("ProgramT_co", covariant=True)


@dataclass(frozen=True)
class Objective:
    """A named quantity to improve.

    Args:
        name: as in the values of an outcome (`time_s`, `instructions`, `error`).
        unit: for people; empty for a count or a ratio.
        direction: "down" when less is better.
        exact: whether measuring it again always gives the same value: a count, not a time.
        share: whether it is a share of wrong things, from 0 to 1: then half as many right ones are twice as
            bad too. The store does not keep it.
    """

    name: str
    unit: str = ""
    direction: Literal["down", "up"] = "down"
    exact: bool = False
    share: bool = field(default=False, compare=False, kw_only=True)

    def cost(self, value: float) -> float:
        """Return the value so that less is always better."""
        return value if self.direction == "down" else -value


@dataclass(frozen=True)
class Cache:
    """A cache of one core, or one that cores share.

    Args:
        level: 1 for the nearest.
        size: in bytes.
        line: bytes of a line.
    """

    level: int
    size: int
    line: int = 64


@dataclass(frozen=True)
class Machine:
    """Features of a processor; spaces and code generators read them from the target.

    Args:
        vector_bytes: of a vector register.
        vector_registers: how many there are.
        caches: of data, the nearest first.
    """

    vector_bytes: int
    vector_registers: int
    caches: tuple[Cache, ...] = ()

    def cache(self, level: int) -> Cache | None:
        """Find the cache of a level; None where nothing is known of it."""
        return next((cache for cache in self.caches if cache.level == level), None)

    def lanes(self, itemsize: int) -> int:
        """Count the elements of a number of bytes in a vector register."""
        return max(1, self.vector_bytes // itemsize)


@dataclass(frozen=True)
class Target:
    """Target of a program: everything of the machine that changes the code or its speed.

    Args:
        processor: the model's name, as the system reports it.
        features: instruction sets and the like, in any order.
        cores: how many may be used.
        toolchain: name to version of all that makes the code.
        machine: what the processor of that name has; None where it is not known, as for a stored target. It
            follows from the rest, so that it is neither in the text nor compared.
    """

    processor: str
    features: frozenset[str] = frozenset()
    cores: int = 1
    toolchain: Mapping[str, str] = field(default_factory=dict[str, str])
    machine: Machine | None = field(default=None, compare=False)

    @cached_property
    def text(self) -> str:
        """The canonical JSON of the target."""
        return canonical_json(
            {
                "processor": self.processor,
                "features": sorted(self.features),
                "cores": self.cores,
                "toolchain": dict(self.toolchain),
            }
        )

    @staticmethod
    def of_json(record: Mapping[str, Any]) -> "Target":
        """Read the JSON of `text` back; raises LookupError or TypeError where it is not that."""
        known: dict[str, Any] = {**record, "features": frozenset(record["features"])}
        return Target(**known)


@dataclass(frozen=True)
class Task(Generic[ProgramT_co]):
    """A program, where it runs, and what is to be improved.

    Args:
        program: what is optimized; `Task[TensorProgram]` is a task of the level `loops`.
        target: where it runs.
        objectives: at least one; the first leads where one number is needed.
        level_version: changes whenever the level's code generation or measuring does.
    """

    program: ProgramT_co
    target: Target
    objectives: tuple[Objective, ...]
    level_version: str

    @property
    def level(self) -> str:
        """The name of the program's level."""
        return self.program.level

    @cached_property
    def text(self) -> str:
        """The canonical JSON that identifies the task."""
        return canonical_json(
            {
                "level": self.level,
                "level_version": self.level_version,
                "program": self.program.text,
                "target": self.target.text,
                "objectives": [[o.name, o.unit, o.direction] for o in self.objectives],
            }
        )

    @cached_property
    def key(self) -> str:
        """The content hash of the text, under which the store keeps the trials."""
        return content_hash(self.text)


# This machine

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def usable_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def processor() -> str:
    """Return the processor's model, as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    wanted = ("model name", "cpu family", "model\t")
    found = {
        line.split(":")[0].strip(): line.split(":")[1].strip() for line in lines if line.startswith(wanted)
    }
    name = found.get("model name") or platform.processor() or platform.machine()
    return f"{name} (family {found['cpu family']} model {found['model']})" if "model" in found else name


@cache
def cpu_features() -> frozenset[str]:
    """List the processor's feature flags; empty where they cannot be had or it is not an x86-64 processor."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return frozenset()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), "")
    return frozenset(flags.partition(":")[2].split())


@cache
def caches(folder: Path = CACHES) -> tuple[Cache, ...]:
    """List the caches of data of a core, the nearest first; empty where the system does not report them."""
    found: list[Cache] = []
    for index in folder.glob("index*"):
        with suppress(OSError, ValueError):
            if (index / "type").read_text().strip() != "Instruction":
                level, line = (int((index / name).read_text()) for name in ("level", "coherency_line_size"))
                size = int((index / "size").read_text().strip().removesuffix("K")) << 10
                found.append(Cache(level, size, line))
    return tuple(sorted(found, key=lambda cache: cache.level))
