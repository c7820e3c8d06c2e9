"""A compiled program that is called with arrays, as a function is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, ProgramError, Target
from planish.levels.loops.build import executable_of, library_of, tree_of
from planish.levels.loops.lang.element_types import numpy_type
from planish.levels.loops.lang.program import Program
from planish.levels.loops.reference.inputs import aligned
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.runtime.dispatch import ArraySpec, Table
from planish.levels.loops.runtime.kernels import Arrays, Kernel
from planish.levels.loops.verifying import refuse_wrong

Array = NDArray[Any]


class CompiledKernel:
    """Computes a program on arrays of fixed shapes, types and strides, with little overhead.

    Calls from several threads at once are safe.

    Args:
        kernel: of a program with one output or more.
        operands: how each input lies, in the program's order; None where all are row-major.
        result: how the output lies; None where it is row-major.

    Attributes:
        kernel: as given.
        operands: how each input lies.
        result: how the first output lies.
    """

    def __init__(
        self,
        kernel: Kernel,
        operands: Sequence[ArraySpec] | None = None,
        result: ArraySpec | None = None,
    ) -> None:
        types = kernel.program.type
        rows = {name: ArraySpec.row_major(kind.shape, kind.dtype) for name, kind in types.items()}
        self.kernel = kernel
        self.operands = tuple(operands or (rows[name] for name in kernel.program.inputs))
        self.result = result or rows[kernel.program.outputs[0]]
        self._call = self.generic
        if self.is_direct:
            table = Table(self.generic)
            table.add_kernel(kernel, self.operands, self.result)
            self._call = table.call

    @property
    def is_direct(self) -> bool:
        """Return whether machine code can take calls: there is one output, and nothing is packed ahead."""
        program, code = self.kernel.program, self.kernel.code
        # What is written past the caches must begin at a cache line, and what is packed needs arrays first.
        simple = not code.ahead_entries and not (code.annotated and code.annotated.nontemporal_stores)
        return len(program.outputs) == 1 and simple and bool(self.operands and self.operands[0].shape)

    def __reduce__(self) -> tuple[type[CompiledKernel], tuple[Any, ...]]:
        return CompiledKernel, (self.kernel, self.operands, self.result)

    def __call__(self, *operands: Array) -> Any:
        """Compute the result.

        Args:
            operands: arrays of the kinds that `operands` lists.

        Returns:
            A new array; a scalar where the result has no dimension; a tuple where there are several outputs.

        Raises:
            ProgramError: an operand is not as it must be.
        """
        return self._call(*operands)

    def generic(self, *operands: Array) -> Any:
        """Do the same without machine code that takes the call; it costs some tens of microseconds."""
        check_operands(self.kernel.program.inputs, self.operands, operands)
        program = self.kernel.program
        outputs = {name: aligned(program.type[name]) for name in program.outputs}
        order = self.result.order
        first = outputs[program.outputs[0]].transpose(sorted(range(len(order)), key=order.index))
        inputs = {
            name: array.transpose(spec.order)
            for name, array, spec in zip(program.inputs, operands, self.operands, strict=True)
        }
        self.kernel.bind(inputs, outputs)()
        return _results([first, *(outputs[name] for name in program.outputs[1:])])


def function_of(program: Program, candidate: Candidate, target: Target) -> Callable[..., Any]:
    """Make what computes a program by a candidate, called with row-major arrays in the program's order.

    Raises:
        PlanishError: a kernel of it is wrong on inputs that the search did not see.
    """
    if library_of(candidate):
        return _Allocating(program, candidate, target, lambda arrays: numpy_callable(program, arrays)())
    kernel = executable_of(program, candidate, target, tree_of(program, candidate))
    refuse_wrong(kernel)
    if isinstance(kernel, Kernel):
        return CompiledKernel(kernel)

    def run(arrays: Arrays) -> None:
        outputs = {name: arrays[name] for name in program.outputs}
        kernel.bind({name: arrays[name] for name in program.inputs}, outputs).repeat(1)

    return _Allocating(program, candidate, target, run)


class _Allocating:
    """Takes operands and returns new arrays, by what fills arrays; pickled, it is made anew.

    Args:
        program: what is computed.
        candidate: by what.
        target: on which machine.
        run: computes the outputs among the arrays that it is given, by name.
    """

    def __init__(
        self, program: Program, candidate: Candidate, target: Target, run: Callable[[Arrays], object]
    ) -> None:
        types = program.type
        self._specs = [ArraySpec.row_major(types[name].shape, types[name].dtype) for name in program.inputs]
        self._made_of = program, candidate, target
        self._program, self._run = program, run

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return function_of, self._made_of

    def __call__(self, *operands: Array) -> Any:
        program, types = self._program, self._program.type
        check_operands(program.inputs, self._specs, operands)
        outputs = {
            name: np.empty(types[name].shape, numpy_type(types[name].dtype)) for name in program.outputs
        }
        self._run({**dict(zip(program.inputs, operands, strict=True)), **outputs})
        return _results(list(outputs.values()))


def _results(outputs: Sequence[Array]) -> Any:
    # An array without dimensions becomes a scalar, as NumPy's reductions return it.
    results = [array[()] for array in outputs]
    return tuple(results) if len(results) > 1 else results[0]


def check_operands(names: Sequence[str], specs: Sequence[ArraySpec], operands: Sequence[object]) -> None:
    """Refuse operands of other kinds than a function was made for.

    Raises:
        ProgramError: there are more or fewer, or one is of another class, shape, type, or strides.
    """
    if len(operands) != len(names):
        raise ProgramError(f"{len(operands)} operands given", f"It takes {len(names)}: {', '.join(names)}.")
    for name, array, spec in zip(names, operands, specs, strict=True):
        if not spec.fits(array):
            message = f"{name} is {_description(array)}; this was made for {spec}"
            raise ProgramError(message, "Make another for such arrays.")


def _description(array: object) -> str:
    if not isinstance(array, np.ndarray):
        return f"of class {type(array).__name__}"
    kind: NDArray[Any] = array
    text = f"{kind.dtype}{list(kind.shape)} of strides {list(kind.strides)}"
    text += "" if kind.flags.aligned else ", not aligned"
    return text if type(array) is np.ndarray else f"a {type(array).__name__} of {text}"
