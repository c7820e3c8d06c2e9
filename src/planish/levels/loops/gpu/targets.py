"""Targets of this machine that execute GPU kernels."""

from __future__ import annotations

from collections.abc import Mapping

from planish.core import Target, TargetError
from planish.levels.loops.gpu.cuda import cuda_target
from planish.levels.loops.gpu.opencl import device_titles, is_installed, opencl_target


def gpu_target(backend: str, cores: int) -> Target:
    """Describe a device.

    Args:
        backend: as the target is named.
        cores: of the processor, where the device is one.

    Raises:
        TargetError: there is no such device, or what is needed to use it is not installed.
    """
    kind, _, name = backend.partition(":")
    if kind == "opencl":
        return opencl_target(name, cores)
    if kind == "cuda":
        return cuda_target(name)
    raise TargetError(f"there is no target '{backend}'", "Use opencl, opencl:NAME or cuda:ARCH.")


def gpu_facts() -> Mapping[str, str]:
    """Return what is known of this machine's devices: name to fact; empty where nothing is installed."""
    titles = device_titles() if is_installed() else []
    return {"OpenCL devices": ", ".join(titles)} if titles else {}
