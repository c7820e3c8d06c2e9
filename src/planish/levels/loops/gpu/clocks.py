"""Clocks of a CUDA GPU: how fast it runs, and what limits it, as its driver's tool reports."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from planish.core import Target
from planish.levels.loops.gpu.devices import kind_and_name
from planish.sandbox.tool import run_tool

TOOL = "nvidia-smi"
FIELDS = (
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
    "clocks_throttle_reasons.active",
)
_SECONDS = 20.0


def read_clocks() -> Mapping[str, str]:
    """Ask for the first GPU's clocks; empty where the tool is not installed, or reports an error."""
    tool = shutil.which(TOOL)
    if not tool:
        return {}
    ran = run_tool(
        [tool, "--id=0", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader"], seconds=_SECONDS
    )
    values = [value.strip() for value in ran.output.decode(errors="replace").split(",")]
    return dict(zip(FIELDS, values, strict=True)) if not ran.code and len(values) == len(FIELDS) else {}


def record_clocks(path: Path, target: Target) -> Sequence[str]:
    """Append the clocks to a file of JSON lines; return what to report to the user.

    Args:
        path: of the file.
        target: other ones than CUDA's have no clocks.
    """
    found = read_clocks() if kind_and_name(target)[0] == "cuda" else {}
    if not found:
        return []
    with path.open("a") as file:
        file.write(json.dumps({"time": time.time(), **found}) + "\n")
    return [f"clock {found['clocks.sm']} of {found['clocks.max.sm']}, {found['temperature.gpu']} C"]
