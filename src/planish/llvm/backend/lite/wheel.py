"""Where llvmlite is installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Wheel:
    """An installed llvmlite: its version, and its shared library."""

    version: str
    library: Path


def find() -> Wheel | None:
    """Find llvmlite, without importing it."""
    spec = find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    return Wheel(version("llvmlite"), Path(spec.origin).parent / "binding" / "libllvmlite.so")
