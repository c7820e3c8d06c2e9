"""Counters of power and heat: of the kernel, and of a GPU by a driver that is made here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from levels.graph.models import convolutions, write
from planish.core import TargetError
from planish.levels.graph.level import GraphLevel
from planish.levels.graph.machine import NOT_HERE, Meter, counter_facts, counters
from planish.levels.graph.sessions import RefusedError, SessionSettings, open_session


def machine(folder: Path, microjoules: tuple[int, ...] = (3_000_000, 1_000_000)) -> tuple[Path, Path]:
    """Make the kernel's folders: packages with a core domain each, and two sensors."""
    for number, count in enumerate(microjoules):
        for name in (f"intel-rapl:{number}", f"intel-rapl:{number}:0"):
            (folder / "rapl" / name).mkdir(parents=True, exist_ok=True)
            (folder / "rapl" / name / "energy_uj").write_text(f"{count}\n")
            (folder / "rapl" / name / "max_energy_range_uj").write_text("5000000\n")
    (folder / "hwmon" / "hwmon0").mkdir(parents=True, exist_ok=True)
    for number, heat in enumerate((41_000, 55_500)):
        (folder / "hwmon" / "hwmon0" / f"temp{number}_input").write_text(f"{heat}\n")
    return folder / "rapl", folder / "hwmon"


def test_packages_are_added_and_their_parts_are_not(tmp_path: Path) -> None:
    found = counters("cpu", *machine(tmp_path))
    assert found["energy"].read() == pytest.approx(4.0)
    assert found["temperature"].read() == pytest.approx(55.5)


def test_a_meter_returns_what_a_call_took(tmp_path: Path) -> None:
    meter = Meter(frozenset({"energy", "temperature"}), there=counters("cpu", *machine(tmp_path)))
    meter.begin()
    machine(tmp_path, (3_500_000, 1_500_000))
    read = meter.end(calls=10)
    assert read["energy"] == pytest.approx(0.1)
    assert read["power"] > 0
    assert read["temperature"] == pytest.approx(55.5)


def test_a_counter_that_begins_again_loses_nothing(tmp_path: Path) -> None:
    energy = counters("cpu", *machine(tmp_path, (4_500_000, 1_000_000)))["energy"]
    before = energy.read()
    machine(tmp_path, (250_000, 1_250_000))
    assert energy.read() - before == pytest.approx(1.0)
    assert energy.read() - before == pytest.approx(1.0)


def test_what_the_machine_lacks_is_reported_once(tmp_path: Path) -> None:
    there = counters("cpu", tmp_path, tmp_path)
    assert not there
    assert counter_facts([there]) == {"power": NOT_HERE, "energy": NOT_HERE, "temperature": NOT_HERE}
    assert counter_facts().items() <= GraphLevel().machine().items()
    meter = Meter(frozenset({"energy"}), there=there)
    meter.begin()
    assert meter.end(calls=1) == {}


# Two GPUs; the second has used 10 J more each time that it is asked.
DRIVER = """
#include <string.h>
typedef struct { unsigned version, sensor; int degrees; } heat;
static int gpus[2], open_, asked;
int nvmlInitWithFlags(unsigned flags) { open_++; return flags; }
int nvmlShutdown(void) { open_--; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu)
{ if (!open_ || index > 1) return 2; *gpu = &gpus[index]; return 0; }
int nvmlDeviceGetHandleByUUID(const char *name, void **gpu)
{ if (!open_ || strcmp(name, "GPU-2")) return 6; *gpu = &gpus[1]; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj)
{ if (!open_) return 1; *mj = gpu == &gpus[1] ? 10000 * ++asked : 0; return 0; }
int nvmlDeviceGetTemperatureV(void *gpu, heat *found)
{ if (!open_) return 1; found->degrees = gpu == &gpus[1] ? 62 : 35; return 0; }
"""
READ = """
import json
from planish.levels.graph.machine import Meter, counter_facts, counters
found = {name: counter.read() for name, counter in counters("cuda").items()}
meter = Meter(frozenset({"energy"}), "cuda")
meter.begin()
print(json.dumps([found, meter.end(calls=2).get("energy"), counter_facts()["energy"]]))
"""


def read(folder: Path, visible: str) -> list[object]:
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder), "CUDA_VISIBLE_DEVICES": visible}
    done = subprocess.run([sys.executable, "-c", READ], env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("driver")
    (folder / "nvml.c").write_text(DRIVER)
    made = str(folder / "libnvidia-ml.so.1")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, str(folder / "nvml.c")], check=True)
    return folder


@pytest.mark.parametrize("visible", ["1", "1,0", "GPU-2"])
def test_the_card_that_cuda_uses_is_read(driver: Path, visible: str) -> None:
    found, joules, source = read(driver, visible)
    assert found == {"energy": 20.0, "temperature": 62.0}
    assert joules == 5.0
    assert str(source).endswith("NVML")


@pytest.mark.parametrize("visible", ["", "0"])
def test_without_a_choice_it_is_the_first_card(driver: Path, visible: str) -> None:
    assert read(driver, visible)[0] == {"energy": 0.0, "temperature": 35.0}


def test_a_card_that_is_not_there_has_no_counters(driver: Path) -> None:
    assert read(driver, "7")[:2] == [{}, None]
    assert read(driver, "GPU-9")[:2] == [{}, None]


def test_a_machine_without_a_driver_has_no_counters(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    assert read(tmp_path, "0")[:2] == [{}, None]


def test_a_runtime_without_cuda_is_an_error(tmp_path: Path) -> None:
    level = GraphLevel()
    program = level.load(str(write(convolutions(), tmp_path / "net.onnx")), {"provider": "cuda"})
    with pytest.raises(TargetError, match="this ONNX Runtime has no CUDA"):
        level.target(program, 1)


def test_cuda_that_does_not_start_is_not_replaced_by_the_processor(tmp_path: Path) -> None:
    model = write(convolutions(), tmp_path / "net.onnx")
    with (
        pytest.warns(UserWarning, match="CUDAExecutionProvider"),
        pytest.raises(RefusedError, match="CUDAExecutionProvider does not start here"),
    ):
        open_session(model, SessionSettings(provider="cuda"))
