"""Programs by every implementation: kernels, NumPy's baseline, the reference and the interpreter."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planish.core import Target
from planish.levels.loops.backends import available_backends, compile_with, supported_isas
from planish.levels.loops.codegen.kernel import Entry, MachineCode
from planish.levels.loops.codegen.llvm import compile as llvm
from planish.levels.loops.codegen.llvm import jit
from planish.levels.loops.codegen.x86 import compile as x86
from planish.levels.loops.ir.schedule import Schedule, unscheduled
from planish.levels.loops.ir.tree import LoopTree
from planish.levels.loops.lang.program import Program
from planish.levels.loops.lower.lowering import lower
from planish.levels.loops.reference.checking import check
from planish.levels.loops.reference.inputs import aligned, make_inputs
from planish.levels.loops.reference.numpy_baseline import numpy_callable
from planish.levels.loops.reference.reference import reference
from planish.levels.loops.runtime.kernels import Kernel
from planish.levels.loops.space.cursor import resolve
from planish.levels.loops.space.template import TemplateSpace
from planish.levels.loops.testing.interpreter import interpret

Array = NDArray[Any]
everywhere = pytest.mark.parametrize("backend", available_backends())
both = pytest.mark.parametrize("dtype", ["float32", "float64"])


def run(schedule: Schedule | Program, inputs: Mapping[str, Array], backend: str, cores: int = 1) -> Array:
    """Return the output of a kernel of a schedule, or of the unscheduled program."""
    if isinstance(schedule, Program):
        schedule = unscheduled(schedule)
    program, tree = schedule.program, lower(schedule)
    (name,) = program.outputs
    output = aligned(program.type[name])
    bound = Kernel(program, tree, compile_with(backend, tree), cores=cores).bind(inputs, {name: output})
    bound.poison()
    bound()
    return output


Generate = Callable[[LoopTree], MachineCode]


def without_masks(tree: LoopTree) -> MachineCode:
    """Generate code with LLVM for a processor that loads and stores whole vectors alone, as those of ARM."""
    machine = jit.describe(jit.host_machine().triple, "x86-64-v3", "+avx2,+fma,+f16c", 128)
    annotated = llvm.annotated_for(tree, machine)
    text, (run, prepare) = llvm.module(annotated, machine, "f")
    owner, addresses = jit.load(text, [*run, *prepare], machine)
    functions = zip((*annotated.body, *annotated.ahead), addresses, strict=True)
    entries = tuple([Entry(address, *function.iterations(tree)) for function, address in functions])
    code = llvm.compile_for(tree, machine)
    return replace(code, entries=entries[: len(run)], ahead_entries=entries[len(run) :], owner=owner)


GENERATORS: dict[str, Generate] = {
    **{f"x86-{isa}": partial(x86.compile_tree, isa=isa) for isa in supported_isas()},
    **{f"portable-{bits}": partial(llvm.compile_tree, vector_bits=bits) for bits in (64, 128, 256, 512)},
    **({"portable, without masks": without_masks} if "avx2" in supported_isas() else {}),
}
"""Code generators, by instruction set or by the width of vectors."""
BUILDERS: dict[str, Generate] = {
    **{name: partial(compile_with, name) for name in available_backends()},
    **{
        f"x86-{isa}, without extras": partial(x86.compile_tree, isa=isa, extras=frozenset())
        for isa in supported_isas()
    },
}
"""Back ends, and code for processors without AVX512_BF16 and VNNI."""


def outputs_of(
    schedule: Schedule, generate: Generate, inputs: Mapping[str, Array], cores: int = 1
) -> dict[str, Array]:
    """Return the outputs of a generator's kernel, which are poisoned first."""
    program, tree = schedule.program, lower(schedule)
    outputs = {name: aligned(program.type[name]) for name in program.outputs}
    for array in outputs.values():
        array.reshape(-1).view(np.uint8).fill(0xFF)
    Kernel(program, tree, generate(tree), cores).bind(inputs, outputs)()
    return outputs


def wrong(schedule: Schedule, generate: Generate, cores: int = 1) -> str | None:
    """Return what is wrong with the outputs of a generator's kernel."""
    inputs = make_inputs(schedule.program)
    outputs = outputs_of(schedule, generate, inputs, cores)
    return check(schedule.program, outputs, reference(schedule.program, inputs))


def wrong_in_tree(tree: LoopTree, program: Program) -> str | None:
    """Return what is wrong with the outputs that the interpreter computes by a tree of a program."""
    inputs = make_inputs(program)
    found = interpret(tree, inputs)
    shaped = {name: found[name].reshape(program.type[name].shape) for name in program.outputs}
    return check(program, shaped, reference(program, inputs))


def baseline(program: Program, inputs: Mapping[str, Array]) -> Array:
    """Return the output by NumPy's baseline."""
    (name,) = program.outputs
    output = aligned(program.type[name])
    with np.errstate(all="ignore"):  # infinities may meet
        numpy_callable(program, {**inputs, name: output})()
    return output


def check_others(program: Program, inputs: Mapping[str, Array], wanted: Array) -> None:
    """Compare the reference, NumPy's baseline and the interpreter with what is wanted."""
    (name,) = program.outputs
    np.testing.assert_array_equal(reference(program, inputs)[name], wanted)
    np.testing.assert_array_equal(baseline(program, inputs), wanted)
    found = interpret(lower(unscheduled(program)), inputs)[name]
    np.testing.assert_array_equal(found.reshape(np.shape(wanted)), wanted)


def samples(program: Program, backend: str, count: int) -> Iterator[Schedule]:
    """List the default schedule, and samples of the template space."""
    space = TemplateSpace(program, Target("", frozenset({backend}), 1, {"backend": backend}))
    for candidate in (space.start(), *(space.sample(np.random.default_rng(n)) for n in range(count))):
        yield resolve(program, candidate)
