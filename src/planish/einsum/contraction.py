"""From an einsum and its operands to a tensor program, and to how its arrays lie in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planish.core import ProgramError
from planish.loops.lang.program import Access, Apply, Expr, Index, Program, Statement
from planish.loops.runtime.arrayspec import ArraySpec

Array = NDArray[Any]


@dataclass(frozen=True)
class Contraction:
    """An einsum that a kernel can compute.

    Args:
        terms: the letters of each operand.
        output: the letters of the result.
        operands: how the operands lie.
        result: how NumPy lays the result out, which follows the operands (`order="K"`).
    """

    terms: tuple[str, ...]
    output: str
    operands: tuple[ArraySpec, ...]
    result: ArraySpec

    @property
    def sizes(self) -> Mapping[str, int]:
        """Letter to extent."""
        pairs = zip(self.terms, self.operands, strict=True)
        return {c: n for term, spec in pairs for c, n in zip(term, spec.shape, strict=True)}

    @property
    def program(self) -> Program:
        """The tensor program, with operands `in0`, `in1`, ... and the result `out`, each as it lies."""
        names = [f"in{i}" for i in range(len(self.terms))]
        specs = dict(zip((*names, "out"), (*self.operands, self.result), strict=True))
        accesses = {
            name: _access(name, term, specs[name])
            for name, term in zip(specs, (*self.terms, self.output), strict=True)
        }
        value: Expr = accesses["in0"]
        for name in names[1:]:
            value = Apply("mul", (value, accesses[name]))
        reduce = "add" if self.sizes.keys() - set(self.output) else None
        types = tuple((name, spec.tensor) for name, spec in specs.items())
        return Program((Statement(accesses["out"], reduce, value),), tuple(sorted(self.sizes.items())), types)


def _access(tensor: str, letters: str, spec: ArraySpec) -> Access:
    return Access(tensor, tuple(Index(((letters[d], 1),)) for d in spec.order))


def contraction_of(subscripts: str, operands: Sequence[Array]) -> Contraction:
    """Read an einsum.

    Raises:
        ProgramError: a kernel cannot compute it, or not just as NumPy does.
    """
    _check_arrays(operands)
    terms, output = _letters(subscripts, len(operands))
    sizes = _sizes(terms, operands)
    if not set(output) <= sizes.keys() or len(set(output)) != len(output):
        raise ProgramError(f"einsum output '{output}'", "Supported: distinct letters of the operands.")
    if len(terms) == 1 and len(output) == len(terms[0]):
        raise ProgramError("an einsum that only turns an array", "NumPy gives a view of it.")
    if len(terms) == 2 and (set(terms[0]) ^ set(terms[1])) - set(output):
        raise ProgramError("a sum over one operand alone", "NumPy may take it before it multiplies.")
    specs = tuple(map(ArraySpec.of, operands))
    return Contraction(terms, output, specs, ArraySpec.of(_allocated(terms, output, operands)))


def _check_arrays(operands: Sequence[Array]) -> None:
    for array in operands:
        if type(array) is not np.ndarray:
            raise ProgramError(f"an operand of class {type(array).__name__}", "Supported: numpy.ndarray.")
        if not (array.dtype.isnative and array.flags.aligned and array.size and array.ndim):
            raise ProgramError(
                f"an operand of type {array.dtype.str} and shape {array.shape}",
                "Supported: arrays with elements and dimensions, aligned, in the machine's byte order.",
            )
    dtypes = {array.dtype.name for array in operands}
    if len(dtypes) != 1 or not dtypes <= {"float32", "float64"}:
        raise ProgramError(
            f"operands of type {', '.join(sorted(dtypes))}", "Supported: one of float32, float64."
        )


def _letters(subscripts: str, operands: int) -> tuple[tuple[str, ...], str]:
    """Split subscripts into the operands' letters and the result's, which NumPy sorts where it is implied."""
    left, arrow, output = subscripts.partition("->")  # NumPy allows for no space within the arrow
    output = output.replace(" ", "")
    terms = tuple(left.replace(" ", "").split(","))
    letters = "".join(terms)
    known = (letters + output).isalpha() and (letters + output).isascii()
    if not known or not all(terms) or len(terms) != operands:
        raise ProgramError(f"einsum subscripts '{subscripts}'", "Supported: one letter for each dimension.")
    return terms, output if arrow else "".join(sorted(c for c in set(letters) if letters.count(c) == 1))


def _sizes(terms: Sequence[str], operands: Sequence[Array]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, array in zip(terms, operands, strict=True):
        if len(term) != array.ndim or len(set(term)) != len(term):
            raise ProgramError(f"operand '{term}' of shape {array.shape}", "Supported: distinct letters.")
        for letter, extent in zip(term, array.shape, strict=True):
            if sizes.setdefault(letter, extent) != extent:
                raise ProgramError(f"axis '{letter}' has extents {sizes[letter]} and {extent}")
    return sizes


def _allocated(terms: Sequence[str], output: str, operands: Sequence[Array]) -> Array:
    """Have NumPy allocate the result: by the iterator that its einsum uses, with the same flags."""
    letters = output + "".join(sorted(set("".join(terms)) - set(output)))
    axes = [[term.find(c) for c in letters] for term in (*terms, output)]
    result = ["readwrite", "nbo", "aligned", "allocate", "no_broadcast"]
    iterator: Any = np.nditer  # its types know neither an operand to be allocated nor all flags
    return iterator(
        (*operands, None),
        ["external_loop", "buffered", "delay_bufalloc", "grow_inner", "reduce_ok", "refs_ok"],
        [*(["readonly", "nbo", "aligned"] for _ in operands), result],
        op_dtypes=[operands[0].dtype] * (len(operands) + 1),
        op_axes=axes,
        order="K",
    ).operands[-1]
