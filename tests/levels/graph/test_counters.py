"""Counters of power and heat, on a machine that is made up."""

from pathlib import Path

import pytest

from planish.levels.graph.level import GraphLevel
from planish.levels.graph.machine import NOT_HERE, Meter, counter_facts, counters


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
