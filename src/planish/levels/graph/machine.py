"""This machine as the level sees it: libraries, providers, energy, temperature and memory."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from planish.core import PlanishError, Target, TargetError, processor, usable_cores
from planish.core.installation import install_command
from planish.levels.graph.feeds import Feed
from planish.levels.graph.installed import OPENVINO, has_openvino, session_settings, versions
from planish.levels.graph.sessions import PROVIDERS, RefusedError, SessionSettings, open_session
from planish.sandbox.confinement import sandbox_status
from planish.sandbox.tool import run_tool

_RAPL = Path("/sys/class/powercap")
_HWMON = Path("/sys/class/hwmon")
_MICRO, _MILLI = 1e-6, 1e-3

_METERED = ("cpu", "cuda")
"""Devices that models run on."""
QUANTITIES = ("power", "energy", "temperature")
NOT_HERE = "not available here"


@dataclass(frozen=True)
class Counter:
    """Something that can be read while a model runs.

    Args:
        read: returns joules since some time (energy), watts (power) or degrees Celsius (temperature).
        cumulative: whether it counts up: power then is the difference by the time.
    """

    source: str
    read: Callable[[], float]
    cumulative: bool = False


def counters(provider: str = "cpu", rapl: Path = _RAPL, hwmon: Path = _HWMON) -> Mapping[str, Counter]:
    """Find the counters of this machine: `energy` (joules), and `temperature` (degrees Celsius).

    Args:
        rapl: the kernel's folder of power domains.
        hwmon: the kernel's folder of sensors.

    Returns:
        Quantity to counter; what the machine lacks is missing.
    """
    if provider == "cuda":
        return _card_counters()
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


def _card_counters() -> Mapping[str, Counter]:
    """Find what the first GPU of `CUDA_VISIBLE_DEVICES` reports, or the machine's first GPU."""
    try:
        nvml = import_module("pynvml")
    except ModuleNotFoundError:
        return {}
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"

    def read(energy: bool) -> float:
        # Opened for each reading and closed after it, so that processes forked in between may read too.
        nvml.nvmlInit()
        try:
            # The variable may name a GPU by its UUID, too.
            by_index = nvml.nvmlDeviceGetHandleByIndex
            gpu = by_index(int(first)) if first.isdigit() else nvml.nvmlDeviceGetHandleByUUID(first)
            if energy:
                return nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) * _MILLI
            return float(nvml.nvmlDeviceGetTemperatureV(gpu, nvml.NVML_TEMPERATURE_GPU))
        finally:
            nvml.nvmlShutdown()

    found: dict[str, Counter] = {}
    for name in ("energy", "temperature"):
        counter = Counter("NVML", partial(read, name == "energy"), cumulative=name == "energy")
        with suppress(nvml.NVMLError):
            counter.read()
            found[name] = counter
    return found


class _Packages:
    """Adds up what processors took; each of their counters begins again at 0 from time to time."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files
        limits = [file.with_name("max_energy_range_uj") for file in files]
        self._ranges = [_number(limit) if _readable(limit) else 0.0 for limit in limits]
        self._last = [_number(file) for file in files]
        self._total = sum(self._last)

    def joules(self) -> float:
        """Return joules since some time; to be asked at least once in each round of a counter."""
        now = [_number(file) for file in self._files]
        for new, old, span in zip(now, self._last, self._ranges, strict=True):
            # The counter has started anew from zero.
            self._total += new - old if new >= old else new - old + span
        self._last = now
        return self._total * _MICRO


def counter_facts(there: Sequence[Mapping[str, Counter]] | None = None) -> Mapping[str, str]:
    """Return which quantity is read from where; by default by the counters of the processor and the GPU."""
    there = [counters(provider) for provider in _METERED] if there is None else there
    found = {
        name: ", ".join(found[name].source for found in there if name in found) or NOT_HERE
        for name in ("energy", "temperature")
    }
    return {"power": found["energy"], **found}


class Meter:
    """Reads counters around a run; by default those of what models run on, where a quantity is wanted."""

    def __init__(
        self, wanted: frozenset[str], provider: str = "cpu", there: Mapping[str, Counter] | None = None
    ) -> None:
        if there is None:
            there = counters(provider) if wanted & set(QUANTITIES) else {}
        self._energy = there.get("energy") if wanted & {"power", "energy"} else None
        self._heat = there.get("temperature") if "temperature" in wanted else None
        self._began, self._joules = 0.0, 0.0

    def begin(self) -> None:
        """Read what counts up."""
        self._began = time.monotonic()
        self._joules = self._energy.read() if self._energy else 0.0

    def end(self, calls: float) -> dict[str, float]:
        """Return the energy, power and temperature of a run, where they can be read."""
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


def _number(path: Path) -> float:
    return float(path.read_text(encoding="ascii"))


def graph_target(cores: int, session: Mapping[str, str], *, providers: bool = False) -> Target:
    """Describe this machine, and the session that models run in.

    Raises:
        TargetError: the machine has fewer cores, a library or a runtime is missing, or it has no CUDA.
    """
    there = usable_cores()
    if not 1 <= cores <= there:
        raise TargetError(f"{cores} cores requested, this machine has {there}", f"Use cores={there} at most.")
    settings = session_settings(session)
    if settings["provider"] == "cuda":
        import onnxruntime

        if PROVIDERS["cuda"][0] not in onnxruntime.get_available_providers():
            raise TargetError("this ONNX Runtime has no CUDA", "Install onnxruntime-gpu in its place.")
    second: Mapping[str, str] = {}
    if providers or settings["provider"] == OPENVINO:
        if not has_openvino():
            what = "OpenVINO is not installed"
            raise TargetError(what, f"Install it with: {install_command('openvino')}.")
        second = {OPENVINO: version(OPENVINO)}
    return Target(processor(), frozenset(), cores, {**versions(), **second, **settings})


def machine_facts() -> Mapping[str, str]:
    """Return the processor, the libraries, the passes, and the counters of power and heat of this machine."""
    from planish.levels.graph.passes import passes

    try:
        libraries = versions()
    except PlanishError as error:
        return {"processor": processor(), "onnxruntime": str(error)}
    rest = {"passes": str(len(passes())), **counter_facts(), "candidates are confined by": sandbox_status()}
    return {"processor": processor(), **libraries, **rest}


_KIB = 1024
_CALLS = 2
_TIMEOUT_S = 60.0


def peak_memory(
    model: Path, settings: SessionSettings, disabled: Collection[str], feed: Feed, *, as_it_is: bool = False
) -> float:
    """Return the most memory (MiB) that loading and running a model takes beyond the process's own.

    Raises:
        RefusedError: it does not run.
    """
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "feed.npz"
        np.savez(arrays, *feed.values())  # not by name: an input may be called as a parameter of `savez` is
        request = {
            "model": str(model),
            "inputs": [(name, array.dtype.name) for name, array in feed.items()],
            "settings": asdict(settings),
            "disabled": sorted(disabled),
            "feed": str(arrays),
            "as_it_is": as_it_is,
        }
        command = [sys.executable, "-P", "-m", "planish.levels.graph.machine", json.dumps(request)]
        try:
            ran = run_tool(command, seconds=_TIMEOUT_S)
        except TimeoutError as error:
            raise RefusedError(f"it did not run within {_TIMEOUT_S:g} s") from error
    if ran.code:
        raise RefusedError((ran.message.splitlines() or [f"exit code {ran.code}"])[-1])
    return float(ran.output)


def _measure_peak(request: Mapping[str, Any]) -> float:
    import numpy as np

    loaded = np.load(request["feed"])
    settings = SessionSettings(**request["settings"])
    # The runtime's own memory is not the model's, nor what knows numbers that NumPy does not.
    import_module("openvino" if settings.elsewhere else "onnxruntime")
    arrays = [loaded[name] for name in loaded.files]
    if any(array.dtype.kind == "V" for array in arrays):
        import_module("onnx")
    feed = {name: array.view(dtype) for array, (name, dtype) in zip(arrays, request["inputs"], strict=True)}
    before = _most_kib()
    session = open_session(
        Path(request["model"]), settings, request["disabled"], as_it_is=request["as_it_is"]
    )
    for _ in range(_CALLS):
        session.run(feed)
    return (_most_kib() - before) / _KIB


def _most_kib() -> int:
    """Read the largest resident set so far, in KiB; `getrusage` begins with what the parent had on Linux."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    sys.stdout.write(str(_measure_peak(json.loads(sys.argv[1]))))
