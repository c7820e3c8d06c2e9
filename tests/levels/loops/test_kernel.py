"""Kernels on arrays: what is checked, where temporaries lie, and what a call does."""

import ctypes
import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from levels.loops.odd_trees import COPY, tree
from levels.loops.trees import ENTRY, Kind
from planish.core import ProgramError
from planish.levels.loops.codegen.kernel import ALIGNMENT, Entry, Layout, MachineCode, layout
from planish.levels.loops.codegen.llvm.compile import compile_tree
from planish.levels.loops.ir.annotated import MEMORY, REGISTERS, STACK, AnnotatedTree, Vectors
from planish.levels.loops.ir.schedule import unscheduled
from planish.levels.loops.lang.parse import parse
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.dispatch import CompiledKernel
from planish.levels.loops.runtime.kernels import BoundKernel, Kernel
from planish.levels.loops.steps import LoopStep, Pack, Split

Arrays = dict[str, NDArray[Any]]


def built(program: Program, *steps: LoopStep) -> Kernel:
    schedule = unscheduled(program)
    for step in steps:
        schedule = step.apply(schedule)
    kernel = lower(schedule)
    return Kernel(program, kernel, compile_tree(kernel))


def arrays_of(program: Program) -> tuple[Arrays, Arrays]:
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    return dict(make_inputs(program)), outputs


MATMUL = parse("C[m,n] += A[m,k] * B[k,n]", {"m": 5, "n": 9, "k": 4})


def test_a_call_reads_what_the_inputs_hold_then() -> None:
    inputs, outputs = arrays_of(MATMUL)
    bound = built(MATMUL).bind(inputs, outputs)
    for _ in range(2):
        inputs["A"] += 1
        bound()
        assert check(MATMUL, outputs, reference(MATMUL, inputs)) is None


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_entries_run_in_order_and_parallel_ones_in_parts(cores: int) -> None:
    calls: list[tuple[str, int, int]] = []

    def entry(name: str) -> Any:
        def note(_: object, begin: int, end: int) -> None:
            calls.append((name, begin, end))

        return ENTRY(note)

    functions = {"first": entry("first"), "shared": entry("shared")}
    first, shared = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions.values())
    nothing = Layout({}, frozenset(), 0, 0)
    code = MachineCode(
        (Entry(first), Entry(shared, 7, True)), (Entry(first),), functions, nothing, str, lambda _: ()
    )
    inputs, outputs = arrays_of(MATMUL)
    bound = Kernel(MATMUL, lower(unscheduled(MATMUL)), code, cores).bind(inputs, outputs)
    assert calls == [("first", 0, 1)]
    calls.clear()
    bound.repeat(0)
    assert calls == []
    bound.repeat(3)
    turns = [place for place, call in enumerate(calls) if call == ("first", 0, 1)]
    assert len(turns) == 3
    for begin, end in pairwise([*turns, len(calls)]):
        parts = [range(*part) for name, *part in calls[begin:end] if name == "shared"]
        assert sorted(i for part in parts for i in part) == list(range(7))
        assert max(map(len, parts)) <= (7 if cores == 1 else 7 // cores + 1)


def bad(name: str, array: NDArray[Any] | None, side: str = "inputs") -> tuple[Arrays, Arrays]:
    inputs, outputs = arrays_of(MATMUL)
    given = inputs if side == "inputs" else outputs
    if array is None:
        del given[name]
    else:
        given[name] = array
    return inputs, outputs


WHOLE = np.zeros((8, 9), np.float32)
MISPLACED = np.zeros(81, np.uint8)[1:].view(np.float32).reshape(5, 4)
BAD = {
    "input 'A' is missing": bad("A", None),
    "output 'C' is missing": bad("C", None, "outputs"),
    r"no input 'D'. Known: A, B": bad("D", WHOLE),
    r"A has shape \(4, 5\), the program says \(5, 4\)": bad("A", np.zeros((4, 5), np.float32)),
    r"float64, the program says float32. Convert it: B.astype\('float32'\)": bad("B", np.zeros((4, 9))),
    "A is not contiguous": bad("A", np.zeros((4, 5), np.float32).T),
    r"A does not begin at a multiple of 4 bytes.*A\.copy": bad("A", MISPLACED),
    "output C is read-only": bad("C", np.broadcast_to(np.float32(0), (5, 9)).copy(), "outputs"),
}
BAD["output C is read-only"][1]["C"].flags.writeable = False


@pytest.mark.parametrize("message", BAD)
def test_arrays_that_do_not_fit_are_refused(message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        built(MATMUL).bind(*BAD[message])


def test_an_operand_that_is_not_aligned_is_distinguished_from_one_that_is() -> None:
    call = CompiledKernel(built(MATMUL))
    with pytest.raises(ProgramError, match=r"A is float32.*, not aligned; this was made for float32"):
        call(MISPLACED, WHOLE[:4])


def test_outputs_may_not_lie_on_inputs() -> None:
    inputs, outputs = arrays_of(MATMUL)
    memory = np.zeros((8, 9), np.float32)
    inputs["B"], outputs["C"] = memory[:4], memory[3:]
    with pytest.raises(ProgramError, match="output C shares memory with B"):
        built(MATMUL).bind(inputs, outputs)


def test_what_is_packed_ahead_stays_until_it_is_bound_anew() -> None:
    program = MATMUL.with_constants(["B"])
    kernel = built(program, Split("n", 4), Pack("B", "root", ahead=True))
    inputs, outputs = arrays_of(program)
    bound = kernel.bind(inputs, outputs)
    before = reference(program, inputs)
    inputs["B"] += 1
    bound()
    assert check(program, outputs, before) is None
    kernel.bind(inputs, outputs)()
    assert check(program, outputs, reference(program, inputs)) is None


def test_other_python_threads_run_meanwhile() -> None:
    inputs, outputs = arrays_of(MATMUL)
    bound = built(MATMUL).bind(inputs, outputs)
    begun, ended = threading.Event(), threading.Event()

    def work(bound: BoundKernel) -> None:
        begun.set()
        bound.repeat(10_000_000)
        ended.set()

    thread = threading.Thread(target=work, args=(bound,))
    thread.start()
    begun.wait()
    turns = 0
    while not ended.is_set() and turns < 1000:
        turns += 1
    thread.join()
    assert turns == 1000


def test_temporaries_lie_apart_and_aligned_and_take_no_memory_in_registers() -> None:
    kinds: dict[str, Kind] = dict.fromkeys("STUR", ("temporary", 37))
    kernel = tree(COPY, A=("input", 37), Z=("output", 37), **kinds)
    spaces = {"A": MEMORY, "Z": MEMORY, "S": MEMORY, "T": STACK, "U": MEMORY, "R": REGISTERS}
    place = layout(AnnotatedTree(kernel, Vectors(16, 32, True), (), (), spaces))
    assert place.private == {"T"}
    assert (place.private_bytes, place.shared_bytes) == (320, 2 * 320)
    assert place.offsets.keys() == {"S", "T", "U"}
    assert all(offset % ALIGNMENT == 0 for offset in place.offsets.values())
    assert place.offsets["S"] != place.offsets["U"]
