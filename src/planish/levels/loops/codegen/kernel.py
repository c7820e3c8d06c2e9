"""Machine code and its layout in memory: the contract between code generators and the runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planish.core import TargetError
from planish.levels.loops.ir.annotated import MEMORY, STACK, AnnotatedTree
from planish.levels.loops.ir.tree import LoopTree, leaves
from planish.levels.loops.lang.program import ARITHMETIC, BFLOAT16X2, DTYPES, PACKED, QINT32, QUADS

if TYPE_CHECKING:
    from planish.levels.loops.codegen.objects import Section

ALIGNMENT = 64
"""Every temporary, workspace and ahead buffer starts at a multiple of this many bytes."""


@dataclass(frozen=True)
class Entry:
    """A machine function `void entry(void **args, int64_t begin, int64_t end)`.

    `args` holds the addresses of the input, output and ahead buffers in the order of `LoopTree.buffers`,
    then of the shared workspace, then of the private workspace.

    Args:
        address: where it is; 0 in code for another processor.
        iterations: of the parallel root loop; its tail, if any, is the last one. 1 for a serial entry.
        parallel: whether [begin, end) selects iterations, and parts may run at the same time, each with
            a private workspace of its own. A serial entry ignores the range.
    """

    address: int
    iterations: int = 1
    parallel: bool = False


@dataclass(frozen=True)
class Layout:
    """Layout of the temporaries.

    Args:
        offsets: temporary to the byte offset in its workspace; none for those that live in registers.
        private: temporaries of the private workspace, each thread's stack; the others are in the shared one.
        shared_bytes: size of the shared workspace.
        private_bytes: size of the private one, for one thread.
    """

    offsets: Mapping[str, int]
    private: frozenset[str]
    shared_bytes: int
    private_bytes: int


@dataclass(frozen=True)
class MachineCode:
    """A tree, compiled.

    Args:
        entries: the body, to be run in order; a parallel root node has an entry of its own.
        ahead_entries: likewise for the part that fills the ahead buffers; empty if there is none.
        owner: what owns the memory of the functions; they live as long as it does. None in code for another
            processor, of which only the assembly is used.
        layout: where the temporaries lie that the functions have in memory.
        assembly: given a prefix P, writes assembly that defines the entries as P_run0, P_run1, ...
            and the ahead entries as P_prepare0, ...
        sections: given a prefix P, returns the sections of the entries, with symbols as in `assembly`, to be
            linked.
        annotated: the decisions that the functions carry out; None where the back end made its own.
        again: generates the same code once more; it is what is pickled, for addresses hold in one process
            alone. None where that is not possible.
    """

    entries: tuple[Entry, ...]
    ahead_entries: tuple[Entry, ...]
    owner: object
    layout: Layout
    assembly: Callable[[str], str]
    sections: Callable[[str], Sequence[Section]]
    annotated: AnnotatedTree | None = None
    again: Callable[[], MachineCode] | None = None

    def __reduce__(self) -> tuple[Callable[[], MachineCode], tuple[()]]:
        if self.again is None:
            raise TypeError("this machine code cannot be pickled: nothing says how to generate it again")
        return self.again, ()


def arithmetic_of(tree: LoopTree) -> str:
    """Return the one type that a tree computes in.

    Raises:
        TargetError: there are several types, or sums would be rounded at each step, in a narrower type.
    """
    found = {ARITHMETIC.get(b.dtype, b.dtype) for b in tree.buffers}
    if len(found) != 1:
        # Indices are looked up with, not computed with: they may be of a type of their own.
        found = {ARITHMETIC.get(b.dtype, b.dtype) for b in tree.buffers if b.name not in tree.indices}
    if len(found) != 1:
        raise TargetError(f"a kernel of mixed element types: {', '.join(sorted(found))}")
    for leaf in leaves((*tree.ahead, *tree.body)) if any(b.dtype not in found for b in tree.buffers) else ():
        target = tree.buffer[leaf.target.buffer]
        if leaf.reduce and target.dtype not in (*found, QINT32):
            raise TargetError(f"{target.name} of {target.dtype} is reduced into, which takes a wider type")
    return found.pop()


def refuse_packed(dtypes: Iterable[str]) -> None:
    """Refuse types of elements of several numbers, as no instruction multiplies them; raises TargetError."""
    found = {dtype for dtype in dtypes if dtype in PACKED}
    if not found.isdisjoint(QUADS):
        raise TargetError(
            f"products of {' and '.join(QUADS)} need AVX512_VNNI or AVX-VNNI, and a back end for x86",
            "Use qint8, which is computed in float32.",
        )
    if found:
        raise TargetError(
            f"products of {BFLOAT16X2} need AVX512_BF16, or the portable back end",
            "Use bfloat16, which is computed in float32.",
        )


def layout(annotated: AnnotatedTree) -> Layout:
    """Lay out a tree's temporaries, each at a multiple of `ALIGNMENT`, in the spaces that it says."""
    offsets: dict[str, int] = {}
    total = {MEMORY: 0, STACK: 0}
    for b in annotated.tree.buffers:
        space = annotated.spaces[b.name]
        if b.kind == "temporary" and space in total:
            offsets[b.name] = total[space]
            total[space] += -(-b.size * DTYPES[b.dtype] // ALIGNMENT) * ALIGNMENT
    private = frozenset([name for name in offsets if annotated.spaces[name] == STACK])
    return Layout(offsets, private, total[MEMORY], total[STACK])
