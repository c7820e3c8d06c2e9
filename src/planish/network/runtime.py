"""Compiled networks in Python."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError
from planish.network.plan import ALIGNMENT

_ERRORS = {
    1: "the processor lacks instructions that the library was compiled for",
    2: "the call lacks memory",
    3: "the workspace does not begin at a multiple of 64 bytes",
}


def describe_code(code: int) -> str:
    """Describe what a function of a library returns."""
    return _ERRORS.get(code, f"it returns {code}")


class CompiledNetwork:
    """A network in a shared library; it is called with NumPy arrays.

    Several threads may call it at once: each has a workspace of its own.

    Args:
        folder: with `model.so` and `manifest.json`, as `planish.compile` writes them.

    Attributes:
        manifest: what the library is, its inputs, outputs and layers.

    Raises:
        ProgramError: the folder holds no library.

    Examples:
        >>> net = planish.compile("model.onnx")  # doctest: +SKIP
        >>> y = net(x)  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.manifest: Mapping[str, Any] = json.loads((self.folder / "manifest.json").read_text())
            self._library = ctypes.CDLL(str((self.folder / "model.so").resolve()))
        except (OSError, ValueError) as error:
            what = f"'{folder}' holds no compiled network: {error}"
            raise ProgramError(what, "Make it: planish compile model.onnx -o FOLDER.") from error
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._run = self._library.model_run_layers
        self._run.argtypes = (pointer, pointer, pointer, number, number)
        self._run.restype = number
        self.layers = len(self.manifest["layers"])
        self._local = threading.local()

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Compute the outputs.

        Args:
            arrays: the inputs, in their order.
            named: inputs by name.

        Returns:
            The output; a tuple of several.

        Raises:
            ProgramError: an input is missing, unknown, or not of the network's shape and type.
            TargetError: the processor lacks instructions that the library needs.
        """
        given = self._inputs(arrays, named)
        outputs = [np.empty(each["shape"], each["dtype"]) for each in self.manifest["outputs"]]
        self.bind(given, outputs)(1)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _inputs(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> list[NDArray[Any]]:
        ports = self.manifest["inputs"]
        names = [port["name"] for port in ports]
        given = dict(zip(names, arrays, strict=False)) | dict(named)
        if len(arrays) > len(names) or set(given) != set(names) or set(names[: len(arrays)]) & set(named):
            raise ProgramError(f"the network takes {', '.join(names)}", f"Give {len(names)} arrays.")
        found = list[NDArray[Any]]()
        for port in ports:
            array = np.ascontiguousarray(given[port["name"]]).reshape(np.shape(given[port["name"]]))
            if list(array.shape) != port["shape"] or array.dtype != port["dtype"]:
                what = f"input '{port['name']}' is {array.dtype} {list(array.shape)}"
                raise ProgramError(what, f"The network takes {port['dtype']} {port['shape']}.")
            found.append(array)
        return found

    def bind(
        self,
        inputs: list[NDArray[Any]],
        outputs: list[NDArray[Any]],
        first: int = 0,
        behind: int | None = None,
    ) -> Any:
        """Return a function that runs the network, or some layers of it, so many times.

        Args:
            inputs: contiguous arrays, as the network takes them.
            outputs: contiguous arrays that are written.
            first: the first layer.
            behind: the layer to end before; None for all.
        """
        addresses = (ctypes.c_void_p * max(1, len(inputs)))(*(a.ctypes.data for a in inputs))
        targets = (ctypes.c_void_p * len(outputs))(*(a.ctypes.data for a in outputs))
        end = self._steps if behind is None else behind

        def run(times: int) -> None:
            workspace = self._workspace()
            for _ in range(times):
                if code := self._run(addresses, targets, workspace, first, end):
                    raise TargetError(f"the network cannot be run: {describe_code(code)}")
            # The arrays live as long as their addresses are used.
            del workspace
            _ = inputs, outputs

        return run

    def run_at(self, inputs: Sequence[int], outputs: Sequence[int], workspace: int) -> int:
        """Run the network on addresses; return its code, 0 if it has run."""
        given, targets = ((ctypes.c_void_p * max(1, len(each)))(*each) for each in (inputs, outputs))
        return self._run(given, targets, workspace, 0, self._steps)

    @property
    def _steps(self) -> int:
        return self.layers + self.manifest.get("copies", 0)

    def _workspace(self) -> int:
        if not hasattr(self._local, "memory"):
            self._local.memory = np.zeros(self.manifest["workspace_bytes"] + ALIGNMENT, np.uint8)
        address = self._local.memory.ctypes.data
        return address + -address % ALIGNMENT
