"""Compiled networks in Python."""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError, TargetError
from planish.network.library.arena import ALIGNMENT
from planish.network.library.header import describe_code


def shaped_outputs(ports: Sequence[Mapping[str, Any]], outputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the outputs of a network, those whose shapes depend on data in the shapes of the call.

    Args:
        ports: the outputs, as a manifest has them.
        outputs: the arrays that were written.
    """
    shapes = {port["shape_output"] for port in ports if "shape_output" in port}
    found = list[NDArray[Any]]()
    for index, (port, array) in enumerate(zip(ports, outputs, strict=True)):
        if "shape_output" in port:
            shape = tuple(int(n) for n in outputs[port["shape_output"]])
            found.append(array.reshape(-1)[: prod(shape)].reshape(shape))
        elif index not in shapes:
            found.append(array)
    return found


_files: dict[Path, list[tuple[int, int]]] = {}
"""The files that had each path when they were loaded, by device and number."""


def _name_to_load(path: Path) -> str:
    """Return a name of a file by which no other file was loaded.

    The loader takes a name that it knows for the library that it has loaded by it, though a network may have
    been compiled again to the same folder meanwhile.
    """
    status, known = path.stat(), _files.setdefault(path, [])
    file = status.st_dev, status.st_ino
    if file not in known:
        known.append(file)
    return f"{path.parent}{'/' * (1 + known.index(file))}{path.name}"


class CompiledNetwork:
    """A network in a shared library; it is called with NumPy arrays.

    Several threads may call it at once: each has a workspace of its own.

    Args:
        folder: with `model.so` and `manifest.json`, as `planish.compile` writes them.
        variant: of a library for several shapes, the one that `bind` runs; calls select theirs by arrays.

    Attributes:
        manifest: what the library, or the variant, is: its inputs, outputs and layers.
        variants: the manifests of all variants; empty if there is one set of shapes.

    Raises:
        ProgramError: the folder holds no library.

    Examples:
        >>> net = planish.compile("model.onnx")  # doctest: +SKIP
        >>> y = net(x)  # doctest: +SKIP
    """

    def __init__(self, folder: str | Path, variant: int = 0) -> None:
        self.folder, self._variant = Path(folder), variant
        try:
            self.manifest: Mapping[str, Any] = json.loads((self.folder / "manifest.json").read_text())
            self._library = ctypes.CDLL(_name_to_load((self.folder / "model.so").resolve()))
        except (OSError, ValueError) as error:
            what = f"'{folder}' holds no compiled network: {error}"
            raise ProgramError(what, "Make it: planish compile model.onnx -o FOLDER.") from error
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self.variants: Sequence[Mapping[str, Any]] = self.manifest.get("variants", ())
        if self.variants:
            self.manifest = self.variants[variant]
        prefix = f"variant{variant}_" if self.variants else ""
        self._run = self._library[f"{prefix}model_run_layers"]
        self._run.argtypes = (pointer, pointer, pointer, number, number)
        self._run.restype = number
        self.layers = len(self.manifest["layers"])
        self._local = threading.local()
        self._others = dict[int, CompiledNetwork]()

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
        if (other := self._selected(arrays, named)) != self._variant:
            if other not in self._others:
                self._others[other] = CompiledNetwork(self.folder, other)
            return self._others[other](*arrays, **named)
        given = self._inputs(arrays, named)
        outputs = [np.empty(each["shape"], each["dtype"]) for each in self.manifest["outputs"]]
        self.bind(given, outputs)(1)
        found = shaped_outputs(self.manifest["outputs"], outputs)
        return found[0] if len(found) == 1 else tuple(found)

    def _selected(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> int:
        """Return the number of the variant whose inputs have the shapes of arrays; this one if none has."""
        names = [port["name"] for port in self.manifest["inputs"]]
        given = (*zip(names, arrays, strict=False), *named.items())
        shapes = {name: list(np.shape(array)) for name, array in given}
        for number, variant in enumerate(self.variants):
            if all(shapes.get(port["name"]) == port["shape"] for port in variant["inputs"]):
                return number
        return self._variant

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
                others = f", and has {len(self.variants)} variants" if self.variants else ""
                raise ProgramError(what, f"The network takes {port['dtype']} {port['shape']}{others}.")
            found.append(array)
        return found

    def bind(
        self,
        inputs: list[NDArray[Any]],
        outputs: list[NDArray[Any]],
        first: int = 0,
        after: int | None = None,
    ) -> Any:
        """Return a function that runs the network, or some layers of it, a number of times.

        Args:
            inputs: contiguous arrays, as the network takes them.
            outputs: contiguous arrays that are written.
            first: the first layer.
            after: the layer to end before; None for all.
        """
        addresses = (ctypes.c_void_p * max(1, len(inputs)))(*(a.ctypes.data for a in inputs))
        targets = (ctypes.c_void_p * len(outputs))(*(a.ctypes.data for a in outputs))
        end = self._steps if after is None else after

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
