"""The processor of this machine, its features, its cores and its caches."""

import os
import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

from planish.core.task import Cache

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
    """List the processor's feature flags; empty where they cannot be had or it is no x86-64."""
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
