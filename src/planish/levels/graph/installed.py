"""Installed libraries and the settings of a session, read without loading any library."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from planish.core import ProgramError, TargetError, did_you_mean
from planish.core.installation import install_command

PACKAGES = ("onnx", "onnxruntime", "onnxoptimizer", "onnxscript")

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "optimization": ("all", "extended", "basic", "none"),
    "execution": ("sequential", "parallel"),
    "arena": ("on", "off"),
    "provider": ("cpu", "cuda", "openvino"),
}
"""The settings of a session with their values, ONNX Runtime's default first."""
OPENVINO = "openvino"
OPENVINO_BFLOAT16 = "openvino-bf16"
"""OpenVINO as it computes by itself on processors that have bfloat16; a candidate may choose it."""
BY_OPENVINO = (OPENVINO, OPENVINO_BFLOAT16)
"""The providers that are another runtime than ONNX Runtime."""
SEARCH = "search"
"""Asks for a setting to be searched."""


def versions() -> Mapping[str, str]:
    """Return the versions of all that makes and runs models.

    Raises:
        TargetError: a library is missing.
    """
    return {package: _version(package) for package in PACKAGES}


def has_openvino() -> bool:
    """Return whether OpenVINO is installed."""
    try:
        return find_spec(OPENVINO) is not None
    except ValueError:  # importing it is disabled
        return False


def _version(package: str) -> str:
    for name in (package, f"{package}-gpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    what = f"the level 'graph' needs {package}, which is not installed"
    raise TargetError(what, f"Install it with: {install_command('graph')}")


def session_settings(options: Mapping[str, str]) -> Mapping[str, str]:
    """Check settings of a session, and return all of them.

    Raises:
        ProgramError: a setting does not take a value.
    """
    for name, value in options.items():
        if value not in SETTINGS[name]:
            known = [*SETTINGS[name], *([SEARCH] if name == "provider" else [])]
            raise ProgramError(f"{name} cannot be '{value}'", did_you_mean(value, known))
    return {name: options.get(name, values[0]) for name, values in SETTINGS.items()}


def settings_in(toolchain: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings of a session that a target's toolchain has among other facts."""
    return {name: toolchain[name] for name in SETTINGS if name in toolchain}
