"""Counters of power, energy and temperature, where the machine has them: of what a model runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from planish.graph.nvml import readers

_RAPL = Path("/sys/class/powercap")
_HWMON = Path("/sys/class/hwmon")
_MICRO, _MILLI = 1e-6, 1e-3

PROVIDERS = ("cpu", "cuda")
"""What models run on."""
QUANTITIES = ("power", "energy", "temperature")
NOT_HERE = "not available here"


@dataclass(frozen=True)
class Counter:
    """Something that can be read while a model runs.

    Args:
        source: what is read.
        read: gives joules since some time (energy), watts (power) or degrees Celsius (temperature).
        cumulative: whether it counts up: power then is the difference by the time.
    """

    source: str
    read: Callable[[], float]
    cumulative: bool = False


def counters(provider: str = "cpu", rapl: Path = _RAPL, hwmon: Path = _HWMON) -> Mapping[str, Counter]:
    """Find the counters of this machine: `energy` (joules), and `temperature` (degrees Celsius).

    Args:
        provider: what models run on: "cpu" (RAPL and hwmon), or "cuda" (NVML).
        rapl: the kernel's folder of power domains.
        hwmon: the kernel's folder of sensors.

    Returns:
        Quantity to counter; what the machine lacks is missing.
    """
    if provider == "cuda":
        return {name: Counter("NVML", read, name == "energy") for name, read in readers().items()}
    found: dict[str, Counter] = {}
    domains = [path for path in sorted(rapl.glob("*:[0-9]*/energy_uj")) if _readable(path)]
    # A part of a package, `intel-rapl:0:0`, has two colons: its energy is in the package's already.
    packages = [path for path in domains if path.parent.name.count(":") == 1]
    if packages:
        found["energy"] = Counter("RAPL", _Packages(packages).joules, cumulative=True)
    sensors = [path for path in sorted(hwmon.glob("*/temp*_input")) if _readable(path)]
    if sensors:
        found["temperature"] = Counter("hwmon", lambda: max(map(_number, sensors)) * _MILLI)
    return found


class _Packages:
    """Adds up what processors took; each of their counters begins again at 0 from time to time."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        self._ranges = [_range(file) for file in files]
        self._last = [_number(file) for file in files]
        self._total = sum(self._last)

    def joules(self) -> float:
        """Give joules since some time; to be asked at least once in each round of a counter."""
        now = [_number(file) for file in self._files]
        for new, old, span in zip(now, self._last, self._ranges, strict=True):
            # The counter has started anew from zero.
            self._total += new - old if new >= old else new - old + span
        self._last = now
        return self._total * _MICRO


def counter_facts() -> Mapping[str, str]:
    """Tell which quantity is read from where."""
    there = [counters(provider) for provider in PROVIDERS]
    told = {
        name: ", ".join(found[name].source for found in there if name in found) or NOT_HERE
        for name in ("energy", "temperature")
    }
    return {"power": told["energy"], **told}


class Meter:
    """Reads the counters around a run.

    Args:
        wanted: names of `QUANTITIES`; those that the machine lacks are left out.
        provider: what models run on.
    """

    def __init__(self, wanted: frozenset[str], provider: str = "cpu") -> None:
        there = counters(provider) if wanted & set(QUANTITIES) else {}
        self._energy = there.get("energy") if wanted & {"power", "energy"} else None
        self._heat = there.get("temperature") if "temperature" in wanted else None
        self._began, self._joules = 0.0, 0.0

    def begin(self) -> None:
        """Read what counts up."""
        self._began = time.monotonic()
        self._joules = self._energy.read() if self._energy else 0.0

    def end(self, calls: float) -> dict[str, float]:
        """Give what a run took.

        Args:
            calls: how often the model was called since `begin`.
        """
        found: dict[str, float] = {}
        if self._energy:
            joules, seconds = self._energy.read() - self._joules, time.monotonic() - self._began
            found |= {"energy": joules / max(calls, 1.0), "power": joules / max(seconds, 1e-9)}
        if self._heat:
            found["temperature"] = self._heat.read()
        return found


def _readable(path: Path) -> bool:
    try:
        _number(path)
    except (OSError, ValueError):
        return False
    return True


def _range(file: Path) -> float:
    limit = file.with_name("max_energy_range_uj")
    return _number(limit) if _readable(limit) else 0.0


def _number(path: Path) -> float:
    return float(path.read_text(encoding="ascii"))
