"""IREE for CPUs: slower to compile than XLA, and independent of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from iree import compiler, runtime
from iree.runtime import flags
from numpy.typing import NDArray

from planish.levels.hlo.backend.compiler import BackendError, DeviceArray

# --iree-opt-level=O2 and O3 make 3.13 refuse whole training steps.
# Without the second one, what is f64 becomes f32.
_OPTIONS = ("--iree-llvmcpu-target-cpu=host", "--iree-input-demote-f64-to-f32=false")


class IreeBackend:
    """IREE in this process; its compiler is another program.

    Args:
        cores: threads that compiled code may use.
    """

    name = "iree"

    def __init__(self, cores: int = 1) -> None:
        self._config = _config(cores)

    def compile(self, text: str) -> IreeExecutable:
        """Compile the `main` of a module; raises BackendError where it is refused."""
        try:
            code: Any = compiler.compile_str(
                text, target_backends=["llvm-cpu"], input_type="stablehlo", extra_args=list(_OPTIONS)
            )
        except compiler.CompilerToolError as error:
            raise BackendError(_first_error(error)) from error
        context = runtime.SystemContext(config=self._config)
        module = runtime.VmModule.copy_buffer(context.instance, code)
        context.add_vm_module(module)
        return IreeExecutable(context, getattr(context.modules, module.name)["main"])

    def put(self, array: NDArray[Any]) -> DeviceArray:
        """Copy an array to the back end."""
        return runtime.asdevicearray(self._config.device, array)

    def get(self, array: DeviceArray) -> NDArray[Any]:
        """Return an array of the back end, not to be written to."""
        return np.asarray(array.to_host())


class IreeExecutable:
    """A compiled function.

    Args:
        context: what it lives in.
        function: what is called.
    """

    def __init__(self, context: Any, function: Any) -> None:
        self._context, self._function = context, function

    def run(self, arguments: Sequence[DeviceArray]) -> Sequence[DeviceArray]:
        """Run it, and wait for its end; raises BackendError where it fails."""
        try:
            results = self._function(*arguments)
        except (RuntimeError, ValueError) as error:
            raise BackendError(str(error).strip().splitlines()[0]) from error
        return results if isinstance(results, tuple | list) else [results]


@cache
def _config(cores: int) -> Any:
    """Open the device, once in a process: its number of threads is a flag of the whole process."""
    if cores == 1:
        return runtime.Config("local-sync")
    flags.parse_flags(f"--task_topology_group_count={cores}")
    return runtime.Config("local-task")


def _first_error(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if "error:" in line]
    return (lines or str(error).strip().splitlines() or ["it failed"])[0].strip()
