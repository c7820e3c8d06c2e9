"""A compiled program that is called with arrays, as a function is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.loops.arrayspec import ArraySpec
from planish.loops.runtime import Kernel

Array = NDArray[Any]


class CompiledKernel:
    """Computes a program on arrays of fixed shapes, types and strides; safe to call from several threads.

    Args:
        kernel: of a program with one output.
        operands: how each input lies, in the program's order; None where all are row-major.
        result: how the output lies; None where it is row-major.
    """

    def __init__(
        self,
        kernel: Kernel,
        operands: Sequence[ArraySpec] | None = None,
        result: ArraySpec | None = None,
    ) -> None:
        program = kernel.program
        self.kernel = kernel
        self.operands = tuple(operands or (ArraySpec.of_type(program.type[n]) for n in program.inputs))
        self.result = result or ArraySpec.of_type(program.type[program.outputs[0]])

    def __call__(self, *operands: Array) -> Any:
        """Compute the result.

        Args:
            operands: arrays as `operands` says.

        Returns:
            A new array; a scalar where the result has no dimension.

        Raises:
            ProgramError: an operand is not as it must be.
        """
        self._check(operands)
        program, result = self.kernel.program, self.result.empty()
        inputs = {
            name: array.transpose(spec.order)
            for name, array, spec in zip(program.inputs, operands, self.operands, strict=True)
        }
        self.kernel.bind(inputs, {program.outputs[0]: result.transpose(self.result.order)})()
        return result[()]

    def _check(self, operands: Sequence[object]) -> None:
        names = self.kernel.program.inputs
        if len(operands) != len(names):
            raise ProgramError(
                f"{len(operands)} operands given", f"It takes {len(names)}: {', '.join(names)}."
            )
        for name, array, spec in zip(names, operands, self.operands, strict=True):
            if not spec.fits(array):
                raise ProgramError(
                    f"{name} is {_told(array)}, the kernel takes {spec}", "Compile another one."
                )


def _told(array: object) -> str:
    if not isinstance(array, np.ndarray):
        return f"of class {type(array).__name__}"
    kind: NDArray[Any] = array
    told = str(ArraySpec(kind.shape, kind.strides, kind.dtype.str))
    return told if type(array) is np.ndarray else f"a {type(array).__name__} of {told}"
