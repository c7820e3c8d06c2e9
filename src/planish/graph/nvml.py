"""Counters of the graphics card that CUDA uses, by NVIDIA's management library (NVML)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

_MILLI = 1e-3


def readers() -> Mapping[str, Callable[[], float]]:
    """Find what the card tells: `energy` (joules since some time), and `temperature` (degrees Celsius).

    The card is the first of `CUDA_VISIBLE_DEVICES`, or the machine's first. The library is opened for each
    reading and closed after it, so that processes forked in between may read too.

    Returns:
        Quantity to what reads it; empty where there is no card, or no driver.
    """
    try:
        nvml = import_module("pynvml")
    except ModuleNotFoundError:
        return {}
    asked = {"energy": _joules, "temperature": _degrees}
    return {name: partial(_read, nvml, ask) for name, ask in asked.items() if _answers(nvml, ask)}


def _answers(nvml: Any, ask: Callable[[Any, Any], float]) -> bool:
    try:
        _read(nvml, ask)
    except nvml.NVMLError:
        return False
    return True


def _read(nvml: Any, ask: Callable[[Any, Any], float]) -> float:
    nvml.nvmlInit()
    try:
        return ask(nvml, _card(nvml))
    finally:
        nvml.nvmlShutdown()


def _card(nvml: Any) -> Any:
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"
    return (
        nvml.nvmlDeviceGetHandleByIndex(int(first))
        # The variable may name a card by its UUID, too.
        if first.isdigit()
        else nvml.nvmlDeviceGetHandleByUUID(first)
    )


def _joules(nvml: Any, card: Any) -> float:
    return nvml.nvmlDeviceGetTotalEnergyConsumption(card) * _MILLI


def _degrees(nvml: Any, card: Any) -> float:
    return float(nvml.nvmlDeviceGetTemperatureV(card, nvml.NVML_TEMPERATURE_GPU))
