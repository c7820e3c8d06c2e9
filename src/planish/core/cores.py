"""The processor of this machine, and its cores."""

import os
import platform
from functools import cache
from pathlib import Path


def usable_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def processor() -> str:
    """Name the processor's model, as the system reports it."""
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
