"""Backends of an einsum: NumPy's einsum, one multiplication of matrices, and compiled kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planish.core import Candidate, ProgramError, Target
from planish.core.arguments import check_number, check_whole_number, wrong_argument
from planish.core.files import StrPath
from planish.core.process import free_after_fork
from planish.levels.loops.backends import kernel_of, tree_of
from planish.levels.loops.lang.program import Access, Apply, Expr, Index, Program, Statement
from planish.levels.loops.runtime.dispatch import ArraySpec, CompiledKernel, Table

if TYPE_CHECKING:
    from planish.store import Store

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


def _access(tensor: str, term: str, spec: ArraySpec) -> Access:
    return Access(tensor, tuple(Index(((term[d], 1),)) for d in spec.order))


def contraction_of(subscripts: str, operands: Sequence[Array]) -> Contraction:
    """Read an einsum.

    Raises:
        ProgramError: a kernel cannot compute it, or not just as NumPy does.
    """
    _check_arrays(operands)
    terms, output = _split_subscripts(subscripts, len(operands))
    sizes = _sizes(terms, operands)
    if not set(output) <= sizes.keys() or len(set(output)) != len(output):
        raise ProgramError(f"einsum output '{output}'", "Supported: distinct letters of the operands.")
    if len(terms) == 1 and len(output) == len(terms[0]):
        raise ProgramError("an einsum that only transposes an array", "NumPy returns a view of it.")
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


def _split_subscripts(subscripts: str, operands: int) -> tuple[tuple[str, ...], str]:
    """Split subscripts into the operands' letters and the result's, which NumPy sorts where it is implied."""
    left, arrow, output = subscripts.partition("->")  # NumPy allows for no space within the arrow
    output = output.replace(" ", "")
    terms = tuple(left.replace(" ", "").split(","))
    joined = "".join(terms)
    supported = (joined + output).isalpha() and (joined + output).isascii()
    if not supported or not all(terms) or len(terms) != operands:
        raise ProgramError(f"einsum subscripts '{subscripts}'", "Supported: one letter for each dimension.")
    return terms, output if arrow else "".join(sorted(c for c in set(joined) if joined.count(c) == 1))


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
    """Allocate the result by NumPy: by the iterator that its einsum uses, with the same flags."""
    every = output + "".join(sorted(set("".join(terms)) - set(output)))
    axes = [[term.find(c) for c in every] for term in (*terms, output)]
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


Matrix = Callable[[Array], Array] | None
"""Makes a matrix of an operand; None where it is one already."""
SMALL = 1 << 12
"""Elements of a result up to which `dot` is faster than `matmul`: it fills its result with zeros first."""
_QUIET = copy_context()
"""Context without reports of overflows, as einsum has none: entering it takes 0.1 µs, `errstate` 1 µs."""
_QUIET.run(np.seterr, all="ignore")


@dataclass(frozen=True)
class _Roles:
    """Roles of the subscripts; each list in the order of the memory.

    Args:
        batch: letters of both operands and the result.
        rows: those of the first factor and the result.
        columns: those of the second factor and the result.
        inner: those of both operands alone.
        swapped: whether the second operand is the first factor.
    """

    batch: list[str]
    rows: list[str]
    columns: list[str]
    inner: list[str]
    swapped: bool


def multiplication(contraction: Contraction) -> Callable[..., Any] | None:
    """Make a contraction a multiplication of matrices; None where it is none.

    The products that are summed are the same ones, so that NaN and infinities come out as from einsum: a
    letter that only one operand has and that is summed makes it none.
    """
    roles = _roles(contraction)
    if roles is None:
        return None
    output = contraction.output
    dims = tuple(contraction.sizes[c] for c in _in_memory(output, contraction.result.order))
    turned = tuple(contraction.result.order.index(d) for d in range(len(output)))
    stacked = bool(roles.batch)
    first = _matrix(contraction, int(roles.swapped), (roles.batch, roles.rows, roles.inner), stacked)
    second = _matrix(contraction, int(not roles.swapped), (roles.batch, roles.inner, roles.columns), stacked)
    small = not stacked and prod(dims) <= SMALL
    merged = stacked or max(len(roles.rows), len(roles.columns)) > 1
    straight = turned == tuple(range(len(turned)))

    multiply: Callable[..., Any] = np.dot if small else np.matmul
    if straight and not (roles.swapped or first or second or merged):
        return partial(_quietly, multiply)

    def call(a: Array, b: Array) -> Any:
        if roles.swapped:
            a, b = b, a
        if first is not None:
            a = first(a)
        if second is not None:
            b = second(b)
        found = _quietly(multiply, a, b)
        if merged:
            found = found.reshape(dims)
        return found if straight else found.transpose(turned)

    return call


def _quietly(multiply: Callable[..., Any], a: Array, b: Array) -> Any:
    # A context is entered by one call at a time; a copy of it is cheap.
    return _QUIET.copy().run(multiply, a, b)


def _roles(contraction: Contraction) -> _Roles | None:
    if len(contraction.terms) != 2:
        return None
    specs = (*contraction.operands, contraction.result)
    terms = (*contraction.terms, contraction.output)
    left, right, output = (_in_memory(t, s.order) for t, s in zip(terms, specs, strict=True))
    batch = [c for c in output if c in left and c in right]
    inner = [c for c in left if c in right and c not in output]
    rows = [c for c in left if c not in batch + inner]
    columns = [c for c in right if c not in batch + inner]
    if inner and output == batch + rows + columns:
        return _Roles(batch, rows, columns, inner, swapped=False)
    if inner and output == batch + columns + rows:
        return _Roles(batch, columns, rows, inner, swapped=True)
    return None


def _in_memory(term: str, order: Sequence[int]) -> list[str]:
    return [term[d] for d in order]


def _matrix(contraction: Contraction, operand: int, groups: Sequence[list[str]], stacked: bool) -> Matrix:
    term, sizes = contraction.terms[operand], contraction.sizes
    batch, *sides = groups
    order = tuple(term.index(c) for group in groups for c in group)
    shape = (*(sizes[c] for c in batch), *(prod(sizes[c] for c in s) for s in sides if s or stacked))
    if shape == tuple(sizes[term[d]] for d in order):
        return None if order == tuple(range(len(order))) else lambda a: a.transpose(order)
    return lambda a: a.transpose(order).reshape(shape)


@dataclass(frozen=True)
class EinsumBackend:
    """Implementation of an einsum.

    Args:
        name: "einsum", "matmul", or "kernel".
        call: takes the operands, and returns what `numpy.einsum` does.
        cores: how many a kernel uses; NumPy decides for itself.
        candidate: what was compiled; None for NumPy's.
    """

    name: str
    call: Callable[..., Any]
    cores: int = 1
    candidate: Candidate | None = None


def add_to_table(
    table: Table, backend: EinsumBackend, operands: Sequence[Array], subscripts: str | None = None
) -> None:
    """Add calls with such operands to a table.

    Args:
        table: of calls that begin with subscripts, or that have none.
        backend: what computes them.
        operands: arrays; those that come must be like them.
        subscripts: what calls begin with; None for nothing.
    """
    if not operands[0].shape or not all(a.flags.aligned for a in operands):
        return
    compiled = backend.call
    if isinstance(compiled, CompiledKernel):
        if compiled.is_direct:
            table.add_kernel(compiled.kernel, compiled.operands, compiled.result, subscripts)
        return
    whole = subscripts is not None and backend.name == "einsum"
    specs = [ArraySpec(a.shape, a.strides, a.dtype.name) for a in operands]
    table.add_function(
        specs,
        [a.dtype for a in operands],
        c_einsum() if whole else compiled,
        subscripts=subscripts,
        skip=0 if whole or subscripts is None else 1,
    )


def compile_kernel(contraction: Contraction, candidate: Candidate, target: Target) -> CompiledKernel:
    """Compile a candidate for a contraction's arrays.

    Raises:
        PlanishError: it cannot be compiled.
    """
    program = contraction.program
    kernel = kernel_of(program, candidate, target, tree_of(program, candidate))
    return CompiledKernel(kernel, contraction.operands, contraction.result)


def numpy_backends(contraction: Contraction, subscripts: str) -> Iterator[EinsumBackend]:
    """List NumPy's backends to sum the same products; its einsum is the first."""
    yield EinsumBackend("einsum", partial(c_einsum(), subscripts))
    multiplied = multiplication(contraction)
    if multiplied is not None:
        yield EinsumBackend("matmul", multiplied)


@cache
def c_einsum() -> Callable[..., Any]:
    """Return the function that `numpy.einsum` calls for plain arrays."""
    try:
        from numpy._core.multiarray import c_einsum
    except ImportError:  # another NumPy may keep it elsewhere
        return np.einsum
    return c_einsum


PLANNING = free_after_fork()
"""Lock of the thread that tunes and times: two at once would disturb each other."""


@dataclass(frozen=True)
class EinsumRequest:
    """Budget, cores and store.

    Args:
        budget_s: seconds that tuning and comparing may take on first use; 0 never tunes.
        cores: how many may be used at most; None for all that this process may use.
        store: an open store, or its location; None for the user's own.

    Raises:
        ArgumentError: one is of a wrong type.
    """

    budget_s: float = 1.0
    cores: int | None = None
    store: Store | StrPath | None = None

    def __post_init__(self) -> None:
        check_number("budget_s", self.budget_s)
        if self.cores is not None:
            check_whole_number("cores", self.cores, 1)
        if not isinstance(self.store, str | os.PathLike | None) and not hasattr(self.store, "runs"):
            raise wrong_argument("store", self.store, "an open store, a file or a URL")
